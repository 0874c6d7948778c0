"""The causal chain is read from the events of the episode: its links, their evidence, the text and the picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import HashEncoder, ScriptedModel, answer, build_shop

from merit import live
from merit.chain import Kind, as_text, chain, repairs, shown
from merit.database import Database
from merit.episode import Question
from merit.events import Cancelled, Event, PromptBuilt
from merit.memory.store import MemoryStore
from merit.story import Story, fold
from merit.strategy import STRATEGIES
from merit.ui.chain_svg import svg
from merit.verification import AssertionVerifier

BROKEN, WIDE, RIGHT = "SELECT nam FROM product", "SELECT * FROM product", "SELECT name FROM product"
HOSTILE = "<script>alert('1')</script> & ]]> \x00 what?"


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    return Database.open(build_shop(tmp_path / "shop.sqlite"))


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with MemoryStore.open("memory://", HashEncoder()) as opened:
        yield opened


def lived(shop: Database, store: MemoryStore, text: str, *answers: str, strategy: str = "merit") -> list[Event]:
    judge = AssertionVerifier(rows=[("tea",), ("bread",), ("jam",)])
    request = live.Request(Question(text, "shop"), shop, STRATEGIES[strategy], judge, budget=3)
    return list(live.ask(request, ScriptedModel(*map(answer, answers)), store))


@pytest.fixture
def story(shop: Database, store: MemoryStore) -> Story:
    """Two repairs of a question that recalls what the question before it had taught."""
    lived(shop, store, "Which names?", BROKEN, RIGHT)
    return fold(lived(shop, store, "Name the products", BROKEN, WIDE, RIGHT))


def test_the_links_tell_the_last_repair_with_what_led_to_it(story: Story) -> None:
    found = chain(story)
    assert found is not None
    assert [link.kind for link in found.links] == list(Kind)
    symptom, diagnosis, entry, edit, outcome = found.links
    assert (symptom.title, outcome.title) == ("Wrong rows", "Correct")
    assert "3 rows" in symptom.text
    assert WIDE in symptom.text
    assert diagnosis.title == "Result Mismatch"
    assert diagnosis.because == "named by rule 13"
    assert entry.title.startswith("+")
    assert "Which names?" in entry.text
    assert "1 legal" in entry.because
    assert RIGHT in edit.text
    assert "can help from question 2 on" in outcome.text
    assert found.repair == 2


def test_an_earlier_repair_can_be_told_and_says_that_it_went_on(story: Story) -> None:
    assert repairs(story) == (1, 2)
    found = chain(story, 1)
    assert found is not None
    assert found.links[0].title == "Database error"
    assert "no such column: nam" in found.links[0].text
    assert found.links[1].title == "Schema Linking (Missing Column)"
    assert "The episode went on" in found.links[-1].text
    assert chain(story, 3) is None


def test_an_edit_that_an_entry_also_made_says_so(shop: Database, store: MemoryStore) -> None:
    lived(shop, store, "Which names?", BROKEN, RIGHT)
    found = chain(fold(lived(shop, store, "Name the products", BROKEN, RIGHT)))
    assert found is not None
    assert found.shared
    assert f"It shares “{found.shared[0]}”" in found.links[3].text


def test_without_memory_and_without_a_repair_nothing_is_made_up(shop: Database, store: MemoryStore) -> None:
    alone = chain(fold(lived(shop, store, "Names?", BROKEN, RIGHT, strategy="iterative")))
    assert alone is not None
    assert (alone.links[2].title, alone.links[2].because) == ("None", "nothing was recalled")
    empty = chain(fold(lived(shop, store, "Names, please?", BROKEN, RIGHT, strategy="same_database")))
    assert empty is not None
    assert empty.links[2].text == "No earlier question had left an entry that may be used here."
    first = chain(fold(lived(shop, store, "The names?", RIGHT)))
    assert first is not None
    assert [link.kind for link in first.links] == [Kind.EDIT, Kind.OUTCOME]
    assert first.repair == 0
    assert "Nothing was remembered" in first.links[-1].text


def test_an_entry_that_was_left_out_of_the_prompt_is_none_that_was_used(story: Story) -> None:
    step = story.steps[1]
    assert isinstance(step.prompt, PromptBuilt)
    assert len(shown(step)) == 1
    step.prompt = replace(step.prompt, dropped=("positive 1",))
    assert shown(step) == ()


def test_what_has_not_ended_has_no_chain(shop: Database, store: MemoryStore) -> None:
    events = lived(shop, store, "Names?", BROKEN, RIGHT)
    for end in range(len(events)):
        assert chain(fold(events[:end])) is None
    stopped = chain(fold([*events[:-1], Cancelled()]))
    assert stopped is not None
    assert "was stopped; nothing was remembered" in stopped.links[-1].text
    assert chain(fold([events[0], Cancelled()])) is None


def test_text_and_picture_hold_every_link_and_run_nothing(shop: Database, store: MemoryStore) -> None:
    """Markup in a question became part of the picture; a NUL makes no XML."""
    lived(shop, store, "Which names?", BROKEN, RIGHT)
    found = chain(fold(lived(shop, store, HOSTILE, BROKEN, RIGHT)))
    assert found is not None
    text = as_text(found)
    picture = svg(found, ["a foot & <b>more</b>"])
    root = ET.fromstring(picture)  # well-formed
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags == {"svg", "title", "rect", "text", "path"}
    said = " ".join(root.itertext())
    assert "alert('1')" in said
    assert "a foot & <b>more</b>" in said
    for link in found.links:
        assert link.kind.upper() in text
        assert link.kind in said
        assert link.because in said
    assert not re.search(r"href|url\(|<script", picture)
    assert ET.fromstring(svg(found)).attrib["height"].isdigit()
