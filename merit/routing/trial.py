"""One failure by hand: a statement that is run, or a status and a message as typed, and what a label does with it.

The label decides what memory is asked for and stands in the repair prompt, so one and the same failure under two
labels shows what routing changes. Nothing is generated and nothing is remembered here.

What this module does not know: streamlit, and how retrieval or prompts work inside.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from merit import prompts
from merit.diagnosis import FAILURES
from merit.episode import Execution, FailureType, Outcome, Question, Status
from merit.errors import BadInput, told_as
from merit.extraction import extract_sql
from merit.judging import execute, message_of, verdict_of
from merit.memory.entry import EntryView, failure_context
from merit.memory.retrieval import Retrieval, RetrievalQuery
from merit.sql_change import Line
from merit.verification import ExecutionOnlyVerifier, SpiderVerifier

if TYPE_CHECKING:
    from merit.database import Database
    from merit.memory import MemoryStore
    from merit.strategy import Strategy

LONGEST_SQL = 20_000
LONGEST_MESSAGE = 4_000


@dataclass(frozen=True)
class Trial:
    """A statement with what became of it. ``question`` has no gold. ``execution`` is None where nothing was run,
    ``outcome`` is NOT_JUDGED where the statement ran and nobody knows whether its rows are right."""

    question: Question
    sql: str
    outcome: Outcome
    message: str | None
    by: str
    execution: Execution | None = None

    @property
    def status(self) -> Outcome | None:
        """The failure that the rules read; None where the statement is correct. What ran and was not judged is taken
        for wrong: that is the only failure it can be."""
        if self.outcome is Outcome.CORRECT:
            return None
        return self.outcome if self.outcome in FAILURES else Outcome.DENOTATION_MISMATCH


def run(question: Question, database: Database, sql: str, cancel: threading.Event | None = None) -> Trial:
    """Run a statement, read-only and with the deadline of every other one; gold judges where the question has it.

    ``sql`` is taken as typed, or out of a whole answer of a model that holds one. ``BadInput`` when it is empty or
    too long.
    """
    statement = _statement(sql)
    stop = cancel or threading.Event()
    execution = execute(database, statement, stop)
    verifier = SpiderVerifier(official=False) if question.gold_sql else ExecutionOnlyVerifier()
    verdict = verdict_of(verifier, question, database, statement, execution, stop)
    bare = replace(question, gold_sql=None)
    return Trial(bare, statement, verdict.outcome, message_of(verdict, execution), verdict.by, execution)


def typed(question: Question, sql: str, status: Outcome | str, message: str) -> Trial:
    """A failure that happened elsewhere, as its status and message were typed; ``BadInput`` where they are unusable."""
    if status not in FAILURES:
        raise BadInput(f"{status} is no failure. Choose one of {', '.join(FAILURES)}.")
    _check(message, "message", LONGEST_MESSAGE)
    _check(sql, "statement", LONGEST_SQL)
    return Trial(replace(question, gold_sql=None), sql.strip(), Outcome(status), message.strip() or None, "typed")


def _statement(sql: str) -> str:
    text = sql.strip()
    if not text:
        raise BadInput("Type or paste a statement first.")
    _check(text, "statement", LONGEST_SQL)
    return extract_sql(text) if "<answer>" in text or text.startswith("```") else text


def _check(text: str, name: str, longest: int) -> None:
    if len(text) > longest:
        raise BadInput(f"The {name} has {len(text):,} characters; at most {longest:,} can be used. Please shorten it.")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise BadInput(f"The {name} holds characters that are no text. Please type it again.")


@dataclass(frozen=True)
class Consequence:
    """What a label leads to: the entries that are recalled and the prompt of the first repair."""

    failure_type: FailureType
    retrieval: Retrieval
    prompt: prompts.Fitted


def consequence(
    trial: Trial,
    failure_type: FailureType,
    schema: str,
    database_id: str,
    strategy: Strategy,
    store: MemoryStore | None,
    *,
    count_tokens: Callable[[str], int],
    limit: int,
) -> Consequence:
    """The retrieval and the repair prompt for a failed trial under a label, as the loop would make them for the next
    question of the stream (spec §4, §5). Without a store nothing is recalled. ``limit`` is in tokens of
    ``count_tokens``. A correct trial raises ``ValueError``."""
    status = trial.status
    if status is None:
        raise ValueError("A correct statement is not repaired.")
    found = Retrieval()
    if store is not None and strategy.uses_memory:
        query = RetrievalQuery(
            trial.question.text,
            trial.sql,
            failure_context(trial.sql, status, trial.message),
            failure_type,
            trial.question.id,
            database_id,
            store.upcoming(),
        )
        with told_as("The memory could not be searched"):
            found = store.retrieve(query, strategy)
    fitted = prompts.fit_repair(
        trial.question,
        schema,
        positive=found.positive,
        negative=found.negative,
        status=status,
        failure_type=failure_type,
        error=trial.message,
        history=[trial.sql],
        static_examples=prompts.static_examples(database_id) if strategy.static_examples else (),
        count_tokens=count_tokens,
        limit=limit,
    )
    return Consequence(failure_type, found, fitted)


@dataclass(frozen=True)
class Moved:
    """Entries that come, go and stay when one label takes the place of another, each in its order of rank."""

    come: tuple[EntryView, ...]
    gone: tuple[EntryView, ...]
    kept: tuple[EntryView, ...]


def moved(before: Consequence, after: Consequence) -> Moved:
    """How the recalled entries of both polarities differ."""
    old = {(entry.id, entry.polarity): entry for entry in _entries(before)}
    new = {(entry.id, entry.polarity): entry for entry in _entries(after)}
    return Moved(
        come=tuple(entry for key, entry in new.items() if key not in old),
        gone=tuple(entry for key, entry in old.items() if key not in new),
        kept=tuple(entry for key, entry in new.items() if key in old),
    )


def _entries(found: Consequence) -> tuple[EntryView, ...]:
    return (*found.retrieval.positive, *found.retrieval.negative)


def prompt_difference(before: Consequence, after: Consequence) -> tuple[Line, ...]:
    """The lines of the two prompts that differ, in reading order; "…" stands for a run of equal ones."""
    old, new = before.prompt.prompt.splitlines(), after.prompt.prompt.splitlines()
    lines: list[Line] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            lines.append(Line(" ", "…"))
        else:
            lines += [Line("-", text) for text in old[i:j]] + [Line("+", text) for text in new[k:m]]
    return tuple(lines)


def ran(trial: Trial) -> bool:
    """Whether the statement was run here and gave a result."""
    return trial.execution is not None and trial.execution.status is Status.EXECUTED
