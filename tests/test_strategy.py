"""The table of strategies: each row differs from MERIT Full exactly as spec §4 says."""

from __future__ import annotations

import dataclasses

import pytest

from merit.episode import FailureType, Polarity
from merit.errors import BadInput, MeritError, UnknownStrategy
from merit.strategy import STRATEGIES, get

NO_MEMORY = {"uses_memory": False, "stores_positive": False, "stores_negative": False}

# What differs from MERIT Full, read off spec §4 by hand.
DIFFERS = {
    "iterative": NO_MEMORY,
    "merit": {},
    "merit_reliability": {"type_filter": "reliability", "type_bonus": 0.10},
    "dynamic_rag": {"pooled": True, "type_filter": "none", "stores_negative": False},
    "reflexion": {**NO_MEMORY, "reflects": True},
    "no_negative": {"k_negative": 0, "stores_negative": False},
    "no_type_filter": {"type_filter": "none"},
    "random_same_type": {"selection": "random"},
    "no_dense": {"dense_weight": 0.0, "bm25_weight": 1.0},
    "no_bm25": {"dense_weight": 1.0, "bm25_weight": 0.0},
    "cross_database": {"scope": "other"},
    "same_database": {"scope": "same"},
    "zero_shot": {**NO_MEMORY, "max_repairs": 0},
    "static_examples": {**NO_MEMORY, "static_examples": True},
    "transductive": {"causal": "transductive", "own_question": True},
    "leaky": {"causal": "leaky", "own_question": True},
}

FULL = {
    "max_repairs": None, "uses_memory": True, "stores_positive": True, "stores_negative": True, "keep_both": False,
    "scope": "any", "k_positive": 3, "k_negative": 1, "pooled": False, "k_pooled": 4, "type_filter": "hard",
    "min_typed": 3, "hard_types": {"Syntax", "Schema Linking", "Execution"}, "type_bonus": 0.0,
    "dense_weight": 0.75, "bm25_weight": 0.25, "flat_pool_score": 0.0, "selection": "ranked", "selection_seed": 42,
    "causal": "causal", "own_question": False, "reflects": False, "static_examples": False,
    "regime": "denotation_confirmed",
}  # fmt: skip


def test_the_table_has_exactly_the_strategies_of_the_spec_in_its_order() -> None:
    assert list(STRATEGIES) == list(DIFFERS)
    assert len(STRATEGIES) == 16


@pytest.mark.parametrize("name", DIFFERS)
def test_each_row_differs_from_full_merit_as_stated_and_in_nothing_else(name: str) -> None:
    strategy = STRATEGIES[name]
    fields = {field.name: getattr(strategy, field.name) for field in dataclasses.fields(strategy)}
    assert fields.pop("name") == name
    assert fields.pop("title")
    assert fields.pop("description").endswith(".")
    assert fields == {**FULL, **DIFFERS[name]}


def test_titles_tell_the_strategies_apart() -> None:
    assert len({strategy.title for strategy in STRATEGIES.values()}) == len(STRATEGIES)


@pytest.mark.parametrize("look_up", [get, STRATEGIES.__getitem__])
@pytest.mark.parametrize("name", ["MERIT", "", "merit ", "no such"])
def test_an_unknown_name_lists_the_known_ones(look_up, name: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UnknownStrategy) as caught:
        look_up(name)
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, MeritError)
    assert all(known in str(caught.value) for known in STRATEGIES)
    assert repr(name) in str(caught.value)


def test_the_table_is_a_plain_read_only_mapping() -> None:
    assert "merit" in STRATEGIES
    assert "other" not in STRATEGIES
    assert STRATEGIES.get("other") is None
    with pytest.raises(TypeError):
        STRATEGIES["mine"] = STRATEGIES["merit"]  # type: ignore[index]


def test_fields_are_overridden_with_replace_and_strings_become_members() -> None:
    mine = dataclasses.replace(STRATEGIES["merit"], scope="same", k_positive=5)
    assert (mine.scope, mine.k_positive, mine.name) == ("same", 5, "merit")
    assert mine.scope.name == "SAME"
    assert STRATEGIES["merit"].scope == "any"


@pytest.mark.parametrize(
    "change",
    [
        {"scope": "none"},
        {"type_filter": "soft"},
        {"selection": "best"},
        {"causal": "mostly"},
        {"regime": "gold"},
        {"k_positive": -1},
        {"max_repairs": -1},
        {"dense_weight": 0.5},
        {"dense_weight": -0.25, "bm25_weight": 1.25},
        {"own_question": True},
    ],
)
def test_a_strategy_that_cannot_be_is_refused_in_words(change: dict[str, object]) -> None:
    with pytest.raises(BadInput) as caught:
        dataclasses.replace(STRATEGIES["merit"], **change)  # type: ignore[arg-type]
    assert str(caught.value).endswith(".")


def test_what_an_episode_may_leave_behind() -> None:
    rag = STRATEGIES["dynamic_rag"]
    assert (rag.stores(Polarity.POSITIVE), rag.stores(Polarity.NEGATIVE)) == (True, False)
    assert dataclasses.replace(rag, keep_both=True).stores(Polarity.NEGATIVE)
    assert not STRATEGIES["iterative"].stores(Polarity.POSITIVE)
    assert not STRATEGIES["iterative"].stores(Polarity.NEGATIVE)


def test_the_budget_of_repairs() -> None:
    assert STRATEGIES["zero_shot"].repairs(7) == 0
    assert STRATEGIES["merit"].repairs(7) == 7
    assert dataclasses.replace(STRATEGIES["merit"], max_repairs=3).repairs(7) == 3


def test_the_hard_types_are_failure_types() -> None:
    assert all(isinstance(kind, FailureType) for kind in STRATEGIES["merit"].hard_types)
