"""The prompts of the crystallization paper (Appendix E), and ours where it elides its own.

The texts lie in ``merit/templates/crystallization``; its README says which are the paper's. Cards that do not fit
the model's context are left out from the last rank on, and the caller is told how many were shown.

What this module does not know: models, retrieval, gold (no parameter can carry it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from merit.answer_regions import drop_reasoning, fences
from merit.crystallization.episodes import Episode, Probe, asked
from merit.episode import Question
from merit.extraction import extract_sql
from merit.prompts import fill, part

MAX_PROBES = 4
"""Most probe queries of one round (paper: 1–4)."""
MAX_NEW_TOKENS = 2048
"""Most tokens of one answer (paper §4)."""

SolverKind = Literal["direct", "cot"]


@dataclass(frozen=True)
class Prompt:
    """One request to a model: the system text and the user's message."""

    system: str
    user: str


def solver(
    question: Question,
    schema: str,
    *,
    header: str = "",
    cards: Sequence[str] = (),
    probes: Sequence[Probe] = (),
    kind: SolverKind = "direct",
) -> Prompt:
    """The solver's one call. Without cards the block of experience is left out; ``probes`` are those of the
    exploration arm; ``kind`` "cot" thinks before it answers."""
    experience = ""
    if cards:
        experience = fill("crystallization/experience", {"HEADER": header, "CARDS": "\n\n".join(cards)})
    values = {"SCHEMA": schema, "EXPERIENCE": experience, "PROBES": _probes(probes), "QUESTION": asked(question)}
    return Prompt(_system("solver_cot_system" if kind == "cot" else "solver_system"), _user("solver", values))


def fitting(build: Callable[[int], Prompt], count: int, tokens: Callable[[str], int], limit: int | None) -> int:
    """How many of ``count`` cards fit: the largest n for which ``build(n)`` has at most ``limit`` tokens."""
    while count and limit is not None:
        prompt = build(count)
        if tokens(prompt.system) + tokens(prompt.user) <= limit:
            break
        count -= 1
    return count


def probe(question: Question, schema: str, sql: str, returned: str) -> Prompt:
    """Asks for 1–4 probe queries about a wrong answer (T3)."""
    return Prompt(_system("probe_system"), _user("probe", _attempt(question, schema, sql, returned)))


def revise(question: Question, schema: str, sql: str, returned: str, probes: Sequence[Probe]) -> Prompt:
    """Asks for a correction, grounded in what the probes returned (T3)."""
    values = _attempt(question, schema, sql, returned) | {"PROBES": _probes(probes)}
    return Prompt(_system("revise_system"), _user("revise", values))


def revise_bit(question: Question, schema: str, sql: str) -> Prompt:
    """Asks for a correction with the one bit that it was wrong (T2)."""
    return Prompt(_system("revise_bit_system"), _user("revise_bit", _attempt(question, schema, sql, "")))


def explore(question: Question, schema: str) -> Prompt:
    """Asks for 1–4 probe queries before the first answer (the exploration arm; reconstructed)."""
    values = {"SCHEMA": schema, "QUESTION": asked(question)}
    return Prompt(_system("explore_system"), _user("explore", values))


def capsule(episode: Episode) -> Prompt:
    """Asks for the four fields of a W5 capsule, from the model's own statements and probes alone."""
    probes = [one for attempt in episode.tries for one in attempt.probes]
    values = {
        "QUESTION": asked(episode),
        "WRONG": episode.first.sql,
        "FIXED": episode.final_sql,
        "PROBES": _probes(probes),
    }
    return Prompt(_system("capsule_system"), _user("capsule", values))


def probe_queries(text: str) -> list[str]:
    """The statements a model proposed as probes, at most four, each from a block of its own, repetitions dropped.

    An answer without blocks may hold one statement.
    """
    text = drop_reasoning(text)
    found = [extract_sql(f"```sql\n{content}\n```") for language, content in islice(fences(text), 12)
             if language == "sql"]  # fmt: skip
    return list(dict.fromkeys(sql for sql in found or [extract_sql(text)] if sql))[:MAX_PROBES]


def told(probes: Sequence[Probe]) -> str:
    """Probes and what they returned, as every prompt and the trace card show them."""
    return "\n".join(f"{one.sql}\n-> {one.report}" for one in probes)


def _attempt(question: Question, schema: str, sql: str, returned: str) -> dict[str, str]:
    return {"SCHEMA": schema, "QUESTION": asked(question), "SQL": sql, "RETURNED": returned}


def _probes(probes: Sequence[Probe]) -> str:
    return fill("crystallization/probes", {"REPORTS": told(probes)}) if probes else ""


def _system(name: str) -> str:
    return part(f"crystallization/{name}", {})


def _user(name: str, values: dict[str, str]) -> str:
    return part(f"crystallization/{name}", values)
