"""Nothing of Spider dev or of the sample databases is in the training data of the embedded model.

Checked on what training really reads (`corpus.read`), by database id, question text, near-duplicate and gold text.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks.embedded_training.corpus import HELD_OUT, read
from merit.database import samples

DATA = Path(os.environ.get("MERIT_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data") / "spider"
pytestmark = pytest.mark.skipif(
    not (DATA / "train_spider.json").is_file(), reason=f"needs Spider at {DATA} (MERIT_TEST_DATA names another place)"
)
NEAR = 0.8
"""Share of common three-word runs from which two questions count as near-duplicates."""


def words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z0-9]+", text.lower()))


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    tokens = words(text)
    return frozenset(tokens[i : i + 3] for i in range(max(1, len(tokens) - 2)))


@cache
def trained_on() -> tuple[tuple[str, str, str], ...]:
    """(database id, question, SQL) of every training question."""
    databases = read(DATA, count_tokens=lambda text: len(text) // 3)
    return tuple((d.database.id, a.question.text, a.sql) for d in databases for a in d.questions)


@cache
def reported_on() -> tuple[tuple[str, str, str], ...]:
    """(database id, question, gold) of Spider dev and of all sample databases."""
    dev = json.loads((DATA / "dev.json").read_text(encoding="utf-8"))
    ours = [(id, q.text, q.gold_sql or "") for id in samples.ids() for q in samples.questions(id)]
    return tuple([(line["db_id"], line["question"], line["query"]) for line in dev] + ours)


def test_training_reads_no_database_that_is_reported_on() -> None:
    trained = {id.lower() for id, _, _ in trained_on()}
    assert len(trained) > 100
    assert not trained & {id.lower() for id, _, _ in reported_on()}


def test_training_reads_no_database_that_choices_are_made_on() -> None:
    assert not {id for id, _, _ in trained_on()} & HELD_OUT
    assert {d.database.id for d in read(DATA, keep=HELD_OUT.__contains__, count_tokens=len, longest_schema=10**6)} == (
        HELD_OUT
    )


def test_no_reported_question_is_trained_on() -> None:
    """Four questions of Spider train stood in dev word for word, about other databases; corpus.py leaves them out."""
    trained = {words(question) for _, question, _ in trained_on()}
    assert not [question for _, question, _ in reported_on() if words(question) in trained]


def test_near_duplicates_of_reported_questions_are_absent() -> None:
    by_shingle: dict[tuple[str, ...], list[int]] = {}
    trained = [(question, shingles(question)) for _, question, _ in trained_on()]
    for number, (_, runs) in enumerate(trained):
        for run in runs:
            by_shingle.setdefault(run, []).append(number)
    near = []
    for id, question, _ in reported_on():
        runs = shingles(question)
        if len(words(question)) < 6:
            continue
        for number in {n for run in runs for n in by_shingle.get(run, ())}:
            other = trained[number][1]
            if len(runs & other) / len(runs | other) >= NEAR:
                near.append((id, question, trained[number][0]))
    assert not near
