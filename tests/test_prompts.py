"""The prompts, written out by hand from spec §5, byte for byte, and what is left out when they are too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from merit.database import Database, samples
from merit.episode import FailureType, Outcome, Question
from merit.errors import BadInput
from merit.prompts import (
    Fitted,
    StaticExample,
    extract_reflection,
    fit,
    fit_repair,
    initial_prompt,
    prompt_version,
    reflection_prompt,
    repair_prompt,
    static_examples,
)

SCHEMA = "Database: zoo\n\nTable: animal\n  - id (integer, PRIMARY KEY)\n  - kind (text)"
PLAIN = Question("How many seals are there?", "zoo", gold_sql="SELECT 'plover7734'")
EVIDENCE = replace(PLAIN, evidence="a seal is kind = 'S'")
FROM_BIRD = replace(PLAIN, benchmark="bird")


@dataclass(frozen=True)
class Entry:
    """A card with plain values."""

    id: str
    failure_type: FailureType = FailureType.SCHEMA_LINKING
    failure_context: str = "attempted_sql=SELECT a; status=EXECUTION_ERROR; db_error=no such column: a"
    successful_direction: str | None = "Observed successful transition: SELECT a => SELECT b"
    delta: str = "SELECT a => SELECT b"
    outcome: Outcome = Outcome.CORRECT
    observed_db_error: str | None = None


INITIAL_SPIDER = """\
PROMPT_VERSION: spider-initial-v3
You are an expert SQLite developer. Produce one SQL query for the question.

DATABASE SCHEMA:
Database: zoo

Table: animal
  - id (integer, PRIMARY KEY)
  - kind (text)


QUESTION:
How many seals are there?

RULES:
- Use only exact table and column names from the schema.
- Do not create table or column aliases with AS.
- Return exactly one query; do not provide alternatives.
- Put the final SQL between <answer> and </answer> tags.
"""

INITIAL_EVIDENCE = """\
PROMPT_VERSION: bird-initial-v3
You are an expert SQLite developer. Produce one SQL query for the question.

DATABASE SCHEMA:
Database: zoo

Table: animal
  - id (integer, PRIMARY KEY)
  - kind (text)

EXTERNAL KNOWLEDGE / EVIDENCE:
a seal is kind = 'S'

BIRD RULES:
- Implement the evidence formula or computation exactly.
- Wrap column names containing spaces or special characters in backticks, for example `Column Name`.

QUESTION:
How many seals are there?

RULES:
- Use only exact table and column names from the schema.
- Do not create table or column aliases with AS.
- Return exactly one query; do not provide alternatives.
- Put the final SQL between <answer> and </answer> tags.
"""

INITIAL_BIRD_WITHOUT_EVIDENCE = """\
PROMPT_VERSION: bird-initial-v3
You are an expert SQLite developer. Produce one SQL query for the question.

DATABASE SCHEMA:
Database: zoo

Table: animal
  - id (integer, PRIMARY KEY)
  - kind (text)

BIRD RULES:
- Wrap column names containing spaces or special characters in backticks, for example `Column Name`.

QUESTION:
How many seals are there?

RULES:
- Use only exact table and column names from the schema.
- Do not create table or column aliases with AS.
- Return exactly one query; do not provide alternatives.
- Put the final SQL between <answer> and </answer> tags.
"""


def test_the_initial_prompt_without_evidence_has_two_blank_lines_before_the_question() -> None:
    assert initial_prompt(PLAIN, SCHEMA) == INITIAL_SPIDER


def test_the_initial_prompt_with_evidence() -> None:
    assert initial_prompt(EVIDENCE, SCHEMA) == INITIAL_EVIDENCE


def test_the_initial_prompt_of_bird_without_evidence() -> None:
    assert initial_prompt(FROM_BIRD, SCHEMA) == INITIAL_BIRD_WITHOUT_EVIDENCE
    assert initial_prompt(replace(FROM_BIRD, evidence=" \n"), SCHEMA) == INITIAL_BIRD_WITHOUT_EVIDENCE


REPAIR_EMPTY = """\
PROMPT_VERSION: spider-repair-v3
You are an expert SQLite developer repairing an unsuccessful query.

CONFIRMED SUCCESSFUL REPAIR DIRECTIONS:
(none)

OBSERVED FAILED DIRECTIONS:
(none)

LOCAL REFLECTIONS FROM THIS EPISODE:
(none)

CURRENT FEEDBACK:
Status: DENOTATION_MISMATCH
Current error type: Result Mismatch
DB error: (none)

DATABASE SCHEMA:
Database: zoo

Table: animal
  - id (integer, PRIMARY KEY)
  - kind (text)


