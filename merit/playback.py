"""A recorded episode as it went in time: which events were there after so many seconds, at the pace of the recording.

Answers and statements take as long as they took; what took no measurable time (a diagnosis, a recall) gets a short
pause, so that a person can follow. The text of an answer appears evenly over its seconds: when each of its tokens came
is not on record.

What this module does not know: clocks, speeds, and how anything is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from merit.events import LAST_EVENTS, AttemptMade, Event, Executed, Judged, PromptBuilt, Reflected, TokenStreamed

PAUSE_S = 0.8
"""Seconds before an event that took no time of its own."""
SHORTEST_S = 0.3
LONGEST_S = 600.0
"""Bounds of the seconds that an answer or a statement takes in a replay."""
_REFLECTION_S = 2.0


@dataclass(frozen=True)
class Playback:
    """A recording on a time line. ``times[i]`` is the second at which ``events[i]`` is there, growing with i."""

    events: tuple[Event, ...]
    times: tuple[float, ...]

    @property
    def length_s(self) -> float:
        """Seconds from the first event to the last."""
        return self.times[-1] if self.times else 0.0

    @property
    def stops(self) -> tuple[tuple[int, float], ...]:
        """Each attempt that was judged, with the second at which it was: where stepping halts."""
        return tuple(
            (event.iteration, at)
            for event, at in zip(self.events, self.times, strict=True)
            if isinstance(event, Judged)
        )

    def at(self, second: float) -> tuple[Event, ...]:
        """The events that are there at a second; of an answer that is being written, its text so far."""
        there = [event for event, at in zip(self.events, self.times, strict=True) if at <= second]
        coming = self.events[len(there)] if len(there) < len(self.events) else None
        if isinstance(coming, AttemptMade | Reflected) and there and isinstance(there[-1], PromptBuilt):
            begin, end = self.times[len(there) - 1], self.times[len(there)]
            text = coming.raw if isinstance(coming, AttemptMade) else coming.text
            said = text[: int(len(text) * (second - begin) / (end - begin))]
            if said:
                there.append(TokenStreamed(coming.iteration, said))
        return tuple(there)

    def second_of(self, step: int | None) -> float:
        """Where to stand to see the recording up to attempt ``step``; its end for None and for what is none."""
        last = max((iteration for iteration, _ in self.stops), default=None)
        if step is None or step == last:
            return self.length_s
        return next((at for iteration, at in self.stops if iteration == step), self.length_s)

    def step_at(self, second: float) -> int | None:
        """The attempt that was judged last at a second; None before the first."""
        done = [iteration for iteration, at in self.stops if at <= second]
        return done[-1] if done else None

    def next_stop(self, second: float) -> float:
        """Where one step further is: the next judgement, the last of which brings the end with it."""
        return next((self.second_of(step) for step, at in self.stops if at > second), self.length_s)

    def previous_stop(self, second: float) -> float:
        """Where one step back is; the beginning before the first."""
        places = [0.0, *(self.second_of(step) for step, _ in self.stops)]
        return max((place for place in places if place < second), default=0.0)


def playback(events: Sequence[Event]) -> Playback:
    """The time line of a recorded episode."""
    kept = tuple(event for event in events if not isinstance(event, TokenStreamed))
    times = [0.0] if kept else []
    for before, event in pairwise(kept):
        times.append(times[-1] + _seconds(before, event))
    return Playback(kept, tuple(times))


def _seconds(before: Event, event: Event) -> float:
    """How long an event is in the coming."""
    if isinstance(event, Executed) or (isinstance(event, AttemptMade) and isinstance(before, PromptBuilt)):
        return min(max(event.elapsed_s, SHORTEST_S), LONGEST_S)
    if isinstance(event, Reflected):
        return _REFLECTION_S
    return PAUSE_S / 2 if isinstance(event, LAST_EVENTS) else PAUSE_S
