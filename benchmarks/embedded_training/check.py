"""First-try and repaired accuracy of a network in training, on databases held out of Spider train.

The figures that the project reports come from `benchmarks/embedded_model.py`, through the product's own modules; this
quick check only chooses between training runs. Repair is the strategy `iterative`: no cards, no reflections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.embedded_training.corpus import Asked, TrainingDatabase
from benchmarks.embedded_training.examples import chunks
from benchmarks.embedded_training.own_failures import Attempt, judge
from merit import prompts
from merit.episode import Outcome

Answer = Callable[[list[str], float], list[str]]


@dataclass(frozen=True)
class Checked:
    """Counts: questions, right at first, first answers that did not run; per repair the right ones so far.

    `repeated` of `repairs` repair answers equalled an earlier attempt of their question.
    """

    asked: int
    right: int
    errors: int
    after_repair: tuple[int, ...]
    repairs: int
    repeated: int


def check(databases: Sequence[TrainingDatabase], answer: Answer, *, budget: int = 0, at_once: int = 32) -> Checked:
    """Asks all questions, then repairs the wrong ones up to `budget` times by the strategy `iterative`."""
    asked = right = errors = repairs = repeated = 0
    mended = [0] * budget
    for database in databases:
        schema = database.schemas[0]
        for part in chunks(database.questions, at_once):
            texts = answer([prompts.initial_prompt(a.question, schema) for a in part], 0.0)
            open_cases: list[tuple[Asked, tuple[Attempt, ...]]] = [
                (a, (failure,))
                for a, text in zip(part, texts, strict=True)
                if (failure := judge(database.database, a, prompts.extract_sql(text)))
            ]
            asked, right = asked + len(part), right + len(part) - len(open_cases)
            errors += sum(history[0].status is not Outcome.DENOTATION_MISMATCH for _, history in open_cases)
            for k in range(budget):
                before = len(open_cases)
                repairs += before
                open_cases, again = _repair(database, schema, open_cases, answer, at_once // 4)
                repeated += again
                mended[k] += before - len(open_cases)
    totals = tuple(right + sum(mended[: k + 1]) for k in range(budget))
    return Checked(asked, right, errors, totals, repairs, repeated)


def _repair(
    database: TrainingDatabase,
    schema: str,
    open_cases: Sequence[tuple[Asked, tuple[Attempt, ...]]],
    answer: Answer,
    at_once: int,
) -> tuple[list[tuple[Asked, tuple[Attempt, ...]]], int]:
    """One repair for each case: those still wrong, and how many answers repeated an earlier attempt."""
    still, repeated = [], 0
    by_feedback = sorted(open_cases, key=lambda case: (case[1][-1].status, case[1][-1].error or ""))
    for part in chunks(by_feedback, at_once):
        texts = [
            prompts.repair_prompt(
                asked.question,
                schema,
                status=history[-1].status,
                failure_type=history[-1].failure_type,
                error=history[-1].error,
                history=[attempt.sql for attempt in history],
            )
            for asked, history in part
        ]
        for (asked, history), text in zip(part, answer(texts, 0.0), strict=True):
            sql = prompts.extract_sql(text)
            repeated += any(sql == attempt.sql for attempt in history)
            if failure := judge(database.database, asked, sql):
                still.append((asked, (*history, failure)))
    return still, repeated
