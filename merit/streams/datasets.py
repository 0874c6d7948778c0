"""Datasets in the layouts people have: Spider, its test suite, BIRD, our samples, a database with its own questions.

A dataset is its questions in the order of the file, each with its database opened when it is first needed. What is
wrong with a file is said by entry and field, never by value: a value may be gold.

What this module does not know: how a question is answered or judged, and in which order a stream asks.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from merit.database import Database, samples
from merit.database.own_questions import OwnRecord
from merit.episode import Question, Status
from merit.errors import BadInput, DatabaseNotFound, DatabaseUnreadable

QUESTION_FILES = (
    "dev.json",
    "mini_dev_sqlite.json",
    "mini_dev.json",
    "test.json",
    "train_spider.json",
    "train.json",
)
"""Where the questions of a folder are looked for, the first that is there."""
DATABASE_FOLDERS = ("database", "test_database", "dev_databases", "train_databases", "databases")
TYPE_FILES = ("tables.json", "dev_tables.json", "train_tables.json", "test_tables.json")
SUFFIXES = (".sqlite", ".db", ".sqlite3")
GOLD_TIMEOUT_S = 30.0
TOLD_AT_ONCE = 10


class _Line(BaseModel):
    """One entry of a question file; what else it holds (parses, tokens) is not looked at."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    db_id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    gold_sql: str | None = Field(None, validation_alias=AliasChoices("SQL", "query", "gold_sql"))
    evidence: str | None = None
    question_id: str | int | None = None
    difficulty: str | None = None


@dataclass(frozen=True)
class GoldFault:
    """A gold query that cannot be evaluated: the question's id, its database and the class of the error.

    ``kind``: ``no gold``, ``database not found``, ``database unreadable``, ``fails``, ``too slow`` or ``too large``.
    """

    question_id: str
    database_id: str
    kind: str


