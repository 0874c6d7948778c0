"""What moved between two rankings of memory: who came, who went, who rose and fell, and how ties were broken.

What this module does not know: why the two differ (other weights, another strategy, something forgotten).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from merit.memory.retrieval import SHOWN, Candidate, Retrieval


class Change(StrEnum):
    """What happened to one entry."""

    ENTERED = "taken now"
    LEFT = "no longer taken"
    ROSE = "higher"
    FELL = "lower"
    STAYED = "as before"


@dataclass(frozen=True)
class Move:
    """One entry in both rankings: its places (from 1; None where it is not among the first ``SHOWN`` of a pool, which
    is all that a trace keeps) and whether it was taken."""

    entry_id: str
    before: int | None
    after: int | None
    taken_before: bool
    taken_after: bool

    @property
    def change(self) -> Change:
        """What is worth telling first."""
        if self.taken_before != self.taken_after:
            return Change.ENTERED if self.taken_after else Change.LEFT
        if self.before == self.after:
            return Change.STAYED
        higher = self.before is None or (self.after is not None and self.after < self.before)
        return Change.ROSE if higher else Change.FELL


def moves(before: Retrieval, after: Retrieval) -> dict[str, Move]:
    """Every entry among the first ``SHOWN`` of a pool of either ranking, those of ``after`` first, in its order."""
    then, now = dict(_places(before)), dict(_places(after))
    taken_then, taken_now = _taken(before), _taken(after)
    return {
        name: Move(name, then.get(name), now.get(name), name in taken_then, name in taken_now) for name in [*now, *then]
    }


def same(before: Retrieval, after: Retrieval) -> bool:
    """Whether two rankings agree in everything that a trace keeps, scores included to the ninth decimal."""
    mine, other = (
        {
            name: (pool.legal, pool.typed, pool.fallback, pool.count, [_facts(c) for c in pool.candidates[:SHOWN]])
            for name, pool in retrieval.pools.items()
        }
        for retrieval in (before, after)
    )
    return mine == other and _taken(before) == _taken(after)


class Decision(StrEnum):
    """What put one candidate before another, in the order in which it is asked (spec §4)."""

    FINAL = "score"
    DENSE = "meaning"
    BM25 = "words"
    TYPE = "type"
    ID = "id"


def decided_by(better: Candidate, worse: Candidate) -> Decision:
    """By what the better of two candidates came first; scores count as equal where 12 decimals are."""
    for decision, mine, other in (
        (Decision.FINAL, better.final, worse.final),
        (Decision.DENSE, better.dense, worse.dense),
        (Decision.BM25, better.bm25, worse.bm25),
    ):
        if round(mine * 1e12) != round(other * 1e12):
            return decision
    return Decision.TYPE if better.type_match != worse.type_match else Decision.ID


def _places(retrieval: Retrieval) -> Iterator[tuple[str, int]]:
    for pool in retrieval.pools.values():
        yield from ((candidate.entry_id, place) for place, candidate in enumerate(pool.candidates[:SHOWN], start=1))


def _taken(retrieval: Retrieval) -> frozenset[str]:
    return frozenset(entry.id for entry in (*retrieval.positive, *retrieval.negative))


def _facts(candidate: Candidate) -> tuple[str, bool, float, float, float]:
    scores = (round(value, 9) for value in (candidate.dense, candidate.bm25, candidate.final))
    dense, bm25, final = scores
    return candidate.entry_id, candidate.type_match, dense, bm25, final
