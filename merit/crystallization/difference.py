"""The edit from a wrong statement to its repair, clause by clause: what a W2 card prints as Wrong, Fixed and Clause.

The parts are quoted as the parser writes them and are for reading only; they are never run. Where a tree cannot be
had, because the parser refuses a statement or would mend what SQLite refused, the two whole texts stand there and
``note`` says so. Layout after the paper's one W3 example; the order of clauses and the marks are reconstructed.

What this module does not know: cards, episodes, databases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from merit.crystallization.modes import Mode, TooLarge, edits, modes_of
from merit.sql_change import parse

NOTHING = "(nothing)"
"""Printed where a clause stands on one side only."""
NOT_COMPARED = "not compared, shown as text"
ONLY_WRITING = "(only the writing differs)"

MENDED = "SQLite could not read the wrong statement, so it is shown as text."
NOT_PARSED = "The parser cannot read {which}, so the repair is shown as text."
TOO_LARGE = "The statements are too long to be compared as trees, so the repair is shown as text."


@dataclass(frozen=True)
class Difference:
    """``wrong`` and ``fixed``: the parts that differ; ``clauses``: where, in the order of a SELECT statement;
    ``modes``: in their fixed order; ``note``: a sentence where the trees could not be compared, else ""."""

    wrong: str
    fixed: str
    clauses: tuple[str, ...]
    modes: tuple[Mode, ...]
    note: str = ""

    @property
    def clause(self) -> str:
        """The clauses in one line."""
        return ", ".join(self.clauses) or (NOT_COMPARED if self.note else ONLY_WRITING)


def difference(wrong: str, fixed: str, *, unreadable: bool = False) -> Difference:
    """The structured difference. ``unreadable``: the database itself could not parse ``wrong``."""
    if unreadable:
        return _as_text(wrong, fixed, MENDED)
    old, new = parse(wrong), parse(fixed)
    if old is None or new is None:
        which = "both statements" if old is new else "the wrong statement" if old is None else "the repair"
        return _as_text(wrong, fixed, NOT_PARSED.format(which=which))
    try:
        modes = modes_of(edits(old, new))
        clauses = _changed_clauses(old, new)
    except TooLarge:
        return _as_text(wrong, fixed, TOO_LARGE)
    except (SqlglotError, RecursionError, ValueError, KeyError, AttributeError):
        # A tree the parser gave but cannot itself compare or write.
        return _as_text(wrong, fixed, NOT_PARSED.format(which="these statements"))
    if not clauses:
        return Difference(wrong.strip(), fixed.strip(), (), modes)
    several = len(clauses) > 1
    return Difference(
        "; ".join(_shown(clause.name, clause.gone, clause.old, several) for clause in clauses),
        "; ".join(_shown(clause.name, clause.come, clause.new, several) for clause in clauses),
        tuple(clause.name for clause in clauses),
        modes,
    )


def _as_text(wrong: str, fixed: str, note: str) -> Difference:
    return Difference(wrong.strip(), fixed.strip(), (), (), note)


@dataclass(frozen=True)
class _Clause:
    """One clause on both sides: its parts, and those of them that differ."""

    name: str
    joint: str
    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def gone(self) -> tuple[str, tuple[str, ...]]:
        return self.joint, _only(self.old, self.new)

    @property
    def come(self) -> tuple[str, tuple[str, ...]]:
        return self.joint, _only(self.new, self.old)


def _only(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``some`` that ``others`` has not; all of them where only their order differs."""
    if Counter(some) == Counter(others):
        return some
    rest = Counter(others)
    kept = []
    for part in some:
        if rest[part]:
            rest[part] -= 1
        else:
            kept.append(part)
    return tuple(kept)


def _shown(name: str, differing: tuple[str, tuple[str, ...]], whole: tuple[str, ...], named: bool) -> str:
    """The differing parts of one clause, with '...' in front of them where the clause has others before."""
    joint, parts = differing
    if not parts:
        return f"{name} {NOTHING}" if named else NOTHING
    text = joint.join(parts)
    if len(parts) < len(whole) and parts[0] != whole[0]:
        text = f"...{text}"
    return f"{name} {text}" if named and name != "JOIN" else text


