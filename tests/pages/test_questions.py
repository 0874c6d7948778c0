"""My questions: found again, opened as they went, mended there, deleted; other browsers' are not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import ScriptedModel, answer

from merit import live
from merit.database import Database, samples
from merit.episode import Polarity
from merit.events import EpisodeStarted
from merit.memory.store import MemoryStore
from merit.strategy import STRATEGIES
from merit.ui.state import Key, Param
from merit.verification import ExecutionOnlyVerifier, SpiderVerifier
from tests.pages.test_memory import fine, loaded, store, words

__all__ = ["loaded", "store"]  # fixtures
APP = str(Path(__file__).parents[2] / "app.py")
ME, ANOTHER = "a" * 32, "b" * 32
MARKUP = '<img src=x onerror="window.owned=1"> *a* :red[b]'


def asked(store: MemoryStore, text: str, *sql: str, owner: str = ME) -> str:
    """Ask a question on the library; the id of its episode."""
    database = Database.open(samples.path("library"), id="library")
    question = live.make_question(text, "library")
    known = next((one for one in samples.questions("library") if one.text == text), None)
    verifier = SpiderVerifier(official=False) if known else ExecutionOnlyVerifier()
    request = live.Request(known or question, database, STRATEGIES["same_database"], verifier, 0, owner)
    events = list(live.ask(request, ScriptedModel(*map(answer, sql)), store))
    assert isinstance(events[0], EpisodeStarted)
    return events[0].episode_id


def opened(owner: str = ME, **query: str) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=60)
    at.session_state[Key.OWNER] = owner
    at.run()
    at.switch_page("pages/questions.py")
    for name, value in query.items():
        at.query_params[name] = value
    return fine(at.run())


def listed(at: AppTest) -> list[str]:
    return list(at.dataframe[0].value["Question"]) if at.dataframe else []


def test_before_the_first_question_there_is_one_step() -> None:
    at = opened()
    assert "Nothing has been asked in this browser yet" in words(at)
    assert any(button.label == "Ask a question" for button in at.button)


def test_questions_are_listed_newest_first_and_found_by_words_and_end(store: MemoryStore) -> None:
    asked(store, "How many books are there?", "SELECT 1")
    asked(store, MARKUP, "SELECT nothing FROM nowhere")
    asked(store, "How many of somebody else?", "SELECT 1", owner=ANOTHER)
    at = opened()
    assert listed(at) == [MARKUP, "How many books are there?"]
    fine(at.text_input(key=Key.PAST_FIND).set_value("BOOKS how").run())
    assert listed(at) == ["How many books are there?"]
    fine(at.text_input(key=Key.PAST_FIND).set_value("").run())
    fine(at.multiselect(key=Key.PAST_END).set_value(["EXECUTION_ERROR"]).run())
    assert listed(at) == [MARKUP]
    fine(at.text_input(key=Key.PAST_FIND).set_value("library nowhere at all").run())
    assert "No question of yours passes these filters" in words(at)


def test_one_is_opened_as_it_went_and_mended_there(store: MemoryStore) -> None:
    episode = asked(store, "Which members are there?", "SELECT nme FROM member")
    at = opened(episode=episode)
    assert "Which members are there?" in words(at)
    assert "no such column: nme" in words(at)
    at.session_state[f"mend-{episode[:12]}"] = True
    fine(at.run())
    fine(at.text_area[0].set_value("SELECT name FROM member LIMIT 2").run())
    fine(at.button(key=Key.EDIT_RUN).click().run())
    fine(at.button(key=Key.EDIT_CONFIRM).click().run())
    (entry,) = store.entries()
    assert (entry.polarity, entry.new_sql) == (Polarity.POSITIVE, "SELECT name FROM member LIMIT 2")
    assert "Remembered as a correction by a person" in words(at)


def test_a_recording_is_deleted_by_its_owner_alone(store: MemoryStore) -> None:
    episode = asked(store, MARKUP, "SELECT 1")
    other = opened(owner=ANOTHER, episode=episode)
    assert not [button for button in other.button if button.key == Key.PAST_DELETE_SURE]
    with pytest.raises(live.BadInput, match="not on this machine, or it is not yours"):
        live.forget_recording(episode, ANOTHER)
    at = opened(episode=episode)
    fine(at.button(key=Key.PAST_DELETE_SURE).click().run())
    assert "is deleted" in words(at)
    assert "<img" not in words(at)
    assert listed(at) == []
    assert not live.bundle_path(episode).exists()


@pytest.mark.parametrize("episode", ["0" * 32, "../../etc/passwd", MARKUP])
def test_an_address_that_leads_nowhere_says_so(store: MemoryStore, episode: str) -> None:
    asked(store, "Anything", "SELECT 1")
    at = opened(**{Param.EPISODE: episode})
    assert "This episode is not on this machine" in words(at) or "not the id of an episode" in words(at)
    assert listed(at) == ["Anything"]
