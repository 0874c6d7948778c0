"""Schema texts and facts, on schemas as strange as people make them."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merit.database import Database
from merit.database.names import as_written, key, quoted
from merit.episode import Status
from merit.errors import BadInput

Build = Callable[..., Path]


def test_listing_is_the_text_of_the_spec(build: Build) -> None:
    path = build(
        "CREATE TABLE team(id INTEGER PRIMARY KEY, name VARCHAR(20), note);"
        "CREATE TABLE member(id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES team(id), since DATE);",
        "club.sqlite",
    )
    assert Database.open(path).schema() == (
        "Database: club\n\n"
        "Table: team\n"
        "  - id (integer, PRIMARY KEY)\n"
        "  - name (varchar(20))\n"
        "  - note (blob)\n\n"
        "Table: member\n"
        "  - id (integer, PRIMARY KEY)\n"
        "  - team_id (integer, FOREIGN KEY -> team.id)\n"
        "  - since (date)"
    )
    assert Database.open(path, id="other").schema("listing").startswith("Database: other\n\nTable: team\n")


def test_a_column_can_be_primary_and_foreign_key(build: Build) -> None:
    path = build("CREATE TABLE a(x INTEGER PRIMARY KEY); CREATE TABLE b(x INTEGER PRIMARY KEY REFERENCES a(x));")
    assert "  - x (integer, PRIMARY KEY, FOREIGN KEY -> a.x)" in Database.open(path).schema()


def test_ddl_text(build: Build) -> None:
    path = build(
        'CREATE TABLE "order"("group" INTEGER, no TEXT, -- a remark\n PRIMARY KEY(no, "group"));'
        "CREATE TABLE line(id INTEGER PRIMARY KEY, o INTEGER, n TEXT,"
        ' FOREIGN KEY(n, o) REFERENCES "ORDER"(NO, "GROUP"));'
        "CREATE VIEW big AS SELECT id FROM line WHERE id > 9"
    )
    assert Database.open(path).schema("ddl") == (
        'CREATE TABLE "order" (\n    "group" INTEGER,\n    "no" TEXT,\n    PRIMARY KEY ("no", "group")\n);\n\n'
        "CREATE TABLE line (\n    id INTEGER PRIMARY KEY,\n    o INTEGER,\n    n TEXT,\n"
        '    FOREIGN KEY (n, o) REFERENCES "order" ("no", "group")\n);\n\n'
        "CREATE VIEW big AS SELECT id FROM line WHERE id > 9;"
    )


def test_unknown_form_is_a_value_error(build: Build) -> None:
    with pytest.raises(ValueError, match="listing and ddl"):
        Database.open(build("CREATE TABLE t(a)")).schema("json")


def test_foreign_key_without_column_means_the_primary_key(build: Build) -> None:
    """foreign_key_list gives NULL as the target column, which once became the word None."""
    path = build(
        "CREATE TABLE writer(wid INTEGER PRIMARY KEY, pen TEXT);"
        "CREATE TABLE text_(id INTEGER PRIMARY KEY, by_ INTEGER REFERENCES writer);"
        "CREATE TABLE bin(shelf TEXT, slot TEXT, PRIMARY KEY(slot, shelf));"
        "CREATE TABLE item(a TEXT, b TEXT, FOREIGN KEY(a, b) REFERENCES bin);"
    )
    text = Database.open(path).schema()
    assert "  - by_ (integer, FOREIGN KEY -> writer.wid)" in text
    assert "  - a (text, FOREIGN KEY -> bin.slot)\n  - b (text, FOREIGN KEY -> bin.shelf)" in text
    assert "None" not in text


def test_foreign_keys_match_without_case_and_composite_ones_pair_by_sequence(build: Build) -> None:
    path = build(
        "CREATE TABLE Town(Id INTEGER PRIMARY KEY); CREATE TABLE shop(town INTEGER REFERENCES TOWN(ID));"
        "CREATE TABLE tank(place INTEGER, no TEXT, PRIMARY KEY(no, place));"
        "CREATE TABLE fill(p INTEGER, n TEXT, FOREIGN KEY(p, n) REFERENCES tank(place, no));"
    )
    tables = {table.name: table for table in Database.open(path).tables}
    assert str(tables["shop"].columns[0].foreign_key) == "Town.Id"
    assert [str(column.foreign_key) for column in tables["fill"].columns] == ["tank.place", "tank.no"]
    assert len(tables["fill"].foreign_keys) == 1
    assert tables["tank"].primary_key == ("no", "place")
    assert all(column.primary_key for column in tables["tank"].columns)


def test_a_foreign_key_that_leads_nowhere_is_reported_and_not_offered(build: Build) -> None:
    path = build(
        "CREATE TABLE a(x INTEGER PRIMARY KEY);"
        "CREATE TABLE b(p INTEGER REFERENCES gone(x), q INTEGER REFERENCES a(nope), r INTEGER REFERENCES a(x));"
    )
    database = Database.open(path)
    assert "gone" not in database.schema()
    assert "  - p (integer)\n  - q (integer)\n  - r (integer, FOREIGN KEY -> a.x)" in database.schema()
    assert len(database.problems) == 2
    assert any("gone" in problem for problem in database.problems)


def test_a_broken_view_hides_no_other_object(build: Build) -> None:
    path = build(
        "CREATE TABLE client(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO client VALUES(1,'Lea');"
        "CREATE TABLE bill(id INTEGER, client_id INTEGER);"
        "CREATE VIEW fine AS SELECT name FROM client;"
        "CREATE VIEW open_ AS SELECT client_id FROM bill; CREATE VIEW seg AS SELECT segment FROM client;"
        "DROP TABLE bill;"
    )
    database = Database.open(path)
    assert [(table.name, table.kind) for table in database.tables] == [("client", "table"), ("fine", "view")]
    assert any("open_" in problem and "no such table: main.bill" in problem for problem in database.problems)
    assert any("seg" in problem and "no such column: segment" in problem for problem in database.problems)
    assert database.execute("SELECT * FROM open_").error == "no such table: main.bill"


def test_a_view_that_explodes_hides_no_other_object(build: Build) -> None:
    """Each view names the one before twice: expanding the last takes 2^40 steps, while a statement is compiled,
    where no progress handler runs."""
    views = "".join(f"CREATE VIEW v{i} AS SELECT 1 AS x FROM v{i - 1} a, v{i - 1} b;" for i in range(1, 41))
    path = build(f"CREATE VIEW v0 AS SELECT 1 AS x; {views} CREATE TABLE plain(a TEXT);")
    started = time.monotonic()
    database = Database.open(path)
    assert time.monotonic() - started < 20
    assert "plain" in [table.name for table in database.tables]
    assert any("v40" in problem for problem in database.problems)
    assert database.execute("SELECT * FROM plain").status == Status.EXECUTED


def test_helper_tables_are_hidden_and_lookalikes_kept(build: Build) -> None:
    path = build(
        "CREATE TABLE memo(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT); CREATE TABLE memo_content(mime TEXT);"
        "CREATE VIRTUAL TABLE memo_fts USING fts5(body); CREATE VIRTUAL TABLE old USING fts4(body);"
        "CREATE VIRTUAL TABLE area USING rtree(id, x0, x1);"
        "INSERT INTO memo(body) VALUES('hello'); INSERT INTO memo_fts VALUES('hello'); INSERT INTO old VALUES('hello');"
        "INSERT INTO area VALUES(1, 0, 2); ANALYZE;"
    )
    database = Database.open(path)
    assert [table.name for table in database.tables] == ["memo", "memo_content", "memo_fts", "old", "area"]
    assert [column.name for column in database.tables[2].columns] == ["body"], "hidden columns stay hidden"
    # Reading them works under the authorizer, although modules prepare statements of their own.
    assert database.execute("SELECT body FROM memo_fts WHERE memo_fts MATCH 'hello'").rows == (("hello",),)
    assert database.execute("SELECT body FROM old WHERE old MATCH 'hello'").rows == (("hello",),)
    assert database.execute("SELECT id FROM area WHERE x1 > 1").rows == ((1,),)
    assert database.execute("SELECT key, value FROM json_each('[7]')").rows == ((0, 7),)


def test_generated_columns_are_listed(build: Build) -> None:
    path = build("CREATE TABLE g(a INTEGER, b INTEGER GENERATED ALWAYS AS (a*2) STORED, c INT AS (a+1) VIRTUAL)")
    assert Database.open(path).schema().endswith("  - a (integer)\n  - b (integer)\n  - c (int)")


AWKWARD = [
    "order",
    "stock ",
    'say "hi"',
    "odd]name",
    "2024-sales.csv",
    "😀 mood",
    "طلبات",
    "`tick`",
    "new\nline",
    "; DROP",
]


def test_awkward_names_survive_and_can_be_previewed(build: Build) -> None:
    path = build(
        "".join(f"CREATE TABLE {quoted(n)}({quoted(n + 'c')}); INSERT INTO {quoted(n)} VALUES(7);" for n in AWKWARD)
    )
    database = Database.open(path)
    assert [table.name for table in database.tables] == AWKWARD
    for name in AWKWARD:
        assert f"Table: {name}\n  - {name}c (blob)" in database.schema()
        shown = database.preview(name)
        assert (shown.columns, shown.rows) == ((f"{name}c",), ((7,),))
        assert database.row_count(name) == 1
    with pytest.raises(BadInput):
        database.preview("stock")


def test_preview_shows_so_many_rows(build: Build) -> None:
    path = build("CREATE TABLE t(i); INSERT INTO t VALUES(1),(2),(3); CREATE VIEW v AS SELECT i FROM t")
    database = Database.open(path)
    assert database.preview("t", 2).rows == ((1,), (2,))
    assert database.row_count("v") == 3


def test_types_replace_declared_ones_without_regard_to_case(build: Build) -> None:
    path = build("CREATE TABLE Pets(PetID INTEGER PRIMARY KEY, kind VARCHAR(9), born DATE)", "pets.sqlite")
    nested = {"pets": {"petid": "number", "KIND": "text", "wings": "number"}, "owners": {"id": "number"}}
    entry = {
        "db_id": "pets",
        "table_names_original": ["pets", "owners"],
        "column_names_original": [[-1, "*"], [0, "petid"], [0, "KIND"], [0, "wings"], [1, "id"]],
        "column_types": ["text", "number", "text", "number", "number"],
    }
    for types in (nested, entry):
        database = Database.open(path, types=types)
        assert database.schema() == (
            "Database: pets\n\nTable: Pets\n  - PetID (number, PRIMARY KEY)\n  - kind (text)\n  - born (date)"
        )
        assert "pets.wings, owners.id" in database.problems[0]
        assert "VARCHAR(9)" in database.schema("ddl"), "ddl keeps the declared types"


def test_schema_hash_is_of_the_ddl(build: Build) -> None:
    one = Database.open(build("CREATE TABLE t(a INTEGER)", "one.sqlite"))
    two = Database.open(build("CREATE TABLE t(a INTEGER)", "two.sqlite"))
    assert one.schema_hash == two.schema_hash == hashlib.sha256(one.schema("ddl").encode()).hexdigest()
    assert Database.open(build("CREATE TABLE t(a TEXT)", "three.sqlite")).schema_hash != one.schema_hash


def test_invalid_utf8_in_the_schema_hides_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "bad.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE fine(a); CREATE TABLE worseXX(b)")
    connection.close()
    path.write_bytes(path.read_bytes().replace(b"worseXX", b"worse\xff\xfe"))
    database = Database.open(path)
    assert "fine" in [table.name for table in database.tables]


def test_two_thousand_columns(build: Build) -> None:
    database = Database.open(build(f"CREATE TABLE wide({','.join(f'c{i}' for i in range(2000))})"))
    assert len(database.tables[0].columns) == 2000
    assert database.execute("SELECT * FROM wide").columns[-1] == "c1999"


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=2, max_size=5, unique_by=key))
def test_ddl_builds_the_same_schema_again(tmp_path: Path, names: list[str]) -> None:
    """Any names: the ddl text is SQL that makes the same tables, columns and keys."""
    names = [name for name in names if not name.lower().startswith("sqlite_")] or ["a"]
    path = tmp_path / "any.sqlite"
    path.unlink(missing_ok=True)
    columns = ", ".join(f"{quoted(name)} INTEGER" for name in names)
    connection = sqlite3.connect(path)
    connection.execute(
        f"CREATE TABLE {quoted(names[0])}({columns}, PRIMARY KEY({', '.join(map(quoted, names[::-1]))}))"
    )
    connection.execute(
        f"CREATE TABLE child_({columns}, FOREIGN KEY({columns.replace(' INTEGER', '')}) REFERENCES {quoted(names[0])})"
    )
    connection.close()
    first = Database.open(path)
    again = tmp_path / "again.sqlite"
    again.unlink(missing_ok=True)
    connection = sqlite3.connect(again)
    connection.executescript(first.schema("ddl"))
    connection.close()
    assert [table.columns for table in Database.open(again).tables] == [table.columns for table in first.tables]


@given(NAMES)
def test_a_name_as_written_is_read_back(name: str) -> None:
    for form in (quoted(name), as_written(name)):
        assert sqlite3.connect(":memory:").execute(f"SELECT 1 AS {form}").description[0][0] == name


def test_spider_databases_open_with_their_types_and_tables() -> None:
    """All files of the development data: every table and column of tables.json is found, no key leads nowhere."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    root = Path(os.environ.get("MERIT_TEST_DATA", default)) / "spider"
    if not root.is_dir():
        pytest.skip(f"the Spider data is not at {root}; set MERIT_TEST_DATA to its parent folder")
    entries = {entry["db_id"]: entry for entry in json.loads((root / "tables.json").read_text())}
    files = sorted(root.glob("database/*/*.sqlite"))
    assert files
    for file in files:
        database = Database.open(file, types=entries[file.stem])
        assert all("sqlite_sequence" in problem for problem in database.problems), database.problems
        shown = database.schema().count("\n  - ")
        listed = [
            (entries[file.stem]["table_names_original"][table], column)
            for table, column in entries[file.stem]["column_names_original"]
            if table >= 0
        ]
        assert shown == sum(table != "sqlite_sequence" for table, _ in listed)
