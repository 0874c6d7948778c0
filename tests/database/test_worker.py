"""The worker process itself: what it loads, what it may do, and what the parent makes of one that misbehaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from merit.database import Database, execution, worker
from merit.database.execution import FRAME_ALLOWANCE, Pool, Worker
from merit.database.worker import MEMORY_BYTES, NOTHING
from merit.episode import Status

Build = Callable[..., Path]


def test_the_worker_loads_the_standard_library_alone() -> None:
    """Or every new worker would cost seconds: ``import merit.database`` must not pull in the rest of the house."""
    program = (
        "import sys, merit.database.worker\n"
        "print(*sorted(name for name in sys.modules if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    shown = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, cwd=execution.PACKAGE_ROOT
    )
    assert set(shown.stdout.split()) == {
        "__main__",
        "merit",
        "merit.database",
        "merit.database.confinement",
        "merit.database.guard",
        "merit.database.worker",
    } - ({"__main__"} if "__main__" in sys.stdlib_module_names else set())


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="reads the limits of a process from /proc")
def test_limits_and_environment_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERIT_ENDPOINT_KEY", "secret")
    started = Worker()
    try:
        started._exchange(b"", float("inf"), FRAME_ALLOWANCE, None)
        limits = Path(f"/proc/{started.process.pid}/limits").read_text()
        found = {line[:26].strip(): line[26:].split()[:2] for line in limits.splitlines()[1:]}
        assert found["Max address space"] == [str(MEMORY_BYTES)] * 2
        assert found["Max file size"] == ["0", "0"]
        assert found["Max core file size"] == ["0", "0"]
        assert found["Max open files"] == ["32", "32"]
        assert b"secret" not in Path(f"/proc/{started.process.pid}/environ").read_bytes()
    finally:
        started.kill()


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Put a worker into a pool of its own that says it is ready, takes one request and then runs the given code."""

    def start(code: str) -> None:
        script = tmp_path / "rigged.py"
        script.write_text(
            "import os, sys, struct, time\n"
            "def write(body): os.write(1, struct.pack('>I', len(body)) + body)\n"
            "write(b'{}')\n"
            "if not os.read(0, 1 << 16): sys.exit()\n"
            f"{code}\n"
            "time.sleep(60)\n"
        )
        monkeypatch.setattr(execution, "_pool", Pool(1))
        monkeypatch.setattr(execution, "command", lambda *_: [sys.executable, str(script)])

    yield start
    execution._pool.close()


REPLY = '{"status":"%s","columns":[],"rows":[%s],"error":null,"elapsed_s":0,"truncated":false,"retire":true}'

BAD_BLOB = '[{"blob":"?"}]'

RIGGED = {
    "nonsense": 'write(b"nonsense")',
    "a list": "write(b'[1]')",
    "no status": "write(b'{}')",
    "odd rows": f"write(b'{REPLY % ('EXECUTED', '3')}')",
    "bad base64": f"write(b'{REPLY % ('EXECUTED', BAD_BLOB)}')",
    "an unknown status": f"write(b'{REPLY % ('FINE', '')}')",
    "a huge frame": 'os.write(1, b"\\xff" * 4)',
    "an early end": "sys.exit(3)",
    "half a frame": 'os.write(1, b"\\0\\0\\0\\x09ab"); sys.exit(0)',
    "a closed pipe": "os.close(1)",
}


@pytest.mark.parametrize("kind", RIGGED)
def test_a_worker_that_lies_is_an_ordinary_error(build: Build, rig: Callable[[str], None], kind: str) -> None:
    """A hostile file that takes a worker over gains nothing in the parent: no exception, no hang, no object."""
    database = Database.open(build("CREATE TABLE t(a)"))
    rig(RIGGED[kind])
    found = database.execute("SELECT 1", timeout_s=10)
    assert found.status == Status.EXECUTION_ERROR
    assert "process" in (found.error or "")


