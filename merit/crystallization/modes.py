"""The fourteen failure modes, read off the difference of two syntax trees, and the guard of each (cards W2 to W4).

The paper names three modes (``value-literal``, ``column-ref``, ``group-by``) and quotes two guards; the other eleven
modes, all definitions and twelve guards are reconstructed, and every row of the table says so.

A mode fires on what the diff removed against what it inserted, so that a comparison that was only moved or wrapped
differently is none. What this module does not know: whether the change was for the better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeGuard

import sqlglot
from sqlglot import exp
from sqlglot.diff import Insert, Remove, Update

from merit.sql_trees import resolved

Origin = Literal["paper", "reconstructed"]

MAX_LEAVES = 150
"""Most columns, tables and values of one statement that are matched; the diff's time grows with their product."""


class Mode(StrEnum):
    """The fourteen failure modes in their fixed order; with several, a card's guard is that of the first."""

    VALUE_LITERAL = "value-literal"
    COLUMN_REF = "column-ref"
    TABLE_REF = "table-ref"
    JOIN_PATH = "join-path"
    JOIN_CONDITION = "join-condition"
    PREDICATE_OPERATOR = "predicate-operator"
    AGGREGATE_FUNCTION = "aggregate-function"
    GROUP_BY = "group-by"
    HAVING = "having"
    ORDER_BY = "order-by"
    LIMIT = "limit"
    DISTINCT = "distinct"
    PROJECTION = "projection"
    SET_OR_SUBQUERY = "set-or-subquery"


@dataclass(frozen=True)
class ModeInfo:
    """One row of the table: when the mode fires, its guard, and where name and guard come from."""

    mode: Mode
    fires: str
    guard: str
    named_by: Origin = "reconstructed"
    guard_by: Origin = "reconstructed"


_TABLE = (
    ModeInfo(
        Mode.VALUE_LITERAL,
        "A value in a condition was changed, added or dropped.",
        "Apply only when filtering on this column; verify the literal actually exists in the column first.",
        "paper",
        "paper",
    ),
    ModeInfo(
        Mode.COLUMN_REF,
        "A column was replaced by another in the same clause.",
        "Apply only when the question asks for this attribute; check which table really holds the column.",
        "paper",
    ),
    ModeInfo(
        Mode.TABLE_REF,
        "A table was replaced by another.",
        "Apply only when the facts asked for are stored in this table; check that its columns cover the question.",
    ),
    ModeInfo(
        Mode.JOIN_PATH,
        "A table was joined or left out, or a join changed its kind.",
        "Apply only when the columns needed lie in different tables; follow the declared foreign keys.",
    ),
    ModeInfo(
        Mode.JOIN_CONDITION,
        "Tables that both queries read are linked over other columns.",
        "Apply only when joining these two tables; link them over the key that refers to the other.",
    ),
    ModeInfo(
        Mode.PREDICATE_OPERATOR,
        "The comparisons of the conditions are others (=, <, LIKE, IN, OR …).",
        "Apply only when the question words the same comparison; check inclusive bounds and exact against "
        "partial matches.",
    ),
    ModeInfo(
        Mode.AGGREGATE_FUNCTION,
        "The aggregate functions are others, or count distinct values.",
        "Apply only when the question asks for this figure; check whether it counts rows or distinct values.",
    ),
    ModeInfo(
        Mode.GROUP_BY,
        "The grouping was changed.",
        "Add GROUP BY only when the answer is per entity/category",
        "paper",
        "paper",
    ),
    ModeInfo(
        Mode.HAVING,
        "A condition on groups was changed.",
        "Use HAVING only when the condition is on a figure of the whole group; filter single rows in WHERE.",
    ),
    ModeInfo(
        Mode.ORDER_BY,
        "The order of the rows was changed.",
        "Order only when the question ranks or asks for an order; check the direction.",
    ),
    ModeInfo(
        Mode.LIMIT,
        "The number of rows was limited otherwise.",
        "Use LIMIT only when the question asks for a fixed number of rows; ties may call for more than one.",
    ),
    ModeInfo(
        Mode.DISTINCT,
        "DISTINCT was added or dropped.",
        "Use DISTINCT only when the question asks for different values and the joins repeat them.",
    ),
    ModeInfo(
        Mode.PROJECTION,
        "Other outputs: their number, their order, or how they are computed.",
        "Return exactly the columns the question asks for, in the order in which it names them.",
    ),
    ModeInfo(
        Mode.SET_OR_SUBQUERY,
        "A subquery, a WITH query or a set operation was added or dropped.",
        "Nest or combine queries only when one answer depends on the result of another.",
    ),
)

