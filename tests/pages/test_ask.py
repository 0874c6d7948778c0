"""The Ask page on a scripted model: opened, asked to its ends, judged, undone, corrected, and fed with bad input."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import HashEncoder, ScriptedModel, answer

from merit import jobs
from merit.database import samples
from merit.models import loading
from merit.models.loading import State
from merit.ui import asking
from merit.ui.state import Key, Param

APP = str(Path(__file__).parents[2] / "app.py")
WHO = "Who wrote The Long River?"
RIGHT = (
    "SELECT author.name FROM author JOIN book ON author.author_id = book.author_id WHERE book.title = 'The Long River'"
)
BROKEN = "SELECT author.name FROM book"
EMPTY_HANDED = "SELECT name FROM author WHERE name = 'The Long River'"


class FakeLoading:
    """A loading in the state a test wants."""

    def __init__(self, model: ScriptedModel) -> None:
        self.state, self.message, self.fraction = State.READY, "ready", 1.0
        self.elapsed_s, self.error = 0.0, None
        self.model: ScriptedModel | None = model
        self.encoder: HashEncoder | None = HashEncoder()
        self.retried = 0

    def retry(self) -> None:
        self.retried += 1
        self.state = State.READY


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def loaded(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> FakeLoading:
    fake = FakeLoading(model)
    monkeypatch.setattr(loading, "start", lambda *_: fake)
    return fake


@pytest.fixture(autouse=True)
def fresh_caches() -> Iterator[None]:
    asking._store.cache_clear()
    asking._opened.cache_clear()
    yield
    asking._store.cache_clear()


@pytest.fixture
def page(loaded: FakeLoading) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=30).run()
    assert not at.exception
    return at


def rerun_until(at: AppTest, done: Callable[[AppTest], bool], seconds: float = 20.0) -> AppTest:
    """Fragments do not tick by themselves in an AppTest; draw again until something is on the page."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        at.run()
        assert not at.exception, [error.message for error in at.exception]
        if done(at):
            return at
        time.sleep(0.05)
    raise AssertionError(f"It never came; the page shows {words(at)[-2000:]}")


def words(at: AppTest) -> str:
    """Everything a reader sees, with its HTML tags."""
    texts = [element.value for kind in (at.html, at.caption, at.markdown, at.text, at.code) for element in kind]
    return "\n".join([*map(str, texts), *[box.label for box in at.expander]])


def ended(at: AppTest) -> bool:
    return "m-end" in words(at) and not at.button(key=Key.ASK).disabled


def waiting(at: AppTest) -> bool:
    return any(button.key == Key.YES for button in at.button)


def ask(at: AppTest, question: str) -> AppTest:
    at.text_area(key=Param.QUESTION).set_value(question).run()
    at.button(key=Key.ASK).click().run()
    assert not at.exception
    return at


def test_the_page_opens_and_says_what_will_be_here(page: AppTest) -> None:
    assert "step by step" in words(page)
    assert page.button(key=Key.STOP).disabled
    assert page.selectbox(key=Param.DATABASE).value == "library"


def test_a_sample_question_is_repaired_to_its_end_and_remembered(page: AppTest, model: ScriptedModel) -> None:
    model.enqueue(answer(BROKEN), answer(EMPTY_HANDED), answer(RIGHT))
    ask(page, WHO)
    assert page.session_state[Key.JUDGE] == asking.Judge.SAMPLE
    rerun_until(page, ended)
    said = words(page)
    assert "oracle-assisted" in said
    assert "no such column: author.name" in said
    assert "Schema Linking" in said
    assert "One entry was remembered" in said
    assert "It can help from question 1 on" in said
    labels = [box.label for box in page.expander]
    assert [label.split("**")[1] for label in labels[:3]] == ["① First answer", "② Repair 1", "③ Repair 2"]
    assert ["Database error" in labels[0], "Wrong rows" in labels[1], "Correct" in labels[2]] == [True] * 3
    assert page.query_params[Param.EPISODE]
    assert samples.questions("library")[0].gold_sql not in said


def test_a_typed_question_is_judged_by_the_person_and_no_goes_on(page: AppTest, model: ScriptedModel) -> None:
    model.enqueue(answer("SELECT name FROM branch"), answer("SELECT town FROM branch"))
    ask(page, "Where are we?")
    assert page.session_state[Key.JUDGE] == asking.Judge.PERSON
    rerun_until(page, waiting)
    said = words(page)
    assert "Is this what you meant?" in said
    assert "Show name." in said
    page.button(key=Key.NO).click().run()
    rerun_until(page, lambda at: waiting(at) and "② Repair 1" in words(at))
    page.button(key=Key.YES).click().run()
    rerun_until(page, ended)
    assert "● Correct" in words(page)
    assert "oracle" not in words(page).replace("“oracle-assisted”", "")


def test_stop_while_judging_stores_nothing(page: AppTest, model: ScriptedModel, loaded: FakeLoading) -> None:
    model.enqueue(answer("SELECT name FROM branch"))
    ask(page, "Where are we?")
    rerun_until(page, waiting)
    page.button(key=Key.STOP_JUDGING).click().run()
    rerun_until(page, ended)
    assert "Stopped. Nothing was stored" in words(page)
    assert asking.memory_of(loaded).counts().observations == 0  # type: ignore[arg-type]


