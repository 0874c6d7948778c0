"""Gold stays inside the verifier (spec §1): a marker planted in the gold SQL, and a value that only the gold rows
hold, are searched for in everything that was prompted, told, written or logged.

Each check is itself checked: the same search finds the marker where it was put on purpose.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from support import HashEncoder, ScriptedModel, answer, build_shop

from merit import cli, live, trace
from merit.database import Database
from merit.episode import Execution, Outcome, Question, Verdict
from merit.errors import BadInput, DatabaseNotFound, GoldUnavailable, MeritError
from merit.events import Event
from merit.memory.store import MemoryStore
from merit.settings import settings
from merit.strategy import STRATEGIES, Regime
from merit.verification import AssertionVerifier, BirdVerifier, SpiderVerifier, Verifier

MARKER = "qzxgoldmarkerqzx"
VALUE = "77310993555117"
GOLD = f"SELECT '{MARKER}' AS {MARKER}_column, {VALUE}, name FROM product"
BROKEN_GOLD = f"SELECT {MARKER}_missing FROM product"


@dataclass
class Everything:
    """All that an episode let out, as one search space of bytes."""

    model: ScriptedModel
    events: list[Event] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def places_with(self, needle: str) -> list[str]:
        found = [f"prompt {index}" for index, call in enumerate(self.model.history) if needle in call.prompt]
        for event in self.events:
            if needle in repr(event) or needle in json.dumps(trace.to_json(event)):
                found.append(f"event {type(event).__name__}")
        found += [f"text {index}" for index, text in enumerate(self.texts) if needle in text]
        for file in settings().home.rglob("*"):
            if file.is_file() and needle.encode() in file.read_bytes():
                found.append(f"file {file.relative_to(settings().home)}")
        return found


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    return Database.open(build_shop(tmp_path / "shop.sqlite"))


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    opened = MemoryStore.open(settings().memory_uri, HashEncoder())
    yield opened
    opened.close()


class Wrong:
    """One wrong answer after another, of every kind of failure."""

    KINDS = (
        "SELECT name FROM product", "SELECT title FROM product", "SELECT name, FROM product", "no SQL at all",
        "SELECT sum(max(price)) FROM product",
    )  # fmt: skip

    def __init__(self) -> None:
        self.given = 0

    def __call__(self, prompt: str, cancel: object) -> str:
        if "-reflection-" in prompt:
            return "<reflection>The column was wrong.</reflection>"
        self.given += 1
        return answer(self.KINDS[(self.given - 1) % len(self.KINDS)])


def ask(question: Question, shop: Database, store: MemoryStore, strategy: Any, verifier: Verifier) -> Everything:
    everything = Everything(ScriptedModel(*[Wrong()] * 40))
    request = live.Request(question, shop, strategy, verifier, budget=3, owner="ann")
    everything.events = list(live.ask(request, everything.model, store))
    return everything


def clean(everything: Everything) -> None:
    assert everything.places_with(MARKER) == []
    assert everything.places_with(VALUE) == []


@pytest.mark.parametrize("name", list(STRATEGIES))
@pytest.mark.parametrize("verifier", [SpiderVerifier(official=False), SpiderVerifier(), BirdVerifier()], ids=str)
def test_no_strategy_lets_gold_out(
    shop: Database, store: MemoryStore, name: str, verifier: Verifier, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for number in range(2):
        question = Question(f"Question {number}?", "shop", gold_sql=GOLD)
        everything = ask(question, shop, store, STRATEGIES[name], verifier)
        everything.texts += [caplog.text, repr(question), str(question.public())]
        assert everything.model.history
        clean(everything)


@pytest.mark.parametrize("official", [True, False])
@pytest.mark.parametrize("kind", [SpiderVerifier, BirdVerifier])
def test_gold_that_cannot_be_run_is_not_quoted_either(
    shop: Database, store: MemoryStore, kind: Any, official: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    question = Question("Which?", "shop", gold_sql=BROKEN_GOLD)
    everything = ask(question, shop, store, STRATEGIES["merit"], kind(official=official))
    everything.texts.append(caplog.text)
    clean(everything)


class Quoting:
    """A foreign verifier that quotes gold wherever it can."""

    name = "quoting"
    oracle = True

    def __init__(self, outcome: Outcome | Exception) -> None:
        self.outcome = outcome

    def judge(self, question: Question, database: Any, sql: str, execution: Execution | None = None) -> Verdict:
        assert question.gold_sql == GOLD, "the verifier is the one who must see it"
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return Verdict(self.outcome, f"expected {question.gold_sql}", self.name)


@pytest.mark.parametrize(
    "outcome",
    [Outcome.DENOTATION_MISMATCH, Outcome.EXECUTION_ERROR, Outcome.TIMEOUT, Outcome.NOT_JUDGED, RuntimeError(GOLD),
     GoldUnavailable(GOLD), KeyError(GOLD), MeritError(GOLD), BadInput(GOLD), DatabaseNotFound(GOLD)],
    ids=repr,
)  # fmt: skip
def test_a_verifier_that_quotes_gold_is_not_believed(
    shop: Database, store: MemoryStore, outcome: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its error text used to be what diagnosis read; then the database's own words came first, but a verifier that
    called SQL that did run an EXECUTION_ERROR, or raised one of our own errors, still got its text into prompt,
    memory and trace. Where the question has gold, only a verifier that says so (``keeps_gold``) is quoted."""
    caplog.set_level(logging.DEBUG)
    everything = ask(Question("Which?", "shop", gold_sql=GOLD), shop, store, STRATEGIES["merit"], Quoting(outcome))
    everything.texts.append(caplog.text)
    clean(everything)


