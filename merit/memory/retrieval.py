"""What is asked of memory before a repair, and what it answers: pools, candidates, chosen entries (spec §4).

What this module does not know: where entries are kept (``store``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from merit.episode import FailureType
from merit.memory.entry import EntryView

SHOWN = 50
"""How many candidates of a pool a trace keeps; ``Pool.count`` tells how many there were."""


@dataclass(frozen=True)
class RetrievalQuery:
    """The state of an episode before repair ``iteration`` (1-based). ``position`` is 0-based."""

    question: str
    sql: str
    failure_context: str
    failure_type: FailureType
    question_id: str
    database_id: str
    position: int
    iteration: int = 1

    @property
    def text(self) -> str:
        """The query text of both channels (spec §4)."""
        return f"{self.question} {self.sql} {self.failure_context} {self.failure_type}"


@dataclass(frozen=True)
class Candidate:
    """One ranked entry. ``dense`` and ``bm25`` are min–max values in the pool, ``final`` the rank score;
    ``dense_raw`` is the cosine, ``bm25_raw`` the BM25 score. ``type_match``: the entry has the query's type."""

    entry_id: str
    dense: float
    bm25: float
    type_match: bool
    final: float
    dense_raw: float
    bm25_raw: float


@dataclass(frozen=True)
class Pool:
    """One ranked pool. ``legal`` and ``typed`` are counts, ``fallback`` says that too few were typed,
    ``count`` is the number of candidates, ``candidates`` are best first (all of them when live, at most
    ``SHOWN`` in a trace)."""

    legal: int
    typed: int
    fallback: bool
    count: int
    candidates: Sequence[Candidate] = ()


@dataclass(frozen=True)
class Retrieval:
    """The answer: chosen entries by polarity, best first, and the pools ("positive" and "negative", or "all")."""

    positive: tuple[EntryView, ...] = ()
    negative: tuple[EntryView, ...] = ()
    pools: Mapping[str, Pool] = field(default_factory=dict)

    def capped(self, limit: int = SHOWN) -> Retrieval:
        """The same fact with at most ``limit`` candidates a pool, as tuples: the form a trace keeps."""
        pools = {name: replace(pool, candidates=tuple(pool.candidates[:limit])) for name, pool in self.pools.items()}
        return replace(self, pools=pools)
