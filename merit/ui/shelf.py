"""Which recording is looked at: one of the gallery, one of the person's own episodes, or a file that was dropped.

What this module does not know: how it is played (``player``).
"""

from __future__ import annotations

import hashlib

import streamlit as st

from merit import live, recordings, trace
from merit.errors import BadInput, MeritError
from merit.trace import Bundle, BundleHeader
from merit.ui import notice, theme
from merit.ui.state import Key, Param
from merit.ui.text import count, escape, label

_DROPPED = "file-"
_HISTORY = 10
_SHOWN = 3
"""Recordings in a row of the gallery."""


def chosen(owner: str) -> tuple[str, Bundle] | None:
    """The recording that the URL names, with its name; None, with a sentence where it names none that is here."""
    name = st.query_params.get(Param.RECORDING, "")
    if not name:
        return None
    try:
        return name, _found(name, owner)
    except MeritError as error:
        notice.say(str(error))
        return None


def _found(name: str, owner: str) -> Bundle:
    kept: tuple[str, Bundle] | None = st.session_state.get(Key.DROPPED)
    if name.startswith(_DROPPED):
        if kept is None or kept[0] != name:
            raise BadInput("This recording was opened from a file, which stays with who opened it. Drop the file here.")
        return kept[1]
    if name in {recording.name for recording in recordings.gallery()}:
        return recordings.load(name)
    if name.isalnum() and name.isascii() and live.bundle_path(name).is_file():
        return live.recording(name, owner)
    raise BadInput("There is no recording of this name here. Choose one of the list, or drop a file.")


def drop() -> None:
    """Take a bundle from a file; it is read, checked and kept for this visit alone."""
    most = trace.MAX_BUNDLE_BYTES // 2**20
    file = st.file_uploader(
        "Open a recording from a file", "jsonl", key=Key.DROP, max_upload_size=most,
        help="A file of “Share this episode”. It is read and shown; nothing in it is run, fetched or remembered.",
    )  # fmt: skip
    kept = st.session_state.get(Key.DROPPED)
    if kept is not None:
        st.button("Open the last file again", key="reopen", type="tertiary", on_click=_open, args=(kept[0],))
    if file is None:
        return
    data = file.getvalue()
    name = f"{_DROPPED}{hashlib.sha256(data).hexdigest()[:12]}"
    if kept is not None and kept[0] == name:
        return
    try:
        bundle = trace.parse_bundle(file.name, data)
    except BadInput as error:
        notice.say(str(error))
        return
    st.session_state[Key.DROPPED] = (name, bundle)
    _open(name)
    st.rerun()


def gallery() -> None:
    """The recordings that come with the program."""
    found = recordings.gallery()
    st.subheader("Gallery", anchor=False)
    if not found:
        st.caption("No recordings come with this copy. Drop a file above, or replay an episode of your own.")
    for begin in range(0, len(found), _SHOWN):
        row = found[begin : begin + _SHOWN]
        for box, recording in zip(st.columns(_SHOWN, gap="medium"), row, strict=False):
            with box:
                _card(recording.name, recording.header)


def own(owner: str) -> None:
    """The latest episodes of the person, to be played again."""
    found = live.history(owner, _HISTORY)
    if not found:
        return
    st.subheader("Your latest episodes", anchor=False)
    for summary in found:
        end = theme.OUTCOMES[summary.outcome].label if summary.outcome is not None else theme.STOPPED.label
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", key=f"own-{summary.episode_id[:12]}"
        ):
            st.button(
                label(summary.question, 90), key=f"play-{summary.episode_id[:12]}", type="tertiary",
                icon=":material/slideshow:", on_click=_open, args=(summary.episode_id,),
            )  # fmt: skip
            st.markdown(
                f"{end} :gray[:small[{label(summary.database_id)}, {summary.created_at[:16].replace('T', ' ')}]]"
            )


def _card(name: str, header: BundleHeader) -> None:
    sign = theme.OUTCOMES[header.outcome] if header.outcome is not None else theme.STOPPED
    by_hand = ' · <span class="m-different">first answer by hand</span>' if header.first_answer_given else ""
    st.html(
        f'<section class="m-gallery"><p><b>{escape(header.title or header.question)}</b></p>'
        f'<p class="m-soft">{escape(header.shows)}</p><p class="m-note"><b class="m-{sign.tone.name}">{sign.mark} '
        f"{sign.word}</b> after {count(header.repairs, 'repair')} · {escape(header.database_id)}{by_hand}</p></section>"
    )
    st.button("Play", key=f"play-{name}", icon=":material/play_arrow:", on_click=_open, args=(name,))


def _open(name: str) -> None:
    st.query_params[Param.RECORDING] = name
    st.query_params.pop(Param.STEP, None)
    st.session_state.pop(Key.PLAYER, None)


def leave() -> None:
    """Back to the list."""
    st.query_params.pop(Param.RECORDING, None)
    st.query_params.pop(Param.STEP, None)
    st.session_state.pop(Key.PLAYER, None)