def test_gold_stays_in_where_only_the_database_decides(shop: Database, store: MemoryStore) -> None:
    dbms_only = replace(STRATEGIES["merit"], regime=Regime.DBMS_ONLY)
    clean(ask(Question("Which?", "shop", gold_sql=GOLD), shop, store, dbms_only, SpiderVerifier()))


def test_corrections_and_second_thoughts_let_no_gold_out(shop: Database, store: MemoryStore) -> None:
    question = Question("Which?", "shop", gold_sql=GOLD)
    everything = ask(question, shop, store, STRATEGIES["merit"], SpiderVerifier(official=False))
    sql = "SELECT price FROM product"
    live.remember_correction(everything.events, sql, shop.execute(sql), store, shop)
    request = live.Request(question, shop, STRATEGIES["merit"], SpiderVerifier(official=False), owner="ann")
    judged = next(
        event.iteration
        for event in everything.events
        if getattr(event, "outcome", None) is Outcome.DENOTATION_MISMATCH and hasattr(event, "iteration")
    )
    everything.events += list(live.undo(everything.events, judged, "yes", request, everything.model, store))
    clean(everything)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_command_line_prints_no_gold(
    shop: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    everything = Everything(ScriptedModel(*[Wrong()] * 40))
    monkeypatch.setattr("merit.models.load", lambda spec, say: everything.model)
    monkeypatch.setattr("merit.models.load_encoder", lambda spec, say: HashEncoder())
    monkeypatch.setattr("merit.database.samples.ids", lambda: ("shop",))
    monkeypatch.setattr("merit.database.samples.path", lambda id: shop.path)
    monkeypatch.setattr(
        "merit.database.samples.questions", lambda id: [Question("Which?", "shop", gold_sql=GOLD, question_id="q")]
    )
    monkeypatch.setattr(sys, "argv", ["merit", "ask", "-d", "shop", "Which?", "--verifier", "gold", *form])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    captured = capsys.readouterr()
    assert "DENOTATION_MISMATCH" in captured.out
    everything.texts += [captured.out, captured.err]
    clean(everything)


def test_the_search_finds_what_is_there(shop: Database, store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    """The marker in the question itself, where it is allowed, is found in prompts, events, memory and recording."""
    everything = ask(
        Question(f"Which {MARKER}?", "shop"), shop, store, STRATEGIES["merit"], AssertionVerifier(row_count=99)
    )
    places = " ".join(everything.places_with(MARKER))
    for part in ("prompt 0", "event EpisodeStarted", "event PromptBuilt", "file memory/", "file episodes/"):
        assert part in places
