"""Forgetting all that was learnt on one database, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from merit.memory.store import MemoryStore
from tests.memory.encoders import HashEncoder, entry


def on_disk(path: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in path.rglob("*") if file.is_file())


def test_observations_of_one_database_go_and_those_of_the_same_entry_stay(tmp_path: Path) -> None:
    """An entry can be taught by two databases: forgetting one upload must not cost what the other taught."""
    store = MemoryStore.open(tmp_path, HashEncoder())
    kept = store.finalise(entry(0, database_id="kept", failed_sql="SELECT a FROM t", new_sql="SELECT b FROM t"))
    secret = entry(1, database_id="gone", failed_sql="SELECT a FROM t", new_sql="SELECT b FROM t", question="zanzibar?")
    gone = store.finalise(secret)
    assert kept.id == gone.id
    assert store.counts().observations == 2
    assert on_disk(tmp_path, "zanzibar")
    assert store.forget_database("gone") == 1
    assert [view.successes for view in store.entries()] == [1]
    assert store.counts(databases=["gone"]).observations == 0
    assert store.counts(databases=["kept"]).observations == 1
    assert not on_disk(tmp_path, "zanzibar"), "it leaves the disk, old versions included"
    assert store.forget_database("gone") == 0
    assert store.forget_database("never seen") == 0


@pytest.mark.parametrize("reopened", [False, True])
def test_what_was_forgotten_does_not_come_back(tmp_path: Path, reopened: bool) -> None:
    store = MemoryStore.open(tmp_path, HashEncoder())
    store.finalise(entry(0, database_id="gone"))
    store.tag("before")
    other = MemoryStore.open(tmp_path, HashEncoder())
    assert other.counts().observations == 1
    store.forget_database("gone")
    if reopened:
        store = other = MemoryStore.open(tmp_path, HashEncoder())
    for seen in (store, other):
        seen.finalise(entry(0, database_id="gone"))
        assert seen.counts().observations == 0
    store.restore("before")
    assert store.counts().observations == 0
    store.finalise(entry(7, database_id="gone"))
    assert store.counts().observations == 1, "a new episode may find the same out again"


def test_positions_that_were_given_stay_given(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path, HashEncoder())
    store.finalise(entry(9, database_id="gone"))
    store.forget_database("gone")
    assert store.next_position() == 10
    assert MemoryStore.open(tmp_path, HashEncoder()).next_position() == 11


def test_other_streams_are_left_alone(tmp_path: Path) -> None:
    mine = MemoryStore.open(tmp_path, HashEncoder(), "private:a")
    yours = MemoryStore.open(tmp_path, HashEncoder(), "private:b")
    for store in (mine, yours):
        store.finalise(entry(0, database_id="shop"))
    assert mine.forget_database("shop") == 1
    assert yours.counts().observations == 1
