"""The Routing page: a failure by hand, another label, the figures of a labelled set, files that are no such set."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import HashEncoder, ScriptedModel

from merit.database import samples
from merit.episode import FailureType, Outcome, Polarity
from merit.memory.entry import MemoryEntry
from merit.memory.store import MemoryStore
from merit.models import loading
from merit.models.loading import State
from merit.routing.labelled import Failure, labelled, read, to_csv
from merit.routing.validation import Reference
from merit.ui import asking, catalogue, leaving, routing_failures
from merit.ui.routing_bench import EXAMPLES, Mode
from merit.ui.state import Key

APP = str(Path(__file__).parents[2] / "app.py")
PAGE = "pages/routing.py"
MARKUP = '<img src=x onerror="window.owned=1"> *a* :red[b] $c$'


class FakeLoading:
    """A model and an encoder that are there at once, or not at all."""

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


def remember(store: MemoryStore, number: int, kind: FailureType) -> None:
    store.finalise(
        MemoryEntry(
            Polarity.POSITIVE, kind, f"Question {number}?", "schema", "library", f"SELECT a{number} FROM book",
            f"SELECT b{number} FROM book", Outcome.EXECUTION_ERROR, "no such column: a", Outcome.CORRECT,
            f"q{number}", f"e{number}", store.next_position(), 1,
        )
    )  # fmt: skip


def opened() -> AppTest:
    at = AppTest.from_file(APP, default_timeout=60)
    at.run()
    at.switch_page(PAGE)
    return fine(at.run())


def fine(at: AppTest) -> AppTest:
    assert not at.exception, [error.message for error in at.exception]
    return at


def words(at: AppTest) -> str:
    """Everything a reader sees, with its HTML tags."""
    texts = [element.value for kind in (at.html, at.caption, at.text, at.code) for element in kind]
    return "\n".join(map(str, texts))


def run(at: AppTest, sql: str) -> AppTest:
    at.text_area(key=Key.BENCH_SQL).set_value(sql)
    return fine(at.button(key=Key.BENCH_RUN).click().run())


def tab(at: AppTest, name: str, tabs: str = Key.ROUTING_TABS) -> AppTest:
    at.session_state[tabs] = name
    return fine(at.run())


# one failure ----------------------------------------------------------------------------------------------


def test_the_page_says_what_will_be_here() -> None:
    assert "tested from top to bottom" in words(opened())


def test_all_fourteen_rules_are_shown_with_what_they_did() -> None:
    at = run(opened(), "SELECT titel FROM book")
    said = words(at)
    assert said.count('class="m-passed"') == 2
    assert said.count('class="m-fired"') == 1
    assert said.count('class="m-untested"') == 11
    assert "The message contains “no such column:”." in said
    assert "Not tested: rule 3 fits" in said


@pytest.mark.parametrize(("number", "rule"), list(enumerate([3, 8, 6, 7, 10, 13, 12])))
def test_each_example_lands_on_a_rule_of_its_own(number: int, rule: int) -> None:
    at = fine(opened().button(key=f"bench-try-{number}").click().run())
    assert f'class="m-fired"><span class="m-number">{rule}</span>' in words(at), EXAMPLES[number]


def test_another_label_changes_memory_and_prompt(store: MemoryStore) -> None:
    for number in range(3):
        remember(store, number, FailureType.SCHEMA_LINKING)
    for number in range(3, 6):
        remember(store, number, FailureType.AGGREGATION)
    at = run(opened(), "SELECT titel FROM book")
    assert "This is the label of the rules" in words(at)
    fine(at.selectbox(key=Key.OVERRIDE).set_value(FailureType.AGGREGATION).run())
    said = words(at)
    assert "3 entries come, 3 go, 0 stay" in said
    assert "+ Current error type: Aggregation" in said
    assert "− Current error type: Schema Linking" in said
    assert "Current error type: Aggregation" in words(tab(at, "Prompt", Key.BENCH_TABS))
    at = run(at, "SELECT name FROM books")
    assert at.selectbox(key=Key.OVERRIDE).value is None, "a new failure begins with the label of the rules"


def test_another_tab_and_another_page_lose_nothing(store: MemoryStore) -> None:
    """What was typed, the failure and the label by hand went away with a look at another tab."""
    at = run(opened(), "SELECT titel FROM book")
    fine(at.selectbox(key=Key.OVERRIDE).set_value(FailureType.SYNTAX).run())
    at = tab(tab(at, MEASURED), "One failure")
    fine(at.switch_page("pages/memory.py").run())
    at = tab(fine(at.switch_page(PAGE).run()), "One failure")
    assert at.text_area(key=Key.BENCH_SQL).value == "SELECT titel FROM book"
    assert at.selectbox(key=Key.OVERRIDE).value is FailureType.SYNTAX
    assert 'class="m-fired"><span class="m-number">3</span>' in words(at)


def test_a_sample_question_is_judged_by_its_answer() -> None:
    at = opened()
    at.selectbox(key=Key.BENCH_QUESTION).set_value("How many members does the library have?")
    at = run(at, "SELECT COUNT(*) FROM member")
    assert "no failure, nothing to route" in words(at)
    assert 'class="m-fired"' not in words(at)
    at = run(at, "SELECT 3")
    assert "the sample answer has other rows" in words(at)


def test_a_message_as_it_came() -> None:
    at = opened()
    at.segmented_control(key=Key.BENCH_MODE).set_value(Mode.MESSAGE)
    fine(at.run())
    at.text_area(key=Key.BENCH_MESSAGE).set_value(f"no such function: {MARKUP}")
    at = fine(at.run())
    assert 'class="m-fired"><span class="m-number">6</span>' in words(at)
    assert "<img" not in words(at)
    at.selectbox(key=Key.BENCH_STATUS).set_value(Outcome.TIMEOUT)
    assert 'class="m-fired"><span class="m-number">1</span>' in words(fine(at.run()))


@pytest.mark.parametrize("sql", ["", "   ", "SELECT '\0'"])
def test_no_statement_gets_a_sentence(sql: str) -> None:
    assert 'role="alert"' in words(run(opened(), sql))


def test_the_prompt_is_there_before_the_model_is(loaded: FakeLoading) -> None:
    loaded.state, loaded.model, loaded.encoder = State.LOADING, None, None
    at = run(opened(), "SELECT titel FROM book")
    assert "the prompt is without it" in words(at)
    assert "Current error type: Schema Linking" in words(tab(at, "Prompt", Key.BENCH_TABS))


def test_markup_stays_text() -> None:
    at = run(opened(), f"SELECT '{MARKUP}' FROM nowhere")
    assert "<img" not in words(at)


# how often it is right ------------------------------------------------------------------------------------

MEASURED, LABEL = "How often it is right", "Label"


def bring(at: AppTest, data: bytes, name: str = "mine.csv") -> AppTest:
    turn = at.session_state[Key.LABELLED_TURN]
    at.file_uploader(key=f"{Key.LABELLED_FILE}-{turn}").upload(name, data)
    return fine(at.run())


def test_the_figures_stand_beside_the_published_ones() -> None:
    at = tab(opened(), MEASURED)
    figures = at.dataframe[1].value
    assert list(figures["Failures"]) == ["190", "425", "945"]
    assert list(figures["Population-weighted"])[1:] == ["near 48%", "near 48%"]
    assert list(figures["Macro-F1"])[1:] == ["0.317", "0.355"]
    assert list(figures["Result Mismatch among all"])[1:] == ["84.71%", "not available"]
    assert "Cohen&#x27;s kappa 0.81" in words(at)
    fine(at.selectbox(key=Key.REFERENCE).set_value(Reference.AGREED).run())
    assert at.dataframe[1].value["Failures"].iloc[0] == "148"


def test_a_file_of_ones_own_is_measured_and_left_again() -> None:
    at = bring(tab(opened(), MEASURED), b"status,message,label\nTIMEOUT,,Execution\nTIMEOUT,,Syntax\n")
    assert "mine.csv: 2 failures read." in words(at)
    assert list(at.dataframe[1].value.iloc[0])[:3] == ["mine.csv", "2", "50.0%"]
    fine(at.button(key=Key.LABELLED_BACK).click().run())
    assert at.dataframe[1].value["Failures"].iloc[0] == "190"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"a,b\n1,2\n", "status and message are missing"),
        (b"status,message\nTIMEOUT,\n" * 50_001, "more than 10,000 rows"),
        ("status,message\nTIMEOUT,Größe\n".encode("latin-1"), "not UTF-8 text (line 2)"),
        (b"status,message\nTIMEOUT,\nGONE,\n", "Line 3: The status “GONE” is no failure"),
        (MARKUP.encode(), "status and message are missing"),
    ],
)
def test_a_file_that_cannot_be_used_gets_a_sentence_and_changes_nothing(data: bytes, sentence: str) -> None:
    at = bring(tab(opened(), MEASURED), data, f"{MARKUP}.csv")
    assert "was not taken" in words(at)
    assert sentence in words(at)
    assert "<img" not in words(at)
    assert at.dataframe[1].value["Failures"].iloc[0] == "190"


def test_failures_are_labelled_blind_and_taken_away() -> None:
    at = bring(tab(opened(), MEASURED), b"status,message,sql\nTIMEOUT,slow,SELECT 1\nTIMEOUT,,SELECT 2\n")
    assert "None of these failures has a label yet" in words(at)
    at = tab(at, LABEL)
    assert "SELECT 1" in words(at)
    assert "slow" not in words(at)
    assert "1 of 2, 0 labelled by you" in words(at)
    fine(at.button(key=f"label-{FailureType.EXECUTION}").click().run())
    assert "2 of 2, 1 labelled by you" in words(at)
    assert "SELECT 2" in words(at)
    fine(at.button(key="label-back").click().run())
    fine(at.toggle(key=Key.LABEL_REVEAL).set_value(True).run())
    assert "slow" in words(at)
    kept = read(to_csv(routing_validation_failures(at)))
    assert [one.own_label for one in kept.failures] == [FailureType.EXECUTION, None]
    at = tab(at, MEASURED)
    assert list(at.dataframe[1].value.iloc[0])[:3] == ["mine.csv", "1", "100.0%"]


def routing_validation_failures(at: AppTest) -> tuple[Failure, ...]:
    """What the download holds."""
    _, found = at.session_state[Key.LABELLED]
    own = at.session_state[Key.OWN_LABELS]
    return tuple(labelled(one, own.get(one.id)) for one in found)


# real failures --------------------------------------------------------------------------------------------

REAL = "Real failures"
ASKED = samples.questions("library")[0]


def predicted(at: AppTest, data: bytes, dataset: str = "library", name: str = "answers.jsonl") -> AppTest:
    at.text_input(key=Key.DATASET).set_value(dataset)
    turn = at.session_state[Key.PREDICTIONS_TURN]
    at.file_uploader(key=f"{Key.PREDICTIONS}-{turn}").upload(name, data)
    fine(at.run())
    job = routing_failures._RUNNING.latest(at.session_state[Key.OWNER])
    assert job is None or job.wait(60)
    return fine(at.run())


def test_what_is_known_already_is_shown_first() -> None:
    at = tab(opened(), REAL)
    assert "110 failures of 120 sample questions" in words(at)


def test_predictions_are_routed_and_can_be_labelled() -> None:
    answers = [
        {"question_id": question.id, "sql": sql, "gold": "qzxgoldmarkerqzx"}
        for question, sql in zip(
            samples.questions("library")[:3], [ASKED.gold_sql, "SELECT nome FROM member", "SELECT 1"], strict=True
        )
    ]
    at = predicted(tab(opened(), REAL), "\n".join(map(json.dumps, answers)).encode())
    said = words(at)
    assert "answers.jsonl: 3 answers, 1 correct (33.3% of those that could be judged), 2 failures." in said
    assert list(at.dataframe[0].value["Rule"]) == [3, 13]
    failures = at.dataframe[1].value
    assert list(failures["Label"]) == ["Schema Linking", "Result Mismatch"]
    assert "qzxgoldmarkerqzx" not in said
    fine(at.button(key=Key.PREDICTIONS_LABEL).click().run())
    assert "1 of 2, 0 labelled by you" in words(at)


def test_empty_answers_are_told_and_can_be_left_out() -> None:
    ids = [question.id for question in samples.questions("library")[:2]]
    answers = [{"question_id": id, "sql": sql} for id, sql in zip(ids, ["", "SELECT 1"], strict=True)]
    at = predicted(tab(opened(), REAL), "\n".join(map(json.dumps, answers)).encode())
    assert "“empty query” 1×" in words(at)
    assert list(at.dataframe[0].value["Rule"]) == [12, 13]
    fine(at.toggle(key=Key.LEAVE_EMPTY).set_value(True).run())
    assert "1 answer, 0 correct (0.0% of those that could be judged), 1 failure." in words(at)
    assert list(at.dataframe[0].value["Rule"]) == [13]


@pytest.mark.parametrize(
    ("data", "dataset", "sentence"),
    [
        (b"SELECT 1\n", "library", "there must be as many"),
        (b'{"question_id": "x", "sql": "SELECT 1"}\n', "/nowhere/at/all", "There is nothing at"),
        (b"SELECT 1\n", "  ", "Say first which dataset"),
        (b"\xff\xfe\x00", "library", "not UTF-8"),
        (b'{"question_id": "x", "nothing": 1}\n{"a": 2}', "library", "has no SQL"),
    ],
)
def test_predictions_that_do_not_fit_get_a_sentence(data: bytes, dataset: str, sentence: str) -> None:
    at = predicted(tab(opened(), REAL), data, dataset, f"{MARKUP}.jsonl")
    assert sentence in words(at)
    assert "<img" not in words(at)
    assert "110 failures of 120 sample questions" in words(at)
