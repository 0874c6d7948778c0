"""The router: page configuration, theme, and the sections with their pages. Run with ``make run``."""

from __future__ import annotations

import streamlit as st

from merit.ui import entrance, theme

SECTIONS = {
    "Try it": [
        st.Page("pages/ask.py", title="Ask", icon=":material/chat:", default=True),
        st.Page("pages/compare.py", title="Compare", icon=":material/compare_arrows:"),
        st.Page("pages/questions.py", title="My questions", icon=":material/manage_search:"),
        st.Page("pages/recordings.py", title="Recordings", icon=":material/slideshow:"),
        st.Page("pages/memory.py", title="Memory", icon=":material/history_edu:"),
        st.Page("pages/routing.py", title="Routing", icon=":material/alt_route:"),
        st.Page("pages/databases.py", title="Databases", icon=":material/database:"),
    ],
}

st.set_page_config(
    page_title="MERIT Explorer",
    page_icon=str(theme.ASSETS / "favicon.svg"),
    layout="wide",
    initial_sidebar_state="collapsed",
    menu_items={"About": "MERIT Explorer: watch Text-to-SQL repair with causal episodic memory, step by step."},
)
theme.apply()
entrance.open()
st.logo(str(theme.ASSETS / "logo.svg"), size="medium")
st.navigation(SECTIONS, position="top").run()
