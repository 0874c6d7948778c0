"""Sentences to the person: what happened, what was kept, what to do. Always as text, never as markup.

What this module does not know: why.
"""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from merit.ui.state import Key
from merit.ui.text import escape, items


def say(text: str, *, urgent: bool = True) -> None:
    """Draw one sentence; ``urgent`` ones are read out at once by a screen reader."""
    role, tone, mark = ("alert", "broken", "✕") if urgent else ("status", "accent", "i")
    st.html(f'<div class="m-notice m-notice-{tone}" role="{role}"><b>{mark}</b><span>{escape(text)}</span></div>')


def listed(sentences: Iterable[str]) -> None:
    """Draw what belongs to a sentence, one line each; nothing where there is none."""
    found = items(sentences)
    if found:
        st.html(found)


def keep(text: str, *, urgent: bool = True) -> None:
    """Say it in the next run, before which a rerun would swallow it."""
    st.session_state[Key.NOTICE] = (text, urgent)


def kept() -> None:
    """Draw what was kept, once."""
    text, urgent = st.session_state.pop(Key.NOTICE, ("", True))
    if text:
        say(text, urgent=urgent)
