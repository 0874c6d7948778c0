"""The W5 capsule: four sentences a model writes about one repair, and the fence that keeps them to the episode.

The paper says that a fence blanks a field that names a table, column or value absent from the episode. How a name is
recognised is reconstructed: every quoted text, and every schema name that looks like an identifier (a plain word such
as ``name`` counts only where it is quoted or dotted), must occur in the episode.

What this module does not know: models (it reads an answer), cards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, fields, replace

from merit.answer_regions import drop_reasoning
from merit.crystallization.episodes import Episode, asked


@dataclass(frozen=True)
class Capsule:
    """The four fields, in the JSON keys of the paper; a blank field is "" and is not printed."""

    trigger: str = ""
    applicability: str = ""
    negative_guard: str = ""
    lesson: str = ""


KEYS = tuple(field.name for field in fields(Capsule))
MAX_FIELD = 600
"""Most characters of one field; what is longer is cut."""


def read(answer: str) -> Capsule | None:
    """The capsule in a model's answer; None where there is no JSON object with the four keys, each a text."""
    text = drop_reasoning(answer)
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text[start:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or any(not isinstance(value.get(key), str) for key in KEYS):
        return None
    return Capsule(**{key: " ".join(value[key].split())[:MAX_FIELD] for key in KEYS})


def fenced(capsule: Capsule, episode: Episode, identifiers: Collection[str]) -> tuple[Capsule, tuple[str, ...]]:
    """The capsule with every field blanked that names what the episode does not hold, and the keys blanked.

    ``identifiers``: the names of the schema's tables and columns.
    """
    known = _flat(_told(episode))
    words = set(re.findall(r"\w+", known))
    suspicious = {name for name in identifiers if not set(re.findall(r"\w+", name.lower())) <= words}
    blanked = tuple(key for key in KEYS if _strays(getattr(capsule, key), known, suspicious))
    return replace(capsule, **dict.fromkeys(blanked, "")), blanked


def _told(episode: Episode) -> str:
    texts = [asked(episode)]
    for attempt in episode.tries:
        texts += [attempt.sql, attempt.report, *(f"{probe.sql} {probe.report}" for probe in attempt.probes)]
    return " ".join(texts)


_QUOTES = str.maketrans("‘’“”", "''\"\"")
_QUOTED = re.compile(r"(?<!\w)'([^'\n]+)'(?!\w)|\"([^\"\n]+)\"|`([^`\n]+)`")


def _flat(text: str) -> str:
    return " ".join(text.translate(_QUOTES).lower().split())


def _strays(field: str, known: str, suspicious: Collection[str]) -> bool:
    text = field.translate(_QUOTES)
    quoted = ("".join(parts) for parts in _QUOTED.findall(text))
    if any(_flat(part) not in known for part in quoted):
        return True
    return any(_names(text, name) for name in suspicious)


def _names(text: str, name: str) -> bool:
    """Whether ``text`` speaks of the schema's ``name``."""
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    if re.search(rf"\.{word}|{word}\.(?=\w)", text, re.IGNORECASE):
        return True
    return not re.fullmatch(r"[A-Za-z]?[a-z]*", name) and re.search(word, text, re.IGNORECASE) is not None
