"""The group practice: patients and their insurers, doctors, appointments, cases, prescriptions, laboratory results."""

from __future__ import annotations

from datetime import date, timedelta

from merit.database.sample_source.asked.clinic import QUESTIONS
from merit.database.sample_source.builder import Dice, Lines, Rows, Sample
from merit.database.sample_source.words import FIRST, LAST

TABLES = """
CREATE TABLE insurer (
    code TEXT PRIMARY KEY, name TEXT NOT NULL, "copay percent" INTEGER);
CREATE TABLE doctor (
    doctor_id INTEGER PRIMARY KEY, name TEXT NOT NULL, specialty TEXT NOT NULL, room TEXT, hired_on TEXT NOT NULL);
CREATE TABLE patient (
    patient_id INTEGER PRIMARY KEY, name TEXT NOT NULL, sex TEXT, birth_date TEXT NOT NULL, postcode TEXT,
    insurer_code TEXT REFERENCES insurer(code));
CREATE TABLE appointment (
    appointment_id INTEGER PRIMARY KEY, patient_id INTEGER NOT NULL REFERENCES patient(patient_id),
    doctor_id INTEGER NOT NULL REFERENCES doctor(doctor_id), starts_at TEXT NOT NULL, minutes INTEGER,
    status TEXT NOT NULL);
CREATE TABLE diagnosis (
    code TEXT PRIMARY KEY, description TEXT NOT NULL, chronic INTEGER NOT NULL);
CREATE TABLE "case" (
    case_id INTEGER PRIMARY KEY, appointment_id INTEGER NOT NULL REFERENCES appointment(appointment_id),
    diagnosis_code TEXT NOT NULL REFERENCES diagnosis(code), severity INTEGER);
CREATE TABLE medicine (
    medicine_id INTEGER PRIMARY KEY, name TEXT NOT NULL, form TEXT NOT NULL, price_cents INTEGER NOT NULL);
CREATE TABLE prescription (
    prescription_id INTEGER PRIMARY KEY, appointment_id INTEGER NOT NULL REFERENCES appointment(appointment_id),
    medicine_id INTEGER NOT NULL REFERENCES medicine(medicine_id), "daily dose mg" INTEGER, days INTEGER NOT NULL);
CREATE TABLE "lab result" (
    result_id INTEGER PRIMARY KEY, patient_id INTEGER NOT NULL, analyte TEXT NOT NULL, value REAL,
    taken_on TEXT NOT NULL);
"""

INSURERS = [
    ("AEG", "Aegis Mutual", 10),
    ("BLU", "Blue Lantern", 0),
    ("CIV", "Civic Health Fund", 15),
    ("NOR", "Northern Care", None),
    ("SEA", "Seafarers' Scheme", 5),
]
DOCTORS = [
    (1, "Nuala Penrose", "general practice", "101", "2008-03-01"),
    (2, "Tomas Eklund", "general practice", "102", "2015-08-17"),
    (3, "Leila Haddad", "paediatrics", "104", "2012-01-09"),
    (4, "Cecil Thorne", "dermatology", "110", "1999-10-04"),
    (5, "Priya Rahman", "cardiology", "112", "2018-05-22"),
    (6, "Hamish Kerr", "general practice", None, "2023-11-01"),
    (7, "Vera Novak", "physiotherapy", "003", "2020-02-03"),
]
DIAGNOSES = [
    ("E11", "type 2 diabetes", 1),
    ("I10", "high blood pressure", 1),
    ("J06", "common cold", 0),
    ("J45", "asthma", 1),
    ("L20", "atopic eczema", 1),
    ("L55", "sunburn", 0),
    ("M54", "back pain", 0),
    ("R51", "headache", 0),
    ("S93", "sprained ankle", 0),
    ("Z00", "check-up", 0),
]
LIKELY = {
    1: ("J06", "I10", "E11", "R51", "M54", "Z00", "S93"),
    2: ("J06", "I10", "R51", "M54", "Z00", "J45"),
    3: ("J06", "J45", "L20", "Z00"),
    4: ("L20", "L55"),
    5: ("I10", "E11", "Z00"),
    6: ("J06", "R51", "S93", "Z00"),
    7: ("M54", "S93"),
}
MEDICINES = [
    (1, "Amlovas", "tablet", 690),
    (2, "Brevitol", "inhaler", 2450),
    (3, "Calmecin", "cream", 1120),
    (4, "Dolorex", "tablet", 380),
    (5, "Glucadin", "tablet", 1540),
    (6, "Nasofree", "spray", 520),
    (7, "Ramiprax", "tablet", 820),
    (8, "Tussamil", "syrup", 610),
    (9, "Vitaderm", "cream", 1890),
    (10, "Zolafen", "drops", 975),
]
TREATS = {
    "E11": (5,),
    "I10": (1, 7),
    "J06": (6, 8, 4),
    "J45": (2,),
    "L20": (3, 9),
    "L55": (3,),
    "M54": (4,),
    "R51": (4,),
    "S93": (4,),
}
ANALYTES = {"GLU": (5.4, 1.1, 1), "HB": (139, 14, 0), "CRP": (6, 3, 1), "TSH": (2.1, 0.6, 2)}


