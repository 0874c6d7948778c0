"""Dumps and tables become databases: nothing is lost on the way, and what cannot be used is said with its place."""

# ruff: noqa: E501 (tables of cases)

from __future__ import annotations

import datetime
import decimal
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merit.database import Database, conversion
from merit.database.conversion import ColumnPlan, FileKind, TablePlan, convert, kind_of, preview_table, table_name
from merit.database.delimited import as_integer, as_real, named
from merit.database.dump import statements
from merit.errors import BadInput


@pytest.fixture
def csv(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Write bytes or text to a file of a new name and return its path."""

    def write(content: str | bytes, name: str = "file.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def rows(
    source: Path, target: Path, kind: FileKind = FileKind.CSV, plan: TablePlan | None = None
) -> list[tuple[object, ...]]:
    """The rows of the one table that a file becomes."""
    convert(source, target, kind, plan, name="t")
    database = Database.open(target)
    return list(database.execute(f'SELECT * FROM "{database.tables[0].name}"').rows)


def types(plan: TablePlan) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in plan.columns]


def test_types_hold_what_was_written(csv, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Numbers that SQLite would change, postal codes and dates are texts; the rest are numbers."""
    path = csv(
        "n,big,huge,zip,price,e,mixed,day,none,sign\n"
        "1,9007199254740993,99999999999999999999,01234,0.1,1e3,1,2024-01-31,,+5\n"
        "-2,,1,98765,12.50,2.5E-2,1.5,2024-02-30,,5\n"
    )
    plan = preview_table(path, "My sales (2).csv")
    assert (plan.table, plan.rows, plan.encoding, plan.delimiter, plan.header) == ("My_sales_2", 2, "utf-8", ",", True)
    assert types(plan) == [
        ("n", "INTEGER"), ("big", "INTEGER"), ("huge", "TEXT"), ("zip", "TEXT"), ("price", "REAL"), ("e", "REAL"),
        ("mixed", "REAL"), ("day", "TEXT"), ("none", "TEXT"), ("sign", "TEXT"),
    ]  # fmt: skip
    assert plan.columns[1].examples == ("9007199254740993",)
    assert rows(path, tmp_path / "t.db") == [
        (1, 9007199254740993, "99999999999999999999", "01234", 0.1, 1000.0, 1.0, "2024-01-31", None, "+5"),
        (-2, None, "1", "98765", 12.5, 0.025, 1.5, "2024-02-30", None, "5"),
    ]


@pytest.mark.parametrize(
    ("text", "integer", "real"),
    [
        ("0", 0, 0.0), ("-1", -1, -1.0), ("9223372036854775807", 2**63 - 1, None), ("9223372036854775808", None, None),
        ("-9223372036854775808", -(2**63), None), ("007", None, None), ("00", None, None), ("-0", None, -0.0), ("1.0", None, 1.0),
        ("0.1", None, 0.1), (".5", None, 0.5), ("5.", None, 5.0), ("1e400", None, None), ("1e-400", None, None), ("nan", None, None),
        ("inf", None, None), ("0x10", None, None), ("1_000", None, None), ("١", None, None), (" 1", None, None), ("1,5", None, None),
        ("0.1000000000000000055511151231257827", None, None), ("3.141592653589793", None, 3.141592653589793), ("+1", None, None),
        ("12345678901234567890", None, None), ("1e22", None, 1e22), ("1e23", None, 1e23), ("", None, None), ("--1", None, None),
    ],
)  # fmt: skip
def test_numbers(text: str, integer: int | None, real: float | None) -> None:
    assert as_integer(text) == integer
    assert as_real(text) == real


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1))
def test_what_python_writes_is_read_back(real: float, integer: int) -> None:
    assert as_real(repr(real)) == real
    assert as_integer(str(integer)) == integer
    assert as_real(str(integer)) in (float(integer), None)
    if as_real(str(integer)) is not None and abs(integer) >= 10**15:
        assert int(float(integer)) == integer


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=8), max_size=6))
def test_names_of_columns_are_unique_and_usable(headings: list[str]) -> None:
    found, _ = named(headings, len(headings) + 2)
    names = [name for name, _ in found]
    assert len({name.lower() for name in names}) == len(headings) + 2
    connection = sqlite3.connect(":memory:")
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    connection.execute(f"CREATE TABLE t({listed})")
    connection.close()


