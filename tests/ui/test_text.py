"""Foreign text stays text: nothing is swallowed, nothing is read as markup."""

from __future__ import annotations

import html

from hypothesis import given
from hypothesis import strategies as st

from merit.ui.text import count, escape, label, seconds, visible


def test_what_a_screen_swallows_is_made_visible() -> None:
    assert visible("a\x00b") == "a␀b"
    assert visible("\x1b[31m\x7f") == "␛[31m␡"
    assert visible("a\u202eb\u200bc") == "a⟨U+202E⟩b⟨U+200B⟩c"
    assert visible("\ud800") == "⟨U+D800⟩"
    assert visible("zwei\nZeilen\tund ein\u00a0Blank") == "zwei\nZeilen\tund ein\u00a0Blank"


@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf", "Co", "Cn"))))
def test_escaped_text_reads_back_as_it_was(text: str) -> None:
    assert html.unescape(escape(text)) == text
    assert "<" not in escape(text)


def test_a_label_escapes_markdown_and_keeps_one_line() -> None:
    assert label("a *b*\n_c_") == "a \\*b\\* \\_c\\_"
    for mark in "*_`[]<>$~:#|\\":
        assert f"\\{mark}" in label(f"x{mark}y")


def test_a_label_breaks_what_streamlit_replaces_by_itself() -> None:
    """Streamlit turns :smile:, :material/x:, -> and >= into other signs even where the marks are escaped."""
    for text in (":smile:", ":material/home:", "a -> b", "a >= b", "a -- b", "a <- b"):
        shown = label(text).replace("\\", "")
        assert shown != text
        assert shown.replace("\u2060", "") == text


def test_a_long_label_is_cut() -> None:
    assert label("x" * 200, 10) == "x" * 9 + "…"


def test_numbers_with_their_nouns() -> None:
    assert count(1, "row") == "1 row"
    assert count(2_000, "row") == "2,000 rows"
    assert count(2, "entry", "entries") == "2 entries"
    assert [seconds(0.0123), seconds(2.04), seconds(75.0), seconds(130.0)] == ["12 ms", "2.0 s", "75.0 s", "2 min 10 s"]
