"""How often a classifier's label is the right one: accuracy, plain and weighted, macro-F1, confusion, agreement.

Everything is computed from pairs of labels; figures are fractions, and what has nothing to be computed from is None.
The published figures (paper, Table 5 and §5) are population-weighted accuracy and macro-F1; spec §2 says how.

What this module does not know: where labels come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from merit.episode import FailureType

Pair = tuple[FailureType, FailureType]
"""(the right label, the label that was given)."""


@dataclass(frozen=True)
class Score:
    """One label: how often it was right (``support``), how often it was given (``given``), and precision, recall and
    F1; an undefined one counts 0 (spec §2)."""

    failure_type: FailureType
    support: int
    given: int
    precision: float
    recall: float
    f1: float


def confusion(pairs: Iterable[Pair]) -> Counter[Pair]:
    """How often each pair occurs."""
    return Counter(pairs)


def accuracy(pairs: Sequence[Pair]) -> float | None:
    """The share of pairs in which both labels are the same; None for no pairs."""
    return sum(right == given for right, given in pairs) / len(pairs) if pairs else None


def weighted_accuracy(pairs: Sequence[Pair], population: Mapping[FailureType, int]) -> float | None:
    """Accuracy over a population (spec §2): the accuracy within each given label, weighted by that label's share among
    all failures. ``population`` counts the labels given to all failures. A label of the population of which no pair
    was given says nothing and is left out of both sums; None where none is left."""
    total = right = 0.0
    for kind, size in population.items():
        mine = [pair for pair in pairs if pair[1] is kind]
        if size and mine:
            total += size
            right += size * sum(truth is kind for truth, _ in mine) / len(mine)
    return right / total if total else None


def scores(pairs: Sequence[Pair]) -> tuple[Score, ...]:
    """One score for each label that occurs on either side, in the order of ``FailureType``."""
    return tuple(_score(kind, pairs) for kind in FailureType if any(kind in pair for pair in pairs))


def _score(kind: FailureType, pairs: Sequence[Pair]) -> Score:
    support = sum(right is kind for right, _ in pairs)
    given = sum(label is kind for _, label in pairs)
    hits = sum(right is kind and label is kind for right, label in pairs)
    precision, recall = hits / given if given else 0.0, hits / support if support else 0.0
    return Score(kind, support, given, precision, recall, 2 * hits / (support + given))


def macro_f1(pairs: Sequence[Pair]) -> float | None:
    """The plain mean of F1 over the labels that occur on either side; None for no pairs."""
    found = scores(pairs)
    return sum(score.f1 for score in found) / len(found) if found else None


def kappa(pairs: Sequence[Pair]) -> float | None:
    """Cohen's kappa: how far two labellers agree beyond chance, 1 for always; None where chance alone would give
    perfect agreement (both use one and the same label) or there are no pairs. Source: Cohen (1960)."""
    if not pairs:
        return None
    first, second = Counter(one for one, _ in pairs), Counter(two for _, two in pairs)
    chance = sum(first[kind] * second[kind] for kind in FailureType) / len(pairs) ** 2
    observed = accuracy(pairs)
    assert observed is not None
    return (observed - chance) / (1 - chance) if chance < 1 else None


def interval(part: int, whole: int) -> tuple[float, float] | None:
    """The 95 % Wilson interval of a share; None for nothing."""
    from scipy.stats import binomtest

    if not whole:
        return None
    found = binomtest(part, whole).proportion_ci(method="wilson")
    return float(found.low), float(found.high)
