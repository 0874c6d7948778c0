"""From what stands in the inputs to a running job: question, strategy, verifier, store, model.

What this module does not know: streamlit. It is the page's one call into the library.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from merit import jobs, live
from merit.database import Database
from merit.episode import Execution, Outcome, Question
from merit.errors import BadInput, MemoryUnavailable, ModelUnavailable
from merit.events import Cancelled, EpisodeStarted, Event, Failed, Judged
from merit.jobs import Job
from merit.memory import MemoryStore
from merit.memory.entry import MemoryEntry
from merit.models.loading import Loading, State
from merit.settings import settings
from merit.strategy import STRATEGIES, Causality, Scope, Strategy
from merit.ui import catalogue, looking
from merit.verification import (
    AssertionVerifier,
    ExecutionOnlyVerifier,
    PersonVerifier,
    SpiderVerifier,
    Verifier,
)

_LOOK_EVERY_S = 0.1


class Judge(StrEnum):
    """Who says whether an answer is right."""

    SAMPLE = "sample"
    PERSON = "person"
    CONFIRMED = "confirmed"
    ASSERTION = "assertion"
    NOBODY = "nobody"


class Expected(StrEnum):
    """What an assertion is about."""

    COUNT = "row count"
    VALUE = "one value"
    ROWS = "rows"
    CONDITION = "a condition"


@dataclass(frozen=True)
class Expectation:
    """What the person wrote as the expected result; only the field of ``kind`` is read."""

    kind: Expected = Expected.COUNT
    count: int = 1
    value: str = ""
    rows: str = ""
    condition: str = ""


LIVE_STRATEGIES = tuple(name for name, s in STRATEGIES.items() if s.causal is Causality.CAUSAL and s.scope is Scope.ANY)
"""Strategies of the picker: causal ones; the scope is a choice of its own beside it."""
_SCOPED = {Scope.ANY: "merit", Scope.SAME: "same_database", Scope.OTHER: "cross_database"}


def strategy(base: str, scope: Scope) -> Strategy:
    """The strategy ``base`` with memory from ``scope``."""
    chosen = STRATEGIES[base]
    if base == "merit":
        return STRATEGIES[_SCOPED[scope]]
    return dataclasses.replace(chosen, scope=scope) if chosen.uses_memory else chosen


def from_name(name: str) -> tuple[str, Scope]:
    """(base, scope) of a strategy name as it stands in a URL; ``UnknownStrategy`` lists the known ones."""
    chosen = STRATEGIES[name]
    for scope, scoped in _SCOPED.items():
        if name == scoped:
            return "merit", scope
    return (name, Scope.SAME) if chosen.name in LIVE_STRATEGIES else ("merit", Scope.SAME)


@lru_cache(maxsize=16)
def _opened(path: Path, changed_ns: int, id: str) -> Database:
    return Database.open(path, id=id)


def open_database(id: str, owner: str) -> Database:
    """A sample or an upload of ``owner``, opened once while its file stays the same; raises what ``Database.open``
    raises, and ``BadInput`` for a database that this owner may not see."""
    path = catalogue.find(id, owner).path
    changed = path.stat().st_mtime_ns if path.exists() else 0
    return _opened(path, changed, id)


_store_lock = threading.Lock()


@lru_cache(maxsize=16)
def _store(uri: str, encoder: Any, stream: str) -> MemoryStore:
    return MemoryStore.open(uri, encoder, stream)


def memory_of(loading: Loading, stream: str = catalogue.SHARED) -> MemoryStore:
    """One stream of the memory for the encoder that is loaded, opened once; ``MemoryUnavailable`` before."""
    encoder = loading.encoder
    if encoder is None:
        raise MemoryUnavailable("The memory opens together with the model, which is not loaded yet.")
    with _store_lock:
        return _store(settings().memory_uri, cast(Hashable, encoder), stream)


def forget_opened() -> None:
    """Close the databases that are kept open: one of them has been removed."""
    _opened.cache_clear()
    looking.forget()


def _memory_for(request: live.Request, loading: Loading) -> MemoryStore:
    return memory_of(loading, catalogue.stream(request.database.id, request.owner))


def sample(text: str, database_id: str, owner: str) -> Question | None:
    """The sample question, or the owner's own, with exactly this text, gold inside; None for a typed one."""
    wanted = text.strip()
    return next((question for question in catalogue.questions(database_id, owner) if question.text == wanted), None)


