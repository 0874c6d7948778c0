"""Spider: the comparison against a brute force, the official faults one by one, gold kept inside."""

from __future__ import annotations

import itertools
import random
import threading
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verification_support import ENDLESS, asks, make

from merit.database import Database
from merit.episode import Execution, Outcome, Status
from merit.errors import GoldUnavailable
from merit.verification import PUBLISHED, Fault, SpiderVerifier, spider_equal

Rows = list[tuple[Any, ...]]


def by_brute_force(gold: Rows, predicted: Rows, order_matters: bool) -> bool:
    """The definition of spec §6, every permutation tried."""
    if not gold and not predicted:
        return True
    if len(gold) != len(predicted) or len(gold[0]) != len(predicted[0]):
        return False
    for order in itertools.permutations(range(len(gold[0]))):
        turned = [tuple(row[i] for i in order) for row in predicted]
        if (gold == turned) if order_matters else (Counter(gold) == Counter(turned)):
            return True
    return False


CELL = st.sampled_from([0, 1, 1.0, "1", None, b"1", ""])


@st.composite
def two_results(draw: st.DrawFn) -> tuple[Rows, Rows]:
    """A result, and one of the same shape that is often a shuffle of it with at most one cell changed."""
    width, height = draw(st.integers(1, 4)), draw(st.integers(0, 5))
    gold = draw(st.lists(st.tuples(*[CELL] * width), min_size=height, max_size=height))
    order = draw(st.permutations(range(width)))
    predicted = [tuple(row[i] for i in order) for row in draw(st.permutations(gold))]
    if predicted and draw(st.booleans()):
        row, column = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
        predicted[row] = (*predicted[row][:column], draw(CELL), *predicted[row][column + 1 :])
    return gold, predicted


@given(two_results(), st.booleans())
@settings(max_examples=600, deadline=None)
def test_the_comparison_is_that_of_the_definition(results: tuple[Rows, Rows], order_matters: bool) -> None:
    gold, predicted = results
    assert spider_equal(gold, predicted, order_matters) == by_brute_force(gold, predicted, order_matters)


@pytest.mark.parametrize(
    ("gold", "predicted", "ordered", "bag"),
    [
        ([(1, "a")], [("a", 1)], True, True),
        ([(1,), (2,)], [(2,), (1,)], False, True),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False, False),
        ([(1, 2), (3, 4)], [(2, 1), (3, 4)], False, False),
        ([(1,)], [(1.0,)], True, True),
        ([(1,)], [("1",)], False, False),
        ([(0.1 + 0.2,)], [(0.3,)], False, False),
        ([(None,)], [(None,)], True, True),
        ([(None,)], [("",)], False, False),
        ([(b"x",)], [("x",)], False, False),
        ([], [], True, True),
        ([], [(1,)], False, False),
        ([(1,)], [(1, 1)], False, False),
        ([(2**53 + 1,)], [(2.0**53,)], False, False),
        ([["a", 1]], [[1, "a"]], True, True),
    ],
)
def test_what_is_equal(gold: Rows, predicted: Rows, ordered: bool, bag: bool) -> None:
    assert spider_equal(gold, predicted, True) is ordered
    assert spider_equal(gold, predicted, False) is bag


def test_wide_and_long_results_are_compared_fast() -> None:
    """The official script needs 9 s for 8 alike columns, because it tries the permutations blindly."""
    draw = random.Random(5)
    gold = [tuple(draw.randrange(3) for _ in range(12)) for _ in range(5_000)]
    order = list(range(12))
    draw.shuffle(order)
    turned = [tuple(row[i] for i in order) for row in draw.sample(gold, len(gold))]
    broken = [*turned[:-1], tuple(2 - value for value in turned[-1])]
    started = time.perf_counter()
    assert spider_equal(gold, turned, False)
    assert not spider_equal(gold, broken, False)
    assert time.perf_counter() - started < 5


