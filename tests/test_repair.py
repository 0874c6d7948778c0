"""One episode, from the first answer to its end: what is asked, judged, remembered, and what is not."""

from __future__ import annotations

import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import Answer, HashEncoder, ScriptedModel, ScriptedVerifier, answer, build_shop

from merit import generation, prompts
from merit.database import Database
from merit.episode import Execution, FailureType, Outcome, Polarity, Question, Status, Verdict
from merit.errors import GoldUnavailable, JudgementStopped, MemoryUnavailable
from merit.events import (
    LAST_EVENTS,
    AttemptMade,
    Cancelled,
    Diagnosed,
    EpisodeFinalised,
    EpisodeStarted,
    Event,
    Executed,
    Failed,
    Judged,
    JudgementRequested,
    PromptBuilt,
    Reflected,
    Retrieved,
    TokenStreamed,
)
from merit.memory.store import MemoryStore
from merit.repair import run_episode
from merit.strategy import STRATEGIES, Regime
from merit.verification import (
    AssertionVerifier,
    BirdVerifier,
    ExecutionOnlyVerifier,
    PersonVerifier,
    SpiderVerifier,
    Verifier,
)

GOLD = "SELECT name FROM product WHERE price > 3"
RIGHT = answer("SELECT name FROM product WHERE price > 3.0")
WRONG = answer("SELECT name FROM product")
WRONG_TOO = answer("SELECT name FROM product WHERE price > 4")
MISSING_COLUMN = answer("SELECT title FROM product")
NO_SQL = "I am not sure which table you mean."
QUESTION = Question("Which products cost more than 3?", "shop", gold_sql=GOLD)


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    return Database.open(build_shop(tmp_path / "shop.sqlite"))


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    opened = MemoryStore.open("memory://repair", HashEncoder(), stream="test")
    yield opened
    opened.close()


@pytest.fixture
def run(shop: Database, store: MemoryStore) -> Callable[..., list[Event]]:
    """Run one episode of a scripted model; keyword arguments as of ``run_episode``."""

    def run_it(*answers: Answer, question: Question = QUESTION, **options: Any) -> list[Event]:
        model = options.pop("model", None) or ScriptedModel(*answers)
        verifier = options.pop("verifier", None) or SpiderVerifier(official=False)
        strategy = options.pop("strategy", STRATEGIES["merit"])
        position = options.pop("position", 0)
        events = list(run_episode(question, shop, model, verifier, store, strategy, position, **options))
        assert [isinstance(event, LAST_EVENTS) for event in events] == [False] * (len(events) - 1) + [True]
        return events

    return run_it


def of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def end(events: list[Event]) -> EpisodeFinalised:
    assert isinstance(events[-1], EpisodeFinalised), events[-1]
    return events[-1]


# The loop


def test_a_correct_first_answer_stores_nothing(run: Any, store: MemoryStore) -> None:
    events = run(RIGHT)
    assert [type(event) for event in events if not isinstance(event, TokenStreamed)] == [
        EpisodeStarted, PromptBuilt, AttemptMade, Executed, Judged, EpisodeFinalised,
    ]  # fmt: skip
    assert end(events) == EpisodeFinalised(Outcome.CORRECT, None, 1, 0)
    assert store.entries() == []


