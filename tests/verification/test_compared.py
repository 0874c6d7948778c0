"""One answer under three rules."""

from __future__ import annotations

import pytest
from verification_support import asks

from merit.database import Database
from merit.errors import GoldUnavailable
from merit.verification import compare_verdicts


def test_where_the_rules_differ_it_shows(boats: Database) -> None:
    """A correct query over a column called value was judged wrong and nobody saw why."""
    sql = "SELECT dock, avg(value) FROM boat GROUP BY dock"
    found = compare_verdicts(asks(sql), boats, sql)
    assert (found.official, found.fixed, found.bird) == ("DENOTATION_MISMATCH", "CORRECT", "CORRECT")
    assert found.differ


def test_where_they_agree_it_shows(boats: Database) -> None:
    found = compare_verdicts(asks("SELECT name FROM boat"), boats, "SELECT name FROM boat")
    assert (found.official, found.fixed, found.bird, found.differ) == ("CORRECT", "CORRECT", "CORRECT", False)


def test_nothing_of_the_gold_is_in_it(boats: Database) -> None:
    assert "plover" not in repr(compare_verdicts(asks("SELECT 'plover'"), boats, "SELECT 1"))
    with pytest.raises(GoldUnavailable):
        compare_verdicts(asks("SELECT plover"), boats, "SELECT 1")
