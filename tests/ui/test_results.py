"""A result on the screen and in files: unique names, exact integers, marked NULL, BLOB, NUL and infinity."""

from __future__ import annotations

import csv
import io
import json
import math
import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from merit.episode import Execution, Status
from merit.ui.results import MAX_ROWS, NULL, cell, frame, summary, to_csv, to_json, unique_names


def executed(columns: tuple[str, ...], *rows: tuple[Any, ...], truncated: bool = False) -> Execution:
    return Execution(Status.EXECUTED, columns, rows, None, 0.012, truncated)


def show(execution: Execution) -> AppTest:
    def page() -> None:
        import streamlit as st

        from merit.ui.results import display

        display(st.session_state["execution"])

    at = AppTest.from_function(page, default_timeout=20)
    at.session_state["execution"] = execution
    at.run()
    assert not at.exception
    return at


def test_mixed_types_bytes_and_duplicate_names_are_drawn() -> None:
    """Streamlit raises on duplicate column names, and on bytes that are no UTF-8 beside a number."""
    rows = [(1, "a"), ("x", b"\xff\x00"), (2.5, None), ("", 3), (math.inf, -math.inf)]
    at = show(executed(("v", "v"), *rows))
    shown = at.dataframe[0].value
    assert list(shown.columns) == ["v", "v (2)"]
    assert list(shown["v"]) == ["1", "x", "2.5", "", "∞ Inf"]
    assert list(shown["v (2)"]) == ["a", "x'FF00' (2 bytes)", NULL, "3", "−∞ -Inf"]


BIG = 2**53 + 1


def test_integers_beyond_doubles_keep_every_digit() -> None:
    """pandas turns 9007199254740993 beside a NULL into …992, and a browser rounds it even alone."""
    shown = frame(("n", "m", "small"), [(BIG, BIG, 1), (None, -(2**63), 2)])
    assert list(shown["n"]) == [str(BIG), NULL]
    assert list(shown["m"]) == [str(BIG), str(-(2**63))]
    assert shown["small"].dtype == "int64"


def test_a_nul_does_not_end_a_cell_or_an_export() -> None:
    execution = executed(("code",), ("abc",), ("abc\x00def",))
    assert list(frame(execution.columns, execution.rows)["code"]) == ["abc", "abc␀def"]
    assert b"abc\x00def" in to_csv(execution)
    assert json.loads(to_json(execution))["rows"] == [["abc"], ["abc\x00def"]]


def test_markup_in_cells_stays_as_it_is() -> None:
    cells = ["from $5 to $10", "*not* _italic_", ":red[stop] <b>bold</b>", "# 1. | a | b |"]
    at = show(executed(("note",), *[(text,) for text in cells]))
    assert list(at.dataframe[0].value["note"]) == cells


def test_a_message_is_shown_character_by_character() -> None:
    message = "no such column: *a*_b_$c$ <b>:red[x]"
    at = show(Execution(Status.EXECUTION_ERROR, error=message))
    assert at.code[0].value == message
    assert not at.dataframe


def test_odd_dates_stay_text() -> None:
    values = ["2024-02-30", "30/02/24", 20240230, "", None]
    shown = frame(("d",), [(value,) for value in values])
    assert list(shown["d"]) == ["2024-02-30", "30/02/24", "20240230", "", NULL]


def test_no_rows_and_no_columns_are_said() -> None:
    assert any("no rows" in caption.value for caption in show(executed(("a", "a"))).caption)
    assert show(executed(("a", "a"))).text[0].value == "a, a (2)"
    assert any("no table" in caption.value for caption in show(executed(())).caption)


def test_at_most_a_thousand_rows_are_drawn_and_it_is_said() -> None:
    execution = executed(("n",), *[(n,) for n in range(MAX_ROWS + 5)])
    at = show(execution)
    assert len(at.dataframe[0].value) == MAX_ROWS
    assert any("Truncated: the first 1,000 of 1,005 rows" in caption.value for caption in at.caption)
    assert "Truncated" in summary(executed(("n",), (1,), truncated=True))
    assert len(to_csv(execution).splitlines()) == MAX_ROWS + 6


def test_timeouts_and_stops_are_said_in_words() -> None:
    assert "ran out of time" in show(Execution(Status.TIMEOUT, error="TIMEOUT", elapsed_s=2.0)).caption[0].value
    assert "stopped" in show(Execution(Status.CANCELLED)).caption[0].value


def test_a_long_cell_is_cut_on_the_screen_only() -> None:
    assert cell("x" * 5_000).endswith("… (5,000 characters)")
    assert b"x" * 5_000 in to_csv(executed(("a",), ("x" * 5_000,)))


@given(st.lists(st.sampled_from(["a", "a (2)", "", " ", "A", "a\x00"]), max_size=8))
def test_names_are_always_unique(columns: list[str]) -> None:
    names = unique_names(columns)
    assert len(set(names)) == len(columns)
    assert all(names)


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    st.binary(max_size=4),
)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=5))
def test_any_result_can_be_drawn_and_taken_along(rows: list[tuple[Any, Any]]) -> None:
    execution = executed(("a", "a"), *rows)
    assert len(frame(execution.columns, execution.rows)) == len(rows)
    back = json.loads(to_json(execution))["rows"]
    for row, read in zip(rows, back, strict=True):
        for value, written in zip(row, read, strict=True):
            if isinstance(value, int | str) or value is None:
                assert written == value
                assert type(written) is type(value)


@pytest.mark.parametrize("text", ['a,b "c"\r\nd', "", "NULL", "=1+1"])
def test_csv_tells_text_from_null_and_reads_back(text: str) -> None:
    body = to_csv(executed(("t", "n", "b"), (text, None, b"\x01"))).decode()
    assert body.endswith(",,x'01'\r\n")
    read = list(csv.reader(io.StringIO(body, newline="")))
    assert read == [["t", "n", "b"], [text, "", "x'01'"]]
    literal = sqlite3.connect(":memory:").execute("SELECT x'01'").fetchone()[0]
    assert literal == b"\x01"