def _changed_clauses(old: exp.Query, new: exp.Query) -> list[_Clause]:
    """The clauses that differ. Statements of another build (a set operation on one side) differ as a whole."""
    old, new = _unwrapped(old), _unwrapped(new)
    if not isinstance(old, exp.Select) or not isinstance(new, exp.Select):
        if isinstance(old, exp.SetOperation) and type(old) is type(new):
            assert isinstance(new, exp.SetOperation)
            return _branches(old, new)
        whole = _Clause("whole query", "", (_text(old),), (_text(new),))
        return [whole] if whole.old != whole.new else []
    found = [_Clause(name, joint, read(old), read(new)) for name, joint, read in _CLAUSES]
    return [clause for clause in found if clause.old != clause.new]


def _branches(old: exp.SetOperation, new: exp.SetOperation) -> list[_Clause]:
    name = old.key.upper()
    left = _changed_clauses(old.left, new.left)
    right = [_Clause(f"{name} {c.name}", c.joint, c.old, c.new) for c in _changed_clauses(old.right, new.right)]
    tail = [
        _Clause(clause, joint, read(old), read(new))
        for clause, joint, read in _CLAUSES
        if clause in ("WITH", "ORDER BY", "LIMIT", "OFFSET")
    ]
    return left + right + [clause for clause in tail if clause.old != clause.new]


def _unwrapped(query: exp.Query) -> exp.Query:
    inner = query.unnest() if isinstance(query, exp.Subquery) else query
    return inner if isinstance(inner, exp.Query) else query


def _text(node: exp.Expr) -> str:
    return " ".join(node.sql(dialect="sqlite").split())


Read = Callable[[exp.Query], tuple[str, ...]]


def _arg(name: str) -> Read:
    def read(query: exp.Query) -> tuple[str, ...]:
        clause = query.args.get(name)
        return tuple(_text(node) for node in clause.expressions) if clause is not None else ()

    return read


def _conditions(name: str) -> Read:
    def read(query: exp.Query) -> tuple[str, ...]:
        clause = query.args.get(name)
        if clause is None:
            return ()
        parts = clause.this.flatten(unnest=False) if isinstance(clause.this, exp.And) else [clause.this]
        return tuple(_text(node) for node in parts)

    return read


def _number(name: str) -> Read:
    def read(query: exp.Query) -> tuple[str, ...]:
        clause = query.args.get(name)
        return (_text(clause.expression),) if clause is not None else ()

    return read


def _outputs(query: exp.Query) -> tuple[str, ...]:
    return tuple(_text(node) for node in query.expressions)


def _distinct(query: exp.Query) -> tuple[str, ...]:
    return ("DISTINCT",) if query.args.get("distinct") is not None else ()


def _from(query: exp.Query) -> tuple[str, ...]:
    clause = query.args.get("from_")
    return (_text(clause.this),) if clause is not None else ()


def _joins(query: exp.Query) -> tuple[str, ...]:
    return tuple(_text(node) for node in query.args.get("joins") or [])


_CLAUSES: tuple[tuple[str, str, Read], ...] = (
    ("WITH", ", ", lambda query: tuple(_text(cte) for cte in query.ctes)),
    ("DISTINCT", " ", _distinct),
    ("SELECT", ", ", _outputs),
    ("FROM", ", ", _from),
    ("JOIN", " ", _joins),
    ("WHERE", " AND ", _conditions("where")),
    ("GROUP BY", ", ", _arg("group")),
    ("HAVING", " AND ", _conditions("having")),
    ("ORDER BY", ", ", _arg("order")),
    ("LIMIT", "", _number("limit")),
    ("OFFSET", "", _number("offset")),
)
"""Name, what joins its parts, how the parts are read."""
