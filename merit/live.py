"""What the Ask page and the command line share: ask, keep the bundle, find it again, correct it, undo it.

Every verb is a thin layer over ``run_episode``; there is no second loop. A live stream has a counter (spec §8): each
question that is asked takes the next position, and nothing that becomes visible later can reach it.

What this module does not know: streamlit, terminals, threads (``merit.jobs`` runs these generators).
"""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from merit import trace
from merit.database import Database, samples, uploads
from merit.diagnosis import FAILURES, diagnose
from merit.episode import Execution, Outcome, Polarity, Question, Status
from merit.errors import BadInput, MeritError, told_as
from merit.events import LAST_EVENTS, AttemptMade, EpisodeStarted, Event, Executed, Failed, Judged, TokenStreamed
from merit.memory.entry import EntryView, MemoryEntry
from merit.repair import run_episode
from merit.replaying import ReplayingModel, ReplayingVerifier
from merit.settings import settings

if TYPE_CHECKING:
    from merit.memory import MemoryStore
    from merit.models.language import LanguageModel
    from merit.strategy import Strategy
    from merit.verification import Verifier

log = logging.getLogger(__name__)

MAX_QUESTION_CHARS = 2_000
MAX_EVIDENCE_CHARS = 4_000
BY_PERSON = "edited by a person"
"""Stands as ``model_id`` and ``prompt_version`` of an entry whose new SQL a person wrote."""


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


def make_question(text: str, database_id: str, evidence: str = "") -> Question:
    """A typed question, checked: ``BadInput`` with a sentence when empty, too long or not readable text."""
    text, evidence = text.strip(), evidence.strip()
    if not text:
        raise BadInput("Please type a question first.")
    for name, value, most in (("question", text, MAX_QUESTION_CHARS), ("hint", evidence, MAX_EVIDENCE_CHARS)):
        if len(value) > most:
            raise BadInput(
                f"The {name} has {len(value):,} characters; at most {most:,} can be used. Please shorten it."
            )
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise BadInput(f"The {name} holds characters that are no text. Please type it again.")
    return Question(text, database_id, evidence)


def check_database(database: Database) -> None:
    """``BadInput`` when there is nothing to ask about (no table, no view)."""
    if not database.tables:
        raise BadInput(f"The database {database.id} has no tables, so there is nothing to ask about.")


def ask(
    request: Request, model: LanguageModel, store: MemoryStore, *, cancel: threading.Event | None = None
) -> Iterator[Event]:
    """Ask one question at the next position of the live stream and keep its bundle.

    Yields the events of ``run_episode``; the bundle ``episodes/<id>.jsonl`` is on disk before the last of them
    is yielded. A bundle that cannot be written costs a warning in the log, never the episode.
    """
    check_database(request.database)
    position = store.next_position()
    events = run_episode(
        request.question,
        request.database,
        model,
        request.verifier,
        store,
        request.strategy,
        position,
        request.budget,
        initial=request.initial,
        cancel=cancel,
        seed=request.seed,
    )
    # A private stream is named after its owner, and a bundle is shared: it must not say who.
    yield from kept(events, request.owner, f"{store.stream.partition(':')[0]}@{position}", quantisation_of(model))


def history(owner: str, limit: int = 50) -> list[EpisodeSummary]:
    """The episodes of ``owner`` on this machine, newest first, at most ``limit``."""
    found: list[EpisodeSummary] = []
    files = []
    for file in settings().episodes_dir.glob("*.jsonl"):
        with suppress(OSError):  # deleted meanwhile
            files.append((file.stat().st_mtime_ns, file))
    for changed, file in sorted(files, reverse=True):
        header = _header(file, changed)
        if header is not None and header.owner_key == owner_key(owner):
            found.append(EpisodeSummary(**{item.name: getattr(header, item.name) for item in fields(EpisodeSummary)}))
        if len(found) == limit:
            break
    return found


def load(episode_id: str, owner: str) -> tuple[Event, ...]:
    """The events of one finished episode of ``owner``; anybody else gets the ``BadInput`` of one that is not there."""
    file = bundle_path(episode_id)
    if not file.is_file() or trace.read_header(file).owner_key != owner_key(owner):
        raise BadInput("This episode is not on this machine, or it is not yours.")
    return trace.read_bundle(file).events


