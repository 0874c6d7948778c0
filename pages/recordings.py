"""Recordings: a finished episode played again as it went, at any speed, step by step; from the gallery or a file."""

from __future__ import annotations

import streamlit as st

from merit.ui import entrance, notice, owner, panels, player, shelf

entrance.through_app(__file__)
me = owner.current()

st.title("Recordings")
st.caption("Finished episodes, played again as they went. Nothing is asked, run or remembered.")
notice.kept()
chosen = shelf.chosen(me)
if chosen is None:
    shelf.drop()
    shelf.gallery()
    shelf.own(me)
else:
    name, bundle = chosen
    st.button("All recordings", type="tertiary", icon=":material/arrow_back:", key="leave", on_click=shelf.leave)
    player.draw(name, bundle)

st.divider()
panels.source()
