"""What the verifiers share: their protocol, running a prediction, and running gold so that nothing of it gets out.

What this module does not know: when two results are equal.
"""

from __future__ import annotations

import inspect
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from merit.episode import Execution, Outcome, Question, Status, Verdict
from merit.errors import DatabaseNotFound, GoldUnavailable

if TYPE_CHECKING:
    from merit.database import Database

EMPTY_QUERY = "empty query"
NO_GOLD = "This question has no reference answer, so no one can compare with it."
GOLD_FAILS = "The reference answer of this question cannot be evaluated on this database; that is the dataset's fault."
GOLD_TOO_LARGE = "The result of this question is too large to be compared with the reference answer."
_KEPT_RESULTS = 4
_KEPT_ROWS = 20_000


class Verifier(Protocol):
    """Anything that judges. Optional: ``name``; ``needs_person`` (it asks a person about what executed);
    ``oracle`` (gold judges); ``keeps_gold`` (no text it gives or raises quotes gold, so that it may be shown even
    where the question has one)."""

    def judge(self, question: Question, database: Database, sql: str, execution: Execution | None = None) -> Verdict:
        """The verdict on ``sql``. ``execution`` is its result if it was run already, perhaps truncated."""
        ...


def run_statement(database: Database, sql: str, *, timeout_s: float, max_rows: int, **extras: Any) -> Execution:
    """``sql`` on any database, a foreign one included: it gets those of ``extras`` (``cancel``, ``max_bytes``) that its
    ``execute`` takes, and may answer with any object that has the fields of an ``Execution``."""
    taken = inspect.signature(database.execute).parameters.values()
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken):
        extras = {name: value for name, value in extras.items() if name in {parameter.name for parameter in taken}}
    found = database.execute(sql, timeout_s=timeout_s, max_rows=max_rows, **extras)
    if isinstance(found, Execution) and isinstance(found.rows, tuple):
        return found
    rows = tuple(tuple(row) for row in found.rows)
    return Execution(found.status, tuple(found.columns), rows, found.error, found.elapsed_s, found.truncated)


@dataclass(frozen=True)
class Caps:
    """A verifier's own limits for one statement: seconds, rows, and bytes (8 for each cell, and its text)."""

    timeout_s: float = 30.0
    max_rows: int = 200_000
    max_bytes: int = 64 << 20

    def run(self, database: Database, sql: str) -> Execution:
        """``sql`` on ``database`` within these limits; a file that has gone is an execution error."""
        try:
            return run_statement(
                database, sql, timeout_s=self.timeout_s, max_rows=self.max_rows, max_bytes=self.max_bytes
            )
        except DatabaseNotFound:
            return Execution(Status.EXECUTION_ERROR, error="database not found")

    def complete(self, database: Database, sql: str, execution: Execution | None) -> Execution:
        """``execution`` where it tells all, else a new one: a result that was cut for a screen is no evidence."""
        if execution is None or execution.truncated or execution.status is Status.CANCELLED:
            return self.run(database, sql)
        return execution


def failure(execution: Execution, by: str) -> Verdict | None:
    """The verdict that the database itself gives: on an error or a timeout; None for what executed."""
    if execution.status is Status.EXECUTED:
        return None
    timed_out = execution.status is Status.TIMEOUT
    return Verdict(Outcome.TIMEOUT if timed_out else Outcome.EXECUTION_ERROR, execution.error, by)


def judged(correct: bool, by: str) -> Verdict:
    """The verdict on what executed."""
    return Verdict(Outcome.CORRECT if correct else Outcome.DENOTATION_MISMATCH, None, by)


class GoldRunner:
    """Runs gold queries and keeps the last few small results, since each attempt at a question needs them again.

    Safe from several threads. Nothing it raises or prints quotes gold.
    """

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._results: OrderedDict[tuple[str, str, str], Execution] = OrderedDict()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "GoldRunner()"

    def run(self, database: Database, gold_sql: str) -> Execution:
        """The complete result of ``gold_sql``; ``GoldUnavailable`` where there is none."""
        key = (database.id, str(database.path), gold_sql)
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
        try:
            execution = self._caps.run(database, gold_sql)
        except Exception:  # noqa: BLE001 - whatever the reason, its text may quote gold
            execution = None
        # Raised outside the handler, so that not even the exception's context holds the message.
        if execution is None or execution.status is not Status.EXECUTED:
            raise GoldUnavailable(GOLD_FAILS)
        if execution.truncated:
            raise GoldUnavailable(GOLD_TOO_LARGE)
        if len(execution.rows) <= _KEPT_ROWS:
            with self._lock:
                self._results[key] = execution
                while len(self._results) > _KEPT_RESULTS:
                    self._results.popitem(last=False)
        return execution


def gold_of(question: Question) -> str:
    """The gold query; ``GoldUnavailable`` where the question has none."""
    if question.gold_sql is None or not question.gold_sql.strip():
        raise GoldUnavailable(NO_GOLD)
    return question.gold_sql
