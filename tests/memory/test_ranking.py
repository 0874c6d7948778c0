"""The ranking: golden values by hand, rank_bm25 as the oracle, a plain reference for whole retrievals."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import pickle
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rank_bm25 import BM25Okapi

from merit.episode import FailureType
from merit.memory import ranking, retrieval, search
from merit.memory.columns import Postings, Vectors
from merit.memory.entry import MemoryEntry
from merit.memory.ranking import bm25, min_max
from merit.memory.retrieval import RetrievalQuery
from merit.memory.store import MemoryStore
from merit.strategy import STRATEGIES, Strategy
from tests.memory.encoders import HashEncoder, entry
from tests.memory.reference import Seen, merged, ranked


def index_of(texts: Sequence[Sequence[str]], batches: int = 1) -> Any:
    """The columns BM25 reads, filled from token lists in so many batches."""
    postings = Postings()
    bounds = np.linspace(0, len(texts), batches + 1).astype(int)
    for start, end in itertools.pairwise(bounds):
        terms = [sorted(set(text)) for text in texts[start:end]]
        counts = [[text.count(word) for word in row] for text, row in zip(texts[start:end], terms, strict=True)]
        postings.extend(int(start), pa.array(terms, pa.list_(pa.string())), pa.array(counts, pa.list_(pa.int32())))
    return SimpleNamespace(size=len(texts), length=np.array([len(text) for text in texts], np.int32), postings=postings)


def test_bm25_by_hand() -> None:
    """N = 3, lengths 3, 2, 4, mean 3. IDF(b) = ln(1 + 2.5/1.5), IDF(c) = ln(1 + 1.5/2.5); c is asked twice."""
    index = index_of([["a", "b", "b"], ["a", "c"], ["c", "c", "c", "d"]])
    scores = bm25(index, np.array([0, 1, 2], np.int32), ["b", "c", "c"])
    # d0: tf 2, damping 1.5·(0.25 + 0.75·3/3) = 1.5   → 0.980829253·(2·2.5/3.5)
    # d1: tf 1, damping 1.5·(0.25 + 0.75·2/3) = 1.125 → 2·0.470003629·(2.5/2.125)
    # d2: tf 3, damping 1.5·(0.25 + 0.75·4/3) = 1.875 → 2·0.470003629·(7.5/4.875)
    assert scores == pytest.approx([1.401184647, 1.105890893, 1.446165013], abs=2e-9)


def test_bm25_statistics_are_those_of_the_candidates_alone() -> None:
    """Over rows 0 and 1: N = 2, mean 2.5, IDF(c) = ln(1 + 1.5/1.5) = ln 2, damping of d1
    1.5·(0.25 + 0.75·2/2.5) = 1.275 → ln 2·2.5/2.275."""
    index = index_of([["a", "b", "b"], ["a", "c"], ["c", "c", "c", "d"]])
    assert bm25(index, np.array([1, 0], np.int32), ["c"]) == pytest.approx([0.7617002, 0.0], abs=1e-7)


class OurIdf(BM25Okapi):  # type: ignore[misc]
    """rank_bm25 with the IDF of the spec."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {word: float(np.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5))) for word, n in nd.items()}


@pytest.mark.parametrize("batches", [1, 3, 40])  # one big segment, several, and the tail of single rows
def test_bm25_equals_rank_bm25_with_its_idf_overridden(batches: int) -> None:
    dice = random.Random(batches)
    texts = [
        [f"w{min(dice.randrange(40), dice.randrange(40))}" for _ in range(dice.randint(1, 60))] for _ in range(900)
    ]
    index = index_of(texts, batches)
    for size in (900, 317, 3):
        rows = sorted(dice.sample(range(900), size))
        query = [f"w{dice.randrange(45)}" for _ in range(30)]
        expected = OurIdf([texts[row] for row in rows], k1=1.5, b=0.75).get_scores(query)
        assert bm25(index, np.array(rows, np.int32), query) == pytest.approx(expected, abs=1e-11)


