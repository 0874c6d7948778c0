"""The small university of the paper's Figure 2: Students, Courses, the Enrollment between them, and what is around."""

from __future__ import annotations

from datetime import date

from merit.database.sample_source.asked.campus import QUESTIONS
from merit.database.sample_source.builder import Dice, Lines, Rows, Sample
from merit.database.sample_source.words import FIRST, LAST

TABLES = """
CREATE TABLE Departments (
    DepartmentID INTEGER PRIMARY KEY, Name TEXT NOT NULL, Building TEXT NOT NULL, Budget INTEGER);
CREATE TABLE Teachers (
    TeacherID INTEGER PRIMARY KEY, Name TEXT NOT NULL, DepartmentID INTEGER REFERENCES Departments(DepartmentID),
    Rank TEXT NOT NULL, Hired TEXT);
CREATE TABLE Students (
    StudentID INTEGER PRIMARY KEY, Name TEXT NOT NULL, DepartmentID INTEGER REFERENCES Departments(DepartmentID),
    "Home Town" TEXT, Email TEXT, Started TEXT NOT NULL, Status TEXT NOT NULL);
CREATE TABLE Courses (
    CourseID INTEGER PRIMARY KEY, Title TEXT NOT NULL, Credits INTEGER NOT NULL,
    DepartmentID INTEGER NOT NULL REFERENCES Departments(DepartmentID),
    TeacherID INTEGER REFERENCES Teachers(TeacherID));
CREATE TABLE Enrollment (
    EnrollmentID INTEGER PRIMARY KEY, StudentID INTEGER NOT NULL REFERENCES Students(StudentID),
    CourseID INTEGER NOT NULL REFERENCES Courses(CourseID), Term TEXT NOT NULL, Grade TEXT);
CREATE TABLE "Group" (
    GroupID INTEGER PRIMARY KEY, CourseID INTEGER NOT NULL REFERENCES Courses(CourseID), Weekday TEXT NOT NULL,
    Room TEXT, Capacity INTEGER NOT NULL);
CREATE TABLE Clubs (
    ClubID INTEGER PRIMARY KEY, Name TEXT NOT NULL, Founded INTEGER, Fee INTEGER);
CREATE TABLE "Club Members" (
    ClubID INTEGER NOT NULL REFERENCES Clubs(ClubID), StudentID INTEGER NOT NULL REFERENCES Students(StudentID),
    Since TEXT, PRIMARY KEY (ClubID, StudentID));
"""

DEPARTMENTS = [
    (1, "Computing", "Turing Wing", 410000),
    (2, "Biology", "Greenhouse", 365000),
    (3, "History", "Old Quad", 190000),
    (4, "Economics", "Old Quad", None),
    (5, "Music", "Chapel House", 128000),
]
COURSES = {
    1: (("Databases", 5), ("Operating Systems", 5), ("Programming I", 8), ("Programming II", 8), ("Networks", 4)),
    2: (("Genetics", 5), ("Field Ecology", 6), ("Cell Biology", 5), ("Statistics for Biologists", 4)),
    3: (("The Hanseatic League", 4), ("Reading Archives", 3), ("Europe after 1945", 5), ("Oral History", 3)),
    4: (("Microeconomics", 6), ("Game Theory", 5), ("Public Finance", 4)),
    5: (("Harmony", 4), ("Ensemble", 2), ("Music and Machines", 3)),
}
TOWNS = ("Aldport", "Brackley Cross", "Dunmere", "Eastwold", "Kelling", "Marsham", "Upper Tye")
TERMS = ("2022F", "2023S", "2023F", "2024S")
CLUBS = [
    (1, "Chess", 1954, 10),
    (2, "Rowing", 1921, 60),
    (3, "Film nights", None, 15),
    (4, "Debating", 1978, None),
    (5, "Beekeeping", 2019, 25),
    (6, "Silent reading", 2023, 0),
]