def test_columns_that_hold_the_same_do_not_multiply_the_work() -> None:
    """All rows of even parity against all of odd parity: every eleven of twelve columns are equal as bags."""
    rows = list(itertools.product((0, 1), repeat=12))
    even, odd = ([row for row in rows if sum(row) % 2 == parity] for parity in (0, 1))
    cyclic = [tuple(int(i in (r, (r + 1) % 12)) for i in range(12)) for r in range(12)]
    halves = [tuple(int(i in (r, r // 6 * 6 + (r + 1) % 6)) for i in range(12)) for r in range(12)]
    started = time.perf_counter()
    assert not spider_equal(even, odd, False)
    assert spider_equal(even, even[::-1], False)
    assert not spider_equal(cyclic, halves, False), "one ring of twelve is not two rings of six"
    constant = (7,) * 9
    assert not spider_equal([(*r, *constant) for r in cyclic], [(*r, *constant) for r in halves], False)
    assert time.perf_counter() - started < 5


def verdict(database: Database, gold: str, sql: str, **options: Any) -> Outcome:
    return SpiderVerifier(**options).judge(asks(gold), database, sql).outcome


# gold, prediction, official, faults off: worked out by hand from spec §6
PAIRS = [
    ("SELECT name, length FROM boat", "SELECT length, name FROM boat", True, True),
    ("SELECT dock FROM boat", "SELECT DISTINCT dock FROM boat", False, False),
    ("SELECT name FROM boat ORDER BY no", "SELECT name FROM boat ORDER BY no DESC", False, False),
    ("SELECT no FROM boat WHERE name = 'order by'", "SELECT name FROM boat WHERE 0", True, True),
    ("SELECT length FROM boat WHERE no = 1", "SELECT draught FROM boat WHERE no = 1", True, True),
    ("SELECT length FROM boat WHERE no = 1", "SELECT code FROM boat WHERE no = 1", False, False),
    ("SELECT name FROM boat WHERE no > 9", "SELECT no, name FROM boat WHERE 0", True, True),
    ("SELECT dock, avg(value) FROM boat GROUP BY dock", "SELECT dock, avg(value) FROM boat GROUP BY dock", False, True),
    ("SELECT count(*) FROM boat WHERE value > 6", "SELECT count(*) FROM boat WHERE value > 6", False, True),
    ("SELECT 2020", "SELECT YEAR(CURDATE())", True, None),
    ("SELECT no FROM boat WHERE length > 9", "SELECT no FROM boat WHERE length > = 12", True, None),
    ("SELECT no FROM boat WHERE code = '> ='", "SELECT 4", False, True),
    ("SELECT 1, 10", "SELECT 1.0, 10", False, True),
]


@pytest.mark.parametrize(("gold", "sql", "official", "fixed"), PAIRS)
def test_the_official_faults_and_the_verdicts_without_them(
    boats: Database, gold: str, sql: str, official: bool, fixed: bool | None
) -> None:
    words = {True: "CORRECT", False: "DENOTATION_MISMATCH", None: "EXECUTION_ERROR"}
    assert verdict(boats, gold, sql) == words[official]
    assert verdict(boats, gold, sql, official=False) == words[fixed]


@pytest.mark.parametrize(
    ("fault", "gold", "sql"),
    [
        (Fault.VALUE_BECOMES_1, "SELECT sum(value) FROM boat", "SELECT sum(value) FROM boat"),
        (Fault.CURRENT_YEAR_2020, "SELECT 2020", "SELECT year ( curdate( ) )"),
        (Fault.JOINED_OPERATORS, "SELECT no FROM boat WHERE code = '> ='", "SELECT 4"),
        (Fault.QUICK_REJECT, "SELECT 1, 10", "SELECT 1.0, 10"),
        (Fault.EMPTY_RUNS, "SELECT 1 WHERE 0", "-- no idea"),
    ],
)
def test_each_fault_is_a_switch_of_its_own(boats: Database, fault: Fault, gold: str, sql: str) -> None:
    with_it = verdict(boats, gold, sql, faults=[fault])
    without_it = verdict(boats, gold, sql, faults=PUBLISHED - {fault})
    assert (with_it == "CORRECT") != (without_it == "CORRECT")


def test_distinct_is_deleted_only_when_asked_for(boats: Database) -> None:
    gold, sql = "SELECT DISTINCT dock FROM boat", "SELECT dock FROM boat"
    assert verdict(boats, gold, sql) == "DENOTATION_MISMATCH"
    assert verdict(boats, gold, sql, keep_distinct=False) == "CORRECT"
    kept = "SELECT dock FROM boat WHERE name <> 'distinct'"
    assert verdict(boats, kept, kept, keep_distinct=False, official=False) == "CORRECT"
    two = "SELECT dock FROM boat; SELECT 1"
    assert verdict(boats, sql, two, keep_distinct=False) == "CORRECT"
    assert verdict(boats, sql, two, keep_distinct=False, official=False) == "EXECUTION_ERROR"


@pytest.mark.parametrize("sql", ["", " \n", "-- I cannot tell", ";", "/* none */ ;; -- at all"])
@pytest.mark.parametrize("official", [True, False])
def test_an_empty_answer_is_never_correct_but_in_the_published_mode(boats: Database, sql: str, official: bool) -> None:
    """SQLite runs an empty text without error: a missing answer was scored as a hit where gold is empty."""
    gold = asks("SELECT name FROM boat WHERE no > 9")
    found = SpiderVerifier(official=official).judge(gold, boats, sql)
    assert (found.outcome, found.error) == ("EXECUTION_ERROR", "empty query")
    assert SpiderVerifier(faults=PUBLISHED).judge(gold, boats, sql).outcome == "CORRECT"
    assert SpiderVerifier(faults=PUBLISHED).judge(asks("SELECT 1"), boats, sql).outcome == "DENOTATION_MISMATCH"


def test_what_the_database_says_of_a_prediction_is_passed_on(boats: Database) -> None:
    found = SpiderVerifier(official=False).judge(asks("SELECT 1"), boats, "SELECT keel FROM boat")
    assert (found.outcome, found.error) == ("EXECUTION_ERROR", "no such column: keel")


def test_a_prediction_without_end_is_a_timeout_and_no_gold_is_blamed(boats: Database) -> None:
    found = SpiderVerifier(timeout_s=0.5).judge(asks("SELECT 1"), boats, ENDLESS)
    assert (found.outcome, found.error) == ("TIMEOUT", "TIMEOUT")


SECRET = "plover7734"


@pytest.mark.parametrize(
    ("gold", "options"),
    [
        (f"SELECT {SECRET} FROM boat", {}),
        (f"SELECT '{SECRET}' FROM", {}),
        (ENDLESS.replace("n(i)", f"n(i) /*{SECRET}*/"), {"timeout_s": 0.4}),
        (f"SELECT name, '{SECRET}' FROM boat", {"max_rows": 3}),
        (f"SELECT printf('%.*c', 9000, 'x'), '{SECRET}'", {"max_bytes": 1000}),
        (None, {}),
        ("  ", {}),
    ],
)
def test_gold_that_cannot_be_had_is_no_verdict_and_is_not_quoted(
    boats: Database, gold: str | None, options: dict[str, Any]
) -> None:
    with pytest.raises(GoldUnavailable) as caught:
        SpiderVerifier(**options).judge(asks(gold), boats, "SELECT 1")
    error: BaseException | None = caught.value
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    while error is not None:
        told += str(error) + repr(error.args)
        error = error.__context__
    assert SECRET not in told
    assert str(caught.value).endswith(".")


def test_a_database_that_fails_on_gold_is_not_quoted_either(boats: Database) -> None:
    class Breaks:
        path, id, files = boats.path, "boats", (boats.path,)

        def execute(self, sql: str, **_: Any) -> Execution:
            raise RuntimeError(sql)

    with pytest.raises(GoldUnavailable) as caught:
        SpiderVerifier().judge(asks(f"SELECT '{SECRET}'"), Breaks(), "SELECT 1")  # type: ignore[arg-type]
    assert caught.value.__context__ is None
    assert SECRET not in str(caught.value)


def test_a_verifier_that_has_judged_shows_no_gold(boats: Database) -> None:
    verifier = SpiderVerifier()
    found = verifier.judge(asks(f"SELECT '{SECRET}'"), boats, "SELECT 1")
    assert SECRET not in repr(found) + repr(verifier) + repr(verifier._gold)


def test_a_prediction_over_the_cap_is_wrong(boats: Database) -> None:
    sql = "SELECT a.no FROM boat AS a, boat AS b"
    assert verdict(boats, "SELECT 1", sql, max_rows=10) == "DENOTATION_MISMATCH"
    longer = "SELECT no FROM boat UNION ALL SELECT 9"
    assert verdict(boats, "SELECT no FROM boat", longer, max_rows=4) == "DENOTATION_MISMATCH"
    assert verdict(boats, "SELECT no FROM boat", "SELECT no FROM boat", max_rows=4) == "CORRECT"


def test_equal_on_every_database_file_of_the_folder(tmp_path: Path) -> None:
    """In the test suite a prediction that is right by chance is found out on another file."""
    script = "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, {b});"
    database = make(tmp_path / "t" / "t.sqlite", script.format(b=1))
    assert verdict(database, "SELECT a FROM t", "SELECT b FROM t") == "CORRECT"
    make(tmp_path / "t" / "t_2.sqlite", script.format(b=2))
    assert verdict(Database.open(database.path), "SELECT a FROM t", "SELECT b FROM t") == "DENOTATION_MISMATCH"
    make(tmp_path / "t" / "t_3.sqlite", "CREATE TABLE other(a)")
    with pytest.raises(GoldUnavailable):
        verdict(Database.open(database.path), "SELECT a FROM t", "SELECT a FROM t")


def test_a_result_that_was_cut_for_the_screen_is_run_again(boats: Database) -> None:
    gold = asks("SELECT no FROM boat")
    cut = boats.execute("SELECT no FROM boat", max_rows=2)
    assert cut.truncated
    assert SpiderVerifier().judge(gold, boats, "SELECT no FROM boat", cut).outcome == "CORRECT"


def test_a_complete_result_is_not_run_again(boats: Database) -> None:
    known = Execution(Status.EXECUTED, ("no",), ((7,),))
    assert SpiderVerifier().judge(asks("SELECT 7"), boats, "SELECT something", known).outcome == "CORRECT"
    substituted = SpiderVerifier().judge(asks("SELECT 7"), boats, "SELECT value", known)
    assert substituted.outcome == "DENOTATION_MISMATCH", "the official script runs SELECT 1"


def test_bytes_that_are_no_text_are_equal_to_themselves(tmp_path: Path) -> None:
    """A Latin-1 cell made the fetch fail, and gold was judged wrong against itself."""
    database = make(
        tmp_path / "x.sqlite", "CREATE TABLE t(a TEXT, b); INSERT INTO t VALUES (CAST(x'4d616ceed3' AS TEXT), x'ff00');"
    )
    assert verdict(database, "SELECT a, b FROM t", "SELECT b, a FROM t") == "CORRECT"


def test_one_verifier_serves_many_threads(boats: Database) -> None:
    verifier = SpiderVerifier()
    found: list[tuple[int, Outcome]] = []

    def work(i: int) -> None:
        for _ in range(5):
            found.append((i, verifier.judge(asks(f"SELECT {i}"), boats, f"SELECT {i % 4}").outcome))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    assert all((outcome == "CORRECT") == (i < 4) for i, outcome in found)
