"""What moved between two rankings, and what broke a tie: by hand."""

from __future__ import annotations

import dataclasses

import pytest

from merit.memory.comparison import Change, Decision, decided_by, moves, same
from merit.memory.entry import EntryView
from merit.memory.retrieval import SHOWN, Candidate, Pool, Retrieval
from tests.memory.encoders import entry


def candidate(name: str, final: float = 0.5, dense: float = 0.5, bm25: float = 0.5, typed: bool = True) -> Candidate:
    return Candidate(name, dense, bm25, typed, final, dense, bm25)


def view(number: int) -> EntryView:
    return EntryView.from_json(entry(number).to_json())


ENTRIES = {view(number).id: view(number) for number in range(4)}
A, B, C, D = ENTRIES


def ranking(*order: str, taken: int = 2) -> Retrieval:
    """One pool in this order, the first ones taken."""
    pool = Pool(4, 4, False, len(order), tuple(candidate(name) for name in order))
    return Retrieval(tuple(ENTRIES[name] for name in order[:taken]), (), {"positive": pool})


def test_who_came_who_went_who_rose_and_fell() -> None:
    found = moves(ranking(A, B, C), ranking(D, A, B))
    assert {name: move.change for name, move in found.items()} == {
        D: Change.ENTERED,
        A: Change.FELL,
        B: Change.LEFT,
        C: Change.FELL,
    }
    assert (found[D].before, found[D].after, found[C].before, found[C].after) == (None, 1, 3, None)
    assert list(found) == [D, A, B, C]
    assert moves(ranking(A, B, C), ranking(A, C, B, taken=1))[C].change is Change.ROSE
    assert {move.change for move in moves(ranking(A, B), ranking(A, B)).values()} == {Change.STAYED}


def test_places_end_where_a_trace_ends() -> None:
    """A live ranking holds all candidates, a trace the first 50: no one may seem to have come from nowhere."""
    names = [f"{number:03}" for number in range(SHOWN + 5)]
    long = Retrieval(pools={"all": Pool(55, 55, False, 55, tuple(candidate(name) for name in names))})
    found = moves(long.capped(), long)
    assert len(found) == SHOWN
    assert {move.change for move in found.values()} == {Change.STAYED}


def test_the_same_ranking_is_the_same_to_the_ninth_decimal() -> None:
    assert same(ranking(A, B), ranking(A, B))
    assert not same(ranking(A, B), ranking(B, A))
    assert not same(ranking(A, B), ranking(A, B, taken=1))
    pool = Pool(2, 2, False, 1, (candidate(A, final=0.5 + 4e-10),))
    near = Retrieval(pools={"all": pool})
    assert same(near, Retrieval(pools={"all": dataclasses.replace(pool, candidates=(candidate(A),))}))
    assert not same(near, Retrieval(pools={"all": dataclasses.replace(pool, legal=3)}))


@pytest.mark.parametrize(
    ("worse", "decision"),
    [
        (candidate("b", final=0.4), Decision.FINAL),
        (candidate("b", dense=0.4), Decision.DENSE),
        (candidate("b", bm25=0.4), Decision.BM25),
        (candidate("b", typed=False), Decision.TYPE),
        (candidate("b"), Decision.ID),
        (candidate("b", final=0.5 - 4e-13), Decision.ID),  # equal in 12 decimals
    ],
)
def test_what_put_the_better_one_first(worse: Candidate, decision: Decision) -> None:
    assert decided_by(candidate("a"), worse) is decision
