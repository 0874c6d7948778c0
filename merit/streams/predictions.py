"""First answers that somebody brings along, aligned and checked question by question.

Understood are JSON lines, a JSON list, BIRD's object of answers by number, and a file with one SQL a line. An entry is
paired by question id, else by its number, else by database and question text, else by its place; where it says
which database or question it answers, that must be the one it is paired with. What else an entry holds (a gold query,
a verdict of elsewhere) is never read.

What this module does not know: whether an answer is right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merit.episode import Question
from merit.errors import BadInput
from merit.streams.datasets import TOLD_AT_ONCE, Dataset

LARGEST_FILE = 200 << 20
SQL_NAMES = ("predicted", "prediction", "predicted_sql", "pred_sql", "pred", "sql", "generated_sql")
NUMBER_NAMES = ("source_index", "index", "idx")
_BIRD = re.compile(r"\t-+ *bird *-+\t", re.IGNORECASE)


@dataclass(frozen=True)
class Predictions(Sequence[str]):
    """One SQL a question of a dataset, in its order; ``""`` where a question was not answered.

    Indexed by place or by question id. ``covered`` are the ids that the file speaks of: a question with an empty
    answer is covered, one that the file does not name is not.
    """

    question_ids: tuple[str, ...]
    sql: tuple[str, ...]
    covered: frozenset[str]

    def __len__(self) -> int:
        return len(self.sql)

    def __getitem__(self, key: Any) -> Any:
        return self.sql[self.question_ids.index(key)] if isinstance(key, str) else self.sql[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.sql)

    @property
    def by_id(self) -> dict[str, str]:
        """The covered questions with their SQL."""
        return {id: sql for id, sql in zip(self.question_ids, self.sql, strict=True) if id in self.covered}


@dataclass(frozen=True)
class _Entry:
    """One answer as the file has it; ``place`` is its line or key, from 1 for lines."""

    place: str
    sql: str
    question_id: str | None = None
    number: int | None = None
    database_id: str | None = None
    text: str | None = None


def load_predictions(path: str | Path, dataset: Dataset) -> Predictions:
    """The first answers in the file at ``path`` for the questions of ``dataset``; ``BadInput`` with the first places
    that do not fit. A file may cover a part of the dataset where its entries say what they answer."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise BadInput(f"There is no file of predictions at {file}.")
    if file.stat().st_size > LARGEST_FILE:
        raise BadInput(f"{file.name} is larger than {LARGEST_FILE >> 20} MB; that is no file of predictions.")
    return read_predictions(file.read_bytes(), dataset, file.name)


def read_predictions(data: bytes, dataset: Dataset, name: str = "The file") -> Predictions:
    """The same from the bytes of a file."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{name} is not UTF-8 text. Save it as UTF-8.") from None
    entries = _entries(text, name)
    if not entries:
        raise BadInput(f"{name} holds no predictions.")
    return _aligned(entries, dataset, name)


def _entries(text: str, name: str) -> list[_Entry]:
    start = text.lstrip()[:1]
    if start == "[":
        return [_entry(item, str(number), name) for number, item in enumerate(_json(text, name), 1)]
    if start != "{":
        return [_line(line, number) for number, line in enumerate(_statements(text), 1)]
    try:
        items = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        items = [_json(text, name)]  # not one object a line: one object in all, or a broken file
    if len(items) == 1 and not any(field in items[0] for field in SQL_NAMES):
        return [_keyed(key, value, name) for key, value in items[0].items()]
    return [_entry(item, str(number), name) for number, item in enumerate(items, 1)]


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadInput(f"{name} is not valid JSON{place}.") from None


def _statements(text: str) -> list[str]:
    """One SQL a line; an empty line is a question without an answer, but not at the end of the file."""
    return text.rstrip("\n").split("\n") if text.strip() else []


def _line(line: str, number: int) -> _Entry:
    """``SQL`` or, as Spider's script takes it, ``SQL<tab>database``."""
    sql, _, database = _BIRD.sub("\t", line.rstrip("\r")).rpartition("\t")
    if not sql:
        return _Entry(str(number), database.strip())
    return _Entry(str(number), sql.strip(), database_id=database.strip() or None)


