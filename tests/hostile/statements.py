"""Statements that want more than they may: over a thousand, the same every time.

What this module does not know: what happens to them (``run``).
"""

# ruff: noqa: E501 (statements are data)

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import sqlglot
from sqlglot import exp

from merit.database import samples
from merit.database.guard import ALLOWED_FUNCTIONS

SERIES = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r"
MUTATIONS = 420


@dataclass(frozen=True)
class Statement:
    """One statement; ``refused``: it must never come back as executed; ``sample``: the sample database it is run on,
    "" for the small database of ``files.ORDINARY``."""

    kind: str
    sql: str
    refused: bool = False
    sample: str = ""


def statements(elsewhere: str) -> list[Statement]:
    """All of them; ``elsewhere`` is a path outside the database that some try to make or read."""
    return [
        *(Statement("other files", sql, True) for sql in _other_files(elsewhere)),
        *_pragmas(),
        *(Statement("function", sql, True) for sql in _functions(elsewhere)),
        *(Statement("write", sql, True) for sql in WRITES),
        *(Statement("write behind a word", f"{word} {sql}") for word, sql in product(("EXPLAIN", "explain query plan"), WRITES)),
        *(Statement("several", sql, True) for sql in _several(elsewhere)),
        *(Statement("hidden", sql, True) for sql in _hidden(elsewhere)),
        *(Statement("odd text", sql) for sql in ODD),
        *(Statement("recursion", sql) for sql in RECURSION),
        *(Statement("cross join", sql) for sql in CROSS_JOINS),
        *(Statement("memory", sql) for sql in MEMORY),
        *(Statement("pattern", sql) for sql in _patterns()),
        *(Statement("nesting", sql) for sql in _nesting()),
        *_mutations(),
    ]  # fmt: skip


def _other_files(path: str) -> Iterator[str]:
    for target in (path, ":memory:", "", f"file:{path}?mode=rwc", "/etc/passwd", "/dev/zero", "/proc/self/mem"):
        yield f"ATTACH '{target}' AS x"
        yield f"ATTACH DATABASE '{target}' AS x"
        yield f"VACUUM INTO '{target}'"
        yield f"VACUUM main INTO '{target}'"
    yield from ("DETACH main", "DETACH DATABASE temp", "VACUUM", "VACUUM main", f"ATTACH ('{path}') AS y KEY 'k'")
    yield from (f".open {path}", f".read {path}", f".backup {path}", ".shell true", ".load x", f".output {path}")
    for module in ("csv", "fsdir", "zipfile", "dbstat", "fts5", "rtree", "echo", "sqlite_stmt"):
        yield f"CREATE VIRTUAL TABLE temp.x USING {module}(filename='{path}')"
        yield f"CREATE VIRTUAL TABLE x USING {module}('{path}')"


def _pragmas() -> Iterator[Statement]:
    connection = sqlite3.connect(":memory:")
    names = sorted(row[0] for row in connection.execute("PRAGMA pragma_list"))
    connection.close()
    for name in names:
        for form in ("PRAGMA {}", "PRAGMA {}=1", "PRAGMA main.{}('x')", "pragma/**/{}=OFF", "SELECT * FROM pragma_{}"):
            yield Statement("pragma", form.format(name))
    for setting in ("writable_schema=ON", "query_only=OFF", "trusted_schema=ON", "journal_mode=WAL",
                    "user_version=7", "application_id=7", "temp_store_directory='/tmp'", "mmap_size=999999999",
                    "cell_size_check=OFF", "hard_heap_limit=0", "locking_mode=EXCLUSIVE", "key='x'", "rekey='x'",
                    "auto_vacuum=1", "page_size=512", "encoding='UTF-16'", "wal_checkpoint(TRUNCATE)",
                    "incremental_vacuum(9)", "optimize", "shrink_memory", "threads=8", "cache_spill=1"):  # fmt: skip
        yield Statement("pragma", f"PRAGMA {setting}", refused=True)


