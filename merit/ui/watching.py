"""The live part of the page: drains a job's events into the story while it runs, and stops ticking when it is done.

What this module does not know: what a step looks like (``steps``) or what the inputs are.
"""

from __future__ import annotations

import streamlit as st

from merit.database import Database
from merit.jobs import JobState
from merit.story import Story, fold
from merit.ui import judging, notice, steps
from merit.ui.asking import Shown
from merit.ui.state import Param
from merit.ui.text import escape

_TICK_S = {JobState.RUNNING: 0.4, JobState.WAITING_FOR_PERSON: 2.0}


def draw(shown: Shown, database: Database | None, limit: int, model: object = None) -> None:
    """The story so far; redrawn by itself while the job runs, without the rest of the page."""
    state = shown.job.state if shown.job is not None else JobState.FINISHED
    st.fragment(_draw, run_every=_TICK_S.get(state))(shown, database, limit, model, state)


def _draw(shown: Shown, database: Database | None, limit: int, model: object, drawn: JobState) -> None:
    job = shown.job
    now = job.state if job is not None else JobState.FINISHED
    if now is not drawn:
        st.rerun()  # another pace of redrawing, and buttons that changed
    story = fold(shown.events[: len(shown.events)])
    if story.started is not None:
        _head(story)
        if st.query_params.get(Param.EPISODE) != story.started.episode_id:
            st.query_params[Param.EPISODE] = story.started.episode_id
    elif not now.ended:
        st.html(
            '<p class="m-soft" role="status">Waiting for the model. The question is asked as soon as it is there.</p>'
        )
    ahead = job.place(model) if job is not None and not now.ended else None
    if ahead:
        st.html(f'<p class="m-soft" role="status">◌ The model answers one question at a time: {ahead} before you.</p>')
    if job is not None and job.cancelling and not now.ended:
        st.html('<p class="m-soft" role="status">○ Stopping: the model finishes the token it is at.</p>')
    opened = _opened(story)
    frame = steps.Frame(story, database, limit, now.ended, lambda step: judging.ask(step, job), opened, _turned)
    steps.draw(frame)
    steps.end(story)


def _opened(story: Story) -> int | None:
    """The step that the URL says is open; a sentence where the finished episode has none of this number."""
    wanted = st.query_params.get(Param.STEP, "")
    if not wanted:
        return None
    step = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 6 else -1
    if story.end is not None and step not in {known.iteration for known in story.steps}:
        last = story.last.iteration if story.last else 0
        notice.say(
            f"This episode has no step {wanted[:20]}; its steps are 0 to {last}. All of it is shown.", urgent=False
        )
    return step


def _turned(iteration: int, is_open: bool) -> None:
    """The URL names the step that was opened last."""
    if is_open:
        st.query_params[Param.STEP] = str(iteration)
    elif st.query_params.get(Param.STEP) == str(iteration):
        del st.query_params[Param.STEP]


def _head(story: Story) -> None:
    assert story.started is not None
    started = story.started
    oracle = '<span class="m-oracle">oracle-assisted</span>' if started.oracle_assisted else ""
    st.html(
        f'<div class="m-story"><h2>{escape(started.question.text)}</h2><div class="m-status"><span>Question '
        f"<b>{started.position:,}</b></span><span>{escape(started.question.database_id)}</span>"
        f"<span>judged by {_judge(started.verifier)}</span>{oracle}</div></div>"
    )


def _judge(name: str) -> str:
    words = {"person": "you", "assertion": "an expected result", "execution": "nobody"}
    return words.get(name, "the sample answer" if name.startswith("spider") else escape(name))
