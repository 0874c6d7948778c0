"""A person judges (spec §8): the loop's thread waits here until somebody answers from another one.

What this module does not know: the page or terminal on which the person is asked.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from merit.episode import Execution, Outcome, Question, Verdict
from merit.errors import BadInput, JudgementStopped
from merit.sql_lexing import is_blank
from merit.verification.base import EMPTY_QUERY, Caps, failure

if TYPE_CHECKING:
    from merit.database import Database

ANSWERS = ("yes", "no", "stop")


class PersonVerifier:
    """``judge`` blocks until ``answer``; what did not execute is judged by the database and nobody is asked.

    One verifier serves one episode at a time. It may be answered before ``judge`` has begun to wait, because the
    person sees the request first; the first answer counts, and one answer judges one attempt.
    """

    oracle = False
    needs_person = True
    keeps_gold = True
    name = "person"

    def __init__(self, timeout_s: float = Caps.timeout_s) -> None:
        self._caps = Caps(timeout_s, max_rows=1)
        self._changed = threading.Condition()
        self._answers: dict[str | None, str] = {}

    def answer(self, word: str, sql: str | None = None) -> None:
        """``yes`` (correct), ``no`` (a denotation mismatch) or ``stop`` (ends the episode); from any thread.

        ``sql``: the statement the person saw. With it, a second click cannot judge a later, different attempt.
        """
        if word not in ANSWERS:
            raise BadInput(f"An answer is one of {', '.join(ANSWERS)}; not {word!r}.")
        with self._changed:
            if word == "stop":
                self._answers = {None: "stop"}
            elif self._answers.get(None) != "stop":
                self._answers.setdefault(sql, word)
            self._changed.notify_all()

    def judge(self, question: Question, database: Database, sql: str, execution: Execution | None = None) -> Verdict:
        """The person's verdict on what executed; ``JudgementStopped`` on stop. Waits without a limit."""
        if is_blank(sql):
            return Verdict(Outcome.EXECUTION_ERROR, EMPTY_QUERY, self.name)
        if execution is None:
            execution = self._caps.run(database, sql)
        if failed := failure(execution, self.name):
            return failed
        with self._changed:
            self._changed.wait_for(lambda: sql in self._answers or None in self._answers)
            word = self._answers.get(sql) or self._answers[None]
            self._answers = {}
        if word == "stop":
            raise JudgementStopped("The person who judges stopped the episode.")
        return Verdict(Outcome.CORRECT if word == "yes" else Outcome.DENOTATION_MISMATCH, None, self.name)
