"""The hybrid ranking of one pool, exact: BM25, dense, min–max, weights, ties (spec §4, paper Eq. 5–8).

BM25 statistics are those of exactly the candidates. Only the posting lists of the query's tokens are touched,
nothing grows with the vocabulary. Dense scores are float64 sums over float32 vectors. In a big pool a float32
product finds who can be among the best within its proven error bound, and only those are computed exactly, so the
answer is the same as if all had been; ``everything`` computes all.

What this module does not know: which observations are legal, and polarity.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from merit.memory.retrieval import Candidate

if TYPE_CHECKING:
    from merit.memory.columns import Postings
    from merit.memory.index import Index, Rows

K1, B = 1.5, 0.75
SMALL = 512
"""Pools up to this size are computed exactly at once."""

Floats = NDArray[np.float64]


class Words(Protocol):
    """What BM25 knows of its texts: how many there are, how many tokens each has, and where each token stands."""

    @property
    def size(self) -> int: ...
    @property
    def length(self) -> NDArray[Any]: ...
    @property
    def postings(self) -> Postings: ...


def bm25(index: Words, rows: Rows, tokens: list[str]) -> Floats:
    """BM25 of each row for the query tokens, with statistics over ``rows`` alone (k1 = 1.5, b = 0.75,
    IDF ``ln(1 + (N − df + 0.5)/(df + 0.5))``, query tokens counted with repetition)."""
    scores = np.zeros(len(rows), np.float64)
    if not len(rows):
        return scores
    lengths = index.length[rows].astype(np.float64)
    mean = float(lengths.sum()) / len(rows)
    damping = K1 * (1 - B + B * lengths / mean) if mean else np.full(len(rows), K1)
    where = rows.astype(np.intp)  # once, not once a token
    place: Rows | None = None
    steady: Counter[int] = Counter()
    for token, times in Counter(tokens).items():
        column = index.postings.common(token, index.size)
        if column is not None:
            counts = column.take(where)
            fewest = int(counts.min())
            if fewest and fewest == int(counts.max()):  # the same in every text: words of the form, not of the case
                steady[fewest] += times
                continue
            holders = int(np.count_nonzero(counts))
            if holders:
                scores += _weighed(counts.astype(np.float64), damping, times, holders, len(rows))
            continue
        if place is None:
            place = np.full(index.size, -1, np.int32)
            place[rows] = np.arange(len(rows), dtype=np.int32)
        found, counts = index.postings.of(token)
        at = place[found]
        inside = at >= 0
        at, often = at[inside], counts[inside].astype(np.float64)
        if len(at):
            scores[at] += _weighed(often, damping[at], times, len(at), len(rows))
    for count, times in steady.items():
        scores += _weighed(np.full(len(rows), float(count)), damping, times, len(rows), len(rows))
    return scores


def _weighed(often: Floats, damping: Floats, times: int, holders: int, size: int) -> Floats:
    """``times · IDF · tf·(k1 + 1)/(tf + damping)``, in the memory of ``often``."""
    idf = math.log(1 + (size - holders + 0.5) / (holders + 0.5))
    often /= often + damping
    often *= times * idf * (K1 + 1)
    return often


def min_max(scores: Floats, low: float, high: float, flat_pool_score: float) -> Floats:
    """``(s − low)/(high − low)``; a flat pool gets 0, or ``flat_pool_score`` unless the flat value itself is 0."""
    if high > low:
        return (scores - low) / (high - low)
    return np.full(len(scores), flat_pool_score if high != 0 else 0.0)


@dataclass(frozen=True)
class Weights:
    """``final = dense·d + bm25·b + bonus·[type equal]``, where the two weights are first made to add up to 1.
    A channel of weight 0 is switched off: all its scores are 0. ``flat_pool_score``: see :func:`min_max`."""

    dense: float = 0.75
    bm25: float = 0.25
    flat_pool_score: float = 0.0
    bonus: float = 0.0


class Asked:
    """What is asked, for all pools of one retrieval: the query's tokens and its vector (float32, d)."""

    def __init__(self, index: Index, tokens: list[str], vector: NDArray[np.float32]) -> None:
        self.index, self.tokens, self.vector = index, tokens, vector

    @cached_property
    def rough(self) -> tuple[NDArray[np.float32], float]:
        """Dense scores of all rows of the index within an error; computed once for all pools."""
        return self.index.vectors.approximate(self.vector)


