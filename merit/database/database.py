"""One SQLite file: its schema, and statements run on it, read-only.

What this module does not know: questions, gold, models. It keeps no connection: every statement gets a fresh one
in a worker process.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from merit.database import execution, schema, upload
from merit.episode import Execution, Status
from merit.errors import BadInput, DatabaseNotFound, DatabaseUnreadable

OLDEST_SQLITE = (3, 37)
"""The first with PRAGMA table_list."""


class Database:
    """One opened SQLite file. Immutable and safe from any number of threads.

    ``id``: the name in prompts; ``path``: the file as given, absolute; ``tables``: tables and views in order of
    creation; ``problems``: sentences about what is wrong with the file and what was left out.
    """

    def __init__(
        self, id: str, path: Path, tables: tuple[schema.Table, ...], problems: tuple[str, ...], uri: str
    ) -> None:
        self.id = id
        self.path = path
        self.tables = tables
        self.problems = problems
        self._uri = uri

    def __repr__(self) -> str:
        return f"Database(id={self.id!r}, path={str(self.path)!r}, tables={len(self.tables)})"

    @classmethod
    def open(cls, path: Path | str, id: str | None = None, types: Mapping[str, Any] | None = None) -> Database:
        """Open the file at ``path`` where it lies; nothing is ever written beside it.

        ``id`` defaults to the file's stem. ``types`` replaces the declared types in the schema listing: table →
        column → type, or an entry of a Spider ``tables.json``; matched without regard to case. Raises
        DatabaseNotFound without a file, DatabaseUnreadable with a sentence for one that is no usable database.
        A log or an unfinished journal beside the file is carried over into a private copy, which then is read.
        """
        path = Path(path).absolute()
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise DatabaseUnreadable(f"SQLite 3.37 or newer is needed; this Python has {sqlite3.sqlite_version}.")
        if not path.exists():
            raise DatabaseNotFound(f"There is no database at {path}.")
        if not path.is_file():
            raise DatabaseUnreadable(f"{path} is a folder or a device, not a database file.")
        file, folder = upload.usable_file(path.resolve())
        uri = upload.uri(file)
        try:
            tables, problems = schema.read(uri)
        except schema.SchemaUnreadable as error:
            raise DatabaseUnreadable(upload.unreadable(str(error))) from error
        if upload.wal_mode(file):  # a copy that took its log in is in write-ahead mode no more
            if not tables:
                raise DatabaseUnreadable(upload.LOG_MISSING)
            problems = (*problems, upload.LOG_MISSING)
        elif not tables:
            problems = (*problems, upload.NO_TABLES)
        if types is not None:
            tables, missing = schema.with_types(tables, types)
            problems = (*problems, *missing)
        database = cls(path.stem if id is None else id, path, tables, problems, uri)
        if folder is not None:
            weakref.finalize(database, shutil.rmtree, folder, ignore_errors=True)
        return database

    @property
    def files(self) -> tuple[Path, ...]:
        """The database files a prediction is compared on: in the layout of Spider and its test suite
        (``<name>/<name>.sqlite``) every ``.sqlite`` file of the folder, this one first; else this file alone."""
        if self.path.parent.name != self.path.stem:
            return (self.path,)
        others = sorted(self.path.parent.glob("*.sqlite"))
        return (self.path, *(other for other in others if other != self.path and other.is_file()))

    def schema(self, form: str = "listing") -> str:
        """The schema text: ``listing`` as in the prompts (spec §5), ``ddl`` as CREATE TABLE statements."""
        if form == "listing":
            return schema.listing(self.id, self.tables)
        if form == "ddl":
            return schema.ddl(self.tables)
        raise ValueError(f"There is no schema text called {form!r}; known are listing and ddl.")

    @property
    def schema_hash(self) -> str:
        """SHA-256 of the ``ddl`` text, in hex: equal for databases of equal schema, whatever their names."""
        return hashlib.sha256(self.schema("ddl").encode("utf-8", "surrogatepass")).hexdigest()

    def execute(
        self,
        sql: str,
        timeout_s: float = 30.0,
        max_rows: int = 1000,
        *,
        cancel: threading.Event | None = None,
        max_bytes: int = execution.MAX_BYTES,
    ) -> Execution:
        """Run one statement exactly as written (see ``merit.database.execution.execute``); never raises for it."""
        return execution.execute(self._uri, sql, timeout_s, max_rows, cancel=cancel, max_bytes=max_bytes)

    def preview(self, table: str, rows: int = 10, timeout_s: float = 5.0) -> Execution:
        """The first ``rows`` rows of a table or view, whatever its name."""
        return self.execute(schema.preview_statement(self._known(table), rows), timeout_s)

    def row_count(self, table: str, timeout_s: float = 5.0) -> int | None:
        """The number of rows of a table or view; None where they cannot be counted in that time."""
        counted = self.execute(schema.count_statement(self._known(table)), timeout_s)
        return int(counted.rows[0][0]) if counted.status is Status.EXECUTED else None

    def _known(self, table: str) -> str:
        if all(table != known.name for known in self.tables):
            raise BadInput(f"The database {self.id} has no table called {table!r}.")
        return table
