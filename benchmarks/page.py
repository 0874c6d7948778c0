"""What the Ask page costs: a redraw over a large memory against one over an empty memory, and the app's memory.

    python benchmarks/page.py [--entries 10000]

Both happen in one run, one after the other in processes of their own, on a model with a written answer, without and
with a story on the page; printed are medians in milliseconds and their ratio (the promise is at most 300 ms). Then a
process of its own asks a sample question on the embedded model to its end; printed is the resident memory of that
process and of the statement workers it started, against what it held when only the page was drawn (the promise is at
most 2.5 GB in all).
What it does not measure: the browser, and the web server's part of a redraw.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

REDRAWS = 15
DIMENSION = 384
QUESTION = "How many members does the library have?"


def entry(number: int) -> Any:
    """One of many alike entries; every third is a dead end."""
    from merit.episode import FailureType, Outcome, Polarity
    from merit.memory.entry import MemoryEntry

    worked = number % 3 > 0
    return MemoryEntry(
        Polarity.POSITIVE if worked else Polarity.NEGATIVE, FailureType.SCHEMA_LINKING, f"question {number}", "schema",
        "library", f"SELECT a{number} FROM t", f"SELECT b{number} FROM t", Outcome.EXECUTION_ERROR, "no such column: a",
        Outcome.CORRECT if worked else Outcome.EXECUTION_ERROR, f"q{number}", f"e{number}", number, 1,
    )  # fmt: skip


def until(page: Any, done: Callable[[], bool], seconds: float = 120.0) -> None:
    """Redraw until something is there; a page of this kind does not tick by itself."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit("The page did not come to its end in time.")
        page.run()
        time.sleep(0.2)


def redraws(entries: int) -> None:
    """One line of the table; run in a process of its own, because a process has one memory."""
    from streamlit.testing.v1 import AppTest
    from support import HashEncoder, ScriptedModel, answer

    from merit.models import loading
    from merit.models.loading import State
    from merit.ui import asking
    from merit.ui.state import Key, Param

    class Loaded:
        state, message, fraction, elapsed_s, error = State.READY, "ready", 1.0, 0.1, None
        model, encoder = ScriptedModel(answer("SELECT name FROM branch")), HashEncoder(DIMENSION)

    loaded: Any = Loaded()
    loading.start = lambda *_: loaded
    asking.memory_of(loaded).finalise_many(entry(number) for number in range(entries))
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()

    def milliseconds() -> float:
        times = []
        for _ in range(REDRAWS):
            started = time.perf_counter()
            page.run()
            times.append(1e3 * (time.perf_counter() - started))
        return median(times)

    bare = milliseconds()
    page.text_area(key=Param.QUESTION).set_value("Where are we?").run()
    page.button(key=Key.ASK).click().run()
    until(page, lambda: any(button.key == Key.YES for button in page.button))
    print(bare, milliseconds())
    page.button(key=Key.STOP_JUDGING).click().run()


def resident() -> int:
    """MiB held by this process and its children now."""
    me = psutil.Process()
    return sum(process.memory_info().rss for process in (me, *me.children(recursive=True))) >> 20


def embedded() -> None:
    """Ask one sample question on the embedded model; prints MiB before loading, at rest after it, and the most."""
    from streamlit.testing.v1 import AppTest

    from merit.models import loading
    from merit.models.loading import State
    from merit.settings import settings
    from merit.ui.state import Key, Param

    started = loading.start("embedded", "embedded")
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    drawn = resident()
    until(page, lambda: started.state in (State.READY, State.FAILED), 600)
    if started.state is State.FAILED:
        raise SystemExit(str(started.error))
    page.text_area(key=Param.QUESTION).set_value(QUESTION).run()
    page.button(key=Key.ASK).click().run()
    most = resident()
    deadline = time.monotonic() + 300
    while not any("Finished" in html.value or "Is this what you meant" in html.value for html in page.html):
        most = max(most, resident())
        if time.monotonic() > deadline:
            break
        if any(button.key == Key.YES for button in page.button):
            page.button(key=Key.YES).click().run()
            break
        page.run()
        time.sleep(0.2)
    print(drawn, max(most, resident()), settings().home)


def child(name: str, home: str, *arguments: str) -> list[str]:
    """The words that a measurement of its own process printed last."""
    done = subprocess.run(
        [sys.executable, __file__, "--part", name, *arguments],
        env=os.environ | {"MERIT_HOME": home, "MERIT_MODEL": "embedded", "MERIT_ENCODER": "embedded"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return done.stdout.split()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--part", choices=("redraws", "embedded"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part == "redraws":
        return redraws(chosen.entries)
    if chosen.part == "embedded":
        return embedded()
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as full:
        few = [float(word) for word in child("redraws", empty, "--entries", "0")[-2:]]
        many = [float(word) for word in child("redraws", full, "--entries", str(chosen.entries))[-2:]]
    print(f"{'redraw of the Ask page':<28}{'no entries':>12}{chosen.entries:>10,} entries   ratio")
    for name, before, after in zip(("before a question", "with a story on it"), few, many, strict=True):
        print(f"{name:<28}{before:>9.1f} ms{after:>15.1f} ms{after / before:>8.2f}")
    with tempfile.TemporaryDirectory() as home:
        drawn, most, _ = child("embedded", os.environ.get("MERIT_HOME", home))[-3:]
    print(f"app on the embedded model: {most} MiB at most while it answered, {drawn} MiB with the page alone")
    return None


if __name__ == "__main__":
    main()