def test_min_max() -> None:
    """(s − min)/(max − min); flat: 0, or 1 in the published way unless the value itself is 0."""
    assert min_max(np.array([2.0, 3.0, 6.0]), 2.0, 6.0, 0.0).tolist() == [0.0, 0.25, 1.0]
    assert min_max(np.array([2.0, 2.0]), 2.0, 2.0, 0.0).tolist() == [0.0, 0.0]
    assert min_max(np.array([2.0, 2.0]), 2.0, 2.0, 1.0).tolist() == [1.0, 1.0]
    assert min_max(np.array([0.0, 0.0]), 0.0, 0.0, 1.0).tolist() == [0.0, 0.0]


def test_equal_vectors_have_equal_scores_in_any_batch() -> None:
    """BLAS sums edge rows of a block in another order; ties then fell by the place of a row."""
    dice = np.random.default_rng(0)
    same, query = dice.normal(size=384).astype(np.float32), dice.normal(size=384).astype(np.float32)
    vectors = Vectors(384)
    rows = dice.normal(size=(20_000, 384)).astype(np.float32)
    places = [0, 1, 7, 16383, 16384, 19999]
    rows[places] = same
    vectors.extend(rows)
    scores = vectors.exact(np.arange(20_000, dtype=np.int32), query)
    assert len(set(scores[places].tolist())) == 1
    for place in places:
        assert vectors.exact(np.array([place], np.int32), query)[0] == scores[0]
        assert vectors.exact(np.array([3, place, 5], np.int32), query)[1] == scores[0]
    rough, error = vectors.approximate(query)
    assert np.abs(rough - scores).max() <= error


def filled(entries: Sequence[MemoryEntry], dimension: int = 16) -> MemoryStore:
    store = MemoryStore.open("memory://", HashEncoder(dimension))
    store.finalise_many(entries)
    return store


def query(**changes: Any) -> RetrievalQuery:
    fields: dict[str, Any] = {
        "question": "How many books has reader 3?",
        "sql": "SELECT count(bok) FROM books",
        "failure_context": "attempted_sql=SELECT count(bok) FROM books; status=EXECUTION_ERROR; db_error=no column",
        "failure_type": FailureType.SCHEMA_LINKING,
        "question_id": "asked",
        "database_id": "library",
        "position": 10_000,
    }
    return RetrievalQuery(**(fields | changes))


TYPES = [FailureType.SCHEMA_LINKING, FailureType.RESULT_MISMATCH, FailureType.SYNTAX]


def many(count: int, seed: int = 0) -> list[MemoryEntry]:
    """Entries with few distinct words, so that scores tie often; some transitions occur several times."""
    dice = random.Random(seed)
    made = []
    for number in range(count):
        polarity = dice.choice(["positive", "positive", "negative"])
        column = dice.choice(["name", "title", "year"])
        made.append(
            entry(
                number,
                polarity=polarity,
                failure_type=dice.choice(TYPES),
                question=f"{dice.choice(['How many', 'Which', 'Who'])} {dice.choice(['books', 'loans'])}?",
                failed_sql=f"SELECT {column} FROM {dice.choice(['books', 'loans'])}",
                new_sql=f"SELECT {column} FROM t{dice.randrange(max(2, count // 3))}",
                database_id=dice.choice(["library", "shop"]),
                db_error=dice.choice(["no such column: x", "near FROM"]),
                question_id=f"q{dice.randrange(count)}",
            )
        )
    return made


