"""Colours: one table with the configuration, readable in both themes, never the only sign."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from merit.episode import FailureType, Outcome, Polarity
from merit.ui import theme

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())


def luminance(colour: str) -> float:
    """WCAG 2.1 relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_itself_is_measured_as_wcag_says() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#767676", "#FFFFFF") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("tone", theme.TONES, ids=lambda tone: tone.name)
@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
def test_every_tone_is_readable_on_paper_surface_and_its_own_fill(tone: theme.Tone, side: int) -> None:
    text, fill = ((tone.light, tone.light_fill), (tone.dark, tone.dark_fill))[side]
    for ground in (theme.BACKGROUND[side], theme.SURFACE[side], fill):
        assert contrast(text, ground) >= 4.5, ground
    assert contrast(theme.TEXT[side], fill) >= 4.5


@pytest.mark.parametrize("sign", theme.FAILURES.values(), ids=lambda sign: sign.letters)
def test_the_letters_on_failure_fills_are_readable(sign: theme.FailureSign) -> None:
    assert contrast(theme.FILL_INK, sign.fill) >= 4.5


def test_the_primary_button_is_readable_in_both_themes() -> None:
    """White on the light blue of the dark theme once had a contrast of 2.1; it takes the colour of the paper."""
    assert contrast(theme.BACKGROUND[0], theme.ACCENT.light) >= 4.5
    assert contrast(theme.BACKGROUND[1], theme.ACCENT.dark) >= 4.5
    assert "stBaseButton-primary" in theme.css()


@pytest.mark.parametrize(("name", "side"), [("light", 0), ("dark", 1)])
def test_the_configuration_has_the_same_colours(name: str, side: int) -> None:
    section = CONFIG["theme"][name]
    for tone in theme.TONES:
        text, fill = ((tone.light, tone.light_fill), (tone.dark, tone.dark_fill))[side]
        assert section[f"{tone.directive}TextColor"] == text
        assert section[f"{tone.directive}BackgroundColor"] == fill
    assert section["backgroundColor"] == theme.BACKGROUND[side]
    assert section["secondaryBackgroundColor"] == theme.SURFACE[side]
    assert section["textColor"] == theme.TEXT[side]
    assert section["borderColor"] == theme.HAIRLINE[side]


def test_every_meaning_has_a_word_and_a_mark_of_its_own() -> None:
    assert set(theme.OUTCOMES) == set(Outcome)
    assert set(theme.FAILURES) == set(FailureType)
    assert set(theme.POLARITIES) == set(Polarity)
    outcomes = theme.OUTCOMES.values()
    assert len({sign.mark for sign in outcomes}) == len({sign.word for sign in outcomes}) == len(Outcome)
    assert len({sign.letters for sign in theme.FAILURES.values()}) == len(FailureType)
    assert list(theme.FAILURES) == list(FailureType)


def test_the_app_speaks_to_nobody_and_serves_only_this_machine() -> None:
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["server"]["address"] == "localhost"
    assert CONFIG["server"]["fileWatcherType"] == "none"
    assert CONFIG["server"]["maxUploadSize"] == 50


def test_a_redraw_does_not_stop_the_model() -> None:
    """A full collection after every redraw once made loading the model take 100 s instead of 8."""
    assert CONFIG["runner"]["postScriptGC"] is False


def test_no_page_and_no_component_sets_a_colour_of_its_own() -> None:
    root = Path(__file__).parents[2]
    files = [*root.glob("pages/*.py"), *root.glob("merit/ui/*.py"), root / "app.py", root / "assets" / "theme.css"]
    for file in files:
        if file.name != "theme.py":
            assert not re.search(r"#[0-9A-Fa-f]{3,8}\b", file.read_text()), file
