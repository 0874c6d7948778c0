"""A Parquet file, read inside the process of ``importing``, a batch of rows at a time.

What SQLite has no type for becomes text that says the same: dates and times in ISO 8601, decimals and whole numbers
beyond 64 bits as digits, lists and structures as JSON. True and false are 1 and 0.

What this module does not know: what the columns mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from merit.database.delimited import EXAMPLES, MOST_COLUMNS, named, shown
from merit.database.patience import Deadline, Refused

BATCH_ROWS = 1_000
LARGEST_ROW_GROUP = 512 << 20


class ParquetTable:
    """One Parquet file: its plan and its rows."""

    def __init__(self, path: str, deadline: Deadline) -> None:
        self._deadline = deadline
        try:
            self._file = pq.ParquetFile(path, memory_map=False, pre_buffer=False)
        except (pa.ArrowException, OSError) as error:
            raise Refused(f"The file is damaged or no Parquet file ({_first_line(error)}).") from error
        self._schema = self._file.schema_arrow
        if len(self._schema) > MOST_COLUMNS:
            raise Refused(f"The file has {len(self._schema):,} columns; a table can have at most {MOST_COLUMNS:,}.")
        if not len(self._schema):
            raise Refused("The file has no columns.")
        facts = self._file.metadata
        if any(facts.row_group(n).total_byte_size > LARGEST_ROW_GROUP for n in range(facts.num_row_groups)):
            raise Refused("The file unpacks to more than this place takes. Try a smaller part of it.")

    def plan(self) -> dict[str, Any]:
        """All facts of a TablePlan but the table's name."""
        columns, notes = named([str(name) for name in self._schema.names], len(self._schema))
        examples: list[list[str]] = [[] for _ in columns]
        for row in next(self._batches(), []):
            for seen, cell in zip(examples, row, strict=True):
                if cell is not None and len(seen) < EXAMPLES and shown(str(cell)) not in seen:
                    seen.append(shown(str(cell)))
        return {
            "columns": [
                {"name": name, "type": type_of(kind), "examples": some, "heading": heading}
                for (name, heading), kind, some in zip(columns, self._schema.types, examples, strict=True)
            ],
            "rows": self._file.metadata.num_rows,
            "notes": notes,
            "encoding": "",
            "delimiter": "",
            "header": True,
        }

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows as values of SQLite."""
        for batch in self._batches():
            yield from batch

    def _batches(self) -> Iterator[list[tuple[Any, ...]]]:
        try:
            for batch in self._file.iter_batches(BATCH_ROWS, use_threads=False):
                self._deadline.check()
                cells = [[stored(cell) for cell in column.to_pylist()] for column in batch.columns]
                yield list(zip(*cells, strict=True))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Refused(f"The file is damaged ({_first_line(error)}).") from error


def type_of(kind: pa.DataType) -> str:
    """The column type of SQLite for one of Arrow."""
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if (pa.types.is_integer(kind) and kind != pa.uint64()) or pa.types.is_boolean(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "BLOB"
    return "TEXT"


def stored(cell: Any) -> Any:
    """A value of Arrow as one of SQLite."""
    if cell is None or isinstance(cell, float | str | bytes):
        return cell
    if isinstance(cell, int):
        return int(cell) if -(2**63) <= cell < 2**63 else str(cell)
    if isinstance(cell, dict | list | tuple):
        return json.dumps(cell, ensure_ascii=False, default=str)
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:200]
