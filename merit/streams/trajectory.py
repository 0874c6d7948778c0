"""One question of one stream as a line on disk: its attempts, what was recalled and left, and what it cost.

A trajectory is folded from the events of its episode and holds all that the measures need, so that a run of thousands
of questions is read in a second; the whole trace lies beside it. Two trajectories are equal when the same things
happened, whatever the clock said.

What this module does not know: what is measured over trajectories, and where they are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from merit.diagnosis import FAILURES
from merit.episode import FailureType, Outcome, Polarity, Question
from merit.errors import BadInput
from merit.events import AttemptMade, Diagnosed, Event, Executed, Judged, PromptBuilt, Reflected, Retrieved
from merit.memory.entry import EntryView, MemoryEntry


@dataclass(frozen=True)
class Recalled:
    """One entry that a repair prompt showed: its latest source position, and whether its own question is a source."""

    entry_id: str
    polarity: Polarity
    last_position: int
    own_question: bool


@dataclass(frozen=True)
class Attempt:
    """One attempt. ``outcome`` is None where gold could not be evaluated; ``failure_type``, ``rule`` and ``error`` are
    those of its failure; ``recalled`` is what its prompt showed."""

    sql: str
    outcome: Outcome | None = None
    error: str | None = None
    failure_type: FailureType | None = None
    rule: int | None = None
    prompt_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = "stop"
    recalled: tuple[Recalled, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it was judged and found wrong."""
        return self.outcome in FAILURES


