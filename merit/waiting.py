"""Wait for a blocking call without being blocked: pieces of text come out as they arrive, a stop takes effect.

The call runs in a daemon thread. A call that ignores its cancel event is abandoned after a grace period: the
thread may go on, but nobody reads what it still says.

What this module does not know: models, verifiers, events.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from merit.errors import MeritError

T = TypeVar("T")

PIECE_EVERY_S = 0.1
GRACE_S = 0.8
_POLL_S = 0.05

Work = Callable[[Callable[[str], None], threading.Event], T]
"""``work(say, cancel)``: calls ``say(piece)`` from any thread as text arrives, stops early once ``cancel`` is set."""


class InnerStop(threading.Event):
    """The stop of one waited-for call. It knows for whose ``cancel`` event the call is made, so that a queue can tell
    that caller its place although every call has a stop of its own."""

    def __init__(self, on_behalf_of: threading.Event) -> None:
        super().__init__()
        self.on_behalf_of = on_behalf_of


class Stopped(MeritError):
    """The outer cancel event was set; whatever the call returns from now on is ignored."""


class TookTooLong(Exception):
    """The call passed its time limit or said more than it may; it was told to stop and abandoned."""


@dataclass(frozen=True)
class _Done(Generic[T]):
    value: T


@dataclass(frozen=True)
class _Raised:
    error: BaseException


def wait_for(
    work: Work[T], cancel: threading.Event, *, timeout_s: float | None = None, max_chars: int | None = None
) -> Generator[str, None, T]:
    """Run ``work`` in a helper thread; yield its text about every 0.1 s; return its value or raise its error.

    ``timeout_s`` counts from the start and anew from the first piece, so that a place in a queue or a long prompt
    is not held against the answer. Raises ``Stopped`` within ``GRACE_S`` after ``cancel`` is set, ``TookTooLong`` over
    ``timeout_s`` or ``max_chars``. Closing the generator tells the call to stop and abandons it.
    """
    inner = InnerStop(cancel)
    said: queue.SimpleQueue[str | _Done[T] | _Raised] = queue.SimpleQueue()

    def body() -> None:
        try:
            said.put(_Done(work(said.put, inner)))
        except BaseException as error:  # noqa: BLE001 - carried to the waiting thread, whatever it is
            said.put(_Raised(error))

    thread = threading.Thread(target=body, name="merit-wait", daemon=True)
    thread.start()
    limit = _Limit(timeout_s, max_chars)
    pending: list[str] = []
    shown = time.monotonic()
    try:
        while True:
            item: str | _Done[T] | _Raised | None = _next(said)
            if cancel.is_set():
                inner.set()
                thread.join(GRACE_S)
                raise Stopped
            if isinstance(item, str):
                limit.count(item)
                pending.append(item)
            if pending and (isinstance(item, _Done) or time.monotonic() - shown >= PIECE_EVERY_S):
                yield "".join(pending)
                pending.clear()
                shown = time.monotonic()
            if isinstance(item, _Done):
                return item.value
            if isinstance(item, _Raised):
                if isinstance(item.error, Exception):
                    raise item.error
                raise RuntimeError(type(item.error).__name__) from None
            limit.check()
    finally:
        inner.set()


def finish(waiting: Generator[str, None, T]) -> T:
    """The value of a call whose text, if any, nobody wants."""
    while True:
        try:
            next(waiting)
        except StopIteration as end:
            value: T = end.value
            return value


def _next(said: queue.SimpleQueue[Any]) -> Any:
    try:
        return said.get(timeout=_POLL_S)
    except queue.Empty:
        return None


class _Limit:
    """How long and how much a call may still go on."""

    def __init__(self, timeout_s: float | None, max_chars: int | None) -> None:
        self._timeout_s = timeout_s
        self._max_chars = max_chars
        self._since = time.monotonic()
        self._chars = 0

    def count(self, piece: str) -> None:
        if self._chars == 0:
            self._since = time.monotonic()
        self._chars += len(piece)

    def check(self) -> None:
        if self._timeout_s is not None and time.monotonic() - self._since > self._timeout_s:
            raise TookTooLong
        if self._max_chars is not None and self._chars > self._max_chars:
            raise TookTooLong
