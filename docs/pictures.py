"""Take the pictures of the app anew: ``.venv/bin/python docs/pictures.py`` writes ``assets/pictures/*.png``.

The app is the real one; the model tells written answers (``tests/browser/served.py``), so that the pictures are the
same each time and say “Storyteller” where the model's name stands. Needs Chromium or Chrome.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "browser"), str(ROOT)]

from get_chromium import HELP, find  # noqa: E402

from tests.browser.conftest import FLAGS, IDLE, free_port  # noqa: E402

PICTURES = ROOT / "assets" / "pictures"
LEARNT = (
    "Which reading groups come together in the Market Square branch?",
    "How many copies does each branch own? Show the name of the branch and the count.",
)
REPAIRED = "Who belongs to the reading group Crime after dark?"
WIDE, NARROW = (1280, 1400), (768, 1600)


def ask(page: Page, question: str) -> None:
    """Type a question and press Ask."""
    page.get_by_label("Question", exact=True).fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".m-story h2")).to_have_text(question)


def finish(page: Page, question: str) -> None:
    """Ask and wait for the end."""
    ask(page, question)
    expect(page.locator(".m-end")).to_be_visible(timeout=60_000)
    page.wait_for_selector(IDLE)
    page.mouse.move(2, 2)
    page.wait_for_timeout(800)


def start(page: Page) -> None:
    """The page before the first question."""
    page.wait_for_timeout(800)


def running(page: Page) -> None:
    """A repair that is being written, with what memory gave for it."""
    ask(page, REPAIRED)
    expect(page.locator(".m-recall").first).to_be_visible(timeout=30_000)
    expect(page.locator(".m-stream")).to_be_visible(timeout=30_000)


def finished(page: Page) -> None:
    """An episode at its end."""
    finish(page, REPAIRED)


def retrieval(page: Page) -> None:
    """Why these entries: cards and bars."""
    finish(page, REPAIRED)
    page.get_by_role("tab", name="Retrieval").click()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    page.locator(".js-plotly-plot").first.scroll_into_view_if_needed()
    page.wait_for_timeout(800)


def judging(page: Page) -> None:
    """A person is asked."""
    ask(page, "Show me who joined lately")
    expect(page.get_by_text("Is this what you meant?")).to_be_visible(timeout=30_000)
    page.wait_for_timeout(800)


def failed(page: Page) -> None:
    """The model failed."""
    finish(page, "What breaks here?")


STATES: tuple[tuple[Callable[[Page], None], tuple[tuple[int, int], ...]], ...] = (
    (start, (WIDE,)),
    (running, (WIDE,)),
    (finished, (WIDE, NARROW)),
    (retrieval, (WIDE,)),
    (judging, (WIDE, NARROW)),
    (failed, (WIDE,)),
)


def main() -> None:
    """Serve, take every state in both themes and both widths, stop."""
    browser_path = find()
    if browser_path is None:
        sys.exit(f"No Chromium or Chrome that starts; {HELP}.")
    PICTURES.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "MERIT_HOME": home, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tests.browser.served", str(port), "0.04"]
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        try:
            _take(browser_path, f"http://localhost:{port}")
        finally:
            server.terminate()
            server.wait(20)


def _save(picture: bytes, path: Path) -> None:
    """As PNG with 256 colours, a third of the size."""
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(256).save(path, optimize=True)


def _take(browser_path: str, address: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
            break
        except OSError:
            time.sleep(0.2)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        teacher = browser.new_page()
        teacher.goto(address)
        for question in LEARNT:
            finish(teacher, question)
        for scheme in ("light", "dark"):
            for state, sizes in STATES:
                for width, height in sizes:
                    context = browser.new_context(
                        viewport={"width": width, "height": height},
                        color_scheme=scheme,  # type: ignore[arg-type]
                    )
                    page = context.new_page()
                    page.goto(address)
                    page.wait_for_selector(IDLE)
                    state(page)
                    _save(page.screenshot(), PICTURES / f"ask-{state.__name__}-{scheme}-{width}.png")
                    context.close()
        browser.close()


if __name__ == "__main__":
    main()
