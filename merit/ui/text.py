"""Foreign text on the screen: questions, SQL, cells and messages appear character by character, never as markup.

What this module does not know: where the text stands. Inside HTML use :func:`escape`; inside widget labels,
which streamlit reads as Markdown, use :func:`label`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=@\"'/])")

_REPLACED = re.compile(r"(:(?=\w)|[-<>=~](?=[-<>=]))")


def visible(text: str) -> str:
    """``text`` with every character that a screen would swallow made visible.

    Control characters become their control pictures (NUL → ␀), invisible format characters and lone surrogates
    their code point in angle brackets; line breaks, tabs and joiners inside words stay.
    """
    if text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in "\n\t\u200d\u200c" or character.isprintable():
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if unicodedata.category(character) in ("Zs", "Zl", "Zp"):
        return character
    return f"⟨U+{code:04X}⟩"


def escape(text: str) -> str:
    """``text`` for use inside HTML, element or attribute."""
    return html.escape(visible(text), quote=True)


def label(text: str, longest: int = 120) -> str:
    """``text`` for a widget label: one line, at most ``longest`` characters, all Markdown characters escaped."""
    line = " ".join(visible(text).split())
    if len(line) > longest:
        line = line[: longest - 1].rstrip() + "…"
    # Streamlit replaces emoji names, icons and arrows after Markdown; an invisible word joiner keeps them apart.
    line = _REPLACED.sub("\\1\u2060", line)
    return _MARKDOWN.sub(r"\\\1", line)


def items(sentences: Iterable[str]) -> str:
    """Sentences as an HTML list; "" when there are none."""
    inside = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<ul class="m-words">{inside}</ul>' if inside else ""


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``count(1, "row")`` is "1 row", ``count(2_000, "row")`` is "2,000 rows"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def seconds(elapsed_s: float) -> str:
    """Seconds in the unit that reads best."""
    if elapsed_s < 0.0995:
        return f"{elapsed_s * 1000:.0f} ms"
    if elapsed_s < 99.5:
        return f"{elapsed_s:.1f} s"
    return f"{elapsed_s // 60:.0f} min {elapsed_s % 60:.0f} s"
