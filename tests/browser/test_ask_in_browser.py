"""The Ask page in a real browser: asked, watched, stopped, judged, reloaded, and fed with markup."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]

IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
END = ".m-end"
expect.set_options(timeout=20_000)


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(IDLE)


def type_question(page: Page, text: str) -> None:
    page.get_by_label("Question", exact=True).fill(text)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def ask(page: Page, text: str) -> None:
    type_question(page, text)
    press(page, "Ask")


def test_a_sample_question_on_the_embedded_model_comes_to_an_end(embedded: str, page: Page) -> None:
    """The whole line: the page while the model loads, an attempt that is executed, and the end state."""
    open_page(page, embedded)
    # By its quotes: until the buttons of streamlit have arrived, the first button of this row is another one.
    page.get_by_role("button", name=re.compile("^“")).first.click()
    expect(page.get_by_label("Question", exact=True)).not_to_have_value("")
    press(page, "Ask")
    expect(page.locator(".m-story .m-oracle")).to_be_visible(timeout=240_000)
    expect(page).to_have_url(re.compile("episode="))
    expect(page.get_by_text(re.compile("First answer")).first).to_be_visible()
    expect(page.locator(END)).to_be_visible(timeout=240_000)
    expect(page.locator(END)).to_contain_text(re.compile("Finished"))
    expect(page.get_by_text(re.compile(r"\d+ \+ \d+ tokens")).first).to_be_visible()
    headings = " ".join(page.locator("summary").all_inner_texts())
    assert re.search("Correct|Wrong rows|Database error", headings)
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_stop_ends_generation_within_a_second_and_stays_where_it_is(written: str, page: Page) -> None:
    open_page(page, written)
    where = page.get_by_role("button", name="Stop", exact=True).bounding_box()
    ask(page, "Take your time")
    expect(page.locator(".m-stream")).to_be_visible()
    assert page.get_by_role("button", name="Stop", exact=True).bounding_box() == where
    started = time.monotonic()
    press(page, "Stop")
    expect(page.locator(END)).to_contain_text("Stopped. Nothing was stored")
    assert time.monotonic() - started < 5
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_a_reload_finds_the_running_episode_and_a_stranger_does_not(
    written: str, page: Page, context: BrowserContext, chromium
) -> None:  # type: ignore[no-untyped-def]
    open_page(page, written)
    ask(page, "Take your time")
    expect(page.locator(".m-stream")).to_be_visible()
    address = page.url
    assert "episode=" in address
    page.reload()
    expect(page.locator(".m-stream")).to_be_visible()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_enabled()
    other = chromium.new_context()
    stranger = other.new_page()
    open_page(stranger, address)
    expect(stranger.get_by_role("alert")).to_contain_text("not yours")
    expect(stranger.locator(".m-stream")).to_have_count(0)
    other.close()
    press(page, "Stop")
    expect(page.locator(END)).to_be_visible()
    page.reload()
    expect(page.locator(END)).to_contain_text("Stopped")


def test_a_typed_question_is_judged_with_keys_and_the_mistake_undone(written: str, page: Page) -> None:
    open_page(page, written)
    ask(page, "Show me who joined lately")
    expect(page.get_by_text("Is this what you meant?")).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator("summary").nth(1)).to_contain_text("Your turn")
    page.keyboard.press("y")
    expect(page.locator(END)).to_contain_text("One entry was remembered")
    page.get_by_role("button", name="I meant no, not yes").click()
    expect(page.get_by_text("Is this what you meant?")).to_be_visible()
    expect(page.locator("summary").nth(2)).to_contain_text("Your turn")
    page.keyboard.press("Escape")
    expect(page.locator(END)).to_contain_text("Stopped. Nothing was stored")


def test_the_story_names_diagnosis_and_memory_and_opens_into_tabs(written: str, page: Page) -> None:
    open_page(page, written)
    for question in (
        "Which reading groups come together in the Market Square branch?",
        "Who belongs to the reading group Crime after dark?",
    ):
        ask(page, question)
        expect(page.locator(".m-story h2")).to_have_text(question)
        expect(page.locator(END)).to_contain_text("Correct")
    expect(page.locator(".m-recall-positive").first).to_be_visible()
    page.get_by_role("button", name="Why not the others").first.click()
    expect(page.locator(".m-fired")).to_contain_text("no such column")
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Prompt").click()
    expect(page.locator("pre.m-pre .m-tint-good")).to_contain_text("CONFIRMED SUCCESSFUL REPAIR DIRECTIONS")
    page.get_by_role("tab", name="Retrieval").click()
    expect(page.locator(".m-card-positive").first).to_be_visible()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    page.get_by_role("tab", name="SQL change").click()
    expect(page.get_by_role("tabpanel", name="SQL change").locator(".m-diff")).to_be_visible()


def test_downloads_hold_the_rows_and_the_bundle(written: str, page: Page) -> None:
    open_page(page, written)
    ask(page, "How many members does the library have?")
    expect(page.locator(END)).to_contain_text("Correct")
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    rows = json.loads(download.value.path().read_text())["rows"]
    assert rows == [[140]]
    with page.expect_download() as download:
        page.get_by_role("button", name="Share this episode").click()
    lines = download.value.path().read_text().splitlines()
    assert json.loads(lines[-1])["event"] == "EpisodeFinalised"


MARKUP = "<img src=x onerror=\"document.title='owned'\"> $5 and $6 *not* _italic_ :red[stop] :smile: -> <b>bold</b>"


def test_markup_in_a_question_never_runs_and_reads_as_typed(written: str, page: Page) -> None:
    open_page(page, written)
    title = page.title()
    ask(page, MARKUP)
    expect(page.locator(".m-story h2")).to_have_text(MARKUP)
    expect(page.get_by_text("Is this what you meant?")).to_be_visible()
    page.get_by_role("tab", name="Prompt").click()
    expect(page.locator("pre.m-pre")).to_contain_text(MARKUP)
    assert page.title() == title
    assert page.locator("img[src=x]").count() == 0
    press(page, "Stop")
    expect(page.locator(END)).to_be_visible()


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 22, 27)")])
@pytest.mark.parametrize("width", [1280, 768])
def test_both_themes_fit_both_widths_and_are_accessible(
    written: str, chromium, scheme: str, paper: str, width: int
) -> None:  # type: ignore[no-untyped-def]
    from axe_playwright_python.sync_playwright import Axe

    opened = chromium.new_context(viewport={"width": width, "height": 1400}, color_scheme=scheme)
    page = opened.new_page()
    open_page(page, written)
    ask(page, "Who wrote The Long River?")
    expect(page.locator(END)).to_contain_text("Correct")
    page.wait_for_selector(IDLE)
    page.wait_for_timeout(500)
    assert page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor") == paper
    assert page.evaluate("document.querySelector('.stMain').scrollWidth <= window.innerWidth")
    found = Axe().run(page, context=".stMain", options={"runOnly": ["color-contrast"]}).response["violations"]
    ours = [
        node["html"] for rule in found for node in rule["nodes"] if "m-" in node["html"] or "st-key" in node["html"]
    ]
    assert not ours, ours
    opened.close()
