"""Datasets in every layout that people have, and what is said of those that are not as they should be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support import build_database, build_shop

from merit.database import Database, samples
from merit.database.own_questions import OwnRecord
from merit.episode import Question, Status
from merit.errors import BadInput, DatabaseNotFound
from merit.streams import GoldFault, load_dataset, own_dataset

MARKER = "qzxgoldmarkerqzx"
DATA = Path(os.environ.get("MERIT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
SPIDER = next((place for place in (DATA / "spider", Path("/work/shared/data/spider")) if place.is_dir()), None)
needs_spider = pytest.mark.skipif(SPIDER is None, reason="the Spider data is not beside the checkout")


def write(folder: Path, name: str, content: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder / name


def spider(root: Path, *extra: dict[str, Any]) -> Path:
    """Two questions over one database in Spider's layout."""
    build_shop(root / "database" / "shop" / "shop.sqlite")
    write(
        root,
        "dev.json",
        [
            {"db_id": "shop", "question": "How many products?", "query": "SELECT count(*) FROM product", "sql": {}},
            {"db_id": "shop", "question": "Which names? ", "query": "SELECT name FROM product"},
            *extra,
        ],
    )
    return root


def test_spider_layout(tmp_path: Path) -> None:
    dataset = load_dataset(spider(tmp_path / "spider"))
    assert (len(dataset), dataset.benchmark, dataset.name) == (2, "spider", "spider/dev")
    assert [question.id for question in dataset] == ["0", "1"]
    assert dataset.questions[1].text == "Which names?"
    assert {question.form for question in dataset} == {"spider"}
    assert dataset.database("shop") is dataset.database("shop")
    assert dataset.notes == ()
    assert dataset.missing == ()


def test_types_come_from_tables_json_whatever_their_case(tmp_path: Path) -> None:
    root = spider(tmp_path)
    write(
        root,
        "tables.json",
        [
            {
                "db_id": "shop",
                "table_names_original": ["PRODUCT"],
                "column_names_original": [[-1, "*"], [0, "ID"], [0, "gone"]],
                "column_types": ["text", "number", "text"],
            },
            {"db_id": "broken", "table_names_original": None},
        ],
    )
    database = load_dataset(root).database("shop")
    assert "  - id (number, PRIMARY KEY)" in database.schema()
    assert "gone" not in database.schema()
    assert any("gone" in problem for problem in database.problems)


def test_the_train_file_of_the_same_folder(tmp_path: Path) -> None:
    root = spider(tmp_path)
    file = write(root, "train_spider.json", [{"db_id": "shop", "question": "q", "query": "SELECT 1"}])
    assert [question.text for question in load_dataset(file)] == ["q"]


def test_several_files_in_a_folder_are_a_test_suite(tmp_path: Path) -> None:
    root = spider(tmp_path)
    build_shop(root / "database" / "shop" / "shop_v1.sqlite")
    files = load_dataset(root).database("shop").files
    assert [file.name for file in files] == ["shop.sqlite", "shop_v1.sqlite"]


@pytest.mark.parametrize("name", ["dev.json", "mini_dev_sqlite.json", "mini_dev.json"])
def test_bird_layout(tmp_path: Path, name: str) -> None:
    build_shop(tmp_path / "dev_databases" / "shop" / "shop.sqlite")
    write(
        tmp_path,
        name,
        [
            {"question_id": 1471, "db_id": "shop", "question": "q", "evidence": "cheap means below 3",
             "SQL": "SELECT 1", "difficulty": "simple"},
            {"question_id": 1480, "db_id": "shop", "question": "r", "evidence": None, "SQL": "SELECT 2"},
        ],
    )  # fmt: skip
    dataset = load_dataset(tmp_path)
    assert dataset.benchmark == "bird"
    assert [(q.id, q.evidence, q.form) for q in dataset] == [
        ("1471", "cheap means below 3", "bird"), ("1480", "", "bird"),
    ]  # fmt: skip
    assert dataset.difficulty == {"1471": "simple"}
    assert dataset.database("shop").id == "shop"


def test_json_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    root = spider(tmp_path)
    lines = "\n".join(json.dumps({"db_id": "shop", "question": q, "gold_sql": "SELECT 1"}) for q in "ab")
    (root / "own.jsonl").write_text("\ufeff" + lines, encoding="utf-8")
    assert [question.text for question in load_dataset(root / "own.jsonl")] == ["a", "b"]


def test_a_database_without_a_file_is_told_and_stops_nothing(tmp_path: Path) -> None:
    ghost = {"db_id": "ghost", "question": "q", "query": "SELECT 1"}
    outside = {"db_id": "../shop", "question": "q", "query": "SELECT 1"}
    (tmp_path / "database" / "ghost").mkdir(parents=True)
    (tmp_path / "database" / "ghost" / "schema.sql").write_text("CREATE TABLE t (a)")
    build_shop(tmp_path / "shop.sqlite")
    dataset = load_dataset(spider(tmp_path, ghost, outside))
    assert dataset.missing == ("../shop", "ghost")
    assert "2 of 3 databases have no file" in dataset.notes[0]
    with pytest.raises(DatabaseNotFound, match="no file for the database ghost"):
        dataset.database("ghost")


