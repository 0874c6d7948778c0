"""Lanes of one question: in lockstep, over views of the memory, one answer a prompt; and where two of them part."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import HashEncoder, ScriptedModel, ScriptedVerifier, answer, build_shop

from merit import live, trace
from merit.comparison import (
    Lane,
    LaneEvent,
    Plan,
    Totals,
    answering_times,
    by_lane,
    flipped,
    parting,
    row_difference,
    run,
    totals,
)
from merit.database import Database
from merit.episode import Execution, Outcome, Question, Status
from merit.events import Cancelled, EpisodeFinalised, EpisodeStarted, Event, Failed, Judged, Retrieved
from merit.memory.store import MemoryStore
from merit.memory.whatif import Change
from merit.models.language import Completion
from merit.settings import settings
from merit.story import fold
from merit.strategy import STRATEGIES
from merit.verification import AssertionVerifier

MERIT, ITERATIVE = STRATEGIES["merit"], STRATEGIES["iterative"]
WRONG, RIGHT = "SELECT nam FROM product", "SELECT name FROM product"
LOST = "SELECT price FROM product"


class Remembers:
    """A model that is right only where the prompt shows what an earlier question taught; it counts what it is asked."""

    id = "remembers"

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def complete(self, prompts, max_new_tokens=512, **_options):  # type: ignore[no-untyped-def]
        (prompt,) = prompts
        self.prompts.append(prompt)
        first = "observed unsuccessful]" not in prompt
        taught = f"=> {RIGHT}" in prompt
        return [Completion(answer(WRONG if first else RIGHT if taught else LOST), len(prompt.split()), 4)]


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    return Database.open(build_shop(tmp_path / "shop.sqlite"))


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with MemoryStore.open("memory://", HashEncoder()) as opened:
        yield opened


@pytest.fixture
def taught(shop: Database, store: MemoryStore) -> MemoryStore:
    """A memory with one entry, WRONG → RIGHT, at position 0."""
    request = live.Request(Question("Which names?", "shop"), shop, MERIT, rows(), budget=2)
    list(live.ask(request, ScriptedModel(answer(WRONG), answer(RIGHT)), store))
    assert store.counts().positive == 1
    return store


def rows() -> AssertionVerifier:
    return AssertionVerifier(rows=[("tea",), ("bread",), ("jam",)])


def request(shop: Database, **changes: object) -> live.Request:
    asked = live.Request(Question("Name the products", "shop"), shop, MERIT, rows(), budget=2, owner="ann")
    return replace(asked, **changes)  # type: ignore[arg-type]


def lived(plan: Plan, model: object, store: MemoryStore) -> tuple[tuple[Event, ...], ...]:
    return by_lane(list(run(plan, model, store)), len(plan.lanes))  # type: ignore[arg-type]


def outcome(events: tuple[Event, ...]) -> Outcome:
    assert isinstance(events[-1], EpisodeFinalised)
    return events[-1].outcome


def test_memory_off_and_one_entry_removed_flip_the_end_and_nothing_is_written(
    shop: Database, taught: MemoryStore
) -> None:
    (entry,) = taught.entries()
    before = (taught.entries(), taught.upcoming(), taught.stats().rows)
    lanes = (
        Lane(MERIT),
        Lane(MERIT, Change(off=True)),
        Lane(MERIT, Change(without=entry.id)),
        Lane(MERIT, Change(without=entry.id, forged=replace(entry.entry(), new_sql="SELECT 'x'"))),
    )
    as_it_is, off, without, forged = lived(Plan(request(shop), lanes), Remembers(), taught)
    assert outcome(as_it_is) is Outcome.CORRECT
    assert [outcome(lane) for lane in (off, without, forged)] == [Outcome.DENOTATION_MISMATCH] * 3
    assert "SELECT 'x'" in next(e for e in forged if getattr(e, "purpose", "") == "repair").prompt  # type: ignore[attr-defined]
    assert (taught.entries(), taught.upcoming(), taught.stats().rows) == before
    assert all(isinstance(lane[-1], EpisodeFinalised) and lane[-1].entry is None for lane in (as_it_is, off))
    apart = parting(fold(as_it_is), fold(without))
    assert apart is not None
    assert (apart.iteration, apart.recalled_here, apart.recalled_there) == (1, (entry.id,), ())
    assert apart.prompts_differ
    assert apart.change.words
    assert flipped(fold(as_it_is), fold(without))
    assert not flipped(fold(off), fold(without))


def test_an_earlier_position_does_not_see_what_came_later(shop: Database, taught: MemoryStore) -> None:
    now, then = lived(Plan(request(shop), (Lane(MERIT), Lane(MERIT, position=0))), Remembers(), taught)
    assert (outcome(now), outcome(then)) == (Outcome.CORRECT, Outcome.DENOTATION_MISMATCH)
    starts = [lane[0].position for lane in (now, then) if isinstance(lane[0], EpisodeStarted)]
    assert starts == [1, 0]


def test_lanes_go_step_by_step(shop: Database, store: MemoryStore) -> None:
    events = run(Plan(request(shop), (Lane(MERIT), Lane(ITERATIVE), Lane(MERIT))), Remembers(), store)
    judged = [(e.lane, e.event.iteration) for e in events if isinstance(e, LaneEvent) and isinstance(e.event, Judged)]
    assert judged == [(lane, step) for step in range(3) for lane in range(3)]


def test_a_prompt_is_answered_once_and_a_recorded_answer_is_not_asked_for(shop: Database, taught: MemoryStore) -> None:
    model = Remembers()
    plan = Plan(request(shop), (Lane(MERIT), Lane(MERIT, Change(off=True))))
    known, _ = lived(plan, model, taught)
    assert len(model.prompts) == len(set(model.prompts))
    asked = len(model.prompts)
    again = Plan(plan.request, (Lane(MERIT), Lane(MERIT, Change(off=True))), position=1, known=known)
    first, second = lived(again, model, taught)
    assert parting(fold(known), fold(first)) is None
    assert len(model.prompts) - asked == 2  # the two repairs without memory; the first answer is on record
    assert outcome(second) is Outcome.DENOTATION_MISMATCH

    other = ScriptedModel(answer(RIGHT))  # another model's answers are not this one's
    (only,) = lived(replace(again, lanes=(Lane(MERIT),)), other, taught)
    assert outcome(only) is Outcome.CORRECT
    assert other.left == 0


def test_a_lane_that_fails_leaves_the_others_alone(shop: Database, store: MemoryStore) -> None:
    class Breaks(MemoryStore):
        def retrieve(self, query, strategy):  # type: ignore[no-untyped-def]
            raise RuntimeError("SELECT secret")

    broken = Breaks.open("memory://", HashEncoder())
    verifier = ScriptedVerifier(*[Outcome.DENOTATION_MISMATCH] * 9)
    first, second = lived(Plan(request(shop, verifier=verifier), (Lane(MERIT), Lane(ITERATIVE))), Remembers(), broken)
    assert isinstance(first[-1], Failed)
    assert "secret" not in first[-1].reason
    assert isinstance(second[-1], EpisodeFinalised)


def test_stopping_ends_every_lane(shop: Database, store: MemoryStore) -> None:
    cancel = threading.Event()
    seen = []
    for event in run(Plan(request(shop), (Lane(MERIT), Lane(ITERATIVE))), Remembers(), store, cancel=cancel):
        seen.append(event)
        if isinstance(event, LaneEvent) and isinstance(event.event, Judged):
            cancel.set()
    assert isinstance(seen[-1], Cancelled)
    assert [type(lane[-1]) for lane in by_lane(seen, 2)] == [Cancelled, Cancelled]


def test_each_lane_is_kept_as_a_bundle_that_says_what_was_otherwise(shop: Database, taught: MemoryStore) -> None:
    (entry,) = taught.entries()
    lanes = (Lane(MERIT), Lane(MERIT, Change(off=True)), Lane(MERIT, Change(without=entry.id), position=0))
    told = lived(Plan(request(shop), lanes), Remembers(), taught)
    versions = []
    for lane in told:
        assert isinstance(lane[0], EpisodeStarted)
        versions.append(trace.read_header(settings().episodes_dir / f"{lane[0].episode_id}.jsonl").memory_version)
    assert versions == [
        "live@1, nothing written",
        "live@1, nothing written, memory off",
        f"live@0, nothing written, without entry {entry.id[:12]}, as question 0 saw it",
    ]


def test_costs_count_an_answer_that_was_there_with_the_time_it_took(shop: Database, store: MemoryStore) -> None:
    one, other = lived(Plan(request(shop), (Lane(ITERATIVE), Lane(ITERATIVE))), Remembers(), store)
    slow = tuple(replace(e, elapsed_s=2.0) if type(e).__name__ == "AttemptMade" else e for e in one)
    took = answering_times([slow, other])
    assert totals(other, took).answering_s == totals(slow, took).answering_s == 6.0
    assert (totals(other, took).calls, totals(other, took).output_tokens) == (3, 12)
    assert totals((), took) == Totals(0, 0, 0, 0.0, 0.0)


def test_a_first_answer_that_was_given_is_no_call(shop: Database, store: MemoryStore) -> None:
    (lane,) = lived(Plan(request(shop, initial=WRONG), (Lane(ITERATIVE),)), Remembers(), store)
    assert totals(lane, {}).calls == 2


def test_nothing_parts_while_one_lane_has_not_come_so_far(shop: Database, taught: MemoryStore) -> None:
    events = list(run(Plan(request(shop), (Lane(MERIT), Lane(ITERATIVE))), Remembers(), taught))
    for end in range(len(events)):
        first, second = (fold(lane) for lane in by_lane(events[:end], 2))
        apart = parting(first, second)
        if apart is not None:
            assert apart.iteration == 1
            break
    else:
        raise AssertionError("they part")
    assert any(isinstance(e.event, Retrieved) for e in events if isinstance(e, LaneEvent))


def result(*found: tuple[object, ...], columns: tuple[str, ...] = ("a",), **more: object) -> Execution:
    return Execution(Status.EXECUTED, columns, tuple(found), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("here", "there", "only_here", "only_there", "note"),
    [
        (result((1,), (2,)), result((2,), (1,)), (), (), "The same rows in another order."),
        (result((1,), (1,), (2,)), result((1,), (3,)), ((1,), (2,)), ((3,),), ""),
        (result((1,)), result((1.0,)), (), (), ""),
        (result((1,)), result(("1",)), ((1,),), (("1",),), ""),
        (result((None,), (math.nan,)), result((math.nan,), (None,)), (), (), "The same rows in another order."),
        (result(("NaN",)), result((math.nan,)), (("NaN",),), ((math.nan,),), ""),
        (result((1,)), result((1, 2), columns=("a", "b")), ((1,),), ((1, 2),), "1 columns here, 2 there"),
        (result((b"\x00",)), result((b"\x00",), columns=("b",)), (), (), "only the names"),
        (result((1,), truncated=True), result((1,)), (), (), "rows may be missing"),
    ],
)  # fmt: skip
def test_rows_only_here_and_only_there(
    here: Execution, there: Execution, only_here: object, only_there: object, note: str
) -> None:
    found = row_difference(here, there)
    assert found is not None
    assert repr((found.here, found.there)) == repr((only_here, only_there))
    assert found.note == note if not note else note in found.note
    assert found.same is (not only_here and not only_there)


def test_there_are_no_rows_to_compare_with_an_error() -> None:
    failed = Execution(Status.EXECUTION_ERROR, error="no")
    assert row_difference(result((1,)), failed) is None
    assert row_difference(failed, failed) is None
    assert row_difference(None, result((1,))) is None


bags = st.lists(st.tuples(st.integers(0, 2), st.none() | st.text(max_size=1)), max_size=6)


@given(bags, bags)
def test_what_both_have_and_what_one_has_make_up_the_results(
    here: list[tuple[object, ...]], there: list[tuple[object, ...]]
) -> None:
    columns = ("a", "b")
    found = row_difference(result(*here, columns=columns), result(*there, columns=columns))
    assert found is not None
    rest = list(there)
    for row in found.there:
        rest.remove(row)
    both = list(here)
    for row in found.here:
        both.remove(row)
    assert sorted(map(repr, rest)) == sorted(map(repr, both))
    assert not set(found.here) & set(found.there)
