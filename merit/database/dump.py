"""A dump, a text of SQL statements, run into an empty database inside the process of ``importing``.

A statement may make tables, indexes, views and triggers, and fill them; it may not reach another file, change how
SQLite works, or call a function that is not known to compute from its arguments alone. All or nothing: the first
statements that fail are named, with their lines, and the file is refused.

What this module does not know: dialects of other systems. Their dumps fail, with a word about why.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from merit.database.delimited import encoding_of
from merit.database.guard import ALLOWED_FUNCTIONS
from merit.database.patience import Deadline, Refused

MOST_ERRORS = 5
SKIPPED = re.compile(r"(BEGIN|COMMIT|END)\b(?!.*\bTRIGGER\b)", re.IGNORECASE)
"""Statements that only group others: the whole dump is one group here."""
TRIGGER = re.compile(r"CREATE\s+(TEMP\s+|TEMPORARY\s+)?TRIGGER\b", re.IGNORECASE)
COMMENTS = re.compile(r"(?:\s+|\ufeff|--[^\n]*+|/\*(?:(?!\*/).)*+(?:\*/)?+)*+", re.DOTALL)
PIECE = re.compile(
    r"""'(?:[^']|'')*+'? | "(?:[^"]|"")*+"? | `(?:[^`]|``)*+`? | \[[^\]]*+\]? | --[^\n]*+ | /\*(?:(?!\*/).)*+(?:\*/)?+
    | ;""",
    re.DOTALL | re.VERBOSE,
)
"""What may hide a semicolon, and the semicolon itself."""

MAKING = frozenset(
    {
        sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_ANALYZE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_TRIGGER,
        sqlite3.SQLITE_DROP_VIEW,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_REINDEX,
        sqlite3.SQLITE_SAVEPOINT,
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_UPDATE,
    }
)
MODULES = frozenset({"fts3", "fts4", "fts5", "rtree"})
PRAGMAS = (
    "application_id auto_vacuum automatic_index busy_timeout cache_size case_sensitive_like count_changes encoding "
    "foreign_keys ignore_check_constraints journal_mode legacy_alter_table legacy_file_format locking_mode "
    "page_size recursive_triggers synchronous temp_store user_version"
)
IGNORED_PRAGMAS = frozenset(PRAGMAS.split())
"""Lines that dumps begin with and that say nothing about the data: passed over."""

FOREIGN_WORDS = (
    (re.compile(r"^\s*(GO\b|USE \[|SET ANSI_NULLS)|\[dbo\]", re.IGNORECASE), "SQL Server"),
    (re.compile(r"\bENGINE\s*=|\bAUTO_INCREMENT\b|^\s*(LOCK TABLES|/\*!|SET (NAMES|@))", re.IGNORECASE), "MySQL"),
    (re.compile(r"^\s*(COPY .* FROM stdin|SET \w+ = |SELECT pg_catalog)|\bOWNER TO\b", re.IGNORECASE), "PostgreSQL"),
)


class _Guard:
    """The authorizer of a dump; remembers in words what it refused last."""

    def __init__(self) -> None:
        self.refused = ""

    def __call__(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action in MAKING:
            return sqlite3.SQLITE_OK
        name = (second if action in (sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_CREATE_VTABLE) else first) or ""
        if action == sqlite3.SQLITE_FUNCTION and name.lower() in ALLOWED_FUNCTIONS | {"printf"}:
            return sqlite3.SQLITE_OK
        if action in (sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE) and name.lower() in MODULES:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA:
            if name.lower() in IGNORED_PRAGMAS:
                return sqlite3.SQLITE_IGNORE
            if name.lower() in ("data_version", "page_size") and second is None:
                return sqlite3.SQLITE_OK
        self.refused = {
            sqlite3.SQLITE_ATTACH: "other files are out of reach",
            sqlite3.SQLITE_DETACH: "other files are out of reach",
            sqlite3.SQLITE_FUNCTION: f"the function {name} is not allowed",
            sqlite3.SQLITE_PRAGMA: f"PRAGMA {name} is not allowed",
            sqlite3.SQLITE_CREATE_VTABLE: f"virtual tables of the kind {name} are not allowed",
        }.get(action, "this kind of statement is not allowed")
        return sqlite3.SQLITE_DENY


def run(connection: sqlite3.Connection, source: str, deadline: Deadline) -> dict[str, Any]:
    """Run a whole dump; the number of its statements. Raises Refused naming up to five that failed."""
    encoding, _ = encoding_of(source, deadline)
    with open(source, "rb") as file:
        text = file.read().decode(encoding, "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 50_000_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 50_000_000)
    guard = _Guard()
    connection.execute("BEGIN")
    connection.set_authorizer(guard)
    errors: list[str] = []
    number = 0
    for number, (line, statement) in enumerate(statements(text), 1):
        deadline.check()
        if SKIPPED.match(statement):
            continue
        guard.refused = ""
        try:
            connection.execute(statement).close()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            deadline.check()
            if "disk is full" in str(error):
                raise
            errors.append(f"statement {number} (line {line}): {guard.refused or _short(str(error))}")
            if len(errors) == MOST_ERRORS or not connection.in_transaction:
                break
    connection.set_authorizer(None)
    if errors:
        raise Refused(f"The dump could not be run. {_first_up('; '.join(errors))}.{_origin(text)}")
    if not number:
        raise Refused("The file holds no SQL statements.")
    connection.execute("COMMIT")
    return {"statements": number}


def statements(text: str) -> Iterator[tuple[int, str]]:
    """The statements of a text with the number of the line each begins on, comments before them left out; linear."""
    start = line = 0
    counted = 0
    for piece in PIECE.finditer(text):
        if piece[0] != ";":
            continue
        begin = _skip(text, start)
        statement = text[begin : piece.end()]
        if TRIGGER.match(statement) and not sqlite3.complete_statement(statement):
            continue  # a semicolon inside a trigger
        start = piece.end()
        if begin < piece.start():
            line += text.count("\n", counted, begin)
            counted = begin
            yield line + 1, statement
    begin = _skip(text, start)
    if begin < len(text):
        yield line + text.count("\n", counted, begin) + 1, text[begin:]


def _skip(text: str, start: int) -> int:
    found = COMMENTS.match(text, start)
    return found.end() if found else start


def _short(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:200]} …"


def _first_up(text: str) -> str:
    return text[:1].upper() + text[1:]


def _origin(text: str) -> str:
    """A word about a dump of another system."""
    head = text[:200_000].splitlines()
    for words, system in FOREIGN_WORDS:
        if any(words.search(line) for line in head):
            return f" It looks like a dump of {system}; only dumps of SQLite can be read."
    return ""
