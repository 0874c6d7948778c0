"""Routing: how a failure gets its name, what the name leads to, and how often it is right."""

from __future__ import annotations

import streamlit as st

from merit.models import loading as models
from merit.settings import settings
from merit.ui import (
    entrance,
    leaving,
    notice,
    owner,
    panels,
    routing_bench,
    routing_effect,
    routing_failures,
    routing_labelling,
    routing_validation,
    status,
)
from merit.ui.state import Key

entrance.through_app(__file__)
me = owner.current()
loading = models.start(settings().model, settings().encoder)
leaving.expire(loading)

left, right = st.columns([7, 4], vertical_alignment="bottom")
with left:
    st.title("Routing")
    st.caption("How a failure gets its name, what that leads to, and how often the name is right.")
with right:
    status.model(loading)
notice.kept()

names = ["One failure", "How often it is right", "Label", "Real failures"]
one, measured, labels, real = st.tabs(names, key=Key.ROUTING_TABS, on_change="rerun")
if one.open:
    with one, st.container(key="bench"):
        routing_bench.restore(me)
        routing_bench.examples()
        typed, rules, follows = st.columns([4, 4, 5], gap="medium")
        with typed:
            given = routing_bench.typed_in(me)
            trial = routing_bench.trial_of(given)
            if trial is not None and given.mode is routing_bench.Mode.STATEMENT:
                routing_bench.told(trial)
        with rules:
            ruled = routing_bench.ladder(trial) if trial is not None else routing_bench.nothing_yet()
        with follows:
            if trial is not None and ruled is not None and given.database is not None:
                routing_effect.draw(trial, ruled, given.database, loading, me)
if measured.open:
    with measured:
        routing_validation.upload()
        routing_validation.draw(routing_validation.failures())
if labels.open:
    with labels:
        routing_labelling.draw(routing_validation.failures())
if real.open:
    with real:
        routing_failures.panel(me)

st.divider()
panels.source()