def recording(episode_id: str, owner: str) -> trace.Bundle:
    """The bundle of a finished episode: one of ``owner``, or one on a sample database, whose data are everybody's, for
    whoever has its id (it cannot be guessed). ``BadInput`` for any other, as if it was not there."""
    file = bundle_path(episode_id)
    if file.is_file():
        header = trace.read_header(file)
        if header.owner_key == owner_key(owner) or header.schema_hash == _sample_schema(header.database_id):
            return trace.read_bundle(file)
    raise BadInput("This episode is not on this machine, or it is not yours.")


@lru_cache(maxsize=64)
def _sample_schema(database_id: str) -> str | None:
    """The hash of a sample's schema as episodes carry it; None where no sample has this id."""
    if database_id not in samples.ids():
        return None
    schema = Database.open(samples.path(database_id), id=database_id).schema("listing")
    return hashlib.sha256(schema.encode("utf-8", "surrogatepass")).hexdigest()


def forget_recording(episode_id: str, owner: str) -> None:
    """Delete the bundle of an episode of ``owner``; ``BadInput`` for any other, as if it was not there."""
    file = bundle_path(episode_id)
    if not file.is_file() or trace.read_header(file).owner_key != owner_key(owner):
        raise BadInput("This episode is not on this machine, or it is not yours.")
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise MeritError(f"The recording could not be deleted: {error.strerror}.") from error


def forget_recordings(owner: str, database_id: str) -> int:
    """Delete the bundles of this owner's episodes on one database; how many there were."""
    key, gone = owner_key(owner), 0
    for file in settings().episodes_dir.glob("*.jsonl"):
        header = _header(file, file.stat().st_mtime_ns)
        if header is not None and header.owner_key == key and header.database_id == database_id:
            file.unlink(missing_ok=True)
            gone += 1
    return gone


def remove_upload(owner: str, id: str, store: MemoryStore) -> uploads.Upload:
    """Remove an upload, what it left in memory (``store``: the owner's private stream) and the recordings of its
    episodes; what it was. With the last upload of an owner the whole stream goes. Should the memory fail, the upload is
    still there, to try again."""
    upload = uploads.get(owner, id)
    if len(uploads.list_of(owner)) == 1:
        store.delete_stream()
    else:
        store.forget_database(upload.database_id)
    forget_recordings(owner, upload.database_id)
    return uploads.remove(owner, id)


def bundle_path(episode_id: str) -> Path:
    """Where the bundle of an episode is kept; ``BadInput`` for what is no episode id."""
    if not episode_id.isalnum() or not episode_id.isascii():
        raise BadInput("This is not the id of an episode.")
    return settings().episodes_dir / f"{episode_id}.jsonl"


