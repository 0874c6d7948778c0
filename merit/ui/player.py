"""A recording on the screen: its badge, its controls, and the story as far as it has been played.

What this module does not know: where recordings come from (``shelf``), and how time runs in one (``merit.playback``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import streamlit as st

from merit.generation import MAX_PROMPT_TOKENS
from merit.playback import Playback, playback
from merit.story import fold
from merit.trace import Bundle, BundleHeader
from merit.ui import chaincard, steps
from merit.ui.state import Key, Param
from merit.ui.text import escape, seconds

_TICK_S = 0.4
SPEEDS = (0.5, 1.0, 2.0, 4.0, 16.0)


@dataclass
class Position:
    """Where a recording stands in this session: at second ``at``, and running from there at ``speed`` since ``since``
    (monotonic), or still (None)."""

    recording: str
    at: float
    since: float | None = None
    speed: float = 1.0

    def now(self, length: float) -> float:
        """The second that is shown now."""
        moved = 0.0 if self.since is None else (time.monotonic() - self.since) * self.speed
        return min(self.at + moved, length)


def badge(header: BundleHeader) -> None:
    """What stands over every recording: that it is one, of when, of which model, and what in it is by hand."""
    stored = f", {header.quantisation}" if header.quantisation not in ("", "none") else ""
    when = header.created_at[:16].replace("T", " ")
    by_hand = '<span class="m-by-hand">first answer written by hand</span>' if header.first_answer_given else ""
    memory = f"<span>memory {escape(header.memory_version)}</span>" if header.memory_version else ""
    st.html(
        f'<div class="m-recorded" role="note"><b>RECORDED</b><span>{escape(when)}</span><span>{escape(header.model_id)}'
        f"{escape(stored)}</span><span>seed {header.seed}</span><span>{escape(header.strategy)}</span>{memory}"
        f"<span>judged by {escape(header.verifier)}</span>{by_hand}</div>"
    )


def draw(name: str, bundle: Bundle) -> None:
    """The whole player for the recording that the URL calls ``name``."""
    tape = playback(bundle.events)
    place = _place(name, tape)
    badge(bundle.header)
    if bundle.header.shows:
        st.html(f'<p class="m-soft">{escape(bundle.header.shows)}</p>')
    _controls(tape, place)
    st.fragment(_draw, run_every=_TICK_S if place.since is not None else None)(tape, place, place.since)


def _place(name: str, tape: Playback) -> Position:
    place: Position | None = st.session_state.get(Key.PLAYER)
    if place is None or place.recording != name:
        wanted = st.query_params.get(Param.STEP, "")
        step = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 6 else None
        place = st.session_state[Key.PLAYER] = Position(name, tape.second_of(step))
    return place


def _controls(tape: Playback, place: Position) -> None:
    playing = place.since is not None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="player"):
        for name, icon, to in (
            ("Start", "first_page", "start"),
            ("Step back", "chevron_left", "back"),
            ("Pause" if playing else "Play", "pause" if playing else "play_arrow", "play"),
            ("Next step", "chevron_right", "next"),
            ("End", "last_page", "end"),
        ):
            st.button(
                name, icon=f":material/{icon}:", key=f"player-{to}", on_click=_move, args=(tape, place, to),
                type="primary" if to == "play" else "secondary",
            )  # fmt: skip
        st.segmented_control(
            "Speed", SPEEDS, default=place.speed, required=True, key=Key.SPEED, format_func=lambda speed: f"{speed:g}×",
            on_change=_set_speed, args=(tape, place),
        )  # fmt: skip


def _move(tape: Playback, place: Position, to: str) -> None:
    at = place.now(tape.length_s)
    if to == "play":
        begin = 0.0 if place.since is None and at >= tape.length_s else at
        place.at, place.since = begin, time.monotonic() if place.since is None else None
        return
    moves = {"start": 0.0, "back": tape.previous_stop(at), "next": tape.next_stop(at), "end": tape.length_s}
    place.at, place.since = moves[to], None


def _set_speed(tape: Playback, place: Position) -> None:
    """Another speed counts from here on."""
    place.at = place.now(tape.length_s)
    place.since = None if place.since is None else time.monotonic()
    place.speed = float(st.session_state[Key.SPEED])


def _draw(tape: Playback, place: Position, since: float | None) -> None:
    at = place.now(tape.length_s)
    if since is not None and at >= tape.length_s:
        place.at, place.since = at, None
        st.rerun()  # the ticking ends with the whole page
    step = tape.step_at(at)
    _publish(step if at < tape.length_s else None)
    story = fold(tape.at(at))
    st.html(f'<p class="m-note" role="timer">{seconds(at)} of {seconds(tape.length_s)}</p>')
    if story.started is not None:
        question = story.started.question
        st.html(
            f'<div class="m-story"><h2>{escape(question.text)}</h2><div class="m-status"><span>Question '
            f"<b>{story.started.position:,}</b></span><span>{escape(question.database_id)}</span></div></div>"
        )
    # The data of a recording need not be here: rows are those that it holds, and nothing is run.
    steps.draw(steps.Frame(story, None, MAX_PROMPT_TOKENS, story.end is not None, lambda _step: None))
    steps.end(story)
    if place.since is None:
        chaincard.draw(story)


def _publish(step: int | None) -> None:
    if step is not None and st.query_params.get(Param.STEP) != str(step):
        st.query_params[Param.STEP] = str(step)
    elif step is None and Param.STEP in st.query_params:
        del st.query_params[Param.STEP]
