"""The ordered rules that give a failure its label (paper Table 6, spec §2): data, and the one function that reads it.

What this module does not know: the SQL text, its parse tree or the gold. A label comes from the DBMS message and
the judged status alone, so messages the table does not name (``not authorized``, ``sub-select returns 2 columns -
expected 1``, ``wrong number of arguments to function …``, UNION column counts) land in Unknown, as published.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from merit.episode import Diagnosis, FailureType, Outcome, Status

FAILURES = (Outcome.DENOTATION_MISMATCH, Outcome.EXECUTION_ERROR, Outcome.TIMEOUT)
"""The outcomes that have a failure type; a correct, unjudged or cancelled attempt has none."""


@dataclass(frozen=True)
class Rule:
    """One line of the table.

    A rule fires when its ``pattern`` is found in the message (case ignored, outer white space dropped) or its
    ``status`` is the judged one. ``condition`` says the same in words. Order matters: the first that fires wins.
    """

    number: int
    condition: str
    failure_type: FailureType
    subtype: str = ""
    pattern: str | None = None
    status: Outcome | None = None


@dataclass(frozen=True)
class Step:
    """One rule that was tested: whether it fired and, in words, why or why not."""

    rule: Rule
    fired: bool
    why: str


# Messages quote user-made names, so a pattern is never shorter than the phrase SQLite itself writes
# ("timed out", not "timeout"), and the phrases that precede a name are tested before those a name may hold.
RULES = (
    Rule(
        1,
        "status TIMEOUT, or the message is TIMEOUT or contains “timed out”",
        FailureType.EXECUTION,
        "Timeout",
        r"\ATIMEOUT\Z|timed out",
        Outcome.TIMEOUT,
    ),
    Rule(2, "no such table: …", FailureType.SCHEMA_LINKING, "Missing Table", r"no such table:"),
    Rule(3, "no such column: …", FailureType.SCHEMA_LINKING, "Missing Column", r"no such column:"),
    Rule(4, "no such view: …", FailureType.SCHEMA_LINKING, "Missing View", r"no such view:"),
    Rule(5, "ambiguous column name: …", FailureType.SCHEMA_LINKING, "Ambiguous Column", r"ambiguous column name:"),
    Rule(6, "no such function: …", FailureType.SYNTAX, "Unknown Function", r"no such function:"),
    Rule(
        7,
        "syntax error, incomplete input or unrecognized token",
        FailureType.SYNTAX,
        "Parse Failure",
        r"syntax error|incomplete input|unrecognized token",
    ),
    Rule(
        8,
        "misuse of aggregate, or aggregate functions are not allowed",
        FailureType.AGGREGATION,
        "Aggregate Misuse",
        r"misuse of aggregate|aggregate functions are not allowed",
    ),
    Rule(
        9,
        "datatype mismatch or type mismatch",
        FailureType.FILTER_VALUE,
        "Type Mismatch",
        r"datatype mismatch|type mismatch",
    ),
    Rule(
        10,
        "attempt to write a readonly database, or only SELECT or WITH queries",
        FailureType.EXECUTION,
        "Read-only Violation",
        r"attempt to write a readonly database|only SELECT or WITH queries",
    ),
    Rule(11, "database not found", FailureType.EXECUTION, "Database Not Found", r"database not found"),
    Rule(12, "any other message", FailureType.UNKNOWN, pattern=r"."),
    Rule(13, "no message, it executed and was judged wrong", FailureType.RESULT_MISMATCH,
         status=Outcome.DENOTATION_MISMATCH),
    Rule(14, "no message, it did not execute", FailureType.UNKNOWN, status=Outcome.EXECUTION_ERROR),
)  # fmt: skip

_PATTERNS = {rule.number: re.compile(rule.pattern, re.IGNORECASE | re.DOTALL) for rule in RULES if rule.pattern}


def explain(status: Status | Outcome | str, error: str | None) -> tuple[Step, ...]:
    """Every rule that was tested, in order, the last being the one that fired.

    ``status`` is DENOTATION_MISMATCH, EXECUTION_ERROR or TIMEOUT; anything else is no failure: ``ValueError``.
    ``error`` is the DBMS message, None or blank where there is none.
    """
    if status not in FAILURES:
        raise ValueError(f"{status} is no failure; a failure is one of {', '.join(FAILURES)}.")
    message = (error or "").strip()
    steps = []
    for rule in RULES:
        step = _test(rule, Outcome(status), message)
        steps.append(step)
        if step.fired:
            break
    return tuple(steps)


def diagnose(status: Status | Outcome | str, error: str | None) -> Diagnosis:
    """The label of a failure: type, subtype ("" where the table has a dash) and the rule, 1 to 14 (spec §2).

    The message is tested before the status, but for TIMEOUT. An outcome that is no failure raises ``ValueError``.
    """
    rule = explain(status, error)[-1].rule
    return Diagnosis(rule.failure_type, rule.subtype, rule.number)


def _test(rule: Rule, status: Outcome, message: str) -> Step:
    if rule.status is status:
        return Step(rule, True, f"The status is {status}.")
    pattern = _PATTERNS.get(rule.number)
    if pattern is None:
        return Step(rule, False, f"The status is {status}, not {rule.status}.")
    found = pattern.search(message)
    if found:
        what = "There is a message." if rule.number == 12 else f"The message contains “{found.group()}”."
        return Step(rule, True, what)
    if not message:
        return Step(rule, False, "There is no message.")
    return Step(rule, False, "The message does not contain it.")
