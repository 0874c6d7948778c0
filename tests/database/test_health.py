"""What a person is told about a database before they ask it anything."""

# ruff: noqa: E501 (tables of cases)

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from merit.database import Database, samples
from merit.database.health import Finding, FindingKind, health

Build = Callable[..., Path]
KEYED = "CREATE TABLE a(id INTEGER PRIMARY KEY, x); CREATE TABLE b(id INTEGER PRIMARY KEY, a REFERENCES a(id));"
FILLED = KEYED + "INSERT INTO a VALUES(1, 2); INSERT INTO b VALUES(1, 1);"


def found(path: Path, kind: FindingKind) -> list[Finding]:
    return [finding for finding in health(Database.open(path)) if finding.kind is kind]


def test_a_healthy_database_has_no_findings(build: Build) -> None:
    assert health(Database.open(build(FILLED))) == ()


def test_keys(build: Build) -> None:
    (none,) = found(build("CREATE TABLE t(a); CREATE TABLE u(a)", "a.db"), FindingKind.NO_KEYS)
    assert none.table == ""
    (one,) = found(build("CREATE TABLE t(a PRIMARY KEY); CREATE TABLE u(a)", "b.db"), FindingKind.NO_KEYS)
    assert one.table == "u"
    assert (
        len(
            found(
                build("CREATE TABLE t(a PRIMARY KEY); CREATE TABLE u(a PRIMARY KEY)", "c.db"),
                FindingKind.NO_FOREIGN_KEYS,
            )
        )
        == 1
    )
    assert found(build("CREATE TABLE t(a PRIMARY KEY)", "d.db"), FindingKind.NO_FOREIGN_KEYS) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["2024-01-31", None], "sort and compare well"), (["2024-01-31 10:00:00", "2024-01-31T10:00:00Z"], "sort and compare well"),
        (["31.01.2024", "1.2.2024", ""], "do not sort"), (["01/31/24"], "do not sort"), (["January 5, 2024"], "do not sort"),
        (["5 Jan 2024"], "do not sort"), (["2024/01/31"], "do not sort"),
    ],
)  # fmt: skip
def test_dates_as_text(tmp_path: Path, values: list[str | None], words: str) -> None:
    path = tmp_path / "t.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, d TEXT)")
    connection.executemany("INSERT INTO t(d) VALUES(?)", [(value,) for value in values])
    connection.commit()
    connection.close()
    (finding,) = found(path, FindingKind.DATES_AS_TEXT)
    assert finding.sentence.startswith(f"t.d keeps dates as text such as {values[0]}.")
    assert words in finding.sentence


@pytest.mark.parametrize(
    "values", ["(20240131)", "('x'), ('2024-01-31')", "('1.2.3')", "('10-20')", "(NULL)", "(x'00')"]
)
def test_what_is_no_date_as_text(build: Build, values: str) -> None:
    assert found(build(f"CREATE TABLE t(d); INSERT INTO t VALUES{values}"), FindingKind.DATES_AS_TEXT) == []


def test_the_same_name_in_many_tables(build: Build) -> None:
    script = "".join(f"CREATE TABLE t{n}(id INTEGER PRIMARY KEY, name, Note TEXT, p REFERENCES t0);" for n in range(5))
    (finding,) = found(build(script), FindingKind.SAME_NAME)
    assert "5 tables have a column Note (t0, t1, t2, t3, t4)" in finding.sentence


def test_empty_tables_and_views_that_fail(build: Build) -> None:
    path = build(FILLED + "CREATE TABLE e(id PRIMARY KEY); CREATE VIEW v AS SELECT abs(-9223372036854775807 - 1) z FROM a;"
                 "CREATE VIEW bare AS SELECT * FROM a WHERE 0; CREATE VIEW gone AS SELECT * FROM missing;")  # fmt: skip
    assert [finding.table for finding in found(path, FindingKind.EMPTY_TABLE)] == ["e"]
    (view,) = found(path, FindingKind.VIEW_FAILS)
    assert view.sentence == "The view v fails (integer overflow)."
    (left,) = found(path, FindingKind.LEFT_OUT)
    assert "gone" in left.sentence


def test_text_that_is_not_utf8(build: Build) -> None:
    (finding,) = found(build("CREATE TABLE t(a); INSERT INTO t VALUES(CAST(x'41ff' AS TEXT))"), FindingKind.NOT_UTF8)
    assert finding.table == "t"


def test_a_log_that_is_missing(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t(a)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    shutil.copyfile(tmp_path / "a.db", tmp_path / "b.db")
    connection.close()
    assert len(found(tmp_path / "b.db", FindingKind.LOG_MISSING)) == 1


def test_patience_ends(build: Build) -> None:
    endless = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
    database = Database.open(
        build("CREATE TABLE t(a);" + "".join(f"CREATE VIEW v{n} AS {endless};" for n in range(30)))
    )
    started = time.monotonic()
    told = health(database, 1.0)
    assert time.monotonic() - started < 4
    assert any("takes too long" in finding.sentence for finding in told)
    assert told[-1].kind is FindingKind.NOT_LOOKED_AT
    assert "more tables" in told[-1].sentence


@pytest.mark.parametrize("id", samples.ids())
def test_of_the_samples_every_finding_is_a_sentence(id: str) -> None:
    for finding in health(Database.open(samples.path(id))):
        assert finding.sentence.endswith(".")
        assert "\n" not in finding.sentence
