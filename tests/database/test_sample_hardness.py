"""The hardness rules against values worked out by hand from Spider's evaluation script."""

from __future__ import annotations

import pytest
from sqlglot.errors import ParseError

from merit.database.sample_source.hardness import Components, components, hardness

BY_HAND = [
    # sql, (component 1, component 2, others), level
    ("SELECT a FROM t", (0, 0, 0), "easy"),
    ("SELECT count(*) FROM t WHERE a = 1", (1, 0, 0), "easy"),
    ("SELECT a FROM t JOIN u ON t.x = u.x", (1, 0, 0), "easy"),
    ("SELECT a, b FROM t WHERE c = 1", (1, 0, 1), "medium"),
    ("SELECT a, b FROM t WHERE c = 1 AND d = 2", (1, 0, 2), "medium"),
    ("SELECT a FROM t JOIN u ON t.x = u.x WHERE b = 1", (2, 0, 0), "medium"),
    ("SELECT a, count(*) FROM t JOIN u ON t.x = u.x GROUP BY a", (2, 0, 1), "medium"),
    # two columns and two aggregates on two parts of component 1: neither medium nor hard by the script's gaps
    ("SELECT a, count(*) FROM t GROUP BY a ORDER BY count(*)", (2, 0, 2), "extra"),
    ("SELECT a FROM t GROUP BY a ORDER BY count(*) DESC LIMIT 1", (3, 0, 0), "hard"),
    ("SELECT a FROM t, u, v WHERE b = 1", (3, 0, 0), "hard"),
    ("SELECT count(*), max(a) FROM t WHERE b = 1 AND c = 2 GROUP BY d", (2, 0, 3), "hard"),
    ("SELECT a FROM t JOIN u ON t.x = u.x GROUP BY a ORDER BY count(*) LIMIT 1", (4, 0, 0), "extra"),
    # OR and LIKE count one each besides WHERE itself
    ("SELECT a FROM t WHERE b LIKE 'x%' OR c = 1", (3, 0, 1), "hard"),
    ("SELECT a FROM t WHERE (b = 1 OR c = 2) AND d = 3", (2, 0, 1), "medium"),
    ("SELECT a FROM t WHERE b BETWEEN 1 AND 2", (1, 0, 0), "easy"),
    # a sub-query in a condition is component 2, one in FROM is a table like any other
    ("SELECT a FROM t WHERE b > (SELECT avg(b) FROM t)", (1, 1, 0), "hard"),
    ("SELECT a FROM t WHERE b NOT IN (SELECT b FROM u WHERE c = 1 OR d LIKE 'x')", (1, 1, 0), "hard"),
    ("SELECT a FROM t WHERE b IN (SELECT b FROM u UNION SELECT b FROM v)", (1, 1, 0), "hard"),
    ("SELECT a FROM t WHERE b IN (SELECT b FROM u) AND c = 1", (1, 1, 1), "extra"),
    ("SELECT avg(n) FROM (SELECT count(*) FROM t GROUP BY a)", (0, 0, 0), "easy"),
    # a set operation: the first SELECT counts, and one for the rest, however long
    ("SELECT a FROM t INTERSECT SELECT a FROM u", (0, 1, 0), "hard"),
    ("SELECT a FROM t UNION SELECT a FROM u UNION SELECT a FROM v ORDER BY a", (0, 1, 0), "hard"),
    ("SELECT a FROM t JOIN u ON t.x = u.x WHERE b = 1 EXCEPT SELECT a FROM u", (2, 1, 0), "extra"),
    # the script counts a negation as an aggregate, and none of HAVING's own aggregates
    ("SELECT count(*) FROM t WHERE b NOT IN (1, 2)", (1, 0, 1), "medium"),
    ("SELECT count(*) FROM t WHERE b NOT LIKE 'x'", (2, 0, 1), "medium"),
    ("SELECT count(*) FROM t WHERE b IS NOT NULL", (1, 0, 0), "easy"),
    ("SELECT count(*) FROM t GROUP BY a HAVING count(*) > 2", (1, 0, 0), "easy"),
    ("SELECT a FROM t GROUP BY a, b", (1, 0, 1), "medium"),
    # beyond Spider's grammar
    ("WITH w AS (SELECT a FROM t) SELECT a FROM w", (0, 1, 0), "hard"),
    ("SELECT (SELECT max(a) FROM t)", (0, 1, 0), "hard"),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u)", (1, 1, 0), "hard"),
    ("SELECT 100.0 * sum(a = 1) / count(*) FROM t", (0, 0, 0), "easy"),
]


@pytest.mark.parametrize(("sql", "counts", "level"), BY_HAND, ids=[line[0] for line in BY_HAND])
def test_counts_and_level_are_those_worked_out_by_hand(sql: str, counts: tuple[int, int, int], level: str) -> None:
    assert components(sql) == Components(*counts)
    assert hardness(sql) == level


@pytest.mark.parametrize("sql", ["DELETE FROM t", "SELECT FROM WHERE", ""])
def test_what_is_no_query_has_no_hardness(sql: str) -> None:
    with pytest.raises(ParseError):
        hardness(sql)
