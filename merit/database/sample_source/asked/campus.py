"""Questions about the small university. Many need a join of Enrollment with Courses, as in the paper's Figure 2."""

from merit.database.sample_source.builder import Asked

TERM = "Enrollment.Term is the year with F for fall or S for spring: fall 2023 is 2023F, spring 2023 is 2023S."
GRADE = "Enrollment.Grade: A, B, C and D mean passed, F failed, W withdrawn, NULL not graded yet."
STATUS = "Students.Status is a code: E enrolled, L on leave, X left the university."
RANK = "Teachers.Rank is a code: P professor, L lecturer, A assistant."
HIRED = "Teachers.Hired is text in the form DD.MM.YYYY, so the year is SUBSTR(Hired, 7, 4)."

QUESTIONS = (
    Asked("How many students does the university have on file?", "SELECT COUNT(*) FROM Students"),
    Asked("Which building is the Music department in?", "SELECT Building FROM Departments WHERE Name = 'Music'"),
    Asked("Which clubs can I join? Just their names.", "SELECT Name FROM Clubs"),
    Asked("How many of our courses are worth exactly 5 credits?", "SELECT COUNT(*) FROM Courses WHERE Credits = 5"),
    Asked("What does it cost to be in the Rowing club?", "SELECT Fee FROM Clubs WHERE Name = 'Rowing'"),
    Asked(
        "Which courses have no teacher at the moment? The titles, please.",
        "SELECT Title FROM Courses WHERE TeacherID IS NULL",
    ),
    Asked("What is Mira Zeller's e-mail address?", "SELECT Email FROM Students WHERE Name = 'Mira Zeller'"),
    Asked("How many enrollments are still waiting for a grade?", "SELECT COUNT(*) FROM Enrollment WHERE Grade IS NULL"),
    Asked(
        "How many places do the Monday groups offer in total?",
        """SELECT SUM(Capacity) FROM "Group" WHERE Weekday = 'Monday'""",
    ),
    Asked("What is the biggest budget that any department has?", "SELECT MAX(Budget) FROM Departments"),
    Asked("How many professors are there?", "SELECT COUNT(*) FROM Teachers WHERE Rank = 'P'", RANK),
    Asked("Which students are on leave?", "SELECT Name FROM Students WHERE Status = 'L'", STATUS),
    Asked("How many times has somebody failed a course?", "SELECT COUNT(*) FROM Enrollment WHERE Grade = 'F'", GRADE),
    Asked(
        "How many students come from Dunmere?",
        """SELECT COUNT(*) FROM Students WHERE TRIM("Home Town") = 'Dunmere'""",
        'Some home towns end with a blank: compare TRIM("Home Town").',
    ),
    Asked(
        "Which teachers have been with us since before the year 2000?",
        "SELECT Name FROM Teachers WHERE SUBSTR(Hired, 7, 4) < '2000'",
        HIRED,
    ),
    Asked(
        "How many students began their studies in 2023?",
        "SELECT COUNT(*) FROM Students WHERE Started BETWEEN '2023-01-01' AND '2023-12-31'",
    ),
    Asked(
        "How many enrollments has the course Databases had so far?",
        "SELECT COUNT(*) FROM Enrollment JOIN Courses ON Enrollment.CourseID = Courses.CourseID "
        "WHERE Courses.Title = 'Databases'",
    ),
    Asked(
        "How many students enrolled in Genetics in fall 2023?",
        "SELECT COUNT(*) FROM Enrollment JOIN Courses ON Enrollment.CourseID = Courses.CourseID "
        "WHERE Courses.Title = 'Genetics' AND Enrollment.Term = '2023F'",
        TERM,
    ),
    Asked(
        "Who teaches Game Theory?",
        "SELECT Teachers.Name FROM Teachers JOIN Courses ON Teachers.TeacherID = Courses.TeacherID "
        "WHERE Courses.Title = 'Game Theory'",
    ),
    Asked(
        "What does the History department offer? Show the title and the credits of each course.",
        "SELECT Courses.Title, Courses.Credits FROM Courses JOIN Departments "
        "ON Courses.DepartmentID = Departments.DepartmentID WHERE Departments.Name = 'History'",
    ),
    Asked(
        "How many students belong to each department? Department name and number; leave out students without one.",
        "SELECT Departments.Name, COUNT(*) FROM Departments JOIN Students "
        "ON Departments.DepartmentID = Students.DepartmentID GROUP BY Departments.Name",
    ),
    Asked(
        "When and where do the groups with more than 20 places meet? Weekday and room, only where the room is known.",
        'SELECT Weekday, Room FROM "Group" WHERE Capacity > 20 AND Room IS NOT NULL',
    ),
    Asked(
        "Add up the credits of all courses for every department, with the department's name.",
        "SELECT Departments.Name, SUM(Courses.Credits) FROM Departments JOIN Courses "
        "ON Departments.DepartmentID = Courses.DepartmentID GROUP BY Departments.Name",
    ),
    Asked(
        "List the clubs whose founding year we know, the oldest first, with that year.",
        "SELECT Name, Founded FROM Clubs WHERE Founded IS NOT NULL ORDER BY Founded",
    ),
    Asked(
        "Which grades have ever been entered for the course Ensemble? Each grade once, nothing for the missing ones.",
        "SELECT DISTINCT Enrollment.Grade FROM Enrollment JOIN Courses ON Enrollment.CourseID = Courses.CourseID "
        "WHERE Courses.Title = 'Ensemble' AND Enrollment.Grade IS NOT NULL",
    ),
    Asked(
        "What percentage of the grades entered for Microeconomics are fails? Round to one decimal.",
        "SELECT ROUND(100.0 * SUM(Enrollment.Grade = 'F') / COUNT(Enrollment.Grade), 1) FROM Enrollment "
        "JOIN Courses ON Enrollment.CourseID = Courses.CourseID WHERE Courses.Title = 'Microeconomics'",
        "Percentage of fails = 100.0 * enrollments with grade F / enrollments whose grade is not NULL.",
    ),
    Asked(
        "Is there a course that nobody has ever enrolled in? Give me the title.",
        "SELECT Title FROM Courses WHERE CourseID NOT IN (SELECT CourseID FROM Enrollment)",
    ),
    Asked(
        "How many students are in no club at all?",
        'SELECT COUNT(*) FROM Students WHERE StudentID NOT IN (SELECT StudentID FROM "Club Members")',
    ),
    Asked(
        "Which teachers do not teach any course?",
        "SELECT Name FROM Teachers WHERE TeacherID NOT IN (SELECT TeacherID FROM Courses WHERE TeacherID IS NOT NULL)",
        "Courses.TeacherID is NULL for courses without a teacher.",
    ),
    Asked(
        "Who is in the Beekeeping club?",
        'SELECT Students.Name FROM Students JOIN "Club Members" ON Students.StudentID = "Club Members".StudentID '
        "JOIN Clubs ON \"Club Members\".ClubID = Clubs.ClubID WHERE Clubs.Name = 'Beekeeping'",
    ),
    Asked(
        "Names of the students who were enrolled in Field Ecology in spring 2023, please.",
        "SELECT Students.Name FROM Students JOIN Enrollment ON Students.StudentID = Enrollment.StudentID "
        "JOIN Courses ON Enrollment.CourseID = Courses.CourseID "
        "WHERE Courses.Title = 'Field Ecology' AND Enrollment.Term = '2023S'",
        TERM,
    ),
    Asked(
        "How many credits has Esme Hallam earned so far? Only passed courses count.",
        "SELECT SUM(Courses.Credits) FROM Students JOIN Enrollment ON Students.StudentID = Enrollment.StudentID "
        "JOIN Courses ON Enrollment.CourseID = Courses.CourseID "
        "WHERE Students.Name = 'Esme Hallam' AND Enrollment.Grade IN ('A', 'B', 'C', 'D')",
        GRADE,
    ),
    Asked(
        "Which departments have a larger budget than the average department?",
        "SELECT Name FROM Departments WHERE Budget > (SELECT AVG(Budget) FROM Departments)",
    ),
    Asked(
        "What are the three courses with the most enrollments over all terms? Title and number, biggest first.",
        "SELECT Courses.Title, COUNT(*) FROM Courses JOIN Enrollment ON Courses.CourseID = Enrollment.CourseID "
        "GROUP BY Courses.CourseID ORDER BY COUNT(*) DESC LIMIT 3",
    ),
    Asked(
        "Which students are in both the Chess club and the Rowing club?",
        'SELECT Students.Name FROM Students JOIN "Club Members" ON Students.StudentID = "Club Members".StudentID '
        "JOIN Clubs ON \"Club Members\".ClubID = Clubs.ClubID WHERE Clubs.Name = 'Chess' INTERSECT "
        'SELECT Students.Name FROM Students JOIN "Club Members" ON Students.StudentID = "Club Members".StudentID '
        "JOIN Clubs ON \"Club Members\".ClubID = Clubs.ClubID WHERE Clubs.Name = 'Rowing'",
    ),
    Asked(
        "Which department's courses have led to the most failed enrollments?",
        "SELECT Departments.Name FROM Departments JOIN Courses ON Departments.DepartmentID = Courses.DepartmentID "
        "JOIN Enrollment ON Courses.CourseID = Enrollment.CourseID WHERE Enrollment.Grade = 'F' "
        "GROUP BY Departments.DepartmentID ORDER BY COUNT(*) DESC LIMIT 1",
        GRADE,
    ),
    Asked(
        "Who has enrolled in Programming II without ever having enrolled in Programming I?",
        "SELECT Students.Name FROM Students JOIN Enrollment ON Students.StudentID = Enrollment.StudentID "
        "JOIN Courses ON Enrollment.CourseID = Courses.CourseID WHERE Courses.Title = 'Programming II' EXCEPT "
        "SELECT Students.Name FROM Students JOIN Enrollment ON Students.StudentID = Enrollment.StudentID "
        "JOIN Courses ON Enrollment.CourseID = Courses.CourseID WHERE Courses.Title = 'Programming I'",
    ),
)
