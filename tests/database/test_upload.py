"""Files from strangers: each that is no usable database gets its sentence, each that is one is read and left alone."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import shutil
import sqlite3
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from merit.database import Database, check_upload, execution
from merit.database.upload import private_copy
from merit.episode import Status
from merit.errors import DatabaseNotFound, DatabaseUnreadable, MeritError

Build = Callable[..., Path]

TWO_TABLES = "CREATE TABLE t(a TEXT); CREATE TABLE u(b TEXT); INSERT INTO t VALUES('x'); INSERT INTO u VALUES('y');"


def _fingerprint(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def test_a_good_file_is_reported(build: Build) -> None:
    path = build(TWO_TABLES + "CREATE VIEW bad AS SELECT * FROM gone;")
    report = check_upload(path)
    assert (report.ok, report.reason, report.tables, report.size) == (True, "", ("t", "u"), path.stat().st_size)
    assert "bad" in report.findings[0]
    assert check_upload(str(path)) == report


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _csv(path: Path) -> None:
    path.write_text("id,name\n1,Zoë\n" * 600, encoding="utf-8")  # the first 4,096 bytes cut a character or not


def _dump(path: Path) -> None:
    path.write_text("BEGIN TRANSACTION;\nCREATE TABLE t(a);\nCOMMIT;\n")


def _gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes()))


def _zip(path: Path) -> None:
    data = path.read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.db", data)


def _noise(path: Path) -> None:
    path.write_bytes(random.Random(3).randbytes(8192))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096])


def _cut_in_the_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:60])


def _page_size(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[16:18] = b"\x03\x07"
    path.write_bytes(data)


def _schema_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)


def _sqlite_2(path: Path) -> None:
    path.write_bytes(b"** This file contains an SQLite 2.1 database **" + bytes(1000))


BAD = [
    (_empty, "empty (0 bytes)"),
    (_csv, "text file, perhaps CSV"),
    (_dump, "text file with SQL statements"),
    (_gzip, "gzip archive; unpack it first"),
    (_zip, "ZIP archive; unpack it first"),
    (_noise, "encrypted or something else"),
    (_cut, "cut off, 4,096 of 12,288 bytes"),
    (_cut_in_the_header, "cut off after 60 bytes"),
    (_page_size, "impossible page size (775)"),
    (_schema_page, "damaged"),
    (_sqlite_2, "database of SQLite 2"),
]


@pytest.mark.parametrize(("spoil", "words"), BAD, ids=[spoil.__name__.strip("_") for spoil, _ in BAD])
def test_what_is_no_database_is_refused_in_words(build: Build, spoil: Callable[[Path], None], words: str) -> None:
    """connect() never fails and zero bytes even work: a refusal has to come from looking at the file."""
    path = build(TWO_TABLES)
    spoil(path)
    report = check_upload(path)
    assert not report.ok
    assert words in report.reason
    assert report.size == path.stat().st_size
    with pytest.raises(DatabaseUnreadable) as caught:
        Database.open(path)
    assert words in str(caught.value)


def test_damage_beyond_the_first_page_is_found_by_the_check(build: Build) -> None:
    path = build(TWO_TABLES)
    data = bytearray(path.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    path.write_bytes(data)
    report = check_upload(path)
    assert not report.ok
    assert "damaged" in report.reason


@pytest.mark.parametrize("cut", [*range(0, 110, 9), 511, 512, 1000, 4095, 4097, 8191, 8192, 12287])
def test_a_file_cut_anywhere_is_refused_and_never_raises(build: Build, cut: int) -> None:
    path = build(TWO_TABLES)
    path.write_bytes(path.read_bytes()[:cut])
    report = check_upload(path)
    assert not report.ok
    assert report.reason.endswith(".")


def test_flipped_bytes_never_raise_anything_but_a_sentence(build: Build) -> None:
    path = build(
        TWO_TABLES + "CREATE INDEX i ON t(a); CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES('y');"
    )
    whole = path.read_bytes()
    dice = random.Random(11)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 4, 64))):
            data[dice.randrange(dice.choice((100, 4096, len(data))))] = dice.randrange(256)
        path.write_bytes(data)
        check_upload(path)
        try:
            database = Database.open(path)
        except MeritError:
            continue
        for table in database.tables:
            assert database.execute(f'SELECT * FROM "{table.name}"').status in (Status.EXECUTED, Status.EXECUTION_ERROR)
        database.execute("SELECT * FROM f WHERE f MATCH 'y'")


def test_no_tables_is_said(tmp_path: Path) -> None:
    path = tmp_path / "bare.db"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE t(a); DROP TABLE t")
    connection.close()
    report = check_upload(path)
    assert (report.ok, report.reason) == (False, "The database has no tables.")
    database = Database.open(path)
    assert (database.tables, database.problems) == ((), ("The database has no tables.",))
    assert database.schema() == "Database: bare"


def test_tables_that_cannot_be_read_are_not_said_to_be_absent(build: Build) -> None:
    path = build("CREATE TABLE abcde(v)")
    path.write_bytes(path.read_bytes().replace(b"abcde", b"a\xff\xfe\x80e"))
    report = check_upload(path)
    assert not report.ok
    assert report.reason.startswith("No table of the database can be read. The table a")


def test_missing_and_strange_paths(tmp_path: Path) -> None:
    with pytest.raises(DatabaseNotFound, match="no database at"):
        Database.open(tmp_path / "none.sqlite")
    with pytest.raises(DatabaseUnreadable, match="folder"):
        Database.open(tmp_path)
    assert not check_upload(tmp_path / "none.sqlite").ok
    assert not check_upload(tmp_path).ok
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(MeritError):
        Database.open(tmp_path / "loop")
    with pytest.raises(MeritError):
        Database.open("nul\0in.name")


def test_names_with_uri_characters_open_the_right_file(tmp_path: Path) -> None:
    """A path pasted into a URI is cut at # and ?, and %41 is decoded: another file opens, or one is created."""
    made = {"we#ird.db": "a", "we": "wrong", "q?mode=rwc.db": "b", "r%41.db": "c", "rA.db": "wrong", "sp ace é.db": "d"}
    for name, table in made.items():
        connection = sqlite3.connect(tmp_path / name)
        connection.execute(f"CREATE TABLE {table}(x)")
        connection.close()
    before = _fingerprint(tmp_path)
    for name, table in made.items():
        database = Database.open(tmp_path / name)
        assert [found.name for found in database.tables] == [table]
        assert database.execute(f"INSERT INTO {table} VALUES(1)").status == Status.EXECUTION_ERROR
        assert check_upload(tmp_path / name).tables == (table,)
    assert _fingerprint(tmp_path) == before


