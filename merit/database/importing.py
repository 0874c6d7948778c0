"""The process that reads a stranger's dump or table: ``python -m merit.database.importing``.

One request, JSON on standard input; one answer, JSON on standard output: what was found, or ``refused`` with a
sentence. The process may write one file, the database it makes, up to a size; it reaches no network, starts nothing,
and ends at its deadline, at the latest by the hand of its parent (``conversion``).

What this module does not know: who asks, and where the database will live.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import sys
from typing import Any

from merit.database import confinement
from merit.database.patience import Deadline, Refused
from merit.database.worker import limit

MEMORY_BYTES = 2 << 30
HIGHEST_GROWTH = 10
"""How many times larger than its source a database may become,"""
SMALLEST_ROOM = 64 << 20
"""but this many bytes always, so that a small file with a long list of zeros still finds room."""


def room_for(source: str) -> int:
    """The largest size in bytes that a database made of this file may have."""
    return max(SMALLEST_ROOM, HIGHEST_GROWTH * os.path.getsize(source))


def open_target(path: str, room: int, deadline: Deadline) -> sqlite3.Connection:
    """A connection to the empty file the database is written to; it has no journal, as half a database is thrown away.

    Limits: ``room`` bytes, cells as large as a worker could read back."""
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=8)
    for pragma in ("journal_mode=OFF", "synchronous=OFF", "temp_store=MEMORY", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    page = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={room // page}").fetchall()
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_progress_handler(deadline, 10_000)
    return connection


def preview(request: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
    """Names, types, examples, number of rows of a table."""
    plan: dict[str, Any] = _table(request, deadline).plan()
    return plan


def build(request: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
    """Write the database."""
    connection = open_target(request["target"], room_for(request["source"]), deadline)
    try:
        if request["kind"] == "sql":
            from merit.database.dump import run

            return run(connection, request["source"], deadline)
        from merit.database.tables import write

        return write(connection, request["plan"], _table(request, deadline).rows(), deadline)
    except sqlite3.Error as error:
        deadline.check()
        if "full" in str(error):
            raise Refused("The database would become too large. Try a smaller part of the file.") from error
        raise Refused(f"The database cannot be written ({error}).") from error
    finally:
        connection.close()


def _table(request: dict[str, Any], deadline: Deadline) -> Any:
    if request["kind"] == "parquet":
        from merit.database.parquet import ParquetTable

        return ParquetTable(request["source"], deadline)
    from merit.database.delimited import DelimitedTable

    plan = request.get("plan")
    return DelimitedTable(request["source"], deadline, plan["header"] if plan else request.get("header"))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request; whatever goes wrong is a sentence."""
    deadline = Deadline(request["deadline_s"])
    try:
        return {"preview": preview, "build": build}[request["operation"]](request, deadline)
    except Refused as refused:
        return {"refused": str(refused)}
    except MemoryError:
        return {"refused": "The file needs more memory than one file may take here. Try a smaller part of it."}


def main() -> None:
    """One request, one answer."""
    request = json.loads(sys.stdin.buffer.read())
    if request["kind"] == "parquet":
        import merit.database.parquet  # noqa: F401 (before the doors close: it loads shared libraries)
    limit(resource.RLIMIT_AS, MEMORY_BYTES)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_CPU, int(request["deadline_s"]) + 30)
    target = request.get("target")
    limit(resource.RLIMIT_FSIZE, room_for(request["source"]) + (1 << 20))
    confinement.close_kernel_doors(writable=target)
    if request["kind"] != "parquet":  # Arrow has threads of its own
        confinement.no_more_processes()
    confinement.close_python_doors(readable=(request["source"],), databases=(target,) if target else ())
    print(json.dumps(answer(request)))  # noqa: T201 (its standard output is its answer)


if __name__ == "__main__":
    main()
