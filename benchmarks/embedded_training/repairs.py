"""Repair and reflection prompts made from the model's own failures, in the product's words.

Cards are such real transitions of other questions of the same database: a positive one ends in the right answer, a
negative one in another wrong one. Sometimes the nearest questions give the cards, as retrieval would, sometimes any,
so that the model learns when a card helps. Histories hold one to six attempts.
What it does not know: where the failures come from (`own_failures`) and how packs are made (`collate`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.embedded_training.collate import Pack
from benchmarks.embedded_training.corpus import Asked, TrainingDatabase
from benchmarks.embedded_training.examples import Codec, in_tags, pack_texts
from benchmarks.embedded_training.own_failures import Attempt, Failed
from merit import prompts
from merit.episode import Outcome, Polarity
from merit.memory.entry import MemoryEntry

CARD_COUNTS = ((0, 0), (0, 0), (0, 0), (1, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 1))
"""(positive, negative) cards of a prompt, drawn evenly; a third have none, as the first questions of a stream have."""
LONGEST_PROMPT = 1500
"""Tokens; a longer repair prompt costs more than it teaches."""
MAX_TAILS = 8


@dataclass(frozen=True)
class Case:
    """A failed training question: its distinct wrong answers and the SQL to train towards."""

    asked: Asked
    attempts: tuple[Attempt, ...]

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.asked.question.text.lower().rstrip("?.").split())


def cases(database: TrainingDatabase, failures: Sequence[Failed]) -> list[Case]:
    """The failures of this database with their questions."""
    by_id = {asked.question.id: asked for asked in database.questions}
    return [
        Case(by_id[failed.question_id], failed.attempts)
        for failed in failures
        if failed.database_id == database.database.id and failed.attempts and failed.question_id in by_id
    ]


def repair_packs(
    databases: Sequence[TrainingDatabase], failures: Sequence[Failed], codec: Codec, rng: random.Random
) -> Iterator[Callable[[], list[Pack]]]:
    """One pass over all failed questions as repair prompts, in random order."""
    jobs: list[Callable[[], list[Pack]]] = []
    for database in databases:
        left = cases(database, failures)
        every = tuple(left)
        rng.shuffle(left)
        while left:
            group = _group(left, rng)
            left = [case for case in left if all(case is not taken for taken, _ in group)]
            schema, seed = rng.choice(database.schemas), rng.random()
            jobs.append(partial(_render, group, every, schema, codec, random.Random(seed)))
    rng.shuffle(jobs)
    yield from jobs


def _history(case: Case, rng: random.Random) -> tuple[Attempt, ...]:
    """One to six distinct attempts in random order; one half of the time a single one."""
    count = 1 if rng.random() < 0.5 else rng.randint(1, min(6, len(case.attempts)))
    return tuple(rng.sample(case.attempts, min(count, len(case.attempts))))


def _group(left: Sequence[Case], rng: random.Random) -> list[tuple[Case, tuple[Attempt, ...]]]:
    """A case and others whose latest attempt got the same feedback, so that their prompts begin alike."""
    first = (left[0], _history(left[0], rng))
    group = [first]
    for case in left[1:]:
        if len(group) == MAX_TAILS:
            break
        history = _history(case, rng)
        if _feedback(history[-1]) == _feedback(first[1][-1]):
            group.append((case, history))
    return group


def _feedback(attempt: Attempt) -> tuple[Outcome, str | None]:
    return attempt.status, attempt.error


def _render(
    group: Sequence[tuple[Case, tuple[Attempt, ...]]],
    every: Sequence[Case],
    schema: str,
    codec: Codec,
    rng: random.Random,
) -> list[Pack]:
    positive, negative = cards(group, every, schema, rng)
    pairs = []
    for case, history in group:
        latest = history[-1]
        prompt = prompts.repair_prompt(
            case.asked.question,
            schema,
            positive=positive,
            negative=negative,
            status=latest.status,
            failure_type=latest.failure_type,
            error=latest.error,
            history=[attempt.sql for attempt in history],
        )
        if codec.count(prompt) <= LONGEST_PROMPT:
            pairs.append((prompt, in_tags(case.asked.sql)))
    return pack_texts(pairs, codec)


def cards(
    group: Sequence[tuple[Case, tuple[Attempt, ...]]], every: Sequence[Case], schema: str, rng: random.Random
) -> tuple[list[MemoryEntry], list[MemoryEntry]]:
    """Positive and negative cards for a group, best first, never of a question of the group.

    Seven times in ten the failures nearest to the first question by its words and of its type, else any.
    """
    positives, negatives = rng.choice(CARD_COUNTS)
    taken = {case.asked.question.id for case, _ in group}
    others = [case for case in every if case.asked.question.id not in taken]
    rng.shuffle(others)
    if rng.random() < 0.7:
        anchor, latest = group[0][0], group[0][1][-1]
        others.sort(key=lambda case: -_likeness(anchor, case) - (case.attempts[-1].failure_type == latest.failure_type))
    good = [_entry(case, Polarity.POSITIVE, schema) for case in others[:positives]]
    rest = [case for case in others[positives:] if len(case.attempts) > 1]
    return good, [_entry(case, Polarity.NEGATIVE, schema) for case in rest[:negatives]]


def _likeness(one: Case, other: Case) -> float:
    return len(one.words & other.words) / max(1, len(one.words | other.words))


def _entry(case: Case, polarity: Polarity, schema: str) -> MemoryEntry:
    before, last = case.attempts[0], case.attempts[-1]
    good = polarity is Polarity.POSITIVE
    quoted = last
    question = case.asked.question
    return MemoryEntry(
        polarity=polarity,
        failure_type=quoted.failure_type,
        question=question.text,
        schema=schema,
        database_id=question.database_id,
        failed_sql=last.sql if good else before.sql,
        new_sql=case.asked.sql if good else last.sql,
        status=quoted.status,
        db_error=quoted.error,
        outcome=Outcome.CORRECT if good else quoted.status,
        question_id=question.id,
        episode_id=question.id,
        position=0,
        iteration=len(case.attempts),
    )


def reflection_packs(
    databases: Sequence[TrainingDatabase], failures: Sequence[Failed], codec: Codec, rng: random.Random, share: float
) -> Iterator[Callable[[], list[Pack]]]:
    """Reflection prompts for a share of the failed questions; what to write is said from the outcomes alone."""
    for database in databases:
        for case in cases(database, failures):
            if rng.random() < share:
                history, schema = _history(case, rng), rng.choice(database.schemas)
                yield partial(_reflection, case, history, schema, codec)


def _reflection(case: Case, history: Sequence[Attempt], schema: str, codec: Codec) -> list[Pack]:
    prompt = prompts.reflection_prompt(
        case.asked.question,
        schema,
        failure_type=history[-1].failure_type,
        attempts=[(a.sql, a.status, a.error) for a in history],
    )
    return pack_texts([(prompt, f"<reflection>{reflection(history)}</reflection>")], codec)


def reflection(history: Sequence[Attempt]) -> str:
    """What can be said of the attempts without guessing: which message or outcome each had."""
    said = []
    for number, attempt in enumerate(history, 1):
        if attempt.error:
            said.append(f"Attempt {number} did not run: {attempt.error}.")
        elif attempt.status is Outcome.TIMEOUT:
            said.append(f"Attempt {number} did not finish in time.")
        else:
            said.append(f"Attempt {number} ran, but its rows were not accepted.")
    return " ".join([*said, "Check names against the schema and write a query that differs from these."])
