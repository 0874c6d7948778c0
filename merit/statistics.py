"""The tests and intervals of both papers: exact McNemar, bootstraps over clusters, equivalence (spec, "Statistics").

Rows are paired: ``treatment[i]`` and ``control[i]`` are the outcomes (0 or 1, or any number) of one question under one
seed or order. Rows of one question are never torn apart by a resample. A mean is over rows, so a question counts as
often as it was asked and every bootstrap's mean is the plain difference of the two means.

What this module does not know: where outcomes come from, and what is drawn.
"""

from __future__ import annotations

import math
import statistics as exact
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from merit.errors import BadInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CELLS = 2_000_000
"""Most numbers drawn at once, so that a bootstrap over thousands of questions stays in a few MB."""


class Interval(NamedTuple):
    """Mean difference, the ends of its 95 % percentile interval, and the two-sided p; all as fractions."""

    mean: float
    low: float
    high: float
    p: float


class Equivalence(NamedTuple):
    """The p of two one-sided tests, and whether it is below alpha."""

    p: float
    equivalent: bool


class Spread(NamedTuple):
    """Mean and sample standard deviation; ``sd`` is None of a single value."""

    mean: float
    sd: float | None


def mcnemar_exact(b: int, c: int) -> float:
    """Two-sided exact McNemar: the binomial test on ``b`` and ``c``, the pairs that only one side solved.

    1.0 when there are none.
    """
    if b < 0 or c < 0:
        raise BadInput("The discordant pairs are counts; they cannot be negative.")
    if b + c == 0:
        return 1.0
    from scipy.stats import binom

    return min(1.0, 2 * float(binom.cdf(min(b, c), b + c, 0.5)))


def mean_and_sd(values: Iterable[float]) -> Spread | None:
    """Mean ± sample standard deviation over orders (spec §7); None of no values."""
    given = [float(value) for value in values]
    if not given:
        return None
    return Spread(exact.mean(given), exact.stdev(given) if len(given) > 1 else None)