def verifier(judge: Judge, expectation: Expectation) -> Verifier:
    """The verifier of a choice; ``BadInput`` with a sentence where an assertion cannot be read."""
    if judge is Judge.SAMPLE:
        return SpiderVerifier(official=False)
    if judge is Judge.PERSON:
        return PersonVerifier()
    if judge is Judge.NOBODY:
        return ExecutionOnlyVerifier()
    if expectation.kind is Expected.COUNT:
        return AssertionVerifier(row_count=expectation.count)
    if expectation.kind is Expected.VALUE:
        if not expectation.value.strip():
            raise BadInput("Type the value that the result should have, or let someone else judge.")
        return AssertionVerifier(value=_value(expectation.value))
    if expectation.kind is Expected.ROWS:
        return AssertionVerifier(rows=_rows(expectation.rows))
    return AssertionVerifier(condition=expectation.condition)


def _rows(text: str) -> list[tuple[Any, ...]]:
    """Expected rows: a JSON array of arrays, or one row a line with commas between the values."""
    if text.lstrip().startswith("["):
        try:
            parsed = json.loads(text)
            return [tuple(row) for row in parsed]
        except (ValueError, TypeError):
            raise BadInput("The expected rows begin like JSON but are no list of lists.") from None
    rows = [tuple(_value(part) for part in row) for row in csv.reader(text.splitlines()) if row]
    if not rows:
        raise BadInput("Type the expected rows, one a line, with commas between the values.")
    return rows


def _value(text: str) -> Any:
    """A value as SQLite would type it: integer, real, NULL, else text."""
    text = text.strip()
    if text.upper() == "NULL":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class Draft:
    """What stands in the inputs."""

    text: str
    evidence: str
    database_id: str
    strategy: Strategy
    budget: int
    judge: Judge
    expectation: Expectation

    def request(self, owner: str) -> live.Request:
        """The checked request; ``BadInput`` and ``DatabaseUnreadable`` carry the sentence to show."""
        database = open_database(self.database_id, owner)
        live.check_database(database)
        question = live.make_question(self.text, self.database_id, self.evidence)
        known = sample(self.text, self.database_id, owner) if self.judge is Judge.SAMPLE else None
        if known is not None and known.evidence.strip() != question.evidence:
            known = dataclasses.replace(known, evidence=question.evidence)
        if self.judge is Judge.SAMPLE and known is None:
            raise BadInput("Only a sample question has a sample answer. Let someone else judge this one.")
        judging = verifier(self.judge, self.expectation)
        return live.Request(known or question, database, self.strategy, judging, self.budget, owner)


@dataclass(frozen=True)
class Shown:
    """The episode on the page: its events, the job while this process still has it, and what was asked. ``mine`` is
    False for a finished episode of someone else, whose address was passed on."""

    events: Sequence[Event]
    job: Job | None = None
    mine: bool = True

    @property
    def request(self) -> live.Request | None:
        """What was asked, where the job is still known."""
        return self.job.context if self.job is not None else None


def begin(request: live.Request, loading: Loading) -> Job:
    """Ask: a job that waits for the model if it must, then runs the episode."""
    return _start(request, loading, lambda model, store, cancel: live.ask(request, model, store, cancel=cancel))


