"""The Routing page in a real browser: a failure by hand, and another label that changes the prompt."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from merit.episode import FailureType, Outcome, Polarity
from merit.memory.entry import MemoryEntry
from merit.memory.store import MemoryStore

sys.path.insert(0, str(Path(__file__).parent))
from conftest import IDLE, serve

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import HashEncoder

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]


@pytest.fixture
def routing(tmp_path: Path) -> Iterator[str]:
    """The app on a memory with three entries of each of two types."""
    store = MemoryStore.open(tmp_path / "memory", HashEncoder())
    for number in range(6):
        kind = FailureType.AGGREGATION if number % 2 else FailureType.SCHEMA_LINKING
        store.finalise(
            MemoryEntry(
                Polarity.POSITIVE, kind, f"Which books has author {number}?", "schema", "library",
                f"SELECT titel FROM book WHERE author_id = {number}",
                f"SELECT title FROM book WHERE author_id = {number}",
                Outcome.EXECUTION_ERROR, "no such column: titel", Outcome.CORRECT, f"q{number}", f"e{number}",
                store.next_position(), 1,
            )
        )  # fmt: skip
    yield from serve(lambda port: [sys.executable, "-m", "tests.browser.served", str(port), "0.01"], tmp_path)


def test_an_override_changes_the_prompt(routing: str, page: Page) -> None:
    page.goto(f"{routing}/routing")
    page.wait_for_selector(IDLE, timeout=120_000)
    page.get_by_role("button", name="column of another table").click()
    fired = page.locator(".m-fired")
    expect(fired).to_contain_text("no such column")
    expect(page.locator(".m-untested")).to_have_count(11)
    page.get_by_role("tab", name="Prompt").click()
    prompt = page.get_by_label("Prompt", exact=True).last
    expect(prompt).to_contain_text("Current error type: Schema Linking")
    expect(prompt).to_contain_text("Error type: Schema Linking")
    page.get_by_role("combobox", name="Label").click()
    page.get_by_role("option", name="Aggregation").click()
    expect(prompt).to_contain_text("Current error type: Aggregation")
    expect(prompt).to_contain_text("Error type: Aggregation")
    expect(prompt).not_to_contain_text("Schema Linking")
    expect(fired).to_contain_text("no such column")
    page.get_by_role("tab", name="What the label changes").click()
    expect(page.get_by_text("3 entries come, 3 go, 0 stay")).to_be_visible()
