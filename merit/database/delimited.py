"""A CSV file, read inside the process of ``importing``: encoding, delimiter, names, types, rows.

Nothing is lost on the way: a number that no SQLite number holds exactly stays text, so does one with a leading zero
(a postal code) and every date; a row that is longer than the others makes the table wider. An empty cell is NULL.
(pandas would be the usual way. It reads a large whole number beside an empty cell as a float, and a file that is
larger than memory not at all.)

What this module does not know: what the columns mean.
"""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from merit.database.patience import Deadline, Refused

MOST_COLUMNS = 2_000
"""SQLite's own limit."""
LONGEST_CELL = 10_000_000
EXAMPLES = 3
SNIFFED_ROWS = 50
DELIMITERS = ",;\t|"
ROWS_BETWEEN_CHECKS = 1_000
LONGEST_NAME = 100
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
LEADING_ZERO = re.compile(r"[+-]?0[0-9]|\+")
YEAR = re.compile(r"(?:19|20)[0-9]{2}")
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_of(path: str, deadline: Deadline) -> tuple[str, str]:
    """The encoding of a text file, and a note where it had to be guessed: its mark, else UTF-8 if all of it is, else
    Windows-1252."""
    with open(path, "rb") as file:
        head = file.read(4)
        for mark, name in BYTE_ORDER_MARKS:
            if head.startswith(mark):
                return name, ""
        file.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while chunk := file.read(1 << 20):
                deadline.check()
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252", "The file is not UTF-8; it was read as Windows-1252 (Western European)."
    return "utf-8", ""


class Kinds:
    """The narrowest type that holds all texts seen of one column, and some of them."""

    def __init__(self) -> None:
        self.type = ""
        self.examples: list[str] = []

    def see(self, text: str) -> None:
        if len(self.examples) < EXAMPLES and text not in self.examples:
            self.examples.append(text)
        if self.type == "TEXT":
            return
        if self.type != "REAL" and as_integer(text) is not None:
            self.type = "INTEGER"
        elif as_real(text) is not None:
            self.type = "REAL"
        else:
            self.type = "TEXT"


def as_integer(text: str) -> int | None:
    """The text as a whole number that SQLite holds, if nothing of the text is lost."""
    if INTEGER.fullmatch(text):
        number = int(text)
        if -(2**63) <= number < 2**63:
            return number
    return None


def as_real(text: str) -> float | None:
    """The text as a number with a point, if its value is held exactly as written."""
    if not NUMBER.fullmatch(text) or LEADING_ZERO.match(text):
        return None
    number = float(text)
    if len(text) <= 15 and "e" not in text.lower():
        return number
    return number if number - number == 0 and Decimal(repr(number)) == Decimal(text) else None


