"""What a page tells of a database, read once while the file is open: rows, first rows, findings, questions.

What this module does not know: streamlit, whose database it is.
"""

from __future__ import annotations

import copy
import time
from functools import lru_cache

from merit.database import Database
from merit.database.health import Finding, health
from merit.episode import Execution

FIRST_ROWS = 10
COUNT_WITHIN_S = 3.0
"""How long the rows of all tables together are counted."""


@lru_cache(maxsize=256)
def first_rows(database: Database, table: str) -> Execution:
    """The first rows of a table or view."""
    return database.preview(table, FIRST_ROWS)


@lru_cache(maxsize=32)
def row_counts(database: Database) -> dict[str, int | None]:
    """Rows of each table; None where the time ran out or a view fails."""
    ends = time.monotonic() + COUNT_WITHIN_S
    counts = {}
    for table in database.tables:
        left = ends - time.monotonic()
        counts[table.name] = database.row_count(table.name, left) if left > 0.05 else None
    return counts


@lru_cache(maxsize=32)
def findings(database: Database) -> tuple[Finding, ...]:
    """What is worth knowing before one asks."""
    return health(database)


def around(database: Database, table: str) -> Database:
    """The database seen as one table and those it points to or that point to it."""
    near = {table}
    for other in database.tables:
        targets = {key.table for key in other.foreign_keys}
        if other.name == table:
            near |= targets
        elif table in targets:
            near.add(other.name)
    seen = copy.copy(database)
    seen.tables = tuple(other for other in database.tables if other.name in near)
    return seen


def forget() -> None:
    """Drop what was read: a database has been removed."""
    first_rows.cache_clear()
    row_counts.cache_clear()
    findings.cache_clear()
