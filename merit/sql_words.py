"""One SQL query read out in plain words, so that a person who judges knows what was really asked.

The reading is put together from the syntax tree, part by part, and never guesses: what has no words yet is
quoted as it was written, between ‹ and ›, and the reading says so.

What this module does not know: the database (names are read as they stand) and whether the query is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from merit.sql_change import parse

CANNOT = "This query cannot be read out in words; please read the SQL itself."
QUOTED = "What stands between ‹ and › is quoted from the SQL as it is."
_LONGEST = 80
_MAX_NODES = 400


@dataclass(frozen=True)
class Reading:
    """``sentences`` in reading order; ``complete`` is False when a part is only quoted or nothing could be read,
    and ``note`` then says so."""

    sentences: tuple[str, ...]
    complete: bool
    note: str = ""


def describe(sql: str) -> Reading:
    """``sql`` in plain words; any text may be given."""
    tree = parse(sql)
    if tree is None or any(not select.expressions for select in tree.find_all(exp.Select)):
        return Reading((), False, CANNOT)
    if sum(1 for _ in tree.walk()) > _MAX_NODES:
        return Reading((), False, CANNOT)
    reader = _Reader()
    try:
        sentences = reader.query(tree)
    except RecursionError:
        return Reading((), False, CANNOT)
    complete = not reader.quoted
    return Reading(tuple(sentences), complete, "" if complete else QUOTED)


_Kind = type[exp.Expr] | tuple[type[exp.Expr], ...]
_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("is", "is not"),
    exp.NEQ: ("is not", "is"),
    exp.NullSafeEQ: ("is", "is not"),
    exp.NullSafeNEQ: ("is not", "is"),
    exp.GT: ("is more than", "is not more than"),
    exp.GTE: ("is at least", "is not at least"),
    exp.LT: ("is less than", "is not less than"),
    exp.LTE: ("is at most", "is not at most"),
    exp.Like: ("looks like", "does not look like"),
    exp.Glob: ("looks like", "does not look like"),
}
"""The words of a comparison and of its opposite."""
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "plus",
    exp.Sub: "minus",
    exp.Mul: "times",
    exp.Div: "divided by",
    exp.DPipe: "followed by",
}
_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Sum: "the sum of",
    exp.Avg: "the average of",
    exp.Min: "the smallest",
    exp.Max: "the largest",
}
_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Lower: "{0} in small letters",
    exp.Upper: "{0} in capitals",
    exp.Trim: "{0} without blanks around it",
    exp.Length: "the length of {0}",
    exp.Abs: "{0} without its sign",
    exp.Round: "{0}, rounded",
}
_SETS: dict[type[exp.Expr], str] = {
    exp.Union: "Together with",
    exp.Intersect: "Only what is also in",
    exp.Except: "Without what is in",
}
_KNOWN_PARTS = frozenset(
    {
        "this",
        "expression",
        "expressions",
        "alias",
        "low",
        "high",
        "query",
        "table",
        "is_string",
        "to",
        "big_int",
        "typed",
        "safe",
    }
)
"""Parts of a node that the readers below read out; a node with any other part is quoted."""
_SELECT_PARTS = frozenset(
    {"expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_"}
)


def _query(node: exp.Expr) -> exp.Query:
    """The query inside a subquery's brackets."""
    inner = node.unnest()
    assert isinstance(inner, exp.Query)
    return inner


def _plain(node: exp.Expr) -> bool:
    return all(name in _KNOWN_PARTS for name, part in node.args.items() if part)


