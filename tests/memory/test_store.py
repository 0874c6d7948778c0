"""The store as its callers see it: positions, idempotence, forgetting, tags, streams, odd texts, bad places."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from merit.errors import BadInput, MemoryUnavailable
from merit.memory.retrieval import RetrievalQuery
from merit.memory.store import MemoryStore
from merit.strategy import STRATEGIES
from tests.memory.encoders import HashEncoder, entry


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore.open("memory://", HashEncoder())


def on_disk(path: Path, text: str) -> list[str]:
    """Files below a folder that hold a text."""
    return [str(file) for file in path.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def test_finalise_twice_is_finalise_once(store: MemoryStore) -> None:
    first = store.finalise(entry(3))
    assert store.finalise(entry(3)) == first
    assert store.finalise(entry(3, new_sql="SELECT something_else")) == first  # the episode decides
    assert (first.successes, first.failures, store.counts().observations) == (1, 0, 1)
    assert store.finalise_many([entry(3), entry(4), entry(4), entry(5)])[0] == first
    assert store.counts().observations == 3


def test_visible_from_the_next_position_in_a_stream_with_explicit_positions(store: MemoryStore) -> None:
    view = store.finalise(entry(7))
    assert view.visible_from == 8
    assert store.entries(before=7) == []
    assert store.entries(before=8) == [view]


def test_an_episode_never_sees_what_was_finalised_after_its_start(store: MemoryStore) -> None:
    """Spec §8: position 1 and 2 run side by side; what 1 leaves is for 3, although 1 < 2."""
    assert [store.next_position() for _ in range(3)] == [0, 1, 2]
    view = store.finalise(entry(1))
    assert view.visible_from == 3
    assert store.entries(before=2) == []
    assert store.next_position() == 3
    assert store.entries(before=3) == [view]


def test_next_position_goes_past_the_largest_stored_one(store: MemoryStore) -> None:
    store.finalise(entry(10))
    assert store.next_position() == 11
    assert store.next_position() == 12
    store.finalise(entry(11))
    assert store.next_position() == 13


def test_a_forgotten_entry_leaves_disk_and_never_returns(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path, HashEncoder())
    secret = entry(0, question="Where does Zarathustra live?")
    store.finalise_many([secret, *(entry(n) for n in range(1, 30))])
    store.finalise(entry(31, failed_sql=secret.failed_sql, new_sql=secret.new_sql, question="Who is Zarathustra?"))
    store.tag("before")
    store.export_jsonl(tmp_path / "export")
    assert on_disk(tmp_path / "observations.lance", "Zarathustra")
    assert store.forget(secret.id) == 2
    assert not on_disk(tmp_path / "observations.lance", "Zarathustra")
    assert store.counts().observations == 29
    store.restore("before")
    store.import_jsonl(tmp_path / "export")
    store.finalise(secret)
    assert store.forget(secret.id) == 0
    for one in (store, MemoryStore.open(tmp_path, HashEncoder())):
        assert secret.id not in {view.id for view in one.entries()}
        assert one.counts().observations == 29
    later = entry(40, failed_sql=secret.failed_sql, new_sql=secret.new_sql)
    view = store.finalise(later)
    assert (view.id, view.successes, view.history[0].episode_id) == (secret.id, 1, "e40")
    store.restore("before")
    assert store.counts().observations == 29


def test_what_a_killed_forget_left_on_disk_is_erased_by_the_next_opening(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path, HashEncoder())
    store.finalise_many([entry(0, question="Where does Zarathustra live?"), entry(1)])
    store._log.erase = lambda *args: None  # type: ignore[method-assign]  # the process ends before it erases
    store.forget(store.entries()[0].id)
    assert on_disk(tmp_path, "Zarathustra")
    assert MemoryStore.open(tmp_path, HashEncoder()).counts().observations == 1
    assert not on_disk(tmp_path, "Zarathustra")


def test_retract_takes_back_one_observation(store: MemoryStore) -> None:
    shared = {"failed_sql": "SELECT x", "new_sql": "SELECT y"}
    store.finalise_many([entry(0, **shared), entry(1, **shared)])
    assert store.retract("e1")
    assert not store.retract("e1")
    assert [seen.episode_id for seen in store.entries()[0].history] == ["e0"]
    assert store.finalise(entry(1, **shared)).successes == 2


def test_tag_and_restore(store: MemoryStore) -> None:
    store.finalise(entry(0))
    store.tag('monday\'s "state"')
    store.finalise(entry(1))
    store.retract("e0")
    store.tag("later")
    store.restore('monday\'s "state"')
    assert [view.episode_id for view in store.entries()] == ["e0"]
    store.finalise(entry(2))
    assert [view.episode_id for view in store.entries()] == ["e0", "e2"]
    store.finalise(entry(1))  # a stream that is run again from the tag stores its episodes again
    assert [view.episode_id for view in store.entries()] == ["e0", "e1", "e2"]
    store.restore("later")
    assert [view.episode_id for view in store.entries()] == ["e1"]
    assert store.tags() == ('monday\'s "state"', "later")
    with pytest.raises(BadInput, match=r"no state called 'x'.*later"):
        store.restore("x")
    with pytest.raises(BadInput):
        store.tag("  ")


def test_streams_do_not_see_each_other_and_one_can_be_deleted(tmp_path: Path) -> None:
    live, private = (MemoryStore.open(tmp_path, HashEncoder(), name) for name in ("live", "private:o'x\" OR 1=1"))
    other = MemoryStore.open(tmp_path, HashEncoder(), "private:o'x\" OR 1=1")
    live.finalise(entry(0))
    private.finalise_many([entry(0, question="Zarathustra"), entry(1)])
    assert private.next_position() == 2
    assert [one.counts().observations for one in (live, private, other)] == [1, 2, 2]
    private.delete_stream()
    assert not on_disk(tmp_path, "Zarathustra")
    assert [one.counts().observations for one in (live, private, other)] == [1, 0, 0]
    assert [private.next_position(), other.next_position()] == [0, 1]
    assert live.next_position() == 1
    private.finalise(entry(5))
    assert other.counts().observations == 1


ODD = ["o'brien", 'a" OR 1=1 --', "x' OR '1'='1", "plain", "", "back`tick", "%", "_", "\\", "a\0b", "\ud800", "日本"]


def test_no_id_can_widen_or_break_a_filter(tmp_path: Path) -> None:
    """Filters were SQL text with ids pasted in: one quote broke them, one `OR` matched every row."""
    store = MemoryStore.open(tmp_path, HashEncoder())
    made = [
        entry(n, database_id=odd, question_id=f"q{odd}", episode_id=f"e{odd}", question=odd, new_sql=f"SELECT '{odd}'")
        for n, odd in enumerate(ODD)
    ]
    store.finalise_many(made)
    store.close()
    for odd, one in zip(ODD, made, strict=True):
        assert [view.entry() for view in store.entries(databases=[odd])] == [one]
        assert len(store.entries(exclude_question=f"q{odd}")) == len(ODD) - 1
        asked = RetrievalQuery(odd, odd, odd, "Schema Linking", "asked", odd, 99)  # type: ignore[arg-type]
        assert [view.entry() for view in store.retrieve(asked, STRATEGIES["same_database"]).positive] == [one]
        assert store.retrieve(asked, STRATEGIES["cross_database"]).pools["positive"].legal == len(ODD) - 1
    assert store.forget(made[2].id) == 1
    assert store.retract(f"e{ODD[1]}")
    assert [view.entry() for view in store.entries()] == [made[0], *made[3:]]


def test_a_memory_of_another_encoder_is_refused(tmp_path: Path) -> None:
    MemoryStore.open(tmp_path, HashEncoder(16, "small")).finalise(entry(0))
    for encoder in (HashEncoder(32, "small"), HashEncoder(16, "other")):
        with pytest.raises(MemoryUnavailable, match=r"written with the encoder small \(16 numbers a text\), not with"):
            MemoryStore.open(tmp_path, encoder)
    assert MemoryStore.open(tmp_path, HashEncoder(16, "small")).counts().observations == 1


class Wrong(HashEncoder):
    def encode(self, texts: Sequence[str]) -> Any:
        return (
            np.full((len(texts), self.dimension), np.nan, np.float32)
            if self.id == "nan"
            else super().encode(texts)[:, 1:]
        )


@pytest.mark.parametrize("name", ["nan", "narrow"])
def test_a_wrong_vector_is_never_stored(name: str) -> None:
    store = MemoryStore.open("memory://", Wrong(8, name))
    with pytest.raises(MemoryUnavailable, match="Nothing was stored"):
        store.finalise(entry(0))
    assert store.counts().observations == 0


def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(MemoryUnavailable, match="could not be opened"):
        MemoryStore.open(tmp_path / "file", HashEncoder())


def in_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    head = "import sys\nfrom merit.memory.store import MemoryStore\nfrom merit.errors import MemoryUnavailable\n"
    head += "from tests.memory.encoders import HashEncoder, entry\n"
    command = [sys.executable, "-c", head + textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_disk_full_loses_nothing(tmp_path: Path) -> None:
    """The limit on file size makes the system refuse a write like a full disk does."""
    MemoryStore.open(tmp_path, HashEncoder()).finalise(entry(0))
    done = in_process(
        """
        import resource
        store = MemoryStore.open(sys.argv[1], HashEncoder())
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        try:
            store.finalise(entry(1, question="long " * 5000))
        except MemoryUnavailable as error:
            print(error)
        print(store.counts().observations, len(store.entries()))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(store.finalise(entry(1, question="long " * 5000)).successes)
        """,
        tmp_path,
    )
    sentence, counts, again = done.stdout.splitlines()
    assert "the disk is full. What was stored before is still there." in sentence
    assert (counts, again) == ("1 1", "1")


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX rights")
def test_a_read_only_memory_can_be_read_but_not_written() -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "memory"
        MemoryStore.open(folder, HashEncoder()).finalise(entry(0))
        inside = [folder, *folder.rglob("*")]
        for path in inside:
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = read_and_write(folder)
        for path in inside:
            path.chmod(0o755)
    assert done.stdout.startswith("1\n")
    assert "could not be written: this account lacks the right" in done.stdout


def read_and_write(folder: Path) -> subprocess.CompletedProcess[str]:
    return in_process(
        """
        import os
        store = MemoryStore.open(sys.argv[1], HashEncoder())
        if os.geteuid() == 0:
            os.seteuid(65534)  # root may write anywhere
        print(store.counts().observations)
        try:
            store.finalise(entry(1))
        except MemoryUnavailable as error:
            print(error)
        """,
        folder,
    )


def test_threads_share_a_store(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path, HashEncoder())
    positions: list[int] = []
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                positions.append(store.next_position())
                store.finalise(entry(positions[-1], episode_id=f"{number}-{step}"))
                asked = RetrievalQuery("q", "s", "c", "Schema Linking", "q", "library", 10**6)  # type: ignore[arg-type]
                assert store.retrieve(asked, STRATEGIES["merit"]).positive
        except BaseException as error:  # noqa: BLE001 - told to the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(positions) == list(range(30))
    assert store.counts().observations == 30


def test_stats(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path, HashEncoder())
    store.finalise_many([entry(0), entry(1, polarity="negative")])
    store.tag("now")
    stats = store.stats()
    assert (stats.counts.positive, stats.counts.negative, stats.counts.entries) == (1, 1, 2)
    assert (stats.next_position, stats.tags, stats.rows) == (2, ("now",), 3)
    assert stats.bytes > 0
    assert json.dumps(stats.uri)


def test_compaction_keeps_all_and_a_second_store_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merit.memory.log.FRAGMENTS", 8)
    store, other = (MemoryStore.open(tmp_path, HashEncoder()) for _ in range(2))
    for number in range(12):
        assert store.next_position() == number
        store.finalise(entry(number))
        assert other.counts().observations == number + 1
    for thread in threading.enumerate():
        if thread.name == "memory-compaction":
            thread.join()
    assert store.stats().fragments < 24
    store.compact()
    assert store.stats().fragments == 1
    other.finalise(entry(12))
    fresh = MemoryStore.open(tmp_path, HashEncoder())
    assert fresh.entries() == store.entries() == other.entries()
    assert [view.visible_from for view in fresh.entries()] == [*range(1, 13), 13]