def test_stop_during_generation_is_no_error(page: AppTest, model: ScriptedModel) -> None:
    def slow(_prompt: str, cancel: object) -> str:
        for _ in range(200):
            if cancel is not None and cancel.is_set():  # type: ignore[attr-defined]
                break
            time.sleep(0.05)
        return answer("SELECT 1")

    model.enqueue(slow)
    ask(page, "Where are we?")
    assert page.button(key=Key.ASK).disabled
    started = time.monotonic()
    page.button(key=Key.STOP).click().run()
    rerun_until(page, ended)
    assert time.monotonic() - started < 5
    assert "Stopped. Nothing was stored" in words(page)
    assert "Could not finish" not in words(page)


def test_a_mistaken_yes_is_taken_back(page: AppTest, model: ScriptedModel, loaded: FakeLoading) -> None:
    model.enqueue(answer("SELECT name FROM branch"), answer("SELECT town FROM branch"))
    ask(page, "Where are we?")
    rerun_until(page, waiting)
    page.button(key=Key.YES).click().run()
    rerun_until(page, ended)
    assert page.button(key=Key.UNDO).label == "I meant no, not yes"
    page.button(key=Key.UNDO).click().run()
    rerun_until(page, lambda at: waiting(at) and "② Repair 1" in words(at))
    page.button(key=Key.YES).click().run()
    rerun_until(page, ended)
    assert asking.memory_of(loaded).counts().positive == 1  # type: ignore[arg-type]
    assert model.left == 0


def test_the_person_mends_the_sql_and_it_is_remembered(
    page: AppTest, model: ScriptedModel, loaded: FakeLoading
) -> None:
    model.enqueue(answer("SELECT name FROM branch"))
    ask(page, "Where are we?")
    rerun_until(page, waiting)
    assert any(box.label == "Mend the SQL yourself" for box in page.expander)
    page.session_state[_key_of(page, "mend-")] = True
    page.run()
    editor = next(area for area in page.text_area if area.key and area.key.startswith(Key.EDIT_SQL))
    editor.set_value("SELECT town FROM branch").run()
    page.button(key=Key.EDIT_RUN).click().run()
    assert any("town" in list(frame.value.columns) for frame in page.dataframe)
    page.button(key=Key.EDIT_CONFIRM).click().run()
    assert not page.exception
    assert "Remembered as a correction by a person" in words(page)
    (entry,) = asking.memory_of(loaded).entries()  # type: ignore[arg-type]
    assert (entry.failed_sql, entry.new_sql) == ("SELECT name FROM branch", "SELECT town FROM branch")
    rerun_until(page, ended)


def _key_of(at: AppTest, start: str) -> str:
    episode = at.query_params[Param.EPISODE]
    return start + (episode if isinstance(episode, str) else episode[0])[:12]


def test_a_reload_finds_the_running_episode_again(page: AppTest, model: ScriptedModel, loaded: FakeLoading) -> None:
    model.enqueue(answer("SELECT name FROM branch"))
    ask(page, "Where are we?")
    rerun_until(page, waiting)
    again = AppTest.from_file(APP, default_timeout=30)
    again.session_state[Key.OWNER] = page.session_state[Key.OWNER]
    again.run()
    assert "Is this what you meant?" in words(again)
    stranger = AppTest.from_file(APP, default_timeout=30).run()
    assert "Is this what you meant?" not in words(stranger)
    jobs.get(page.session_state[Key.JOB], page.session_state[Key.OWNER]).cancel()  # type: ignore[union-attr]


def test_an_ended_episode_is_found_on_disk_by_its_address(page: AppTest, model: ScriptedModel) -> None:
    model.enqueue(answer(RIGHT))
    ask(page, WHO)
    rerun_until(page, ended)
    episode = page.query_params[Param.EPISODE]
    owner, job = page.session_state[Key.OWNER], page.session_state[Key.JOB]
    del jobs._REGISTRY._jobs[job]
    again = AppTest.from_file(APP, default_timeout=30)
    again.session_state[Key.OWNER] = owner
    again.query_params[Param.EPISODE] = episode
    again.run()
    assert "The first answer was right" in words(again)
    again.query_params[Param.STEP] = "7"
    again.run()
    assert "has no step 7" in words(again)
    stranger = AppTest.from_file(APP, default_timeout=30)
    stranger.query_params[Param.EPISODE] = episode
    stranger.run()
    assert not stranger.exception
    assert "The first answer was right" in words(stranger)  # a sample's data are everybody's, and the id is a secret
    assert Key.SHARE not in [button.key for button in stranger.button]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [("", "Please type a question first."), ("x" * 10_000, "10,000 characters"), ("   \n", "Please type a question")],
)
def test_questions_that_cannot_be_asked_get_a_sentence(page: AppTest, question: str, sentence: str) -> None:
    ask(page, question)
    assert sentence in words(page)
    assert page.text_area(key=Param.QUESTION).value == question