@pytest.mark.parametrize(
    ("headings", "names", "notes"),
    [
        (["a", "A", "a"], ["a", "A_2", "a_3"], 1), (["", "b", " "], ["column_1", "b", "column_3"], 1), (["a\nb", " c "], ["a b", "c"], 0),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"], 1), (["column_2", ""], ["column_2", "column_2_2"], 1), (["n" * 300], ["n" * 100], 0),
    ],
)  # fmt: skip
def test_headings(headings: list[str], names: list[str], notes: int) -> None:
    found, said = named(headings, len(headings))
    assert [name for name, _ in found] == names
    assert len(said) == notes


@pytest.mark.parametrize(
    ("content", "encoding", "delimiter", "cells"),
    [
        ("a;b\nä;1,5\n", "utf-8", ";", [("ä", "1,5")]), ("a\tb\nx y\t2\n", "utf-8", "\t", [("x y", 2)]), ("a|b\n1|2\n", "utf-8", "|", [(1, 2)]),
        ("a;b\nGrüße;€\n".encode("cp1252"), "cp1252", ";", [("Grüße", "€")]), ("\ufeffa,b\n1,2\n", "utf-8-sig", ",", [(1, 2)]),
        ("a,b\né,2\n".encode("utf-16"), "utf-16", ",", [("é", 2)]), ("a\n1,5\n", "utf-8", ",", [(1, 5)]),
        ('a,b\n"x,y","say ""hi""\nthere"\n', "utf-8", ",", [("x,y", 'say "hi"\nthere')]), ("a,b\r\n1,2\r\n", "utf-8", ",", [(1, 2)]),
        ("a,b\r1,2\r", "utf-8", ",", [(1, 2)]), ("only\n1\n", "utf-8", ",", [(1,)]),
    ],
)  # fmt: skip
def test_encodings_and_delimiters(
    csv, tmp_path: Path, content: str | bytes, encoding: str, delimiter: str, cells: list[object]
) -> None:  # type: ignore[no-untyped-def]
    path = csv(content)
    plan = preview_table(path)
    assert plan.encoding == encoding
    if len(plan.columns) > 1 and "1,5" not in str(content):
        assert plan.delimiter == delimiter
    assert rows(path, tmp_path / "t.db") == cells
    assert any("Windows-1252" in note for note in plan.notes) == (encoding == "cp1252")


def test_rows_of_other_lengths_lose_nothing(csv, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = csv("a,b\n1\n1,2,3\n\n4,5\n")
    plan = preview_table(path)
    assert types(plan) == [("a", "INTEGER"), ("b", "INTEGER"), ("column_3", "INTEGER")]
    assert [note.split(" rows")[0] for note in plan.notes] == ["1", "1"]
    assert rows(path, tmp_path / "t.db") == [(1, None, None), (1, 2, 3), (4, 5, None)]


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("id,name\n1,x\n", True),
        ("1,x\n2,y\n", False),
        ("country,2019,2020\nx,1,2\n", True),
        ("x,y\n", True),
        ("a,1.5\n", False),
    ],
)
def test_whether_the_first_line_holds_names(csv, content: str, header: bool) -> None:  # type: ignore[no-untyped-def]
    path = csv(content)
    assert preview_table(path).header is header
    turned = preview_table(path, header=not header)
    assert turned.header is not header
    assert turned.rows == content.count("\n") - (not header)


