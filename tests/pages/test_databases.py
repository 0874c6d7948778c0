"""The Databases page: looked through, fed with good and bad files, asked about, and emptied again."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import HashEncoder, ScriptedModel, answer

from merit import jobs, live, trace
from merit.database import samples, uploads
from merit.errors import MemoryUnavailable
from merit.models import loading
from merit.models.loading import State
from merit.settings import settings
from merit.ui import asking, catalogue, leaving
from merit.ui.state import Key, Param

APP = str(Path(__file__).parents[2] / "app.py")
PAGE = "pages/databases.py"
QUESTION = "How many shops are in Ulm?"
GOLD = "SELECT COUNT(*) FROM shop WHERE town = 'Ulm'"
MARKUP = '<img src=x onerror="window.owned=1"> *a* :red[b] $c$'


class FakeLoading:
    """A model and an encoder that are there at once, or not at all."""

    def __init__(self, model: ScriptedModel) -> None:
        self.state, self.message, self.fraction = State.READY, "ready", 1.0
        self.elapsed_s, self.error = 0.0, None
        self.model: ScriptedModel | None = model
        self.encoder: HashEncoder | None = HashEncoder()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture(autouse=True)
def loaded(model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLoading]:
    fake = FakeLoading(model)
    monkeypatch.setattr(loading, "start", lambda *_: fake)
    monkeypatch.setattr(leaving, "_expired_at", time.monotonic())
    asking._store.cache_clear()
    asking.forget_opened()
    yield fake
    asking._store.cache_clear()
    asking.forget_opened()


@pytest.fixture
def page() -> AppTest:
    return opened()


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


def shop(path: Path, tables: int = 2) -> bytes:
    """A small database: shops, and tables that point to them."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE shop (shop_id INTEGER PRIMARY KEY, name TEXT, town TEXT)")
    connection.executemany("INSERT INTO shop (name, town) VALUES (?, ?)", [("A", "Ulm"), ("B", "Ulm"), ("C", MARKUP)])
    for number in range(1, tables):
        connection.execute(f"CREATE TABLE sale{number} (id INTEGER PRIMARY KEY, shop_id REFERENCES shop(shop_id))")
    connection.commit()
    connection.close()
    return path.read_bytes()


def bring(at: AppTest, name: str, data: bytes) -> AppTest:
    uploader = next(element for element in at.file_uploader if str(element.key).startswith(f"{Key.UPLOAD}-"))
    return fine(uploader.upload(name, data).run())


def press(at: AppTest, key: str) -> AppTest:
    return fine(at.button(key=key).click().run())


def picked(at: AppTest) -> str:
    return str(at.radio(key=Key.PICKED).value)


def owner(at: AppTest) -> str:
    return str(at.session_state[Key.OWNER])


def rerun_until(at: AppTest, done: Callable[[AppTest], bool], seconds: float = 20.0) -> AppTest:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if done(fine(at.run())):
            return at
        time.sleep(0.05)
    raise AssertionError(f"It never came; the page shows {words(at)[-2000:]}")


def tab(at: AppTest, name: str) -> AppTest:
    """Open a tab: its content is made only then."""
    at.session_state[f"{Key.DATABASE_TABS}-{picked(at)}"] = name
    return fine(at.run())


# looking --------------------------------------------------------------------------------------------------


def test_samples_show_size_findings_tables_and_first_rows(page: AppTest) -> None:
    assert list(page.radio(key=Key.PICKED).options)[4] == "Lending library"
    assert picked(page) == "library"
    said = words(page)
    assert "9 tables" in said
    assert "Worth knowing" in said
    overview, columns, rows = (frame.value for frame in page.dataframe)
    assert dict(zip(overview["Table"], overview["Rows"], strict=True))["member"] == 140
    assert overview["Points to"].tolist().count("–") < len(overview)
    assert {"Column", "Type", "Key"} == set(columns.columns)
    assert "primary key" in columns["Key"].tolist()
    assert len(rows) <= 10


def test_another_sample_is_one_click_away_and_stands_in_the_address(page: AppTest) -> None:
    fine(page.radio(key=Key.PICKED).set_value("campus").run())
    assert page.query_params[Param.DATABASE] in ("campus", ["campus"])
    assert samples.info("campus").title in words(page)


def test_the_schema_is_shown_as_the_model_reads_it(page: AppTest) -> None:
    tab(page, "Schema in prompts")
    assert asking.open_database("library", "").schema("listing") in [code.value for code in page.code]


def test_a_first_question_opens_ask_with_database_and_question(page: AppTest) -> None:
    fine(page.radio(key=Key.PICKED).set_value("campus").run())
    first = page.button(key="try-campus-0").click().run()
    fine(first)
    assert first.selectbox(key=Param.DATABASE).value == "campus"
    asked = first.text_area(key=Param.QUESTION).value
    assert asking.sample(asked, "campus", "") is not None
    assert first.session_state[Key.JUDGE] == asking.Judge.SAMPLE


