"""The verifiers on the real Spider data: gold against itself, and real predictions against a naive judge."""

from __future__ import annotations

import itertools
import json
import os
import re
import sqlite3
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from merit.database import Database
from merit.episode import Question
from merit.verification import BirdVerifier, SpiderVerifier

DATA = Path(os.environ.get("MERIT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
pytestmark = pytest.mark.skipif(
    not (DATA / "spider" / "dev.json").is_file(),
    reason=f"The Spider data is not at {DATA}; point MERIT_TEST_DATA at a folder that holds spider/dev.json",
)


@cache
def opened(database_id: str) -> Database:
    return Database.open(DATA / "spider" / "database" / database_id / f"{database_id}.sqlite")


def naive_rows(database_id: str, sql: str) -> list[tuple[Any, ...]] | None:
    """What plain sqlite3 gives, None for an error, without any of our machinery."""
    connection = sqlite3.connect(opened(database_id).path.as_uri() + "?mode=ro&immutable=1", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        return connection.execute(sql).fetchall()
    except (sqlite3.Error, sqlite3.Warning):
        return None
    finally:
        connection.close()


def naive_spider(gold: list[tuple[Any, ...]], predicted: list[tuple[Any, ...]], ordered: bool) -> bool:
    if not gold or not predicted:
        return gold == predicted
    if len(gold[0]) != len(predicted[0]):
        return False
    for order in itertools.permutations(range(len(gold[0]))):
        turned = [tuple(row[i] for i in order) for row in predicted]
        if (turned == gold) if ordered else (Counter(turned) == Counter(gold)):
            return True
    return False


def test_every_gold_query_is_correct_against_itself() -> None:
    questions = json.loads((DATA / "spider" / "dev.json").read_text())
    spider, bird = SpiderVerifier(official=False), BirdVerifier(official=False)
    wrong = []
    for entry in questions:
        question = Question(entry["question"], entry["db_id"], gold_sql=entry["query"])
        found = [v.judge(question, opened(entry["db_id"]), entry["query"]).outcome for v in (spider, bird)]
        if found != ["CORRECT", "CORRECT"]:
            wrong.append(entry["query"])
    assert len(questions) == 616
    assert not wrong


def test_real_predictions_get_the_verdicts_of_a_naive_judge() -> None:
    """Every third of 725 real answers of a 7B model; both faults on (value, years, operators) and off."""
    lines = (DATA / "qwen2.5-7b_spider_train_0-724.jsonl").read_text().splitlines()
    official, fixed, bird = SpiderVerifier(), SpiderVerifier(official=False), BirdVerifier(official=False)
    seen: Counter[str] = Counter()
    for line in lines[::3]:
        entry = json.loads(line)
        if not (DATA / "spider" / "database" / entry["db_id"]).is_dir():
            continue
        question = Question(entry["question"], entry["db_id"], gold_sql=entry["gold"])
        sql, database = entry["predicted"], opened(entry["db_id"])
        gold = naive_rows(entry["db_id"], entry["gold"])
        assert gold is not None
        ordered = "order by" in entry["gold"].lower()

        def expected(rows: list[tuple[Any, ...]] | None, equal: bool, sql: str = sql) -> str:
            if rows is None or not re.sub(r"--[^\n]*|;", "", sql).strip():
                return "EXECUTION_ERROR"
            return "CORRECT" if equal else "DENOTATION_MISMATCH"

        rows = naive_rows(entry["db_id"], sql)
        plain = rows is not None and naive_spider(gold, rows, ordered)
        assert fixed.judge(question, database, sql).outcome == expected(rows, plain), sql
        assert bird.judge(question, database, sql).outcome == expected(rows, set(gold) == set(rows or ())), sql
        replaced = naive_rows(entry["db_id"], sql.replace("value", "1").replace("> =", ">="))
        found = official.judge(question, database, sql).outcome
        assert found == expected(replaced, replaced is not None and naive_spider(gold, replaced, ordered)), sql
        seen[found] += 1
    assert min(seen["CORRECT"], seen["DENOTATION_MISMATCH"], seen["EXECUTION_ERROR"]) >= 10, seen
