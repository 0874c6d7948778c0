"""One stream from the first question to the last: order, memory, accounts, what is on disk, what is refused."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stream_support import TASKS, BookModel, Stopper, dataset, verifier
from support import HashEncoder, ScriptedModel, answer

from merit.episode import FailureType, Outcome, Polarity, Question
from merit.errors import BadInput, MeritError, ModelUnavailable
from merit.events import EpisodeFinalised, EpisodeStarted
from merit.memory.store import MemoryStore
from merit.models.language import TIME, Completion
from merit.strategy import STRATEGIES, Regime, Scope
from merit.streams import GenerationCache, RunCancelled, RunPaused, Trajectory, measure, run, stream_order
from merit.streams.folder import read_events, read_settings, read_trajectories
from merit.streams.plan import label
from merit.verification import SpiderVerifier

MARKER = "qzxgoldmarkerqzx"


def go(tmp_path: Path, strategy: Any = "merit", model: Any = None, **options: Any) -> list[Trajectory]:
    """A run with what most tests do not care about."""
    options = {"verifier": verifier(), "out": tmp_path / "run", "encoder": HashEncoder(), "budget": 3} | options
    data = options.pop("data", None) or dataset(tmp_path / "data")
    store, initial, seed = options.pop("store", None), options.pop("initial", None), options.pop("seed", 0)
    return run(data, strategy, seed, model or BookModel(), store, initial, **options)


def test_the_order_of_a_stream_is_that_of_the_paper() -> None:
    questions = [Question(str(place), "shop") for place in range(50)]
    places = list(range(50))
    random.Random(2).shuffle(places)
    assert [question.text for question in stream_order(questions, 2)] == [str(place) for place in places]
    assert [question.text for question in questions] == [str(place) for place in range(50)]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_strategy_runs_and_its_accounts_balance(tmp_path: Path, strategy: str) -> None:
    """The identities are asserted by the run itself; here they are worked out again from what the model saw."""
    model = BookModel()
    rows = go(tmp_path, strategy, model, cache=GenerationCache(":memory:"))
    found = measure(rows)
    assert [row.position for row in rows] == list(range(14))
    assert found.initial_failures > 0
    steps = sum(len(row.attempts) - 1 for row in rows)
    failures = sum(attempt.outcome is not Outcome.CORRECT for row in rows for attempt in row.attempts)
    reflections = failures if strategy == "reflexion" else 0
    assert found.calls == 14 + steps + reflections
    if strategy not in ("leaky", "transductive"):
        assert len(model.asked) == len(set(model.asked)) <= found.calls
    assert found.tokens == found.prompt_tokens + found.output_tokens + sum(row.reflection_tokens for row in rows)
    for row in rows:
        assert row.steps <= (0 if strategy == "zero_shot" else 3)
        events = read_events(tmp_path / "run", row)
        assert isinstance(events[0], EpisodeStarted)
        assert isinstance(events[-1], EpisodeFinalised)
        assert (events[0].position, events[0].question.id) == (row.position, row.question_id)
        assert events[-1].outcome is row.outcome


def test_entries_are_recalled_from_earlier_positions_only(tmp_path: Path) -> None:
    rows = go(tmp_path, model=BookModel(luck=3), budget=4)
    ids = [row.question_id for row in rows]
    recalled = [(row, one) for row in rows for attempt in row.attempts for one in attempt.recalled]
    assert recalled
    left = {row.entry.id: row for row in rows if row.entry}
    for row, one in recalled:
        assert one.last_position < row.position
        assert not one.own_question
        assert left[one.entry_id].position < row.position or ids.index(row.question_id) > one.last_position
    assert {row.entry.polarity for row in rows if row.entry} == {Polarity.POSITIVE, Polarity.NEGATIVE}
    assert (tmp_path / "run" / "memory" / "positive.jsonl").is_file()


def test_a_store_of_ones_own_holds_afterwards_what_the_stream_left(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "memory", HashEncoder(), "stream 0")
    rows = go(tmp_path, store=store)
    assert {entry.id for entry in store.entries()} == {row.entry.id for row in rows if row.entry}
    again = go(tmp_path, store=store, model=BookModel(id="book"))
    assert again == rows
    with pytest.raises(BadInput, match="begins with an empty memory"):
        go(tmp_path, "no_type_filter", store=store, out=tmp_path / "other")


def test_positions_that_were_given_to_others_are_refused(tmp_path: Path) -> None:
    """An entry shows from the next unallocated position on: a store whose counter runs ahead would hide the past."""
    store = MemoryStore.open(tmp_path / "memory", HashEncoder())
    store.next_position()
    with pytest.raises(BadInput, match="positions that were given"):
        go(tmp_path, store=store)


def test_two_runs_are_equal_and_another_order_is_not(tmp_path: Path) -> None:
    first = go(tmp_path, out=tmp_path / "a", cache=GenerationCache(":memory:"))
    assert go(tmp_path, out=tmp_path / "b", cache=GenerationCache(":memory:")) == first
    other = go(tmp_path, out=tmp_path / "c", seed=1)
    assert {row.question_id for row in other} == {row.question_id for row in first}
    assert [row.question_id for row in other] != [row.question_id for row in first]


def test_trajectories_survive_the_disk(tmp_path: Path) -> None:
    rows = go(tmp_path, "reflexion")
    assert read_trajectories(tmp_path / "run") == rows
    assert [Trajectory.from_line(row.to_line()) for row in rows] == rows
    lines = gzip.decompress((tmp_path / "run" / "traces.jsonl.gz").read_bytes()).splitlines()
    assert len(lines) == len(rows)
    assert json.loads(lines[0])[0]["event"] == "EpisodeStarted"
    for line in ("{}", "[]", "null", "{", '{"attempts": [{"outcome": "?"}]}'):
        with pytest.raises(BadInput):
            Trajectory.from_line(line)


# answers -----------------------------------------------------------------------------------------------------


def test_greedy_answers_are_shared_between_strategies_orders_and_processes(tmp_path: Path) -> None:
    """The first answers of 14 questions are generated once, whatever the strategy and the order."""
    model = BookModel()
    go(tmp_path, "zero_shot", model, out=tmp_path / "a")
    assert len(model.asked) == 14
    rows = go(tmp_path, "zero_shot", model, out=tmp_path / "b", seed=1)
    assert len(model.asked) == 14
    go(tmp_path, "merit", model, out=tmp_path / "c")
    initial = [prompt for prompt in model.asked if "-initial-" in prompt]
    assert len(initial) == 14
    assert measure(rows).calls == 14
    assert measure(rows).tokens > 0
    other = BookModel(id="another")
    go(tmp_path, "zero_shot", other, out=tmp_path / "d")
    assert len(other.asked) == 14


def test_a_model_without_an_id_shares_nothing_on_disk(tmp_path: Path, merit_home: Path) -> None:
    for name in "ab":
        model = BookModel(id=None)
        go(tmp_path, "iterative", model, out=tmp_path / name)
        assert len([prompt for prompt in model.asked if "-initial-" in prompt]) == 14
    assert not list(merit_home.rglob("generations.sqlite"))


@pytest.mark.parametrize("form", ["mapping", "sequence"])
def test_first_answers_that_were_brought(tmp_path: Path, form: str) -> None:
    data = dataset(tmp_path / "data")
    golds = {question.id: str(question.gold_sql) for question in data}
    golds["3"] = "SELECT 1"
    model = BookModel(luck=10**9)
    rows = go(tmp_path, "iterative", model, data=data, initial=golds if form == "mapping" else list(golds.values()))
    found = measure(rows)
    assert (found.initially_correct, found.initial_failures, found.steps, found.calls) == (13, 1, 3, 17)
    assert not [prompt for prompt in model.asked if "-initial-" in prompt]
    with pytest.raises(BadInput, match="first answers"):
        go(tmp_path, data=data, initial=["SELECT 1"], out=tmp_path / "other")
    with pytest.raises(BadInput, match="questions that tasks lacks: nobody"):
        go(tmp_path, data=data, initial={"nobody": "SELECT 1"}, out=tmp_path / "other")


# looking ahead -----------------------------------------------------------------------------------------------


def test_the_transductive_control_knows_all_first_failures(tmp_path: Path) -> None:
    """Every first failure, its own included, is in memory before the first question; what it learns comes last."""
    store = MemoryStore.open(tmp_path / "memory", HashEncoder())
    strategy = replace(STRATEGIES["transductive"], min_typed=0, k_negative=50, k_positive=50)
    rows = go(tmp_path, strategy, store=store)
    failed = {row.question_id for row in rows if not row.initially_correct}
    first = next(row for row in rows if row.steps)
    same_type = {
        row.question_id for row in rows if row.attempts[0].failure_type == first.attempts[0].failure_type
    } & failed
    assert any(one.own_question for one in first.attempts[1].recalled)
    assert {one.polarity for row in rows for attempt in row.attempts for one in attempt.recalled} == {"negative"}
    sources = {seen.question_id for view in store.entries() for seen in view.history if seen.iteration == 0}
    assert sources == failed
    assert len(first.attempts[1].recalled) <= len(same_type)
    initial = [view for view in store.entries() if view.failed_sql == "initial SQL"]
    assert all(view.delta.startswith("initial SQL => ") for view in initial)
    assert {row.entry.id for row in rows if row.entry} <= {view.id for view in store.entries()}


@pytest.mark.parametrize("own", [True, False])
def test_looking_ahead_sees_what_a_finished_pass_left(tmp_path: Path, own: bool) -> None:
    rows = go(tmp_path, replace(STRATEGIES["leaky"], own_question=own), model=BookModel(luck=3))
    before = go(tmp_path, "merit", model=BookModel(luck=3), out=tmp_path / "merit")
    assert read_trajectories(tmp_path / "run" / "pass") == before
    left = {row.entry.id for row in before if row.entry}
    recalled = [one for row in rows for attempt in row.attempts for one in attempt.recalled]
    assert recalled
    assert {one.entry_id for one in recalled} <= left
    assert any(one.own_question for one in recalled) is own
    later = [
        one for row in rows for attempt in row.attempts for one in attempt.recalled if one.last_position >= row.position
    ]
    assert later


# regimes -----------------------------------------------------------------------------------------------------


def test_where_only_the_database_decides(tmp_path: Path) -> None:
    """An executable answer ends the episode unconfirmed; only exhaustion leaves an entry; EX is scored afterwards."""
    rows = go(tmp_path, replace(STRATEGIES["merit"], regime=Regime.DBMS_ONLY), model=BookModel(luck=10**9))
    assert {attempt.outcome for row in rows for attempt in row.attempts} <= {"NOT_JUDGED", "EXECUTION_ERROR"}
    assert {row.outcome for row in rows} <= {"DENOTATION_MISMATCH", "EXECUTION_ERROR"}
    assert {row.entry.polarity for row in rows if row.entry} == {"negative"}
    for row in rows:
        assert (row.entry is not None) == (row.attempts[-1].outcome == "EXECUTION_ERROR")
    right = go(tmp_path, replace(STRATEGIES["merit"], regime="dbms_only"), model=BookModel("b", 1), out=tmp_path / "b")
    assert measure(right).ex == 1.0
    assert measure(right).positive == 0


# what is wrong with the data ---------------------------------------------------------------------------------


def test_gold_that_fails_is_counted_apart(tmp_path: Path) -> None:
    data = dataset(tmp_path / "data", ["shop"])
    broken = replace(data.questions[2], gold_sql=f"SELECT {MARKER} FROM nowhere")
    absent = replace(data.questions[3], gold_sql=None)
    data = replace(data, questions=(*data.questions[:2], broken, absent, *data.questions[4:]))
    rows = go(tmp_path, data=data)
    found = measure(rows)
    assert found.faults == {"gold fails": 1, "no gold": 1}
    assert (found.questions, found.judged) == (7, 5)
    assert found.ex is not None
    assert found.correct == found.ex * 5
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            data_ = file.read_bytes()
            assert MARKER.encode() not in (gzip.decompress(data_) if file.suffix == ".gz" and data_ else data_)


def test_gold_is_in_no_file(tmp_path: Path, merit_home: Path) -> None:
    """The marker is searched in all that was written, the traces unpacked, and is found where it was put on purpose."""
    data = dataset(tmp_path / "data", ["shop"])
    data = replace(
        data, questions=tuple(replace(q, gold_sql=f"SELECT '{MARKER}' FROM product -- {q.gold_sql}") for q in data)
    )
    go(tmp_path, "transductive", data=data)
    places = [file for root in (tmp_path / "run", merit_home) for file in root.rglob("*") if file.is_file()]
    contents = [gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes() for f in places]
    assert not [place for place, content in zip(places, contents, strict=True) if MARKER.encode() in content]
    assert any(b"How many products" in content for content in contents)


def test_a_missing_database_stops_nothing(tmp_path: Path) -> None:
    data = dataset(tmp_path / "data")
    (tmp_path / "odd.sqlite").write_bytes(b"this is no database, only text" * 50)
    data = replace(data, files={"shop": data.files["shop"], "stall": None})
    rows = go(tmp_path, data=data)
    gone = [row for row in rows if row.database_id == "stall"]
    assert {(row.outcome, row.fault, row.calls) for row in gone} == {(Outcome.EXECUTION_ERROR, "database not found", 0)}
    assert measure(rows).judged == 7
    data = replace(data, files={"shop": data.files["shop"], "stall": tmp_path / "odd.sqlite"})
    data._opened.clear()
    rows = go(tmp_path, data=data, out=tmp_path / "other")
    assert {row.fault for row in rows if row.database_id == "stall"} == {"database unreadable"}


# going on ----------------------------------------------------------------------------------------------------


def test_stop_and_go_on(tmp_path: Path) -> None:
    whole = go(tmp_path, out=tmp_path / "whole", cache=GenerationCache(":memory:"))
    for calls in (0, 3, 9):
        cancel = threading.Event()
        with pytest.raises(RunCancelled):
            go(tmp_path, model=BookModel(before=Stopper(calls, cancel)), cancel=cancel)
    assert 0 < len(read_trajectories(tmp_path / "run")) < 14
    seen: list[tuple[int, int]] = []
    assert go(tmp_path, watch=lambda row, done, total: seen.append((done, total))) == whole
    assert seen[-1] == (14, 14)
    assert len(seen) < 14


@pytest.mark.parametrize("strategy", ["merit", "transductive", "leaky", "iterative"])
def test_every_byte_at_which_a_process_may_die(tmp_path: Path, strategy: str) -> None:
    """Whatever is left of both files, with or without a torn line, with or without the memory that the last episode
    wrote: the run goes on to the same end."""
    whole = go(tmp_path, strategy)
    lines = (tmp_path / "run" / "trajectories.jsonl").read_bytes().splitlines(keepends=True)
    traces = (tmp_path / "run" / "traces.jsonl.gz").read_bytes()
    rng = random.Random(strategy)
    for trial in range(3 if strategy == "leaky" else 5):
        kept = rng.randrange(len(lines) + 1)
        torn = b"" if kept == len(lines) else lines[kept][: rng.randrange(len(lines[kept]))]
        out = tmp_path / f"run{trial}"
        out.mkdir()
        (out / "settings.json").write_bytes((tmp_path / "run" / "settings.json").read_bytes())
        if trial:  # at first not even that file is there
            (out / "trajectories.jsonl").write_bytes(b"".join(lines[:kept]) + torn)
            end = sum(whole[kept - 1].trace or ()) if kept else 0
            (out / "traces.jsonl.gz").write_bytes(traces[: end + rng.randrange(400)])
        assert go(tmp_path, strategy, out=out) == whole
        assert [read_events(out, row)[-1] for row in read_trajectories(out) if row.attempts]
        assert (out / "trajectories.jsonl").read_bytes().count(b"\n") == 14


def test_what_a_killed_process_had_remembered_already_is_not_doubled(tmp_path: Path) -> None:
    """Killed between the memory and the line: the entry is there, the trajectory is not."""
    store = MemoryStore.open(tmp_path / "memory", HashEncoder())
    whole = go(tmp_path, store=store)
    views = store.entries()
    place = next(row.position for row in reversed(whole) if row.entry)
    file = tmp_path / "run" / "trajectories.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:place]))
    store.close()
    assert go(tmp_path, store=store) == whole
    assert [replace(view, created_at="") for view in store.entries()] == [
        replace(view, created_at="") for view in views
    ]


def test_other_settings_are_refused_with_what_differs(tmp_path: Path) -> None:
    go(tmp_path)
    for options, says in [
        ({"budget": 2}, "budget 3 there, 2 here"),
        ({"seed": 1}, "seed 0 there, 1 here"),
        ({"strategy": "iterative"}, "strategy name"),
        ({"strategy": replace(STRATEGIES["merit"], scope=Scope.SAME)}, 'strategy scope "any" there, "same" here'),
        ({"model": BookModel("other")}, 'model "book" there, "other" here'),
        ({"encoder": HashEncoder(id="other")}, "encoder"),
        ({"verifier": SpiderVerifier()}, "verifier"),
        ({"extraction": "published"}, "extraction"),
        ({"data": dataset(tmp_path / "data").first(3)}, "dataset"),
        ({"initial": {"0": "SELECT 1"}}, "initial"),
    ]:
        with pytest.raises(BadInput, match="other settings") as raised:
            go(tmp_path, **options)
        assert says in str(raised.value)
    assert len(go(tmp_path)) == 14


def test_words_for_the_screen_are_no_settings(tmp_path: Path) -> None:
    go(tmp_path)
    assert len(go(tmp_path, replace(STRATEGIES["merit"], title="MERIT!", description="New words."))) == 14


def test_another_version_is_refused(tmp_path: Path) -> None:
    go(tmp_path)
    file = tmp_path / "run" / "settings.json"
    for key, value in (("version", "0.0.1"), ("format", 99)):
        text = file.read_text()
        file.write_text(json.dumps({**json.loads(text), key: value}))
        with pytest.raises(BadInput, match=rf"another version of MERIT Explorer \({key} {value}"):
            go(tmp_path)
        file.write_text(text)
    file.write_text("[")
    with pytest.raises(BadInput, match="cannot be read"):
        go(tmp_path)
    file.unlink()
    with pytest.raises(BadInput, match="without settings"):
        go(tmp_path)
    with pytest.raises(BadInput, match="no run folder"):
        read_settings(tmp_path)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    go(tmp_path)
    file = tmp_path / "run" / "trajectories.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0], b"\0" * 40 + b"\n", *lines[2:]]))
    with pytest.raises(BadInput, match="Line 2 of"):
        go(tmp_path)
    file.write_bytes(b"".join(lines[:5]) + b"\0" * 40 + b"\n")
    assert len(go(tmp_path)) == 14


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    seen: list[BaseException] = []

    def again(*_: Any) -> None:
        if not seen:
            with pytest.raises(BadInput) as raised:
                go(tmp_path)
            seen.append(raised.value)

    go(tmp_path, watch=again)
    assert "Another process is working" in str(seen[0])


# what goes wrong ---------------------------------------------------------------------------------------------


class Failing(BookModel):
    """Fails from the given call on; ``back`` lets it answer again after so many failures."""

    def __init__(self, error: Exception, after: int, back: int = 10**9) -> None:
        super().__init__()
        self.error, self.after, self.back = error, after, back

    def complete(self, prompts: Any, max_new_tokens: int = 512, **options: Any) -> list[Completion]:
        self.after -= 1
        if self.after < 0 and self.back > 0:
            self.back -= 1
            raise self.error
        return super().complete(prompts, max_new_tokens, **options)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merit.streams.batching.PAUSES_S", (0.0, 0.0))


@pytest.mark.parametrize("error", [ModelUnavailable("The server is busy (429)."), RuntimeError(MARKER), OSError()])
def test_a_model_that_fails_pauses_the_run_and_scores_nothing(
    tmp_path: Path, no_pauses: None, error: Exception
) -> None:
    whole = go(tmp_path, out=tmp_path / "whole", cache=GenerationCache(":memory:"))
    with pytest.raises(RunPaused, match="paused; what is finished is kept") as raised:
        go(tmp_path, model=Failing(error, 6))
    assert MARKER not in str(raised.value)
    kept = read_trajectories(tmp_path / "run")
    assert 0 < len(kept) < 14
    assert kept == whole[: len(kept)]
    assert go(tmp_path) == whole


def test_a_server_that_comes_back_is_waited_for(tmp_path: Path, no_pauses: None) -> None:
    whole = go(tmp_path, out=tmp_path / "whole", cache=GenerationCache(":memory:"))
    assert go(tmp_path, model=Failing(ModelUnavailable("Busy (500)."), 4, back=2)) == whole


def test_an_answer_that_was_cut_by_the_clock_is_no_answer(tmp_path: Path, no_pauses: None) -> None:
    class Slow(BookModel):
        def complete(self, prompts: Any, max_new_tokens: int = 512, **options: Any) -> list[Completion]:
            return [Completion("<answer>SELECT", 1, 1, TIME) for _ in prompts]

    with pytest.raises(RunPaused, match="end of its answer in time"):
        go(tmp_path, model=Slow())
    assert read_trajectories(tmp_path / "run") == []


def test_a_full_disk_pauses_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from merit.streams import folder

    whole = go(tmp_path, out=tmp_path / "whole")
    write, calls = folder._write, [0]

    def full(file: Path, at: int, data: bytes) -> None:
        calls[0] += 1
        if calls[0] == 10:
            write(file, at, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        write(file, at, data)

    monkeypatch.setattr(folder, "_write", full)
    with pytest.raises(MeritError, match="disk is full"):
        go(tmp_path)
    monkeypatch.setattr(folder, "_write", write)
    assert len(read_trajectories(tmp_path / "run")) == 4
    assert go(tmp_path) == whole


def test_a_cache_on_a_full_disk_pauses_too(tmp_path: Path) -> None:
    kept = GenerationCache(tmp_path / "cache.sqlite")
    kept._connection.execute("PRAGMA max_page_count = 2")
    with suppress(MeritError):
        for number in range(100):
            kept.keep(f"{number:064}", Completion("text", 1, 1))
    with pytest.raises(RunPaused, match="disk is full"):
        go(tmp_path, cache=kept)


def test_a_cache_that_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "cache.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(MeritError, match="not a file of kept answers"):
        GenerationCache(tmp_path / "cache.sqlite")


def test_the_first_answer_kept_is_the_answer(tmp_path: Path) -> None:
    """Two processes may generate the same prompt at once, and a device may break a greedy tie in two ways."""
    one, two = GenerationCache(tmp_path / "c.sqlite"), GenerationCache(tmp_path / "c.sqlite")
    key = one.key(BookModel(), "prompt \ud800", 512)
    assert key is not None
    assert key != one.key(BookModel(), "prompt", 512)
    assert key != one.key(BookModel("b"), "prompt \ud800", 512)
    assert key != one.key(BookModel(), "prompt \ud800", 256)
    assert one.get(key) is two.get(key) is None
    assert one.keep(key, Completion("first \ud800", 1, 2, "length")).text == "first \ud800"
    assert two.keep(key, Completion("second", 3, 4, "stop")) == Completion("first \ud800", 1, 2, "length")
    assert two.keep("other", Completion("cut", 1, 1, TIME)).text == "cut"
    assert two.get("other") is None
    assert len(one) == 1
    with sqlite3.connect(tmp_path / "c.sqlite") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_label_of_a_strategy_says_what_was_changed() -> None:
    assert label(STRATEGIES["merit"]) == "merit"
    assert (
        label(replace(STRATEGIES["merit"], scope="same", regime="dbms_only")) == "merit--regime-dbms_only--scope-same"
    )


def test_a_scripted_model_as_in_the_papers_table(tmp_path: Path) -> None:
    """Two questions; the first is right at once, the second at its second repair: worked out by hand."""
    data = dataset(tmp_path / "data", ["shop"]).only({"0", "1"})
    first, second = stream_order(data.questions, 0)
    model = ScriptedModel(
        answer(str(first.gold_sql)), answer("SELECT nam FROM product"), answer("SELECT 7"), answer(str(second.gold_sql))
    )
    rows = go(tmp_path, "merit", model, data=data)
    found = measure(rows)
    assert (found.initial_ex, found.ex, found.repaired, found.steps, found.calls) == (0.5, 1.0, 1, 2, 4)
    assert found.mean_steps == 2.0
    assert [attempt.failure_type for attempt in rows[1].attempts] == [
        FailureType.SCHEMA_LINKING, FailureType.RESULT_MISMATCH, None,
    ]  # fmt: skip
    entry = rows[1].entry
    assert entry is not None
    assert entry.delta == f"SELECT 7 => {dict(TASKS)[second.text.removesuffix(' (shop)')]}"
