"""The figures of a classifier, worked out by hand and against scikit-learn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit.episode import FailureType as K
from merit.routing import measures

RM, SL, AG = K.RESULT_MISMATCH, K.SCHEMA_LINKING, K.AGGREGATION
# Ten failures: six named RM of which three are, three named SL of which two are, one named AG which is RM.
PAIRS = [(RM, RM)] * 3 + [(AG, RM)] * 3 + [(SL, SL)] * 2 + [(RM, SL)] + [(RM, AG)]


def test_plain_accuracy() -> None:
    assert measures.accuracy(PAIRS) == pytest.approx(0.5)
    assert measures.accuracy([]) is None


def test_accuracy_weighted_by_a_population() -> None:
    """80 % of the population are named RM (right in 1/2), 20 % SL (right in 2/3): 0.8/2 + 0.2·2/3 = 8/15."""
    assert measures.weighted_accuracy(PAIRS, {RM: 80, SL: 20}) == pytest.approx(8 / 15)
    assert measures.weighted_accuracy(PAIRS, {RM: 6, SL: 3, AG: 1}) == measures.accuracy(PAIRS)


def test_a_type_of_the_population_without_a_sample_says_nothing() -> None:
    assert measures.weighted_accuracy(PAIRS, {RM: 80, K.SYNTAX: 20}) == pytest.approx(0.5)
    assert measures.weighted_accuracy(PAIRS, {K.SYNTAX: 20}) is None
    assert measures.weighted_accuracy([], {RM: 1}) is None


def test_macro_f1_runs_over_the_labels_that_occur() -> None:
    """F1: RM 2·3/(5+6) = 6/11, SL 2·2/(2+3) = 4/5, AG 0: their mean."""
    assert measures.macro_f1(PAIRS) == pytest.approx((6 / 11 + 4 / 5 + 0) / 3)
    assert [score.failure_type for score in measures.scores(PAIRS)] == [RM, SL, AG]
    assert measures.macro_f1([]) is None


def test_kappa_by_hand() -> None:
    """Observed 1/2; chance (5·6 + 2·3 + 3·1)/100 = 0.39: 0.11/0.61."""
    assert measures.kappa(PAIRS) == pytest.approx(0.11 / 0.61)
    assert measures.kappa([(RM, RM)] * 4) is None, "where all is one label, chance alone agrees"
    assert measures.kappa([]) is None


def test_the_interval_of_a_share() -> None:
    """Wilson for 5 of 10: [0.2366, 0.7634] (Brown, Cai and DasGupta 2001)."""
    low, high = measures.interval(5, 10) or (0, 0)
    assert (round(low, 4), round(high, 4)) == (0.2366, 0.7634)
    assert measures.interval(0, 0) is None


label = st.sampled_from(list(K))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(label, label), min_size=1, max_size=60))
def test_scikit_learn_says_the_same(pairs: list[measures.Pair]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    right, given_ = [str(one) for one, _ in pairs], [str(two) for _, two in pairs]
    assert measures.accuracy(pairs) == pytest.approx(metrics.accuracy_score(right, given_))
    assert measures.macro_f1(pairs) == pytest.approx(metrics.f1_score(right, given_, average="macro", zero_division=0))
    if len({*right, *given_}) > 1:
        assert measures.kappa(pairs) == pytest.approx(metrics.cohen_kappa_score(right, given_))
    assert sum(measures.confusion(pairs).values()) == len(pairs)
