"""The schema of one SQLite file as facts, and its two texts (spec §5): ``listing`` and ``ddl``.

Tables are those a person made: helper tables of full-text search and R*Tree (SQLite calls them shadow tables)
and SQLite's own are left out. An object that cannot be read is left out with a sentence and hides no other.
Names are as stored: never trimmed, folded or normalised; they are *matched* as SQLite does, ASCII case aside.

What this module does not know: cell values (none is read here), where the file came from.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from merit.database.execution import inspect
from merit.database.names import as_written, key, quoted
from merit.episode import Row

LIST_TIMEOUT_S = 10.0
BATCH_TIMEOUT_S = 3.0
OBJECT_TIMEOUT_S = 0.5
PATIENCE_S = 5.0
"""How long objects are tried one by one after the batch failed, all together."""

OBJECTS = "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid"
KINDS = "SELECT name, type FROM pragma_table_list WHERE schema = 'main'"
COLUMNS = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?, 'main') ORDER BY cid"
FOREIGN_KEYS = 'SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?, \'main\') ORDER BY id DESC, seq'
HIDDEN = 1
"""``hidden`` of table_xinfo: 1 for the hidden columns of virtual tables, 2 and 3 for generated columns."""


@dataclass(frozen=True)
class Reference:
    """The column that a foreign key column points to."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


@dataclass(frozen=True)
class ForeignKey:
    """A declared foreign key: ``columns[i]`` points to ``targets[i]`` of ``table``."""

    columns: tuple[str, ...]
    table: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """One column. ``type`` is the word of the schema listing (spec §5), ``declared`` the type as declared."""

    name: str
    type: str
    primary_key: bool = False
    foreign_key: Reference | None = None
    declared: str = ""


@dataclass(frozen=True)
class Table:
    """A table or a view (``kind``). ``primary_key`` in the order of the key; ``sql`` is the stored statement."""

    name: str
    columns: tuple[Column, ...]
    kind: str = "table"
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    sql: str = ""


class SchemaUnreadable(Exception):
    """Not even the names of the tables can be read; the message is SQLite's, or says that time ran out."""


def read(uri: str) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The tables and views of the file behind ``uri`` in order of creation, and a sentence per problem."""
    first = inspect(uri, [(OBJECTS, ())], LIST_TIMEOUT_S)
    if not first:
        raise SchemaUnreadable("reading the list of its tables takes too long")
    if isinstance(first[0], str):
        raise SchemaUnreadable(first[0])
    objects = [row for row in first[0] if not str(row[0]).lower().startswith("sqlite_")]
    # Tables first: should views eat up all patience, no table is missing.
    objects.sort(key=lambda row: row[1] == "view")
    names = [str(row[0]) for row in objects]
    queries: list[tuple[str, Sequence[str]]] = [(KINDS, ())]
    queries += [(sql, (name,)) for name in names for sql in (COLUMNS, FOREIGN_KEYS)]
    kinds, *answers = _patiently(uri, queries)
    shadows = set() if isinstance(kinds, str) else {name for name, kind in kinds if kind == "shadow"}

    tables: list[Table] = []
    keys: dict[str, tuple[Row, ...]] = {}
    problems: list[str] = []
    for (name, kind, sql), columns, foreign in zip(objects, answers[::2], answers[1::2], strict=True):
        if name in shadows:
            continue
        if isinstance(columns, str) or not columns:
            reason = columns if isinstance(columns, str) else "it shows no columns"
            problems.append(f"The {kind} {name} is left out: {reason}.")
            continue
        tables.append(_table(name, kind, sql or "", columns))
        keys[name] = () if isinstance(foreign, str) else foreign
    order = {row[0]: position for position, row in enumerate(first[0])}
    tables.sort(key=lambda table: order[table.name])
    return _linked(tables, keys, problems), tuple(problems)


def _patiently(uri: str, queries: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[Row, ...] | str]:
    """All answers, in one go if that works; else one by one, since a single view can take all the time there is."""
    answers = inspect(uri, queries, BATCH_TIMEOUT_S)
    if len(answers) == len(queries):
        return answers
    answers = []
    until = time.monotonic() + PATIENCE_S
    for query in queries:
        found = inspect(uri, [query], OBJECT_TIMEOUT_S) if time.monotonic() < until else []
        answers.append(found[0] if found else "opening it takes too long")
    return answers


def _table(name: str, kind: str, sql: str, columns: Iterable[Row]) -> Table:
    shown = [row for row in columns if row[3] != HIDDEN]
    key_parts = sorted((pk, column) for column, _, pk, _ in shown if pk)
    return Table(
        name=name,
        kind=kind,
        sql=sql,
        columns=tuple(
            Column(column, declared.lower() or "blob", primary_key=pk > 0, declared=declared)
            for column, declared, pk, _ in shown
        ),
        primary_key=tuple(column for _, column in key_parts),
    )


def _linked(tables: list[Table], keys: Mapping[str, Sequence[Row]], problems: list[str]) -> tuple[Table, ...]:
    """The tables with their foreign keys resolved to real names; keys that lead nowhere become problems."""
    by_name = {key(table.name): table for table in tables}
    return tuple(_with_keys(table, keys[table.name], by_name, problems) for table in tables)


def _with_keys(table: Table, rows: Iterable[Row], by_name: Mapping[bytes, Table], problems: list[str]) -> Table:
    declared: dict[int, list[Row]] = {}
    for row in rows:
        declared.setdefault(row[0], []).append(row)
    found: list[ForeignKey] = []
    for parts in declared.values():
        columns = tuple(str(part[2]) for part in parts)
        target = by_name.get(key(parts[0][1]))
        targets = _targets(target, [part[3] for part in parts]) if target else None
        if target is None or targets is None:
            problems.append(
                f"A foreign key of {table.name} ({', '.join(columns)}) is left out: "
                f"{parts[0][1]} has no such column or does not exist."
            )
            continue
        found.append(ForeignKey(columns, target.name, targets))
    links: dict[str, Reference] = {}
    for foreign in found:
        for column, to in zip(foreign.columns, foreign.targets, strict=True):
            links.setdefault(column, Reference(foreign.table, to))
    columns_with_links = tuple(replace(column, foreign_key=links.get(column.name)) for column in table.columns)
    return replace(table, columns=columns_with_links, foreign_keys=tuple(found))


def _targets(target: Table, named: Sequence[str | None]) -> tuple[str, ...] | None:
    """The real names of the target columns; without names it is the primary key that is meant."""
    if any(name is None for name in named):
        return target.primary_key if len(target.primary_key) == len(named) else None
    real = {key(column.name): column.name for column in target.columns}
    found = [real.get(key(str(name))) for name in named]
    return None if None in found else tuple(str(name) for name in found)


def with_types(tables: Iterable[Table], types: Mapping[str, Any]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The tables with the column types of ``types`` (table → column → type, or one entry of a Spider ``tables.json``),
    matched without regard to case, and a sentence for what it names and the database lacks."""
    tables = tuple(tables)
    wanted = {
        (key(table), key(column)): (f"{table}.{column}", str(kind).lower())
        for table, columns in (_of_entry(types) if "column_names_original" in types else types).items()
        for column, kind in columns.items()
    }
    used: set[tuple[bytes, bytes]] = set()

    def typed(table: Table, column: Column) -> Column:
        place = (key(table.name), key(column.name))
        if place not in wanted:
            return column
        used.add(place)
        return replace(column, type=wanted[place][1])

    result = tuple(replace(table, columns=tuple(typed(table, column) for column in table.columns)) for table in tables)
    missing = [name for place, (name, _) in wanted.items() if place not in used]
    if not missing:
        return result, ()
    return result, (f"The list of types names columns that this database lacks: {', '.join(missing)}.",)