def test_fail_diagnose_repair_and_the_next_question_recalls_it(run: Any, store: MemoryStore) -> None:
    events = run(MISSING_COLUMN, RIGHT, position=4)
    last = end(events)
    assert (last.outcome, last.repairs, last.visible_from) == (Outcome.CORRECT, 1, 5)
    (diagnosed,) = of(events, Diagnosed)
    assert (diagnosed.iteration, diagnosed.failure_type, diagnosed.rule) == (0, FailureType.SCHEMA_LINKING, 3)
    assert diagnosed.message == "no such column: title"
    entry = last.entry
    assert entry is not None
    assert (entry.polarity, entry.failure_type) == (Polarity.POSITIVE, FailureType.SCHEMA_LINKING)
    assert (entry.failed_sql, entry.new_sql) == (
        "SELECT title FROM product",
        "SELECT name FROM product WHERE price > 3.0",
    )
    assert (entry.status, entry.db_error) == (Outcome.EXECUTION_ERROR, "no such column: title")
    assert (entry.outcome, entry.position, entry.iteration) == (Outcome.CORRECT, 4, 1)
    assert (entry.prompt_version, entry.model_id, entry.encoder_id) == ("spider-repair-v3", "scripted", "hash-encoder")

    other = Question("How many products are there?", "shop", gold_sql="SELECT count(*) FROM product")
    again = run(answer("SELECT count(titel) FROM product"), answer("SELECT count(*) FROM product"),
                question=other, position=5)  # fmt: skip
    (retrieved,) = of(again, Retrieved)
    assert retrieved.iteration == 1
    assert [card.id for card in retrieved.retrieval.positive] == [entry.id]
    (repair,) = [event for event in of(again, PromptBuilt) if event.purpose == "repair"]
    assert f"Entry ID: {entry.id}" in repair.prompt
    assert len(store.entries()) == 2


def test_an_entry_is_not_recalled_at_or_before_its_own_position(run: Any) -> None:
    run(MISSING_COLUMN, RIGHT, position=4)
    other = Question("How many products?", "shop", gold_sql="SELECT 3")
    for position, found in ((4, 0), (3, 0), (5, 1)):
        events = run(MISSING_COLUMN, answer("SELECT 3"), question=other, position=position,
                     strategy=replace(STRATEGIES["merit"], stores_positive=False))  # fmt: skip
        assert len(of(events, Retrieved)[0].retrieval.positive) == found


def test_the_own_question_is_never_recalled(run: Any) -> None:
    run(MISSING_COLUMN, RIGHT, position=0)
    events = run(MISSING_COLUMN, RIGHT, position=9)
    assert of(events, Retrieved)[0].retrieval.positive == ()


def test_exhaustion_stores_the_last_direction_typed_by_the_final_attempt(run: Any) -> None:
    events = run(WRONG, WRONG_TOO, MISSING_COLUMN, budget=2)
    last = end(events)
    assert (last.outcome, last.repairs) == (Outcome.EXECUTION_ERROR, 2)
    assert last.entry is not None
    assert last.entry.polarity is Polarity.NEGATIVE
    assert last.entry.failure_type is FailureType.SCHEMA_LINKING
    assert last.entry.failed_sql == "SELECT name FROM product WHERE price > 4"
    assert last.entry.new_sql == "SELECT title FROM product"
    assert (last.entry.status, last.entry.db_error) == (Outcome.EXECUTION_ERROR, "no such column: title")
    assert "attempted_sql=SELECT title FROM product;" in last.entry.failure_context
    assert [event.iteration for event in of(events, Diagnosed)] == [0, 1, 2]


def test_one_repair_that_fails_stores_the_direction_from_the_first_answer(run: Any) -> None:
    entry = end(run(WRONG, WRONG_TOO, budget=1)).entry
    assert entry is not None
    assert (entry.polarity, entry.failed_sql) == (Polarity.NEGATIVE, "SELECT name FROM product")
    assert (entry.failure_type, entry.status, entry.db_error) == (
        FailureType.RESULT_MISMATCH, Outcome.DENOTATION_MISMATCH, None,
    )  # fmt: skip


def test_a_late_success_is_typed_by_the_attempt_just_before_it(run: Any) -> None:
    entry = end(run(WRONG, MISSING_COLUMN, RIGHT)).entry
    assert entry is not None
    assert (entry.failure_type, entry.failed_sql) == (FailureType.SCHEMA_LINKING, "SELECT title FROM product")


def test_no_budget_stores_nothing(run: Any, store: MemoryStore) -> None:
    events = run(WRONG, budget=0)
    assert end(events) == EpisodeFinalised(Outcome.DENOTATION_MISMATCH, None, 1, 0)
    assert store.entries() == []


