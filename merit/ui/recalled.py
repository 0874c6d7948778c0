"""Which memory is looked at, and as of which question: the shared one or one's own, and the slider of positions.

What this module does not know: what is listed (``remembered``), and how a position is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from merit.database import uploads
from merit.errors import MeritError
from merit.memory.store import MemoryStore
from merit.models.loading import Loading, State
from merit.ui import asking, catalogue, notice
from merit.ui.state import Key, Param
from merit.ui.text import count, escape

TICK_S = 1.0
"""Seconds between two positions while the memory plays."""
_FRAMES = 30
"""About so many positions are shown from the first question to the last."""
_WHOSE = {"shared": "Shared memory (sample databases)", "private": "Your private memory (uploads)"}


def store(owner: str, loading: Loading) -> MemoryStore | None:
    """The memory to look at; None, with a sentence, while it cannot be opened."""
    if loading.state not in (State.READY, State.FAILED):
        st.html('<p class="m-soft" role="status">The memory opens together with the model. A moment, please.</p>')
        return None
    stream = catalogue.SHARED
    if uploads.list_of(owner):
        whose = st.segmented_control(
            "Which memory", list(_WHOSE), format_func=_WHOSE.__getitem__, default="shared", key=Key.WHOSE, required=True
        )
        stream = catalogue.private(owner) if whose == "private" else catalogue.SHARED
    try:
        return asking.memory_of(loading, stream)
    except MeritError as error:
        notice.say(str(error))
        return None


@dataclass(frozen=True)
class Moment:
    """A position of the stream and the last one there is (that of the next question)."""

    position: int
    last: int

    @property
    def now(self) -> bool:
        """Whether nothing that is remembered lies after it."""
        return self.position >= self.last

    @property
    def before(self) -> int | None:
        """The position for the store; None for now, when all that lives is seen."""
        return None if self.now else self.position


def restore(last: int) -> None:
    """Take the position from the URL, once; one that does not exist falls back to the last, with a sentence."""
    state = st.session_state
    if Param.POSITION in state:
        state[Param.POSITION] = min(state[Param.POSITION], last)
        return
    wanted = st.query_params.get(Param.POSITION, "")
    position = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 16 else None
    if wanted and (position is None or position > last):
        what = f"Question {position:,}" if position is not None else f"“{wanted}”"
        notice.keep(f"{what} is not a question of this memory; the last one is {last:,}, which is shown instead.")
    state[Param.POSITION] = last if position is None else min(position, last)
    state[Key.FOLLOW] = state[Param.POSITION] == last


def moment(last: int) -> Moment:
    """The slider with its play button, and what it is set to. While it plays, each run is one step further."""
    state = st.session_state
    if state.get(Key.FOLLOW, True) and not state.get(Key.PLAYING):
        state[Param.POSITION] = last  # nobody has gone back: stay with the newest
    if state.get(Key.PLAYING):
        state[Param.POSITION] = min(state[Param.POSITION] + max(1, last // _FRAMES), last)
        state[Key.PLAYING] = state[Param.POSITION] < last
        state[Key.FOLLOW] = not state[Key.PLAYING]
        if not state[Key.PLAYING]:
            st.rerun()  # the ticking ends with the whole page
    with st.container(horizontal=True, vertical_alignment="bottom", key="timeline"):
        st.slider(
            "The memory as this question saw it",
            0,
            last,
            key=Param.POSITION,
            on_change=_moved,
            args=(last,),
            help="Questions are numbered from 0. Each sees only what finished questions before it have left; later "
            "evidence, counts and texts are not in the view.",
        )
        playing = bool(state.get(Key.PLAYING))
        st.button(
            "Pause" if playing else "Play",
            key=Key.PLAY,
            icon=":material/pause:" if playing else ":material/play_arrow:",
            on_click=_play,
            args=(last,),
        )
    position = state[Param.POSITION]
    _publish(position, last)
    return Moment(position, last)


def banner(at: Moment, positive: int, negative: int, observations: int) -> None:
    """One line: whose eyes these are, and how much they saw."""
    who = f"as question {at.position:,} saw it" if not at.now else f"as the next question, {at.last:,}, will see it"
    found = count(positive + negative, "entry", "entries")
    st.html(
        f'<div class="m-banner" role="status"><b>{escape(who[0].upper() + who[1:])}</b><span>{found} from '
        f'{count(observations, "observation")}</span><span class="m-good">+ {positive:,} worked</span>'
        f'<span class="m-broken">− {negative:,} failed</span></div>'
    )


def _moved(last: int) -> None:
    state = st.session_state
    state[Key.FOLLOW] = state[Param.POSITION] >= last
    state[Key.PLAYING] = False


def _play(last: int) -> None:
    state = st.session_state
    state[Key.PLAYING] = not state.get(Key.PLAYING)
    state[Key.FOLLOW] = False
    if state[Key.PLAYING] and state[Param.POSITION] >= last:
        state[Param.POSITION] = 0


def _publish(position: int, last: int) -> None:
    if position < last:
        st.query_params[Param.POSITION] = str(position)
    elif Param.POSITION in st.query_params:
        del st.query_params[Param.POSITION]