def rows(dice: Dice) -> Rows:
    """All rows, table by table, parents first."""
    patients: Lines = []
    for number, name in enumerate(dice.some([f"{first} {last}" for first in FIRST for last in LAST], 210), 1):
        born = dice.day(date(1934, 1, 1), date(2021, 12, 31)).strftime("%d.%m.%Y")
        postcode = (
            None if dice.chance(0.05) else f"{dice.pick((4101, 4102, 4105, 4120, 4133))}" + " " * dice.chance(0.15)
        )
        insurer = None if dice.chance(0.08) else dice.weighted({"AEG": 5, "BLU": 4, "CIV": 6, "NOR": 3, "SEA": 1})
        patients.append((number, name, dice.weighted({"F": 10, "M": 9, "X": 1, None: 1}), born, postcode, insurer))
    appointments: Lines = []
    cases: Lines = []
    prescriptions: Lines = []
    last_day = date(2024, 9, 30)
    frequent = {patient[0]: dice.between(1, 7) for patient in patients if not dice.chance(0.06)}
    young = {
        patient[0]: weight for patient in patients if (weight := frequent.get(patient[0])) and patient[3][6:] > "2005"
    }
    days = sorted(dice.day(date(2023, 1, 2), date(2024, 10, 20)) for _ in range(1700))
    for number, drawn in enumerate(days, 1):
        day = drawn - timedelta(days=2) if drawn.weekday() > 4 else drawn  # closed at weekends
        doctor = dice.weighted({1: 6, 2: 6, 3: 4, 4: 3, 5: 3, 6: 2 if day > date(2023, 11, 1) else 0, 7: 2})
        starts_at = f"{day.isoformat()} {dice.between(8, 16):02d}:{dice.pick(('00', '15', '30', '45'))}"
        status = "B" if day > last_day else dice.weighted({"D": 20, "N": 2, "C": 3})
        minutes = dice.pick((10, 15, 15, 20, 30)) if status == "D" else None
        patient = dice.weighted(young if doctor == 3 else frequent)
        appointments.append((number, patient, doctor, starts_at, minutes, status))
        if status != "D":
            continue
        for code in dice.some(LIKELY[doctor], 2 if dice.chance(0.12) else 1):
            cases.append(
                (len(cases) + 1, number, code, None if dice.chance(0.1) else dice.weighted({1: 5, 2: 3, 3: 1}))
            )
            if code in TREATS and dice.chance(0.55):
                dose = None if dice.chance(0.1) else dice.pick((5, 10, 20, 50, 100, 200))
                prescriptions.append(
                    (
                        len(prescriptions) + 1,
                        number,
                        dice.pick(TREATS[code]),
                        dose,
                        dice.pick((5, 7, 10, 14, 30, 90)),
                    )
                )
    results: Lines = []
    for day in sorted(dice.day(date(2023, 1, 9), last_day) for _ in range(620)):
        analyte = dice.pick(tuple(ANALYTES))
        mean, spread, digits = ANALYTES[analyte]
        value = None if dice.chance(0.06) else round(max(0.1, dice.bell(mean, spread)), digits)
        results.append((len(results) + 1, dice.weighted(frequent), analyte, value, day.strftime("%d.%m.%Y")))
    return {
        "insurer": list(INSURERS),
        "doctor": list(DOCTORS),
        "patient": patients,
        "appointment": appointments,
        "diagnosis": list(DIAGNOSES),
        "case": cases,
        "medicine": list(MEDICINES),
        "prescription": prescriptions,
        "lab result": results,
    }


SAMPLE = Sample(
    id="clinic",
    title="Group practice",
    description="Seven doctors under one roof: appointments, what was found and prescribed, and laboratory results.",
    seed=20260104,
    tables=TABLES,
    rows=rows,
    dirt=(
        "`lab result.patient_id` means `patient.patient_id`, but that foreign key was never declared.",
        "`patient.birth_date` and `lab result.taken_on` are written DD.MM.YYYY; `doctor.hired_on` is YYYY-MM-DD and "
        "`appointment.starts_at` YYYY-MM-DD HH:MM.",
        "Codes: `appointment.status` (D done, B booked, C cancelled, N no-show), `patient.sex` (F, M, X or NULL), "
        "`patient.insurer_code`, `lab result.analyte` (GLU glucose, HB haemoglobin, CRP, TSH), "
        "`diagnosis.chronic` (1 or 0).",
        "`case` is a reserved word; `lab result`, `daily dose mg` and `copay percent` are names with a space.",
        "`name` is a column of four tables (insurer, doctor, patient, medicine).",
        "`postcode` is text and ends with a blank in some rows.",
        "NULLs: uninsured patients, unmeasured values, appointments without a length because they did not take place.",
    ),
    questions=QUESTIONS,
)
