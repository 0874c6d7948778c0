"""Where quotes, comments and semicolons stand in a SQL text, by SQLite's own rules. Read only: nothing is rewritten.

Every function is linear in the length of the text, because the text may be five megabytes from a confused model.

What this module does not know: whether the text is SQL at all, and grammar beyond tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# An unclosed literal or comment reaches to the end, as in SQLite; that also keeps the search linear.
_COMMENT = r"--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_QUOTED = (
    r"'[^']*+(?:''[^']*+)*+(?:'|\Z)|\"[^\"]*+(?:\"\"[^\"]*+)*+(?:\"|\Z)"
    r"|`[^`]*+(?:``[^`]*+)*+(?:`|\Z)|\[[^\]]*+(?:\]|\Z)"
)
_ENTITY = r"&(?:lt|gt|amp|quot|apos|\#39|\#x27);"
_TOKEN = re.compile(
    rf"(?P<comment>{_COMMENT})|(?P<quoted>{_QUOTED})|(?P<entity>{_ENTITY})|(?P<semicolon>;)"
    r"|(?P<word>[^\W\d][\w$]*+)|(?P<number>\d[\w.]*+)|(?P<space>\s++)|(?P<sign>[^\w\s'\"`\[;&/-]++|.)",
    re.DOTALL,
)
_BLANK = re.compile(rf"(?:[\s;]++|{_COMMENT})*+", re.DOTALL)
_UP_TO_SEMICOLON = re.compile(rf"(?:[^;'\"`\[/&-]++|{_COMMENT}|{_QUOTED}|{_ENTITY}|[/&-])*+", re.DOTALL)


class Token(NamedTuple):
    """One piece of the text: ``kind`` is comment, quoted, entity, semicolon, word, number, space or sign."""

    kind: str
    text: str
    start: int


def tokens(sql: str, start: int = 0) -> Iterator[Token]:
    """Every piece of ``sql`` from ``start`` on; joined they are the text again."""
    for found in _TOKEN.finditer(sql, start):
        yield Token(str(found.lastgroup), found.group(), found.start())


def is_blank(sql: str) -> bool:
    """Whether SQLite would find nothing to run: white space, comments and semicolons only."""
    return _BLANK.fullmatch(sql) is not None


def first_semicolon(sql: str) -> int | None:
    """Where the first semicolon outside quotes and comments stands. One that ends an HTML entity is none."""
    found = _UP_TO_SEMICOLON.match(sql)
    return found.end() if found and found.end() < len(sql) else None