class DelimitedTable:
    """One CSV file. Reading is streamed: once for the plan, once for the rows."""

    def __init__(self, path: str, deadline: Deadline, header: bool | None = None) -> None:
        self._path = path
        self._deadline = deadline
        csv.field_size_limit(LONGEST_CELL)
        self.encoding, note = encoding_of(path, deadline)
        self.notes = [note] if note else []
        self.delimiter = self._sniff()
        first = next(self._lines(), None)
        if first is None:
            raise Refused("The file holds no rows.")
        self.header = looks_like_header(first) if header is None else header

    def plan(self) -> dict[str, Any]:
        """All facts of a TablePlan but the table's name."""
        lines = self._lines()
        names = next(lines) if self.header else []
        kinds: list[Kinds] = [Kinds() for _ in names]
        rows = shorter = longer = 0
        width = len(names)
        for row in lines:
            rows += 1
            if len(row) > len(kinds):
                kinds += [Kinds() for _ in range(len(row) - len(kinds))]
                self._check_width(len(kinds))
            width = width or len(row)
            shorter += len(row) < width
            longer += len(row) > width
            for kind, text in zip(kinds, row, strict=False):
                if text:
                    kind.see(text)
        self._check_width(len(kinds))
        if shorter:
            self.notes.append(f"{shorter:,} rows have fewer cells than the first line; what they lack is empty.")
        if longer:
            self.notes.append(f"{longer:,} rows have more cells than the first line; they get columns of their own.")
        columns, notes = named(names, len(kinds))
        return {
            "columns": [
                {
                    "name": name,
                    "type": kind.type or "TEXT",
                    "examples": [shown(e) for e in kind.examples],
                    "heading": head,
                }
                for (name, head), kind in zip(columns, kinds, strict=True)
            ],
            "rows": rows,
            "notes": self.notes + notes,
            "encoding": self.encoding,
            "delimiter": self.delimiter,
            "header": self.header,
        }

    def rows(self) -> Iterator[list[str]]:
        """The rows as texts, without the header."""
        lines = self._lines()
        return islice(lines, 1, None) if self.header else lines

    def _check_width(self, width: int) -> None:
        if width > MOST_COLUMNS:
            raise Refused(f"The file has {width:,} columns or more; a table can have at most {MOST_COLUMNS:,}.")

    def _lines(self, delimiter: str | None = None) -> Iterator[list[str]]:
        with open(self._path, encoding=self.encoding, errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter or self.delimiter)
            try:
                for number, row in enumerate(reader):
                    if number % ROWS_BETWEEN_CHECKS == 0:
                        self._deadline.check()
                    if row:
                        yield row
            except csv.Error as error:
                where = f"The file cannot be read as CSV at line {reader.line_num}"
                if "field larger" in str(error):
                    raise Refused(
                        f"{where}: a cell is larger than {LONGEST_CELL:,} characters. Perhaps a quotation mark opens "
                        "there and never closes."
                    ) from error
                raise Refused(f"{where} ({error}).") from error

    def _sniff(self) -> str:
        """The delimiter that cuts the first rows into the most columns, most evenly; a comma where none cuts."""
        if os.path.getsize(self._path) == 0:
            raise Refused("The file is empty (0 bytes).")

        def evenness(delimiter: str) -> tuple[float, int]:
            try:
                widths = [len(row) for row in islice(self._lines(delimiter), SNIFFED_ROWS)]
            except Refused:
                return 0.0, 0
            usual = max(set(widths), key=widths.count, default=1)
            return (widths.count(usual) / len(widths), usual) if usual > 1 else (0.0, 0)

        return max(DELIMITERS, key=evenness)


def looks_like_header(first: list[str]) -> bool:
    """Whether a first line holds names: no cell of it is a number, years aside."""
    return not any(NUMBER.fullmatch(cell.strip()) and not YEAR.fullmatch(cell.strip()) for cell in first)


def named(headings: list[str], width: int) -> tuple[list[tuple[str, str]], list[str]]:
    """A usable, unique name for each of ``width`` columns, with its heading, and notes about what was changed."""
    taken: set[str] = set()
    found: list[tuple[str, str]] = []
    empty = repeated = 0
    reserved = {plain(heading).lower() for heading in headings}
    for number, heading in enumerate(chain(headings, [""] * (width - len(headings))), 1):
        base = plain(heading)
        empty += not base and number <= len(headings)
        name = base or f"column_{number}"
        repeated += bool(base) and name.lower() in taken
        counter = 2
        while name.lower() in taken or (name.lower() in reserved and name != base):
            name = f"{base or f'column_{number}'}_{counter}"
            counter += 1
        taken.add(name.lower())
        found.append((name, shown(heading)))
    notes = []
    if empty:
        notes.append(f"{empty:,} columns had no name and got a number.")
    if repeated:
        notes.append(f"{repeated:,} columns had a name that was there already and got a number behind it.")
    return found, notes


def plain(heading: str) -> str:
    """A heading as a column's name: one line, no control characters, not too long."""
    text = "".join(char if char.isprintable() else " " for char in heading)
    return " ".join(text.split())[:LONGEST_NAME].strip()


def shown(text: str) -> str:
    """A value short enough to show."""
    return text if len(text) <= 80 else f"{text[:79]}…"