def test_a_given_first_answer_costs_no_call(run: Any) -> None:
    model = ScriptedModel(RIGHT)
    events = run(model=model, initial="SELECT title FROM product")
    assert of(events, AttemptMade)[0] == AttemptMade(0, "SELECT title FROM product", "SELECT title FROM product", 0, 0)
    assert [event.purpose for event in of(events, PromptBuilt)] == ["repair"]
    assert len(model.history) == 1
    assert end(events).outcome is Outcome.CORRECT


def test_the_repair_prompt_holds_the_failure_and_all_earlier_attempts(run: Any) -> None:
    model = ScriptedModel(WRONG, MISSING_COLUMN, RIGHT)
    run(model=model)
    last = model.prompts[-1]
    assert "Status: EXECUTION_ERROR\nCurrent error type: Schema Linking\nDB error: no such column: title\n" in last
    assert "[Attempt 1 — observed unsuccessful]\nSELECT name FROM product\n" in last
    assert "[Attempt 2 — observed unsuccessful]\nSELECT title FROM product\n" in last
    assert model.prompts[0] == prompts.initial_prompt(QUESTION, "Database: shop\n\n" + SCHEMA_TABLES)
    assert all(call.max_new_tokens == 512 and call.temperature == 0.0 for call in model.history)


SCHEMA_TABLES = """Table: product
  - id (integer, PRIMARY KEY)
  - name (text)
  - price (real)

Table: sale
  - id (integer, PRIMARY KEY)
  - product_id (integer, FOREIGN KEY -> product.id)
  - amount (integer)"""


def test_what_the_start_says(run: Any) -> None:
    started = run(RIGHT, position=7, seed=3, strategy="same_database", verifier=SpiderVerifier(official=False))[0]
    assert isinstance(started, EpisodeStarted)
    assert (started.position, started.seed, started.budget) == (7, 3, 7)
    assert (started.strategy, started.scope) == ("same_database", "same")
    assert started.oracle_assisted
    assert started.question.gold_sql is None
    assert len(started.schema_hash) == 64


def test_rows_in_events_are_few_but_counted(run: Any) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT i FROM n"
    (executed,) = of(run(answer(many), budget=0), Executed)
    assert (len(executed.rows), executed.row_count, executed.rows[0]) == (50, 300, (1,))


# Strategies


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_runs_an_episode(run: Any, store: MemoryStore, name: str) -> None:
    run(MISSING_COLUMN, RIGHT, question=Question("Something else?", "shop", gold_sql=GOLD), position=0)
    before = store.entries()
    model = ScriptedModel(*[WRONG_TOO, "<reflection>hm</reflection>"] * 2, *[WRONG] * 7)
    last = end(run(model=model, strategy=name, position=1, budget=2))
    assert last.outcome is Outcome.DENOTATION_MISMATCH
    assert last.repairs == (0 if name == "zero_shot" else 2)
    assert (last.entry is not None) == STRATEGIES[name].stores_negative
    assert len(store.entries()) == len(before) + STRATEGIES[name].stores_negative


def test_reflexion_reflects_after_every_unsuccessful_attempt_and_shows_all_of_them(run: Any) -> None:
    model = ScriptedModel(
        WRONG, "<reflection>one</reflection>", WRONG_TOO, "two</reflection> more", MISSING_COLUMN, "three"
    )
    events = run(model=model, strategy="reflexion", budget=2)
    assert [(event.iteration, event.text) for event in of(events, Reflected)] == [(0, "one"), (1, "two"), (2, "three")]
    assert "[Local reflection 1] one\n[Local reflection 2] two\n" in model.prompts[4]
    assert "Outcome: status=EXECUTION_ERROR; db_error=no such column: title" in model.prompts[5]
    assert of(events, Retrieved) == []
    assert end(events).entry is None


def test_reflexion_does_not_reflect_on_success(run: Any) -> None:
    events = run(WRONG, "<reflection>one</reflection>", RIGHT, strategy="reflexion")
    assert len(of(events, Reflected)) == 1


