"""The film festival: films and their sections, venues, screenings, tickets, guests, and the jury's votes."""

from __future__ import annotations

from datetime import date, timedelta

from merit.database.sample_source.asked.festival import QUESTIONS
from merit.database.sample_source.builder import Dice, Lines, Rows, Sample
from merit.database.sample_source.words import FIRST, LAST

TABLES = """
CREATE TABLE section (
    code TEXT PRIMARY KEY, name TEXT NOT NULL, competitive INTEGER NOT NULL);
CREATE TABLE distributor (
    distributor_id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT);
CREATE TABLE film (
    film_id INTEGER PRIMARY KEY, title TEXT NOT NULL, director TEXT NOT NULL, country TEXT, year INTEGER NOT NULL,
    minutes INTEGER, section_code TEXT NOT NULL REFERENCES section(code),
    distributor_id INTEGER REFERENCES distributor(distributor_id));
CREATE TABLE venue (
    venue_id INTEGER PRIMARY KEY, name TEXT NOT NULL, district TEXT, seats INTEGER NOT NULL);
CREATE TABLE screening (
    screening_id INTEGER PRIMARY KEY, film_id INTEGER NOT NULL REFERENCES film(film_id),
    venue_id INTEGER NOT NULL REFERENCES venue(venue_id), starts_at TEXT NOT NULL, subtitles TEXT);
CREATE TABLE ticket (
    ticket_id INTEGER PRIMARY KEY, screening_id INTEGER NOT NULL REFERENCES screening(screening_id),
    "ticket type" TEXT NOT NULL, price_cents INTEGER NOT NULL, sold_on TEXT NOT NULL, used INTEGER NOT NULL);
CREATE TABLE guest (
    guest_id INTEGER PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, country TEXT, arrives_on TEXT, hotel TEXT);
CREATE TABLE "jury member" (
    jury_member_id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT);
CREATE TABLE vote (
    jury_member_id INTEGER NOT NULL REFERENCES "jury member"(jury_member_id),
    film_id INTEGER NOT NULL REFERENCES film(film_id), points INTEGER, PRIMARY KEY (jury_member_id, film_id));
"""

SECTIONS = [
    ("IC", "International competition", 1),
    ("ND", "New directions", 1),
    ("DO", "Documents", 1),
    ("RE", "Rediscovered", 0),
    ("KI", "Small screen for children", 0),
]
DISTRIBUTORS = [
    (1, "Halcyon Reels", "GB"),
    (2, "Nordfilm", "SE"),
    (3, "Lumen et Fils", "FR"),
    (4, "Kestrel Pictures", "IE"),
    (5, "Taiga Verleih", "DE"),
    (6, "Bluebird Collective", None),
]
VENUES = [
    (1, "Rex", "Old Town", 180),
    (2, "Kino Harbour", "Docks", 96),
    (3, "Granary", "Docks ", 60),
    (4, "Assembly Rooms", "Old Town ", 240),
    (5, "Tin Roof", None, 45),
]
STARTS = (
    "A Room",
    "Seven Letters",
    "The Ferryman",
    "Nobody",
    "Tomorrow",
    "Blue Bread",
    "My Uncle",
    "The Weather",
    "Two Dogs",
)
ENDS = ("in Winter", "of the North", "without a Door", "on Line Nine", "at Low Tide", "for Sale", "after Midnight")
HOTELS = ("Anchor", "Continental", "Pension Grau")
FIRST_DAY = date(2024, 5, 16)


