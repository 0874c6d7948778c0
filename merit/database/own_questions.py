"""Questions with gold that a person brings for a database of their own: read, checked line by line, kept.

A file is a JSON list, JSON lines, or CSV with the columns question, gold_sql and, if wished, evidence and question_id
(Spider's ``query`` and BIRD's ``SQL`` are understood as gold_sql). Gold is run once, under the same guard as every
statement. What is wrong is told by line and class; neither gold nor the database's message, which quotes it, is
ever part of what is told.

What this module does not know: whether gold answers its question, and where the questions are kept.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merit.episode import Question, Status
from merit.errors import BadInput

if TYPE_CHECKING:
    from merit.database.database import Database

MOST_QUESTIONS = 1_000
LARGEST_FILE = 5 << 20
LONGEST = {"question": 2_000, "gold_sql": 20_000, "evidence": 4_000, "question_id": 100}
GOLD_NAMES = ("gold_sql", "query", "SQL", "sql")
GOLD_TIMEOUT_S = 10.0
TOLD_AT_ONCE = 20


class ProblemKind(StrEnum):
    """What can be wrong with a line."""

    FORM = "form"
    MISSING = "missing"
    TOO_LONG = "too long"
    REPEATED = "repeated"
    GOLD_FAILS = "gold fails"
    GOLD_SLOW = "gold too slow"
    GOLD_CUT = "gold too large"


@dataclass(frozen=True)
class LineProblem:
    """One wrong line (or entry of a JSON list), counted from 1, with a sentence that holds nothing of its gold."""

    line: int
    kind: ProblemKind
    sentence: str


@dataclass(frozen=True)
class OwnRecord:
    """One question with what its gold says of it: ``ordered``: it sorts; ``empty``: its right answer has no rows."""

    question: Question
    ordered: bool
    empty: bool


@dataclass(frozen=True)
class Checked:
    """What a file holds: the records that can be used, and what is wrong with the other lines."""

    records: tuple[OwnRecord, ...]
    problems: tuple[LineProblem, ...]

    def complete(self) -> tuple[OwnRecord, ...]:
        """The records, if every line is one; else ``BadInput`` that lists the wrong lines."""
        if self.problems:
            told = [f"Line {problem.line}: {problem.sentence}" for problem in self.problems[:TOLD_AT_ONCE]]
            more = len(self.problems) - len(told)
            tail = f" And {more} more." if more > 0 else ""
            raise BadInput(f"The questions were not taken. {' '.join(told)}{tail}")
        if not self.records:
            raise BadInput("The file holds no questions.")
        return self.records


def load(source: bytes | Path, database: Database) -> list[Question]:
    """The questions of a file, gold inside, all checked; ``BadInput`` naming each wrong line."""
    return [record.question for record in check(source, database).complete()]


def check(source: bytes | Path, database: Database) -> Checked:
    """Read a file and run each gold query once. ``BadInput`` when it cannot be read as a whole."""
    records: list[OwnRecord] = []
    problems: list[LineProblem] = []
    seen: dict[str, int] = {}
    for count, (line, fields) in enumerate(_entries(_text(source)), 1):
        if count > MOST_QUESTIONS:
            raise BadInput(f"The file holds more than {MOST_QUESTIONS:,} questions. Please send fewer.")
        found = _record(line, fields, database, seen)
        if isinstance(found, LineProblem):
            problems.append(found)
        else:
            records.append(found)
    return Checked(tuple(records), tuple(problems))


def to_json(records: Iterable[OwnRecord]) -> bytes:
    """How the records are kept on disk, gold inside."""
    kept = [
        {
            "question": record.question.text,
            "gold_sql": record.question.gold_sql,
            "evidence": record.question.evidence,
            "question_id": record.question.id,
            "ordered": record.ordered,
            "empty": record.empty,
        }
        for record in records
    ]
    return json.dumps(kept).encode("ascii")


def from_json(data: bytes, database_id: str) -> tuple[OwnRecord, ...]:
    """What :func:`to_json` wrote."""
    return tuple(
        OwnRecord(
            Question(kept["question"], database_id, kept["evidence"], kept["gold_sql"], kept["question_id"]),
            kept["ordered"],
            kept["empty"],
        )
        for kept in json.loads(data)
    )


def _text(source: bytes | Path) -> str:
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if size > LARGEST_FILE:
        raise BadInput(f"The file is larger than {LARGEST_FILE >> 20} MB. Please send fewer questions.")
    data = source if isinstance(source, bytes) else source.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput("The file is not UTF-8 text. Save it as UTF-8 and send it again.") from None


def _entries(text: str) -> Iterator[tuple[int, Any]]:
    """The entries with their lines; an entry that cannot be read is None."""
    start = text.lstrip()[:1]
    if start == "[":
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError) as error:
            # Its own text may quote the file; the place does not.
            place = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
            raise BadInput(f"The file is no valid JSON list{place}.") from None
        yield from enumerate(entries, 1)
    elif start == "{":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError):
                    yield number, None
    else:
        yield from _rows(text)


def _rows(text: str) -> Iterator[tuple[int, Any]]:
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        names = [name.strip() for name in next(reader, [])]
        if "question" not in names or not set(names) & set(GOLD_NAMES):
            raise BadInput("The first line must name the columns; question and gold_sql are needed.")
        before = reader.line_num
        for row in reader:
            if row:
                yield before + 1, dict(zip(names, row, strict=False))
            before = reader.line_num
    except csv.Error:
        raise BadInput(f"The file cannot be read as CSV at line {reader.line_num}.") from None


def _record(line: int, fields: Any, database: Database, seen: dict[str, int]) -> OwnRecord | LineProblem:
    if not isinstance(fields, dict):
        return LineProblem(line, ProblemKind.FORM, "This is no JSON object with question and gold_sql.")
    gold_name = next((name for name in GOLD_NAMES if fields.get(name)), "gold_sql")
    values = {
        "question": fields.get("question", ""),
        "gold_sql": fields.get(gold_name, ""),
        "evidence": fields.get("evidence") or "",
        "question_id": fields.get("question_id", ""),
    }
    if isinstance(values["question_id"], int):
        values["question_id"] = str(values["question_id"])
    for name, value in values.items():
        if not isinstance(value, str) or "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            return LineProblem(line, ProblemKind.FORM, f"The field {name} is no text.")
        if len(value) > LONGEST[name]:
            sentence = f"The field {name} has {len(value):,} characters; at most {LONGEST[name]:,} can be used."
            return LineProblem(line, ProblemKind.TOO_LONG, sentence)
        if name in ("question", "gold_sql") and not value.strip():
            return LineProblem(line, ProblemKind.MISSING, f"The field {name} is missing or empty.")
    question = Question(
        values["question"].strip(),
        database.id,
        values["evidence"].strip(),
        values["gold_sql"].strip(),
        values["question_id"].strip() or None,
    )
    if earlier := seen.setdefault(question.id, line) != line and seen[question.id]:
        return LineProblem(line, ProblemKind.REPEATED, f"This is the question of line {earlier} again.")
    return _run(line, question, database)


def _run(line: int, question: Question, database: Database) -> OwnRecord | LineProblem:
    gold = str(question.gold_sql)
    found = database.execute(gold, GOLD_TIMEOUT_S, max_rows=100_000)
    if found.status is Status.TIMEOUT:
        return LineProblem(line, ProblemKind.GOLD_SLOW, f"Its gold_sql takes longer than {GOLD_TIMEOUT_S:g} seconds.")
    if found.status is not Status.EXECUTED:
        sentence = "Its gold_sql cannot be run on this database. Try it there; it must be one statement that reads."
        return LineProblem(line, ProblemKind.GOLD_FAILS, sentence)
    if found.truncated:
        return LineProblem(line, ProblemKind.GOLD_CUT, "Its gold_sql returns more than can be compared.")
    return OwnRecord(question, "order by" in gold.lower(), not found.rows)
