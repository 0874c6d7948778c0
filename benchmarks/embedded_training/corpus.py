"""Training questions from Spider train: gold rewritten to the prompt's own rules, databases held out for choices.

Only `train_spider.json`, `tables.json` and the databases it names are read. Nothing of Spider dev or of the sample
databases is known here, and no training database shares its id with one of those (tests/models checks it).
Gold is used to train towards, never inside a prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from merit.database import Database
from merit.episode import Question, Status

HELD_OUT = frozenset(
    {
        "club_1",
        "customer_complaints",
        "film_rank",
        "gas_company",
        "insurance_policies",
        "musical",
        "school_player",
        "small_bank_1",
    }
)
"""Databases of Spider train that are never trained on: every choice is made on their 388 questions."""

ASKED_ELSEWHERE = frozenset(
    {
        "Count the number of documents.",
        "How many employees are there?",
        "How many flights do we have?",
        "What is the total number of airlines?",
    }
)
"""Questions of Spider train whose very words also stand in Spider dev, about other databases: left out."""

_ALIAS = re.compile(r"t\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Asked:
    """A training question and the SQL to train towards (gold in our spelling)."""

    question: Question
    sql: str


@dataclass(frozen=True)
class TrainingDatabase:
    """One database with its questions and the schema texts the product could show for it.

    `schemas`: with Spider's types (as for a dataset) and with the declared types (as for any other file).
    """

    database: Database
    schemas: tuple[str, str]
    questions: tuple[Asked, ...]


def clean(sql: str) -> str:
    """One line, one space between words, no closing semicolon, `! =` and the like joined."""
    sql = re.sub(r"\s+", " ", sql).strip().rstrip(";").strip()
    return re.sub(r"([<>!]) =", r"\1=", sql)


def plain_sql(sql: str, tables: Mapping[str, Any]) -> str:
    """Gold without aliases, names in the schema's case, one canonical spelling; unchanged where that is impossible.

    `tables` is the database's entry of tables.json. A self-join keeps its aliases. Whether the result still returns
    the same rows is for the caller to check.
    """
    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except sqlglot.errors.SqlglotError:
        return sql
    table_case = {name.lower(): name for name in tables["table_names_original"]}
    column_case = {name.lower(): name for _, name in reversed(tables["column_names_original"][1:])}
    for select in tree.find_all(exp.Select):
        used = [table for table in select.find_all(exp.Table) if table.find_ancestor(exp.Select) is select]
        if len({table.name.lower() for table in used}) != len(used):
            return sql
        aliases = {table.alias.lower(): table.name for table in used if table.alias}
        for column in select.find_all(exp.Column):
            if column.find_ancestor(exp.Select) is select and column.table.lower() in aliases:
                column.set("table", exp.to_identifier(aliases[column.table.lower()]))
        for table in used:
            table.set("alias", None)
    for column in tree.find_all(exp.Column):
        if _ALIAS.fullmatch(column.table):
            return sql
        if column.table:
            column.set("table", exp.to_identifier(table_case.get(column.table.lower(), column.table)))
        if isinstance(column.this, exp.Identifier) and not column.this.quoted:
            column.set("this", exp.to_identifier(column_case.get(column.name.lower(), column.name)))
    for table in tree.find_all(exp.Table):
        table.set("this", exp.to_identifier(table_case.get(table.name.lower(), table.name)))
    return str(tree.sql(dialect="sqlite"))


def same_rows(database: Database, first: str, second: str) -> bool:
    """Whether both queries run and return the same rows, in any order."""
    a, b = database.execute(first, timeout_s=5), database.execute(second, timeout_s=5)
    return a.status == b.status == Status.EXECUTED and sorted(map(repr, a.rows)) == sorted(map(repr, b.rows))


def read(
    spider: Path,
    *,
    keep: Callable[[str], bool] = lambda id: id not in HELD_OUT,
    longest_schema: int = 700,
    most_questions: int | None = None,
    count_tokens: Callable[[str], int],
) -> list[TrainingDatabase]:
    """The databases of Spider train that `keep` takes and whose schema text has at most `longest_schema` tokens.

    `spider` is the official folder. Questions whose database has no file are left out, and so are those whose gold
    does not run. `most_questions` takes so many of each database, spread evenly over its list.
    """
    tables = {entry["db_id"]: entry for entry in json.loads((spider / "tables.json").read_text(encoding="utf-8"))}
    asked: dict[str, list[Mapping[str, str]]] = {}
    for line in json.loads((spider / "train_spider.json").read_text(encoding="utf-8")):
        asked.setdefault(line["db_id"], []).append(line)
    databases = []
    for id, lines in sorted(asked.items()):
        file = spider / "database" / id / f"{id}.sqlite"
        if not keep(id) or not file.is_file():
            continue
        typed = Database.open(file, id=id, types=tables[id])
        declared = Database.open(file, id=id)
        schemas = (typed.schema("listing"), declared.schema("listing"))
        if count_tokens(schemas[0]) > longest_schema:
            continue
        step = -(-len(lines) // (most_questions or len(lines)))
        databases.append(TrainingDatabase(declared, schemas, tuple(_questions(declared, lines[::step], tables[id]))))
    return databases


def _questions(database: Database, lines: list[Mapping[str, str]], tables: Mapping[str, Any]) -> list[Asked]:
    result = []
    for line in lines:
        if line["question"].strip() in ASKED_ELSEWHERE:
            continue
        gold = clean(line["query"])
        plain = plain_sql(gold, tables)
        if plain == gold or same_rows(database, gold, plain):
            gold = plain
        elif database.execute(gold, timeout_s=5).status != Status.EXECUTED:
            continue
        result.append(Asked(Question(line["question"].strip(), database.id, gold_sql=gold), gold))
    return result
