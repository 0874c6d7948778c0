"""The allotment society: plots and who leases them, what is planted and picked, work days, and a weather station."""

from __future__ import annotations

from datetime import date, timedelta

from merit.database.sample_source.asked.allotment import QUESTIONS
from merit.database.sample_source.builder import Dice, Lines, Rows, Sample
from merit.database.sample_source.words import FIRST, LAST

TABLES = """
CREATE TABLE plot (
    plot_no TEXT PRIMARY KEY, section TEXT NOT NULL, area_m2 INTEGER NOT NULL, has_water INTEGER NOT NULL,
    rent_cents INTEGER NOT NULL, note TEXT);
CREATE TABLE gardener (
    gardener_id INTEGER PRIMARY KEY, name TEXT NOT NULL, phone TEXT, joined TEXT NOT NULL, note TEXT);
CREATE TABLE lease (
    lease_id INTEGER PRIMARY KEY, plot_no TEXT NOT NULL REFERENCES plot(plot_no),
    gardener_id INTEGER NOT NULL REFERENCES gardener(gardener_id), "start date" TEXT NOT NULL, "end date" TEXT);
CREATE TABLE crop (
    crop_id INTEGER PRIMARY KEY, name TEXT NOT NULL, family TEXT NOT NULL, days_to_harvest INTEGER);
CREATE TABLE planting (
    planting_id INTEGER PRIMARY KEY, plot_no TEXT NOT NULL REFERENCES plot(plot_no),
    crop_id INTEGER NOT NULL REFERENCES crop(crop_id), sown_on TEXT NOT NULL, row_count INTEGER, note TEXT);
CREATE TABLE harvest (
    harvest_id INTEGER PRIMARY KEY, planting_id INTEGER NOT NULL REFERENCES planting(planting_id),
    picked_on TEXT NOT NULL, weight_g INTEGER, grade TEXT, note TEXT);
CREATE TABLE "work day" (
    work_day_id INTEGER PRIMARY KEY, held_on TEXT NOT NULL, task TEXT NOT NULL);
CREATE TABLE attendance (
    gardener_id INTEGER NOT NULL REFERENCES gardener(gardener_id),
    work_day_id INTEGER NOT NULL REFERENCES "work day"(work_day_id), hours REAL,
    PRIMARY KEY (gardener_id, work_day_id));
CREATE TABLE "weather reading" (
    reading_id INTEGER PRIMARY KEY, read_on TEXT NOT NULL, low_c REAL NOT NULL, high_c REAL NOT NULL,
    rain_mm REAL NOT NULL, wind TEXT);
"""

CROPS = [
    (1, "runner bean", "legume", 80),
    (2, "broad bean", "legume", 110),
    (3, "sugar pea", "legume", 70),
    (4, "beetroot", "amaranth", 90),
    (5, "chard", "amaranth", 60),
    (6, "courgette", "gourd", 55),
    (7, "pumpkin", "gourd", 110),
    (8, "leek", "allium", 150),
    (9, "onion", "allium", 120),
    (10, "garlic", "allium", None),
    (11, "tomato", "nightshade", 85),
    (12, "potato", "nightshade", 100),
    (13, "kale", "cabbage", 75),
    (14, "radish", "cabbage", 28),
    (15, "carrot", "umbellifer", 85),
    (16, "rhubarb", "knotweed", None),
]
TASKS = ("hedge cutting", "path repair", "compost turning", "pump overhaul", "autumn clearing", "fence painting")
PLOT_NOTES = {None: 12, "shady after four": 1, "wasps by the shed": 1, "heavy clay": 2}


