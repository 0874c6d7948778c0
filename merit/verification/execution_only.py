"""Nobody judges: what executes is accepted unconfirmed (regime ``dbms_only``, spec §1).

What this module does not know: whether the answer is right; it never says CORRECT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from merit.episode import Execution, Outcome, Question, Verdict
from merit.sql_lexing import is_blank
from merit.verification.base import EMPTY_QUERY, Caps, failure

if TYPE_CHECKING:
    from merit.database import Database


class ExecutionOnlyVerifier:
    """NOT_JUDGED for what executes, which ends the episode; else the database's error or timeout."""

    oracle = False
    needs_person = False
    keeps_gold = True
    name = "execution only"

    def __init__(self, timeout_s: float = Caps.timeout_s) -> None:
        self._caps = Caps(timeout_s, max_rows=1)

    def judge(self, question: Question, database: Database, sql: str, execution: Execution | None = None) -> Verdict:
        """The verdict; an answer without a statement is an EXECUTION_ERROR ``empty query``."""
        if is_blank(sql):
            return Verdict(Outcome.EXECUTION_ERROR, EMPTY_QUERY, self.name)
        if execution is None:
            execution = self._caps.run(database, sql)
        return failure(execution, self.name) or Verdict(Outcome.NOT_JUDGED, None, self.name)
