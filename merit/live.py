"""What the Ask page and the command line share: ask, keep the bundle, find it again, correct it, undo it.

Every verb is a thin layer over ``run_episode``; there is no second loop. A live stream has a counter
(spec §8): each question that is asked takes the next position, and an episode pins what it may see at its start.

What this module does not know: streamlit, terminals, threads (``merit.jobs`` runs these generators).
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from merit import trace
from merit.episode import Execution, Outcome, Question, Status
from merit.errors import BadInput, MeritError
from merit.events import EpisodeStarted, Event, Failed, TokenStreamed
from merit.memory.entry import MemoryEntry
from merit.repair import run_episode
from merit.settings import settings

if TYPE_CHECKING:
    from merit.database import Database
    from merit.memory import MemoryStore
    from merit.models.language import LanguageModel
    from merit.strategy import Strategy
    from merit.verification import Verifier

log = logging.getLogger(__name__)

MAX_QUESTION_CHARS = 2_000
MAX_EVIDENCE_CHARS = 4_000


@dataclass(frozen=True)
class Request:
    """Everything a person chose before pressing Ask.

    ``initial`` is a first answer that is already there (no model call for it); ``owner`` is the private key of
    the person, of which only a hash is written to disk.
    """

    question: Question
    database: Database
    strategy: Strategy
    verifier: Verifier
    budget: int = 7
    owner: str = ""
    seed: int = 0
    initial: str | None = None


@dataclass(frozen=True)
class EpisodeSummary:
    """One line of a person's history. ``outcome`` is None when the episode failed or was stopped; ``ended`` is
    the class name of its last event; ``created_at`` is ISO 8601, UTC."""

    episode_id: str
    question: str
    database_id: str
    strategy: str
    created_at: str
    ended: str
    outcome: Outcome | None
    repairs: int


def ask(
    request: Request, model: LanguageModel, store: MemoryStore, *, cancel: threading.Event | None = None
) -> Iterator[Event]:
    """Ask one question at the next position of the live stream and keep its bundle.

    Yields the events of ``run_episode``; the bundle ``episodes/<id>.jsonl`` is on disk before the last of them
    is yielded. A bundle that cannot be written costs a warning in the log, never the episode.
    """
    raise NotImplementedError


def history(owner: str, limit: int = 50) -> list[EpisodeSummary]:
    """The episodes of ``owner`` on this machine, newest first, at most ``limit``."""
    raise NotImplementedError


def load(episode_id: str, owner: str) -> tuple[Event, ...]:
    """The events of one finished episode of ``owner``; of nobody else (``BadInput``)."""
    raise NotImplementedError


def make_question(text: str, database_id: str, evidence: str = "") -> Question:
    """A typed question, checked: ``BadInput`` with a sentence when empty, too long or not readable text."""
    raise NotImplementedError


def check_database(database: Database) -> None:
    """``BadInput`` when there is nothing to ask about (no table, no view)."""
    raise NotImplementedError


def remember_correction(
    events: Sequence[Event], edited_sql: str, execution: Execution, store: MemoryStore, database: Database
) -> MemoryEntry:
    """A person edited the last attempt, ran it and confirmed it: failed → edited becomes a positive entry."""
    raise NotImplementedError


def undo(
    events: Sequence[Event],
    iteration: int,
    answer: str,
    request: Request,
    model: LanguageModel,
    store: MemoryStore,
    *,
    cancel: threading.Event | None = None,
) -> Iterator[Event]:
    """Take back the judgement of attempt ``iteration`` and go on from ``answer`` ("yes" or "no") instead.

    What the episode left in memory is retracted, and the question is asked again at a new position: recorded
    answers and judgements are replayed up to that attempt, then model and verifier of ``request`` go on.
    ``events`` may be those of a running or stopped episode (cancel its job first).
    """
    raise NotImplementedError


def saved_again(failed: Failed, store: MemoryStore) -> MemoryEntry:
    """Write the entry that could not be written when the episode ended; the merged view. Safe to repeat."""
    raise NotImplementedError
