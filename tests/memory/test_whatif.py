"""A memory under a change recalls what a memory made that way from the start would, and nothing is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from merit.episode import FailureType, Outcome, Polarity
from merit.memory.entry import MemoryEntry
from merit.memory.retrieval import Retrieval, RetrievalQuery
from merit.memory.store import MemoryStore
from merit.memory.whatif import AS_IT_IS, Change, ChangedMemory
from merit.strategy import STRATEGIES
from tests.memory.encoders import HashEncoder, entry

ENTRIES = [
    entry(0, question="Who borrowed the most books?"),
    entry(1, question="Which member borrowed late?", polarity=Polarity.NEGATIVE, outcome=Outcome.DENOTATION_MISMATCH),
    entry(2, question="How many books are late?"),
    entry(3, question="Who has borrowed nothing?"),
    # a second observation of the first entry's change, by another question
    replace(entry(4, question="Who returned a book?"), failed_sql=entry(0).failed_sql, new_sql=entry(0).new_sql),
]
STRATEGY = STRATEGIES["merit"]
NAMES = ("merit", "dynamic_rag", "random_same_type", "no_negative")


def made_of(entries: list[MemoryEntry]) -> MemoryStore:
    store = MemoryStore.open("memory://", HashEncoder())
    store.finalise_many(entries)
    return store


def query(position: int) -> RetrievalQuery:
    return RetrievalQuery(
        "Who borrowed most late books?", "SELECT name FROM loan", "attempted_sql=SELECT name FROM loan",
        ENTRIES[0].failure_type, "asked", "shop", position,
    )  # fmt: skip


def facts(found: Retrieval) -> tuple[object, ...]:
    """All of a retrieval but the ids of episodes, which a forged entry makes up."""
    shown = [(view.to_json() | {"episode_id": ""}, view.successes, view.failures) for view in
             (*found.positive, *found.negative)]  # fmt: skip
    return shown, {name: (pool.legal, pool.typed, tuple(pool.candidates)) for name, pool in found.pools.items()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("position", [0, 2, 4, 9])
def test_without_an_entry_is_as_if_nobody_had_observed_it(name: str, position: int) -> None:
    store = made_of(ENTRIES)
    gone = ENTRIES[0].id
    changed = ChangedMemory(store, Change(without=gone))
    reference = made_of([kept for kept in ENTRIES if kept.id != gone])
    found = changed.retrieve(query(position), STRATEGIES[name])
    assert facts(found) == facts(reference.retrieve(query(position), STRATEGIES[name]))
    assert gone not in {view.id for view in (*found.positive, *found.negative)}


@pytest.mark.parametrize("position", [0, 2, 9])
def test_a_forged_entry_ranks_like_one_that_was_observed(position: int) -> None:
    store = made_of(ENTRIES)
    forged = replace(ENTRIES[2], new_sql="SELECT 'poison'", polarity=Polarity.POSITIVE, encoder_id=HashEncoder().id)
    changed = ChangedMemory(store, Change(without=ENTRIES[2].id, forged=forged))
    reference = made_of([*ENTRIES[:2], forged, *ENTRIES[3:]])
    assert facts(changed.retrieve(query(position), STRATEGY)) == facts(reference.retrieve(query(position), STRATEGY))


def test_an_entry_can_be_forged_under_its_own_id() -> None:
    """Turning a polarity round keeps the id: removing the true one took the forged one with it."""
    store = made_of(ENTRIES)
    turned = replace(ENTRIES[3], polarity=Polarity.NEGATIVE, outcome=Outcome.DENOTATION_MISMATCH)
    assert turned.id == ENTRIES[3].id
    found = ChangedMemory(store, Change(without=turned.id, forged=turned)).retrieve(query(9), STRATEGIES["merit"])
    pools = {name: {c.entry_id for c in pool.candidates} for name, pool in found.pools.items()}
    assert turned.id in pools["negative"]
    assert turned.id not in pools["positive"]


def test_off_recalls_nothing_and_as_it_is_recalls_the_same() -> None:
    store = made_of(ENTRIES)
    assert ChangedMemory(store, Change(off=True)).retrieve(query(9), STRATEGY) == Retrieval()
    assert ChangedMemory(store, AS_IT_IS).retrieve(query(9), STRATEGY) == store.retrieve(query(9), STRATEGY)
    assert ChangedMemory(store).retrieve(query(9), STRATEGIES["iterative"]) == Retrieval()


def test_nothing_is_written_whatever_is_asked_of_it() -> None:
    store = made_of(ENTRIES)
    before = (store.entries(), store.counts(), store.upcoming(), store.stats().rows)
    forged = entry(2, new_sql="SELECT 1")
    for change in (
        AS_IT_IS,
        Change(off=True),
        Change(without=ENTRIES[0].id),
        Change(without=ENTRIES[0].id, forged=forged),
    ):
        changed = ChangedMemory(store, change)
        changed.retrieve(query(9), STRATEGY)
        left = changed.finalise(entry(7, question="New?", failure_type=FailureType.SYNTAX))
        assert (left.successes, left.failures, left.visible_from) == (1, 0, 8)
    assert (store.entries(), store.counts(), store.upcoming(), store.stats().rows) == before


def test_what_comes_later_is_seen_where_nothing_is_forged() -> None:
    store = made_of(ENTRIES)
    changed = ChangedMemory(store, Change(without=ENTRIES[0].id))
    store.finalise(entry(6, question="Who borrowed most late books of all?"))
    found = changed.retrieve(query(9), STRATEGY)
    assert sum(pool.legal for pool in found.pools.values()) == 4