def rows(dice: Dice) -> Rows:
    """All rows, table by table, parents first."""
    plots: Lines = []
    for section, count in {"A": 18, "B": 14, "C": 12, "D": 6}.items():
        for number in range(1, count + 1):
            area = 5 * dice.between(12, 60)
            plots.append(
                (
                    f"{section}-{number:02d}",
                    section,
                    area,
                    int(dice.chance(0.6)),
                    area * 32 + 500,
                    dice.weighted(PLOT_NOTES),
                )
            )
    gardeners: Lines = []
    for number, name in enumerate(dice.some([f"{first} {last}" for first in FIRST for last in LAST], 70), 1):
        phone = (
            None
            if dice.chance(0.25)
            else f"0555 {dice.between(100, 999)} {dice.between(10, 99)}" + " " * dice.chance(0.1)
        )
        joined = dice.day(date(1998, 3, 1), date(2023, 10, 30)).strftime("%d/%m/%Y")
        note = dice.weighted({None: 12, "has the key to the pump": 1, "beekeeper": 1, "on the committee": 2})
        gardeners.append((number, name, phone, joined, note))
    leases: Lines = []
    for plot in plots:
        start = dice.day(date(2004, 3, 1), date(2016, 3, 1))
        while start < date(2023, 11, 1):
            end = start + timedelta(days=dice.between(700, 5200))
            over = end < date(2024, 10, 31)
            leases.append(
                (
                    len(leases) + 1,
                    plot[0],
                    dice.between(1, 64),
                    start.isoformat(),
                    end.isoformat() if over else None,
                )
            )
            start = end + timedelta(days=dice.between(20, 400))
    plantings, harvests = _garden(dice, plots)
    days = [date(2022, 3, 12) + timedelta(days=91 * number + dice.between(0, 20)) for number in range(10)]
    work_days: Lines = [(number, day.isoformat(), dice.pick(TASKS)) for number, day in enumerate(days, 1)]
    attendance: Lines = []
    for work_day in work_days:
        for gardener_id in sorted(dice.some(range(1, 67), dice.between(9, 24))):
            hours = None if dice.chance(0.08) else dice.between(2, 10) / 2
            attendance.append((gardener_id, work_day[0], hours))
    return {
        "plot": plots,
        "gardener": gardeners,
        "lease": leases,
        "crop": list(CROPS),
        "planting": plantings,
        "harvest": harvests,
        "work day": work_days,
        "attendance": attendance,
        "weather reading": _weather(dice),
    }


def _garden(dice: Dice, plots: Lines) -> tuple[Lines, Lines]:
    """Plantings of three springs and what they gave; garlic is never grown."""
    plantings: Lines = []
    harvests: Lines = []
    grown = [crop for crop in CROPS if crop[1] != "garlic"]
    for year in (2022, 2023, 2024):
        for plot in plots:
            for crop in dice.some(grown, dice.between(1, 6)):
                sown = dice.day(date(year, 3, 5), date(year, 6, 10))
                note = dice.weighted({None: 14, "late frost": 1, "slugs": 2, "own seed": 1})
                rows_sown = None if dice.chance(0.1) else dice.between(1, 8)
                plantings.append((len(plantings) + 1, plot[0], crop[0], sown.isoformat(), rows_sown, note))
                picked = sown + timedelta(days=(crop[3] or 90) + dice.between(-6, 10))
                for _ in range(dice.between(0, 4)):
                    weight = None if dice.chance(0.07) else 10 * dice.between(15, 420)
                    note = dice.weighted({None: 15, "given to the food bank": 2, "half of it eaten by birds": 1})
                    grade = dice.weighted({"1": 5, "2": 3, "K": 1, None: 1})
                    harvests.append((len(harvests) + 1, plantings[-1][0], picked.isoformat(), weight, grade, note))
                    picked += timedelta(days=dice.between(3, 12))
    return plantings, harvests


def _weather(dice: Dice) -> Lines:
    """One line a day for three years, with -999 where the rain gauge was blocked."""
    readings: Lines = []
    day = date(2022, 1, 1)
    while day < date(2024, 11, 1):
        season = abs(200 - day.timetuple().tm_yday) / 183
        low = round(dice.bell(12 - 11 * season, 2.6), 1)
        rain = -999.0 if dice.chance(0.03) else 0.0 if dice.chance(0.55) else dice.between(1, 56) / 2
        wind = (
            None
            if dice.chance(0.1)
            else dice.weighted({"N": 2, "NE": 1, "E": 1, "SE": 1, "S": 2, "SW": 5, "W": 5, "NW": 3})
        )
        high = round(low + dice.real(2, 13, 1), 1)
        readings.append((len(readings) + 1, day.strftime("%d/%m/%Y"), low, high, rain, wind))
        day += timedelta(days=1)
    return readings


SAMPLE = Sample(
    id="allotment",
    title="Allotment garden",
    description="An allotment society: plots and leases, what was sown and picked, work days, and a weather station.",
    seed=20260105,
    tables=TABLES,
    rows=rows,
    dirt=(
        "`weather reading.rain_mm` is -999 on days when the gauge was blocked: no amount of rain.",
        "`gardener.joined` and `weather reading.read_on` are written DD/MM/YYYY, every other date YYYY-MM-DD.",
        "A lease that still runs has no `end date`; one gardener can have several plots, some plots lie empty.",
        "Codes: `harvest.grade` (1 first class, 2 second class, K kitchen only, NULL not graded), "
        "`plot.has_water` (1, 0).",
        "`work day`, `weather reading`, `start date` and `end date` are names with a space.",
        "`note` is a column of four tables (plot, gardener, planting, harvest).",
        "Some phone numbers end with a blank, some are missing; some harvests were never weighed.",
    ),
    questions=QUESTIONS,
)