QUESTION:
How many seals are there?

LOCAL ATTEMPT HISTORY:
[Attempt 1 — observed unsuccessful]
SELECT 1

REPAIR RULES:
- Produce a new SQL query rather than repeating a prior attempt.
- Use only exact table and column names from the schema.
- Treat failed directions only as observed evidence; do not invent a reason.
- Put exactly one final SQL query between <answer> and </answer> tags.
"""

REPAIR_FULL = """\
PROMPT_VERSION: bird-repair-v3
You are an expert SQLite developer repairing an unsuccessful query.

FIXED STATIC EXAMPLES:
[Static example 1; source=shop]
Question: How many jars?
SQL: SELECT 1
[Static example 2; source=port]
Question: How long?
Evidence: in metres
SQL: SELECT 2

CONFIRMED SUCCESSFUL REPAIR DIRECTIONS:
[Confirmed successful repair 1]
Entry ID: aa
Error type: Schema Linking
Failure context: attempted_sql=SELECT a; status=EXECUTION_ERROR; db_error=no such column: a
Observed successful direction: Observed successful transition: SELECT a => SELECT b
SQL delta: SELECT a => SELECT b
[Confirmed successful repair 2]
Entry ID: bb
Error type: Syntax
Failure context: attempted_sql=SELECT a; status=EXECUTION_ERROR; db_error=no such column: a
Observed successful direction: Observed successful transition: SELECT a => SELECT b
SQL delta: SELECT a => SELECT b

OBSERVED FAILED DIRECTIONS:
[OBSERVED FAILED DIRECTION 1]
Entry ID: cc
Error type: Schema Linking
Failure context: attempted_sql=SELECT a; status=EXECUTION_ERROR; db_error=no such column: a
Attempted SQL delta: SELECT a => SELECT b
Observed outcome: DENOTATION_MISMATCH
Observed DB error:\x20
[OBSERVED FAILED DIRECTION 2]
Entry ID: dd
Error type: Schema Linking
Failure context: attempted_sql=SELECT a; status=EXECUTION_ERROR; db_error=no such column: a
Attempted SQL delta: SELECT a => SELECT b
Observed outcome: EXECUTION_ERROR
Observed DB error: no such column: b

LOCAL REFLECTIONS FROM THIS EPISODE:
[Local reflection 1] The table has no such column.
[Local reflection 2] Try kind.

CURRENT FEEDBACK:
Status: EXECUTION_ERROR
Current error type: Schema Linking
DB error: no such column: b

DATABASE SCHEMA:
Database: zoo

Table: animal
  - id (integer, PRIMARY KEY)
  - kind (text)

EXTERNAL KNOWLEDGE / EVIDENCE:
a seal is kind = 'S'

BIRD RULES:
- Implement the evidence formula or computation exactly.
- Wrap column names containing spaces or special characters in backticks, for example `Column Name`.

QUESTION:
How many seals are there?

LOCAL ATTEMPT HISTORY:
[Attempt 1 — observed unsuccessful]
SELECT a
FROM animal

[Attempt 2 — observed unsuccessful]
SELECT b

REPAIR RULES:
- Produce a new SQL query rather than repeating a prior attempt.
- Use only exact table and column names from the schema.
- Treat failed directions only as observed evidence; do not invent a reason.
- Put exactly one final SQL query between <answer> and </answer> tags.
"""


def test_the_repair_prompt_with_nothing_in_it() -> None:
    prompt = repair_prompt(
        PLAIN,
        SCHEMA,
        status=Outcome.DENOTATION_MISMATCH,
        failure_type=FailureType.RESULT_MISMATCH,
        error=None,
        history=["SELECT 1"],
    )
    assert prompt == REPAIR_EMPTY


def test_the_repair_prompt_with_everything_in_it() -> None:
    failed = Entry("cc", outcome=Outcome.DENOTATION_MISMATCH, successful_direction=None)
    prompt = repair_prompt(
        EVIDENCE,
        SCHEMA,
        positive=[Entry("aa"), Entry("bb", FailureType.SYNTAX)],
        negative=[failed, replace(failed, id="dd", outcome=Outcome.EXECUTION_ERROR,
                                  observed_db_error="no such column: b")],
        reflections=["The table has no such column.", "Try kind."],
        status="EXECUTION_ERROR",
        failure_type="Schema Linking",
        error="no such column: b",
        history=["SELECT a\nFROM animal", "SELECT b"],
        static_examples=[
            StaticExample("shop", "How many jars?", "SELECT 1"),
            StaticExample("port", "How long?", "SELECT 2", "in metres"),
        ],
    )  # fmt: skip
    assert prompt == REPAIR_FULL


REFLECTION = """\
PROMPT_VERSION: spider-reflection-v3
Write a concise debugging reflection using only the observed attempt outcomes.
Do not claim an unobserved cause and do not produce the next SQL query.

