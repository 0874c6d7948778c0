"""The card formats W0 to W5 and W3+A: how one and the same episode is written down (paper §3.2, Appendix E).

W0, W3, W3+A, W4 and W5 follow the paper's worked example; the layouts of W1 and W2, all header tails, and the
lessons-only card of the intervention are reconstructed, and the table says so. A writer reads the episode and nothing
else, so no card can hold gold.

What this module does not know: banks, retrieval, models (a capsule comes from outside).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from merit.crystallization import prompts
from merit.crystallization.capsule import Capsule
from merit.crystallization.difference import Difference, difference
from merit.crystallization.episodes import Episode
from merit.crystallization.modes import MODES, Origin
from merit.errors import BadInput


class CardFormat(StrEnum):
    """The formats, by the paper's names."""

    W0 = "W0"
    W1 = "W1"
    W2 = "W2"
    W3 = "W3"
    W3A = "W3+A"
    W4 = "W4"
    W5 = "W5"
    LESSONS = "lessons"


@dataclass(frozen=True)
class FormatInfo:
    """One row of the table: name, the header its cards stand under, what it writes down, and what of it is ours."""

    format: CardFormat
    title: str
    header: str
    content: str
    layout: Origin
    header_from: Origin = "reconstructed"
    needs_repair: bool = True
    needs_capsule: bool = False


_TABLE = (
    FormatInfo(
        CardFormat.W0,
        "Verbatim",
        "[Similar solved questions and their final SQL]",
        "The question and its final SQL.",
        "paper",
        "paper",
        needs_repair=False,
    ),
    FormatInfo(
        CardFormat.W1,
        "Trace",
        "[Repair traces]",
        "The whole repair: every attempt, what it returned, every probe.",
        "reconstructed",
    ),
    FormatInfo(
        CardFormat.W2, "Diff", "[Repair diffs]", "The edit, clause by clause, from the syntax trees.", "reconstructed"
    ),
    FormatInfo(CardFormat.W3, "Diff+Mode", "[Repair diffs]", "The edit with its failure modes.", "paper"),
    FormatInfo(CardFormat.W3A, "Anchor", "[Repair diffs]", "The edit with its modes and the final SQL.", "paper"),
    FormatInfo(
        CardFormat.W4,
        "Diff+Guard",
        "[Repair diffs with applicability guards]",
        "The edit with its modes and when to apply it, from a fixed table.",
        "paper",
    ),
    FormatInfo(
        CardFormat.W5,
        "Capsule",
        "[Repair capsules]",
        "The edit with four sentences a model wrote about it, fenced.",
        "paper",
        needs_capsule=True,
    ),
    FormatInfo(
        CardFormat.LESSONS,
        "Lessons only",
        "[Lessons]",
        "Natural language alone: the capsule's sentences, or the guards of the modes.",
        "reconstructed",
        needs_capsule=True,
    ),
)
FORMATS: dict[CardFormat, FormatInfo] = {info.format: info for info in _TABLE}
LADDER = tuple(format for format in CardFormat if format is not CardFormat.LESSONS)
"""The formats of the paper's ladder; ``lessons`` is an intervention."""

NO_CANDIDATE = "There is no card to write: this episode came to no statement that could be stored."
NO_REPAIR = (
    "A {format} card tells how a wrong answer was repaired, and this question was answered right at the first attempt. "
    "W0 is the format for it."
)
NO_MODE = "No failure mode could be read off this repair, so the card carries no guard."
NO_CAPSULE = "The model wrote no usable capsule for this repair, so the card shows the edit alone."
NO_LESSON = "There is no lesson to write: the model wrote none, and no failure mode could be read off this repair."
BLANKED = "Fields blanked because they name what the episode does not hold: {keys}."


