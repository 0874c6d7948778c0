"""Files from strangers: what a file that claims to be a SQLite database is, in words, before it is used.

What this module does not know: who sent the file and under which name (it never builds a path from one), which
size is allowed.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

from merit.database import execution, schema
from merit.episode import Row
from merit.errors import DatabaseUnreadable

MAGIC = b"SQLite format 3\0"
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
SMALLEST_PAGE = 512
CHECK_TIMEOUT_S = 10.0
FOLD_TIMEOUT_S = 60.0

OTHER_FORMATS = (
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first"),
    (b"BZh", "a bzip2 archive; unpack it first"),
    (b"\xfd7zXZ\0", "an xz archive; unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive; unpack it first"),
    (b"PAR1", "a Parquet file"),
    (b"%PDF", "a PDF document"),
    (b"** This file contains an SQLite 2", "a database of SQLite 2, which today's SQLite cannot read"),
)
DUMP_WORDS = (b"pragma ", b"begin transaction", b"create ", b"insert into ", b"--", b"/*")

LOG_MISSING = (
    "The file is in write-ahead mode, but its log (the file whose name ends in -wal) is not beside it. "
    "Close the program that uses the database, or bring both files."
)
LOG_UNUSABLE = "The log beside the file cannot be carried over into it; one of the two is damaged."
NO_TABLES = "The database has no tables."


@dataclass(frozen=True)
class Report:
    """What a check found. ``reason`` is the sentence for a refusal ("" when ``ok``); ``size`` in bytes;
    ``tables`` the names of tables and views; ``findings`` sentences worth knowing about a usable file."""

    ok: bool
    reason: str = ""
    tables: tuple[str, ...] = ()
    size: int = 0
    findings: tuple[str, ...] = ()


def uri(path: Path) -> str:
    """The SQLite URI that reads this very file and touches nothing.

    ``as_uri`` escapes what a name may hold (``?``, ``#``, ``%``). ``immutable``: without it, SQLite makes -wal and
    -shm files beside a database in write-ahead mode, even read-only. The price is that logs beside the file are not
    seen (``usable_file`` folds them into a copy first) and that the file must not be written meanwhile.
    """
    return f"{path.resolve().as_uri()}?mode=ro&immutable=1"


def header_fault(path: Path) -> str | None:
    """Why the first page cannot be that of a whole SQLite database, as a sentence; None where it can."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4096)
    if not size:
        return "The file is empty (0 bytes)."
    if not head.startswith(MAGIC):
        return f"The file is not a SQLite database: it {_what_else(head, size)}."
    if size < SMALLEST_PAGE:
        return f"The file is damaged: it was cut off after {size} bytes."
    page = int.from_bytes(head[16:18], "big")
    page = 65536 if page == 1 else page
    if page < SMALLEST_PAGE or page & (page - 1):
        return f"The file is damaged: its header gives an impossible page size ({page})."
    pages = int.from_bytes(head[28:32], "big")
    counted = head[24:28] == head[92:96]  # else an old SQLite wrote last and did not count
    if counted and pages * page > size:
        return f"The file is damaged: it was cut off, {size:,} of {pages * page:,} bytes are there."
    return None


def _what_else(head: bytes, size: int) -> str:
    for magic, name in OTHER_FORMATS:
        if head.startswith(magic):
            return f"is {name}"
    if is_text(head):
        if is_dump(head):
            return "is a text file with SQL statements"
        return "is a text file, perhaps CSV"
    if size % SMALLEST_PAGE == 0:
        return "is encrypted or something else altogether"
    return "is something else"


def is_text(head: bytes) -> bool:
    """Whether these first bytes are text: no control characters, and UTF-8 but for a cut last character."""
    if has_control_characters(head):
        return False
    text = head.decode("utf-8", "ignore")
    return len(head) - len(text.encode()) < 4


def has_control_characters(head: bytes) -> bool:
    """Whether bytes are there that no text of one byte a letter holds."""
    return any(byte < 32 and byte not in b"\t\n\r\f" for byte in head)


def is_dump(head: bytes) -> bool:
    """Whether these first bytes of a text begin a list of SQL statements."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(DUMP_WORDS)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def wal_mode(path: Path) -> bool:
    """Whether the header says write-ahead mode (bytes 18 and 19)."""
    with path.open("rb") as file:
        return 2 in file.read(20)[18:20]


def log_beside(path: Path) -> bool:
    """Whether a log or an unfinished journal lies beside the file and belongs to its content."""
    wal, journal = _beside(path, "-wal"), _beside(path, "-journal")
    if wal.is_file() and wal.stat().st_size:
        return True
    if not journal.is_file():
        return False
    with journal.open("rb") as file:
        return file.read(len(JOURNAL_MAGIC)) == JOURNAL_MAGIC


def private_copy(source: Path, folder: Path) -> Path:
    """Copy a database into ``folder`` under a name of our own, with what its log or journal holds; mode 0600.

    Raises DatabaseUnreadable where the log cannot be carried over. ``source`` is only read.
    """
    source = source.resolve()
    copy = folder / f"{uuid.uuid4().hex}.sqlite"
    for ending in ("", "-wal", "-journal"):
        if _beside(source, ending).is_file():
            target = _beside(copy, ending)
            target.touch(0o600)
            shutil.copyfile(_beside(source, ending), target)
    try:
        if log_beside(copy) and not execution.fold(copy, FOLD_TIMEOUT_S):
            raise DatabaseUnreadable(header_fault(source) or LOG_UNUSABLE)
    finally:
        for ending in ("-wal", "-journal", "-shm"):
            _beside(copy, ending).unlink(missing_ok=True)
    return copy


def unreadable(message: str) -> str:
    """The sentence for a file whose list of tables SQLite cannot read, with SQLite's own message."""
    if message == "file is not a database":
        return "The file is not a SQLite database, or it is encrypted."
    return f"The file is damaged or cannot be read ({message})."


def usable_file(path: Path) -> tuple[Path, Path | None]:
    """The file to read for the database at ``path``: itself, or a private copy that took its log in, with the
    temporary folder of that copy, which is the caller's to remove. Raises DatabaseUnreadable with a sentence."""
    folder = None
    try:
        if log_beside(path):
            folder = Path(tempfile.mkdtemp(prefix="merit-"))
            path = private_copy(path, folder)
        if fault := header_fault(path):
            raise DatabaseUnreadable(fault)
        return path, folder
    except (OSError, DatabaseUnreadable) as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise DatabaseUnreadable(f"The file cannot be read ({error.strerror}).") from error
        raise


def check_upload(path: Path | str, timeout_s: float = CHECK_TIMEOUT_S) -> Report:
    """Whether a file can be offered as a database, and if not, why: header, ``quick_check`` under the deadline
    (``timeout_s`` seconds), tables. Never raises for what the file holds."""
    path = Path(path)
    if not path.is_file():
        return Report(False, "There is no such file.")
    size = path.stat().st_size
    try:
        file, folder = usable_file(path.resolve())
    except DatabaseUnreadable as error:
        return Report(False, str(error), size=size)
    try:
        return _checked(file, size, timeout_s)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _checked(file: Path, size: int, timeout_s: float) -> Report:
    checked = execution.inspect(uri(file), [("PRAGMA quick_check(1)", ())], timeout_s)
    if not checked:
        return Report(False, f"The file could not be checked within {timeout_s:g} seconds.", size=size)
    if isinstance(checked[0], str):
        return Report(False, unreadable(checked[0]), size=size)
    if checked[0] != (("ok",),):
        return Report(False, f"The file is damaged ({_first_line(checked[0])}).", size=size)
    try:
        tables, problems = schema.read(uri(file))
    except schema.SchemaUnreadable as error:
        return Report(False, unreadable(str(error)), size=size)
    log_missing = wal_mode(file)  # a copy that took its log in is in write-ahead mode no more
    if not tables:
        unread = f"No table of the database can be read. {problems[0]}" if problems else NO_TABLES
        return Report(False, LOG_MISSING if log_missing else unread, size=size, findings=problems)
    findings = (*problems, *([LOG_MISSING] if log_missing else []))
    return Report(True, "", tuple(table.name for table in tables), size, findings)


def _first_line(rows: tuple[Row, ...]) -> str:
    text = str(rows[0][0]) if rows and rows[0] else "no answer"
    return text.removeprefix("*** in database main ***\n").splitlines()[0]
