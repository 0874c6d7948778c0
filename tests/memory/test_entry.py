"""Entries: golden values worked out from spec §3, laws of the normal form."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit.errors import BadInput
from merit.memory.entry import EntryView, MemoryEntry, entry_id, normalise_delta
from merit.memory.texts import bm25_text, dense_text, tokenise
from tests.memory.encoders import entry


@pytest.mark.parametrize(
    ("delta", "normal"),
    [
        ("SELECT  A\n FROM\tT => SELECT B", "select a from t=>select b"),
        ("a <= 1 AND b != 2 , c ( d )", "a<=1 and b!=2,c(d)"),
        ("x = 'It''s  A'  OR y", "x='It''s  A' or y"),
        ('SELECT "My  Col" , `B  c` , [D  E] FROM T', 'select "My  Col",`B  c`,[D  E] from t'),
        ('"a""  B" = C', '"a""  B"=c'),
        ("[a]]  B] = C", "[a]]  B]=c"),
        (r"'A\' = B'", r"'A\'=b'"),  # a backslash is ordinary: the literal ends at the second quote
        ("'open  Q => SELECT X", "'open  Q => SELECT X"),
        (" => SELECT 1", "=>select 1"),
        ("SELECT 1 => ", "select 1=>"),
        ("a - - b * / c", "a--b*/c"),
        ("", ""),
    ],
)
def test_normal_form(delta: str, normal: str) -> None:
    assert normalise_delta(delta) == normal


@given(st.text(alphabet="aA '\"`[]=(), \t\n\\é-", max_size=60))
def test_normal_form_is_stable(delta: str) -> None:
    assert normalise_delta(normalise_delta(delta)) == normalise_delta(delta)


@given(st.lists(st.sampled_from(["SELECT", "a", "=", "'X  y'", "(", ")", ",", '"Q"']), max_size=12))
def test_case_and_space_outside_quotes_do_not_matter(words: list[str]) -> None:
    loose = "  ".join(words)
    tight = " ".join(word if word[0] in "'\"" else word.lower() for word in words)
    assert normalise_delta(f"x {loose} y") == normalise_delta(f"X\n{tight}\tY")


def test_id_is_the_hash_of_canonical_json() -> None:
    text = '{"error_type":"schema linking","transformation":"select nme from t=>select name from t where c=\'Ö\'"}'
    made = entry(failed_sql="SELECT nme FROM t", new_sql="SELECT name FROM t WHERE c = 'Ö'")
    assert made.id == hashlib.sha256(text.encode()).hexdigest()
    assert made.id == entry_id("Schema  Linking", "select NME from T=>SELECT name  FROM t WHERE c='Ö'")
    assert made.id != entry_id("Syntax", made.delta)


def test_texts_of_a_positive_entry() -> None:
    made = entry(question="Q?", schema="S", failed_sql="SELECT x", new_sql="SELECT y", db_error="no such column: x")
    context = "attempted_sql=SELECT x; status=EXECUTION_ERROR; db_error=no such column: x"
    assert made.delta == "SELECT x => SELECT y"
    assert made.failure_context == context
    assert made.successful_direction == "Observed successful transition: SELECT x => SELECT y"
    assert made.observed_db_error is None
    assert dense_text(made) == (
        f"QUESTION: Q? SCHEMA: S FAILURE: {context} TRANSFORMATION: select x=>select y ERROR: Schema Linking "
        "OUTCOME: CORRECT DB ERROR: (none)"
    )
    assert bm25_text(made) == (
        f"Q? {context} SELECT x => SELECT y Schema Linking CORRECT  "
        "Observed successful transition: SELECT x => SELECT y"
    )


def test_texts_of_a_negative_entry() -> None:
    made = entry(
        polarity="negative", question="Q?", schema="S", failed_sql="SELECT x", new_sql="SELECT y", db_error="no y"
    )
    context = "attempted_sql=SELECT y; status=EXECUTION_ERROR; db_error=no y"
    assert made.failure_context == context
    assert made.successful_direction is None
    assert made.observed_db_error == "no y"
    assert dense_text(made).endswith("ERROR: Schema Linking OUTCOME: EXECUTION_ERROR DB ERROR: no y")
    assert bm25_text(made) == f"Q? {context} SELECT x => SELECT y Schema Linking EXECUTION_ERROR no y "


def test_error_of_a_mismatch_and_of_a_timeout() -> None:
    mismatch = entry(polarity="negative", status="DENOTATION_MISMATCH", outcome="DENOTATION_MISMATCH", db_error=None)
    assert mismatch.failure_context.endswith("; status=DENOTATION_MISMATCH; db_error=(none)")
    assert mismatch.observed_db_error is None
    timeout = entry(polarity="negative", status="TIMEOUT", outcome="TIMEOUT", db_error=None)
    assert timeout.failure_context.endswith("; status=TIMEOUT; db_error=TIMEOUT")
    assert timeout.observed_db_error == "TIMEOUT"


def test_tokens() -> None:
    assert tokenise("SELECT t_1.Naïve, 'Zoë' FROM t_1") == ["select", "t_1", "na", "ve", "zo", "from", "t_1"]


def test_json_round_trip_and_pickle() -> None:
    made = entry(question="lone \ud800 NUL \0", model_id="m", created_at="2026-01-01")
    assert MemoryEntry.from_json(json.loads(json.dumps(made.to_json()))) == made
    view = EntryView.from_json(made.to_json() | {"successes": 2, "failures": 1})
    assert view.entry() == made
    assert pickle.loads(pickle.dumps(view)) == view


def test_an_unknown_value_is_named_with_those_that_exist() -> None:
    with pytest.raises(BadInput, match=r"polarity 'good'.*positive, negative"):
        entry(polarity="good")


def test_import_is_light() -> None:
    """merit.events imports these two; a database library at that point would cost every start a second."""
    code = (
        "import sys, merit.memory.entry, merit.memory.retrieval; print({'lancedb','pyarrow','torch'} & {*sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
