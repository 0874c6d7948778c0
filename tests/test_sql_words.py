"""A query read out: nothing left out, nothing guessed."""

from __future__ import annotations

import pytest

from merit.sql_words import CANNOT, QUOTED, describe

READ = [
    ("SELECT * FROM t", ("Show every column.", "Taken from t.")),
    (
        "SELECT DISTINCT m.name, count(*) FROM loan l JOIN member m ON m.id = l.member_id WHERE l.days >= 3 "
        "AND (kind = 'a' OR back IS NOT NULL) GROUP BY m.name HAVING count(*) > 2 ORDER BY count(*) DESC LIMIT 5",
        (
            "Show each different name of m and the number of rows.",
            "Taken from loan (called l), matched with member (called m) where id of m is member_id of l.",
            "Only rows where days of l is at least 3 and (kind is “a” or back is present).",
            "Put together by name of m.",
            "Only groups where the number of rows is more than 2.",
            "Sorted by the number of rows, largest first.",
            "At most 5 of them.",
        ),
    ),
    (
        "SELECT a FROM t WHERE a NOT LIKE '%x%' AND b NOT BETWEEN 1 AND 2 AND c NOT IN (SELECT c FROM u)",
        (
            "Show a.",
            "Taken from t.",
            "Only rows where a does not look like “%x%” and b is not between 1 and 2 and "
            "c is not among (show c; Taken from u).",
        ),
    ),
    (
        "SELECT avg(price) FROM t, u",
        ("Show the average of price.", "Taken from t, every row combined with every row of u."),
    ),
    ("SELECT 1 UNION SELECT 2", ("Show 1.", "Together with the following.", "Show 2.")),
    (
        "SELECT a FROM t LEFT JOIN u ON t.id = u.id WHERE NOT EXISTS (SELECT 1 FROM v)",
        (
            "Show a.",
            "Taken from t, with u where there is one: id of t is id of u.",
            "Only rows where there is no row in (show 1; Taken from v).",
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "sentences"), READ)
def test_reading(sql: str, sentences: tuple[str, ...]) -> None:
    reading = describe(sql)
    assert reading.sentences == sentences
    assert reading.complete


def test_words_inside_a_literal_are_left_alone() -> None:
    """A negation once was put into words by replacing the first “is” it found, which stood in the value."""
    assert describe("SELECT a FROM t WHERE NOT a = 'it is missing'").sentences[-1] == (
        "Only rows where a is not “it is missing”."
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT strftime('%Y', d) FROM t",
        "SELECT row_number() OVER (ORDER BY a) FROM t",
        "SELECT a FROM t WHERE a LIKE 'x!%' ESCAPE '!'",
        "SELECT sum(a) FILTER (WHERE b = 1) FROM t",
    ],
)
def test_what_has_no_words_is_quoted_and_said_to_be(sql: str) -> None:
    reading = describe(sql)
    assert not reading.complete
    assert reading.note == QUOTED
    assert any("‹" in sentence for sentence in reading.sentences)


@pytest.mark.parametrize("sql", ["", "SELECT", "SELEC 1", "SELECT 1; SELECT 2", "DROP TABLE t"])
def test_what_cannot_be_read_is_said_to_be_unreadable(sql: str) -> None:
    reading = describe(sql)
    assert (reading.sentences, reading.complete, reading.note) == ((), False, CANNOT)
