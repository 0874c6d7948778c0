"""One stream of the log, folded and followed: what every verb of the memory is made of.

Rows are appended until they are really there, what other processes wrote is folded before anything is read, and
texts are encoded outside the lock, so that nobody waits for somebody else's import.

What this module does not know: the verbs (``store``).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merit.errors import MemoryUnavailable
from merit.memory.facts import Observed, Progress, TextEncoder
from merit.memory.index import Index
from merit.memory.log import Log
from merit.memory.rows import key, observation_rows
from merit.memory.texts import dense_text

T = TypeVar("T")

_TRIES = 10
"""How often a write that got lost beside the history is made again."""
_BATCH = 64
"""Texts that are encoded between two words about the progress."""


class Stream:
    """A stream of a memory that is open; safe for threads."""

    def __init__(self, log: Log, encoder: TextEncoder, stream: str) -> None:
        self.encoder = encoder
        self.stream = stream
        self._key = key(stream)
        self._log = log
        self._lock = threading.RLock()
        self._version = -1
        self._index = Index(encoder.dimension)
        self._refresh()
        self._finish_erasing()

    @property
    def uri(self) -> str:
        return self._log.uri

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the index's memory back; everything is on the disk already. A later call builds it again."""
        with self._lock:
            self._version, self._index = -1, Index(self.encoder.dimension)

    def _remember(self, observations: list[Observed], progress: Progress | None = None) -> int:
        with self._lock:
            self._refresh()
            fresh = {
                seen.entry.episode_id: seen
                for seen in reversed(observations)
                if self._index.welcome(seen.entry.episode_id)
            }
        new = list(reversed(fresh.values()))
        if not new:
            return 0
        vectors = self._encode([dense_text(seen.entry) for seen in new], progress)
        self._write(observation_rows(self._log.columns, self._key, new, vectors))
        return len(new)

    def _append(self, rows: list[dict[str, Any]]) -> None:
        self._write(self._rows(rows))

    def _rows(self, rows: Sequence[Any]) -> pa.Table:
        named = [{"stream": self._key, "episode": uuid.uuid4().hex, **row} for row in rows]
        return pa.Table.from_pylist(named, schema=self._log.columns)

    def _write(self, rows: pa.Table) -> None:
        """Append and fold, until the rows are really there: a commit that was long in the making can land beside
        the history, if meanwhile another process dropped the versions that it builds upon."""
        with self._lock:
            for _ in range(_TRIES):
                self._log.append(rows)
                if self._fold(self._log.version(), written=rows):
                    break
            else:
                raise MemoryUnavailable(f"The memory at {self.uri} is being cleaned up by others. Try again.")
        self._log.compact_later()

    def _refresh(self) -> None:
        version = self._log.version()
        if version != self._version:
            self._fold(version)

    def _fold(self, version: int, written: pa.Table | None = None) -> bool:
        """Fold what is new up to a version; whether all rows just written are part of it."""
        self._index.allocated.clear()
        missing = set() if written is None else set(written["episode"].to_pylist())
        alone = written if version == self._version + 1 else None
        whole = not self._index.next_sequence
        for last, rows in self._log.read(self._key, self._index.next_sequence, alone):
            self._index.apply(rows, last + 1)
            if missing:
                missing.difference_update(rows["episode"].to_pylist())
        if whole:
            pa.default_memory_pool().release_unused()  # a fifth of what opening took
        self._version = version
        return not missing

    def _rebuild(self) -> None:
        """Read everything again: rows that were erased leave this process's memory too."""
        self.close()
        self._refresh()

    def _finish_erasing(self) -> None:
        """A process may have ended between forgetting and erasing: nothing is seen of it, now it leaves the disk."""
        with suppress(MemoryUnavailable):  # the memory can be read all the same; the next one to open it tries again
            if self._index.dropped_at:
                self._log.erase(self._key, None, self._index.dropped_at)
            if forgotten := self._index.forgotten():
                self._log.erase(self._key, forgotten, self._index.next_sequence)

    def _encode(self, texts: list[str], progress: Progress | None = None) -> NDArray[np.float32]:
        if progress is not None and len(texts) > _BATCH:
            vectors = np.empty((len(texts), self.encoder.dimension), np.float32)
            for start in range(0, len(texts), _BATCH):
                progress(start, len(texts))
                vectors[start : start + _BATCH] = self._encode(texts[start : start + _BATCH])
            progress(len(texts), len(texts))
            return vectors
        vectors = np.asarray(self.encoder.encode(texts), np.float32)
        if vectors.shape != (len(texts), self.encoder.dimension) or not np.isfinite(vectors).all():
            raise MemoryUnavailable(
                f"The encoder {self.encoder.id} gave vectors of the form {vectors.shape} where "
                f"({len(texts)}, {self.encoder.dimension}) finite numbers were expected. Nothing was stored."
            )
        return vectors
