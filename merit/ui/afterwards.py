"""What a person can still do with an episode: take an answer back, take it along, save it again, mend the SQL.

What this module does not know: on which page the episode stands.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from merit.database import Database
from merit.errors import MeritError
from merit.events import Failed
from merit.jobs import Job
from merit.models.loading import Loading
from merit.story import Story
from merit.ui import asking, correction, judging, notice, share
from merit.ui.asking import Shown


def panel(shown: Shown, story: Story, database: Database | None, owner: str, loading: Loading) -> Job | None:
    """The buttons and the editor below a story; the job that goes on where an answer was taken back."""
    if not shown.mine:
        share.compare(story)
        return None
    if story.started is None or database is None:
        return None
    again, request = None, shown.request or asking.rebuilt(story.started, owner)
    with st.container(horizontal=True, key="after"):
        judged = judging.to_undo(story)
        if judged is not None and judging.undo_button(judged):
            try:
                again = asking.begin_undo(shown.job, shown.events, judged.iteration, request, loading)
            except MeritError as error:
                notice.say(str(error))
        share.bundle(shown.events, owner)
        share.replay(story)
        share.compare(story)
    if isinstance(story.end, Failed) and story.end.unsaved is not None:
        share.save_again(story.end, partial(asking.save_again, request, loading))
    if (story.end or story.waiting) and not story.solved and story.last:
        remember = partial(asking.remember, shown, request, loading)
        correction.panel(story.last, request.database, remember, story.started.episode_id)
    return again
