"""Questions with gold that a person brings: read in three forms, wrong lines named, gold never told."""

# ruff: noqa: E501 (tables of cases)

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from merit.database import Database, own_questions
from merit.database.own_questions import ProblemKind, check, from_json, load, to_json
from merit.errors import BadInput

Build = Callable[..., Path]
MARK = "qzxgoldqzx"


@pytest.fixture
def shop(build: Build) -> Database:
    return Database.open(build("CREATE TABLE t(a, b); INSERT INTO t VALUES(1, 'x'), (2, 'y')"), "shop")


LISTED = [
    {"question": "How many?", "gold_sql": "SELECT count(*) FROM t"},
    {"question": "Which?", "gold_sql": "SELECT b FROM t ORDER BY a", "evidence": "b is the name", "question_id": "q2"},
]


def test_three_forms_say_the_same(shop: Database, tmp_path: Path) -> None:
    csv = 'question,gold_sql,evidence,question_id\nHow many?,SELECT count(*) FROM t,,\n"Which?",SELECT b FROM t ORDER BY a,b is the name,q2\n'
    forms = [json.dumps(LISTED), "\n".join(map(json.dumps, LISTED)), csv, csv.replace(",", ";"), "\ufeff" + csv]
    found = [load(form.encode(), shop) for form in forms]
    assert all(questions == found[0] for questions in found)
    assert [(q.text, q.gold_sql, q.evidence, q.database_id) for q in found[0]] == [
        ("How many?", "SELECT count(*) FROM t", "", "shop"),
        ("Which?", "SELECT b FROM t ORDER BY a", "b is the name", "shop"),
    ]
    assert found[0][1].id == "q2"
    assert len(found[0][0].id) == 16
    file = tmp_path / "q.json"
    file.write_text(forms[0])
    assert load(file, shop) == found[0]


@pytest.mark.parametrize("name", ["query", "SQL", "sql"])
def test_the_names_of_the_benchmarks(shop: Database, name: str) -> None:
    (question,) = load(
        json.dumps([{"question": "Q?", name: "SELECT 1", "db_id": "x", "question_id": 7}]).encode(), shop
    )
    assert (question.gold_sql, question.id) == ("SELECT 1", "7")


WRONG = [
    ({"gold_sql": f"SELECT '{MARK}'"}, ProblemKind.MISSING),
    ({"question": " ", "gold_sql": f"SELECT '{MARK}'"}, ProblemKind.MISSING),
    ({"question": "Q?"}, ProblemKind.MISSING),
    ({"question": "Q?", "gold_sql": ["SELECT 1"]}, ProblemKind.FORM),
    ({"question": 3, "gold_sql": f"SELECT '{MARK}'"}, ProblemKind.FORM),
    ({"question": "a\ud800", "gold_sql": f"SELECT '{MARK}'"}, ProblemKind.FORM),
    ({"question": "a\0", "gold_sql": f"SELECT '{MARK}'"}, ProblemKind.FORM),
    ([1], ProblemKind.FORM),
    ("text", ProblemKind.FORM),
    (None, ProblemKind.FORM),
    ({"question": "q" * 2001, "gold_sql": "SELECT 1"}, ProblemKind.TOO_LONG),
    ({"question": "Q?", "gold_sql": f"SELECT {MARK} FROM t"}, ProblemKind.GOLD_FAILS),
    ({"question": "Q?", "gold_sql": f"SELEC {MARK}"}, ProblemKind.GOLD_FAILS),
    ({"question": "Q?", "gold_sql": f"DELETE FROM t WHERE b = '{MARK}'"}, ProblemKind.GOLD_FAILS),
    ({"question": "Q?", "gold_sql": f"SELECT 1; SELECT '{MARK}'"}, ProblemKind.GOLD_FAILS),
    ({"question": "Q?", "gold_sql": f"SELECT load_extension('{MARK}')"}, ProblemKind.GOLD_FAILS),
    ({"question": "Q?", "gold_sql": f"-- {MARK}"}, ProblemKind.GOLD_FAILS),
]


@pytest.mark.parametrize(("entry", "kind"), WRONG, ids=[f"{number}-{kind}" for number, (_, kind) in enumerate(WRONG)])
def test_a_wrong_line_is_named_and_gold_is_not(shop: Database, entry: object, kind: ProblemKind) -> None:
    data = "\n".join(map(json.dumps, [LISTED[0], entry, LISTED[1]])).encode()
    checked = check(data, shop)
    assert [(problem.line, problem.kind) for problem in checked.problems] == [(2, kind)]
    assert len(checked.records) == 2
    with pytest.raises(BadInput) as caught:
        load(data, shop)
    for said in (str(caught.value), repr(caught.value), repr(checked)):
        assert MARK not in said
        assert "SELECT" not in said
    assert "Line 2: " in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_question_that_comes_twice(shop: Database) -> None:
    (problem,) = check(json.dumps([*LISTED, LISTED[0]]).encode(), shop).problems
    assert (problem.line, problem.kind) == (3, ProblemKind.REPEATED)
    assert "line 1" in problem.sentence
    again = check(json.dumps([LISTED[0], LISTED[0]]).encode(), shop).problems
    assert [one.line for one in again] == [2]


def test_gold_that_takes_too_long_or_returns_too_much(shop: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_questions, "GOLD_TIMEOUT_S", 0.3)
    series = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r"
    slow = {"question": "Slow?", "gold_sql": f"{series}) SELECT count(*) FROM r"}
    large = {"question": "Large?", "gold_sql": f"{series} LIMIT 100001) SELECT i FROM r"}
    found = check(json.dumps([slow]).encode(), shop).problems
    assert [problem.kind for problem in found] == [ProblemKind.GOLD_SLOW]
    monkeypatch.setattr(own_questions, "GOLD_TIMEOUT_S", 30.0)
    found = check(json.dumps([large]).encode(), shop).problems
    assert [problem.kind for problem in found] == [ProblemKind.GOLD_CUT]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "columns"), (b"[]", "no questions"), (b"[{", "no valid JSON list (line 1)"), (b"[" * 100_000, "no valid JSON list"),
        (b"a,b\n1,2\n", "question and gold_sql are needed"), (b"question,gold_sql\n", "no questions"), (b"\xff\xfe", "not UTF-8"),
        (b"x" * ((5 << 20) + 1), "larger than 5 MB"), (b"\0\0", "columns"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_read(shop: Database, data: bytes, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        load(data, shop)
    assert words in str(caught.value)


def test_many_wrong_lines_are_not_all_told(shop: Database) -> None:
    data = "\n".join(["{}"] * 50).encode()
    with pytest.raises(BadInput) as caught:
        load(data, shop)
    assert str(caught.value).count("Line ") == 20
    assert "And 30 more." in str(caught.value)


def test_more_questions_than_are_taken(shop: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_questions, "MOST_QUESTIONS", 1)
    with pytest.raises(BadInput, match="more than 1 "):
        load(json.dumps(LISTED).encode(), shop)


def test_lines_of_csv_are_those_of_the_file(shop: Database) -> None:
    data = b'question,gold_sql\n"two\nlines?",SELECT 1\nWrong?,SELEC 1\n'
    assert [problem.line for problem in check(data, shop).problems] == [4]


def test_what_is_kept_comes_back(shop: Database) -> None:
    records = check(json.dumps(LISTED).encode(), shop).complete()
    assert from_json(to_json(records), "shop") == records
    assert [record.ordered for record in records] == [False, True]
