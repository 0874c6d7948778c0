"""The process that statements run in: ``python -m merit.database.worker``.

It reads requests from standard input and writes replies to standard output, each a frame: four bytes of
length (big endian), then JSON. JSON, not pickle or marshal: the parent must be able to read the answer of a
process that a hostile file took over, and JSON can only ever become plain values. A blob travels as an object with
its base64 text under ``blob``.

Everything between a hostile statement and the machine is here: limits of the process (memory, CPU, no file
may grow; ``confinement``: no network, no other file), limits of SQLite, a read-only connection that serves one
statement, an authorizer that allows reading alone. Only the deadline's last word (killing this process) belongs to
the parent, ``execution``.

What this module does not know: the rest of the house (it imports the standard library, ``guard`` and ``confinement``
alone, so that it starts in a few dozen milliseconds), which database is meant, what the rows are for.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import re
import resource
import select
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Callable
from operator import methodcaller
from typing import Any

from merit.database.confinement import close_kernel_doors, close_python_doors, no_more_processes
from merit.database.guard import READONLY, Guard

FRAME = struct.Struct(">I")

MEMORY_BYTES = 1 << 30
"""Address space of a worker; past it an allocation fails, SQLite and Python say so and nothing else is hurt."""
SQLITE_HEAP_BYTES = 512 << 20
"""SQLite's own share of that, so that it usually is SQLite that reports ``out of memory``."""
RETIRE_ABOVE_BYTES = 256 << 20
"""A worker that keeps more resident memory than this asks to be replaced: malloc does not give all of it back."""
lossy = methodcaller("decode", "utf-8", "replace")
"""Text of a cell; bytes that are no UTF-8 become replacement marks instead of an error in mid-fetch. (This spelling
stays in C: it is called for every text.)"""

CELL_BYTES = 10_000_000
STATEMENT_BYTES = 1_000_000
STEPS_BETWEEN_CHECKS = 5_000
CPU_SLACK_S = 5

NOTHING = re.compile(r"(?:[\s\ufeff;]|--[^\n]*+|/\*(?:(?!\*/).)*+(?:\*/)?+)*+", re.DOTALL)
"""A text without a statement: white space, comments, semicolons."""
OUT_OF_MEMORY = "out of memory"


class Deadline:
    """A progress handler that stops SQLite once ``timeout_s`` have passed; says so in ``passed``."""

    def __init__(self, timeout_s: float) -> None:
        self.at = time.monotonic() + timeout_s
        self.passed = False

    def __call__(self) -> int:
        self.passed = self.passed or time.monotonic() >= self.at
        return self.passed


def connect(uri: str, deadline: Deadline) -> sqlite3.Connection:
    """A fresh connection to the file behind ``uri``, limited and read-only, for one request."""
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=0)
    connection.set_progress_handler(deadline, STEPS_BETWEEN_CHECKS)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, STATEMENT_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
    # temp_store: sorting may not spill to a file, because no file may grow here (RLIMIT_FSIZE).
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "query_only=ON", "temp_store=MEMORY", "mmap_size=0"):
        connection.execute(f"PRAGMA {pragma}").close()
    connection.text_factory = lossy
    return connection


def open_rtrees(connection: sqlite3.Connection) -> None:
    """Connect the R*Tree tables before the authorizer is set: they prepare (never run) their writes on first use."""
    trees = connection.execute(
        "SELECT name FROM sqlite_master WHERE rootpage = 0 AND sql LIKE 'create virtual table%using%rtree%'"
    ).fetchall()
    for (name,) in trees:
        quoted = name.replace('"', '""')
        try:
            connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0').close()
        except sqlite3.Error:
            continue  # the statement itself will say what is wrong with this table, if it reads it


def message_of(error: BaseException) -> str:
    """The DBMS message as Python gives it; an empty MemoryError gets SQLite's words for it."""
    if isinstance(error, MemoryError):
        return OUT_OF_MEMORY
    if isinstance(error, UnicodeDecodeError):  # SQLite's message quotes a name that is no UTF-8
        return str(lossy(error.object))
    return str(error) or type(error).__name__


def execute(request: dict[str, Any]) -> dict[str, Any]:
    """Run one statement exactly as written. Returns status, columns, rows, error, elapsed_s, truncated."""
    started = time.monotonic()
    deadline = Deadline(request["timeout_s"])
    guard = Guard()
    reply: dict[str, Any] = {"columns": [], "rows": [], "error": None, "truncated": False}
    connection = None
    try:
        connection = connect(request["uri"], deadline)
        open_rtrees(connection)
        connection.set_authorizer(guard)
        columns, rows, truncated = fetch(connection, request["sql"], request["max_rows"], request["max_bytes"])
        if columns is None:
            # SQLite runs both kinds of nothing: a text without a statement, and REINDEX where there is no index.
            empty = NOTHING.fullmatch(request["sql"])
            reply |= {"status": "EXECUTION_ERROR", "error": "empty query" if empty else READONLY}
        else:
            reply |= {"status": "EXECUTED", "columns": columns, "rows": rows, "truncated": truncated}
    except Exception as error:  # noqa: BLE001 (Python raises a dozen classes for bad SQL; this is the one place)
        if deadline.passed:
            reply |= {"status": "TIMEOUT", "error": "TIMEOUT"}
        else:
            reply |= {"status": "EXECUTION_ERROR", "error": guard.message(message_of(error))}
    finally:
        if connection is not None:
            connection.close()
    reply["elapsed_s"] = time.monotonic() - started
    return reply


