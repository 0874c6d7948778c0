"""Nobody judges: executing ends the episode, and nothing is ever called correct."""

from __future__ import annotations

import pytest
from verification_support import ENDLESS, asks

from merit.database import Database
from merit.episode import Execution, Status
from merit.verification import ExecutionOnlyVerifier


@pytest.mark.parametrize(
    ("sql", "outcome", "error"),
    [
        ("SELECT name FROM boat", "NOT_JUDGED", None),
        ("SELECT name FROM boat WHERE 0", "NOT_JUDGED", None),
        ("SELECT keel FROM boat", "EXECUTION_ERROR", "no such column: keel"),
        ("DELETE FROM boat", "EXECUTION_ERROR", "attempt to write a readonly database"),
        (ENDLESS, "TIMEOUT", "TIMEOUT"),
        ("", "EXECUTION_ERROR", "empty query"),
        ("-- nothing", "EXECUTION_ERROR", "empty query"),
    ],
)
def test_the_database_alone_decides(boats: Database, sql: str, outcome: str, error: str | None) -> None:
    found = ExecutionOnlyVerifier(timeout_s=0.4).judge(asks("SELECT name FROM boat"), boats, sql)
    assert (found.outcome, found.error) == (outcome, error)


def test_gold_is_not_looked_at(boats: Database) -> None:
    known = Execution(Status.EXECUTED, ("n",), ((1,),))
    assert ExecutionOnlyVerifier().judge(asks("SELECT broken"), boats, "SELECT 1", known).outcome == "NOT_JUDGED"
