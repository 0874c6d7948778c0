"""Tables and foreign keys as a graph in Graphviz's language; the drawing is the page's.

Names come from strangers: they stand in the text of labels only, escaped, one line each, cut when long, without marks
that turn or hide text. The graph's own names are numbers.

What this module does not know: how a graph is laid out, colours of a theme (they are given).
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterator

from merit.database.database import Database
from merit.database.schema import Column, Table

ALL_COLUMNS_UP_TO = 12
"""Tables; with more of them, only key columns are drawn."""
MOST_COLUMNS = 15
MOST_TABLES = 80
LONGEST_NAME = 32


def diagram(database: Database, ink: str = "#5b6472", paper: str = "transparent") -> str:
    """DOT text: a box per table with its columns (keys alone in larger databases), an arrow per foreign key from the
    columns to those they point to. Views are drawn dashed. Past 80 tables, those with the most links are drawn.

    ``ink`` and ``paper``: colours as Graphviz takes them."""
    tables = _drawn(database.tables)
    brief = len(tables) > ALL_COLUMNS_UP_TO
    numbers = {table.name: number for number, table in enumerate(tables)}
    targets = {
        (foreign.table, target) for table in tables for foreign in table.foreign_keys for target in foreign.targets
    }
    shown = {table.name: _columns(table, targets, brief) for table in tables}
    lines = [
        "digraph {",
        f'  graph [rankdir=LR, bgcolor="{paper}", nodesep=0.25, ranksep=0.6]',
        f'  node [shape=plain, fontname="sans-serif", fontsize=11, fontcolor="{ink}", color="{ink}"]',
        f'  edge [color="{ink}", arrowsize=0.7]',
    ]
    lines += [f"  t{numbers[table.name]} [label=<{_box(table, shown[table.name])}>]" for table in tables]
    lines += _arrows(tables, numbers, shown)
    left_out = len(database.tables) - len(tables)
    if left_out:
        lines.append(f'  more [shape=plaintext, label="and {left_out} more tables"]')
    return "\n".join([*lines, "}"]) + "\n"


def _drawn(tables: tuple[Table, ...]) -> list[Table]:
    if len(tables) <= MOST_TABLES:
        return list(tables)
    links = {table.name: len(table.foreign_keys) for table in tables}
    for table in tables:
        for foreign in table.foreign_keys:
            links[foreign.table] += 1
    linked = sorted(tables, key=lambda table: -links[table.name])[:MOST_TABLES]
    kept = {table.name for table in linked}
    return [table for table in tables if table.name in kept]


def _columns(table: Table, targets: set[tuple[str, str]], brief: bool) -> list[Column]:
    """The columns drawn: keys and what is pointed to always, others where there is room."""
    keys = {column.name for column in table.columns if column.primary_key or column.foreign_key}
    keys |= {column.name for column in table.columns if (table.name, column.name) in targets}
    room = 0 if brief else max(0, MOST_COLUMNS - len(keys))
    shown = []
    for column in table.columns:
        if column.name not in keys:
            if not room:
                continue
            room -= 1
        shown.append(column)
    return shown


def _box(table: Table, columns: list[Column]) -> str:
    style = ' style="dashed"' if table.kind == "view" else ""
    rows = [f"<tr><td><b>{label(table.name)}</b></td></tr>"]
    for column in columns:
        marks = " ".join(["PK"] * column.primary_key + ["FK"] * (column.foreign_key is not None))
        mark = f"  <i>{marks}</i>" if marks else ""
        place = table.columns.index(column)
        rows.append(f'<tr><td align="left" port="c{place}">{label(column.name)}{mark}</td></tr>')
    rest = len(table.columns) - len(columns)
    if rest:
        rows.append(f'<tr><td align="left"><i>{rest} more</i></td></tr>')
    return f'<table border="0" cellborder="1" cellspacing="0" cellpadding="4"{style}>{"".join(rows)}</table>'


def _arrows(tables: list[Table], numbers: dict[str, int], shown: dict[str, list[Column]]) -> Iterator[str]:
    places = {
        table.name: {column.name: number for number, column in enumerate(table.columns) if column in shown[table.name]}
        for table in tables
    }
    for table in tables:
        for foreign in table.foreign_keys:
            if foreign.table not in numbers:
                continue
            for column, target in zip(foreign.columns, foreign.targets, strict=True):
                start = f"t{numbers[table.name]}:c{places[table.name][column]}"
                end = f"t{numbers[foreign.table]}:c{places[foreign.table][target]}"
                yield f"  {start} -> {end}"


def label(name: str) -> str:
    """A name as it may stand in a label."""
    visible = "".join(" " if unicodedata.category(char)[0] in "CZ" else char for char in name)
    short = " ".join(visible.split()) or "(no visible name)"
    return html.escape(short if len(short) <= LONGEST_NAME else f"{short[: LONGEST_NAME - 1]}…")
