"""The fold of events, and what is said of a story while it runs and at its end."""

from __future__ import annotations

from typing import Any

from merit import events as ev
from merit.episode import FailureType, Outcome, Question, Status
from merit.memory.retrieval import Retrieval
from merit.story import Story, fold
from merit.ui import steps, theme

STARTED = ev.EpisodeStarted(
    "e" * 32, Question("Who?", "shop"), "merit", "same", 7, 3, "m", "e", "schema", "hash", 0, "person", False, "now"
)  # fmt: skip


def attempt(iteration: int, sql: str) -> list[ev.Event]:
    return [
        ev.PromptBuilt(iteration, "repair" if iteration else "initial", "prompt", 10),
        ev.TokenStreamed(iteration, "SEL"),
        ev.TokenStreamed(iteration, "ECT"),
        ev.AttemptMade(iteration, sql, sql, 10, 2),
    ]


def executed(iteration: int, **changes: Any) -> ev.Executed:
    values: dict[str, Any] = {
        "status": Status.EXECUTED, "columns": ("a",), "rows": ((1,),), "row_count": 1, "truncated": False,
        "error": None, "elapsed_s": 0.1,
    }  # fmt: skip
    return ev.Executed(iteration, **{**values, **changes})


WHOLE: list[ev.Event] = [
    STARTED,
    *attempt(0, "SELECT 1"),
    executed(0),
    ev.Judged(0, Outcome.DENOTATION_MISMATCH, "person"),
    ev.Diagnosed(0, FailureType.RESULT_MISMATCH, "", 13, ""),
    ev.Retrieved(1, Retrieval()),
    *attempt(1, "SELECT 2"),
    executed(1),
    ev.Judged(1, Outcome.CORRECT, "person"),
    ev.EpisodeFinalised(Outcome.CORRECT, None, 4, 1),
]


def test_a_whole_episode_folds_into_its_steps() -> None:
    story = fold(WHOLE)
    assert [step.title for step in story.steps] == ["First answer", "Repair 1"]
    assert story.solved
    first, second = story.steps
    assert second.retrieved == ev.Retrieved(1, Retrieval())
    assert story.failure_before(second) is first
    assert story.failure_before(first) is None
    assert story.previous_sql(second) == "SELECT 1"
    assert story.previous_sql(first) is None
    assert steps.sign(first, True) == theme.OUTCOMES[Outcome.DENOTATION_MISMATCH]


def test_every_prefix_of_an_episode_can_be_drawn_and_says_what_is_done() -> None:
    told = [fold(WHOLE[:length]).last for length in range(2, len(WHOLE))]
    words = [step.doing() for step in told if step is not None and step.iteration == 0]
    assert words[:5] == ["Reading the prompt", "Writing SQL", "Writing SQL", "Running the query", "Checking the rows"]


def test_streamed_text_is_that_of_the_generation_that_runs() -> None:
    assert fold(WHOLE[:4]).steps[0].streamed == "SELECT"
    assert fold(WHOLE[:5]).steps[0].streamed == ""
    reflecting = [*WHOLE[:8], ev.PromptBuilt(0, "reflection", "why?", 5), ev.TokenStreamed(0, "because")]
    step = fold(reflecting).steps[0]
    assert (step.streamed, step.doing()) == ("because", "Writing a note to itself")
    assert step.prompt is not None
    assert step.prompt.purpose == "initial"


def test_a_person_is_waited_for_until_judged_or_ended() -> None:
    asked: list[ev.Event] = [STARTED, *attempt(0, "SELECT 1"), executed(0), ev.JudgementRequested(0)]
    story = fold(asked)
    assert story.waiting is story.steps[0]
    assert steps.sign(story.steps[0], False) == theme.WAITING
    assert fold([*asked, ev.Judged(0, Outcome.CORRECT, "person")]).waiting is None
    stopped = fold([*asked, ev.Cancelled()])
    assert stopped.waiting is None
    assert steps.sign(stopped.steps[0], True) == theme.STOPPED
    assert steps.sign(stopped.steps[0], True, failed=True) == theme.FAILED


def test_nothing_is_a_story_too() -> None:
    assert fold([]) == Story()
    failed = fold([ev.Failed("No model.")])
    assert (failed.steps, failed.solved) == ([], False)