@dataclass(frozen=True)
class Ranking:
    """One pool for one query: ``rows`` of the index; ``same_type[i]``: row i has the query's failure type.
    Answers are pairs of row and scores, best first."""

    asked: Asked
    rows: Rows
    same_type: NDArray[np.bool_]
    weights: Weights

    def best(self, k: int) -> list[tuple[int, Candidate]]:
        """The best ``k`` rows: what ``everything()[:k]`` would be, without computing everything."""
        if len(self.rows) <= max(SMALL, k) or not self.weights.dense:
            return self.everything()[:k]
        words = self._words()
        everywhere, error = self.asked.rough
        rough = everywhere[self.rows].astype(np.float64)
        low = float(self._dense(np.flatnonzero(rough <= rough.min() + 2 * error)).min())
        high = float(self._dense(np.flatnonzero(rough >= rough.max() - 2 * error)).max())
        span = high - low if high > low else math.inf
        final = self._final((rough - low) / span, words[1], self.same_type)
        doubt = self.weights.dense * error / span + 1e-9  # more than the rounding of the comparison
        bar = np.partition(final, len(final) - k)[len(final) - k]
        chosen = np.flatnonzero(final >= bar - 2 * doubt)
        return self._ordered(chosen, self._dense(chosen), low, high, *words)[:k]

    def everything(self) -> list[tuple[int, Candidate]]:
        """All rows."""
        if not len(self.rows):
            return []
        all_of_them = np.arange(len(self.rows))
        dense = self._dense(all_of_them)
        return self._ordered(all_of_them, dense, float(dense.min()), float(dense.max()), *self._words())

    def _dense(self, chosen: NDArray[np.intp]) -> Floats:
        if not self.weights.dense:
            return np.zeros(len(chosen))
        return self.asked.index.vectors.exact(self.rows[chosen], self.asked.vector)

    def _words(self) -> tuple[Floats, Floats]:
        if not self.weights.bm25:
            return np.zeros(len(self.rows)), np.zeros(len(self.rows))
        scores = bm25(self.asked.index, self.rows, self.asked.tokens)
        return scores, min_max(scores, float(scores.min()), float(scores.max()), self.weights.flat_pool_score)

    def _final(self, dense: Floats, words: Floats, same_type: NDArray[np.bool_]) -> Floats:
        total = self.weights.dense + self.weights.bm25
        hybrid = self.weights.dense / total * dense + self.weights.bm25 / total * words
        return hybrid + self.weights.bonus * same_type if self.weights.bonus else hybrid

    def _ordered(
        self, chosen: NDArray[np.intp], dense_raw: Floats, low: float, high: float, words_raw: Floats, words: Floats
    ) -> list[tuple[int, Candidate]]:
        rows, same_type = self.rows[chosen], self.same_type[chosen]
        dense = min_max(dense_raw, low, high, self.weights.flat_pool_score)
        if not self.weights.dense:
            dense = np.zeros(len(chosen))
        final = self._final(dense, words[chosen], same_type)
        ids = self.asked.index.ids(rows)
        keys = (ids, ~same_type, *(-rounded(scores) for scores in (words[chosen], dense, final)))
        order = np.lexsort(keys)
        values = (scores[order].tolist() for scores in (dense, words[chosen], final, dense_raw, words_raw[chosen]))
        columns = zip(rows[order].tolist(), ids[order].tolist(), same_type[order].tolist(), *values, strict=True)
        return [
            (row, Candidate(identity.decode(), d, b, match, f, d_raw, b_raw))
            for row, identity, match, d, b, f, d_raw, b_raw in columns
        ]


def rounded(scores: Floats) -> Floats:
    """Scores as they are compared: in whole units of the twelfth decimal."""
    return np.rint(scores * 1e12)