MODES: dict[Mode, ModeInfo] = {info.mode: info for info in _TABLE}
"""Fixed order. ``guard`` is what W4 prints."""


@dataclass(frozen=True)
class Edits:
    """What the diff took out of the resolved old tree and put into the resolved new one."""

    old: exp.Query
    new: exp.Query
    removed: tuple[exp.Expr, ...]
    inserted: tuple[exp.Expr, ...]


class TooLarge(Exception):
    """Too many leaves for a diff of the trees."""


def edits(old: exp.Query, new: exp.Query) -> Edits:
    """The edit script of sqlglot between two statements, names resolved. Raises ``TooLarge``."""
    before, after = resolved(old), resolved(new)
    if max(_leaves(before), _leaves(after)) > MAX_LEAVES:
        raise TooLarge
    removed: list[exp.Expr] = []
    inserted: list[exp.Expr] = []
    for edit in sqlglot.diff(before, after, delta_only=True):
        match edit:
            case Insert():
                inserted.append(edit.expression)
            case Remove():
                removed.append(edit.expression)
            case Update():
                removed.append(edit.source)
                inserted.append(edit.target)
    return Edits(before, after, tuple(removed), tuple(inserted))


def modes_of(found: Edits) -> tuple[Mode, ...]:
    """The modes that fire, in the fixed order; () where only the writing differs."""
    return tuple(mode for mode in Mode if _TESTS[mode](found))


def _leaves(tree: exp.Expr) -> int:
    return sum(1 for _ in tree.find_all(exp.Column, exp.Literal, exp.Table))


_CLAUSES = (exp.Where, exp.Having, exp.Join, exp.Group, exp.Order, exp.Limit, exp.Offset, exp.From, exp.Select)
_PREDICATES = (exp.Predicate, exp.Or, exp.Not, exp.Between, exp.In)


def _clause(node: exp.Expr) -> type[exp.Expr] | None:
    """The kind of the innermost clause a node stands in."""
    home = node.find_ancestor(*_CLAUSES)
    return next((kind for kind in _CLAUSES if isinstance(home, kind)), None)


Key = tuple[object, ...]


def _changed(found: Edits, key: Callable[[exp.Expr], Key | None]) -> tuple[Counter[Key], Counter[Key]]:
    """The keys that went and those that came; what only moved cancels out."""
    gone, come = (
        Counter(got for node in nodes if (got := key(node)) is not None) for nodes in (found.removed, found.inserted)
    )
    return gone - come, come - gone


def _any(key: Callable[[exp.Expr], Key | None]) -> Callable[[Edits], bool]:
    return lambda found: any(_changed(found, key))


def _literal(node: exp.Expr) -> Key | None:
    inside = _clause(node)
    if not isinstance(node, exp.Literal) or inside in (exp.Limit, exp.Offset, exp.Having):
        return None
    return (node.name, node.is_string) if node.find_ancestor(exp.Predicate, exp.In, exp.Between) else None


def _column_replaced(found: Edits) -> bool:
    moved = all(_tables(found))  # with its table replaced, a column of the same name is no other column

    def column(node: exp.Expr) -> Key | None:
        if not isinstance(node, exp.Column):
            return None
        inside = _clause(node)
        return (inside, "" if moved else node.table, node.name) if inside in (exp.Where, exp.Select) else None

    gone, come = _changed(found, column)
    return bool({key[0] for key in gone} & {key[0] for key in come})


def _predicate(node: exp.Expr) -> Key | None:
    if not isinstance(node, _PREDICATES) or _clause(node) is not exp.Where or _links(node):
        return None
    return (type(node).__name__,) if not isinstance(node, exp.Exists) else None


def _links(node: exp.Expr) -> TypeGuard[exp.EQ]:
    return isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column)


def _aggregates(tree: exp.Query) -> Counter[Key]:
    """The aggregate functions but those of HAVING and ORDER BY, and whether they take distinct values."""
    found = (node for node in tree.find_all(exp.AggFunc) if _clause(node) not in (exp.Having, exp.Order))
    return Counter((type(node).__name__, isinstance(node.this, exp.Distinct)) for node in found)


def _table_names(tree: exp.Query) -> Counter[str]:
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    return Counter(table.name for table in tree.find_all(exp.Table) if table.name not in ctes)


def _tables(found: Edits) -> tuple[Counter[str], Counter[str]]:
    old, new = _table_names(found.old), _table_names(found.new)
    return old - new, new - old


def _table_replaced(found: Edits) -> bool:
    return all(_tables(found))


