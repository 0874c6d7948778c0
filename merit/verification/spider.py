"""The Spider test-suite verifier (taoyds/test-suite-sql-eval @ e97acc5; spec §6), its faults switchable.

What this module does not know: questions beyond their gold, and where its verdicts go.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merit.episode import Execution, Outcome, Question, Status, Verdict
from merit.sql_lexing import first_semicolon, is_blank, tokens
from merit.verification.base import EMPTY_QUERY, Caps, GoldRunner, failure, gold_of, judged
from merit.verification.faults import Fault, chosen
from merit.verification.permutation import equal_bags, equal_lists

if TYPE_CHECKING:
    from merit.database import Database

Rows = Sequence[Sequence[Any]]


def spider_equal(gold_rows: Rows, predicted_rows: Rows, order_matters: bool, *, quick_reject: bool = False) -> bool:
    """Whether two results are equal for Spider: both empty, or equal up to one order of the columns, as lists where
    order matters, else as bags. Values are equal as Python has it (1 == 1.0, '1' != 1), without tolerance.

    ``quick_reject``: with the official script's faulty shortcut.
    """
    gold, predicted = [tuple(row) for row in gold_rows], [tuple(row) for row in predicted_rows]
    if not gold and not predicted:
        return True
    if len(gold) != len(predicted) or len(gold[0]) != len(predicted[0]):
        return False
    if quick_reject and _quickly_rejected(gold, predicted, order_matters):
        return False
    return equal_lists(gold, predicted) if order_matters else equal_bags(gold, predicted)


class SpiderVerifier:
    """Judges by the gold result on every database file of the folder; correct iff equal on all.

    ``official``: with the faults of the official script; ``faults`` names the faults instead, one by one
    (``PUBLISHED``: all, also that an empty answer may be correct). ``keep_distinct=False`` deletes every DISTINCT on
    both sides, as the leaderboard does. ``timeout_s`` in seconds for each statement; a prediction over ``max_rows``
    is wrong, a gold over a cap is ``GoldUnavailable``. Order matters iff ``order by`` occurs in the gold query.
    """

    oracle = True
    needs_person = False
    keeps_gold = True

    def __init__(
        self,
        official: bool = True,
        keep_distinct: bool = True,
        *,
        faults: Iterable[Fault | str] | None = None,
        timeout_s: float = Caps.timeout_s,
        max_rows: int = Caps.max_rows,
        max_bytes: int = Caps.max_bytes,
    ) -> None:
        self.keep_distinct = keep_distinct
        self.faults = chosen(official, faults)
        self.name = "spider (official)" if self.faults else "spider"
        self._caps = Caps(timeout_s, max_rows, max_bytes)
        self._gold = GoldRunner(self._caps)
        self._opened: dict[Path, Database] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"SpiderVerifier(faults={sorted(self.faults)}, keep_distinct={self.keep_distinct})"

    def judge(self, question: Question, database: Database, sql: str, execution: Execution | None = None) -> Verdict:
        """The verdict; an answer without a statement is an EXECUTION_ERROR ``empty query``."""
        if is_blank(sql) and Fault.EMPTY_RUNS not in self.faults:
            return Verdict(Outcome.EXECUTION_ERROR, EMPTY_QUERY, self.name)
        gold_sql = self._prepared(gold_of(question), prediction=False)
        predicted_sql = self._prepared(sql, prediction=True)
        order_matters = "order by" in gold_sql.lower()
        for file in self._files(database):
            gold = self._gold.run(file, gold_sql)
            known = execution if file is database and predicted_sql == sql else None
            predicted = self._predicted(file, predicted_sql, known)
            if failed := failure(predicted, self.name):
                return failed
            # A prediction over the caps has more rows, or bigger ones, than a gold that is within them.
            if predicted.truncated or not spider_equal(
                gold.rows, predicted.rows, order_matters, quick_reject=Fault.QUICK_REJECT in self.faults
            ):
                return judged(False, self.name)
        return judged(True, self.name)

    def _predicted(self, database: Database, sql: str, known: Execution | None) -> Execution:
        if is_blank(sql):
            return Execution(Status.EXECUTED)
        return self._caps.complete(database, sql, known)

    def _prepared(self, sql: str, *, prediction: bool) -> str:
        """The text that is run: untouched but for the faults that are on and DISTINCT where it is not kept."""
        if prediction and Fault.VALUE_BECOMES_1 in self.faults:
            sql = sql.replace("value", "1")
        if Fault.JOINED_OPERATORS in self.faults:
            sql = sql.replace("> =", ">=").replace("< =", "<=").replace("! =", "!=")
        if not self.keep_distinct:
            if Fault.DISTINCT_CUTS in self.faults:
                sql = sql[: first_semicolon(sql)]
            sql = "".join(token.text for token in tokens(sql) if token.text.lower() != "distinct")
        if Fault.CURRENT_YEAR_2020 in self.faults:
            sql = re.sub(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", "2020", sql, flags=re.IGNORECASE)
        return sql

    def _files(self, database: Database) -> list[Database]:
        """``database`` and the other database files of its folder (a test suite has many), each opened once."""
        files = [database]
        for path in getattr(database, "files", ()):
            if path != database.path:
                with self._lock:
                    if path not in self._opened:
                        self._opened[path] = type(database).open(path, database.id)
                    files.append(self._opened[path])
        return files


def _quickly_rejected(gold: list[tuple[Any, ...]], predicted: list[tuple[Any, ...]], order_matters: bool) -> bool:
    def sorted_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return [tuple(sorted(row, key=lambda value: str(value) + str(type(value)))) for row in rows]

    first, second = sorted_rows(gold), sorted_rows(predicted)
    return first != second if order_matters else set(first) != set(second)
