"""The model's own wrong answers on training questions, run on the real databases: what repair is trained on.

For every question: the greedy answer and, where that is wrong, a few sampled ones. Wrong ones are kept with the
status, message and type that the product would show; several of one question make a history. One JSON line per
question, without attempts where the answer was right, so that a killed run goes on where it was.
No gold is written: the SQL to train towards is looked up in the corpus by question id.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.embedded_training.corpus import Asked, TrainingDatabase
from benchmarks.embedded_training.examples import chunks
from merit import prompts
from merit.database import Database
from merit.diagnosis import diagnose
from merit.episode import FailureType, Outcome, Status
from merit.verification import spider_equal

LONGEST_SQL = 400
"""Characters; a longer wrong answer is a model that repeats itself and teaches nothing."""


@dataclass(frozen=True)
class Attempt:
    """One wrong answer with what the product would say of it."""

    sql: str
    status: Outcome
    error: str | None
    failure_type: FailureType


@dataclass(frozen=True)
class Failed:
    """The distinct wrong answers to one question, in the order in which they were given."""

    question_id: str
    database_id: str
    attempts: tuple[Attempt, ...]


def judge(database: Database, asked: Asked, sql: str) -> Attempt | None:
    """None where the answer is right by the Spider semantics, else the failure. Gold is in no part of it."""
    if not sql:
        return _failure(sql, Outcome.EXECUTION_ERROR, "empty query")
    execution = database.execute(sql, timeout_s=3)
    if execution.status is Status.TIMEOUT:
        return _failure(sql, Outcome.TIMEOUT, None)
    if execution.status is not Status.EXECUTED:
        return _failure(sql, Outcome.EXECUTION_ERROR, execution.error)
    gold = database.execute(asked.sql, timeout_s=10)
    if spider_equal(gold.rows, execution.rows, "order by" in asked.sql.lower()):
        return None
    return _failure(sql, Outcome.DENOTATION_MISMATCH, None)


def _failure(sql: str, status: Outcome, error: str | None) -> Attempt:
    return Attempt(sql, status, error, diagnose(status, error).failure_type)


def gather(
    databases: Sequence[TrainingDatabase],
    answer: Callable[[list[str], float], list[str]],
    out: Path,
    *,
    deadline: float,
    samples: int = 3,
    temperature: float = 0.8,
    at_once: int = 32,
) -> None:
    """Writes the failures of all questions to `out` until all are done or `time.monotonic()` passes `deadline`.

    `answer(prompts, temperature)` gives one text a prompt; prompts of one call share database and schema. Databases
    take turns, so that a run that is cut short has seen all of them.
    """
    done = {failed.question_id for failed in read_failures(out)} if out.exists() else set()
    by_database = [
        [(database, part) for part in chunks([a for a in database.questions if a.question.id not in done], at_once)]
        for database in databases
    ]
    turns = [turn for turns in zip_longest(*by_database) for turn in turns if turn is not None]
    with out.open("a", encoding="utf-8") as file:
        file.write("\n" if out.stat().st_size else "")  # a kill may have cut the last line short
        for number, (database, part) in enumerate(turns):
            if time.monotonic() > deadline:
                return
            schema = database.schemas[number % 2]
            for failed in _failures(database, part, schema, answer, samples, temperature):
                file.write(json.dumps(asdict(failed), ensure_ascii=False) + "\n")
            file.flush()


def _failures(
    database: TrainingDatabase,
    asked: Sequence[Asked],
    schema: str,
    answer: Callable[[list[str], float], list[str]],
    samples: int,
    temperature: float,
) -> list[Failed]:
    texts = [prompts.initial_prompt(a.question, schema) for a in asked]
    wrong: list[dict[str, Attempt]] = [{} for _ in asked]

    def note(which: Sequence[int], answers: Sequence[str]) -> None:
        for i, text in zip(which, answers, strict=True):
            sql = prompts.extract_sql(text)
            if len(sql) <= LONGEST_SQL and (failure := judge(database.database, asked[i], sql)):
                wrong[i].setdefault(" ".join(sql.lower().split()), failure)

    note(range(len(asked)), answer(texts, 0.0))
    again = [i for i, failures in enumerate(wrong) if failures for _ in range(samples)]
    for part in chunks(again, 3 * len(asked)):
        note(part, answer([texts[i] for i in part], temperature))
    return [
        Failed(a.question.id, database.database.id, tuple(failures.values()))
        for a, failures in zip(asked, wrong, strict=True)
    ]


def read_failures(path: Path) -> list[Failed]:
    """The lines of a failures file; a last line that a kill cut short is left out."""
    result = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            raw: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            continue
        attempts = tuple(
            Attempt(a["sql"], Outcome(a["status"]), a["error"], FailureType(a["failure_type"])) for a in raw["attempts"]
        )
        result.append(Failed(raw["question_id"], raw["database_id"], attempts))
    return result
