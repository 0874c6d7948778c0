"""Whether events that come from a file make up one episode, so that whatever draws or counts them need not ask.

What this module does not know: files, JSON, headers (``merit.trace``).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from merit.diagnosis import FAILURES
from merit.episode import Outcome
from merit.errors import BadInput
from merit.events import (
    LAST_EVENTS,
    AttemptMade,
    Diagnosed,
    EpisodeStarted,
    Event,
    Executed,
    Judged,
    JudgementRequested,
)

MAX_ITERATION = 200
"""The largest number of an attempt."""
_CELLS = (int, float, str, bytes, type(None))


def checked(event: Event) -> Event:
    """The event as far as its own fields hang together; gold that a stranger put into it is taken out."""
    iteration = getattr(event, "iteration", 0)
    if not 0 <= iteration <= MAX_ITERATION:
        raise BadInput(f"There is no attempt number {iteration}.")
    if isinstance(event, EpisodeStarted):
        return dataclasses.replace(event, question=dataclasses.replace(event.question, gold_sql=None))
    if isinstance(event, Executed):
        if any(len(row) != len(event.columns) for row in event.rows):
            raise BadInput("A row has not as many values as there are columns.")
        if any(not isinstance(cell, _CELLS) for row in event.rows for cell in row):
            raise BadInput("A cell holds something that no database gives.")
    if isinstance(event, Executed | AttemptMade) and not 0 <= event.elapsed_s < math.inf:
        raise BadInput("A time is no number of seconds.")
    return event


def check_order(events: Sequence[Event]) -> None:
    """The parts of one attempt follow each other, and only what failed is diagnosed."""
    attempted: set[int] = set()
    judged: dict[int, Outcome] = {}
    for event in events:
        match event:
            case AttemptMade():
                if event.iteration in attempted or event.iteration > len(attempted):
                    raise BadInput(f"Attempt {event.iteration} is not in its place.")
                attempted.add(event.iteration)
            case Executed() | JudgementRequested() if event.iteration not in attempted:
                raise BadInput(f"Attempt {event.iteration} was not made before it was run.")
            case Judged():
                judged[event.iteration] = event.outcome
            case Diagnosed() if judged.get(event.iteration) not in FAILURES:
                raise BadInput(f"Attempt {event.iteration} is diagnosed, but it was not judged a failure.")


def check_whole(events: Iterable[Event]) -> tuple[EpisodeStarted, Event]:
    """The first and the last event; ``BadInput`` where the episode does not begin or end as one does."""
    events = tuple(events)
    if not events or not isinstance(events[0], EpisodeStarted):
        raise BadInput("A recording begins with EpisodeStarted.")
    if not isinstance(events[-1], LAST_EVENTS) or any(isinstance(event, LAST_EVENTS) for event in events[:-1]):
        raise BadInput("A recording ends with exactly one of EpisodeFinalised, Failed and Cancelled.")
    return events[0], events[-1]
