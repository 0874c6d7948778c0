"""Files that want harm, or came to some: over two hundred, made on the spot, the same every time.

What this module does not know: what happens to them (``run``).
"""

# ruff: noqa: E501 (scripts are data)

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HEADER_FIELDS = (0, 16, 18, 19, 20, 21, 22, 23, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 92, 96, 100)
"""Where the fields of a database's header begin (sqlite.org/fileformat2.html), and where it ends."""
ENDLESS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i FROM r"


@dataclass(frozen=True)
class HostileFile:
    """One file; ``uploaded``: it can be sent to the uploads, others only lie on a disk (links, logs beside them)."""

    kind: str
    path: Path
    uploaded: bool = True

    @property
    def client_name(self) -> str:
        return self.path.name


def files(folder: Path) -> list[HostileFile]:
    """Write them below ``folder``."""
    made: list[HostileFile] = []
    for kind, maker in KINDS.items():
        place = folder / kind.replace(" ", "_")
        place.mkdir()
        made += [HostileFile(kind, path, kind not in ON_DISK) for path in maker(place)]
    return made


def built(path: Path, script: str, page_size: int = 4096, unsafe: str = "") -> Path:
    """A database made by a script; ``unsafe``: statements run afterwards with a writable schema."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size={page_size}")
        connection.executescript(script)
        if unsafe:
            connection.executescript("PRAGMA writable_schema=ON")
            connection.executescript(unsafe)
    return path


ORDINARY = (
    "CREATE TABLE product(id INTEGER PRIMARY KEY, name TEXT, price REAL);"
    "CREATE TABLE sale(id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES product(id), amount INTEGER);"
    "CREATE TABLE pair(a TEXT, b TEXT, PRIMARY KEY(a, b)) WITHOUT ROWID;"
    "CREATE INDEX by_name ON product(name); CREATE VIEW cheap AS SELECT * FROM product WHERE price < 9;"
    "CREATE TRIGGER noted AFTER INSERT ON sale BEGIN UPDATE product SET price = price WHERE id = new.product_id; END;"
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 16)"
    " INSERT INTO product SELECT i, 'product ' || i || printf('%.*c', i * 9, '-'), i * 1.5 FROM r;"
    "INSERT INTO sale SELECT id, id, id % 7 FROM product; INSERT INTO pair SELECT name, id FROM product;"
    "INSERT INTO product VALUES(99, printf('%.*c', 5000, 'o'), 1);"
)
PAGE = 1024


def _whole(place: Path) -> bytes:
    path = built(place / "whole.db", ORDINARY, PAGE)
    data = path.read_bytes()
    path.unlink()
    return data


def _named(place: Path, variants: dict[str, bytes]) -> Iterator[Path]:
    for name, data in variants.items():
        path = place / name
        path.write_bytes(data)
        yield path


def _cut(place: Path) -> Iterator[Path]:
    whole = _whole(place)
    places = {*HEADER_FIELDS, 1, 15, 99, 101, 511, 512, *range(PAGE, len(whole), PAGE)}
    places |= {end - 1 for end in range(PAGE, len(whole), 4 * PAGE)} | {len(whole) - 1}
    yield from _named(place, {f"cut_{end}.db": whole[:end] for end in sorted(places)})


def _flipped(place: Path) -> Iterator[Path]:
    whole = _whole(place)
    dice = random.Random(7)
    for start in range(0, len(whole), PAGE):
        for name, count, first in (("head", 1, 12), ("some", 8, PAGE), ("many", 200, PAGE)):
            data = bytearray(whole)
            for _ in range(count):
                place_in_page = dice.randrange(
                    100 if start == 0 and name == "head" else 0, first + (100 if start == 0 else 0)
                )
                data[min(start + place_in_page, len(data) - 1)] ^= dice.randrange(1, 256)
            yield from _named(place, {f"page_{start // PAGE}_{name}.db": bytes(data)})


def _header(place: Path) -> Iterator[Path]:
    whole = _whole(place)
    for start, end in pairwise(HEADER_FIELDS[1:]):
        for name, byte in (("zero", b"\0"), ("ones", b"\xff"), ("two", b"\2")):
            yield from _named(place, {f"field_{start}_{name}.db": whole[:start] + byte * (end - start) + whole[end:]})
    pages = (0x7FFFFFFF).to_bytes(4, "big")
    yield from _named(place, {"huge_page_count.db": whole[:28] + pages + whole[32:]})


def _encodings(place: Path) -> Iterator[Path]:
    for encoding in ("UTF-16le", "UTF-16be"):
        yield built(place / f"{encoding}.db", f"PRAGMA encoding='{encoding}'; {ORDINARY}")
    yield built(
        place / "bad_cells.db", "CREATE TABLE t(a TEXT); INSERT INTO t VALUES(CAST(x'fffe80c3' AS TEXT)), (x'ff');"
    )
    yield built(
        place / "nul_cells.db", "CREATE TABLE t(a TEXT); INSERT INTO t VALUES('a' || char(0) || 'b'), (char(55296));"
    )
    data = built(place / "bad_names.db", "CREATE TABLE abcde(vwxyz); INSERT INTO abcde VALUES(1);").read_bytes()
    yield from _named(
        place, {"bad_names.db": data.replace(b"abcde", b"a\xff\xfe\x80e").replace(b"vwxyz", b"v\xc3\xc3\xa0z")}
    )


def _views(place: Path) -> Iterator[Path]:
    table = "CREATE TABLE t(a); INSERT INTO t VALUES(1), (2), (3);"
    chain = "".join(
        f"CREATE VIEW v{n} AS SELECT x.a FROM {f'v{n - 1} x, v{n - 1}' if n else 't x, t'} y;" for n in range(14)
    )
    views = {
        "fails": "CREATE VIEW v AS SELECT * FROM gone; CREATE VIEW w AS SELECT gone FROM t;",
        "endless": f"CREATE VIEW v AS {ENDLESS};",
        "explodes": chain,
        "explodes_in_rows": "CREATE VIEW v AS SELECT count(*) c FROM " + ", ".join(f"t t{n}" for n in range(40)) + ";",
        "memory": "CREATE VIEW v AS SELECT hex(zeroblob(9999999)) h FROM t a, t b, t c, t d;",
        "extension": "CREATE VIEW v AS SELECT load_extension('x') a FROM t;",
        "files": "CREATE VIEW v AS SELECT writefile('/tmp/x', 'x') a, readfile('/etc/passwd') b;",
        "tokenizer": "CREATE VIEW v AS SELECT fts3_tokenizer('simple') a;",
        "schema": "CREATE VIEW v AS SELECT * FROM sqlite_master; CREATE VIEW w AS SELECT * FROM pragma_database_list;",
        "html": 'CREATE VIEW "<script>alert(\'v\')</script>" AS SELECT a AS "<img src=x onerror=alert(1)>" FROM t;',
        "deep": "".join(f"CREATE VIEW d{n} AS SELECT * FROM {f'd{n - 1}' if n else 't'};" for n in range(400)),
        "wide": "CREATE VIEW v AS SELECT " + ",".join(f"a a{n}" for n in range(1999)) + " FROM t;",
    }
    for name, script in views.items():
        yield built(place / f"{name}.db", table + script)
    for name, change in {
        "itself": "UPDATE sqlite_master SET sql = 'CREATE VIEW v AS SELECT * FROM v' WHERE name = 'v'",
        "each_other": "UPDATE sqlite_master SET sql = 'CREATE VIEW w AS SELECT * FROM v' WHERE name = 'w'",
        "no_statement": "UPDATE sqlite_master SET sql = 'CREATE VIEW v AS' WHERE name = 'v'",
        "no_text": "UPDATE sqlite_master SET sql = NULL WHERE name = 'v'",
    }.items():
        script = f"{table} CREATE VIEW w AS SELECT * FROM t; CREATE VIEW v AS SELECT * FROM w;"
        yield built(place / f"{name}.db", script, unsafe=change)


def _tables(place: Path) -> Iterator[Path]:
    tables = {
        "generated": "CREATE TABLE t(a, b AS (a * 2), c AS (hex(zeroblob(9000000))) VIRTUAL); INSERT INTO t VALUES(1), (2);",
        "triggers": "CREATE TABLE t(a); CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO t SELECT a FROM t; END;",
        "instead": "CREATE TABLE t(a); CREATE VIEW v AS SELECT * FROM t;"
        "CREATE TRIGGER x INSTEAD OF INSERT ON v BEGIN DELETE FROM t; END;",
        "columns_2000": "CREATE TABLE t(" + ",".join(f"c{n}" for n in range(2000)) + "); INSERT INTO t DEFAULT VALUES;",
        "tables_600": "".join(f"CREATE TABLE t{n}(a{n}, b);" for n in range(600)),
        "defaults": "CREATE TABLE t(a DEFAULT (randomblob(9)), b CHECK(b < 9), c COLLATE NOCASE); INSERT INTO t(b) VALUES(1);",
        "expression_index": "CREATE TABLE t(a); CREATE INDEX i ON t(length(hex(a))); INSERT INTO t VALUES(zeroblob(100000));",
        "partial_index": "CREATE TABLE t(a); CREATE INDEX i ON t(a) WHERE a LIKE '%a%a%a%b'; INSERT INTO t VALUES('aaaa');",
        "fts5": "CREATE VIRTUAL TABLE t USING fts5(a); INSERT INTO t VALUES('word');",
        "fts4": "CREATE VIRTUAL TABLE t USING fts4(a); INSERT INTO t VALUES('word');",
        "fts3": "CREATE VIRTUAL TABLE t USING fts3(a, tokenize=porter); INSERT INTO t VALUES('word');",
        "fts5_contentless": "CREATE VIRTUAL TABLE t USING fts5(a, content='gone');",
        "rtree": "CREATE VIRTUAL TABLE t USING rtree(i, a, b); INSERT INTO t VALUES(1, 2, 3);",
        "shadow_lookalike": "CREATE TABLE t_data(id, block); CREATE TABLE t_content(a); CREATE TABLE t(a);",
        "self_reference": "CREATE TABLE t(a PRIMARY KEY REFERENCES t(a), b REFERENCES t);",
        "circle_of_keys": "CREATE TABLE a(x PRIMARY KEY REFERENCES b(x)); CREATE TABLE b(x PRIMARY KEY REFERENCES a(x));",
        "keys_to_nowhere": "CREATE TABLE t(a REFERENCES gone(b), b REFERENCES t(gone), FOREIGN KEY(a, b) REFERENCES t(b, c));",
        "cells_9mb": "CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(9000000)); INSERT INTO t VALUES(hex(zeroblob(4500000)));",
        "mixed": "CREATE TABLE t(a INTEGER); INSERT INTO t VALUES('x'), (x'00'), (9e999), (NULL), (9223372036854775807);",
        "no_columns_shown": "CREATE TABLE t(a INTEGER PRIMARY KEY); CREATE TABLE u(a ANY) STRICT;",
        "gone": "CREATE TABLE t(a); DROP TABLE t;",
    }
    for name, script in tables.items():
        yield built(place / f"{name}.db", script)
    yield built(
        place / "generated_error.db",
        "CREATE TABLE t(a); INSERT INTO t VALUES(-9223372036854775807 - 1);",
        unsafe="UPDATE sqlite_master SET sql = 'CREATE TABLE t(a, b AS (abs(a)) VIRTUAL)'",
    )
    for name, change in {
        "unknown_module": "INSERT INTO sqlite_master VALUES('table', 'm', 'm', 0, 'CREATE VIRTUAL TABLE m USING evil(x)')",
        "dbstat": "INSERT INTO sqlite_master VALUES('table', 'm', 'm', 0, 'CREATE VIRTUAL TABLE m USING dbstat')",
        "csv_module": "INSERT INTO sqlite_master VALUES"
        "('table', 'm', 'm', 0, 'CREATE VIRTUAL TABLE m USING csv(filename=\"/etc/passwd\")')",
        "same_root": "UPDATE sqlite_master SET rootpage = 2 WHERE type = 'table'",
        "root_one": "UPDATE sqlite_master SET rootpage = 1 WHERE name = 'sale'",
        "root_none": "UPDATE sqlite_master SET rootpage = 0 WHERE name = 'sale'",
        "root_far": "UPDATE sqlite_master SET rootpage = 2147483647 WHERE name = 'sale'",
        "root_negative": "UPDATE sqlite_master SET rootpage = -5 WHERE name = 'sale'",
        "other_columns": "UPDATE sqlite_master SET sql = 'CREATE TABLE sale(a, b, c, d, e, f, g)' WHERE name = 'sale'",
        "other_type": "UPDATE sqlite_master SET type = 'bogus' WHERE name = 'sale'",
        "no_sql": "UPDATE sqlite_master SET sql = NULL WHERE name = 'sale'",
        "bad_sql": "UPDATE sqlite_master SET sql = 'DROP TABLE product' WHERE name = 'sale'",
        "bad_index": "UPDATE sqlite_master SET sql = 'CREATE INDEX by_name ON sale(amount)' WHERE name = 'by_name'",
        "reserved_name": "UPDATE sqlite_master SET name = 'sqlite_x', tbl_name = 'sqlite_x' WHERE name = 'pair'",
        "blob_name": "UPDATE sqlite_master SET name = x'41ff', tbl_name = x'41ff' WHERE name = 'pair'",
        "twice": "INSERT INTO sqlite_master SELECT * FROM sqlite_master",
        "long_sql": "UPDATE sqlite_master SET sql = sql || printf('%.*c', 3000000, ' ') WHERE name = 'sale'",
    }.items():
        yield built(place / f"{name}.db", ORDINARY, unsafe=change)


NAMES = {
    "quotes": 'a"b\'c`d]e[', "lines": "a\nb\r\nc", "html": "<script>alert(1)</script>", "link": "[x](javascript:alert(1))",
    "right_to_left": "\u202egnp.exe\u202c", "bidi": "\u2066a\u2067b\u2069", "spaces": "   ", "empty": "", "emoji": "👩‍👩‍👧‍👦",
    "long": "n" * 10_000, "tab": "a\tb", "percent": "%s%n%d", "template": "{{7*7}}${x}", "semicolon": "x; DROP TABLE y",
    "comment": "a--b/*c*/", "controls": "".join(map(chr, range(1, 32))), "math": "$a^2$ *b* _c_ `d` #e", "keyword": "select",
    "zero_width": "a\u200b\ufeffb", "combining": "e" + "\u0301" * 300, "number": "1", "backslash": "\\\\x\\",
}  # fmt: skip


def _names(place: Path) -> Iterator[Path]:
    for kind, name in NAMES.items():
        quoted = '"' + name.replace('"', '""') + '"'
        text = "'" + name.replace("'", "''") + "'"
        script = f"CREATE TABLE {quoted}({quoted} TEXT, other REFERENCES {quoted}({quoted})); INSERT INTO {quoted} VALUES({text}, 1);"
        yield built(place / f"{kind}.db", script)


def _not_databases(place: Path) -> Iterator[Path]:
    whole = _whole(place)
    archive, tar = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("a.db", whole)
    with tarfile.open(fileobj=tar, mode="w") as packed:
        packed.addfile(tarfile.TarInfo("a.db"), io.BytesIO())
    dice = random.Random(1)
    yield from _named(
        place,
        {
            "zero.db": b"", "one.db": b"S", "blank.db": b" " * 9000, "nul.db": bytes(8192), "zip.db": archive.getvalue(),
            "gzip.db": gzip.compress(whole), "bzip2.db": bz2.compress(whole), "xz.db": lzma.compress(whole), "tar.db": tar.getvalue(),
            "7z.db": b"7z\xbc\xaf\x27\x1c" + bytes(99), "zstd.db": b"\x28\xb5\x2f\xfd" + bytes(99), "pdf.db": b"%PDF-1.7\n" + bytes(99),
            "png.db": b"\x89PNG\r\n\x1a\n" + bytes(99), "elf.db": b"\x7fELF" + bytes(99), "html.db": b"<html><script>alert(1)</script>",
            "text.db": b"hello, world\n", "sqlite2.db": b"** This file contains an SQLite 2.1 database **" + bytes(99),
            "encrypted.db": dice.randbytes(8192), "encrypted_odd.db": dice.randbytes(5000), "salted.db": b"Salted__" + dice.randbytes(8184),
            "magic_only.db": b"SQLite format 3\0", "magic_noise.db": b"SQLite format 3\0" + dice.randbytes(8176),
            "magic_twice.db": b"SQLite format 3\0" + whole, "shifted.db": b"\n" + whole, "doubled.db": whole + whole,
            "tail.db": whole + b"x" * 777, "database.mp3": whole[:16], "journal.db": bytes.fromhex("d9d505f920a163d7") + bytes(999),
            "wal.db": bytes.fromhex("377f0682") + bytes(999), "no_ending": b"x,y\n1,2\n", "evil.db\u202egnp": b"\0\1\2",
        },
    )  # fmt: skip


def _write_ahead(place: Path) -> Iterator[Path]:
    with closing(sqlite3.connect(place / "live")) as connection:
        connection.executescript(f"PRAGMA journal_mode=WAL; {ORDINARY}")
        main, log = (place / "live").read_bytes(), (place / "live-wal").read_bytes()
    (place / "live").unlink()
    yield from _named(place, {"log_missing.db": main})
    with closing(sqlite3.connect(place / "full")) as connection:
        connection.executescript(f"PRAGMA journal_mode=WAL; {ORDINARY}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        full = (place / "full").read_bytes()
    (place / "full").unlink()
    yield from _named(place, {"write_ahead.db": full, "log_alone.db": log})


def _beside(place: Path) -> Iterator[Path]:
    """Logs and journals beside a file: real, of another file, damaged, links."""
    with closing(sqlite3.connect(place / "live")) as connection:
        connection.executescript(f"PRAGMA journal_mode=WAL; {ORDINARY}")
        main, log = (place / "live").read_bytes(), (place / "live-wal").read_bytes()
    (place / "live").unlink()
    whole = _whole(place)
    journal = bytes.fromhex("d9d505f920a163d7")
    for name, data, ending, other in (
        ("real", main, "-wal", log), ("foreign", whole, "-wal", log), ("cut", main, "-wal", log[: len(log) // 2]),
        ("noise", main, "-wal", random.Random(2).randbytes(9000)), ("empty", main, "-wal", b""),
        ("journal_noise", whole, "-journal", journal + random.Random(3).randbytes(9000)),
        ("journal_zero", whole, "-journal", journal + bytes(9000)), ("journal_huge", whole, "-journal", journal + b"\x7f" * 600),
        ("shm", main, "-shm", bytes(32768)),
    ):  # fmt: skip
        home = place / name
        home.mkdir()
        (home / "a.db").write_bytes(data)
        (home / f"a.db{ending}").write_bytes(other)
        yield home / "a.db"
    home = place / "linked_log"
    home.mkdir()
    (home / "a.db").write_bytes(main)
    (home / "a.db-wal").symlink_to("/etc/passwd")
    yield home / "a.db"


def _links(place: Path) -> Iterator[Path]:
    whole = place / "whole"
    whole.write_bytes(_whole(place))
    for name, target in {"to_file.db": "/etc/passwd", "to_zero.db": "/dev/zero", "loop.db": "loop.db", "to_folder.db": "/",
                         "to_nothing.db": "nothing", "to_random.db": "/dev/urandom", "to_database.db": "whole"}.items():  # fmt: skip
        (place / name).symlink_to(target)
        yield place / name
    (place / "folder.db").mkdir()
    yield place / "folder.db"
    os.mkfifo(place / "pipe.db")
    yield place / "pipe.db"


def _dumps(place: Path) -> Iterator[Path]:
    series = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r"
    start = "CREATE TABLE t(a);\n"
    dumps = {
        "attach": f"{start}ATTACH '/tmp/merit-hostile.db' AS x; CREATE TABLE x.t(a);",
        "vacuum_into": f"{start}VACUUM INTO '/tmp/merit-hostile.db';",
        "extension": f"{start}SELECT load_extension('x');",
        "writefile": f"{start}SELECT writefile('/tmp/merit-hostile.db', 'x');",
        "schema": f"{start}PRAGMA writable_schema=ON; INSERT INTO sqlite_master VALUES('view','v','v',0,'x');",
        "temp": "CREATE TEMP TABLE t(a);",
        "module": "CREATE VIRTUAL TABLE t USING csv(filename='/etc/passwd');",
        "endless": f"{start}INSERT INTO t {series}) SELECT i FROM r;",
        "large": f"{start}INSERT INTO t {series} LIMIT 900) SELECT zeroblob(1000000) FROM r;",
        "trigger_bomb": f"{start}CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO t SELECT a FROM t; END;\n"
        + "INSERT INTO t VALUES(1);\n" * 60,
        "one_opcode": f"{start}INSERT INTO t SELECT length(replace(printf('%.*c', 9000000, 'x'), 'x', printf('%.*c', 9, 'y')));",
        "unclosed": f"{start}INSERT INTO t VALUES('" + "x" * 100_000,
        "semicolons": ";" * 1_000_000,
        "comments": "/*" * 300_000 + "\n" + "--" * 300_000,
        "nothing": "-- nothing\n",
        "nul": "CREATE TABLE t(a);\0DROP TABLE t;",
        "dot_commands": ".shell true\n.open /etc/passwd\n",
        "mysql": "CREATE TABLE `t` (`a` int NOT NULL AUTO_INCREMENT) ENGINE=InnoDB DEFAULT CHARSET=utf8;",
        "postgres": "SET statement_timeout = 0;\nCREATE TABLE public.t (a integer);\nCOPY public.t (a) FROM stdin;\n1\n\\.\n",
        "rollback": f"{start}ROLLBACK;",
        "nested": "CREATE TABLE t(a CHECK(" + "(" * 5000 + "1" + ")" * 5000 + "));",
        "drops_itself": f"{start}DROP TABLE t;",
        "good": "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n" + ORDINARY + "\nCOMMIT;\n",
    }
    for name, text in dumps.items():
        (place / f"{name}.sql").write_text(text)
        yield place / f"{name}.sql"
    yield from _named(
        place, {"wide.sql": ORDINARY.encode("utf-16"), "western.sql": "CREATE TABLE t(ä);".encode("cp1252")}
    )


def _delimited(place: Path) -> Iterator[Path]:
    tables = {
        "html": "<b>a</b>,<script>alert(1)</script>\n=1+1,@x\n", "ragged": "a,b\n1\n1,2,3\n,,,,9\n", "one_column": "a\n1\n2\n",
        "only_header": "a,b,c\n", "only_lines": "\n\n\n", "unnamed": ",,\n1,2,3\n", "same": "a,A,a,a_2\n1,2,3,4\n",
        "columns_2000": ",".join(f"c{n}" for n in range(2000)) + "\n" + ",".join(["1"] * 2000) + "\n",
        "columns_2001": ",".join(f"c{n}" for n in range(2001)) + "\n", "columns_100000": "," * 100_000 + "\n",
        "unclosed": 'a,b\n1,"' + "x,\n" * 200_000, "quotes": 'a,b\n"""","x""y"\n"a\nb",2\n', "returns": "a,b\r1,2\r3,4\r",
        "numbers": "a,b,c\n9007199254740993,1e400,007\n,nan,-0\n99999999999999999999,0.1,+5\n", "dates": "d\n2024-02-30\n31/12/99\n",
        "long_cell": "a\n" + "x" * 9_000_000 + "\n", "longer_cell": "a\n" + "x" * 10_500_000 + "\n", "long_name": "n" * 100_000 + "\n1\n",
        "controls": "a\x01b,c\x1fd\n1,2\n",
    }  # fmt: skip
    for name, text in tables.items():
        (place / f"{name}.csv").write_text(text, newline="")
        yield place / f"{name}.csv"
    yield from _named(
        place,
        {
            "western.csv": "Größe;Preis\nä;1,5\n".encode("cp1252"), "wide.csv": "a,b\n1,é\n".encode("utf-16"), "nul.csv": b"a,b\n\0,2\n",
            "mark.csv": "a,b\n1,2\n".encode("utf-8-sig"), "zero.csv": b"", "noise.csv": random.Random(4).randbytes(9000), "zip.csv": b"PK\3\4" + bytes(99),
        },
    )  # fmt: skip


