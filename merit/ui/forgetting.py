"""Forget an entry, and undo it as long as this visit lasts: nobody but this session keeps what was forgotten.

What this module does not know: how an entry leaves the memory and the disk (``merit.memory.store``).
"""

from __future__ import annotations

import streamlit as st

from merit.errors import MeritError
from merit.memory.entry import EntryView
from merit.memory.facts import Forgotten
from merit.memory.store import MemoryStore
from merit.ui import catalogue, notice, opened, remembered
from merit.ui.state import Key, Param
from merit.ui.text import count, escape, label

_MOST = 5
"""Forgettings that can be undone; an older one becomes final."""
_Kept = tuple[str, str, Forgotten]
"""URI and stream of the memory, and what was forgotten there."""


def part(store: MemoryStore) -> opened.Part:
    """The tab of an opened entry from which it is forgotten."""
    return "Forget", lambda entry: _forget(store, entry)


def undo(store: MemoryStore, owner: str) -> None:
    """What this session has forgotten of this memory, each with a way back."""
    for number, forgotten in enumerate(_mine(store, owner)):
        entry = forgotten.entry
        assert entry is not None
        seen = count(len(forgotten.observations), "observation")
        st.html(
            f'<div class="m-notice m-notice-accent" role="status"><b>i</b><span>Forgotten: “{escape(entry.question)}” '
            f"with {seen}. It has left the memory and the disk; only this visit still holds it. It is final when this "
            "page is reloaded or closed.</span></div>"
        )
        with st.container(horizontal=True, gap="small", key=f"{Key.UNFORGET}-{number}"):
            name = label(entry.question, 40)
            if st.button("Undo", key=f"{Key.UNFORGET}-yes-{number}", icon=":material/undo:", help=f"Bring back {name}"):
                _undo(store, forgotten)
            st.button(
                "Make it final now",
                key=f"{Key.UNFORGET}-no-{number}",
                type="tertiary",
                on_click=_drop,
                args=(forgotten,),
            )


def _forget(store: MemoryStore, entry: EntryView) -> None:
    shared = store.stream == catalogue.SHARED
    st.html(
        '<ul class="m-words">'
        f"<li>{count(len(entry.history), 'observation')} of this entry that can be seen here, and any other there "
        "is, leave the memory and the disk at once.</li>"
        "<li>You can undo it until you reload or close this page. After that it is final: no tagged state, import or "
        "backup brings it back here. Another question may find out the same again.</li>"
        "<li>States tagged before stay without it, also when you undo.</li>"
        "<li>Recordings of episodes that showed it are kept; they are deleted under My questions.</li></ul>"
    )
    sure = not shared or st.checkbox(
        "This memory is shared: forget it for everybody who uses this server", key=f"{Key.FORGET_SURE}-{entry.id[:12]}"
    )
    if st.button("Forget it", key=Key.FORGET, type="primary", icon=":material/delete:", disabled=not sure):
        try:
            forgotten = store.forget_for_now(entry.id)
        except MeritError as error:
            notice.say(f"It may not have left the disk yet. {error}")
            return
        if forgotten.entry is not None:
            kept: list[_Kept] = st.session_state.setdefault(Key.FORGOTTEN, [])
            kept.append((store.uri, store.stream, forgotten))
            del kept[:-_MOST]
        st.session_state[Key.CHOSEN_ENTRY] = None
        st.query_params.pop(Param.ENTRY, None)
        st.rerun()


def _undo(store: MemoryStore, forgotten: Forgotten) -> None:
    try:
        store.undo_forget(forgotten)
    except MeritError as error:
        notice.say(f"It could not be brought back yet, and is still held here. {error}")
        return
    _drop(forgotten)
    if forgotten.entry is not None:
        remembered.choose(forgotten.entry.id)
    notice.keep("It is back, seen from the same questions on as before.", urgent=False)
    st.rerun()


def _drop(forgotten: Forgotten) -> None:
    state = st.session_state
    state[Key.FORGOTTEN] = [kept for kept in state.get(Key.FORGOTTEN, []) if kept[2] is not forgotten]


def _mine(store: MemoryStore, owner: str) -> list[Forgotten]:
    """What was forgotten of this memory, the latest first; what was learnt on an upload goes with the upload."""
    kept: list[_Kept] = st.session_state.get(Key.FORGOTTEN, [])
    found = [forgotten for uri, stream, forgotten in kept if (uri, stream) == (store.uri, store.stream)]
    if store.stream != catalogue.SHARED:
        for forgotten in found:
            if not all(catalogue.known(seen.entry.database_id, owner) for seen in forgotten.observations):
                _drop(forgotten)
        found = [forgotten for *_, forgotten in st.session_state.get(Key.FORGOTTEN, []) if forgotten in found]
    return found[::-1]