def test_without_databases_it_says_where_it_looked(tmp_path: Path) -> None:
    write(tmp_path, "dev.json", [{"db_id": "shop", "question": "q", "query": "SELECT 1"}])
    dataset = load_dataset(tmp_path)
    assert dataset.missing == ("shop",)
    assert "dev_databases" in dataset.notes[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[", "no JSON list"),
        ("[]", "holds no questions"),
        ("[1, 2]", "each entry must be an object"),
        ('[{"db_id": "shop", "question": "q", "SQL": 7}]', r"entry 1 \(SQL\)"),
        ('[{"question": "q"}, {"db_id": ""}]', r"entry 1 \(db_id\), entry 2 \(db_id, question\)"),
        ("[" * 100_000, "no JSON list"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "dev.json").write_text(content)
    with pytest.raises(BadInput, match=says):
        load_dataset(tmp_path)


def test_a_wrong_entry_is_told_without_its_values(tmp_path: Path) -> None:
    write(tmp_path, "dev.json", [{"db_id": "shop", "question": "q", "SQL": [MARKER]}])
    with pytest.raises(BadInput) as raised:
        load_dataset(tmp_path)
    assert MARKER not in str(raised.value)
    assert raised.value.__cause__ is None


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_bytes(b'[{"db_id": "caf\xe9"}]')
    with pytest.raises(BadInput, match="not UTF-8"):
        load_dataset(tmp_path)


def test_repeated_question_ids_are_named(tmp_path: Path) -> None:
    twice = [{"db_id": "shop", "question": q, "SQL": "SELECT 1", "question_id": 7} for q in "ab"]
    write(tmp_path, "dev.json", twice)
    with pytest.raises(BadInput, match=r"1 question ids more than once \(7\)"):
        load_dataset(tmp_path)


def test_a_folder_without_questions_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"Looked for dev.json.* in|dev\.json, mini_dev_sqlite\.json"):
        load_dataset(tmp_path)
    with pytest.raises(BadInput, match="There is nothing at"):
        load_dataset(tmp_path / "nowhere")


def test_sample_databases_by_name_and_by_folder() -> None:
    everything = load_dataset("samples")
    assert len(everything) == sum(len(samples.questions(id)) for id in samples.ids())
    assert len({question.id for question in everything}) == len(everything)
    assert set(everything.difficulty.values()) <= {"easy", "medium", "hard", "extra"}
    assert load_dataset(samples.ROOT).questions == everything.questions
    assert load_dataset(samples.ROOT / "shop").questions == load_dataset("shop").questions
    assert load_dataset("shop").database("shop").path == samples.path("shop")


def test_a_database_of_ones_own_with_its_questions(tmp_path: Path) -> None:
    database = Database.open(build_shop(tmp_path / "shop.sqlite"))
    question = Question("How many?", "shop", gold_sql="SELECT count(*) FROM product")
    dataset = own_dataset(database, [OwnRecord(question, ordered=False, empty=False)])
    assert dataset.questions == (question,)
    assert dataset.database("shop") is database
    with pytest.raises(BadInput, match="no questions yet"):
        own_dataset(database, [])


def test_gold_that_fails_is_listed_by_id_and_class_alone(tmp_path: Path) -> None:
    root = spider(
        tmp_path,
        {"db_id": "shop", "question": "a", "query": f"SELECT {MARKER} FROM product"},
        {"db_id": "shop", "question": "b", "query": " "},
        {"db_id": "shop", "question": "c"},
        {"db_id": "ghost", "question": "d", "query": "SELECT 1"},
    )
    dataset = load_dataset(root)
    assert "2 of 6 questions have no gold" in dataset.notes[-1]
    faults = dataset.gold_faults()
    assert faults == [
        GoldFault("2", "shop", "fails"),
        GoldFault("3", "shop", "no gold"),
        GoldFault("4", "shop", "no gold"),
        GoldFault("5", "ghost", "database not found"),
    ]
    assert MARKER not in repr(faults)
    assert MARKER not in repr(dataset)


def test_parts_of_a_dataset(tmp_path: Path) -> None:
    dataset = load_dataset(spider(tmp_path))
    assert [question.id for question in dataset.only({"1", "9"})] == ["1"]
    assert [question.id for question in dataset.first(1)] == ["0"]
    assert dataset.first(1).fingerprint != dataset.fingerprint == load_dataset(tmp_path).fingerprint


def test_other_gold_is_other_data(tmp_path: Path) -> None:
    """A run that is resumed after its gold was mended would mix two evaluations."""
    before = load_dataset(spider(tmp_path)).fingerprint
    text = (tmp_path / "dev.json").read_text()
    (tmp_path / "dev.json").write_text(text.replace("count(*)", "count(id)"))
    assert load_dataset(tmp_path).fingerprint != before


@needs_spider
def test_the_official_data() -> None:
    assert SPIDER is not None
    dev, train = load_dataset(SPIDER), load_dataset(SPIDER / "train_spider.json")
    assert (len(dev), len(train)) == (616, 7000)
    assert dev.missing == ()
    assert set(train.missing) == {"baseball_1", "soccer_1"}
    assert "  - Singer_ID (number, PRIMARY KEY)" in dev.database("concert_singer").schema()
    question = dev.questions[0]
    assert dev.database(question.database_id).execute(str(question.gold_sql)).status is Status.EXECUTED


def test_an_empty_file_of_a_database_is_unreadable_not_missing(tmp_path: Path) -> None:
    root = spider(tmp_path, {"db_id": "odd", "question": "q", "query": "SELECT 1"})
    build_database(root / "database" / "odd" / "odd.sqlite").write_bytes(b"not a database at all")
    assert load_dataset(root).gold_faults() == [GoldFault("2", "odd", "database unreadable")]
