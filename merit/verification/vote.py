"""Self-vote: samples that return the same result stand together, and the largest group is elected (paper §3.1, T4).

No correctness signal enters: an election proposes, it verifies nothing. Nothing here reads gold.

What this module does not know: where the samples come from, and who may store what is elected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from merit.episode import Execution, Status


@dataclass(frozen=True)
class Election:
    """``winner``: the index of the earliest sample of the elected group, None where nothing executed. ``groups``:
    indices of equal results, the largest first, ties by their earliest sample; what failed is in none."""

    winner: int | None
    groups: tuple[tuple[int, ...], ...]


def elect(results: Sequence[Execution]) -> Election:
    """Elect among the results of samples. Two are equal as sets of rows, as the verdict later is (``bird_equal``);
    a result that was cut is equal to one cut in the same way only."""
    groups: dict[object, list[int]] = {}
    for index, result in enumerate(results):
        if result.status is Status.EXECUTED:
            groups.setdefault((frozenset(result.rows), result.truncated), []).append(index)
    ordered = sorted((tuple(group) for group in groups.values()), key=lambda group: (-len(group), group[0]))
    return Election(ordered[0][0] if ordered else None, tuple(ordered))
