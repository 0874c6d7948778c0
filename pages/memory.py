"""Memory: what is remembered, since when, why it ranked where it ranked, and what can be done about it."""

from __future__ import annotations

from functools import partial

import streamlit as st

from merit.models import loading as models
from merit.settings import settings
from merit.ui import browsing, care, entrance, forgetting, leaving, notice, owner, panels, recalled, status
from merit.ui.state import Param

entrance.through_app(__file__)
me = owner.current()
loading = models.start(settings().model, settings().encoder)
leaving.expire(loading)

left, right = st.columns([7, 4], vertical_alignment="bottom")
with left:
    st.title("Memory")
    st.caption("What earlier questions left behind, and what a later one may see of it.")
with right:
    status.model(loading)

store = recalled.store(me, loading)
if store is not None:
    recalled.restore(store.upcoming())
    notice.kept()
    forgetting.undo(store, me)
    sections = {
        "Entries": partial(browsing.draw, store, (forgetting.part(store),)),
        "Care": partial(care.draw, store, me, loading),
    }
    tabs = st.tabs(list(sections), key=Param.SECTION, bind="query-params")
    for tab, draw in zip(tabs, sections.values(), strict=True):
        if tab.open:
            with tab:
                draw()

st.divider()
panels.source()
