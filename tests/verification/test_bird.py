"""BIRD: equal sets of rows, one deadline, gold kept inside."""

from __future__ import annotations

import traceback
from dataclasses import replace

import pytest
from verification_support import ENDLESS, asks

from merit.database import Database
from merit.episode import Execution, Status
from merit.errors import GoldUnavailable
from merit.verification import PUBLISHED, BirdVerifier, Fault, bird_equal

PAIRS = [
    ("SELECT name, length FROM boat", "SELECT length, name FROM boat", False),
    ("SELECT dock FROM boat", "SELECT DISTINCT dock FROM boat", True),
    ("SELECT name FROM boat ORDER BY no", "SELECT name FROM boat ORDER BY no DESC", True),
    ("SELECT length FROM boat WHERE no = 1", "SELECT draught FROM boat WHERE no = 1", True),
    ("SELECT length FROM boat WHERE no = 1", "SELECT code FROM boat WHERE no = 1", False),
    ("SELECT 0.1 + 0.2", "SELECT 0.3", False),
    ("SELECT NULL", "SELECT ''", False),
    ("SELECT name FROM boat WHERE no > 9", "SELECT no, name FROM boat WHERE 0", True),
    ("SELECT count(*) FROM boat WHERE 0", "SELECT sum(no) FROM boat WHERE 0", False),
    ("SELECT 1, 1.5", "SELECT 1.0, 1.5", True),
    ("SELECT dock, avg(value) FROM boat GROUP BY dock", "SELECT dock, avg(value) FROM boat GROUP BY dock", True),
]


@pytest.mark.parametrize(("gold", "sql", "correct"), PAIRS)
@pytest.mark.parametrize("official", [True, False])
def test_sets_of_rows(boats: Database, gold: str, sql: str, correct: bool, official: bool) -> None:
    found = BirdVerifier(official=official).judge(asks(gold), boats, sql)
    assert found.outcome == ("CORRECT" if correct else "DENOTATION_MISMATCH")


def test_the_comparison_takes_lists_bytes_and_mixed_types() -> None:
    assert bird_equal([[1, b"x"], [1, b"x"]], [(1.0, b"x")])
    assert not bird_equal([(1,)], [("1",)])
    assert bird_equal([], [])


@pytest.mark.parametrize("sql", ["", " ", "-- no idea", ";"])
def test_an_empty_answer_is_never_correct_but_in_the_published_mode(boats: Database, sql: str) -> None:
    gold = asks("SELECT name FROM boat WHERE no > 9")
    found = BirdVerifier().judge(gold, boats, sql)
    assert (found.outcome, found.error) == ("EXECUTION_ERROR", "empty query")
    assert BirdVerifier(faults=PUBLISHED).judge(gold, boats, sql).outcome == "CORRECT"


def test_a_prediction_that_is_not_done_is_a_timeout(boats: Database) -> None:
    assert BirdVerifier(timeout_s=0.4).judge(asks("SELECT 1"), boats, ENDLESS).outcome == "TIMEOUT"


@pytest.mark.parametrize("gold", ["SELECT plover7734 FROM boat", ENDLESS.replace("n(i)", "n(i) /*plover7734*/")])
@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT keel FROM boat"])
def test_gold_that_cannot_run_is_reported_apart_and_not_quoted(boats: Database, gold: str, sql: str) -> None:
    """Gold and prediction both failing was a hit in some scripts; it is no verdict at all."""
    with pytest.raises(GoldUnavailable) as caught:
        BirdVerifier(timeout_s=0.4).judge(asks(gold), boats, sql)
    assert "plover7734" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None
    published = BirdVerifier(faults=PUBLISHED, timeout_s=0.4).judge(asks(gold), boats, sql)
    assert published.outcome == ("DENOTATION_MISMATCH" if sql == "SELECT 1" else "EXECUTION_ERROR")


def test_both_share_one_deadline_officially(boats: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished prediction is wrong there because gold took the rest of the time."""
    known = Execution(Status.EXECUTED, ("n",), ((1,),), elapsed_s=20.0)
    monkeypatch.setattr(Database, "execute", lambda *_, **__: replace(known, elapsed_s=15.0))
    gold = asks("SELECT 1")
    assert BirdVerifier(timeout_s=30).judge(gold, boats, "SELECT 1", known).outcome == "DENOTATION_MISMATCH"
    assert BirdVerifier(timeout_s=40).judge(gold, boats, "SELECT 1", known).outcome == "CORRECT"
    assert BirdVerifier(official=False, timeout_s=30).judge(gold, boats, "SELECT 1", known).outcome == "CORRECT"
    only = BirdVerifier(faults=[Fault.SHARED_DEADLINE], timeout_s=30)
    assert only.judge(gold, boats, "SELECT 1", known).outcome == "DENOTATION_MISMATCH"


def test_a_prediction_over_the_cap_is_judged_only_where_that_can_be(boats: Database) -> None:
    verifier = BirdVerifier(max_rows=10)
    with pytest.raises(GoldUnavailable):
        verifier.judge(asks("SELECT 1"), boats, "SELECT 1 FROM boat AS a, boat AS b")
    assert verifier.judge(asks("SELECT 1"), boats, "SELECT a.no FROM boat AS a, boat AS b").outcome == (
        "DENOTATION_MISMATCH"
    )


def test_a_question_without_gold_has_no_verdict(boats: Database) -> None:
    with pytest.raises(GoldUnavailable):
        BirdVerifier().judge(asks(None), boats, "SELECT 1")
