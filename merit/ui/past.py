"""My questions: what this browser has asked, searched, opened again, and deleted.

What this module does not know: how an opened episode is drawn (``watching``, ``afterwards``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from merit import live
from merit.database import Database
from merit.episode import Outcome
from merit.errors import MeritError
from merit.live import EpisodeSummary
from merit.story import Story
from merit.ui import asking, databases, notice, results, theme
from merit.ui.asking import Shown
from merit.ui.state import Key, Param
from merit.ui.text import count, visible

MOST_SHOWN = 1_000
_ALL = 1_000_000
_STOPPED = "stopped"
_NOT_KEPT = "failed"
_ENDS = (*Outcome, _STOPPED, _NOT_KEPT)
_COLUMNS = ("", "Question", "Database", "Repairs", "Strategy", "Asked (UTC)")
_WIDTHS = {
    "(no name)": st.column_config.TextColumn("End", width=130),
    "Question": st.column_config.TextColumn(width=480),
    "Repairs": st.column_config.NumberColumn(width=60),
}


def history(owner: str) -> list[EpisodeSummary]:
    """All finished episodes of this browser, newest first."""
    return live.history(owner, _ALL)


def search(found: Sequence[EpisodeSummary]) -> list[EpisodeSummary]:
    """The inputs above the table, and what passes them."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        text = st.text_input("Search", key=Key.PAST_FIND, placeholder="words of the question, a database, a strategy")
        named = st.multiselect(
            "Database", sorted({one.database_id for one in found}), key=Key.PAST_DATABASE, placeholder="All",
            format_func=visible,
        )  # fmt: skip
        ends = st.multiselect("Ended", _ENDS, key=Key.PAST_END, placeholder="Any", format_func=lambda end: _end(end))
    return [
        one
        for one in found
        if _holds(one, text) and (not named or one.database_id in named) and (not ends or _kind(one) in ends)
    ]


def table(found: Sequence[EpisodeSummary]) -> None:
    """The episodes as a table whose rows open."""
    if not found:
        st.caption("No question of yours passes these filters. Clear one of them to see more.")
        return
    shown = list(found[:MOST_SHOWN])
    ids = [one.episode_id for one in shown]
    name = f"{Key.PAST}-{abs(hash(tuple(ids)))}"  # another list, another widget: row numbers mean nothing in it
    st.dataframe(
        results.frame(_COLUMNS, [_row(one) for one in shown]),
        hide_index=True,
        height=min(38 + 35 * len(ids), 388),
        column_config=_WIDTHS,
        on_select=partial(_chosen, name, ids),
        selection_mode="single-row",
        key=name,
    )
    more = f" The first {MOST_SHOWN:,} are shown; search to find others." if len(found) > MOST_SHOWN else ""
    st.caption(f"{count(len(found), 'question')}. Tick a row to open it.{more}")


def opened(owner: str) -> Shown | None:
    """The episode that the URL names; None, with a sentence where it cannot be opened."""
    episode = st.query_params.get(Param.EPISODE)
    if not episode:
        return None
    try:
        return asking.finished(episode, owner)
    except MeritError as error:
        notice.say(str(error))
        return None


def database(story: Story, owner: str) -> Database | None:
    """The database of the episode; None, with a sentence, where its file cannot be opened."""
    if story.started is None:
        return None
    try:
        return asking.open_database(story.started.question.database_id, owner)
    except MeritError as error:
        notice.say(str(error))
        return None


def again(story: Story, found: Sequence[EpisodeSummary], owner: str) -> None:
    """Buttons that belong to the opened episode here: ask it anew, delete its recording if it is one's own."""
    summary = next((one for one in found if story.started and one.episode_id == story.started.episode_id), None)
    if summary is None:
        return
    with st.container(horizontal=True, gap="small", key="opened-past"):
        if st.button("Ask it again", icon=":material/chat:", key=Key.ASK_ABOUT):
            databases.ask(summary.database_id, summary.question)
        st.button("Close it", type="tertiary", key=Key.PAST_CLOSE, on_click=leave)
        with st.popover("Delete the recording", icon=":material/delete:", key=Key.PAST_DELETE):
            notice.listed(
                (
                    "prompts, answers and rows of this episode leave this server for good",
                    "links to it, its replay and comparisons with it stop working",
                    "what it left in memory stays; forget that on the Memory page",
                )
            )
            if st.button("Delete it for good", type="primary", key=Key.PAST_DELETE_SURE):
                _delete(summary, owner)


def leave() -> None:
    """Close the opened episode."""
    st.query_params.pop(Param.EPISODE, None)


def _delete(summary: EpisodeSummary, owner: str) -> None:
    try:
        live.forget_recording(summary.episode_id, owner)
    except MeritError as error:
        notice.say(str(error))
        return
    leave()
    notice.keep(f"The recording of “{visible(summary.question)}” is deleted.", urgent=False)
    st.rerun()


def _chosen(name: str, ids: list[str]) -> None:
    rows = st.session_state[name]["selection"]["rows"]
    if rows:
        st.query_params[Param.EPISODE] = ids[rows[0]]


def _holds(one: EpisodeSummary, text: str) -> bool:
    """Whether all words stand somewhere in it, whatever their case."""
    there = f"{one.question}\n{one.database_id}\n{one.strategy}\n{one.episode_id}".casefold()
    return all(word in there for word in text.casefold().split())


def _kind(one: EpisodeSummary) -> str:
    if one.outcome is not None:
        return one.outcome
    return _STOPPED if one.ended == "Cancelled" else _NOT_KEPT


def _end(kind: str) -> str:
    """Mark and word of how an episode ended."""
    signs = {str(outcome): sign for outcome, sign in theme.OUTCOMES.items()}
    sign = (signs | {_STOPPED: theme.STOPPED, _NOT_KEPT: theme.FAILED})[kind]
    return f"{sign.mark} {sign.word}"


def _row(one: EpisodeSummary) -> tuple[str, str, str, int, str, str]:
    when = one.created_at[:16].replace("T", " ")
    return _end(_kind(one)), " ".join(one.question.split()), one.database_id, one.repairs, one.strategy, when
