"""The fold of an episode's events into its steps in order, and the end: what pages draw, compare and explain.

What this module does not know: how anything is drawn, and whether the events are live or recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from merit import events as ev
from merit.episode import Execution, Outcome, Status


@dataclass
class Step:
    """One attempt with everything that led to it and came of it; what has not happened yet is None.

    ``retrieved`` is what memory gave for this attempt. ``streamed`` is the text of the generation that runs now.
    """

    iteration: int
    retrieved: ev.Retrieved | None = None
    prompt: ev.PromptBuilt | None = None
    streamed: str = ""
    attempt: ev.AttemptMade | None = None
    executed: ev.Executed | None = None
    asked: bool = False
    judged: ev.Judged | None = None
    diagnosed: ev.Diagnosed | None = None
    reflection_prompt: ev.PromptBuilt | None = None
    reflected: ev.Reflected | None = None

    @property
    def title(self) -> str:
        """ "First answer" or "Repair k"."""
        return "First answer" if self.iteration == 0 else f"Repair {self.iteration}"

    @property
    def execution(self) -> Execution | None:
        """What the database said, as far as the event keeps it."""
        done = self.executed
        if done is None:
            return None
        return Execution(done.status, done.columns, done.rows, done.error, done.elapsed_s, done.truncated)

    def doing(self) -> str:
        """What is being done at this moment, in words."""
        if self.prompt is None:
            return "Looking into memory" if self.retrieved is None and self.iteration else "Building the prompt"
        if self.attempt is None:
            return "Writing SQL" if self.streamed else "Reading the prompt"
        if self.executed is None:
            return "Running the query"
        if self.judged is None:
            return "Waiting for your answer" if self.asked else "Checking the rows"
        if self.reflection_prompt is not None and self.reflected is None:
            return "Writing a note to itself"
        return "Preparing the next step"


@dataclass
class Story:
    """A whole episode as far as it is known."""

    started: ev.EpisodeStarted | None = None
    steps: list[Step] = field(default_factory=list)
    end: ev.EpisodeFinalised | ev.Failed | ev.Cancelled | None = None

    @property
    def last(self) -> Step | None:
        """The latest step."""
        return self.steps[-1] if self.steps else None

    @property
    def waiting(self) -> Step | None:
        """The step about which a person is asked now."""
        step = self.last
        return step if step and step.asked and step.judged is None and self.end is None else None

    @property
    def solved(self) -> bool:
        """Whether the episode ended with an answer judged correct."""
        return isinstance(self.end, ev.EpisodeFinalised) and self.end.outcome is Outcome.CORRECT

    def previous_sql(self, step: Step) -> str | None:
        """The SQL of the attempt before ``step``, None for the first."""
        earlier = [s.attempt.sql for s in self.steps if s.iteration < step.iteration and s.attempt is not None]
        return earlier[-1] if earlier else None

    def failure_before(self, step: Step) -> Step | None:
        """The diagnosed step that ``step`` repairs."""
        return next((s for s in reversed(self.steps) if s.iteration < step.iteration and s.diagnosed), None)

    @property
    def executed_any(self) -> bool:
        """Whether any attempt ran on the database."""
        return any(s.executed is not None and s.executed.status is Status.EXECUTED for s in self.steps)


def fold(events: Iterable[ev.Event]) -> Story:
    """Events in their order → what is drawn."""
    story = Story()
    for event in events:
        if isinstance(event, ev.EpisodeStarted):
            story.started = event
        elif isinstance(event, ev.LAST_EVENTS):
            story.end = event
        else:
            _put(_step(story, event.iteration), event)
    return story


def _step(story: Story, iteration: int) -> Step:
    for step in story.steps:
        if step.iteration == iteration:
            return step
    step = Step(iteration)
    story.steps.append(step)
    return step


def _put(step: Step, event: ev.Event) -> None:
    match event:
        case ev.Retrieved():
            step.retrieved = event
        case ev.PromptBuilt(purpose="reflection"):
            step.reflection_prompt, step.streamed = event, ""
        case ev.PromptBuilt():
            step.prompt, step.streamed = event, ""
        case ev.TokenStreamed():
            step.streamed += event.text
        case ev.AttemptMade():
            step.attempt, step.streamed = event, ""
        case ev.Executed():
            step.executed = event
        case ev.JudgementRequested():
            step.asked = True
        case ev.Judged():
            step.judged = event
        case ev.Diagnosed():
            step.diagnosed = event
        case ev.Reflected():
            step.reflected, step.streamed = event, ""
