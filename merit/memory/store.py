"""The memory of one stream: what finished episodes leave, seen as of any position, ranked for a repair.

Several threads may share one store, several processes one memory: each sees what all others have written, at the
next call. Nothing is ever half-written, and finalising an episode twice is the same as once (also after kill -9).

What this module does not know: how an episode comes about, what a card looks like in a prompt.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merit.errors import BadInput, MemoryUnavailable
from merit.memory import transfer
from merit.memory.entry import EntryView, MemoryEntry
from merit.memory.facts import Counts, Statistics, TextEncoder
from merit.memory.index import Index
from merit.memory.legality import View, entry_view, entry_views, legal, merge
from merit.memory.log import Log
from merit.memory.retrieval import Retrieval, RetrievalQuery
from merit.memory.rows import key, observation_rows
from merit.memory.search import retrieve
from merit.memory.texts import dense_text
from merit.strategy import Strategy

T = TypeVar("T")

_TRIES = 10
"""How often a write that got lost beside the history is made again."""


class MemoryStore:
    """One stream of a memory; see :meth:`open`. Raises :class:`MemoryUnavailable` with a sentence."""

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

    @classmethod
    def open(cls, uri: str | Path, encoder: TextEncoder, stream: str = "live") -> Self:
        """Open or create the memory at a LanceDB URI (a folder, ``s3://…``, ``memory://`` for this store alone).

        A memory holds vectors of one encoder, whose name and dimension it records; another one is refused.
        """
        return cls(Log(str(uri), encoder.id, encoder.dimension), encoder, stream)

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

    # writing ----------------------------------------------------------------------------------------------

    def finalise(self, entry: MemoryEntry) -> EntryView:
        """Remember what an episode left and return the merged view of its entry over the whole stream.

        Idempotent: an episode that is remembered already is not written again. It can be seen from position
        ``max(position + 1, next unallocated position now)`` on.
        """
        return self.finalise_many([entry])[0]

    def finalise_many(self, entries: Iterable[MemoryEntry]) -> list[EntryView]:
        """The same for several episodes, in one atomic write."""
        wanted = list(entries)
        self._remember(wanted, [0] * len(wanted))
        with self._lock:
            everything = merge(self._index, legal(self._index))
            return [self._view_of(entry, everything) for entry in wanted]

    def retract(self, episode_id: str) -> bool:
        """Take back the observation an episode left; others of the same entry stay. False: there was none."""
        with self._lock:
            self._refresh()
            if self._index.living(episode_id) is None:
                return False
            self._append([{"kind": "retract", "episode": key(episode_id)}])
            return True

    def forget(self, entry_id: str) -> int:
        """Forget an entry: all its present observations die and leave the disk. Returns how many there were.

        No merge, tag, import or repeated finalise brings them back; a new episode may find the same out again.
        """
        with self._lock:
            self._refresh()
            forgotten = 0
            while episodes := self._index.remembered(entry_id):  # again for what came in between
                forgotten += len(episodes)
                floor = self._index.last_position + 1  # erased or not, positions that were given stay given
                self._append(
                    [{"kind": "forget", "entry": entry_id, "episode": name, "floor": floor} for name in episodes]
                )
            self._log.erase(self._key, self._index.forgotten(), self._index.next_sequence)
            self._rebuild()
            return forgotten

    def forget_database(self, database_id: str) -> int:
        """Forget every observation made on a database, physically, as :meth:`forget` does; those of the same entries
        made on others stay. Returns how many there were."""
        with self._lock:
            self._refresh()
            episodes = self._index.remembered_of(key(database_id))
            body = json.dumps({"database": key(database_id), "episodes": episodes})
            self._append([{"kind": "forget_database", "body": body, "floor": self._index.last_position + 1}])
            self._log.erase(self._key, self._index.forgotten(), self._index.next_sequence)
            self._rebuild()
            return len(episodes)

    def tag(self, name: str) -> None:
        """Name the present state, so that :meth:`restore` can go back to it. A name can be given anew."""
        if not name.strip():
            raise BadInput("Give the state a name.")
        self._append([{"kind": "tag", "body": json.dumps(name)}])

    def tags(self) -> tuple[str, ...]:
        """The names given, oldest first."""
        with self._lock:
            self._refresh()
            return tuple(self._index.tags)

    def restore(self, name: str) -> None:
        """Go back to a tagged state: what came later is no longer seen, what was retracted since is seen again;
        what was forgotten stays forgotten. Positions go on counting."""
        with self._lock:
            self._refresh()
            if name not in self._index.tags:
                known = ", ".join(self._index.tags) or "none"
                raise BadInput(f"There is no state called {name!r}. Known states: {known}.")
            self._append([{"kind": "restore", "body": json.dumps(name)}])

    def delete_stream(self) -> None:
        """Remove everything of this stream from the disk, its counter and tags included."""
        with self._lock:
            self._append([{"kind": "drop"}])
            self._log.erase(self._key, None, self._index.dropped_at)
            self._rebuild()

    def next_position(self) -> int:
        """Allocate the next position of the stream: ``max(counter, 1 + largest stored position)``. No two calls
        get the same, in whatever process."""
        token = uuid.uuid4().hex
        with self._lock:
            self._refresh()
            self._append([{"kind": "position", "episode": token, "floor": self._index.last_position + 1}])
            return self._index.allocated[token]

    def import_jsonl(self, folder: str | Path) -> int:
        """Take in what :meth:`export_jsonl` wrote, all or nothing; a wrong line is named. Episodes that are
        remembered already, or were forgotten, are left out. Returns how many observations are new."""
        observations = transfer.read(Path(folder))
        return self._remember([seen.entry for seen in observations], [seen.visible_from for seen in observations])

    def compact(self) -> None:
        """Merge fragments now and drop old versions (see ``log.RETENTION``); otherwise done in the background."""
        self._log.compact()

    # reading ----------------------------------------------------------------------------------------------

    def entries(
        self, before: int | None = None, exclude_question: str | None = None, databases: Iterable[str] | None = None
    ) -> list[EntryView]:
        """Merged views of the observations legal at position ``before`` (None: all), without those of a question,
        from these databases only; filtered first, then folded; ordered by first position."""
        with self._lock:
            self._refresh()
            return entry_views(self._index, self._view(before, exclude_question, databases))

    def counts(
        self, before: int | None = None, exclude_question: str | None = None, databases: Iterable[str] | None = None
    ) -> Counts:
        """How many entries and observations :meth:`entries` would be made of, without making them."""
        with self._lock:
            self._refresh()
            view = self._view(before, exclude_question, databases)
            positive = int(view.positive.sum())
            return Counts(positive, len(view.rows) - positive, int(view.legal.sum()))

    def retrieve(self, query: RetrievalQuery, strategy: Strategy) -> Retrieval:
        """What a strategy recalls for a query (spec §4), as of ``query.position``."""
        if not strategy.uses_memory:
            return Retrieval()
        vector = self._encode([query.text])[0]
        with self._lock:
            self._refresh()
            return retrieve(self._index, query, strategy, vector)

    def upcoming(self) -> int:
        """The position that :meth:`next_position` would give now; it stays free."""
        return self.look(lambda index: index.next_position)

    def look(self, at: Callable[[Index], T]) -> T:
        """Hand the folded log, up to date, to a function that only reads it (``listing``, ``exclusions``, …)."""
        with self._lock:
            self._refresh()
            return at(self._index)

    def export_jsonl(self, folder: str | Path) -> Path:
        """Write ``positive.jsonl`` and ``negative.jsonl``, one merged entry a line, and return the folder."""
        with self._lock:
            self._refresh()
            transfer.write(Path(folder), self._index, merge(self._index, legal(self._index)))
        return Path(folder)

    def stats(self) -> Statistics:
        """Counts, tags, size on disk."""
        with self._lock:
            counts = self.counts()
            return Statistics(
                uri=self.uri,
                stream=self.stream,
                encoder_id=self.encoder.id,
                dimension=self.encoder.dimension,
                counts=counts,
                next_position=self._index.next_position,
                tags=tuple(self._index.tags),
                **self._log.statistics(),
            )

    # inside -----------------------------------------------------------------------------------------------

    def _view(self, before: int | None, exclude_question: str | None, databases: Iterable[str] | None) -> View:
        mask = legal(
            self._index,
            before=before,
            exclude_question=None if exclude_question is None else key(exclude_question),
            databases=None if databases is None else [key(name) for name in databases],
        )
        return merge(self._index, mask)

    def _view_of(self, entry: MemoryEntry, everything: View) -> EntryView:
        row = self._index.living(entry.episode_id)
        if row is None:  # forgotten, so it is not written again: the caller's own words, with no evidence
            return EntryView.from_json(entry.to_json())
        code = self._index.entry_code[row]
        speaks = everything.rows[self._index.entry_code[everything.rows] == code][0]
        return entry_view(self._index, everything, int(speaks))

    def _remember(self, entries: list[MemoryEntry], floors: list[int]) -> int:
        with self._lock:
            self._refresh()
            fresh = {
                entry.episode_id: (entry, floor)
                for entry, floor in reversed(list(zip(entries, floors, strict=True)))
                if self._index.welcome(entry.episode_id)
            }
        new = list(reversed(fresh.values()))
        if not new:
            return 0
        vectors = self._encode([dense_text(entry) for entry, _ in new])
        self._write(observation_rows(self._log.columns, self._key, new, vectors))
        return len(new)

    def _append(self, rows: list[dict[str, Any]]) -> None:
        self._write(
            pa.Table.from_pylist(
                [{"stream": self._key, "episode": uuid.uuid4().hex, **row} for row in rows], schema=self._log.columns
            )
        )

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

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.asarray(self.encoder.encode(texts), np.float32)
        if vectors.shape != (len(texts), self.encoder.dimension) or not np.isfinite(vectors).all():
            raise MemoryUnavailable(
                f"The encoder {self.encoder.id} gave vectors of the form {vectors.shape} where "
                f"({len(texts)}, {self.encoder.dimension}) finite numbers were expected. Nothing was stored."
            )
        return vectors
