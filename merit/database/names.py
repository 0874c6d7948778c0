"""Identifiers of SQLite: how they are quoted and when two of them are the same.

What this module does not know: whether a name exists.
"""

from __future__ import annotations

import re

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

WORDS = (
    "abort action add after all alter always analyze and as asc attach autoincrement before begin between by cascade "
    "case cast check collate column commit conflict constraint create cross current current_date current_time "
    "current_timestamp database default deferrable deferred delete desc detach distinct do drop each else end escape "
    "except exclude exclusive exists explain fail filter first following for foreign from full generated glob group "
    "groups having if ignore immediate in index indexed initially inner insert instead intersect into is isnull join "
    "key last left like limit match materialized natural no not nothing notnull null nulls of offset on or order "
    "others outer over partition plan pragma preceding primary query raise range recursive references regexp reindex "
    "release rename replace restrict returning right rollback row rows savepoint select set table temp temporary then "
    "ties to transaction trigger unbounded union unique update using vacuum values view virtual when where window "
    "with within without"
)
KEYWORDS = frozenset(WORDS.split())
"""Words that may need quotes (sqlite.org/lang_keywords.html; a quoted name is never wrong)."""


def quoted(name: str) -> str:
    """The name between double quotes, inner ones doubled: right for every name that SQLite can hold."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def as_written(name: str) -> str:
    """The name as a person would write it: bare where SQLite allows that, else quoted."""
    return name if PLAIN.fullmatch(name) and name.lower() not in KEYWORDS else quoted(name)


def key(name: str) -> bytes:
    """Equal for names that are the same to SQLite, which folds the case of ASCII letters and nothing else."""
    return name.encode("utf-8", "surrogatepass").lower()
