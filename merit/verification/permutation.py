"""Whether two bags of rows are equal up to one order of the columns, for all rows the same (spec §6, Spider).

The question is as hard as comparing graphs, but results of queries are easy: columns and rows are told apart by what
they hold and what they meet (colour refinement), and only what stays alike is tried out.

What this module does not know: SQL, and how many columns a result ought to have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from merit.episode import Row

Rows = Sequence[Row]


def equal_lists(first: Rows, second: Rows) -> bool:
    """Whether one column order makes the two lists of rows equal: then the columns are equal as a bag."""
    return Counter(zip(*first, strict=True)) == Counter(zip(*second, strict=True))


def equal_bags(first: Rows, second: Rows) -> bool:
    """Whether one column order makes the two bags of rows equal.

    Both hold the same number (1 or more) of rows of the same width. Values are equal as Python has it.
    """
    if Counter(first) == Counter(second):
        return True
    columns = (tuple(zip(*first, strict=True)), tuple(zip(*second, strict=True)))
    colours = _refined((first, second), columns)
    return colours is not None and _match(columns, *colours)


Colours = tuple[list[int], list[int]]


class _Names(dict[Hashable, int]):
    """Numbers things in the order in which they come up; equal things get equal numbers."""

    def __missing__(self, key: Hashable) -> int:
        self[key] = len(self)
        return self[key]


def _refined(rows: tuple[Rows, Rows], columns: tuple[Rows, Rows]) -> tuple[Colours, Colours] | None:
    """Colours of columns and of rows on both sides, so that only equal ones can correspond; None if none can."""
    names = _Names()
    column_colours: Colours = tuple([names[_bag(column)] for column in side] for side in columns)  # type: ignore[assignment]
    row_colours: Colours = ([0] * len(rows[0]), [0] * len(rows[1]))
    classes = 0
    while True:
        if Counter(column_colours[0]) != Counter(column_colours[1]):
            return None
        names = _Names()
        row_colours = tuple(  # type: ignore[assignment]
            [names[_bag(zip(column_colours[s], row, strict=True))] for row in rows[s]] for s in (0, 1)
        )
        if Counter(row_colours[0]) != Counter(row_colours[1]):
            return None
        names_of_columns = _Names()
        column_colours = tuple(  # type: ignore[assignment]
            [
                names_of_columns[colour, _bag(zip(row_colours[s], column, strict=True))]
                for colour, column in zip(column_colours[s], columns[s], strict=True)
            ]
            for s in (0, 1)
        )
        now = len(names) + len(names_of_columns)
        if now == classes:
            return column_colours, row_colours
        classes = now


def _match(columns: tuple[Rows, Rows], column_colours: Colours, row_colours: Colours) -> bool:
    """Match the columns one by one; after each, the rows cut down to the matched columns must be equal as bags."""
    sizes = Counter(column_colours[0])
    order = sorted(range(len(columns[0])), key=lambda i: sizes[column_colours[0][i]])
    # For each depth: the number of every (class of the row so far, next value), and how many rows have it.
    steps: list[tuple[dict[tuple[int, Hashable], int], Counter[int]]] = []
    classes = row_colours[0]
    for i in order:
        names = _Names()
        classes = [names[pair] for pair in zip(classes, columns[0][i], strict=True)]
        steps.append((dict(names), Counter(classes)))  # type: ignore[arg-type]

    def search(depth: int, classes: list[int], unused: frozenset[int]) -> bool:
        if depth == len(order):
            return True
        names, counts = steps[depth]
        tried = set()
        for j in unused:
            column = columns[1][j]
            if column_colours[1][j] != column_colours[0][order[depth]] or column in tried:
                continue
            tried.add(column)
            found = [names.get(pair, -1) for pair in zip(classes, column, strict=True)]
            if Counter(found) == counts and search(depth + 1, found, unused - {j}):
                return True
        return False

    return search(0, row_colours[1], frozenset(range(len(columns[1]))))


def _bag(values: Iterable[Hashable]) -> frozenset[tuple[Hashable, int]]:
    return frozenset(Counter(values).items())
