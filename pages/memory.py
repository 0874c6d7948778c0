"""Memory: what is remembered, since when, why it ranked where it ranked, and what can be done about it."""

from __future__ import annotations

import streamlit as st

from merit.models import loading as models
from merit.settings import settings
from merit.ui import browsing, entrance, leaving, notice, owner, panels, recalled, status
from merit.ui.state import Key

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
    (entries,) = st.tabs(["Entries"], key=Key.MEMORY_TABS, on_change="rerun")
    if entries.open:
        with entries:
            browsing.draw(store)

st.divider()
panels.source()
