"""Makes the labelled failures of assets/routing_validation anew: statements, how they failed, and the first label.

Two sources. *model*: the embedded model's first answers to the questions of the sample databases, those that a verifier
calls wrong. *mutation*: right answers of these questions with one known fault put in, those that are wrong then. The
first label is the fault that was put in, or for the model's answers what a comparison with the right answer, part by
part in the order of making a query, finds different first. It reads statements and schemas, never the message of a
database. The right answers themselves are not written.

The second labels are another reading's and are kept by id: a new statement has none.

    python benchmarks/routing_validation.py [--answers FILE] [--out FILE] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.embedded_model import Asked, first_answers, sample_questions  # noqa: E402
from merit.database import Database  # noqa: E402
from merit.diagnosis import FAILURES  # noqa: E402
from merit.episode import FailureType, Outcome  # noqa: E402
from merit.models import load  # noqa: E402
from merit.routing import trial  # noqa: E402
from merit.routing.labelled import BUNDLED, Failure, bundled, to_csv  # noqa: E402

K = FailureType
EACH = 3
"""How many of the wrong statements that one mutation gives are kept."""
Tree = exp.Expression


# the first label of the model's answers -------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """What a query is made of, in the order of making it; texts are normalised."""

    tables: Counter[str]
    joins: frozenset[str]
    conditions: Counter[str]
    grouping: frozenset[str]
    aggregates: Counter[str]
    columns: frozenset[str]
    rest: str


def tree_of(sql: str) -> Tree | None:
    """The one statement, or None where it is no SQL."""
    try:
        found = [tree for tree in sqlglot.parse(sql, read="sqlite") if tree is not None]
    except (SqlglotError, RecursionError):
        return None
    return found[0] if len(found) == 1 and isinstance(found[0], exp.Query) else None


def text(node: Tree) -> str:
    """A normalised text: lower case outside strings, no table names before columns."""
    bare = node.copy()
    for column in list(bare.find_all(exp.Column)):
        column.set("table", None)
    for identifier in bare.find_all(exp.Identifier):
        identifier.set("this", str(identifier.this).lower())
        identifier.set("quoted", False)
    return bare.sql("sqlite", normalize_functions="upper")


def parts(tree: Tree) -> Parts:
    """The parts of a query with all its sub-queries."""
    joins: set[str] = set()
    for join in tree.find_all(exp.Join):
        for side in _conjuncts(join.args.get("on")):
            joins.add(" = ".join(sorted(text(side).split(" = "))))
    conditions: Counter[str] = Counter()
    for where in tree.find_all(exp.Where):
        conditions.update(text(part) for part in _conjuncts(where.this) if not part.find(exp.Select))
        conditions.update(type(part).__name__ for part in _conjuncts(where.this) if part.find(exp.Select))
    grouping = {text(one) for group in tree.find_all(exp.Group) for one in group.expressions}
    grouping |= {text(having.this) for having in tree.find_all(exp.Having)}
    selected = [one for select in tree.find_all(exp.Select) for one in select.expressions]
    columns = {text(column) for one in selected for column in one.find_all(exp.Column)}
    return Parts(
        Counter(table.name.lower() for table in tree.find_all(exp.Table)),
        frozenset(joins),
        conditions,
        frozenset(grouping),
        Counter(text(one) for one in tree.find_all(exp.AggFunc)),
        frozenset(columns),
        text(tree),
    )


def _conjuncts(node: Tree | None) -> list[Tree]:
    if node is None:
        return []
    return list(node.flatten()) if isinstance(node, exp.And) else [node]


def first_label(sql: str, gold: str, database: Database) -> FailureType:
    """What is wrong in ``sql`` first: its form, its names, tables and joins, conditions, groups and aggregates, the
    columns it gives, and at last how the rows are given."""
    if not sql.strip():
        return K.UNKNOWN
    tree, right = tree_of(sql), tree_of(gold)
    assert right is not None
    if tree is None or any(True for _ in tree.find_all(exp.Anonymous) if _.name.upper() not in KNOWN_FUNCTIONS):
        return K.SYNTAX
    known = {table.name.lower(): {c.name.lower() for c in table.columns} for table in database.tables}
    mine, its = parts(tree), parts(right)
    reachable = {name for table in mine.tables for name in known.get(table, ())}
    named = {column.name.lower() for column in tree.find_all(exp.Column)}
    aliases = {alias.alias.lower() for alias in tree.find_all(exp.Alias)}
    if not set(mine.tables) <= set(known) or not named <= reachable | aliases:
        return K.SCHEMA_LINKING
    if mine.tables != its.tables or mine.joins != its.joins:
        return K.SCHEMA_LINKING
    if mine.conditions != its.conditions:
        return K.FILTER_VALUE
    if mine.grouping != its.grouping or mine.aggregates != its.aggregates:
        return K.AGGREGATION
    if mine.columns != its.columns and len(mine.columns) == len(its.columns):
        return K.SCHEMA_LINKING
    return K.RESULT_MISMATCH


KNOWN_FUNCTIONS = {
    "JULIANDAY", "STRFTIME", "DATE", "DATETIME", "TIME", "PRINTF", "INSTR", "TOTAL", "HEX", "CHAR", "TYPEOF",
}  # fmt: skip
"""Functions SQLite has and sqlglot does not name."""


# mutations ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutation:
    """One known fault: its name, the label it has by what it does, and how it is put into a right answer (None where
    there is no place for it)."""

    name: str
    label: FailureType
    make: Callable[[str, Database, random.Random], str | None]


def on_tree(change: Callable[[Tree, Database, random.Random], bool]) -> Callable[..., str | None]:
    """A mutation that changes the tree in place and says whether it could."""

    def make(sql: str, database: Database, rng: random.Random) -> str | None:
        tree = tree_of(sql)
        return tree.sql("sqlite") if tree is not None and change(tree, database, rng) else None

    return make


def _pick(rng: random.Random, nodes: Iterator[Tree] | list[Tree]) -> Tree | None:
    found = list(nodes)
    return rng.choice(found) if found else None


def other_column(tree: Tree, database: Database, rng: random.Random) -> bool:
    """A column of the same table takes the place of a selected one."""
    select = tree.find(exp.Select)
    column = _pick(rng, [one for one in select.expressions if isinstance(one, exp.Column)]) if select else None
    tables = {table.name.lower(): table for table in database.tables}
    source = tables.get((column.table if column else "") or next(t.name for t in tree.find_all(exp.Table)).lower())
    if column is None or source is None:
        return False
    others = [c.name for c in source.columns if c.name.lower() != column.name.lower()]
    column.set("this", exp.to_identifier(rng.choice(others), quoted=True))
    return True


def misspelt_column(tree: Tree, database: Database, rng: random.Random) -> bool:
    column = _pick(rng, tree.find_all(exp.Column))
    if column is None:
        return False
    column.set("this", exp.to_identifier(f"{column.name.replace(' ', '')}_value"))
    return True


def plural_table(tree: Tree, database: Database, rng: random.Random) -> bool:
    table = _pick(rng, tree.find_all(exp.Table))
    if table is None:
        return False
    table.set("this", exp.to_identifier(f"{table.name}s".replace(" ", "_")))
    return True


def lost_join(tree: Tree, database: Database, rng: random.Random) -> bool:
    select = tree.find(exp.Select)
    joins = select.args.get("joins") if select else None
    if not joins:
        return False
    joins.pop()
    return True


def wrong_key(tree: Tree, database: Database, rng: random.Random) -> bool:
    """A join compares two keys that do not belong together."""
    join = tree.find(exp.Join)
    on = join.args.get("on") if join else None
    side = on.expression if isinstance(on, exp.EQ) else None
    tables = {table.name.lower(): table for table in database.tables}
    if not isinstance(side, exp.Column) or side.table.lower() not in tables:
        return False
    others = [c.name for c in tables[side.table.lower()].columns if c.name.lower() != side.name.lower()]
    side.set("this", exp.to_identifier(others[0], quoted=True))
    return True


def bare_key(tree: Tree, database: Database, rng: random.Random) -> bool:
    """A name that two joined tables have stands without its table."""
    for join in tree.find_all(exp.Join):
        on = join.args.get("on")
        if isinstance(on, exp.EQ) and isinstance(on.this, exp.Column) and on.this.name == on.expression.name:
            on.this.set("table", None)
            return True
    return False


def other_aggregate(tree: Tree, database: Database, rng: random.Random) -> bool:
    found = _pick(rng, tree.find_all(exp.Sum, exp.Avg, exp.Max, exp.Min))
    if found is None:
        return False
    found.replace(
        rng.choice([c for c in (exp.Sum, exp.Avg, exp.Max, exp.Min) if not isinstance(found, c)])(this=found.this)
    )
    return True


def lost_group(tree: Tree, database: Database, rng: random.Random) -> bool:
    select = tree.find(exp.Select)
    if select is None or not select.args.get("group"):
        return False
    select.set("group", None)
    return True


def lost_distinct_count(tree: Tree, database: Database, rng: random.Random) -> bool:
    count = next((c for c in tree.find_all(exp.Count) if isinstance(c.this, exp.Distinct)), None)
    if count is None:
        return False
    count.set("this", count.this.expressions[0])
    return True


def aggregate_in_where(tree: Tree, database: Database, rng: random.Random) -> bool:
    """A condition on a count or an average moves from HAVING, or from its own sub-query, into WHERE."""
    select = tree.find(exp.Select)
    if select is None or (select.args.get("joins") and not select.args.get("group")):
        return False
    inner = next((s for s in tree.find_all(exp.Subquery) if s.this.find(exp.Avg)), None)
    if inner is not None:
        inner.replace(inner.this.expressions[0].copy())
        return True
    if select.args.get("group"):
        select.where("COUNT(*) > 1", copy=False)
        return True
    return False


def flipped_comparison(tree: Tree, database: Database, rng: random.Random) -> bool:
    where = tree.find(exp.Where)
    found = _pick(rng, where.find_all(exp.GT, exp.LT, exp.GTE, exp.LTE, exp.EQ, exp.NEQ)) if where else None
    if found is None:
        return False
    turned = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LT, exp.LTE: exp.GT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}
    found.replace(turned[type(found)](this=found.this, expression=found.expression))
    return True


def other_value(tree: Tree, database: Database, rng: random.Random) -> bool:
    """A text is looked for in another spelling than the data has."""
    where = tree.find(exp.Where)
    found = _pick(rng, [one for one in where.find_all(exp.Literal) if one.is_string]) if where else None
    if found is None:
        return False
    value = str(found.this)
    found.replace(exp.Literal.string(value.upper() if value.upper() != value else f"{value} "))
    return True


def lost_condition(tree: Tree, database: Database, rng: random.Random) -> bool:
    where = tree.find(exp.Where)
    if where is None or where.find(exp.Select):
        return False
    if isinstance(where.this, exp.And):
        where.set("this", where.this.this)
    else:
        where.parent.set("where", None)
    return True


def null_by_equals(tree: Tree, database: Database, rng: random.Random) -> bool:
    found = tree.find(exp.Is)
    if found is None or isinstance(found.parent, exp.Not):
        return False
    found.replace(exp.EQ(this=found.this, expression=exp.null()))
    return True


def limit_in_words(sql: str, database: Database, rng: random.Random) -> str | None:
    changed = re.sub(r"LIMIT \d+", "LIMIT 'a few'", sql)
    return changed if changed != sql else None


def lost_bracket(sql: str, database: Database, rng: random.Random) -> str | None:
    return sql[::-1].replace(")", "", 1)[::-1] if ")" in sql else None


def comma_before_from(sql: str, database: Database, rng: random.Random) -> str | None:
    return sql.replace(" FROM ", ", FROM ", 1)


def swapped_clauses(sql: str, database: Database, rng: random.Random) -> str | None:
    found = re.fullmatch(r"(SELECT .*? FROM \S+) (WHERE [^()]+?)( ORDER BY .*| LIMIT .*)?", sql)
    return f"SELECT {found[2]} {found[1].removeprefix('SELECT ')}" if found else None


def foreign_function(sql: str, database: Database, rng: random.Random) -> str | None:
    found = re.sub(r"SUBSTR\((\w+), 7, 4\)", r"YEAR(\1)", sql)
    found = re.sub(r"ROUND\(", "TO_DECIMAL(", found) if found == sql else found
    found = re.sub(r"TRIM\(", "STRIP(", found) if found == sql else found
    return found if found != sql else None


def two_in_one(sql: str, database: Database, rng: random.Random) -> str | None:
    """A sub-query that is compared with one value gives two."""
    changed = re.sub(r"IN \(SELECT (\w+) FROM", r"IN (SELECT \1, \1 FROM", sql)
    return changed if changed != sql else None


def three_arguments(sql: str, database: Database, rng: random.Random) -> str | None:
    changed = re.sub(r"ROUND\((.*), 1\)", r"ROUND(\1, 1, 0)", sql)
    changed = re.sub(r"TRIM\((\w+)\)", r"TRIM(\1, ' ', 1)", changed) if changed == sql else changed
    return changed if changed != sql else None


def writes(sql: str, database: Database, rng: random.Random) -> str | None:
    table = re.search(r" FROM (\w+)", sql)
    return f"DELETE FROM {table[1]} WHERE 1 = 1" if table and table[1] not in ('"',) else None


def never_ends(sql: str, database: Database, rng: random.Random) -> str | None:
    """The tables are joined without a condition with a list that never ends."""
    table = re.search(r" FROM (\w+)", sql)
    if table is None:
        return None
    return f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM {table[1]}, n"


def turned_order(tree: Tree, database: Database, rng: random.Random) -> bool:
    found = tree.find(exp.Ordered)
    if found is None:
        return False
    found.set("desc", not found.args.get("desc"))
    return True


def other_limit(tree: Tree, database: Database, rng: random.Random) -> bool:
    found = tree.find(exp.Limit)
    if found is None:
        return False
    found.set("expression", exp.Literal.number(int(found.expression.this) + 2))
    return True


def lost_distinct(tree: Tree, database: Database, rng: random.Random) -> bool:
    select = tree.find(exp.Select)
    if select is None or not select.args.get("distinct"):
        return False
    select.set("distinct", None)
    return True


def lost_column(tree: Tree, database: Database, rng: random.Random) -> bool:
    select = tree.find(exp.Select)
    if select is None or len(select.expressions) < 2 or select.expressions[-1].find(exp.AggFunc):
        return False
    select.expressions.pop()
    return True


MUTATIONS = (
    Mutation("another column", K.SCHEMA_LINKING, on_tree(other_column)),
    Mutation("a misspelt column", K.SCHEMA_LINKING, on_tree(misspelt_column)),
    Mutation("a table in the plural", K.SCHEMA_LINKING, on_tree(plural_table)),
    Mutation("a join lost", K.SCHEMA_LINKING, on_tree(lost_join)),
    Mutation("another key in a join", K.SCHEMA_LINKING, on_tree(wrong_key)),
    Mutation("a key without its table", K.SCHEMA_LINKING, on_tree(bare_key)),
    Mutation("another aggregate", K.AGGREGATION, on_tree(other_aggregate)),
    Mutation("GROUP BY lost", K.AGGREGATION, on_tree(lost_group)),
    Mutation("DISTINCT in a count lost", K.AGGREGATION, on_tree(lost_distinct_count)),
    Mutation("an aggregate in WHERE", K.AGGREGATION, on_tree(aggregate_in_where)),
    Mutation("a comparison turned", K.FILTER_VALUE, on_tree(flipped_comparison)),
    Mutation("a value spelt otherwise", K.FILTER_VALUE, on_tree(other_value)),
    Mutation("a condition lost", K.FILTER_VALUE, on_tree(lost_condition)),
    Mutation("NULL by equals", K.FILTER_VALUE, on_tree(null_by_equals)),
    Mutation("a limit in words", K.RESULT_MISMATCH, limit_in_words),
    Mutation("a bracket lost", K.SYNTAX, lost_bracket),
    Mutation("a comma before FROM", K.SYNTAX, comma_before_from),
    Mutation("clauses in another order", K.SYNTAX, swapped_clauses),
    Mutation("a function SQLite has not", K.SYNTAX, foreign_function),
    Mutation("two columns compared with one", K.SYNTAX, two_in_one),
    Mutation("an argument too many", K.SYNTAX, three_arguments),
    Mutation("it writes", K.EXECUTION, writes),
    Mutation("it never ends", K.EXECUTION, never_ends),
    Mutation("the order turned", K.RESULT_MISMATCH, on_tree(turned_order)),
    Mutation("another limit", K.RESULT_MISMATCH, on_tree(other_limit)),
    Mutation("DISTINCT lost", K.RESULT_MISMATCH, on_tree(lost_distinct)),
    Mutation("a column lost", K.RESULT_MISMATCH, on_tree(lost_column)),
)


# putting together -----------------------------------------------------------------------------------------


def squeezed(sql: str) -> str:
    """For comparing texts: lower case, no white space, no quotes around names."""
    return re.sub(r"[\s\"`;]+", "", sql).lower()


def failed(asked: Asked, sql: str, source: str, label: FailureType, id: str) -> Failure | None:
    """The failure that a statement is on its question; None where it is right, or nobody can say."""
    database = asked.database
    if not sql.strip():
        outcome, message = Outcome.EXECUTION_ERROR, "empty query"
    else:
        found = trial.run(asked.question, database, sql)
        outcome, message = found.outcome, found.message or ""
    if outcome not in FAILURES:
        return None
    question = asked.question
    return Failure(
        id, outcome, message, label, None, None, source, question.database_id, question.text, question.evidence, sql
    )


def answered(asked: list[Asked], file: Path | None) -> dict[str, str]:
    """Question id → SQL of the embedded model's first answer; from a file of JSON lines where there is one."""
    if file is not None:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return {line["question_id"]: line["sql"] for line in lines if line.get("finish", "stop") == "stop"}
    answers = first_answers(load("embedded"), asked)
    return {one.question.id: sql for one, sql in zip(asked, answers, strict=True)}