def test_markup_and_japanese_appear_as_typed(page: AppTest, model: ScriptedModel) -> None:
    message = "no such column: a_b"
    model.enqueue(answer("SELECT a_b FROM branch"), *[answer("SELECT a_b FROM branch")] * 7)
    ask(page, "図書館は $5 *a* <b>x</b> :red[y] ですか")
    rerun_until(page, ended)
    said = words(page)
    assert "図書館は $5 *a* &lt;b&gt;x&lt;/b&gt; :red[y] ですか" in said
    assert message in said
    assert "− failed before" in said


def test_a_broken_database_file_leaves_the_page_usable(
    loaded: FakeLoading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "sample_dbs"
    shutil.copytree(samples.ROOT / "library", root / "library")
    shutil.copytree(samples.ROOT / "shop", root / "shop")
    (root / "library" / "library.sqlite").write_bytes(b"this is no database" * 100)
    monkeypatch.setattr(samples, "ROOT", root)
    at = AppTest.from_file(APP, default_timeout=30).run()
    assert not at.exception
    assert 'role="alert"' in words(at)
    ask(at, "Where are we?")
    at.selectbox(key=Param.DATABASE).set_value("shop").run()
    assert not at.exception
    assert 'role="alert"' not in words(at)


def test_unknown_names_in_the_address_fall_back_with_a_sentence(loaded: FakeLoading) -> None:
    at = AppTest.from_file(APP, default_timeout=30)
    at.query_params[Param.STRATEGY] = "wishful"
    at.run()
    assert "There is no strategy called" in words(at)
    assert "same_database" in words(at)
    at = AppTest.from_file(APP, default_timeout=30)
    at.query_params[Param.DATABASE] = "../../etc"
    at.run()
    assert not at.exception
    assert "There is no database called" in words(at)
    assert at.selectbox(key=Param.DATABASE).value == "library"


def test_the_address_brings_back_question_database_and_strategy(loaded: FakeLoading) -> None:
    at = AppTest.from_file(APP, default_timeout=30)
    at.query_params[Param.DATABASE] = "shop"
    at.query_params[Param.QUESTION] = "How many products are in the catalogue?"
    at.query_params[Param.STRATEGY] = "iterative"
    at.run()
    assert at.selectbox(key=Param.DATABASE).value == "shop"
    assert at.text_area(key=Param.QUESTION).value == "How many products are in the catalogue?"
    assert at.radio(key=Param.STRATEGY).value == "iterative"
    assert at.radio(key=Key.JUDGE).value == asking.Judge.SAMPLE


def test_a_model_that_cannot_be_loaded_says_why_and_can_be_tried_again(loaded: FakeLoading) -> None:
    model, loaded.model, loaded.encoder = loaded.model, None, None
    loaded.state, loaded.error = State.FAILED, "The disk is full. Free 300 MB."
    at = AppTest.from_file(APP, default_timeout=30).run()
    assert "The disk is full. Free 300 MB." in words(at)
    loaded.model, loaded.encoder = model, HashEncoder()
    at.button(key=Key.RETRY).click().run()
    assert loaded.retried == 1
    assert "The disk is full" not in words(at)


def test_the_page_is_usable_while_the_model_loads_and_the_question_is_kept(
    loaded: FakeLoading, model: ScriptedModel
) -> None:
    model.enqueue(answer(RIGHT))
    loaded.state, loaded.message, loaded.fraction = State.DOWNLOADING, "downloading SmolLM2", 0.4
    at = AppTest.from_file(APP, default_timeout=30).run()
    assert "Downloading SmolLM2 40%" in words(at)
    ask(at, WHO)
    at.run()
    assert "Waiting for the model" in words(at)
    loaded.state = State.READY
    rerun_until(at, ended)
    assert "● Correct" in words(at)


def test_an_assertion_judges_and_a_bad_one_gets_a_sentence(page: AppTest, model: ScriptedModel) -> None:
    page.text_area(key=Param.QUESTION).set_value("Where are we?").run()
    page.radio(key=Key.JUDGE).set_value(asking.Judge.ASSERTION).run()
    page.selectbox(key=Key.EXPECTED_KIND).set_value(asking.Expected.CONDITION).run()
    page.text_input(key=Key.EXPECTED_CONDITION).set_value("name FROM").run()
    page.button(key=Key.ASK).click().run()
    assert "not an SQL expression" in words(page)
    page.text_input(key=Key.EXPECTED_CONDITION).set_value("count(*) = 5").run()
    model.enqueue(answer("SELECT name FROM branch"))
    page.button(key=Key.ASK).click().run()
    rerun_until(page, ended)
    assert "● Correct" in words(page)


def test_two_statements_are_no_answer_and_the_raw_text_can_be_read(page: AppTest, model: ScriptedModel) -> None:
    model.enqueue("SELECT 1; SELECT 2", answer(RIGHT))
    ask(page, WHO)
    rerun_until(page, ended)
    assert "empty query" in words(page)


def test_the_code_of_the_page_can_be_shown(page: AppTest) -> None:
    page.toggle(key=Key.SHOW_CODE).set_value(True).run()
    assert any("One call into the library" in code.value for code in page.code)
