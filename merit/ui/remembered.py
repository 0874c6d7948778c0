"""Everything that is remembered, in one table: filtered, ordered, paged, and one entry of it opened.

What this module does not know: how a list is made (``merit.memory.listing``), and what an entry looks like when it is
opened (``opened``).
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import streamlit as st

from merit.episode import FailureType, Polarity
from merit.memory import listing
from merit.memory.entry import EntryView
from merit.memory.listing import Filter, Listing, Order
from merit.memory.store import MemoryStore
from merit.sql_change import difference
from merit.ui import results, theme
from merit.ui.recalled import Moment
from merit.ui.sql import short
from merit.ui.state import Key, Param
from merit.ui.text import count, visible

PAGES = (50, 200, 1_000)
"""Rows of a page; the last is the most that is ever drawn (pitfalls: tables)."""
_LONGEST = 80


def filters(databases: tuple[str, ...], last: int) -> Filter:
    """The inputs above the table, and the filter they make."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        text = st.text_input("Search", key=Key.FIND, placeholder="question, SQL, message, database or id")
        polarity = st.selectbox(
            "Polarity", list(Polarity), index=None, key=Key.POLARITY, placeholder="Both", format_func=_polarity
        )
        types = st.multiselect("Failure type", list(FailureType), key=Key.TYPES, placeholder="All")
        named = st.multiselect("Database", list(databases), key=Key.FROM, placeholder="All", format_func=visible)
    with st.container(horizontal=True, vertical_alignment="bottom", key="ordering"):
        first, final = 0, None
        if last > 1:
            first, final = st.slider("First seen at question", 0, last - 1, (0, last - 1), key=f"{Key.SPAN}-{last}")
        picked = st.session_state.get(Key.LASSO)
    return Filter(
        polarity=polarity,
        failure_types=frozenset(types),
        databases=frozenset(named),
        first=first,
        last=None if final is None or final == last - 1 else final,
        text=text,
        ids=frozenset(picked) if picked else None,
    )


def listed(store: MemoryStore, at: Moment, wanted: Filter) -> Listing:
    """One page of what passes the filter, in the order chosen."""
    order = Order(st.session_state.get(Key.ORDER, Order.NEWEST))
    size, number = st.session_state.get(Key.PAGE_SIZE, PAGES[0]), st.session_state.get(Key.PAGE, 1)
    ask = partial(listing.listing, before=at.before, wanted=wanted, order=order, limit=size)
    found = store.look(partial(ask, start=(number - 1) * size))
    if not found.entries and found.matching:  # the page was left behind by a narrower filter
        st.session_state[Key.PAGE] = 1
        found = store.look(partial(ask, start=0))
    return found


def table(found: Listing, at: Moment) -> None:
    """The page as a table whose rows open, and the inputs that order and page it."""
    size = st.session_state.get(Key.PAGE_SIZE, PAGES[0])
    with st.container(horizontal=True, vertical_alignment="bottom", key="paging"):
        st.selectbox("Order", list(Order), key=Key.ORDER, format_func=lambda order: order[0].upper() + order[1:])
        st.selectbox("Rows", PAGES, key=Key.PAGE_SIZE, format_func=lambda rows: f"{rows:,} a page")
        pages = max(1, -(-found.matching // size))
        if pages > 1:
            st.number_input(f"Page of {pages:,}", 1, pages, key=Key.PAGE)
    number = min(st.session_state.get(Key.PAGE, 1), pages)
    if not found.entries:
        st.caption(_nothing(found, at))
        return
    ids = [entry.id for entry in found.entries]
    # Another page, another widget: a row number selected before means nothing in it.
    name = f"{Key.ENTRIES}-{abs(hash(tuple(ids)))}"
    st.dataframe(
        results.frame(_COLUMNS, [_row(entry) for entry in found.entries]),
        hide_index=True,
        height=min(38 + 35 * len(ids), 563),
        column_config=_WIDTHS,
        on_select=partial(_opened, name, ids),
        selection_mode="single-row",
        key=name,
    )
    begin = (number - 1) * size + 1
    shown = f"{begin:,}–{begin + len(ids) - 1:,} of {count(found.matching, 'entry', 'entries')}"
    st.caption(f"{shown}. Tick a row to open it.")


_COLUMNS = ("", "Type", "At", "Worked", "Failed", "Change", "Question", "Database")
_WIDTHS: dict[str, Any] = {
    "(no name)": st.column_config.TextColumn("±", width=30, help="+ worked before, − failed before"),
    "Type": st.column_config.TextColumn(width=40, help="Failure type by its two letters"),
    "At": st.column_config.NumberColumn(width=50, help="Question at which it was first seen"),
    "Worked": st.column_config.NumberColumn("✓", width=40, help="How often it was seen to work"),
    "Failed": st.column_config.NumberColumn("✕", width=40, help="How often it was seen to fail"),
    "Change": st.column_config.TextColumn(width=250),
}


def _row(entry: EntryView) -> tuple[Any, ...]:
    return (
        theme.POLARITIES[entry.polarity].mark,
        theme.FAILURES[entry.failure_type].letters,
        entry.first_position,
        entry.successes,
        entry.failures,
        change(entry.failed_sql, entry.new_sql),
        _cut(entry.question),
        _cut(entry.database_id),
    )


@lru_cache(maxsize=8192)
def change(failed: str, new: str) -> str:
    """The change of an entry in one line of words, or the new SQL where there are none."""
    found = difference(failed, new)
    return _cut(short(found) if found.words else new)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _opened(name: str, ids: list[str]) -> None:
    rows = st.session_state[name]["selection"]["rows"]
    if rows:
        choose(ids[rows[0]])


def choose(entry_id: str) -> None:
    """Make this the opened entry, here and in the URL."""
    st.session_state[Key.CHOSEN_ENTRY] = entry_id
    st.query_params[Param.ENTRY] = entry_id


def chosen() -> str | None:
    """The id of the opened entry; the one of the URL at first."""
    state = st.session_state
    if Key.CHOSEN_ENTRY not in state:
        state[Key.CHOSEN_ENTRY] = st.query_params.get(Param.ENTRY)
    entry: str | None = state[Key.CHOSEN_ENTRY]
    return entry


def _polarity(polarity: Polarity) -> str:
    sign = theme.POLARITIES[polarity]
    return f"{sign.mark} {sign.word}"


def _nothing(found: Listing, at: Moment) -> str:
    if found.positive + found.negative:
        return "No entry passes these filters. Clear one of them to see more."
    if at.now:
        return "Nothing is remembered yet. Ask a question whose first answer fails: what repairs it is remembered here."
    return f"Question {at.position:,} could not see anything yet: no question before it had left an entry."
