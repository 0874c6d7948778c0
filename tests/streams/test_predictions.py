"""First answers that somebody brings: every form of file finds its questions, and a wrong file is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from merit.episode import Question
from merit.errors import BadInput
from merit.streams import Dataset, load_dataset, load_predictions, read_predictions

DATA = Path(os.environ.get("MERIT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
SPIDER = next((place for place in (DATA / "spider", Path("/work/shared/data/spider")) if place.is_dir()), None)


def dataset(count: int = 12, first_id: int = 0, database: str = "shop") -> Dataset:
    questions = tuple(
        Question(f"What is item {place}?", database, gold_sql="SELECT 1", question_id=str(first_id + place))
        for place in range(count)
    )
    return Dataset("shop/dev", "bird", questions, {database: None})


def sql(place: int) -> str:
    return f"SELECT name FROM item WHERE id = {place}"


def read(content: Any, of: Dataset | None = None) -> list[str]:
    text = content if isinstance(content, str) else json.dumps(content)
    return list(read_predictions(text.encode(), of or dataset(), "file"))


EXPECTED = [sql(place) for place in range(12)]


@pytest.mark.parametrize(
    "content",
    [
        "\n".join(EXPECTED) + "\n",
        "\r\n".join(EXPECTED),
        "\n".join(f"{text}\tshop" for text in EXPECTED),
        EXPECTED,
        [{"question_id": place, "sql": sql(place)} for place in reversed(range(12))],
        [{"source_index": place, "predicted": sql(place), "gold": "x"} for place in reversed(range(12))],
        [{"db_id": "shop", "question": f"what is  ITEM {n}?", "pred": sql(n)} for n in (5, *range(5), *range(6, 12))],
        "\n".join(json.dumps({"question_id": str(place), "prediction": sql(place)}) for place in range(12)),
        {str(place): f"{sql(place)}\t----- bird -----\tshop" for place in sorted(range(12), key=str)},
        json.dumps({str(place): sql(place) for place in range(12)}, indent=1),
    ],
    ids=["lines", "windows lines", "spider lines", "list", "ids", "numbers", "texts", "jsonl", "bird", "bird indented"],
)  # fmt: skip
def test_every_form_is_aligned(content: Any) -> None:
    assert read(content) == EXPECTED


def test_birds_answers_are_paired_by_key_not_by_place() -> None:
    """Written with sorted keys the file runs 0, 1, 10, 11, 2 …; a missing answer is the number 0."""
    answers: dict[str, Any] = {key: f"{sql(int(key))}\t----- bird -----\tshop" for key in sorted(map(str, range(12)))}
    answers["3"] = 0
    assert read(answers) == [*EXPECTED[:3], "", *EXPECTED[4:]]


def test_mini_dev_numbers_its_answers_though_its_ids_differ() -> None:
    answers = {str(place): sql(place) for place in range(12)}
    assert read(answers, dataset(first_id=1471)) == EXPECTED
    assert read({str(1471 + place): sql(place) for place in range(12)}, dataset(first_id=1471)) == EXPECTED
    assert read({str(5 + place): sql(place) for place in range(12)}, dataset(first_id=5)) == EXPECTED


def test_answers_by_ids_that_are_words() -> None:
    questions = tuple(Question("q", "shop", question_id=f"shop-{place}") for place in range(2))
    of = Dataset("samples", None, questions, {"shop": None})
    assert read({"shop-1": sql(1), "shop-0": sql(0)}, of) == EXPECTED[:2]


def test_a_part_of_the_questions_and_empty_answers() -> None:
    found = read_predictions(
        json.dumps([{"question_id": 3, "sql": sql(3)}, {"question_id": 5, "sql": None}]).encode(), dataset()
    )
    assert found.covered == {"3", "5"}
    assert found.by_id == {"3": sql(3), "5": ""}
    assert found["3"] == found[3] == sql(3)
    assert len(found) == 12


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("\n".join(EXPECTED[:7]), "7 predictions and shop/dev 12 questions"),
        ([{"question_id": 99, "sql": "x"}], "must be as many"),
        ([{"question_id": 0, "sql": "x"}, {"question_id": 99, "sql": "x"}], r"1 of 2 .*: 2 \(no such question here\)"),
        ([{"question_id": 0, "sql": "x"}, {"question_id": 0, "sql": "y"}], "answers a question again"),
        ([{"question_id": 0, "db_id": "zoo", "sql": "x"}], "another database"),
        ([{"question_id": 0, "question": "What is item 1?", "sql": "x"}], "another question"),
        ([{"db_id": "zoo", "question": "Lions?", "sql": "x"}], "no such question here"),
        ("\n".join(f"{text}\tzoo" for text in EXPECTED), "another database"),
        ([{"question_id": 0, "answer": "x"}], "entry 1 has no SQL"),
        ('{"question_id": 0, "answer": "x"}\n{"question_id": 1, "answer": "x"}', "entry 1 has no SQL"),
        ({"predictions": ["x"]}, "must be the SQL of one question"),
        ('{"sql": "x"}\n{"sql"', "not valid JSON"),
        ("[", "not valid JSON at line 1"),
        ("", "holds no predictions"),
        ("[]", "holds no predictions"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(content: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        read(content)


def test_a_line_is_named_by_its_place_never_by_its_text() -> None:
    with pytest.raises(BadInput) as raised:
        read([{"question_id": 0, "gold": "goldmarker", "answer": "goldmarker"}])
    assert "goldmarker" not in str(raised.value)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "predictions.sql"
    file.write_text("\n".join(EXPECTED), encoding="utf-8-sig")
    assert list(load_predictions(file, dataset())) == EXPECTED
    file.write_bytes(b"SELECT '\xff'")
    with pytest.raises(BadInput, match="not UTF-8"):
        load_predictions(file, dataset())
    with pytest.raises(BadInput, match="no file of predictions"):
        load_predictions(tmp_path / "gone", dataset())


@pytest.mark.skipif(SPIDER is None, reason="the Spider data is not beside the checkout")
def test_real_predictions_of_a_part_of_spider() -> None:
    assert SPIDER is not None
    file = SPIDER.parent / "qwen2.5-7b_spider_train_0-724.jsonl"
    if not file.is_file():
        pytest.skip("the predictions are not beside the Spider data")
    train = load_dataset(SPIDER / "train_spider.json")
    found = load_predictions(file, train)
    assert found.covered == {str(place) for place in range(725)}
    with pytest.raises(BadInput, match="about something else"):
        load_predictions(file, load_dataset(SPIDER))
