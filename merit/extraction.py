"""The one SQL statement in a model's answer (spec §5), exactly as the model wrote it, or "" where there is none.

Models wrap a statement in tags, fences, JSON, quotes and sentences, break it, or cut it at the token limit. A parser
only helps to decide where SQL ends and prose begins: its output is never used, and SQL it cannot read survives.
Every step is linear in the length of the answer.

What this module does not know: the database, and whether the statement is right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice

import sqlglot

from merit.prose import is_prose_line, prose_words
from merit.sql_lexing import first_semicolon, is_blank, tokens

MAX_PARSED = 20_000
"""Longest text, in characters, that is shown to the parser; a longer one is judged by its start alone."""
_MAX_TRIES = 15
"""How many places in one text are tried before it is given up; keeps hostile answers cheap."""

_REASONING = re.compile(r"<(?P<close>/?)(?:think(?:ing)?|reasoning|thought)\s*>", re.IGNORECASE)
_ANSWER = re.compile(r"<(?P<close>/?)\s?answer\b[^<>]{0,80}>", re.IGNORECASE)
_RUN = re.compile(r"`{3,}|~{3,}")
_START = re.compile(r"(?<![A-Za-z0-9_$.À-ɏ])(?:SELECT|WITH)(?![A-Za-z0-9_$À-ɏ])", re.IGNORECASE)
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
_STRAY = re.compile(
    r"</?(?:answer|reflection|sql|query|think(?:ing)?|reasoning)\s?>|<\|[\w ]{1,30}\|>|</s>|`{3}|~{3}"
    r"|(?:^|\n)[ \t]*(?:Human|Assistant|User|System)[ \t]*:",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(
    r"[ \t]*(?:(?P<sql>sqlite3?|sql|mysql|mariadb|postgres(?:ql)?|psql|t-?sql|plsql|plaintext|text|txt)"
    r"(?=\s|select\b|with\b|\Z)"
    r"|(?!(?:select|with|insert|update|delete|values)\b)(?P<other>[A-Za-z][\w+#.-]*)(?=[ \t]*(?:\r?\n|\Z)))",
    re.IGNORECASE,
)
_CLEAN_PREFIX = re.compile(r"\s*(?:[-*>#•]+|\d+[.)])?\s*(?:.{0,200}[:：]|sql|sqlite|query)?[\s*]*", re.IGNORECASE)
_JSON_KEY = re.compile(r"(?:final_?|generated_?)?(?:sql|query|answer|statement)(?:_?(?:query|statement))?", re.I)
_WRAPPERS = {"`": "`", '"': '"', "'": "'", "“": "”", "(": ")", "*": "**"}


def extract_sql(text: str, mode: str = "product") -> str:
    """The one statement in ``text``, stripped, a trailing ``;`` and what follows it cut, else unchanged.

    ``product``: a reasoning block is dropped first; the first ``<answer>`` block with a statement is taken, else the
    first SQL or bare fence with one, else JSON, else the first place in the text where SQL begins. Prose that merely
    holds the word select is no SQL; trailing prose is cut. No statement, or more than one: "".
    ``published``: the rule of the paper's code, kept for comparison; it takes drafts and prose for SQL.
    Any other mode raises ``ValueError``.
    """
    if mode == "published":
        return _published(text)
    if mode != "product":
        raise ValueError(f"The extraction mode is product or published, not {mode!r}.")
    for content, trusted in islice(_regions(drop_reasoning(text)), 4 * _MAX_TRIES):
        found = _in_region(content, trusted)
        if found is not None:
            return found
    return ""


def drop_reasoning(text: str) -> str:
    """``text`` without its reasoning: whole ``<think>`` blocks, all before a lone ``</think>``, all after an unclosed
    ``<think>``. A tag inside quotes (``'%</think>%'``) is text."""
    kept: list[str] = []
    depth = position = 0
    last_close: int | None = None
    for tag in _REASONING.finditer(text):
        if text[tag.start() - 1 : tag.start()] in tuple("'\"%") and text[tag.end() : tag.end() + 1] in tuple("'\"%"):
            continue
        if not tag["close"]:
            if depth == 0:
                kept.append(text[position : tag.start()])
                last_close = None
            depth += 1
            continue
        if depth == 0:
            kept = []
        depth = max(depth - 1, 0)
        position = last_close = tag.end()
    if depth == 0 or last_close is not None:
        kept.append(text[position:])
    return "".join(kept)


def _published(text: str) -> str:
    content = next((block for block, closed in _answers(text, innermost=False) if closed), text)
    opened = content.find("```")
    if opened >= 0:
        start = opened + 3
        start += 3 * (content[start : start + 3].lower() == "sql")
        end = content.find("```", start)
        content = content[start:end] if end >= 0 else content
    found = re.search(r"\b(?:WITH|SELECT)\b", content, re.IGNORECASE)
    sql = content[found.start() :] if found else content
    stray = re.search(
        r"</?(?:answer|reflection)>|(?:^|\n)[^\S\n]*(?:Human|Assistant)\s{0,100}:", sql, re.IGNORECASE
    )
    sql = sql[: stray.start()].strip() if stray else sql.strip()
    end_of_sql = first_semicolon(sql)
    if end_of_sql is None:
        return sql
    return sql[:end_of_sql].rstrip() if is_blank(sql[end_of_sql:]) else ""


def _answers(text: str, *, innermost: bool = True) -> Iterator[tuple[str, bool]]:
    """The content of each ``<answer>`` block and whether it is closed; only the last can be unclosed."""
    start: int | None = None
    for tag in _ANSWER.finditer(text):
        if not tag["close"]:
            start = tag.end() if innermost or start is None else start
        elif start is not None:
            yield text[start : tag.start()], True
            start = None
    if start is not None:
        yield text[start:], False


def _regions(text: str) -> Iterator[tuple[str, bool]]:
    """Where to look, most trustworthy first; trusted means that the model marked it as its SQL."""
    for block, _ in _answers(text):
        yield from _marked(block)
        yield block, True
    yield from _marked(text)
    yield text, False


def _marked(text: str) -> Iterator[tuple[str, bool]]:
    fences = list(islice(_fences(text), _MAX_TRIES))
    for language, content in fences:
        if language == "sql":
            yield from ((value, True) for value in _json_values(content))
            yield content, True
    for language, content in fences:
        if language != "sql":
            yield from ((value, True) for value in _json_values(content))
            yield content, False
    for value in _json_values(text):
        yield from ((content, True) for _, content in islice(_fences(value), 1))
        yield value, True


def _fences(text: str) -> Iterator[tuple[str, str]]:
    """The language ("sql" for SQL, plain text and none) and content of each fence; the last may be unclosed."""
    opened: re.Match[str] | None = None
    for run in _RUN.finditer(text):
        if opened is None:
            opened = run
        elif run.group()[0] == opened.group()[0] and len(run.group()) >= len(opened.group()):
            # A fence glued to a quoted name (FROM `t````) leaves the name its own backtick.
            end = run.start()
            if len(run.group()) > len(opened.group()) and text.count("`", opened.end(), end) % 2:
                end += 1
            yield _language(text[opened.end() : end])
            opened = None
    if opened is not None:
        yield _language(text[opened.end() :])


def _language(content: str) -> tuple[str, str]:
    found = _LANGUAGE.match(content)
    if not found:
        return "sql", content
    return ("sql" if found["sql"] else found["other"].lower()), content[found.end() :]


def _json_values(text: str) -> list[str]:
    """Texts that a JSON object in ``text`` holds under a name such as sql or query."""
    start = text.find("{")
    if start < 0:
        return []
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text[start:])
    except (ValueError, RecursionError):
        return []
    return [item for key, item in value.items() if isinstance(item, str) and _JSON_KEY.fullmatch(key)]


def _in_region(text: str, trusted: bool) -> str | None:
    """The statement of one region, "" if it holds more than one, None if it holds none."""
    lead = _lead(text)
    if _OTHER_VERB.match(text, lead) and (trusted or not prose_words(text[lead:])):
        return _first_of(text[lead:], True, False)
    for found in islice(_starts(text), _MAX_TRIES):
        start = found.start()
        first = trusted and start == lead
        prefix = text[text.rfind("\n", 0, start) + 1 : start]
        if found.group().lower() == "with" and not first and not _CTE.match(text, start):
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


def _starts(text: str) -> Iterator[re.Match[str]]:
    """Every place where a SELECT or WITH begins outside comments."""
    comments = [(found.start(), found.end()) for found in islice(re.finditer(r"/\*.*?\*/", text, re.DOTALL), 1000)]
    for found in _START.finditer(text):
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if line.lstrip().startswith("--") or any(start < found.start() < end for start, end in comments):
            continue
        yield found


def _before_stray(text: str) -> str:
    """``text`` up to the first stray tag, fence or turn label that is not inside a closed one-line literal."""
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
        if _parses(body[:end].rstrip().rstrip(";")):
            return body[:end]
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
    for found in islice(_starts(rest), _MAX_TRIES):
        if found.group().lower() == "with" and not _CTE.match(rest, found.start()):
            continue
        body = _before_stray(rest[found.start() :])
        prefix = rest[rest.rfind("\n", 0, found.start()) + 1 : found.start()]
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
    if _parses(text):
        return text if first or _is_sql(text, in_sentence) else None
    trimmed = _without_prose(text, first)
    if trimmed is not None:
        return trimmed if first or _is_sql(trimmed, in_sentence) else None
    if first:
        return text
    return None if in_sentence or prose_words(text) or not re.search(r"\bFROM\b|[*=<>(]", text, re.I) else text


def _is_sql(text: str, in_sentence: bool) -> bool:
    """Whether a text that parses is meant as SQL: English after a lower-case select parses astonishingly often."""
    if text.startswith(("SELECT", "WITH")) and (not in_sentence or re.search(r"\bFROM\b|[*=<>()'\"\d]", text)):
        return True
    return not prose_words(text) and (not in_sentence or re.search(r"[*=<>(]", text) is not None)


def _without_prose(text: str, first: bool) -> str | None:
    """``text`` up to the first line of prose before which a whole statement, or at least a paragraph, ends."""
    lines = text.split("\n")
    cuts = [i for i, line in enumerate(lines) if i and is_prose_line(line)][:_MAX_TRIES]
    for cut in cuts:
        if _parses("\n".join(lines[:cut]).strip()):
            return "\n".join(lines[:cut]).strip()
    for cut in cuts:
        if not lines[cut - 1].strip():
            return "\n".join(lines[:cut]).strip()
    sentence = text.rstrip(".!?")
    return sentence if not first and sentence != text and _parses(sentence) else None


def _parses(text: str) -> bool:
    if not text or len(text) > MAX_PARSED:
        return False
    try:
        return len(sqlglot.parse(text, dialect="sqlite")) == 1
    except Exception:  # noqa: BLE001 - the parser meets whatever a model wrote; any trouble means "cannot read it"
        return False
