"""What is asked of memory before a repair, and what it answers: pools, candidates, chosen entries (spec §4). Frozen.

What this module does not know: how the answer is found (``search``), and where entries are kept (``store``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

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


class Candidates(Sequence[Candidate]):
    """All candidates of a big pool, best first. The first ``SHOWN`` are at hand; the rest is computed when asked
    for. Equal to the tuple of the same candidates, and pickled as that tuple."""

    def __init__(self, head: Sequence[Candidate], count: int, everything: Callable[[], Sequence[Candidate]]) -> None:
        self._head = tuple(head)
        self._count = count
        self._everything = everything
        self._all: tuple[Candidate, ...] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, place: int | slice) -> Candidate | tuple[Candidate, ...]:
        wanted = range(self._count)[place]
        last = wanted if isinstance(wanted, int) else max(wanted, default=0)
        return (self._head if last < len(self._head) else self._rest())[place]

    def __iter__(self) -> Iterator[Candidate]:
        yield from self._head
        if self._count > len(self._head):
            yield from self._rest()[len(self._head) :]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((self._count, self._head))

    def __repr__(self) -> str:
        return f"Candidates({self._count}, best {self._head[:1]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    def _rest(self) -> tuple[Candidate, ...]:
        if self._all is None:
            self._all = tuple(self._everything())
        return self._all
