"""Events as JSON and bundles on disk: exact round trips, and a sentence for every file that is none."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit import trace
from merit.episode import FailureType, Outcome, Polarity, Question, Status
from merit.errors import BadInput
from merit.events import (
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
from merit.memory.entry import EntryView, MemoryEntry, Observation
from merit.memory.retrieval import SHOWN, Candidate, Pool, Retrieval

STARTED = EpisodeStarted(
    episode_id="e1",
    question=Question("Wie viele Bücher? 何冊", "shop", "a hint", gold_sql="SELECT 'GOLDMARK'", benchmark="bird"),
    strategy="merit",
    scope="any",
    budget=7,
    position=3,
    model_id="scripted",
    encoder_id="hash",
    schema="Database: shop",
    schema_hash="ab" * 32,
    seed=0,
    verifier="person",
    oracle_assisted=False,
    created_at="2026-12-01T00:00:00+00:00",
)
ENTRY = MemoryEntry(
    Polarity.NEGATIVE, FailureType.SYNTAX, "q", "Database: shop", "shop", "SELEC", "SELECT FROM",
    Outcome.EXECUTION_ERROR, 'near "FROM": syntax error', Outcome.EXECUTION_ERROR, "q1", "e1", 3, 7,
    model_id="scripted",
)  # fmt: skip
SEEN = Observation(Polarity.NEGATIVE, "shop", "q1", "e1", 3, 7, 4, Outcome.EXECUTION_ERROR, "scripted")
VIEW = EntryView(**vars(ENTRY), successes=0, failures=1, history=(SEEN,))
CANDIDATE = Candidate("f" * 64, 1.0, 0.25, True, 0.8125, 0.9, 3.5)
EVERY_EVENT: tuple[Event, ...] = (
    STARTED,
    PromptBuilt(0, "initial", "PROMPT\nwith lines", 12, ("positive 3",)),
    TokenStreamed(0, "SEL"),
    AttemptMade(0, "SELECT 1", "<answer>SELECT 1</answer>", 12, 5, 0.5, "length"),
    Executed(0, Status.EXECUTED, ("a", "a"), ((1, b"\x00\xff"), (None, "x\0y")), 2, False, None, 0.01),
    JudgementRequested(0),
    Judged(0, Outcome.DENOTATION_MISMATCH, "person"),
    Diagnosed(0, FailureType.RESULT_MISMATCH, "", 13, ""),
    Retrieved(
        1, Retrieval((), (VIEW,), {"positive": Pool(0, 0, True, 0), "negative": Pool(1, 1, True, 1, (CANDIDATE,))})
    ),
    Reflected(0, "I used the wrong table", 10, 4),
    EpisodeFinalised(Outcome.EXECUTION_ERROR, VIEW, 4, 7),
    Failed("The memory could not be written.", ENTRY),
    Cancelled(),
)

cells = (
    st.none()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.binary()
    | st.text(st.characters() | st.characters(categories=["Cs"]))
)
any_text = st.text(st.characters() | st.characters(categories=["Cs"]))


def through_text(event: Event) -> Event:
    line = trace.to_line(event)
    assert line.isascii()
    assert "\n" not in line
    return trace.from_json(json.loads(line))


@pytest.mark.parametrize("event", EVERY_EVENT, ids=lambda event: type(event).__name__)
def test_every_event_survives_its_json_form(event: Event) -> None:
    back = through_text(event)
    expected = replace(event, question=replace(event.question, gold_sql=None)) if event is STARTED else event
    assert back == expected
    assert type(back) is type(event)


def test_all_kinds_of_events_are_covered_here() -> None:
    assert {type(event).__name__ for event in EVERY_EVENT} == set(trace._EVENT_CLASSES)


def test_the_json_form_names_the_event_and_holds_no_gold() -> None:
    data = trace.to_json(STARTED)
    assert data["event"] == "EpisodeStarted"
    assert "gold" not in json.dumps(data).lower()


def test_a_merged_view_keeps_its_counts_and_history() -> None:
    back = through_text(EpisodeFinalised(Outcome.CORRECT, VIEW, 4, 1))
    assert isinstance(back, EpisodeFinalised)
    assert back.entry is not None
    assert (back.entry.failures, back.entry.history) == (1, (SEEN,))
    assert back.entry.id == ENTRY.id


@given(st.lists(st.lists(cells, min_size=2, max_size=2).map(tuple), max_size=4).map(tuple), any_text)
def test_any_cell_and_any_text_survive(rows: tuple[tuple[Any, ...], ...], text: str) -> None:
    event = Executed(0, Status.EXECUTED, (text, "b"), rows, len(rows), False, text, 0.0)
    back = through_text(event)
    assert isinstance(back, Executed)
    assert back == event
    assert [[type(cell) for cell in row] for row in back.rows] == [[type(cell) for cell in row] for row in rows]


@pytest.mark.parametrize("value", [math.inf, -math.inf, -0.0, 2**63 - 1, -(2**63), 10**40, 1e308, 5e-324])
def test_extreme_numbers_keep_their_value_and_type(value: float) -> None:
    back = through_text(Executed(0, Status.EXECUTED, ("n",), ((value,),), 1, False, None, 0.0))
    assert isinstance(back, Executed)
    assert repr(back.rows[0][0]) == repr(value)


def test_nan_comes_back_as_nan() -> None:
    back = through_text(Executed(0, Status.EXECUTED, ("n",), ((math.nan,),), 1, False, None, 0.0))
    assert isinstance(back, Executed)
    assert math.isnan(back.rows[0][0])


@given(any_text, any_text)
def test_prompts_and_answers_survive_with_lone_surrogates_and_nul(raw: str, prompt: str) -> None:
    assert through_text(AttemptMade(0, raw, raw, 1, 1)) == AttemptMade(0, raw, raw, 1, 1)
    assert through_text(PromptBuilt(1, "repair", prompt, 3, (raw,))) == PromptBuilt(1, "repair", prompt, 3, (raw,))


def test_a_bundle_round_trips_without_streamed_tokens(tmp_path: Path) -> None:
    events = EVERY_EVENT[:-2]
    header = trace.write_bundle(tmp_path / "e1.jsonl", events, owner_key="k", memory_version="live@3")
    bundle = trace.read_bundle(tmp_path / "e1.jsonl")
    assert bundle.header == header == trace.read_header(tmp_path / "e1.jsonl")
    assert (header.format, header.strategy, header.seed, header.model_id) == (1, "merit", 0, "scripted")
    assert (header.owner_key, header.memory_version) == ("k", "live@3")
    assert (header.ended, header.outcome, header.repairs) == ("EpisodeFinalised", Outcome.EXECUTION_ERROR, 7)
    assert {"python", "sqlite", "lancedb"} <= header.packages.keys()
    assert bundle.events[1:] == tuple(event for event in events[1:] if not isinstance(event, TokenStreamed))
    assert list(trace.replay(tmp_path / "e1.jsonl")) == list(bundle.events)
    assert b"GOLDMARK" not in (tmp_path / "e1.jsonl").read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["e1.jsonl"]


def test_a_bundle_keeps_only_the_best_candidates_but_all_counts(tmp_path: Path) -> None:
    many = tuple(replace(CANDIDATE, final=1 - index / 1000) for index in range(400))
    retrieved = Retrieved(1, Retrieval((), (), {"positive": Pool(900, 400, False, 400, many)}))
    trace.write_bundle(tmp_path / "b.jsonl", [STARTED, retrieved, Cancelled()])
    kept = trace.read_bundle(tmp_path / "b.jsonl").events[1]
    assert isinstance(kept, Retrieved)
    pool = kept.retrieval.pools["positive"]
    assert (pool.legal, pool.typed, pool.count) == (900, 400, 400)
    assert pool.candidates == many[:SHOWN]


def test_only_a_finished_episode_is_a_bundle(tmp_path: Path) -> None:
    for events in ([], [Cancelled()], [STARTED], [STARTED, Cancelled(), Cancelled()]):
        with pytest.raises(BadInput):
            trace.write_bundle(tmp_path / "b.jsonl", events)
    assert list(tmp_path.iterdir()) == []


def written(tmp_path: Path) -> tuple[Path, list[str]]:
    file = tmp_path / "good.jsonl"
    trace.write_bundle(file, [STARTED, Judged(0, Outcome.CORRECT, "person"), Cancelled()])
    return file, file.read_text().splitlines()


@pytest.mark.parametrize(
    ("number", "line", "says"),
    [
        (1, "{}", "Line 1 .* no header"),
        (1, '{"format": 2}', "format 2.*newer version"),
        (1, "[1]", "Line 1 .* not a JSON object"),
        (2, '{"event": "EpisodeStarted"}', "Line 2 .*EpisodeStarted is not complete"),
        (3, '{"event": "Judged", "iteration": 0, "outcome": "MAYBE", "by": "x"}', "Line 3 .*outcome"),
        (3, '{"event": "Danced"}', "Line 3 .*no event called 'Danced'"),
        (3, '{"event": "Judged", "iter', "Line 3 .* not JSON"),
        (3, "[" * 100_000, "Line 3 .* not JSON"),
        (3, '{"event": "TokenStreamed", "iteration": ' + "9" * 5000 + ', "text": ""}', "Line 3 .* not JSON"),
        (3, '{"event": "Failed", "reason": {"$bytes": "?"}}', "Line 3 .*cannot be read"),
        (3, '{"event": "Cancelled"}', "exactly one"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, number: int, line: str, says: str) -> None:
    file, lines = written(tmp_path)
    lines[number - 1] = line
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(BadInput, match=says):
        trace.read_bundle(file)


def test_a_file_that_was_cut_is_not_replayed_as_if_it_were_whole(tmp_path: Path) -> None:
    file, lines = written(tmp_path)
    file.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(BadInput, match="ends with exactly one"):
        trace.read_bundle(file)


def test_files_that_are_no_bundles_get_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "binary.jsonl").write_bytes(bytes(range(256)))
    for name in ("empty.jsonl", "binary.jsonl", "missing.jsonl"):
        with pytest.raises(BadInput, match=name):
            trace.read_bundle(tmp_path / name)


def hostile(tmp_path: Path, events: list[Event], **header: Any) -> bytes:
    """A bundle as nobody's program wrote it: any events under a header that can say anything."""
    kept = trace.write_bundle(tmp_path / "x.jsonl", [STARTED, Cancelled()]).model_dump()
    told = {"ended": "Cancelled", **kept, **header}
    return "\n".join([json.dumps(told), *map(trace.to_line, events)]).encode()


