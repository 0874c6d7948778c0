"""Export and import: ``positive.jsonl`` and ``negative.jsonl``, one merged entry a line (spec §3).

A line holds the fields of the entry, its id and counts, and in ``others`` the further observations of the same
entry; ``visible_from`` and ``order`` (place in the fold among equals) make the round trip exact at every position.
Lines without these four are taken as one observation each, visible from the position after theirs.

What this module does not know: the store that takes in what was read.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from merit.episode import Polarity
from merit.errors import BadInput, MemoryUnavailable
from merit.memory.entry import FORMAT_VERSION, MemoryEntry
from merit.memory.facts import Observed
from merit.memory.legality import members

if TYPE_CHECKING:
    from merit.memory.index import Index
    from merit.memory.legality import View

_ENTRY = TypeAdapter(MemoryEntry)
_Whole = Annotated[int, Field(ge=0, le=2**53)]
_EXPECTED = {f"{polarity}.jsonl": polarity for polarity in Polarity}

MANIFEST = "manifest.json"
"""What a backup has inside and an export has not."""
LAST_POSITION = 10**9
"""Positions go on counting from the largest there is: a wrong one would stay in the memory's way for good."""
MOST_BYTES = 1 << 30
MOST_BYTES_A_LINE = 1 << 26


class _Notes(BaseModel):
    """What a line says beyond the fields of an entry."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str | None = None
    successes: int | None = None
    failures: int | None = None
    visible_from: _Whole | None = None
    order: _Whole | None = None
    others: list[dict[str, Any]] = []


@dataclass(frozen=True)
class Source:
    """A file to read lines from: what a person calls it, and how it is opened."""

    name: str
    open: Callable[[], IO[bytes]]


def file_name(polarity: Polarity) -> str:
    """``positive.jsonl`` or ``negative.jsonl``."""
    return f"{polarity}.jsonl"


def write(folder: Path, index: Index, view: View) -> None:
    """Write both files, each by one rename."""
    order = {int(row): number for number, row in enumerate(np.flatnonzero(view.legal))}
    lines: dict[Polarity, list[tuple[int, str, str]]] = {polarity: [] for polarity in Polarity}
    for row in view.rows:
        everyone = members(index, view, int(row))
        positives = int(index.positive[everyone].sum())
        entry = index.entry(int(row))
        line = {
            "id": entry.id,
            **_observed(index, int(row), order),
            "successes": positives,
            "failures": len(everyone) - positives,
            "others": [_observed(index, int(other), order) for other in everyone if other != row],
        }
        lines[entry.polarity].append((int(index.position[everyone[0]]), entry.id, json.dumps(line)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for polarity, found in lines.items():
            whole = folder / file_name(polarity)
            part = whole.with_suffix(".part")
            part.write_text("".join(f"{line}\n" for _, _, line in sorted(found)), encoding="ascii")
            os.replace(part, whole)
    except OSError as error:
        raise MemoryUnavailable(f"The memory could not be written to {folder}: {error.strerror}.") from error


def _observed(index: Index, row: int, order: dict[int, int]) -> dict[str, Any]:
    return index.entry(row).to_json() | {"visible_from": int(index.visible_from[row]), "order": order[row]}


def sources(path: Path, name: str = "") -> list[Source]:
    """What there is to import at a place: a folder with the two files, a .zip of such files, or one file of lines.
    ``name`` is what a person calls it; ``BadInput`` where there is nothing to import."""
    name = name or path.name
    if path.is_dir():
        found = [path / file_name(polarity) for polarity in Polarity if (path / file_name(polarity)).is_file()]
        if not found:
            names = " or ".join(file_name(polarity) for polarity in Polarity)
            raise BadInput(f"There is nothing to import in {path}: no {names}.")
        return [Source(file.name, partial(_open_file, file)) for file in found]
    if not path.is_file():
        raise BadInput(f"There is nothing to import: {path} is not there.")
    if not zipfile.is_zipfile(path):
        return [Source(name, partial(_open_file, path))]
    inside = members_of(path, name)
    if MANIFEST in inside:
        raise BadInput(f"{name} is a backup of a whole memory, not an export. Restore it as a backup.")
    lines = [member for member in inside if member.lower().endswith(".jsonl")]
    if not lines:
        raise BadInput(f"There is nothing to import in {name}: no .jsonl file.")
    return [Source(member.rpartition("/")[2], partial(_open_member, path, member)) for member in lines]


def members_of(path: Path, name: str) -> list[str]:
    """The names inside a .zip; ``BadInput`` where it is none, or would unpack to more than ``MOST_BYTES``."""
    try:
        with zipfile.ZipFile(path) as archive:
            inside = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise BadInput(f"{name} cannot be unpacked: it is no .zip file, or a damaged one.") from error
    if sum(member.file_size for member in inside) > MOST_BYTES:
        raise BadInput(f"{name} would unpack to more than {MOST_BYTES >> 20:,} MB. Bring it in parts.")
    return [member.filename for member in inside]


def _open_file(path: Path) -> IO[bytes]:
    return path.open("rb")


def _open_member(path: Path, member: str) -> IO[bytes]:
    return zipfile.ZipFile(path).open(member)


def read(found: Iterable[Source]) -> list[Observed]:
    """Every observation of these files, in order; :class:`BadInput` names the first wrong line."""
    observations: list[tuple[int, Observed]] = []
    for source in found:
        for number, line in lines_of(source):
            try:
                observations += _line(line, _EXPECTED.get(source.name))
            except ValueError as error:
                raise BadInput(
                    f"Line {number:,} of {source.name} cannot be imported: {reason(error)}. Nothing was imported."
                ) from error
    return [observed for _, observed in sorted(observations, key=lambda pair: pair[0])]


def lines_of(source: Source) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not empty, with their numbers; a byte order mark is no part of the first."""
    total = 0
    try:
        with source.open() as file:
            for number in count(1):
                line = file.readline(MOST_BYTES_A_LINE + 1)
                if not line:
                    return
                total += len(line)
                if len(line) > MOST_BYTES_A_LINE or total > MOST_BYTES:
                    raise BadInput(
                        f"Line {number:,} of {source.name} is longer than {MOST_BYTES_A_LINE >> 20} MB, or the file "
                        f"than {MOST_BYTES >> 20:,} MB. Nothing was imported."
                    )
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if line.strip():
                    yield number, line.rstrip(b"\n")
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        why = getattr(error, "strerror", None) or "the file is damaged, or packed in a way that is not known"
        raise BadInput(f"{source.name} cannot be read: {why}. Nothing was imported.") from error


