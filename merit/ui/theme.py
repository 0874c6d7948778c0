"""Colours, marks and words of the instrument, once; every page and chart takes them from here.

A meaning always has a word and a mark beside its colour. The same hex values stand in ``.streamlit/config.toml``
for streamlit's own widgets; a test holds the two together and measures their contrast.

What this module does not know: what is drawn with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import streamlit as st

from merit.episode import FailureType, Outcome, Polarity

ASSETS = Path(__file__).resolve().parents[2] / "assets"


@dataclass(frozen=True)
class Tone:
    """One meaning of colour: text colour and quiet background, light and dark, and streamlit's name for it."""

    name: str
    light: str
    dark: str
    light_fill: str
    dark_fill: str
    directive: Literal["green", "orange", "red", "violet", "gray", "blue"]


GOOD = Tone("good", "#0B7A53", "#3CCB98", "#E7F4EE", "#14312A", "green")
DIFFERENT = Tone("different", "#8A5A00", "#F0B44C", "#FBF1DE", "#352A17", "orange")
BROKEN = Tone("broken", "#B3261E", "#FF8A80", "#FBEAE8", "#3A2122", "red")
SLOW = Tone("slow", "#5B4BB2", "#B3A7FF", "#EEECF8", "#282642", "violet")
QUIET = Tone("quiet", "#5F6B76", "#9AA7B2", "#EEF1F3", "#242B33", "gray")
ACCENT = Tone("accent", "#1F5FA8", "#7FB4F0", "#E8F0F9", "#1A2B3F", "blue")
TONES = (GOOD, DIFFERENT, BROKEN, SLOW, QUIET, ACCENT)

BACKGROUND = ("#FFFFFF", "#12161B")
SURFACE = ("#F4F6F8", "#1B2128")
TEXT = ("#1B232B", "#E6EAEE")
HAIRLINE = ("#D8DEE4", "#333D47")
FILL_INK = "#15191D"
"""Ink and outline on the fills of failure types, in both themes."""


@dataclass(frozen=True)
class Sign:
    """How one meaning is told: word, mark, tone."""

    word: str
    mark: str
    tone: Tone

    @property
    def label(self) -> str:
        """Mark and word as coloured Markdown for widget labels; it holds no text from outside."""
        return f":{self.tone.directive}[**{self.mark} {self.word}**]"


OUTCOMES: dict[Outcome, Sign] = {
    Outcome.CORRECT: Sign("Correct", "●", GOOD),
    Outcome.DENOTATION_MISMATCH: Sign("Wrong rows", "◐", DIFFERENT),
    Outcome.EXECUTION_ERROR: Sign("Database error", "✕", BROKEN),
    Outcome.TIMEOUT: Sign("Timed out", "◷", SLOW),
    Outcome.NOT_JUDGED: Sign("Not judged", "○", QUIET),
}
STOPPED = Sign("Stopped", "○", QUIET)
WORKING = Sign("Working", "◌", ACCENT)
WAITING = Sign("Your turn", "?", ACCENT)
FAILED = Sign("Could not finish", "✕", BROKEN)

POLARITIES: dict[Polarity, Sign] = {
    Polarity.POSITIVE: Sign("Worked before", "+", GOOD),
    Polarity.NEGATIVE: Sign("Failed before", "−", BROKEN),
}


@dataclass(frozen=True)
class FailureSign:
    """Two-letter mark, Okabe–Ito fill (same in both themes, dark ink and outline) and a sentence in plain words."""

    letters: str
    fill: str
    meaning: str


FAILURES: dict[FailureType, FailureSign] = {
    FailureType.RESULT_MISMATCH: FailureSign("RM", "#E69F00", "The query ran, but its rows are not the answer."),
    FailureType.SCHEMA_LINKING: FailureSign("SL", "#56B4E9", "A table or column was named that is not there."),
    FailureType.AGGREGATION: FailureSign("AG", "#009E73", "A sum, count or average stands where it may not."),
    FailureType.FILTER_VALUE: FailureSign("FV", "#F0E442", "A value has the wrong type for what it is compared with."),
    FailureType.EXECUTION: FailureSign("EX", "#D55E00", "The query was refused or took too long."),
    FailureType.SYNTAX: FailureSign("SY", "#CC79A7", "The database could not read the query."),
    FailureType.UNKNOWN: FailureSign("UN", "#999999", "The message fits none of the rules."),
}


def css(scheme: str | None = None) -> str:
    """The colour variables for both themes and the rules of ``assets/theme.css``.

    Streamlit sets ``color-scheme`` on the app, which ``light-dark`` follows, but not on popovers, which hang beside it:
    these get ``scheme`` ("light" or "dark"), or what the system prefers while the browser has not said it.
    """
    variables = [
        *(f"--{t.name}: light-dark({t.light}, {t.dark}); --{t.name}-fill: light-dark({t.light_fill}, {t.dark_fill});"
          for t in TONES),
        f"--surface: light-dark({SURFACE[0]}, {SURFACE[1]});",
        f"--ink: light-dark({TEXT[0]}, {TEXT[1]});",
        f"--paper: light-dark({BACKGROUND[0]}, {BACKGROUND[1]});",
        f"--hairline: light-dark({HAIRLINE[0]}, {HAIRLINE[1]});",
        f"--fill-ink: {FILL_INK};",
    ]  # fmt: skip
    rules = (ASSETS / "theme.css").read_text(encoding="utf-8")
    known = scheme if scheme in ("light", "dark") else "light dark"
    popovers = f"[data-testid=stPopoverBody] {{ color-scheme: {known}; }}"
    return f"<style>:root {{ {' '.join(variables)} }}\n{popovers}\n{rules}</style>"


def apply() -> None:
    """Put the theme into the page; call once per run, before anything is drawn."""
    st.html(css(st.context.theme.type))


def is_dark() -> bool:
    """Whether the browser shows the dark theme (False until it has said so)."""
    return bool(st.context.theme.type == "dark")
