"""The memory as a list: what could be seen at a position, filtered, ordered, and made into entries a page at a time.

Everything but the entries of the page is done on columns, so that 100,000 entries cost milliseconds. Words are looked
for in a lower-cased copy of the texts, made when somebody first looks for any.

What this module does not know: strategies and scores, and who reads the list.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from merit.episode import FailureType, Polarity
from merit.memory.entry import EntryView
from merit.memory.legality import View, entry_view, legal, merge
from merit.memory.rows import key, short

if TYPE_CHECKING:
    from merit.memory.index import Index, Mask, Rows

_SEARCHED = ("question", "failed_sql", "new_sql", "db_error", "database_id", "question_id", "episode_id", "model_id")


class Order(StrEnum):
    """How a list is ordered; what is equal then goes by first position, then by id."""

    NEWEST = "newest first"
    OLDEST = "oldest first"
    SEEN = "seen most often first"
    FAILED = "failed most often first"
    TYPE = "by failure type"
    DATABASE = "by database"


@dataclass(frozen=True)
class Filter:
    """Which entries to list; what is empty or None does not narrow. ``first`` and ``last`` bound the position of the
    earliest observation, ``text`` must occur in question, SQL, message, database or an id, ``ids`` are entry ids."""

    polarity: Polarity | None = None
    failure_types: frozenset[FailureType] = frozenset()
    databases: frozenset[str] = frozenset()
    first: int = 0
    last: int | None = None
    text: str = ""
    ids: frozenset[str] | None = None


@dataclass(frozen=True)
class Listing:
    """One page of entries. ``matching`` counts all that pass the filter, ``positive`` and ``negative`` all that could
    be seen, ``observations`` what those come from."""

    entries: tuple[EntryView, ...]
    matching: int
    positive: int
    negative: int
    observations: int


@dataclass(frozen=True)
class Tallies:
    """For each entry of a view: observations that worked and that failed, and the position of the earliest."""

    successes: NDArray[np.int64]
    failures: NDArray[np.int64]
    first: NDArray[np.int64]


def listing(
    index: Index,
    *,
    before: int | None = None,
    wanted: Filter | None = None,
    order: Order = Order.NEWEST,
    start: int = 0,
    limit: int = 1_000,
) -> Listing:
    """The entries that the question at position ``before`` could see (None: all that live), from number ``start`` of
    those that pass the filter on, at most ``limit``."""
    view = merge(index, legal(index, before=before))
    tallies = tally(index, view)
    passing = np.flatnonzero(_passes(index, view, tallies, wanted or Filter()))
    ordered = passing[_order(index, view, tallies, passing, order)]
    rows = view.rows[ordered[start : start + limit]]
    positive = int(view.positive.sum())
    return Listing(
        entries=tuple(entry_view(index, view, int(row)) for row in rows),
        matching=len(passing),
        positive=positive,
        negative=len(view.rows) - positive,
        observations=int(view.legal.sum()),
    )


def databases(index: Index, before: int | None = None) -> tuple[str, ...]:
    """The names of the databases that could be seen at a position, sorted."""
    return tuple(sorted(_names(index, np.flatnonzero(legal(index, before=before)).astype(np.int32)).values()))


def one(index: Index, entry_id: str, before: int | None = None) -> EntryView | None:
    """The entry of this id as position ``before`` could see it; None where it could not, or there is none."""
    code = index.entries.get(entry_id)
    if code is None:
        return None
    view = merge(index, legal(index, before=before))
    rows = view.rows[index.entry_code[view.rows] == code]
    return entry_view(index, view, int(rows[0])) if len(rows) else None


def tally(index: Index, view: View) -> Tallies:
    """Counts and first positions of all entries of a view, in its order."""
    successes = view.positive.astype(np.int64)
    failures = 1 - successes
    first = index.position[view.rows].copy()
    repeated = index.repeated()
    seen = repeated[view.legal[repeated]]
    if len(seen):
        codes = index.entry_code[seen]
        starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
        place = np.empty(len(index.entries), np.int64)
        place[index.entry_code[view.rows]] = np.arange(len(view.rows))
        at = place[codes[starts]]
        successes[at] = np.add.reduceat(index.positive[seen].astype(np.int64), starts)
        failures[at] = np.diff(np.concatenate((starts, [len(seen)]))) - successes[at]
        first[at] = index.position[seen[starts]]
    return Tallies(successes, failures, first)


def _passes(index: Index, view: View, tallies: Tallies, wanted: Filter) -> Mask:
    mask = np.ones(len(view.rows), np.bool_)
    if wanted.polarity is not None:
        mask &= view.positive == (wanted.polarity is Polarity.POSITIVE)
    if wanted.failure_types:
        mask &= np.isin(index.failure_type[view.rows], [index.type_codes[kind] for kind in wanted.failure_types])
    if wanted.databases:
        mask &= np.isin(index.database[view.rows], short(key(name) for name in wanted.databases))
    mask &= tallies.first >= wanted.first
    if wanted.last is not None:
        mask &= tallies.first <= wanted.last
    if wanted.ids is not None:
        codes = [index.entries[entry_id] for entry_id in wanted.ids if entry_id in index.entries]
        mask &= np.isin(index.entry_code[view.rows], codes)
    if wanted.text.strip():
        mask &= holding(index, wanted.text)[view.rows]
    return mask


def _order(index: Index, view: View, tallies: Tallies, passing: NDArray[np.intp], order: Order) -> NDArray[np.intp]:
    rows, first = view.rows[passing], tallies.first[passing]
    ids = index.ids(rows)
    by: dict[Order, Any] = {
        Order.NEWEST: lambda: (ids, -first),
        Order.OLDEST: lambda: (ids, first),
        Order.SEEN: lambda: (ids, first, -(tallies.successes + tallies.failures)[passing]),
        Order.FAILED: lambda: (ids, first, -tallies.failures[passing]),
        Order.TYPE: lambda: (ids, first, index.failure_type[rows]),
        Order.DATABASE: lambda: (ids, first, _ranks(index.database[rows], _names(index, rows))),
    }
    found: NDArray[np.intp] = np.lexsort(by[order]())
    return found


def _ranks(databases: NDArray[np.int64], names: dict[int, str]) -> NDArray[np.int64]:
    """The place of each row's database in the order of their names."""
    place = {code: number for number, code in enumerate(sorted(names, key=names.__getitem__))}
    codes, back = np.unique(databases, return_inverse=True)
    return np.array([place[int(code)] for code in codes], np.int64)[back]


