"""My questions: what this browser has asked, found again, opened as it went, mended, and deleted."""

from __future__ import annotations

import streamlit as st

from merit.models import loading as models
from merit.settings import settings
from merit.story import fold
from merit.ui import afterwards, chaincard, entrance, leaving, notice, owner, panels, past, status, watching
from merit.ui.state import Key

entrance.through_app(__file__)
me = owner.current()
loading = models.start(settings().model, settings().encoder)
leaving.expire(loading)

left, right = st.columns([7, 4], vertical_alignment="bottom")
with left:
    st.title("My questions")
    st.caption("What this browser has asked. Nobody else sees the list; it is kept on this server until you delete it.")
with right:
    status.model(loading)

notice.kept()
found = past.history(me)
if found:
    past.table(past.search(found))
else:
    panels.nothing_asked()

# The opened one, as it went, and what can still be done with it.
shown = past.opened(me)
if shown is not None:
    st.divider()
    story = fold(shown.events)
    database = past.database(story, me)
    watching.draw(shown, database, status.limit(loading), loading.model)
    chaincard.draw(story)
    again = afterwards.panel(shown, story, database, me, loading)
    if again is not None:
        st.session_state[Key.JOB] = again.id
        st.switch_page("pages/ask.py")
    past.again(story, found, me)

st.divider()
panels.source()
