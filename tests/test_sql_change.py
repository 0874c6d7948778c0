"""Pairs of SQL in, words out; add a pair for every change that reads badly."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit.sql_change import ONLY_WRITING, difference, parse, text_difference

LOAN = "SELECT name FROM loan"

PAIRS = [
    (LOAN, "SELECT member.name FROM loan JOIN member ON member.id = loan.member_id",
     ("join added: member", "column changed: loan.name → member.name")),
    ("SELECT DISTINCT name FROM t", LOAN.replace("loan", "t"), ("DISTINCT dropped",)),
    ("SELECT name FROM t", "SELECT DISTINCT name FROM t", ("DISTINCT added",)),
    ("SELECT n, count(*) FROM t GROUP BY n HAVING y > 3", "SELECT n, count(*) FROM t WHERE y > 3 GROUP BY n",
     ("filter moved: y > 3 from HAVING to WHERE",)),
    ("SELECT a FROM t WHERE d = 'x'", "SELECT a FROM t WHERE d = 'y' ORDER BY a DESC LIMIT 3",
     ("filter changed: d = 'x' → d = 'y'", "order added: a descending", "limit added: 3")),
    ("SELECT a FROM t WHERE x > 1 AND y = 2", "SELECT a FROM t WHERE y = 2", ("filter dropped: x > 1",)),
    ("SELECT a FROM t", "SELECT a FROM t WHERE x IS NULL", ("filter added: x IS NULL",)),
    ("SELECT a FROM t WHERE id IN (SELECT id FROM s)", "SELECT a FROM t WHERE id IN (SELECT id FROM s WHERE z = 1)",
     ("in the subquery: filter added: z = 1",)),
    ("SELECT a FROM t", "SELECT a FROM t UNION SELECT b FROM u", ("UNION with a second query added",)),
    ("SELECT a FROM t UNION SELECT b FROM u", "SELECT a FROM t UNION ALL SELECT b FROM u",
     ("UNION became UNION ALL",)),
    ("WITH x AS (SELECT 1) SELECT * FROM x", "WITH x AS (SELECT 2) SELECT * FROM x",
     ("in x: column changed: 1 → 2",)),
    ("SELECT count(a) FROM t", "SELECT sum(a) FROM t", ("aggregate changed: COUNT(a) → SUM(a)",)),
    ("SELECT a FROM t", "SELECT count(a) FROM t", ("aggregate added: a → COUNT(a)",)),
    ("SELECT a FROM t", "SELECT a, b FROM t", ("column added: b",)),
    ("SELECT a, b FROM t", "SELECT b, a FROM t", ("columns reordered",)),
    ("SELECT a FROM t", "SELECT a FROM u", ("table changed: t → u", "column changed: t.a → u.a")),
    ("SELECT t.a FROM t JOIN u ON t.id = u.id", "SELECT t.a FROM t LEFT JOIN u ON u.id = t.id",
     ("join of u: INNER → LEFT",)),
    ("SELECT id FROM t JOIN u ON u.id = t.id", "SELECT u.id FROM t JOIN u ON u.id = t.uid",
     ("join condition changed: t.id = u.id → t.uid = u.id", "table named: id → u.id")),
    ("SELECT a FROM t GROUP BY a", "SELECT a FROM t GROUP BY a, b", ("grouping changed: a → a, b",)),
    ("SELECT a FROM t LIMIT 3", "SELECT a FROM t LIMIT 5", ("limit changed: 3 → 5",)),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "words"), PAIRS)
def test_change_in_words(before: str, after: str, words: tuple[str, ...]) -> None:
    assert difference(before, after).words == words


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT a FROM t", "select T1.a\nfrom t as T1"),
        ("SELECT a FROM t, u WHERE t.id = u.id", "SELECT a FROM t JOIN u ON u.id = t.id"),
        ("SELECT a FROM t WHERE x = 1 AND y = 2", 'SELECT "a" FROM t WHERE y = 2 AND 1 = x;'),
    ],
)
def test_another_spelling_is_no_change(before: str, after: str) -> None:
    change = difference(before, after)
    assert change.words == ()
    assert change.note == ONLY_WRITING


def test_what_the_parser_refuses_is_compared_as_text_with_a_note() -> None:
    """A broken attempt is the very input of a repair; it must show, parser or not (pitfalls: sqlglot is not SQLite)."""
    change = difference("SELEC name", "SELECT name FROM t")
    assert change.words == ()
    assert "cannot read the earlier query" in change.note
    assert [(line.sign, line.text) for line in change.lines] == [
        ("-", "SELEC name"),
        ("+", "SELECT name"),
        ("+", "FROM t"),
    ]


def test_two_statements_and_no_statement_have_no_tree() -> None:
    assert parse("SELECT 1; SELECT 2") is None
    assert parse("   ") is None
    assert parse("DELETE FROM t") is None


def test_the_same_query_again_is_said() -> None:
    assert difference("SELECT 1", " SELECT 1\n").note == "The same query again."


def test_text_difference_keeps_literals_in_one_piece() -> None:
    lines = text_difference("SELECT 'a FROM b'", "SELECT 'a FROM c'")
    assert [line.text for line in lines] == ["SELECT 'a FROM b'", "SELECT 'a FROM c'"]


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet="SELECT FROMabt,()'\"*=1;\n`[", max_size=60), st.text(alphabet="SELECT FROMabt1()", max_size=40)
)
def test_any_text_can_be_compared(before: str, after: str) -> None:
    change = difference(before, after)
    kept = "".join(line.text for line in change.lines if line.sign != "+")
    assert "".join(kept.split()) == "".join(before.split())


def test_a_deeply_nested_query_costs_a_note_and_no_error() -> None:
    nested = "SELECT " + "(" * 3_000 + "1" + ")" * 3_000
    assert difference("SELECT 1", nested).note
