"""A gallery made from a list: every bundle real and labelled, without gold; names that are no paths; bad lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import HashEncoder, ScriptedModel, answer

from merit import recordings, trace
from merit.database import samples
from merit.errors import BadInput
from merit.events import Retrieved
from merit.recordings import Item

QUESTION = samples.questions("library")[0]
OTHER = samples.questions("library")[1]
BROKEN = "SELECT author.name FROM book"


def item(**changes: object) -> dict[str, object]:
    return {"database": "library", "question_id": QUESTION.question_id, "name": "first-one", **changes}


def listed(tmp_path: Path, *items: object) -> Path:
    file = tmp_path / "list.json"
    file.write_text(json.dumps(list(items)))
    return file


def test_a_list_becomes_a_gallery_whose_later_episodes_recall_the_earlier(tmp_path: Path) -> None:
    file = listed(
        tmp_path,
        item(name="", question_id=OTHER.question_id),
        item(title="A title", shows="What it shows", initial=BROKEN),
    )
    model = ScriptedModel(answer(BROKEN), answer(str(OTHER.gold_sql)), answer(str(QUESTION.gold_sql)))
    out = tmp_path / "out"
    made = list(recordings.make(recordings.read_list(file), model, HashEncoder(), out))
    assert [header is None for _, header in made] == [True, False]
    (found,) = recordings.gallery(out)
    assert (found.name, found.header.title, found.header.shows) == ("first-one", "A title", "What it shows")
    assert found.header.first_answer_given
    assert found.header.owner_key == ""
    assert found.header.memory_version == "a memory of this list alone@1"
    bundle = recordings.load("first-one", out)
    recalled = next(event for event in bundle.events if isinstance(event, Retrieved))
    assert len(recalled.retrieval.positive) == 1
    assert b"gold" not in (out / "first-one.jsonl").read_bytes().lower()


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([item(name="../../etc/passwd")], "no name for a recording"),
        ([item(), item()], "Two recordings"),
        ([item(colour="red")], "colour"),
        ([item(budget=-1)], "budget"),
        ([{"name": "x"}], "0.database"),
        ({"name": "x"}, "at the top"),
    ],
)
def test_a_list_that_is_not_right_gets_a_sentence(tmp_path: Path, items: object, says: str) -> None:
    (tmp_path / "list.json").write_text(json.dumps(items))
    with pytest.raises(BadInput, match=says):
        recordings.read_list(tmp_path / "list.json")


def test_files_that_are_no_lists_get_a_sentence(tmp_path: Path) -> None:
    for data, says in ((b"{", "not JSON"), (b"\xff\xfe", "not JSON"), (b"[" * 100_000, "not JSON")):
        (tmp_path / "list.json").write_bytes(data)
        with pytest.raises(BadInput, match=says):
            recordings.read_list(tmp_path / "list.json")
    with pytest.raises(BadInput, match="cannot be opened"):
        recordings.read_list(tmp_path / "missing.json")


def test_every_question_is_found_before_the_first_is_asked(tmp_path: Path) -> None:
    wrong = (Item(**item()), Item(**item(name="b", question_id="nobody")))  # type: ignore[arg-type]
    model = ScriptedModel()
    with pytest.raises(BadInput, match="no sample question"):
        list(recordings.make(wrong, model, HashEncoder(), tmp_path))
    with pytest.raises(BadInput, match="no sample database"):
        list(recordings.make((Item(database="x", question_id="y"),), model, HashEncoder(), tmp_path))
    assert model.history == []


def test_an_episode_that_fails_is_named_and_leaves_no_recording(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="first-one failed"):
        list(recordings.make((Item(**item()),), ScriptedModel(OSError("x")), HashEncoder(), tmp_path))  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize("name", ["", "../secret", "a/b", "http://example.org/x", "A", "a.jsonl", "-a", "a\n"])
def test_a_name_is_no_path_and_no_address(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.jsonl").write_text("{}")
    with pytest.raises(BadInput, match="no recording of this name"):
        recordings.load(name, tmp_path / "gallery")


def test_what_is_no_recording_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{}\n")
    assert recordings.gallery(tmp_path) == ()
    assert recordings.gallery(tmp_path / "missing") == ()


def test_what_comes_with_the_program_can_be_opened() -> None:
    for recording in recordings.gallery():
        bundle = recordings.load(recording.name)
        assert bundle.header.owner_key == ""
        assert bundle.header.shows
        assert (
            trace.parse_bundle(recording.name, (recordings.GALLERY / f"{recording.name}.jsonl").read_bytes()) == bundle
        )
