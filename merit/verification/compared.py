"""One answer under the benchmark rules side by side, to show when verdicts differ (spec §6).

What this module does not know: which of them a person should believe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merit.episode import Outcome, Question
from merit.verification.bird import BirdVerifier
from merit.verification.spider import SpiderVerifier

if TYPE_CHECKING:
    from merit.database import Database


@dataclass(frozen=True)
class Comparison:
    """Outcomes of one answer: the official Spider script, Spider with its faults off, and BIRD."""

    official: Outcome
    fixed: Outcome
    bird: Outcome

    @property
    def differ(self) -> bool:
        """Whether the rules disagree."""
        return len({self.official, self.fixed, self.bird}) > 1


def compare_verdicts(question: Question, database: Database, sql: str) -> Comparison:
    """The verdicts on ``sql``, without anything of the gold; ``GoldUnavailable`` where gold cannot be evaluated."""
    verifiers = (SpiderVerifier(), SpiderVerifier(official=False), BirdVerifier())
    return Comparison(*(verifier.judge(question, database, sql).outcome for verifier in verifiers))
