"""Statements: what comes back, what is refused, and that no statement gets past its deadline or its process."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merit.database import Database, execution
from merit.database.guard import ALLOWED_FUNCTIONS
from merit.episode import Status

Build = Callable[..., Path]

ENDLESS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
ONE_OPCODE = "SELECT length(replace(printf('%.*c', 9000000, 'x'), 'x', '')), printf('%.*c', 2000000000, 'x')"
"""Takes seconds inside a single opcode, where no progress handler is called."""


@pytest.fixture
def accounts(build: Build) -> Database:
    return Database.open(
        build("CREATE TABLE acct(id INTEGER PRIMARY KEY, bal INTEGER); INSERT INTO acct VALUES(1, 10), (2, 20)")
    )


@pytest.fixture
def fresh_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[execution.Pool]:
    pool = execution.Pool(size=2)
    monkeypatch.setattr(execution, "_pool", pool)
    yield pool
    pool.close()


# What comes back


def test_values_come_back_exactly(accounts: Database) -> None:
    found = accounts.execute(
        "SELECT 9223372036854775807, -9223372036854775808, 9007199254740993, 1.5, 9e999, -9e999, -0.0, NULL,"
        " x'00ff', x'', 'a' || char(0) || 'b', '', '€𝄞', '1', 1 AS id, 2 AS id"
    )
    assert found.status == Status.EXECUTED
    assert found.error is None
    row = found.rows[0]
    assert row[:8] == (2**63 - 1, -(2**63), 9007199254740993, 1.5, math.inf, -math.inf, 0.0, None)
    assert row[8:] == (b"\x00\xff", b"", "a\x00b", "", "€𝄞", "1", 1, 2)
    assert math.copysign(1, row[6]) == -1
    assert [type(cell) for cell in row[:4]] == [int, int, int, float]
    assert found.columns[-2:] == ("id", "id")


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(VALUES, VALUES), max_size=8))
def test_any_stored_value_survives_the_pipe(tmp_path: Path, rows: list[tuple[object, object]]) -> None:
    path = tmp_path / "any.sqlite"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(a, b)")
    connection.executemany("INSERT INTO t VALUES(?, ?)", rows)
    connection.commit()
    connection.close()
    found = Database.open(path).execute("SELECT a, b FROM t ORDER BY rowid").rows
    assert found == tuple(rows)
    assert [[type(cell) for cell in row] for row in found] == [[type(cell) for cell in row] for row in rows]


def test_bytes_that_are_no_utf8_become_marks(build: Build) -> None:
    """The default text factory raises while rows are fetched, so that a healthy SELECT seemed to fail."""
    database = Database.open(
        build("CREATE TABLE r(n TEXT); INSERT INTO r VALUES('Ada'), (CAST(x'47617263ED61' AS TEXT)), ('Zoe')")
    )
    assert database.execute("SELECT n FROM r").rows == (("Ada",), ("Garc\ufffda",), ("Zoe",))
    assert database.preview("r").status == Status.EXECUTED


def test_utf16_files_and_odd_dates_come_back_as_stored(build: Build) -> None:
    database = Database.open(
        build(
            "PRAGMA encoding='UTF-16be'; CREATE TABLE e(d DATE, t TIMESTAMP); INSERT INTO e VALUES('2024-02-30 é', 7)"
        )
    )
    assert database.execute("SELECT d, t FROM e").rows == (("2024-02-30 é", 7),)


def test_a_cap_on_rows_cuts_and_says_so(accounts: Database) -> None:
    numbers = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 50) SELECT i FROM r"
    cut = accounts.execute(numbers, max_rows=20)
    assert (len(cut.rows), cut.truncated, cut.status) == (20, True, Status.EXECUTED)
    exact = accounts.execute(numbers, max_rows=50)
    assert (len(exact.rows), exact.truncated) == (50, False)


def test_a_cap_on_bytes_cuts_and_says_so(accounts: Database) -> None:
    wide = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT printf('%.*c', 1000, 'é') FROM r"
    cut = accounts.execute(wide, max_bytes=50_000)
    assert cut.truncated
    assert 20 <= len(cut.rows) <= 50
    blobs = accounts.execute("SELECT zeroblob(600000) FROM acct", max_bytes=1_000_000)
    assert (len(blobs.rows), blobs.truncated) == (1, True)
    none = accounts.execute("SELECT zeroblob(600000)", max_bytes=1000)
    assert (none.rows, none.truncated, none.status) == ((), True, Status.EXECUTED)


def test_an_error_in_mid_fetch_leaves_no_partial_rows(accounts: Database) -> None:
    """Row 3 fails (abs of the smallest integer overflows); the two before must not look like a result."""
    found = accounts.execute(
        "WITH t(i) AS (VALUES(1), (2), (-9223372036854775808)) SELECT abs(i) FROM t", max_rows=1000
    )
    assert (found.status, found.rows, found.error) == (Status.EXECUTION_ERROR, (), "integer overflow")


def test_elapsed_is_the_time_of_the_statement(accounts: Database) -> None:
    assert 0 < accounts.execute("SELECT 1").elapsed_s < 1
    assert 0.3 <= accounts.execute(ENDLESS, timeout_s=0.3).elapsed_s < 0.9


# Errors that are not OperationalError


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT id FROM acct WHERE id = ?", "Incorrect number of bindings supplied"),
        ("SELECT id FROM acct WHERE id = :who", "Incorrect number of bindings supplied"),
        ("SELECT id FROM acct LIMIT 'ten'", "datatype mismatch"),
        ("SELECT id\0 FROM acct", "the query contains a null character"),
        ("SELECT '" + chr(0xD800) + "'", "surrogates not allowed"),
        ("SELECT 1; SELECT 2", "You can only execute one statement at a time."),
        ("SELECT 1;;", "You can only execute one statement at a time."),
        ("SELECT nope FROM acct", "no such column: nope"),
        ("SELECT * FROM nope", "no such table: nope"),
        ("SELECT id FROM acct WHERE (id >", "incomplete input"),
        ("SELECT bal, FROM acct", 'near "FROM": syntax error'),
        ("SELECT zeroblob(2000000000)", "string or blob too big"),
        ("SELECT '" + "x" * 2_000_000 + "'", "query string is too large"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "overflow"),
        ("SELECT " + ",".join("1" * 3000), "too many columns in result set"),
        ("SELECT abs(-9223372036854775808)", "integer overflow"),
        ("SELECT load_extension('x')", "not authorized to use function: load_extension"),
        ("SELECT fts3_tokenizer('simple')", "not authorized to use function: fts3_tokenizer"),
        ("PRAGMA table_info(acct)", "not authorized"),
        ("SELECT * FROM pragma_database_list", "not authorized"),
        ("BEGIN", "not authorized"),
    ],
)
def test_every_failure_is_an_ordinary_execution(accounts: Database, sql: str, message: str) -> None:
    found = accounts.execute(sql, timeout_s=10)
    assert found.status == Status.EXECUTION_ERROR
    assert message in (found.error or "")
    assert (found.rows, found.columns) == ((), ())
    assert accounts.execute("SELECT count(*) FROM acct").rows == ((2,),)


@pytest.mark.parametrize("sql", ["", " \n", "-- I do not know", "/* nothing */ ;", ";"])
def test_nothing_to_run_is_an_error(accounts: Database, sql: str) -> None:
    """SQLite runs an empty text without complaint, which once compared equal to an empty gold result."""
    found = accounts.execute(sql)
    assert (found.status, found.error) == (Status.EXECUTION_ERROR, "empty query")


def test_question_marks_in_literals_are_no_parameters(accounts: Database) -> None:
    assert accounts.execute("SELECT '?', ':30', '12:30' -- ?\n").rows == (("?", ":30", "12:30"),)


def test_statements_run_as_written(accounts: Database) -> None:
    """Comments, double-quoted strings and a trailing semicolon are SQLite's to judge, not ours to mend."""
    sql = 'SELECT "Ana" /* do not update this */ FROM acct -- pragma, attach, vacuum\n;'
    assert accounts.execute(sql).rows == (("Ana",), ("Ana",))


