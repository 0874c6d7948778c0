"""Statements, run in a pool of worker processes: the parent's side of ``worker``.

A worker belongs to one request at a time and outlives it, so that a statement costs a pipe and not a process.
The deadline holds inside one opcode of SQLite: a worker that has not answered shortly after it is killed and
replaced, and so is one whose statement was cancelled. Nothing is ever interrupted that could still be running
something else.

What this module does not know: which file is meant (it gets a SQLite URI) and what the answer is worth.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import math
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from merit.database.worker import FRAME
from merit.episode import Execution, Row, Status

MAX_WORKERS = max(8, 2 * (os.cpu_count() or 1))
START_S = 30.0
"""How long a new worker may take to say that it is ready (a busy machine, a cold disk)."""
GRACE_S = 0.2
"""How long after the deadline a worker may still report it by itself, which is cheaper than replacing it."""
CANCEL_POLL_S = 0.02
MAX_BYTES = 10_000_000
FRAME_ALLOWANCE = 16 << 20
"""Room in a reply beside its rows: names of columns, brackets, numbers."""

PACKAGE_ROOT = Path(__file__).resolve().parents[2]
KEPT_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "LANG", "LC_ALL", "LC_CTYPE")
"""A worker gets these variables and no other: no key, no address of anything."""


class WorkerFailed(Exception):
    """A worker ended or answered nonsense; the message says how."""


class Overdue(Exception):
    """The worker has not answered by the deadline and its grace."""


class Cancelled(Exception):
    """The caller's event was set first."""


def command(*arguments: str) -> list[str]:
    """The command line of a worker."""
    return [sys.executable, "-E", "-s", "-m", "merit.database.worker", *arguments]


def environment() -> dict[str, str]:
    """The environment of a worker."""
    return {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}


class Worker:
    """One worker process and its two pipes. Not thread-safe: it belongs to one request at a time."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=PACKAGE_ROOT,  # -m looks there first
            env=environment(),
            start_new_session=True,  # Ctrl-C in a terminal is for the parent
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin = self.process.stdin.fileno()
        self.stdout = self.process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        os.set_blocking(self.stdout, False)
        self.ready = False

    def request(self, request: dict[str, Any], max_reply: int, cancel: threading.Event | None) -> dict[str, Any]:
        """Send ``request`` and return the reply; its ``timeout_s`` starts when the worker is up."""
        if not self.ready:
            try:
                self._exchange(b"", time.monotonic() + START_S, FRAME_ALLOWANCE, cancel)
            except Overdue as error:
                raise WorkerFailed("the database process did not start in time") from error
            self.ready = True
        body = json.dumps(request).encode("ascii")
        deadline = time.monotonic() + request["timeout_s"] + GRACE_S
        return self._exchange(FRAME.pack(len(body)) + body, deadline, max_reply, cancel)

    def _exchange(self, data: bytes, deadline: float, max_reply: int, cancel: threading.Event | None) -> dict[str, Any]:
        """Write ``data`` and read one frame, never blocking past ``deadline`` or a set ``cancel``."""
        unsent = memoryview(data)
        received = bytearray()
        expected = FRAME.size
        poll = select.poll()
        poll.register(self.stdout, select.POLLIN)
        if unsent:
            poll.register(self.stdin, select.POLLOUT)
        while len(received) < expected:
            if cancel is not None and cancel.is_set():
                raise Cancelled
            left = deadline - time.monotonic()
            if left <= 0:
                raise Overdue
            pause = left if cancel is None else min(left, CANCEL_POLL_S)
            for descriptor, _ in poll.poll(math.ceil(pause * 1000) if math.isfinite(pause) else None):
                if descriptor == self.stdin:
                    unsent = self._send(unsent)
                    if not unsent:
                        poll.unregister(self.stdin)
                elif part := os.read(self.stdout, 1 << 20):
                    received += part
                else:
                    raise WorkerFailed(self._how_it_ended())
            if expected == FRAME.size <= len(received):
                expected += FRAME.unpack_from(received)[0]
                if expected > max_reply:
                    raise WorkerFailed("the database process sent a reply that is too large")
        try:
            reply = json.loads(str(memoryview(received)[FRAME.size :], "ascii"), object_hook=_with_blobs)
        except ValueError as error:
            raise WorkerFailed("the database process sent a reply that cannot be read") from error
        if not isinstance(reply, dict):
            raise WorkerFailed("the database process sent a reply that cannot be read")
        return reply

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self.stdin, unsent[: select.PIPE_BUF]) :]
        except BrokenPipeError as error:
            raise WorkerFailed(self._how_it_ended()) from error

    def _how_it_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        code = self.process.returncode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"the database process ended while it ran this statement ({how})"

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def kill(self) -> None:
        """End the process and give its pipes back."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Pool:
    """At most ``size`` workers, kept warm; safe from any number of threads."""

    def __init__(self, size: int = MAX_WORKERS) -> None:
        self._free = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()

    def request(
        self, request: dict[str, Any], max_reply: int = FRAME_ALLOWANCE, cancel: threading.Event | None = None
    ) -> dict[str, Any]:
        """One request, one reply. Waiting for a free worker does not count against the request's deadline."""
        while not self._free.acquire(timeout=CANCEL_POLL_S if cancel is not None else None):
            if cancel is not None and cancel.is_set():
                raise Cancelled
        worker: Worker | None = None
        good = False
        try:
            worker = self._take()
            reply = worker.request(request, max_reply, cancel)
            good = not reply.get("retire")
            return reply
        finally:
            self._give_back(worker, good)
            self._free.release()

    def _take(self) -> Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive():
                    break
                worker.kill()
            else:
                try:
                    worker = Worker()
                except OSError as error:
                    raise WorkerFailed(f"the database process could not be started: {error.strerror}") from error
            self._busy.add(worker)
            return worker

    def _give_back(self, worker: Worker | None, good: bool) -> None:
        if worker is None:
            return
        replacement: Worker | None = worker
        if not good:
            worker.kill()
            with contextlib.suppress(OSError):  # no process to be had now: the next request tries again
                replacement = Worker()  # starts up while nobody waits for it
        with self._lock:
            self._busy.discard(worker)
            if replacement is not None and replacement.alive():
                self._idle.append(replacement)

    def close(self) -> None:
        """End every worker; a later request starts new ones."""
        with self._lock:
            workers, self._idle = [*self._idle, *self._busy], []
        for worker in workers:
            worker.process.kill()
            worker.process.wait()


