"""The bench for one failure: what is typed, what the database says of it, and the ladder of rules.

What this module does not know: how a trial is run (``merit.routing.trial``) and what its label leads to
(``routing_effect``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import streamlit as st

from merit.database import Database
from merit.diagnosis import FAILURES, diagnose
from merit.episode import FailureType, Outcome, Question
from merit.errors import MeritError
from merit.routing.trial import LONGEST_MESSAGE, LONGEST_SQL, Trial, run, typed
from merit.ui import asking, catalogue, diagnosis, notice, results, theme
from merit.ui.state import Key
from merit.ui.text import escape, label, visible


class Mode(StrEnum):
    """What is put on the bench."""

    STATEMENT = "A statement to run"
    MESSAGE = "A message as it came"


@dataclass(frozen=True)
class Example:
    """A statement over the lending library that lands on a rule of its own."""

    name: str
    sql: str


EXAMPLES = (
    Example("column of another table", "SELECT title, name FROM book"),
    Example("count in WHERE", "SELECT author_id FROM book WHERE COUNT(*) > 3 GROUP BY author_id"),
    Example("function of another SQL", "SELECT name FROM member WHERE YEAR(joined_on) = 2023"),
    Example("a comma too many", "SELECT name, FROM member"),
    Example("it writes", "DELETE FROM loan"),
    Example("wrong rows", "SELECT name FROM member LIMIT 3"),
    Example("a coarse spot", "SELECT title FROM book WHERE book_id IN (SELECT copy_id, book_id FROM copy)"),
)
_EXAMPLES_ON = "library"


@dataclass(frozen=True)
class Typed:
    """What stands in the inputs; ``asked``: Run was pressed."""

    mode: Mode
    database: Database | None
    question: Question
    sql: str
    status: Outcome
    message: str
    asked: bool


def restore(owner: str) -> None:
    """What the inputs hold at first, or when the chosen database has gone."""
    state = st.session_state
    known = [listed.id for listed in catalogue.all_of(owner)]
    if state.get(Key.BENCH_DATABASE) not in known:
        last = state.get(Key.LAST_DATABASE)
        state[Key.BENCH_DATABASE] = last if last in known else catalogue.FIRST
        state.pop(Key.TRIAL, None)
    state.setdefault(Key.BENCH_MODE, Mode.STATEMENT)
    state.setdefault(Key.BENCH_SQL, EXAMPLES[0].sql if state[Key.BENCH_DATABASE] == _EXAMPLES_ON else "")
    state.setdefault(Key.BENCH_STATUS, Outcome.EXECUTION_ERROR)
    state.setdefault(Key.BENCH_MESSAGE, "")


def typed_in(owner: str) -> Typed:
    """The inputs."""
    state = st.session_state
    picked = st.segmented_control(
        "Failure", list(Mode), key=Key.BENCH_MODE, persist_state="session", required=True, label_visibility="collapsed"
    )
    mode = Mode(str(picked))
    titles = {listed.id: listed.title for listed in catalogue.all_of(owner)}
    database_id = st.selectbox(
        "Database",
        list(titles),
        format_func=lambda id: visible(titles.get(id, "")),
        key=Key.BENCH_DATABASE,
        persist_state="session",
        on_change=_clear,
    )
    text = st.selectbox(
        "Question (may stay empty)",
        list(catalogue.levels(database_id, owner)),
        index=None,
        key=Key.BENCH_QUESTION,
        persist_state="session",
        placeholder="Type one, or pick a sample question",
        accept_new_options=True,
        format_func=visible,
        help="It stands in the prompt and in the search of memory. The sample answer judges a sample question; "
        "otherwise rows are taken to be wrong.",
    )
    known = asking.sample(text or "", database_id, owner)
    question = known or Question((text or "").strip(), database_id)
    written = st.text_area(
        "SQL" if mode is Mode.STATEMENT else "SQL that failed (may stay empty)",
        key=Key.BENCH_SQL,
        persist_state="session",
        height=140,
        max_chars=LONGEST_SQL,
    )
    outcome, message, asked = Outcome.EXECUTION_ERROR, "", False
    if mode is Mode.STATEMENT:
        asked = st.button("Run", type="primary", key=Key.BENCH_RUN, icon=":material/play_arrow:", width="stretch")
        asked = bool(state.pop(Key.BENCH_NOW, False)) or asked
    else:
        outcome = Outcome(
            st.selectbox(
                "Status",
                list(FAILURES),
                key=Key.BENCH_STATUS,
                persist_state="session",
                format_func=lambda one: theme.OUTCOMES[one].word,
            )
        )
        message = st.text_area(
            "Message of the database",
            key=Key.BENCH_MESSAGE,
            persist_state="session",
            height=84,
            max_chars=LONGEST_MESSAGE,
            placeholder="no such column: name",
        )
    database = None
    try:
        database = asking.open_database(database_id, owner)
    except MeritError as error:
        notice.say(str(error))
    return Typed(mode, database, question, written, outcome, message, asked)


def _clear() -> None:
    st.session_state.pop(Key.TRIAL, None)
    st.session_state[Key.BENCH_QUESTION] = None
    st.session_state[Key.BENCH_SQL] = ""


def examples() -> None:
    """Statements to press, each for another rule."""
    with st.container(horizontal=True, gap="small", key="try", vertical_alignment="center"):
        st.html('<span class="m-soft">Try</span>', width="content")
        for number, example in enumerate(EXAMPLES):
            st.button(label(example.name), key=f"bench-try-{number}", type="tertiary", on_click=_take, args=(example,))


def _take(example: Example) -> None:
    state = st.session_state
    state[Key.BENCH_MODE], state[Key.BENCH_DATABASE] = Mode.STATEMENT, _EXAMPLES_ON
    state[Key.BENCH_QUESTION], state[Key.BENCH_SQL] = None, example.sql
    state[Key.BENCH_NOW] = True


def trial_of(given: Typed) -> Trial | None:
    """The failure on the bench: the typed message at once, a statement when it was run; None before."""
    state = st.session_state
    try:
        if given.mode is Mode.MESSAGE:
            return typed(given.question, given.sql, given.status, given.message)
        if given.asked and given.database is not None:
            state.pop(Key.TRIAL, None)
            state[Key.OVERRIDE] = None
            with st.spinner("Running the statement"):
                state[Key.TRIAL] = run(given.question, given.database, given.sql)
    except MeritError as error:
        notice.say(str(error))
        return None
    found: Trial | None = state.get(Key.TRIAL)
    return found


def told(trial: Trial) -> None:
    """What the database and the judge say, and the rows."""
    sign = theme.OUTCOMES[trial.outcome]
    words = {
        Outcome.NOT_JUDGED: "It ran. Nobody has judged its rows; they are taken to be wrong.",
        Outcome.CORRECT: "The sample answer has the same rows: no failure, nothing to route.",
        Outcome.DENOTATION_MISMATCH: "It ran, but the sample answer has other rows.",
    }
    st.html(
        f'<p class="m-status"><b class="m-{sign.tone.name}">{sign.mark} {sign.word}</b>'
        f"<span>{escape(words.get(trial.outcome, ''))}</span></p>"
    )
    if trial.execution is not None:
        results.display(trial.execution, key="trial", downloads=False)


def ladder(trial: Trial) -> FailureType | None:
    """All rules with what they did, and the label they give."""
    if trial.status is None:
        return None
    diagnosis.whole_ladder(trial.status, trial.message)
    return diagnose(trial.status, trial.message).failure_type


def nothing_yet() -> None:
    """Before the first run."""
    st.html(
        '<div class="m-empty"><p>Run a statement. The rules are tested from top to bottom here, and beside them stands '
        "what the label leads to: what memory gives and what the model would read.</p></div>"
    )
