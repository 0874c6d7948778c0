"""The exact prompt texts of spec §5 (paper, appendix; format version 3) and how they are made to fit a context.

The texts themselves are the files in ``merit/templates``. Filling is one pass, so text from strangers (a question
that holds ``</answer>`` or a heading, a schema with braces) stays as it is.

What this module does not know: models (it is handed a token counter), memory (it prints any card that has the
fields of an entry), and gold: no parameter can carry it, and a question's ``gold_sql`` is never read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from merit.answer_regions import drop_reasoning
from merit.episode import FailureType, Outcome, Question, Status
from merit.errors import BadInput
from merit.extraction import extract_sql

__all__ = [
    "Card",
    "Fitted",
    "ObservedAttempt",
    "StaticExample",
    "extract_reflection",
    "extract_sql",
    "fill",
    "fit",
    "fit_repair",
    "initial_prompt",
    "memory_card",
    "part",
    "prompt_version",
    "reflection_prompt",
    "repair_prompt",
    "static_examples",
]

NOTHING = "(none)"
STATIC_EXAMPLES = 4
"""How many fixed examples a prompt of the strategy ``static_examples`` shows."""
_TEMPLATES = Path(__file__).parent / "templates"
_FAILURES = (Outcome.DENOTATION_MISMATCH, Outcome.EXECUTION_ERROR, Outcome.TIMEOUT)

Purpose = Literal["initial", "repair", "reflection"]
Truncate = Literal["entries", "left"]


class Card(Protocol):
    """What a prompt shows of a memory entry (``merit.MemoryEntry`` has all of it)."""

    @property
    def id(self) -> str: ...
    @property
    def failure_type(self) -> FailureType: ...
    @property
    def failure_context(self) -> str: ...
    @property
    def successful_direction(self) -> str | None: ...
    @property
    def delta(self) -> str: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def observed_db_error(self) -> str | None: ...


ObservedAttempt = tuple[str, Outcome | Status | str, str | None]
"""One attempt as a reflection sees it: the SQL, its status and the DBMS message, if any."""


@dataclass(frozen=True)
class StaticExample:
    """A solved question of a sample database; ``source`` is the database's id."""

    source: str
    question: str
    sql: str
    evidence: str = ""


class Fitted(NamedTuple):
    """A prompt, its length in tokens, and what was left out of it, in the order in which it went."""

    prompt: str
    tokens: int
    dropped: tuple[str, ...]


def prompt_version(question: Question, purpose: Purpose) -> str:
    """``{spider|bird}-{purpose}-v3``; bird where the question carries evidence or comes from BIRD."""
    return f"{question.form}-{purpose}-v3"


def initial_prompt(question: Question, schema: str) -> str:
    """The prompt of the first answer; the same for every strategy."""
    return fill("initial", _frame(question, schema, "initial"))


def repair_prompt(
    question: Question,
    schema: str,
    *,
    positive: Sequence[Card] = (),
    negative: Sequence[Card] = (),
    reflections: Sequence[str] = (),
    status: Outcome | Status | str,
    failure_type: FailureType | str,
    error: str | None,
    history: Sequence[str],
    static_examples: Sequence[StaticExample] = (),
    skipped: int = 0,
) -> str:
    """The prompt of one repair.

    ``history`` is the SQL of every attempt so far, oldest first; the first ``skipped`` of them are left out and the
    others keep their numbers. ``status``, ``failure_type`` and ``error`` are those of the latest attempt.
    """
    values = _frame(question, schema, "repair") | {
        "STATIC_EXAMPLES": _examples(static_examples),
        "POSITIVE": "\n".join(_card("positive", i, card) for i, card in enumerate(positive, 1)) or NOTHING,
        "NEGATIVE": "\n".join(_card("negative", i, card) for i, card in enumerate(negative, 1)) or NOTHING,
        "REFLECTIONS": "\n".join(
            part("local_reflection", {"I": str(i), "TEXT": text}) for i, text in enumerate(reflections, 1)
        )
        or NOTHING,
        "STATUS": _failure(status),
        "TYPE": failure_type,
        "ERROR": _error(status, error),
        "HISTORY": "\n\n".join(
            part("attempt", {"I": str(i), "SQL": sql}) for i, sql in enumerate(history, 1) if i > skipped
        ),
    }
    return fill("repair", values)