def test_a_changed_plan_is_carried_out(csv, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = csv("a,b\n1,x\n2,y\n")
    plan = preview_table(path, "t")
    changed = replace(plan, table="Mine; DROP", columns=(ColumnPlan('q"x', "TEXT"), ColumnPlan("<b>", "INTEGER")))
    assert rows(path, tmp_path / "t.db", plan=changed) == [("1", "x"), ("2", "y")]
    assert Database.open(tmp_path / "t.db").schema() == (
        'Database: t\n\nTable: Mine; DROP\n  - q"x (text)\n  - <b> (integer)'
    )
    assert stat.S_IMODE((tmp_path / "t.db").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"table": " "}, "need a name"), ({"table": "sqlite_x"}, "belong to SQLite"), ({"table": "a\0"}, "number 0"),
        ({"columns": (ColumnPlan("a", "TEXT"), ColumnPlan("A", "TEXT"))}, "same name"),
        ({"columns": (ColumnPlan("a", "VARCHAR; DROP TABLE x"), ColumnPlan("b", "TEXT"))}, "no column type"),
        ({"columns": (ColumnPlan("a", "TEXT"),)}, "fewer columns"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_carried_out(csv, tmp_path: Path, change: dict[str, object], words: str) -> None:  # type: ignore[no-untyped-def]
    path = csv("a,b\n1,x\n")
    with pytest.raises(BadInput, match=words):
        convert(path, tmp_path / "t.db", FileKind.CSV, replace(preview_table(path), **change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"), (b"\n\n", "no rows"), (b"," * 2000, "2,001 columns"), (b"a\n" + b"x" * 10_000_001, "at line 2: a cell is larger"),
        (b'a,b\n1,"' + b"x\n" * 5_100_000, "quotation mark"),
    ],
    ids=["empty", "blank", "columns", "cell", "quote"],
)  # fmt: skip
def test_tables_that_cannot_be_read(csv, content: bytes, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=words):
        preview_table(csv(content))


def test_as_many_columns_as_sqlite_has(csv, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = csv(",".join(f"c{n}" for n in range(2000)) + "\n" + ",".join(map(str, range(2000))) + "\n")
    assert rows(path, tmp_path / "t.db") == [tuple(range(2000))]


def test_parquet_keeps_values(tmp_path: Path) -> None:
    """What SQLite has no type for becomes text that says the same, to the last digit."""
    path = tmp_path / "t.parquet"
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 5)
    table = pa.table(
        {
            "big": pa.array([2**53 + 1, None]), "u": pa.array([2**64 - 1, 1], pa.uint64()), "f": pa.array([0.1, None]), "b": [True, None],
            "t": ["ä", None], "raw": [b"\x00\xff", None], "day": [datetime.date(2024, 2, 29), None], "at": [moment, None],
            "d": pa.array([decimal.Decimal("12345678901234567890.12"), None]), "l": [[1, None], None], "s": [{"x": "ü"}, None],
            "c": pa.array(["x", "x"]).dictionary_encode(), "n": pa.nulls(2),
        }
    )  # fmt: skip
    pq.write_table(table, path)
    plan = preview_table(path, "x")
    assert [column.type for column in plan.columns] == [
        "INTEGER", "TEXT", "REAL", "INTEGER", "TEXT", "BLOB", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT",
    ]  # fmt: skip
    assert rows(path, tmp_path / "t.db", FileKind.PARQUET) == [
        (2**53 + 1, "18446744073709551615", 0.1, 1, "ä", b"\x00\xff", "2024-02-29", "2024-02-29T12:30:01.000005",
         "12345678901234567890.12", "[1, null]", '{"x": "ü"}', "x", None),
        (None, "1", *[None] * 9, "x", None),
    ]  # fmt: skip


def test_parquet_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    """A hundred kilobytes can hold gigabytes of one repeated value."""
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"a": pa.array(["x" * 10_000]).dictionary_encode().take(pa.array([0] * 1_000_000))}), path)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(BadInput, match=r"too large|unpacks to more|memory"):
        convert(path, tmp_path / "t.db", FileKind.PARQUET)
    assert (tmp_path / "t.db").stat().st_size <= 65 << 20


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1" + b"\xff" * 500 + b"PAR1", b"PAR1" + bytes(100)])
def test_parquet_that_is_damaged(csv, content: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match="damaged"):
        preview_table(csv(content))


# dumps


