"""Export and import: ``positive.jsonl`` and ``negative.jsonl``, one merged entry a line (spec §3).

A line holds the fields of the entry, its id and counts, and in ``others`` the further observations of the same
entry; ``visible_from`` and ``order`` (place in the fold among equals) make the round trip exact at every position.
Lines without these four are taken as one observation each, visible from the position after theirs.

What this module does not know: the store that takes in what was read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from merit.episode import Polarity
from merit.errors import BadInput, MemoryUnavailable
from merit.memory.entry import FORMAT_VERSION, MemoryEntry
from merit.memory.legality import members

if TYPE_CHECKING:
    from merit.memory.index import Index
    from merit.memory.legality import View

_ENTRY = TypeAdapter(MemoryEntry)
_Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]


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
class Observed:
    """One observation to take in: the entry and the earliest position that may see it."""

    entry: MemoryEntry
    visible_from: int


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


def read(folder: Path) -> list[Observed]:
    """Every observation of the files of a folder, in order; :class:`BadInput` names the first wrong line."""
    paths = [folder / file_name(polarity) for polarity in Polarity]
    if not any(path.is_file() for path in paths):
        names = " or ".join(path.name for path in paths)
        raise BadInput(f"There is nothing to import in {folder}: no {names}.")
    found: list[tuple[int, Observed]] = []
    for polarity in Polarity:
        path = folder / file_name(polarity)
        if path.is_file():
            for number, line in enumerate(_content(path).split(b"\n"), 1):
                if line.strip():
                    try:
                        found += _line(line, polarity)
                    except ValueError as error:
                        raise BadInput(
                            f"Line {number} of {path.name} cannot be imported: {_reason(error)}. Nothing was imported."
                        ) from error
    return [observed for _, observed in sorted(found, key=lambda pair: pair[0])]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise BadInput(f"{path.name} cannot be read: {error.strerror}. Nothing was imported.") from error


def _line(line: bytes, polarity: Polarity) -> Iterator[tuple[int, Observed]]:
    try:
        values = json.loads(line.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    entry, notes = _split(values)
    if entry.polarity is not polarity:
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


def _split(values: dict[str, Any]) -> tuple[MemoryEntry, _Notes]:
    if values.get("format_version", FORMAT_VERSION) != FORMAT_VERSION:
        raise ValueError(f"it has memory format {values['format_version']}, and this version reads {FORMAT_VERSION}")
    notes = _Notes.model_validate({name: value for name, value in values.items() if name in _Notes.model_fields})
    rest = {name: value for name, value in values.items() if name not in _Notes.model_fields}
    entry = _ENTRY.validate_python(rest, extra="forbid")
    if abs(entry.position) > 2**53:
        raise ValueError("its position is too large")
    return entry, notes


def _reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no valid JSON ({error.msg} at character {error.pos + 1})"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return str(error).rstrip(".")
