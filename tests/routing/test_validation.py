"""The rules measured against labels: which column counts, who the population is, what agreement says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from merit.episode import FailureType as K
from merit.episode import Outcome
from merit.routing.labelled import Failure
from merit.routing.validation import PUBLISHED, Reference, agreement, references, validate

COLUMN = "no such column: x"


def made(id: str, message: str, label: K | None, second: K | None = None, source: str = "model") -> Failure:
    status = Outcome.EXECUTION_ERROR if message else Outcome.DENOTATION_MISMATCH
    return Failure(id, status, message, label, second, source=source)


# By the rules: SL, SL, RM, RM; the last is no failure of the model.
FAILURES = (
    made("a", COLUMN, K.SCHEMA_LINKING, K.SCHEMA_LINKING),
    made("b", COLUMN, K.FILTER_VALUE, K.SCHEMA_LINKING),
    made("c", "", K.RESULT_MISMATCH),
    made("d", "", K.AGGREGATION, K.AGGREGATION, "mutation"),
)


def test_the_figures_against_the_first_labels() -> None:
    """Two of four are right. The population names SL twice (right in 1/2) and RM once (right in 1/2)."""
    found = validate(FAILURES, Reference.FIRST)
    assert (found.failures, found.labelled) == (4, 4)
    assert found.accuracy == pytest.approx(0.5)
    assert found.weighted_accuracy == pytest.approx(0.5)
    assert found.result_mismatch == pytest.approx(1 / 3)
    assert found.confusion[(K.AGGREGATION, K.RESULT_MISMATCH)] == 1


def test_the_population_weighs_the_types() -> None:
    """Against the second labels SL is right in both, RM in none of one: (2·1 + 1·0)/3."""
    found = validate(FAILURES, Reference.SECOND)
    assert found.labelled == 3
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.weighted_accuracy == pytest.approx(2 / 3)
    longer = (*FAILURES, made("e", COLUMN, None), made("f", COLUMN, None))
    assert validate(longer, Reference.SECOND).weighted_accuracy == pytest.approx(4 / 5)


def test_where_both_agree() -> None:
    found = validate(FAILURES, Reference.AGREED)
    assert found.labelled == 2
    assert found.accuracy == pytest.approx(0.5)


def test_agreement_counts_what_has_both_labels() -> None:
    """Two of three agree; chance: (1/3)(2/3) + (1/3)(0) + (1/3)(1/3) = 1/3, so kappa (2/3 − 1/3)/(2/3) = 1/2."""
    found = agreement(FAILURES, Reference.FIRST, Reference.SECOND)
    assert found is not None
    assert (found.count, found.plain) == (3, pytest.approx(2 / 3))
    assert found.kappa == pytest.approx(0.5)
    assert agreement(FAILURES, Reference.FIRST, Reference.OWN) is None


def test_only_columns_with_labels_can_be_chosen() -> None:
    assert references(FAILURES) == [Reference.FIRST, Reference.SECOND, Reference.AGREED]
    assert references([replace(FAILURES[0], label=None, second_label=None)]) == []
    assert references([replace(FAILURES[2], own_label=K.SYNTAX)]) == [Reference.FIRST, Reference.OWN]


def test_nothing_labelled_gives_no_figure() -> None:
    found = validate([made("a", COLUMN, None)], Reference.FIRST)
    assert (found.accuracy, found.accuracy_interval, found.weighted_accuracy, found.macro_f1) == (None,) * 4


def test_the_published_figures() -> None:
    """Paper §5 and Table 5 as spec §2 quotes them; the share of BIRD cannot be had."""
    assert [(one.failures, one.weighted_accuracy, one.macro_f1, one.result_mismatch) for one in PUBLISHED] == [
        (425, 0.48, 0.317, 0.8471),
        (945, 0.48, 0.355, None),
    ]
