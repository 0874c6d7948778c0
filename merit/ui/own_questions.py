"""Questions with answers of one's own for an uploaded database: brought as a file, checked line by line.

What this module does not know: the form of the file (``merit.database.own_questions``) or who judges with them.
"""

from __future__ import annotations

import streamlit as st

from merit.database import Database, uploads
from merit.database.own_questions import LARGEST_FILE, check
from merit.database.uploads import Upload
from merit.errors import MeritError
from merit.ui import notice
from merit.ui.state import Key
from merit.ui.text import count, visible

MOST_SHOWN = 200


def panel(upload: Upload, database: Database, owner: str) -> None:
    """The questions that are there, and an uploader for a file of them, in place of earlier ones."""
    state = st.session_state
    turn = state.setdefault(Key.OWN_QUESTIONS_TURN, 0)
    found = uploads.questions(owner, upload.id)
    if found:
        st.html(
            f'<h3 class="m-head">{count(len(found), "question")} of yours, offered on Ask and judged by your SQL</h3>'
        )
        notice.listed(question.text for question in found[:MOST_SHOWN])
    else:
        st.caption(
            "A file of questions whose right SQL you know lets your own SQL judge the answers, as the sample answers "
            "do for the samples. Only this browser sees them; the SQL never reaches the model."
        )
    file = st.file_uploader(
        "Questions as .json, .jsonl or .csv with the fields question, gold_sql and, if you like, evidence",
        key=f"{Key.OWN_QUESTIONS}-{turn}",
        max_upload_size=LARGEST_FILE >> 20,
        help="They take the place of those brought before. Each SQL is run once, to see that it works.",
    )
    if file is not None:
        state[Key.OWN_QUESTIONS_SAID] = (upload.id, *_take(upload, database, owner, file.getvalue(), file.name))
        state[Key.OWN_QUESTIONS_TURN] += 1
        st.rerun()
    whose, good, sentences = state.get(Key.OWN_QUESTIONS_SAID, ("", True, ()))
    if whose == upload.id:
        notice.say(sentences[0], urgent=not good)
        notice.listed(sentences[1:])


def _take(upload: Upload, database: Database, owner: str, data: bytes, name: str) -> tuple[bool, tuple[str, ...]]:
    try:
        with st.spinner("Running each answer once"):
            problems = check(data, database).problems
            kept = [] if problems else uploads.set_questions(owner, upload.id, data)
    except MeritError as error:
        return False, (f"{visible(name)} was not taken, and the questions that were here stay. {error}",)
    if problems:
        head = f"{visible(name)} was not taken, and the questions that were here stay. Mend these and bring it again:"
        lines = [f"Line {problem.line}: {problem.sentence}" for problem in problems[:MOST_SHOWN]]
        return False, (head, *lines)
    return True, (f"{count(len(kept), 'question')} checked. They are offered on Ask for {upload.title}.",)
