"""The sample databases that come with the product: where they are, what they are, what can be asked of them.

They lie in ``sample_dbs/`` at the repository root, beside the merit package; ``merit.database.sample_source`` wrote
them. What this module does not know: how a file is opened or a question answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from merit.episode import Question
from merit.errors import BadInput

ROOT = Path(__file__).resolve().parents[2] / "sample_dbs"

Difficulty = Literal["easy", "medium", "hard", "extra"]


@dataclass(frozen=True)
class SampleInfo:
    """What a sample database is: a title, one sentence, and the SPDX id of its licence."""

    title: str
    description: str
    licence: str


@dataclass(frozen=True)
class SampleRecord:
    """One sample question with what its list says of it.

    ``difficulty`` is Spider's hardness of the gold query, ``ordered`` says that the order of the rows is asked for,
    ``empty`` that the right answer has no rows.
    """

    question: Question
    difficulty: Difficulty
    ordered: bool
    empty: bool


class _Line(BaseModel):
    """One entry of questions.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question_id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    gold_sql: str = Field(min_length=1)
    evidence: str
    difficulty: Difficulty
    ordered: bool
    empty: bool = False


_LINES = TypeAdapter(tuple[_Line, ...])


def ids() -> tuple[str, ...]:
    """The ids of all sample databases, sorted."""
    return tuple(sorted(file.parent.name for file in ROOT.glob("*/questions.json")))


def path(id: str) -> Path:
    """The SQLite file of a sample database; raises BadInput for an unknown id."""
    return _folder(id) / f"{id}.sqlite"


def questions(id: str) -> list[Question]:
    """The sample questions of a database, gold inside, in the order of its list."""
    return [record.question for record in records(id)]


@cache
def records(id: str) -> tuple[SampleRecord, ...]:
    """The sample questions with difficulty, ordered and empty; raises BadInput for an unknown id or a broken list."""
    file = _folder(id) / "questions.json"
    try:
        lines = _LINES.validate_json(file.read_bytes())
    except ValidationError as error:
        # The places only: a value of the list may quote gold.
        places = ", ".join(sorted({".".join(map(str, problem["loc"])) for problem in error.errors()}))
        raise BadInput(f"The question list {file} is not as it should be (at {places or 'its start'}).") from None
    return tuple(
        SampleRecord(
            Question(line.question, id, line.evidence, line.gold_sql, line.question_id),
            line.difficulty,
            line.ordered,
            line.empty,
        )
        for line in lines
    )


@cache
def info(id: str) -> SampleInfo:
    """Title and description from the README of a sample database, the licence from its LICENSE."""
    folder = _folder(id)
    readme = (folder / "README.md").read_text(encoding="utf-8").split("\n\n")
    licence = (folder / "LICENSE").read_text(encoding="utf-8").splitlines()[0]
    return SampleInfo(readme[0].removeprefix("# "), readme[1], licence.removeprefix("SPDX-License-Identifier: "))


def _folder(id: str) -> Path:
    known = ids()
    if id not in known:
        raise BadInput(f"There is no sample database called {id!r}. Known ones: {', '.join(known)}.")
    return ROOT / id
