"""What a memory says of itself, and what it needs of an encoder. Frozen, no I/O.

What this module does not know: where entries are kept (``store``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from merit.memory.entry import EntryView, MemoryEntry
    from merit.memory.retrieval import Retrieval, RetrievalQuery
    from merit.strategy import Strategy


class TextEncoder(Protocol):
    """What the memory needs of an encoder."""

    @property
    def id(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    def encode(self, texts: Sequence[str], /) -> Any:
        """float32 (n, d), L2-normalised."""


class EpisodicMemory(Protocol):
    """What an episode needs of a memory: a store, or one under a change (``whatif``)."""

    encoder: TextEncoder

    def retrieve(self, query: RetrievalQuery, strategy: Strategy) -> Retrieval:
        """What a strategy recalls, as of ``query.position``."""

    def finalise(self, entry: MemoryEntry) -> EntryView:
        """Remember what an episode left; the merged view of it."""


class Progress(Protocol):
    """Told how many of all have been done; what it raises stops the work before anything is written."""

    def __call__(self, done: int, total: int, /) -> None: ...


@dataclass(frozen=True)
class Counts:
    """Merged entries by polarity, and the observations they come from."""

    positive: int
    negative: int
    observations: int

    @property
    def entries(self) -> int:
        return self.positive + self.negative


@dataclass(frozen=True)
class Statistics:
    """The memory as a thing on a disk. ``rows``, ``fragments`` and ``bytes`` are those of all streams together;
    ``next_position`` is the position that :meth:`MemoryStore.next_position` would give now."""

    uri: str
    stream: str
    encoder_id: str
    dimension: int
    counts: Counts
    next_position: int
    tags: tuple[str, ...]
    rows: int
    fragments: int
    bytes: int


@dataclass(frozen=True)
class Observed:
    """One observation to take in: the entry and the earliest position that may see it."""

    entry: MemoryEntry
    visible_from: int


@dataclass(frozen=True)
class Forgotten:
    """What was forgotten, for whoever may undo it: the entry as it was seen (None: nothing of it was) and those of
    its observations that lived. ``erased`` counts all that left the disk."""

    entry: EntryView | None
    observations: tuple[Observed, ...]
    erased: int


@dataclass(frozen=True)
class Restored:
    """What restoring a backup did: observations it brought, those left out because they were forgotten here, and the
    name given to the state before (None: the memory was empty)."""

    observations: int
    left_out: int
    before: str | None
