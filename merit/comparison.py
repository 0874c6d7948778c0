"""One question under several strategies or memories, in lockstep, and where two such episodes part.

Every lane is an ordinary episode at a position of the stream that is not taken, over a view of the memory
(``merit.memory.whatif``): nothing is written into it. Lanes share one model that answers each prompt once, so whatever
differs between two of them comes from their prompts, and a counterfactual of a recorded episode asks the model only
from where its prompt differs from the recorded one.

What this module does not know: who watches, and how anything is drawn.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from merit import live
from merit.episode import Execution, Outcome, Row, Status
from merit.events import (
    LAST_EVENTS,
    AttemptMade,
    Cancelled,
    EpisodeFinalised,
    EpisodeStarted,
    Event,
    Executed,
    Failed,
    Judged,
    PromptBuilt,
    Reflected,
)
from merit.memory.whatif import AS_IT_IS, Change, ChangedMemory
from merit.repair import run_episode
from merit.replaying import OncePerPrompt
from merit.sql_change import SqlChange, difference
from merit.story import Step, Story

if TYPE_CHECKING:
    from merit.memory import MemoryStore
    from merit.models.language import LanguageModel
    from merit.strategy import Strategy

MAX_LANES = 4


@dataclass(frozen=True)
class Lane:
    """One way to live the episode. ``position``: the 0-based place in the stream, None for that of the plan."""

    strategy: Strategy
    change: Change = AS_IT_IS
    position: int | None = None


@dataclass(frozen=True)
class LaneEvent:
    """One event of one lane, by its number."""

    lane: int
    event: Event


@dataclass(frozen=True)
class Plan:
    """What is compared. ``request`` gives question, database, verifier, budget, seed and owner (its strategy is not
    used); ``position`` is where the question stands, None for the next one that is free; ``known`` are the events of
    a recorded episode of this question, whose answers need not be asked for again."""

    request: live.Request
    lanes: tuple[Lane, ...]
    position: int | None = None
    known: tuple[Event, ...] = ()


def run(
    plan: Plan, model: LanguageModel, store: MemoryStore, *, cancel: threading.Event | None = None
) -> Iterator[LaneEvent | Cancelled]:
    """Live all lanes step by step: no lane begins repair k + 1 before every other has been judged at k.

    Each lane ends with exactly one of ``LAST_EVENTS`` and is kept as a bundle like any episode; a lane that fails
    does not stop the others. ``Cancelled`` is the last of all when ``cancel`` was set.
    """
    request, cancel = plan.request, cancel or threading.Event()
    live.check_database(request.database)
    position = store.upcoming() if plan.position is None else plan.position
    asked = OncePerPrompt(model, plan.known)
    lanes = [_events(plan, lane, position, asked, store, cancel) for lane in plan.lanes]
    going = list(range(len(lanes)))
    while going:
        for number in tuple(going):
            for event in lanes[number]:
                yield LaneEvent(number, event)
                if isinstance(event, LAST_EVENTS):
                    going.remove(number)
                if isinstance(event, (Judged, *LAST_EVENTS)):
                    break
    if cancel.is_set():
        yield Cancelled()


def by_lane(events: Iterable[object], lanes: int) -> tuple[tuple[Event, ...], ...]:
    """The events of each lane, in their order."""
    told: list[list[Event]] = [[] for _ in range(lanes)]
    for event in events:
        if isinstance(event, LaneEvent):
            told[event.lane].append(event.event)
    return tuple(tuple(lane) for lane in told)


def _events(
    plan: Plan, lane: Lane, position: int, model: Any, store: MemoryStore, cancel: threading.Event
) -> Iterator[Event]:
    request = plan.request
    at = position if lane.position is None else lane.position
    memory = ChangedMemory(store, lane.change)
    episode = run_episode(
        request.question,
        request.database,
        model,
        request.verifier,
        memory,
        lane.strategy,
        at,
        request.budget,
        initial=request.initial,
        cancel=cancel,
        seed=request.seed,
    )
    words = in_words(lane)
    # Nothing is written, so nothing is said to have been: what would have been left is no part of a comparison.
    told = (replace(event, entry=None) if isinstance(event, EpisodeFinalised) else event for event in episode)
    version = f"{store.stream.partition(':')[0]}@{at}, nothing written{f', {words}' if words else ''}"
    return live.kept(told, request.owner, version, live.quantisation_of(model))


def in_words(lane: Lane) -> str:
    """What is otherwise in a lane; "" where nothing is."""
    change = lane.change
    if change.off:
        said = "memory off"
    elif change.forged is not None:
        stands = f" in place of {change.without[:12]}" if change.without else ""
        said = f"entry {change.forged.id[:12]} forged{stands}"
    else:
        said = f"without entry {change.without[:12]}" if change.without else ""
    moved = "" if lane.position is None else f"as question {lane.position} saw it"
    return ", ".join(filter(None, (said, moved)))


# what an episode cost ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Totals:
    """What an episode cost: model calls, their tokens (without those of embedding and search), seconds of answering
    and of running statements. An answer that was there already counts with the seconds it took when it was made."""

    calls: int
    prompt_tokens: int
    output_tokens: int
    answering_s: float
    running_s: float


def answering_times(episodes: Iterable[Sequence[Event]]) -> dict[str, float]:
    """Prompt → the seconds its answer took where it was really made: the longest of all it is said to have taken."""
    took: dict[str, float] = {}
    for events in episodes:
        prompt = None
        for event in events:
            if isinstance(event, PromptBuilt):
                prompt = event.prompt
            elif isinstance(event, AttemptMade) and prompt is not None:
                took[prompt] = max(took.get(prompt, 0.0), event.elapsed_s)
    return took


def totals(events: Sequence[Event], took: Mapping[str, float]) -> Totals:
    """The costs of one episode, finished or not; ``took`` as from :func:`answering_times`."""
    answers = [event for event in events if isinstance(event, AttemptMade | Reflected)]
    prompts = [event.prompt for event in events if isinstance(event, PromptBuilt)]
    written = sum(isinstance(event, AttemptMade) for event in events) - sum(
        isinstance(event, PromptBuilt) and event.purpose != "reflection" for event in events
    )  # an attempt without a prompt: a first answer that was there
    return Totals(
        calls=len(answers) - max(0, written),
        prompt_tokens=sum(answer.prompt_tokens for answer in answers),
        output_tokens=sum(answer.output_tokens for answer in answers),
        answering_s=sum(took.get(prompt, 0.0) for prompt in prompts),
        running_s=sum(event.elapsed_s for event in events if isinstance(event, Executed)),
    )


# where two episodes part ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowDifference:
    """Rows that only one of two results has, each as often as it has it more than the other; ``same`` says that the
    results are equal as bags; ``note`` is a sentence where there is more to say, else ""."""

    here: tuple[Row, ...]
    there: tuple[Row, ...]
    same: bool
    note: str


def row_difference(here: Execution | None, there: Execution | None) -> RowDifference | None:
    """Rows only here and only there, in the order of their result. Values are equal as Python has it (1 == 1.0), NULL
    equals NULL. None where one of the two gave no rows to compare."""
    if here is None or there is None or Status.EXECUTED is not here.status or here.status is not there.status:
        return None
    mine, others = [_row_key(row) for row in here.rows], [_row_key(row) for row in there.rows]
    only_here = _only(here.rows, mine, Counter(others))
    only_there = _only(there.rows, others, Counter(mine))
    same = not only_here and not only_there
    note = ""
    if len(here.columns) != len(there.columns):
        note = f"{len(here.columns)} columns here, {len(there.columns)} there, so no row can be the same."
    elif same and mine != others:
        note = "The same rows in another order."
    elif same and here.columns != there.columns:
        note = "The same rows; only the names of the columns differ."
    if here.truncated or there.truncated:
        note = f"{note} At least one result was cut, so rows may be missing here.".strip()
    return RowDifference(only_here, only_there, same, note)


def _row_key(row: Row) -> tuple[Any, ...]:
    # NaN is not equal to itself, and True is no other value than 1 in SQLite
    return tuple("NaN" if isinstance(value, float) and value != value else (value,) for value in row)


def _only(rows: Sequence[Row], keys: Sequence[tuple[Any, ...]], other: Counter[tuple[Any, ...]]) -> tuple[Row, ...]:
    found = []
    for row, name in zip(rows, keys, strict=True):
        if other[name]:
            other[name] -= 1
        else:
            found.append(row)
    return tuple(found)


@dataclass(frozen=True)
class Parting:
    """Where two episodes part: the first step whose prompt, answer or verdict differs, with both forms of it.
    ``recalled_here`` and ``recalled_there`` are the ids of entries that only one of the two had recalled for it."""

    iteration: int
    recalled_here: tuple[str, ...]
    recalled_there: tuple[str, ...]
    prompts_differ: bool
    change: SqlChange
    here: Step | None
    there: Step | None


def parting(here: Story, there: Story) -> Parting | None:
    """The first step in which two episodes differ; None as long as they are alike."""
    mine, others = (
        {step.iteration: step for step in story.steps if step.judged is not None} for story in (here, there)
    )
    for iteration in sorted(mine.keys() | others.keys()):
        one, other = mine.get(iteration), others.get(iteration)
        if (one is None and here.end is None) or (other is None and there.end is None):
            return None  # it has not come so far yet
        if _facts(one) != _facts(other):
            return Parting(
                iteration,
                tuple(id for id in recalled(one) if id not in recalled(other)),
                tuple(id for id in recalled(other) if id not in recalled(one)),
                _prompt(one) != _prompt(other),
                difference(sql_of(one), sql_of(other)),
                one,
                other,
            )
    return None


def recalled(step: Step | None) -> tuple[str, ...]:
    """The ids of the entries that memory gave for a step, those that worked first."""
    if step is None or step.retrieved is None:
        return ()
    return tuple(entry.id for entry in (*step.retrieved.retrieval.positive, *step.retrieved.retrieval.negative))


def sql_of(step: Step | None) -> str:
    """The SQL of a step, "" where there is none yet."""
    return step.attempt.sql if step is not None and step.attempt is not None else ""


def outcome_of(story: Story) -> Outcome | None:
    """How an episode ended; None where it has not, failed or was stopped."""
    return story.end.outcome if isinstance(story.end, EpisodeFinalised) else None


def flipped(here: Story, there: Story) -> bool:
    """Whether one of two finished episodes was solved and the other was not."""
    whole = all(story.end is not None and not isinstance(story.end, Failed | Cancelled) for story in (here, there))
    return whole and here.solved != there.solved


def started_of(events: Sequence[Event]) -> EpisodeStarted | None:
    """The first event, if the episode has begun."""
    return events[0] if events and isinstance(events[0], EpisodeStarted) else None


def _facts(step: Step | None) -> tuple[Any, ...]:
    if step is None:
        return ()
    assert step.judged is not None
    return _prompt(step), sql_of(step), step.judged.outcome


def _prompt(step: Step | None) -> str | None:
    return step.prompt.prompt if step is not None and step.prompt is not None else None