def _functions(path: str) -> Iterator[str]:
    connection = sqlite3.connect(":memory:")
    names = {row[0] for row in connection.execute("SELECT DISTINCT name FROM pragma_function_list")}
    connection.close()
    for name in sorted(names - ALLOWED_FUNCTIONS):
        if name.isidentifier():
            yield from (f"SELECT {name}()", f"SELECT {name}('{path}', 'x')")
    for call in ("load_extension('x')", "load_extension('x', 'y')", "LOAD_EXTENSION(char(120))", "writefile('{}', 'x')",
                 "readfile('/etc/passwd')", "edit('x')", "edit('x', 'vi')", "eval('DROP TABLE product')",
                 "fts3_tokenizer('simple')", "fts3_tokenizer('simple', x'4141414141414141')", "sqlite_log(1, 'x')",
                 "sqlite_compileoption_get(1)", "sqlite_source_id()", "system('true')", "lsdir('/')", "fsdir('/')",
                 "sqlite_dbdata('x')", "zipfile('x', 'y')", "shell('true')", "http_get('http://localhost')"):  # fmt: skip
        yield f"SELECT {call.format(path)}"
        yield f"SELECT * FROM product WHERE {call.format(path)}"
        yield f"SELECT CASE WHEN 1 THEN {call.format(path)} END"
    yield from ("SELECT * FROM readfile('/etc/passwd')", "SELECT * FROM fsdir('/')", "SELECT * FROM lsdir('/')")


WRITES = (
    "INSERT INTO product VALUES (9, 'x', 1)", "INSERT INTO product SELECT * FROM product",
    "INSERT OR REPLACE INTO product VALUES (1, 'x', 1)", "REPLACE INTO product VALUES (1, 'x', 1)",
    "INSERT INTO product DEFAULT VALUES", "INSERT INTO product VALUES (9, 'x', 1) RETURNING *",
    "INSERT INTO product VALUES (1, 'x', 1) ON CONFLICT DO UPDATE SET price = 0",
    "WITH a AS (SELECT 1) INSERT INTO product SELECT 9, 'x', 1 FROM a", "UPDATE product SET price = 0",
    "UPDATE OR IGNORE product SET price = 0 WHERE id = 1 RETURNING id", "WITH a AS (SELECT 1) UPDATE product SET price = 0",
    "UPDATE product SET price = s.amount FROM sale s", "DELETE FROM product", "DELETE FROM product WHERE 0",
    "DELETE FROM sale RETURNING *", "WITH a AS (SELECT 1) DELETE FROM product", "DROP TABLE product",
    "DROP TABLE IF EXISTS product", "DROP VIEW IF EXISTS cheap", "DROP VIEW cheap", "DROP TRIGGER noted",
    "DROP INDEX by_name", "CREATE TABLE x(a)", "CREATE TABLE IF NOT EXISTS x(a)", "CREATE TABLE x AS SELECT 1",
    "CREATE TEMP TABLE product(a)", "CREATE TEMPORARY VIEW product AS SELECT 1", "CREATE TABLE temp.product(a)",
    "CREATE VIEW x AS SELECT 1", "CREATE INDEX x ON product(name)", "CREATE UNIQUE INDEX x ON product(name)",
    "CREATE TRIGGER x AFTER INSERT ON sale BEGIN SELECT 1; END", "CREATE TEMP TRIGGER x AFTER INSERT ON sale BEGIN SELECT 1; END",
    "ALTER TABLE product RENAME TO x", "ALTER TABLE product ADD COLUMN x", "ALTER TABLE product DROP COLUMN price",
    "ALTER TABLE product RENAME COLUMN name TO x", "REINDEX", "REINDEX by_name", "ANALYZE", "ANALYZE product",
    "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 2, 'CREATE TABLE x(a)')", "UPDATE sqlite_master SET sql = ''",
    "UPDATE sqlite_schema SET sql = 'x'", "DELETE FROM sqlite_master", "DROP TABLE sqlite_master", "DELETE FROM sqlite_temp_master",
    "UPDATE sqlite_sequence SET seq = 9", "INSERT INTO cheap VALUES (1)", "UPDATE cheap SET name = 'x'",
    "INSERT INTO words VALUES ('x')", "INSERT INTO words(words) VALUES ('optimize')", "INSERT INTO words(words) VALUES ('rebuild')",
    "INSERT INTO words(words, rank) VALUES ('rank', 'load_extension(1)')", "DELETE FROM words", "DROP TABLE words",
    "UPDATE words_data SET block = x'00'", "INSERT INTO words_content VALUES (9, 'x')",
)  # fmt: skip


