"""Databases: the samples and one's own, what is in each, and a way to bring one along."""

from __future__ import annotations

import streamlit as st

from merit.errors import MeritError
from merit.models import loading as models
from merit.settings import settings
from merit.ui import (
    asking,
    bringing,
    catalogue,
    databases,
    entrance,
    leaving,
    notice,
    own_questions,
    owner,
    panels,
    removing,
)
from merit.ui.state import Key

entrance.through_app(__file__)
me = owner.current()
loading = models.start(settings().model, settings().encoder)
leaving.expire(loading)
listed = catalogue.all_of(me)
databases.restore(listed)

st.title("Databases")
st.caption("What questions can be asked about: the samples, and files of your own.")
bringing.panel(me)
notice.kept()

left, right = st.columns([3, 9], gap="large")
with left:
    chosen = databases.picker(listed)
with right:
    database = None
    try:
        database = asking.open_database(chosen.id, me)
    except MeritError as error:
        notice.say(str(error))

    # What it is, what can be asked, what is worth knowing before one asks.
    with st.container(horizontal=True, key="what"):
        databases.heading(chosen, database)
        if chosen.upload is not None:
            removing.panel(chosen, me, loading)
    if database is not None:
        databases.first_questions(chosen, database, me)
        databases.findings(database)

        # What is in it.
        names = ["Tables", "Diagram", "Schema in prompts", *(["Your questions"] if chosen.upload else [])]
        inside, diagram, schema, *own = st.tabs(names, key=f"{Key.DATABASE_TABS}-{chosen.id}", on_change="rerun")
        if inside.open:
            with inside:
                databases.tables(chosen, database)
        if diagram.open:
            with diagram:
                databases.diagram(chosen, database)
        if schema.open:
            with schema:
                databases.schema(database)
        if chosen.upload is not None and own[0].open:
            with own[0]:
                own_questions.panel(chosen.upload, database, me)

st.divider()
panels.source()
