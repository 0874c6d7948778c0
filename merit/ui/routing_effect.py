"""What the label of a failure leads to: the entries memory gives, the repair prompt, and what another label changes.

What this module does not know: how the two are made (``merit.routing.trial``), and where the failure comes from
(``routing_bench``).
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from merit.database import Database
from merit.episode import FailureType
from merit.errors import MeritError
from merit.events import PromptBuilt, Retrieved
from merit.generation import counter
from merit.judging import schema_of
from merit.memory.entry import EntryView
from merit.memory.store import MemoryStore
from merit.models.loading import Loading
from merit.routing.trial import Consequence, Trial, consequence, moved, prompt_difference
from merit.strategy import STRATEGIES
from merit.ui import asking, catalogue, diagnosis, memory, notice, prompts, sql, status, theme
from merit.ui.state import Key
from merit.ui.text import count, escape

STRATEGIES_SHOWN = ("same_database", "merit", "merit_reliability", "no_type_filter", "dynamic_rag", "iterative")
"""From the strategy that insists on the label to those that never look at it."""


def draw(trial: Trial, ruled: FailureType, database: Database, loading: Loading, owner: str) -> None:
    """The label, by the rules or by hand, and what it leads to."""
    chosen = st.selectbox(
        "Label",
        [None, *FailureType],
        key=Key.OVERRIDE,
        persist_state="session",
        format_func=lambda one: f"As the rules say: {ruled}" if one is None else str(one),
        help="The label narrows what memory is searched for and stands in the repair prompt. Choose another one to see "
        "what it would change.",
    )
    name = st.selectbox(
        "Memory",
        STRATEGIES_SHOWN,
        key=Key.BENCH_STRATEGY,
        persist_state="session",
        format_func=lambda one: STRATEGIES[one].title,
        help="Which entries may be used, and how much the label counts.",
    )
    try:
        store = asking.memory_of(loading, catalogue.stream(database.id, owner)) if loading.encoder else None
        by_rule = _consequence(trial, ruled, database, name, store, loading)
        now = by_rule if chosen in (None, ruled) else _consequence(trial, chosen, database, name, store, loading)
    except MeritError as error:
        notice.say(str(error))
        return
    if store is None:
        st.html('<p class="m-soft" role="status">Memory opens together with the model; the prompt is without it.</p>')
    changes, recalled, prompt = st.tabs(
        ["What the label changes", "Remembered", "Prompt"], key=Key.BENCH_TABS, on_change="rerun"
    )
    if changes.open:
        with changes:
            _changes(by_rule, now)
    if recalled.open:
        with recalled:
            st.html(memory.line(Retrieved(1, now.retrieval)) + memory.cards(now.retrieval))
    if prompt.open:
        with prompt:
            prompts.draw(PromptBuilt(1, "repair", *now.prompt), status.limit(loading))


def _consequence(
    trial: Trial, kind: FailureType, database: Database, name: str, store: MemoryStore | None, loading: Loading
) -> Consequence:
    return consequence(
        trial,
        kind,
        schema_of(database),
        database.id,
        STRATEGIES[name],
        store,
        count_tokens=counter(loading.model),
        limit=status.limit(loading),
    )


def _changes(by_rule: Consequence, now: Consequence) -> None:
    if now.failure_type is by_rule.failure_type:
        st.html(
            f"<p>{diagnosis.chip(now.failure_type)}</p>"
            + memory.line(Retrieved(1, now.retrieval))
            + '<p class="m-soft">'
            "This is the label of the rules. Choose another one above to see which entries and which lines of the "
            "prompt would change.</p>"
        )
        return
    found = moved(by_rule, now)
    st.html(
        f"<p>{diagnosis.chip(by_rule.failure_type)} → {diagnosis.chip(now.failure_type)}</p>"
        f'<h4 class="m-head">Remembered: {count(len(found.come), "entry comes", "entries come")}, '
        f"{len(found.gone)} {'goes' if len(found.gone) == 1 else 'go'}, "
        f"{len(found.kept)} {'stays' if len(found.kept) == 1 else 'stay'}</h4>"
        + _entries("+ comes", found.come)
        + _entries("− goes", found.gone)
        + '<h4 class="m-head">The prompt</h4>'
        + sql.signed(prompt_difference(by_rule, now))
    )


def _entries(sign: str, entries: Sequence[EntryView]) -> str:
    items = "".join(
        f"<li><b>{sign}</b> {theme.POLARITIES[entry.polarity].word.lower()}: {escape(memory.title(entry, 90))}</li>"
        for entry in entries
    )
    return f'<ul class="m-words">{items}</ul>' if items else ""
