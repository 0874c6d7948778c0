"""One database on the page: what it is, what can be asked, what is worth knowing, its tables and their diagram.

Every name, type and cell of a database is drawn as text.

What this module does not know: how a file came here (``bringing``) or how a question is answered.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from merit.database import Database
from merit.database import diagram as dot
from merit.database.schema import Table
from merit.database.suggestions import suggest_questions
from merit.ui import catalogue, looking, notice, results, theme
from merit.ui.catalogue import Listed
from merit.ui.state import Key, Param
from merit.ui.text import count, escape, label, visible

ASK_PAGE = "pages/ask.py"
SUGGESTED = 4
FINDINGS_SHOWN = 4
ALL = ""
"""Stands for all tables in the list of those to draw."""


def restore(listed: Sequence[Listed]) -> None:
    """Choose what the page begins with: what just came, else the choice so far, else that of the URL, else the first.

    What cannot be opened here falls back, with a sentence.
    """
    state, known = st.session_state, [entry.id for entry in listed]
    wanted = state.pop(Key.WANTED, None) or state.get(Key.PICKED) or st.query_params.get(Param.DATABASE)
    wanted = wanted or state.get(Key.LAST_DATABASE) or catalogue.FIRST
    if wanted not in known:
        notice.keep(catalogue.not_here(wanted))
        last = state.get(Key.LAST_DATABASE)
        wanted = last if last in known else catalogue.FIRST
    if state.get(Key.PICKED) != wanted:
        state[Key.PICKED] = wanted


def picker(listed: Sequence[Listed]) -> Listed:
    """The list, and what is chosen in it; the choice is in the URL too."""
    entries = {entry.id: entry for entry in listed}
    picked = st.radio(
        "Databases",
        list(entries),
        format_func=lambda id: label(entries[id].title, 60),
        captions=["sample" if entry.upload is None else "yours" for entry in listed],
        key=Key.PICKED,
        label_visibility="collapsed",
    )
    st.session_state[Key.LAST_DATABASE] = picked
    if st.query_params.get(Param.DATABASE) != picked:
        st.query_params[Param.DATABASE] = picked
    return entries[picked]


def heading(entry: Listed, database: Database | None) -> None:
    """What it is: title, size, whose it is."""
    facts = ["a sample; its memory is shared" if entry.upload is None else "yours; only this browser sees it"]
    if database is not None:
        counts = looking.row_counts(database)
        known = [number for number in counts.values() if number is not None]
        rows = f"{'' if len(known) == len(counts) else 'at least '}{count(sum(known), 'row')}"
        facts = [count(len(database.tables), "table"), rows, size(database.path.stat().st_size), *facts]
    st.html(
        f'<div class="m-story"><h2>{escape(entry.title)}</h2><div class="m-status">'
        + "".join(f"<span>{escape(fact)}</span>" for fact in facts)
        + f"</div>{f'<p>{escape(entry.description)}</p>' if entry.description else ''}</div>"
    )


def size(bytes: int) -> str:
    """A file's size in the unit that reads best."""
    for unit, of in (("MB", 2**20), ("KB", 2**10)):
        if bytes >= of:
            return f"{bytes / of:,.1f} {unit}" if bytes < 10 * of else f"{bytes / of:,.0f} {unit}"
    return count(bytes, "byte")


def first_questions(entry: Listed, database: Database, owner: str) -> None:
    """Questions to begin with, those with an answer first; each opens Ask with this database and this question."""
    known = [question.text for question in catalogue.first(entry.id, owner)]
    suggested = suggest_questions(database, SUGGESTED)
    questions = list(dict.fromkeys([*known, *suggested]))[:SUGGESTED]
    with st.container(horizontal=True, vertical_alignment="center", key="try", gap="small"):
        if st.button("Ask about it", type="primary", key=Key.ASK_ABOUT, icon=":material/chat:"):
            ask(entry.id)
        for number, text in enumerate(questions):
            name = f"try-{entry.id}-{number}"
            if st.button(f"“{label(text, 90)}”", key=name, type="tertiary", help="Opens Ask with this question"):
                ask(entry.id, text)


