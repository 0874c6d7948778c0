"""How the failures of real predictions route: every answer of a file is run, judged, and named by the rules.

Gold stays in the verifier: what comes out is what the model wrote, what the database said, and a label.

What this module does not know: how datasets and files of predictions are read (``merit.streams``), and threads.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merit.diagnosis import FAILURES, diagnose
from merit.episode import FailureType, Outcome, Question
from merit.errors import DatabaseNotFound, DatabaseUnreadable, GoldUnavailable
from merit.judging import DATABASE_NOT_FOUND, execute, message_of, verdict_of
from merit.routing.labelled import POPULATION, Failure
from merit.verification import BirdVerifier, SpiderVerifier, Verifier

if TYPE_CHECKING:
    from merit.streams.datasets import Dataset
    from merit.streams.predictions import Predictions

ANY_OTHER_MESSAGE = 12
"""The rule that takes every message the others do not know."""


@dataclass(frozen=True)
class Routed:
    """What became of one answer; ``failure`` is None where it is correct, or where nobody can judge it."""

    outcome: Outcome
    failure: Failure | None = None


@dataclass(frozen=True)
class Distribution:
    """The answers of one file: how many, how many of them correct, not judged and empty, the failures, their labels,
    the rules that gave them, and the messages that no rule knows (rule 12)."""

    answers: int
    correct: int
    not_judged: int
    empty: int
    failures: tuple[Failure, ...]
    types: Counter[FailureType]
    rules: Counter[int]
    unknown: Counter[str]


def verifier_of(dataset: Dataset) -> Verifier:
    """The judge of a dataset: its benchmark's official one, for others Spider's without its known faults."""
    if dataset.benchmark == "bird":
        return BirdVerifier()
    return SpiderVerifier(official=dataset.benchmark == "spider")


def route(dataset: Dataset, predictions: Predictions, cancel: threading.Event) -> Iterator[Routed]:
    """Every answer the file has, in the order of the dataset; ``Stopped`` once ``cancel`` is set."""
    verifier = verifier_of(dataset)
    answers = predictions.by_id
    for question in dataset.questions:
        if question.id in answers:
            yield _routed(question, answers[question.id], dataset, verifier, cancel)


def _routed(question: Question, sql: str, dataset: Dataset, verifier: Verifier, cancel: threading.Event) -> Routed:
    try:
        database = dataset.database(question.database_id)
        execution = execute(database, sql, cancel)
        verdict = verdict_of(verifier, question, database, sql, execution, cancel)
    except (DatabaseNotFound, DatabaseUnreadable):
        return Routed(Outcome.EXECUTION_ERROR, _failure(question, sql, Outcome.EXECUTION_ERROR, DATABASE_NOT_FOUND))
    except GoldUnavailable:
        return Routed(Outcome.NOT_JUDGED)
    if verdict.outcome not in FAILURES:
        return Routed(verdict.outcome)
    message = message_of(verdict, execution) or ""
    return Routed(verdict.outcome, _failure(question, sql, verdict.outcome, message))


def _failure(question: Question, sql: str, outcome: Outcome, message: str) -> Failure:
    return Failure(
        question.id,
        outcome,
        message,
        source=POPULATION,
        database_id=question.database_id,
        question=question.text,
        evidence=question.evidence,
        sql=sql,
    )


def distribution(routed: Iterable[Routed], *, with_empty: bool = True) -> Distribution:
    """The counts over what was routed. An empty answer is a failure (spec §5); without ``with_empty`` it is only
    counted as empty."""
    everything = tuple(routed)
    kept = everything if with_empty else tuple(one for one in everything if not _is_empty(one))
    failures = tuple(one.failure for one in kept if one.failure is not None)
    named = [diagnose(failure.status, failure.message) for failure in failures]
    outcomes = Counter(one.outcome for one in kept)
    return Distribution(
        len(kept),
        outcomes[Outcome.CORRECT],
        outcomes[Outcome.NOT_JUDGED],
        sum(map(_is_empty, everything)),
        failures,
        Counter(one.failure_type for one in named),
        Counter(one.rule for one in named),
        Counter(failure.message for failure, one in zip(failures, named, strict=True) if one.rule == ANY_OTHER_MESSAGE),
    )


def _is_empty(one: Routed) -> bool:
    return one.failure is not None and not one.failure.sql.strip()
