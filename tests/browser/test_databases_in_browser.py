"""The Databases page in a real browser: brought, asked, kept from others, and fed with markup."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

sys.path.insert(0, str(Path(__file__).parent))
from conftest import serve

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(420)]

IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
MARKUP = "<img src=x onerror=window.owned=1>"  # a browser would change quotes in a file name
LINK = "[a](javascript:window.owned=1) :red[b]"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that nobody has visited yet."""
    yield from serve(
        lambda port: [sys.executable, "-m", "tests.browser.served", str(port), "0.01"],
        tmp_path_factory.mktemp("fresh"),
    )


def database(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def open_page(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(IDLE)


def bring(page: Page, address: str, file: Path) -> None:
    open_page(page, f"{address}/databases")
    page.get_by_text("Bring your own database").click()
    page.locator("input[type=file]").first.set_input_files(file)


def expect_ready(page: Page) -> None:
    expect(page.get_by_text(re.compile("was checked and is ready"))).to_be_visible()
    page.wait_for_selector(IDLE)


def test_the_first_address_of_a_fresh_server_may_be_this_page(fresh: str, page: Page) -> None:
    """Streamlit takes the folder pages/ for an app of its own before app.py has run once: no theme, no navigation."""
    open_page(page, f"{fresh}/databases?database=campus")
    expect(page.get_by_role("heading", name="Databases")).to_be_visible()
    expect(page.locator(".m-story h2")).to_have_text("Small university")
    expect(page.get_by_text("Page not found")).to_have_count(0)
    expect(page.locator("[data-testid=stSidebarNav]")).to_have_count(0)
    expect(page.get_by_text("Try it")).to_be_visible()


def test_an_upload_is_asked_and_nobody_else_sees_it(
    written: str, page: Page, context: BrowserContext, chromium, tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    file = database(
        tmp_path / "private shop.sqlite",
        "CREATE TABLE member (member_id INTEGER PRIMARY KEY, name TEXT, town TEXT)",
        "INSERT INTO member (name, town) VALUES ('Ada Very Private', 'Ulm'), ('Bob', 'Bonn')",
    )
    bring(page, written, file)
    expect_ready(page)
    expect(page.locator(".m-story h2")).to_have_text("private shop.sqlite")
    address = page.url
    assert "database=private_shop" in address

    other = chromium.new_context()
    stranger = other.new_page()
    for where in (address, f"{written}/?database=private_shop"):
        open_page(stranger, where)
        expect(stranger.get_by_role("alert")).to_contain_text("only in the browser it was uploaded from")
        assert "Very Private" not in stranger.content()
    open_page(stranger, f"{written}/databases")
    expect(stranger.locator("[data-testid=stRadio]")).to_contain_text("Lending library")
    expect(stranger.locator("[data-testid=stRadio]")).not_to_contain_text("private shop")
    bring(stranger, written, database(tmp_path / "theirs.db", "CREATE TABLE t (a INTEGER PRIMARY KEY)"))
    expect_ready(stranger)
    other.close()
    page.reload()
    page.wait_for_selector(IDLE)
    expect(page.locator("[data-testid=stRadio]")).to_contain_text("private shop.sqlite")
    expect(page.locator("[data-testid=stRadio]")).not_to_contain_text("theirs.db")

    page.get_by_role("button", name="“How many members are there?”").click()
    expect(page.get_by_label("Question", exact=True)).to_have_value("How many members are there?")
    page.wait_for_selector(IDLE)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_text("Is this what you meant?")).to_be_visible()
    page.keyboard.press("y")
    expect(page.locator(".m-end")).to_contain_text("Correct")
    expect(page.get_by_text("Your private memory")).to_be_visible()


def test_markup_in_names_cells_and_messages_is_text(written: str, page: Page, tmp_path: Path) -> None:
    quoted = '"' + MARKUP.replace('"', '""') + '"'
    file = database(
        tmp_path / f"{MARKUP.replace('/', '')}.sqlite",
        f'CREATE TABLE {quoted} (id INTEGER PRIMARY KEY, {quoted} TEXT, "{LINK}" TEXT)',
        f"INSERT INTO {quoted} VALUES (1, '{MARKUP}', '{LINK}')",
        f"CREATE TABLE b (x TEXT REFERENCES {quoted}(id), y TEXT)",
        f"INSERT INTO b VALUES ('{MARKUP}', '03.04.2020')",
        f'CREATE VIEW "fails {MARKUP.replace(chr(34), chr(34) * 2)}" AS SELECT * FROM missing',
    )
    bring(page, written, file)
    expect_ready(page)
    expect(page.locator(".m-story h2")).to_contain_text(MARKUP)
    expect(page.locator(".m-words").first).to_contain_text("onerror")
    for name in ("Tables", "Diagram", "Schema in prompts", "Your questions"):
        page.get_by_role("tab", name=name).click()
        page.wait_for_selector(IDLE)
        page.wait_for_timeout(700)
    page.get_by_role("tab", name="Diagram").click()
    expect(page.locator(".stGraphVizChart svg")).to_contain_text("<img")
    page.get_by_role("tab", name="Your questions").click()
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps({"question": MARKUP, "gold_sql": ""}))
    page.locator("input[type=file]").last.set_input_files(wrong)
    expect(page.get_by_role("alert")).to_contain_text("wrong.jsonl was not taken")
    bad = tmp_path / f"{MARKUP}.db"
    bad.write_bytes(b"PK\x03\x04")
    page.locator("input[type=file]").first.set_input_files(bad)
    expect(page.get_by_role("alert").first).to_contain_text(f"{MARKUP}.db was not taken")

    page.get_by_role("button", name="Ask about it").click()
    expect(page.get_by_label("Question", exact=True)).to_be_visible()
    page.get_by_label("Question", exact=True).fill(f"Show me {MARKUP}")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator(".m-story h2")).to_contain_text(MARKUP)
    expect(page.locator(".m-end")).to_be_visible()
    assert page.evaluate("window.owned") is None
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("a[href^=javascript]").count() == 0