def memory_card(card: Card, number: int = 1) -> str:
    """One entry as it stands in a repair prompt, under the heading of its polarity."""
    return _card("negative" if card.successful_direction is None else "positive", number, card)


def reflection_prompt(
    question: Question, schema: str, *, failure_type: FailureType | str, attempts: Sequence[ObservedAttempt]
) -> str:
    """The prompt that asks for a verbal reflection on all attempts so far, oldest first (strategy ``reflexion``)."""
    observed = (
        part(
            "observed_attempt",
            {
                "I": str(i),
                "SQL": sql,
                "STATUS": _failure(status),
                "ERROR": _error(status, error),
            },
        )
        for i, (sql, status, error) in enumerate(attempts, 1)
    )
    values = {"TYPE": str(failure_type), "ATTEMPTS": "\n\n".join(observed)}
    return fill("reflection", _frame(question, schema, "reflection") | values)


def extract_reflection(text: str) -> str:
    """What a model reflected: inside the tags, else everything up to ``</reflection>``; a reasoning block is dropped.

    A reflection that was cut before its closing tag keeps what there is after the opening one.
    """
    text = drop_reasoning(text)
    opened = re.search(r"<reflection>", text, re.IGNORECASE)
    closed = re.search(r"</reflection>", text, re.IGNORECASE)
    if opened and not (closed and closed.start() < opened.start()):
        text = text[opened.end() :]
    return re.split(r"</reflection>", text, maxsplit=1, flags=re.IGNORECASE)[0].strip()


def static_examples(database_id: str) -> tuple[StaticExample, ...]:
    """The four fixed examples for a question over this database: never of that database (spec §4)."""
    return tuple(example for example in _static_examples() if example.source != database_id)[:STATIC_EXAMPLES]


def fit(
    build: Callable[[Sequence[Card], Sequence[Card], int], str],
    count_tokens: Callable[[str], int],
    limit: int,
    *,
    positive: Sequence[Card] = (),
    negative: Sequence[Card] = (),
    attempts: int = 0,
    truncate: Truncate = "entries",
    encode: Callable[[str], Sequence[int]] | None = None,
    decode: Callable[[Sequence[int]], str] | None = None,
) -> Fitted:
    """A prompt of at most ``limit`` tokens, as far as leaving things out can do it (spec §5).

    ``build(positive, negative, skipped)`` renders the prompt with these cards and without the ``skipped`` oldest of
    the ``attempts`` in the history. Left out in this order, one at a time: the third positive card (and any beyond it),
    the negative ones, the second positive, the first, then the oldest attempts; the latest attempt stays.

    ``truncate="left"`` is the published way: the first tokens of the whole prompt are cut off. It needs the model's
    ``encode`` and ``decode``. Where these are given, the default way ends with it too if nothing else is left to drop;
    else a prompt that is still too long comes back as it is, with its true length.
    """
    if truncate == "left" and (encode is None or decode is None):
        raise BadInput("This model cannot cut a prompt on the left; choose to leave out whole entries instead.")
    positive, negative, skipped = list(positive), list(negative), 0
    dropped: list[str] = []
    prompt = build(positive, negative, skipped)
    tokens = count_tokens(prompt)
    while truncate == "entries" and tokens > limit:
        if len(positive) > 2 or (positive and not negative):
            dropped.append(f"positive {len(positive)}")
            positive.pop()
        elif negative:
            dropped.append(f"negative {len(negative)}")
            negative.pop()
        elif skipped < attempts - 1:
            skipped += 1
            dropped.append(f"attempt {skipped}")
        else:
            break
        prompt = build(positive, negative, skipped)
        tokens = count_tokens(prompt)
    if tokens > limit and encode is not None and decode is not None:
        ids = list(encode(prompt))
        cut = max(len(ids) - limit, 0)
        dropped.append(f"first {cut} tokens")
        prompt = decode(ids[cut:])
        tokens = len(ids) - cut
    return Fitted(prompt, tokens, tuple(dropped))


