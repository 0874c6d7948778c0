"""The inputs of the Compare page, and from them to a running comparison; what is compared is in the URL.

What this module does not know: how lanes are lived (``merit.comparison``) and drawn (``compared``).
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from merit import comparison, jobs, live
from merit.comparison import Lane, Plan, recalled
from merit.database import Database
from merit.episode import Execution, Polarity, Question, Status
from merit.errors import BadInput, MeritError, ModelUnavailable
from merit.events import Cancelled, EpisodeStarted, Event
from merit.jobs import Job
from merit.memory.entry import EntryView
from merit.memory.store import MemoryStore
from merit.models.loading import Loading, State
from merit.story import Story, fold
from merit.strategy import Scope
from merit.ui import asking, catalogue, inputs, notice, remembered, theme
from merit.ui.asking import Draft, Judge
from merit.ui.lanes import (
    COMPARABLE,
    LETTERS,
    LONGEST_FORGED,
    SCOPED,
    START,
    LaneDraft,
    Memory,
    lane,
    offered,
    parse,
)
from merit.ui.state import Key, Param
from merit.ui.text import visible
from merit.verification import AssertionVerifier, Verifier

JUDGES = (Judge.SAMPLE, Judge.CONFIRMED, Judge.ASSERTION, Judge.NOBODY)
"""Who can judge a comparison: not a person, of whom four columns would ask at once."""
_MEMORY = {
    Memory.AS_IT_IS: "Memory as it is",
    Memory.OFF: "Memory off",
    Memory.WITHOUT: "Without one entry",
    Memory.FORGED: "One entry forged",
    Memory.EARLIER: "At an earlier position",
}
_PRESETS = {
    "Memory on and off": START,
    "Four strategies": tuple(LaneDraft(name) for name in ("same_database", "iterative", "reflexion", "dynamic_rag")),
}
_MAX_CONFIRMED = 10_000
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class Recorded:
    """The finished episode that is lived again: its events, their fold, and where it stood."""

    events: tuple[Event, ...]
    story: Story
    started: EpisodeStarted

    @property
    def recalled(self) -> tuple[str, ...]:
        """The ids of all entries it recalled, those of the last repair first."""
        ids = [entry for step in reversed(self.story.steps) for entry in recalled(step)]
        return tuple(dict.fromkeys(ids))


def restore(owner: str) -> Recorded | None:
    """Take from the URL what it says; the episode that is lived again, if it names one."""
    url = st.query_params
    again = _recorded(url.get(Param.OF, ""), owner)
    if again is None:
        url.pop(Param.OF, None)
    inputs.restore(owner, "compare")
    state = st.session_state
    if again is not None and state.get(Key.COMPARED) != again.started.episode_id:
        _begin_with(again, owner)
    if Key.LANES not in state:
        _set(_from_url())
    if again is not None and state[Param.QUESTION].strip() != again.started.question.text.strip():
        url.pop(Param.OF, None)
        return None
    return again


def _recorded(episode_id: str, owner: str) -> Recorded | None:
    if not episode_id:
        return None
    try:
        events = tuple(asking.finished(episode_id, owner).events)
    except MeritError as error:
        notice.keep(str(error))
        return None
    started = events[0]
    assert isinstance(started, EpisodeStarted)
    return Recorded(events, fold(events), started)


def _begin_with(again: Recorded, owner: str) -> None:
    """Set the inputs to what the episode was asked with, and the columns to what may have mattered in it."""
    state, started = st.session_state, again.started
    state[Key.COMPARED] = started.episode_id
    state[Param.DATABASE] = started.question.database_id
    state[Param.QUESTION], state[Key.EVIDENCE] = started.question.text, started.question.evidence
    state[Key.BUDGET] = min(7, started.budget)
    known = asking.sample(started.question.text, started.question.database_id, owner)
    state[Key.JUDGE] = Judge.SAMPLE if known else Judge.CONFIRMED if again.story.solved else Judge.NOBODY
    if Param.LANE in st.query_params:
        return
    base = started.strategy if started.strategy in COMPARABLE else "same_database"
    scope = Scope.SAME if base in SCOPED else Scope(started.scope)
    found = [LaneDraft(base, scope), LaneDraft(base, scope, Memory.OFF)]
    if again.recalled:
        found.append(LaneDraft(base, scope, Memory.WITHOUT, again.recalled[0]))
    _set(tuple(found))


def _from_url() -> tuple[LaneDraft, ...]:
    found = []
    for code in st.query_params.get_all(Param.LANE)[: comparison.MAX_LANES]:
        try:
            found.append(parse(code))
        except BadInput as error:
            notice.keep(str(error))
    return tuple(found) or START


def _set(lanes: tuple[LaneDraft, ...]) -> None:
    """Columns with new widgets, which begin as ``lanes`` says."""
    state = st.session_state
    state[Key.LANES] = (state[Key.LANES][0] + 1 if Key.LANES in state else 0, lanes)


def draft(database: Database | None, again: Recorded | None, owner: str) -> Draft:
    """The folded options beneath the question."""
    confirmed = again is not None and again.story.solved
    judges = tuple(judge for judge in JUDGES if confirmed or judge is not Judge.CONFIRMED)
    return inputs.options(st.session_state[Param.DATABASE], database, owner, judges, one_strategy=False)


def columns(store: MemoryStore | None, again: Recorded | None) -> tuple[LaneDraft, ...]:
    """The columns to compare, side by side, and what is chosen for each; also in the URL."""
    turn, lanes = st.session_state[Key.LANES]
    position = _position(store, again)
    entries = {} if store is None else offered(store, position, again.recalled if again else ())
    with st.container(horizontal=True, vertical_alignment="center", key="presets", gap="small"):
        st.html('<span class="m-soft">Columns</span>', width="content")
        for name, preset in _PRESETS.items():
            st.button(name, type="tertiary", on_click=_set, args=(preset,), key=f"preset-{name}")
        if len(lanes) < comparison.MAX_LANES:
            more = (*lanes, dataclasses.replace(lanes[-1], memory=Memory.AS_IT_IS))
            st.button(
                "Add a column", type="tertiary", icon=":material/add:", key=Key.ADD_LANE, on_click=_set, args=(more,)
            )
    chosen = []
    for number, (box, begin) in enumerate(zip(st.columns(len(lanes), gap="medium"), lanes, strict=True)):
        with box:
            chosen.append(_column(f"lane-{turn}-{number}", LETTERS[number], begin, entries, position))
            if len(lanes) > 1:
                rest = (*lanes[:number], *lanes[number + 1 :])
                st.button("Remove", type="tertiary", key=f"lane-{turn}-{number}-remove", on_click=_set, args=(rest,))
    st.session_state[Key.LANES] = (turn, tuple(chosen))
    return tuple(chosen)


def _position(store: MemoryStore | None, again: Recorded | None) -> int:
    if again is not None:
        return again.started.position
    return store.upcoming() if store is not None else 0


def _column(key: str, letter: str, begin: LaneDraft, entries: dict[str, EntryView], position: int) -> LaneDraft:
    strategy = st.selectbox(
        f"{letter}: strategy", COMPARABLE, COMPARABLE.index(begin.strategy), key=f"{key}-strategy",
        format_func=inputs.strategy_word,
    )  # fmt: skip
    kinds = list(Memory)
    kind = st.selectbox(
        f"{letter}: memory", kinds, kinds.index(begin.memory), key=f"{key}-memory", format_func=_MEMORY.__getitem__
    )
    found = dataclasses.replace(begin, strategy=strategy, memory=kind)
    if kind is Memory.EARLIER:
        at = st.number_input(
            "Question number", 0, max(position, 0), min(begin.position, position), key=f"{key}-at",
            help=f"The question stands at {position:,}. Earlier, it sees less of what others left.",
        )  # fmt: skip
        return dataclasses.replace(found, position=int(at))
    if kind not in (Memory.WITHOUT, Memory.FORGED):
        return found
    if not entries:
        st.caption("There is no entry yet that this question could see. Ask other questions first.")
        return dataclasses.replace(found, entry="")
    ids = list(entries)
    at = ids.index(begin.entry) if begin.entry in entries else 0
    entry = st.selectbox("Entry", ids, at, key=f"{key}-entry", format_func=lambda id: _named(entries.get(id)))
    found = dataclasses.replace(found, entry=entry)
    return found if kind is Memory.WITHOUT else _forgery(f"{key}-{entry[:12]}", found, begin, entries[entry])


def _forgery(key: str, found: LaneDraft, begin: LaneDraft, truth: EntryView) -> LaneDraft:
    same = begin.memory is Memory.FORGED and begin.entry == truth.id
    sql = st.text_area(
        "It claims this query", begin.sql if same else truth.new_sql[:LONGEST_FORGED], key=f"{key}-sql", height=140,
        max_chars=LONGEST_FORGED, help="The entry stands in the place of the true one in this column alone.",
    )  # fmt: skip
    kinds = list(Polarity)
    polarity = st.selectbox(
        "and that it", kinds, kinds.index(begin.polarity if same else truth.polarity), key=f"{key}-polarity",
        format_func=lambda polarity: theme.POLARITIES[polarity].word.lower(),
    )  # fmt: skip
    return dataclasses.replace(found, sql=sql, polarity=polarity)


def _named(entry: EntryView | None) -> str:
    if entry is None:
        return ""
    sign, letters = theme.POLARITIES[entry.polarity].mark, theme.FAILURES[entry.failure_type].letters
    return visible(f"{sign} {letters} {remembered.change(entry.failed_sql, entry.new_sql)} ({entry.question})")


def publish(written: Draft, lanes: tuple[LaneDraft, ...]) -> None:
    """Put question and columns into the URL, next to the episodes that are shown."""
    inputs.publish(written, None, keep=(Param.EPISODE,))
    codes = [lane.code for lane in lanes]
    if st.query_params.get_all(Param.LANE) != codes:
        st.query_params[Param.LANE] = codes


def told(again: Recorded) -> None:
    """Say which episode is lived again, and what that means."""
    when = again.started.created_at[:16].replace("T", " ")
    notice.say(
        f"This lives an episode again: question {again.started.position:,}, asked {when}. "
        "Answers are those of the recording wherever the prompt is the same; the model is asked from where it differs.",
        urgent=False,
    )


def empty() -> None:
    """What will be here, before the first comparison."""
    st.html(
        '<div class="m-empty"><p>The columns will stand here side by side, step beside step: verdicts, SQL, rows, '
        "tokens and time, and a sentence on where each parts from the first. Choose a question and press Compare. To "
        "ask <i>what if memory had been otherwise</i> of an episode, open it on the Ask page and choose it there."
        "</p></div>"
    )


def begin(written: Draft, lanes: tuple[LaneDraft, ...], again: Recorded | None, owner: str, loading: Loading) -> Job:
    """Start the comparison; ``BadInput`` and the like carry the sentence to show."""
    request = _request(written, again, owner)
    store = asking.memory_of(loading, catalogue.stream(request.database.id, owner))
    position = _position(store, again)
    lived: tuple[Lane, ...] = tuple(lane(one, store, position) for one in lanes)
    plan = Plan(request, lived, position, again.events if again else ())
    return jobs.start(owner, partial(_lived, plan, store, loading), label=request.question.text, context=plan)


def _request(written: Draft, again: Recorded | None, owner: str) -> live.Request:
    if again is None or written.judge is not Judge.CONFIRMED:
        request = written.request(owner)
    else:
        request = dataclasses.replace(written, judge=Judge.NOBODY).request(owner)
        request = dataclasses.replace(request, verifier=_confirmed(again, request.database))
    if again is None:
        return request
    # As it was asked: the same id hides the same entries, a benchmark has its own prompts, and a first answer that
    # was there already is there again.
    was = again.started.question
    asked = Question(was.text, was.database_id, was.evidence, request.question.gold_sql, was.question_id, was.benchmark)
    first = again.story.steps[0] if again.story.steps else None
    given = first.attempt.raw if first and first.attempt and first.prompt is None else None
    return dataclasses.replace(request, question=asked, seed=again.started.seed, initial=given)


def _confirmed(again: Recorded, database: Database) -> Verifier:
    """The rows that were called right in the episode, as an assertion."""
    last = again.story.last
    sql = last.attempt.sql if last and last.attempt else ""
    found: Execution = database.execute(sql, max_rows=_MAX_CONFIRMED)
    if found.status is not Status.EXECUTED or found.truncated:
        raise BadInput("The rows that were confirmed cannot be had again. Let someone else judge.")
    return AssertionVerifier(rows=list(found.rows))


def _lived(plan: Plan, store: MemoryStore, loading: Loading, cancel: threading.Event) -> Iterator[Any]:
    while loading.state not in (State.READY, State.FAILED):
        if cancel.wait(_LOOK_EVERY_S):
            yield Cancelled()
            return
    if loading.model is None:
        raise ModelUnavailable(loading.error or "The model could not be loaded.")
    yield from comparison.run(plan, loading.model, store, cancel=cancel)
