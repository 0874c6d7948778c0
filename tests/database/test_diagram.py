"""The graph of tables and foreign keys: whole, well-formed whatever names hold, readable when large."""

# ruff: noqa: E501 (tables of cases)

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merit.database import Database, samples
from merit.database.diagram import diagram, label

Build = Callable[..., Path]


def parts(dot: str) -> tuple[dict[str, xml.Element], list[tuple[str, str]]]:
    """Boxes and arrows of a graph, each line checked against the only forms there are."""
    boxes: dict[str, xml.Element] = {}
    arrows: list[tuple[str, str]] = []
    lines = dot.splitlines()
    assert (lines[0], lines[-1]) == ("digraph {", "}")
    for line in lines[1:-1]:
        if box := re.fullmatch(r"  (t\d+) \[label=<(<table .*</table>)>\]", line):
            boxes[box[1]] = xml.fromstring(box[2])
        elif arrow := re.fullmatch(r"  (t\d+:c\d+) -> (t\d+:c\d+)", line):
            arrows.append((arrow[1], arrow[2]))
        else:
            assert re.fullmatch(
                r'  (graph|node|edge) \[.*\]|  more \[shape=plaintext, label="and \d+ more tables"\]', line
            ), line
    ports = {f"{name}:{cell.get('port')}" for name, box in boxes.items() for cell in box.iter("td") if cell.get("port")}
    assert {end for arrow in arrows for end in arrow} <= ports, "an arrow begins and ends at a column that is drawn"
    return boxes, arrows


def texts(box: xml.Element) -> list[str]:
    return ["".join(cell.itertext()) for cell in box.iter("td")]


def test_of_two_tables(build: Build) -> None:
    boxes, arrows = parts(diagram(Database.open(build(
        "CREATE TABLE a(id INTEGER PRIMARY KEY, x); CREATE TABLE b(n, a REFERENCES a); CREATE VIEW v AS SELECT x FROM a"))))  # fmt: skip
    assert [texts(box) for box in boxes.values()] == [["a", "id  PK", "x"], ["b", "n", "a  FK"], ["v", "x"]]
    assert arrows == [("t1:c1", "t0:c0")]
    assert [box.get("style") for box in boxes.values()] == [None, None, "dashed"]


def test_keys_of_several_columns_and_of_a_table_to_itself(build: Build) -> None:
    _, arrows = parts(diagram(Database.open(build(
        "CREATE TABLE a(x, y, up REFERENCES a(x), PRIMARY KEY(x, y)); CREATE TABLE b(p, q, FOREIGN KEY(p, q) REFERENCES a(x, y))"))))  # fmt: skip
    assert arrows == [("t0:c2", "t0:c0"), ("t1:c0", "t0:c0"), ("t1:c1", "t0:c1")]


def test_forty_tables_show_keys_alone(build: Build) -> None:
    script = "".join(
        f"CREATE TABLE t{n}(id INTEGER PRIMARY KEY, {', '.join(f'c{m}' for m in range(30))}, up REFERENCES t{n // 2}(id));"
        for n in range(40)
    )
    boxes, arrows = parts(diagram(Database.open(build(script))))
    assert len(boxes) == len(arrows) == 40
    assert all(texts(box)[1:] == ["id  PK", "up  FK", "30 more"] for box in boxes.values())


def test_a_column_that_is_pointed_to_is_drawn_though_it_is_no_key(build: Build) -> None:
    script = "CREATE TABLE a(x, code UNIQUE, y); CREATE TABLE b(a REFERENCES a(code));" + "".join(
        f"CREATE TABLE t{n}(c);" for n in range(20)
    )
    boxes, arrows = parts(diagram(Database.open(build(script))))
    assert texts(boxes["t0"]) == ["a", "code", "2 more"]
    assert arrows == [("t1:c0", "t0:c1")]


def test_a_wide_table_is_cut_and_says_so(build: Build) -> None:
    script = f"CREATE TABLE a({', '.join(f'c{m}' for m in range(1999))}, id INTEGER PRIMARY KEY)"
    ((box,), _) = (list(found) for found in parts(diagram(Database.open(build(script)))))
    shown = texts(parts(diagram(Database.open(build(script, "b.db"))))[0][box])
    assert len(shown) == 17
    assert shown[-2:] == ["id  PK", "1985 more"]


def test_beyond_eighty_tables_the_linked_ones_are_drawn(build: Build) -> None:
    script = "".join(f"CREATE TABLE t{n}(a PRIMARY KEY{' REFERENCES t100(a)' if n > 90 else ''});" for n in range(120))
    dot = diagram(Database.open(build(script)))
    boxes, _ = parts(dot)
    assert len(boxes) == 80
    assert {f"t{n}" for n in range(91, 120)} <= {texts(box)[0] for box in boxes.values()}
    assert "and 40 more tables" in dot


@pytest.mark.parametrize(
    "name",
    [
        '"',
        "<script>alert(1)</script>",
        "a>]; x [label=<b>",
        "a\nb",
        "\\",
        "\\N",
        "&amp;",
        "-->",
        "\u202egnp",
        "a\0b",
        "]]>",
        "{|}",
        "\u200b",
    ],
)
def test_names_are_text_and_nothing_else(tmp_path: Path, name: str) -> None:
    import sqlite3

    quoted = '"' + name.replace('"', '""') + '"'
    if "\0" in name:
        pytest.skip("SQLite takes no such name")
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute(f"CREATE TABLE {quoted}({quoted} PRIMARY KEY, b REFERENCES {quoted}({quoted}))")
    connection.close()
    boxes, arrows = parts(diagram(Database.open(tmp_path / "a.db")))
    assert len(boxes) == len(arrows) == 1
    assert "\u202e" not in texts(boxes["t0"])[0]


@given(st.text())
def test_a_label_is_one_short_visible_line(name: str) -> None:
    shown = xml.fromstring(f"<td>{label(name)}</td>").text
    assert shown
    assert len(shown) <= 32
    assert shown.isprintable()


@pytest.mark.parametrize("id", samples.ids())
def test_of_the_samples(id: str) -> None:
    database = Database.open(samples.path(id))
    boxes, arrows = parts(diagram(database))
    assert len(boxes) == len(database.tables)
    assert len(arrows) == sum(len(key.columns) for table in database.tables for key in table.foreign_keys)


def test_an_empty_database_is_an_empty_graph(build: Build) -> None:
    assert parts(diagram(Database.open(build("CREATE TABLE t(a); DROP TABLE t")))) == ({}, [])