def test_an_unknown_name_in_the_address_falls_back_with_a_sentence() -> None:
    at = opened(database="nowhere")
    assert "There is no database called “nowhere”" in words(at)
    assert picked(at) == "library"


# bringing -------------------------------------------------------------------------------------------------


def test_a_database_is_taken_in_chosen_and_offered_on_ask(page: AppTest, tmp_path: Path) -> None:
    bring(page, "my shop.sqlite", shop(tmp_path / "a.sqlite"))
    said = words(page)
    assert "my shop.sqlite was checked and is ready: 2 tables" in said
    assert picked(page) == "my_shop"
    assert "yours; only this browser sees it" in said
    ask = fine(page.button(key=Key.ASK_ABOUT).click().run())
    assert ask.selectbox(key=Param.DATABASE).value == "my_shop"
    assert "Your private memory" in words(ask)


def test_a_table_is_shown_first_and_made_only_when_agreed(page: AppTest) -> None:
    bring(page, "people.csv", b"Name,Joined on,Fee\nAda,2021-01-01,12.5\nBob,2021-02-01,3\n")
    assert uploads.list_of(owner(page)) == []
    assert "people.csv becomes the table people with 2 rows" in words(page)
    shown = page.dataframe[0].value
    assert shown["In the file"].tolist() == ["Name", "Joined on", "Fee"]
    assert shown["Type"].tolist() == ["TEXT", "TEXT", "REAL"]
    press(page, Key.UPLOAD_AGREE)
    (upload,) = uploads.list_of(owner(page))
    assert picked(page) == upload.database_id == "people"
    assert Key.STAGED not in page.session_state


