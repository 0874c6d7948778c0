"""The causal view against a brute-force model: nothing later, own or foreign shows through; the merge law."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merit.episode import Polarity
from merit.memory.entry import MemoryEntry
from merit.memory.retrieval import RetrievalQuery
from merit.memory.store import MemoryStore
from merit.strategy import STRATEGIES
from tests.memory.encoders import HashEncoder, entry
from tests.memory.reference import Model, dense_text, merged, ranked

DATABASES = ["library", "o'brien", "x' OR '1'='1"]


@st.composite
def entries(draw: st.DrawFn) -> MemoryEntry:
    """Few different transitions, questions and databases, so that they meet often."""
    number = draw(st.integers(0, 30))
    return entry(
        number,
        episode_id=f"e{number}",
        position=draw(st.integers(0, 12)),
        polarity=draw(st.sampled_from(["positive", "negative"])),
        failed_sql="SELECT x",
        new_sql=f"SELECT {draw(st.integers(0, 2))}",
        question=draw(st.sampled_from(["Who?", "How many?"])),
        question_id=draw(st.sampled_from(["q0", "q1", "q'2"])),
        database_id=draw(st.sampled_from(DATABASES)),
        failure_type=draw(st.sampled_from(["Schema Linking", "Syntax"])),
    )


STEPS = st.one_of(
    st.tuples(st.just("finalise"), entries()),
    st.tuples(st.just("finalise"), entries()),
    st.tuples(st.just("next_position"), st.none()),
    st.tuples(st.just("retract"), st.integers(0, 30).map(lambda number: f"e{number}")),
    st.tuples(st.just("forget"), entries().map(lambda made: made.id)),
    st.tuples(st.just("forget_database"), st.sampled_from(DATABASES)),
    st.tuples(st.just("tag"), st.sampled_from(["a", "b'"])),
    st.tuples(st.just("restore"), st.sampled_from(["a", "b'"])),
)


def same(store: MemoryStore, model: Model, **scope: Any) -> None:
    found = store.entries(**scope)
    wanted = {view.id: view for view in merged(model.log, *scope.values())}
    assert {view.id for view in found} == set(wanted)
    for view in found:
        expected = wanted[view.id]
        assert view.entry() == expected.entry
        assert view.polarity == expected.polarity
        assert (view.successes, view.failures) == (expected.successes, expected.failures)
        assert [seen.episode_id for seen in view.history] == expected.episodes
    firsts = [view.first_position for view in found]
    assert firsts == sorted(firsts)
    counts = store.counts(**scope)
    assert counts.entries == len(found)
    assert counts.positive == sum(view.polarity is Polarity.POSITIVE for view in found)
    assert counts.observations == sum(view.successes + view.failures for view in found)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(STEPS, max_size=14),
    st.integers(0, 16),
    st.sampled_from(["q0", "q1", "q'2"]),
    st.sets(st.sampled_from(DATABASES)),
)
def test_the_store_behaves_like_the_model(steps: list[Any], before: int, question: str, databases: set[str]) -> None:
    store, model = MemoryStore.open("memory://", HashEncoder(8)), Model()
    for step, argument in steps:
        if step == "restore" and argument not in model.tags:
            continue
        if step == "next_position":
            assert store.next_position() == model.next_position()
            continue
        getattr(store, step)(argument)
        getattr(model, step)(argument)
    for scope in ((None, None, None), (before, None, None), (before, question, None), (before, question, databases)):
        same(store, model, **dict(zip(("before", "exclude_question", "databases"), scope, strict=True)))
    query = RetrievalQuery("Who?", "SELECT x", "c", "Syntax", question, "o'brien", before)  # type: ignore[arg-type]
    for name, databases_in_scope in (("merit", DATABASES), ("same_database", ["o'brien"])):
        answer = store.retrieve(query, STRATEGIES[name])
        legal = merged(model.log, before, question, databases_in_scope)
        for polarity in ("positive", "negative"):
            pool = [view for view in legal if view.polarity == polarity]
            best = ranked(pool, query, STRATEGIES[name], store.encoder, polarity)
            assert [candidate.entry_id for candidate in answer.pools[polarity].candidates] == [v.id for v in best]
            for view in getattr(answer, polarity):
                assert all(seen.visible_from <= before for seen in view.history)
                assert all(seen.question_id != question for seen in view.history)
                assert all(seen.database_id in databases_in_scope for seen in view.history)
    store.close()  # and a store that is built anew from the disk sees the same
    same(store, model, before=before, exclude_question=question, databases=databases)


def test_majority_and_ties() -> None:
    """+ alone: positive. + −: a tie keeps positive. + − −: negative, text of the latest −. + − − +: a tie keeps
    negative."""
    store = MemoryStore.open("memory://", HashEncoder())
    for number, polarity in enumerate(["positive", "negative", "negative", "positive"]):
        same_transition = {"failed_sql": "SELECT x", "new_sql": "SELECT y", "question": f"Question {number}?"}
        store.finalise(entry(number, polarity=polarity, **same_transition))
    views = [store.entries(before=t)[0] for t in (1, 2, 3, 4)]
    assert [view.polarity for view in views] == ["positive", "positive", "negative", "negative"]
    assert [(view.successes, view.failures) for view in views] == [(1, 0), (1, 1), (1, 2), (2, 2)]
    assert [view.question for view in views] == ["Question 0?", "Question 0?", "Question 2?", "Question 2?"]
    assert [view.visible_from for view in views] == [1, 2, 3, 4]


def test_merging_does_not_depend_on_the_order_of_arrival() -> None:
    """Positions decide, so a slow process that finalises late cannot change what the majority was."""
    made = [
        entry(n, polarity="negative" if n % 3 == 1 else "positive", failed_sql="SELECT x", new_sql="SELECT y")
        for n in range(7)
    ]
    forwards, backwards = (MemoryStore.open("memory://", HashEncoder()) for _ in range(2))
    forwards.finalise_many(made)
    for one in reversed(made):
        backwards.finalise(one)
    for t in range(9):
        assert forwards.entries(before=t) == backwards.entries(before=t)


def test_the_vector_is_that_of_the_observation_that_speaks() -> None:
    """The dense score must come from the text that is shown, not from a later or outvoted observation."""
    store = MemoryStore.open("memory://", HashEncoder(64))
    shared = {"failed_sql": "SELECT x", "new_sql": "SELECT y"}
    store.finalise(entry(0, question="apples", **shared))
    store.finalise(entry(1, question="pears", **shared))
    for position, number, fruit in ((1, 0, "apples"), (9, 1, "pears")):
        asked = RetrievalQuery("pears", "", "", "Schema Linking", "q", "library", position)  # type: ignore[arg-type]
        (candidate,) = store.retrieve(asked, STRATEGIES["merit"]).pools["positive"].candidates
        stored, vector = store.encoder.encode([dense_text(entry(number, question=fruit, **shared)), asked.text])
        assert candidate.dense_raw == pytest.approx(float(stored.astype(float) @ vector.astype(float)), abs=1e-12)
