"""SQL on the screen: the query, its reading in plain words, and what changed since the attempt before.

What this module does not know: how words are found (``merit.sql_change``, ``merit.sql_words``).
"""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from merit.sql_change import Line, SqlChange, difference
from merit.sql_words import describe
from merit.ui.text import escape, visible

_WORDS_IN_LINE = 3


def query(sql: str) -> None:
    """The query with a button to copy it; an empty one is said to be empty."""
    if sql.strip():
        st.code(visible(sql), language="sql", wrap_lines=True)
    else:
        st.caption("The answer held no single SQL statement.")


def reading(sql: str) -> None:
    """The query read out, and whether all of it could be."""
    said = describe(sql)
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in said.sentences)
    note = f'<p class="m-note">{escape(said.note)}</p>' if said.note else ""
    st.html(f'<div class="m-reading"><h4>The query in plain words</h4><ul>{sentences}</ul>{note}</div>')


def short(change: SqlChange) -> str:
    """The change in one line of plain text."""
    if not change.words:
        return change.note
    rest = len(change.words) - _WORDS_IN_LINE
    return " · ".join(change.words[:_WORDS_IN_LINE]) + (f" · {rest} more" if rest > 0 else "")


def change(before: str | None, after: str) -> None:
    """The change in words and as text."""
    if before is None:
        st.caption("This is the first answer; there is nothing to compare it with yet.")
        return
    found = difference(before, after)
    words = "".join(f"<li>{escape(word)}</li>" for word in found.words)
    note = f'<p class="m-note">{escape(found.note)}</p>' if found.note else ""
    st.html(f'<ul class="m-words">{words}</ul>{note}{text_change(found)}')


def text_change(found: SqlChange) -> str:
    """The line by line difference as HTML; the sign at the start of a line tells what the colour tells."""
    return signed(found.lines)


def signed(differing: Iterable[Line]) -> str:
    """Lines with their sign as HTML."""
    kinds = {"+": "come", "-": "gone", " ": "kept"}
    lines = "".join(
        f'<span class="m-{kinds[line.sign]}">{"−" if line.sign == "-" else line.sign} {escape(line.text)}</span>'
        for line in differing
    )
    return f'<pre class="m-pre m-diff" tabindex="0" aria-label="Text difference">{lines}</pre>'
