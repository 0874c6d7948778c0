"""What page and command line share: asking, finding an episode again, correcting it, taking a judgement back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import HashEncoder, ScriptedModel, answer, build_database, build_shop

from merit import jobs, live, trace
from merit.database import Database, uploads
from merit.episode import Execution, FailureType, Outcome, Polarity, Question, Status
from merit.errors import BadInput, MemoryUnavailable
from merit.events import (
    AttemptMade,
    Cancelled,
    EpisodeFinalised,
    EpisodeStarted,
    Event,
    Failed,
    Judged,
    JudgementRequested,
    PromptBuilt,
    Reflected,
    TokenStreamed,
)
from merit.memory.store import MemoryStore
from merit.settings import settings
from merit.strategy import STRATEGIES
from merit.verification import PersonVerifier, SpiderVerifier

GOLD = "SELECT name FROM product WHERE price > 3"
RIGHT_SQL = "SELECT name FROM product WHERE price > 3.0"
RIGHT, WRONG, WRONG_TOO = answer(RIGHT_SQL), answer("SELECT name FROM product"), answer("SELECT price FROM product")
MISSING_COLUMN = answer("SELECT title FROM product")


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    return Database.open(build_shop(tmp_path / "shop.sqlite"))


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    opened = MemoryStore.open("memory://live", HashEncoder())
    yield opened
    opened.close()


def request(database: Database, owner: str = "ann", **changes: Any) -> live.Request:
    asked = live.Request(
        Question("Which products cost more than 3?", database.id, gold_sql=GOLD),
        database,
        STRATEGIES["same_database"],
        SpiderVerifier(official=False),
        owner=owner,
    )
    return replace(asked, **changes)


def fold(events: Iterator[Event], verifier: PersonVerifier | None = None, *answers: str) -> list[Event]:
    left, seen = list(answers), []
    for event in events:
        seen.append(event)
        if isinstance(event, JudgementRequested):
            assert verifier is not None
            threading.Timer(0.05, verifier.answer, (left.pop(0),)).start()
    assert left == []
    return seen


# Asking


def test_each_question_takes_the_next_position_and_learns_from_the_ones_before(
    shop: Database, store: MemoryStore
) -> None:
    first = list(live.ask(request(shop), ScriptedModel(MISSING_COLUMN, RIGHT), store))
    other = Question("How many?", "shop", gold_sql="SELECT count(*) FROM product")
    model = ScriptedModel(answer("SELECT count(title) FROM product"), answer("SELECT count(*) FROM product"))
    second = list(live.ask(request(shop, question=other), model, store))
    starts = [events[0] for events in (first, second)]
    assert [start.position for start in starts if isinstance(start, EpisodeStarted)] == [0, 1]
    remembered = first[-1]
    assert isinstance(remembered, EpisodeFinalised)
    assert remembered.entry is not None
    assert f"Entry ID: {remembered.entry.id}" in model.prompts[1]


def test_the_recording_is_on_disk_before_the_end_is_told(shop: Database, store: MemoryStore) -> None:
    for event in live.ask(request(shop), ScriptedModel(RIGHT), store):
        if isinstance(event, EpisodeFinalised):
            (file,) = settings().episodes_dir.iterdir()
            assert trace.read_bundle(file).events[-1] == event


def test_an_episode_is_found_again_by_its_owner_and_by_nobody_else(shop: Database, store: MemoryStore) -> None:
    events = list(live.ask(request(shop), ScriptedModel(MISSING_COLUMN, RIGHT), store))
    start = events[0]
    assert isinstance(start, EpisodeStarted)
    (summary,) = live.history("ann")
    assert (summary.episode_id, summary.outcome, summary.repairs) == (start.episode_id, Outcome.CORRECT, 1)
    assert summary.question == "Which products cost more than 3?"
    kept = [event for event in events if not isinstance(event, TokenStreamed)]
    assert [trace.to_json(event) for event in live.load(start.episode_id, "ann")] == [
        trace.to_json(trace.trimmed(event)) for event in kept
    ]
    assert live.history("bob") == []
    with pytest.raises(BadInput, match="not yours"):
        live.load(start.episode_id, "bob")
    text = live.bundle_path(start.episode_id).read_text()
    assert '"ann"' not in text


def test_history_is_newest_first_and_bounded_and_skips_what_is_no_recording(shop: Database, store: MemoryStore) -> None:
    ids = []
    for number in range(4):
        asked = request(shop, question=Question(f"Question {number}?", "shop", gold_sql=GOLD))
        (start, *_) = list(live.ask(asked, ScriptedModel(RIGHT), store))
        assert isinstance(start, EpisodeStarted)
        ids.append(start.episode_id)
    (settings().episodes_dir / "broken.jsonl").write_text("{")
    assert [line.episode_id for line in live.history("ann")] == ids[::-1]
    assert [line.question for line in live.history("ann", limit=2)] == ["Question 3?", "Question 2?"]


@pytest.mark.parametrize("episode_id", ["", "../../etc/passwd", "a/b", "x.y", "é"])
def test_an_id_is_never_a_path(episode_id: str) -> None:
    with pytest.raises(BadInput):
        live.load(episode_id, "ann")


def test_a_stopped_and_a_failed_episode_are_recorded_too(shop: Database, store: MemoryStore) -> None:
    cancel = threading.Event()
    cancel.set()
    assert list(live.ask(request(shop), ScriptedModel(RIGHT), store, cancel=cancel))[-1] == Cancelled()
    assert isinstance(list(live.ask(request(shop), ScriptedModel(), store))[-1], Failed)
    assert [(line.ended, line.outcome) for line in live.history("ann")] == [("Failed", None), ("Cancelled", None)]


def test_a_recording_that_cannot_be_written_does_not_cost_the_episode(
    shop: Database, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings().home.mkdir(exist_ok=True)
    settings().episodes_dir.write_text("a file where the folder should be")
    events = list(live.ask(request(shop), ScriptedModel(MISSING_COLUMN, RIGHT), store))
    assert isinstance(events[-1], EpisodeFinalised)
    assert "was not kept" in caplog.text
    assert len(store.entries()) == 1


def test_a_running_episode_is_found_again_after_a_reload(shop: Database, store: MemoryStore) -> None:
    verifier = PersonVerifier()
    asked = request(shop, verifier=verifier, question=Question("Which?", "shop"))
    model = ScriptedModel(WRONG, RIGHT)
    job = jobs.start("ann", lambda cancel: live.ask(asked, model, store, cancel=cancel), context=asked)
    while job.state is not jobs.JobState.WAITING_FOR_PERSON:
        assert not job.state.ended
        job.wait(0.01)
    found = jobs.latest("ann")
    assert found is job
    found.context.verifier.answer("yes")
    assert job.wait(10)
    assert isinstance(job.events[-1], EpisodeFinalised)
    assert job.events[-1].outcome is Outcome.CORRECT


# What is typed


@pytest.mark.parametrize(
    ("text", "evidence", "says"),
    [
        ("", "", "type a question"),
        (" \n\t ", "", "type a question"),
        ("x" * 10_000, "", "10,000 characters"),
        ("Which?", "y" * 10_000, "hint has 10,000"),
        ("Wh\0ich?", "", "no text"),
        ("Wh\ud800ich?", "", "no text"),
    ],
)
def test_what_is_no_question_gets_a_sentence(text: str, evidence: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        live.make_question(text, "shop", evidence)


def test_a_question_in_japanese_goes_through_to_the_end(shop: Database, store: MemoryStore) -> None:
    question = live.make_question("  3より高い商品はどれですか。 ", "shop")
    model = ScriptedModel(MISSING_COLUMN, RIGHT)
    verifier = PersonVerifier()
    asked = request(shop, question=question, verifier=verifier)
    fold(live.ask(asked, model, store), verifier, "yes")
    assert "QUESTION:\n3より高い商品はどれですか。\n" in model.prompts[0]
    assert live.history("ann")[0].question == "3より高い商品はどれですか。"


def test_a_database_without_tables_gets_a_sentence(tmp_path: Path, store: MemoryStore) -> None:
    empty = Database.open(build_database(tmp_path / "empty.sqlite", "CREATE TABLE t (a)", "DROP TABLE t"))
    with pytest.raises(BadInput, match="has no tables"):
        list(live.ask(request(empty), ScriptedModel(), store))
    assert store.next_position() == 0


# Correcting


def corrected(shop: Database, sql: str, events: list[Event], store: MemoryStore) -> Any:
    return live.remember_correction(events, sql, shop.execute(sql), store, shop)


def test_an_edit_that_a_person_confirms_becomes_a_positive_entry_of_its_own(shop: Database, store: MemoryStore) -> None:
    events = list(live.ask(request(shop, budget=1), ScriptedModel(WRONG, MISSING_COLUMN), store))
    entry = corrected(shop, RIGHT_SQL, events, store)
    assert (entry.polarity, entry.outcome, entry.failure_type) == (
        Polarity.POSITIVE, Outcome.CORRECT, FailureType.SCHEMA_LINKING,
    )  # fmt: skip
    assert (entry.failed_sql, entry.new_sql) == ("SELECT title FROM product", RIGHT_SQL)
    assert (entry.status, entry.db_error) == (Outcome.EXECUTION_ERROR, "no such column: title")
    assert entry.model_id == entry.prompt_version == live.BY_PERSON
    assert entry.episode_id != events[0].episode_id  # type: ignore[union-attr]
    assert (entry.position, entry.visible_from) == (1, 2)
    assert {kept.polarity for kept in store.entries()} == {Polarity.POSITIVE, Polarity.NEGATIVE}


def test_an_answer_nobody_judged_counts_as_wrong_once_a_person_confirms_an_edit(
    shop: Database, store: MemoryStore
) -> None:
    verifier = PersonVerifier()
    events = fold(live.ask(request(shop, verifier=verifier), ScriptedModel(WRONG), store), verifier, "stop")
    assert events[-1] == Cancelled()
    entry = corrected(shop, RIGHT_SQL, events, store)
    assert (entry.failure_type, entry.status) == (FailureType.RESULT_MISMATCH, Outcome.DENOTATION_MISMATCH)


def test_what_is_no_correction_gets_a_sentence_and_takes_no_position(shop: Database, store: MemoryStore) -> None:
    unsolved = list(live.ask(request(shop, budget=0), ScriptedModel(WRONG), store))
    solved = list(live.ask(request(shop), ScriptedModel(RIGHT), store))
    for events, sql, says in (
        (unsolved, "  ", "not changed"),
        (unsolved, " SELECT name FROM product ", "not changed"),
        (unsolved, "SELECT nothing", "Only SQL that runs"),
        (solved, "SELECT 1", "nothing to correct"),
        ([], "SELECT 1", "nothing to correct"),
        (unsolved[:2], "SELECT 1", "nothing to correct"),
    ):
        with pytest.raises(BadInput, match=says):
            corrected(shop, sql, events, store)
    assert store.next_position() == 2
    assert store.entries() == []


# Taking back


def test_a_mistaken_yes_is_taken_back_and_the_episode_goes_on_from_there(shop: Database, store: MemoryStore) -> None:
    verifier = PersonVerifier()
    asked = request(shop, verifier=verifier, question=Question("Which?", "shop"))
    events = fold(live.ask(asked, ScriptedModel(MISSING_COLUMN, WRONG), store), verifier, "yes")
    mistaken = events[-1]
    assert isinstance(mistaken, EpisodeFinalised)
    assert mistaken.entry is not None
    model = ScriptedModel(RIGHT)
    again = fold(live.undo(events, 1, "no", asked, model, store), verifier, "yes")
    assert [event.sql for event in again if isinstance(event, AttemptMade)] == [
        "SELECT title FROM product", "SELECT name FROM product", RIGHT_SQL,
    ]  # fmt: skip
    assert [event.outcome for event in again if isinstance(event, Judged)] == [
        Outcome.EXECUTION_ERROR, Outcome.DENOTATION_MISMATCH, Outcome.CORRECT,
    ]  # fmt: skip
    assert [event.iteration for event in again if isinstance(event, JudgementRequested)] == [2]
    assert len(model.history) == 1
    assert again[0].position == 1  # type: ignore[union-attr]
    last = again[-1]
    assert isinstance(last, EpisodeFinalised)
    assert last.entry is not None
    assert [entry.id for entry in store.entries()] == [last.entry.id]
    assert last.entry.id != mistaken.entry.id


def test_a_mistaken_no_is_taken_back_in_the_middle_of_the_repairs(shop: Database, store: MemoryStore) -> None:
    verifier = PersonVerifier()
    asked = request(shop, verifier=verifier, question=Question("Which?", "shop"), budget=2)
    events = fold(live.ask(asked, ScriptedModel(WRONG_TOO, RIGHT, WRONG), store), verifier, "no", "no", "no")
    assert len(store.entries()) == 1
    model = ScriptedModel()
    again = fold(live.undo(events, 1, "yes", asked, model, store))
    last = again[-1]
    assert isinstance(last, EpisodeFinalised)
    assert (last.outcome, last.repairs) == (Outcome.CORRECT, 1)
    (entry,) = store.entries()
    assert (entry.polarity, entry.new_sql) == (Polarity.POSITIVE, RIGHT_SQL)
    assert model.history == []


def test_a_judgement_can_be_taken_back_while_the_episode_goes_on(shop: Database, store: MemoryStore) -> None:
    """The no was a slip: the job is stopped in the middle of the next repair, and the yes ends the episode."""
    verifier = PersonVerifier()
    asked = request(shop, verifier=verifier, question=Question("Which?", "shop"))

    def waits(prompt: str, cancel: threading.Event | None) -> str:
        assert cancel is not None
        cancel.wait(20)
        return WRONG

    job = jobs.start("bea", lambda cancel: live.ask(asked, ScriptedModel(RIGHT, waits), store, cancel=cancel))
    answered = False
    while not any(isinstance(event, PromptBuilt) and event.purpose == "repair" for event in job.events):
        if job.state is jobs.JobState.WAITING_FOR_PERSON and not answered:
            verifier.answer("no")
            answered = True
        job.wait(0.01)
    job.cancel()
    assert job.wait(5)
    fresh = replace(asked, verifier=PersonVerifier())
    again = fold(live.undo(job.events, 0, "yes", fresh, ScriptedModel(), store))
    assert again[-1] == EpisodeFinalised(Outcome.CORRECT, None, 2, 0)


def test_reflections_and_empty_answers_are_replayed_too(shop: Database, store: MemoryStore) -> None:
    verifier = PersonVerifier()
    asked = request(
        shop, verifier=verifier, question=Question("Which?", "shop"), strategy=STRATEGIES["reflexion"], budget=2
    )
    model = ScriptedModel("no idea", "<reflection>one</reflection>", WRONG, "<reflection>two</reflection>", RIGHT)
    events = fold(live.ask(asked, model, store), verifier, "no", "yes")
    late = ScriptedModel("<reflection>three</reflection>")
    again = fold(live.undo(events, 2, "no", asked, late, store), verifier)

    def said(events: list[Event]) -> list[str]:
        return [event.prompt for event in events if isinstance(event, PromptBuilt)] + [
            event.sql if isinstance(event, AttemptMade) else event.text
            for event in events
            if isinstance(event, AttemptMade | Reflected)
        ]

    first, second = said(events), said(again)
    assert second[:5] == first[:5]
    assert second[6:] == [*first[5:], "three"]
    assert late.prompts == [second[5]]
    last = again[-1]
    assert isinstance(last, EpisodeFinalised)
    assert last.outcome is Outcome.DENOTATION_MISMATCH


def test_a_given_first_answer_is_not_taken_for_one_of_the_model(shop: Database, store: MemoryStore) -> None:
    verifier = PersonVerifier()
    question = Question("Which?", "shop")
    asked = request(shop, verifier=verifier, question=question, initial="SELECT name FROM product", budget=2)
    events = fold(live.ask(asked, ScriptedModel(MISSING_COLUMN, RIGHT), store), verifier, "no", "no")
    again = fold(live.undo(events, 2, "yes", asked, ScriptedModel(), store))
    assert [event.sql for event in again if isinstance(event, AttemptMade)] == [
        event.sql for event in events if isinstance(event, AttemptMade)
    ]
    last = again[-1]
    assert isinstance(last, EpisodeFinalised)
    assert last.outcome is Outcome.CORRECT


@pytest.mark.parametrize(("iteration", "verdict"), [(0, "maybe"), (5, "yes"), (0, "yes")])
def test_what_cannot_be_taken_back_gets_a_sentence(
    shop: Database, store: MemoryStore, iteration: int, verdict: str
) -> None:
    """Attempt 0 failed in the database: that was no judgement of a person."""
    asked = request(shop)
    events = list(live.ask(asked, ScriptedModel(MISSING_COLUMN, RIGHT), store))
    with pytest.raises(BadInput):
        list(live.undo(events, iteration, verdict, asked, ScriptedModel(), store))
    assert len(store.entries()) == 1


# Saving again


def test_an_entry_that_could_not_be_written_is_written_later_and_once(
    shop: Database, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(entry: Any) -> Any:
        raise MemoryUnavailable("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(store, "finalise", full)
        failed = list(live.ask(request(shop), ScriptedModel(MISSING_COLUMN, RIGHT), store))[-1]
        assert isinstance(failed, Failed)
        with pytest.raises(MemoryUnavailable):
            live.saved_again(failed, store)
    assert live.saved_again(failed, store).successes == 1
    assert live.saved_again(failed, store).successes == 1
    with pytest.raises(BadInput):
        live.saved_again(Failed("something else"), store)


def test_an_execution_that_did_not_run_is_no_confirmation(shop: Database, store: MemoryStore) -> None:
    events = list(live.ask(request(shop, budget=0), ScriptedModel(WRONG), store))
    for status in (Status.EXECUTION_ERROR, Status.TIMEOUT, Status.CANCELLED):
        with pytest.raises(BadInput):
            live.remember_correction(events, RIGHT_SQL, Execution(status), store, shop)


def asked_of(owner: str, upload: uploads.Upload, stream: MemoryStore) -> None:
    """One question on an upload, corrected at the second try: an entry and a recording."""
    database = Database.open(upload.path, upload.database_id)
    events = list(live.ask(request(database, owner), ScriptedModel(WRONG, RIGHT), stream))
    assert isinstance(events[-1], EpisodeFinalised)


def test_removing_an_upload_takes_its_memory_and_recordings_along(tmp_path: Path) -> None:
    """Two uploads teach the same entry: what the first taught goes, what the second taught stays."""
    data = build_shop(tmp_path / "source.sqlite").read_bytes()
    stream = MemoryStore.open(settings().memory_uri, HashEncoder(), "private:ann")
    first, second = (uploads.add("ann", data, name) for name in ("first.db", "second.db"))
    for upload in (first, second):
        asked_of("ann", upload, stream)
    assert (stream.counts().entries, stream.counts().observations, len(live.history("ann"))) == (1, 2, 2)
    assert live.remove_upload("ann", first.id, stream) == first
    assert (stream.counts().entries, stream.counts().observations) == (1, 1)
    assert [summary.database_id for summary in live.history("ann")] == [second.database_id]
    assert uploads.list_of("ann") == [second]
    live.remove_upload("ann", second.id, stream)
    assert (stream.counts().observations, stream.next_position()) == (0, 0), "with the last upload the stream goes"
    assert live.history("ann") == []


def test_an_upload_of_somebody_else_is_not_removed(tmp_path: Path, store: MemoryStore) -> None:
    upload = uploads.add("ann", build_shop(tmp_path / "source.sqlite").read_bytes(), "shop.db")
    with pytest.raises(BadInput, match="not yours"):
        live.remove_upload("bob", upload.id, store)
    assert uploads.list_of("ann") == [upload]


def test_memory_that_fails_keeps_the_upload(
    tmp_path: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = uploads.add("ann", build_shop(tmp_path / "source.sqlite").read_bytes(), "shop.db")

    def fail() -> None:
        raise MemoryUnavailable("The disk is full.")

    monkeypatch.setattr(store, "delete_stream", fail)
    with pytest.raises(MemoryUnavailable):
        live.remove_upload("ann", upload.id, store)
    assert uploads.get("ann", upload.id) == upload
