"""Repair examples of the embedded model's training: real failures, cards of other questions, no gold in a prompt.

A word tokenizer and a small shop stand in for the real ones.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from support import build_shop

from benchmarks.embedded_training.__main__ import mixed
from benchmarks.embedded_training.check import check
from benchmarks.embedded_training.corpus import Asked, TrainingDatabase
from benchmarks.embedded_training.examples import Codec, in_bird_form, in_tags, initial_packs
from benchmarks.embedded_training.own_failures import Attempt, Failed, gather, judge, read_failures
from benchmarks.embedded_training.repairs import Case, cards, reflection, repair_packs
from merit.database import Database
from merit.episode import FailureType, Outcome, Question

GOLD = {
    "How many products are there?": "SELECT COUNT(*) FROM product",
    "What are the products called?": "SELECT name FROM product",
    "What do all products cost together?": "SELECT SUM(price) FROM product",
    "What is the highest price?": "SELECT MAX(price) FROM product",
}


class Words:
    """A tokenizer whose tokens are words; its chat frame is three words."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
        return f"<user> {messages[0]['content']} <assistant> "

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [self.known.setdefault(word, len(self.known)) for word in text.split(" ")]}

    def decode(self, ids: Any, **_: Any) -> str:
        names = {number: word for word, number in self.known.items()}
        return " ".join(names[i] for i in ids)


@pytest.fixture
def shop(tmp_path: Path) -> TrainingDatabase:
    database = Database.open(build_shop(tmp_path / "shop.sqlite"))
    asked = tuple(Asked(Question(text, database.id, gold_sql=sql), sql) for text, sql in GOLD.items())
    return TrainingDatabase(database, (database.schema(), database.schema()), asked)


@pytest.fixture
def codec() -> Codec:
    return Codec(Words())


def wrong(sql: str, error: str | None = None) -> Attempt:
    if error is None:
        return Attempt(sql, Outcome.DENOTATION_MISMATCH, None, FailureType.RESULT_MISMATCH)
    return Attempt(sql, Outcome.EXECUTION_ERROR, error, FailureType.SCHEMA_LINKING)


def failed(shop: TrainingDatabase) -> list[Failed]:
    attempts = (wrong("SELECT 1"), wrong("SELECT 2"), wrong("SELECT nope FROM product", "no such column: nope"))
    return [Failed(asked.question.id, shop.database.id, attempts) for asked in shop.questions]


def test_a_failure_carries_what_the_database_really_says(shop: TrainingDatabase) -> None:
    asked = shop.questions[0]
    assert judge(shop.database, asked, "SELECT count(*) FROM product") is None
    misnamed = judge(shop.database, asked, "SELECT nope FROM product")
    assert misnamed == wrong("SELECT nope FROM product", "no such column: nope")
    assert judge(shop.database, asked, "SELECT -1") == wrong("SELECT -1")
    empty = judge(shop.database, asked, "")
    assert empty is not None
    assert (empty.status, empty.error) == (Outcome.EXECUTION_ERROR, "empty query")


def test_gathering_goes_on_after_a_kill_and_writes_no_gold(shop: TrainingDatabase, tmp_path: Path) -> None:
    out, asked_for = tmp_path / "own.jsonl", []

    def answer(prompts: list[str], temperature: float) -> list[str]:
        asked_for.extend(prompts)
        return [
            "<answer>SELECT 7 - 8</answer>" if temperature == 0 else "<answer>SELECT 9 - 99</answer>" for _ in prompts
        ]

    gather([shop], answer, out, deadline=time.monotonic() + 60, at_once=2, samples=1)
    whole = read_failures(out)
    assert [f.question_id for f in whole] == [a.question.id for a in shop.questions]
    assert [attempt.sql for attempt in whole[0].attempts] == ["SELECT 7 - 8", "SELECT 9 - 99"]
    assert not any(gold in out.read_text() for gold in GOLD.values())

    lines = out.read_text().splitlines()
    out.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])  # killed while it wrote the last line
    asked_for.clear()
    gather([shop], answer, out, deadline=time.monotonic() + 60, at_once=2, samples=1)
    assert {f.question_id for f in read_failures(out)} == {a.question.id for a in shop.questions}
    assert all(list(GOLD)[3] in prompt for prompt in asked_for)