def _path_changed(found: Edits) -> bool:
    gone, come = _tables(found)
    if gone.total() != come.total():
        return True
    return not gone and _join_kinds(found.old) != _join_kinds(found.new)


def _join_kinds(tree: exp.Query) -> Counter[str]:
    """How each table is joined; the plain ways to write an inner join are one."""
    kinds = Counter[str]()
    for join in tree.find_all(exp.Join):
        parts = [join.args.get("method"), join.args.get("side"), join.args.get("kind")]
        kind = " ".join(str(part).upper() for part in parts if part).replace(" OUTER", "")
        kinds["" if kind in ("INNER", "CROSS") else kind] += 1
    return kinds


def _link_rules(tree: exp.Query, tables: set[str]) -> Counter[Key]:
    """Every equation of two columns of these tables, in either direction, and USING."""
    rules = Counter[Key]()
    for node in tree.find_all(exp.EQ):
        if _links(node) and {column.table for column in node.find_all(exp.Column)} <= tables:
            rules[tuple(sorted((node.left.sql(), node.right.sql())))] += 1
    for join in tree.find_all(exp.Join):
        if isinstance(join.this, exp.Table) and join.this.name in tables:
            rules.update((join.this.name, name.name) for name in join.args.get("using") or [])
    return rules


def _condition_changed(found: Edits) -> bool:
    both = set(_table_names(found.old) & _table_names(found.new)) | {""}
    return _link_rules(found.old, both) != _link_rules(found.new, both)


def _texts(kind: type[exp.Expr]) -> Callable[[Edits], bool]:
    """Whether the clauses of one kind read differently."""

    def differs(found: Edits) -> bool:
        old, new = (Counter(_read(node) for node in tree.find_all(kind)) for tree in (found.old, found.new))
        return old != new

    return differs


def _read(node: exp.Expr) -> str:
    return node.sql(dialect="sqlite")


def _selects(tree: exp.Query) -> Iterator[exp.Select]:
    yield from tree.find_all(exp.Select)


def _distinct_changed(found: Edits) -> bool:
    old, new = (Counter(bool(select.args.get("distinct")) for select in _selects(t)) for t in (found.old, found.new))
    return old[True] != new[True]


def _limited(found: Edits) -> bool:
    return _texts(exp.Limit)(found) or _texts(exp.Offset)(found)


def _outputs(tree: exp.Query) -> list[exp.Expr]:
    """What the whole statement gives out: the outputs of its first query."""
    first = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.left if isinstance(first, exp.SetOperation) else first.unnest()  # type: ignore[assignment]
    return [node.unalias() for node in first.expressions]


def _shape(node: exp.Expr) -> str:
    """An output with its columns blanked and its aggregate functions taken off: how it is computed."""

    def blank(part: exp.Expr) -> exp.Expr:
        return exp.column("x") if isinstance(part, exp.Column | exp.AggFunc | exp.Star) else part

    return node.copy().transform(blank).sql(dialect="sqlite")


def _projected(found: Edits) -> bool:
    old, new = _outputs(found.old), _outputs(found.new)
    if [_shape(node) for node in old] != [_shape(node) for node in new]:
        return True
    before, after = [_read(node) for node in old], [_read(node) for node in new]
    return before != after and sorted(before) == sorted(after)


def _nesting(tree: exp.Query) -> Counter[str]:
    kinds = Counter(type(node).__name__ for node in tree.find_all(exp.SetOperation, exp.CTE, exp.Exists))
    kinds["query"] = sum(1 for _ in tree.find_all(exp.Select))
    return kinds


_TESTS: dict[Mode, Callable[[Edits], bool]] = {
    Mode.VALUE_LITERAL: _any(_literal),
    Mode.COLUMN_REF: _column_replaced,
    Mode.TABLE_REF: _table_replaced,
    Mode.JOIN_PATH: _path_changed,
    Mode.JOIN_CONDITION: _condition_changed,
    Mode.PREDICATE_OPERATOR: _any(_predicate),
    Mode.AGGREGATE_FUNCTION: lambda found: _aggregates(found.old) != _aggregates(found.new),
    Mode.GROUP_BY: _texts(exp.Group),
    Mode.HAVING: _texts(exp.Having),
    Mode.ORDER_BY: _texts(exp.Order),
    Mode.LIMIT: _limited,
    Mode.DISTINCT: _distinct_changed,
    Mode.PROJECTION: _projected,
    Mode.SET_OR_SUBQUERY: lambda found: _nesting(found.old) != _nesting(found.new),
}
