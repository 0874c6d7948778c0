"""Background jobs: a source of events runs in its own thread and is found again by owner or id.

A page draws what a job has collected so far and never waits for it; a reload, a lost connection or a closed
tab does not end it. The registry is one per process. Owners who were not seen for a while expire: what they
left running is cancelled and what they left finished is forgotten (bundles on disk stay).

What this module does not know: what an episode is made of, who judges, and streamlit. It only counts on a
source that notices its cancel event and ends with one of ``merit.events.LAST_EVENTS``.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from merit.errors import BadInput, MeritError
from merit.events import Cancelled, Failed, JudgementRequested, TokenStreamed

OWNER_EXPIRES_AFTER_S = 1800.0
"""Seconds after which an owner who asked for none of their jobs counts as gone."""
MAX_RUNNING_PER_OWNER = 1
MAX_RUNNING = 32
MAX_KEPT_PER_OWNER = 20
_SWEEP_EVERY_S = 30.0

Source = Callable[[threading.Event], Iterator[Any]]
"""Takes the cancel event, gives the events: those of an episode, or of whatever else runs in steps."""


class JobState(StrEnum):
    """Where a job stands. The last three are ends; cancelled is an end of its own, not an error."""

    RUNNING = "RUNNING"
    WAITING_FOR_PERSON = "WAITING_FOR_PERSON"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self in (JobState.FINISHED, JobState.FAILED, JobState.CANCELLED)


@dataclass(eq=False)
class Job:
    """One running or finished source of events.

    ``events`` is append-only: read ``len`` first, then as many. ``context`` is whatever the starter wants to
    find again with the job (a request, a verifier that waits for an answer). Times are seconds since the epoch.
    """

    owner: str
    label: str
    context: Any = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    events: list[Any] = field(default_factory=list)
    created_at: float = field(default_factory=time.time)
    finished_at: float | None = None
    _state: JobState = JobState.RUNNING
    _cancel: threading.Event = field(default_factory=threading.Event, repr=False)
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def state(self) -> JobState:
        """Where the job stands now."""
        return self._state

    @property
    def cancelling(self) -> bool:
        """Whether a stop was asked for (the end follows within a second and one token)."""
        return self._cancel.is_set()

    def place(self, model: object) -> int | None:
        """This job's place in the model's queue: 0 while it is served, k for the k-th waiting, None for no place
        (it generates nothing now, or the model has no queue)."""
        place = getattr(model, "place", None)
        found: int | None = place(self._cancel) if callable(place) else None
        return found

    def cancel(self) -> None:
        """Ask the job to stop; returns at once. On an ended job this does nothing."""
        self._cancel.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until the job has ended; False when ``timeout_s`` seconds passed before."""
        return self._ended.wait(timeout_s)

    def _run(self, source: Source) -> None:
        try:
            for event in source(self._cancel):
                self._append(event)
        except MeritError as error:
            self._append(Failed(str(error)))
        except Exception as error:  # noqa: BLE001 - a job's end must always be visible to the person who waits
            # The text of a foreign exception may quote anything, gold included: only its class is told.
            self._append(Failed(f"The job ended unexpectedly ({type(error).__name__}). Nothing was stored."))
        finally:
            self.finished_at = time.time()
            self._state = self._end()
            self._ended.set()

    def _append(self, event: Any) -> None:
        self.events.append(event)
        if isinstance(event, JudgementRequested):
            self._state = JobState.WAITING_FOR_PERSON
        elif not isinstance(event, TokenStreamed):
            self._state = JobState.RUNNING

    def _end(self) -> JobState:
        last = self.events[-1] if self.events else None
        if isinstance(last, Failed):
            return JobState.FAILED
        if isinstance(last, Cancelled) or (last is None and self._cancel.is_set()):
            return JobState.CANCELLED
        return JobState.FINISHED


class Registry:
    """All jobs of this process, with the time each owner was last seen. Safe for many threads."""

    def __init__(self, expires_after_s: float = OWNER_EXPIRES_AFTER_S, sweep_every_s: float = _SWEEP_EVERY_S) -> None:
        self._expires_after_s = expires_after_s
        self._sweep_every_s = sweep_every_s
        self._jobs: dict[str, Job] = {}
        self._seen: dict[str, float] = {}
        self._lock = threading.RLock()
        self._sweeping = False

    def start(self, owner: str, source: Source, *, label: str = "", context: Any = None) -> Job:
        """Run ``source(cancel)`` in a thread of its own and return its job at once.

        An owner runs one job at a time: a second start is a ``BadInput`` with a sentence, not a silent stop of
        the first, because the first may be minutes of work.
        """
        job = Job(owner=owner, label=label, context=context)
        with self._lock:
            running = [other for other in self._jobs.values() if not other.state.ended]
            if sum(other.owner == owner for other in running) >= MAX_RUNNING_PER_OWNER:
                raise BadInput("Another question of yours is still running. Wait for its end or stop it first.")
            if len(running) >= MAX_RUNNING:
                raise BadInput("This server is answering as many questions as it can. Please try again in a minute.")
            self._seen[owner] = time.monotonic()
            self._jobs[job.id] = job
            self._forget_oldest(owner)
            if not self._sweeping:
                self._sweeping = True
                threading.Thread(target=self._sweep_until_empty, name="merit-jobs-sweep", daemon=True).start()
        threading.Thread(target=job._run, args=(source,), name=f"merit-job-{job.id[:8]}", daemon=True).start()
        return job

    def get(self, job_id: str, owner: str) -> Job | None:
        """The job with this id, if it is this owner's."""
        with self._lock:
            self._touch(owner)
            job = self._jobs.get(job_id)
            return job if job is not None and job.owner == owner else None

    def latest(self, owner: str) -> Job | None:
        """The job that this owner started last: what a reloaded page shows again."""
        with self._lock:
            self._touch(owner)
            return next((job for job in reversed(self._jobs.values()) if job.owner == owner), None)

    def sweep(self) -> None:
        """Cancel what expired owners left running and forget what they left finished."""
        with self._lock:
            now = time.monotonic()
            expired = {owner for owner, seen in self._seen.items() if now - seen > self._expires_after_s}
            for job in list(self._jobs.values()):
                if job.owner not in expired:
                    continue
                if job.state.ended:
                    del self._jobs[job.id]
                else:
                    job.cancel()
            alive = {job.owner for job in self._jobs.values()}
            self._seen = {owner: seen for owner, seen in self._seen.items() if owner in alive}

    def _touch(self, owner: str) -> None:
        if owner in self._seen:
            self._seen[owner] = time.monotonic()

    def _forget_oldest(self, owner: str) -> None:
        mine = [job for job in self._jobs.values() if job.owner == owner]
        for job in mine[: max(0, len(mine) - MAX_KEPT_PER_OWNER)]:
            if job.state.ended:
                del self._jobs[job.id]

    def _sweep_until_empty(self) -> None:
        while True:
            time.sleep(self._sweep_every_s)
            self.sweep()
            with self._lock:
                if not self._jobs:
                    self._sweeping = False
                    return


_REGISTRY = Registry()


def start(owner: str, source: Source, *, label: str = "", context: Any = None) -> Job:
    """Start a job in this process's registry; see :meth:`Registry.start`."""
    return _REGISTRY.start(owner, source, label=label, context=context)


def get(job_id: str, owner: str) -> Job | None:
    """The job with this id if it belongs to ``owner``; see :meth:`Registry.get`."""
    return _REGISTRY.get(job_id, owner)


def latest(owner: str) -> Job | None:
    """The job that ``owner`` started last; see :meth:`Registry.latest`."""
    return _REGISTRY.latest(owner)
