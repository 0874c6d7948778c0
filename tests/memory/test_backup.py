"""A backup becomes the memory it was made of, wherever it is restored; a wrong one changes nothing."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merit.errors import BadInput
from merit.memory import backup, overview
from merit.memory.store import MemoryStore
from tests.memory.encoders import HashEncoder, entry

TEXT = st.text(st.characters(codec=None, exclude_categories=[]), max_size=6)
STEP = st.one_of(
    st.tuples(st.just("finalise"), st.integers(0, 9), st.sampled_from(["positive", "negative"]), TEXT),
    st.tuples(st.just("position")),
    st.tuples(st.just("retract"), st.integers(0, 9)),
    st.tuples(st.just("tag"), st.sampled_from("ab")),
    st.tuples(st.just("untag"), st.sampled_from("ab")),
    st.tuples(st.just("restore"), st.sampled_from("ab")),
    st.tuples(st.just("forget"), st.integers(0, 2), st.booleans()),
)


def fresh(dimension: int = 8, name: str = "hash") -> MemoryStore:
    return MemoryStore.open("memory://", HashEncoder(dimension, name))


def live(store: MemoryStore, steps: list[Any]) -> None:
    """Let a memory live through some steps; those that cannot be taken are left out."""
    for kind, *facts in steps:
        if kind == "finalise":
            number, polarity, text = facts
            sql = {"failed_sql": "SELECT x", "new_sql": f"SELECT {number % 3}"}
            store.finalise(entry(number, polarity=polarity, question=text, schema=text, **sql))
        elif kind == "position":
            store.next_position()
        elif kind == "retract":
            store.retract(f"e{facts[0]}")
        elif kind == "forget":
            sql = {"failed_sql": "SELECT x", "new_sql": f"SELECT {facts[0]}"}
            forgotten = store.forget_for_now(entry(0, **sql).id)
            if facts[1]:
                store.undo_forget(forgotten)
        elif kind == "tag" or facts[0] in store.tags():
            getattr(store, kind)(facts[0])


def seen(store: MemoryStore, tags: tuple[str, ...]) -> list[Any]:
    """All that can be seen: now, at each position, and in each tagged state."""
    found: list[Any] = [store.upcoming(), [store.entries(before=t) for t in (None, *range(0, 12, 2))]]
    store.tag("now")
    for name in tags:
        store.restore(name)
        found.append((name, store.entries()))
    store.restore("now")
    return found


def through(store: MemoryStore, folder: Path, into: MemoryStore) -> Any:
    path = folder / "backup.zip"
    backup.save(path, {"shared": store})
    return into.restore_backup(backup.load(path).streams["shared"], "before")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, max_size=14))
def test_an_empty_memory_becomes_the_one_of_the_backup(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    store, copy = fresh(), fresh(12, "another encoder")
    live(store, steps)
    tags, states = store.tags(), store.look(overview.states)
    done = through(store, tmp_path_factory.mktemp("backup"), copy)
    assert (done.left_out, done.before) == (0, None)
    assert copy.tags() == tags
    assert [(one.name, one.counts) for one in copy.look(overview.states)] == [(one.name, one.counts) for one in states]
    assert seen(copy, tags) == seen(store, tags)
    for number in range(3):  # what was forgotten there is forgotten here
        assert copy.finalise(entry(number)) == store.finalise(entry(number))


def test_what_came_later_is_no_longer_seen_and_one_can_come_back_to_it(tmp_path: Path) -> None:
    store = fresh()
    store.finalise_many([entry(0), entry(1)])
    store.tag("one")
    backup.save(tmp_path / "b.zip", {"shared": store})
    facts = backup.load(tmp_path / "b.zip").streams["shared"]
    store.retract("e1")
    store.finalise(entry(7))
    done = store.restore_backup(facts, "before")
    assert (done.observations, done.left_out, done.before) == (2, 0, "before")
    assert [view.episode_id for view in store.entries()] == ["e0", "e1"]
    assert store.upcoming() == 8, "positions go on counting"
    store.restore("before")
    assert [view.episode_id for view in store.entries()] == ["e0", "e7"]
    store.restore("one")
    assert [view.episode_id for view in store.entries()] == ["e0", "e1"]
    assert store.restore_backup(facts, "before").before == "before (2)"


def test_what_was_forgotten_since_stays_forgotten_and_what_others_learnt_of_it_stays(tmp_path: Path) -> None:
    """The mark of a forgotten entry in a backup once took along what a later episode had found out again."""
    store = fresh()
    store.finalise_many([entry(0), entry(1), entry(2)])
    store.forget(entry(2).id)
    backup.save(tmp_path / "b.zip", {"shared": store})
    store.forget(entry(1).id)
    again = store.finalise(entry(9, **{name: getattr(entry(2), name) for name in ("failed_sql", "new_sql")}))
    assert again.id == entry(2).id
    done = store.restore_backup(backup.load(tmp_path / "b.zip").streams["shared"], "before")
    assert (done.observations, done.left_out) == (1, 1)
    assert [view.episode_id for view in store.entries()] == ["e0"]
    store.restore("before")
    assert [view.episode_id for view in store.entries()] == ["e0", "e9"]


def test_a_backup_holds_several_streams_and_says_nothing_of_whose_they_are(tmp_path: Path) -> None:
    shared = MemoryStore.open(tmp_path / "m", HashEncoder(8))
    private = MemoryStore.open(tmp_path / "m", HashEncoder(8), "private:0123secret")
    shared.finalise(entry(0))
    private.finalise_many([entry(1), entry(2)])
    packed = backup.packed({"shared": shared, "private": private})
    (tmp_path / "b.zip").write_bytes(packed)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert not any(b"secret" in archive.read(name) for name in archive.namelist())
    found = backup.load(tmp_path / "b.zip")
    assert found.manifest.streams == {"shared": 1, "private": 2}
    assert found.manifest.encoder_id == "hash"
    assert not list(tmp_path.glob("*.part"))


def test_progress_is_told_and_can_stop_it_before_anything_is_written(tmp_path: Path) -> None:
    store, copy, told = fresh(), fresh(), []
    store.finalise_many(entry(number) for number in range(200))
    backup.save(tmp_path / "b.zip", {"shared": store})
    facts = backup.load(tmp_path / "b.zip").streams["shared"]

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if done:
            raise BadInput("stopped")

    with pytest.raises(BadInput, match="stopped"):
        copy.restore_backup(facts, "before", stop)
    assert told == [(0, 200), (64, 200)]
    assert copy.counts().observations == 0


def changed(tmp_path: Path, line: Any = None, manifest: Any = None, drop: bool = False) -> Path:
    """A backup of one entry with one line more, a changed manifest, or no file of lines."""
    store, path = fresh(), tmp_path / "b.zip"
    store.finalise(entry(0))
    whole = zipfile.ZipFile(io.BytesIO(backup.packed({"shared": store})))
    with zipfile.ZipFile(path, "w") as archive:
        lines = whole.read("shared.jsonl") + (line.encode() + b"\n" if line else b"")
        if not drop:
            archive.writestr("shared.jsonl", lines)
        archive.writestr("manifest.json", json.dumps(json.loads(whole.read("manifest.json")) | (manifest or {})))
    return path


SEEN = {"kind": "observation", "visible_from": 6, "entry": entry(5).to_json()}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "Line 3 of shared.jsonl cannot be restored: it is no valid JSON"),
        ('{"kind": "drop"}', "restored: Input tag 'drop'"),
        ('{"kind": "retract", "episode": "x\' OR 1"}', "should match pattern"),
        ('{"kind": "tag", "name": ""}', "at least 1 character"),
        ('{"kind": "floor", "floor": 0, "position": 99999999999999}', "less than or equal to"),
        (json.dumps(SEEN | {"visible_from": 5}), "cannot be visible at its own position"),
        (json.dumps(SEEN | {"entry": SEEN["entry"] | {"position": -1}}), "its position is not between 0 and"),
        (json.dumps(SEEN | {"entry": SEEN["entry"] | {"format_version": 2}}), "memory format 2"),
        (json.dumps(SEEN | {"more": 1}), "Extra inputs are not permitted"),
        (json.dumps(SEEN), "observations of shared.jsonl are missing"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        backup.load(changed(tmp_path, line))
    assert says in str(caught.value)
    assert str(caught.value).endswith("Nothing was restored.")


def test_what_is_no_backup_or_of_another_format_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no shared\.jsonl"):
        backup.load(changed(tmp_path, drop=True))
    with pytest.raises(BadInput, match="has backup format 2 of memory format 3; this version reads 1 and 3"):
        backup.load(changed(tmp_path, manifest={"merit_backup": 2}))
    with pytest.raises(BadInput, match="memory format 2"):
        backup.load(changed(tmp_path, manifest={"memory_format": 2}))
    with pytest.raises(BadInput, match="streams"):
        backup.load(changed(tmp_path, manifest={"streams": 3}))
    (tmp_path / "x.zip").write_bytes(b"PK no")
    with pytest.raises(BadInput, match=r"holiday\.zip cannot be unpacked"):
        backup.load(tmp_path / "x.zip", "holiday.zip")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("positive.jsonl", "")
    with pytest.raises(BadInput, match="is no backup of a memory"):
        backup.load(tmp_path / "x.zip")
    with pytest.raises(BadInput, match="There is no backup at"):
        backup.load(tmp_path / "nothing")
    damaged = bytearray(changed(tmp_path).read_bytes())
    damaged[80:90] = b"0123456789"
    (tmp_path / "x.zip").write_bytes(damaged)
    with pytest.raises(BadInput, match="cannot be"):
        backup.load(tmp_path / "x.zip")