def begin_undo(
    job: Job | None, events: Sequence[Event], iteration: int, request: live.Request, loading: Loading
) -> Job:
    """Take back the person's answer on one attempt and go on from the opposite one; a running job is stopped."""
    if job is not None and not job.state.ended:
        job.cancel()
        if not job.wait(5.0):
            raise BadInput("The running episode has not stopped yet. Try again in a moment.")
    kept = tuple(events)
    answer = "no" if _outcome(kept, iteration) is Outcome.CORRECT else "yes"
    again = dataclasses.replace(request, verifier=PersonVerifier())
    return _start(
        again,
        loading,
        lambda model, store, cancel: live.undo(kept, iteration, answer, again, model, store, cancel=cancel),
    )


def remember(
    shown: Shown, request: live.Request, loading: Loading, edited_sql: str, execution: Execution
) -> MemoryEntry:
    """Write the person's own correction; an episode that waits for an answer is over with it."""
    entry = live.remember_correction(
        tuple(shown.events), edited_sql, execution, _memory_for(request, loading), request.database
    )
    if shown.job is not None and isinstance(request.verifier, PersonVerifier):
        request.verifier.answer("stop")
    return entry


def save_again(request: live.Request, loading: Loading, failed: Failed) -> MemoryEntry:
    """Write the entry that could not be written when the episode ended."""
    return live.saved_again(failed, _memory_for(request, loading))


def _outcome(events: Sequence[Event], iteration: int) -> Outcome | None:
    return next((e.outcome for e in events if isinstance(e, Judged) and e.iteration == iteration), None)


def _start(
    request: live.Request, loading: Loading, run: Callable[[Any, MemoryStore, threading.Event], Iterator[Event]]
) -> Job:
    def source(cancel: threading.Event) -> Iterator[Event]:
        while loading.state not in (State.READY, State.FAILED):
            if cancel.wait(_LOOK_EVERY_S):
                yield Cancelled()
                return
        if loading.model is None:
            raise ModelUnavailable(loading.error or "The model could not be loaded.")
        yield from run(loading.model, _memory_for(request, loading), cancel)

    return jobs.start(request.owner, source, label=request.question.text, context=request)


def find(owner: str, job_id: str | None, episode_id: str | None) -> Shown | None:
    """The episode to show: the session's job, the one of the URL, live or from disk, or the one that still runs.

    ``BadInput`` when the URL names an episode that is not there or that only its owner may see.
    """
    job = jobs.get(job_id, owner) if job_id else None
    latest = jobs.latest(owner)
    if job is None and latest is not None and (not latest.state.ended or _id(latest.events) == episode_id):
        job = latest
    if job is not None and isinstance(job.context, live.Request) and catalogue.known(job.context.database.id, owner):
        return Shown(job.events, job)
    return finished(episode_id, owner) if episode_id else None


def finished(episode_id: str, owner: str) -> Shown:
    """A finished episode from disk: one's own, or one on a sample database whose address someone has passed on."""
    bundle = live.recording(episode_id, owner)
    if isinstance(bundle.events[0], EpisodeStarted):
        catalogue.find(bundle.header.database_id, owner)  # a database that is gone: its sentence
    return Shown(bundle.events, mine=live.owner_key(owner) == bundle.header.owner_key)


def _id(events: Sequence[Event]) -> str | None:
    first = events[0] if events else None
    return first.episode_id if isinstance(first, EpisodeStarted) else None


def rebuilt(started: EpisodeStarted, owner: str) -> live.Request:
    """The request of a recorded episode, judged by the person from now on."""
    return live.Request(
        started.question,
        open_database(started.question.database_id, owner),
        dataclasses.replace(STRATEGIES[started.strategy], scope=Scope(started.scope)),
        PersonVerifier(),
        started.budget,
        owner,
        started.seed,
    )


def wait_until_drawn(job: Job, seconds: float = 0.3) -> None:
    """Give a job that ends at once the time to do so, so that its end is in the first drawing."""
    deadline = time.monotonic() + seconds
    while not job.events and not job.state.ended and time.monotonic() < deadline:
        job.wait(0.02)