def _several(path: str) -> Iterator[str]:
    for first, second in product(("SELECT 1", "SELECT name FROM product", "-- a\nSELECT 1"),
                                 ("DROP TABLE product", f"ATTACH '{path}' AS x", "SELECT 2", "PRAGMA writable_schema=1")):  # fmt: skip
        yield from (f"{first}; {second}", f"{first};{second};", f"{first};\n/* */{second}", f"{second}; {first}")
    yield from ("BEGIN; SELECT 1; COMMIT", "BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "COMMIT", "ROLLBACK", "END",
                "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a", "SELECT 1;;DROP TABLE product", "SELECT 1;\0DROP TABLE product")  # fmt: skip


def _hidden(path: str) -> Iterator[str]:
    for sql in ("DROP TABLE product", "DELETE FROM product", f"ATTACH '{path}' AS x", "SELECT load_extension('x')"):
        word, rest = sql.split(" ", 1)
        yield from (
            f"/* SELECT 1 */ {sql}", f"-- SELECT 1\n{sql}", f"{word}/**/{rest}", f"{word}\n\t{rest}", f"{word}\x0c{rest}",
            f"\ufeff{sql}", f"/*/ */{sql}", f"/* /* */ {sql}", f"--\r\n{sql}", f"{sql} --", f"{sql} /*", f"({sql})",
            f"{word.lower()} {rest}", f"{word.title()}\u00a0{rest}", f"SELECT ({sql})", f"WITH x AS ({sql}) SELECT * FROM x",
        )  # fmt: skip


ODD = (
    "", " ", ";", ";;;;", "--", "/*", "/**/", "\0", "\0SELECT 1", "SELECT 1\0", "SELECT '\0'", "\ufeff", "\ud800", "SELECT '\udfff'",
    "SELECT \u202e1", "SELECT '<script>alert(1)</script>'", "SELECT 1 AS \"<b onmouseover='x'>\"", "SELECT 1 AS \"a\nb\"",
    "SELECT ?", "SELECT ?1, :a, @b, $c", "SELECT \u2018a\u2019", "ＳＥＬＥＣＴ 1", "SELEСT 1", "```sql\nSELECT 1\n```", "SELECT 1 LIMIT 'ten'",
    "SELECT 1e999, -1e999, 0x7fffffffffffffff", "SELECT 9223372036854775808", "SELECT -9223372036854775808 / -1",
    "SELECT abs(-9223372036854775808)", "SELECT sum(9223372036854775807) FROM product", "SELECT x'0g'", "SELECT 'unclosed",
    'SELECT "unclosed', "SELECT [unclosed", "SELECT `unclosed", "SELECT 1 UNION SELECT 1, 2", "VALUES (1), (2, 3)",
    "SELECT * FROM product INDEXED BY nothing", "SELECT 1 FROM product WHERE", "SELECT name, FROM product", "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_dbpage", "SELECT * FROM sqlite_stmt", "SELECT * FROM dbstat", "SELECT * FROM bytecode('SELECT 1')",
    "SELECT * FROM tables_used('SELECT 1')", "SELECT * FROM json_each('[' || char(0))", "EXPLAIN SELECT 1", "EXPLAIN QUERY PLAN SELECT 1",
    "x" * 1_000_001, "SELECT '" + "x" * 999_000 + "'", "SELECT 1" + " " * 900_000, "SELECT " + "1," * 3000 + "1",
)  # fmt: skip

RECURSION = (
    f"{SERIES}) SELECT count(*) FROM r", f"{SERIES}) SELECT * FROM r", f"{SERIES}) SELECT i FROM r WHERE i < 0",
    f"{SERIES}) SELECT max(i) FROM r ORDER BY 1", f"{SERIES}) SELECT i FROM r ORDER BY -i LIMIT 1",
    f"{SERIES}) SELECT group_concat(i) FROM r", f"{SERIES}) SELECT sum(i) OVER (ORDER BY i) FROM r",
    f"{SERIES}) SELECT DISTINCT i % 7 FROM r", f"{SERIES}) SELECT a.i FROM r a, r b WHERE a.i = b.i - 1",
    f"{SERIES}) SELECT EXISTS (SELECT 1 FROM r WHERE i = -1)", f"{SERIES}) SELECT 1 WHERE 0 IN (SELECT i FROM r)",
    "WITH RECURSIVE r(s) AS (SELECT 'a' UNION ALL SELECT s || s FROM r) SELECT length(s) FROM r",
    "WITH RECURSIVE r(s) AS (SELECT x'00' UNION SELECT s || randomblob(1000) FROM r) SELECT count(*) FROM r",
    "WITH RECURSIVE r(i, j) AS (SELECT 1, 1 UNION SELECT i + 1, j FROM r UNION SELECT i, j + 1 FROM r) SELECT count(*) FROM r",
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i FROM r ORDER BY 1 DESC) SELECT i FROM r WHERE i = 2",
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a", "WITH r AS (SELECT * FROM r) SELECT * FROM r",
)  # fmt: skip

