"""What a memory says of itself, and what it needs of an encoder. Frozen, no I/O.

What this module does not know: where entries are kept (``store``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class TextEncoder(Protocol):
    """What the memory needs of an encoder."""

    @property
    def id(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    def encode(self, texts: Sequence[str], /) -> Any:
        """float32 (n, d), L2-normalised."""


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
