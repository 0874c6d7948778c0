"""Telling an English sentence from a line of SQL, as far as words can tell. Used where a parser cannot help.

What this module does not know: grammar. It errs on the side of SQL: a line is prose only if it gives itself away.
"""

from __future__ import annotations

import re

_RARE_IN_SQL = """
    the this that these those which who whose will would should are was were you your we our their they because
    here there please can could of to it its it's i me my so
"""
_STARTS_A_LINE_OF_SQL = """
    from where and or on join left right full inner outer cross natural group order by having limit offset union
    intersect except select distinct as in not exists between like glob is null case when then else end asc desc
    using values with all over partition rows range window collate cast escape
"""
_PROSE = frozenset(_RARE_IN_SQL.split())
_CONTINUES = frozenset(_STARTS_A_LINE_OF_SQL.split())
_LITERAL = re.compile(  # one that is cut off reaches to the end
    r"(?<![A-Za-z])'[^'\n]*(?:'|\Z)|\"[^\"\n]*(?:\"|\Z)|`[^`\n]*(?:`|\Z)|\[[^\]\n]{0,100}\]"
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[A-Za-z][A-Za-z']*(?![\w.]*[\w(])")
_MAX_READ = 20_000
"""Characters that are looked at: prose gives itself away early, and a longer text is no sentence."""
_LABEL = re.compile(r"(?:#{1,6} |\*\*|• |\||-{3,}\Z|={3,}\Z|[A-Z][A-Za-z ]{1,30}:(?:\s|\Z))")


def prose_words(text: str) -> list[str]:
    """The words of ``text`` outside literals and comments that hardly ever stand in SQL."""
    return [word for word in _words(text) if word in _PROSE]


def is_prose_line(line: str) -> bool:
    """Whether one line is a sentence, a heading or a label rather than the next line of a statement."""
    line = line.strip()
    if _LABEL.match(line):
        return True
    words = _words(line)
    if not words:
        return False
    telling = sum(word in _PROSE for word in words)
    ends = line.endswith((".", "!", "?", ":"))
    if words[0] in _CONTINUES or not line[0].isalpha():
        return telling >= 2 or (telling == 1 and ends and line[:2].istitle() and not line[:2].isupper())
    return telling > 0 or (ends and len(words) >= 3)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_COMMENT.sub(" ", _LITERAL.sub(" ", text[:_MAX_READ])))]
