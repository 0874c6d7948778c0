"""A backup: everything of some streams of a memory in one .zip file, to become the memory again.

Inside are a manifest and for each stream a file of lines in the order in which things happened: every observation that
lives or belongs to a tagged state, with the position from which it is seen, the tags, what was taken back, and of what
was forgotten only the mark that it was. Vectors are made anew, so a backup moves to another encoder. The file does not
say whose it is.

What this module does not know: which streams a person may see, and where the file is kept.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from merit.errors import BadInput, MemoryUnavailable
from merit.memory.entry import FORMAT_VERSION
from merit.memory.facts import Observed
from merit.memory.overview import useful
from merit.memory.rows import key
from merit.memory.transfer import LAST_POSITION, MANIFEST, Source, entry_of, json_object, lines_of, members_of, reason

if TYPE_CHECKING:
    from merit.memory.index import Index
    from merit.memory.store import MemoryStore

BACKUP_FORMAT = 1

Fact = Observed | dict[str, Any]
"""An observation, or another row of the log."""

_NAMED = ("tag", "untag", "restore")
_Key = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
_Position = Annotated[int, Field(ge=0, le=LAST_POSITION + 1)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Seen(_Line):
    kind: Literal["observation"]
    visible_from: _Position
    entry: dict[str, Any]


class _Named(_Line):
    kind: Literal["tag", "untag", "restore"]
    name: Annotated[str, StringConstraints(min_length=1, max_length=1_000)]


class _Retracted(_Line):
    kind: Literal["retract"]
    episode: _Key


class _Cleared(_Line):
    kind: Literal["clear"]


class _Forgotten(_Line):
    kind: Literal["forgotten"]
    episode: _Key


class _Counted(_Line):
    kind: Literal["floor"]
    floor: _Position
    position: _Position


_LINE: TypeAdapter[_Seen | _Named | _Retracted | _Cleared | _Forgotten | _Counted] = TypeAdapter(
    Annotated[_Seen | _Named | _Retracted | _Cleared | _Forgotten | _Counted, Field(discriminator="kind")]
)


class Manifest(BaseModel):
    """What a backup says of itself; ``streams`` gives the observations of each."""

    model_config = ConfigDict(frozen=True)

    merit_backup: int
    memory_format: int
    created_at: str = Field(max_length=40)
    encoder_id: str
    streams: dict[str, int]


@dataclass(frozen=True)
class Backup:
    """A backup that was read and found whole."""

    manifest: Manifest
    streams: dict[str, tuple[Fact, ...]]


# writing --------------------------------------------------------------------------------------------------


def save(path: Path, stores: Mapping[str, MemoryStore]) -> Manifest:
    """Write a backup of these streams to a file, whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            manifest = pack(file, stores)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise MemoryUnavailable(f"The backup could not be written to {path}: {error.strerror}.") from error
    return manifest


def packed(stores: Mapping[str, MemoryStore]) -> bytes:
    """A backup of these streams, as the bytes of its file."""
    file = io.BytesIO()
    pack(file, stores)
    return file.getvalue()


def pack(file: IO[bytes], stores: Mapping[str, MemoryStore]) -> Manifest:
    """Write a backup of these streams, each under its name."""
    observations: dict[str, int] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, store in stores.items():
            with archive.open(f"{name}.jsonl", "w", force_zip64=True) as lines:
                observations[name] = store.backup(lines)
        manifest = Manifest(
            merit_backup=BACKUP_FORMAT,
            memory_format=FORMAT_VERSION,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            encoder_id=next(iter(stores.values())).encoder.id,
            streams=observations,
        )
        archive.writestr(MANIFEST, manifest.model_dump_json(indent=1))
    return manifest


def write(to: IO[bytes], index: Index, log: Iterable[tuple[int, pa.Table]]) -> int:
    """Write the lines of one stream: its folded log, and the log again. How many observations they hold."""
    kept, observations = useful(index), 0
    for _, rows in log:
        for row in rows.select(["_rowid", "kind", "episode", "body"]).to_pylist():
            if row["_rowid"] >= index.next_sequence:
                break  # written by others meanwhile
            line = _line(row, index, kept)
            if line is not None:
                observations += line["kind"] == "observation"
                _put(to, line)
    for episode in sorted(index.forgotten_episodes):
        _put(to, {"kind": "forgotten", "episode": episode})
    _put(to, {"kind": "floor", "floor": index.last_position + 1, "position": index.counter})
    return observations