def _of_entry(entry: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """One entry of ``tables.json`` as table → column → type."""
    types: dict[str, dict[str, str]] = {}
    names = entry["table_names_original"]
    for (table, column), kind in zip(entry["column_names_original"], entry["column_types"], strict=True):
        if table >= 0:
            types.setdefault(names[table], {})[column] = kind
    return types


def listing(database_id: str, tables: Iterable[Table]) -> str:
    """The schema text of the prompts (spec §5), without a newline at the end."""
    blocks = [f"Database: {database_id}"]
    blocks += ["\n".join([f"Table: {table.name}", *map(_listed, table.columns)]) for table in tables]
    return "\n\n".join(blocks)


def _listed(column: Column) -> str:
    marks = [column.type]
    if column.primary_key:
        marks.append("PRIMARY KEY")
    if column.foreign_key:
        marks.append(f"FOREIGN KEY -> {column.foreign_key}")
    return f"  - {column.name} ({', '.join(marks)})"


def ddl(tables: Iterable[Table]) -> str:
    """The schema as SQL: CREATE TABLE with declared types, primary and foreign keys; views as they were written."""
    return "\n\n".join(_created(table) for table in tables)


def _created(table: Table) -> str:
    if table.kind == "view":
        return f"{table.sql};"
    inline = table.primary_key if len(table.primary_key) == 1 else ()
    lines = []
    for column in table.columns:
        words = [as_written(column.name), column.declared, "PRIMARY KEY" if column.name in inline else ""]
        lines.append(" ".join(word for word in words if word))
    if table.primary_key and not inline:
        lines.append(f"PRIMARY KEY ({_names(table.primary_key)})")
    lines += [
        f"FOREIGN KEY ({_names(foreign.columns)}) REFERENCES {as_written(foreign.table)} ({_names(foreign.targets)})"
        for foreign in table.foreign_keys
    ]
    body = ",\n".join(f"    {line}" for line in lines)
    return f"CREATE TABLE {as_written(table.name)} (\n{body}\n);"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(as_written, names))


def preview_statement(table: str, rows: int) -> str:
    """The statement that shows the first rows of a table of any name."""
    return f"SELECT * FROM {quoted(table)} LIMIT {rows:d}"


def count_statement(table: str) -> str:
    """The statement that counts the rows of a table of any name."""
    return f"SELECT count(*) FROM {quoted(table)}"
