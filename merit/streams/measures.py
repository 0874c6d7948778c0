"""What a run measured (spec §7): accuracy, repairs, steps, oscillation, tokens and calls; over orders; in pairs.

Every accuracy states its denominator: questions whose gold or database fails are counted apart. Figures are fractions,
times are seconds.

What this module does not know: how a run was made and how its figures are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from merit.episode import Outcome, Polarity
from merit.errors import MeritError
from merit.statistics import Interval, Spread, cluster_bootstrap, mcnemar_exact, mean_and_sd
from merit.strategy import Causality, Regime, Strategy
from merit.streams.trajectory import Trajectory

UNKNOWN_GROUP = "unknown"


class AccountingError(MeritError):
    """The books of a finished run do not balance: a fault of the program, never of the person."""


@dataclass(frozen=True)
class Measures:
    """The figures of one stream (or of a part of it). ``None`` where there is nothing to divide by.

    * ``questions`` were asked; ``judged`` of them count in accuracies; ``faults`` counts the others by reason.
    * ``initial_ex``, ``ex``: execution accuracy of the first and of the last attempts over ``judged``.
    * ``initial_failures``: judged questions whose first attempt is wrong; ``repaired`` of them ended right.
    * ``steps`` repairs were tried on them in all, ``mean_steps`` per initial failure.
    * ``oscillation``: share of judged questions with an attempt equal to an earlier one.
    * ``tokens`` = ``prompt_tokens`` + ``output_tokens`` of all ``calls``, reflections and first answers included.
    * ``positive``, ``negative``: entries that were left in memory.
    """

    questions: int
    judged: int
    faults: Mapping[str, int]
    initially_correct: int
    initial_failures: int
    correct: int
    repaired: int
    initial_ex: float | None
    ex: float | None
    repair_rate: float | None
    steps: int
    mean_steps: float | None
    oscillating: int
    oscillation: float | None
    prompt_tokens: int
    output_tokens: int
    tokens: int
    calls: int
    reflections: int
    positive: int
    negative: int
    generation_s: float
    sql_s: float
    embedding_s: float
    retrieval_s: float
    indexing_s: float
    elapsed_s: float


def measure(trajectories: Iterable[Trajectory]) -> Measures:
    """The figures over any trajectories: a whole stream, or those of one database, type or difficulty."""
    rows = list(trajectories)
    judged = [row for row in rows if row.judged]
    failures = [row for row in judged if not row.initially_correct]
    correct = sum(row.correct for row in judged)
    repaired = sum(row.repaired for row in failures)
    steps = sum(row.steps for row in rows)
    oscillating = sum(row.oscillates for row in judged)
    prompt_tokens = sum(row.prompt_tokens for row in rows)
    reflecting = sum(row.reflection_tokens for row in rows)
    tokens = sum(row.tokens for row in rows)
    left = Counter(row.entry.polarity for row in rows if row.entry)
    return Measures(
        questions=len(rows),
        judged=len(judged),
        faults=dict(Counter(row.fault for row in rows if row.fault)),
        initially_correct=len(judged) - len(failures),
        initial_failures=len(failures),
        correct=correct,
        repaired=repaired,
        initial_ex=_share(len(judged) - len(failures), len(judged)),
        ex=_share(correct, len(judged)),
        repair_rate=_share(repaired, len(failures)),
        steps=steps,
        mean_steps=_share(steps, len(failures)),
        oscillating=oscillating,
        oscillation=_share(oscillating, len(judged)),
        prompt_tokens=prompt_tokens,
        output_tokens=tokens - prompt_tokens - reflecting,
        tokens=tokens,
        calls=sum(row.calls for row in rows),
        reflections=sum(row.reflections for row in rows),
        positive=left[Polarity.POSITIVE],
        negative=left[Polarity.NEGATIVE],
        generation_s=sum(row.generation_s for row in rows),
        sql_s=sum(row.sql_s for row in rows),
        embedding_s=sum(row.embedding_s for row in rows),
        retrieval_s=sum(row.retrieval_s for row in rows),
        indexing_s=sum(row.indexing_s for row in rows),
        elapsed_s=sum(row.elapsed_s for row in rows),
    )


def over_orders(measured: Sequence[Measures]) -> dict[str, Spread]:
    """Mean ± sample standard deviation of every figure over the orders of one strategy (spec §7); figures that an order
    lacks are left out."""
    found: dict[str, Spread] = {}
    for item in fields(Measures):
        values = [getattr(one, item.name) for one in measured]
        if values and all(isinstance(value, int | float) for value in values):
            spread = mean_and_sd(values)
            assert spread is not None
            found[item.name] = spread
    return found


def by_database(trajectories: Iterable[Trajectory]) -> dict[str, Measures]:
    """The figures of each database, by name."""
    return _grouped(trajectories, lambda row: row.database_id)


def by_difficulty(trajectories: Iterable[Trajectory]) -> dict[str, Measures]:
    """The figures of each difficulty that the dataset names."""
    return _grouped(trajectories, lambda row: row.difficulty or UNKNOWN_GROUP)


def by_failure_type(trajectories: Iterable[Trajectory]) -> dict[str, Measures]:
    """The figures of the initial failures, by the type of the first failure."""
    failures = [row for row in trajectories if row.judged and not row.initially_correct]
    return _grouped(failures, lambda row: str(row.attempts[0].failure_type or UNKNOWN_GROUP))


@dataclass(frozen=True)
class Paired:
    """Two strategies on the same questions and orders, as far as both were judged.

    ``interval``: the difference in EX with its query-cluster bootstrap; ``fixes`` and ``breaks`` are the discordant
    (question, order) pairs, ``mcnemar_p`` their exact test, a diagnostic: orders of a question are not independent.
    """

    questions: int
    orders: int
    interval: Interval
    fixes: int
    breaks: int
    mcnemar_p: float


def paired(
    treatment: Iterable[Trajectory], control: Iterable[Trajectory], resamples: int = 10_000, seed: int = 0
) -> Paired | None:
    """Treatment minus control over the (question, order) pairs that both have; None where there is none."""
    of_control = {(row.question_id, row.seed): row for row in control if row.judged}
    pairs = [
        (row, of_control[row.question_id, row.seed])
        for row in treatment
        if row.judged and (row.question_id, row.seed) in of_control
    ]
    questions = [row.question_id for row, _ in pairs]
    treated, untreated = [row.correct for row, _ in pairs], [other.correct for _, other in pairs]
    interval = cluster_bootstrap(questions, treated, untreated, resamples, seed)
    if interval is None:
        return None
    fixes = sum(a and not b for a, b in zip(treated, untreated, strict=True))
    breaks = sum(b and not a for a, b in zip(treated, untreated, strict=True))
    orders = len({row.seed for row, _ in pairs})
    return Paired(len(set(questions)), orders, interval, fixes, breaks, mcnemar_exact(fixes, breaks))


def curve(trajectories: Sequence[Trajectory]) -> list[tuple[int, float | None, int, int, int]]:
    """How a stream grew: (position, EX so far, repaired so far, positive entries, negative entries) by question."""
    points, judged, correct, repaired, positive, negative = [], 0, 0, 0, 0, 0
    for row in sorted(trajectories, key=lambda row: row.position):
        judged += row.judged
        correct += row.judged and row.correct
        repaired += row.repaired
        positive += row.entry is not None and row.entry.polarity is Polarity.POSITIVE
        negative += row.entry is not None and row.entry.polarity is Polarity.NEGATIVE
        points.append((row.position, _share(correct, judged), repaired, positive, negative))
    return points


def check_accounts(trajectories: Sequence[Trajectory], strategy: Strategy, order: Sequence[str], budget: int) -> None:
    """The accounting identities of a finished stream (spec §7); ``AccountingError`` names the first that fails.

    ``order``: the question ids by position. Calls = questions asked + repairs, and for a reflecting strategy one more
    for every unsuccessful attempt; a causal strategy recalled earlier, other questions alone.
    """
    rows = list(trajectories)
    found = measure(rows)
    asked = sum(bool(row.attempts) for row in rows)
    unsuccessful = sum(attempt.failed for row in rows for attempt in row.attempts)
    reflections = unsuccessful if strategy.reflects else 0
    identities: list[tuple[str, object, object]] = [
        ("one trajectory for each question, at its position", [row.question_id for row in rows], list(order)),
        ("positions from 0 on", [row.position for row in rows], list(range(len(rows)))),
        ("reflections = unsuccessful attempts of a reflecting strategy", found.reflections, reflections),
        ("calls = questions + repairs + reflections", found.calls, asked + found.steps + reflections),
        ("correct = correct at first + repaired", found.correct, found.initially_correct + found.repaired),
        ("judged + faults = questions", found.judged + sum(found.faults.values()), found.questions),
        ("no more repairs than the budget", True, all(row.steps <= strategy.repairs(budget) for row in rows)),
        ("repairs end with the first success", True, all(not _goes_on(row) for row in rows)),
        ("an entry is left exactly by what the strategy keeps", True, all(_left_right(row, strategy) for row in rows)),
        ("a causal strategy sees earlier, other questions", True, all(_is_causal(row, strategy) for row in rows)),
    ]
    for name, is_, should in identities:
        if is_ != should:
            told = f": {is_} against {should}" if isinstance(is_, int) and is_ is not True else ""
            raise AccountingError(
                f"The accounts of {strategy.name} do not balance ({name}{told}). This is a fault of the program; "
                "please report it and do not use the figures."
            )


def _goes_on(row: Trajectory) -> bool:
    return any(not attempt.failed for attempt in row.attempts[:-1])


def _left_right(row: Trajectory, strategy: Strategy) -> bool:
    """Positive iff repaired to correct, negative iff the budget ran out, and only where the strategy stores it."""
    if len(row.attempts) < 2 or row.fault is not None or row.attempts[-1].outcome is Outcome.NOT_JUDGED:
        return row.entry is None
    solved = row.attempts[-1].outcome is Outcome.CORRECT
    polarity = Polarity.POSITIVE if solved else Polarity.NEGATIVE
    if solved and strategy.regime is Regime.DBMS_ONLY:
        return False
    return (row.entry.polarity if row.entry else None) == (polarity if strategy.stores(polarity) else None)


def _is_causal(row: Trajectory, strategy: Strategy) -> bool:
    seen = [recalled for attempt in row.attempts for recalled in attempt.recalled]
    if not strategy.uses_memory:
        return not seen
    own = strategy.own_question or not any(recalled.own_question for recalled in seen)
    earlier = all(recalled.last_position < row.position for recalled in seen)
    return own and (earlier or strategy.causal is not Causality.CAUSAL)


def _grouped(trajectories: Iterable[Trajectory], of: Callable[[Trajectory], str]) -> dict[str, Measures]:
    groups: dict[str, list[Trajectory]] = {}
    for row in trajectories:
        groups.setdefault(of(row), []).append(row)
    return {name: measure(groups[name]) for name in sorted(groups)}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