def _names(index: Index, rows: Rows) -> dict[int, str]:
    """The databases of these rows: their codes and names."""
    codes, where = np.unique(index.database[rows], return_index=True)
    return {int(code): index.entry(int(rows[at])).database_id for code, at in zip(codes, where, strict=True)}


class _Texts:
    """The texts in which words are looked for, one a row, folded to one case; it grows with the index."""

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []
        self._size = 0

    def grown(self, index: Index) -> _Texts:
        if index.size > self._size:
            new = [_searchable(index.body(row)) for row in range(self._size, index.size)]
            self._parts.append(pa.array(new, pa.large_string()))
            self._size = index.size
        return self

    def holding(self, text: str) -> Mask:
        """Which rows hold the text, whatever its case."""
        needle = _folded(text)
        found = [pc.match_substring(part, needle).to_numpy(zero_copy_only=False) for part in self._parts]
        return np.concatenate(found) if found else np.zeros(0, np.bool_)


_texts: WeakKeyDictionary[Index, _Texts] = WeakKeyDictionary()


def holding(index: Index, text: str) -> Mask:
    """Which observations hold a text in their question, SQL, message, database or an id, whatever its case."""
    return _texts.setdefault(index, _Texts()).grown(index).holding(text.strip())


def _searchable(body: str) -> str:
    facts = json.loads(body)
    return _folded("\n".join(str(facts[name] or "") for name in _SEARCHED))


def _folded(text: str) -> str:
    """One case; a lone surrogate, which Arrow cannot hold, becomes a question mark."""
    return text.casefold().encode("utf-8", "replace").decode("utf-8")
