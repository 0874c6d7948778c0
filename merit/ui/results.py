"""The one way a result gets onto the screen and out of it: table, CSV, JSON.

SQLite holds any type in any cell, repeats column names, and keeps integers, bytes and NULs that tables in a
browser round, refuse or cut. Here names are made unique, a column is numeric only if every digit survives, all
else is text, and NULL, BLOB, infinities and invisible characters are marked. Exports carry the stored values.

What this module does not know: where the result came from or whether it is right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from merit.episode import Execution, Row, Status
from merit.ui.text import count, seconds, visible

MAX_ROWS = 1_000
"""Most rows drawn; exports are not cut here."""
MAX_CELL = 2_000
"""Most characters of one cell drawn."""
_EXACT = 2**53 - 1
_BLOB_SHOWN = 24

NULL = "∅ NULL"


def cell(value: Any) -> str:
    """One value as it is drawn."""
    if value is None:
        return NULL
    if isinstance(value, bytes):
        dots = "…" if len(value) > _BLOB_SHOWN else ""
        return f"x'{value[:_BLOB_SHOWN].hex().upper()}{dots}' ({count(len(value), 'byte')})"
    if isinstance(value, float):
        return _real(value)
    text = visible(str(value))
    return text if len(text) <= MAX_CELL else f"{text[:MAX_CELL]}… ({len(text):,} characters)"


def _real(value: float) -> str:
    if math.isinf(value):
        return "∞ Inf" if value > 0 else "−∞ -Inf"
    return "NaN" if math.isnan(value) else repr(value)


def unique_names(columns: Sequence[str]) -> list[str]:
    """Column names as drawn: repeated ones are numbered, an empty one is said to be empty."""
    taken: set[str] = set()
    names = []
    for column in columns:
        base = visible(column).strip() or "(no name)"
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base} ({number})"
        taken.add(name)
        names.append(name)
    return names


def _exact_integers(values: Sequence[Any]) -> bool:
    """Whether these are integers that a browser shows digit by digit (its numbers are doubles)."""
    return {type(value) for value in values} == {int} and all(-_EXACT <= value <= _EXACT for value in values)


def _numbers(values: Sequence[Any]) -> bool:
    return any(isinstance(value, (int, float)) for value in values) and all(
        value is None or isinstance(value, (int, float)) for value in values
    )


def frame(columns: Sequence[str], rows: Sequence[Row]) -> pd.DataFrame:
    """At most ``MAX_ROWS`` rows as a frame of integer and text columns, shape (rows, columns)."""
    shown = rows[:MAX_ROWS]
    data = {}
    for index, name in enumerate(unique_names(columns)):
        values = [row[index] for row in shown]
        if _exact_integers(values):
            data[name] = pd.Series(values, dtype="int64")
        else:
            data[name] = pd.Series([cell(value) for value in values], dtype="object")
    return pd.DataFrame(data, index=pd.RangeIndex(len(shown)))


def _alignment(columns: Sequence[str], rows: Sequence[Row], data: pd.DataFrame) -> dict[str, Any]:
    """Numbers stand right even where they are drawn as text, because a table in a browser would round them."""
    config: dict[str, Any] = {}
    for index, name in enumerate(data.columns):
        if data[name].dtype == "int64":
            config[name] = st.column_config.NumberColumn(format="plain")
        elif _numbers([row[index] for row in rows[:MAX_ROWS]]):
            config[name] = st.column_config.TextColumn(alignment="right")
    return config


def to_csv(execution: Execution) -> bytes:
    """All rows as RFC 4180 CSV in UTF-8. Text is quoted and a NULL is an empty field without quotes, so that
    the two differ; a BLOB is written as an SQLite literal, ``x'FF00'``."""
    lines = [",".join(_csv_field(column) for column in execution.columns)]
    lines += [",".join(_csv_field(value) for value in row) for row in execution.rows]
    return ("\r\n".join(lines) + "\r\n").encode("utf-8", "replace")


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f"x'{value.hex().upper()}'"
    if isinstance(value, float):
        return "Inf" if value == math.inf else "-Inf" if value == -math.inf else repr(value)
    if isinstance(value, int):
        return str(value)
    return '"' + str(value).replace('"', '""') + '"'


def to_json(execution: Execution) -> bytes:
    """Columns and all rows as JSON in UTF-8; integers are exact, a BLOB is ``{"blob": hex}`` and an infinity
    ``{"real": "Inf"}``, which JSON has no number for."""
    body = {
        "columns": list(execution.columns),
        "rows": [[_json_value(value) for value in row] for row in execution.rows],
        "truncated": execution.truncated,
    }
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"blob": value.hex().upper()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": "Inf" if value > 0 else "-Inf"}
    return value


def summary(execution: Execution, row_count: int | None = None) -> str:
    """One line about the size of a result; ``row_count`` says how many rows were fetched where fewer are held."""
    total = len(execution.rows) if row_count is None else row_count
    shown = min(len(execution.rows), MAX_ROWS)
    size = f"{count(total, 'row')}, {count(len(execution.columns), 'column')}, {seconds(execution.elapsed_s)}"
    if execution.truncated:
        return f"Truncated: the first {count(shown, 'row')} shown, the query gives more. {seconds(execution.elapsed_s)}"
    if shown < total:
        return f"Truncated: the first {shown:,} of {count(total, 'row')} shown. {seconds(execution.elapsed_s)}"
    return size


def display(
    execution: Execution,
    *,
    key: str = "result",
    row_count: int | None = None,
    fetch: Callable[[], Execution] | None = None,
    downloads: bool = True,
) -> None:
    """Draw one result: its table or the message of the database, a line about its size, CSV and JSON.

    ``key`` tells two results on one page apart. ``row_count`` is the number of rows that were fetched where
    ``execution`` holds only the first of them; ``fetch`` then gets them all when a download asks.
    """
    if execution.status is not Status.EXECUTED:
        message(execution)
        return
    if not execution.columns:
        st.caption("The statement ran and gives no table.")
        return
    if not execution.rows:
        st.caption("The query ran and found no rows. Columns:")
        st.text(", ".join(unique_names(execution.columns)))
    else:
        data = frame(execution.columns, execution.rows)
        config = _alignment(execution.columns, execution.rows, data)
        st.dataframe(data, hide_index=True, column_config=config, key=f"{key}-table")
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}-foot"):
        st.caption(summary(execution, row_count))
        if downloads and execution.rows:
            _downloads(execution, key, row_count, fetch)


def _downloads(execution: Execution, key: str, row_count: int | None, fetch: Callable[[], Execution] | None) -> None:
    whole = row_count is None or row_count <= len(execution.rows)

    def stored() -> Execution:
        return execution if whole or fetch is None else fetch()

    st.download_button(
        "CSV", lambda: to_csv(stored()), "result.csv", "text/csv",
        key=f"{key}-csv", type="tertiary", icon=":material/download:", on_click="ignore",
        help="All rows with their stored values; text in quotes, NULL as an empty field.",
    )  # fmt: skip
    st.download_button(
        "JSON", lambda: to_json(stored()), "result.json", "application/json",
        key=f"{key}-json", type="tertiary", icon=":material/download:", on_click="ignore",
        help="All rows with their stored values.",
    )  # fmt: skip


def message(execution: Execution) -> None:
    """Say in words why there is no table, with what the database said as it said it."""
    if execution.status is Status.TIMEOUT:
        st.caption(f"The query was stopped after {seconds(execution.elapsed_s)} because it ran out of time.")
    elif execution.status is Status.CANCELLED:
        st.caption("The query was stopped before it had an answer.")
    else:
        st.caption("The database says")
        st.code(visible(execution.error or "(no message)"), language=None, wrap_lines=True)
