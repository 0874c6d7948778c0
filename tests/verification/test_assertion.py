"""Assertions: rows, their number, one value, an SQL condition; guarded like any statement."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from verification_support import ENDLESS, asks, make

from merit.database import Database
from merit.errors import BadInput
from merit.verification import AssertionVerifier


def holds(database: Database, sql: str, **asserted: Any) -> bool:
    outcome = AssertionVerifier(**asserted).judge(asks(None), database, sql).outcome
    assert outcome in ("CORRECT", "DENOTATION_MISMATCH")
    return outcome == "CORRECT"


NAMES = "SELECT name FROM boat ORDER BY no"


@pytest.mark.parametrize(
    ("sql", "asserted", "expected"),
    [
        (NAMES, {"rows": [["Gro"], ["Elsa"], ["Fram"], ["Elsa"]]}, True),
        (NAMES, {"rows": [("Gro",), ("Elsa",), ("Fram",), ("Elsa",)], "ordered": True}, False),
        (NAMES, {"rows": [("Elsa",), ("Fram",), ("Gro",), ("Elsa",)], "ordered": True}, True),
        (NAMES, {"rows": [("Elsa",), ("Fram",), ("Gro",)]}, False),
        (NAMES, {"rows": []}, False),
        (NAMES + " LIMIT 0", {"rows": []}, True),
        (NAMES, {"row_count": 4}, True),
        (NAMES, {"row_count": 0}, False),
        (NAMES + " LIMIT 0", {"row_count": 0}, True),
        ("SELECT count(*) FROM boat", {"value": 4}, True),
        ("SELECT count(*) FROM boat", {"value": 4.0}, True),
        ("SELECT count(*) FROM boat", {"value": "4"}, False),
        ("SELECT count(*) FROM boat", {"value": 0}, False),
        ("SELECT count(*), 1 FROM boat", {"value": 4}, False),
        (NAMES, {"value": "Elsa"}, False),
        (NAMES, {"row_count": 4, "condition": "name = 'Elsa'"}, False),
        (NAMES, {"row_count": 4, "condition": "length(name) > 2"}, True),
    ],
)
def test_everything_that_is_asserted_must_hold(
    boats: Database, sql: str, asserted: dict[str, Any], expected: bool
) -> None:
    assert holds(boats, sql, **asserted) is expected


LENGTHS = 'SELECT no, length, code, draught AS "the draught", length FROM boat WHERE length > '


@pytest.mark.parametrize(
    ("least", "condition", "expected"),
    [
        (0, "length >= 9", True),
        (0, "length > 9", False),
        (99, "length > 9", False),
        (0, "code IS NOT NULL", False),
        (0, "code > 'a'", False),
        (0, "count(*) = 4", True),
        (0, "count(*) = 4 AND min(length) = 9 -- and so on", True),
        (99, "count(*) = 0", True),
        (99, "sum(length) > 0", False),
        (0, "EXISTS (SELECT 1 FROM result WHERE length = 30)", True),
        (99, "EXISTS (SELECT 1 FROM result WHERE length = 30)", False),
        (99, "NOT EXISTS (SELECT 1 FROM result WHERE length < 9)", True),
        (99, "(SELECT count(*) FROM result) = 3", False),
        (0, '"the draught" > 1 AND length_2 = length', True),
        (0, "keel > 1", False),
    ],
)
def test_a_condition_over_the_result(boats: Database, least: int, condition: str, expected: bool) -> None:
    assert holds(boats, LENGTHS + str(least), condition=condition) is expected


def test_a_condition_sees_the_values_as_they_are(tmp_path: Path) -> None:
    database = make(
        tmp_path / "v.sqlite",
        "CREATE TABLE v(a, b, c, d); INSERT INTO v VALUES (9007199254740993, 'x' || char(0) || 'y', x'ff00', '1');",
    )
    condition = "a = 9007199254740993 AND b = 'x' || char(0) || 'y' AND c = x'ff00' AND typeof(d) = 'text'"
    assert holds(database, "SELECT * FROM v", condition=condition)


def test_columns_without_a_usable_name_do_no_harm(boats: Database) -> None:
    assert holds(boats, 'SELECT 1, 1, \'\' AS "", 2 AS "a""b"', condition='"a""b" = 2 AND "1_2" = 1')


@pytest.mark.parametrize(
    "condition",
    ["", "-- nothing", "length >", "length > 1; DROP TABLE result", "the length is right", "length = 'x", "1) FROM"],
)
def test_what_is_no_expression_is_refused_at_once(condition: str) -> None:
    with pytest.raises(BadInput) as caught:
        AssertionVerifier(condition=condition)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "condition",
    [
        "1) FROM result; DELETE FROM result --",
        "(SELECT load_extension('x'))",
        "readfile('/etc/passwd') IS NULL",
        "no_such_function(length)",
        "(SELECT count(*) FROM pragma_database_list) > 0 AND writefile('x', 'y')",
    ],
)
def test_a_condition_can_do_no_harm(boats: Database, condition: str) -> None:
    with pytest.raises(BadInput):
        AssertionVerifier(condition=condition).judge(asks(None), boats, LENGTHS + "0")


def test_a_condition_without_end_meets_the_deadline(boats: Database) -> None:
    verifier = AssertionVerifier(condition=f"({ENDLESS}) > 0", timeout_s=0.5)
    started = time.monotonic()
    with pytest.raises(BadInput, match="TIMEOUT"):
        verifier.judge(asks(None), boats, "SELECT 1")
    assert time.monotonic() - started < 5


def test_nothing_asserted_is_refused() -> None:
    with pytest.raises(BadInput):
        AssertionVerifier()
    with pytest.raises(BadInput):
        AssertionVerifier(ordered=True)


@pytest.mark.parametrize(
    ("sql", "outcome", "error"),
    [
        ("SELECT keel FROM boat", "EXECUTION_ERROR", "no such column: keel"),
        (ENDLESS, "TIMEOUT", "TIMEOUT"),
        (";", "EXECUTION_ERROR", "empty query"),
    ],
)
def test_what_did_not_execute_holds_nothing(boats: Database, sql: str, outcome: str, error: str) -> None:
    found = AssertionVerifier(row_count=0, timeout_s=0.4).judge(asks(None), boats, sql)
    assert (found.outcome, found.error) == (outcome, error)


def test_a_result_that_was_cut_for_the_screen_is_counted_whole(boats: Database) -> None:
    cut = boats.execute(NAMES, max_rows=2)
    assert AssertionVerifier(row_count=4).judge(asks(None), boats, NAMES, cut).outcome == "CORRECT"
