"""The sample databases: what they promise is checked on the files that are shipped."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from merit.database import samples
from merit.database.sample_source.all_samples import SAMPLES, write_all
from merit.database.sample_source.builder import Dice, Sample, quoted
from merit.database.sample_source.hardness import hardness
from merit.errors import BadInput

DATA = Path(os.environ.get("MERIT_TEST_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
RECORDS = [record for sample_id in samples.ids() for record in samples.records(sample_id)]
NAMES = [record.question.id for record in RECORDS]


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    """The sample database with the id of the parameter, read-only."""
    with closing(sqlite3.connect(f"{samples.path(request.param).as_uri()}?mode=ro", uri=True)) as opened:
        yield opened


def tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The columns of every table."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})")] for name in names}


def content(path: Path) -> list[str]:
    """Every statement that would rebuild the file."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def fetch(record: samples.SampleRecord, sql: str | None = None) -> list[tuple[object, ...]]:
    gold = record.question.gold_sql
    assert gold is not None
    with closing(sqlite3.connect(f"{samples.path(record.question.database_id).as_uri()}?mode=ro", uri=True)) as opened:
        return opened.execute(sql or gold).fetchall()


def gold_tree(record: samples.SampleRecord) -> exp.Expr:
    assert record.question.gold_sql is not None
    return sqlglot.parse_one(record.question.gold_sql, dialect="sqlite")


# What the module gives


def test_ids_are_those_of_the_scripts() -> None:
    assert samples.ids() == tuple(sorted(sample.id for sample in SAMPLES))
    assert {"shop", "library", "campus"} <= set(samples.ids())
    assert len(samples.ids()) >= 6


def test_an_unknown_id_lists_the_known_ones() -> None:
    for function in (samples.path, samples.questions, samples.records, samples.info):
        with pytest.raises(BadInput, match=r"'bookshop'.*allotment, campus, clinic, festival, library, shop"):
            function("bookshop")


@pytest.mark.parametrize("sample_id", ["", ".", "..", "../sample_dbs/shop"])
def test_an_id_is_never_a_path(sample_id: str) -> None:
    with pytest.raises(BadInput):
        samples.path(sample_id)


def test_questions_carry_gold_evidence_and_id_but_show_no_gold() -> None:
    question = next(question for question in samples.questions("shop") if question.evidence)
    assert question.gold_sql
    assert question.database_id == "shop"
    assert question.benchmark is None
    assert re.fullmatch(r"shop-\d\d", question.id)
    assert question.gold_sql not in repr(samples.records("shop"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.id)
def test_info_reads_title_description_and_licence_back(sample: Sample) -> None:
    info = samples.info(sample.id)
    assert info == samples.SampleInfo(sample.title, sample.description, "CC0-1.0")
    assert info.description.count(".") == 1


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ('[{"question_id": "x-01", "question": "Q", "gold_sql": "SELECT secret", "evidence": ""}]', "0.difficulty"),
        ('{"gold_sql": "SELECT secret"}', "its start"),
        ("no json SELECT secret", "its start"),
    ],
)
def test_a_broken_list_is_refused_without_a_word_of_gold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, place: str
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "questions.json").write_text(lines)
    monkeypatch.setattr(samples, "ROOT", tmp_path)
    with pytest.raises(BadInput, match=place) as caught:
        samples.records("broken")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


# What the databases promise


@pytest.mark.parametrize("connection", samples.ids(), indirect=True)
def test_size_is_small_but_not_trivial(connection: sqlite3.Connection) -> None:
    found = tables(connection)
    assert 3 <= len(found) <= 9
    counts = [connection.execute(f"SELECT COUNT(*) FROM {quoted(name)}").fetchone()[0] for name in found]
    assert 500 <= sum(counts) <= 50_000
    assert min(counts) > 0


def test_all_files_together_stay_small() -> None:
    assert sum(samples.path(sample_id).stat().st_size for sample_id in samples.ids()) < 4_000_000


@pytest.mark.parametrize("connection", samples.ids(), indirect=True)
def test_dirt_is_there(connection: sqlite3.Connection) -> None:
    """NULLs, trailing blanks, two date formats, a name with a space, one column name in four tables."""
    found = tables(connection)
    columns = [column for own in found.values() for column in own]
    assert max(columns.count(column) for column in set(columns)) >= 4
    assert any(" " in name for name in [*found, *columns])
    values = [
        value
        for name in found
        for row in connection.execute(f"SELECT * FROM {quoted(name)}")
        for value in row
        if value is None or isinstance(value, str)
    ]
    assert None in values
    texts = [value for value in values if value]
    assert any(text != text.rstrip() for text in texts)
    assert any(re.match(r"\d{4}-\d\d-\d\d", text) for text in texts)
    assert any(re.match(r"\d\d[./]\d\d[./]\d{4}", text) for text in texts)


def test_some_tables_are_called_like_reserved_words() -> None:
    for sample_id, name in {"shop": "order", "campus": "Group", "clinic": "case"}.items():
        with closing(sqlite3.connect(samples.path(sample_id))) as connection:
            assert name in tables(connection)
            with pytest.raises(sqlite3.OperationalError, match="syntax error"):
                connection.execute(f"SELECT * FROM {name}")


@pytest.mark.parametrize("connection", samples.ids(), indirect=True)
def test_declared_foreign_keys_hold(connection: sqlite3.Connection) -> None:
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert any(connection.execute(f"PRAGMA foreign_key_list({quoted(name)})").fetchall() for name in tables(connection))


