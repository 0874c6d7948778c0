"""What is remarkable about a database, in plain words, for a person who is about to ask it questions.

Findings are hints, not errors: each says what was seen and what it means for questions. Cells are looked at in the
first rows only, and only for a few seconds in all.

What this module does not know: what the data should look like.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from merit.database import upload
from merit.database.database import Database
from merit.database.names import key
from merit.database.schema import Table
from merit.episode import Execution, Row, Status

ROWS_LOOKED_AT = 50
PATIENCE_S = 6.0
VIEW_TIMEOUT_S = 1.0
TABLES_FOR_A_REPEATED_NAME = 4
NAMED_AT_ONCE = 5
ORDINARY = frozenset({b"id", b"name", b"created_at", b"updated_at"})
"""Columns that many tables share by custom."""
MARK = "\N{REPLACEMENT CHARACTER}"
"""Stands where bytes of a cell were no text (see ``worker.lossy``)."""
ISO_DATE = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-9:.]+(Z|[+-][0-9:]+)?)?")
OTHER_DATE = re.compile(
    r"[0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{4}|[0-9]{2})|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2}"
    r"|[0-3]?[0-9][ -][A-Z][a-z]{2,8}[ -][0-9]{4}|[A-Z][a-z]{2,8}\.? [0-3]?[0-9], [0-9]{4}"
)


class FindingKind(StrEnum):
    """What a finding is about."""

    NO_KEYS = "no keys"
    NO_FOREIGN_KEYS = "no foreign keys"
    DATES_AS_TEXT = "dates as text"
    SAME_NAME = "same name"
    EMPTY_TABLE = "empty table"
    VIEW_FAILS = "view fails"
    LOG_MISSING = "log missing"
    NOT_UTF8 = "not utf-8"
    LEFT_OUT = "left out"
    NOT_LOOKED_AT = "not looked at"


@dataclass(frozen=True)
class Finding:
    """One hint: its kind, a sentence, and the table or view it is about ("" for the whole database)."""

    kind: FindingKind
    sentence: str
    table: str = ""


def health(database: Database, patience_s: float = PATIENCE_S) -> tuple[Finding, ...]:
    """All findings, those about the whole file first; ends within about ``patience_s`` seconds."""
    found = [*_of_the_file(database), *_of_keys(database.tables), *_of_names(database.tables)]
    until = time.monotonic() + patience_s
    for number, table in enumerate(database.tables):
        left = until - time.monotonic()
        if left <= 0:
            rest = len(database.tables) - number
            sentence = f"There was no time to look into the rows of {rest} more tables."
            found.append(Finding(FindingKind.NOT_LOOKED_AT, sentence))
            break
        seen = database.preview(table.name, ROWS_LOOKED_AT, min(left, VIEW_TIMEOUT_S))
        found += _of_rows(table, seen)
    return tuple(found)


def _of_the_file(database: Database) -> Iterator[Finding]:
    for problem in database.problems:
        kind = FindingKind.LOG_MISSING if problem == upload.LOG_MISSING else FindingKind.LEFT_OUT
        yield Finding(kind, problem)


def _of_keys(tables: Sequence[Table]) -> Iterator[Finding]:
    real = [table for table in tables if table.kind == "table"]
    keyless = [table for table in real if not table.primary_key]
    if keyless and len(keyless) == len(real):
        yield Finding(FindingKind.NO_KEYS, "No table declares a primary key, so nothing says what one row stands for.")
    else:
        for table in keyless:
            yield Finding(FindingKind.NO_KEYS, f"{table.name} declares no primary key.", table.name)
    if len(real) > 1 and not any(table.foreign_keys for table in real):
        sentence = "No table declares how it is linked to another; joins must be guessed from the names of columns."
        yield Finding(FindingKind.NO_FOREIGN_KEYS, sentence)


def _of_names(tables: Sequence[Table]) -> Iterator[Finding]:
    places: dict[bytes, list[tuple[str, str]]] = {}
    for table in tables:
        if table.kind == "table":
            keys = {column for foreign in table.foreign_keys for column in foreign.columns} | {*table.primary_key}
            for column in table.columns:
                if column.name not in keys and key(column.name) not in ORDINARY:
                    places.setdefault(key(column.name), []).append((table.name, column.name))
    for found in places.values():
        if len(found) >= TABLES_FOR_A_REPEATED_NAME:
            where = _some([table for table, _ in found])
            sentence = (
                f"{len(found)} tables have a column {found[0][1]} ({where}); a question should say which one it means."
            )
            yield Finding(FindingKind.SAME_NAME, sentence)


def _of_rows(table: Table, seen: Execution) -> Iterator[Finding]:
    if seen.status is not Status.EXECUTED:
        if table.kind == "view":
            reason = "takes too long" if seen.status is Status.TIMEOUT else f"fails ({seen.error})"
            yield Finding(FindingKind.VIEW_FAILS, f"The view {table.name} {reason}.", table.name)
        else:
            sentence = f"The rows of {table.name} cannot be read ({seen.error})."
            yield Finding(FindingKind.NOT_LOOKED_AT, sentence, table.name)
        return
    if not seen.rows:
        if table.kind == "table":
            yield Finding(FindingKind.EMPTY_TABLE, f"{table.name} has no rows.", table.name)
        return
    yield from _of_dates(table, seen.columns, seen.rows)
    if any(isinstance(cell, str) and MARK in cell for row in seen.rows for cell in row):
        sentence = (
            f"{table.name} holds text that is not UTF-8; what could not be read is shown as {MARK}, and conditions on "
            "such text may find nothing."
        )
        yield Finding(FindingKind.NOT_UTF8, sentence, table.name)


def _of_dates(table: Table, columns: Iterable[str], rows: Sequence[Row]) -> Iterator[Finding]:
    for number, column in enumerate(columns):
        texts = [row[number] for row in rows if row[number] not in (None, "")]
        if not texts or not all(isinstance(text, str) and len(text) <= 40 for text in texts):
            continue
        if all(ISO_DATE.fullmatch(text) for text in texts):
            sentence = (
                f"{table.name}.{column} keeps dates as text such as {texts[0]}. They sort and compare well; parts of "
                "them need date functions."
            )
            yield Finding(FindingKind.DATES_AS_TEXT, sentence, table.name)
        elif all(OTHER_DATE.fullmatch(text) for text in texts):
            sentence = (
                f"{table.name}.{column} keeps dates as text such as {texts[0]}. In this form they do not sort or "
                "compare by time."
            )
            yield Finding(FindingKind.DATES_AS_TEXT, sentence, table.name)


def _some(names: Sequence[str]) -> str:
    rest = len(names) - NAMED_AT_ONCE
    return ", ".join(names[:NAMED_AT_ONCE]) + (f" and {rest} more" if rest > 0 else "")