def test_a_removed_upload_is_gone_after_one_confirmation(written: str, page: Page, tmp_path: Path) -> None:
    bring(page, written, database(tmp_path / "gone.db", "CREATE TABLE t (a INTEGER PRIMARY KEY)"))
    expect_ready(page)
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("These go for good")).to_be_visible()
    page.get_by_role("button", name="Remove it for good").click()
    expect(page.get_by_role("status").filter(has_text="gone.db is removed")).to_be_visible()
    expect(page.get_by_text("was checked and is ready")).to_have_count(0)
    expect(page.locator("[data-testid=stRadio]")).not_to_contain_text("gone.db")


@pytest.mark.parametrize("width", [1280, 768])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_forty_tables_are_readable_in_both_themes(
    written: str, chromium, tmp_path: Path, scheme: str, width: int
) -> None:  # type: ignore[no-untyped-def]
    from axe_playwright_python.sync_playwright import Axe

    tables = [
        f"CREATE TABLE department_{n} (department_{n}_id INTEGER PRIMARY KEY, name TEXT"
        + "".join(
            f", to_{m} INTEGER REFERENCES department_{m}(department_{m}_id)" for m in {n // 3, n * 5 % 11} if m < n
        )
        + ")"
        for n in range(40)
    ]
    opened = chromium.new_context(viewport={"width": width, "height": 1100}, color_scheme=scheme)
    opened.set_default_timeout(30_000)
    page = opened.new_page()
    bring(page, written, database(tmp_path / "forty.sqlite", *tables))
    expect_ready(page)
    page.get_by_role("tab", name="Diagram").click()
    text = page.locator(".stGraphVizChart svg text", has_text="department_39").first
    expect(text).to_be_attached()
    page.wait_for_timeout(1_000)
    assert text.bounding_box()["height"] >= 11, "letters of the diagram shrink"
    assert page.locator(".stGraphVizChart svg .node").count() == 40
    ink = text.evaluate("element => element.getAttribute('fill')").lower()
    assert ink == ("#e6eaee" if scheme == "dark" else "#1b232b")
    assert page.evaluate("document.querySelector('.stMain').scrollWidth <= window.innerWidth")
    found = Axe().run(page, context=".stMain", options={"runOnly": ["color-contrast"]}).response["violations"]
    ours = [n["html"] for rule in found for n in rule["nodes"] if "m-" in n["html"] or "st-key" in n["html"]]
    assert not ours, ours
    opened.close()