def _in_wal_mode(path: Path, folder: Path) -> Path:
    """A copy, log included, of a database in use: table t is checkpointed, row 2 and table late are in the log."""
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1);")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.executescript("INSERT INTO t VALUES(2); CREATE TABLE late(b);")
    folder.mkdir()
    for ending in ("", "-wal"):
        shutil.copyfile(f"{path}{ending}", folder / f"live.db{ending}")
    connection.close()
    return folder / "live.db"


def test_a_log_beside_the_file_is_read_and_left_alone(tmp_path: Path) -> None:
    path = _in_wal_mode(tmp_path / "source.db", tmp_path / "use")
    before = _fingerprint(path.parent)
    database = Database.open(path)
    assert [table.name for table in database.tables] == ["t", "late"]
    assert database.execute("SELECT a FROM t").rows == ((1,), (2,))
    assert database.problems == ()
    assert database.path == path
    assert check_upload(path).tables == ("t", "late")
    assert _fingerprint(path.parent) == before, "no -shm, and the log as it was"


def test_the_private_copy_goes_with_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    path = _in_wal_mode(tmp_path / "source.db", tmp_path / "use")
    check_upload(path)
    assert not list(temporary.iterdir())
    database = Database.open(path)
    assert list(temporary.iterdir())
    del database
    assert not list(temporary.iterdir())