def test_a_worker_that_cannot_start_is_an_ordinary_error(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database.open(build("CREATE TABLE t(a)"))
    monkeypatch.setattr(execution, "_pool", Pool(1))
    monkeypatch.setattr(execution, "command", lambda *_: ["/nonexistent/python"])
    for _ in range(3):  # the pool of one is not used up by failures
        found = database.execute("SELECT 1")
        assert (found.status, found.rows) == (Status.EXECUTION_ERROR, ())
        assert "could not be started" in (found.error or "")


def test_a_worker_that_keeps_much_memory_asks_to_go(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = build("CREATE TABLE t(a)").as_uri() + "?mode=ro"
    request = {"operation": "execute", "uri": uri, "sql": "SELECT 1", "timeout_s": 9, "max_rows": 1, "max_bytes": 99}
    assert worker.resident_bytes() > 1 << 20
    monkeypatch.setattr(worker, "resident_bytes", lambda: worker.RETIRE_ABOVE_BYTES)  # this process is the tests' own
    assert json.loads(worker.answer(request)[4:])["retire"] is False
    monkeypatch.setattr(worker, "resident_bytes", lambda: worker.RETIRE_ABOVE_BYTES + 1)
    assert json.loads(worker.answer(request)[4:])["retire"] is True


def test_a_worker_that_asks_to_go_is_replaced(
    build: Build, monkeypatch: pytest.MonkeyPatch, rig: Callable[[str], None]
) -> None:
    database = Database.open(build("CREATE TABLE t(a)"))
    rig(f"write(b'{REPLY % ('EXECUTED', '')}')")  # one that stayed would not answer a second time
    for _ in range(3):
        assert database.execute("SELECT 1").status == Status.EXECUTED


def test_the_pool_keeps_to_its_size(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database.open(build("CREATE TABLE t(a)"))
    pool = Pool(2)
    monkeypatch.setattr(execution, "_pool", pool)
    for _ in range(5):
        database.execute("SELECT printf('%.*c', 2000000000, 'x')", timeout_s=0.05)
    assert len(pool._idle) == 1
    pids = [worker.process.pid for worker in pool._idle]
    pool.close()
    assert all(not os.path.exists(f"/proc/{pid}") for pid in pids)
    assert database.execute("SELECT 1").rows == ((1,),), "a closed pool starts again when asked"
    pool.close()


@pytest.mark.parametrize("text", ["", ";", " \n\t;;", "-- a", "/* a", "/* a */ -- b\n;", "\ufeff"])
def test_nothing_is_recognised(text: str) -> None:
    assert NOTHING.fullmatch(text)


@pytest.mark.parametrize("text", ["x", "-- a\nSELECT 1", "/* a */ 1", "- -", "/ *"])
def test_something_is_recognised(text: str) -> None:
    assert not NOTHING.fullmatch(text)


def test_by_hand_over_pipes(build: Build) -> None:
    """The protocol as documented: a frame is four bytes of length, big endian, and JSON; blobs are in base64."""
    path = build("CREATE TABLE t(a); INSERT INTO t VALUES(x'00ff')")
    request = json.dumps(
        {
            "operation": "execute",
            "uri": path.as_uri() + "?mode=ro&immutable=1",
            "sql": "SELECT a, 'é' FROM t",
            "timeout_s": 5,
            "max_rows": 10,
            "max_bytes": 100,
        }
    ).encode()
    process = subprocess.Popen(
        [sys.executable, "-m", "merit.database.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=execution.PACKAGE_ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.read(4 + len('{"ready":true}')) == b"\0\0\0\x0e" + b'{"ready":true}'
    process.stdin.write(len(request).to_bytes(4, "big") + request)
    process.stdin.flush()
    reply = json.loads(process.stdout.read(int.from_bytes(process.stdout.read(4), "big")))
    assert (reply["status"], reply["rows"]) == ("EXECUTED", [[{"blob": "AP8="}, "é"]])
    process.stdin.close()
    assert process.wait(5) == 0, "the end of its input ends it"
    process.stdout.close()
