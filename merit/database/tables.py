"""Rows written into the one table of a new database, inside the process of ``importing``.

What this module does not know: the kind of file the rows come from.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from merit.database.delimited import as_integer, as_real
from merit.database.names import quoted
from merit.database.patience import Deadline, Refused

BATCH = 1_000


def write(
    connection: sqlite3.Connection, plan: Mapping[str, Any], rows: Iterable[Sequence[Any]], deadline: Deadline
) -> dict[str, Any]:
    """Make the table of ``plan`` and fill it; the number of rows. Texts become numbers where the column's type says so
    and nothing is lost; what does not fit a column's type is kept as it is."""
    types = [column["type"] for column in plan["columns"]]
    columns = ", ".join(f"{quoted(column['name'])} {column['type']}" for column in plan["columns"])
    connection.execute(f"CREATE TABLE {quoted(plan['table'])} ({columns})")
    insert = f"INSERT INTO {quoted(plan['table'])} VALUES ({', '.join('?' * len(types))})"
    connection.execute("BEGIN")
    count = 0

    def counted() -> Iterator[list[Any]]:
        nonlocal count
        for row in rows:
            if count % BATCH == 0:
                deadline.check()
            if len(row) > len(types):
                raise Refused("The plan has fewer columns than the file. Look at the file's table again.")
            count += 1
            yield [*map(value, row, types), *[None] * (len(types) - len(row))]

    connection.executemany(insert, counted())
    connection.execute("COMMIT")
    return {"rows": count}


def value(cell: Any, type: str) -> Any:
    """What is stored of a cell in a column of this type."""
    if not isinstance(cell, str):
        return cell
    if not cell:
        return None
    if type == "INTEGER":
        number = as_integer(cell)
        return cell if number is None else number
    if type == "REAL":
        real = as_real(cell)
        return cell if real is None else real
    return cell