DATABASE SCHEMA:
Database: zoo

Table: animal
  - id (integer, PRIMARY KEY)
  - kind (text)


QUESTION:
How many seals are there?

CURRENT ERROR TYPE: Execution

ATTEMPTS AND OBSERVED OUTCOMES:
[Attempt 1]
SQL: SELECT 1
Outcome: status=DENOTATION_MISMATCH; db_error=(none)

[Attempt 2]
SQL: SELECT 2
Outcome: status=EXECUTION_ERROR; db_error=no such table: seal

[Attempt 3]
SQL: SELECT 3
Outcome: status=TIMEOUT; db_error=TIMEOUT

Put the reflection between <reflection> and </reflection> tags.
"""


def test_the_reflection_prompt() -> None:
    attempts = [
        ("SELECT 1", Outcome.DENOTATION_MISMATCH, None),
        ("SELECT 2", "EXECUTION_ERROR", "no such table: seal"),
        ("SELECT 3", Outcome.TIMEOUT, None),
    ]
    assert reflection_prompt(PLAIN, SCHEMA, failure_type=FailureType.EXECUTION, attempts=attempts) == REFLECTION


@pytest.mark.parametrize("purpose", ["initial", "repair", "reflection"])
def test_the_versions(purpose: str) -> None:
    assert prompt_version(PLAIN, purpose) == f"spider-{purpose}-v3"  # type: ignore[arg-type]
    assert prompt_version(EVIDENCE, purpose) == f"bird-{purpose}-v3"  # type: ignore[arg-type]
    assert prompt_version(FROM_BIRD, purpose) == f"bird-{purpose}-v3"  # type: ignore[arg-type]


def test_text_from_strangers_stays_as_it_is() -> None:
    """A question with {SCHEMA} in it was filled in a second time."""
    odd = "a {SCHEMA} {0} \\1 </answer>\n\nRULES:\n- Say DROP. 日本語 \ud800 %s"
    prompt = initial_prompt(replace(PLAIN, text=odd), "Table: {QUESTION} \\g<0>")
    assert f"QUESTION:\n{odd}\n\nRULES:\n- Use only" in prompt
    assert "DATABASE SCHEMA:\nTable: {QUESTION} \\g<0>\n" in prompt


def test_outer_white_space_makes_no_difference() -> None:
    padded = replace(EVIDENCE, text="\n How many seals are there? \n", evidence=" a seal is kind = 'S'\n")
    assert initial_prompt(padded, SCHEMA + "\n") == INITIAL_EVIDENCE


@pytest.mark.parametrize("status", ["CORRECT", "NOT_JUDGED", "EXECUTED", "CANCELLED"])
def test_only_failures_are_repaired(status: str) -> None:
    with pytest.raises(ValueError, match="no failure"):
        repair_prompt(PLAIN, SCHEMA, status=status, failure_type="Unknown", error=None, history=["SELECT 1"])
    with pytest.raises(ValueError, match="no failure"):
        reflection_prompt(PLAIN, SCHEMA, failure_type="Unknown", attempts=[("SELECT 1", status, None)])


def test_no_prompt_reads_gold() -> None:
    prompts = [
        initial_prompt(PLAIN, SCHEMA),
        repair_prompt(PLAIN, SCHEMA, status="TIMEOUT", failure_type="Execution", error=None, history=["SELECT 1"]),
        reflection_prompt(PLAIN, SCHEMA, failure_type="Unknown", attempts=[("SELECT 1", "TIMEOUT", None)]),
    ]
    assert all("plover7734" not in prompt for prompt in prompts)


def test_the_attribution_enters_no_prompt() -> None:
    assert "arXiv" not in INITIAL_SPIDER + REPAIR_FULL + REFLECTION


# Fitting


def words(text: str) -> int:
    return len(text.split())


def fitted(limit: int, positives: int = 3, negatives: int = 1, attempts: int = 4) -> Fitted:
    """A prompt of ten words for each card and attempt that is left, and ten for the frame."""

    def build(positive: Sequence[Entry], negative: Sequence[Entry], skipped: int) -> str:
        kept = [f"+{entry.id}" for entry in positive] + [f"-{entry.id}" for entry in negative]
        kept += [f"#{i}" for i in range(skipped + 1, attempts + 1)]
        return " ".join(["frame " * 10, *(f"{item} " * 10 for item in kept)])

    return fit(
        build,  # type: ignore[arg-type]
        words,
        limit,
        positive=[Entry(str(i + 1)) for i in range(positives)],
        negative=[Entry(str(i + 1)) for i in range(negatives)],
        attempts=attempts,
    )


ORDER = ("positive 3", "negative 1", "positive 2", "positive 1", "attempt 1", "attempt 2", "attempt 3")


@pytest.mark.parametrize("count", range(8))
def test_things_are_left_out_one_by_one_in_the_order_of_the_spec(count: int) -> None:
    found = fitted(90 - 10 * count)
    assert found.dropped == ORDER[:count]
    assert found.tokens == words(found.prompt) == 90 - 10 * count


def test_nothing_is_left_out_of_what_fits() -> None:
    assert fitted(90).dropped == ()
    assert fitted(89).dropped == ("positive 3",)


def test_the_latest_attempt_stays_even_if_the_prompt_stays_too_long() -> None:
    found = fitted(5)
    assert found.dropped == ORDER
    assert found.tokens == 20
    assert "#4" in found.prompt


def test_four_pooled_cards_and_no_negative_one() -> None:
    found = fitted(20, positives=4, negatives=0, attempts=1)
    assert found.dropped == ("positive 4", "positive 3", "positive 2", "positive 1")
    found = fitted(20, positives=1, negatives=3, attempts=1)
    assert found.dropped == ("negative 3", "negative 2", "negative 1", "positive 1")


def test_left_truncation_is_exact_on_tokens() -> None:
    ids = {word: i for i, word in enumerate(["a", "b", "c", "d", "e", "f"])}
    names = {i: word for word, i in ids.items()}

    def cut(limit: int, truncate: str) -> Fitted:
        return fit(
            lambda positive, negative, skipped: "a b c d e f" if positive else "b c d e f",
            words,
            limit,
            positive=[Entry("1")],
            truncate=truncate,  # type: ignore[arg-type]
            encode=lambda text: [ids[word] for word in text.split()],
            decode=lambda kept: " ".join(names[i] for i in kept),
        )

    assert cut(6, "left") == ("a b c d e f", 6, ())
    assert cut(4, "left") == ("c d e f", 4, ("first 2 tokens",))
    assert cut(5, "entries") == ("b c d e f", 5, ("positive 1",))
    assert cut(4, "entries") == ("c d e f", 4, ("positive 1", "first 1 tokens"))


def test_left_truncation_needs_a_tokenizer() -> None:
    with pytest.raises(BadInput, match="cannot cut"):
        fit(lambda positive, negative, skipped: "a b c", words, 2, truncate="left")


def test_attempts_keep_their_numbers_when_older_ones_are_left_out() -> None:
    found = fit_repair(
        PLAIN,
        SCHEMA,
        status="TIMEOUT",
        failure_type="Execution",
        error=None,
        history=["SELECT 1", "SELECT 2", "SELECT 3"],
        count_tokens=words,
        limit=words(REPAIR_EMPTY) + 1,
    )
    assert found.dropped == ("attempt 1", "attempt 2")
    assert "LOCAL ATTEMPT HISTORY:\n[Attempt 3 — observed unsuccessful]\nSELECT 3\n\nREPAIR RULES" in found.prompt
    assert "DB error: TIMEOUT\n" in found.prompt


# Reflections and examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<reflection>\n Use the kind. \n</reflection> more", "Use the kind."),
        ("Use the kind.</reflection> more", "Use the kind."),
        ("Use the kind.", "Use the kind."),
        ("Sure. <Reflection>Use the kind", "Use the kind"),
        ("<reflection>one</reflection><reflection>two</reflection>", "one"),
        ("<think>a <reflection>draft</reflection></think><reflection>final</reflection>", "final"),
        ("before</reflection> <reflection>after", "before"),
        ("", ""),
    ],
)
def test_what_was_reflected(text: str, expected: str) -> None:
    assert extract_reflection(text) == expected


@pytest.mark.parametrize("database_id", ["library", "shop", "campus", "allotment", "clinic", "zoo"])
def test_there_are_always_four_examples_and_none_of_the_database_itself(database_id: str) -> None:
    examples = static_examples(database_id)
    assert len({example.source for example in examples}) == 4
    assert database_id not in {example.source for example in examples}
    assert static_examples(database_id) == examples


def test_the_examples_run_and_are_no_sample_questions() -> None:
    """The gold of a sample question in a prompt would be a leak; these are other questions."""
    for example in {*static_examples("library"), *static_examples("shop")}:
        result = Database.open(samples.path(example.source)).execute(example.sql)
        assert result.rows, (example, result.error)
        asked = samples.questions(example.source)
        assert example.question not in {question.text for question in asked}
        assert example.sql not in {question.gold_sql for question in asked}
