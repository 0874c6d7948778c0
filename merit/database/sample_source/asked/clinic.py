"""Questions about the group practice."""

from merit.database.sample_source.builder import Asked

STATUS = "appointment.status is a code: D done, B booked, C cancelled, N the patient did not show up."
BORN = "patient.birth_date is text in the form DD.MM.YYYY: the year is SUBSTR(birth_date, 7, 4)."
ANALYTE = "lab result.analyte is a code: GLU glucose, HB haemoglobin, CRP, TSH. A value of NULL was not measured."
STARTS = "appointment.starts_at is text in the form YYYY-MM-DD HH:MM, so the month is SUBSTR(starts_at, 1, 7)."

QUESTIONS = (
    Asked("How many patients does the practice look after?", "SELECT COUNT(*) FROM patient"),
    Asked("What is Cecil Thorne's specialty?", "SELECT specialty FROM doctor WHERE name = 'Cecil Thorne'"),
    Asked("Which doctors work in general practice?", "SELECT name FROM doctor WHERE specialty = 'general practice'"),
    Asked("In which room do I find Priya Rahman?", "SELECT room FROM doctor WHERE name = 'Priya Rahman'"),
    Asked("How many patients are not insured anywhere?", "SELECT COUNT(*) FROM patient WHERE insurer_code IS NULL"),
    Asked("Which medicines come as a cream?", "SELECT name FROM medicine WHERE form = 'cream'"),
    Asked("How many cents does Brevitol cost?", "SELECT price_cents FROM medicine WHERE name = 'Brevitol'"),
    Asked(
        "What percentage do patients of the Civic Health Fund pay themselves?",
        """SELECT "copay percent" FROM insurer WHERE name = 'Civic Health Fund'""",
    ),
    Asked(
        "What is the highest CRP value that the laboratory has ever sent us?",
        """SELECT MAX(value) FROM "lab result" WHERE analyte = 'CRP'""",
    ),
    Asked("How long is an appointment on average, in minutes?", "SELECT AVG(minutes) FROM appointment"),
    Asked(
        "Which of our diagnoses are chronic conditions? Their descriptions, please.",
        "SELECT description FROM diagnosis WHERE chronic = 1",
    ),
    Asked("How many appointments were called off?", "SELECT COUNT(*) FROM appointment WHERE status = 'C'", STATUS),
    Asked(
        "How many appointments did patients simply miss?", "SELECT COUNT(*) FROM appointment WHERE status = 'N'", STATUS
    ),
    Asked(
        "How many of our patients were born in 1956?",
        "SELECT COUNT(*) FROM patient WHERE SUBSTR(birth_date, 7, 4) = '1956'",
        BORN,
    ),
    Asked(
        "How many patients live in the area with postcode 4105?",
        "SELECT COUNT(*) FROM patient WHERE TRIM(postcode) = '4105'",
        "postcode is text and some end with a blank: compare TRIM(postcode).",
    ),
    Asked(
        "What is the average haemoglobin over all measurements?",
        """SELECT AVG(value) FROM "lab result" WHERE analyte = 'HB'""",
        ANALYTE,
    ),
    Asked(
        "Out of all appointments, what percentage did patients not show up for? One decimal.",
        "SELECT ROUND(100.0 * SUM(status = 'N') / COUNT(*), 1) FROM appointment",
        "Percentage = 100.0 * appointments with status N / all appointments, rounded to one decimal.",
    ),
    Asked(
        "How many patients are insured with Blue Lantern?",
        "SELECT COUNT(*) FROM patient JOIN insurer ON patient.insurer_code = insurer.code "
        "WHERE insurer.name = 'Blue Lantern'",
    ),
    Asked(
        "Who is covered by the Seafarers' Scheme?",
        "SELECT patient.name FROM patient JOIN insurer ON patient.insurer_code = insurer.code "
        "WHERE insurer.name = 'Seafarers'' Scheme'",
    ),
    Asked(
        "Count the appointments of every doctor, whatever became of them. I want the doctor's name and the count.",
        "SELECT doctor.name, COUNT(*) FROM doctor JOIN appointment ON doctor.doctor_id = appointment.doctor_id "
        "GROUP BY doctor.doctor_id",
    ),
    Asked(
        "How many patients do we have of each sex, if we leave out those where nothing was noted?",
        "SELECT sex, COUNT(*) FROM patient WHERE sex IS NOT NULL GROUP BY sex",
        "Give the code (F, M or X) and the count.",
    ),
    Asked(
        "Who joined the practice when? Doctor and date, the latest arrival first.",
        "SELECT name, hired_on FROM doctor ORDER BY hired_on DESC",
    ),
    Asked(
        "Name and price in cents of every medicine that costs over 1000 cents?",
        "SELECT name, price_cents FROM medicine WHERE price_cents > 1000",
    ),
    Asked(
        "How often has the laboratory tested something for Farid Ingram?",
        'SELECT COUNT(*) FROM patient JOIN "lab result" ON patient.patient_id = "lab result".patient_id '
        "WHERE patient.name = 'Farid Ingram'",
    ),
    Asked(
        "How many appointments did Vera Novak have in June 2024, kept or not?",
        "SELECT COUNT(*) FROM doctor JOIN appointment ON doctor.doctor_id = appointment.doctor_id "
        "WHERE doctor.name = 'Vera Novak' AND SUBSTR(appointment.starts_at, 1, 7) = '2024-06'",
        STARTS,
    ),
    Asked(
        "Which patients have had a CRP above 13? Every name once.",
        'SELECT DISTINCT patient.name FROM patient JOIN "lab result" ON patient.patient_id = "lab result".patient_id '
        'WHERE "lab result".analyte = \'CRP\' AND "lab result".value > 13',
    ),
    Asked(
        "Who is our oldest patient?",
        "SELECT name FROM patient "
        "ORDER BY SUBSTR(birth_date, 7, 4) || SUBSTR(birth_date, 4, 2) || SUBSTR(birth_date, 1, 2) LIMIT 1",
        "patient.birth_date is text in the form DD.MM.YYYY: put year, month and day in that order before comparing.",
    ),
    Asked(
        "Which insurers have more than 45 of our patients? Names only.",
        "SELECT insurer.name FROM insurer JOIN patient ON insurer.code = patient.insurer_code "
        "GROUP BY insurer.code HAVING COUNT(*) > 45",
    ),
    Asked(
        "How many prescriptions have we written for each medicine that was prescribed at all? Medicine and count.",
        "SELECT medicine.name, COUNT(*) FROM medicine JOIN prescription "
        "ON medicine.medicine_id = prescription.medicine_id GROUP BY medicine.medicine_id",
    ),
    Asked(
        "Which patients on our list have never had an appointment?",
        "SELECT name FROM patient WHERE patient_id NOT IN (SELECT patient_id FROM appointment)",
    ),
    Asked(
        "Is there a medicine that nobody here has ever prescribed? Its name, please.",
        "SELECT name FROM medicine WHERE medicine_id NOT IN (SELECT medicine_id FROM prescription)",
    ),
    Asked(
        "Which medicines are dearer than our average medicine?",
        "SELECT name FROM medicine WHERE price_cents > (SELECT AVG(price_cents) FROM medicine)",
    ),
    Asked(
        "How many different patients have been found to have type 2 diabetes?",
        'SELECT COUNT(DISTINCT appointment.patient_id) FROM appointment JOIN "case" '
        'ON appointment.appointment_id = "case".appointment_id '
        "JOIN diagnosis ON \"case\".diagnosis_code = diagnosis.code WHERE diagnosis.description = 'type 2 diabetes'",
    ),
    Asked(
        "Which doctors have ever diagnosed asthma? Each of them once.",
        "SELECT DISTINCT doctor.name FROM doctor JOIN appointment ON doctor.doctor_id = appointment.doctor_id "
        'JOIN "case" ON appointment.appointment_id = "case".appointment_id WHERE "case".diagnosis_code = \'J45\'',
        "Asthma has the diagnosis code J45.",
    ),
    Asked(
        "On which day of the week do most appointments fall?",
        "SELECT STRFTIME('%w', starts_at) FROM appointment GROUP BY STRFTIME('%w', starts_at) "
        "ORDER BY COUNT(*) DESC LIMIT 1",
        "Give the day as STRFTIME('%w', starts_at): 0 is Sunday, 1 is Monday and so on.",
    ),
    Asked(
        "In which postcode area do most of our patients live? Ignore patients without a postcode.",
        "SELECT TRIM(postcode) FROM patient WHERE postcode IS NOT NULL GROUP BY TRIM(postcode) "
        "ORDER BY COUNT(*) DESC LIMIT 1",
        "postcode is text and some end with a blank: group by TRIM(postcode) and show it that way.",
    ),
    Asked(
        "What are the three things we diagnose most often, and how many cases of each were there? Most frequent first.",
        "SELECT diagnosis.description, COUNT(*) FROM diagnosis "
        'JOIN "case" ON diagnosis.code = "case".diagnosis_code '
        "GROUP BY diagnosis.code ORDER BY COUNT(*) DESC LIMIT 3",
    ),
    Asked(
        "Whose patients miss the most appointments? The name of the one doctor who is worst off.",
        "SELECT doctor.name FROM doctor JOIN appointment ON doctor.doctor_id = appointment.doctor_id "
        "WHERE appointment.status = 'N' GROUP BY doctor.doctor_id ORDER BY COUNT(*) DESC LIMIT 1",
        STATUS,
    ),
    Asked(
        "Which patients have seen both Priya Rahman and Vera Novak? Only appointments that took place count.",
        "SELECT patient.name FROM patient JOIN appointment ON patient.patient_id = appointment.patient_id "
        "JOIN doctor ON appointment.doctor_id = doctor.doctor_id "
        "WHERE doctor.name = 'Priya Rahman' AND appointment.status = 'D' INTERSECT "
        "SELECT patient.name FROM patient JOIN appointment ON patient.patient_id = appointment.patient_id "
        "JOIN doctor ON appointment.doctor_id = doctor.doctor_id "
        "WHERE doctor.name = 'Vera Novak' AND appointment.status = 'D'",
        STATUS,
    ),
    Asked(
        "For how many patients do we have a severe case (severity 3) of a chronic illness on file?",
        'SELECT COUNT(DISTINCT appointment.patient_id) FROM appointment JOIN "case" '
        'ON appointment.appointment_id = "case".appointment_id '
        'JOIN diagnosis ON "case".diagnosis_code = diagnosis.code '
        'WHERE diagnosis.chronic = 1 AND "case".severity = 3',
    ),
)
