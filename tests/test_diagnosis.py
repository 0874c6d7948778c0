"""The fourteen rules, each by hand, and the messages of a real SQLite."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit.diagnosis import RULES, diagnose, explain
from merit.episode import FailureType, Outcome, Status

TABLE = [
    ("TIMEOUT", None, "Execution", "Timeout", 1),
    ("TIMEOUT", "no such table: x", "Execution", "Timeout", 1),
    ("EXECUTION_ERROR", "TIMEOUT", "Execution", "Timeout", 1),
    ("EXECUTION_ERROR", " timeout\n", "Execution", "Timeout", 1),
    ("EXECUTION_ERROR", "the statement Timed Out after 3 s", "Execution", "Timeout", 1),
    ("EXECUTION_ERROR", "no such table: main.x", "Schema Linking", "Missing Table", 2),
    ("EXECUTION_ERROR", "NO SUCH COLUMN: x", "Schema Linking", "Missing Column", 3),
    ("EXECUTION_ERROR", "no such view: v", "Schema Linking", "Missing View", 4),
    ("EXECUTION_ERROR", "ambiguous column name: id", "Schema Linking", "Ambiguous Column", 5),
    ("EXECUTION_ERROR", "no such function: NOW", "Syntax", "Unknown Function", 6),
    ("EXECUTION_ERROR", 'near "x": syntax error', "Syntax", "Parse Failure", 7),
    ("EXECUTION_ERROR", "incomplete input", "Syntax", "Parse Failure", 7),
    ("EXECUTION_ERROR", 'unrecognized token: "#"', "Syntax", "Parse Failure", 7),
    ("EXECUTION_ERROR", "misuse of aggregate: SUM()", "Aggregation", "Aggregate Misuse", 8),
    ("EXECUTION_ERROR", "aggregate functions are not allowed here", "Aggregation", "Aggregate Misuse", 8),
    ("EXECUTION_ERROR", "datatype mismatch", "Filter/Value", "Type Mismatch", 9),
    ("EXECUTION_ERROR", "type mismatch", "Filter/Value", "Type Mismatch", 9),
    ("EXECUTION_ERROR", "attempt to write a readonly database", "Execution", "Read-only Violation", 10),
    ("EXECUTION_ERROR", "only SELECT or WITH queries are allowed", "Execution", "Read-only Violation", 10),
    ("EXECUTION_ERROR", "database not found", "Execution", "Database Not Found", 11),
    ("EXECUTION_ERROR", "empty query", "Unknown", "", 12),
    ("EXECUTION_ERROR", "not authorized", "Unknown", "", 12),
    ("EXECUTION_ERROR", "interrupted", "Unknown", "", 12),
    ("DENOTATION_MISMATCH", None, "Result Mismatch", "", 13),
    ("DENOTATION_MISMATCH", " \n", "Result Mismatch", "", 13),
    ("DENOTATION_MISMATCH", "no such column: x", "Schema Linking", "Missing Column", 3),
    ("DENOTATION_MISMATCH", "something", "Unknown", "", 12),
    ("EXECUTION_ERROR", None, "Unknown", "", 14),
    ("EXECUTION_ERROR", "", "Unknown", "", 14),
]


@pytest.mark.parametrize(("status", "error", "kind", "subtype", "rule"), TABLE)
def test_every_rule_fires_where_the_table_says(
    status: str, error: str | None, kind: str, subtype: str, rule: int
) -> None:
    found = diagnose(status, error)
    assert (found.failure_type, found.subtype, found.rule) == (kind, subtype, rule)
    assert diagnose(Outcome(status), error) == found


# Names that hold the words of another rule: they must not decide (a column called timeout was typed Timeout).
NAMES = [
    ("SELECT t.timeout FROM ward AS t", 3),
    ("SELECT * FROM timeout", 2),
    ("SELECT [unrecognized token] FROM ward", 3),
    ("SELECT [type mismatch] FROM ward", 3),
    ('SELECT "ward"."incomplete input" FROM ward', 3),
    ("SELECT * FROM [misuse of aggregate]", 2),
    ("SELECT timed_out(id) FROM ward", 6),
    ("SELECT [attempt to write a readonly database](id) FROM ward", 6),
    ("SELECT id FROM ward JOIN bed ON 1", 5),
    ("SELECT name FROM ward WHERE SUM(id) > 2", 8),
    ("SELECT name FROM ward GROUP BY MAX(id)", 8),
    ("SELECT name FROM ward LIMIT 'many'", 9),
    ("SELECT STR_TO_DATE(name) FROM ward", 6),
    ("SELECT name FROM ward FETCH FIRST 3 ROWS ONLY", 7),
    ("SELECT name FROM ward WHERE name SIMILAR TO 'x'", 7),
    ("SELECT name!! FROM ward", 7),
    ("SELECT (id, name) FROM ward", 12),
    ("SELECT abs(1, 2)", 12),
    ("SELECT name FROM ward HAVING id > 1", 12),
    ("SELECT id FROM ward EXCEPT SELECT 1, 2", 12),
]


@pytest.mark.parametrize(("sql", "rule"), NAMES)
def test_messages_as_sqlite_raises_them(sql: str, rule: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE ward(id INTEGER, name TEXT); CREATE TABLE bed(id INTEGER);")
    with pytest.raises(sqlite3.Error) as caught:
        connection.execute(sql).fetchall()
    assert diagnose(Status.EXECUTION_ERROR, str(caught.value)).rule == rule, str(caught.value)


@pytest.mark.parametrize("status", ["CORRECT", "NOT_JUDGED", "EXECUTED", "CANCELLED", "", "wrong"])
@pytest.mark.parametrize("error", [None, "no such table: x"])
def test_what_is_no_failure_has_no_diagnosis(status: str, error: str | None) -> None:
    with pytest.raises(ValueError, match="no failure"):
        diagnose(status, error)


def test_the_rules_are_numbered_from_1_to_14() -> None:
    assert [rule.number for rule in RULES] == list(range(1, 15))


def test_explain_tells_every_rule_up_to_the_one_that_fired() -> None:
    steps = explain("EXECUTION_ERROR", "no such view: v")
    assert [step.rule.number for step in steps] == [1, 2, 3, 4]
    assert [step.fired for step in steps] == [False, False, False, True]
    assert steps[-1].why == "The message contains “no such view:”."
    assert explain("DENOTATION_MISMATCH", None)[0].why == "There is no message."
    assert explain("TIMEOUT", "x")[0].why == "The status is TIMEOUT."


@given(st.sampled_from(["DENOTATION_MISMATCH", "EXECUTION_ERROR", "TIMEOUT"]), st.none() | st.text())
def test_every_failure_has_exactly_one_label(status: str, error: str | None) -> None:
    found = diagnose(status, error)
    assert found.failure_type in FailureType
    fired = [step for step in explain(status, error) if step.fired]
    assert [step.rule.number for step in fired] == [found.rule]
