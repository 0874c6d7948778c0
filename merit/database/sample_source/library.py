"""The lending library: branches, books and their copies, members, loans, fines and reading groups."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from merit.database.sample_source.asked.library import QUESTIONS
from merit.database.sample_source.builder import Dice, Lines, Rows, Sample
from merit.database.sample_source.words import FIRST, LAST

TABLES = """
CREATE TABLE branch (
    branch_id INTEGER PRIMARY KEY, name TEXT NOT NULL, town TEXT NOT NULL, opened_on TEXT, seats INTEGER, note TEXT);
CREATE TABLE author (
    author_id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, birth_year INTEGER);
CREATE TABLE book (
    book_id INTEGER PRIMARY KEY, title TEXT NOT NULL, author_id INTEGER NOT NULL REFERENCES author(author_id),
    genre TEXT, language TEXT NOT NULL, published_year INTEGER, pages INTEGER);
CREATE TABLE copy (
    copy_id INTEGER PRIMARY KEY, book_id INTEGER NOT NULL REFERENCES book(book_id),
    branch_id INTEGER NOT NULL REFERENCES branch(branch_id), condition TEXT NOT NULL, bought_on TEXT, price REAL,
    note TEXT);
CREATE TABLE member (
    member_id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, town TEXT, email TEXT,
    joined_on TEXT NOT NULL, note TEXT);
CREATE TABLE loan (
    loan_id INTEGER PRIMARY KEY, copy_id INTEGER NOT NULL REFERENCES copy(copy_id),
    member_id INTEGER NOT NULL REFERENCES member(member_id), loaned_on TEXT NOT NULL, due_on TEXT NOT NULL,
    returned_on TEXT);
CREATE TABLE fine (
    fine_id INTEGER PRIMARY KEY, loan_id INTEGER NOT NULL REFERENCES loan(loan_id), amount REAL NOT NULL,
    status TEXT NOT NULL, note TEXT);
CREATE TABLE "reading group" (
    group_id INTEGER PRIMARY KEY, name TEXT NOT NULL, branch_id INTEGER NOT NULL REFERENCES branch(branch_id),
    "meeting day" TEXT NOT NULL, seats INTEGER);
CREATE TABLE "group member" (
    group_id INTEGER NOT NULL REFERENCES "reading group"(group_id),
    member_id INTEGER NOT NULL REFERENCES member(member_id), joined_on TEXT, PRIMARY KEY (group_id, member_id));
