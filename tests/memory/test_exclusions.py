"""Every entry that is no candidate has its reason: against plain loops over the observations."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit.episode import FailureType
from merit.memory import exclusions
from merit.memory.exclusions import Reason
from merit.memory.retrieval import RetrievalQuery
from merit.memory.store import MemoryStore
from merit.strategy import STRATEGIES, Causality, Scope, Strategy
from tests.memory.encoders import HashEncoder, entry
from tests.memory.reference import Seen, merged


def query(**changes: Any) -> RetrievalQuery:
    asked = RetrievalQuery("Who?", "SELECT x", "context", FailureType.SCHEMA_LINKING, "q0", "a", 4)
    return dataclasses.replace(asked, **changes)


def plainly(log: list[Seen], asked: RetrievalQuery, strategy: Strategy) -> dict[str, Reason | None]:
    """The reason of every entry, by filtering its observations rule by rule."""
    rules = [
        (Reason.LATER, lambda seen: strategy.causal is not Causality.CAUSAL or seen.visible_from <= asked.position),
        (Reason.OWN_QUESTION, lambda seen: strategy.own_question or seen.entry.question_id != asked.question_id),
        (
            Reason.SCOPE,
            lambda seen: (
                strategy.scope == "any" or (seen.entry.database_id == asked.database_id) == (strategy.scope == "same")
            ),
        ),
    ]
    fates: dict[str, Reason | None] = {}
    legal: list[Seen] = []
    for name in {seen.entry.id for seen in log}:
        left = [seen for seen in log if seen.entry.id == name]
        fates[name] = None
        for reason, passes in rules:
            left = [seen for seen in left if passes(seen)]
            if not left:
                fates[name] = reason
                break
        legal += left
    if strategy.type_filter == "none":
        return fates
    views = merged(legal)
    for pool in (
        [views] if strategy.pooled else [[v for v in views if v.polarity == p] for p in ("positive", "negative")]
    ):
        typed = [view for view in pool if view.entry.failure_type == asked.failure_type]
        if len(typed) >= strategy.min_typed:
            fates |= {view.id: Reason.TYPE for view in pool if view not in typed}
    return fates


@settings(max_examples=50, deadline=None)
@given(
    made=st.lists(
        st.tuples(
            st.integers(0, 7),
            st.sampled_from(["positive", "negative"]),
            st.integers(0, 4),
            st.sampled_from(["a", "b"]),
            st.sampled_from(["q0", "q1", "q2"]),
            st.sampled_from(["Schema Linking", "Syntax"]),
        ),
        max_size=16,
    ),
    name=st.sampled_from(["merit", "no_type_filter", "dynamic_rag", "transductive", "leaky"]),
    scope=st.sampled_from(list(Scope)),
    min_typed=st.integers(0, 3),
)
def test_it_is_the_plain_loop(made: list[Any], name: str, scope: Scope, min_typed: int) -> None:
    store = MemoryStore.open("memory://", HashEncoder(8))
    entries = [
        entry(
            number, position=position, polarity=polarity, database_id=database, question_id=question, failure_type=kind,
            failed_sql="SELECT x", new_sql=f"SELECT x{change}",
        )
        for number, (position, polarity, change, database, question, kind) in enumerate(made)
    ]  # fmt: skip
    store.finalise_many(entries)
    log = [Seen(one, one.position + 1) for one in entries]
    strategy = dataclasses.replace(STRATEGIES[name], scope=scope, min_typed=min_typed)
    expected = plainly(log, query(), strategy)

    census = store.look(partial(exclusions.census, query=query(), strategy=strategy))
    assert census.living == len(expected)
    assert Counter(dict(census.excluded)) == Counter(reason for reason in expected.values() if reason)
    assert census.candidates == sum(pool.count for pool in store.retrieve(query(), strategy).pools.values())
    assert census.living == sum(census.excluded.values()) + census.candidates

    listed, matching = store.look(partial(exclusions.excluded, query=query(), strategy=strategy, limit=100))
    assert matching == len(listed)
    assert {one.entry.id: one.reason for one in listed} == {name: why for name, why in expected.items() if why}
    for entry_id, why in expected.items():
        assert store.look(partial(exclusions.reason_for, query=query(), strategy=strategy, entry_id=entry_id)) is why


def test_they_are_listed_newest_first_and_narrowed() -> None:
    store = MemoryStore.open("memory://", HashEncoder(8))
    views = store.finalise_many(entry(number, question=f"Number {number}?") for number in range(8))
    ask = partial(exclusions.excluded, query=query(position=3, question_id="other"), strategy=STRATEGIES["merit"])
    (latest, second), matching = store.look(partial(ask, limit=2))
    assert (latest.entry, second.entry, matching) == (views[7], views[6], 5)
    assert store.look(partial(ask, text=" NUMBER 6"))[0] == (exclusions.Excluded(views[6], Reason.LATER),)
    assert store.look(partial(ask, reason=Reason.TYPE)) == ((), 0)


def test_candidates_seen_in_part_are_counted_and_read_as_the_query_sees_them() -> None:
    """One worked before the question and failed twice after it: a candidate with the words of the past."""
    store = MemoryStore.open("memory://", HashEncoder(8))
    shared = {"failed_sql": "SELECT x", "new_sql": "SELECT y", "database_id": "a"}
    store.finalise(entry(0, question="early", question_id="q8", **shared))
    store.finalise(entry(5, question="late", polarity="negative", **shared))
    (view,) = store.finalise_many([entry(6, question="later", polarity="negative", **shared)])
    asked = query(position=2)
    assert store.look(partial(exclusions.census, query=asked, strategy=STRATEGIES["merit"])).partly == 1
    found = store.look(
        partial(exclusions.candidates, query=asked, strategy=STRATEGIES["merit"], entry_ids=frozenset([view.id, "no"]))
    )
    assert [(one.question, one.successes, one.failures) for one in found.values()] == [("early", 1, 0)]


@pytest.mark.parametrize("entry_id", ["", "never", "'; DROP"])
def test_an_entry_that_does_not_live_has_no_reason(entry_id: str) -> None:
    store = MemoryStore.open("memory://", HashEncoder(8))
    gone = store.finalise(entry(9))
    store.forget(gone.id)
    ask = partial(exclusions.reason_for, query=query(), strategy=STRATEGIES["merit"])
    assert store.look(partial(ask, entry_id=entry_id)) is None
    assert store.look(partial(ask, entry_id=gone.id)) is None