_pool = Pool()


def _after_fork() -> None:
    """The workers are the parent's: a forked child starts its own."""
    global _pool
    _pool = Pool()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _pool.close())


def execute(
    uri: str,
    sql: str,
    timeout_s: float = 30.0,
    max_rows: int = 1000,
    *,
    cancel: threading.Event | None = None,
    max_bytes: int = MAX_BYTES,
) -> Execution:
    """Run one statement, exactly as written, on the SQLite file behind ``uri``; never raises for what it does.

    ``timeout_s`` in seconds of wall clock, kept to 10 % or 0.5 s, the larger; ``max_bytes`` counts the characters
    of texts, the bytes of blobs and 8 for every cell. A result over a cap is cut and ``truncated``. A set ``cancel``
    ends the statement within 0.2 s. ``elapsed_s`` is the worker's own time, without the pipe.
    """
    request = {
        "operation": "execute",
        "uri": uri,
        "sql": sql,
        "timeout_s": timeout_s,
        "max_rows": max_rows,
        "max_bytes": max_bytes,
    }
    started = time.monotonic()
    try:
        # Escapes in JSON take up to six characters for one.
        reply = _pool.request(request, FRAME_ALLOWANCE + 6 * max_bytes, cancel)
        if "failed" in reply:
            return _error(str(reply["failed"]), started)
        return Execution(
            status=Status(reply["status"]),
            columns=tuple(reply["columns"]),
            rows=tuple(map(tuple, reply["rows"])),
            error=reply["error"],
            elapsed_s=reply["elapsed_s"],
            truncated=reply["truncated"],
        )
    except Overdue:
        return Execution(Status.TIMEOUT, error="TIMEOUT", elapsed_s=time.monotonic() - started)
    except Cancelled:
        return Execution(Status.CANCELLED, error="CANCELLED", elapsed_s=time.monotonic() - started)
    except WorkerFailed as error:
        return _error(str(error), started)
    except (KeyError, TypeError, ValueError):
        return _error("the database process sent a reply that cannot be read", started)


def inspect(uri: str, queries: Sequence[tuple[str, Sequence[str]]], timeout_s: float) -> list[tuple[Row, ...] | str]:
    """Run our own questions about a file; each answer is its rows, or the DBMS message.

    Shorter than ``queries`` where the deadline passed or the worker died on the way: the rest is unknown.
    """
    request = {
        "operation": "inspect",
        "uri": uri,
        "queries": [list(query) for query in queries],
        "timeout_s": timeout_s,
    }
    try:
        reply = _pool.request(request, FRAME_ALLOWANCE)
    except (Overdue, WorkerFailed):
        return []
    if "failed" in reply:
        return [str(reply["failed"])] * len(queries)
    return [answer if isinstance(answer, str) else tuple(map(tuple, answer)) for answer in reply["answers"]]


def fold(path: Path, timeout_s: float) -> bool:
    """Carry a log or journal beside a private copy into the copy, in a process of its own; False where it fails."""
    try:
        done = subprocess.run(
            command("--fold", str(path)),
            cwd=PACKAGE_ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _with_blobs(value: dict[str, Any]) -> Any:
    """JSON objects as they are, but for those that carry a blob."""
    return base64.b64decode(value["blob"], validate=True) if "blob" in value else value


def _error(message: str, started: float) -> Execution:
    return Execution(Status.EXECUTION_ERROR, error=message, elapsed_s=time.monotonic() - started)