RAN = Executed(0, Status.EXECUTED, ("a",), ((1,),), 1, False, None, 0.1)
MADE = AttemptMade(0, "SELECT 1", "SELECT 1", 1, 1)
RIGHT = Judged(0, Outcome.CORRECT, "x")


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([MADE, replace(RAN, rows=((1, 2),))], "not as many values"),
        ([MADE, replace(RAN, rows=(((1, 2),),))], "no database gives"),
        ([MADE, replace(RAN, elapsed_s=-1.0)], "no number of seconds"),
        ([MADE, replace(RAN, elapsed_s=math.inf)], "no number of seconds"),
        ([replace(MADE, iteration=10**9)], "no attempt number"),
        ([replace(MADE, iteration=-1)], "no attempt number"),
        ([replace(MADE, iteration=2)], "not in its place"),
        ([MADE, MADE], "not in its place"),
        ([RAN], "not made before it was run"),
        (
            [MADE, RAN, Judged(0, Outcome.CORRECT, "x"), Diagnosed(0, FailureType.SYNTAX, "", 4, "")],
            "not judged a fail",
        ),
    ],
)
def test_events_that_make_up_no_episode_are_refused(tmp_path: Path, events: list[Event], says: str) -> None:
    """A page draws what a bundle holds: a short row or a diagnosis of what was right ended it with a traceback."""
    with pytest.raises(BadInput, match=says):
        trace.parse_bundle("x.jsonl", hostile(tmp_path, [STARTED, *events, Cancelled()]))


