"""The log under the memory: one append-only LanceDB table, whose row ids number everything that ever happened.

Observations, allocated positions, tags, restores, retractions and forgettings are rows of one table, so that one
append is one atomic fact and every process reads the same order. The order is Lance's stable row id, which is given
at commit, grows by commit and survives compaction (the physical order and the version that ``add`` returns do not).
Columns that are filtered on hold hashes in hex: no text of a stranger is ever part of a filter.

What this module does not know: what the rows mean (``index`` folds them).
"""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merit.errors import MemoryUnavailable
from merit.memory.entry import FORMAT_VERSION

TABLE = "observations"
CHUNK = 2048
"""Rows read at once when a memory is opened."""

RETENTION = timedelta(minutes=10)
"""How long old versions of the table are kept: longer than any read or write in flight takes. Tagged states
are rows of the log and need no old version."""

FRAGMENTS = 200
"""From this many fragments on, appends and reads get slow enough to be worth a compaction."""

_STABLE_ROW_IDS = {"new_table_enable_stable_row_ids": "true"}
_TRIES = 5

IN_THE_MAKING_S = 5.0
"""An empty manifest younger than this many seconds may still be written by its process."""


def columns(dimension: int) -> pa.Schema:
    """The columns of a log for vectors of this dimension (floor: see ``index``)."""
    return pa.schema(
        [
            pa.field("kind", pa.string()),
            pa.field("stream", pa.string()),
            pa.field("episode", pa.string()),
            pa.field("entry", pa.string()),
            pa.field("question", pa.string()),
            pa.field("database", pa.string()),
            pa.field("failure_type", pa.string()),
            pa.field("polarity", pa.string()),
            pa.field("position", pa.int64()),
            pa.field("floor", pa.int64()),
            pa.field("body", pa.string()),
            pa.field("schema", pa.string()),
            pa.field("terms", pa.list_(pa.string())),
            pa.field("counts", pa.list_(pa.int32())),
            pa.field("vector", pa.list_(pa.float32(), dimension)),
        ]
    )