class _Reader:
    """Reads one query; remembers whether anything had to be quoted."""

    def __init__(self) -> None:
        self.quoted = False
        self._several = False

    def query(self, tree: exp.Query) -> list[str]:
        sentences = []
        for cte in tree.ctes:
            sentences.append(f"First, “{cte.alias}” is worked out: {self._inline(cte.this)}.")
        if isinstance(tree, exp.SetOperation):
            word = _SETS.get(type(tree), "Combined with")
            sentences += self.query(tree.left)
            sentences.append(f"{word} the following.")
            sentences += self.query(tree.right)
            return sentences + self._tail(tree)
        if isinstance(tree, exp.Subquery):
            return sentences + self.query(_query(tree))
        assert isinstance(tree, exp.Select)
        return sentences + self._select(tree)

    def _select(self, tree: exp.Select) -> list[str]:
        joins = tree.args.get("joins") or []
        before, self._several = self._several, bool(joins)
        columns = [self._say(node) for node in tree.expressions]
        sentences = [f"Show {'each different ' if tree.args.get('distinct') else ''}{_list(columns)}."]
        first = tree.args.get("from_")
        if first is not None:
            sentences.append(f"Taken from {self._source(first.this)}{''.join(self._join(join) for join in joins)}.")
        where, group, having = (tree.args.get(name) for name in ("where", "group", "having"))
        if where:
            sentences.append(f"Only rows where {self._say(where.this)}.")
        if group and group.expressions:
            sentences.append(f"Put together by {_list([self._say(node) for node in group.expressions])}.")
        if having:
            sentences.append(f"Only groups where {self._say(having.this)}.")
        sentences += self._tail(tree)
        rest = [node for name, node in tree.args.items() if node and name not in _SELECT_PARTS]
        sentences += [f"And {self._quote(node)}." for node in rest if isinstance(node, exp.Expr)]
        self._several = before
        return sentences

    def _tail(self, tree: exp.Query) -> list[str]:
        sentences = []
        order, limit, offset = (tree.args.get(name) for name in ("order", "limit", "offset"))
        if order:
            terms = [
                f"{self._say(node.this)}, {'largest' if node.args.get('desc') else 'smallest'} first"
                for node in order.expressions
            ]
            sentences.append(f"Sorted by {', then '.join(terms)}.")
        if limit:
            skipped = f" after skipping {self._say(offset.expression)}" if offset else ""
            sentences.append(f"At most {self._say(limit.expression)} of them{skipped}.")
        return sentences

    def _source(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Table):
            alias = f" (called {node.alias})" if node.alias and node.alias != node.name else ""
            return node.name + alias
        if isinstance(node, exp.Subquery):
            return f"the result of ({self._inline(node.unnest())})"
        return self._quote(node)

    def _join(self, join: exp.Join) -> str:
        side, source = str(join.args.get("side") or ""), self._source(join.this)
        on, using = join.args.get("on"), join.args.get("using")
        rule = ""
        if on is not None:
            rule = f" where {self._say(on)}"
        elif using:
            rule = f" with the same {_list([name.name for name in using])}"
        if side == "LEFT":
            return f", with {source} where there is one{rule.replace(' where ', ': ', 1)}"
        if side:
            return f", {side.lower()} joined with {source}{rule}"
        if str(join.args.get("method") or "") == "NATURAL":
            return f", matched with {source} on all columns of the same name"
        return f", matched with {source}{rule}" if rule else f", every row combined with every row of {source}"

    def _inline(self, tree: exp.Expr) -> str:
        if not isinstance(tree, exp.Query):
            return self._quote(tree)
        text = "; ".join(sentence.rstrip(".") for sentence in self.query(tree))
        return text[:1].lower() + text[1:]

    def _quote(self, node: exp.Expr) -> str:
        self.quoted = True
        text = " ".join(node.sql(dialect="sqlite").split())
        return f"‹{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}›"

    def _say(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Like) and node.args.get("negate"):
            return self._negated_like(node)
        if not _plain(node):
            return self._quote(node)
        for kind, read in _READERS:
            if isinstance(node, kind):
                return read(self, node)
        return self._quote(node)

    def _column(self, node: exp.Expr) -> str:
        assert isinstance(node, exp.Column)
        if isinstance(node.this, exp.Star):
            return f"every column of {node.table}"
        return f"{node.name} of {node.table}" if node.table and self._several else node.name

    def _literal(self, node: exp.Expr) -> str:
        return f"“{node.name}”" if node.args.get("is_string") else node.name

    def _alias(self, node: exp.Expr) -> str:
        return f"{self._say(node.this)} (as {node.alias})"

    def _count(self, node: exp.Expr) -> str:
        inner = node.this
        if inner is None or isinstance(inner, exp.Star):
            return "the number of rows"
        if isinstance(inner, exp.Distinct):
            return f"the number of different {_list([self._say(part) for part in inner.expressions])}"
        return f"the number of rows with {self._say(inner)}"

    def _aggregate(self, node: exp.Expr) -> str:
        inner, word = node.this, _AGGREGATES[type(node)]
        if isinstance(inner, exp.Distinct):
            return f"{word} the different {_list([self._say(part) for part in inner.expressions])}"
        return self._quote(node) if node.expressions else f"{word} {self._say(inner)}"

    def _function(self, node: exp.Expr) -> str:
        return _FUNCTIONS[type(node)].format(self._say(node.this))

    def _comparison(self, node: exp.Expr, negated: bool = False) -> str:
        left, right = self._say(node.args["this"]), self._say(node.args["expression"])
        return f"{left} {_COMPARISONS[type(node)][negated]} {right}"

    def _negated_like(self, node: exp.Expr) -> str:
        return f"{self._say(node.this)} does not look like {self._say(node.args['expression'])}"

    def _arithmetic(self, node: exp.Expr) -> str:
        return f"{self._say(node.args['this'])} {_ARITHMETIC[type(node)]} {self._say(node.args['expression'])}"

    def _between(self, node: exp.Expr, negated: bool = False) -> str:
        word = "is not between" if negated else "is between"
        return f"{self._say(node.this)} {word} {self._say(node.args['low'])} and {self._say(node.args['high'])}"

    def _in(self, node: exp.Expr, negated: bool = False) -> str:
        query, word = node.args.get("query"), "is not" if negated else "is"
        if query is not None:
            return f"{self._say(node.this)} {word} among ({self._inline(query.unnest())})"
        return f"{self._say(node.this)} {word} one of {_list([self._say(part) for part in node.expressions], 'or')}"

    def _is(self, node: exp.Expr, negated: bool = False) -> str:
        if not isinstance(node.expression, exp.Null):
            return self._quote(node)
        return f"{self._say(node.this)} is {'present' if negated else 'missing'}"

    def _exists(self, node: exp.Expr, negated: bool = False) -> str:
        return f"there is {'no' if negated else 'a'} row in ({self._inline(node.this)})"

    def _not(self, node: exp.Expr) -> str:
        inner = node.this.unnest()
        for kind, read in _NEGATABLE:
            if isinstance(inner, kind) and _plain(inner):
                return read(self, inner, True)
        return f"it is not so that ({self._say(inner)})"

    def _connector(self, node: exp.Expr) -> str:
        assert isinstance(node, exp.Connector)
        word = " and " if isinstance(node, exp.And) else " or "
        return word.join(self._say(part) for part in node.flatten(unnest=False))

    def _paren(self, node: exp.Expr) -> str:
        return f"({self._say(node.this)})"

    def _subquery(self, node: exp.Expr) -> str:
        return f"({self._inline(node.unnest())})"

    def _cast(self, node: exp.Expr) -> str:
        return f"{self._say(node.this)} taken as {node.args['to'].sql(dialect='sqlite').lower()}"

    def _coalesce(self, node: exp.Expr) -> str:
        return f"{self._say(node.this)}, or {' or '.join(self._say(part) for part in node.expressions)} where missing"

    def _negative(self, node: exp.Expr) -> str:
        return f"−{self._say(node.this)}"

    def _star(self, node: exp.Expr) -> str:
        return "every column" if not node.args.get("except_") else self._quote(node)

    def _null(self, _node: exp.Expr) -> str:
        return "nothing (NULL)"


