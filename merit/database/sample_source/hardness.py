"""Spider's hardness of a query: easy, medium, hard or extra, from counts of its parts.

Source: ``Evaluator.eval_hardness`` and its helpers in taoyds/test-suite-sql-eval (``evaluation.py``), carried over
to sqlglot's tree. Three counts of the outermost SELECT (of the first one, where a set operation joins several):

* component 1: WHERE, GROUP BY, ORDER BY, LIMIT (one each), every table of FROM after the first, every OR and every
  LIKE of the conditions;
* component 2: sub-queries that are operands of conditions, and one for a set operation;
* others, at most four: more than one aggregate, more than one selected column, more than one WHERE condition,
  more than one GROUP BY expression.

Kept as they are there: a negated condition (NOT IN, NOT LIKE, NOT BETWEEN) counts as an aggregate, an aggregate in
HAVING does not, a sub-query in FROM is an ordinary table, and what a sub-query holds is not counted.
Spider's own parser knows no EXISTS, CTE, scalar sub-query in the select list or sub-query on the left of a
comparison; here each counts as one component 2.

What this module does not know: whether a query is right, or how hard it is for a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp


@dataclass(frozen=True)
class Components:
    """The three counts that decide the hardness."""

    first: int
    second: int
    others: int


def hardness(sql: str) -> str:
    """``easy``, ``medium``, ``hard`` or ``extra``; raises sqlglot's ParseError for what is no SQLite query."""
    parts = components(sql)
    first, second, others = parts.first, parts.second, parts.others
    if second == 0:
        if first <= 1 and others == 0:
            return "easy"
        if (first <= 1 and others <= 2) or (first <= 2 and others < 2):
            return "medium"
        if (first <= 2 and others > 2) or (first == 3 and others <= 2):
            return "hard"
    elif second == 1 and first <= 1 and others == 0:
        return "hard"
    return "extra"


def components(sql: str) -> Components:
    """The counts over the outermost SELECT of one statement."""
    tree = sqlglot.parse_one(sql, dialect="sqlite")
    nested = len(list(tree.find_all(exp.CTE)))
    if isinstance(tree, exp.SetOperation):
        nested += 1
    while isinstance(tree, exp.SetOperation):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        raise sqlglot.ParseError("only a SELECT has a hardness")
    where, having = _leaves(tree.args.get("where")), _leaves(tree.args.get("having"))
    joins: list[exp.Join] = tree.args.get("joins") or []
    ons = [leaf for join in joins for leaf in _leaves(join.args.get("on"))]
    conditions = ons + where + having
    order = tree.args["order"].expressions if tree.args.get("order") else []
    group = tree.args["group"].expressions if tree.args.get("group") else []

    first = sum(bool(tree.args.get(part)) for part in ("where", "group", "order", "limit")) + len(joins)
    first += sum(isinstance(_positive(leaf), exp.Like) for leaf in conditions)
    first += sum(_ors(clause) for clause in [tree.args.get("where"), tree.args.get("having"), *_on_clauses(joins)])
    second = nested + sum(_subqueries(node) for node in [*conditions, *tree.expressions, *order])

    aggregates = sum(_aggregates(item) > 0 for item in tree.expressions) + sum(_aggregates(item) for item in order)
    aggregates += sum(_negated(leaf) for leaf in where + having)
    others = (aggregates > 1) + (len(tree.expressions) > 1) + (len(where) > 1) + (len(group) > 1)
    return Components(first, second, others)


def _on_clauses(joins: list[exp.Join]) -> list[exp.Expr]:
    return [join.args["on"] for join in joins if join.args.get("on")]


def _leaves(clause: exp.Expr | None) -> list[exp.Expr]:
    """The conditions between AND and OR, brackets taken off."""
    if clause is None:
        return []
    if isinstance(clause, (exp.Where, exp.Having, exp.Paren)):
        return _leaves(clause.this)
    if isinstance(clause, exp.Connector):
        return _leaves(clause.left) + _leaves(clause.right)
    if isinstance(clause, exp.Not) and isinstance(clause.this, exp.Paren):
        return _leaves(clause.this)
    return [clause]


def _ors(clause: exp.Expr | None) -> int:
    if clause is None:
        return 0
    if isinstance(clause, exp.Connector):
        return isinstance(clause, exp.Or) + _ors(clause.left) + _ors(clause.right)
    return _ors(clause.this) if isinstance(clause, (exp.Where, exp.Having, exp.Paren, exp.Not)) else 0


def _positive(leaf: exp.Expr) -> exp.Expr:
    inner: exp.Expr = leaf.this if isinstance(leaf, exp.Not) else leaf
    return inner


def _negated(leaf: exp.Expr) -> bool:
    """NOT before the operator; ``IS NOT`` is an operator of its own and none."""
    if isinstance(leaf, exp.Not):
        return not isinstance(leaf.this, exp.Is)
    return bool(leaf.args.get("negate"))


def _outside_subqueries(node: exp.Expr) -> Iterator[exp.Expr]:
    """The node and what is below it, a nested query itself included but not its inside."""
    yield node
    if not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from _outside_subqueries(child)


def _subqueries(node: exp.Expr) -> int:
    return sum(isinstance(part, exp.Query) for part in _outside_subqueries(node))


def _aggregates(node: exp.Expr) -> int:
    return sum(isinstance(part, exp.AggFunc) for part in _outside_subqueries(node))