# Read-only

WRITES = [
    "VACUUM",
    "VACUUM INTO 'out.db'",
    "ATTACH DATABASE 'att.db' AS x",
    "CREATE TEMP TABLE acct AS SELECT 1 AS id, 999 AS bal",
    "CREATE TEMP VIEW acct AS SELECT 1 AS id",
    "CREATE TABLE n(a)",
    "CREATE VIEW n AS SELECT 1",
    "CREATE INDEX n ON acct(bal)",
    "CREATE TRIGGER n AFTER INSERT ON acct BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE n USING fts5(a)",
    "DROP TABLE acct",
    "ALTER TABLE acct ADD COLUMN z",
    "ALTER TABLE acct RENAME TO z",
    "ANALYZE",
    "REINDEX",
    "REINDEX acct",
    "WITH gone AS (SELECT id FROM acct) DELETE FROM acct WHERE id IN (SELECT id FROM gone)",
    "INSERT INTO acct VALUES(3, 30) RETURNING id",
    "REPLACE INTO acct VALUES(1, 0)",
    "UPDATE acct SET bal = 0 WHERE id = 1 RETURNING bal",
    "EXPLAIN DELETE FROM acct",
    "PRAGMA user_version=7",
    "PRAGMA query_only=off",
    "PRAGMA writable_schema=on",
    "PRAGMA journal_mode=WAL",
    "PRAGMA optimize",
    "/* SELECT */ DELETE FROM acct",
]


