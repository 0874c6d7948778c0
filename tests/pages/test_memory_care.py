"""Care on the Memory page: forget and undo, states, files that come and go, space; broken files change nothing."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from merit.memory import backup
from merit.memory.store import MemoryStore
from merit.ui import carrying
from merit.ui.state import Key
from tests.pages.test_memory import FakeLoading, fine, loaded, made, opened, questions, remember, store, words

__all__ = ["loaded", "store"]  # fixtures


@pytest.fixture(autouse=True)
def no_work_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carrying, "_RUNNING", carrying.jobs.Registry())


def until(at: AppTest, said: str, seconds: float = 30) -> AppTest:
    """Run the page again until it says something."""
    deadline = time.monotonic() + seconds
    while said not in words(at) and time.monotonic() < deadline:
        time.sleep(0.1)
        fine(at.run())
    assert said in words(at), words(at)
    return at


def bring(at: AppTest, name: str, data: bytes) -> AppTest:
    at.file_uploader(key=f"{Key.BRING}-{at.session_state[Key.BRING_TURN]}").upload(name, data)
    return fine(at.run())


def care() -> AppTest:
    return opened(section="Care")


# forgetting -----------------------------------------------------------------------------------------------


def forget(at: AppTest, store: MemoryStore) -> AppTest:
    at.session_state[Key.ENTRY_TABS] = "Forget"
    fine(at.run())
    assert at.button(key=Key.FORGET).disabled, "everybody's memory: the person has to say so first"
    at.checkbox[-1].check()
    fine(at.run())
    return fine(at.button(key=Key.FORGET).click().run())


def test_an_entry_is_forgotten_and_brought_back(store: MemoryStore) -> None:
    remember(store, made(0), made(1))
    at = forget(opened(entry=store.entries()[0].id), store)
    assert questions(at) == ["Which reader has number 1?"]
    assert "Forgotten: “Which reader has number 0?” with 1 observation." in words(at)
    fine(at.button(key=f"{Key.UNFORGET}-yes-0").click().run())
    assert sorted(questions(at)) == ["Which reader has number 0?", "Which reader has number 1?"]
    assert "It is back" in words(at)
    assert "Forgotten:" not in words(at)


def test_what_is_made_final_and_what_another_visit_forgot_cannot_be_undone(store: MemoryStore) -> None:
    remember(store, made(0), made(1))
    at = forget(opened(entry=store.entries()[0].id), store)
    assert "Forgotten:" not in words(opened())
    fine(at.button(key=f"{Key.UNFORGET}-no-0").click().run())
    assert "Forgotten:" not in words(at)
    assert store.counts().observations == 1


# states ---------------------------------------------------------------------------------------------------


def test_a_state_is_tagged_and_gone_back_to(store: MemoryStore) -> None:
    remember(store, made(0))
    at = care()
    at.text_input(key=Key.TAG).set_value("monday")
    at.button[[button.label for button in at.button].index("Tag this state")].click()
    fine(at.run())
    assert "The state is tagged" in words(at)
    assert store.tags() == ("monday",)
    at.text_input(key=Key.TAG).set_value("monday")
    at.button[[button.label for button in at.button].index("Tag this state")].click()
    assert "There is a state called “monday” already" in words(fine(at.run()))
    remember(store, made(1))
    fine(at.run())
    assert at.button(key=Key.GO_BACK_SURE).disabled
    at.checkbox(key=f"{Key.GO_BACK}-everybody").check()
    fine(at.run())
    fine(at.button(key=Key.GO_BACK_SURE).click().run())
    assert "The memory is as it was at “monday”" in words(at)
    assert store.counts().observations == 1
    assert store.tags() == ("monday", "before going back to monday")
    at.checkbox(key=f"{Key.UNTAG}-everybody").check()
    fine(at.run())
    fine(at.button(key=Key.UNTAG_SURE).click().run())
    assert len(store.tags()) == 1


def test_compaction_says_what_it_freed(store: MemoryStore) -> None:
    remember(store, made(0), made(1))
    store.retract("e1")
    at = care()
    fine(at.button(key=Key.COMPACT).click().run())
    assert "1 observation that nobody could see again erased. On the disk:" in words(at)


# files ----------------------------------------------------------------------------------------------------


def test_an_export_goes_through_the_page_and_comes_back_the_same(store: MemoryStore, tmp_path: Path) -> None:
    remember(store, made(0), made(1, polarity="negative", outcome="EXECUTION_ERROR"), made(2))
    packed = carrying.exported(store)
    assert sorted(zipfile.ZipFile(io.BytesIO(packed)).namelist()) == ["negative.jsonl", "positive.jsonl"]
    before = store.entries()
    store.delete_stream()
    at = bring(care(), "my export.zip", packed)
    until(at, "3 observations of 3 entries in the file")
    assert "3 observations would be new here" in words(at)
    at.checkbox(key=Key.BRING_SURE).check()
    fine(at.run())
    fine(at.button(key=Key.BRING_AGREE).click().run())
    until(at, "3 observations taken in")
    assert [(view.id, view.entry()) for view in store.entries()] == [(view.id, view.entry()) for view in before]
    assert carrying.exported(store)  # and it can be exported again
    again = bring(at, "my export.zip", packed)
    until(again, "0 observations would be new here")
    fine(again.button(key=Key.BRING_LEAVE).click().run())
    assert "in the file" not in words(again)


GOOD = json.dumps(made(7).to_json())


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        (
            "notes.jsonl",
            f"{GOOD}\n{{broken\n".encode(),
            "Line 2 of notes.jsonl cannot be imported: it is no valid JSON",
        ),
        ("old.jsonl", json.dumps(made(7).to_json() | {"format_version": 2}).encode(), "memory format 2"),
        ("wide.jsonl", GOOD.encode("utf-16"), "UTF-16; save the file as UTF-8"),
        ("negative.jsonl", GOOD.encode(), "Line 1 of negative.jsonl cannot be imported: the entry is positive"),
        ("photo.zip", b"PK\x03\x04 no zip at all", "Line 1 of photo.zip cannot be imported: it is no"),
        ("far.jsonl", json.dumps(made(7).to_json() | {"position": 2**53}).encode(), "its position is not between"),
        ("<b>x</b>.jsonl", b"[]", "Line 1 of &lt;b&gt;x&lt;/b&gt;.jsonl cannot be imported"),
    ],
)
def test_a_broken_file_names_its_line_and_changes_nothing(
    store: MemoryStore, name: str, data: bytes, says: str
) -> None:
    remember(store, made(0))
    at = until(bring(care(), name, data), says)
    assert "Nothing was imported." in words(at)
    assert store.counts().observations == 1
    fine(bring(at, "good.jsonl", GOOD.encode()))
    until(at, "1 observation would be new here")


def test_an_export_of_another_encoder_is_told_and_taken(store: MemoryStore) -> None:
    data = json.dumps(made(7).to_json() | {"encoder_id": "another"}).encode()
    at = until(bring(care(), "x.jsonl", data), "was written with the encoder another; vectors are computed anew")
    at.checkbox(key=Key.BRING_SURE).check()
    fine(at.run())
    fine(at.button(key=Key.BRING_AGREE).click().run())
    until(at, "1 observation taken in")


def test_a_backup_of_all_that_the_owner_may_see_is_restored(store: MemoryStore, loaded: FakeLoading) -> None:
    remember(store, made(0), made(1))
    into = carrying.stores("0" * 32, loaded)  # type: ignore[arg-type]
    assert list(into) == ["shared"], "no upload, no private memory"
    packed = backup.packed(into | {"private": MemoryStore.open("memory://", loaded.encoder)})  # type: ignore[arg-type]
    store.retract("e1")
    at = until(bring(care(), "b.zip", packed), "the shared memory: 2 observations")
    assert "your private memory: 0 observations, which is left out" in words(at)
    at.checkbox(key=Key.BRING_SURE).check()
    fine(at.run())
    fine(at.button(key=Key.BRING_AGREE).click().run())
    until(at, "Restored. The shared memory: 2 observations.")
    assert store.counts().observations == 2
    assert store.tags()[0].startswith("before restoring the backup of ")


def test_a_full_disk_while_a_file_is_kept_says_so(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(carrying.shutil, "copyfileobj", full)
    at = bring(care(), "x.jsonl", GOOD.encode())
    assert "x.jsonl could not be kept for checking: No space left on device. Nothing was taken in." in words(at)
