"""The Compare page on a scripted model: columns side by side, an episode lived again, and what an address holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import HashEncoder, ScriptedModel, answer

from merit import live
from merit.database import Database, samples
from merit.models import loading
from merit.models.loading import State
from merit.strategy import STRATEGIES
from merit.ui import asking
from merit.ui.lanes import LaneDraft, Memory, parse
from merit.ui.state import Key, Param
from merit.verification import SpiderVerifier

APP = str(Path(__file__).parents[2] / "app.py")
WHO = "Who wrote The Long River?"
RIGHT = (
    "SELECT author.name FROM author JOIN book ON author.author_id = book.author_id WHERE book.title = 'The Long River'"
)
BROKEN = "SELECT author.name FROM book"
OTHER = "Which reading groups come together in the Market Square branch?"
ME = "a" * 32


class FakeLoading:
    """A loading that is over."""

    def __init__(self, model: ScriptedModel) -> None:
        self.state, self.message, self.fraction, self.elapsed_s, self.error = State.READY, "ready", 1.0, 0.0, None
        self.model, self.encoder = model, HashEncoder()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def loaded(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLoading]:
    fake = FakeLoading(model)
    monkeypatch.setattr(loading, "start", lambda *_: fake)
    asking._store.cache_clear()
    yield fake
    asking._store.cache_clear()


def opened(**parameters: str | list[str]) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=40)
    at.session_state[Key.OWNER] = ME
    at.switch_page("pages/compare.py")
    for name, value in parameters.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    return at


def words(at: AppTest) -> str:
    texts = [element.value for kind in (at.html, at.caption, at.markdown, at.text) for element in kind]
    return "\n".join([*map(str, texts), *[box.label for box in at.expander]])


def until(at: AppTest, done: Callable[[AppTest], bool], seconds: float = 30.0) -> AppTest:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        at.run()
        assert not at.exception, [error.message for error in at.exception]
        if done(at):
            return at
        time.sleep(0.05)
    raise AssertionError(f"It never came; the page shows {words(at)[-2000:]}")


def over(at: AppTest) -> bool:
    return not at.button(key=Key.ASK).disabled


def remembered_episode(model: ScriptedModel, loaded: FakeLoading) -> str:
    """An episode at position 1 that recalled what the one before it had left."""
    store = asking.memory_of(loaded)  # type: ignore[arg-type]
    library = Database.open(samples.path("library"), "library")
    known = {question.text: question for question in samples.questions("library")}
    episode = ""
    for text in (OTHER, WHO):
        right = known[text].gold_sql
        model.enqueue(answer(BROKEN), answer(str(right)))
        request = live.Request(
            known[text], library, STRATEGIES["same_database"], SpiderVerifier(official=False), owner=ME
        )
        episode = next(iter([e for e in live.ask(request, model, store) if hasattr(e, "episode_id")])).episode_id
    return episode


def test_two_columns_are_compared_and_the_address_holds_them(loaded: FakeLoading, model: ScriptedModel) -> None:
    at = opened(database="library", question=WHO, lane=["same_database", "zero_shot~off"])
    assert "side by side" in words(at)
    assert at.session_state[Key.JUDGE] == asking.Judge.SAMPLE
    model.enqueue(answer(BROKEN), answer(RIGHT))
    at.button(key=Key.ASK).click().run()
    until(at, lambda at: "part at repair 1" in words(at) and over(at))
    said = words(at)
    assert "First answer only" in said
    assert "memory off" in said
    assert "● Correct" in said
    assert "The end flips" in said
    assert model.left == 0  # the shared first answer was asked for once
    assert at.query_params[Param.LANE] == ["same_database", "zero_shot~off"]
    episodes = at.query_params[Param.EPISODE]
    assert len(episodes) == 2
    assert asking.memory_of(loaded).counts().observations == 0  # type: ignore[arg-type]
    assert asking.memory_of(loaded).upcoming() == 0  # type: ignore[arg-type]

    elsewhere = AppTest.from_file(APP, default_timeout=40)  # another browser, the same address
    elsewhere.session_state[Key.OWNER] = "b" * 32
    elsewhere.switch_page("pages/compare.py")
    elsewhere.query_params[Param.EPISODE] = episodes
    elsewhere.query_params[Param.DATABASE] = ["library"]
    elsewhere.run()
    assert not elsewhere.exception
    assert "part at repair 1" in words(elsewhere)
    assert "memory off" in words(elsewhere)


def test_an_episode_is_lived_again_without_the_entry_it_used(loaded: FakeLoading, model: ScriptedModel) -> None:
    episode = remembered_episode(model, loaded)
    at = opened(of=episode)
    said = words(at)
    assert "lives an episode again: question 1" in said
    assert at.text_area(key=Param.QUESTION).value == WHO
    codes = at.query_params[Param.LANE]
    assert [code.split("~")[1:2] for code in codes] == [[], ["off"], ["without"]]
    model.enqueue(answer("SELECT title FROM book"), answer(RIGHT))  # only what no prompt of the recording asked
    at.button(key=Key.ASK).click().run()
    until(at, lambda at: "A and C" in words(at) and over(at))
    said = words(at)
    assert "only A recalls +" in said
    assert model.left == 0
    assert "◐ Wrong rows" in said
    box = next(box for box in at.expander if box.label == "Rows and text that differ")
    assert box is not None


def test_a_forged_entry_needs_a_forgery(loaded: FakeLoading, model: ScriptedModel) -> None:
    episode = remembered_episode(model, loaded)
    entry = asking.memory_of(loaded).entries()[0].id  # type: ignore[arg-type]
    at = opened(of=episode, lane=f"same_database~forged~{entry}~positive~")
    at.button(key=Key.ASK).click().run()
    assert "Type the query that the forged entry shall claim" in words(at)
    at.text_area(key=f"lane-0-0-{entry[:12]}-sql").set_value("SELECT 'a lie'").run()
    model.enqueue(answer(RIGHT))
    at.button(key=Key.ASK).click().run()
    until(at, lambda at: "● Correct" in words(at) and over(at))
    assert "forged in place of" in words(at)
    assert "a lie" in next(p for p in reversed(model.prompts) if "CONFIRMED" in p)
    assert asking.memory_of(loaded).entries()[0].new_sql != "SELECT 'a lie'"  # type: ignore[arg-type]
    assert "a%20lie" in "".join(at.query_params[Param.LANE])


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"lane": ["merit~dance"]}, "cannot be read"),
        ({"lane": ["leaky"]}, "There is no strategy called"),
        ({"lane": ["same_database~at~-3"]}, "cannot be read"),
        ({"lane": ["same_database~forged~x~maybe~SELECT"]}, "cannot be read"),
        ({"of": "0" * 32}, "not on this machine"),
        ({"of": "../../etc/passwd"}, "not the id of an episode"),
        ({"episode": ["<b>x</b>"]}, "not the id of an episode"),
        ({"database": "nowhere"}, "no database called"),
    ],
)
def test_an_address_that_means_nothing_gets_a_sentence(
    loaded: FakeLoading, parameters: dict[str, str | list[str]], says: str
) -> None:
    at = opened(**parameters)
    assert says in words(at)
    assert not at.button(key=Key.ASK).disabled


def test_nobody_else_sees_a_comparison_on_a_private_database(loaded: FakeLoading, tmp_path: Path) -> None:
    """The id of an episode is not enough where the data are somebody's own."""
    from support import build_shop

    private = Database.open(build_shop(tmp_path / "shop.sqlite"))  # called as a sample is, with another schema
    request = live.Request(
        live.make_question("Which?", "shop"), private, STRATEGIES["zero_shot"], SpiderVerifier(), owner="someone"
    )
    store = asking.memory_of(loaded)  # type: ignore[arg-type]
    events = list(live.ask(request, ScriptedModel(answer("SELECT 1")), store))
    at = opened(episode=events[0].episode_id)  # type: ignore[union-attr]
    assert "not yours" in words(at)


@pytest.mark.parametrize(
    "lane",
    [
        LaneDraft(),
        LaneDraft("merit", memory=Memory.OFF),
        LaneDraft(memory=Memory.WITHOUT, entry="ab" * 32),
        LaneDraft(memory=Memory.FORGED, entry="ab" * 32, sql="SELECT '~&é\n%' -- ?"),
        LaneDraft(memory=Memory.EARLIER, position=31),
    ],
)
def test_a_lane_survives_its_address(lane: LaneDraft) -> None:
    assert parse(lane.code) == lane