_NEGATABLE: tuple[tuple[_Kind, Callable[[_Reader, exp.Expr, bool], str]], ...] = (
    (tuple(_COMPARISONS), _Reader._comparison),
    (exp.Between, _Reader._between),
    (exp.In, _Reader._in),
    (exp.Is, _Reader._is),
    (exp.Exists, _Reader._exists),
)
_READERS: tuple[tuple[_Kind, Callable[[_Reader, exp.Expr], str]], ...] = (
    (exp.Column, _Reader._column),
    (exp.Literal, _Reader._literal),
    (exp.Alias, _Reader._alias),
    (exp.Star, _Reader._star),
    (exp.Null, _Reader._null),
    (exp.Count, _Reader._count),
    (tuple(_AGGREGATES), _Reader._aggregate),
    (tuple(_FUNCTIONS), _Reader._function),
    (tuple(_COMPARISONS), _Reader._comparison),
    (tuple(_ARITHMETIC), _Reader._arithmetic),
    (exp.Between, _Reader._between),
    (exp.In, _Reader._in),
    (exp.Is, _Reader._is),
    (exp.Not, _Reader._not),
    (exp.Connector, _Reader._connector),
    (exp.Paren, _Reader._paren),
    (exp.Exists, _Reader._exists),
    (exp.Subquery, _Reader._subquery),
    (exp.Cast, _Reader._cast),
    (exp.Coalesce, _Reader._coalesce),
    (exp.Neg, _Reader._negative),
)  # fmt: skip
"""Which part of a tree is read by whom; the first that fits."""


def _list(parts: list[str], word: str = "and") -> str:
    if len(parts) <= 1:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"
