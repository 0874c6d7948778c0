"""Two syntax trees of sqlglot compared clause by clause, in words.

What this module does not know: texts (``merit.sql_change`` parses them and shows their difference), databases, and
whether a change was for the better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

_LONGEST = 90
"""Most characters of one quoted part."""


def resolved(tree: exp.Query) -> exp.Query:
    """A copy in which names are lower-case, alias prefixes are table names and a column of a query over one table
    carries its name: two spellings of one query become one tree."""
    tree = tree.copy()
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
        identifier.set("quoted", False)
    for select in list(tree.find_all(exp.Select)):
        tables = [source for source in _sources(select) if isinstance(source, exp.Table)]
        names = {table.alias_or_name: table.name for table in tables}
        if len(set(names.values())) < len(tables):
            continue  # a table joined to itself needs its aliases
        only = tables[0].name if len(tables) == 1 == len(_sources(select)) else None
        for column in select.find_all(exp.Column):
            if column.table in names:
                column.set("table", exp.to_identifier(names[column.table]))
            elif not column.table and only and column.find_ancestor(exp.Select) is select:
                column.set("table", exp.to_identifier(only))
        for table in tables:
            table.set("alias", None)
    return tree


def _shortened(old: exp.Select, new: exp.Select) -> tuple[exp.Select, exp.Select]:
    """Both without column prefixes where both read the same one table: the words get shorter."""
    before, after = _sources(old), _sources(new)
    if not (len(before) == len(after) == 1 and before == after and isinstance(before[0], exp.Table)):
        return old, new
    name = before[0].name
    old, new = old.copy(), new.copy()
    for column in (*old.find_all(exp.Column), *new.find_all(exp.Column)):
        if column.table == name:
            column.set("table", None)
    return old, new


def _sources(select: exp.Select) -> list[exp.Expr]:
    first = select.args.get("from_")
    found = [first.this] if first is not None else []
    return found + [join.this for join in select.args.get("joins") or []]


def _text(node: exp.Expr) -> str:
    """A node in one short line."""
    line = " ".join(node.sql(dialect="sqlite").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def changes(old: exp.Query, new: exp.Query) -> list[str]:
    """What was done to ``old`` to get ``new``, in reading order; both come from :func:`resolved`."""
    if isinstance(old, exp.Subquery) or isinstance(new, exp.Subquery):
        return changes(_query(old), _query(new)) if old != new else []
    words = _cte_changes(old, new)
    if isinstance(old, exp.SetOperation) and isinstance(new, exp.SetOperation):
        if _set_name(old) != _set_name(new):
            words.append(f"{_set_name(old)} became {_set_name(new)}")
        words += changes(old.left, new.left) + changes(old.right, new.right)
        return words + _order_changes(old, new) + _limit_changes(old, new)
    if isinstance(new, exp.SetOperation):
        return [*words, f"{_set_name(new)} with a second query added", *changes(old, _leftmost(new))]
    if isinstance(old, exp.SetOperation):
        return [*words, f"{_set_name(old)} with a second query dropped", *changes(_leftmost(old), new)]
    if isinstance(old, exp.Select) and isinstance(new, exp.Select):
        old, new = _shortened(old, new)
        for part in _PARTS:
            words += part(old, new)
        return words
    return words if old == new else [*words, "query replaced"]


def _query(node: exp.Expr) -> exp.Query:
    """The query inside a subquery's brackets."""
    inner = node.unnest()
    assert isinstance(inner, exp.Query)
    return inner


def _leftmost(query: exp.SetOperation) -> exp.Query:
    left = query.left
    return _leftmost(left) if isinstance(left, exp.SetOperation) else left


def _set_name(query: exp.SetOperation) -> str:
    name = query.key.upper()
    return f"{name} ALL" if query.args.get("distinct") is False and name == "UNION" else name


def _cte_changes(old: exp.Query, new: exp.Query) -> list[str]:
    before = {cte.alias: cte.this for cte in old.ctes}
    after = {cte.alias: cte.this for cte in new.ctes}
    words = [f"WITH query added: {name}" for name in after if name not in before]
    words += [f"WITH query dropped: {name}" for name in before if name not in after]
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            words += [f"in {name}: {word}" for word in changes(before[name], after[name])]
    return words


def _distinct_changes(old: exp.Select, new: exp.Select) -> list[str]:
    before, after = old.args.get("distinct") is not None, new.args.get("distinct") is not None
    return [] if before == after else ["DISTINCT added" if after else "DISTINCT dropped"]