def owner_key(owner: str) -> str:
    """What is written of an owner: 32 hex digits of sha256, from which the private key cannot be had back.

    Episodes without an owner (the command line) have the key "".
    """
    return "" if not owner else hashlib.sha256(f"merit owner {owner}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def remember_correction(
    events: Sequence[Event], edited_sql: str, execution: Execution, store: MemoryStore, database: Database
) -> EntryView:
    """A person edited the last attempt, ran it and confirmed it: failed → edited becomes a positive entry.

    It is an observation of its own at the next position; ``model_id`` and ``prompt_version`` say that a person wrote
    it. ``BadInput`` when there is nothing to correct: no attempt, a correct one, an edit that did not run or
    changes nothing.
    """
    started = _started(events)
    edited = edited_sql.strip()
    failed, outcome, error = _last_attempt(events)
    if outcome is Outcome.CORRECT:
        raise BadInput("The last answer was judged correct, so there is nothing to correct.")
    if not edited or edited == failed:
        raise BadInput("The SQL was not changed, so there is nothing to remember.")
    if execution.status is not Status.EXECUTED:
        raise BadInput("Only SQL that runs can be remembered as a correction. Run it first.")
    # Who confirms an edit says that the attempt before it was not right, even if nobody had judged that one.
    quoted = outcome if outcome in FAILURES else Outcome.DENOTATION_MISMATCH
    entry = MemoryEntry(
        polarity=Polarity.POSITIVE,
        failure_type=diagnose(quoted, error).failure_type,
        question=started.question.text,
        schema=started.schema,
        database_id=database.id,
        failed_sql=failed,
        new_sql=edited,
        status=quoted,
        db_error=error,
        outcome=Outcome.CORRECT,
        question_id=started.question.id,
        episode_id=uuid.uuid4().hex,
        position=store.next_position(),
        iteration=sum(isinstance(event, AttemptMade) for event in events),
        prompt_version=BY_PERSON,
        model_id=BY_PERSON,
        encoder_id=started.encoder_id,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with told_as("The correction could not be written to memory"):
        return store.finalise(entry)


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
    ``events`` may be those of a running or stopped episode (cancel its job first; a person's verifier that was
    stopped with it is spent, so ``request`` brings a new one).
    """
    if answer not in ("yes", "no"):
        raise BadInput("A judgement is corrected to yes or no.")
    judged = {event.iteration: event.outcome for event in events if isinstance(event, Judged)}
    if judged.get(iteration) not in (Outcome.CORRECT, Outcome.DENOTATION_MISMATCH):
        raise BadInput("Nobody said yes or no to this attempt, so there is no answer to take back.")
    corrected = Outcome.CORRECT if answer == "yes" else Outcome.DENOTATION_MISMATCH
    store.retract(_started(events).episode_id)
    again = Request(
        request.question,
        request.database,
        request.strategy,
        ReplayingVerifier(request.verifier, events, iteration, corrected),
        request.budget,
        request.owner,
        request.seed,
        request.initial,
    )
    yield from ask(again, ReplayingModel(model, events, iteration), store, cancel=cancel)


def saved_again(failed: Failed, store: MemoryStore) -> EntryView:
    """Write the entry that could not be written when the episode ended; the merged view. Safe to repeat."""
    if failed.unsaved is None:
        raise BadInput("Nothing of this episode is waiting to be saved.")
    with told_as("The memory still cannot be written"):
        return store.finalise(failed.unsaved)


def quantisation_of(model: object) -> str:
    """How the weights of a model are stored, "" where it does not say."""
    return str(getattr(getattr(model, "info", None), "quantisation", ""))


def kept(events: Iterator[Event], owner: str, memory_version: str, quantisation: str = "") -> Iterator[Event]:
    """Pass the events of an episode on; its bundle is written before the last one is out."""
    seen: list[Event] = []
    for event in events:
        if not isinstance(event, TokenStreamed):
            seen.append(event)
        if isinstance(event, LAST_EVENTS):
            _save(seen, owner, memory_version, quantisation)
        yield event


def _save(events: Sequence[Event], owner: str, memory_version: str, quantisation: str) -> None:
    if not isinstance(events[0], EpisodeStarted):
        return  # it failed before it began: there is nothing to replay
    try:
        file = bundle_path(events[0].episode_id)
        trace.write_bundle(
            file, events, owner_key=owner_key(owner), memory_version=memory_version, quantisation=quantisation
        )
    except (OSError, MeritError) as error:
        log.warning("The recording of episode %s was not kept (%s).", events[0].episode_id, type(error).__name__)


@lru_cache(maxsize=4096)
def _header(file: Path, changed_ns: int) -> trace.BundleHeader | None:
    """The header of a bundle, read once per change; None for a file that is none."""
    try:
        return trace.read_header(file)
    except BadInput:
        return None


def _started(events: Sequence[Event]) -> EpisodeStarted:
    if not events or not isinstance(events[0], EpisodeStarted):
        raise BadInput("This episode did not begin, so there is nothing to correct.")
    return events[0]


def _last_attempt(events: Sequence[Event]) -> tuple[str, Outcome, str | None]:
    """SQL, outcome and DBMS message of the last attempt that was executed; NOT_JUDGED where nobody judged it."""
    sql = {event.iteration: event.sql for event in events if isinstance(event, AttemptMade)}
    outcome = {event.iteration: event.outcome for event in events if isinstance(event, Judged)}
    executed = [event for event in events if isinstance(event, Executed)]
    if not executed:
        raise BadInput("This episode has no answer that was run, so there is nothing to correct.")
    last = executed[-1]
    return sql[last.iteration], outcome.get(last.iteration, Outcome.NOT_JUDGED), last.error
