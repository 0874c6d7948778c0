"""First questions for a database nobody has asked yet, from its schema alone.

Each is answerable from what the schema declares: counts, names, extremes, averages, groups, and links by foreign keys.
What this module does not know: a single cell, and how a question will be answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest

from merit.database.database import Database
from merit.database.schema import Column, Table

LONGEST_NAME = 40
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
NAMES = frozenset({"name", "title", "label", "full name", "first name", "last name", "description"})
NUMBERS = ("int", "real", "float", "double", "num", "dec")
TEXTS = ("char", "text", "clob", "string")
KEY_LIKE = re.compile(r"(.*[ _])?(id|key|code|no|nr|uuid|index)", re.IGNORECASE)
DATE_LIKE = re.compile(r"(.* )?(at|on|date|day|time|since|until|created|updated)", re.IGNORECASE)
"""Names of columns whose values hardly repeat: nothing to count by."""
SAME_IN_PLURAL = frozenset({"data", "news", "series", "species", "staff", "people", "information", "status"})


def suggest_questions(database: Database, n: int = 5) -> list[str]:
    """At most ``n`` different questions, of several kinds and about several tables; none for an empty schema."""
    tables = [table for table in database.tables if _usable(table.name)]
    # Tables that others point to are what a database is about.
    pointed_at = {table.name: 0 for table in tables}
    for table in tables:
        for foreign in table.foreign_keys:
            pointed_at[foreign.table] = pointed_at.get(foreign.table, 0) + 1
    tables.sort(key=lambda table: (table.kind == "view", -pointed_at[table.name]))
    if not tables:
        return []
    kinds = [[question for table in _turned(tables, shift) for question in ask(table)]
             for shift, ask in enumerate(_KINDS)]  # fmt: skip
    mixed = [question for question in chain.from_iterable(zip_longest(*kinds)) if question]
    return list(dict.fromkeys(mixed))[:n]


def _turned(tables: list[Table], by: int) -> list[Table]:
    """The tables from another one on, so that each kind of question begins with its own."""
    start = by % len(tables)
    return tables[start:] + tables[:start]


def _count(table: Table) -> Iterator[str]:
    yield f"How many {plural(words(table.name))} are there?"


def _links(table: Table) -> Iterator[str]:
    for foreign in table.foreign_keys:
        if foreign.table != table.name and _usable(foreign.table):
            yield f"How many {plural(words(table.name))} does each {singular(words(foreign.table))} have?"


def _extremes(table: Table) -> Iterator[str]:
    for column in _columns(table, NUMBERS):
        yield f"Which {singular(words(table.name))} has the highest {words(column.name)}?"


def _averages(table: Table) -> Iterator[str]:
    for column in _columns(table, NUMBERS):
        yield f"What is the average {words(column.name)} of all {plural(words(table.name))}?"


def _lists(table: Table) -> Iterator[str]:
    for column in _columns(table, TEXTS):
        if words(column.name) in NAMES:
            yield f"List the {words(column.name)} of all {plural(words(table.name))} in alphabetical order."


def _groups(table: Table) -> Iterator[str]:
    for column in _columns(table, TEXTS):
        if words(column.name) not in NAMES and not DATE_LIKE.fullmatch(words(column.name)):
            yield f"How many {plural(words(table.name))} are there for each {words(column.name)}?"


_KINDS: Sequence[Callable[[Table], Iterator[str]]] = (_count, _links, _extremes, _lists, _groups, _averages)


def _columns(table: Table, kinds: Sequence[str]) -> list[Column]:
    """Columns of these declared types that are no keys, by declaration or by name."""
    return [
        column
        for column in table.columns
        if any(kind in column.declared.lower() for kind in kinds)
        and not column.primary_key
        and column.foreign_key is None
        and _usable(column.name)
        and not KEY_LIKE.fullmatch(words(column.name))
    ]


def _usable(name: str) -> bool:
    """Whether a name reads as words: letters, digits, spaces, the usual signs between them, not too long."""
    return len(name) <= LONGEST_NAME and bool(re.fullmatch(r"\w[\w .\-]*", name)) and any(map(str.isalpha, name))


def words(name: str) -> str:
    """A name of a table or column as words: ``ArtistName`` and ``artist_name`` become "artist name"."""
    spread = CAMEL.sub(" ", re.sub(r"[_.\-\s]+", " ", name)).strip()
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in spread.split())


def plural(text: str) -> str:
    """The words with the last one in the plural, by the common rules of English."""
    rest, _, last = text.rpartition(" ")
    lower = last.lower()
    if lower in SAME_IN_PLURAL or (lower.endswith("s") and not lower.endswith(("ss", "us"))):
        return text
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        last = f"{last[:-1]}ies"
    elif lower.endswith(("ss", "us", "x", "ch", "sh", "z")):
        last = f"{last}es"
    else:
        last = f"{last}s"
    return f"{rest} {last}".strip()


def singular(text: str) -> str:
    """The words with the last one in the singular, by the common rules of English."""
    rest, _, last = text.rpartition(" ")
    lower = last.lower()
    if lower in SAME_IN_PLURAL or lower.endswith(("ss", "us", "is")) or not lower.endswith("s"):
        return text
    if lower.endswith("ies") and len(lower) > 4:
        last = f"{last[:-3]}y"
    elif lower.endswith(("sses", "xes", "ches", "shes", "uses")):
        last = last[:-2]
    else:
        last = last[:-1]
    return f"{rest} {last}".strip()