def rows(dice: Dice) -> Rows:
    """All rows, table by table, parents first."""
    people = dice.some([f"{first} {last}" for first in FIRST for last in LAST], 140)
    countries = {"GB": 5, "FR": 6, "DE": 4, "SE": 3, "IE": 2, "JP": 3, "BR": 2, "NG": 1, None: 1}
    films: Lines = []
    for number, title in enumerate(dice.some([f"{start} {end}" for start in STARTS for end in ENDS], 46), 1):
        section = dice.weighted({"IC": 6, "ND": 4, "DO": 4, "RE": 2, "KI": 2})
        year = dice.between(1949, 1991) if section == "RE" else dice.weighted({2023: 3, 2024: 5})
        minutes = None if dice.chance(0.06) else dice.between(9, 70) if section == "KI" else dice.between(64, 178)
        films.append(
            (
                number,
                title,
                people[number - 1] if dice.chance(0.96) else people[0],
                dice.weighted(countries),
                year,
                minutes,
                section,
                None if dice.chance(0.2) else dice.between(1, 6),
            )
        )
    screenings: Lines = []
    for day in range(10):
        for venue in VENUES:
            for hour in (11, 14, 17, 20) if venue[0] != 5 else (17, 20):
                if dice.chance(0.8):
                    starts_at = (
                        f"{(FIRST_DAY + timedelta(days=day)).isoformat()} {hour}:{dice.pick(('00', '15', '30'))}"
                    )
                    subtitles = dice.weighted({"en": 5, "de": 2, "none": 1, None: 1})
                    screenings.append((len(screenings) + 1, dice.between(1, 43), venue[0], starts_at, subtitles))
    tickets: Lines = []
    seats = {venue[0]: venue[3] for venue in VENUES}
    for screening in screenings:
        fullness = dice.real(0.05, 0.75)
        for _ in range(int(seats[screening[2]] * fullness / 2)):
            kind = dice.weighted({"F": 6, "R": 4, "P": 1})
            sold = date.fromisoformat(screening[3][:10]) - timedelta(days=dice.between(0, 12))
            price = {"F": 950, "R": 650, "P": 0}[kind]
            tickets.append(
                (
                    len(tickets) + 1,
                    screening[0],
                    kind,
                    price,
                    sold.strftime("%d.%m.%Y"),
                    int(dice.chance(0.9)),
                )
            )
    guests: Lines = []
    for name in people[:24] + people[60:96]:
        role = (
            "director"
            if name in people[:24]
            else dice.weighted({"actor": 4, "producer": 3, "critic": 3, "composer": 1})
        )
        arrives = None if dice.chance(0.12) else (FIRST_DAY + timedelta(days=dice.between(-2, 7))).strftime("%d.%m.%Y")
        hotel = None if dice.chance(0.15) else dice.pick(HOTELS) + " " * dice.chance(0.12)
        guests.append((len(guests) + 1, name, role, dice.weighted(countries), arrives, hotel))
    jury: Lines = [(number, name, dice.weighted(countries)) for number, name in enumerate(people[100:109], 1)]
    competing = [film[0] for film in films if film[6] in ("IC", "ND", "DO")]
    votes: Lines = []
    for member in jury:
        for film_id in competing:
            if dice.chance(0.8):
                votes.append((member[0], film_id, None if dice.chance(0.06) else dice.between(1, 10)))
    return {
        "section": list(SECTIONS),
        "distributor": list(DISTRIBUTORS),
        "film": films,
        "venue": list(VENUES),
        "screening": screenings,
        "ticket": tickets,
        "guest": guests,
        "jury member": jury,
        "vote": votes,
    }


SAMPLE = Sample(
    id="festival",
    title="Film festival",
    description="Ten days of a film festival by the sea: films, venues, screenings, tickets, guests and jury votes.",
    seed=20260106,
    tables=TABLES,
    rows=rows,
    dirt=(
        "`jury member` and `ticket type` are names with a space; `vote.points` is NULL for an abstention.",
        "`ticket.sold_on` and `guest.arrives_on` are written DD.MM.YYYY, `screening.starts_at` YYYY-MM-DD HH:MM.",
        "Codes: `ticket type` (F full price, R reduced, P press), `section.code`, countries (two letters), "
        "`screening.subtitles` (en, de, none; NULL is not known yet).",
        "`country` is a column of four tables (distributor, film, guest, jury member), NULL in some rows.",
        "`venue.district` and `guest.hotel` end with a blank in some rows and are NULL in others.",
        "A ticket that was sold but not used has `used` 0; a press ticket costs nothing.",
        "Some films have no distributor, some no running time, some no screening.",
    ),
    questions=QUESTIONS,
)