def _line(row: dict[str, Any], index: Index, kept: Any) -> dict[str, Any] | None:
    kind = row["kind"]
    if kind in ("observation", "returned"):
        at = int(np.searchsorted(index.sequence, row["_rowid"]))
        if at == index.size or index.sequence[at] != row["_rowid"] or not kept[at]:
            return None
        return {
            "kind": "observation",
            "visible_from": int(index.visible_from[at]),
            "entry": index.entry(at).to_json(),
        }
    if kind in _NAMED:
        return {"kind": kind, "name": json.loads(row["body"])}
    if kind == "retract":
        return {"kind": kind, "episode": row["episode"]}
    return {"kind": kind} if kind == "clear" else None


def _put(to: IO[bytes], line: dict[str, Any]) -> None:
    to.write(json.dumps(line).encode("ascii") + b"\n")


# reading --------------------------------------------------------------------------------------------------


def load(path: Path, name: str = "") -> Backup:
    """Read a backup and check every line of it; ``BadInput`` names the first wrong one. ``name`` is what a person
    calls the file."""
    name = name or path.name
    if not path.is_file():
        raise BadInput(f"There is no backup at {path}.")
    if MANIFEST not in members_of(path, name):
        raise BadInput(f"{name} is no backup of a memory: there is no {MANIFEST} in it. An export is imported instead.")
    with zipfile.ZipFile(path) as archive:
        manifest = _manifest(name, archive)
        streams = {}
        for stream, observations in manifest.streams.items():
            if f"{stream}.jsonl" not in archive.namelist():
                raise BadInput(f"{name} is not whole: there is no {stream}.jsonl in it. Nothing was restored.")
            facts = tuple(_facts(Source(f"{stream}.jsonl", partial(archive.open, f"{stream}.jsonl"))))
            if sum(isinstance(fact, Observed) for fact in facts) != observations:
                raise BadInput(
                    f"{name} is not whole: observations of {stream}.jsonl are missing. Nothing was restored."
                )
            streams[stream] = facts
    return Backup(manifest, streams)


def forgotten(fact: Fact, index: Index) -> bool:
    """Whether a fact of a backup was forgotten here, and so must not return."""
    return isinstance(fact, Observed) and key(fact.entry.episode_id) in index.forgotten_episodes


def _manifest(name: str, archive: zipfile.ZipFile) -> Manifest:
    try:
        with archive.open(MANIFEST) as file:
            values = json_object(file.read(1 << 20))
        version = values.get("merit_backup")
        if version != BACKUP_FORMAT or values.get("memory_format") != FORMAT_VERSION:
            raise BadInput(
                f"{name} has backup format {version!s:.20} of memory format {values.get('memory_format')!s:.20}; this "
                f"version reads {BACKUP_FORMAT} and {FORMAT_VERSION}. Restore it with the version that wrote it."
            )
        return Manifest.model_validate(values)
    except BadInput:
        raise
    except ValueError as error:
        raise BadInput(f"{MANIFEST} of {name} cannot be read: {reason(error)}. Nothing was restored.") from error
    except (OSError, zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError) as error:
        raise BadInput(f"{name} cannot be unpacked: it is damaged or locked. Nothing was restored.") from error


def _facts(source: Source) -> Iterator[Fact]:
    for number, line in lines_of(source):
        try:
            yield _fact(_LINE.validate_python(json_object(line)))
        except (ValidationError, ValueError) as error:
            raise BadInput(
                f"Line {number:,} of {source.name} cannot be restored: {reason(error)}. Nothing was restored."
            ) from error


def _fact(line: BaseModel) -> Fact:
    match line:
        case _Seen():
            entry = entry_of(line.entry)
            if line.visible_from <= entry.position:
                raise ValueError("an observation cannot be visible at its own position or earlier")
            return Observed(entry, line.visible_from)
        case _Named():
            return {"kind": line.kind, "body": json.dumps(line.name)}
        case _Forgotten():
            return {"kind": "forget", "entry": "", "episode": line.episode, "floor": 0}
        case _:
            return line.model_dump()
