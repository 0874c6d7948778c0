"""A person judges: from another thread, early, late, twice, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from verification_support import ENDLESS, asks

from merit.database import Database
from merit.episode import Execution, Status, Verdict
from merit.errors import BadInput, JudgementStopped
from merit.verification import PersonVerifier

RESULT = Execution(Status.EXECUTED, ("n",), ((1,),))


@pytest.fixture
def asked(boats: Database) -> Callable[[PersonVerifier, str], Future[Verdict]]:
    """Starts a judgement in a thread of its own."""
    pool = ThreadPoolExecutor(4)

    def start(verifier: PersonVerifier, sql: str) -> Future[Verdict]:
        return pool.submit(verifier.judge, asks(None), boats, sql, RESULT)

    return start


Start = Callable[[PersonVerifier, str], Future[Verdict]]


def waits(future: Future[Verdict]) -> bool:
    try:
        future.result(0.15)
    except TimeoutError:
        return True
    return False


@pytest.mark.parametrize(("word", "outcome"), [("yes", "CORRECT"), ("no", "DENOTATION_MISMATCH")])
def test_judging_waits_for_the_answer(asked: Start, word: str, outcome: str) -> None:
    verifier = PersonVerifier()
    judgement = asked(verifier, "SELECT 1")
    assert waits(judgement)
    verifier.answer(word)
    found = judgement.result(2)
    assert (found.outcome, found.by, found.error) == (outcome, "person", None)


def test_stop_ends_the_waiting_and_only_that_judgement(asked: Start) -> None:
    verifier = PersonVerifier()
    judgement = asked(verifier, "SELECT 1")
    verifier.answer("stop")
    with pytest.raises(JudgementStopped):
        judgement.result(2)
    again = asked(verifier, "SELECT 1")
    assert waits(again)
    verifier.answer("yes")
    assert again.result(2).outcome == "CORRECT"


def test_an_early_answer_counts(asked: Start) -> None:
    """The person sees the request before the loop's thread has begun to wait; the answer was lost and both waited."""
    verifier = PersonVerifier()
    verifier.answer("no")
    assert asked(verifier, "SELECT 1").result(2).outcome == "DENOTATION_MISMATCH"


def test_the_first_of_two_answers_counts_and_judges_once(asked: Start) -> None:
    verifier = PersonVerifier()
    verifier.answer("no")
    verifier.answer("yes")
    assert asked(verifier, "SELECT 1").result(2).outcome == "DENOTATION_MISMATCH"
    second = asked(verifier, "SELECT 2")
    assert waits(second)
    verifier.answer("stop")
    with pytest.raises(JudgementStopped):
        second.result(2)


def test_a_second_click_never_judges_the_next_attempt(asked: Start) -> None:
    """A double click on No condemned the next attempt before it was shown."""
    verifier = PersonVerifier()
    judgement = asked(verifier, "SELECT 1")
    verifier.answer("no", sql="SELECT 1")
    assert judgement.result(2).outcome == "DENOTATION_MISMATCH"
    verifier.answer("no", sql="SELECT 1")
    following = asked(verifier, "SELECT 2")
    assert waits(following)
    verifier.answer("yes", sql="SELECT 2")
    assert following.result(2).outcome == "CORRECT"


def test_stop_wins_over_other_answers(asked: Start) -> None:
    verifier = PersonVerifier()
    verifier.answer("yes", sql="SELECT 1")
    verifier.answer("stop")
    verifier.answer("yes", sql="SELECT 1")
    with pytest.raises(JudgementStopped):
        asked(verifier, "SELECT 1").result(2)


@pytest.mark.parametrize(
    ("sql", "outcome", "error"),
    [
        ("SELECT keel FROM boat", "EXECUTION_ERROR", "no such column: keel"),
        (ENDLESS, "TIMEOUT", "TIMEOUT"),
        ("-- nothing", "EXECUTION_ERROR", "empty query"),
    ],
)
def test_nobody_is_asked_about_what_did_not_execute(boats: Database, sql: str, outcome: str, error: str) -> None:
    found = PersonVerifier(timeout_s=0.4).judge(asks(None), boats, sql)
    assert (found.outcome, found.error) == (outcome, error)


def test_an_answer_is_yes_no_or_stop() -> None:
    with pytest.raises(BadInput, match="yes, no, stop"):
        PersonVerifier().answer("maybe")


def test_many_answers_at_once_do_no_harm(asked: Start) -> None:
    verifier = PersonVerifier()
    judgement = asked(verifier, "SELECT 1")
    threads = [threading.Thread(target=verifier.answer, args=("yes",)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert judgement.result(2).outcome == "CORRECT"
