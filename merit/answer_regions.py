"""The parts of a model's answer in which to look for SQL: reasoning dropped, tags, fences and JSON opened.

Linear in the length of the answer.

What this module does not know: SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice

_MAX_PARTS = 15
"""Most fences that are looked into."""
_REASONING = re.compile(r"<(?P<close>/?)(?:think(?:ing)?|reasoning|thought)\s*>", re.IGNORECASE)
_ANSWER = re.compile(r"<(?P<close>/?)\s?answer\b[^<>]{0,80}>", re.IGNORECASE)
_RUN = re.compile(r"`{3,}|~{3,}")
_LANGUAGE = re.compile(
    r"[ \t]*(?:(?P<sql>sqlite3?|sql|mysql|mariadb|postgres(?:ql)?|psql|t-?sql|plsql|plaintext|text|txt)"
    r"(?=\s|select\b|with\b|\Z)"
    r"|(?!(?:select|with|insert|update|delete|values)\b)(?P<other>[A-Za-z][\w+#.-]*)(?=[ \t]*(?:\r?\n|\Z)))",
    re.IGNORECASE,
)
_JSON_KEY = re.compile(r"(?:final_?|generated_?)?(?:sql|query|answer|statement)(?:_?(?:query|statement))?", re.I)


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


def answers(text: str) -> Iterator[tuple[str, bool]]:
    """The content of each ``<answer>`` block and whether it is closed; only the last can be unclosed."""
    start: int | None = None
    for tag in _ANSWER.finditer(text):
        if not tag["close"]:
            start = tag.end() if start is None else start
        elif start is not None:
            yield text[start : tag.start()], True
            start = None
    if start is not None:
        yield text[start:], False


def regions(text: str) -> Iterator[tuple[str, bool]]:
    """Where to look, most trustworthy first; trusted means that the model marked it as its SQL."""
    for block, _ in answers(text):
        yield from _marked(block)
        yield block, True
    yield from _marked(text)
    yield text, False


def _marked(text: str) -> Iterator[tuple[str, bool]]:
    found = list(islice(fences(text), _MAX_PARTS))
    for language, content in found:
        if language == "sql":
            yield from ((value, True) for value in _json_values(content))
            yield content, True
    for language, content in found:
        if language != "sql":
            yield from ((value, True) for value in _json_values(content))
            yield content, False
    for value in _json_values(text):
        yield from ((content, True) for _, content in islice(fences(value), 1))
        yield value, True


def fences(text: str) -> Iterator[tuple[str, str]]:
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
