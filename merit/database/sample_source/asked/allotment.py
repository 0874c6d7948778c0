"""Questions about the allotment garden."""

from merit.database.sample_source.builder import Asked

RAIN = "rain_mm is -999 on days when the gauge was blocked; such days do not count as rain or as dry."
RUNNING = 'A lease that still runs has no "end date".'
READ_ON = "weather reading.read_on is text in the form DD/MM/YYYY."

QUESTIONS = (
    Asked("How many plots does the society have?", "SELECT COUNT(*) FROM plot"),
    Asked("How large is plot B-03, in square metres?", "SELECT area_m2 FROM plot WHERE plot_no = 'B-03'"),
    Asked("Which crops are alliums?", "SELECT name FROM crop WHERE family = 'allium'"),
    Asked(
        "How many days does kale take from sowing to harvest?", "SELECT days_to_harvest FROM crop WHERE name = 'kale'"
    ),
    Asked("How many gardeners have not given us a phone number?", "SELECT COUNT(*) FROM gardener WHERE phone IS NULL"),
    Asked(
        "What did we do on the work day of 29 December 2023?",
        """SELECT task FROM "work day" WHERE held_on = '2023-12-29'""",
    ),
    Asked("Who is on the committee?", "SELECT name FROM gardener WHERE note = 'on the committee'"),
    Asked("What is the highest rent of any plot, in cents?", "SELECT MAX(rent_cents) FROM plot"),
    Asked(
        "How many harvests were given to the food bank?",
        "SELECT COUNT(*) FROM harvest WHERE note = 'given to the food bank'",
    ),
    Asked("What tasks have there been on our work days? Name each kind once.", 'SELECT DISTINCT task FROM "work day"'),
    Asked("How warm was it on the hottest day on record?", 'SELECT MAX(high_c) FROM "weather reading"'),
    Asked("How many leases are still running?", 'SELECT COUNT(*) FROM lease WHERE "end date" IS NULL', RUNNING),
    Asked(
        "On how many days was the rain gauge blocked?",
        'SELECT COUNT(*) FROM "weather reading" WHERE rain_mm = -999',
        RAIN,
    ),
    Asked(
        "How many millimetres of rain have fallen since the weather station was set up?",
        'SELECT SUM(rain_mm) FROM "weather reading" WHERE rain_mm <> -999',
        RAIN,
    ),
    Asked(
        "How cold did it get in the night of 1 March 2024?",
        """SELECT low_c FROM "weather reading" WHERE read_on = '01/03/2024'""",
        READ_ON + " low_c is the night's low.",
    ),
    Asked(
        "Which gardeners have been members since before 2003?",
        "SELECT name FROM gardener WHERE SUBSTR(joined, 7, 4) < '2003'",
        "gardener.joined is text in the form DD/MM/YYYY, so the year is SUBSTR(joined, 7, 4).",
    ),
    Asked(
        "How many harvests were graded first class?",
        "SELECT COUNT(*) FROM harvest WHERE grade = '1'",
        "harvest.grade is a text code: 1 first class, 2 second class, K kitchen only, NULL not graded.",
    ),
    Asked(
        "How many plots are there in each section? Section letter and count.",
        "SELECT section, COUNT(*) FROM plot GROUP BY section",
    ),
    Asked(
        "Which plots measure more than 265 square metres, and how large are they?",
        "SELECT plot_no, area_m2 FROM plot WHERE area_m2 > 265",
    ),
    Asked(
        "Who leases plot A-04 at present?",
        "SELECT gardener.name FROM gardener JOIN lease ON gardener.gardener_id = lease.gardener_id "
        "WHERE lease.plot_no = 'A-04' AND lease.\"end date\" IS NULL",
        RUNNING,
    ),
    Asked(
        "Tell me the three largest plots with their area, largest first.",
        "SELECT plot_no, area_m2 FROM plot ORDER BY area_m2 DESC LIMIT 3",
    ),
    Asked(
        "How often has each crop been sown? Only crops that were sown at all, with name and number of plantings.",
        "SELECT crop.name, COUNT(*) FROM crop JOIN planting ON crop.crop_id = planting.crop_id GROUP BY crop.name",
    ),
    Asked(
        "How many nights below zero came with wind from the north?",
        """SELECT COUNT(*) FROM "weather reading" WHERE low_c < 0 AND wind = 'N'""",
        "wind holds compass codes such as N, NE or SW, exactly N for north.",
    ),
    Asked(
        "Which crops have suffered from slugs? Each one once.",
        "SELECT DISTINCT crop.name FROM crop JOIN planting ON crop.crop_id = planting.crop_id "
        "WHERE planting.note = 'slugs'",
    ),
    Asked(
        "For every work day, how many gardeners came? Date and head count.",
        'SELECT "work day".held_on, COUNT(*) FROM "work day" '
        'JOIN attendance ON "work day".work_day_id = attendance.work_day_id GROUP BY "work day".work_day_id',
    ),
    Asked(
        "I need the beekeepers' phone numbers, with their names. Leave out those without a number.",
        "SELECT name, TRIM(phone) FROM gardener WHERE note = 'beekeeper' AND phone IS NOT NULL",
        "Some phone numbers end with a blank: show TRIM(phone).",
    ),
    Asked(
        "List all work days from the latest to the earliest, with date and task.",
        'SELECT held_on, task FROM "work day" ORDER BY held_on DESC',
    ),
    Asked(
        "Which crop in our list has never been sown by anybody?",
        "SELECT name FROM crop WHERE crop_id NOT IN (SELECT crop_id FROM planting)",
    ),
    Asked(
        "Which plots lie empty, that is, have no running lease?",
        'SELECT plot_no FROM plot WHERE plot_no NOT IN (SELECT plot_no FROM lease WHERE "end date" IS NULL)',
        RUNNING,
    ),
    Asked(
        "Who has never turned up for a work day?",
        "SELECT name FROM gardener WHERE gardener_id NOT IN (SELECT gardener_id FROM attendance)",
    ),
    Asked(
        "How many plots are bigger than the average plot?",
        "SELECT COUNT(*) FROM plot WHERE area_m2 > (SELECT AVG(area_m2) FROM plot)",
    ),
    Asked(
        "How many grams of potatoes have been weighed in so far?",
        "SELECT SUM(harvest.weight_g) FROM crop JOIN planting ON crop.crop_id = planting.crop_id "
        "JOIN harvest ON planting.planting_id = harvest.planting_id WHERE crop.name = 'potato'",
    ),
    Asked(
        "Is anybody leasing more than two plots right now? Names, please.",
        "SELECT gardener.name FROM gardener JOIN lease ON gardener.gardener_id = lease.gardener_id "
        'WHERE lease."end date" IS NULL GROUP BY gardener.gardener_id HAVING COUNT(*) > 2',
        RUNNING,
    ),
    Asked(
        "Which three gardeners have put in the most hours on work days, and how many? Hardest worker first.",
        "SELECT gardener.name, SUM(attendance.hours) FROM gardener "
        "JOIN attendance ON gardener.gardener_id = attendance.gardener_id "
        "GROUP BY gardener.gardener_id ORDER BY SUM(attendance.hours) DESC LIMIT 3",
    ),
    Asked(
        "What was the wettest month of all?",
        'SELECT SUBSTR(read_on, 4, 7) FROM "weather reading" WHERE rain_mm <> -999 '
        "GROUP BY SUBSTR(read_on, 4, 7) ORDER BY SUM(rain_mm) DESC LIMIT 1",
        RAIN + " " + READ_ON + " Write the month as MM/YYYY, that is SUBSTR(read_on, 4, 7).",
    ),
    Asked(
        "Which plant family has given us the most weight in harvests?",
        "SELECT crop.family FROM crop JOIN planting ON crop.crop_id = planting.crop_id "
        "JOIN harvest ON planting.planting_id = harvest.planting_id "
        "GROUP BY crop.family ORDER BY SUM(harvest.weight_g) DESC LIMIT 1",
    ),
    Asked(
        "Which gardeners have at some time leased a plot in section A and one in section B?",
        "SELECT gardener.name FROM gardener JOIN lease ON gardener.gardener_id = lease.gardener_id "
        "JOIN plot ON lease.plot_no = plot.plot_no WHERE plot.section = 'A' INTERSECT "
        "SELECT gardener.name FROM gardener JOIN lease ON gardener.gardener_id = lease.gardener_id "
        "JOIN plot ON lease.plot_no = plot.plot_no WHERE plot.section = 'B'",
    ),
)
