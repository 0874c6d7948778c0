"""Time in a recording: every event comes in its order, at the pace of the recording, and steps are where one halts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from merit import events as ev
from merit.episode import FailureType, Outcome, Question, Status
from merit.playback import PAUSE_S, playback

STARTED = ev.EpisodeStarted("e" * 32, Question("Who?", "shop"), "merit", "same", 7, 3, "m", "e", "s", "h", 0, "p", False, "now")  # fmt: skip  # noqa: E501


def attempt(iteration: int, answering_s: float, outcome: Outcome) -> list[ev.Event]:
    return [
        ev.PromptBuilt(iteration, "repair" if iteration else "initial", "prompt", 10),
        ev.AttemptMade(iteration, "SELECT 1", "0123456789", 10, 2, answering_s),
        ev.Executed(iteration, Status.EXECUTED, ("a",), ((1,),), 1, False, None, 0.5),
        ev.Judged(iteration, outcome, "p"),
    ]


WHOLE: list[ev.Event] = [
    STARTED,
    *attempt(0, 10.0, Outcome.DENOTATION_MISMATCH),
    ev.Diagnosed(0, FailureType.RESULT_MISMATCH, "", 13, ""),
    *attempt(1, 4.0, Outcome.CORRECT),
    ev.EpisodeFinalised(Outcome.CORRECT, None, 4, 1),
]


def test_answers_take_as_long_as_they_took() -> None:
    tape = playback(WHOLE)
    begin = tape.times[1]
    assert tape.times[2] - begin == 10.0
    assert tape.at(begin + 4.99)[-1] == ev.TokenStreamed(0, "0123")
    assert tape.at(begin)[-1] == WHOLE[1]
    assert tape.at(begin + 10.0)[-1] == WHOLE[2]
    assert abs(tape.length_s - (10 + 4 + 2 * 0.5 + 5 * PAUSE_S + PAUSE_S / 2)) < 1e-9


def test_a_first_answer_that_was_given_takes_no_time_of_its_own() -> None:
    tape = playback([STARTED, *WHOLE[2:5], ev.Cancelled()])
    assert tape.times[1] == PAUSE_S
    assert tape.at(PAUSE_S / 2) == (STARTED,)


def test_one_steps_from_judgement_to_judgement_and_the_last_brings_the_end() -> None:
    tape = playback(WHOLE)
    first = tape.next_stop(0.0)
    assert isinstance(tape.at(first)[-1], ev.Judged)
    assert tape.step_at(first) == 0
    assert tape.next_stop(first) == tape.length_s
    assert tape.at(tape.length_s) == tuple(WHOLE)
    assert tape.next_stop(tape.length_s) == tape.length_s
    assert tape.previous_stop(tape.length_s) == first
    assert tape.previous_stop(first) == 0.0
    assert tape.previous_stop(0.0) == 0.0
    assert tape.step_at(0.0) is None


def test_a_step_that_is_none_means_the_end() -> None:
    tape = playback(WHOLE)
    assert [tape.second_of(step) for step in (None, 1, 7, -3)] == [tape.length_s] * 4
    assert tape.second_of(0) < tape.length_s
    assert playback([]).length_s == 0.0
    assert playback([STARTED, ev.Cancelled()]).next_stop(0.0) == PAUSE_S / 2


@given(st.floats(0, 30))
def test_at_any_second_there_is_a_beginning_of_the_episode(second: float) -> None:
    there = playback(WHOLE).at(second)
    kept = [event for event in there if not isinstance(event, ev.TokenStreamed)]
    assert kept == WHOLE[: len(kept)]
    assert len(there) - len(kept) <= 1
