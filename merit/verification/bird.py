"""The BIRD verifier (DAMO-ConvAI @ 483554e; spec §6): equal sets of rows.

What this module does not know: questions beyond their gold, and where its verdicts go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from merit.episode import Execution, Outcome, Question, Status, Verdict
from merit.errors import GoldUnavailable
from merit.sql_lexing import is_blank
from merit.verification.base import EMPTY_QUERY, GOLD_TOO_LARGE, Caps, GoldRunner, failure, gold_of, judged
from merit.verification.faults import Fault, chosen

if TYPE_CHECKING:
    from merit.database import Database


def bird_equal(gold_rows: Sequence[Sequence[Any]], predicted_rows: Sequence[Sequence[Any]]) -> bool:
    """Whether two results are equal for BIRD: as sets of rows. Row order and duplicates are ignored, column order
    matters; values are equal as Python has it."""
    return {tuple(row) for row in gold_rows} == {tuple(row) for row in predicted_rows}


class BirdVerifier:
    """Judges by the gold result on the one database.

    ``official``: gold and prediction share the ``timeout_s`` seconds, as in the official script; ``faults`` names
    the faults one by one instead (``PUBLISHED``: all). A prediction that is not done in time is a TIMEOUT; a gold that
    cannot run in that time, or is over a cap, is ``GoldUnavailable`` and never a verdict, unless its fault is on.
    """

    oracle = True
    needs_person = False
    keeps_gold = True

    def __init__(
        self,
        official: bool = True,
        *,
        faults: Iterable[Fault | str] | None = None,
        timeout_s: float = Caps.timeout_s,
        max_rows: int = Caps.max_rows,
        max_bytes: int = Caps.max_bytes,
    ) -> None:
        self.faults = chosen(official, faults)
        self.name = "bird (official)" if self.faults else "bird"
        self._caps = Caps(timeout_s, max_rows, max_bytes)
        self._gold = GoldRunner(self._caps)

    def __repr__(self) -> str:
        return f"BirdVerifier(faults={sorted(self.faults)})"

    def judge(self, question: Question, database: Database, sql: str, execution: Execution | None = None) -> Verdict:
        """The verdict; an answer without a statement is an EXECUTION_ERROR ``empty query``."""
        if is_blank(sql) and Fault.EMPTY_RUNS not in self.faults:
            return Verdict(Outcome.EXECUTION_ERROR, EMPTY_QUERY, self.name)
        gold: Execution | None
        try:
            gold = self._gold.run(database, gold_of(question))
        except GoldUnavailable:
            if Fault.GOLD_FAILURE_IS_MISMATCH not in self.faults:
                raise
            gold = None
        predicted = Execution(Status.EXECUTED) if is_blank(sql) else self._caps.complete(database, sql, execution)
        if failed := failure(predicted, self.name):
            return failed
        if gold is None:
            return judged(False, self.name)
        if Fault.SHARED_DEADLINE in self.faults and gold.elapsed_s + predicted.elapsed_s > self._caps.timeout_s:
            return judged(False, self.name)
        if predicted.truncated:
            if {tuple(row) for row in predicted.rows} <= {tuple(row) for row in gold.rows}:
                # What was cut off could be repetitions or a new row: nobody knows.
                raise GoldUnavailable(GOLD_TOO_LARGE)
            return judged(False, self.name)
        return judged(bird_equal(gold.rows, predicted.rows), self.name)
