"""Run one statement, report what it returned, and take the one bit: right, wrong, or nobody can say.

The verifier alone sees gold; what comes out is a ``Try``. EX here is BIRD's equality for every dataset (paper §4).

What this module does not know: models, prompts, what the bit is used for.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from merit import judging
from merit.crystallization.episodes import Probe, Try, report_of
from merit.diagnosis import diagnose
from merit.episode import Execution, Outcome, Question
from merit.errors import GoldUnavailable
from merit.verification import BirdVerifier, Verifier

if TYPE_CHECKING:
    from merit.database import Database

PARSE_FAILURE = "Parse Failure"


@dataclass(frozen=True)
class Examiner:
    """Whoever may say "correct": gold by default, or a person or an assertion for live admission."""

    verifier: Verifier = field(default_factory=lambda: BirdVerifier(official=False))
    cancel: threading.Event = field(default_factory=threading.Event)

    def attempt(self, question: Question, database: Database, sql: str, probes: tuple[Probe, ...] = ()) -> Try:
        """The attempt, executed and judged. ``correct`` is None where the reference cannot be evaluated."""
        execution = self.run(database, sql)
        correct: bool | None = None
        outcome = Outcome.NOT_JUDGED
        try:
            verdict = judging.verdict_of(self.verifier, question, database, sql, execution, self.cancel)
            outcome, correct = verdict.outcome, verdict.outcome is Outcome.CORRECT
        except GoldUnavailable:
            pass
        unreadable = outcome is Outcome.EXECUTION_ERROR and diagnose(outcome, execution.error).subtype == PARSE_FAILURE
        return Try(sql, report_of(execution), correct, probes, unreadable)

    def run(self, database: Database, sql: str) -> Execution:
        """The result of one read-only statement; raises ``Stopped`` when cancelled."""
        return judging.execute(database, sql, self.cancel)

    def probe(self, database: Database, sql: str) -> Probe:
        """A probe and its report; a probe that fails or would write reports the database's message."""
        return Probe(sql, report_of(self.run(database, sql)))
