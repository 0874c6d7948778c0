"""The exact prompt on the screen: memory blocks tinted by polarity, its length beside the budget, what was dropped.

What this module does not know: how a prompt is made. It finds the blocks by the headings of the templates and
shows every character in its order; the tint is all that is added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import streamlit as st

from merit.events import PromptBuilt
from merit.ui.text import count, escape

_BLOCKS = (
    ("CONFIRMED SUCCESSFUL REPAIR DIRECTIONS:", "good"),
    ("OBSERVED FAILED DIRECTIONS:", "broken"),
    ("LOCAL REFLECTIONS FROM THIS EPISODE:", "slow"),
    ("CURRENT FEEDBACK:", "different"),
    ("DATABASE SCHEMA:", ""),
    ("EXTERNAL KNOWLEDGE / EVIDENCE:", ""),
    ("BIRD RULES:", ""),
    ("QUESTION:", "accent"),
    ("CURRENT ERROR TYPE:", ""),
    ("LOCAL ATTEMPT HISTORY:", "quiet"),
    ("ATTEMPTS AND OBSERVED OUTCOMES:", "quiet"),
    ("REPAIR RULES:", ""),
    ("RULES:", ""),
)
"""Headings of the templates in their order, and the tone of what stands under them."""
_HEADINGS = re.compile("^(?:" + "|".join(re.escape(heading) for heading, _ in _BLOCKS) + ")", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A run of the prompt and the tone it is tinted with ("" for none)."""

    text: str
    tone: str


def blocks(prompt: str) -> tuple[Block, ...]:
    """The prompt cut at its headings; joined again it is the same text.

    A heading counts only after those before it, so a question that holds a heading's words starts no block twice.
    """
    tones = [tone for _, tone in _BLOCKS]
    names = [heading for heading, _ in _BLOCKS]
    cuts: list[tuple[int, str]] = [(0, "")]
    reached = -1
    for found in _HEADINGS.finditer(prompt):
        place = names.index(found.group())
        if place > reached:
            cuts.append((found.start(), tones[place]))
            reached = place
    ends = [start for start, _ in cuts[1:]] + [len(prompt)]
    return tuple(Block(prompt[start:end], tone) for (start, tone), end in zip(cuts, ends, strict=True) if end > start)


def draw(prompt: PromptBuilt, limit: int) -> None:
    """The length, what was left out, and the text; ``limit`` is the most tokens a prompt may have."""
    st.html(budget(prompt, limit) + _legend() + text(prompt.prompt))


def budget(prompt: PromptBuilt, limit: int) -> str:
    """The token bar as HTML, with the numbers in words."""
    share = min(1.0, prompt.tokens / limit) if limit else 1.0
    tone = "broken" if prompt.tokens > limit else "accent"
    dropped = ""
    if prompt.dropped:
        items = ", ".join(escape(item) for item in prompt.dropped)
        dropped = f'<span class="m-note">Left out to fit, in this order: {items}</span>'
    return (
        f'<div class="m-budget"><span>{prompt.tokens:,} of {count(limit, "token")}</span>'
        f'<span class="m-bar" role="img" aria-label="{share:.0%} of the prompt budget is used">'
        f'<span class="m-bar-{tone}" style="width:{share:.1%}"></span></span>{dropped}</div>'
    )


def text(prompt: str) -> str:
    """The tinted prompt as HTML."""
    spans = (
        f'<span class="m-tint m-tint-{block.tone}">{escape(block.text)}</span>' if block.tone else escape(block.text)
        for block in blocks(prompt)
    )
    return f'<pre class="m-pre" tabindex="0" aria-label="Prompt">{"".join(spans)}</pre>'


def _legend() -> str:
    words = (("good", "+ worked before"), ("broken", "− failed before"), ("quiet", "earlier attempts"))
    items = "".join(f'<span class="m-key m-tint-{tone}">{word}</span>' for tone, word in words)
    return f'<div class="m-legend">{items}</div>'
