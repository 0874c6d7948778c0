"""The statistics against values worked by hand and against scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.weightstats import ttost_paired

from merit.errors import BadInput
from merit.statistics import cluster_bootstrap, mcnemar_exact, mean_and_sd, tost, two_stage_bootstrap

B = 10_000


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [(123, 61, 5.685e-06), (127, 67, 1.974e-05), (0, 0, 1.0), (5, 5, 1.0), (0, 1, 1.0), (0, 5, 0.0625), (1, 4, 0.375)],
)
def test_mcnemar_of_the_paper_and_by_hand(b: int, c: int, p: float) -> None:
    """(0, 5): 2·(1/2)^5; (1, 4): 2·(1 + 5)/32; the two of the paper to its four digits."""
    assert mcnemar_exact(b, c) == pytest.approx(p, rel=1e-3)
    assert mcnemar_exact(b, c) == mcnemar_exact(c, b)


@given(st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_mcnemar_is_that_of_the_libraries(b: int, c: int) -> None:
    if b + c:
        assert mcnemar_exact(b, c) == pytest.approx(stats.binomtest(b, b + c).pvalue, rel=1e-9)
        assert mcnemar_exact(b, c) == pytest.approx(float(mcnemar([[0, b], [c, 0]], exact=True).pvalue), rel=1e-9)


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(BadInput):
        mcnemar_exact(-1, 3)


def test_mean_and_sample_standard_deviation() -> None:
    """The sample's (n − 1), not the population's: of 1, 2, 4 it is sqrt(7/3)."""
    assert mean_and_sd([]) is None
    assert mean_and_sd([0.3]) == (0.3, None)
    spread = mean_and_sd([1, 2, 4])
    assert spread is not None
    assert spread.mean == pytest.approx(7 / 3)
    assert spread.sd == pytest.approx((7 / 3) ** 0.5)
    assert mean_and_sd([0.1, 0.1, 0.1]) == (0.1, 0.0)


def test_cluster_bootstrap_by_hand() -> None:
    """Two questions, +1 and 0: a resample is 0, ½ or 1 with ¼, ½, ¼; so the interval is [0, 1] and p = 2·¼."""
    found = cluster_bootstrap(["a", "b"], [1, 0], [0, 0], B)
    assert found is not None
    assert (found.mean, found.low, found.high) == (0.5, 0.0, 1.0)
    assert found.p == pytest.approx(0.5, abs=0.03)


def test_rows_of_a_question_stay_together() -> None:
    """Three orders of two questions: were rows drawn one by one, 1/3 would be among the resamples and the share of
    all-zero resamples would be 1/64 instead of ¼."""
    found = cluster_bootstrap(["a", "b"] * 3, [1, 0] * 3, [0, 0] * 3, B)
    assert found is not None
    assert (found.mean, found.low, found.high) == (0.5, 0.0, 1.0)
    assert found.p == pytest.approx(0.5, abs=0.03)


def test_cluster_bootstrap_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    differences = rng.choice([-1.0, 0.0, 1.0], 200, p=[0.1, 0.6, 0.3])
    ours = cluster_bootstrap(range(200), differences.tolist(), [0.0] * 200, B)
    theirs = stats.bootstrap((differences,), np.mean, n_resamples=B, method="percentile", rng=5)
    assert ours is not None
    assert ours.mean == pytest.approx(differences.mean())
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.006)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.006)


def test_two_stages_by_hand() -> None:
    """Database a: one question, +1. Database b: three questions, 0. Resamples: aa 1 (¼), ab ¼ (½), bb 0 (¼); with
    databases weighing the same ab is ½ and the mean ½."""
    rows = (["a", "b", "b", "b"], [1, 1, 2, 3], [1, 0, 0, 0], [0, 0, 0, 0])
    found = two_stage_bootstrap(*rows, B)
    assert found is not None
    assert (found.mean, found.low, found.high) == (0.25, 0.0, 1.0)
    assert found.p == pytest.approx(0.5, abs=0.03)
    equal = two_stage_bootstrap(*rows, B, weights="databases")
    assert equal is not None
    assert (equal.mean, equal.low, equal.high) == (0.5, 0.0, 1.0)


def test_the_same_question_id_in_two_databases_is_two_questions() -> None:
    """Ids are often places in a file per database; merged by id alone, this would be one question and no spread."""
    found = two_stage_bootstrap(["a", "a", "b", "b"], [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 0], 500)
    assert found is not None
    assert found.low < found.high


def test_both_stages_vary() -> None:
    """With one database only questions vary, and the interval is that of the cluster bootstrap; many questions of two
    databases that differ vary by database above all."""
    rng = np.random.default_rng(1)
    outcome = rng.integers(0, 2, 300).tolist()
    one = two_stage_bootstrap(["a"] * 300, range(300), outcome, [0] * 300, B)
    flat = cluster_bootstrap(range(300), outcome, [0] * 300, B)
    assert one is not None
    assert flat is not None
    assert one[:3] == pytest.approx(flat[:3], abs=0.005)
    two = two_stage_bootstrap(["a"] * 150 + ["b"] * 150, range(300), [1] * 150 + [0] * 150, [0] * 300, B)
    assert two is not None
    assert (two.mean, two.low, two.high) == (0.5, 0.0, 1.0)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0])
def test_no_spread(value: float) -> None:
    rows = ([1, 2, 3], [value] * 3, [0.0] * 3)
    for found in (cluster_bootstrap(*rows, 200), two_stage_bootstrap(["a"] * 3, *rows, 200)):
        assert found is not None
        assert found[:3] == (value, value, value)
        assert found.p == (1.0 if value == 0 else 0.0)


def test_nothing_to_resample() -> None:
    assert cluster_bootstrap([], [], []) is None
    assert two_stage_bootstrap([], [], [], []) is None
    assert tost([], [], [], [], 0.02) is None


def test_equivalence_by_hand() -> None:
    """All pairs equal: no resample reaches the margin, p = 0. +1 on every question: all of them do, p = 1. Two
    questions, +1 and 0, against ¾: a quarter of the resamples is 1, p = ¼."""
    same = tost(["a"] * 4, range(4), [1, 0, 1, 0], [1, 0, 1, 0], 0.01, 500)
    assert same == (0.0, True)
    assert tost(["a"] * 4, range(4), [1] * 4, [0] * 4, 0.5, 500) == (1.0, False)
    found = tost(["a"] * 2, range(2), [1, 0], [0, 0], 0.75, B)
    assert found is not None
    assert found.p == pytest.approx(0.25, abs=0.02)
    assert not found.equivalent


def test_equivalence_is_near_that_of_statsmodels() -> None:
    """Many questions of one database: the bootstrap and the t test agree."""
    rng = np.random.default_rng(7)
    treatment, control = rng.normal(0.02, 0.5, 800), rng.normal(0.0, 0.5, 800)
    ours = tost(["a"] * 800, range(800), treatment.tolist(), control.tolist(), 0.07, B)
    assert ours is not None
    assert ours.p == pytest.approx(ttost_paired(treatment, control, -0.07, 0.07)[0], abs=0.02)


def test_margin_and_shapes_are_checked() -> None:
    for margin in (0.0, -0.1, float("nan")):
        with pytest.raises(BadInput, match="margin"):
            tost(["a"], [1], [1], [0], margin)
    with pytest.raises(BadInput, match="as many"):
        cluster_bootstrap([1, 2], [1], [1])
    with pytest.raises(BadInput, match="not a number"):
        cluster_bootstrap([1], [float("nan")], [0])
    with pytest.raises(BadInput, match="at least one"):
        cluster_bootstrap([1], [1], [0], 0)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=30
    ),
    st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_properties(rows: list[tuple[str, int, bool, bool]], seed: int) -> None:
    """The mean is the plain difference of means, and swapping the arms mirrors
    everything; the same seed gives the same numbers."""
    databases, questions, treatment, control = zip(*rows, strict=True)
    found = two_stage_bootstrap(databases, questions, treatment, control, 300, seed)
    mirrored = two_stage_bootstrap(databases, questions, control, treatment, 300, seed)
    assert found is not None
    assert mirrored is not None
    assert found.mean == pytest.approx((sum(treatment) - sum(control)) / len(rows))
    assert -1 <= found.low <= found.high <= 1
    assert 0 <= found.p <= 1
    assert (-mirrored.mean, -mirrored.high, -mirrored.low, mirrored.p) == pytest.approx(found)
    assert two_stage_bootstrap(databases, questions, treatment, control, 300, seed) == found
