"""Why a remembered entry is no candidate for a query: every entry that lives, and the first rule that keeps it out.

The rules are asked in the order of :class:`Reason`, the order in which retrieval applies them (spec §4): an entry is
kept out by the first after which none of its observations is left, or else by its type. Everything but the entries
that are listed is done on columns.

What this module does not know: scores. What is a candidate and was not taken lost by its rank (``comparison``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from merit.memory.entry import EntryView
from merit.memory.legality import View, entry_view, legal, merge
from merit.memory.listing import holding
from merit.memory.retrieval import RetrievalQuery
from merit.memory.rows import key, short
from merit.memory.search import narrows, view_of
from merit.strategy import Causality, Scope, Strategy

if TYPE_CHECKING:
    from merit.memory.index import Index, Mask


class Reason(StrEnum):
    """What keeps an entry out, in the order in which it is asked."""

    LATER = "seen only later"
    OWN_QUESTION = "left by this very question"
    SCOPE = "from a database outside the scope"
    TYPE = "of another failure type"


@dataclass(frozen=True)
class Census:
    """All living entries, counted once each: ``living = sum(excluded) + candidates``. ``partly`` counts candidates
    that are seen without some of their observations, which one of the rules keeps out."""

    living: int
    excluded: Mapping[Reason, int]
    candidates: int
    partly: int


@dataclass(frozen=True)
class Excluded:
    """One entry that is no candidate, as it stands now, and why."""

    entry: EntryView
    reason: Reason


def census(index: Index, query: RetrievalQuery, strategy: Strategy) -> Census:
    """How many entries each rule keeps out."""
    fates = _Fates(index, query, strategy)
    codes = fates.of_entries[fates.everything]
    kept = np.bincount(codes, minlength=len(Reason) + 1)
    incomplete = fates.holders(index.alive & ~fates.view.legal)
    return Census(
        living=len(codes),
        excluded={reason: int(kept[number]) for number, reason in enumerate(Reason)},
        candidates=int(kept[len(Reason)]),
        partly=int(incomplete[fates.everything][codes == len(Reason)].sum()),
    )


def excluded(
    index: Index,
    query: RetrievalQuery,
    strategy: Strategy,
    *,
    reason: Reason | None = None,
    text: str = "",
    limit: int = 50,
) -> tuple[tuple[Excluded, ...], int]:
    """Entries that are no candidates, newest first, at most ``limit``, and how many there are in all; ``reason`` and
    ``text`` (see ``listing.Filter``) narrow them."""
    fates = _Fates(index, query, strategy)
    now = merge(index, legal(index))
    codes = fates.of_entries[index.entry_code[now.rows]]
    wanted = codes < len(Reason) if reason is None else codes == list(Reason).index(reason)
    if text.strip():
        wanted &= holding(index, text)[now.rows]
    found = np.flatnonzero(wanted)
    newest = found[np.lexsort((index.ids(now.rows[found]), -index.position[now.rows[found]]))]
    return (
        tuple(
            Excluded(entry_view(index, now, int(now.rows[at])), list(Reason)[codes[at]])
            for at in newest[:limit].tolist()
        ),
        len(found),
    )


def reason_for(index: Index, query: RetrievalQuery, strategy: Strategy, entry_id: str) -> Reason | None:
    """What keeps one living entry out; None when it is a candidate, or does not live."""
    code = index.entries.get(entry_id)
    if code is None or not bool(index.alive[index.entry_code == code].any()):
        return None
    number = int(_Fates(index, query, strategy).of_entries[code])
    return list(Reason)[number] if number < len(Reason) else None


def candidates(
    index: Index, query: RetrievalQuery, strategy: Strategy, entry_ids: frozenset[str]
) -> dict[str, EntryView]:
    """The legal ones among these entries, by id, as the query sees them."""
    view = view_of(index, query, strategy)
    codes = [index.entries[entry_id] for entry_id in entry_ids if entry_id in index.entries]
    rows = view.rows[np.isin(index.entry_code[view.rows], codes)]
    found = (entry_view(index, view, int(row)) for row in rows)
    return {entry.id: entry for entry in found}


class _Fates:
    """For every entry (by its code) the number of its reason; ``len(Reason)`` where it is a candidate."""

    def __init__(self, index: Index, query: RetrievalQuery, strategy: Strategy) -> None:
        self._index = index
        self.view = view_of(index, query, strategy)
        mask = index.alive.copy()
        self.everything = np.flatnonzero(self.holders(mask))
        self.of_entries: NDArray[np.int8] = np.full(len(index.entries), len(Reason), np.int8)
        left = self.holders(mask)
        own = short([key(query.database_id)])
        rules: tuple[tuple[bool, Mask], ...] = (
            (strategy.causal is Causality.CAUSAL, index.visible_from <= query.position),
            (not strategy.own_question, index.question != short([key(query.question_id)])),
            (
                strategy.scope is not Scope.ANY,
                np.isin(index.database, own, invert=strategy.scope is Scope.OTHER),
            ),
        )
        for number, (holds, rule) in enumerate(rules):
            if holds:
                mask &= rule
            still = self.holders(mask)
            self.of_entries[left & ~still] = number
            left = still
        self._type(query, strategy)

    def holders(self, mask: Mask) -> Mask:
        """Which entries have an observation in the mask."""
        found = np.zeros(len(self._index.entries), np.bool_)
        found[self._index.entry_code[mask]] = True
        return found

    def _type(self, query: RetrievalQuery, strategy: Strategy) -> None:
        if not narrows(strategy, query.failure_type):
            return
        index, view = self._index, self.view
        same = index.failure_type[view.rows] == index.type_codes[query.failure_type]
        for pool in _pools(view, strategy):
            if int(same[pool].sum()) >= strategy.min_typed:
                self.of_entries[index.entry_code[view.rows[pool & ~same]]] = list(Reason).index(Reason.TYPE)


def _pools(view: View, strategy: Strategy) -> tuple[Mask, ...]:
    if strategy.pooled:
        return (np.ones(len(view.rows), np.bool_),)
    return view.positive, ~view.positive
