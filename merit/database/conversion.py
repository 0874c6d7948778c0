"""Dumps and tables (``.sql``, ``.csv``, ``.parquet``) turned into a SQLite file: the parent's side of ``importing``.

What a stranger's file holds is read in a process of its own, with limits and a deadline; this side says what a file
is, what it would become, and every refusal as a sentence.

What this module does not know: where the result is kept and for whom.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from merit.database import upload
from merit.database.execution import PACKAGE_ROOT, environment
from merit.errors import BadInput

DEADLINE_S = 60.0
START_S = 30.0
"""What a new process may take before its deadline counts (a busy machine, a cold disk)."""
COLUMN_TYPES = ("INTEGER", "REAL", "TEXT", "BLOB")
DUMP_ENDINGS = (".sql", ".dump")
TABLE_ENDINGS = (".csv", ".tsv", ".txt")
WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LONGEST_ANSWER = 16 << 20


class FileKind(StrEnum):
    """What an uploaded file is, by its content; its name only tells the kinds of text apart."""

    SQLITE = "sqlite"
    SQL = "sql"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True)
class ColumnPlan:
    """A column to be: its ``name`` in the table, its ``type`` (one of COLUMN_TYPES), up to three values as texts, and
    the ``heading`` in the file."""

    name: str
    type: str
    examples: tuple[str, ...] = ()
    heading: str = ""


@dataclass(frozen=True)
class TablePlan:
    """What a CSV or Parquet file would become. Names and types may be changed with ``dataclasses.replace``, not the
    number of columns. ``rows`` counts all rows; ``notes`` are sentences about how the file was read; ``encoding``,
    ``delimiter`` and ``header`` (whether the first line holds names) say how, for a CSV file."""

    table: str
    columns: tuple[ColumnPlan, ...]
    rows: int
    notes: tuple[str, ...] = ()
    encoding: str = ""
    delimiter: str = ""
    header: bool = True


def kind_of(path: Path, client_name: str) -> FileKind:
    """What a received file is; ``BadInput`` with a sentence when it is nothing that can become a database."""
    with path.open("rb") as file:
        head = file.read(4096)
    if head.startswith(upload.MAGIC):
        return FileKind.SQLITE
    if head.startswith(b"PAR1"):
        return FileKind.PARQUET
    ending = os.path.splitext(client_name.lower())[1]
    known = any(head.startswith(magic) for magic, _ in upload.OTHER_FORMATS)
    if head and not known and (head.startswith(WIDE_MARKS) or not upload.has_control_characters(head)):
        if ending in DUMP_ENDINGS or upload.is_dump(head):
            return FileKind.SQL
        if ending in TABLE_ENDINGS:
            return FileKind.CSV
    if head and not known and ending in DUMP_ENDINGS + TABLE_ENDINGS:
        raise BadInput(f"The file is named {ending}, but it holds bytes that no text has. Save it as text in UTF-8.")
    fault = upload.header_fault(path)
    raise BadInput(fault or "The file is not a SQLite database.")


def preview_table(path: Path, name: str = "table", header: bool | None = None) -> TablePlan:
    """Read a whole CSV or Parquet file without keeping anything: names, types, examples, number of rows.

    ``name``: what the table is to be called, made into a plain name; ``header``: whether the first line of a CSV file
    holds the names (None: decided by looking). ``BadInput`` with a sentence when it cannot become a table."""
    with path.open("rb") as file:
        kind = FileKind.PARQUET if file.read(4) == b"PAR1" else FileKind.CSV
    found = _process({"operation": "preview", "kind": kind, "source": str(path), "header": header})
    return TablePlan(
        table=table_name(name),
        columns=tuple(
            ColumnPlan(column["name"], column["type"], tuple(column["examples"]), column["heading"])
            for column in found["columns"]
        ),
        rows=found["rows"],
        notes=tuple(found["notes"]),
        encoding=found["encoding"],
        delimiter=found["delimiter"],
        header=found["header"],
    )


def convert(source: Path, target: Path, kind: FileKind, plan: TablePlan | None = None, name: str = "table") -> None:
    """Write the database that ``source`` describes to ``target``, a new file, 0600.

    ``plan`` belongs to a table (None: as :func:`preview_table` finds it). ``BadInput`` says what is wrong and where;
    ``target`` is worth nothing then."""
    request: dict[str, Any] = {"operation": "build", "kind": kind, "source": str(source), "target": str(target)}
    if kind is not FileKind.SQL:
        request["plan"] = asdict(checked(plan or preview_table(source, name)))
    target.touch(0o600, exist_ok=False)
    _process(request)


def checked(plan: TablePlan) -> TablePlan:
    """The plan, if a person's changes to it can be carried out; else ``BadInput``."""
    names = [column.name for column in plan.columns]
    if not plan.table.strip() or not all(name.strip() for name in names):
        raise BadInput("The table and each of its columns need a name.")
    if any("\0" in name for name in [plan.table, *names]):
        raise BadInput("A name cannot hold the character with the number 0.")
    if plan.table.lower().startswith("sqlite_"):
        raise BadInput("Names of tables that begin with sqlite_ belong to SQLite. Choose another name.")
    if len({name.lower() for name in names}) < len(names):
        raise BadInput("Two columns have the same name (capital letters do not count). Change one of them.")
    if unknown := {column.type for column in plan.columns} - set(COLUMN_TYPES):
        raise BadInput(f"There is no column type {sorted(unknown)[0]!r}. Known ones: {', '.join(COLUMN_TYPES)}.")
    return plan


def table_name(title: str) -> str:
    """A plain name for a table out of a title: letters of any script, digits and underscores."""
    stem = os.path.splitext(title)[0]
    plain = re.sub(r"\W+", "_", stem).strip("_")[:60] or "table"
    return f"t_{plain}" if plain[0].isdigit() or plain.lower().startswith("sqlite_") else plain


def _process(request: Mapping[str, Any]) -> dict[str, Any]:
    """Have one request answered by a process of its own, killed at the deadline."""
    body = json.dumps({**request, "deadline_s": DEADLINE_S}).encode("ascii")
    try:
        with tempfile.TemporaryFile() as output:  # no pipe: what a process taken over floods stays out of memory
            subprocess.run(
                [sys.executable, "-E", "-s", "-m", "merit.database.importing"],
                input=body,
                stdout=output,
                stderr=subprocess.DEVNULL,
                cwd=PACKAGE_ROOT,
                env=environment() | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
                timeout=START_S + DEADLINE_S,
                check=False,
            )
            output.seek(0)
            found = json.loads(output.read(LONGEST_ANSWER))
    except subprocess.TimeoutExpired:
        raise BadInput(f"The file could not be read within {DEADLINE_S:g} seconds. Try a smaller part of it.") from None
    except OSError as error:
        raise BadInput(f"The file could not be read: no process could be started ({error.strerror}).") from error
    except ValueError:
        raise BadInput(
            "The file could not be read: it needs more memory or time than one file may take here, or it is damaged."
        ) from None
    if "refused" in found:
        raise BadInput(str(found["refused"]))
    return dict(found)
