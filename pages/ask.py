"""Ask: one question, one story. Inputs, one call into the library, then the story of the episode."""

from __future__ import annotations

import streamlit as st

from merit.errors import MeritError
from merit.models import loading as models
from merit.settings import settings
from merit.story import fold
from merit.ui import (
    afterwards,
    asking,
    catalogue,
    chaincard,
    inputs,
    leaving,
    notice,
    owner,
    panels,
    status,
    watching,
)
from merit.ui.state import Key, Param

me = owner.current()
loading = models.start(settings().model, settings().encoder)
leaving.expire(loading)
inputs.restore(me)

# What is on the page: the episode of this session, of the URL, or the one that still runs.
try:
    shown = asking.find(me, st.session_state.get(Key.JOB), st.query_params.get(Param.EPISODE))
except MeritError as error:
    shown = None
    notice.keep(str(error))
job = shown.job if shown else None
running = job is not None and not job.state.ended

# Inputs.
left, middle, right = st.columns([3, 4, 4], vertical_alignment="bottom")
with left:
    database = inputs.database(me)
with middle:
    status.memory(loading, catalogue.stream(st.session_state[Param.DATABASE], me))
with right:
    status.model(loading)
asked, stopped = inputs.question(running)
inputs.samples_to_try(st.session_state[Param.DATABASE], database, me)
draft = inputs.options(st.session_state[Param.DATABASE], database, me)
status.failure(loading)
notice.kept()

# One call into the library.
if asked:
    try:
        job = asking.begin(draft.request(me), loading)
    except MeritError as error:
        notice.say(str(error))
    else:
        st.session_state[Key.JOB] = job.id
        st.query_params.pop(Param.EPISODE, None)
        st.query_params.pop(Param.STEP, None)
        asking.wait_until_drawn(job)
        st.rerun()
if stopped and job is not None:
    job.cancel()

# The story.
st.divider()
if shown is None:
    panels.empty()
    inputs.publish(draft, None)
else:
    story = fold(shown.events)
    inputs.publish(draft, story.started.episode_id if story.started else None)
    watching.draw(shown, database, status.limit(loading), loading.model)
    chaincard.draw(story)

    # What a person can still do with it.
    again = afterwards.panel(shown, story, database, me, loading)
    if again is not None:
        st.session_state[Key.JOB] = again.id
        asking.wait_until_drawn(again)
        st.rerun()

st.divider()
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    panels.limits()
    panels.source()
