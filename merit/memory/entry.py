"""What one finalised episode leaves behind, and what the merged view of several says. Frozen, no I/O.

What this module does not know: where entries are kept (``store``), which are legal (``legality``) and how
they rank (``ranking``). Spec §3, memory format version 3.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import KW_ONLY, dataclass, fields
from enum import StrEnum
from typing import Any, Self

from merit.episode import FailureType, Outcome, Polarity, Status
from merit.errors import BadInput

FORMAT_VERSION = 3
"""The memory format written by this version."""

_QUOTED = re.compile(
    r"""'[^']*+(?:''[^']*+)*+'?|"[^"]*+(?:""[^"]*+)*+"?|`[^`]*+(?:``[^`]*+)*+`?|\[[^\]]*+(?:\]\][^\]]*+)*+\]?"""
)
_SPACES = re.compile(r"\s+")
_AROUND_SIGN = re.compile(r" ?([(),=<>!+\-*/]) ?")


def normalise_delta(delta: str) -> str:
    """Spec §3: lower case, single spaces and no space around ``(),=<>!+-*/`` outside quotes; quotes untouched.

    Quotes are ``'…'``, ``"…"``, backticks and ``[…]``; a doubled closer stays inside, a backslash is an
    ordinary character, a quote that is never closed reaches to the end.
    """
    parts: list[str] = []  # plain, quoted, plain, …, plain
    end = 0
    for quoted in _QUOTED.finditer(delta):
        parts += [_plain(delta[end : quoted.start()]), quoted.group()]
        end = quoted.end()
    parts.append(_plain(delta[end:]))
    parts[0] = parts[0].lstrip(" ")
    parts[-1] = parts[-1].rstrip(" ")
    return "".join(parts)


def _plain(text: str) -> str:
    return _AROUND_SIGN.sub(r"\1", _SPACES.sub(" ", text.lower()))


def entry_id(failure_type: str, delta: str) -> str:
    """The id of an entry: 64 hex digits of sha256 over canonical JSON of type and normalised Δ (spec §3)."""
    facts = {"error_type": " ".join(failure_type.lower().split()), "transformation": normalise_delta(delta)}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class MemoryEntry:
    """One remembered transition with its context and provenance (spec §3).

    Positive: ``failed_sql`` → ``new_sql`` was judged correct. Negative: ``failed_sql`` = y(K−1),
    ``new_sql`` = y(K). ``status`` and ``db_error`` belong to the quoted attempt, which is ``failed_sql``
    when positive and ``new_sql`` when negative; ``outcome`` is that of ``new_sql``. Positions are 0-based.
    A value outside an enumeration raises :class:`BadInput`.
    """

    polarity: Polarity
    failure_type: FailureType
    question: str
    schema: str
    database_id: str
    failed_sql: str
    new_sql: str
    status: Outcome | Status
    db_error: str | None
    outcome: Outcome
    question_id: str
    episode_id: str
    position: int
    iteration: int
    _: KW_ONLY
    prompt_version: str = ""
    model_id: str = ""
    encoder_id: str = ""
    created_at: str = ""
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        known: dict[str, tuple[type[StrEnum], ...]] = {
            "polarity": (Polarity,),
            "failure_type": (FailureType,),
            "status": (Outcome, Status),
            "outcome": (Outcome,),
        }
        for name, kinds in known.items():
            value = getattr(self, name)
            if not isinstance(value, kinds):
                object.__setattr__(self, name, _member(name, value, kinds))

    @property
    def id(self) -> str:
        """64 hex digits; the same transition of the same failure type has the same id."""
        return entry_id(self.failure_type, self.delta)

    @property
    def delta(self) -> str:
        """Δ as written in prompts: ``{before} => {after}``."""
        return f"{self.failed_sql} => {self.new_sql}"

    @property
    def quoted_error(self) -> str | None:
        """The DBMS message of the quoted attempt; that of a timeout is ``TIMEOUT``."""
        return self.db_error or ("TIMEOUT" if self.status == "TIMEOUT" else None)

    @property
    def failure_context(self) -> str:
        """The last failed attempt in the words of the prompt."""
        sql = self.failed_sql if self.polarity is Polarity.POSITIVE else self.new_sql
        return failure_context(sql, self.status, self.quoted_error)

    @property
    def successful_direction(self) -> str | None:
        """``Observed successful transition: {Δ}`` of a positive entry, None of a negative one."""
        return f"Observed successful transition: {self.delta}" if self.polarity is Polarity.POSITIVE else None

    @property
    def observed_db_error(self) -> str | None:
        """The message that came with ``outcome``: None for a positive entry, that of y(K) for a negative one."""
        return None if self.polarity is Polarity.POSITIVE else self.quoted_error

    def to_json(self) -> dict[str, Any]:
        """Plain values, one key per field of the entry (a merged view gives the fields of its entry)."""
        return {item.name: _plain_value(getattr(self, item.name)) for item in fields(MemoryEntry)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_json`."""
        return cls(**values)


def failure_context(sql: str, status: str, error: str | None) -> str:
    """``attempted_sql={sql}; status={STATUS}; db_error={error or (none)}`` (spec §3)."""
    return f"attempted_sql={sql}; status={status}; db_error={error or '(none)'}"


def _plain_value(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _member(name: str, value: Any, kinds: tuple[type[StrEnum], ...]) -> StrEnum:
    members = [member for kind in kinds for member in kind]
    for member in members:
        if value == member:
            return member
    allowed = ", ".join(members)
    raise BadInput(f"A memory entry cannot have the {name.replace('_', ' ')} {value!r}; use one of {allowed}.")


@dataclass(frozen=True)
class Observation:
    """The provenance of one observation: who saw it, where in the stream, and from when it can be seen.

    An observation is legal at position t iff ``visible_from <= t``.
    """

    polarity: Polarity
    database_id: str
    question_id: str
    episode_id: str
    position: int
    iteration: int
    visible_from: int
    outcome: Outcome
    model_id: str = ""
    created_at: str = ""


@dataclass(frozen=True)
class EntryView(MemoryEntry):
    """Several observations of one id, merged (spec §3): counts add up, polarity is the majority (a tie keeps
    the earlier one), text comes from the latest observation of that polarity, history is their union in
    order of position."""

    _: KW_ONLY
    successes: int = 0
    failures: int = 0
    history: tuple[Observation, ...] = ()

    @property
    def first_position(self) -> int:
        """Position of the earliest observation in this view."""
        return min((seen.position for seen in self.history), default=self.position)

    @property
    def visible_from(self) -> int:
        """From this position on, all observations of this view can be seen."""
        return max((seen.visible_from for seen in self.history), default=self.position + 1)

    def entry(self) -> MemoryEntry:
        """The entry alone, without counts and history."""
        return MemoryEntry(**{item.name: getattr(self, item.name) for item in fields(MemoryEntry)})