def _keyed(key: str, value: Any, name: str) -> _Entry:
    """One of BIRD's answers by number or id: ``SQL<tab>----- bird -----<tab>database``, or 0 where there is none."""
    if not isinstance(value, str) and value not in (0, None):
        raise BadInput(f"{name} is one JSON object; each of its values must be the SQL of one question.")
    sql, *rest = _BIRD.split(value or "")
    number = int(key) if key.isdecimal() else None
    return _Entry(key, sql.strip(), key, number, rest[0].strip() if rest else None)


def _entry(item: Any, place: str, name: str) -> _Entry:
    if isinstance(item, str):
        return _Entry(place, item.strip())
    if not isinstance(item, dict) or all(field not in item for field in SQL_NAMES):
        raise BadInput(f"{name}: entry {place} has no SQL. Its field must be one of {', '.join(SQL_NAMES)}.")
    sql = next(item[field] for field in SQL_NAMES if field in item)
    number = next((item[field] for field in NUMBER_NAMES if isinstance(item.get(field), int)), None)
    id = item.get("question_id")
    return _Entry(
        place,
        sql.strip() if isinstance(sql, str) else "",
        None if id is None else str(id),
        number,
        item.get("db_id") or item.get("database_id"),
        item.get("question"),
    )


def _aligned(entries: Sequence[_Entry], dataset: Dataset, name: str) -> Predictions:
    questions = dataset.questions
    pair = _pairing(entries, dataset, name)
    answers: dict[int, str] = {}
    wrong = []
    for number, entry in enumerate(entries):
        place = pair(number, entry)
        if place is None:
            wrong.append(f"{entry.place} (no such question here)")
        elif problem := _differs(entry, questions[place]):
            wrong.append(f"{entry.place} ({problem})")
        elif place in answers:
            wrong.append(f"{entry.place} (answers a question again)")
        else:
            answers[place] = entry.sql
    if wrong:
        more = f" and {len(wrong) - TOLD_AT_ONCE} more" if len(wrong) > TOLD_AT_ONCE else ""
        raise BadInput(
            f"{name} does not fit {dataset.name} ({len(questions)} questions): {len(wrong)} of {len(entries)} entries "
            f"are about something else: {', '.join(wrong[:TOLD_AT_ONCE])}{more}."
        )
    return Predictions(
        tuple(question.id for question in questions),
        tuple(answers.get(place, "") for place in range(len(questions))),
        frozenset(questions[place].id for place in answers),
    )


def _pairing(entries: Sequence[_Entry], dataset: Dataset, name: str) -> Callable[[int, _Entry], int | None]:
    """How the entries of this file find their question: one way for the whole file."""
    questions = dataset.questions
    by_id = {question.id: place for place, question in enumerate(questions)}
    if all(entry.question_id is not None for entry in entries):
        ids = [str(entry.question_id) for entry in entries]
        if any(id in by_id for id in ids) and not _are_places(ids, by_id, len(questions)):
            return lambda _, entry: by_id.get(str(entry.question_id))
    if all(entry.number is not None for entry in entries):
        count = len(questions)
        return lambda _, entry: entry.number if entry.number is not None and 0 <= entry.number < count else None
    if all(entry.database_id and entry.text for entry in entries):
        by_text: Mapping[tuple[str, str], int] = {
            (q.database_id, _plain(q.text)): place for place, q in reversed(list(enumerate(questions)))
        }
        return lambda _, entry: by_text.get((str(entry.database_id), _plain(str(entry.text))))
    if len(entries) != len(questions):
        raise BadInput(
            f"{name} has {len(entries):,} predictions and {dataset.name} {len(questions):,} questions. Without "
            "question ids they are paired by their place, so there must be as many."
        )
    return lambda number, _: number


def _are_places(keys: Sequence[str], by_id: Mapping[str, int], count: int) -> bool:
    """Whether keys are places 0 … count - 1 rather than ids: BIRD's mini-dev numbers its answers, its ids differ."""
    return any(key not in by_id for key in keys) and {int(key) for key in keys if key.isdecimal()} <= set(range(count))


def _differs(entry: _Entry, question: Question) -> str | None:
    if entry.database_id is not None and entry.database_id != question.database_id:
        return "another database"
    if entry.text is not None and _plain(str(entry.text)) != _plain(question.text):
        return "another question"
    return None


def _plain(text: str) -> str:
    return " ".join(text.split()).lower()