def test_no_gold_of_the_question_itself_in_a_repair_prompt(shop: TrainingDatabase, codec: Codec) -> None:
    """The answer is what is trained towards; before it the question's own gold may not stand."""
    seen = 0
    for seed in range(20):
        for job in repair_packs([shop], failed(shop), codec, random.Random(seed)):
            for pack in job():
                for tail in pack.tails:
                    ids = [*pack.prefix, *tail.ids]
                    prompt, answer = codec.text(ids[: -tail.answer]), codec.text(ids[-tail.answer :])
                    question = next(text for text in GOLD if text in prompt)
                    assert answer.startswith(in_tags(GOLD[question]))
                    assert GOLD[question] not in prompt
                    assert prompt.startswith("<user> PROMPT_VERSION: spider-repair-v3")
                    seen += 1
    assert seen >= 20 * len(GOLD) - 20


def test_cards_are_real_transitions_of_other_questions(shop: TrainingDatabase) -> None:
    every = [Case(asked, failed(shop)[i].attempts) for i, asked in enumerate(shop.questions)]
    positives = negatives = 0
    for seed in range(30):
        good, bad = cards([(every[0], every[0].attempts[:1])], every, shop.schemas[0], random.Random(seed))
        assert every[0].asked.question.id not in {card.question_id for card in good + bad}
        for card in good:
            assert card.outcome is Outcome.CORRECT
            assert card.new_sql == GOLD[card.question]
            assert card.failed_sql == "SELECT nope FROM product"
        for card in bad:
            assert (card.failed_sql, card.new_sql) == ("SELECT 1", "SELECT nope FROM product")
            assert card.observed_db_error == "no such column: nope"
        positives, negatives = positives + len(good), negatives + len(bad)
    assert positives > negatives > 0


def test_a_mixed_pass_has_as_many_first_answers_as_repairs(shop: TrainingDatabase, codec: Codec) -> None:
    jobs = list(mixed([shop], failed(shop), codec, random.Random(0)))
    heads = [codec.text(job()[0].prefix)[:60] for job in jobs]
    assert ["-initial-" in head for head in heads] == [i % 2 == 1 for i in range(len(heads))]


def test_bird_form_says_what_a_named_value_means() -> None:
    asked = Asked(
        Question("How many red products?", "shop"), "SELECT COUNT(*) FROM product WHERE colour = 'Red' AND size = 3"
    )
    question = in_bird_form(asked)
    assert (question.form, question.evidence) == ("bird", "Red refers to colour = 'Red'")


def test_every_question_comes_once_a_pass(shop: TrainingDatabase, codec: Codec) -> None:
    packs = [pack for job in initial_packs([shop], codec, random.Random(0), per_pack=2) for pack in job()]
    answers = [codec.text(tail.ids[-tail.answer :]) for pack in packs for tail in pack.tails]
    assert sorted(answers) == sorted(in_tags(sql) + "<|im_end|>" for sql in GOLD.values())


def test_a_reflection_says_only_what_was_seen() -> None:
    said = reflection([wrong("SELECT 1"), wrong("SELECT x", "no such column: x")])
    assert said.startswith("Attempt 1 ran, but its rows were not accepted. Attempt 2 did not run: no such column: x.")
    assert "SELECT" not in said


def test_the_check_counts_first_answers_repairs_and_repeats(shop: TrainingDatabase) -> None:
    """Two right at first; one mended by its repair; one that says the same again and again."""

    def answer(prompts: list[str], _temperature: float) -> list[str]:
        texts = []
        for prompt in prompts:
            question = next(text for text in GOLD if text in prompt)
            number, repairing = list(GOLD).index(question), "-repair-" in prompt
            texts.append(
                in_tags(GOLD[question] if number < 2 or (number == 2 and repairing) else "SELECT nope FROM product")
            )
        return texts

    got = check([shop], answer, budget=2)
    assert (got.asked, got.right, got.errors) == (4, 2, 2)
    assert got.after_repair == (3, 3)
    assert (got.repairs, got.repeated) == (3, 2)


def test_lines_without_attempts_are_questions_answered_right(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps({"question_id": "a", "database_id": "shop", "attempts": []}) + "\n")
    assert read_failures(file) == [Failed("a", "shop", ())]
