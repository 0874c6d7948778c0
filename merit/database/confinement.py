"""What a process that reads strangers' files gives up, for good, before it reads the first one.

Two walls, each of use where the other is not: the kernel's (no network, no file made, changed or run, no new rights),
which hold even if a file takes the process over, as far as this machine has them; and Python's own (an audit hook),
which holds on every machine, for code that Python runs.

What this module does not know: limits of memory and time, what a statement may do. It imports the standard library
alone, because the worker must start fast.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterable
from typing import Any

NO_NEW_PRIVILEGES = 38
NEW_NETWORK = 0x40000000
NEW_USER = 0x10000000
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
MAKING_AND_REMOVING = 0b1_1111_1111 << 4
"""Removing folders and files; making devices, folders, files, sockets, pipes, links (bits 4 to 12)."""
REFER, TRUNCATE = 1 << 13, 1 << 14
TCP_BIND_AND_CONNECT = 0b11
"""Landlock, as in linux/landlock.h."""

QUIET_EVENTS = frozenset(
    {
        "compile",
        "cpython.PyInterpreterState_Clear",
        "cpython._PySys_ClearAuditHooks",
        "exec",
        "import",
        "marshal.loads",
        "object.__delattr__",
        "object.__getattr__",
        "object.__setattr__",
        "resource.setrlimit",
        "sqlite3.connect/handle",
        "sys._getframe",
        "sys.excepthook",
        "sys.unraisablehook",
    }
)
"""Audit events of a process that minds its own business; ``open``, ``sqlite3.connect`` and listings are looked at."""
OWN_STATE = "/proc/self/statm"
CODE_ENDINGS = (".py", ".pyc", ".so")
LISTINGS = frozenset({"os.listdir", "os.scandir"})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Doors:
    """The audit hook: everything is refused but reading ``readable`` and code, and connecting to ``databases``, which
    the owner of this object may change before each request."""

    def __init__(self, readable: Iterable[str] = (), databases: Iterable[str] = ()) -> None:
        self.readable = frozenset({OWN_STATE, *readable})
        self.databases = frozenset(databases)
        self._code = tuple(os.path.abspath(folder) for folder in sys.path if folder)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in QUIET_EVENTS:
            return
        if event == "sqlite3.connect" and (arguments[0] in self.databases or arguments[0] == ":memory:"):
            return
        if event == "open" and self._may_open(*arguments):
            return
        if event in LISTINGS and str(arguments[0]).startswith(self._code):
            return  # the import system looks where a module might be
        raise PermissionError(f"not allowed in this process: {event}")

    def _may_open(self, path: object, mode: str | None, flags: int) -> bool:
        if (mode and not set(mode) <= set("rbt")) or flags & WRITING or not isinstance(path, str):
            return False
        return path in self.readable or (path.endswith(CODE_ENDINGS) and os.path.abspath(path).startswith(self._code))


def close_python_doors(readable: Iterable[str] = (), databases: Iterable[str] = ()) -> Doors:
    """Put up the wall of Python; it cannot be taken down again in this process."""
    doors = Doors(readable, databases)
    sys.dont_write_bytecode = True
    sys.addaudithook(doors)
    return doors


def close_kernel_doors(writable: str | None = None) -> tuple[str, ...]:
    """Put up the walls of the kernel that this machine has, and say which. Before any thread is started.

    ``writable``: the one file (or folder with what is in it) that may still be written."""
    if sys.platform != "linux":
        return ()
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    closed = []
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0:
        closed.append("privileges")
    if libc.unshare(NEW_NETWORK) == 0 or libc.unshare(NEW_USER | NEW_NETWORK) == 0:
        closed.append("network")
    if "privileges" in closed and _landlock(libc, writable):
        closed.append("files")
    return tuple(closed)


def no_more_processes() -> None:
    """Forbid new processes and threads; root is not bound by this limit, but by the audit hook."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (0, hard))


def _landlock(libc: Any, writable: str | None) -> bool:
    """Forbid to make, change, remove or run any file but ``writable``, and to open TCP connections."""
    import ctypes

    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    handled = EXECUTE | WRITE_FILE | MAKING_AND_REMOVING
    handled |= (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    attributes = [handled, TCP_BIND_AND_CONNECT] if version >= 4 else [handled]
    block = (ctypes.c_uint64 * len(attributes))(*attributes)
    rules = libc.syscall(CREATE_RULESET, ctypes.byref(block), ctypes.c_size_t(ctypes.sizeof(block)), 0)
    if rules < 0:
        return False
    try:
        if writable is not None:
            allowed = handled & ~EXECUTE if os.path.isdir(writable) else handled & (WRITE_FILE | TRUNCATE)
            place = os.open(writable, os.O_PATH | os.O_CLOEXEC)
            rule = allowed.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
            added = libc.syscall(ADD_RULE, rules, 1, rule, 0)
            os.close(place)
            if added != 0:
                return False
        return bool(libc.syscall(RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)
