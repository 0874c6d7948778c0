"""A memory as it would be had one thing been otherwise: nothing recalled, one entry never seen, one entry forged.

A view for counterfactual questions (paper §5: influence of single entries). It reads the memory that is there, with
the same rules of legality and ranking, and writes nothing into it: what an episode would leave is only said.

What this module does not know: why the change is asked for, and episodes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from merit.episode import Polarity
from merit.memory.entry import EntryView, MemoryEntry, Observation
from merit.memory.facts import Observed
from merit.memory.index import Index
from merit.memory.log import columns
from merit.memory.retrieval import Retrieval, RetrievalQuery
from merit.memory.rows import key, observation_rows
from merit.memory.search import retrieve
from merit.memory.store import MemoryStore
from merit.memory.texts import dense_text
from merit.strategy import Strategy

T = TypeVar("T")


@dataclass(frozen=True)
class Change:
    """What is otherwise. ``off``: nothing is ever recalled. ``without``: the id of an entry that nobody has observed.
    ``forged``: an entry that is there although no episode left it; with ``without`` it stands in that one's place."""

    off: bool = False
    without: str = ""
    forged: MemoryEntry | None = None


AS_IT_IS = Change()


class ChangedMemory:
    """A stream under one :class:`Change`, for ``run_episode`` in the place of a store."""

    def __init__(self, store: MemoryStore, change: Change = AS_IT_IS) -> None:
        self.encoder = store.encoder
        self.stream = store.stream
        self._store = store
        self._change = change
        self._copy = None if change.forged is None else self._with(change.forged)

    def retrieve(self, query: RetrievalQuery, strategy: Strategy) -> Retrieval:
        """As the store's, under the change."""
        if self._change.off or not strategy.uses_memory:
            return Retrieval()
        if self._change == AS_IT_IS:
            return self._store.retrieve(query, strategy)
        vector = np.asarray(self.encoder.encode([query.text]), np.float32)[0]
        return self._look(lambda index: retrieve(index, query, strategy, vector))

    def finalise(self, entry: MemoryEntry) -> EntryView:
        """What the entry would be on its own; nothing is written."""
        visible_from = max(entry.position + 1, self._store.upcoming())
        names = {item.name for item in fields(Observation)} - {"visible_from"}
        seen = Observation(**{name: getattr(entry, name) for name in names}, visible_from=visible_from)
        worked = entry.polarity is Polarity.POSITIVE
        facts = {item.name: getattr(entry, item.name) for item in fields(MemoryEntry)}
        return EntryView(**facts, successes=int(worked), failures=int(not worked), history=(seen,))

    def _look(self, at: Callable[[Index], T]) -> T:
        if self._copy is not None:
            return at(self._copy)
        return self._store.look(lambda index: at(index.without(self._change.without)))

    def _with(self, forged: MemoryEntry) -> Index:
        """A copy of the index in which the forged entry has been observed, by an episode that never was."""
        copy = self._store.look(lambda index: index.without(self._change.without, apart=True))
        # Seen from the position after its own on; the counter would hide it from every question that was asked.
        copy.counter = 0
        entry = replace(forged, episode_id=uuid.uuid4().hex, encoder_id=self.encoder.id)
        vectors = np.asarray(self.encoder.encode([dense_text(entry)]), np.float32)
        rows = observation_rows(columns(copy.dimension), key(self.stream), [Observed(entry, 0)], vectors)
        rows = rows.append_column("_rowid", pa.array([copy.next_sequence], pa.uint64()))
        copy.apply(rows, copy.next_sequence + 1)
        return copy