def test_strategies_that_keep_only_successes_store_no_failure(run: Any, store: MemoryStore) -> None:
    for name in ("dynamic_rag", "no_negative"):
        assert end(run(WRONG, WRONG_TOO, budget=1, strategy=name)).entry is None
    assert store.entries() == []
    assert end(run(WRONG, WRONG_TOO, budget=1, strategy=replace(STRATEGIES["dynamic_rag"], keep_both=True))).entry


def test_fixed_examples_come_from_other_databases(run: Any) -> None:
    model = ScriptedModel(WRONG, RIGHT)
    run(model=model, strategy="static_examples")
    sources = [line for line in model.prompts[1].splitlines() if line.startswith("[Static example ")]
    assert len(sources) == 4
    assert not any("source=shop]" in line for line in sources)


def test_an_unknown_strategy_lists_the_known_ones(shop: Database, store: MemoryStore) -> None:
    with pytest.raises(KeyError, match="iterative, merit"):
        list(run_episode(QUESTION, shop, ScriptedModel(), SpiderVerifier(), store, "magic", 0))


# Regimes


def test_the_database_alone_never_calls_an_answer_correct(run: Any, store: MemoryStore) -> None:
    dbms_only = replace(STRATEGIES["merit"], regime=Regime.DBMS_ONLY)
    verifier = ScriptedVerifier()
    events = run(MISSING_COLUMN, WRONG, strategy=dbms_only, verifier=verifier)
    assert end(events) == EpisodeFinalised(Outcome.NOT_JUDGED, None, 1, 1)
    assert store.entries() == []
    assert verifier.seen == []
    entry = end(run(MISSING_COLUMN, NO_SQL, strategy=dbms_only, verifier=verifier, budget=1)).entry
    assert entry is not None
    assert (entry.polarity, entry.db_error) == (Polarity.NEGATIVE, "empty query")


def test_an_execution_only_verifier_ends_not_judged(run: Any, store: MemoryStore) -> None:
    assert end(run(MISSING_COLUMN, WRONG, verifier=ExecutionOnlyVerifier())).outcome is Outcome.NOT_JUDGED
    assert store.entries() == []


# Answers of every kind


def test_an_answer_without_sql_is_an_empty_query_that_is_never_run_or_judged(run: Any) -> None:
    verifier = ScriptedVerifier(Outcome.CORRECT)
    events = run(NO_SQL, RIGHT, verifier=verifier)
    first = of(events, Executed)[0]
    assert (first.status, first.error) == (Status.EXECUTION_ERROR, "empty query")
    assert of(events, AttemptMade)[0].sql == ""
    assert of(events, Diagnosed)[0].failure_type is FailureType.UNKNOWN
    assert len(verifier.seen) == 1


def test_an_empty_answer_is_not_correct_even_where_gold_is_empty(run: Any) -> None:
    question = Question("Which cost 100?", "shop", gold_sql="SELECT name FROM product WHERE price > 100")
    assert end(run(NO_SQL, question=question, budget=0)).outcome is Outcome.EXECUTION_ERROR


def test_two_statements_are_an_empty_query(run: Any) -> None:
    assert of(run(answer("SELECT 1; SELECT 2"), budget=0), AttemptMade)[0].sql == ""


def test_a_five_megabyte_answer_is_cut_and_the_loop_goes_on(run: Any) -> None:
    events = run("<answer>SELECT '" + "x" * 5_000_000, RIGHT)
    first = of(events, AttemptMade)[0]
    assert len(first.raw) == generation.MAX_ANSWER_CHARS
    assert first.finish_reason == "length"
    assert end(events).outcome is Outcome.CORRECT


def test_tokens_are_streamed_but_not_one_by_one(run: Any) -> None:
    def slowly(prompt: str, cancel: threading.Event | None) -> str:
        time.sleep(0.25)
        return "word " * 400 + RIGHT

    events = run(slowly)
    streamed = of(events, TokenStreamed)
    assert "".join(event.text for event in streamed) == "word " * 400 + RIGHT
    assert len(streamed) <= 5
    kinds = [type(event) for event in events]
    assert kinds.index(PromptBuilt) < kinds.index(TokenStreamed) < kinds.index(AttemptMade)


