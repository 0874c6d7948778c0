"""In a real browser: the address of a step opened elsewhere, a bundle exported and opened, an episode lived again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
expect.set_options(timeout=30_000)


def asked(page: Page, address: str, *questions: str) -> None:
    """Questions asked one after another, each to its end."""
    page.goto(address)
    page.wait_for_selector(IDLE)
    for question in questions:
        page.get_by_label("Question", exact=True).fill(question)
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator(".m-story h2")).to_have_text(question)
        expect(page.locator(".m-end")).to_contain_text("Correct")


def test_the_address_of_a_step_shows_the_same_in_another_browser(written: str, page: Page, chromium) -> None:  # type: ignore[no-untyped-def]
    asked(page, written, "Who wrote The Long River?")
    page.locator("summary").filter(has_text="First answer").click()
    expect(page).to_have_url(re.compile(r"step=0"))
    expect(page.get_by_text("no such column: author.name").first).to_be_visible()
    address = page.url
    other = chromium.new_context()
    elsewhere = other.new_page()
    elsewhere.set_default_timeout(30_000)
    elsewhere.goto(address)
    expect(elsewhere.locator(".m-story h2")).to_have_text("Who wrote The Long River?")
    first = elsewhere.locator("details").filter(has_text="First answer")
    expect(first).to_have_attribute("open", "")
    expect(first.get_by_text("no such column: author.name").first).to_be_visible()
    expect(elsewhere.locator(".m-end")).to_contain_text("Correct")
    assert elsewhere.url == address
    expect(elsewhere.get_by_role("button", name=re.compile("I meant"))).to_have_count(0)
    other.close()


def test_a_bundle_is_exported_and_opened_from_its_file(written: str, page: Page, tmp_path: Path) -> None:
    asked(page, written, "Who wrote The Long River?")
    with page.expect_download() as download:
        page.get_by_role("button", name="Share this episode").click()
    file = tmp_path / "episode.jsonl"
    download.value.save_as(file)
    page.goto(f"{written}/recordings")
    page.wait_for_selector(IDLE)
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator(".m-recorded")).to_contain_text("RECORDED")
    expect(page.locator(".m-end")).to_contain_text("Finished after 2 repairs")
    page.get_by_role("button", name="Step back").click()
    expect(page).to_have_url(re.compile("step=1"))
    expect(page.locator(".m-end")).to_have_count(0)
    page.get_by_role("radio", name="16×").click()
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".m-end")).to_contain_text("Finished after 2 repairs")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_an_episode_is_lived_again_under_another_memory(written: str, page: Page) -> None:
    asked(
        page,
        written,
        "Which reading groups come together in the Market Square branch?",
        "Who belongs to the reading group Crime after dark?",
    )
    page.get_by_role("button", name="What if memory had been otherwise").click()
    expect(page.get_by_text("This lives an episode again")).to_be_visible()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".m-told").first).to_contain_text("A and B part at repair 1")
    expect(page.get_by_role("button", name="Compare", exact=True)).to_be_enabled()
    expect(page.locator(".m-lanes").first).to_contain_text("memory off")
    assert page.url.count("episode=") == page.url.count("lane=")
