"""What stands still on the Ask page: what will be here, the limits of the method, the source of the page.

What this module does not know: anything that changes.
"""

from __future__ import annotations

import inspect
from types import FrameType

import streamlit as st

from merit.ui.state import Key

_STEPS = (
    ("Ask", "The model writes one query for your question."),
    ("Run", "The database runs it, read-only."),
    ("Judge", "You, a sample answer or a check says whether the rows are right."),
    ("Diagnose", "Fixed rules name the failure."),
    ("Recall", "Corrections of earlier questions that worked, and one that did not."),
    ("Repair", "The model tries again; what was learnt is remembered at the end."),
)
_LIMITS = (
    "Where a sample answer judges, the page says “oracle-assisted”: the reference tells when to stop. "
    "This is not autonomous correction.",
    "The published figures come from one language model (Qwen2.5-7B-Instruct, 4-bit). Another one "
    "may gain more or less.",
    "What is remembered depends on the order in which questions were asked.",
    "The failure classifier is coarse: it reads the database's message and the outcome, never the SQL; "
    "most wrong rows look alike to it.",
    "Token counts leave out the cost of embedding texts and of searching memory.",
)


def empty() -> None:
    """What will be here, before the first question."""
    items = "".join(f"<li><b>{name}</b><span>{text}</span></li>" for name, text in _STEPS)
    st.html(
        '<div class="m-empty"><p>The story of your question will be told here, step by step. Pick a sample question '
        f'above and press Ask.</p><ol class="m-steps">{items}</ol></div>'
    )


def nothing_asked() -> None:
    """What will be here, and the one step that fills it."""
    st.html('<div class="m-empty"><p>Nothing has been asked in this browser yet. Every question you ask is kept here, '
            "to be opened again as it went.</p></div>")  # fmt: skip
    if st.button("Ask a question", type="primary", icon=":material/chat:"):
        st.switch_page("pages/ask.py")


def limits() -> None:
    """The limits of the method in plain words (spec §8)."""
    with st.popover("What these results can and cannot show", type="tertiary", icon=":material/info:"):
        st.html("<ul class='m-words'>" + "".join(f"<li>{text}</li>" for text in _LIMITS) + "</ul>")


def source() -> None:
    """A switch that prints the source of the page that calls this."""
    caller = inspect.currentframe()
    page: FrameType | None = caller.f_back if caller else None
    if st.toggle("Show the code of this page", key=Key.SHOW_CODE) and page is not None:
        with open(page.f_code.co_filename, encoding="utf-8") as file:
            st.code(file.read(), language="python", line_numbers=True)
