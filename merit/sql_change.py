"""What changed from one SQL attempt to the next, in words: "join added: member", "filter moved: HAVING → WHERE".

The words come from the syntax trees of sqlglot, clause by clause, with table aliases resolved, so that writing
the same query differently is no change. The parser is not SQLite: it refuses broken attempts and mends others.
Nothing here is ever run or stored, and where a tree cannot be had the text difference stands alone, with a note.

What this module does not know: whether a change was for the better, and databases (names are not looked up).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from merit.sql_trees import changes, resolved

MAX_PARSED = 20_000
"""Longest SQL text, in characters, that is handed to the parser."""
_MAX_LINES = 400

NOT_PARSED = "The parser cannot read {which}, so the change is shown as text only."

ONLY_WRITING = "No clause changed; only the writing differs."


@dataclass(frozen=True)
class Line:
    """One line of the text difference. ``sign`` is "+" (new), "-" (gone) or " " (kept)."""

    sign: str
    text: str


@dataclass(frozen=True)
class SqlChange:
    """``words``: the changes in reading order, empty when only the spelling differs or no tree could be had.
    ``note``: a sentence when there is something to say about the comparison itself, else "".
    ``lines``: the difference of the texts."""

    words: tuple[str, ...]
    note: str
    lines: tuple[Line, ...]


def parse(sql: str) -> exp.Query | None:
    """The tree of one SELECT-like statement as SQLite would mostly read it, or None."""
    if not sql.strip() or len(sql) > MAX_PARSED:
        return None
    try:
        statements = sqlglot.parse(sql, read="sqlite")
    except (SqlglotError, RecursionError, ValueError):
        return None
    tree = statements[0] if len(statements) == 1 else None
    return tree if isinstance(tree, exp.Query) else None


def difference(before: str, after: str) -> SqlChange:
    """The change from ``before`` to ``after``; both may be anything, empty and broken SQL included."""
    lines = text_difference(before, after)
    if before.strip() == after.strip():
        return SqlChange((), "The same query again." if after.strip() else "", lines)
    old, new = parse(before), parse(after)
    if old is None or new is None:
        which = "both queries" if old is new else "the earlier query" if old is None else "the new query"
        return SqlChange((), NOT_PARSED.format(which=which), lines)
    try:
        words = tuple(dict.fromkeys(changes(resolved(old), resolved(new))))
    except (SqlglotError, RecursionError):
        return SqlChange((), NOT_PARSED.format(which="these queries"), lines)
    return SqlChange(words, "" if words else ONLY_WRITING, lines)


def text_difference(before: str, after: str) -> tuple[Line, ...]:
    """Line by line difference; a one-line query is broken at its clauses first, so that something lines up."""
    old, new = _lines(before), _lines(after)
    result = []
    for text in difflib.ndiff(old, new):
        if text[:1] in "+- " and text[1:2] == " ":
            result.append(Line(text[0], text[2:]))
    return tuple(result)


_CLAUSES = re.compile(
    r"\s+(?=(?:FROM|WHERE|GROUP\s+BY|HAVING|ORDER\s+BY|LIMIT|UNION|INTERSECT|EXCEPT|"
    r"(?:LEFT\s+|INNER\s+|CROSS\s+|NATURAL\s+)*(?:OUTER\s+)?JOIN)\b)",
    re.IGNORECASE,
)


def _lines(sql: str) -> list[str]:
    text = sql.strip()
    lines = text.splitlines()
    if len(lines) == 1 and "'" not in text and '"' not in text and "--" not in text:
        lines = _CLAUSES.sub("\n", text).splitlines()
    return lines[:_MAX_LINES]