_FEW = "(SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6)"
CROSS_JOINS = (
    "SELECT count(*) FROM " + ", ".join(f"product p{n}" for n in range(40)),
    "SELECT * FROM " + ", ".join(f"sale s{n}" for n in range(60)),
    "SELECT count(*) FROM " + ", ".join(f"sale s{n}" for n in range(65)),
    "SELECT count(*) FROM " + " CROSS JOIN ".join(f"{_FEW} f{n}" for n in range(20)),
    "SELECT max(" + "||".join(f"p{n}.name" for n in range(20)) + ") FROM " + ", ".join(f"product p{n}" for n in range(20)),
    "SELECT DISTINCT " + ",".join(f"s{n}.id" for n in range(18)) + " FROM " + ", ".join(f"sale s{n}" for n in range(18)),
    "SELECT 1 FROM " + " LEFT JOIN ".join(f"product p{n}" for n in range(30)) + " ORDER BY random()",
    "SELECT (SELECT count(*) FROM product a, product b, product c, product d, product e, product f, sale g, sale h, sale i, "
    "sale j, sale k, sale l, sale m, sale n, sale o, sale p, sale q) FROM product",
    "SELECT count(*) FROM " + " NATURAL JOIN ".join(f"product p{n}" for n in range(60)),
)  # fmt: skip

MEMORY = (
    "SELECT zeroblob(2147483647)", "SELECT zeroblob(999999999999)", "SELECT zeroblob(10000000)", "SELECT length(zeroblob(9999999))",
    "SELECT randomblob(1000000000)", "SELECT randomblob(9999999)", "SELECT hex(zeroblob(9999999))", "SELECT hex(hex(zeroblob(4999999)))",
    "SELECT printf('%.*c', 2000000000, 'x')", "SELECT printf('%2000000000d', 1)", "SELECT printf('%.9999999f', 1.0)",
    "SELECT format('%.*s', 2147483647, 'x')", "SELECT printf('%' || 99999999 || 's', 'x')", "SELECT replace(hex(zeroblob(99999)), '0', hex(zeroblob(9999)))",
    "SELECT length(replace(printf('%.*c', 9000000, 'x'), 'x', ''))", "SELECT quote(zeroblob(9999999))", "SELECT group_concat(zeroblob(999999)) FROM sale a, sale b, sale c, sale d",
    "SELECT json_group_array(hex(zeroblob(99999))) FROM sale a, sale b, sale c", "SELECT json_array(" + ",".join(["hex(zeroblob(99999))"] * 90) + ")",
    "SELECT " + ",".join(["zeroblob(9000000)"] * 100), "SELECT " + ",".join(["randomblob(9000000)"] * 200),
    "SELECT a.name || zeroblob(9000000) FROM product a, product b, product c ORDER BY 1", "SELECT char(" + ",".join(["120"] * 100000) + ")",
    f"{SERIES} LIMIT 100000) SELECT zeroblob(100000) FROM r", f"{SERIES} LIMIT 1000000) SELECT hex(randomblob(1000)) h FROM r ORDER BY h",
    f"{SERIES} LIMIT 5000000) SELECT json_group_object(i, i) FROM r", f"{SERIES} LIMIT 3000) SELECT group_concat(hex(zeroblob(5000))) FROM r",
    "SELECT upper(printf('%.*c', 9999999, 'x'))", "SELECT trim(printf('%.*c', 9999999, ' '))", "SELECT instr(printf('%.*c', 9999999, 'x'), printf('%.*c', 999999, 'x') || 'y')",
    "SELECT unicode(substr(printf('%.*c', 9999999, 'x'), -1))", "SELECT strftime(printf('%.*c', 1000000, '%'), 'now')", "SELECT soundex(printf('%.*c', 9999999, 'x'))",
)  # fmt: skip


