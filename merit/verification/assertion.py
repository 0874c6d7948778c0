"""A downstream check judges: expected rows, their number, one value, or an SQL condition over the result (spec §8).

What this module does not know: gold. An assertion is written by the person who asks.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merit.episode import Execution, Outcome, Question, Status, Verdict
from merit.errors import BadInput, MeritError
from merit.sql_lexing import first_semicolon, is_blank
from merit.verification.base import EMPTY_QUERY, Caps, failure, judged

if TYPE_CHECKING:
    from merit.database import Database

TABLE = "result"
"""The name under which a condition finds the rows."""


class AssertionVerifier:
    """Correct iff everything that was asserted holds of the result.

    ``rows``: the expected rows, column by column, as a bag, or as a list if ``ordered``. ``row_count``: their number.
    ``value``: the one value of a result of one row and one column. ``condition``: an SQL expression over the columns
    of the result that holds for every row and for at least one (``price > 0``), an aggregate (``count(*) = 3``), or one
    that reads the table ``result`` itself (``NOT EXISTS (SELECT 1 FROM result WHERE price IS NULL)``). It runs in the
    same guarded way as any statement. A column that it names and the result lacks means that it does not hold.
    Values are equal as Python has it. Nothing asserted, or a condition that is no SQL: ``BadInput``.
    """

    oracle = False
    needs_person = False
    keeps_gold = True
    name = "assertion"

    def __init__(
        self,
        *,
        rows: Sequence[Sequence[Any]] | None = None,
        row_count: int | None = None,
        value: Any = None,
        condition: str | None = None,
        ordered: bool = False,
        timeout_s: float = Caps.timeout_s,
    ) -> None:
        if rows is None and row_count is None and value is None and condition is None:
            raise BadInput("Say what the result should be: its rows, their number, a value or a condition.")
        if condition is not None:
            _check(condition)
        self._rows = None if rows is None else [tuple(row) for row in rows]
        self._row_count = row_count
        self._value = value
        self._condition = condition
        self._ordered = ordered
        self._caps = Caps(timeout_s)

    def judge(self, question: Question, database: Database, sql: str, execution: Execution | None = None) -> Verdict:
        """The verdict; an answer without a statement is an EXECUTION_ERROR ``empty query``."""
        if is_blank(sql):
            return Verdict(Outcome.EXECUTION_ERROR, EMPTY_QUERY, self.name)
        execution = self._caps.complete(database, sql, execution)
        if failed := failure(execution, self.name):
            return failed
        if execution.truncated:
            raise MeritError("The result is too large to be checked; ask for fewer rows.")
        return judged(self._holds(execution), self.name)

    def _holds(self, execution: Execution) -> bool:
        rows = [tuple(row) for row in execution.rows]
        if self._row_count is not None and len(rows) != self._row_count:
            return False
        if self._value is not None and rows != [(self._value,)]:
            return False
        if self._rows is not None:
            same = rows == self._rows if self._ordered else Counter(rows) == Counter(self._rows)
            if not same:
                return False
        return self._condition is None or _condition_holds(self._condition, execution, self._caps)


def _check(condition: str) -> None:
    """Refuse what is no SQL expression. EXPLAIN compiles and never runs it; names are only known later."""
    if is_blank(condition):
        raise BadInput("The condition is empty.")
    message = ""
    if first_semicolon(condition) is not None:
        message = "it holds a semicolon"
    else:
        try:
            with sqlite3.connect(":memory:") as connection:
                connection.execute(f"EXPLAIN SELECT (\n{condition}\n)")
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            message = str(error)
    if message and not re.search(r"no such (?:column|table)|ambiguous|misuse of|not allowed", message):
        raise BadInput(f"The condition is not an SQL expression: {message}.")


def _condition_holds(condition: str, execution: Execution, caps: Caps) -> bool:
    from merit.database import Database

    with tempfile.TemporaryDirectory(prefix="merit-") as folder:
        path = Path(folder) / "result.sqlite"
        _write(path, execution)
        database = Database.open(path)
        answers = caps.run(database, f"SELECT (\n{condition}\n) FROM {TABLE}")
        if answers.status is Status.EXECUTED and not answers.rows:
            # No row to hold for: only a condition that reads the table by itself can still be true.
            answers = caps.run(database, f"SELECT (\n{condition}\n)")
    if answers.status is Status.EXECUTED:
        return all(row[0] not in (None, 0, "", "0") for row in answers.rows)
    if re.search(r"no such column", answers.error or ""):
        return False
    raise BadInput(f"The condition cannot be evaluated on this result: {answers.error}.")


def _write(path: Path, execution: Execution) -> None:
    """The result as a table without declared types, so that every value keeps its own."""
    names: list[str] = []
    for column in execution.columns:
        name, number = column or "column", 1
        while name.lower() in {taken.lower() for taken in names}:
            number += 1
            name = f"{column or 'column'}_{number}"
        names.append(name)
    quoted = ", ".join('"' + name.replace('"', '""').replace("\0", "") + '"' for name in names)
    connection = sqlite3.connect(path)
    try:
        connection.execute(f"CREATE TABLE {TABLE} ({quoted})")
        marks = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", execution.rows)
        connection.commit()
    finally:
        connection.close()