def fit_repair(
    question: Question,
    schema: str,
    *,
    positive: Sequence[Card] = (),
    negative: Sequence[Card] = (),
    reflections: Sequence[str] = (),
    status: Outcome | Status | str,
    failure_type: FailureType | str,
    error: str | None,
    history: Sequence[str],
    static_examples: Sequence[StaticExample] = (),
    count_tokens: Callable[[str], int],
    limit: int,
    truncate: Truncate = "entries",
    encode: Callable[[str], Sequence[int]] | None = None,
    decode: Callable[[Sequence[int]], str] | None = None,
) -> Fitted:
    """``repair_prompt``, made to fit ``limit`` tokens by ``fit``."""

    def build(positive: Sequence[Card], negative: Sequence[Card], skipped: int) -> str:
        return repair_prompt(
            question,
            schema,
            positive=positive,
            negative=negative,
            reflections=reflections,
            status=status,
            failure_type=failure_type,
            error=error,
            history=history,
            static_examples=static_examples,
            skipped=skipped,
        )

    return fit(
        build,
        count_tokens,
        limit,
        positive=positive,
        negative=negative,
        attempts=len(history),
        truncate=truncate,
        encode=encode,
        decode=decode,
    )


@cache
def _template(name: str) -> str:
    return (_TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")


def fill(name: str, values: Mapping[str, str]) -> str:
    """The template ``name`` with every ``{WORD}`` replaced, in one pass."""
    return re.sub(r"\{([A-Z_]+)\}", lambda found: values[found.group(1)], _template(name))


def part(name: str, values: Mapping[str, str]) -> str:
    """The same without the last newline: a part of a prompt."""
    return fill(name, values).removesuffix("\n")


def _frame(question: Question, schema: str, purpose: Purpose) -> dict[str, str]:
    """What all three prompts share. Outer white space of schema, question and evidence goes, as published."""
    context = ""
    if question.form == "bird":
        evidence = question.evidence.strip()
        context = fill("evidence" if evidence else "no_evidence", {"EVIDENCE": evidence})
    return {
        "VERSION": prompt_version(question, purpose),
        "SCHEMA": schema.strip(),
        "CONTEXT": context,
        "QUESTION": question.text.strip(),
    }


def _card(template: str, number: int, card: Card) -> str:
    values = {
        "I": str(number),
        "ID": card.id,
        "TYPE": card.failure_type,
        "FAILURE_CONTEXT": card.failure_context,
        "SUCCESSFUL_DIRECTION": card.successful_direction or "",
        "DELTA": card.delta,
        "OUTCOME": card.outcome,
        "ERROR": card.observed_db_error or "",
    }
    return part(template, values)


def _examples(examples: Sequence[StaticExample]) -> str:
    if not examples:
        return ""
    cards = (
        part(
            "static_example",
            {
                "I": str(i),
                "SOURCE": example.source,
                "QUESTION": example.question,
                "EVIDENCE": f"Evidence: {example.evidence}\n" if example.evidence else "",
                "SQL": example.sql,
            },
        )
        for i, example in enumerate(examples, 1)
    )
    return "\n".join(("FIXED STATIC EXAMPLES:", *cards)) + "\n\n"


@cache
def _static_examples() -> tuple[StaticExample, ...]:
    lines = json.loads((_TEMPLATES / "static_examples.json").read_text(encoding="utf-8"))
    return tuple(StaticExample(**line) for line in lines)


def _failure(status: Outcome | Status | str) -> str:
    if status not in _FAILURES:
        raise ValueError(f"Only a failed attempt is repaired; {status} is no failure.")
    return str(status)


def _error(status: Outcome | Status | str, error: str | None) -> str:
    return error or (Outcome.TIMEOUT if status == Outcome.TIMEOUT else NOTHING)
