"""Questions about the lending library."""

from merit.database.sample_source.builder import Asked

TOWN = "Some towns were typed with a blank at the end: compare TRIM(town)."
JOINED = "member.joined_on is text in the form DD.MM.YYYY, so the year is SUBSTR(joined_on, 7, 4)."
CONDITION = "copy.condition is a code: A as new, B used, C worn, W withdrawn."
FINE = "fine.status is a code: P paid, O open, W waived."

QUESTIONS = (
    Asked("How many members does the library have?", "SELECT COUNT(*) FROM member"),
    Asked("What are the branches called?", "SELECT name FROM branch"),
    Asked("How many loans are still out?", "SELECT COUNT(*) FROM loan WHERE returned_on IS NULL"),
    Asked("When did the Harbour branch open?", "SELECT opened_on FROM branch WHERE name = 'Harbour'"),
    Asked("Give me the titles of all the poetry books.", "SELECT title FROM book WHERE genre = 'poetry'"),
    Asked(
        "On which day of the week does the Slow readers group meet?",
        """SELECT "meeting day" FROM "reading group" WHERE name = 'Slow readers'""",
    ),
    Asked("How many pages has the thickest book in the catalogue?", "SELECT MAX(pages) FROM book"),
    Asked(
        "Which genres are there? Skip the books that have none, and name each genre once.",
        "SELECT DISTINCT genre FROM book WHERE genre IS NOT NULL",
    ),
    Asked(
        "Somebody wrote to us from malik.greaves@post.example. What is that member's name?",
        "SELECT name FROM member WHERE email = 'malik.greaves@post.example'",
    ),
    Asked("How many seats do all the reading groups offer together?", 'SELECT SUM(seats) FROM "reading group"'),
    Asked(
        "How many books in the catalogue are in French?",
        "SELECT COUNT(*) FROM book WHERE language = 'fr'",
        "book.language holds two-letter codes: en English, fr French, de German.",
    ),
    Asked(
        "How many copies have been withdrawn?",
        "SELECT COUNT(*) FROM copy WHERE condition = 'W'",
        CONDITION,
    ),
    Asked(
        "How much money is still owed to us in open fines?",
        "SELECT SUM(amount) FROM fine WHERE status = 'O'",
        FINE,
    ),
    Asked("Who are the members from Millbrook?", "SELECT name FROM member WHERE TRIM(town) = 'Millbrook'", TOWN),
    Asked(
        "How many people joined the library in 2020?",
        "SELECT COUNT(*) FROM member WHERE SUBSTR(joined_on, 7, 4) = '2020'",
        JOINED,
    ),
    Asked(
        "For how many days do people keep a book on average, looking only at loans that came back?",
        "SELECT AVG(JULIANDAY(returned_on) - JULIANDAY(loaned_on)) FROM loan WHERE returned_on IS NOT NULL",
        "Days kept = JULIANDAY(returned_on) - JULIANDAY(loaned_on).",
    ),
    Asked(
        "Who wrote The Long River?",
        "SELECT author.name FROM author JOIN book ON author.author_id = book.author_id "
        "WHERE book.title = 'The Long River'",
    ),
    Asked(
        "For which books has nobody written down the number of pages? Show title and language.",
        "SELECT title, language FROM book WHERE pages IS NULL",
    ),
    Asked(
        "How many copies does each branch own? Show the name of the branch and the count.",
        "SELECT branch.name, COUNT(*) FROM branch JOIN copy ON branch.branch_id = copy.branch_id GROUP BY branch.name",
    ),
    Asked(
        "Names of the Irish authors born before 1940, please.",
        "SELECT name FROM author WHERE country = 'IE' AND birth_year < 1940",
        "author.country is a two-letter country code; Ireland is IE.",
    ),
    Asked(
        "Who are our three youngest authors? Name and year of birth, the youngest first.",
        "SELECT name, birth_year FROM author ORDER BY birth_year DESC LIMIT 3",
    ),
    Asked(
        "Which reading groups come together in the Market Square branch?",
        'SELECT "reading group".name FROM "reading group" JOIN branch '
        "ON \"reading group\".branch_id = branch.branch_id WHERE branch.name = 'Market Square'",
    ),
    Asked(
        "How many fines are paid, open and waived? One row per status code, with the count.",
        "SELECT status, COUNT(*) FROM fine GROUP BY status",
    ),
    Asked(
        "I would like to see the names and e-mail addresses of the seniors who gave us an address.",
        "SELECT name, email FROM member WHERE category = 'S' AND email IS NOT NULL",
        "member.category is a code: A adult, C child, S senior, T student.",
    ),
    Asked(
        "Which titles have a copy whose map is missing? List every title once.",
        "SELECT DISTINCT book.title FROM book JOIN copy ON book.book_id = copy.book_id WHERE copy.note = 'map missing'",
    ),
    Asked(
        "From the oldest branch to the newest: what are they called and when did they open?",
        "SELECT name, opened_on FROM branch ORDER BY opened_on",
    ),
    Asked(
        "Which members have never borrowed anything?",
        "SELECT name FROM member WHERE member_id NOT IN (SELECT member_id FROM loan)",
    ),
    Asked(
        "How many copies cost more than the average copy did?",
        "SELECT COUNT(*) FROM copy WHERE price > (SELECT AVG(price) FROM copy)",
    ),
    Asked(
        "Who belongs to the reading group Crime after dark?",
        'SELECT member.name FROM member JOIN "group member" ON member.member_id = "group member".member_id '
        'JOIN "reading group" ON "group member".group_id = "reading group".group_id '
        "WHERE \"reading group\".name = 'Crime after dark'",
    ),
    Asked(
        "Which members borrowed more than three books in May 2024?",
        "SELECT member.name FROM member JOIN loan ON member.member_id = loan.member_id "
        "WHERE loan.loaned_on BETWEEN '2024-05-01' AND '2024-05-31' GROUP BY member.member_id HAVING COUNT(*) > 3",
    ),
    Asked(
        "Which titles in our catalogue has nobody ever taken home?",
        "SELECT title FROM book WHERE book_id NOT IN "
        "(SELECT copy.book_id FROM copy JOIN loan ON copy.copy_id = loan.copy_id)",
    ),
    Asked(
        "In which month of the year have the most members joined us? The two digits of the month are enough.",
        "SELECT SUBSTR(joined_on, 4, 2) FROM member GROUP BY SUBSTR(joined_on, 4, 2) ORDER BY COUNT(*) DESC LIMIT 1",
        "member.joined_on is text in the form DD.MM.YYYY, so the month is SUBSTR(joined_on, 4, 2).",
    ),
    Asked(
        "How many times has each branch lent something? Branch name and number of loans, busiest branch first.",
        "SELECT branch.name, COUNT(*) FROM branch JOIN copy ON branch.branch_id = copy.branch_id "
        "JOIN loan ON copy.copy_id = loan.copy_id GROUP BY branch.name ORDER BY COUNT(*) DESC",
    ),
    Asked(
        "Which authors have written a crime story but never a novel? Each name once.",
        "SELECT author.name FROM author JOIN book ON author.author_id = book.author_id WHERE book.genre = 'crime' "
        "EXCEPT SELECT author.name FROM author JOIN book ON author.author_id = book.author_id "
        "WHERE book.genre = 'novel'",
    ),
    Asked(
        "In which towns do members live although we have no branch there? Each town once.",
        "SELECT DISTINCT TRIM(town) FROM member WHERE town IS NOT NULL AND TRIM(town) NOT IN (SELECT town FROM branch)",
        TOWN,
    ),
    Asked(
        "Which five members have paid the most in fines so far? Names and amounts, highest first.",
        "SELECT member.name, SUM(fine.amount) FROM member JOIN loan ON member.member_id = loan.member_id "
        "JOIN fine ON loan.loan_id = fine.loan_id WHERE fine.status = 'P' GROUP BY member.member_id "
        "ORDER BY SUM(fine.amount) DESC LIMIT 5",
        FINE,
    ),
)
