"""Forgetting undone, states gone back to, dead weight erased: what can come back, and what never does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit.errors import BadInput
from merit.memory import overview
from merit.memory.store import MemoryStore
from tests.memory.encoders import HashEncoder, entry

SAME = {"failed_sql": "SELECT a FROM t", "new_sql": "SELECT b FROM t"}


def fresh(uri: object = "memory://") -> MemoryStore:
    return MemoryStore.open(str(uri), HashEncoder(8))


def on_disk(path: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in path.rglob("*") if file.is_file())


@settings(max_examples=10, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from(["positive", "negative"]), st.integers(0, 1), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_undo_gives_back_every_view_that_any_position_had(made: list[Any]) -> None:
    """The first version brought them back at the next free position, as an import would: the past looked emptier."""
    store = fresh()
    for number, (position, polarity, transition, allocate) in enumerate(made):
        if allocate:
            store.next_position()
        sql = {"failed_sql": "SELECT x", "new_sql": f"SELECT {transition}"}
        store.finalise(entry(number, position=position, polarity=polarity, question=f"text {number}", **sql))
    before = {t: store.entries(before=t) for t in (None, *range(12))}
    upcoming = store.upcoming()
    forgotten = store.forget_for_now(store.entries()[0].id)
    assert forgotten.erased == len(forgotten.observations) > 0
    assert store.undo_forget(forgotten) == len(forgotten.observations)
    assert {t: store.entries(before=t) for t in (None, *range(12))} == before
    assert store.upcoming() == upcoming


def test_a_forgotten_entry_leaves_the_disk_although_it_can_be_undone(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    view = store.finalise(entry(0, question="zanzibar?"))
    forgotten = store.forget_for_now(view.id)
    assert forgotten.entry == view
    assert not on_disk(tmp_path, "zanzibar")
    store.finalise(entry(0, question="zanzibar?"))
    assert store.counts().observations == 0, "the same episode does not bring it back"
    assert store.undo_forget(forgotten) == 1
    for seen in (store, fresh(tmp_path)):
        assert seen.entries() == [view]
    assert store.undo_forget(forgotten) == 0, "undone once"
    assert store.counts().observations == 1
    assert store.forget(view.id) == 1, "and it can be forgotten again"
    assert not on_disk(tmp_path, "zanzibar")
    assert fresh(tmp_path).counts().observations == 0


def test_a_tag_from_before_stays_without_what_was_forgotten_and_undone() -> None:
    store = fresh()
    store.finalise_many([entry(0), entry(1)])
    store.tag("before")
    forgotten = store.forget_for_now(entry(0).id)
    store.restore("before")
    assert [view.episode_id for view in store.entries()] == ["e1"]
    store.undo_forget(forgotten)
    assert [view.episode_id for view in store.entries()] == ["e0", "e1"]
    store.restore("before")
    assert [view.episode_id for view in store.entries()] == ["e1"]


def test_undo_leaves_what_others_found_out_meanwhile_and_what_was_retracted_stays_so() -> None:
    store = fresh()
    store.finalise_many([entry(0, **SAME), entry(1, **SAME)])
    store.retract("e1")
    forgotten = store.forget_for_now(entry(0, **SAME).id)
    assert (forgotten.erased, len(forgotten.observations)) == (2, 1)
    store.finalise(entry(5, **SAME))
    store.undo_forget(forgotten)
    assert [seen.episode_id for view in store.entries() for seen in view.history] == ["e0", "e5"]


def test_forgetting_what_is_not_there_keeps_nothing() -> None:
    store = fresh()
    forgotten = store.forget_for_now("0" * 64)
    assert (forgotten.entry, forgotten.observations, forgotten.erased) == (None, (), 0)
    assert store.undo_forget(forgotten) == 0


def test_going_back_gives_the_state_that_is_left_a_name(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    store.finalise(entry(0))
    store.tag(" monday ")
    store.finalise_many([entry(1), entry(2, polarity="negative")])
    monday, *_ = store.look(overview.states)
    assert (monday.name, monday.position, monday.counts.entries, monday.comes, monday.goes) == ("monday", 1, 1, 0, 2)
    assert store.go_back("monday") == "before going back to monday"
    assert store.counts().observations == 1
    assert store.go_back("before going back to monday") == "before going back to before going back to monday"
    assert store.counts().observations == 3
    assert store.go_back("monday") == "before going back to monday (2)"
    assert len(fresh(tmp_path).tags()) == 4
    with pytest.raises(BadInput, match=r"no state called 'tuesday'\. Known states: monday"):
        store.go_back("tuesday")


def test_a_name_that_two_processes_take_off_and_restore_at_once_breaks_nothing(tmp_path: Path) -> None:
    """A restore of a name that was gone by then would have ended every later opening with a KeyError."""
    one, other = fresh(tmp_path), fresh(tmp_path)
    one.finalise(entry(0))
    one.tag("x")
    other._known = lambda name: None  # type: ignore[method-assign]  # it looked before the name went
    one.untag("x")
    other.restore("x")
    assert fresh(tmp_path).counts().observations == one.counts().observations == 1
    assert one.tags() == ()
    with pytest.raises(BadInput, match="no state called 'x'"):
        one.untag("x")


def test_compaction_erases_what_nobody_can_see_again_and_keeps_tagged_states(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    store.finalise_many([entry(0, question="tagged?"), entry(9, question="useless?")])
    store.retract("e9")
    store.tag("kept")
    store.finalise_many([entry(1, question="left behind?"), entry(2, question="held by the second tag?")])
    store.retract("e1")
    store.tag("second")
    store.restore("kept")
    store.retract("e0")
    upcoming = store.upcoming()
    assert store.compact() == 2
    assert not on_disk(tmp_path, "useless")
    assert not on_disk(tmp_path, "left behind")
    for seen in (store, fresh(tmp_path)):
        assert seen.upcoming() == upcoming, "positions that were given stay given"
        assert seen.counts().observations == 0
    store.restore("second")
    assert [view.episode_id for view in store.entries()] == ["e0", "e2"]
    store.restore("kept")
    assert [view.episode_id for view in fresh(tmp_path).entries()] == ["e0"]
    store.untag("second")
    assert store.compact() == 1
    assert not on_disk(tmp_path, "second tag")
    assert store.compact() == 0
    assert store.finalise(entry(9)).successes == 1, "an episode that was taken back may finish again"


def test_the_overview_counts_by_type_and_database_and_the_disk(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    store.finalise_many(
        [
            entry(0, **SAME),
            entry(1, **SAME),
            entry(2, polarity="negative"),
            entry(3, failure_type="Syntax", database_id="shop"),
        ]
    )
    found = store.look(overview.overview)
    assert [(row.name, row.positive, row.negative, row.observations) for row in found.types] == [
        ("Schema Linking", 1, 1, 3),
        ("Syntax", 1, 0, 1),
    ]
    assert [(row.name, row.positive, row.negative, row.observations) for row in found.databases] == [
        ("library", 1, 1, 3),
        ("shop", 1, 0, 1),
    ]
    size = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    assert store.disk_bytes() == size > 0
    assert fresh().disk_bytes() is None
