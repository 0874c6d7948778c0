"""Run one statement and ask whether it is right: every way in which database and verifier can answer or fail.

The message that goes on to diagnosis, prompts and memory is the database's own about the model's statement; words of
a verifier, which may quote gold, come second, and those of foreign exceptions never.

What this module does not know: the loop, what is done with a verdict, memory.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from merit.episode import Execution, Outcome, Question, Status, Verdict
from merit.errors import DatabaseNotFound, GoldUnavailable, told_as
from merit.settings import settings
from merit.sql_lexing import is_blank
from merit.verification.base import EMPTY_QUERY, GOLD_FAILS, GOLD_TOO_LARGE, NO_GOLD, Verifier
from merit.waiting import Stopped, finish, wait_for

if TYPE_CHECKING:
    from merit.database import Database

DATABASE_NOT_FOUND = "database not found"
"""The error when the file is not there (rule 11)."""
BY_DATABASE = "database"
"""Who judged where the database alone decides."""


def schema_of(database: Database) -> str:
    """The schema text of a prompt; of a file that is gone its name alone."""
    try:
        with told_as("The schema of the database could not be read"):
            return database.schema("listing")
    except DatabaseNotFound:
        return f"Database: {database.id}"


def execute(database: Database, sql: str, cancel: threading.Event) -> Execution:
    """Run ``sql``; an empty one never reaches the database. Raises ``Stopped`` when the statement was interrupted."""
    if is_blank(sql):
        return Execution(Status.EXECUTION_ERROR, error=EMPTY_QUERY)
    try:
        with told_as("The statement could not be run"):
            execution = database.execute(sql, timeout_s=settings().statement_timeout_s, cancel=cancel)
    except DatabaseNotFound:
        return Execution(Status.EXECUTION_ERROR, error=DATABASE_NOT_FOUND)
    if execution.status is Status.CANCELLED:
        raise Stopped
    if execution.status is Status.EXECUTION_ERROR and not Path(database.path).exists():
        return Execution(Status.EXECUTION_ERROR, error=DATABASE_NOT_FOUND)  # it was moved away since it was opened
    return execution


def verdict_of(
    verifier: Verifier, question: Question, database: Database, sql: str, execution: Execution, cancel: threading.Event
) -> Verdict:
    """The verifier's word, which may take as long as a person takes; ``cancel`` still works (``Stopped``).

    An empty answer is a failure without asking, also where gold is empty. ``JudgementStopped`` passes through.
    """
    if is_blank(sql):
        return Verdict(Outcome.EXECUTION_ERROR, EMPTY_QUERY, BY_DATABASE)
    asked = wait_for(lambda _say, _stop: verifier.judge(question, database, sql, execution), cancel)
    verdict = None
    try:
        with told_as("The verifier failed"):
            given = finish(asked)
            verdict = Verdict(Outcome(given.outcome), given.error, str(given.by))
    except GoldUnavailable as error:
        # The class promises no quotation of gold, but a foreign verifier may not know that: only known sentences.
        known = str(error) in (NO_GOLD, GOLD_FAILS, GOLD_TOO_LARGE)
        raise GoldUnavailable(str(error) if known else GOLD_FAILS) from None
    finally:
        if verdict is None:
            _release(verifier)
    return verdict


def message_of(verdict: Verdict, execution: Execution) -> str | None:
    """The DBMS message that belongs to a verdict; None where there is none."""
    if verdict.outcome is Outcome.TIMEOUT:
        return "TIMEOUT"
    if verdict.outcome is Outcome.EXECUTION_ERROR:
        return execution.error or verdict.error
    return None


def _release(verifier: Verifier) -> None:
    """Let a verifier that waits for a person go, or its thread would wait for ever."""
    answer = getattr(verifier, "answer", None)
    if callable(answer):
        answer("stop")