def test_the_dump_of_a_database_is_that_database(tmp_path: Path, csv) -> None:  # type: ignore[no-untyped-def]
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.executescript(
        "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT, c BLOB, d REAL);"
        "INSERT INTO t VALUES(1, 'it''s; \"x\" --no\n/* no */', x'00ff', 1e300), (7, 'ä', NULL, -0.5);"
        "CREATE TABLE u(x PRIMARY KEY REFERENCES t(a)) WITHOUT ROWID; CREATE INDEX i ON t(b);"
        "CREATE VIEW v AS SELECT a FROM t; CREATE TRIGGER g AFTER INSERT ON u BEGIN DELETE FROM t WHERE a = 1; SELECT 1; END;"
    )
    dump = "\n".join(connection.iterdump())
    connection.close()
    convert(csv(dump), tmp_path / "b.db", FileKind.SQL)
    again = sqlite3.connect(tmp_path / "b.db")
    assert "\n".join(again.iterdump()) == dump
    again.close()


HARMFUL = [
    ("ATTACH '{}' AS x; CREATE TABLE x.y(a);", "other files are out of reach"),
    ("VACUUM INTO '{}';", "VACUUM"),
    ("SELECT load_extension('x');", "function load_extension is not allowed"),
    ("PRAGMA writable_schema=ON;", "PRAGMA writable_schema is not allowed"),
    ("PRAGMA temp_store_directory='/tmp';", "not allowed"),
    ("CREATE TEMP TABLE x(a);", "not allowed"),
    ("CREATE VIRTUAL TABLE x USING csv(filename='{}');", "kind csv are not allowed"),
    ("INSERT INTO sqlite_master VALUES(1,2,3,4,5);", "may not be modified"),
    (
        "CREATE TABLE u(a DEFAULT (load_extension('x'))); INSERT INTO u DEFAULT VALUES;",
        "unsafe use of load_extension",
    ),
    ("ROLLBACK;", "not allowed"),
    ("SELECT fts3_tokenizer('simple');", "not allowed|not authorized|no such"),
]


@pytest.mark.parametrize(("text", "words"), HARMFUL, ids=[text[:30] for text, _ in HARMFUL])
def test_a_dump_may_not(csv, tmp_path: Path, text: str, words: str) -> None:  # type: ignore[no-untyped-def]
    elsewhere = tmp_path / "elsewhere.db"
    with pytest.raises(BadInput, match=words):
        convert(csv("CREATE TABLE t(a);\n" + text.format(elsewhere)), tmp_path / "t.db", FileKind.SQL)
    assert {path.name for path in tmp_path.iterdir()} == {"file.csv", "t.db"}


def test_errors_are_told_with_statement_and_line(csv, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = (
        "-- my dump\nCREATE TABLE t(a);\n\nINSERT INTO t VALUES('a\nb');\nINSERT INTO u VALUES(1); /* c\n */\n SELEC 1;\n"
        + "x;" * 9
    )
    with pytest.raises(BadInput) as caught:
        convert(csv(text), tmp_path / "t.db", FileKind.SQL)
    said = str(caught.value)
    assert "Statement 3 (line 6): no such table: u; statement 4 (line 8): near" in said
    assert said.count("line") == 5, "the first five say enough"


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("CREATE TABLE `t` (`a` int AUTO_INCREMENT) ENGINE=InnoDB;", "MySQL"), ("SELECT pg_catalog.set_config('a', '', false);", "PostgreSQL"),
        ("SET ANSI_NULLS ON\nGO\n", "SQL Server"), ("SELECT 1 FROM nowhere;", ""),
    ],
)  # fmt: skip
def test_dumps_of_other_systems(csv, tmp_path: Path, text: str, system: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput) as caught:
        convert(csv(text), tmp_path / "t.db", FileKind.SQL)
    assert (f"dump of {system}" in str(caught.value)) == bool(system)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a; b", [(1, "a;"), (1, "b")]), ("", []), (";;\n;", []), ("-- x;\n/* ; */ a 'x;''y' \"z;\" [w;] `v;`;\nb;", [(2, "a 'x;''y' \"z;\" [w;] `v;`;"), (3, "b;")]),
        ("CREATE TRIGGER g AFTER INSERT ON t BEGIN a; b; END;\nc", [(1, "CREATE TRIGGER g AFTER INSERT ON t BEGIN a; b; END;"), (2, "c")]),
        ("a 'open; b", [(1, "a 'open; b")]), ("a /* open; b", [(1, "a /* open; b")]), ("\n\na\n;\n\nb;", [(3, "a\n;"), (6, "b;")]), ("/* only */", []),
    ],
)  # fmt: skip
def test_statements_of_a_text(text: str, found: list[tuple[int, str]]) -> None:
    assert list(statements(text)) == found


