"""The experience sources: how a question's episode is acquired, each with its own feedback (paper §3.1, §4).

Each source is a dialogue: it yields what it asks the model and returns the episode. The check on each candidate is
one bit and decides nothing but when to stop, and what may be stored; T4's election never sees it.

What this module does not know: batches, banks, gold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from merit.crystallization import prompts
from merit.crystallization.asking import Ask, Dialogue, spent
from merit.crystallization.episodes import Episode, Probe, Try, Usage, key_of
from merit.crystallization.examination import Examiner
from merit.episode import Question
from merit.extraction import extract_sql
from merit.verification import elect

if TYPE_CHECKING:
    from merit.database import Database

BUDGET = 3
"""K, the attempts after the first (paper §4)."""
TEMPERATURE = 0.8
VOTES = 5


class Source(StrEnum):
    """Where episodes come from, by the paper's names."""

    T1 = "T1"
    T2 = "T2"
    T3 = "T3"
    T4 = "T4"
    EXPLORE = "explore"
    SUCCESS = "success"
    UNION = "union"


@dataclass(frozen=True)
class SourceInfo:
    """One row of the table: what signal reaches the model, and how."""

    source: Source
    signal: str
    how: str


SOURCES: dict[Source, SourceInfo] = {
    info.source: info
    for info in (
        SourceInfo(Source.T1, "none", "Resamples one candidate at temperature 0.8."),
        SourceInfo(Source.T2, "one bit per retry", "A fixed sentence says that the previous SQL was wrong."),
        SourceInfo(Source.T3, "interaction", "Proposes 1–4 read-only probes, sees what they returned, revises."),
        SourceInfo(Source.T4, "none; self-vote", "Samples five, runs them, takes the majority's result."),
        SourceInfo(Source.EXPLORE, "probes before the answer", "Looks at schema and data first; no repair."),
        SourceInfo(Source.SUCCESS, "–", "First answers that were right, as they are; no repair."),
        SourceInfo(Source.UNION, "interaction", "The repairs of T3 and the first answers that were right."),
    )
}
REPAIRS = (Source.T1, Source.T2, Source.T3, Source.T4, Source.EXPLORE)
"""Those that are spent on questions whose first answer is wrong."""


@dataclass(frozen=True)
class Case:
    """One question with what a source works on. ``seed``: of the split, part of every sampling seed."""

    question: Question
    database: Database
    schema: str
    examiner: Examiner
    seed: int = 0
    solver: prompts.SolverKind = "direct"

    def attempt(self, text: str, probes: tuple[Probe, ...] = ()) -> Try:
        """The model's answer as an attempt, run and judged."""
        return self.examiner.attempt(self.question, self.database, extract_sql(text), probes)

    def look(self, text: str) -> tuple[Probe, ...]:
        """The probes a model proposed, run."""
        return tuple(self.examiner.probe(self.database, sql) for sql in prompts.probe_queries(text))

    def episode(self, source: Source, tries: list[Try], usage: Usage) -> Episode:
        """The episode that came out. Its candidate is the accepted attempt, else the last one."""
        accepted = next((index for index, one in enumerate(tries) if one.correct), None)
        last = len(tries) - 1 if len(tries) > 1 else None
        candidate = last if accepted is None else accepted
        question = self.question
        return Episode(
            question.text, question.evidence, question.id, question.database_id, source, tuple(tries), candidate, usage
        )

    def sampling_seed(self, *more: object) -> int:
        """A seed of this question and round alone."""
        text = "|".join(map(str, (self.seed, key_of(self.question), *more)))
        return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4], "big") >> 1


Acquire = Callable[[Case, Try, int], Dialogue[Episode]]


def first_attempt(
    case: Case, header: str = "", cards: tuple[str, ...] = (), *, rerun: int = 0
) -> Dialogue[tuple[Try, Usage]]:
    """The solver's one greedy call, with or without cards."""
    prompt = prompts.solver(case.question, case.schema, header=header, cards=cards, kind=case.solver)
    answer = yield Ask(prompt, rerun=rerun)
    return case.attempt(answer[0].text), spent(answer)


def success(case: Case, first: Try) -> Episode:
    """A first answer that was right, as it is: y+ = ŷ, empty trace."""
    return case.episode(Source.SUCCESS, [first], Usage())


def acquire(source: Source | str, case: Case, first: Try, budget: int = BUDGET) -> Dialogue[Episode]:
    """The episode of one question whose first answer was wrong."""
    return _ACQUIRE[Source(source)](case, first, budget)


def _resample(case: Case, first: Try, budget: int) -> Dialogue[Episode]:
    tries, usage = [first], Usage()
    prompt = prompts.solver(case.question, case.schema, kind=case.solver)
    for number in range(budget):
        answer = yield Ask(prompt, TEMPERATURE, seed=case.sampling_seed("T1", number))
        usage += spent(answer)
        tries.append(case.attempt(answer[0].text))
        if tries[-1].correct:
            break
    return case.episode(Source.T1, tries, usage)


def _one_bit(case: Case, first: Try, budget: int) -> Dialogue[Episode]:
    tries, usage = [first], Usage()
    for _ in range(budget):
        answer = yield Ask(prompts.revise_bit(case.question, case.schema, tries[-1].sql))
        usage += spent(answer)
        tries.append(case.attempt(answer[0].text))
        if tries[-1].correct:
            break
    return case.episode(Source.T2, tries, usage)


def _interact(case: Case, first: Try, budget: int) -> Dialogue[Episode]:
    tries, usage = [first], Usage()
    for _ in range(budget):
        latest = tries[-1]
        proposed = yield Ask(prompts.probe(case.question, case.schema, latest.sql, latest.report))
        probes = case.look(proposed[0].text)
        answer = yield Ask(prompts.revise(case.question, case.schema, latest.sql, latest.report, probes))
        usage += spent([*proposed, *answer], len(probes))
        tries.append(case.attempt(answer[0].text, probes))
        if tries[-1].correct:
            break
    return case.episode(Source.T3, tries, usage)


def _vote(case: Case, first: Try, budget: int) -> Dialogue[Episode]:
    """One elected candidate for each attempt; an attempt of which nothing executed proposes none."""
    tries, usage = [first], Usage()
    prompt = prompts.solver(case.question, case.schema, kind=case.solver)
    for number in range(budget):
        answers = yield Ask(prompt, TEMPERATURE, VOTES, seed=case.sampling_seed("T4", number))
        usage += spent(answers)
        sampled = [extract_sql(one.text) for one in answers]
        winner = elect([case.examiner.run(case.database, sql) for sql in sampled]).winner
        if winner is None:
            continue
        tries.append(case.examiner.attempt(case.question, case.database, sampled[winner]))
        if tries[-1].correct:
            break
    return case.episode(Source.T4, tries, usage)


def _explore(case: Case, first: Try, budget: int) -> Dialogue[Episode]:
    proposed = yield Ask(prompts.explore(case.question, case.schema))
    probes = case.look(proposed[0].text)
    answer = yield Ask(prompts.solver(case.question, case.schema, probes=probes, kind=case.solver))
    attempt = case.attempt(answer[0].text, probes)
    return case.episode(Source.EXPLORE, [first, attempt], spent([*proposed, *answer], len(probes)))


_ACQUIRE: dict[Source, Acquire] = {
    Source.T1: _resample,
    Source.T2: _one_bit,
    Source.T3: _interact,
    Source.T4: _vote,
    Source.EXPLORE: _explore,
}