def _parquet(place: Path) -> Iterator[Path]:
    good = place / "good.parquet"
    pq.write_table(pa.table({"a": [2**53 + 1, None], "b": [b"\xff", None], "c": [[1], None]}), good)
    yield good
    data = good.read_bytes()
    yield from _named(
        place,
        {"cut.parquet": data[:-40], "head.parquet": data[:4], "flipped.parquet": data[:20] + bytes(40) + data[60:],
         "noise.parquet": b"PAR1" + random.Random(5).randbytes(4000) + b"PAR1", "footer.parquet": data[:-8] + b"\xff" * 4 + b"PAR1"},
    )  # fmt: skip
    bomb = pa.table({"a": pa.array(["x" * 1000]).dictionary_encode().take(pa.array([0] * 3_000_000))})
    pq.write_table(bomb, place / "bomb.parquet")
    yield place / "bomb.parquet"


def _large(place: Path) -> Iterator[Path]:
    yield built(place / "cell_50mb.db", "CREATE TABLE t(a, b); INSERT INTO t VALUES(zeroblob(50000000), 1);")


KINDS: dict[str, Callable[[Path], Iterator[Path]]] = {
    "cut off": _cut,
    "bytes flipped": _flipped,
    "header": _header,
    "encoding": _encodings,
    "view": _views,
    "table": _tables,
    "name": _names,
    "no database": _not_databases,
    "write-ahead": _write_ahead,
    "log beside": _beside,
    "link or device": _links,
    "dump": _dumps,
    "csv": _delimited,
    "parquet": _parquet,
    "large": _large,
}
ON_DISK = frozenset({"log beside", "link or device"})
"""Kinds that cannot be uploaded: they are opened where they lie, as the command line does."""