class Foreign:
    """The least that a foreign model may be."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def complete(self, prompts: Any, max_new_tokens: int = 512, **options: Any) -> Any:
        return self.result


@pytest.mark.parametrize("result", [None, [], "SELECT 1", [object()], 5, [b"x", b"y"]])
def test_a_model_that_returns_something_else_ends_with_a_sentence(run: Any, store: MemoryStore, result: Any) -> None:
    events = run(model=Foreign(result))
    assert isinstance(events[-1], Failed)
    assert events[-1].reason.startswith("The model")
    assert store.entries() == []


def test_a_model_that_raises_ends_with_a_sentence_without_its_text(run: Any) -> None:
    events = run(RuntimeError("CUDA out of memory at 0xdead"))
    assert isinstance(events[-1], Failed)
    assert "RuntimeError" in events[-1].reason
    assert "0xdead" not in events[-1].reason


def test_a_model_that_never_stops_is_stopped(run: Any) -> None:
    cancelled = threading.Event()

    def forever(prompt: str, cancel: threading.Event | None) -> str:
        assert cancel is not None
        if cancel.wait(20):
            cancelled.set()
        return RIGHT

    events = run(forever, generation_timeout_s=0.3)
    assert isinstance(events[-1], Failed)
    assert "did not come to the end" in events[-1].reason
    assert cancelled.wait(2), "the model was not told to stop"


def test_a_model_that_streams_without_end_is_stopped(run: Any) -> None:
    class Endless:
        def complete(self, prompts: Any, max_new_tokens: int = 512, *, stream: Any, cancel: Any, **options: Any) -> Any:
            while not cancel.is_set():
                stream(0, "x" * 10_000)
                time.sleep(0.001)

    assert isinstance(run(model=Endless())[-1], Failed)


class ForeignDatabase:
    """The least that a foreign database may be, with its own kind of result and a path that is no file."""

    id, path, tables = "shop", ":memory:", ()

    def __init__(self, inner: Database, answer_with: Callable[..., Any]) -> None:
        self.inner, self.answer_with = inner, answer_with

    def schema(self, form: str = "listing") -> str:
        return self.inner.schema(form)

    def execute(self, sql: str, timeout_s: float = 30.0, max_rows: int = 1000) -> Any:
        done = self.inner.execute(sql, timeout_s, max_rows)
        return self.answer_with(
            str(done.status), list(done.columns), [list(row) for row in done.rows], done.error, 0.0, done.truncated
        )


Plain = namedtuple("Plain", "status columns rows error elapsed_s truncated")


@pytest.mark.parametrize("answer_with", [Execution, Plain])
@pytest.mark.parametrize("verifier", [SpiderVerifier(), BirdVerifier(), AssertionVerifier(row_count=2)], ids=repr)
def test_a_foreign_database_needs_only_what_the_contract_names(
    shop: Database, store: MemoryStore, answer_with: Any, verifier: Verifier
) -> None:
    """It was called with ``cancel`` and ``max_bytes``, which only our own takes, and every episode failed with a
    TypeError; a status given as its text was taken for none, and an error in a database without a file for a lost one.
    """
    database: Any = ForeignDatabase(shop, answer_with)
    model = ScriptedModel(MISSING_COLUMN, WRONG_TOO, RIGHT)
    events = list(run_episode(QUESTION, database, model, verifier, store, "merit", 0))
    assert of(events, Executed)[0].error == "no such column: title"
    assert of(events, Diagnosed)[0].failure_type is FailureType.SCHEMA_LINKING
    assert all(isinstance(row, tuple) for event in of(events, Executed) for row in event.rows)
    assert end(events).outcome is Outcome.CORRECT


def test_what_a_foreign_verifier_says_is_kept_where_there_is_no_gold_to_quote(run: Any) -> None:
    class Check:
        def judge(self, *asked: Any) -> Verdict:
            return Verdict(Outcome.EXECUTION_ERROR, "no such column: total", "check")

    (diagnosed,) = of(run(WRONG, question=Question("How much?", "shop"), verifier=Check(), budget=0), Diagnosed)
    assert diagnosed.message == "no such column: total"


def test_an_unknown_way_of_extraction_is_named(run: Any) -> None:
    """The episode "ended unexpectedly (ValueError)", which tells nobody what to change."""
    assert run(WRONG, extraction="guess")[-1] == Failed("The extraction mode is product or published, not 'guess'.")


def test_a_verdict_or_status_may_be_given_as_text() -> None:
    assert Verdict("CORRECT").outcome is Outcome.CORRECT  # type: ignore[arg-type]
    assert Execution("TIMEOUT").status is Status.TIMEOUT  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="FINE"):
        Verdict("FINE")  # type: ignore[arg-type]


# Stopping


def stop_after(events: Iterator[Event], kind: type[Any], cancel: threading.Event) -> tuple[list[Event], float]:
    """Set ``cancel`` shortly after the first event of ``kind`` came out; all events and the seconds to the end."""
    seen: list[Event] = []
    since = 0.0
    for event in events:
        seen.append(event)
        if isinstance(event, kind) and not since:
            since = time.monotonic() + 0.2
            threading.Timer(0.2, cancel.set).start()
    return seen, time.monotonic() - since


def test_stop_during_generation_of_a_model_that_listens(shop: Database, store: MemoryStore) -> None:
    def listens(prompt: str, cancel: threading.Event | None) -> str:
        assert cancel is not None
        cancel.wait(20)
        return RIGHT

    cancel = threading.Event()
    episode = run_episode(QUESTION, shop, ScriptedModel(listens), SpiderVerifier(), store, "merit", 0, cancel=cancel)
    events, seconds = stop_after(episode, PromptBuilt, cancel)
    assert events[-1] == Cancelled()
    assert seconds < 1
    assert of(events, AttemptMade) == []


def test_stop_during_generation_of_a_model_that_does_not_listen(shop: Database, store: MemoryStore) -> None:
    deaf = threading.Event()

    def ignores(prompt: str, cancel: threading.Event | None) -> str:
        deaf.wait(20)
        return RIGHT

    cancel = threading.Event()
    episode = run_episode(QUESTION, shop, ScriptedModel(ignores), SpiderVerifier(), store, "merit", 0, cancel=cancel)
    events, seconds = stop_after(episode, PromptBuilt, cancel)
    deaf.set()
    assert events[-1] == Cancelled()
    assert seconds < 1.3


def test_stop_during_a_long_statement(shop: Database, store: MemoryStore) -> None:
    endless = answer("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    cancel = threading.Event()
    episode = run_episode(QUESTION, shop, ScriptedModel(endless), SpiderVerifier(), store, "merit", 0, cancel=cancel)
    events, seconds = stop_after(episode, AttemptMade, cancel)
    assert events[-1] == Cancelled()
    assert seconds < 1.3
    assert store.entries() == []


def test_stop_while_a_person_is_asked(shop: Database, store: MemoryStore) -> None:
    cancel = threading.Event()
    verifier = PersonVerifier()
    episode = run_episode(QUESTION, shop, ScriptedModel(WRONG), verifier, store, "merit", 0, cancel=cancel)
    events, seconds = stop_after(episode, JudgementRequested, cancel)
    assert events[-1] == Cancelled()
    assert seconds < 1.3
    waiting = [thread for thread in threading.enumerate() if thread.name == "merit-wait"]
    for thread in waiting:
        thread.join(2)
    assert not any(thread.is_alive() for thread in waiting), "the verifier's thread still waits for the person"


def test_a_stop_before_the_end_stores_nothing(shop: Database, store: MemoryStore) -> None:
    cancel = threading.Event()

    class StopsThenSaysYes(ScriptedVerifier):
        def judge(self, *arguments: Any, **options: Any) -> Any:
            verdict = super().judge(*arguments, **options)
            if verdict.outcome is Outcome.CORRECT:
                cancel.set()
            return verdict

    verifier = StopsThenSaysYes(Outcome.DENOTATION_MISMATCH, Outcome.CORRECT)
    model = ScriptedModel(WRONG, RIGHT)
    events = list(run_episode(QUESTION, shop, model, verifier, store, "merit", 0, cancel=cancel))
    assert events[-1] == Cancelled()
    assert store.entries() == []


def test_a_stop_after_the_last_verdict_still_stores_nothing(shop: Database, store: MemoryStore) -> None:
    cancel = threading.Event()
    events = []
    episode = run_episode(
        QUESTION, shop, ScriptedModel(WRONG, RIGHT), SpiderVerifier(), store, "merit", 0, cancel=cancel
    )
    for event in episode:
        events.append(event)
        if isinstance(event, Judged) and event.outcome is Outcome.CORRECT:
            cancel.set()
    assert events[-1] == Cancelled()
    assert store.entries() == []


def test_leaving_the_loop_tells_the_model_to_stop_and_stores_nothing(shop: Database, store: MemoryStore) -> None:
    told = threading.Event()

    class Streams:
        def complete(self, prompts: Any, max_new_tokens: int = 512, *, stream: Any, cancel: Any, **options: Any) -> Any:
            stream(0, "SELECT")
            time.sleep(0.15)
            stream(0, " name")
            if cancel.wait(20):
                told.set()
            return []

    for event in run_episode(QUESTION, shop, Streams(), SpiderVerifier(), store, "merit", 0):
        if isinstance(event, TokenStreamed):
            break
    assert told.wait(2)
    assert store.entries() == []


# People and verifiers


def answering(episode: Iterator[Event], verifier: PersonVerifier, *answers: str) -> list[Event]:
    """Fold an episode; each request for a judgement is answered from another thread, as a page does."""
    left = list(answers)
    events = []
    for event in episode:
        events.append(event)
        if isinstance(event, JudgementRequested):
            threading.Timer(0.05, verifier.answer, (left.pop(0),)).start()
    assert left == []
    return events


def test_a_person_judges_what_executed_and_nothing_else(shop: Database, store: MemoryStore) -> None:
    verifier = PersonVerifier()
    model = ScriptedModel(MISSING_COLUMN, WRONG, RIGHT)
    question = Question("Which products cost more than 3?", "shop")
    events = answering(run_episode(question, shop, model, verifier, store, "merit", 0), verifier, "no", "yes")
    assert [event.iteration for event in of(events, JudgementRequested)] == [1, 2]
    assert [event.outcome for event in of(events, Judged)] == [
        Outcome.EXECUTION_ERROR, Outcome.DENOTATION_MISMATCH, Outcome.CORRECT,
    ]  # fmt: skip
    entry = end(events).entry
    assert entry is not None
    assert entry.failure_type is FailureType.RESULT_MISMATCH


def test_a_person_who_stops_ends_the_episode_as_cancelled(shop: Database, store: MemoryStore) -> None:
    verifier = PersonVerifier()
    events = answering(run_episode(QUESTION, shop, ScriptedModel(WRONG), verifier, store, "merit", 0), verifier, "stop")
    assert events[-1] == Cancelled()
    assert store.entries() == []


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("near 'SELECT secret': syntax"), r"verifier failed \(ValueError\)"),
        (GoldUnavailable("SELECT secret"), "reference answer of this question cannot be evaluated"),
    ],
)
def test_a_verifier_that_raises_ends_with_a_sentence(run: Any, store: MemoryStore, error: Exception, says: str) -> None:
    events = run(WRONG, WRONG_TOO, verifier=ScriptedVerifier(Outcome.DENOTATION_MISMATCH, error))
    assert isinstance(events[-1], Failed)
    import re

    assert re.search(says, events[-1].reason)
    assert "secret" not in events[-1].reason
    assert store.entries() == []


def test_a_verifier_may_stop(run: Any) -> None:
    assert run(WRONG, verifier=ScriptedVerifier(JudgementStopped("stop")))[-1] == Cancelled()


def test_a_verdict_that_is_none_ends_with_a_sentence(run: Any) -> None:
    class Odd:
        def judge(self, *arguments: Any, **options: Any) -> Any:
            return "yes"

    assert isinstance(run(WRONG, verifier=Odd())[-1], Failed)


def test_only_the_verifier_sees_the_gold(run: Any) -> None:
    verifier = ScriptedVerifier(Outcome.CORRECT)
    events = run(WRONG, verifier=verifier)
    assert verifier.seen[0].gold_sql == GOLD
    assert events[0].question.gold_sql is None


# Databases and memory that fail


def test_a_database_that_was_moved_away_is_rule_eleven(shop: Database, run: Any) -> None:
    shop.path.unlink()
    events = run(WRONG, RIGHT, budget=1, verifier=ScriptedVerifier())
    assert [event.error for event in of(events, Executed)] == ["database not found"] * 2
    assert [(event.failure_type, event.rule) for event in of(events, Diagnosed)] == [(FailureType.EXECUTION, 11)] * 2


def test_a_timeout_is_diagnosed_as_one(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from merit.settings import settings

    monkeypatch.setenv("MERIT_STATEMENT_TIMEOUT_S", "0.3")
    settings.cache_clear()
    endless = answer("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    events = run(endless, RIGHT)
    assert of(events, Executed)[0].status is Status.TIMEOUT
    assert of(events, Diagnosed)[0].rule == 1
    entry = end(events).entry
    assert entry is not None
    assert entry.failure_context.endswith("status=TIMEOUT; db_error=TIMEOUT")


def test_what_cannot_be_written_can_be_saved_again(
    run: Any, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (OSError(28, "No space left on device"), MemoryUnavailable("The disk is full.")):
        with monkeypatch.context() as patch:
            patch.setattr(store, "finalise", lambda entry, error=error: (_ for _ in ()).throw(error))
            events = run(MISSING_COLUMN, RIGHT)
        last = events[-1]
        assert isinstance(last, Failed)
        assert last.unsaved is not None
        assert "can be saved again" in last.reason
        assert store.entries() == []
    assert store.finalise(last.unsaved).successes == 1


def test_a_memory_that_cannot_be_searched_ends_with_a_sentence(
    run: Any, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "retrieve", lambda query, strategy: 1 / 0)
    events = run(MISSING_COLUMN, RIGHT)
    assert isinstance(events[-1], Failed)
    assert "memory could not be searched (ZeroDivisionError)" in events[-1].reason


def test_the_same_episode_id_is_remembered_once(run: Any, store: MemoryStore) -> None:
    """A stream that was killed after finalise and before its own record runs the episode again."""
    for _ in range(2):
        last = end(run(MISSING_COLUMN, RIGHT, episode_id="stream-3"))
        assert last.entry is not None
        assert last.entry.successes == 1
    assert len(store.entries()) == 1


# Prompts that do not fit


def test_entries_are_left_out_of_a_prompt_that_is_too_long_and_named(run: Any) -> None:
    for position in range(3):
        run(answer(f"SELECT title{position} FROM product"), RIGHT, position=position,
            question=Question(f"Question {position}?", "shop", gold_sql=GOLD))  # fmt: skip
    model = ScriptedModel(MISSING_COLUMN, RIGHT)
    whole = of(run(model=model, position=3, strategy=replace(STRATEGIES["merit"], stores_positive=False)), PromptBuilt)
    assert whole[1].dropped == ()
    small = ScriptedModel(MISSING_COLUMN, RIGHT)
    small.count_tokens = lambda text: len(text.split())  # type: ignore[attr-defined]
    small.context_tokens = len(whole[1].prompt.split()) - 1 + generation.MAX_NEW_TOKENS  # type: ignore[attr-defined]
    (_, repair) = of(run(model=small, position=3), PromptBuilt)
    assert repair.dropped == ("positive 3",)
    assert repair.tokens == len(repair.prompt.split()) < len(whole[1].prompt.split())
