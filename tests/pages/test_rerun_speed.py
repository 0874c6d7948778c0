"""A redraw of the Ask page over a large memory, without and with a story on it."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import HashEncoder, ScriptedModel, answer

from merit.episode import FailureType, Outcome, Polarity
from merit.memory.entry import MemoryEntry
from merit.models import loading
from merit.models.loading import State
from merit.ui import asking
from merit.ui.state import Key, Param

ENTRIES = 10_000
MOST_S = 0.3


class Loaded:
    """What a page needs of a loading that is over."""

    state, message, fraction, elapsed_s, error = State.READY, "ready", 1.0, 0.1, None

    def __init__(self) -> None:
        self.model, self.encoder = ScriptedModel(answer("SELECT name FROM branch")), HashEncoder(384)


def entry(number: int) -> MemoryEntry:
    worked = number % 3 > 0
    return MemoryEntry(
        Polarity.POSITIVE if worked else Polarity.NEGATIVE, FailureType.SCHEMA_LINKING, f"question {number}", "schema",
        "library", f"SELECT a{number} FROM t", f"SELECT b{number} FROM t", Outcome.EXECUTION_ERROR, "no such column: a",
        Outcome.CORRECT if worked else Outcome.EXECUTION_ERROR, f"q{number}", f"e{number}", number, 1,
    )  # fmt: skip


def median_rerun(at: AppTest) -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        at.run()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def test_a_redraw_over_ten_thousand_entries_takes_less_than_300_ms(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = Loaded()
    monkeypatch.setattr(loading, "start", lambda *_: loaded)
    asking.memory_of(loaded).finalise_many(entry(number) for number in range(ENTRIES))  # type: ignore[arg-type]
    at = AppTest.from_file(str(Path(__file__).parents[2] / "app.py"), default_timeout=60).run()
    assert any("10,000 entries" in element.value for element in at.html)
    assert median_rerun(at) < MOST_S
    at.text_area(key=Param.QUESTION).set_value("Where are we?").run()
    at.button(key=Key.ASK).click().run()
    deadline = time.monotonic() + 20
    while not any(button.key == Key.YES for button in at.button) and time.monotonic() < deadline:
        at.run()
    assert median_rerun(at) < MOST_S
    at.button(key=Key.STOP_JUDGING).click().run()
