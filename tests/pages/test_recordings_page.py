"""The Recordings page: opened by address and by file, played and stepped, and fed with what is no recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import HashEncoder, ScriptedModel, answer, build_shop

from merit import live, recordings, trace
from merit.database import Database, samples
from merit.episode import Question
from merit.memory.store import MemoryStore
from merit.settings import settings
from merit.strategy import STRATEGIES
from merit.ui import player
from merit.ui.state import Key, Param
from merit.verification import SpiderVerifier

APP = str(Path(__file__).parents[2] / "app.py")
ME = "a" * 32
QUESTION = samples.questions("library")[0]
BROKEN = "SELECT author.name FROM book"


def opened(**parameters: str) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=40)
    at.session_state[Key.OWNER] = ME
    at.switch_page("pages/recordings.py")
    for name, value in parameters.items():
        at.query_params[name] = value
    return checked(at.run())


def checked(at: AppTest) -> AppTest:
    assert not at.exception, [error.message for error in at.exception]
    return at


def words(at: AppTest) -> str:
    texts = [element.value for kind in (at.html, at.caption, at.markdown, at.text) for element in kind]
    return "\n".join([*map(str, texts), *[box.label for box in at.expander]])


def press(at: AppTest, key: str) -> AppTest:
    return checked(at.button(key=key).click().run())


@pytest.fixture
def episode() -> str:
    """An episode of mine: a given first answer, one repair, correct."""
    library = Database.open(samples.path("library"), "library")
    judge = SpiderVerifier(official=False)
    request = live.Request(QUESTION, library, STRATEGIES["merit"], judge, owner=ME, initial=BROKEN)
    with MemoryStore.open("memory://", HashEncoder()) as store:
        events = list(live.ask(request, ScriptedModel(answer(str(QUESTION.gold_sql))), store))
    return str(events[0].episode_id)  # type: ignore[union-attr]


def test_the_page_says_what_will_be_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recordings.gallery, "__defaults__", (tmp_path,))
    assert "No recordings come with this copy" in words(opened())


def test_an_episode_of_mine_is_played_with_its_badge_and_steps(episode: str) -> None:
    at = opened(recording=episode)
    said = words(at)
    assert "RECORDED" in said
    assert "first answer written by hand" in said
    assert "Finished after 1 repair" in said
    assert Param.STEP not in at.query_params
    press(at, "player-back")
    assert "".join(at.query_params[Param.STEP]) == "0"
    assert "Finished after" not in words(at)
    assert "Database error" in words(at)
    assert "given, not generated" in words(at)
    press(at, "player-next")
    assert "Finished after 1 repair" in words(at)
    press(at, "player-start")
    assert "First answer" not in words(at)
    press(at, "player-play")
    assert at.button(key="player-play").label == "Pause"
    press(at, "player-play")
    assert at.button(key="player-play").label == "Play"


def test_the_address_of_a_step_shows_that_step(episode: str) -> None:
    at = opened(recording=episode, step="0")
    assert "Database error" in words(at)
    assert "Finished after" not in words(at)
    for odd in ("7", "-1", "x", "9" * 30):
        assert "Finished after 1 repair" in words(opened(recording=episode, step=odd))


def test_a_file_is_dropped_and_opened_and_stays_with_who_dropped_it(episode: str) -> None:
    data = live.bundle_path(episode).read_bytes()
    at = opened()
    checked(at.file_uploader(key=Key.DROP).upload("mine.jsonl", data, "application/jsonl").run())
    assert "RECORDED" in words(at)
    name = "".join(at.query_params[Param.RECORDING])
    assert "stays with who opened it" in words(opened(recording=name))
    press(at, "leave")
    assert "RECORDED" not in words(at)
    press(at, "reopen")
    assert "RECORDED" in words(at)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x00\xff" * 99, "is not JSON"),
        (b"{}\n", "no header of a recording"),
        (b'{"format": 99}\n', "A newer version can open it"),
        (b"", "is empty"),
        (json.dumps([1]).encode(), "not a JSON object"),
    ],
)
def test_a_file_that_is_none_gets_a_sentence(data: bytes, says: str) -> None:
    at = opened()
    checked(at.file_uploader(key=Key.DROP).upload("foreign.jsonl", data, "application/jsonl").run())
    assert says in words(at)
    assert "RECORDED" not in words(at)


@pytest.mark.parametrize("name", ["nothing", "../../etc/passwd", "https://example.org/x.jsonl", "<b>x</b>", "0" * 32])
def test_an_address_that_means_nothing_gets_a_sentence(name: str) -> None:
    assert "There is no recording of this name here" in words(opened(recording=name))


def test_the_gallery_opens_by_its_address_and_by_its_button(
    episode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = trace.read_bundle(live.bundle_path(episode)).events
    trace.write_bundle(tmp_path / "a-join.jsonl", events, title="A join", shows="<i>What</i> it shows")
    for function in (recordings.gallery, recordings.load):
        defaults: Callable[..., object] = function
        monkeypatch.setattr(defaults, "__defaults__", (tmp_path,))
    at = opened()
    assert "A join" in words(at)
    assert "&lt;i&gt;What" in words(at)
    press(at, "play-a-join")
    assert "RECORDED" in words(at)
    assert "Finished after 1 repair" in words(opened(recording="a-join"))


def test_nobody_elses_private_episode_is_played(tmp_path: Path) -> None:
    private = Database.open(build_shop(tmp_path / "own.sqlite"))
    request = live.Request(Question("Which?", "own"), private, STRATEGIES["zero_shot"], SpiderVerifier(), owner="other")
    with MemoryStore.open("memory://", HashEncoder()) as store:
        events = list(live.ask(request, ScriptedModel(answer("SELECT 1")), store))
    at = opened(recording=events[0].episode_id)  # type: ignore[union-attr]
    assert "not yours" in words(at)
    assert settings().episodes_dir.exists()


def test_time_runs_at_the_chosen_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(player.time, "monotonic", lambda: clock[0])
    place = player.Position("x", 2.0, since=100.0, speed=4.0)
    clock[0] = 101.5
    assert place.now(60.0) == 8.0
    assert place.now(5.0) == 5.0
    assert player.Position("x", 2.0).now(60.0) == 2.0
