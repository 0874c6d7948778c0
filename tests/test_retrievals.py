"""A past retrieval is read back from a recorded episode, and asking again gives the same answer."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from support import HashEncoder, ScriptedModel, answer, build_database

from merit import live, retrievals
from merit.database import Database
from merit.episode import FailureType, Outcome
from merit.errors import BadInput
from merit.events import EpisodeStarted, Retrieved
from merit.memory import comparison
from merit.memory.store import MemoryStore
from merit.strategy import STRATEGIES
from merit.verification import AssertionVerifier

WRONG = ("SELECT nme FROM reader", "SELECT count(*) FROM reader WHERE", "SELECT 7")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database.open(build_database(tmp_path / "shop.sqlite", "CREATE TABLE reader (name)"))


def asked(database: Database, store: MemoryStore, text: str, owner: str = "me") -> str:
    """Ask, fail in two ways, repair; the id of the episode."""
    question = live.make_question(text, database.id)
    request = live.Request(question, database, STRATEGIES["same_database"], AssertionVerifier(value=7), owner=owner)
    events = list(live.ask(request, ScriptedModel(*map(answer, WRONG)), store))
    started = events[0]
    assert isinstance(started, EpisodeStarted)
    return started.episode_id


def test_the_query_of_each_repair_is_read_back_and_asking_again_gives_the_same(database: Database) -> None:
    store = MemoryStore.open("memory://", HashEncoder())
    asked(database, store, "How many readers are there?")
    episode = asked(database, store, "How many readers have we?")
    first, second = retrievals.of_episode(episode, "me")
    assert first.query.sql == WRONG[0]
    assert (first.query.failure_type, first.status) == (FailureType.SCHEMA_LINKING, Outcome.EXECUTION_ERROR)
    assert first.message == "no such column: nme"
    assert second.query.iteration == 2
    assert second.query.failure_type is FailureType.SYNTAX
    assert (second.query.position, second.encoder_id) == (1, "hash-encoder")
    assert first.strategy == STRATEGIES["same_database"]
    for past in (first, second):
        assert past.retrieval.positive
        assert comparison.same(past.retrieval, store.retrieve(past.query, past.strategy))
    other = dataclasses.replace(second.strategy, k_positive=0)
    assert not comparison.same(second.retrieval, store.retrieve(second.query, other))


def test_only_its_owner_reads_it_and_one_that_is_gone_is_said_to_be(database: Database) -> None:
    store = MemoryStore.open("memory://", HashEncoder())
    episode = asked(database, store, "How many?")
    assert retrievals.of_episode(episode, "me")
    for id, owner in ((episode, "you"), ("0" * 32, "me"), ("../x", "me")):
        with pytest.raises(BadInput):
            retrievals.of_episode(id, owner)
    live.bundle_path(episode).unlink()
    with pytest.raises(BadInput, match="not on this machine"):
        retrievals.of_episode(episode, "me")


def test_an_episode_that_never_asked_memory_has_none(database: Database) -> None:
    assert retrievals.of([]) == ()
    store = MemoryStore.open("memory://", HashEncoder())
    events = live.load(asked(database, store, "How many?"), "me")
    assert retrievals.of(event for event in events if not isinstance(event, Retrieved)) == ()
