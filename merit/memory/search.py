"""How memory answers: the legal view, its pools by polarity and type, each ranked, the best of each chosen (spec §4).

What this module does not know: how two candidates compare (``ranking``), and where entries are kept (``store``).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from merit.episode import FailureType, Polarity
from merit.memory.entry import EntryView
from merit.memory.legality import View, entry_view, legal, merge
from merit.memory.ranking import Asked, Ranking, Weights
from merit.memory.retrieval import SHOWN, Candidate, Candidates, Pool, Retrieval, RetrievalQuery
from merit.memory.rows import key
from merit.memory.texts import tokenise
from merit.strategy import Causality, Scope, Selection, Strategy, TypeFilter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from merit.memory.index import Index, Rows


def retrieve(index: Index, query: RetrievalQuery, strategy: Strategy, vector: NDArray[np.float32]) -> Retrieval:
    """The legal entries for a query, ranked as the strategy says (spec §4). ``vector`` is the encoder's float32
    (d,) for ``query.text``. A strategy without memory gets nothing."""
    if not strategy.uses_memory:
        return Retrieval()
    view = view_of(index, query, strategy)
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


def view_of(index: Index, query: RetrievalQuery, strategy: Strategy) -> View:
    """The entries that are legal for a query under a strategy, merged from their legal observations alone."""
    own = [key(query.database_id)]
    mask = legal(
        index,
        before=query.position if strategy.causal is Causality.CAUSAL else None,
        exclude_question=None if strategy.own_question else key(query.question_id),
        databases=own if strategy.scope is Scope.SAME else None,
        other_databases=own if strategy.scope is Scope.OTHER else None,
    )
    return merge(index, mask)


def narrows(strategy: Strategy, failure_type: FailureType) -> bool:
    """Whether a strategy narrows its pools to a predicted failure type (where enough entries have it)."""
    reliable = strategy.type_filter is TypeFilter.RELIABILITY
    return strategy.type_filter is TypeFilter.HARD or (reliable and failure_type in strategy.hard_types)


class _Search:
    """One query against the pools of one view."""

    def __init__(self, index: Index, query: RetrievalQuery, strategy: Strategy, vector: NDArray[np.float32]) -> None:
        self.index, self.query, self.strategy = index, query, strategy
        self.asked = Asked(index, tokenise(query.text), vector)
        self.type_code = index.type_codes[query.failure_type]
        self.hard = narrows(strategy, query.failure_type)
        reliable = strategy.type_filter is TypeFilter.RELIABILITY
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
