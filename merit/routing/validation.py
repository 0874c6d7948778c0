"""The rules measured against labels, beside what was published (spec §2; paper Table 5 and §5).

What this module does not know: where the labels come from, and how the figures are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from merit.episode import FailureType
from merit.routing import measures
from merit.routing.labelled import Failure, population
from merit.routing.measures import Pair, Score


class Reference(StrEnum):
    """Whose labels the rules are measured against."""

    FIRST = "the first labels"
    SECOND = "the second labels"
    AGREED = "where both agree"
    OWN = "your own labels"


def right(failure: Failure, reference: Reference) -> FailureType | None:
    """The label taken for right; None where there is none."""
    if reference is Reference.FIRST:
        return failure.label
    if reference is Reference.SECOND:
        return failure.second_label
    if reference is Reference.OWN:
        return failure.own_label
    return failure.label if failure.label is failure.second_label else None


def references(failures: Sequence[Failure]) -> list[Reference]:
    """Those for which there is a label at all."""
    return [one for one in Reference if any(right(failure, one) is not None for failure in failures)]


@dataclass(frozen=True)
class Published:
    """What the paper says of one benchmark; None where it cannot be had."""

    benchmark: str
    failures: int
    weighted_accuracy: float
    macro_f1: float
    result_mismatch: float | None


PUBLISHED = (
    Published("Spider, published", 425, 0.48, 0.317, 0.8471),
    Published("BIRD, published", 945, 0.48, 0.355, None),
)
"""Paper §5 and Table 5; it calls these figures provisional, and the accuracy “near 48 %” on both."""


@dataclass(frozen=True)
class Agreement:
    """How far two labellers agree on what both have labelled: share, Cohen's kappa, how many."""

    plain: float
    kappa: float | None
    count: int


def agreement(failures: Iterable[Failure], one: Reference, two: Reference) -> Agreement | None:
    """Of two columns of labels; None where no failure has both."""
    pairs = [
        (first, second)
        for failure in failures
        if (first := right(failure, one)) is not None and (second := right(failure, two)) is not None
    ]
    plain = measures.accuracy(pairs)
    return None if plain is None else Agreement(plain, measures.kappa(pairs), len(pairs))


@dataclass(frozen=True)
class Validation:
    """The rules against one column of labels. ``failures`` counts all, ``labelled`` those with a label; ``ruled`` and
    ``labels`` count what the rules and the labels say of the labelled ones, ``population`` what the rules say of the
    failures that weighted accuracy is about."""

    failures: int
    labelled: int
    accuracy: float | None
    accuracy_interval: tuple[float, float] | None
    weighted_accuracy: float | None
    macro_f1: float | None
    confusion: Counter[Pair]
    scores: tuple[Score, ...]
    ruled: Counter[FailureType]
    labels: Counter[FailureType]
    population: Counter[FailureType]

    @property
    def result_mismatch(self) -> float | None:
        """The share of Result Mismatch in the population."""
        total = sum(self.population.values())
        return self.population[FailureType.RESULT_MISMATCH] / total if total else None


def validate(failures: Sequence[Failure], reference: Reference) -> Validation:
    """All figures of one labelled set."""
    pairs = [(label, failure.ruled) for failure in failures if (label := right(failure, reference)) is not None]
    everyone = Counter(failure.ruled for failure in population(failures))
    hits = sum(truth is ruled for truth, ruled in pairs)
    return Validation(
        failures=len(failures),
        labelled=len(pairs),
        accuracy=measures.accuracy(pairs),
        accuracy_interval=measures.interval(hits, len(pairs)),
        weighted_accuracy=measures.weighted_accuracy(pairs, everyone),
        macro_f1=measures.macro_f1(pairs),
        confusion=measures.confusion(pairs),
        scores=measures.scores(pairs),
        ruled=Counter(ruled for _, ruled in pairs),
        labels=Counter(label for label, _ in pairs),
        population=everyone,
    )
