"""Files of labelled failures: what comes back, and a sentence with the line for everything that is wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit.episode import FailureType, Outcome
from merit.errors import BadInput
from merit.routing import labelled
from merit.routing.labelled import Failure, read, to_csv

HEAD = "status,message,label\n"


def test_only_status_and_message_must_be_there() -> None:
    (failure,) = read(b"message,status\nno such table: x,execution_error\n").failures
    assert failure == Failure("line 2", Outcome.EXECUTION_ERROR, "no such table: x")
    assert failure.ruled is FailureType.SCHEMA_LINKING


def test_labels_are_read_whatever_their_case() -> None:
    (failure,) = read((HEAD + "TIMEOUT,,filter/value\n").encode()).failures
    assert failure.label is FailureType.FILTER_VALUE


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_other_delimiters_and_a_byte_order_mark(delimiter: str) -> None:
    text = "\ufeff" + delimiter.join(["status", "message"]) + "\r\n" + delimiter.join(["TIMEOUT", '"a\nb"']) + "\r\n"
    (failure,) = read(text.encode()).failures
    assert failure.message == "a\nb"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("CORRECT,,Syntax", "The status “CORRECT” is no failure"),
        (" x,,", "The status “x” is no failure"),
        ("TIMEOUT,,Sintax", "The label “Sintax” is none of the types: Result Mismatch, Schema Linking"),
        ("TIMEOUT,,,,,", "more fields than the first line"),
        ("TIMEOUT,a\0b,", "NUL"),
        ("TIMEOUT," + "x" * 20_001 + ",", "20,001 characters"),
    ],
)
def test_what_is_wrong_is_told_by_line(row: str, sentence: str) -> None:
    found = read((HEAD + 'TIMEOUT,"two\nlines",\n' + row + "\n").encode())
    assert [problem.line for problem in found.problems] == [4]
    assert sentence in found.problems[0].sentence
    assert len(found.failures) == 1


def test_an_id_that_is_there_twice_names_the_other_line() -> None:
    found = read(b"id,status,message\na,TIMEOUT,\na,TIMEOUT,\n")
    assert "that of line 2 again" in found.problems[0].sentence


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "status and message are missing. It names: nothing"),
        (b"sql,label\nSELECT 1,Syntax\n", "status and message are missing. It names: sql, label"),
        (b"status,text\nTIMEOUT,x\n", "message is missing"),
        (b"status,message,status\nTIMEOUT,,\n", "The column status is there twice"),
        (b"status,message\n", "has no rows"),
        ("status,message\nTIMEOUT,größer\n".encode("latin-1"), "not UTF-8 text (line 2)"),
        ("status,message\nTIMEOUT,\n".encode("utf-16"), "UTF-16"),
        (b"status,message\nTIMEOUT,\n" * 50_001, "more than 10,000 rows"),
        (b'status,message\nTIMEOUT,"open\n', "cannot be read as CSV at line"),
        (b"x" * ((10 << 20) + 1), "larger than 10 MB"),
        (b"SQLite format 3\0" + bytes(range(256)), "not UTF-8"),
    ],
)
def test_a_file_that_is_none_is_one_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        read(data)


def test_at_most_a_hundred_wrong_lines_are_told() -> None:
    found = read(HEAD.encode() + b"x,,\n" * 130)
    assert (len(found.problems), found.more) == (100, 30)


words = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20).map(str.strip)
kinds = st.none() | st.sampled_from(list(FailureType))


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            Failure, words.filter(bool), st.sampled_from([Outcome.TIMEOUT, Outcome.EXECUTION_ERROR]), words, kinds,
            kinds, kinds, words, words, words, words, words,
        ),
        min_size=1, max_size=5, unique_by=lambda failure: failure.id,
    )
)  # fmt: skip
def test_what_is_written_comes_back(failures: list[Failure]) -> None:
    found = read(to_csv(failures))
    assert found.problems == ()
    assert found.failures == tuple(failures)


def test_the_population_are_the_failures_of_a_model() -> None:
    one, two = Failure("a", Outcome.TIMEOUT, "", source="model"), Failure("b", Outcome.TIMEOUT, "", source="mutation")
    assert labelled.population([one, two]) == (one,)
    assert labelled.population([two]) == (two,)