"""

BRANCHES = [
    (1, "Market Square", "Millbrook", "1931-04-18", 64, None),
    (2, "Harbour", "Saltwick", "1968-09-02", 40, "lift out of order"),
    (3, "Hill Road", "Millbrook", "1985-01-14", 22, None),
    (4, "Station", "Ferndale", "2004-06-30", 35, "shares a door with the ticket office"),
    (5, "Old Mill", "Ashcombe", "2016-11-05", 18, None),
]
TOWNS = ("Millbrook", "Saltwick", "Ferndale", "Ashcombe", "Northey")
ADJECTIVES = (
    "Amber",
    "Borrowed",
    "Broken",
    "Distant",
    "Eleventh",
    "Glass",
    "Hollow",
    "Last",
    "Little",
    "Long",
    "Paper",
    "Quiet",
    "Salt",
    "Second",
    "Winter",
)
NOUNS = (
    "Almanac",
    "Bridge",
    "Cartographer",
    "Ferry",
    "Garden",
    "House",
    "Inheritance",
    "Lantern",
    "Map",
    "Orchard",
    "River",
    "Season",
)
GENRES = {"crime": 5, "novel": 7, "history": 3, "children": 4, "poetry": 2, "travel": 2, "science": 2}
COUNTRIES = {"GB": 22, "IE": 7, "FR": 6, "DE": 5, "SE": 4, "NG": 3, "JP": 3}
GROUPS = [
    (1, "Crime after dark", 1, "Tuesday", 14),
    (2, "Poems and tea", 3, "Wednesday", 10),
    (3, "Slow readers", 2, "Thursday", 12),
    (4, "Past lives", 1, "Monday", 16),
    (5, "Picture book mornings", 4, "Saturday", None),
    (6, "One chapter", 5, "Thursday", 8),
]
LAST_DAY = date(2024, 6, 30)


def rows(dice: Dice) -> Rows:
    """All rows, table by table, parents first."""
    authors: Lines = []
    for number, (first, last) in enumerate(zip(dice.some(FIRST, 48), dice.some(LAST, 48), strict=True), 1):
        country = None if dice.chance(0.1) else dice.weighted(COUNTRIES)
        authors.append((number, f"{first} {last}", country, None if dice.chance(0.2) else dice.between(1898, 1992)))
    titles = dice.some([f"The {adjective} {noun}" for adjective in ADJECTIVES for noun in NOUNS], 150)
    books: Lines = [
        (
            number,
            title,
            dice.between(1, 48),
            None if dice.chance(0.05) else dice.weighted(GENRES),
            dice.weighted({"en": 8, "fr": 1, "de": 1}),
            None if dice.chance(0.07) else dice.between(1948, 2023),
            None if dice.chance(0.1) else dice.between(32, 720),
        )
        for number, title in enumerate(titles, 1)
    ]
    copies: Lines = []
    for book in books:
        for _ in range(dice.weighted({1: 3, 2: 4, 3: 3, 4: 1})):
            condition = dice.weighted({"A": 4, "B": 5, "C": 3, "W": 1})
            bought = dice.day(date(2006, 1, 2), date(2021, 12, 20)).isoformat()
            note = dice.weighted({None: 14, "cover torn": 1, "map missing": 1, "coffee stain": 1})
            copies.append(
                (
                    len(copies) + 1,
                    book[0],
                    dice.weighted({1: 6, 2: 4, 3: 2, 4: 3, 5: 1}),
                    condition,
                    bought,
                    None if dice.chance(0.08) else dice.between(8, 76) / 2,
                    note,
                )
            )
    members: Lines = []
    names = dice.some([f"{first} {last}" for first in FIRST for last in LAST], 140)
    for number, name in enumerate(names, 1):
        town = dice.pick(TOWNS) + (" " if dice.chance(0.12) else "")
        email = None if dice.chance(0.3) else f"{name.split()[0].lower()}.{name.split()[1].lower()}@post.example"
        joined = dice.day(date(2009, 1, 5), date(2021, 12, 28)).strftime("%d.%m.%Y")
        note = dice.weighted({None: 12, "large print": 1, "housebound": 1, "moved away": 1})
        category = dice.weighted({"A": 6, "C": 3, "S": 2, "T": 1})
        members.append((number, name, category, None if dice.chance(0.04) else town, email, joined, note))
    loans, fines = _loans(dice, copies, members)
    group_members: Lines = []
    for group in GROUPS:
        for member in sorted(dice.some(range(1, 141), dice.between(5, 11))):
            joined_on = None if dice.chance(0.15) else dice.day(date(2021, 1, 4), date(2024, 5, 30)).isoformat()
            group_members.append((group[0], member, joined_on))
    return {
        "branch": list(BRANCHES),
        "author": authors,
        "book": books,
        "copy": copies,
        "member": members,
        "loan": loans,
        "fine": fines,
        "reading group": list(GROUPS),
        "group member": group_members,
    }


def _loans(dice: Dice, copies: Lines, members: Lines) -> tuple[Lines, Lines]:
    """Loans of 21 days, some late, the latest still out; a late return usually costs a fine."""
    loans: list[tuple[Any, ...]] = []
    fines: list[tuple[Any, ...]] = []
    eager = {member[0]: dice.between(1, 9) for member in members if not dice.chance(0.08)}
    free_from = {copy[0]: date(2022, 1, 1) for copy in copies if copy[3] != "W"}
    days = sorted(dice.day(date(2022, 1, 3), LAST_DAY) for _ in range(2400))
    for number, day in enumerate(days, 1):
        copy_id = dice.pick([copy_id for copy_id, free in free_from.items() if free <= day])
        due = day + timedelta(days=21)
        back = day + timedelta(days=max(1, round(dice.bell(15, 6))))
        out = back > LAST_DAY or dice.chance(0.01)
        free_from[copy_id] = date.max if out else back
        returned_on = None if out else back.isoformat()
        loans.append((number, copy_id, dice.weighted(eager), day.isoformat(), due.isoformat(), returned_on))
        late = (back - due).days
        if not out and late > 0 and dice.chance(0.8):
            status = dice.weighted({"P": 6, "O": 3, "W": 1})
            note = "first offence" if status == "W" and dice.chance(0.5) else None
            fines.append((len(fines) + 1, number, 0.25 * late, status, note))
    return loans, fines


SAMPLE = Sample(
    id="library",
    title="Lending library",
    description="Five branches of a town library: what is on the shelves, who borrows it, and what comes back late.",
    seed=20260101,
    tables=TABLES,
    rows=rows,
    dirt=(
        "`member.joined_on` is written DD.MM.YYYY, every other date YYYY-MM-DD.",
        "`member.town` ends with a blank in some rows and is NULL in others.",
        "Codes: `copy.condition` (A as new, B used, C worn, W withdrawn), `member.category` (A adult, C child, "
        "S senior, T student), `fine.status` (P paid, O open, W waived), `author.country` (two letters), "
        "`book.language`.",
        "NULLs in e-mail, genre, pages, years, prices; a loan that is still out has no `returned_on`.",
        "`name` is a column of four tables (branch, author, member, reading group), and so is `note` "
        "(branch, copy, member, fine).",
        "`reading group`, `group member` and `meeting day` are names with a space.",
    ),
    questions=QUESTIONS,
)