def fetch(
    connection: sqlite3.Connection, sql: str, max_rows: int, max_bytes: int
) -> tuple[list[str] | None, list[tuple[Any, ...]], bool]:
    """Columns (None where there was no statement to run), rows, and whether a cap cut them.

    Rows are read until the cap is passed, not reached: a result of exactly ``max_rows`` rows is complete.
    """
    cursor = connection.execute(sql)
    if cursor.description is None:
        return None, [], False
    columns = [column[0] for column in cursor.description]
    fixed = 8 * len(columns)
    size = 0
    rows: list[tuple[Any, ...]] = []
    for row in cursor:
        size += fixed
        for cell in row:
            kind = type(cell)
            if kind is str or kind is bytes:
                size += len(cell)
        if size > max_bytes or len(rows) >= max_rows:
            return columns, rows, True
        rows.append(row)
    return columns, rows, False


def inspect(request: dict[str, Any]) -> dict[str, Any]:
    """Run our own questions about a file (``queries``: pairs of SQL and parameters) on one connection.

    Each answer is a list of rows, or the message as text: one object that cannot be read hides no other. The list
    ends where the deadline passed.
    """
    deadline = Deadline(request["timeout_s"])
    answers: list[list[tuple[Any, ...]] | str] = []
    connection = connect(request["uri"], deadline)
    try:
        for sql, parameters in request["queries"]:
            found: list[tuple[Any, ...]] | str
            try:
                found = connection.execute(sql, parameters).fetchall()
            except (sqlite3.Error, sqlite3.Warning, UnicodeError, MemoryError) as error:
                found = message_of(error)
            if deadline.passed:
                break
            answers.append(found)
    finally:
        connection.close()
    return {"answers": answers}


OPERATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"execute": execute, "inspect": inspect}


def blob(value: object) -> dict[str, str]:
    """How JSON carries a blob."""
    if isinstance(value, bytes):
        return {"blob": base64.b64encode(value).decode("ascii")}
    raise TypeError(f"no value of SQLite: {type(value).__name__}")


def limit(kind: int, value: int) -> None:
    """Lower a limit of this process for good; one that is lower already stays."""
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # some systems know a limit but not how to set it
        resource.setrlimit(kind, (value, value))


def limit_cpu(timeout_s: float) -> None:
    """Allow as much CPU time as this request may take in all, counted from what was used before."""
    soft = hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if math.isfinite(timeout_s):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        soft = math.ceil(usage.ru_utime + usage.ru_stime + timeout_s) + CPU_SLACK_S
        soft = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def resident_bytes() -> int:
    """Resident memory now; 0 where the system does not tell.

    Not ``ru_maxrss``: across fork and exec that starts at the peak of the parent, which may hold a model.
    """
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def watch_parent(parent: int) -> None:
    """End this process when its parent is gone, even in the middle of a statement (sqlite3 releases the GIL).

    A parent-death signal would not do: it fires when the *thread* that started the worker ends.
    """
    hangup = select.poll()
    hangup.register(0, 0)
    while not hangup.poll(2_000) and os.getppid() == parent:
        pass
    os._exit(0)


def read_exactly(count: int) -> bytes:
    """``count`` bytes of standard input, fewer only at its end."""
    parts = []
    while count and (part := os.read(0, min(count, 1 << 20))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def frame(reply: dict[str, Any]) -> bytes:
    """The bytes of one reply."""
    body = json.dumps(reply, default=blob, separators=(",", ":")).encode("ascii")
    return FRAME.pack(len(body)) + body


def answer(request: dict[str, Any]) -> bytes:
    """The reply to one request, as a frame; what cannot be carried out or carried over becomes ``failed``."""
    try:
        reply = OPERATIONS[request["operation"]](request)
        reply["retire"] = resident_bytes() > RETIRE_ABOVE_BYTES
        return frame(reply)
    except (sqlite3.Error, MemoryError) as error:
        return frame({"failed": message_of(error), "retire": True})


def write(data: bytes) -> None:
    """All of ``data`` to standard output."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def serve() -> None:
    """Answer requests until standard input ends."""
    close_kernel_doors()
    threading.Thread(target=watch_parent, args=(os.getppid(),), daemon=True).start()
    no_more_processes()
    limit(resource.RLIMIT_AS, MEMORY_BYTES)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NOFILE, 32)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA hard_heap_limit={SQLITE_HEAP_BYTES}")  # holds for the whole process
    connection.close()
    doors = close_python_doors()
    write(frame({"ready": True}))
    while len(head := read_exactly(FRAME.size)) == FRAME.size:
        request = json.loads(read_exactly(FRAME.unpack(head)[0]))
        limit_cpu(request["timeout_s"])
        doors.databases = frozenset({request["uri"]})
        write(answer(request))


def fold(path: str) -> None:
    """Carry a write-ahead log or an unfinished journal that lies beside a *private copy* into that copy."""
    limit(resource.RLIMIT_AS, MEMORY_BYTES)
    close_kernel_doors(writable=os.path.dirname(path))
    close_python_doors(databases=(path,))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    connection.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fold"]:
        fold(sys.argv[2])
    else:
        serve()
