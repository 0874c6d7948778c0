"""The one SQL statement in a model's answer (spec §5), exactly as the model wrote it, or "" where there is none.

Models wrap a statement in tags, fences, JSON, quotes and sentences, break it, or cut it at the token limit. A parser
only helps to decide where SQL ends and prose begins: its output is never used, and SQL it cannot read survives.
Every step is linear in the length of the answer.

What this module does not know: the database, and whether the statement is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import sqlglot

from merit.answer_regions import answers, drop_reasoning, regions
from merit.errors import BadInput
from merit.prose import is_prose_line, prose_words
from merit.sql_lexing import first_semicolon, is_blank, tokens

MAX_STATEMENT = 1_000_000
"""Longest statement, in characters, that SQLite takes; what is longer is cut here, and the database says so."""
MAX_PARSED = 20_000
"""Longest text, in characters, that is shown to the parser; a longer one is judged by its start alone."""
_MAX_TRIES = 15
"""How many places in one text are tried before it is given up; keeps hostile answers cheap."""

_COMMENT_OR_START = re.compile(
    r"/\*.*?(?:\*/|\Z)|^[ \t]*+--[^\n]*+|(?<![A-Za-z0-9_$.À-ɏ])(?P<start>SELECT|WITH)(?![A-Za-z0-9_$À-ɏ])",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_CTE = re.compile(
    r"WITH\s+(?:RECURSIVE\s+)?(?:\w+|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])\s*(?:\([^()]*\)\s*)?AS\s*(?:(?:NOT\s+)?MATERIALIZED\s*)?\(",
    re.IGNORECASE,
)
_OTHER_VERB = re.compile(
    r"(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|REPLACE\s+INTO|DELETE\s+FROM|UPDATE\s+\S+\s+SET|ALTER\s+TABLE|VALUES\s*\("
    r"|(?:CREATE|DROP)\s+(?:TEMP|TEMPORARY|UNIQUE|VIRTUAL|TABLE|VIEW|INDEX|TRIGGER)|PRAGMA\s+\w|ATTACH\s|DETACH\s"
    r"|VACUUM\b|SHOW\s+TABLES)",
    re.IGNORECASE,
)
_OTHER_AT_LINE = re.compile(
    r"^[ \t]*+(?P<verb>INSERT|REPLACE|DELETE|UPDATE)(?=\s{1,9}(?:INTO|FROM|OR|\S{1,99}\s{1,9}SET)\s)", re.MULTILINE
)
_STRAY = re.compile(
    r"</?(?:answer|reflection|sql|query|think(?:ing)?|reasoning)\s?>|<\|[\w ]{1,30}\|>|</s>|`{3}|~{3}"
    r"|(?:^|\n)[ \t]*(?:Human|Assistant|User|System)[ \t]*:",
    re.IGNORECASE,
)
_CLEAN_PREFIX = re.compile(r"\s*(?:[-*>#•]+|\d+[.)])?\s*(?:.{0,200}[:：]|sql|sqlite|query)?[\s*]*", re.IGNORECASE)
_NAME_AND_PERIOD = re.compile(r"\b(?:FROM|JOIN)\s+\w+[.!?]\Z", re.IGNORECASE)
_WRAPPERS = {"`": "`", '"': '"', "'": "'", "“": "”", "(": ")", "*": "**"}


def extract_sql(text: str, mode: str = "product") -> str:
    """The one statement in ``text``, stripped, a trailing ``;`` and what follows it cut, else unchanged.

    ``product``: a reasoning block is dropped first; the first ``<answer>`` block with a statement is taken, else the
    first SQL or bare fence with one, else JSON, else the first place in the text where SQL begins. Prose that merely
    holds the word select is no SQL; trailing prose is cut. No statement, or more than one: "".
    ``published``: the rule of the paper's code, kept for comparison; it takes drafts and prose for SQL.
    Any other mode raises ``BadInput``.
    """
    if mode == "published":
        return _published(text)
    if mode != "product":
        raise BadInput(f"The extraction mode is product or published, not {mode!r}.")
    for content, trusted in islice(regions(drop_reasoning(text)), 4 * _MAX_TRIES):
        found = _in_region(content, trusted)
        if found is not None:
            return found
    return ""


def _published(text: str) -> str:
    content = next((block for block, closed in answers(text) if closed), text)
    opened = content.find("```")
    if opened >= 0:
        start = opened + 3
        start += 3 * (content[start : start + 3].lower() == "sql")
        end = content.find("```", start)
        content = content[start:end] if end >= 0 else content
    found = re.search(r"\b(?:WITH|SELECT)\b", content, re.IGNORECASE)
    sql = content[found.start() :] if found else content
    stray = re.search(r"</?(?:answer|reflection)>|(?:^|\n)[^\S\n]*(?:Human|Assistant)\s{0,100}:", sql, re.IGNORECASE)
    sql = sql[: stray.start()].strip() if stray else sql.strip()
    end_of_sql = first_semicolon(sql)
    if end_of_sql is None:
        return sql
    return sql[:end_of_sql].rstrip() if is_blank(sql[end_of_sql:]) else ""


def _in_region(text: str, trusted: bool) -> str | None:
    """The statement of one region, "" if it holds more than one, None if it holds none."""
    lead = _lead(text)
    if _OTHER_VERB.match(text, lead) and (trusted or not prose_words(text[lead:])):
        return _first_of(text[lead:], True, False)
    verb = _OTHER_AT_LINE.search(text)
    for start in _starts(text):
        if verb and verb.start("verb") < start and first_semicolon(text[verb.start("verb") : start]) is None:
            return _first_of(text[verb.start("verb") :], True, False)
        first = trusted and start == lead
        prefix = text[text.rfind("\n", 0, start) + 1 : start]
        if not first and text[start] in "wW" and not _CTE.match(text, start):
            continue
        wrapper = text[max(start - 1, 0) : start]
        body = _before_stray(text[start:])
        unwrapped = _unwrapped(body, wrapper) if wrapper in _WRAPPERS else None
        clean = unwrapped is not None or _CLEAN_PREFIX.fullmatch(prefix) is not None
        if unwrapped is None and first and wrapper == "(":
            body = text[lead - len(text[:lead]) + len(text[:lead].rstrip("( \t\r\n")) :]
        statement = _first_of(body if unwrapped is None else unwrapped, first, not clean)
        if statement is not None:
            return statement
    return None


def _lead(text: str) -> int:
    """Where the first word after white space, comments, opening brackets and a bare label (``sql``) stands."""
    for token in tokens(text):
        label = token.kind == "word" and token.text.lower() in ("sql", "sqlite", "sqlquery", "query")
        if token.kind in ("space", "comment") or label or (token.kind == "sign" and not token.text.strip("(:")):
            continue
        return token.start
    return len(text)


def _starts(text: str) -> Iterator[int]:
    """The first places where a SELECT or WITH begins outside comments; fewer in a text that is hardly an answer."""
    found = (item.start() for item in _COMMENT_OR_START.finditer(text) if item["start"])
    return islice(found, _MAX_TRIES if len(text) <= MAX_STATEMENT // 10 else 3)


def _before_stray(text: str) -> str:
    """``text`` up to the first stray tag, fence or turn label that is not inside a closed one-line literal."""
    text = text[: MAX_STATEMENT + 1]
    for stray in islice(_STRAY.finditer(text), _MAX_TRIES):
        around = next((t for t in tokens(text) if t.start <= stray.start() < t.start + len(t.text)), None)
        inside = (
            around is not None
            and around.kind == "quoted"
            and around.start + len(around.text) >= stray.end() + 1
            and around.text[-1] in "'\"`]"
            and "\n" not in around.text
        )
        if not inside:
            return text[: stray.start()]
    return text


def _unwrapped(body: str, wrapper: str) -> str | None:
    """``body`` up to the character that closes ``wrapper``, at the first place where a whole statement ends."""
    closer = _WRAPPERS[wrapper]
    end = -1
    for _ in range(_MAX_TRIES):
        end = body.find(closer, end + 1)
        if end < 0:
            return None
        if wrapper == "(" and _continues(body[end + 1 :]):
            continue
        inside = body[:end].rstrip().rstrip(";")
        if not body[end + 1 : end + 2].isalnum() and len(inside.split()) > 1 and _parses(inside):
            return inside
    return None


def _continues(rest: str) -> bool:
    word = re.match(r"\s*([A-Za-z]+|[,)<>=*+-])", rest)
    return bool(word) and (word is not None and word.group(1).upper() in _AFTER_BRACKET)


_AFTER_BRACKET = {"UNION", "INTERSECT", "EXCEPT", "AS", "ORDER", "LIMIT", ",", ")", "<", ">", "=", "*", "+", "-"}


def _first_of(body: str, first: bool, in_sentence: bool) -> str | None:
    """The statement that ``body`` begins with; "" if another one follows it, None if it is no statement."""
    end = first_semicolon(body)
    statement = _as_statement(body[:end], first, in_sentence)
    if statement and end is not None and _has_statement(body[end + 1 :]):
        return ""
    return statement


def _has_statement(rest: str) -> bool:
    rest = rest[_lead_after_semicolons(rest) :]
    if _OTHER_VERB.match(rest) and not prose_words(rest.split("\n", 1)[0]):
        return True
    for start in _starts(rest):
        if rest[start] in "wW" and not _CTE.match(rest, start):
            continue
        body = _before_stray(rest[start:])
        prefix = rest[rest.rfind("\n", 0, start) + 1 : start]
        if _as_statement(body[: first_semicolon(body)], False, _CLEAN_PREFIX.fullmatch(prefix) is None):
            return True
    return False


def _lead_after_semicolons(text: str) -> int:
    return next((t.start for t in tokens(text) if t.kind not in ("space", "comment", "semicolon")), len(text))


def _as_statement(text: str, first: bool, in_sentence: bool) -> str | None:
    """``text``, which begins with a verb and holds no ``;``, without trailing prose; None if it is prose itself.

    ``first``: the model marked this as its SQL, so it is SQL even if broken. ``in_sentence``: words stand before it
    on its line, so it must parse and look like SQL to be taken for it.
    """
    text = text.strip()
    if not first and text.endswith((".", "!", "?")) and (in_sentence or _NAME_AND_PERIOD.search(text)):
        text = text[:-1]
    if not first:
        text = text.rstrip("。！？")
    if _parses(text):
        return text if first or _is_sql(text, in_sentence) else None
    trimmed = _without_prose(text) if not in_sentence else _without_rest_of_sentence(text)
    if trimmed is not None:
        return trimmed if first or _is_sql(trimmed, in_sentence) else None
    looks_like_sql = (
        re.search(r"\bFROM\b|[*=<>(]", text, re.IGNORECASE) is not None
        or re.match(r"SELECT\s[^\n]*?(?<![A-Za-z])['\"`\[]", text) is not None
    )
    if first:
        return text if looks_like_sql or not prose_words(text) else None
    return text if looks_like_sql and not in_sentence and not prose_words(text) else None


def _is_sql(text: str, in_sentence: bool) -> bool:
    """Whether a text that parses is meant as SQL: English after a lower-case select parses astonishingly often."""
    if text.startswith(("SELECT", "WITH")) and (not in_sentence or re.search(r"\bFROM\b|[*=<>()'\"\d]", text)):
        return True
    return not prose_words(text) and (not in_sentence or re.search(r"[*=<>(]", text) is not None)


def _without_prose(text: str) -> str | None:
    """``text`` up to the first line of prose before which a whole statement, or at least a paragraph, ends."""
    lines = text.split("\n")
    cuts = list(islice((i for i, line in enumerate(lines) if i and is_prose_line(line)), _MAX_TRIES))
    for cut in cuts:
        if _parses("\n".join(lines[:cut]).strip()):
            return "\n".join(lines[:cut]).strip()
    return next(("\n".join(lines[:cut]).strip() for cut in cuts if not lines[cut - 1].strip()), None)


def _without_rest_of_sentence(text: str) -> str | None:
    """``text`` up to where the sentence around it goes on: a word of prose, or up to two words before it."""
    words = list(islice(re.finditer(r"\s\S+", text[:MAX_PARSED]), 4 * _MAX_TRIES))
    telling = next((i for i, word in enumerate(words) if prose_words(word.group())), None)
    if telling is None:
        return None
    return next((text[: w.start()] for w in reversed(words[max(telling - 2, 0) : telling + 1])
                 if _parses(text[: w.start()])), None)  # fmt: skip


def _parses(text: str) -> bool:
    if not text or len(text) > MAX_PARSED:
        return False
    try:
        return len(sqlglot.parse(text, dialect="sqlite")) == 1
    except Exception:  # noqa: BLE001 - the parser meets whatever a model wrote; any trouble means "cannot read it"
        return False
