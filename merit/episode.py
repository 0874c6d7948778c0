"""The nouns of one episode: question, outcome, failure type, execution, verdict, diagnosis. Frozen, no I/O.

What this module does not know: databases, models, memory. The events that tell an episode live in
``merit.events``, one layer up, because they carry memory entries and retrievals.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What a verifier said of one attempt (spec §1). Cancelled is an event, not an outcome."""

    CORRECT = "CORRECT"
    DENOTATION_MISMATCH = "DENOTATION_MISMATCH"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    TIMEOUT = "TIMEOUT"
    NOT_JUDGED = "NOT_JUDGED"


class Status(StrEnum):
    """How the execution of one statement ended."""

    EXECUTED = "EXECUTED"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"


class FailureType(StrEnum):
    """The seven labels of the classifier (spec §2, paper Table 6), in the fixed order of the colours."""

    RESULT_MISMATCH = "Result Mismatch"
    SCHEMA_LINKING = "Schema Linking"
    AGGREGATION = "Aggregation"
    FILTER_VALUE = "Filter/Value"
    EXECUTION = "Execution"
    SYNTAX = "Syntax"
    UNKNOWN = "Unknown"


class Polarity(StrEnum):
    """Whether a remembered transition worked (verified correction) or not (observed dead end)."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


@dataclass(frozen=True)
class Question:
    """One question over one database.

    ``benchmark`` is None, "spider" or "bird". Without an id, the id is the first 16 hex digits of
    sha256 over ``database_id\\ntext\\nevidence``. ``gold_sql`` belongs to verifiers alone: it is in no repr
    and in no JSON form (see :meth:`public`).
    """

    text: str
    database_id: str
    evidence: str = ""
    gold_sql: str | None = field(default=None, repr=False)
    question_id: str | None = None
    benchmark: str | None = None

    def __post_init__(self) -> None:
        if self.question_id is None:
            key = f"{self.database_id}\n{self.text}\n{self.evidence}".encode("utf-8", "surrogatepass")
            object.__setattr__(self, "question_id", hashlib.sha256(key).hexdigest()[:16])

    @property
    def id(self) -> str:
        """The question id, always present after construction."""
        assert self.question_id is not None
        return self.question_id

    @property
    def form(self) -> str:
        """Prompt form (spec §5): "bird" with evidence or from BIRD, else "spider"."""
        return "bird" if self.benchmark == "bird" or self.evidence.strip() else "spider"

    def public(self) -> dict[str, str | None]:
        """The JSON form: everything but the gold."""
        return {
            "text": self.text,
            "database_id": self.database_id,
            "evidence": self.evidence,
            "question_id": self.question_id,
            "benchmark": self.benchmark,
        }


Row = tuple[Any, ...]


@dataclass(frozen=True)
class Execution:
    """The result of one statement. ``status`` may be given as its text.

    ``rows`` hold raw Python values (int, float, str, bytes, None).
    ``error`` is the DBMS message, ``TIMEOUT`` for a timeout, None when executed. ``elapsed_s`` in seconds.
    ``truncated`` says that a cap on rows or bytes cut the result.
    """

    status: Status
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    error: str | None = None
    elapsed_s: float = 0.0
    truncated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))


@dataclass(frozen=True)
class Verdict:
    """What a verifier says of one attempt: the outcome (or its text), the DBMS message if any, and who judged."""

    outcome: Outcome
    error: str | None = None
    by: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", Outcome(self.outcome))


@dataclass(frozen=True)
class Diagnosis:
    """The label of a failure: type, subtype ("" where the table has none) and the rule 1–14 that fired (spec §2)."""

    failure_type: FailureType
    subtype: str
    rule: int
