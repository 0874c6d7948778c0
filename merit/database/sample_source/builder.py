"""Writes one sample database: the SQLite file, its questions, its licence and its page of explanation.

The same source gives the same file: every choice comes from a seeded :class:`Dice`, rows go in in one order and
the file is vacuumed. (SQLite stamps its own version into the header, so another SQLite gives other bytes and the
same content.) What this module does not know: any particular database.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TypeVar

from merit.database.sample_source.hardness import hardness

T = TypeVar("T")
Lines = list[tuple[Any, ...]]
Rows = dict[str, Lines]
LICENCE = Path(__file__).with_name("CC0-1.0.txt")


class Dice:
    """Seeded choices on ``random.random`` alone: the one method whose sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._next = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._next() < probability

    def between(self, low: int, high: int) -> int:
        """An integer of ``low … high``, both included."""
        return low + int(self._next() * (high - low + 1))

    def real(self, low: float, high: float, digits: int = 2) -> float:
        """A number of ``low … high``, rounded."""
        return round(low + self._next() * (high - low), digits)

    def bell(self, mean: float, spread: float) -> float:
        """Roughly normal with this standard deviation, never further than six of them away."""
        return mean + spread * (sum(self._next() for _ in range(12)) - 6)

    def pick(self, items: Sequence[T]) -> T:
        """One of them, all equally likely."""
        return items[int(self._next() * len(items))]

    def weighted(self, weights: Mapping[T, float]) -> T:
        """One of the keys, as likely as its weight says."""
        left = self._next() * sum(weights.values())
        for item, weight in weights.items():
            left -= weight
            if left < 0:
                return item
        return item

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different ones, in random order."""
        rest = list(items)
        return [rest.pop(int(self._next() * len(rest))) for _ in range(count)]

    def day(self, first: date, last: date) -> date:
        """A day of ``first … last``, both included."""
        return first + timedelta(days=self.between(0, (last - first).days))


@dataclass(frozen=True)
class Asked:
    """One question as a person asks it, with the gold answer. ``empty`` marks an answer that has no rows on purpose."""

    question: str
    gold_sql: str
    evidence: str = ""
    empty: bool = False


@dataclass(frozen=True)
class Sample:
    """One sample database: what it is, its tables as SQL, the script of its rows, the dirt put in on purpose."""

    id: str
    title: str
    description: str
    seed: int
    tables: str
    rows: Callable[[Dice], Rows]
    dirt: tuple[str, ...]
    questions: tuple[Asked, ...]


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def write(sample: Sample, root: Path) -> Path:
    """Writes ``<root>/<id>/`` with its four files and returns the folder."""
    folder = root / sample.id
    folder.mkdir(parents=True, exist_ok=True)
    counts = _write_database(sample, folder / f"{sample.id}.sqlite")
    (folder / "questions.json").write_text(_questions(sample), encoding="utf-8")
    (folder / "README.md").write_text(_readme(sample, counts), encoding="utf-8")
    licence = LICENCE.read_text(encoding="utf-8")
    (folder / "LICENSE").write_text(f"SPDX-License-Identifier: CC0-1.0\n\n{licence}", encoding="utf-8")
    return folder


def _write_database(sample: Sample, path: Path) -> dict[str, int]:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(sample.tables)
        rows = sample.rows(Dice(sample.seed))
        for table, lines in rows.items():
            marks = ", ".join("?" * len(lines[0]))
            connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", lines)
        connection.commit()
        connection.execute("VACUUM")
    return {table: len(lines) for table, lines in rows.items()}


def _questions(sample: Sample) -> str:
    records: Iterable[dict[str, Any]] = (
        {
            "question_id": f"{sample.id}-{number:02d}",
            "question": asked.question,
            "gold_sql": asked.gold_sql,
            "evidence": asked.evidence,
            "difficulty": hardness(asked.gold_sql),
            "ordered": "order by" in asked.gold_sql.lower(),
            **({"empty": True} if asked.empty else {}),
        }
        for number, asked in enumerate(sample.questions, 1)
    )
    return json.dumps(list(records), indent=1, ensure_ascii=False) + "\n"


def _readme(sample: Sample, counts: dict[str, int]) -> str:
    lines = [f"# {sample.title}", "", sample.description, "", "Everything in it is invented. Licence: CC0-1.0.", ""]
    rows = sum(counts.values())
    lines += [f"{len(counts)} tables, {rows:,} rows, {len(sample.questions)} questions with gold SQL.", ""]
    lines += ["| table | rows |", "|---|---|"]
    lines += [f"| `{table}` | {count:,} |" for table, count in counts.items()]
    lines += ["", "Dirt that was put in on purpose:", ""]
    lines += [f"* {line}" for line in sample.dirt]
    lines += ["", "Written by `python -m merit.database.sample_source`; change the scripts there, not these files."]
    return "\n".join(lines) + "\n"