@dataclass(frozen=True)
class Dataset:
    """Questions in file order with where their databases lie.

    ``benchmark`` is "spider", "bird" or None; ``difficulty`` maps question ids where it is known; ``notes`` are
    sentences about what was found odd; ``files`` maps a database id to its file, None where there is none.
    """

    name: str
    benchmark: str | None
    questions: tuple[Question, ...]
    files: Mapping[str, Path | None] = field(repr=False)
    types: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    difficulty: Mapping[str, str] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    _opened: dict[str, Database] = field(default_factory=dict, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    @property
    def missing(self) -> tuple[str, ...]:
        """The ids of databases that have no file, sorted; their questions end as ``database not found``."""
        return tuple(sorted(id for id, file in self.files.items() if file is None))

    def database(self, id: str) -> Database:
        """The opened database of this id, opened once; ``DatabaseNotFound`` where there is no file."""
        with self._lock:
            if id not in self._opened:
                file = self.files.get(id)
                if file is None:
                    raise DatabaseNotFound(f"The dataset {self.name} has no file for the database {id}.")
                self._opened[id] = Database.open(file, id=id, types=self.types.get(id))
            return self._opened[id]

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over the questions with their gold, so that runs over other data are told apart."""
        digest = hashlib.sha256()
        for question in self.questions:
            digest.update(json.dumps([question.public(), question.gold_sql], ensure_ascii=True).encode("ascii"))
        return digest.hexdigest()[:16]

    def only(self, ids: Collection[str]) -> Dataset:
        """The dataset with the questions of these ids, in file order."""
        wanted = set(ids)
        return replace(self, questions=tuple(question for question in self.questions if question.id in wanted))

    def first(self, count: int) -> Dataset:
        """The dataset with its first ``count`` questions."""
        return replace(self, questions=self.questions[:count])

    def gold_faults(self) -> list[GoldFault]:
        """Every question whose gold cannot be evaluated, by running each gold query once; nothing quotes gold."""
        faults = []
        for question in self.questions:
            if kind := self._fault(question):
                faults.append(GoldFault(question.id, question.database_id, kind))
        return faults

    def _fault(self, question: Question) -> str | None:
        if not (question.gold_sql or "").strip():
            return "no gold"
        try:
            database = self.database(question.database_id)
        except DatabaseNotFound:
            return "database not found"
        except DatabaseUnreadable:
            return "database unreadable"
        found = database.execute(str(question.gold_sql), GOLD_TIMEOUT_S, max_rows=200_000)
        if found.truncated:
            return "too large"
        return {Status.EXECUTED: None, Status.TIMEOUT: "too slow"}.get(found.status, "fails")


def load_dataset(path: str | Path) -> Dataset:
    """The dataset at ``path``: a folder in Spider's, the test suite's or BIRD's layout, a question file of one, the
    folder of sample databases or of one of them, the word ``samples`` or the id of a sample database. ``BadInput`` says
    what was looked for and where."""
    place = Path(path).expanduser().resolve()
    if not place.exists() and str(path) in ("samples", *samples.ids()):
        place = samples.ROOT if str(path) == "samples" else samples.ROOT / path
    if not place.exists():
        raise BadInput(f"There is nothing at {place}. Give the folder of a dataset or its question file.")
    if place.is_dir():
        if of_samples := _samples(place):
            return of_samples
        file = next((place / name for name in QUESTION_FILES if (place / name).is_file()), None)
        if file is None:
            raise BadInput(
                f"No questions were found in {place}. Looked for {', '.join(QUESTION_FILES)} there, and for "
                "<id>/questions.json beside <id>/<id>.sqlite."
            )
    else:
        file = place
    return _official(file)


def own_dataset(database: Database, records: Sequence[OwnRecord | Question]) -> Dataset:
    """An opened database with the questions a person brought for it (``merit.database.own_questions``)."""
    questions = tuple(record.question if isinstance(record, OwnRecord) else record for record in records)
    if not questions:
        raise BadInput(f"The database {database.id} has no questions yet. Add some on the Databases page.")
    dataset = Dataset(database.id, None, questions, {database.id: database.path})
    dataset._opened[database.id] = database
    return dataset


def _samples(folder: Path) -> Dataset | None:
    """Our own layout, where ``folder`` has it: all samples, or the folder of one."""
    lists = sorted(folder.glob("*/questions.json")) or [folder / "questions.json"]
    ids = [file.parent.name for file in lists if file.is_file() and file.parent.parent == samples.ROOT]
    if not ids:
        return None
    records = [record for id in ids for record in samples.records(id)]
    return Dataset(
        "samples" if len(ids) > 1 else ids[0],
        None,
        tuple(record.question for record in records),
        {id: samples.path(id) for id in ids},
        difficulty={record.question.id: record.difficulty for record in records},
    )


def _official(file: Path) -> Dataset:
    lines = _lines(file)
    root = file.parent
    databases = next((root / name for name in DATABASE_FOLDERS if (root / name).is_dir()), None)
    raw = [line for line in lines if "SQL" in line or "evidence" in line]
    benchmark = "bird" if raw or (databases and databases.name in DATABASE_FOLDERS[2:4]) else "spider"
    checked = _checked(file, lines)
    questions = tuple(
        Question(
            line.question.strip(),
            line.db_id,
            (line.evidence or "").strip(),
            line.gold_sql,
            str(number if line.question_id is None else line.question_id),
            benchmark,
        )
        for number, line in enumerate(checked)
    )
    repeated = [id for id, count in Counter(question.id for question in questions).items() if count > 1]
    if repeated:
        told = ", ".join(repeated[:TOLD_AT_ONCE])
        raise BadInput(
            f"{file.name} uses {len(repeated)} question ids more than once ({told}). Each question needs its own "
            "question_id; leave them all out to number the questions by their place."
        )
    files = {id: _database_file(databases, id) for id in sorted({question.database_id for question in questions})}
    notes = []
    if databases is None:
        notes.append(
            f"No folder of databases lies beside {file.name}; looked for {', '.join(DATABASE_FOLDERS)}. "
            "Nothing of this dataset can be run."
        )
    elif missing := [id for id, found in files.items() if found is None]:
        notes.append(
            f"{len(missing)} of {len(files)} databases have no file {databases.name}/<id>/<id>.sqlite: "
            f"{', '.join(missing[:TOLD_AT_ONCE])}. Their questions end as database not found."
        )
    if without := sum(not (question.gold_sql or "").strip() for question in questions):
        notes.append(f"{without} of {len(questions)} questions have no gold query and cannot be judged.")
    return Dataset(
        f"{root.name}/{file.stem}",
        benchmark,
        questions,
        files,
        _types(root, set(files)),
        {q.id: line.difficulty for q, line in zip(questions, checked, strict=True) if line.difficulty},
        tuple(notes),
    )


def _lines(file: Path) -> list[dict[str, Any]]:
    """The entries of a question file: a JSON list, or JSON lines."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        if text.lstrip().startswith("["):
            entries: Any = json.loads(text)
        else:
            entries = [json.loads(line) for line in text.splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not UTF-8 text. Save it as UTF-8.") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{file} is no JSON list of questions and no JSON lines.") from None
    if not entries:
        raise BadInput(f"{file} holds no questions.")
    if any(not isinstance(entry, dict) for entry in entries):
        raise BadInput(f"{file} is no list of questions: each entry must be an object with db_id and question.")
    found: list[dict[str, Any]] = entries
    return found


def _checked(file: Path, lines: Sequence[Mapping[str, Any]]) -> list[_Line]:
    checked, wrong = [], []
    for number, line in enumerate(lines, 1):
        try:
            checked.append(_Line.model_validate(line))
        except ValidationError as error:
            fields = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors()}))
            wrong.append(f"entry {number} ({fields})")
    if wrong:
        more = f" and {len(wrong) - TOLD_AT_ONCE} more" if len(wrong) > TOLD_AT_ONCE else ""
        raise BadInput(
            f"{file.name} is not as it should be at {', '.join(wrong[:TOLD_AT_ONCE])}{more}. An entry needs db_id and "
            "question as text, and SQL, query or gold_sql for its answer."
        )
    return checked


def _database_file(databases: Path | None, id: str) -> Path | None:
    """``<id>/<id>.sqlite`` as the benchmarks have it, else a file of that name in the folder itself."""
    if databases is None or Path(id).name != id:
        return None
    for place in (databases / id, databases):
        for suffix in SUFFIXES:
            if (file := place / f"{id}{suffix}").is_file():
                return file
    return None


def _types(root: Path, ids: set[str]) -> dict[str, Mapping[str, Any]]:
    """The entries of tables.json for these databases; one that cannot be read is passed over, as are odd entries."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in TYPE_FILES:
        try:
            entries = json.loads((root / name).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError):
            continue
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and entry.get("db_id") in ids and _is_whole(entry):
                found.setdefault(entry["db_id"], entry)
    return found


def _is_whole(entry: Mapping[str, Any]) -> bool:
    """Whether the three lists that the types are read from are there and fit one another."""
    tables, columns = entry.get("table_names_original"), entry.get("column_names_original")
    types = entry.get("column_types")
    if not (isinstance(tables, list) and isinstance(columns, list) and isinstance(types, list)):
        return False
    return len(columns) == len(types) and all(
        isinstance(column, list) and len(column) == 2 and isinstance(column[0], int) and column[0] < len(tables)
        for column in columns
    )
