"""Questions about the film festival."""

from merit.database.sample_source.builder import Asked

COUNTRY = (
    "country holds two-letter codes: GB Britain, IE Ireland, FR France, DE Germany, SE Sweden, JP Japan, BR Brazil."
)
TYPE = '"ticket type" is a code: F full price, R reduced, P press.'

QUESTIONS = (
    Asked("How many films are in the programme?", "SELECT COUNT(*) FROM film"),
    Asked("How many seats does the Rex have?", "SELECT seats FROM venue WHERE name = 'Rex'"),
    Asked("Who directed Nobody in Winter?", "SELECT director FROM film WHERE title = 'Nobody in Winter'"),
    Asked("Which films in the programme were made before 1980?", "SELECT title FROM film WHERE year < 1980"),
    Asked("How many films are still without a distributor?", "SELECT COUNT(*) FROM film WHERE distributor_id IS NULL"),
    Asked("What kinds of guests have we invited? Each role once.", "SELECT DISTINCT role FROM guest"),
    Asked("How long is the longest film, in minutes?", "SELECT MAX(minutes) FROM film"),
    Asked("How many people can sit down if all venues are full at once?", "SELECT SUM(seats) FROM venue"),
    Asked("Which sections are competitive?", "SELECT name FROM section WHERE competitive = 1"),
    Asked("How many cents have we taken for tickets altogether?", "SELECT SUM(price_cents) FROM ticket"),
    Asked(
        "How many tickets were sold but not used in the end?",
        "SELECT COUNT(*) FROM ticket WHERE used = 0",
        "ticket.used is 1 for a ticket that was used and 0 for one that was not.",
    ),
    Asked("How many press tickets were handed out?", """SELECT COUNT(*) FROM ticket WHERE "ticket type" = 'P'""", TYPE),
    Asked(
        "Which guests are staying at the Anchor?",
        "SELECT name FROM guest WHERE TRIM(hotel) = 'Anchor'",
        "Some hotel names end with a blank: compare TRIM(hotel).",
    ),
    Asked(
        "How many guests arrive on 20 May 2024?",
        "SELECT COUNT(*) FROM guest WHERE arrives_on = '20.05.2024'",
        "guest.arrives_on is text in the form DD.MM.YYYY.",
    ),
    Asked("Names of the guests from Japan?", "SELECT name FROM guest WHERE country = 'JP'", COUNTRY),
    Asked(
        "How many screenings were there on the opening day, 16 May 2024?",
        "SELECT COUNT(*) FROM screening WHERE SUBSTR(starts_at, 1, 10) = '2024-05-16'",
        "screening.starts_at is text in the form YYYY-MM-DD HH:MM, so the day is SUBSTR(starts_at, 1, 10).",
    ),
    Asked(
        "What percentage of all tickets went at the reduced price? One decimal, please.",
        """SELECT ROUND(100.0 * SUM("ticket type" = 'R') / COUNT(*), 1) FROM ticket""",
        "Percentage = 100.0 * tickets of type R / all tickets, rounded to one decimal.",
    ),
    Asked(
        "Which venues are in the Old Town?",
        "SELECT name FROM venue WHERE TRIM(district) = 'Old Town'",
        "Some districts end with a blank: compare TRIM(district).",
    ),
    Asked(
        "Which films run in the section New directions?",
        "SELECT film.title FROM film JOIN section ON film.section_code = section.code "
        "WHERE section.name = 'New directions'",
    ),
    Asked(
        "How many films does each section have? Name of the section and number of films.",
        "SELECT section.name, COUNT(*) FROM section JOIN film ON section.code = film.section_code "
        "GROUP BY section.code",
    ),
    Asked(
        "I have a long evening. Which films take more than 150 minutes, and how many exactly?",
        "SELECT title, minutes FROM film WHERE minutes > 150",
    ),
    Asked(
        "Which films does Nordfilm distribute?",
        "SELECT film.title FROM film JOIN distributor ON film.distributor_id = distributor.distributor_id "
        "WHERE distributor.name = 'Nordfilm'",
    ),
    Asked(
        "When can I see Nobody of the North? All dates and times as they are written.",
        "SELECT screening.starts_at FROM screening JOIN film ON screening.film_id = film.film_id "
        "WHERE film.title = 'Nobody of the North'",
    ),
    Asked(
        "How many screenings does every venue host? Venue name and count.",
        "SELECT venue.name, COUNT(*) FROM venue JOIN screening ON venue.venue_id = screening.venue_id "
        "GROUP BY venue.venue_id",
    ),
    Asked(
        "Count the screenings by subtitles, but leave out those where nobody knows yet.",
        "SELECT subtitles, COUNT(*) FROM screening WHERE subtitles IS NOT NULL GROUP BY subtitles",
        "screening.subtitles is en, de, none (no subtitles) or NULL (not known yet). Show the code and the count.",
    ),
    Asked(
        "Which French films already have a distributor, and who is it? Film title and distributor name.",
        "SELECT film.title, distributor.name FROM film "
        "JOIN distributor ON film.distributor_id = distributor.distributor_id WHERE film.country = 'FR'",
        COUNTRY,
    ),
    Asked("What is the oldest film in the programme?", "SELECT title FROM film ORDER BY year LIMIT 1"),
    Asked(
        "Which members of the jury abstained at least once? Each name once.",
        'SELECT DISTINCT "jury member".name FROM "jury member" '
        'JOIN vote ON "jury member".jury_member_id = vote.jury_member_id WHERE vote.points IS NULL',
        "vote.points is NULL when a jury member abstained.",
    ),
    Asked(
        "What did the jury give Two Dogs of the North on average?",
        "SELECT AVG(vote.points) FROM vote JOIN film ON vote.film_id = film.film_id "
        "WHERE film.title = 'Two Dogs of the North'",
    ),
    Asked(
        "Are there films in the programme without a single screening? Their titles, please.",
        "SELECT title FROM film WHERE film_id NOT IN (SELECT film_id FROM screening)",
    ),
    Asked(
        "How many films run longer than the average film?",
        "SELECT COUNT(*) FROM film WHERE minutes > (SELECT AVG(minutes) FROM film)",
    ),
    Asked(
        "At which venues is The Weather without a Door shown? Each venue once.",
        "SELECT DISTINCT venue.name FROM venue JOIN screening ON venue.venue_id = screening.venue_id "
        "JOIN film ON screening.film_id = film.film_id WHERE film.title = 'The Weather without a Door'",
    ),
    Asked(
        "What are the three shortest films whose running time we know? Title and minutes, shortest first.",
        "SELECT title, minutes FROM film WHERE minutes IS NOT NULL ORDER BY minutes LIMIT 3",
    ),
    Asked(
        "How many cents did each venue take in ticket sales? Venue and sum.",
        "SELECT venue.name, SUM(ticket.price_cents) FROM venue JOIN screening ON venue.venue_id = screening.venue_id "
        "JOIN ticket ON screening.screening_id = ticket.screening_id GROUP BY venue.venue_id",
    ),
    Asked(
        "From which countries do we have both a film and a jury member? The country codes will do.",
        'SELECT country FROM film INTERSECT SELECT country FROM "jury member"',
    ),
    Asked(
        "Which film has the most tickets over all its screenings?",
        "SELECT film.title FROM film JOIN screening ON film.film_id = screening.film_id "
        "JOIN ticket ON screening.screening_id = ticket.screening_id "
        "GROUP BY film.film_id ORDER BY COUNT(*) DESC LIMIT 1",
    ),
    Asked(
        "Which film is the jury's favourite by average points, among those that at least five members gave points?",
        "SELECT film.title FROM film JOIN vote ON film.film_id = vote.film_id "
        "GROUP BY film.film_id HAVING COUNT(vote.points) >= 5 ORDER BY AVG(vote.points) DESC LIMIT 1",
        "vote.points is NULL when a jury member abstained; abstentions are not points.",
    ),
    Asked(
        "Which films were shown in the Rex but never in the Granary?",
        "SELECT film.title FROM film JOIN screening ON film.film_id = screening.film_id "
        "JOIN venue ON screening.venue_id = venue.venue_id WHERE venue.name = 'Rex' EXCEPT "
        "SELECT film.title FROM film JOIN screening ON film.film_id = screening.film_id "
        "JOIN venue ON screening.venue_id = venue.venue_id WHERE venue.name = 'Granary'",
    ),
    Asked(
        "Which invited directors have no film of theirs in the programme?",
        "SELECT name FROM guest WHERE role = 'director' AND name NOT IN (SELECT director FROM film)",
    ),
)
