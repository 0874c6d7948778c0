"""Every page is entered through app.py, also the first one of a fresh server.

Before any session has called ``st.navigation``, streamlit takes the folder pages/ for an app of its own: an address
such as /databases then runs that page alone, without theme, title and navigation, and stays that way.

What this module does not know: which pages there are.
"""

from __future__ import annotations

import streamlit as st

from merit.ui.state import Key


def open() -> None:
    """Called by app.py before it hands over to a page."""
    st.session_state[Key.ENTERED] = True


def through_app(page: str) -> None:
    """The first line of every page but the default one (``page``: its file): where app.py has not run, begin again
    with it. Calling ``st.navigation``, with this page in it so that the address holds, is what ends the other mode."""
    if Key.ENTERED not in st.session_state:
        st.navigation([st.Page(lambda: None, title="MERIT Explorer", default=True), st.Page(page)], position="hidden")
        st.rerun()
