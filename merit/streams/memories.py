"""The memory of one stream as its episodes see it: empty at the start, growing or frozen, with a clock on every use.

What this module does not know: how a stream is run, and what an entry is worth.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from merit.diagnosis import FAILURES, diagnose
from merit.episode import Polarity, Question
from merit.errors import BadInput
from merit.memory.entry import EntryView, MemoryEntry
from merit.memory.retrieval import Retrieval, RetrievalQuery
from merit.memory.store import MemoryStore
from merit.strategy import Strategy
from merit.streams.trajectory import Trajectory

if TYPE_CHECKING:
    from merit.models.language import Encoder

INITIAL = "initial SQL"
"""The before of a transductive entry's transition (spec §4)."""


class TimedEncoder:
    """An encoder that is asked one text at a time and counts the seconds; ``seconds`` only grows. Safe for threads.

    One at a time, so that a vector never depends on its neighbours in a batch, whatever the encoder.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.id = encoder.id
        self.dimension = encoder.dimension
        self._encoder = encoder
        self._here = threading.local()

    @property
    def seconds(self) -> float:
        """Seconds spent by this thread."""
        return float(getattr(self._here, "seconds", 0.0))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 (n, d)."""
        started = time.monotonic()
        vectors = [np.asarray(self._encoder.encode([text]), np.float32) for text in texts]
        self._here.seconds = self.seconds + time.monotonic() - started
        return np.concatenate(vectors) if vectors else np.empty((0, self.dimension), np.float32)


class StreamMemory:
    """What ``run_episode`` takes for its store. ``left`` is what its episode left, ``failure`` what went wrong.

    ``frozen``: nothing is written during the stream (strategies that look ahead); see :func:`commit`.
    """

    def __init__(self, store: MemoryStore, *, frozen: bool = False) -> None:
        self.encoder = store.encoder
        self.left: MemoryEntry | None = None
        self.failure: Exception | None = None
        self.retrieval_s = self.indexing_s = self.embedding_s = 0.0
        self._store = store
        self._frozen = frozen

    def retrieve(self, query: RetrievalQuery, strategy: Strategy) -> Retrieval:
        """As a store's."""
        started, embedded = time.monotonic(), self._embedded()
        try:
            found = self._store.retrieve(query, strategy)
        except Exception as error:
            self.failure = error
            raise
        spent = self._embedded() - embedded
        self.embedding_s += spent
        self.retrieval_s += time.monotonic() - started - spent
        return found

    def finalise(self, entry: MemoryEntry) -> EntryView:
        """As a store's; where the memory is frozen the entry alone, with no evidence."""
        self.left = entry
        if self._frozen:
            return EntryView.from_json(entry.to_json())
        started, embedded = time.monotonic(), self._embedded()
        try:
            view = self._store.finalise(entry)
        except Exception as error:
            self.failure = error
            raise
        spent = self._embedded() - embedded
        self.embedding_s += spent
        self.indexing_s += time.monotonic() - started - spent
        return view

    def _embedded(self) -> float:
        return self.encoder.seconds if isinstance(self.encoder, TimedEncoder) else 0.0


def begin(store: MemoryStore, finished: Iterable[Trajectory], mine: Iterable[str]) -> None:
    """Make a store hold exactly what the finished part of a stream left; ``BadInput`` if it held anything else.

    ``mine``: the episode ids of the stream. Writing is idempotent, so nothing is doubled after a kill.
    """
    known = set(mine)
    seen = [observation for view in store.entries() for observation in view.history]
    foreign = sum(observation.episode_id not in known for observation in seen)
    following = max((observation.position for observation in seen), default=-1) + 1
    if foreign or store.upcoming() != following:
        held = f"{foreign} other observations" if foreign else "positions that were given to others"
        raise BadInput(
            f"A stream begins with an empty memory, and the stream {store.stream!r} at {store.uri} holds {held}. "
            "Choose another stream or place."
        )
    commit(store, finished)


def commit(store: MemoryStore, trajectories: Iterable[Trajectory]) -> None:
    """Write what these trajectories left, in one step."""
    if entries := [row.entry for row in trajectories if row.entry is not None]:
        store.finalise_many(entries)


def initial_failures(
    first_pass: Iterable[Trajectory],
    questions: Sequence[Question],
    schema_of: Callable[[str], str],
    episode_of: Callable[[str], str],
) -> list[MemoryEntry]:
    """What the transductive control knows beforehand (spec §4): every question that failed at first leaves one negative
    entry ``initial SQL => {sql}``. ``schema_of`` takes a database id, ``episode_of`` a question id."""
    by_id = {question.id: question for question in questions}
    entries = []
    for row in first_pass:
        first = row.attempts[0] if row.attempts else None
        if first is None or first.outcome not in FAILURES:
            continue
        entries.append(
            MemoryEntry(
                polarity=Polarity.NEGATIVE,
                failure_type=diagnose(first.outcome, first.error).failure_type,
                question=by_id[row.question_id].text,
                schema=schema_of(row.database_id),
                database_id=row.database_id,
                failed_sql=INITIAL,
                new_sql=first.sql,
                status=first.outcome,
                db_error=first.error,
                outcome=first.outcome,
                question_id=row.question_id,
                episode_id=episode_of(row.question_id),
                position=row.position,
                iteration=0,
            )
        )
    return entries
