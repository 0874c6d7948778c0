"""The events of one episode, the one spine: typed, frozen, JSON-able (see ``merit.trace``).

The live page, the replay, the comparison, the CLI and the statistics fold these and nothing else.
``iteration`` is 0 for the first answer and k for repair k. Times are seconds. Gold is in none of them.

What this module does not know: how an event comes about (``merit.repair``) or where it goes.
It lives above ``merit.episode`` because events carry memory entries and retrievals.
"""

from __future__ import annotations

from dataclasses import dataclass

from merit.episode import FailureType, Outcome, Question, Row, Status
from merit.memory.entry import EntryView, MemoryEntry
from merit.memory.retrieval import Retrieval


@dataclass(frozen=True)
class EpisodeStarted:
    """The question, the frame of the episode, and what is needed to run it again."""

    episode_id: str
    question: Question
    strategy: str
    scope: str
    budget: int
    position: int
    model_id: str
    encoder_id: str
    schema: str
    schema_hash: str
    seed: int
    verifier: str
    oracle_assisted: bool
    created_at: str


@dataclass(frozen=True)
class PromptBuilt:
    """The exact user message. ``purpose`` is initial, repair or reflection; ``tokens`` is exact where the
    model can count, else an estimate; ``dropped`` names, in order, what did not fit."""

    iteration: int
    purpose: str
    prompt: str
    tokens: int
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenStreamed:
    """A piece of text as it is generated, about one per 100 ms; not kept in bundles."""

    iteration: int
    text: str


@dataclass(frozen=True)
class AttemptMade:
    """The extracted SQL ("" where the answer held no single statement) and the raw answer."""

    iteration: int
    sql: str
    raw: str
    prompt_tokens: int
    output_tokens: int
    elapsed_s: float = 0.0
    finish_reason: str = "stop"


@dataclass(frozen=True)
class Executed:
    """What the database said. ``rows`` holds at most 50 rows; ``row_count`` counts all that were fetched."""

    iteration: int
    status: Status
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    row_count: int
    truncated: bool
    error: str | None
    elapsed_s: float


@dataclass(frozen=True)
class JudgementRequested:
    """A person is asked; the loop waits in its own thread until the verifier has an answer."""

    iteration: int


@dataclass(frozen=True)
class Judged:
    """The verdict and who gave it."""

    iteration: int
    outcome: Outcome
    by: str


@dataclass(frozen=True)
class Diagnosed:
    """The label of the failure, the rule that fired (1–14) and the message it read ("" if none)."""

    iteration: int
    failure_type: FailureType
    subtype: str
    rule: int
    message: str


@dataclass(frozen=True)
class Retrieved:
    """What memory gave for the next repair, pool by pool. ``iteration`` is that of the repair it feeds."""

    iteration: int
    retrieval: Retrieval


@dataclass(frozen=True)
class Reflected:
    """A verbal reflection (strategy reflexion)."""

    iteration: int
    text: str
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class EpisodeFinalised:
    """The end. ``entry`` is the merged view of what was remembered, or None; it can be seen from position
    ``visible_from`` on. ``repairs`` counts the repair attempts that were made."""

    outcome: Outcome
    entry: EntryView | None
    visible_from: int
    repairs: int


@dataclass(frozen=True)
class Failed:
    """The episode could not be carried to its end; nothing was stored. ``reason`` is a sentence for a person.

    ``unsaved`` holds the entry that could not be written, so that it can be saved again."""

    reason: str
    unsaved: MemoryEntry | None = None


@dataclass(frozen=True)
class Cancelled:
    """The episode was stopped; nothing was stored."""


Event = (
    EpisodeStarted
    | PromptBuilt
    | TokenStreamed
    | AttemptMade
    | Executed
    | JudgementRequested
    | Judged
    | Diagnosed
    | Retrieved
    | Reflected
    | EpisodeFinalised
    | Failed
    | Cancelled
)

LAST_EVENTS = (EpisodeFinalised, Failed, Cancelled)
"""Exactly one of these ends every episode."""