def test_write_ahead_mode_without_its_log(tmp_path: Path) -> None:
    """Such a file looks healthy and shows old rows, or no tables at all."""
    path = _in_wal_mode(tmp_path / "source.db", tmp_path / "use")
    Path(f"{path}-wal").unlink()
    database = Database.open(path)
    assert database.execute("SELECT a FROM t").rows == ((1,),)
    assert "-wal" in database.problems[0]
    assert "-wal" in check_upload(path).findings[0]
    assert sorted(_fingerprint(path.parent)) == ["live.db"], "reading it makes no -wal and no -shm"


def test_write_ahead_mode_with_all_tables_in_the_missing_log(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "source.db")
    connection.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t(a);")
    path = tmp_path / "alone.db"
    shutil.copyfile(tmp_path / "source.db", path)
    connection.close()
    assert "-wal" in check_upload(path).reason
    with pytest.raises(DatabaseUnreadable, match="-wal"):
        Database.open(path)


def test_an_unfinished_journal_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    """A crash in the middle of a change leaves half of it in the file and the way back in the journal."""
    source = tmp_path / "source.db"
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA cache_size=1")
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES(1)")
    connection.execute("BEGIN")
    connection.execute(
        "WITH RECURSIVE r(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM r LIMIT 20000) INSERT INTO t SELECT i FROM r"
    )
    folder = tmp_path / "crashed"
    folder.mkdir()
    for ending in ("", "-journal"):
        shutil.copyfile(f"{source}{ending}", folder / f"a.db{ending}")
    connection.execute("ROLLBACK")
    connection.close()
    before = _fingerprint(folder)
    assert Database.open(folder / "a.db").execute("SELECT count(*) FROM t").rows == ((1,),)
    assert _fingerprint(folder) == before


def test_a_log_that_belongs_to_nothing(build: Build) -> None:
    path = build(TWO_TABLES)
    Path(f"{path}-wal").write_bytes(random.Random(5).randbytes(5000))
    assert check_upload(path).tables == ("t", "u"), "SQLite ignores frames whose checksums are wrong"
    path.write_text("id,name\n")
    assert "text file" in check_upload(path).reason


def test_private_copy_has_a_name_and_a_mode_of_our_own(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    copy = private_copy(build(TWO_TABLES, "../../etc passwd.db".replace("/", "_")), folder)
    assert list(folder.iterdir()) == [copy]
    assert "passwd" not in copy.name
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [table.name for table in Database.open(copy).tables] == ["t", "u"]


def test_reading_a_folder_that_cannot_be_written(build: Build) -> None:
    path = build(TWO_TABLES)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        assert Database.open(path).execute("SELECT a FROM t").rows == (("x",),)
    finally:
        path.parent.chmod(0o755)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(build: Build) -> None:
    path = build(TWO_TABLES)
    path.chmod(0)
    assert "cannot be read" in check_upload(path).reason


def test_the_check_keeps_its_deadline(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(TWO_TABLES)
    monkeypatch.setattr(execution, "inspect", lambda *_: [])
    assert check_upload(path, timeout_s=0.5).reason == "The file could not be checked within 0.5 seconds."


def test_files_of_the_test_suite_layout(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "pets"
    folder.mkdir()
    alone = build(TWO_TABLES)
    for name in ("pets.sqlite", "pets_b.sqlite", "a.sqlite", "notes.txt"):
        shutil.copyfile(alone, folder / name)
    assert [file.name for file in Database.open(folder / "pets.sqlite").files] == [
        "pets.sqlite",
        "a.sqlite",
        "pets_b.sqlite",
    ]
    assert Database.open(alone).files == (alone,), "neighbours by chance are no suite"
