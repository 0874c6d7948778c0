"""The memory as a thing one keeps: what is in it, states to go back to, and the space that it takes.

What this module does not know: how states are kept (``merit.memory.store``); what comes and goes as a file
(``carrying``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from merit.errors import BadInput, MeritError
from merit.memory import overview
from merit.memory.log import RETENTION
from merit.memory.overview import Share, State
from merit.memory.store import MemoryStore
from merit.models.loading import Loading
from merit.ui import carrying, catalogue, notice, results
from merit.ui.databases import size
from merit.ui.state import Key
from merit.ui.text import count, escape, visible

MOST_ROWS = 100
LONGEST_NAME = 80
_EVERYBODY = "This memory is shared: do it for everybody who uses this server"


def draw(store: MemoryStore, owner: str, loading: Loading) -> None:
    """The whole section."""
    statistics(store)
    states(store)
    carrying.panel(store, owner, loading)
    compaction(store)


def statistics(store: MemoryStore) -> None:
    """How much there is, of what, and how large it is."""
    stats, found, on_disk = store.stats(), store.look(overview.overview), store.disk_bytes()
    counts = stats.counts
    place = f"{size(on_disk)} on the disk, all memories and old versions included" if on_disk else "on object storage"
    facts = (
        f"<b>{count(counts.entries, 'entry', 'entries')}</b>",
        f'<span class="m-good">+ {counts.positive:,} worked</span>',
        f'<span class="m-broken">− {counts.negative:,} failed</span>',
        f"from {count(counts.observations, 'observation')}",
        f"the next question is {stats.next_position:,}",
        escape(place),
        f"encoder {escape(stats.encoder_id)}, {stats.dimension:,} numbers a text",
    )
    st.html('<div class="m-status">' + "".join(f"<span>{fact}</span>" for fact in facts) + "</div>")
    if not counts.entries:
        return
    left, right = st.columns(2, gap="medium")
    with left:
        _shares("Failure type", found.types)
    with right:
        _shares("Database", found.databases)


def _shares(title: str, shares: Sequence[Share]) -> None:
    rows = [(share.name, share.positive, share.negative, share.observations) for share in shares[:MOST_ROWS]]
    st.dataframe(
        results.frame((title, "Worked", "Failed", "Observations"), rows), hide_index=True, key=f"share-{title}"
    )
    if len(shares) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS:,} of {len(shares):,}.")


def states(store: MemoryStore) -> None:
    """Name the present state; go back to one that has a name."""
    st.html('<h3 class="m-head">States to go back to</h3>')
    with st.form("tag", border=False, clear_on_submit=True):
        left, right = st.columns([4, 1], vertical_alignment="bottom")
        name = left.text_input(
            "Name of the present state",
            key=Key.TAG,
            max_chars=LONGEST_NAME,
            placeholder="for instance: before the demo",
        )
        if right.form_submit_button("Tag this state", icon=":material/bookmark_add:", width="stretch"):
            _try(lambda: _tag(store, name.strip()), f"The state is tagged. “{name.strip()}” can be gone back to.")
    tagged = store.look(overview.states)[::-1]
    if not tagged:
        st.caption("No state has a name yet. A tag costs nothing: entries are kept once, whatever states hold them.")
        return
    rows = [
        (state.name, state.position, state.counts.entries, state.counts.observations, state.comes, state.goes)
        for state in tagged[:MOST_ROWS]
    ]
    st.dataframe(results.frame(_STATES, rows), hide_index=True, key="states")
    _go(store, tagged)


_STATES = ("State", "Tagged at question", "Entries", "Observations", "Would come back", "Would no longer be seen")


def _tag(store: MemoryStore, name: str) -> None:
    if name in store.tags():
        raise BadInput(f"There is a state called “{name}” already. Give this one another name, or take that name off.")
    store.tag(name)


def _go(store: MemoryStore, tagged: Sequence[State]) -> None:
    """The state that is chosen: back to it, or its name taken off."""
    left, middle, right = st.columns([5, 2, 3], vertical_alignment="bottom")
    by_name = {state.name: state for state in tagged}
    name = left.selectbox("State", list(by_name), format_func=visible, key=Key.STATE)
    state = by_name[name]
    with middle.popover("Go back", icon=":material/history:", key=Key.GO_BACK, width="stretch"):
        notice.listed(
            (
                f"{count(state.goes, 'observation')} made since will no longer be seen",
                f"{count(state.comes, 'observation')} of that state will be seen again",
                "the state you leave gets a name of its own, so you can come back to it",
                "what was forgotten stays forgotten, and positions go on counting",
            )
        )
        if st.button("Go back to it", type="primary", key=Key.GO_BACK_SURE, disabled=not _sure(store, Key.GO_BACK)):
            _try(lambda: store.go_back(name), f"The memory is as it was at “{visible(name)}”.")
    with right.popover("Remove the name", key=Key.UNTAG, width="stretch"):
        st.caption("What only this state holds can then no longer be seen, and leaves the disk when you compact.")
        if st.button("Remove it", key=Key.UNTAG_SURE, disabled=not _sure(store, Key.UNTAG)):
            _try(lambda: store.untag(name), f"“{visible(name)}” is no longer the name of a state.")


def compaction(store: MemoryStore) -> None:
    """Free what nobody can see again."""
    st.html('<h3 class="m-head">Space</h3>')
    minutes = round(RETENTION.total_seconds() / 60)
    st.caption(
        "Compacting erases observations that were taken back or left behind and that no tagged state holds, and joins "
        f"small files. Tagged states are kept. Old versions younger than {minutes} minutes may stay that long."
    )
    if st.button("Compact now", key=Key.COMPACT, icon=":material/compress:"):
        before = store.disk_bytes()
        try:
            with st.spinner("Compacting"):
                erased = store.compact()
        except MeritError as error:
            notice.say(str(error))
            return
        after = store.disk_bytes()
        sizes = f" On the disk: {size(before)} before, {size(after)} now." if before and after else ""
        notice.say(f"{count(erased, 'observation')} that nobody could see again erased.{sizes}", urgent=False)


def _sure(store: MemoryStore, act: str) -> bool:
    """Whether the person said so, where it is everybody's memory."""
    return store.stream != catalogue.SHARED or st.checkbox(_EVERYBODY, key=f"{act}-everybody")


def _try(act: Callable[[], object], done: str) -> None:
    try:
        act()
    except MeritError as error:
        notice.say(str(error))
    else:
        notice.keep(done, urgent=False)
        st.rerun()
