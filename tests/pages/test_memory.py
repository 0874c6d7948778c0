"""The Memory page: looked through as of any question, re-ranked, cared for, and fed with links that lead nowhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from support import HashEncoder, ScriptedModel

from merit import prompts
from merit.episode import FailureType, Outcome, Polarity
from merit.memory.entry import MemoryEntry
from merit.memory.store import MemoryStore
from merit.models import loading
from merit.models.loading import State
from merit.ui import asking, catalogue, leaving
from merit.ui.state import Key, Param

APP = str(Path(__file__).parents[2] / "app.py")
PAGE = "pages/memory.py"
MARKUP = '<img src=x onerror="window.owned=1"> *a* :red[b] $c$'


class FakeLoading:
    """A model and an encoder that are there at once."""

    def __init__(self) -> None:
        self.state, self.message, self.fraction = State.READY, "ready", 1.0
        self.elapsed_s, self.error = 0.0, None
        self.model: ScriptedModel | None = ScriptedModel()
        self.encoder: HashEncoder | None = HashEncoder()


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLoading]:
    fake = FakeLoading()
    monkeypatch.setattr(loading, "start", lambda *_: fake)
    monkeypatch.setattr(leaving, "_expired_at", time.monotonic())
    asking._store.cache_clear()
    asking.forget_opened()
    yield fake
    asking._store.cache_clear()
    asking.forget_opened()


@pytest.fixture
def store(loaded: FakeLoading) -> MemoryStore:
    return asking.memory_of(loaded, catalogue.SHARED)  # type: ignore[arg-type]


def made(number: int, **changes: Any) -> MemoryEntry:
    """An entry of episode and position ``number``."""
    fields: dict[str, Any] = {
        "polarity": "positive",
        "failure_type": "Schema Linking",
        "question": f"Which reader has number {number}?",
        "schema": "Database: library",
        "database_id": "library",
        "failed_sql": f"SELECT nme FROM reader WHERE id = {number}",
        "new_sql": f"SELECT name FROM reader WHERE id = {number}",
        "status": "EXECUTION_ERROR",
        "db_error": "no such column: nme",
        "outcome": "CORRECT",
        "question_id": f"q{number}",
        "episode_id": f"e{number}",
        "position": number,
        "iteration": 1,
    }
    return MemoryEntry(**(fields | changes))


def remember(store: MemoryStore, *entries: MemoryEntry) -> None:
    """Each by a question of its own, so that the next ones can see it."""
    for entry in entries:
        while store.next_position() < entry.position:
            pass
        store.finalise(entry)


def opened(**query: str) -> AppTest:
    """A browser of its own on the page."""
    at = AppTest.from_file(APP, default_timeout=60)
    at.run()
    at.switch_page(PAGE)
    for name, value in query.items():
        at.query_params[name] = value
    return fine(at.run())


def fine(at: AppTest) -> AppTest:
    assert not at.exception, [error.message for error in at.exception]
    return at


def words(at: AppTest) -> str:
    """Everything a reader sees, with its HTML tags."""
    texts = [element.value for kind in (at.html, at.caption, at.text, at.code) for element in kind]
    return "\n".join(map(str, texts))


def questions(at: AppTest) -> list[str]:
    """The questions of the table, row by row."""
    return [] if not at.dataframe else list(at.dataframe[0].value["Question"])


def tab(at: AppTest, name: str, tabs: str = Param.SECTION) -> AppTest:
    at.session_state[tabs] = name
    return fine(at.run())


@pytest.mark.parametrize("section", ["Entries", "<b>", "Nowhere"])
def test_an_address_names_the_section_and_one_that_is_not_there_falls_back(store: MemoryStore, section: str) -> None:
    remember(store, made(0))
    assert "will see it" in words(opened(section=section))


# looking --------------------------------------------------------------------------------------------------


def test_an_empty_memory_offers_to_fill_it() -> None:
    at = opened()
    assert "Nothing has been asked yet" in words(at)
    assert any(button.label == "Ask a question" for button in at.button)


def test_while_the_model_loads_the_page_says_so(loaded: FakeLoading) -> None:
    loaded.state = State.LOADING
    assert "opens together with the model" in words(opened())


def test_the_slider_shows_what_that_question_saw_and_nothing_later(store: MemoryStore) -> None:
    shared = {"failed_sql": "SELECT a", "new_sql": "SELECT b"}
    remember(
        store,
        made(0, question="first words", **shared),
        made(1, question="not of this"),
        made(2, question="later words", polarity="negative", outcome="EXECUTION_ERROR", **shared),
        made(3, question="last words", polarity="negative", outcome="EXECUTION_ERROR", **shared),
    )
    at = opened()
    assert "As the next question, 4, will see it" in words(at)
    assert questions(at) == ["not of this", "last words"]
    assert list(at.dataframe[0].value["Failed"]) == [0, 2]
    fine(at.slider(key=Param.POSITION).set_value(2).run())
    assert "As question 2 saw it" in words(at)
    assert questions(at) == ["not of this", "first words"]
    assert list(at.dataframe[0].value["Failed"]) == [0, 0]
    assert at.query_params[Param.POSITION] == "2"
    fine(at.slider(key=Param.POSITION).set_value(0).run())
    assert "could not see anything yet" in words(at)


def test_who_stays_at_the_end_follows_the_memory_and_who_went_back_does_not(store: MemoryStore) -> None:
    remember(store, made(0), made(1))
    at, back = opened(), opened(position="1")
    remember(store, made(2))
    assert at.run().slider(key=Param.POSITION).value == 3
    assert fine(back.run()).slider(key=Param.POSITION).value == 1


def test_playing_goes_on_to_the_end_and_stops_there(store: MemoryStore) -> None:
    remember(store, *(made(number) for number in range(3)))
    at = opened()
    fine(at.button(key=Key.PLAY).click().run())
    shown = []
    while at.session_state[Key.PLAYING]:
        shown.append(len(questions(at)))
        fine(at.run())
    assert shown == [1, 2]
    assert len(questions(at)) == 3
    assert at.button(key=Key.PLAY).label == "Play"


@pytest.mark.parametrize("position", ["99", "-1", "many", "٣", "9" * 400])
def test_a_link_beyond_the_last_question_falls_back_with_a_sentence(store: MemoryStore, position: str) -> None:
    remember(store, made(0), made(1))
    at = opened(position=position)
    assert "is not a question of this memory; the last one is 2" in words(at)
    assert at.slider(key=Param.POSITION).value == 2


def test_filters_narrow_and_say_so_when_nothing_is_left(store: MemoryStore) -> None:
    remember(
        store,
        made(0, failure_type="Syntax", question="a"),
        made(1, polarity="negative", outcome="EXECUTION_ERROR", question="b", database_id="shop"),
        made(2, question="c"),
    )
    at = opened()
    fine(at.selectbox(key=Key.POLARITY).set_value(Polarity.NEGATIVE).run())
    assert questions(at) == ["b"]
    fine(at.selectbox(key=Key.POLARITY).set_value(None).run())
    fine(at.multiselect(key=Key.TYPES).set_value([FailureType.SYNTAX]).run())
    assert questions(at) == ["a"]
    fine(at.text_input(key=Key.FIND).set_value("nowhere").run())
    assert "No entry passes these filters" in words(at)


def test_a_thousand_rows_at_most_and_the_rest_by_pages(store: MemoryStore) -> None:
    store.finalise_many(made(number) for number in range(1_050))
    at = opened()
    fine(at.selectbox(key=Key.PAGE_SIZE).set_value(1_000).run())
    assert len(questions(at)) == 1_000
    fine(at.number_input(key=Key.PAGE).set_value(2).run())
    assert len(questions(at)) == 50
    assert "1,001–1,050 of 1,050 entries" in words(at)
    fine(at.text_input(key=Key.FIND).set_value("number 17?").run())
    assert questions(at) == ["Which reader has number 17?"]


def test_an_entry_opens_with_change_provenance_and_prompt(store: MemoryStore) -> None:
    shared = {"failed_sql": "SELECT x FROM t WHERE a = 1", "new_sql": "SELECT DISTINCT x FROM t", "question": MARKUP}
    remember(store, made(0, **shared), made(1, polarity="negative", outcome="EXECUTION_ERROR", **shared))
    (entry,) = store.entries()
    at = opened(entry=entry.id)
    said = words(at)
    assert "DISTINCT added" in said
    assert "filter dropped: a = 1" in said
    assert "worked 1×, failed 1×" in said
    assert "<img" not in said
    tab(at, "Where from", Key.ENTRY_TABS)
    history = at.dataframe[-1].value
    assert list(history["Then"]) == ["+ 1 : 0", "+ 1 : 1"]  # a tie keeps what it was
    assert list(history["Episode"]) == ["e0", "e1"]
    tab(at, "In a prompt", Key.ENTRY_TABS)
    card = next(code.value for code in at.code if code.value.startswith("[Confirmed successful repair 1]"))
    prompt = prompts.repair_prompt(
        asking.live.make_question("q", "library"), "s", positive=[entry], status=Outcome.TIMEOUT,
        failure_type=FailureType.SYNTAX, error=None, history=["SELECT 1"],
    )  # fmt: skip
    assert card in prompt


def test_a_link_to_an_entry_that_is_not_there_says_why(store: MemoryStore) -> None:
    remember(store, made(0), made(1))
    gone, later = (view.id for view in store.entries())
    store.forget(gone)
    assert "is not in this memory (any more)" in words(opened(entry=gone))
    assert "is not in this memory (any more)" in words(opened(entry="'; DROP --"))
    assert "can be seen from question 2 on" in words(opened(entry=later, position="1"))