def test_a_table_can_be_left_and_nothing_of_it_stays(page: AppTest) -> None:
    bring(page, "people.csv", b"Name,Fee\nAda,12.5\n")
    press(page, Key.UPLOAD_LEAVE)
    assert uploads.list_of(owner(page)) == []
    assert list((settings().uploads_dir / owner(page)).glob(".incoming*")) == []
    assert picked(page) == "library"


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("empty.db", b"", "The file is empty"),
        ("archive.db", b"PK\x03\x04" + b"\0" * 600, "ZIP archive"),
        ("cut.sqlite", b"SQLite format 3\0" + b"\0" * 20, "damaged"),
        ("notes.docx", b"\x01\x02\x03" * 500, "not a SQLite database"),
        ("broken.sql", b"CREATE TABLE a (;", "broken.sql was not taken"),
        ("broken.parquet", b"PAR1" + b"\0" * 40, "broken.parquet was not taken"),
        ("../../<b>x</b>.db", b"", "&lt;b&gt;x&lt;/b&gt;.db was not taken"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_a_sentence_and_nothing_is_lost(
    page: AppTest, name: str, data: bytes, says: str, tmp_path: Path
) -> None:
    fine(page.radio(key=Key.PICKED).set_value("campus").run())
    bring(page, name, data)
    said = words(page)
    assert says in said
    assert "nothing else has changed" in said
    assert picked(page) == "campus"
    assert uploads.list_of(owner(page)) == []


def test_a_file_over_the_limit_is_refused_by_the_server_too(
    page: AppTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MERIT_UPLOAD_LIMIT_MB", "1")
    settings.cache_clear()
    assert "At most 1 MB" in words(page.run())
    bring(page, "large.csv", b"a\n" + b"1\n" * 800_000)
    assert "larger than 1 MB" in words(page)


def test_what_is_wrong_with_a_database_that_works_is_told(page: AppTest, tmp_path: Path) -> None:
    path = tmp_path / "b.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE a (day TEXT)")
    connection.execute("INSERT INTO a VALUES ('03.04.2020')")
    connection.execute("CREATE VIEW gone AS SELECT * FROM missing")
    connection.commit()
    connection.close()
    bring(page, "b.sqlite", path.read_bytes())
    said = words(page)
    assert "No table declares a primary key" in said
    assert "do not sort or compare by time" in said
    assert "gone" in said


def test_names_cells_and_findings_hold_no_markup(page: AppTest, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    connection = sqlite3.connect(path)
    quoted = '"' + MARKUP.replace('"', '""') + '"'
    connection.execute(f"CREATE TABLE {quoted} ({quoted} TEXT)")
    connection.execute(f"CREATE TABLE other (id INTEGER PRIMARY KEY, {quoted} TEXT)")
    connection.execute(f"INSERT INTO {quoted} VALUES (?)", (MARKUP,))
    connection.commit()
    connection.close()
    bring(page, f"{MARKUP}.sqlite", path.read_bytes())
    html = "\n".join(str(element.value) for element in page.html)
    assert "<img" not in html
    assert "&lt;img" in html
    option = page.radio(key=Key.PICKED).options[len(samples.ids())]
    assert "\\<img" in option
    assert MARKUP in page.dataframe[0].value["Table"].tolist()


# owners ---------------------------------------------------------------------------------------------------


def test_another_owner_neither_sees_it_nor_opens_its_address(page: AppTest, tmp_path: Path) -> None:
    bring(page, "mine.sqlite", shop(tmp_path / "a.sqlite"))
    other = opened(database="mine")
    assert owner(other) != owner(page)
    assert "opens only in the browser it was uploaded from" in words(other)
    assert "mine" not in "".join(other.radio(key=Key.PICKED).options)
    stranger = AppTest.from_file(APP, default_timeout=60)
    stranger.query_params[Param.DATABASE] = "mine"
    fine(stranger.run())
    assert "opens only in the browser it was uploaded from" in words(stranger)
    assert stranger.selectbox(key=Param.DATABASE).value == "library"


def test_two_owners_with_files_of_one_name_each_see_their_own(tmp_path: Path) -> None:
    first, second = opened(), opened()
    bring(first, "shop data.sqlite", shop(tmp_path / "a.sqlite", 2))
    bring(second, "shop data.sqlite", shop(tmp_path / "b.sqlite", 3))
    for at, tables in ((first, 2), (second, 3)):
        assert len(asking.open_database("shop_data", owner(at)).tables) == tables


# asking and removing --------------------------------------------------------------------------------------


def asked(page: AppTest, model: ScriptedModel, tmp_path: Path, *answers: str) -> AppTest:
    """An upload with a question of its owner's, asked to its end."""
    bring(page, "corner.sqlite", shop(tmp_path / "a.sqlite"))
    brought = json.dumps([{"question": QUESTION, "gold_sql": GOLD, "evidence": "Ulm is a town"}]).encode()
    tab(page, "Your questions")
    uploader = next(element for element in page.file_uploader if str(element.key).startswith(Key.OWN_QUESTIONS))
    fine(uploader.upload("mine.json", brought).run())
    assert "1 question checked" in words(page)
    model.enqueue(*map(answer, answers))
    ask = fine(page.button(key=f"try-{picked(page)}-0").click().run()).switch_page("pages/ask.py")
    assert ask.text_area(key=Param.QUESTION).value == QUESTION
    assert ask.session_state[Key.EVIDENCE] == "Ulm is a town"
    assert ask.session_state[Key.JUDGE] == asking.Judge.SAMPLE
    fine(ask.button(key=Key.ASK).click().run())
    return rerun_until(ask, lambda at: "m-end" in words(at))


def test_an_upload_is_judged_by_its_owners_gold_and_remembered_privately(
    page: AppTest, model: ScriptedModel, loaded: FakeLoading, tmp_path: Path
) -> None:
    at = asked(page, model, tmp_path, "SELECT COUNT(*) FROM shops", GOLD)
    said = words(at)
    assert "oracle-assisted" in said
    assert "Correct" in said or any("Correct" in box.label for box in at.expander)
    private = asking.memory_of(loaded, catalogue.private(owner(at)))  # type: ignore[arg-type]
    assert private.counts().positive == 1
    assert asking.memory_of(loaded).counts().observations == 0  # type: ignore[arg-type]
    (file,) = settings().episodes_dir.glob("*.jsonl")
    assert owner(at) not in file.read_text()
    assert trace.read_header(file).memory_version.startswith("private@")
    for prompt in model.prompts:
        assert GOLD not in prompt


def test_removal_says_what_goes_and_takes_it_all(
    page: AppTest, model: ScriptedModel, loaded: FakeLoading, tmp_path: Path
) -> None:
    at = asked(page, model, tmp_path, "SELECT COUNT(*) FROM shops", GOLD)
    me = owner(at)
    at.switch_page(PAGE)
    fine(at.run())
    assert picked(at) == "corner"
    at.session_state[Key.REMOVE] = True
    fine(at.run())
    said = words(at)
    for part in ("1 remembered entry", "1 recorded episode", "1 question of your own"):
        assert part in said
    press(at, Key.REMOVE_SURE)
    assert "corner.sqlite is removed" in words(at)
    assert picked(at) == "library"
    assert uploads.list_of(me) == []
    assert live.history(me) == []
    assert asking.memory_of(loaded, catalogue.private(me)).counts().observations == 0  # type: ignore[arg-type]
    at.switch_page("pages/ask.py")
    fine(at.run())
    assert QUESTION not in words(at)
    assert at.selectbox(key=Param.DATABASE).value == "library"


def test_removing_one_upload_leaves_what_the_other_taught(loaded: FakeLoading, tmp_path: Path) -> None:
    me = "a" * 32
    kept = uploads.add(me, shop(tmp_path / "a.sqlite"), "kept.sqlite")
    gone = uploads.add(me, shop(tmp_path / "b.sqlite"), "gone.sqlite")
    store = asking.memory_of(loaded, catalogue.private(me))  # type: ignore[arg-type]
    for upload, new in ((kept, "SELECT name FROM shop"), (gone, "SELECT town FROM shop")):
        store.finalise(remembered(upload.database_id, new, store.next_position()))
    leaving.remove("gone", me, loaded)  # type: ignore[arg-type]
    (entry,) = store.entries()
    assert entry.database_id == "kept"
    assert [upload.id for upload in uploads.list_of(me)] == [kept.id]


def test_what_was_asked_stays_until_the_memory_can_be_opened(
    page: AppTest, model: ScriptedModel, loaded: FakeLoading, tmp_path: Path
) -> None:
    at = asked(page, model, tmp_path, "SELECT COUNT(*) FROM shops", GOLD)
    loaded.encoder = None
    with pytest.raises(MemoryUnavailable):
        leaving.remove("corner", owner(at), loaded)  # type: ignore[arg-type]
    assert len(uploads.list_of(owner(at))) == 1


def test_an_upload_nothing_was_asked_of_can_be_removed_without_a_model(loaded: FakeLoading, tmp_path: Path) -> None:
    me = "b" * 32
    uploads.add(me, shop(tmp_path / "a.sqlite"), "a.sqlite")
    loaded.encoder = None
    leaving.remove("a", me, loaded)  # type: ignore[arg-type]
    assert uploads.list_of(me) == []


def test_a_question_that_runs_on_it_is_stopped_before_it_is_removed(loaded: FakeLoading, tmp_path: Path) -> None:
    me = "c" * 32
    uploads.add(me, shop(tmp_path / "a.sqlite"), "a.sqlite")
    database = asking.open_database("a", me)
    request = live.Request(
        live.make_question("x", "a"), database, asking.strategy("merit", asking.Scope.SAME), None, owner=me
    )  # type: ignore[arg-type]

    def forever(cancel):  # type: ignore[no-untyped-def]
        cancel.wait(30)
        yield from ()

    job = jobs.start(me, forever, context=request)
    leaving.remove("a", me, loaded)  # type: ignore[arg-type]
    assert job.state is jobs.JobState.CANCELLED


def test_wrong_lines_of_own_questions_are_named_and_the_earlier_ones_stay(page: AppTest, tmp_path: Path) -> None:
    bring(page, "corner.sqlite", shop(tmp_path / "a.sqlite"))
    me, id = owner(page), uploads.list_of(owner(page))[0].id
    uploads.set_questions(me, id, json.dumps([{"question": QUESTION, "gold_sql": GOLD}]).encode())
    tab(page, "Your questions")
    uploader = next(element for element in page.file_uploader if str(element.key).startswith(Key.OWN_QUESTIONS))
    lines = [
        {"question": "a", "gold_sql": GOLD},
        {"question": "<b>b</b>"},
        {"question": "c", "gold_sql": "SELECT hush"},
    ]
    fine(uploader.upload("w.jsonl", "\n".join(map(json.dumps, lines)).encode()).run())
    said = words(page)
    assert "Line 2:" in said
    assert "Line 3:" in said
    assert "Line 1:" not in said
    assert "hush" not in said
    assert [question.text for question in uploads.questions(me, id)] == [QUESTION]


def test_idle_owners_go_with_their_memory_and_recordings(
    loaded: FakeLoading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = "d" * 32
    uploads.add(me, shop(tmp_path / "a.sqlite"), "a.sqlite")
    store = asking.memory_of(loaded, catalogue.private(me))  # type: ignore[arg-type]
    store.finalise(remembered("a", "SELECT town FROM shop", store.next_position()))
    monkeypatch.setattr(uploads, "OWNER_EXPIRES_AFTER_S", -60.0)
    leaving._expire(loaded)  # type: ignore[arg-type]
    assert list(settings().uploads_dir.glob("*")) == []
    assert store.counts().observations == 0


def remembered(database_id: str, new_sql: str, position: int):  # type: ignore[no-untyped-def]
    from merit.episode import FailureType, Outcome, Polarity
    from merit.memory.entry import MemoryEntry

    return MemoryEntry(
        Polarity.POSITIVE, FailureType.RESULT_MISMATCH, "q", "s", database_id, "SELECT 1", new_sql,
        Outcome.DENOTATION_MISMATCH, None, Outcome.CORRECT, f"q-{database_id}", f"e-{database_id}", position, 1,
        encoder_id="hash",
    )  # fmt: skip
