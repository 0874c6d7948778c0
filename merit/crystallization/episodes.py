"""A test-time episode: what a question's first wrong answer, and the repair of it, leave behind (paper §3.1).

``e = (q, ŷ, y+, τ)``: the question, the first attempt, the candidate that may be stored, and the trace. Gold is in
none of it: a verdict is one bit, and every SQL text is the model's own. Facts only, JSON in and out.

What this module does not know: models, databases, and whether an episode was admitted to a bank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from merit.episode import Execution, Question, Status

SHOWN_ROWS = 20
"""Most rows of a result in a report (reconstructed)."""
SHOWN_CHARS = 80
"""Most characters of one cell in a report."""


@dataclass(frozen=True)
class Usage:
    """What was spent: model calls, their tokens, and probe statements run."""

    calls: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    probes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.output_tokens + other.output_tokens,
            self.probes + other.probes,
        )

    @property
    def tokens(self) -> int:
        """Prompt and output together."""
        return self.prompt_tokens + self.output_tokens


@dataclass(frozen=True)
class Probe:
    """A read-only statement and what it returned, as the model is told."""

    sql: str
    report: str


@dataclass(frozen=True)
class Try:
    """One attempt: its SQL, what it returned, whether it was judged right (None: nobody said), and the probes that
    were run before it was written. ``unreadable``: the database could not parse it."""

    sql: str
    report: str = ""
    correct: bool | None = None
    probes: tuple[Probe, ...] = ()
    unreadable: bool = False


@dataclass(frozen=True)
class Episode:
    """One episode of one collection question. ``tries`` is the trace, the first attempt first.

    ``candidate`` is the index in ``tries`` of y+; None where no candidate came out. ``source`` names how it was
    acquired. ``usage``: everything spent on it after the first attempt.
    """

    question: str
    evidence: str
    question_id: str
    database_id: str
    source: str
    tries: tuple[Try, ...]
    candidate: int | None
    usage: Usage = field(default_factory=Usage)

    @property
    def first(self) -> Try:
        """ŷ, the first attempt."""
        return self.tries[0]

    @property
    def final(self) -> Try | None:
        """y+, the candidate."""
        return None if self.candidate is None else self.tries[self.candidate]

    @property
    def final_sql(self) -> str:
        """The SQL of y+; "" where there is none."""
        return "" if self.final is None else self.final.sql

    @property
    def repaired(self) -> bool:
        """Whether y+ is a later attempt than ŷ, so that there is an edit to tell of."""
        return bool(self.candidate)

    @property
    def correct(self) -> bool:
        """Whether an independent check accepted y+."""
        return self.final is not None and self.final.correct is True

    @property
    def id(self) -> str:
        """The key of its question: ids repeat between databases."""
        return f"{self.database_id}/{self.question_id}"

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a line of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Episode:
        """What ``to_json`` gave."""
        tries = tuple(
            Try(**{**one, "probes": tuple(Probe(**probe) for probe in one["probes"])}) for one in value["tries"]
        )
        return cls(**{**value, "tries": tries, "usage": Usage(**value["usage"])})


def key_of(question: Question) -> str:
    """The key of a question in every record: ``database/id``."""
    return f"{question.database_id}/{question.id}"


def asked(question: Question | Episode) -> str:
    """The question with its evidence hint, as the solver reads it (the word Evidence is reconstructed)."""
    text = (question.text if isinstance(question, Question) else question.question).strip()
    hint = question.evidence.strip()
    return f"{text}\nEvidence: {hint}" if hint else text


def report_of(execution: Execution) -> str:
    """What a statement returned, as the model is told: names, at most 20 rows, or the database's message."""
    if execution.status is not Status.EXECUTED:
        return f"Error: {execution.error or execution.status}"
    if not execution.rows:
        return "(no rows)"
    lines = ["|".join(execution.columns)]
    lines += ["|".join(_cell(value) for value in row) for row in execution.rows[:SHOWN_ROWS]]
    if len(execution.rows) > SHOWN_ROWS or execution.truncated:
        count = f"more than {len(execution.rows)}" if execution.truncated else str(len(execution.rows))
        lines.append(f"({count} rows in all)")
    return "\n".join(lines)


def _cell(value: object) -> str:
    text = "NULL" if value is None else f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
