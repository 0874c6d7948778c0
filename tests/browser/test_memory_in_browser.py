"""The Memory page in a real browser: gone back in time, re-ranked, forgotten, restored and fed with a broken file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from merit.memory.entry import MemoryEntry
from merit.memory.store import MemoryStore

sys.path.insert(0, str(Path(__file__).parent))
from conftest import serve

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import HashEncoder

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]

IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
ENTRIES = 6


def made(number: int, **changes: Any) -> MemoryEntry:
    """An entry of episode and position ``number``; the higher the number, the more words of the question it has."""
    fields: dict[str, Any] = {
        "polarity": "positive",
        "failure_type": "Schema Linking",
        "question": f"Which readers of town {number} borrowed a book? " + "borrowed " * number,
        "schema": "Database: library",
        "database_id": "library",
        "failed_sql": f"SELECT nme FROM reader WHERE town = {number}",
        "new_sql": f"SELECT name FROM reader WHERE town = {number}",
        "status": "EXECUTION_ERROR",
        "db_error": "no such column: nme",
        "outcome": "CORRECT",
        "question_id": f"q{number}",
        "episode_id": f"e{number}",
        "position": number,
        "iteration": 1,
    }
    return MemoryEntry(**(fields | changes))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose memory holds ``ENTRIES`` entries, each left by a question of its own."""
    store = MemoryStore.open(tmp_path / "memory", HashEncoder())
    for _number in range(ENTRIES):
        store.finalise(made(store.next_position()))
    return tmp_path


@pytest.fixture
def memory(home: Path) -> Iterator[str]:
    """The app on that home."""
    command = lambda port: [sys.executable, "-m", "tests.browser.served", str(port), "0.01"]  # noqa: E731
    yield from serve(command, home)


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(IDLE)


def idle(page: Page) -> None:
    page.wait_for_timeout(400)
    page.wait_for_selector(IDLE)


def banner(page: Page) -> Any:
    return page.locator(".m-banner")


def test_the_slider_changes_what_is_seen_and_playing_brings_it_back(memory: str, page: Page) -> None:
    open_page(page, f"{memory}/memory")
    expect(banner(page)).to_contain_text(f"{ENTRIES} entries")
    slider = page.get_by_role("slider", name="The memory as this question saw it")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(banner(page)).to_contain_text("As question 3 saw it")
    expect(banner(page)).to_contain_text("3 entries")
    expect(page.get_by_text("1–3 of 3 entries")).to_be_visible()
    expect(page).to_have_url(re.compile("position=3"))
    page.reload()
    page.wait_for_selector(IDLE)
    expect(banner(page)).to_contain_text("As question 3 saw it")
    page.get_by_role("button", name="Play").click()
    expect(banner(page)).to_contain_text(f"As the next question, {ENTRIES}, will see it")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(banner(page)).to_contain_text(f"{ENTRIES} entries")


def test_a_row_opens_and_its_address_brings_it_back(memory: str, page: Page) -> None:
    open_page(page, f"{memory}/memory")
    table = page.locator("[data-testid=stDataFrame]").first
    expect(table).to_be_visible()
    table.click(position={"x": 16, "y": 38 + 17})
    card = page.get_by_label("Opened entry")
    expect(card).to_contain_text("Which readers of town 5")
    expect(page).to_have_url(re.compile("entry=[0-9a-f]{64}"))
    page.reload()
    page.wait_for_selector(IDLE)
    expect(page.get_by_label("Opened entry")).to_contain_text("Which readers of town 5")
    page.get_by_role("tab", name="In a prompt").click()
    expect(page.get_by_text("[Confirmed successful repair 1]")).to_be_visible()