def test_the_clinic_lacks_one_foreign_key_on_purpose() -> None:
    with closing(sqlite3.connect(samples.path("clinic"))) as connection:
        assert connection.execute('PRAGMA foreign_key_list("lab result")').fetchall() == []
        stray = 'SELECT COUNT(*) FROM "lab result" WHERE patient_id NOT IN (SELECT patient_id FROM patient)'
        assert connection.execute(stray).fetchone() == (0,)


def test_the_scripts_give_the_shipped_content_and_the_same_bytes_twice(tmp_path: Path) -> None:
    """Bytes are compared between two runs here, content with the shipped files: SQLite writes its version into them."""
    write_all(tmp_path / "once")
    write_all(tmp_path / "twice")
    for sample_id in samples.ids():
        once, shipped = tmp_path / "once" / sample_id, samples.path(sample_id).parent
        for file in sorted(once.iterdir()):
            assert file.read_bytes() == (tmp_path / "twice" / sample_id / file.name).read_bytes()
            if file.suffix != ".sqlite":
                assert file.read_text("utf-8") == (shipped / file.name).read_text("utf-8")
        assert content(once / f"{sample_id}.sqlite") == content(shipped / f"{sample_id}.sqlite")
        assert {file.name for file in once.iterdir()} == {file.name for file in shipped.iterdir()}


def test_dice_stay_inside_their_bounds() -> None:
    dice = Dice(1)
    assert {dice.between(2, 4) for _ in range(200)} == {2, 3, 4}
    assert {dice.weighted({"a": 1, "b": 0, "c": 2}) for _ in range(200)} == {"a", "c"}
    assert sorted(dice.some(range(5), 5)) == [0, 1, 2, 3, 4]


# What the questions promise


@pytest.mark.parametrize("sample_id", samples.ids())
def test_enough_questions_of_every_kind(sample_id: str) -> None:
    records = samples.records(sample_id)
    assert len(records) >= 32
    assert sum(bool(record.question.evidence) for record in records) >= 8
    assert sum(record.question.text.startswith("How many") for record in records) >= 3
    levels = [record.difficulty for record in records]
    share = {level: levels.count(level) / len(levels) for level in set(levels)}
    assert 0.3 <= share["easy"] <= 0.5
    assert 0.2 <= share["medium"] <= 0.4
    assert 0.1 <= share["hard"] <= 0.3
    assert 0.05 <= share["extra"] <= 0.2
    assert len({record.question.text for record in records}) == len({record.question.id for record in records})


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_gold_executes_and_is_empty_only_where_marked(record: samples.SampleRecord) -> None:
    rows = fetch(record)
    assert record.empty == (not rows)
    assert all(value is not None for row in rows for value in row)


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_difficulty_is_spiders(record: samples.SampleRecord) -> None:
    assert record.question.gold_sql is not None
    assert record.difficulty == hardness(record.question.gold_sql)


ASKS_FOR_ORDER = re.compile(
    r"first\b|oldest|newest|latest|most|largest|busiest|wettest|favourite|youngest|shortest", re.IGNORECASE
)


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_ordered_only_where_the_question_asks(record: samples.SampleRecord) -> None:
    assert record.question.gold_sql is not None
    assert record.ordered == ("order by" in record.question.gold_sql.lower())
    assert record.ordered == any(isinstance(node, exp.Order) for node in gold_tree(record).walk())
    if record.ordered:
        assert ASKS_FOR_ORDER.search(record.question.text)


@pytest.mark.parametrize("record", [record for record in RECORDS if record.ordered], ids=lambda r: r.question.id)
def test_the_order_leaves_nothing_open(record: samples.SampleRecord) -> None:
    """Neighbours in the answer differ in what they are ordered by, the last row and the first one cut off included."""
    tree = gold_tree(record)
    width, keys = len(tree.expressions), [ordered.this for ordered in tree.args["order"].expressions]
    limit = tree.args.get("limit")
    count = int(limit.expression.name) if limit else None
    tree.set("limit", None)
    tree = tree.select(*(key.copy() for key in keys))
    rows = fetch(record, tree.sql("sqlite"))
    rows = rows if count is None else rows[: count + 1]
    assert all(above[width:] != below[width:] for above, below in pairwise(rows))


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_aliases_only_where_a_table_meets_itself(record: samples.SampleRecord) -> None:
    tree = gold_tree(record)
    assert not any(isinstance(node, exp.Alias) for node in tree.walk())
    aliased = [node.name for node in tree.find_all(exp.Table) if node.alias]
    assert all(aliased.count(name) > 1 for name in aliased)


# Nothing comes from a benchmark


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower()))


@pytest.mark.skipif(not (DATA / "spider").is_dir(), reason=f"no benchmark data at {DATA} (set MERIT_TEST_DATA)")
def test_no_id_and_no_question_is_taken_from_a_benchmark() -> None:
    files = [DATA / "spider" / "dev.json", DATA / "spider" / "train_spider.json", DATA / "bird" / "mini_dev.json"]
    theirs = [entry for file in files if file.exists() for entry in json.loads(file.read_text("utf-8"))]
    assert not set(samples.ids()) & {entry["db_id"].lower() for entry in theirs}
    texts = {words(entry["question"]) for entry in theirs}
    assert len(texts) > 1000
    for record in RECORDS:
        own = words(record.question.text)
        near = [text for text in texts if len(own & text) >= 0.9 * len(own | text)]
        assert not near, record.question.text