@pytest.mark.parametrize("sql", WRITES)
def test_writes_have_no_effect_and_say_read_only(
    accounts: Database, sql: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """VACUUM INTO, ATTACH and TEMP tables get past mode=ro; a TEMP table would shadow the real one for good."""
    workplace = tmp_path / "work"
    workplace.mkdir()
    monkeypatch.chdir(workplace)
    before = hashlib.sha256(accounts.path.read_bytes()).digest()
    found = accounts.execute(sql)
    assert (found.status, found.error) == (Status.EXECUTION_ERROR, "attempt to write a readonly database")
    assert accounts.execute("SELECT * FROM acct").rows == ((1, 10), (2, 20))
    assert hashlib.sha256(accounts.path.read_bytes()).digest() == before
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [accounts.path.name]
    assert not list(workplace.iterdir())
    assert not list(execution.PACKAGE_ROOT.glob("*.db"))


def test_the_schema_table_cannot_be_written(accounts: Database) -> None:
    found = accounts.execute("UPDATE sqlite_master SET sql = 'x'")
    assert (found.status, found.error) == (Status.EXECUTION_ERROR, "table sqlite_master may not be modified")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT deleted_at FROM ticket",
        "SELECT replace(title, 'delete', 'keep') FROM ticket",
        'SELECT "update", "drop" AS insert_count FROM ticket',
        "SELECT title FROM ticket WHERE title LIKE '%drop table%'",
        "WITH attach AS (SELECT id FROM ticket) SELECT id AS vacuum_into FROM attach",
        "EXPLAIN QUERY PLAN SELECT id FROM ticket",
        "VALUES ('create')",
    ],
)
def test_words_of_writes_in_reads_are_no_writes(build: Build, sql: str) -> None:
    database = Database.open(
        build(
            'CREATE TABLE ticket(id INTEGER, title TEXT, deleted_at TEXT, "update" TEXT, "drop" INTEGER);'
            "INSERT INTO ticket VALUES(1, 'please delete; drop table x', NULL, 'live', 3)"
        )
    )
    found = database.execute(sql)
    assert (found.status, len(found.rows)) == (Status.EXECUTED, 1), found.error


REFUSED_FUNCTIONS = {
    "fts3_tokenizer", "fts5", "fts5_source_id", "load_extension", "optimize", "rtreecheck", "sqlite_compileoption_get",
    "sqlite_compileoption_used", "sqlite_log", "sqlite_source_id",
}  # fmt: skip