@pytest.mark.parametrize("field", ["question", "outcome", "model_id", "ended", "episode_id", "verifier"])
def test_a_header_that_says_something_else_than_the_events_is_refused(tmp_path: Path, field: str) -> None:
    lie = "CORRECT" if field == "outcome" else "a lie"
    with pytest.raises(BadInput, match="do not agree"):
        trace.parse_bundle("x.jsonl", hostile(tmp_path, [STARTED, MADE, RAN, Cancelled()], **{field: lie}))


def test_gold_in_a_strangers_bundle_is_taken_out(tmp_path: Path) -> None:
    data = hostile(tmp_path, [STARTED, Cancelled()]).replace(
        b'"benchmark": "bird"', b'"benchmark": "bird", "gold_sql": "SELECT 99"'
    )
    assert b"SELECT 99" in data
    (started, _) = trace.parse_bundle("x.jsonl", data).events
    assert isinstance(started, EpisodeStarted)
    assert started.question.gold_sql is None


def test_a_bundle_nested_too_deeply_or_too_long_gets_a_sentence(tmp_path: Path) -> None:
    """Decoding recursed past the limit of the interpreter where the JSON parser had not."""
    deep = b'{"event": "Failed", "reason": ' + b"[" * 700 + b"]" * 700 + b"}"
    lines = hostile(tmp_path, [STARTED, Cancelled()]).split(b"\n")
    with pytest.raises(BadInput, match="Line 3"):
        trace.parse_bundle("x.jsonl", b"\n".join([*lines[:2], deep]))
    with pytest.raises(BadInput, match="at most 5,000"):
        trace.parse_bundle("x.jsonl", b"\n".join([lines[0], *[lines[1]] * 5_001]))


def test_a_first_answer_that_was_handed_in_is_labelled_whatever_the_header_says(tmp_path: Path) -> None:
    data = hostile(tmp_path, [STARTED, MADE, RAN, Cancelled()], first_answer_given=False)
    assert trace.parse_bundle("x.jsonl", data).header.first_answer_given
    generated = [STARTED, PromptBuilt(0, "initial", "p", 1), MADE, RAN, Cancelled()]
    assert not trace.parse_bundle(
        "x.jsonl", hostile(tmp_path, generated, first_answer_given=True)
    ).header.first_answer_given
