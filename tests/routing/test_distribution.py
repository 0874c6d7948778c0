"""How real predictions route: judged by gold, named by the rules, gold nowhere in what comes out."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from support import build_shop

from merit.episode import FailureType as K
from merit.episode import Outcome, Question
from merit.routing.distribution import distribution, route
from merit.routing.labelled import read, to_csv
from merit.streams import Dataset, load_dataset, read_predictions
from merit.waiting import Stopped

MARKER = "qzxgoldmarkerqzx"
DATA = Path(os.environ.get("MERIT_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    gold = f"SELECT name AS {MARKER} FROM product WHERE price > 3"
    questions = [Question(f"Question {n}?", "shop", gold_sql=gold, question_id=f"q{n}") for n in range(5)]
    questions.append(Question("Gone?", "gone", gold_sql=gold, question_id="q5"))
    questions.append(Question("Broken?", "shop", gold_sql=f"SELECT {MARKER} FROM product", question_id="q6"))
    files = {"shop": build_shop(tmp_path / "shop.sqlite"), "gone": None}
    return Dataset("shops", None, tuple(questions), files)


ANSWERS = (
    "SELECT name FROM product WHERE price > 3.0",
    "SELECT name FROM product",
    "SELECT nme FROM product",
    "",
    "SELECT name, FROM product",
    "SELECT 1",
    "SELECT name FROM product",
)


def test_answers_are_judged_and_named(dataset: Dataset) -> None:
    routed = list(route(dataset, read_predictions("\n".join(ANSWERS).encode(), dataset), threading.Event()))
    found = distribution(routed)
    assert (found.answers, found.correct, found.not_judged, len(found.failures)) == (7, 1, 1, 5)
    assert found.types == {K.RESULT_MISMATCH: 1, K.SCHEMA_LINKING: 1, K.UNKNOWN: 1, K.SYNTAX: 1, K.EXECUTION: 1}
    assert found.rules == {13: 1, 3: 1, 12: 1, 7: 1, 11: 1}
    assert (found.empty, found.unknown) == (1, {"empty query": 1})
    assert [failure.id for failure in found.failures] == ["q1", "q2", "q3", "q4", "q5"]
    assert MARKER not in repr(routed) + to_csv(found.failures).decode()
    assert read(to_csv(found.failures)).failures == found.failures


def test_empty_answers_can_be_left_out(dataset: Dataset) -> None:
    """A file of which a fifth was never answered showed mostly Unknown, which says nothing about the model."""
    routed = list(route(dataset, read_predictions("\n".join(ANSWERS).encode(), dataset), threading.Event()))
    found = distribution(routed, with_empty=False)
    assert (found.answers, found.correct, found.empty, len(found.failures)) == (6, 1, 1, 4)
    assert K.UNKNOWN not in found.types
    assert found.unknown == {}


def test_only_what_the_file_covers_is_routed(dataset: Dataset) -> None:
    data = json.dumps({"question_id": "q2", "predicted": ANSWERS[2], "gold": MARKER}).encode()
    (only,) = route(dataset, read_predictions(data, dataset), threading.Event())
    assert only.outcome is Outcome.EXECUTION_ERROR


def test_stopping_ends_it(dataset: Dataset) -> None:
    cancel = threading.Event()
    answers = route(dataset, read_predictions("\n".join(ANSWERS).encode(), dataset), cancel)
    next(answers)
    cancel.set()
    with pytest.raises(Stopped):
        list(answers)


def test_nothing_routed_is_no_distribution() -> None:
    assert distribution([]).types == {}


def test_real_predictions_route() -> None:
    """The first 120 of the 7B model's answers to Spider train: most failures execute and are wrong."""
    file = DATA / "qwen2.5-7b_spider_train_0-724.jsonl"
    if not file.is_file():
        pytest.skip(f"there is no {file}; see CONTRIBUTING.md")
    dataset = load_dataset(DATA / "spider" / "train_spider.json").first(120)
    lines = file.read_text(encoding="utf-8").splitlines()[:120]
    found = distribution(route(dataset, read_predictions("\n".join(lines).encode(), dataset), threading.Event()))
    assert found.answers == 120
    assert found.correct > 60
    assert sum(found.types.values()) == len(found.failures)
    assert found.types.most_common(1)[0][0] is K.RESULT_MISMATCH
