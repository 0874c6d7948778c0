"""The diagnosis of one failure: its mark, the rule that fired, and why the rules before it did not.

What this module does not know: the rules themselves (``merit.diagnosis``).
"""

from __future__ import annotations

import streamlit as st

from merit.diagnosis import explain
from merit.episode import FailureType, Outcome
from merit.events import Diagnosed
from merit.ui import theme
from merit.ui.text import escape

_LONGEST = 120
"""Most characters of a database message in the one line; the step shows all of it."""


def chip(failure_type: FailureType) -> str:
    """The two-letter mark and the name as HTML."""
    sign = theme.FAILURES[failure_type]
    return (
        f'<span class="m-chip" title="{escape(sign.meaning)}"><b style="background:{sign.fill}">{sign.letters}</b>'
        f"{escape(failure_type)}</span>"
    )


def line(diagnosed: Diagnosed, outcome: Outcome) -> str:
    """One line: type, subtype and the rule that fired, as HTML."""
    fired = explain(outcome, diagnosed.message)[-1]
    subtype = f"({escape(diagnosed.subtype)}) " if diagnosed.subtype else ""
    said = f"from “{escape(_cut(diagnosed.message))}”" if diagnosed.message else escape(fired.rule.condition)
    return (
        f'<div class="m-link"><span class="m-verb">Diagnosed</span><div>{chip(diagnosed.failure_type)}'
        f'<span class="m-soft">{subtype}by rule {diagnosed.rule}, {said}</span></div></div>'
    )


def _cut(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def ladder(diagnosed: Diagnosed, outcome: Outcome) -> None:
    """Every rule that was tested, in order, with the reason; the last one fired."""
    steps = explain(outcome, diagnosed.message)
    rows = "".join(
        f'<li class="{"m-fired" if step.fired else "m-passed"}"><span class="m-number">{step.rule.number}</span>'
        f"<span>{escape(step.rule.condition)}<small>{'Fired. ' if step.fired else ''}{escape(step.why)}</small>"
        "</span></li>"
        for step in steps
    )
    st.html(
        '<p class="m-note">Rules are tested in this order; the first that fits gives the name. They read the message '
        f'of the database and the outcome, never the SQL.</p><ol class="m-ladder">{rows}</ol>'
    )
