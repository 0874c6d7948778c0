"""What it costs to run a statement in a worker process instead of in this one.

Both sides run the same statements on the same files, each on a fresh connection, in alternation, so that a busy
machine slows both. Printed: medians in milliseconds, their difference (the promise is at most 5 ms) and their
ratio; then how long a new worker takes to its first answer.

    python benchmarks/statement_overhead.py [database.sqlite …]
"""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from merit.database import Database, execution  # noqa: E402
from merit.database.names import quoted  # noqa: E402

REPEATS = 300
ROWS = 1000


def in_process(path: Path, sql: str) -> list[tuple[object, ...]]:
    """The plain way: connect, run, fetch."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchmany(ROWS)
    finally:
        connection.close()


def compare(database: Database, sql: str) -> tuple[float, float]:
    """Median milliseconds of both ways: in this process, in a worker."""
    here: list[float] = []
    there: list[float] = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        in_process(database.path, sql)
        here.append(time.perf_counter() - started)
        started = time.perf_counter()
        database.execute(sql, max_rows=ROWS)
        there.append(time.perf_counter() - started)
    return median(here) * 1000, median(there) * 1000


def first_answer(database: Database) -> float:
    """Median milliseconds from no worker at all to an answer."""
    times = []
    for _ in range(20):
        execution._pool.close()
        started = time.perf_counter()
        database.execute("SELECT 1")
        times.append(time.perf_counter() - started)
    return median(times) * 1000


def main() -> None:
    """Print the table."""
    paths = [Path(argument) for argument in sys.argv[1:]] or sorted(ROOT.glob("sample_dbs/*/*.sqlite"))[:3]
    if not paths:
        sys.exit("There is no sample database; name a SQLite file.")
    print(f"{'database':<16} {'statement':<28} {'in process':>10} {'worker':>10} {'added':>10} {'ratio':>7}")
    worst = 0.0
    for path in paths:
        database = Database.open(path)
        largest = max(database.tables, key=lambda table: database.row_count(table.name) or 0).name
        for name, sql in (
            ("SELECT 1", "SELECT 1"),
            ("count of the largest table", f"SELECT count(*) FROM {quoted(largest)}"),
            ("its first 100 rows", f"SELECT * FROM {quoted(largest)} LIMIT 100"),
            ("its first 1000 rows", f"SELECT * FROM {quoted(largest)} LIMIT 1000"),
        ):
            here, there = compare(database, sql)
            worst = max(worst, there - here)
            added, ratio = there - here, there / here
            print(f"{database.id:<16} {name:<28} {here:>7.2f} ms {there:>7.2f} ms {added:>7.2f} ms {ratio:>6.1f}x")
    print(f"largest median overhead: {worst:.2f} ms (at most 5 ms promised)")
    print(f"a new worker's first answer: {first_answer(Database.open(paths[0])):.0f} ms")


if __name__ == "__main__":
    main()