@dataclass(frozen=True)
class Trajectory:
    """What became of one question at one position of one stream. Positions are 0-based, times are seconds.

    ``initial_outcome`` and ``outcome`` are what EX counts: the judgements of the first and of the last attempt (in the
    regime ``dbms_only`` they were scored afterwards). ``fault`` says why a question counts in no accuracy: its gold or
    its database fails. ``calls`` counts the model's answers, the shared first one included; ``reflections`` are part of
    them. ``entry`` is what the episode left. ``trace`` is where its events lie: first byte and length.
    """

    strategy: str
    seed: int
    position: int
    question_id: str
    database_id: str
    difficulty: str | None
    initial_outcome: Outcome | None
    outcome: Outcome | None
    attempts: tuple[Attempt, ...]
    calls: int
    reflections: int = 0
    reflection_tokens: int = 0
    fault: str | None = None
    entry: MemoryEntry | None = None
    generation_s: float = field(default=0.0, compare=False)
    sql_s: float = field(default=0.0, compare=False)
    retrieval_s: float = field(default=0.0, compare=False)
    embedding_s: float = field(default=0.0, compare=False)
    indexing_s: float = field(default=0.0, compare=False)
    elapsed_s: float = field(default=0.0, compare=False)
    trace: tuple[int, int] | None = field(default=None, compare=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trajectory):
            return NotImplemented
        return self._happened() == other._happened()

    def __hash__(self) -> int:
        return hash((self.strategy, self.seed, self.position, self.question_id))

    @property
    def steps(self) -> int:
        """How many repairs were tried."""
        return max(0, len(self.attempts) - 1)

    @property
    def judged(self) -> bool:
        """Whether it counts in an accuracy."""
        return self.fault is None

    @property
    def correct(self) -> bool:
        return self.outcome is Outcome.CORRECT

    @property
    def initially_correct(self) -> bool:
        return self.initial_outcome is Outcome.CORRECT

    @property
    def repaired(self) -> bool:
        """Wrong at first, right at the end."""
        return self.judged and self.correct and not self.initially_correct

    @property
    def prompt_tokens(self) -> int:
        return sum(attempt.prompt_tokens for attempt in self.attempts)

    @property
    def tokens(self) -> int:
        """Prompt and output tokens of all calls, reflections included."""
        return sum(attempt.prompt_tokens + attempt.output_tokens for attempt in self.attempts) + self.reflection_tokens

    @property
    def sql(self) -> str:
        """The final prediction."""
        return self.attempts[-1].sql if self.attempts else ""

    @property
    def oscillates(self) -> bool:
        """Whether an attempt equals an earlier one but for white space, case and a semicolon at its end (spec §7)."""
        seen = [same_sql(attempt.sql) for attempt in self.attempts]
        return len(set(seen)) < len(seen)

    def to_line(self) -> str:
        """One line of JSON in ASCII, without the line end."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        values["attempts"] = [asdict(attempt) for attempt in self.attempts]
        values["entry"] = self.entry.to_json() if self.entry else None
        return json.dumps(values, ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str | bytes) -> Trajectory:
        """The inverse of :meth:`to_line`; ``BadInput`` for a line that is none."""
        try:
            values = json.loads(line)
            values["attempts"] = tuple(map(_attempt, values["attempts"]))
            values["entry"] = MemoryEntry.from_json(values["entry"]) if values["entry"] else None
            values["trace"] = tuple(values["trace"]) if values["trace"] else None
            for name in ("initial_outcome", "outcome"):
                values[name] = _or_none(Outcome, values[name])
            return cls(**values)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadInput("This line is no trajectory.") from None

    def _happened(self) -> tuple[Any, ...]:
        entry = replace(self.entry, created_at="") if self.entry else None
        return (*(getattr(self, item.name) for item in fields(self) if item.compare and item.name != "entry"), entry)


def same_sql(sql: str) -> str:
    """The form under which two attempts count as the same (spec §7, oscillation)."""
    return " ".join(sql.strip().rstrip(";").lower().split())


def fold(events: Iterable[Event], question: Question, *, brought: bool) -> tuple[tuple[Attempt, ...], dict[str, Any]]:
    """The attempts of an episode, and the fields of its trajectory that its events give.

    ``brought``: the first answer was handed in, so its call is counted though nobody made it here.
    """
    attempts: list[Attempt] = []
    recalled: tuple[Recalled, ...] = ()
    totals = {"calls": int(brought), "reflections": 0, "reflection_tokens": 0, "sql_s": 0.0}
    for event in events:
        match event:
            case PromptBuilt():
                totals["calls"] += 1
            case Retrieved():
                recalled = tuple(
                    _recalled(entry, question) for entry in (*event.retrieval.positive, *event.retrieval.negative)
                )
            case AttemptMade():
                attempts.append(
                    Attempt(
                        event.sql,
                        prompt_tokens=event.prompt_tokens,
                        output_tokens=event.output_tokens,
                        finish_reason=event.finish_reason,
                        recalled=recalled,
                    )
                )
                recalled = ()
            case Executed():
                totals["sql_s"] += event.elapsed_s
            case Judged():
                attempts[-1] = replace(attempts[-1], outcome=event.outcome)
            case Diagnosed():
                attempts[-1] = replace(
                    attempts[-1], failure_type=event.failure_type, rule=event.rule, error=event.message or None
                )
            case Reflected():
                totals["reflections"] += 1
                totals["reflection_tokens"] += event.prompt_tokens + event.output_tokens
    return tuple(attempts), totals


def _recalled(entry: EntryView, question: Question) -> Recalled:
    return Recalled(
        entry.id,
        entry.polarity,
        max((seen.position for seen in entry.history), default=entry.position),
        any(seen.question_id == question.id for seen in entry.history),
    )


def _attempt(values: Mapping[str, Any]) -> Attempt:
    recalled = tuple(Recalled(**{**one, "polarity": Polarity(one["polarity"])}) for one in values["recalled"])
    return Attempt(
        **{
            **values,
            "outcome": _or_none(Outcome, values["outcome"]),
            "failure_type": _or_none(FailureType, values["failure_type"]),
            "recalled": recalled,
        }
    )


def _or_none(kind: Any, value: Any) -> Any:
    return None if value is None else kind(value)
