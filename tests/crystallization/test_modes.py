"""The fourteen failure modes: each fires on its own change, and on nothing that is only written differently."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit.crystallization.difference import TOO_LARGE, difference
from merit.crystallization.modes import MODES, Mode

CASES = [
    ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE b = 'X'", ["value-literal"]),
    ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE c = 1", ["column-ref"]),
    ("SELECT a FROM t", "SELECT b FROM t", ["column-ref"]),
    ("SELECT a FROM t", "SELECT a FROM u", ["table-ref"]),
    ("SELECT a FROM t", "SELECT t.a FROM t JOIN u ON t.id = u.id", ["join-path"]),
    ("SELECT t.a FROM t JOIN u ON t.i = u.i", "SELECT t.a FROM t LEFT JOIN u ON t.i = u.i", ["join-path"]),
    ("SELECT t.a FROM t JOIN u ON t.i = u.i", "SELECT t.a FROM t JOIN u ON t.i = u.j", ["join-condition"]),
    ("SELECT a FROM t WHERE b > 1", "SELECT a FROM t WHERE b >= 1", ["predicate-operator"]),
    ("SELECT a FROM t WHERE b > 1 AND c > 1", "SELECT a FROM t WHERE b > 1 OR c > 1", ["predicate-operator"]),
    ("SELECT COUNT(a) FROM t", "SELECT COUNT(DISTINCT a) FROM t", ["aggregate-function"]),
    ("SELECT MAX(a) FROM t", "SELECT MIN(a) FROM t", ["aggregate-function"]),
    ("SELECT a, COUNT(*) FROM t", "SELECT a, COUNT(*) FROM t GROUP BY a", ["group-by"]),
    ("SELECT a FROM t GROUP BY a", "SELECT a FROM t GROUP BY a HAVING COUNT(*) > 2", ["having"]),
    ("SELECT a FROM t ORDER BY b", "SELECT a FROM t ORDER BY b DESC", ["order-by"]),
    ("SELECT a FROM t LIMIT 1", "SELECT a FROM t LIMIT 3", ["limit"]),
    ("SELECT a FROM t", "SELECT DISTINCT a FROM t", ["distinct"]),
    ("SELECT a FROM t", "SELECT a, b FROM t", ["projection"]),
    ("SELECT a, b FROM t", "SELECT b, a FROM t", ["projection"]),
    ("SELECT SUM(a) / SUM(b) FROM t", "SELECT SUM(a) * 100.0 / SUM(b) FROM t", ["projection"]),
    ("SELECT a FROM t UNION SELECT b FROM u", "SELECT a FROM t EXCEPT SELECT b FROM u", ["set-or-subquery"]),
]


@pytest.mark.parametrize(("wrong", "fixed", "modes"), CASES)
def test_each_mode_fires_on_its_own_change_in_both_directions(wrong: str, fixed: str, modes: list[str]) -> None:
    assert list(difference(wrong, fixed).modes) == modes
    assert list(difference(fixed, wrong).modes) == modes


def test_every_mode_has_a_case() -> None:
    assert {mode for _, _, modes in CASES for mode in modes} == set(Mode)


def test_the_table_has_fourteen_rows_in_order_and_names_what_is_the_papers() -> None:
    assert list(MODES) == list(Mode)
    assert len(MODES) == 14
    assert [info.mode for info in MODES.values() if info.named_by == "paper"] == [
        "value-literal", "column-ref", "group-by",
    ]  # fmt: skip
    assert [info.mode for info in MODES.values() if info.guard_by == "paper"] == ["value-literal", "group-by"]
    assert len({info.guard for info in MODES.values()}) == 14


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t", "select A\n from T"),
        ("SELECT x.a FROM t AS x", "SELECT a FROM t"),
        ("SELECT a FROM t WHERE b = 1 AND c = 2", "SELECT a FROM t WHERE c = 2 AND b = 1"),
        ("SELECT a AS n FROM t", "SELECT a AS m FROM t"),
    ],
)
def test_the_same_query_written_differently_has_no_mode(one: str, other: str) -> None:
    assert difference(one, other).modes == ()


def test_several_clauses_are_named_one_by_one() -> None:
    found = difference("SELECT a FROM t ORDER BY b", "SELECT a FROM t JOIN u ON t.i = u.i ORDER BY b DESC LIMIT 1")
    assert found.clause == "JOIN, ORDER BY, LIMIT"
    assert found.wrong == "JOIN (nothing); ORDER BY b; LIMIT (nothing)"
    assert found.fixed == "JOIN u ON t.i = u.i; ORDER BY b DESC; LIMIT 1"


def test_a_statement_too_large_for_a_tree_diff_is_shown_as_text_at_once() -> None:
    many = ", ".join(f"c{n}" for n in range(3000))
    found = difference(f"SELECT {many} FROM t", "SELECT c0 FROM t")
    assert found.note == TOO_LARGE
    assert found.fixed == "SELECT c0 FROM t"


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_can_be_compared(one: str, other: str) -> None:
    found = difference(f"SELECT {one}", f"SELECT {other}")
    assert all(mode in MODES for mode in found.modes)
