"""The memory in numbers: entries by failure type and by database, and what each tagged state holds.

What this module does not know: what is on the disk (``log``), and who reads the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from merit.episode import FailureType
from merit.memory.facts import Counts
from merit.memory.legality import View, legal, merge

if TYPE_CHECKING:
    from merit.memory.index import Index, Mask


@dataclass(frozen=True)
class Share:
    """Merged entries of one failure type or one database, by polarity, and the observations they come from.
    Where an entry was observed on several databases, it counts for the one that gives it its text."""

    name: str
    positive: int
    negative: int
    observations: int


@dataclass(frozen=True)
class Overview:
    """All that lives now; types in their fixed order, databases with the most entries first; empty ones left out."""

    types: tuple[Share, ...]
    databases: tuple[Share, ...]


@dataclass(frozen=True)
class State:
    """A tagged state: what it holds, the position of the next question when it was tagged, and what going back to it
    would change: observations that would be seen again, and that would no longer be."""

    name: str
    position: int
    counts: Counts
    comes: int
    goes: int


def overview(index: Index) -> Overview:
    """Count all entries that live now."""
    view = merge(index, legal(index))
    codes = {code: name for name, code in index.type_codes.items()}
    types = {share.name: share for share in _shares(view, index.failure_type.astype(np.int64), codes.__getitem__)}
    databases = _shares(view, index.database, lambda code: _database(index, view, code))
    return Overview(
        tuple(types[kind] for kind in FailureType if kind in types),
        tuple(sorted(databases, key=lambda share: (-share.positive - share.negative, share.name))),
    )


def states(index: Index) -> tuple[State, ...]:
    """The tagged states, oldest first."""
    found = []
    for name, tag in index.tags.items():
        then: Mask = index.alive_at(tag)
        view = merge(index, then)
        positive = int(view.positive.sum())
        counts = Counts(positive, len(view.rows) - positive, int(then.sum()))
        found.append(
            State(name, tag.position, counts, int((then & ~index.alive).sum()), int((index.alive & ~then).sum()))
        )
    return tuple(found)


def useful(index: Index) -> Mask:
    """Which observations live, or can live again by a tag; all others are of no use to anybody."""
    mask = index.alive.copy()
    for tag in index.tags.values():
        mask |= index.alive_at(tag)
    return mask


def _shares(view: View, codes: NDArray[np.int64], name_of: Callable[[int], str]) -> list[Share]:
    spoken, seen = codes[view.rows], codes[view.legal]
    return [
        Share(
            name_of(code),
            int((view.positive & (spoken == code)).sum()),
            int((~view.positive & (spoken == code)).sum()),
            int((seen == code).sum()),
        )
        for code in np.unique(seen).tolist()
    ]


def _database(index: Index, view: View, code: int) -> str:
    return index.entry(int(np.flatnonzero(view.legal & (index.database == code))[0])).database_id
