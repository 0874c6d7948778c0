"""The causal view: filter observations first, then merge what is left (spec §3, §4, §8).

An observation is legal at position t iff ``visible_from <= t``, it comes of another question, and its database is
in scope. Counts, polarity, text and vector of an entry come from its legal observations alone, so no later, own or
foreign evidence can show through. Everything here is vectorised: a view of 100,000 observations costs a millisecond.

What this module does not know: strategies and scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from merit.memory.facts import Observed
from merit.memory.rows import short

if TYPE_CHECKING:
    from merit.memory.entry import EntryView
    from merit.memory.index import Index, Mask, Rows


@dataclass(frozen=True)
class View:
    """Merged entries: ``rows[i]`` is the observation that gives entry i its text and vector, ``positive[i]`` its
    polarity; ``legal`` is the mask over all observations that they come from."""

    rows: Rows
    positive: Mask
    legal: Mask


def legal(
    index: Index,
    *,
    before: int | None = None,
    exclude_question: str | None = None,
    databases: Iterable[str] | None = None,
    other_databases: Iterable[str] | None = None,
) -> Mask:
    """Which observations may be seen at position ``before`` (None: all that live), without those of a question,
    from these databases only, or from all others. Questions and databases are given by ``rows.key``."""
    mask = index.alive.copy()
    if before is not None:
        mask &= index.visible_from <= before
    if exclude_question is not None:
        mask &= index.question != short([exclude_question])
    if databases is not None:
        mask &= np.isin(index.database, short(databases))
    if other_databases is not None:
        mask &= ~np.isin(index.database, short(other_databases))
    return mask


def living(index: Index, entry_id: str) -> list[Observed]:
    """The living observations of an entry, in order of the fold."""
    code = index.entries.get(entry_id)
    rows: list[int] = [] if code is None else np.flatnonzero((index.entry_code == code) & index.alive).tolist()
    return [Observed(index.entry(row), int(index.visible_from[row])) for row in rows]


def merge(index: Index, mask: Mask) -> View:
    """Fold the observations of ``mask`` by entry, in order of position.

    Counts add up; polarity is the majority, and a tie keeps what it was before the last observation, which is
    the opposite of that observation; the text is that of the latest observation of this polarity.
    """
    single = mask.copy()
    repeated = index.repeated()
    single[repeated] = False
    rows = np.flatnonzero(single).astype(np.int32)
    positive = index.positive[rows]
    seen = repeated[mask[repeated]]
    if len(seen):
        codes = index.entry_code[seen]
        starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
        sizes = np.diff(np.concatenate((starts, [len(seen)])))
        won = index.positive[seen]
        successes = np.add.reduceat(won.astype(np.int64), starts)
        tied = successes * 2 == sizes
        polarity = np.where(tied, ~won[starts + sizes - 1], successes * 2 > sizes)
        of_polarity = won == np.repeat(polarity, sizes)
        latest = np.maximum.reduceat(np.where(of_polarity, np.arange(len(seen)), -1), starts)
        rows = np.concatenate((rows, seen[latest]))
        positive = np.concatenate((positive, polarity))
        order = np.argsort(rows)
        rows, positive = rows[order], positive[order]
    return View(rows, positive, mask)


def members(index: Index, view: View, row: int) -> Rows:
    """The legal observations of the entry that ``row`` speaks for, in order of the fold."""
    repeated = index.repeated()
    codes = index.entry_code[repeated]
    code = index.entry_code[row]
    start, end = np.searchsorted(codes, [code, code + 1])
    if start == end:
        return np.array([row], np.int32)
    found: Rows = repeated[start:end]
    return found[view.legal[found]]


def entry_view(index: Index, view: View, row: int) -> EntryView:
    """The merged entry that ``row`` speaks for."""
    return index.view(row, members(index, view, row))


def entry_views(index: Index, view: View) -> list[EntryView]:
    """All merged entries of a view, ordered by first position, then by id."""
    entries = [entry_view(index, view, int(row)) for row in view.rows]
    return sorted(entries, key=lambda entry: (entry.first_position, entry.id))
