"""A causal chain as one SVG picture for slides and papers: five boxes from top to bottom, an arrow with its reason
between them. It needs no font, script or picture from elsewhere, and all text in it is text.

What this module does not know: streamlit.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from merit.chain import Chain, Kind, Link
from merit.ui import theme
from merit.ui.text import escape

WIDTH = 960
_PAD = 24
_LINE = 20
_CHARS = 92
"""Characters of a line of text, at 14 px in a sans face."""
_MAX_LINES = 5
_ARROW = 44
_LABEL = 132
_FONT = "font-family=\"'Source Sans 3','Source Sans Pro',system-ui,sans-serif\""


@dataclass(frozen=True)
class _Box:
    link: Link
    tone: theme.Tone
    lines: tuple[str, ...]

    @property
    def height(self) -> int:
        return 44 + _LINE * len(self.lines)


def tone(chain: Chain, link: Link) -> theme.Tone:
    """The colour of a link: that of the outcome for the two ends, of the polarity for the entry."""
    judged = {Kind.SYMPTOM: chain.before.judged, Kind.OUTCOME: chain.after.judged}.get(link.kind)
    if judged is not None:
        return theme.OUTCOMES[judged.outcome].tone
    if link.kind is Kind.ENTRY:
        return theme.POLARITIES[chain.entries[0].polarity].tone if chain.entries else theme.QUIET
    return theme.ACCENT


def svg(chain: Chain, foot: Sequence[str] = ()) -> str:
    """The picture on paper white, ``WIDTH`` units wide and as high as it must be; ``foot``: lines below it."""
    boxes = [_Box(link, tone(chain, link), _wrapped(link.text)) for link in chain.links]
    title = _wrapped(chain.question, 70, 2)
    top = 24 + 28 * len(title) + 16
    parts = [
        f'<text x="{_PAD}" y="{20 + 28 * number}" font-size="22" font-weight="600">{escape(line)}</text>'
        for number, line in enumerate(title, start=1)
    ]
    y = top
    for box in boxes:
        if box.link.because:
            parts.append(_arrow(y, box.link.because))
            y += _ARROW
        parts.append(_drawn(box, y))
        y += box.height
    for line in foot:
        y += 24
        parts.append(f'<text x="{_PAD}" y="{y}" font-size="13" fill="{theme.QUIET.light}">{escape(line)}</text>')
    height = y + _PAD
    words = ", ".join(f"{link.kind.lower()}: {link.title}" for link in chain.links)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" {_FONT} fill="{theme.TEXT[0]}"><title>{escape(f"Causal chain. {words}")}</title>'
        f'<rect width="{WIDTH}" height="{height}" fill="{theme.BACKGROUND[0]}"/>{"".join(parts)}</svg>'
    )


def _drawn(box: _Box, y: int) -> str:
    width = WIDTH - 2 * _PAD
    lines = "".join(
        f'<text x="{_PAD + _LABEL}" y="{y + 52 + _LINE * number}" font-size="14">{escape(line)}</text>'
        for number, line in enumerate(box.lines)
    )
    title = _wrapped(box.link.title, 70, 1)[0] if box.link.title else ""
    return (
        f'<rect x="{_PAD}" y="{y}" width="{width}" height="{box.height}" rx="8" fill="{box.tone.light_fill}"/>'
        f'<rect x="{_PAD}" y="{y}" width="4" height="{box.height}" fill="{box.tone.light}"/>'
        f'<text x="{_PAD + 20}" y="{y + 28}" font-size="15" fill="{theme.QUIET.light}">{box.link.kind}</text>'
        f'<text x="{_PAD + _LABEL}" y="{y + 28}" font-size="17" font-weight="600" fill="{box.tone.light}">'
        f"{escape(title)}</text>{lines}"
    )


def _arrow(y: int, because: str) -> str:
    x = _PAD + 60
    colour = theme.QUIET.light
    return (
        f'<path d="M{x} {y + 6}V{y + _ARROW - 8}M{x - 6} {y + _ARROW - 15}l6 8l6 -8" stroke="{colour}" '
        f'stroke-width="2" fill="none"/>'
        f'<text x="{_PAD + _LABEL}" y="{y + 27}" font-size="14" font-style="italic" fill="{colour}">'
        f"{escape(because)}</text>"
    )


def _wrapped(text: str, width: int = _CHARS, most: int = _MAX_LINES) -> tuple[str, ...]:
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, width) or [""]]
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: width - 1].rstrip() + "…"]
    return tuple(lines)
