"""One remembered entry, opened: the change in words and as text, where it comes from, how it reads in a prompt.

What this module does not know: which entry is opened (``remembered``) and how often it helped (``influence``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from merit import prompts
from merit.episode import Polarity
from merit.memory import listing
from merit.memory.entry import EntryView, Observation
from merit.memory.store import MemoryStore
from merit.ui import notice, results, sql, theme
from merit.ui.diagnosis import chip
from merit.ui.recalled import Moment
from merit.ui.state import Key
from merit.ui.text import count, escape, visible

Part = tuple[str, Callable[[EntryView], None]]
"""The name of a tab and what draws it."""


@dataclass(frozen=True)
class Merged:
    """One observation and what the entry was after it: counts and the polarity they give."""

    seen: Observation
    successes: int
    failures: int
    polarity: Polarity


def merges(history: tuple[Observation, ...]) -> list[Merged]:
    """The merge history of an entry (spec §3): counts add up, the majority gives the polarity, a tie keeps it."""
    merged: list[Merged] = []
    successes = failures = 0
    for seen in history:
        successes += seen.polarity is Polarity.POSITIVE
        failures += seen.polarity is Polarity.NEGATIVE
        if successes == failures:
            polarity = merged[-1].polarity
        else:
            polarity = Polarity.POSITIVE if successes > failures else Polarity.NEGATIVE
        merged.append(Merged(seen, successes, failures, polarity))
    return merged


def draw(store: MemoryStore, entry_id: str | None, at: Moment, more: tuple[Part, ...] = ()) -> EntryView | None:
    """The opened entry as the position saw it, with further tabs of ``more``; a sentence where there is none."""
    if entry_id is None:
        st.html(
            '<p class="m-soft">Tick a row of the table to see what changed, where it comes from and how it reads.</p>'
        )
        return None
    entry = store.look(partial(listing.one, entry_id=entry_id, before=at.before))
    if entry is None:
        notice.say(_missing(store, entry_id, at), urgent=False)
        return None
    sign = theme.POLARITIES[entry.polarity]
    error = f'<p class="m-soft">The database said: {escape(entry.db_error)}</p>' if entry.db_error else ""
    st.html(
        f'<article class="m-opened m-card m-card-{entry.polarity}" aria-label="Opened entry"><header>'
        f'<span class="m-sign"><b>{sign.mark}</b> {sign.word}</span>{chip(entry.failure_type)}'
        f'<span class="m-score" title="{entry.id}">{entry.id[:12]}</span></header>'
        f'<p class="m-question">{escape(entry.question)}</p>{error}'
        f"<footer>{escape(entry.database_id)} · worked {entry.successes}×, failed {entry.failures}× · first at "
        f"question {entry.first_position:,}, this text from question {entry.position:,}</footer></article>"
    )
    parts: tuple[Part, ...] = (
        ("Change", lambda entry: sql.change(entry.failed_sql, entry.new_sql)),
        ("Where from", _provenance),
        ("In a prompt", _prompt),
        *more,
    )
    for tab, (_, show) in zip(
        st.tabs([name for name, _ in parts], key=Key.ENTRY_TABS, on_change="rerun"), parts, strict=True
    ):
        if tab.open:
            with tab:
                show(entry)
    return entry


def _missing(store: MemoryStore, entry_id: str, at: Moment) -> str:
    now = store.look(partial(listing.one, entry_id=entry_id))
    name = f"The entry {visible(entry_id[:12])}"
    if now is None:
        return f"{name} is not in this memory (any more): it was forgotten, taken back, or never there."
    return (
        f"{name} could not be seen by question {at.position:,}: it can be seen from question "
        f"{min(seen.visible_from for seen in now.history):,} on."
    )


def _provenance(entry: EntryView) -> None:
    """Every observation in order, and what the entry became with it."""
    rows = [
        (
            merged.seen.position,
            theme.POLARITIES[merged.seen.polarity].mark,
            f"{theme.POLARITIES[merged.polarity].mark} {merged.successes} : {merged.failures}",
            merged.seen.visible_from,
            merged.seen.database_id,
            theme.OUTCOMES[merged.seen.outcome].word,
            merged.seen.iteration,
            merged.seen.model_id,
            merged.seen.created_at,
            merged.seen.episode_id,
        )
        for merged in merges(entry.history)
    ]
    st.caption(
        f"{count(len(rows), 'observation')} of the same change for the same type of failure, merged: counts add up, "
        "the majority decides whether it worked, and a tie keeps what it was."
    )
    st.dataframe(results.frame(_SEEN, rows), hide_index=True, key="provenance")


_SEEN = (
    "Question", "Seen", "Then", "Visible from", "Database", "Outcome", "Repair", "Model", "When", "Episode",
)  # fmt: skip


def _prompt(entry: EntryView) -> None:
    st.caption("Exactly this stands in a repair prompt, with its number among the entries shown.")
    st.code(visible(prompts.memory_card(entry)), language=None, wrap_lines=True)
