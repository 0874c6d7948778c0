"""What is asked of memory before a repair, and what it answers: pools, candidates, chosen entries (spec §4).

What this module does not know: where entries are kept (``store``).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

from merit.episode import FailureType, Polarity
from merit.memory.entry import EntryView
from merit.strategy import Causality, Scope, Selection, Strategy, TypeFilter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from merit.memory.index import Index, Rows
    from merit.memory.legality import View
    from merit.memory.ranking import Ranking

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


def retrieve(index: Index, query: RetrievalQuery, strategy: Strategy, vector: NDArray[np.float32]) -> Retrieval:
    """The legal entries for a query, ranked as the strategy says (spec §4). ``vector`` is the encoder's float32
    (d,) for ``query.text``. A strategy without memory gets nothing."""
    if not strategy.uses_memory:
        return Retrieval()
    from merit.memory.legality import entry_view

    view = _view(index, query, strategy)
    search = _Search(index, query, strategy, vector)
    if strategy.pooled:
        pool, best = search.pool("all", view.rows, strategy.k_pooled)
        chosen = [entry_view(index, view, row) for row in best]
        return Retrieval(
            positive=tuple(entry for entry in chosen if entry.polarity is Polarity.POSITIVE),
            negative=tuple(entry for entry in chosen if entry.polarity is Polarity.NEGATIVE),
            pools={"all": pool},
        )
    pools: dict[str, Pool] = {}
    entries: dict[str, tuple[EntryView, ...]] = {}
    for name, rows, k in (
        (str(Polarity.POSITIVE), view.rows[view.positive], strategy.k_positive),
        (str(Polarity.NEGATIVE), view.rows[~view.positive], strategy.k_negative),
    ):
        pools[name], best = search.pool(name, rows, k)
        entries[name] = tuple(entry_view(index, view, row) for row in best)
    return Retrieval(entries["positive"], entries["negative"], pools)


def _view(index: Index, query: RetrievalQuery, strategy: Strategy) -> View:
    from merit.memory.legality import legal, merge
    from merit.memory.rows import key

    own = [key(query.database_id)]
    mask = legal(
        index,
        before=query.position if strategy.causal is Causality.CAUSAL else None,
        exclude_question=None if strategy.own_question else key(query.question_id),
        databases=own if strategy.scope is Scope.SAME else None,
        other_databases=own if strategy.scope is Scope.OTHER else None,
    )
    return merge(index, mask)


class _Search:
    """One query against the pools of one view."""

    def __init__(self, index: Index, query: RetrievalQuery, strategy: Strategy, vector: NDArray[np.float32]) -> None:
        from merit.memory.ranking import Asked
        from merit.memory.texts import tokenise

        self.index, self.query, self.strategy = index, query, strategy
        self.asked = Asked(index, tokenise(query.text), vector)
        self.type_code = index.type_codes[query.failure_type]
        reliable = strategy.type_filter is TypeFilter.RELIABILITY
        self.hard = strategy.type_filter is TypeFilter.HARD or (reliable and query.failure_type in strategy.hard_types)
        self.bonus = strategy.type_bonus if reliable and not self.hard else 0.0

    def pool(self, name: str, rows: Rows, k: int) -> tuple[Pool, list[int]]:
        """The ranked pool, and the rows of its best ``k`` entries."""
        same_type = self.index.failure_type[rows] == self.type_code
        legal, typed = len(rows), int(same_type.sum())
        fallback = self.hard and typed < self.strategy.min_typed
        if self.hard and not fallback:
            rows, same_type = rows[same_type], same_type[same_type]
        ranking = self._ranking(rows, same_type)
        if self.strategy.selection is Selection.RANDOM:
            ranked = self._shuffled(ranking, name)
            candidates: Sequence[Candidate] = tuple(candidate for _, candidate in ranked)
        elif len(rows) <= max(SHOWN, k):
            ranked = ranking.everything()
            candidates = tuple(candidate for _, candidate in ranked)
        else:
            ranked = ranking.best(max(SHOWN, k))
            candidates = Candidates(
                [candidate for _, candidate in ranked],
                len(rows),
                lambda: [candidate for _, candidate in ranking.everything()],
            )
        pool = Pool(legal=legal, typed=typed, fallback=fallback, count=len(rows), candidates=candidates)
        return pool, [row for row, _ in ranked[:k]]

    def _ranking(self, rows: Rows, same_type: NDArray[np.bool_]) -> Ranking:
        from merit.memory.ranking import Ranking, Weights

        strategy = self.strategy
        weights = Weights(strategy.dense_weight, strategy.bm25_weight, strategy.flat_pool_score, self.bonus)
        return Ranking(self.asked, rows, same_type, weights)

    def _shuffled(self, ranking: Ranking, polarity: str) -> list[tuple[int, Candidate]]:
        """Sorted by id, then shuffled with the seed of the spec; all scores are 0."""
        ids = [identity.decode() for identity in self.index.ids(ranking.rows).tolist()]
        drawn = sorted(zip(ids, ranking.rows.tolist(), ranking.same_type.tolist(), strict=True))
        recipe = f"{self.strategy.selection_seed}|{self.query.question_id}|{self.query.iteration}|{polarity}"
        digest = hashlib.sha256(recipe.encode("utf-8", "surrogatepass")).digest()
        random.Random(int.from_bytes(digest[:8], "big")).shuffle(drawn)
        return [(row, Candidate(name, 0.0, 0.0, match, 0.0, 0.0, 0.0)) for name, row, match in drawn]
