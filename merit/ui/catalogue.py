"""The databases a person can ask: the samples, and the uploads of this owner alone, as one list.

What is asked of an upload is remembered in a memory of its owner's own (contract: Places), never in the shared one.

What this module does not know: streamlit, and how an upload is checked and kept (``merit.database.uploads``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from merit.database import samples, uploads
from merit.database.uploads import Upload
from merit.episode import Question
from merit.errors import BadInput

FIRST = "library"
"""The sample that is chosen where nothing else was."""
SHARED = "live"
"""The stream of what is asked of the samples."""
_TRIED = ("easy", "medium", "hard")


@dataclass(frozen=True)
class Listed:
    """One database of the list. ``id`` is its name in prompts, memory and URLs; ``upload`` is None for a sample."""

    id: str
    title: str
    description: str
    path: Path
    upload: Upload | None = None


def all_of(owner: str) -> tuple[Listed, ...]:
    """The samples, then the uploads of ``owner``, newest first."""
    return (*(_sample(id) for id in samples.ids()), *(_uploaded(upload) for upload in uploads.list_of(owner)))


def find(id: str, owner: str) -> Listed:
    """The database with this id; ``BadInput`` when there is none that this owner may see."""
    if id in samples.ids():
        return _sample(id)
    found = next((upload for upload in uploads.list_of(owner) if upload.database_id == id), None)
    if found is None:
        raise BadInput(not_here(id))
    return _uploaded(found)


def not_here(id: str) -> str:
    """The sentence for a database that this owner cannot open, whether there is one or not."""
    return (
        f"There is no database called “{id}” here. An uploaded one opens only in the browser it was uploaded from, "
        f"until it is removed. Samples: {', '.join(samples.ids())}."
    )


def known(id: str, owner: str) -> bool:
    """Whether this owner may open a database of this id now."""
    return any(listed.id == id for listed in all_of(owner))


def stream(id: str, owner: str) -> str:
    """The memory stream of what is asked of this database."""
    return SHARED if id in samples.ids() else private(owner)


def private(owner: str) -> str:
    """The stream of all that is asked of an owner's uploads."""
    return f"private:{owner}"


def questions(id: str, owner: str) -> Sequence[Question]:
    """The questions with gold of a sample, or those its owner brought for an upload."""
    upload = find(id, owner).upload
    return samples.questions(id) if upload is None else uploads.questions(owner, upload.id)


def levels(id: str, owner: str) -> dict[str, str]:
    """Text → difficulty of these questions, in their order; an owner's own have no difficulty ("")."""
    if id in samples.ids():
        return {record.question.text: record.difficulty for record in samples.records(id)}
    return {question.text: "" for question in questions(id, owner)}


def first(id: str, owner: str) -> list[Question]:
    """At most three of these questions to begin with; of a sample an easy, a medium and a hard one."""
    found = questions(id, owner)
    if id not in samples.ids():
        return list(found[:3])
    told = levels(id, owner)
    chosen = [next((question for question in found if told[question.text] == level), None) for level in _TRIED]
    return [question for question in chosen if question is not None]


def _sample(id: str) -> Listed:
    info = samples.info(id)
    return Listed(id, info.title, info.description, samples.path(id))


def _uploaded(upload: Upload) -> Listed:
    return Listed(upload.database_id, upload.title, "", upload.path, upload)