def ask(database_id: str, question: str = "") -> None:
    """Go to Ask with this database and question."""
    for stale in (Param.DATABASE, Param.QUESTION):
        st.session_state.pop(stale, None)
    wanted = {Param.DATABASE: database_id, **({Param.QUESTION: question} if question else {})}
    st.switch_page(ASK_PAGE, query_params={str(name): value for name, value in wanted.items()})


def findings(database: Database) -> None:
    """What is worth knowing before one asks; a long list is folded."""
    found = looking.findings(database)
    if not found:
        words = "Nothing stands out: keys are declared and the first rows read well."
        st.html(f'<p class="m-note"><span class="m-good">●</span> {words}</p>')
        return
    shown, rest = found[:FINDINGS_SHOWN], found[FINDINGS_SHOWN:]
    st.html('<h3 class="m-head">Worth knowing</h3>')
    notice.listed(found.sentence for found in shown)
    if rest:
        with st.expander(f"{len(rest)} more", key="findings"):
            notice.listed(found.sentence for found in rest)


def diagram(entry: Listed, database: Database) -> None:
    """Tables and foreign keys as a graph; the same is in words under Tables."""
    linked = sum(len(table.foreign_keys) for table in database.tables)
    words = f"{count(len(database.tables), 'table')} and {count(linked, 'foreign key')}"
    ink = theme.TEXT[1] if theme.is_dark() else theme.TEXT[0]
    st.caption(f"{words}. An arrow goes from a foreign key to what it points to.")
    drawn = database
    if len(database.tables) > dot.ALL_COLUMNS_UP_TO:
        around = st.selectbox(
            "Draw",
            [ALL, *(table.name for table in database.tables)],
            format_func=lambda name: "all tables, key columns only" if name == ALL else f"around {visible(name)}",
            key=f"{Key.AROUND}-{entry.id}",
        )
        drawn = looking.around(database, around) if around != ALL else database
    with st.container(key="diagram"):
        st.graphviz_chart(dot.diagram(drawn, ink), alt=f"Diagram of {words} of {visible(entry.title)}")


def tables(entry: Listed, database: Database) -> None:
    """All tables in one overview, then columns, keys and first rows of the one that is picked."""
    counts = looking.row_counts(database)
    overview = [
        (
            table.name,
            table.kind,
            "not counted" if counts[table.name] is None else counts[table.name],
            len(table.columns),
            ", ".join(dict.fromkeys(key.table for key in table.foreign_keys)) or "–",
        )
        for table in database.tables
    ]
    st.dataframe(
        results.frame(("Table", "Kind", "Rows", "Columns", "Points to"), overview), hide_index=True, key="overview"
    )
    names = [table.name for table in database.tables]
    picked = st.selectbox("Look into", names, format_func=visible, key=f"{Key.TABLE}-{entry.id}")
    table = next((table for table in database.tables if table.name == picked), None)
    if table is None:
        return
    st.dataframe(results.frame(("Column", "Type", "Key"), columns(table)), hide_index=True, key=f"columns-{entry.id}")
    st.html(f'<h3 class="m-head">First rows of {escape(table.name)}</h3>')
    results.display(looking.first_rows(database, table.name), key=f"rows-{entry.id}", downloads=False)


def columns(table: Table) -> list[tuple[str, str, str]]:
    """Name, type as declared and keys of each column, in words."""
    return [
        (
            column.name,
            column.declared or "not declared",
            " · ".join(
                [
                    *(["primary key"] if column.primary_key else []),
                    *([f"points to {column.foreign_key}"] if column.foreign_key else []),
                ]
            )
            or "–",
        )
        for column in table.columns
    ]


def schema(database: Database) -> None:
    """The schema as the model reads it in its prompt."""
    st.caption("This text stands in every prompt; nothing else of the database does before a query has run.")
    st.code(visible(database.schema("listing")), language=None, height=480)
