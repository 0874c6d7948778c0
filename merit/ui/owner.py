"""Who is asking: a random id in a cookie, so that a reload finds its episodes and nobody else does (contract: Places).

The server makes the id; a script of one fixed line puts it into the browser. A browser that refuses cookies is a new
owner after each reload: what ran then ends by itself when the owner expires.

What this module does not know: persons. There is no login.
"""

from __future__ import annotations

import re
import secrets

import streamlit as st

from merit.ui.state import Key

COOKIE = "merit_owner"
_DAYS = 30
_VALID = re.compile(r"[0-9a-f]{32}")


def current() -> str:
    """The owner's private id, 32 hex digits, the same for all runs of this session and of this browser."""
    cookie = str(st.context.cookies.get(COOKIE, ""))  # a browser may send anything
    if Key.OWNER not in st.session_state:
        st.session_state[Key.OWNER] = cookie if _VALID.fullmatch(cookie) else secrets.token_hex(16)
    owner: str = st.session_state[Key.OWNER]
    if cookie != owner:
        crumbs = f"{COOKIE}={owner}; path=/; max-age={_DAYS * 86_400}; SameSite=Strict"
        st.html(f'<script>document.cookie = "{crumbs}";</script>', unsafe_allow_javascript=True)
    return owner
