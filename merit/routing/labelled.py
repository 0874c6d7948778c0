"""Labelled failures: the set that comes with the product, and files of one's own, checked line by line.

A file is CSV in UTF-8 whose first line names the columns of ``COLUMNS``; only ``status`` and ``message`` must be there,
so that a file without labels can be labelled on the page. What is wrong is told by line.

What this module does not know: whether a label is right, and how the rules decide beyond asking them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from merit.diagnosis import FAILURES, diagnose
from merit.episode import FailureType, Outcome
from merit.errors import BadInput

BUNDLED = Path(__file__).resolve().parents[2] / "assets" / "routing_validation" / "failures.csv"
LARGEST_FILE = 10 << 20
MOST_ROWS = 10_000
LONGEST_FIELD = 20_000
_TOLD = 100

COLUMNS = {
    "status": "how it failed: DENOTATION_MISMATCH, EXECUTION_ERROR or TIMEOUT",
    "message": "what the database said; empty where it said nothing",
    "label": "the right failure type by a first labeller",
    "second_label": "the same by a second, independent labeller",
    "own_label": "your own; this is what labelling on the page writes",
    "id": "a name for the failure; without it, its line",
    "source": "where it comes from; failures of the source “model” are the population that weighted accuracy is about",
    "database_id": "the database it failed on",
    "question": "the question it should answer",
    "evidence": "the hint that came with the question",
    "sql": "the statement that failed",
}
"""The columns and what each one means; the first two must be there."""
REQUIRED = ("status", "message")
LABELS = ("label", "second_label", "own_label")
POPULATION = "model"


@dataclass(frozen=True)
class Failure:
    """One failure with the labels it was given; a label that nobody gave is None."""

    id: str
    status: Outcome
    message: str
    label: FailureType | None = None
    second_label: FailureType | None = None
    own_label: FailureType | None = None
    source: str = ""
    database_id: str = ""
    question: str = ""
    evidence: str = ""
    sql: str = ""

    @property
    def ruled(self) -> FailureType:
        """The label of the rules."""
        return diagnose(self.status, self.message).failure_type


@dataclass(frozen=True)
class Problem:
    """One wrong line, counted from 1 with the first line that names the columns, and what is wrong with it."""

    line: int
    sentence: str


@dataclass(frozen=True)
class Read:
    """What a file holds: its failures, or what is wrong with its lines (at most 100 of them are told)."""

    failures: tuple[Failure, ...]
    problems: tuple[Problem, ...]
    more: int = 0


@cache
def bundled() -> tuple[Failure, ...]:
    """The set in ``assets/routing_validation``, whose README says how its labels came about."""
    found = read(BUNDLED.read_bytes())
    if found.problems:
        raise BadInput(f"{BUNDLED.name}, line {found.problems[0].line}: {found.problems[0].sentence}")
    return found.failures


def population(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """The failures a weighted accuracy is about: those of the source “model”, or all where there are none."""
    everything = tuple(failures)
    return tuple(failure for failure in everything if failure.source == POPULATION) or everything


def labelled(failure: Failure, label: FailureType | None) -> Failure:
    """The same failure with one's own label."""
    return replace(failure, own_label=label)


def to_csv(failures: Iterable[Failure]) -> bytes:
    """As a file that :func:`read` gives back the same."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [field.name for field in fields(Failure)]
    writer.writerow(names)
    for failure in failures:
        writer.writerow([getattr(failure, name) or "" for name in names])
    return out.getvalue().encode("utf-8", "surrogatepass")


def read(data: bytes) -> Read:
    """The failures of a CSV file. ``BadInput`` where it cannot be read as a whole: too large, another encoding, other
    columns, no rows."""
    failures: list[Failure] = []
    problems: list[Problem] = []
    wrong = 0
    seen: dict[str, int] = {}
    for number, (line, row) in enumerate(_rows(_text(data)), 1):
        if number > MOST_ROWS:
            raise BadInput(
                f"The file has more than {MOST_ROWS:,} rows. A sample is enough to measure with: keep at most "
                f"{MOST_ROWS:,}."
            )
        found = _failure(line, row, seen)
        if isinstance(found, Failure):
            failures.append(found)
        else:
            wrong += 1
            if len(problems) < _TOLD:
                problems.append(found)
    if not failures and not problems:
        raise BadInput("The file names its columns, but has no rows.")
    return Read(tuple(failures), tuple(problems), wrong - len(problems))


def _text(data: bytes) -> str:
    if len(data) > LARGEST_FILE:
        raise BadInput(f"The file is larger than {LARGEST_FILE >> 20} MB. Keep at most {MOST_ROWS:,} rows.")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise BadInput("The file is UTF-16 text. Save it as “CSV UTF-8” and send it again.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(f"The file is not UTF-8 text (line {line}). Save it as “CSV UTF-8” and send it again.") from None


def _rows(text: str) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Each row that is not empty with the line it begins on; None for one with more fields than there are names."""
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name.strip().lower() for name in next(reader, [])]
        _check_names(names)
        before = reader.line_num
        for row in reader:
            if any(cell.strip() for cell in row):
                yield before + 1, dict(zip(names, row, strict=False)) if len(row) <= len(names) else None
            before = reader.line_num
    except csv.Error as error:
        raise BadInput(f"The file cannot be read as CSV at line {reader.line_num} ({error}).") from None


def _check_names(names: list[str]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        there = ", ".join(name[:40] for name in names[:12]) or "nothing"
        raise BadInput(
            f"The first line must name the columns; {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} "
            f"missing. It names: {there}."
        )
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"The column {twice[:40]} is there twice.")


def _failure(line: int, row: dict[str, str] | None, seen: dict[str, int]) -> Failure | Problem:
    if row is None:
        return Problem(line, "It has more fields than the first line has columns. Is a comma not in quotes?")
    values = {name: row.get(name, "").strip() for name in COLUMNS}
    for name, value in values.items():
        if "\0" in value:
            return Problem(line, f"The field {name} holds a NUL, which is no text.")
        if len(value) > LONGEST_FIELD:
            return Problem(line, f"The field {name} has {len(value):,} characters; at most {LONGEST_FIELD:,} are read.")
    if values["status"].upper() not in FAILURES:
        return Problem(line, f"The status “{values['status'][:40]}” is no failure; it is one of {', '.join(FAILURES)}.")
    for name in LABELS:
        if values[name] and _label(values[name]) is None:
            return Problem(line, f"The {name} “{values[name][:40]}” is none of the types: {', '.join(FailureType)}.")
    id = values["id"] or f"line {line}"
    if id in seen:
        return Problem(line, f"The id “{id[:40]}” is that of line {seen[id]} again.")
    seen[id] = line
    return Failure(
        id=id,
        status=Outcome(values["status"].upper()),
        message=values["message"],
        label=_label(values["label"]),
        second_label=_label(values["second_label"]),
        own_label=_label(values["own_label"]),
        source=values["source"],
        database_id=values["database_id"],
        question=values["question"],
        evidence=values["evidence"],
        sql=values["sql"],
    )


_NAMES = {kind.lower(): kind for kind in FailureType}


def _label(text: str) -> FailureType | None:
    return _NAMES.get(text.lower())
