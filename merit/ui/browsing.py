"""Entries of the memory as of a position: slider, table and the opened entry, redrawn together and while it plays.

What this module does not know: what each of these looks like (``recalled``, ``remembered``, ``opened``).
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from merit.memory import listing
from merit.memory.store import MemoryStore
from merit.ui import opened, recalled, remembered
from merit.ui.state import Key

_EMPTY = (
    "Nothing has been asked yet, so nothing is remembered. Ask a question: when its first answer fails, what repaired "
    "it, or did not, is kept here."
)


def draw(store: MemoryStore, more: tuple[opened.Part, ...] = ()) -> None:
    """The whole view; while it plays it is redrawn by itself, without the rest of the page."""
    playing = bool(st.session_state.get(Key.PLAYING))
    st.fragment(_draw, run_every=recalled.TICK_S if playing else None)(store, more, playing)


def _draw(store: MemoryStore, more: tuple[opened.Part, ...], was_playing: bool) -> None:
    if bool(st.session_state.get(Key.PLAYING)) is not was_playing:
        st.rerun()  # another pace of redrawing
    last = store.upcoming()
    if not last:
        st.html(f'<div class="m-empty"><p>{_EMPTY}</p></div>')
        if st.button("Ask a question", type="primary", icon=":material/chat:"):
            st.switch_page("pages/ask.py")
        return
    at = recalled.moment(last)
    above = st.container()
    wanted = remembered.filters(store.look(partial(listing.databases, before=at.before)), last)
    found = remembered.listed(store, at, wanted)
    with above:
        recalled.banner(at, found.positive, found.negative, found.observations)
    left, right = st.columns([7, 5], gap="medium")
    with left:
        remembered.table(found, at)
    with right:
        opened.draw(store, remembered.chosen(), at, more)
