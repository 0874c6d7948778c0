"""One failure by hand: what ran, what the rules read of it, and how a label changes memory and prompt."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import HashEncoder, build_shop

from merit.database import Database
from merit.diagnosis import diagnose
from merit.episode import FailureType, Outcome, Polarity, Question
from merit.errors import BadInput
from merit.memory.entry import MemoryEntry
from merit.memory.store import MemoryStore
from merit.routing import trial as trials
from merit.strategy import STRATEGIES

MARKER = "qzxgoldmarkerqzx"
QUESTION = Question("Which products cost more than three?", "shop")


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    return Database.open(build_shop(tmp_path / "shop.sqlite"))


@pytest.mark.parametrize(
    ("sql", "outcome", "rule"),
    [
        ("SELECT nme FROM product", Outcome.EXECUTION_ERROR, 3),
        ("SELECT name FROM products", Outcome.EXECUTION_ERROR, 2),
        ("DELETE FROM product", Outcome.EXECUTION_ERROR, 10),
        ("<answer>SELECT name, FROM product</answer>", Outcome.EXECUTION_ERROR, 7),
        ("SELECT name FROM product", Outcome.NOT_JUDGED, 13),
    ],
)
def test_a_statement_is_run_and_routed(shop: Database, sql: str, outcome: Outcome, rule: int) -> None:
    found = trials.run(QUESTION, shop, sql)
    assert found.outcome is outcome
    assert found.status is not None
    assert diagnose(found.status, found.message).rule == rule


def test_gold_judges_and_stays_inside(shop: Database) -> None:
    gold = f"SELECT name AS {MARKER} FROM product WHERE price > 3"
    question = Question("Which?", "shop", gold_sql=gold)
    right = trials.run(question, shop, "SELECT name FROM product WHERE price > 3.0")
    wrong = trials.run(question, shop, "SELECT name FROM product")
    assert (right.outcome, right.status) == (Outcome.CORRECT, None)
    assert wrong.status is Outcome.DENOTATION_MISMATCH
    assert wrong.question.gold_sql is None
    assert MARKER not in repr(wrong) + repr(right)


@pytest.mark.parametrize("sql", ["", "  \n", "x" * 20_001, "SELECT '\0'", "SELECT '\ud800'"])
def test_what_is_no_statement_is_a_sentence(shop: Database, sql: str) -> None:
    with pytest.raises(BadInput):
        trials.run(QUESTION, shop, sql)


def test_a_typed_failure_is_taken_as_it_came() -> None:
    found = trials.typed(QUESTION, "", "EXECUTION_ERROR", "  no such table: x ")
    assert (found.status, found.message, found.execution) == (Outcome.EXECUTION_ERROR, "no such table: x", None)
    with pytest.raises(BadInput, match="no failure"):
        trials.typed(QUESTION, "", "CORRECT", "")
    with pytest.raises(BadInput, match="message"):
        trials.typed(QUESTION, "", "TIMEOUT", "x" * 4_001)


def remembered(number: int, kind: str) -> MemoryEntry:
    return MemoryEntry(
        Polarity.POSITIVE, FailureType(kind), f"Question {number}?", "schema", "shop", f"SELECT a{number}",
        f"SELECT b{number}", Outcome.EXECUTION_ERROR, "no such column: a", Outcome.CORRECT, f"q{number}", f"e{number}",
        number, 1,
    )  # fmt: skip


@pytest.fixture
def store() -> MemoryStore:
    kept = MemoryStore.open("memory://routing", HashEncoder())
    kinds = ["Schema Linking"] * 3 + ["Aggregation"] * 4
    kept.finalise_many([remembered(number, kind) for number, kind in enumerate(kinds)])
    return kept


def led_to(shop: Database, store: MemoryStore | None, kind: FailureType, name: str = "merit") -> trials.Consequence:
    failed = trials.run(QUESTION, shop, "SELECT nme FROM product")
    return trials.consequence(
        failed, kind, shop.schema(), "shop", STRATEGIES[name], store, count_tokens=len, limit=100_000
    )


def test_another_label_brings_other_entries_and_another_prompt(shop: Database, store: MemoryStore) -> None:
    by_rule = led_to(shop, store, FailureType.SCHEMA_LINKING)
    by_hand = led_to(shop, store, FailureType.AGGREGATION)
    assert {entry.failure_type for entry in by_rule.retrieval.positive} == {FailureType.SCHEMA_LINKING}
    assert {entry.failure_type for entry in by_hand.retrieval.positive} == {FailureType.AGGREGATION}
    found = trials.moved(by_rule, by_hand)
    assert (len(found.come), len(found.gone), found.kept) == (3, 3, ())
    assert "Current error type: Aggregation" in by_hand.prompt.prompt
    lines = {(line.sign, line.text) for line in trials.prompt_difference(by_rule, by_hand)}
    assert ("-", "Current error type: Schema Linking") in lines
    assert ("+", "Current error type: Aggregation") in lines
    assert not any("DATABASE SCHEMA" in text for _, text in lines), "what is equal is not repeated"


def test_without_memory_a_label_changes_one_line(shop: Database, store: MemoryStore) -> None:
    for kept, name in ((None, "merit"), (store, "iterative")):
        by_rule = led_to(shop, kept, FailureType.SCHEMA_LINKING, name)
        by_hand = led_to(shop, kept, FailureType.SYNTAX, name)
        changed = [line for line in trials.prompt_difference(by_rule, by_hand) if line.sign != " "]
        assert len(changed) == 2
        assert trials.moved(by_rule, by_hand) == trials.Moved((), (), ())


def test_looking_allocates_no_position_and_stores_nothing(shop: Database, store: MemoryStore) -> None:
    before = (store.upcoming(), store.counts())
    led_to(shop, store, FailureType.UNKNOWN)
    assert (store.upcoming(), store.counts()) == before


def test_a_correct_statement_has_no_consequence(shop: Database) -> None:
    right = trials.Trial(QUESTION, "SELECT 1", Outcome.CORRECT, None, "gold")
    with pytest.raises(ValueError, match="correct"):
        trials.consequence(right, FailureType.SYNTAX, "", "shop", STRATEGIES["merit"], None, count_tokens=len, limit=1)
