"""Events as lines of plain text, for a terminal. One function of one event; it keeps no state.

What this module does not know: colours, pages, what comes next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from merit.episode import Row, Status
from merit.events import (
    AttemptMade,
    Cancelled,
    Diagnosed,
    EpisodeFinalised,
    EpisodeStarted,
    Event,
    Executed,
    Failed,
    Judged,
    PromptBuilt,
    Reflected,
    Retrieved,
)
from merit.trace import BundleHeader

SHOWN_ROWS = 10
SHOWN_CELL = 60


def tell(event: Event) -> str:
    """The lines of one event, "" for one that a terminal does not show (streamed tokens)."""
    speak = _TELLERS.get(type(event))
    return plain(speak(event)) if speak else ""


def recorded(header: BundleHeader) -> str:
    """The line that stands over every recording."""
    first = ", first answer given, not generated" if header.first_answer_given else ""
    stored = f" ({header.quantisation})" if header.quantisation not in ("", "none") else ""
    return f"RECORDED {header.created_at}, model {header.model_id}{stored}{first}"


def plain(text: str) -> str:
    """Text as a terminal may show it: control characters and lone surrogates are written out."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)


def _started(event: EpisodeStarted) -> str:
    lines = [
        f"Question   {event.question.text}",
        *([f"Hint       {event.question.evidence}"] if event.question.evidence else []),
        f"Database   {event.question.database_id}",
        f"Strategy   {event.strategy}, entries of {event.scope} database, up to {_count(event.budget, 'repair')}",
        f"Memory     position {event.position}",
        f"Model      {event.model_id}",
        f"Judged by  {event.verifier}"
        + (" (oracle-assisted: it knows the sample answer; this is not autonomous correction)" * event.oracle_assisted),
    ]
    return "\n".join(lines)


def _prompt(event: PromptBuilt) -> str:
    title = "First answer" if event.iteration == 0 else f"Repair {event.iteration}"
    if event.purpose == "reflection":
        title = "Reflection"
    left_out = f", left out: {', '.join(event.dropped)}" if event.dropped else ""
    return f"\n{title} (prompt of {event.tokens} tokens{left_out})"


def _attempt(event: AttemptMade) -> str:
    return _indented(event.sql or "(the answer held no single SQL statement)")


def _executed(event: Executed) -> str:
    if event.status is not Status.EXECUTED:
        return _indented(f"{event.status}: {event.error}" if event.error != event.status else str(event.status))
    more = " or more" if event.truncated else ""
    head = f"{_count(event.row_count, 'row')}{more} in {event.elapsed_s:.2f} s"
    return _indented("\n".join([head, *_table(event.columns, event.rows[:SHOWN_ROWS], event.row_count)]))


def _table(columns: Sequence[str], rows: Sequence[Row], row_count: int) -> list[str]:
    lines = [" | ".join(_cell(value) for value in row) for row in (columns, *rows)]
    return [*lines, "…"] if row_count > len(rows) else lines


def _cell(value: Any) -> str:
    text = "NULL" if value is None else f"x'{value.hex()}'" if isinstance(value, bytes) else str(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= SHOWN_CELL else f"{text[:SHOWN_CELL]}…"


def _judged(event: Judged) -> str:
    return _indented(f"{event.outcome}, judged by {event.by}")


def _diagnosed(event: Diagnosed) -> str:
    subtype = f", {event.subtype}" if event.subtype else ""
    return _indented(f"Diagnosed as {event.failure_type}{subtype} (rule {event.rule})")


def _retrieved(event: Retrieved) -> str:
    pools = "; ".join(
        f"{name}: {pool.legal} legal, {pool.typed} of this type" + ", so all legal ones were ranked" * pool.fallback
        for name, pool in event.retrieval.pools.items()
        if pool.legal
    )
    found = f"{len(event.retrieval.positive)} that worked, {len(event.retrieval.negative)} that failed"
    return _indented(f"Recalled from memory: {found} ({pools})" if pools else "Recalled from memory: nothing is legal")


def _reflected(event: Reflected) -> str:
    return _indented(event.text)


def _finalised(event: EpisodeFinalised) -> str:
    if event.entry is None:
        learnt = "Nothing was remembered."
    else:
        learnt = (
            f"One entry was remembered ({event.entry.polarity}, {event.entry.failure_type}). "
            f"It can help from position {event.visible_from} on."
        )
    return f"\nFinished: {event.outcome} after {_count(event.repairs, 'repair')}. {learnt}"


def _failed(event: Failed) -> str:
    return f"\nFailed: {event.reason}"


def _cancelled(event: Cancelled) -> str:
    return "\nStopped. Nothing was remembered."


_TELLERS: dict[type, Callable[[Any], str]] = {
    EpisodeStarted: _started,
    PromptBuilt: _prompt,
    AttemptMade: _attempt,
    Executed: _executed,
    Judged: _judged,
    Diagnosed: _diagnosed,
    Retrieved: _retrieved,
    Reflected: _reflected,
    EpisodeFinalised: _finalised,
    Failed: _failed,
    Cancelled: _cancelled,
}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
