"""The gallery of recorded episodes, and the tool that makes it from a list of questions.

A recording is an episode bundle (``merit.trace``) that was chosen for what it shows. Names lead to files of the gallery
folder alone; no address of another machine is ever opened.

What this module does not know: how a recording is played (``merit.playback``) and drawn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from merit import live, trace
from merit.database import Database, samples
from merit.episode import Question
from merit.errors import BadInput
from merit.events import Failed
from merit.memory.facts import TextEncoder
from merit.memory.store import MemoryStore
from merit.models.language import LanguageModel
from merit.strategy import Scope, get
from merit.verification import SpiderVerifier

GALLERY = Path(__file__).resolve().parents[1] / "assets" / "recordings"
"""Where the recordings lie that come with the program."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True)
class Recording:
    """One recording of the gallery: the name that its address carries, and its header."""

    name: str
    header: trace.BundleHeader


class Item(BaseModel):
    """One line of the list. ``question_id`` names a question of the sample ``database``; its own answer judges.

    ``initial``: a first answer written by hand, where the model does not fail in the wanted way by itself; the bundle
    says so. ``name`` "": the episode is lived, so that later ones can recall what it leaves, and not recorded.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    database: str
    question_id: str
    name: str = Field(default="", max_length=60)
    title: str = Field(default="", max_length=120)
    shows: str = Field(default="", max_length=400)
    strategy: str = "same_database"
    scope: Scope | None = None
    budget: int = Field(default=7, ge=0, le=20)
    seed: int = 0
    initial: str | None = None


def gallery(folder: Path = GALLERY) -> tuple[Recording, ...]:
    """All recordings of a folder by name; a file that is none is left out."""
    found = []
    for file in sorted(folder.glob("*.jsonl")):
        header = _header(file, file.stat().st_mtime_ns)
        if header is not None and _NAME.fullmatch(file.stem):
            found.append(Recording(file.stem, header))
    return tuple(found)


def load(name: str, folder: Path = GALLERY) -> trace.Bundle:
    """The recording of this name; ``BadInput`` where there is none. A name is no path and no address."""
    file = folder / f"{name}.jsonl"
    if not _NAME.fullmatch(name) or not file.is_file():
        raise BadInput("There is no recording of this name here. Choose one of the list, or drop a file.")
    return trace.read_bundle(file)


def read_list(path: Path) -> tuple[Item, ...]:
    """A list of what to record: a JSON array of items; ``BadInput`` names what is wrong."""
    try:
        items = TypeAdapter(tuple[Item, ...]).validate_python(json.loads(path.read_text(encoding="utf-8")))
    except OSError:
        raise BadInput(f"The list {path.name} cannot be opened.") from None
    except (ValueError, RecursionError) as error:
        if not isinstance(error, ValidationError):
            raise BadInput(f"The list {path.name} is not JSON.") from None
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"The list {path.name} is not right at {where or 'the top'}: {first['msg']}.") from None
    names = [item.name for item in items if item.name]
    for name in names:
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name!r} is no name for a recording: lower-case letters, digits and single hyphens are.")
        if names.count(name) > 1:
            raise BadInput(f"Two recordings of the list are called {name!r}.")
    return items


def make(
    items: tuple[Item, ...], model: LanguageModel, encoder: TextEncoder, out: Path
) -> Iterator[tuple[Item, trace.BundleHeader | None]]:
    """Live the items one after another over a memory of their own, and write ``out/<name>.jsonl`` of those with a name.

    Every question is found before the first is asked. An episode that fails is a ``BadInput`` that names it.
    """
    asked = [(item, *_question(item)) for item in items]
    with MemoryStore.open("memory://", encoder) as store:
        for item, question, database in asked:
            strategy = get(item.strategy)
            strategy = strategy if item.scope is None else replace(strategy, scope=item.scope)
            request = live.Request(
                question, database, strategy, SpiderVerifier(official=False), item.budget, "", item.seed, item.initial
            )
            position = store.upcoming()
            events = list(live.ask(request, model, store))
            if isinstance(events[-1], Failed):
                raise BadInput(f"The episode of {item.name or item.question_id} failed: {events[-1].reason}")
            if not item.name:
                yield item, None
                continue
            yield (
                item,
                trace.write_bundle(
                    out / f"{item.name}.jsonl",
                    events,
                    memory_version=f"a memory of this list alone@{position}",
                    quantisation=live.quantisation_of(model),
                    title=item.title or question.text,
                    shows=item.shows,
                ),
            )


def _question(item: Item) -> tuple[Question, Database]:
    if item.database not in samples.ids():
        raise BadInput(f"There is no sample database {item.database!r}. Samples: {', '.join(samples.ids())}.")
    for question in samples.questions(item.database):
        if question.question_id == item.question_id:
            return question, Database.open(samples.path(item.database), id=item.database)
    raise BadInput(f"The database {item.database} has no sample question with the id {item.question_id!r}.")


@lru_cache(maxsize=512)
def _header(file: Path, _changed_ns: int) -> trace.BundleHeader | None:
    try:
        return trace.read_header(file)
    except BadInput:
        return None
