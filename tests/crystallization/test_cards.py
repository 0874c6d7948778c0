"""Every card format: the paper's worked example, what an episode may lack, and SQL nobody can parse."""

from __future__ import annotations

from dataclasses import replace

import pytest
from worked import CAPSULE, EPISODE, IDENTIFIERS, PRINTED, QUESTION, same

from merit.crystallization import capsule, prompts
from merit.crystallization.cards import (
    BLANKED,
    FORMATS,
    LADDER,
    NO_CANDIDATE,
    NO_CAPSULE,
    NO_MODE,
    CardFormat,
    Written,
    write,
)
from merit.crystallization.difference import MENDED, NOT_PARSED
from merit.crystallization.episodes import Episode, Try
from merit.errors import BadInput


def written(answer: str = CAPSULE) -> Written:
    found = capsule.read(answer)
    assert found is not None
    return Written(*capsule.fenced(found, EPISODE, IDENTIFIERS))


@pytest.mark.parametrize("format", list(PRINTED))
def test_the_papers_worked_example_renders_as_printed(format: str) -> None:
    card = write(EPISODE, format, written())
    assert same(PRINTED[format], card.text)
    assert card.notes == ()


def test_the_comparison_with_the_paper_can_fail() -> None:
    assert not same(PRINTED["W3"], write(EPISODE, "W4").text)
    assert not same(PRINTED["W0"], write(replace(EPISODE, question=QUESTION.lower()), "W0").text)


def test_the_trace_card_holds_every_attempt_and_probe() -> None:
    text = write(EPISODE, "W1").text
    assert text.index("GSoffered LIKE") < text.index("Merged|1") < text.index("DOCType LIKE")
    assert "Attempt 2 (final)" in text


def test_the_diff_card_is_the_mode_card_without_its_modes() -> None:
    assert (
        write(EPISODE, "W3").text.replace(" (failure mode: value-literal, column-ref)", "") == write(EPISODE, "W2").text
    )


@pytest.mark.parametrize("format", list(CardFormat))
def test_no_format_invents_what_an_episode_lacks(format: CardFormat) -> None:
    with pytest.raises(BadInput, match=NO_CANDIDATE.split(":")[0]):
        write(replace(EPISODE, candidate=None), format)
    first_try = replace(EPISODE, tries=(Try("SELECT 1", correct=True),), candidate=0)
    if format is CardFormat.W0:
        assert "SELECT 1" in write(first_try, format).text
    else:
        with pytest.raises(BadInput, match="W0 is the format for it"):
            write(first_try, format)


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"W3\+A"):
        write(EPISODE, "W9")


@pytest.mark.parametrize(
    ("wrong", "unreadable", "note"),
    [
        ("SELEC name", False, NOT_PARSED.format(which="the wrong statement")),
        ("", False, NOT_PARSED.format(which="the wrong statement")),
        ("SELECT name, FROM schools", True, MENDED),
    ],
)
def test_a_diff_of_unparsable_sql_falls_back_to_text_and_says_so(wrong: str, unreadable: bool, note: str) -> None:
    tries = (Try(wrong, "Error", False, unreadable=unreadable), Try("SELECT name FROM schools", "x", True))
    card = write(replace(EPISODE, tries=tries), "W4")
    assert card.notes == (note, NO_MODE)
    assert f"- Wrong: {wrong}" in card.text
    assert "- Fixed: SELECT name FROM schools" in card.text
    assert "failure mode: unknown" in card.text
    assert "Guard" not in card.text


