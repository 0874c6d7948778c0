"""Export and import: exact round trips, and nothing half-imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merit.errors import BadInput
from merit.memory.store import MemoryStore
from tests.memory.encoders import HashEncoder, entry


def fresh() -> MemoryStore:
    return MemoryStore.open("memory://", HashEncoder(8))


TEXT = st.text(st.characters(codec=None, exclude_categories=[]), max_size=12)  # lone surrogates and NUL too


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["positive", "negative"]), TEXT, st.integers(0, 2), st.booleans()),
        max_size=10,
    )
)
def test_round_trip_is_exact_at_every_position(tmp_path_factory: pytest.TempPathFactory, made: list[Any]) -> None:
    store, folder = fresh(), tmp_path_factory.mktemp("export")
    for number, (position, polarity, text, transition, allocate) in enumerate(made):
        if allocate:
            store.next_position()
        store.finalise(
            entry(
                number,
                position=position,
                polarity=polarity,
                question=text,
                schema=text,
                db_error=text or None,
                failed_sql="SELECT x",
                new_sql=f"SELECT {transition}",
            )
        )
    store.export_jsonl(folder / "a")
    copy = fresh()
    assert copy.import_jsonl(folder / "a") == len(made)
    for t in (None, *range(12)):
        assert copy.entries(before=t) == store.entries(before=t)
    copy.export_jsonl(folder / "b")
    for name in ("positive.jsonl", "negative.jsonl"):
        assert (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes()
    assert copy.import_jsonl(folder / "b") == 0


def test_one_entry_a_line(tmp_path: Path) -> None:
    store = fresh()
    shared = {"failed_sql": "SELECT x", "new_sql": "SELECT y"}
    store.finalise_many([entry(0, **shared), entry(1, **shared), entry(2), entry(3, polarity="negative")])
    store.export_jsonl(tmp_path)
    positive, negative = ((tmp_path / f"{name}.jsonl").read_text().splitlines() for name in ("positive", "negative"))
    assert (len(positive), len(negative)) == (2, 1)
    line = json.loads(positive[0])
    assert (line["id"], line["successes"], line["failures"]) == (entry(0, **shared).id, 2, 0)
    assert [other["episode_id"] for other in line["others"]] == ["e0"]
    assert not list(tmp_path.glob("*.part"))


def test_a_line_of_plain_fields_is_one_observation(tmp_path: Path) -> None:
    (tmp_path / "positive.jsonl").write_text(json.dumps(entry(4).to_json()), encoding="utf-8-sig")
    store = fresh()
    assert store.import_jsonl(tmp_path) == 1
    (view,) = store.entries()
    assert (view.entry(), view.visible_from) == (entry(4), 5)


GOOD = entry(0).to_json()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[1]", "no JSON object"),
        (b"\xff\xfe", "not UTF-8"),
        (json.dumps(GOOD | {"position": "first"}), "position: Input should be a valid integer"),
        (json.dumps(GOOD | {"position": 2**70}), "position"),
        (json.dumps(GOOD | {"polarity": "good"}), "polarity: Input should be 'positive' or 'negative'"),
        (json.dumps(GOOD | {"polarity": "negative"}), "the entry is negative"),
        (json.dumps(GOOD | {"extra": 1}), "extra: Unexpected keyword argument"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "new_sql"}), "new_sql: Field required"),
        (json.dumps(GOOD | {"question": None}), "question: Input should be a valid string"),
        (json.dumps(GOOD | {"format_version": 2}), "memory format 2, and this version reads 3"),
        (json.dumps(GOOD | {"id": "0" * 64}), "its id does not fit"),
        (json.dumps(GOOD | {"others": [entry(9).to_json()]}), "its id does not fit"),
        (json.dumps(GOOD | {"successes": 7}), "its counts do not fit"),
        (json.dumps(GOOD | {"visible_from": 0}), "cannot be visible at its own position"),
        (json.dumps(GOOD | {"visible_from": None, "order": "x"}), "order: Input should be a valid integer"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_imported(tmp_path: Path, line: str | bytes, reason: str) -> None:
    wrong = line if isinstance(line, bytes) else line.encode()
    good = json.dumps(entry(5).to_json()).encode()
    (tmp_path / "positive.jsonl").write_bytes(b"\n".join([good, b"", wrong, good]))
    store = fresh()
    store.finalise(entry(8))
    with pytest.raises(BadInput) as caught:
        store.import_jsonl(tmp_path)
    assert "Line 3 of positive.jsonl cannot be imported: " in str(caught.value)
    assert reason in str(caught.value)
    assert str(caught.value).endswith("Nothing was imported.")
    assert store.counts().observations == 1


def test_nothing_to_import(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no positive\.jsonl or negative\.jsonl"):
        fresh().import_jsonl(tmp_path)
    (tmp_path / "positive.jsonl").write_text("\n\n")
    assert fresh().import_jsonl(tmp_path) == 0