def test_a_text_is_cut_in_linear_time() -> None:
    for text in ("'" * 400_001, "/*" * 300_000, "-" * 600_000, ";" * 600_000, "a;\n" * 100_000, '"' * 300_001 + ";"):
        list(statements(text))


def test_the_deadline_ends_a_dump(csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(conversion, "DEADLINE_S", 0.5)
    endless = "CREATE TABLE t(a); INSERT INTO t WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i FROM r) SELECT i FROM r WHERE i = 2;"
    with pytest.raises(BadInput, match=r"within 0\.5 seconds"):
        convert(csv(endless), tmp_path / "t.db", FileKind.SQL)


def test_a_process_that_does_not_end_is_ended(csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(conversion, "DEADLINE_S", 0.2)
    monkeypatch.setattr(conversion, "START_S", 0.3)
    monkeypatch.setattr(conversion, "PACKAGE_ROOT", tmp_path)
    package = tmp_path / "merit" / "database"
    package.mkdir(parents=True)
    (package / "importing.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(BadInput, match="within"):
        preview_table(csv("a\n1\n"))
    (package / "importing.py").write_text("import sys\nwhile True: sys.stdout.write('x' * 1000000)\n")
    with pytest.raises(BadInput):
        preview_table(csv("a\n1\n"))
    (package / "importing.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    with pytest.raises(BadInput, match="could not be read"):
        preview_table(csv("a\n1\n"))


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b"SQLite format 3\0", "a.csv", FileKind.SQLITE), (b"PAR1", "a.db", FileKind.PARQUET), (b"CREATE TABLE t(a);", "a.db", FileKind.SQL),
        (b"x,y", "a.CSV", FileKind.CSV), (b"x\ty", "a.tsv", FileKind.CSV), (b"hello", "a.sql", FileKind.SQL), (b"\xff\xfea\0", "a.csv", FileKind.CSV),
        (b"\xe4;b", "a.csv", FileKind.CSV), (b"-- dump\n", "a", FileKind.SQL),
    ],
)  # fmt: skip
def test_kinds_go_by_content(csv, head: bytes, name: str, kind: FileKind) -> None:  # type: ignore[no-untyped-def]
    assert kind_of(csv(head), name) == kind


@pytest.mark.parametrize(
    ("head", "name", "words"),
    [
        (b"", "a.csv", "empty"), (b"PK\3\4", "a.csv", "ZIP"), (b"a\0b", "a.csv", "bytes that no text has"), (b"x,y", "a.db", "perhaps CSV"),
        (bytes(512), "a.sqlite", "encrypted"), (b"\x1f\x8b", "dump.sql", "gzip"),
    ],
)  # fmt: skip
def test_kinds_that_cannot_become_a_database(csv, head: bytes, name: str, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=words):
        kind_of(csv(head), name)


@pytest.mark.parametrize(
    ("title", "name"),
    [("a b.csv", "a_b"), ("2024 sales.csv", "t_2024_sales"), ("Größe.csv", "Größe"), ("../x.csv", "x"), (".csv", "csv"), ("!!", "table"),
     ("sqlite_x.csv", "t_sqlite_x"), ("x" * 200, "x" * 60)],
)  # fmt: skip
def test_names_of_tables(title: str, name: str) -> None:
    assert table_name(title) == name