@dataclass(frozen=True)
class Card:
    """One card of one bank. ``question`` is the key it is found by; ``sql`` the stored statement ("" in lessons);
    ``notes``: sentences about what could not be written as asked."""

    format: CardFormat
    question_id: str
    database_id: str
    question: str
    sql: str
    text: str
    notes: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The key of its question."""
        return f"{self.database_id}/{self.question_id}"


@dataclass(frozen=True)
class Written:
    """What the model wrote for W5 and what the fence left of it; ``capsule`` None: its JSON was not usable."""

    capsule: Capsule | None
    blanked: tuple[str, ...] = ()


def write(episode: Episode, format: CardFormat | str, written: Written | None = None) -> Card:
    """The card of an episode. Raises ``BadInput`` with a sentence where the episode lacks what the format tells of.

    ``written`` is for W5 and lessons; without a usable capsule W5 falls back to W3 and says so.
    """
    info = FORMATS[_format(format)]
    if not episode.final_sql.strip():
        raise BadInput(NO_CANDIDATE)
    if info.needs_repair and not episode.repaired:
        raise BadInput(NO_REPAIR.format(format=info.format))
    parts = _Parts(episode, written or Written(None))
    text = _RENDER[info.format](parts)
    sql = "" if info.format is CardFormat.LESSONS else episode.final_sql
    return Card(info.format, episode.question_id, episode.database_id, episode.question, sql, text, tuple(parts.notes))


def _format(name: CardFormat | str) -> CardFormat:
    try:
        return CardFormat(name)
    except ValueError:
        raise BadInput(f"There is no card format called {name!r}. Known ones: {', '.join(CardFormat)}.") from None


class _Parts:
    """What the writers share about one episode, worked out once, and what they have to say about it."""

    def __init__(self, episode: Episode, written: Written) -> None:
        self.episode = episode
        self.written = written
        self.notes: list[str] = []
        self._difference: Difference | None = None

    @property
    def difference(self) -> Difference:
        if self._difference is None:
            first = self.episode.first
            self._difference = difference(first.sql, self.episode.final_sql, unreadable=first.unreadable)
            if self._difference.note:
                self.notes.append(self._difference.note)
        return self._difference

    @property
    def capsule(self) -> Capsule | None:
        """The fenced capsule, with a note about what is missing of it."""
        if self.written.capsule is None:
            self.notes.append(NO_CAPSULE)
        elif self.written.blanked:
            self.notes.append(BLANKED.format(keys=", ".join(self.written.blanked)))
        return self.written.capsule


def _question(parts: _Parts) -> str:
    return f"Q: {parts.episode.question.strip()}"


def _block(sql: str) -> str:
    return f"```sql\n{sql.strip()}\n```"


def _verbatim(parts: _Parts) -> str:
    return f"{_question(parts)}\n{_block(parts.episode.final_sql)}"


def _trace(parts: _Parts) -> str:
    lines = ["Past repair, step by step:", _question(parts)]
    assert parts.episode.candidate is not None
    for number, attempt in enumerate(parts.episode.tries[: parts.episode.candidate + 1], 1):
        if attempt.probes:
            lines += ["- Database probes:", prompts.told(attempt.probes)]
        last = number - 1 == parts.episode.candidate
        lines += [f"- Attempt {number} ({'final' if last else 'wrong'}):", _block(attempt.sql)]
        if attempt.report:
            lines.append(f"-> {attempt.report}")
    return "\n".join(lines)


def _edit(parts: _Parts, head: str) -> str:
    found = parts.difference
    lines = (head, _question(parts), f"- Wrong: {found.wrong}", f"- Fixed: {found.fixed}", f"- Clause: {found.clause}")
    return "\n".join(lines)


def _diff(parts: _Parts) -> str:
    return _edit(parts, "Past repair:")


def _mode(parts: _Parts) -> str:
    return _edit(parts, f"Past repair (failure mode: {', '.join(parts.difference.modes) or 'unknown'}):")


def _anchor(parts: _Parts) -> str:
    return f"{_mode(parts)}\n- Final SQL:\n{_block(parts.episode.final_sql)}"


def _guard(parts: _Parts) -> str:
    text = _mode(parts)
    if not parts.difference.modes:
        parts.notes.append(NO_MODE)
        return text
    return f"{text}\n- Guard: {MODES[parts.difference.modes[0]].guard}"


_LINES = (
    ("Trigger", "trigger"),
    ("Apply-when", "applicability"),
    ("Do-NOT-apply-when", "negative_guard"),
    ("Lesson", "lesson"),
)


_SQL = re.compile(r"\bSELECT\b.*\bFROM\b|```", re.IGNORECASE | re.DOTALL)


def _sentences(capsule: Capsule) -> list[str]:
    return [f"- {label}: {text}" for label, key in _LINES if (text := getattr(capsule, key))]


def _capsule(parts: _Parts) -> str:
    text = _mode(parts)
    found = parts.capsule
    return text if found is None else "\n".join((text, *_sentences(found)))


def _lessons(parts: _Parts) -> str:
    """No SQL at all: a sentence of the capsule that holds a statement goes too."""
    found = parts.capsule
    lines = [line for line in _sentences(found) if not _SQL.search(line)] if found is not None else []
    if not lines:
        lines = [f"- Lesson: {MODES[mode].guard}" for mode in parts.difference.modes]
    if not lines:
        raise BadInput(NO_LESSON)
    return "\n".join((_question(parts), *lines))


_RENDER: dict[CardFormat, Callable[[_Parts], str]] = {
    CardFormat.W0: _verbatim,
    CardFormat.W1: _trace,
    CardFormat.W2: _diff,
    CardFormat.W3: _mode,
    CardFormat.W3A: _anchor,
    CardFormat.W4: _guard,
    CardFormat.W5: _capsule,
    CardFormat.LESSONS: _lessons,
}
