"""What a worker can no longer do: tried in processes that gave it up."""

# ruff: noqa: E501 (tables of cases)

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from merit.database.execution import PACKAGE_ROOT

linux = pytest.mark.skipif(sys.platform != "linux", reason="the walls of the kernel are those of Linux")


def told(program: str, *arguments: str) -> str:
    """What a program prints that runs beside the package."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=PACKAGE_ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


PYTHON = "import os, sys, sqlite3, socket, subprocess, ctypes\nfrom merit.database.confinement import *\nclose_python_doors(databases=(sys.argv[1],))\n"
FORBIDDEN = [
    "open('/etc/passwd')", "open(sys.argv[1])", "open(sys.argv[1] + '.new', 'w')", "os.open('/etc/passwd', os.O_RDONLY)",
    "open(os.__file__, 'a')", "open('/proc/self/mem')", "os.listdir('/')", "os.remove(sys.argv[1])", "os.rename(sys.argv[1], 'x')", "os.mkdir('x')",
    "socket.socket()", "socket.create_connection(('127.0.0.1', 9))", "socket.getaddrinfo('localhost', 9)", "subprocess.run(['true'])",
    "os.system('true')", "os.fork()", "os.execv('/bin/true', ['true'])", "os.posix_spawn('/bin/true', ['true'], {})", "os.kill(os.getppid(), 0)",
    "ctypes.CDLL(None)", "ctypes.string_at(1)", "sqlite3.connect('/tmp/other.db')", "sqlite3.connect(sys.argv[1] + '?mode=rwc')", "sys.settrace(print)", "os.chmod(sys.argv[1], 0o777)", "os.symlink('/', 'x')",
]  # fmt: skip


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_python_refuses(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "a.db"
    path.touch()
    assert "not allowed in this process" in told(PYTHON + statement, str(path))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "statement",
    ["sqlite3.connect(sys.argv[1])", "sqlite3.connect(':memory:')", "open('/proc/self/statm')", "import this"],
)
def test_python_allows_what_a_worker_needs(tmp_path: Path, statement: str) -> None:
    assert "not allowed" not in told(PYTHON + statement, str(tmp_path / "a.db"))


KERNEL = (
    "import os, sys, socket, subprocess\nfrom merit.database.confinement import *\n"
    "closed = close_kernel_doors(writable=sys.argv[1] if len(sys.argv) > 2 else None)\nprint(closed)\n"
)


def closed(door: str) -> bool:
    return door in told(KERNEL)


@linux
def test_the_kernel_reaches_no_network() -> None:
    if not closed("network"):
        pytest.skip("this account may not leave its network")
    far = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('1.1.1.1', 53))"
    assert "Network is unreachable" in told(KERNEL + far)
    listening = "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); socket.create_connection(s.getsockname(), timeout=5)"
    assert "Error" in told(KERNEL + listening)


@linux
def test_the_kernel_changes_no_file(tmp_path: Path) -> None:
    if not closed("files"):
        pytest.skip("this kernel has no Landlock")
    path = tmp_path / "a.db"
    path.write_text("before")
    for statement in (
        "open(sys.argv[1], 'w')", "open(sys.argv[1], 'a')", "open(sys.argv[1] + '.new', 'w')", "os.remove(sys.argv[1])",
        "os.rename(sys.argv[1], sys.argv[1] + 'x')", "os.mkdir(sys.argv[1] + 'x')", "os.truncate(sys.argv[1], 0)", "subprocess.run(['/bin/true'], check=True)",
    ):  # fmt: skip
        assert "ermission" in told(KERNEL + statement, str(path)), statement
        assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("a.db", "before")]
    assert "Error" not in told(KERNEL + "open(sys.argv[1]).read()", str(path)), "reading is not the kernel's to refuse"


@linux
def test_one_file_or_folder_may_stay_open(tmp_path: Path) -> None:
    if not closed("files"):
        pytest.skip("this kernel has no Landlock")
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    path.touch()
    other.touch()
    assert "Error" not in told(KERNEL + "open(sys.argv[1], 'w').write('x')", str(path), "one")
    assert path.read_text() == "x"
    assert "Permission" in told(KERNEL + "open(sys.argv[2], 'w')", str(path), str(other))
    assert "Error" not in told(
        KERNEL + "open(sys.argv[1] + '/c.db', 'w'); os.remove(sys.argv[1] + '/c.db')", str(tmp_path), "one"
    )


def test_a_worker_serves_behind_pythons_wall(tmp_path: Path) -> None:
    """An operation that wants another file than the request's database ends the worker."""
    program = (
        "import sys\nfrom merit.database import worker\n"
        "worker.OPERATIONS['execute'] = lambda request: eval(request['sql'])\nworker.serve()\n"
    )

    def served(sql: str) -> bytes:
        body = json.dumps({"operation": "execute", "uri": mine, "sql": sql, "timeout_s": 5}).encode()
        with subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=PACKAGE_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdin.write(len(body).to_bytes(4, "big") + body)
            process.stdin.flush()
            process.stdout.read(len(b"....") + len(b'{"ready":true}'))
            head = process.stdout.read(4)
            return process.stdout.read(int.from_bytes(head, "big")) if head else process.stderr.read()

    mine, other = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    Path(mine).touch()
    assert b"not allowed in this process: open" in served("open('/etc/passwd')")
    assert b"not allowed in this process: sqlite3.connect" in served(f"worker.sqlite3.connect('{other}')")
    assert b'"mine":true' in served(f"{{'mine': bool(worker.sqlite3.connect('{mine}'))}}")


@linux
def test_a_worker_has_closed_its_doors(tmp_path: Path) -> None:
    """Seen from outside, in the process that really runs statements."""
    from merit.database.execution import FRAME_ALLOWANCE, Worker

    worker = Worker()
    try:
        worker._exchange(b"", float("inf"), FRAME_ALLOWANCE, None)
        process = Path("/proc") / str(worker.process.pid)
        status = (process / "status").read_text()
        if closed("privileges"):
            assert "NoNewPrivs:\t1" in status
        if closed("network"):
            assert (process / "ns" / "net").readlink() != Path("/proc/self/ns/net").readlink()
            assert [line.split(":")[0].strip() for line in (process / "net" / "dev").read_text().splitlines()[2:]] == [
                "lo"
            ]
        files = {link.readlink() for link in (process / "fd").iterdir()}
        assert all(str(file).startswith(("pipe:", "/dev/null")) for file in files), files
        assert "Max processes             0" in (process / "limits").read_text()
    finally:
        worker.kill()