def rows(dice: Dice) -> Rows:
    """All rows, table by table, parents first."""
    teachers: Lines = []
    for number, (first, last) in enumerate(zip(dice.some(FIRST, 24), dice.some(LAST, 24), strict=True), 1):
        hired = None if dice.chance(0.1) else dice.day(date(1994, 9, 1), date(2022, 9, 1)).strftime("%d.%m.%Y")
        department = None if dice.chance(0.06) else dice.between(1, 5)
        teachers.append((number, f"{first} {last}", department, dice.weighted({"P": 2, "L": 3, "A": 2}), hired))
    students: Lines = []
    for number, name in enumerate(dice.some([f"{first} {last}" for first in FIRST for last in LAST], 240), 1):
        town = None if dice.chance(0.07) else dice.pick(TOWNS) + (" " if dice.chance(0.1) else "")
        email = None if dice.chance(0.15) else f"{name[0].lower()}{name.split()[1].lower()}{number}@campus.example"
        started = f"{dice.weighted({2020: 2, 2021: 3, 2022: 4, 2023: 4})}-09-{dice.between(1, 28):02d}"
        department = None if dice.chance(0.08) else dice.weighted({1: 6, 2: 4, 3: 3, 4: 4, 5: 2})
        students.append((number, name, department, town, email, started, dice.weighted({"E": 10, "L": 1, "X": 1})))
    courses: Lines = []
    for department, given in COURSES.items():
        own = [teacher[0] for teacher in teachers if teacher[2] == department]
        for title, points in given:
            courses.append((len(courses) + 1, title, points, department, None if dice.chance(0.1) else dice.pick(own)))
    enrollment: Lines = []
    for student in students[:228]:
        terms = TERMS[2:] if student[5] > "2023" else TERMS
        taken = [
            (dice.pick(terms), course[0]) for course in dice.some(courses[:-1], dice.between(2, 5 * len(terms) // 2))
        ]
        for term, course in sorted(taken, key=lambda pair: (TERMS.index(pair[0]), pair[1])):
            grade: str | None = dice.weighted({"A": 4, "B": 7, "C": 6, "D": 2, "F": 1, "W": 1})
            if term == TERMS[-1] and dice.chance(0.6):
                grade = None
            enrollment.append((len(enrollment) + 1, student[0], course, term, grade))
    groups: Lines = []
    for course in courses:
        for _ in range(dice.between(0, 3)):
            weekday = dice.pick(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"))
            room = None if dice.chance(0.15) else f"{dice.pick('ABC')}{dice.between(1, 3)}{dice.between(1, 9):02d}"
            groups.append((len(groups) + 1, course[0], weekday, room, dice.pick((12, 15, 18, 24, 30))))
    members: Lines = []
    for club in CLUBS:
        for student_id in sorted(dice.some(range(1, 241), dice.between(9, 34))):
            since = None if dice.chance(0.2) else dice.day(date(2020, 9, 20), date(2024, 3, 1)).isoformat()
            members.append((club[0], student_id, since))
    return {
        "Departments": list(DEPARTMENTS),
        "Teachers": teachers,
        "Students": students,
        "Courses": courses,
        "Enrollment": enrollment,
        "Group": groups,
        "Clubs": list(CLUBS),
        "Club Members": members,
    }


SAMPLE = Sample(
    id="campus",
    title="Small university",
    description="Students, courses and the enrollment between them, with departments, teachers, groups and clubs.",
    seed=20260103,
    tables=TABLES,
    rows=rows,
    dirt=(
        "`Enrollment` holds only numbers, a term and a grade: titles and credits are in `Courses`, names in "
        "`Students` (the missing join of the paper's Figure 2).",
        "`Teachers.Hired` is written DD.MM.YYYY; `Students.Started` and `Club Members.Since` are YYYY-MM-DD.",
        "Codes: `Enrollment.Term` (2023S spring, 2023F fall), `Enrollment.Grade` (A to D passed, F failed, "
        "W withdrawn, NULL not graded yet), `Teachers.Rank` (P professor, L lecturer, A assistant), "
        "`Students.Status` (E enrolled, L on leave, X left).",
        "`Group` is a reserved word; `Club Members` and `Home Town` are names with a space.",
        "`Name` is a column of four tables (Departments, Teachers, Students, Clubs).",
        "`Home Town` ends with a blank in some rows and is NULL in others.",
        "Some students have no department, some courses no teacher, some groups no room.",
    ),
    questions=QUESTIONS,
)
