"""Events ↔ JSON, and the episode bundle: a JSONL file that can be replayed, compared and shared.

The first line is a header (what is needed to judge whether two episodes can be compared), each further line one
event. Round trips are exact: BLOB cells, NaN and infinities are written as ``{"$bytes": …}`` and ``{"$float": …}``,
everything else is plain JSON in ASCII, so that NUL and lone surrogates survive too.

What this module does not know: how events come about, where bundles are kept, and gold (no event carries any).
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import math
import os
import platform
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from merit.episode import Outcome, Question
from merit.errors import BadInput
from merit.events import (
    AttemptMade,
    EpisodeFinalised,
    Event,
    PromptBuilt,
    Retrieved,
    TokenStreamed,
)
from merit.wholeness import check_order, check_whole, checked

BUNDLE_FORMAT = 1
MAX_BUNDLE_BYTES = 64 * 1024 * 1024
MAX_EVENTS = 5_000
"""Most lines of a bundle: a long episode has some hundred."""
_PACKAGES = ("torch", "transformers", "sentence-transformers", "lancedb", "openai", "sqlglot", "numpy")
_EVENT_CLASSES: dict[str, type[Any]] = {cls.__name__: cls for cls in get_args(Event)}


class BundleHeader(BaseModel):
    """The first line of a bundle. ``owner_key`` is a hash of the owner's private key, "" in a shared recording;
    ``memory_version`` says which state of the memory the episode began with; ``outcome`` is None when the
    episode failed or was stopped; ``ended`` is the class name of the last event. ``quantisation`` is that of the
    model; ``first_answer_given``: the first answer was not generated but handed in (written by hand, say);
    ``title`` and ``shows`` are words for people about a recording that was chosen for what it shows."""

    model_config = ConfigDict(frozen=True)

    format: int
    episode_id: str
    created_at: str
    question: str
    question_id: str
    database_id: str
    schema_hash: str
    model_id: str
    encoder_id: str
    strategy: str
    scope: str
    seed: int
    verifier: str
    ended: str
    outcome: Outcome | None = None
    repairs: int = 0
    memory_version: str = ""
    owner_key: str = ""
    packages: dict[str, str] = {}
    quantisation: str = ""
    first_answer_given: bool = False
    title: str = ""
    shows: str = ""


@dataclass(frozen=True)
class Bundle:
    """One recorded episode: its header and all its events but the streamed tokens."""

    header: BundleHeader
    events: tuple[Event, ...]


def to_json(event: Event) -> dict[str, Any]:
    """The JSON form of an event: its fields, and its class name under ``event``."""
    return {"event": type(event).__name__, **_encode(event)}


def from_json(data: Mapping[str, Any]) -> Event:
    """The event of a JSON form, validated; ``BadInput`` says what is wrong with it."""
    name = data.get("event")
    if not isinstance(name, str) or name not in _EVENT_CLASSES:
        raise BadInput(f"There is no event called {name!r}.")
    try:
        fields = {key: _decode(value) for key, value in data.items() if key != "event"}
        event: Event = _adapter(name).validate_python(fields)
    except ValidationError as error:
        raise BadInput(f"The event {name} is not complete or not valid: {_first_problem(error)}.") from None
    except RecursionError:
        raise BadInput(f"The event {name} is nested too deeply.") from None
    return event


def to_line(event: Event) -> str:
    """One event as one line of JSON, without the line end."""
    return json.dumps(to_json(event), ensure_ascii=True, allow_nan=False)


def trimmed(event: Event) -> Event:
    """The event as a trace keeps it: no more than the best candidates of each pool (``retrieval.SHOWN``)."""
    return dataclasses.replace(event, retrieval=event.retrieval.capped()) if isinstance(event, Retrieved) else event


def write_bundle(
    path: Path,
    events: Iterable[Event],
    *,
    owner_key: str = "",
    memory_version: str = "",
    quantisation: str = "",
    title: str = "",
    shows: str = "",
) -> BundleHeader:
    """Write a finished episode to ``path``, whole or not at all. Streamed tokens are left out.

    The words go into the header. ``BadInput`` when the events are no finished episode.
    """
    kept = tuple(trimmed(event) for event in events if not isinstance(event, TokenStreamed))
    header = _header(kept).model_copy(
        update={
            "owner_key": owner_key,
            "memory_version": memory_version,
            "quantisation": quantisation,
            "title": title,
            "shows": shows,
            "packages": package_versions(),
        }
    )
    lines = [json.dumps(header.model_dump(), ensure_ascii=True), *map(to_line, kept)]
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        draft.write_text("\n".join(lines) + "\n", encoding="ascii")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return header


def read_header(path: Path) -> BundleHeader:
    """The header alone (the first line): cheap enough to list many bundles."""
    try:
        with path.open("rb") as file:
            return _parse_header(path.name, file.readline(1_000_000))
    except OSError:
        raise BadInput(f"The recording {path.name} cannot be opened.") from None


def read_bundle(path: Path) -> Bundle:
    """A bundle, every line validated; ``BadInput`` names the line that is wrong, or says that the file is newer."""
    try:
        if path.stat().st_size > MAX_BUNDLE_BYTES:
            raise BadInput(_too_large(path.name))
        data = path.read_bytes()
    except OSError:
        raise BadInput(f"The recording {path.name} cannot be opened.") from None
    return parse_bundle(path.name, data)


def parse_bundle(name: str, data: bytes) -> Bundle:
    """The bundle in the bytes of a file called ``name``, from wherever it comes: every line is validated, the events
    must make up one episode, and the header must say what they say. ``BadInput`` tells what is wrong."""
    if len(data) > MAX_BUNDLE_BYTES:
        raise BadInput(_too_large(name))
    lines = data.splitlines()
    if not lines:
        raise BadInput(f"The recording {name} is empty.")
    header = _parse_header(name, lines[0])
    if len(lines) > MAX_EVENTS:
        raise BadInput(f"The recording {name} has {len(lines):,} lines; an episode has at most {MAX_EVENTS:,}.")
    events: list[Event] = []
    for number, line in enumerate(lines[1:], start=2):
        data_of_line = _parse_object(name, number, line)
        try:
            events.append(checked(from_json(data_of_line)))
        except BadInput as error:
            raise BadInput(f"Line {number} of {name}: {error}") from None
    try:
        check_whole(events)
        check_order(events)
        told = _header(tuple(events))
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None
    for field in _TOLD:
        if getattr(header, field) != getattr(told, field):
            raise BadInput(f"{name}: its first line and its events do not agree on the {field.replace('_', ' ')}.")
    return Bundle(header.model_copy(update={"first_answer_given": told.first_answer_given}), tuple(events))


def replay(path: Path) -> Iterator[Event]:
    """The events of a recorded episode in their order, as ``run_episode`` gave them, without streamed tokens."""
    yield from read_bundle(path).events


def _header(events: tuple[Event, ...]) -> BundleHeader:
    started, last = check_whole(events)
    prompted = any(isinstance(event, PromptBuilt) and event.iteration == 0 for event in events)
    answered = any(isinstance(event, AttemptMade) for event in events)
    return BundleHeader(
        format=BUNDLE_FORMAT,
        episode_id=started.episode_id,
        created_at=started.created_at,
        question=started.question.text,
        question_id=started.question.id,
        database_id=started.question.database_id,
        schema_hash=started.schema_hash,
        model_id=started.model_id,
        encoder_id=started.encoder_id,
        strategy=started.strategy,
        scope=started.scope,
        seed=started.seed,
        verifier=started.verifier,
        ended=type(last).__name__,
        outcome=last.outcome if isinstance(last, EpisodeFinalised) else None,
        repairs=last.repairs if isinstance(last, EpisodeFinalised) else 0,
        first_answer_given=answered and not prompted,
    )


_TOLD = (
    "episode_id", "created_at", "question", "question_id", "database_id", "schema_hash", "model_id", "encoder_id",
    "strategy", "scope", "seed", "verifier", "ended", "outcome", "repairs",
)  # fmt: skip
"""What a header repeats of its events: a recording must not be listed as something else than it shows."""


def _too_large(name: str) -> str:
    return f"The recording {name} is larger than {MAX_BUNDLE_BYTES // 2**20} MiB."


@lru_cache(maxsize=1)
def package_versions() -> dict[str, str]:
    """Versions of what can change a result: Python, SQLite and the libraries that are installed."""
    versions = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _parse_header(name: str, line: bytes) -> BundleHeader:
    data = _parse_object(name, 1, line)
    version = data.get("format")
    if isinstance(version, int) and version > BUNDLE_FORMAT:
        raise BadInput(
            f"The recording {name} has format {version}; this version of MERIT Explorer reads up to "
            f"{BUNDLE_FORMAT}. A newer version can open it."
        )
    try:
        return BundleHeader.model_validate(data)
    except ValidationError as error:
        raise BadInput(f"Line 1 of {name} is no header of a recording: {_first_problem(error)}.") from None


def _parse_object(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise BadInput(f"Line {number} of {name} is not JSON.") from None
    if not isinstance(data, dict):
        raise BadInput(f"Line {number} of {name} is not a JSON object.")
    return data


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_EVENT_CLASSES[name])


def _encode(value: Any) -> Any:
    if isinstance(value, Question):
        return value.public()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _encode(getattr(value, item.name)) for item in dataclasses.fields(value) if item.init}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(float(value))}
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    try:
        if value.keys() == {"$bytes"}:
            return base64.b64decode(value["$bytes"], validate=True)
        if value.keys() == {"$float"}:
            return float(value["$float"])
    except (binascii.Error, TypeError, ValueError):
        raise BadInput("A cell is written as $bytes or $float but cannot be read.") from None
    return {key: _decode(item) for key, item in value.items()}