def test_every_function_of_this_sqlite_is_allowed_or_refused_on_purpose() -> None:
    rows = sqlite3.connect(":memory:").execute("SELECT DISTINCT lower(name) FROM pragma_function_list")
    unknown = {name for (name,) in rows} - ALLOWED_FUNCTIONS - REFUSED_FUNCTIONS
    if sqlite3.sqlite_version_info < (3, 41):
        assert not unknown
    assert not ALLOWED_FUNCTIONS & REFUSED_FUNCTIONS
    assert not ALLOWED_FUNCTIONS & {"readfile", "writefile", "edit", "eval", "fsdir", "lsdir"}


# Deadline and cancel


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS,
        ONE_OPCODE,
        "SELECT count(*) FROM n a, n b, n c, n d, n e, n f WHERE a.i+b.i+c.i+d.i+e.i+f.i < 0",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i FROM r WHERE i < 0",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r) SELECT max(randomblob(9)) FROM r WHERE i<0",
        "SELECT instr(printf('%.*c', 9000000, 'a'), printf('%.*c', 4000000, 'a') || 'b')",
    ],
)
def test_the_deadline_holds(build: Build, sql: str) -> None:
    """Between rows, without a row, inside one opcode; and the next statement is served at once."""
    numbers = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 60) SELECT i FROM r"
    path = build(f"CREATE TABLE n(i); INSERT INTO n {numbers}")
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    execution.execute(uri, "SELECT 1")
    started = time.monotonic()
    found = execution.execute(uri, sql, timeout_s=0.5)
    assert time.monotonic() - started < 1.2
    assert (found.status, found.error, found.rows) == (Status.TIMEOUT, "TIMEOUT", ())
    started = time.monotonic()
    assert execution.execute(uri, "SELECT count(*) FROM n", timeout_s=5).rows == ((60,),)
    assert time.monotonic() - started < 2


def test_deadlines_leave_the_worker_alive_where_sqlite_can_be_asked(
    accounts: Database, fresh_pool: execution.Pool
) -> None:
    accounts.execute("SELECT 1")
    before = [worker.process.pid for worker in fresh_pool._idle]
    assert accounts.execute(ENDLESS, timeout_s=0.2).status == Status.TIMEOUT
    assert [worker.process.pid for worker in fresh_pool._idle] == before


def test_cancel_is_prompt_and_touches_no_other_statement(accounts: Database) -> None:
    for sql in (ENDLESS, ONE_OPCODE):
        cancel = threading.Event()
        with ThreadPoolExecutor() as threads:
            other = threads.submit(accounts.execute, ENDLESS, 1.5)
            running = threads.submit(accounts.execute, sql, 30.0, cancel=cancel)
            time.sleep(0.4)
            started = time.monotonic()
            cancel.set()
            assert running.result().status == Status.CANCELLED
            assert time.monotonic() - started < 0.2
            assert accounts.execute("SELECT count(*) FROM acct").rows == ((2,),)
            assert other.result().status == Status.TIMEOUT


def test_cancel_that_came_first_runs_nothing(accounts: Database) -> None:
    cancel = threading.Event()
    cancel.set()
    assert accounts.execute("SELECT 1", cancel=cancel).status == Status.CANCELLED
    cancel.clear()
    assert accounts.execute("SELECT 1", cancel=cancel).rows == ((1,),)


def test_cancel_while_waiting_for_a_worker(accounts: Database, fresh_pool: execution.Pool) -> None:
    cancel = threading.Event()
    with ThreadPoolExecutor() as threads:
        busy = [threads.submit(accounts.execute, ENDLESS, 1.5) for _ in range(2)]
        time.sleep(0.2)
        waiting = threads.submit(accounts.execute, "SELECT 1", cancel=cancel)
        patient = threads.submit(accounts.execute, "SELECT 1", 0.5)
        time.sleep(0.2)
        cancel.set()
        assert waiting.result(timeout=0.5).status == Status.CANCELLED
        assert patient.result().status == Status.EXECUTED, "waiting does not count against the deadline"
        assert all(job.result().status == Status.TIMEOUT for job in busy)