def _column_changes(old: exp.Select, new: exp.Select) -> list[str]:
    before = [node.unalias() for node in old.expressions]
    after = [node.unalias() for node in new.expressions]
    gone, come = _only(before, after), _only(after, before)
    words = []
    for one, other in _pairs(gone, come):
        words.append(_replacement(one, other))
        gone.remove(one)
        come.remove(other)
    words += [f"column dropped: {_text(node)}" for node in gone]
    words += [f"column added: {_text(node)}" for node in come]
    if not words and before != after:
        words.append("columns reordered")
    return words


def _replacement(old: exp.Expr, new: exp.Expr) -> str:
    if isinstance(old, exp.Column) and isinstance(new, exp.Column) and old.name == new.name and not old.table:
        return f"table named: {_text(old)} → {_text(new)}"
    if isinstance(old, exp.AggFunc) and isinstance(new, exp.AggFunc):
        return f"aggregate changed: {_text(old)} → {_text(new)}"
    if isinstance(new, exp.AggFunc) and old in new.find_all(type(old)):
        return f"aggregate added: {_text(old)} → {_text(new)}"
    if isinstance(old, exp.AggFunc) and new in old.find_all(type(new)):
        return f"aggregate dropped: {_text(old)} → {_text(new)}"
    return f"column changed: {_text(old)} → {_text(new)}"