PLAIN = [name for name, strategy in STRATEGIES.items() if strategy.uses_memory]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("flat", [0.0, 1.0])
def test_every_strategy_ranks_like_the_reference(name: str, flat: float) -> None:
    strategy = dataclasses.replace(STRATEGIES[name], flat_pool_score=flat)
    for count in (1, 4, 60):
        entries = many(count, seed=count)
        store = filled(entries)
        for failure_type in (FailureType.SCHEMA_LINKING, FailureType.RESULT_MISMATCH, FailureType.AGGREGATION):
            asked = query(failure_type=failure_type, position=count * 3 // 4, question_id="q1", iteration=2)
            answer = store.retrieve(asked, strategy)
            check(entries, asked, strategy, answer, store)


def check(
    entries: list[MemoryEntry], asked: RetrievalQuery, strategy: Strategy, answer: retrieval.Retrieval, store: Any
) -> None:
    causal = strategy.causal == "causal"
    databases = {"any": ["library", "shop"], "same": ["library"], "other": ["shop"]}[strategy.scope]
    log = [Seen(one, one.position + 1) for one in entries]
    legal = merged(
        log, asked.position if causal else None, None if strategy.own_question else asked.question_id, databases
    )
    pools = {"positive": [v for v in legal if v.polarity == "positive"]}
    pools["negative"] = [v for v in legal if v.polarity == "negative"]
    if strategy.pooled:
        pools = {"all": legal}
    assert set(answer.pools) == set(pools)
    for name, pool in pools.items():
        best = ranked(pool, asked, strategy, store.encoder, name)
        found = answer.pools[name]
        assert [candidate.entry_id for candidate in found.candidates] == [view.id for view in best]
        assert found.legal == len(pool)
        assert found.typed == sum(view.entry.failure_type == asked.failure_type for view in pool)
        assert found.count == len(best)
        shown = best[: {"positive": strategy.k_positive, "negative": strategy.k_negative, "all": 4}[name]]
        chosen = [*answer.positive, *answer.negative] if name == "all" else getattr(answer, name)
        assert sorted(view.episode_id for view in chosen) == sorted(view.entry.episode_id for view in shown)
        if name != "all":
            assert [view.id for view in chosen] == [view.id for view in shown]


def test_scores_of_a_pool_by_hand() -> None:
    """Three positives; raw cosines 0.2, 0.4, 0.6 → 0, 0.5, 1; BM25 equal → flat 0; final 0.75·dense."""

    class Three:
        id, dimension = "three", 2

        def encode(self, texts: Sequence[str]) -> Any:
            cosines = {"QUESTION: a": 0.2, "QUESTION: b": 0.4, "QUESTION: c": 0.6}
            return np.array(
                [[c, (1 - c * c) ** 0.5] for c in (cosines.get(text[:11], 1.0) for text in texts)], np.float32
            )

    store = MemoryStore.open("memory://", Three())
    store.finalise_many([entry(number, question=word, new_sql=f"SELECT {word}") for number, word in enumerate("abc")])
    answer = store.retrieve(query(question="z"), STRATEGIES["merit"])
    pool = answer.pools["positive"]
    assert [view.question for view in answer.positive] == ["c", "b", "a"]
    assert [candidate.dense for candidate in pool.candidates] == pytest.approx([1, 0.5, 0], abs=1e-6)
    assert [candidate.dense_raw for candidate in pool.candidates] == pytest.approx([0.6, 0.4, 0.2], abs=1e-7)
    assert [candidate.final for candidate in pool.candidates] == pytest.approx([0.75, 0.375, 0], abs=1e-6)
    assert {candidate.bm25 for candidate in pool.candidates} == {0.0}
    assert (pool.legal, pool.typed, pool.fallback, pool.count) == (3, 3, False, 3)
    assert answer.pools["negative"].fallback


def test_reliability_adds_its_bonus_only_to_unreliable_types() -> None:
    entries = [entry(n, failure_type="Syntax" if n < 2 else "Result Mismatch", new_sql=f"SELECT {n}") for n in range(6)]
    store = filled(entries)
    hard = store.retrieve(query(failure_type=FailureType.SYNTAX), STRATEGIES["merit_reliability"]).pools["positive"]
    assert hard.fallback  # two of the type are not enough
    for candidate in hard.candidates:  # and the fallback has no bonus
        assert candidate.final == pytest.approx(0.75 * candidate.dense + 0.25 * candidate.bm25)
    soft = store.retrieve(query(failure_type=FailureType.RESULT_MISMATCH), STRATEGIES["merit_reliability"])
    for candidate in soft.pools["positive"].candidates:
        plain = 0.75 * candidate.dense + 0.25 * candidate.bm25
        assert candidate.final == pytest.approx(plain + (0.1 if candidate.type_match else 0))
    assert not soft.pools["positive"].fallback


def test_a_channel_that_is_off_scores_nothing() -> None:
    store = filled(many(20))
    for name, off in (("no_dense", "dense"), ("no_bm25", "bm25")):
        pool = store.retrieve(query(), STRATEGIES[name]).pools["positive"]
        assert {getattr(candidate, off) for candidate in pool.candidates} == {0.0}
        assert {getattr(candidate, f"{off}_raw") for candidate in pool.candidates} == {0.0}
        assert max(candidate.final for candidate in pool.candidates) == 1.0


def test_random_choice_follows_the_recipe_and_has_no_scores() -> None:
    store = filled([entry(n) for n in range(5)])
    answer = store.retrieve(query(iteration=3), STRATEGIES["random_same_type"])
    ids = sorted(entry(n).id for n in range(5))
    random.Random(int(hashlib.sha256(b"42|asked|3|positive").hexdigest()[:16], 16)).shuffle(ids)
    assert [view.id for view in answer.positive] == ids[:3]
    assert {candidate.final for candidate in answer.pools["positive"].candidates} == {0.0}


def test_big_pools_give_what_computing_everything_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way through a float32 product must never change an answer, ties and flat pools included."""
    entries = [
        entry(n, failed_sql="SELECT x", new_sql=f"SELECT {n % 700}", question=f"{n % 11} {n % 7}") for n in range(1200)
    ]
    store = filled(entries, dimension=12)
    for strategy in (STRATEGIES["merit"], STRATEGIES["no_bm25"], STRATEGIES["merit_reliability"]):
        for number in range(4):
            asked = query(question=f"{number} {number + 3}", sql=f"SELECT {number}")
            short = store.retrieve(asked, strategy)
            with monkeypatch.context() as patched:
                patched.setattr(ranking, "SMALL", 10**9)
                patched.setattr(search, "SHOWN", 10**9)
                whole = store.retrieve(asked, strategy)
            assert short.positive == whole.positive
            assert isinstance(whole.pools["positive"].candidates, tuple)
            assert short.pools["positive"].count == 700
            assert short.pools["positive"].candidates[:50] == whole.pools["positive"].candidates[:50]
            assert short == whole


def test_candidates_of_a_big_pool_are_a_sequence_and_a_trace_keeps_fifty() -> None:
    store = filled([entry(n) for n in range(120)])
    answer = store.retrieve(query(), STRATEGIES["merit"])
    candidates = answer.pools["positive"].candidates
    assert len(candidates) == len(list(candidates)) == 120
    assert candidates[-1] == list(candidates)[119]
    assert candidates[48:52] == tuple(candidates)[48:52]
    assert pickle.loads(pickle.dumps(answer)) == answer
    kept = answer.capped()
    assert kept.pools["positive"].candidates == tuple(candidates)[:50]
    assert kept.pools["positive"].count == 120
    store.finalise(entry(500))
    assert len(tuple(candidates)) == 120  # what came later does not change an answer


def test_a_strategy_without_memory_recalls_nothing() -> None:
    store = filled([entry(0)])
    asked = store.encoder.calls  # type: ignore[attr-defined]
    assert store.retrieve(query(), STRATEGIES["iterative"]) == retrieval.Retrieval()
    assert store.encoder.calls == asked  # type: ignore[attr-defined]