def cluster_bootstrap(
    questions: Sequence[Hashable],
    treatment: Sequence[float],
    control: Sequence[float],
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval | None:
    """Query-cluster bootstrap (MERIT, statistics; spec §7): questions with replacement, all rows of one together.

    Percentile interval of 95 %; p = 2·min(share ≤ 0, share ≥ 0), at most 1. None where there are no rows.
    """
    rows = _Rows.of([0] * len(questions), questions, treatment, control)
    if rows is None:
        return None
    sums, sizes = rows.databases[0]
    return _interval(rows.mean, _resampled_questions(sums, sizes, _checked(resamples), np.random.default_rng(seed)))


def two_stage_bootstrap(
    databases: Sequence[Hashable],
    questions: Sequence[Hashable],
    treatment: Sequence[float],
    control: Sequence[float],
    resamples: int = 10_000,
    seed: int = 0,
    *,
    weights: Literal["questions", "databases"] = "questions",
) -> Interval | None:
    """Hierarchical bootstrap (crystallization, statistics): databases with replacement, then in each drawn one its
    unique questions with replacement, all rows of a question together. A question is its (database, question) pair.

    ``weights="databases"``: each drawn database counts the same, whatever its size. Interval and p as above; None where
    there are no rows.
    """
    rows = _Rows.of(databases, questions, treatment, control)
    if rows is None:
        return None
    means = _resampled_databases(rows, _checked(resamples), np.random.default_rng(seed), weights)
    return _interval(rows.mean if weights == "questions" else rows.mean_of_databases, means)


def tost(
    databases: Sequence[Hashable],
    questions: Sequence[Hashable],
    treatment: Sequence[float],
    control: Sequence[float],
    margin: float,
    resamples: int = 10_000,
    seed: int = 0,
    *,
    alpha: float = 0.05,
) -> Equivalence | None:
    """Hierarchical equivalence test: is the mean difference within ±``margin`` (a fraction)? None without rows.

    Two one-sided tests on the two-stage bootstrap: p is the larger of the shares of resamples ≤ −margin and ≥ margin;
    equivalent iff p < alpha.
    """
    if not margin > 0:
        raise BadInput("The margin of an equivalence test is a fraction above 0, such as 0.025.")
    rows = _Rows.of(databases, questions, treatment, control)
    if rows is None:
        return None
    means = _resampled_databases(rows, _checked(resamples), np.random.default_rng(seed), "questions")
    p = max(float(np.mean(means <= -margin)), float(np.mean(means >= margin)))
    return Equivalence(p, p < alpha)


@dataclass(frozen=True)
class _Rows:
    """Paired rows folded by question: for each database the sums of differences and the numbers of rows."""

    databases: tuple[tuple[Floats, Ints], ...]

    @property
    def mean(self) -> float:
        total = math.fsum(value for sums, _ in self.databases for value in sums.tolist())
        return total / sum(int(sizes.sum()) for _, sizes in self.databases)

    @property
    def mean_of_databases(self) -> float:
        return math.fsum(float(sums.sum() / sizes.sum()) for sums, sizes in self.databases) / len(self.databases)

    @classmethod
    def of(
        cls,
        databases: Sequence[Hashable],
        questions: Sequence[Hashable],
        treatment: Sequence[float],
        control: Sequence[float],
    ) -> _Rows | None:
        if len({len(databases), len(questions), len(treatment), len(control)}) != 1:
            raise BadInput("Databases, questions, treatment and control are rows of one table: they must be as many.")
        folded: dict[Hashable, dict[Hashable, list[float]]] = {}
        for database, question, treated, untreated in zip(databases, questions, treatment, control, strict=True):
            difference = float(treated) - float(untreated)
            if not math.isfinite(difference):
                raise BadInput("An outcome is not a number; leave out the pairs that could not be judged.")
            folded.setdefault(database, {}).setdefault(question, []).append(difference)
        if not folded:
            return None
        return cls(
            tuple(
                (
                    np.array([math.fsum(rows) for rows in of_question.values()], np.float64),
                    np.array([len(rows) for rows in of_question.values()], np.int64),
                )
                for of_question in folded.values()
            )
        )


def _checked(resamples: int) -> int:
    if resamples < 1:
        raise BadInput("A bootstrap needs at least one resample.")
    return resamples


def _drawn(sums: Floats, sizes: Ints, times: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """``times`` draws of as many questions as there are: the sum of differences and the number of rows of each."""
    of_sums, of_sizes = [np.empty(0)], [np.empty(0, np.int64)]
    for start in range(0, times, step := max(1, _CELLS // len(sums))):
        drawn = rng.integers(0, len(sums), (min(step, times - start), len(sums)))
        of_sums.append(sums[drawn].sum(axis=1))
        of_sizes.append(sizes[drawn].sum(axis=1))
    return np.concatenate(of_sums), np.concatenate(of_sizes)


def _resampled_questions(sums: Floats, sizes: Ints, resamples: int, rng: np.random.Generator) -> Floats:
    drawn_sums, drawn_sizes = _drawn(sums, sizes, resamples, rng)
    return drawn_sums / drawn_sizes


def _resampled_databases(
    rows: _Rows, resamples: int, rng: np.random.Generator, weights: Literal["questions", "databases"]
) -> Floats:
    count = len(rows.databases)
    times = rng.multinomial(count, [1 / count] * count, resamples)  # how often each database is drawn, per resample
    totals, weight = np.zeros(resamples), np.zeros(resamples)
    for column, (sums, sizes) in enumerate(rows.databases):
        owner = np.repeat(np.arange(resamples), times[:, column])
        drawn_sums, drawn_sizes = _drawn(sums, sizes, len(owner), rng)
        if weights == "databases":
            drawn_sums, drawn_sizes = drawn_sums / drawn_sizes, np.ones_like(drawn_sizes)
        totals += np.bincount(owner, drawn_sums, resamples)
        weight += np.bincount(owner, drawn_sizes, resamples)
    return totals / weight


def _interval(mean: float, means: Floats) -> Interval:
    low, high = np.percentile(means, [2.5, 97.5])
    tail = min(float(np.mean(means <= 0)), float(np.mean(means >= 0)))
    return Interval(mean, float(low), float(high), min(1.0, 2 * tail))