@pytest.mark.parametrize("answer", ["", "no JSON", "[1]", '{"trigger": "x"}', '{"trigger": 1}', "{" * 5000])
def test_a_capsule_that_is_no_json_falls_back_to_the_edit(answer: str) -> None:
    assert capsule.read(answer) is None
    card = write(EPISODE, "W5", Written(None))
    assert card.text == write(EPISODE, "W3").text
    assert card.notes == (NO_CAPSULE,)


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("filters on 'CDSCode'", False),
        ("look at CDSCode first", False),
        ("join frpm.x on it", False),
        ("the value 'Charter' is what counts", False),
        ("the school doesn't say; it's in DOCType", True),
        ("a frpm is not meant here", True),
        ("Merged schools count, see “Merged”", True),
    ],
)
def test_the_fence_blanks_a_field_that_strays_from_the_episode(sentence: str, kept: bool) -> None:
    found, blanked = capsule.fenced(capsule.Capsule(trigger=sentence, lesson="be careful"), EPISODE, IDENTIFIERS)
    assert (found.trigger == sentence) is kept
    assert blanked == (() if kept else ("trigger",))
    assert found.lesson == "be careful"
    if not kept:
        card = write(EPISODE, "W5", Written(found, blanked))
        assert "Trigger" not in card.text
        assert card.notes == (BLANKED.format(keys="trigger"),)


def test_a_lessons_card_holds_no_sql_and_falls_back_to_the_guards() -> None:
    found = capsule.Capsule(trigger="Try SELECT a FROM t WHERE b = 1 instead", lesson="look at the names")
    text = write(EPISODE, "lessons", Written(found)).text
    assert "look at the names" in text
    assert "SELECT" not in text
    plain = write(EPISODE, "lessons", Written(None))
    assert "verify the literal" in plain.text
    assert plain.sql == ""
    with pytest.raises(BadInput, match="no lesson"):
        write(replace(EPISODE, tries=(Try("SELEC"), Try("SELECT 1"))), "lessons")


def test_every_format_says_what_is_the_papers_and_what_is_ours() -> None:
    assert [format for format in CardFormat if FORMATS[format].layout == "reconstructed"] == ["W1", "W2", "lessons"]
    assert [format for format in CardFormat if FORMATS[format].header_from == "paper"] == ["W0"]
    assert list(LADDER) == ["W0", "W1", "W2", "W3", "W3+A", "W4", "W5"]


def test_an_episode_survives_its_json() -> None:
    assert Episode.from_json(EPISODE.to_json()) == EPISODE


def test_a_prompt_without_cards_has_no_block_of_experience() -> None:
    from merit.episode import Question

    question = Question("How many?", "shop", "a hint")
    bare = prompts.solver(question, "CREATE TABLE t (a);")
    assert bare.user == (
        "[Database schema]\nCREATE TABLE t (a);\n[Question]\nHow many?\nEvidence: a hint\n"
        "Write the SQLite query now, inside a ```sql block."
    )
    assert bare.system.startswith("You are an expert data analyst who writes correct SQLite SQL.")
    full = prompts.solver(question, "CREATE TABLE t (a);", header="[H]", cards=["one", "two"])
    block = "[Relevant experience -- verified facts and rules]\n[H]\none\n\ntwo\n"
    assert full.user == bare.user.replace("[Question]", f"{block}[Question]")
    assert "step by step" in prompts.solver(question, "", kind="cot").system


def test_cards_that_do_not_fit_go_from_the_last_rank_on() -> None:
    built = lambda n: prompts.Prompt("", "x" * (10 + 5 * n))  # noqa: E731
    assert prompts.fitting(built, 3, len, 21) == 2
    assert prompts.fitting(built, 3, len, None) == 3
    assert prompts.fitting(built, 3, len, 1) == 0


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 2;\n```", ["SELECT 1", "SELECT 2"]),
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 1\n```", ["SELECT 1"]),
        ("SELECT 3", ["SELECT 3"]),
        ("```python\nprint(1)\n```", []),
        ("".join(f"```sql\nSELECT {n}\n```\n" for n in range(9)), [f"SELECT {n}" for n in range(4)]),
        ("nothing to look at", []),
    ],
)
def test_probe_queries_come_from_a_block_each_at_most_four(answer: str, found: list[str]) -> None:
    assert prompts.probe_queries(answer) == found