def _line(line: bytes, expected: Polarity | None) -> Iterator[tuple[int, Observed]]:
    entry, notes = _split(json_object(line))
    if expected is not None and entry.polarity is not expected:
        raise ValueError(f"the entry is {entry.polarity}")
    pairs = [(entry, notes), *(_split(other) for other in notes.others)]
    ids = {one.id for one, _ in pairs} | ({notes.id} if notes.id else set())
    if len(ids) > 1:
        raise ValueError("its id does not fit its failure type and SQL delta")
    positives = sum(one.polarity is Polarity.POSITIVE for one, _ in pairs)
    if (notes.successes or positives, notes.failures or len(pairs) - positives) != (positives, len(pairs) - positives):
        raise ValueError("its counts do not fit its observations")
    last = 2**53  # lines without an order come last, as they stand
    for one, about in pairs:
        visible_from = one.position + 1 if about.visible_from is None else about.visible_from
        if visible_from <= one.position:
            raise ValueError("an observation cannot be visible at its own position or earlier")
        yield last if about.order is None else about.order, Observed(one, visible_from)


def json_object(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; ``ValueError`` says why it is none."""
    try:
        values = json.loads(line.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    return values


def entry_of(values: dict[str, Any]) -> MemoryEntry:
    """The entry of its fields, no more and no fewer; ``ValueError`` says what is wrong."""
    version = values.get("format_version", FORMAT_VERSION)
    if version != FORMAT_VERSION:
        raise ValueError(
            f"it has memory format {version!s:.20}, and this version reads {FORMAT_VERSION}; "
            "export it anew with a version that writes that"
        )
    entry = _ENTRY.validate_python(values, extra="forbid")
    if not 0 <= entry.position <= LAST_POSITION:
        raise ValueError(f"its position is not between 0 and {LAST_POSITION:,}")
    return entry


def _split(values: dict[str, Any]) -> tuple[MemoryEntry, _Notes]:
    notes = _Notes.model_validate({name: value for name, value in values.items() if name in _Notes.model_fields})
    rest = {name: value for name, value in values.items() if name not in _Notes.model_fields}
    return entry_of(rest), notes


def reason(error: ValueError) -> str:
    """Why a line cannot be used, in words, without the full stop."""
    return _words(error).rstrip(".")[:300]


def _words(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    if isinstance(error, json.JSONDecodeError):
        return f"it is no valid JSON ({error.msg} at character {error.pos + 1})"
    if isinstance(error, UnicodeDecodeError):
        wide = error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
        return "it is not UTF-8 text" + (" but UTF-16; save the file as UTF-8" if wide else "")
    return str(error)
