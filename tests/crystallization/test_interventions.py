"""Mispairing keeps everything but the pairs; draws are deterministic, keep order and are nested."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import HashEncoder

from merit.crystallization.bank import Banks, Lookup, Vectors
from merit.crystallization.cards import write
from merit.crystallization.episodes import Episode, Try
from merit.crystallization.interventions import count_by_database, derangement, drawn, fraction, permuted


def episode(number: int, database: str, sql: str) -> Episode:
    tries = (Try("SELECT wrong"), Try(sql, correct=True))
    return Episode(f"question number {number}", "", f"q{number}", database, "T3", tries, 1)


statements = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["s1", "s2", "s3", "s4"])), max_size=12)


@given(statements, st.integers(0, 5))
def test_a_permutation_keeps_multiset_count_and_order_and_nobody_its_own(
    drawn_statements: list[tuple[str, str]], seed: int
) -> None:
    episodes = [episode(n, database, sql) for n, (database, sql) in enumerate(drawn_statements)]
    found = permuted(episodes, seed)
    assert [e.id for e in found.episodes] == [e.id for e in episodes]
    assert [e.question for e in found.episodes] == [e.question for e in episodes]
    assert permuted(episodes, seed) == found
    left = 0
    for database in "ab":
        before = [e.final_sql for e in episodes if e.database_id == database]
        after = [e.final_sql for e in found.episodes if e.database_id == database]
        assert Counter(before) == Counter(after)
        most = max(Counter(before).values(), default=0)
        kept = sum(one == other for one, other in zip(before, after, strict=True))
        assert kept == max(0, 2 * most - len(before))
        left += kept
    assert found.left == left


def test_retrieval_order_and_scores_do_not_see_the_permutation() -> None:
    episodes = [episode(n, "a", f"SELECT {n}") for n in range(6)]
    banks = [
        Banks(tuple(write(e, "W0") for e in given), {}, Vectors(HashEncoder()))
        for given in (episodes, permuted(episodes, 1).episodes)
    ]
    hits = [bank.retrieve("question number 3", "a/x", "a", Lookup(k=6)) for bank in banks]
    assert [(h.card.id, h.score) for h in hits[0]] == [(h.card.id, h.score) for h in hits[1]]
    assert all(one.card.sql != other.card.sql for one, other in zip(*hits, strict=True))
    assert sum(len(c.text) for c in banks[0].cards) == sum(len(c.text) for c in banks[1].cards)


@given(st.lists(st.integers(0, 3), max_size=9))
def test_a_derangement_is_a_permutation(items: list[int]) -> None:
    givers, _ = derangement(items, 0)
    assert sorted(givers) == list(range(len(items)))


def test_a_bank_of_one_is_left_and_counted() -> None:
    found = permuted([episode(1, "a", "s1"), episode(2, "b", "s1"), episode(3, "b", "s2")], 0)
    assert [e.final_sql for e in found.episodes] == ["s1", "s2", "s1"]
    assert found.left == 1


def test_matched_draws_are_independent_exact_and_in_order() -> None:
    episodes = [episode(n, "ab"[n % 2], f"s{n}") for n in range(40)]
    one, two = (drawn(episodes, {"a": 7, "b": 99}, draw=number, seed=42) for number in (1, 2))
    for chosen in (one, two):
        assert count_by_database(chosen) == {"a": 7, "b": 20}
        assert list(chosen) == [e for e in episodes if e in chosen]
    assert one != two
    assert one == drawn(episodes, {"a": 7, "b": 99}, draw=1, seed=42)
    assert drawn(episodes, {}, draw=1, seed=42) == ()


def test_a_quarter_is_part_of_a_half() -> None:
    episodes = [episode(n, "a", f"s{n}") for n in range(10)]
    quarter, half, whole = (fraction(episodes, share, seed=1) for share in (0.25, 0.5, 1))
    assert (len(quarter), len(half), list(whole)) == (3, 5, episodes)
    assert set(quarter) < set(half)
    for share in (0, 1.5):
        with pytest.raises(ValueError):
            fraction(episodes, share, seed=1)
