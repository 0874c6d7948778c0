"""Compare: one question under several strategies or memories, side by side; and what flips if memory was otherwise."""

from __future__ import annotations

import streamlit as st

from merit.errors import MeritError
from merit.models import loading as models
from merit.settings import settings
from merit.ui import (
    asking,
    catalogue,
    compared,
    comparing,
    entrance,
    inputs,
    leaving,
    notice,
    owner,
    panels,
    status,
)
from merit.ui.state import Key, Param

entrance.through_app(__file__)
me = owner.current()
loading = models.start(settings().model, settings().encoder)
leaving.expire(loading)
again = comparing.restore(me)
shown = compared.find(me)
job = shown.job if shown else None
running = job is not None and not job.state.ended

# Inputs.
st.title("Compare")
st.caption("One question, up to four ways, step beside step. It reads the memory and writes nothing into it.")
left, middle, right = st.columns([3, 4, 4], vertical_alignment="bottom")
with left:
    database = inputs.database(me)
stream = catalogue.stream(st.session_state[Param.DATABASE], me)
with middle:
    status.memory(loading, stream)
with right:
    status.model(loading)
asked, stopped = inputs.question(running, "Compare")
inputs.samples_to_try(st.session_state[Param.DATABASE], database, me)
written = comparing.draft(database, again, me)
status.failure(loading)
notice.kept()
if again is not None:
    comparing.told(again)
try:
    store = asking.memory_of(loading, stream)
except MeritError:
    store = None  # the line on top says why
lanes = comparing.columns(store, again)
comparing.publish(written, lanes)

# One call into the library.
if asked:
    try:
        job = comparing.begin(written, lanes, again, me, loading)
    except MeritError as error:
        notice.say(str(error))
    else:
        st.session_state[Key.COMPARISON] = job.id
        asking.wait_until_drawn(job)
        st.rerun()
if stopped and job is not None:
    job.cancel()

# What came of it.
st.divider()
if shown is None:
    comparing.empty()
else:
    compared.draw(shown, database, loading.model)

st.divider()
panels.source()
