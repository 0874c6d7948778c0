"""What a statement may do: the authorizer that SQLite asks while it compiles one.

An allow-list: reading, and functions known to compute from their arguments alone. What this module does not know:
limits and deadlines (``worker``). It imports the standard library alone, because the worker must start fast.
"""

from __future__ import annotations

import sqlite3

READONLY = "attempt to write a readonly database"
"""SQLite's words for a write on a read-only connection; the classifier reads them (spec §2, rule 10)."""
REFUSALS = frozenset({"not authorized", "authorization denied"})
"""SQLite's words for what an authorizer refused."""

FUNCTIONS = (
    # numbers
    "abs acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow "
    "power radians random round sign sin sinh sqrt tan tanh trunc "
    # text and blobs
    "char concat concat_ws format glob hex instr length like lower ltrim octet_length printf quote randomblob replace "
    "rtrim soundex substr substring trim unhex unicode unistr unistr_quote upper zeroblob "
    # choice and type
    "coalesce if ifnull iif likelihood likely max min nullif subtype typeof unlikely "
    # time
    "current_date current_time current_timestamp date datetime julianday strftime time timediff unixepoch "
    # aggregates and windows
    "avg count cume_dist dense_rank first_value group_concat lag last_value lead median nth_value ntile percent_rank "
    "percentile percentile_cont percentile_disc rank row_number string_agg sum total "
    # JSON
    "-> ->> json json_array json_array_insert json_array_length json_error_position json_extract json_group_array "
    "json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set "
    "json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object "
    "jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set "
    # search and R*Tree
    "bm25 highlight match matchinfo offsets regexp snippet rtreedepth rtreenode "
    # about the connection
    "changes last_insert_rowid sqlite_version total_changes"
)
ALLOWED_FUNCTIONS = frozenset(FUNCTIONS.split())
"""Functions a statement may call. Others of the same SQLite (load_extension, fts3_tokenizer, sqlite_log, readfile
and writefile of shells, …) are refused; functions that do not exist are refused by SQLite itself, in its own words."""

READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})

NO_WRITES = frozenset(
    {
        sqlite3.SQLITE_PRAGMA,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_FUNCTION,
    }
)
"""Refused actions that keep SQLite's own message; all other refused actions would write."""

PRAGMAS_OF_MODULES = frozenset({"data_version", "page_size"})
"""FTS5 and FTS3 ask these two of their own connection while a statement reads from them."""
PRAGMAS_THAT_TAKE_A_NAME = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
"""With an argument these still only read; any other PRAGMA with one sets something."""
PRAGMAS_THAT_ACT = frozenset({"incremental_vacuum", "optimize", "wal_checkpoint"})
"""These change the file without an argument."""


class Guard:
    """The authorizer of one statement; remembers whether what it refused would have written."""

    def __init__(self) -> None:
        self.refused_write = False

    def __call__(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action in READS:
            return sqlite3.SQLITE_OK
        # Using a virtual table (json_each, FTS5, …) declares its columns, which SQLite announces as this update. A real
        # update of the schema needs writable_schema, a PRAGMA that is refused, and a file that can be written.
        if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in ALLOWED_FUNCTIONS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            if second is None and name in PRAGMAS_OF_MODULES:
                return sqlite3.SQLITE_OK
            sets = second is not None and name not in PRAGMAS_THAT_TAKE_A_NAME
            self.refused_write |= sets or name in PRAGMAS_THAT_ACT
        elif action not in NO_WRITES:
            self.refused_write = True
        return sqlite3.SQLITE_DENY

    def message(self, message: str) -> str:
        """The message to report: a refused write reads as it would on a read-only connection."""
        return READONLY if self.refused_write and message in REFUSALS else message
