"""Remove an upload: what would go, one confirmation, and a sentence about what went.

What this module does not know: how it is removed (``leaving``).
"""

from __future__ import annotations

import streamlit as st

from merit.errors import MeritError
from merit.models.loading import Loading
from merit.ui import leaving, notice
from merit.ui.catalogue import Listed
from merit.ui.leaving import Belongings
from merit.ui.state import Key, Param
from merit.ui.text import count


def panel(listed: Listed, owner: str, loading: Loading) -> None:
    """Behind a button of its own, so that one slip removes nothing."""
    with st.popover("Remove", icon=":material/delete:", key=Key.REMOVE, on_change="rerun") as box:
        if not box.open:
            return
        st.html('<h3 class="m-head">These go for good</h3>')
        notice.listed(_goes(leaving.belongings(listed.id, owner, loading)))
        if not st.button("Remove it for good", type="primary", key=Key.REMOVE_SURE):
            return
        try:
            with st.spinner("Removing"):
                leaving.remove(listed.id, owner, loading)
        except MeritError as error:
            notice.say(f"It was not removed. {error}")
            return
        for stale in (Key.PICKED, Key.LAST_DATABASE, Key.UPLOAD_SAID):
            st.session_state.pop(stale, None)
        st.query_params.pop(Param.DATABASE, None)
        notice.keep(f"{listed.title} is removed, with all that was remembered and recorded of it.", urgent=False)
        st.rerun()


def _goes(found: Belongings) -> list[str]:
    """What would go, in words; what there is none of is left out."""
    goes = ["the copy of the file on this server; your own stays where it is"]
    if found.entries is None:
        goes.append("what was remembered of it")
    elif found.entries:
        goes.append(count(found.entries, "remembered entry", "remembered entries"))
    if found.recordings:
        goes.append(count(found.recordings, "recorded episode"))
    if found.questions:
        goes.append(f"{count(found.questions, 'question')} of your own")
    return goes if len(goes) > 1 else [*goes, "nothing else: nothing was asked of it yet"]