def _only(some: Sequence[exp.Expr], others: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Those of ``some`` that are not among ``others``, counting repetitions."""
    rest = list(others)
    result = []
    for node in some:
        if node in rest:
            rest.remove(node)
        else:
            result.append(node)
    return result


def _pairs(gone: Sequence[exp.Expr], come: Sequence[exp.Expr]) -> list[tuple[exp.Expr, exp.Expr]]:
    """Which new node stands for which old one: the only two, else those that share a column or a value."""
    if len(gone) == len(come) == 1:
        return [(gone[0], come[0])]
    free = list(come)
    pairs = []
    for node in gone:
        twin = next((other for other in free if _related(node, other)), None)
        if twin is not None:
            free.remove(twin)
            pairs.append((node, twin))
    return pairs


def _related(one: exp.Expr, other: exp.Expr) -> bool:
    return bool(_leaves(one) & _leaves(other))


def _leaves(node: exp.Expr) -> set[str]:
    return {leaf.name for leaf in node.find_all(exp.Column) if leaf.name}


def _table_changes(old: exp.Select, new: exp.Select) -> list[str]:
    before, after = _sources(old), _sources(new)
    gone, come = _only(before, after), _only(after, before)
    words = []
    if len(gone) == len(come) == 1 and len(before) == len(after):
        words.append(f"table changed: {_source(gone[0])} → {_source(come[0])}")
        gone, come = [], []
    first = before[:1]
    words += [f"{'table' if node in first and len(before) == 1 else 'join'} dropped: {_source(node)}" for node in gone]
    words += [f"{'join' if len(after) > 1 else 'table'} added: {_source(node)}" for node in come]
    joins = {_source(join.this): join for join in old.args.get("joins") or []}
    for join in new.args.get("joins") or []:
        twin = joins.get(_source(join.this))
        if twin is None:
            continue
        if _join_kind(twin) != _join_kind(join):
            words.append(f"join of {_source(join.this)}: {_join_kind(twin)} → {_join_kind(join)}")
    moved = {_source(node) for node in (*gone, *come)}
    rules_gone, rules_come = _join_rules(old) - _join_rules(new), _join_rules(new) - _join_rules(old)
    lost = sorted(text for text, names in rules_gone if not names & moved)
    won = sorted(text for text, names in rules_come if not names & moved)
    if lost and won:
        return [*words, f"join condition changed: {' and '.join(lost)} → {' and '.join(won)}"]
    words += [f"join condition dropped: {text}" for text in lost]
    return words + [f"join condition added: {text}" for text in won]


def _source(node: exp.Expr) -> str:
    return node.name if isinstance(node, exp.Table) else "a subquery"


def _join_kind(join: exp.Join) -> str:
    parts = [join.args.get("method"), join.args.get("side"), join.args.get("kind")]
    kind = " ".join(str(part) for part in parts if part)
    return {"": "INNER", "CROSS": "INNER"}.get(kind, kind).replace(" OUTER", "")


def _join_rules(select: exp.Select) -> set[tuple[str, frozenset[str]]]:
    """Every column-to-column equation, in ON or WHERE, and USING: (text, the tables it names)."""
    nodes = _conjuncts(select.args["where"].this) if select.args.get("where") else []
    rules = set()
    for join in select.args.get("joins") or []:
        nodes += _conjuncts(join.args.get("on"))
        for name in join.args.get("using") or []:
            rules.add((f"same {name.name}", frozenset({_source(join.this)})))
    for node in nodes:
        if _links(node):
            rules.add((_condition(node), frozenset(column.table for column in node.find_all(exp.Column))))
    return rules


def _conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    if node is None:
        return []
    inner = node.unnest()
    return list(inner.flatten()) if isinstance(inner, exp.And) else [inner]


def _condition(node: exp.Expr) -> str:
    """A condition as text, the two sides of an equation in one order."""
    inner = node.unnest()
    if isinstance(inner, exp.EQ):
        sides = sorted((_text(inner.left), _text(inner.right)), key=lambda side: (side[:1] in "'0123456789", side))
        return " = ".join(sides)
    return _text(inner)


def _filters(select: exp.Select) -> list[tuple[str, str, exp.Expr]]:
    """(place, text, node) of every condition that is no join rule between two columns."""
    found = []
    where, having = select.args.get("where"), select.args.get("having")
    for place, clause in (("WHERE", where), ("HAVING", having)):
        nodes = _conjuncts(clause.this if clause else None)
        found += [(place, _condition(node), node) for node in nodes if not _links(node)]
    for join in select.args.get("joins") or []:
        nodes = _conjuncts(join.args.get("on"))
        found += [("ON", _condition(node), node) for node in nodes if not _links(node)]
    return found


def _links(node: exp.Expr) -> bool:
    return isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column)


def _filter_changes(old: exp.Select, new: exp.Select) -> list[str]:
    before, after = _filters(old), _filters(new)
    gone = [item for item in before if item[:2] not in {other[:2] for other in after}]
    come = [item for item in after if item[:2] not in {other[:2] for other in before}]
    words = []
    for item in list(gone):
        twin = next((other for other in come if other[1] == item[1]), None)
        if twin is not None:
            words.append(f"filter moved: {item[1]} from {item[0]} to {twin[0]}")
            gone.remove(item)
            come.remove(twin)
    for item in list(gone):
        twin = next((other for other in come if other[0] == item[0] and _same_subject(item[2], other[2])), None)
        if twin is not None:
            words += _condition_change(item[2], twin[2])
            gone.remove(item)
            come.remove(twin)
    words += [f"filter dropped: {text}" for _, text, _ in gone]
    return words + [f"filter added: {text}" for _, text, _ in come]


def _same_subject(one: exp.Expr, other: exp.Expr) -> bool:
    return bool(_leaves(one) & _leaves(other)) or (type(one) is type(other) and bool(list(one.find_all(exp.Query))))


def _condition_change(old: exp.Expr, new: exp.Expr) -> list[str]:
    inner_old, inner_new = old.find(exp.Query), new.find(exp.Query)
    if inner_old is not None and inner_new is not None and type(old) is type(new):
        inner = changes(inner_old, inner_new)
        if inner:
            return [f"in the subquery: {word}" for word in inner]
    return [f"filter changed: {_condition(old)} → {_condition(new)}"]


def _group_changes(old: exp.Select, new: exp.Select) -> list[str]:
    before = [_text(node) for node in (old.args["group"].expressions if old.args.get("group") else [])]
    after = [_text(node) for node in (new.args["group"].expressions if new.args.get("group") else [])]
    if set(before) == set(after):
        return []
    if not before:
        return [f"grouping added: {', '.join(after)}"]
    if not after:
        return [f"grouping dropped: {', '.join(before)}"]
    return [f"grouping changed: {', '.join(before)} → {', '.join(after)}"]


def _order_changes(old: exp.Query, new: exp.Query) -> list[str]:
    before = [_ordered(node) for node in (old.args["order"].expressions if old.args.get("order") else [])]
    after = [_ordered(node) for node in (new.args["order"].expressions if new.args.get("order") else [])]
    if before == after:
        return []
    if not before:
        return [f"order added: {', '.join(after)}"]
    if not after:
        return [f"order dropped: {', '.join(before)}"]
    return [f"order changed: {', '.join(before)} → {', '.join(after)}"]


def _ordered(node: exp.Expr) -> str:
    """One term of ORDER BY, without the place of NULLs that the parser writes out by itself."""
    return _text(node.this) + (" descending" if node.args.get("desc") else "")


def _limit_changes(old: exp.Query, new: exp.Query) -> list[str]:
    words = []
    for name, word in (("limit", "limit"), ("offset", "offset")):
        before, after = (tree.args[name].expression.sql() if tree.args.get(name) else "" for tree in (old, new))
        if before == after:
            continue
        if not before or not after:
            words.append(f"{word} {'added' if after else 'dropped'}: {after or before}")
        else:
            words.append(f"{word} changed: {before} → {after}")
    return words


_PARTS: tuple[Callable[[exp.Select, exp.Select], list[str]], ...] = (
    _distinct_changes,
    _table_changes,
    _column_changes,
    _filter_changes,
    _group_changes,
    _order_changes,
    _limit_changes,
)
"""Clause by clause, in the order in which a person reads a change."""