def _patterns() -> Iterator[str]:
    for count, length in ((5, 1000), (10, 5000), (20, 100_000), (1000, 9000), (20_000, 45_000)):
        text = f"printf('%.*c', {length}, 'a')"
        yield f"SELECT {text} LIKE '{'%a' * count}b'"
        yield f"SELECT {text} GLOB '{'*a' * count}b'"
        yield f"SELECT {text} LIKE '{'%_a' * (count // 2)}b' ESCAPE '\\'"
    yield from ("SELECT 'a' REGEXP '(a+)+$'", "SELECT 'aaaa' REGEXP '((a*)*)*b'", "SELECT * FROM product WHERE name REGEXP 'x'",
                "SELECT 'a' LIKE printf('%.*c', 60000, '%')", "SELECT 'a' GLOB printf('%.*c', 49999, '[')", "SELECT 'a' MATCH 'a'",
                "SELECT * FROM words WHERE words MATCH '" + "a* OR " * 3000 + "a'", "SELECT * FROM words WHERE words MATCH '\"'",
                "SELECT * FROM words WHERE words MATCH '" + "(" * 2000 + "a" + ")" * 2000 + "'",
                "SELECT 'a' GLOB '" + "[^" * 20_000 + "'", "SELECT 'a' LIKE 'a' ESCAPE 'ab'")  # fmt: skip


def _nesting() -> Iterator[str]:
    for depth in (50, 200, 999, 1001, 20_000):
        yield "SELECT " + "(" * depth + "1" + ")" * depth
        yield "SELECT " + "-" * 0 + "+".join(["1"] * depth)
        yield "SELECT " + "NOT " * depth + "1"
        yield "SELECT " + "CASE WHEN 1 THEN " * depth + "1" + " END" * depth
        yield "SELECT " + "abs(" * depth + "1" + ")" * depth
        yield "SELECT * FROM " + "(SELECT * FROM " * depth + "product" + ")" * depth
        yield " UNION ALL ".join(["SELECT 1"] * depth)
        yield "SELECT 1 WHERE " + " AND ".join(["1 = 1"] * depth)
        yield "SELECT 1 WHERE 1 IN (" + ",".join(["1"] * depth) + ")"
        yield (
            "WITH "
            + ", ".join(f"c{n} AS (SELECT * FROM {f'c{n - 1}' if n else 'product'})" for n in range(depth))
            + f" SELECT * FROM c{depth - 1}"
        )
        yield (
            "WITH "
            + ", ".join(
                f"c{n} AS (SELECT a.* FROM {f'c{n - 1} a, c{n - 1}' if n else 'product a, product'} b)"
                for n in range(min(depth, 300))
            )
            + f" SELECT count(*) FROM c{min(depth, 300) - 1}"
        )
        yield "SELECT json('" + "[" * depth + "]" * depth + "')"
        yield "SELECT json_extract('" + '{"a":' * depth + "1" + "}" * depth + "', '$" + ".a" * depth + "')"
        yield "SELECT 1 " + "ORDER BY (SELECT 1 " * depth + ")" * depth


def _mutations() -> Iterator[Statement]:
    """Gold queries of the samples with one to three pieces changed: another piece of some query, doubled, removed."""
    dice = random.Random(20261201)
    trees = {
        id: [sqlglot.parse_one(str(question.gold_sql), read="sqlite") for question in samples.questions(id)]
        for id in samples.ids()
    }
    pieces = {
        id: [node for tree in known for node in tree.find_all(exp.Expression) if node.parent is not None]
        for id, known in trees.items()
    }
    made = 0
    while made < MUTATIONS:
        id = dice.choice(sorted(trees))
        tree = dice.choice(trees[id]).copy()
        for _ in range(dice.randint(1, 3)):
            nodes = [node for node in tree.find_all(exp.Expression) if node.parent is not None]
            node = dice.choice(nodes)
            match dice.randrange(3):
                case 0:
                    node.replace(dice.choice(pieces[id]).copy())
                case 1:
                    node.replace(exp.Paren(this=node.copy()))
                case _:
                    node.pop()
        try:
            text = tree.sql("sqlite")
        except Exception:  # noqa: BLE001 (a tree that has no text any more is no statement)
            continue
        made += 1
        yield Statement("mutated gold", text, sample=id)
