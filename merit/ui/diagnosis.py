"""The diagnosis of one failure: its mark, the rule that fired, and why the rules before it did not.

What this module does not know: the rules themselves (``merit.diagnosis``).
"""

from __future__ import annotations

import streamlit as st

from merit.diagnosis import RULES, Step, explain
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
    rows = "".join(_rung(step) for step in explain(outcome, diagnosed.message))
    st.html(f'<p class="m-note">{_READS}</p><ol class="m-ladder">{rows}</ol>')


def whole_ladder(outcome: Outcome, message: str | None) -> None:
    """All rules from top to bottom: those that were tested struck through with the reason, the one that fired lit,
    those below it only named, since the first that fits ends the search."""
    steps = explain(outcome, message)
    rest = "".join(
        f'<li class="m-untested"><span class="m-number">{rule.number}</span><span>{escape(rule.condition)}</span></li>'
        for rule in RULES[len(steps) :]
    )
    rows = "".join(_rung(step, struck=True) for step in steps)
    after = f'<p class="m-note">Not tested: rule {steps[-1].rule.number} fits and ends the search.</p>' if rest else ""
    st.html(f'<p class="m-note">{_READS}</p><ol class="m-ladder">{rows}</ol>{after}<ol class="m-ladder">{rest}</ol>')


_READS = (
    "Rules are tested in this order; the first that fits gives the name. They read the message of the database and the "
    "outcome, never the SQL."
)


def _rung(step: Step, struck: bool = False) -> str:
    rule = step.rule
    condition = f"<s>{escape(rule.condition)}</s>" if struck and not step.fired else escape(rule.condition)
    gives = f" → {chip(rule.failure_type)}" if struck and step.fired else ""
    return (
        f'<li class="{"m-fired" if step.fired else "m-passed"}"><span class="m-number">{rule.number}</span>'
        f"<span>{condition}{gives}<small>{'Fired. ' if step.fired else ''}{escape(step.why)}</small></span></li>"
    )
