"""A person judges: the rows, one large question, three keys; and a mistaken answer taken back.

What this module does not know: the loop that waits for the answer.
"""

from __future__ import annotations

import streamlit as st

from merit.episode import Outcome
from merit.jobs import Job
from merit.live import Request
from merit.story import Step, Story
from merit.ui.state import Key
from merit.verification import PersonVerifier

QUESTION = "Is this what you meant?"


def ask(step: Step, job: Job | None) -> None:
    """Draw the question under the rows of ``step``; the answer goes to the verifier that waits in the job."""
    request: Request | None = job.context if job is not None else None
    if request is None or step.attempt is None:
        return
    verifier, sql = request.verifier, step.attempt.sql
    st.html(f'<p class="m-ask">{QUESTION}</p>')
    with st.container(horizontal=True, key="judging", gap="small"):
        yes = st.button("Yes", key=Key.YES, shortcut="y", type="primary", width="stretch")
        no = st.button("No", key=Key.NO, shortcut="n", width="stretch")
        stop = st.button("Stop", key=Key.STOP_JUDGING, shortcut="esc", width="stretch")
    st.caption("Yes ends the episode as correct. No lets the model try again. Stop ends it and stores nothing.")
    word = "yes" if yes else "no" if no else "stop" if stop else None
    if word is not None and isinstance(verifier, PersonVerifier):
        verifier.answer(word, sql)
        st.rerun()


def to_undo(story: Story) -> Step | None:
    """The latest step that a person judged."""
    return next((s for s in reversed(story.steps) if s.judged is not None and s.judged.by == PersonVerifier.name and
                 s.judged.outcome in (Outcome.CORRECT, Outcome.DENOTATION_MISMATCH)), None)  # fmt: skip


def undo_button(step: Step) -> bool:
    """Offer to take the person's answer on ``step`` back; True when pressed."""
    assert step.judged is not None
    said, instead = ("yes", "no") if step.judged.outcome is Outcome.CORRECT else ("no", "yes")
    return st.button(
        f"I meant {instead}, not {said}",
        key=Key.UNDO,
        type="tertiary",
        icon=":material/undo:",
        help=f"Takes back your {said} on “{step.title}” and what it left in memory, and goes on with {instead}.",
    )
