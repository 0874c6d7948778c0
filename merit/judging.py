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
from merit.errors import DatabaseNotFound, GoldUnavailable, JudgementStopped, MeritError, told_as
from merit.settings import settings
from merit.sql_lexing import is_blank
from merit.verification.base import EMPTY_QUERY, GOLD_FAILS, GOLD_TOO_LARGE, NO_GOLD, Verifier, run_statement
from merit.waiting import Stopped, finish, wait_for

if TYPE_CHECKING:
    from merit.database import Database

DATABASE_NOT_FOUND = "database not found"
"""The error when the file is not there (rule 11)."""
MAX_ROWS = 1000
"""Most rows that are fetched of one attempt; a verifier that needs more runs the statement itself."""
CANNOT_OPEN = "unable to open database file"
"""What SQLite says of a file that is not there any more."""
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
            execution = run_statement(
                database, sql, timeout_s=settings().statement_timeout_s, max_rows=MAX_ROWS, cancel=cancel
            )
    except DatabaseNotFound:
        return Execution(Status.EXECUTION_ERROR, error=DATABASE_NOT_FOUND)
    if execution.status is Status.CANCELLED:
        raise Stopped
    if execution.error == CANNOT_OPEN and not Path(database.path).exists():
        return Execution(Status.EXECUTION_ERROR, error=DATABASE_NOT_FOUND)  # it was moved away since it was opened
    return execution


def verdict_of(
    verifier: Verifier, question: Question, database: Database, sql: str, execution: Execution, cancel: threading.Event
) -> Verdict:
    """The verifier's word, which may take as long as a person takes; ``cancel`` still works (``Stopped``).

    An empty answer is a failure without asking, also where gold is empty. ``JudgementStopped`` passes through. The
    texts of a verifier are kept where there is no gold to quote, or where it is known to keep gold to itself.
    """
    if is_blank(sql):
        return Verdict(Outcome.EXECUTION_ERROR, EMPTY_QUERY, BY_DATABASE)
    asked = wait_for(lambda _say, _stop: verifier.judge(question, database, sql, execution), cancel)
    trusted = question.gold_sql is None or bool(getattr(verifier, "keeps_gold", False))
    verdict = None
    try:
        given = finish(asked)
        verdict = Verdict(Outcome(given.outcome), given.error if trusted else None, str(given.by))
    except GoldUnavailable as error:
        # The class promises no quotation of gold, but a foreign verifier may not know that: only known sentences.
        known = str(error) in (NO_GOLD, GOLD_FAILS, GOLD_TOO_LARGE)
        raise GoldUnavailable(str(error) if known else GOLD_FAILS) from None
    except (Stopped, JudgementStopped):
        raise
    except Exception as error:  # whatever a foreign verifier raises, its text may quote gold
        if trusted and isinstance(error, MeritError):
            raise
        raise MeritError(f"The verifier failed ({type(error).__name__}).") from None
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