# Memory, death, threads


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r(b) AS (SELECT randomblob(5000000) UNION ALL SELECT randomblob(5000000) FROM r)"
        " SELECT b FROM r ORDER BY 1",
        "SELECT " + ", ".join(["hex(zeroblob(4900000))"] * 500),
        "SELECT " + ", ".join(["zeroblob(9000000)"] * 500),
    ],
)
def test_memory_bombs_end_as_errors(accounts: Database, sql: str) -> None:
    found = accounts.execute(sql, timeout_s=20)
    assert (found.status, found.error) == (Status.EXECUTION_ERROR, "out of memory")
    assert accounts.execute("SELECT count(*) FROM acct").rows == ((2,),)


def test_a_killed_worker_is_an_ordinary_error_and_is_replaced(accounts: Database, fresh_pool: execution.Pool) -> None:
    with ThreadPoolExecutor() as threads:
        running = threads.submit(accounts.execute, ENDLESS, 20.0)
        while not fresh_pool._busy:
            time.sleep(0.01)
        time.sleep(0.3)
        (worker,) = fresh_pool._busy
        os.kill(worker.process.pid, signal.SIGKILL)
        found = running.result(timeout=5)
    assert found.status == Status.EXECUTION_ERROR
    assert "ended while it ran this statement (signal 9)" in (found.error or "")
    assert accounts.execute("SELECT count(*) FROM acct").rows == ((2,),)


def test_a_worker_killed_while_idle_is_not_noticed(accounts: Database, fresh_pool: execution.Pool) -> None:
    accounts.execute("SELECT 1")
    for worker in fresh_pool._idle:
        os.kill(worker.process.pid, signal.SIGKILL)
        while worker.alive():
            time.sleep(0.01)
    assert accounts.execute("SELECT 1").rows == ((1,),)


def test_many_threads_get_their_own_rows(accounts: Database) -> None:
    def ask(number: int) -> bool:
        if number % 10 == 0:
            return accounts.execute(ENDLESS, timeout_s=0.1).status == Status.TIMEOUT
        return accounts.execute(f"SELECT {number}, bal FROM acct WHERE id = 1").rows == ((number, 10),)

    with ThreadPoolExecutor(24) as threads:
        assert all(threads.map(ask, range(200)))


def test_a_file_that_vanished_is_an_error(accounts: Database) -> None:
    accounts.path.unlink()
    found = accounts.execute("SELECT 1 FROM acct")
    assert (found.status, found.error) == (Status.EXECUTION_ERROR, "unable to open database file")


def test_damaged_pages_are_errors_of_the_statements_that_read_them(build: Build) -> None:
    path = build(
        "CREATE TABLE a(x); INSERT INTO a VALUES(1); CREATE TABLE b(x);"
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r LIMIT 5000) INSERT INTO b SELECT i FROM r;"
    )
    data = bytearray(path.read_bytes())
    data[-4096:] = b"\xff" * 4096
    path.write_bytes(data)
    database = Database.open(path)
    assert database.execute("SELECT sum(x) FROM b").error == "database disk image is malformed"
    assert database.execute("SELECT x FROM a").rows == ((1,),)


def test_a_forked_child_starts_its_own_workers(accounts: Database) -> None:
    accounts.execute("SELECT 1")
    parents = execution._pool
    child = os.fork()
    if not child:
        found = accounts.execute("SELECT bal FROM acct").rows
        os._exit(0 if found == ((10,), (20,)) and execution._pool is not parents else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert accounts.execute("SELECT 1").rows == ((1,),)


@pytest.mark.parametrize("sql", ["SELECT 1", ENDLESS, ONE_OPCODE])
def test_workers_die_with_their_parent(accounts: Database, sql: str) -> None:
    """kill -9 of the parent, with the worker idle, between opcodes and inside one."""
    program = textwrap.dedent(f"""
        import threading, time
        from merit.database import Database, execution
        database = Database.open({str(accounts.path)!r})
        threading.Thread(target=database.execute, args=({sql!r}, 60.0), daemon=True).start()
        time.sleep(0.5)
        pool = execution._pool
        print(*(worker.process.pid for worker in [*pool._idle, *pool._busy]), flush=True)
        time.sleep(60)
    """)
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=execution.PACKAGE_ROOT
    )
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert workers
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 5
    while any(_runs(pid) for pid in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in workers)


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
