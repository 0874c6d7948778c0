"""The person edits the SQL, runs it and confirms it; what failed → what was confirmed becomes a positive entry.

What this module does not know: how an entry is written (``merit.live.remember_correction``).
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from merit.database import Database
from merit.episode import Execution, Status
from merit.errors import MeritError
from merit.memory.entry import MemoryEntry
from merit.story import Step
from merit.ui import memory, notice, results, sql
from merit.ui.state import Key

Remember = Callable[[str, Execution], MemoryEntry]


def panel(step: Step, database: Database, remember: Remember, episode_id: str) -> None:
    """The editor below an episode that was not solved. ``remember`` writes the entry and returns it."""
    if step.attempt is None:
        return
    with st.expander("Mend the SQL yourself", key=f"mend-{episode_id[:12]}", on_change="rerun") as box:
        if not box.open:
            return
        text = st.text_area(
            "SQL", step.attempt.sql, key=f"{Key.EDIT_SQL}-{episode_id[:12]}-{step.iteration}", height=140
        )
        if st.button("Run", key=Key.EDIT_RUN, icon=":material/play_arrow:"):
            st.session_state[Key.EDIT_RESULT] = (episode_id, text, database.execute(text))
        done = st.session_state.get(Key.EDIT_RESULT)
        if done is None or done[0] != episode_id:
            st.caption("Run it to see its rows; if they are what you meant, the correction can be remembered.")
            return
        _, ran, execution = done
        results.display(execution, key=f"edited-{episode_id[:12]}")
        if execution.status is not Status.EXECUTED:
            return
        sql.reading(ran)
        if ran != text:
            st.caption("The text was changed since; run it again before confirming it.")
            return
        if st.button("Yes, this is what I meant: remember it", key=Key.EDIT_CONFIRM, type="primary"):
            _confirm(remember, ran, execution)


def _confirm(remember: Remember, ran: str, execution: Execution) -> None:
    try:
        entry = remember(ran, execution)
    except MeritError as error:
        notice.say(str(error))
        return
    visible_from = getattr(entry, "visible_from", entry.position + 1)
    notice.say(f"Remembered as a correction by a person. It can help from question {visible_from} on.", urgent=False)
    st.html(memory.card(entry))