class Log:
    """One open log. Every failure is a :class:`MemoryUnavailable` with a sentence; methods are safe in threads."""

    def __init__(self, uri: str, encoder_id: str, dimension: int) -> None:
        self.uri = uri
        self.columns = columns(dimension)
        self._lock = threading.RLock()
        self._care = threading.Lock()
        self._appended = 0
        about = {"encoder": encoder_id, "dimension": str(dimension), "format": str(FORMAT_VERSION)}
        self._table = self._speak("opened", lambda: _open(uri, self.columns.with_metadata(about)))
        _check(uri, self._table.schema.metadata or {}, about)

    def append(self, rows: pa.Table) -> None:
        """Append rows in one atomic commit. Tried again after a conflict, so a row may come twice: readers take the
        first of an episode or a token. The writer has to look whether the rows are there: a commit upon a version
        that was dropped meanwhile gets a number below the newest, and nobody sees it."""
        with self._lock:
            self._appended += 1
            self._speak("written", lambda: self._table.add(rows))

    def version(self) -> int:
        """The newest version, whoever wrote it; costs a fraction of a millisecond."""
        with self._lock:
            self._speak("read", self._table.checkout_latest)
            return int(self._table.version)

    def read(self, stream: str, since: int, own: pa.Table | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Rows of a stream with row id ``_rowid >= since``, in that order, in chunks; each chunk with the largest
        row id that was looked at, of whatever stream. ``own``: the only commit since then is the caller's, of
        these rows; that saves looking for their ids."""
        if own is not None:
            last = since + own.num_rows - 1
            rows = self._take(list(range(since, last + 1)))
            if rows["episode"].equals(own["episode"]):
                yield last, rows
                return
        ids = self._ids(stream, since)
        for start in range(0, len(ids), CHUNK):
            chunk = ids[start : start + CHUNK]
            rows = self._take(chunk)
            of_stream = pc.equal(rows["stream"], stream)
            yield chunk[-1], rows if pc.all(of_stream).as_py() else rows.filter(of_stream)

    def erase(self, stream: str, row_ids: Sequence[int] | None, before: int) -> None:
        """Remove rows of a stream below row id ``before`` (all, or these) from the disk, old versions included."""
        where = f"stream = '{stream}' AND _rowid < {int(before)}"
        if row_ids is not None:
            where += f" AND _rowid IN ({', '.join(str(int(row)) for row in row_ids)})"
        for _ in range(_TRIES if row_ids is None or len(row_ids) else 0):  # a deletion can get lost like an append
            with self._lock:
                self.version()
                if not self._speak("read", lambda: self._table.count_rows(where)):
                    break
                self._speak("written", lambda: self._table.delete(where))
        self.compact(timedelta(0))

    def compact(self, retention: timedelta = RETENTION) -> None:
        """Merge fragments and drop versions older than ``retention``. Another process doing so is no failure."""
        with self._care, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # retention zero is meant: erased text must leave the disk
            self._speak("compacted", lambda: self._other_handle().optimize(cleanup_older_than=retention))

    def compact_later(self) -> threading.Thread | None:
        """Start a compaction in the background where it is due; never makes the caller wait."""
        if self._appended < FRAGMENTS // 4 or self._care.locked():
            return None
        self._appended = 0
        thread = threading.Thread(target=self._compact_if_due, name="memory-compaction", daemon=True)
        thread.start()
        return thread

    def statistics(self) -> dict[str, int]:
        """Rows, fragments and bytes of the newest version."""
        with self._lock:
            self.version()
            facts = self._speak("read", self._table.stats)
            return {
                "rows": int(facts["num_rows"]),
                "fragments": int(facts["fragment_stats"]["num_fragments"]),
                "bytes": int(facts["total_bytes"]),
            }

    def disk_bytes(self) -> int | None:
        """Bytes of the folder, old versions and other streams included; None where the memory is in no folder."""
        if "://" in self.uri:
            return None
        with suppress(OSError):  # files come and go while somebody compacts
            return sum(file.stat().st_size for file in Path(self.uri).rglob("*") if file.is_file())
        return None

    def _compact_if_due(self) -> None:
        with suppress(MemoryUnavailable):  # nobody waits for it, and the next append tries again
            if self.statistics()["fragments"] >= FRAGMENTS:
                self.compact()

    def _other_handle(self) -> Any:
        """A handle of its own for long work, at the newest version, so that nobody waits. An in-memory table is
        only known to the connection that made it."""
        shared = self.uri.startswith("memory://")
        return self._table if shared else lancedb.connect(self.uri).open_table(TABLE)

    def _ids(self, stream: str, since: int) -> list[int]:
        # Ids first, then rows by id: a filter on all columns would open every fragment for each of them.
        where = f"_rowid >= {int(since)}" if since else f"stream = '{stream}'"
        with self._lock:
            found = self._speak("read", lambda: self._table.search().where(where).select(["_rowid"]).to_arrow())
        ids: list[int] = np.sort(found["_rowid"].to_numpy()).tolist()
        return ids

    def _take(self, ids: list[int]) -> pa.Table:
        """The rows of these ids, in order; those that were erased are left out."""
        with self._lock:
            rows = self._speak("read", lambda: self._table.take_row_ids(ids).with_row_id().to_arrow())
        found = rows["_rowid"].to_numpy()
        return rows if bool((found[1:] > found[:-1]).all()) else rows.sort_by("_rowid")

    def _speak(self, done: str, work: Callable[[], Any]) -> Any:
        """Do it; after a conflict with another process look at the newest version and try again; else say why."""
        for tries_left in reversed(range(_TRIES)):
            try:
                return work()
            except MemoryUnavailable:
                raise
            except (OSError, RuntimeError, ValueError, pa.ArrowException) as error:
                if tries_left and _passing(error):
                    with suppress(OSError, RuntimeError, ValueError):
                        self._table.checkout_latest()
                    continue
                raise MemoryUnavailable(_sentence(self.uri, done, error)) from error
        raise AssertionError("unreachable")


def _open(uri: str, schema: pa.Schema) -> Any:
    """Open the table, or create it. LanceDB's create replaces what another process created in between; the
    version then is not 1, and going back one version gives the other's table back."""
    database = lancedb.connect(uri)
    if TABLE in _names(database):
        try:
            return database.open_table(TABLE)
        except (OSError, RuntimeError):
            if not _mend(uri):
                raise
            return database.open_table(TABLE)
    try:
        table = database.create_table(TABLE, schema=schema, storage_options=_STABLE_ROW_IDS)
    except ValueError:  # it exists by now
        return database.open_table(TABLE)
    if table.version > 1:
        table.checkout(table.version - 1)
        table.restore()
    return database.open_table(TABLE)


def _names(database: Any) -> list[str]:
    names: list[str] = list(database.list_tables().tables)
    return names


def _check(uri: str, found: dict[bytes, bytes], wanted: dict[str, str]) -> None:
    about = {key: found.get(key.encode(), b"").decode() for key in wanted}
    if not all(about.values()):
        raise MemoryUnavailable(f"What lies at {uri} is not a memory of this program. Choose another place for it.")
    if about["format"] != wanted["format"]:
        raise MemoryUnavailable(
            f"The memory at {uri} has format {about['format']}, and this version reads format {wanted['format']}. "
            "Export it with the version that wrote it, or choose another place for the memory."
        )
    if (about["encoder"], about["dimension"]) != (wanted["encoder"], wanted["dimension"]):
        raise MemoryUnavailable(
            f"The memory at {uri} was written with the encoder {about['encoder']} ({about['dimension']} numbers a "
            f"text), not with {wanted['encoder']} ({wanted['dimension']}). Choose that encoder again, or another "
            "place for the memory."
        )


def _mend(uri: str) -> bool:
    """Remove an empty newest manifest, which a full disk or a power cut can leave and nothing can open; without
    it the version before opens. Only in folders (object stores write a manifest whole or not at all), and only
    one that is old enough not to be in the making."""
    if "://" in uri:
        return False
    empty = [path for path in Path(uri, f"{TABLE}.lance", "_versions").glob("*.manifest") if not path.stat().st_size]
    broken = [path for path in empty if time.time() - path.stat().st_mtime > IN_THE_MAKING_S]
    for path in broken:
        path.unlink()
    return bool(broken)


def _passing(error: BaseException) -> bool:
    """Whether another process's work, not a state of the machine, is the reason."""
    text = str(error).lower()
    return any(word in text for word in ("conflict", "incompatible", "was not found", "not found:", "cleaned up"))


def _sentence(uri: str, done: str, error: BaseException) -> str:
    text = str(error)
    first = re.split(r", /|\n", text)[0].removeprefix("lance error: ").strip() or type(error).__name__
    if "os error 28" in text or "No space left" in text or "os error 27" in text or "Disk quota" in text:
        return (
            f"The memory at {uri} could not be {done}: the disk is full. What was stored before is still there. "
            "Free some space and try again."
        )
    if "ermission denied" in text or "ead-only file system" in text:
        return (
            f"The memory at {uri} could not be {done}: this account lacks the right to do that. "
            "Change the rights of the folder, or choose another place for the memory."
        )
    return f"The memory at {uri} could not be {done}: {first}."