def mutated(asked: list[Asked], golds: set[str], rng: random.Random) -> Iterator[Failure]:
    """At most EACH wrong statements of every mutation, from questions drawn at random."""
    for mutation in MUTATIONS:
        kept = 0
        for one in rng.sample(asked, len(asked)):
            sql = mutation.make(str(one.question.gold_sql), one.database, rng)
            if sql is None or squeezed(sql) in golds or squeezed(str(one.question.gold_sql)) in squeezed(sql):
                continue
            id = f"{one.question.id}-{mutation.name.replace(' ', '-').lower()}"
            failure = failed(one, sql, "mutation", mutation.label, id)
            if failure is not None:
                yield failure
                kept += 1
                if kept == EACH:
                    break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=Path, help="answers of the embedded model that are there already, JSON lines")
    parser.add_argument("--out", type=Path, default=BUNDLED)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    asked = sample_questions()
    golds = {squeezed(str(one.question.gold_sql)) for one in asked}
    answers = answered(asked, options.answers)
    failures = []
    for one in asked:
        if one.question.id in answers:
            sql = answers[one.question.id]
            label = first_label(sql, str(one.question.gold_sql), one.database)
            failure = failed(one, sql, "model", label, f"{one.question.id}-model")
            failures += [failure] if failure is not None else []
    failures += mutated(asked, golds, random.Random(options.seed))
    assert not golds & {squeezed(failure.sql) for failure in failures}
    second = {(old.id, old.sql): old.second_label for old in bundled()} if BUNDLED.is_file() else {}
    failures = [replace(one, second_label=second.get((one.id, one.sql))) for one in failures]
    options.out.write_bytes(to_csv(failures))
    print(f"{len(answers)} answers, {len(failures)} failures: {Counter(one.source for one in failures)}")
    print(Counter((one.source, str(one.label)) for one in failures))


if __name__ == "__main__":
    main()
