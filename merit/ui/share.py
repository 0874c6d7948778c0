"""Taking an episode along: its bundle as a file; and saving again what could not be written.

What this module does not know: the format of a bundle (``merit.trace``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from merit import live
from merit.errors import MeritError
from merit.events import LAST_EVENTS, EpisodeStarted, Event, Failed
from merit.memory.entry import MemoryEntry
from merit.story import Story
from merit.ui import notice
from merit.ui.state import Key, Param


def bundle(events: Sequence[Event], owner: str) -> None:
    """The bundle of a finished episode to download: prompts, answers, rows shown, model, seed, versions."""
    first = events[0] if events else None
    if not isinstance(first, EpisodeStarted) or not isinstance(events[-1], LAST_EVENTS):
        return
    path = live.bundle_path(first.episode_id)
    if not path.is_file():
        return
    st.download_button(
        "Share this episode",
        path.read_bytes,
        f"episode-{first.episode_id[:8]}.jsonl",
        "application/jsonl",
        key=Key.SHARE,
        type="tertiary",
        icon=":material/ios_share:",
        on_click="ignore",
        help="A file with the whole episode: prompts, answers, the rows shown, model, seed and versions.",
    )


def compare(story: Story) -> None:
    """Live the finished episode again under another memory, on the Compare page."""
    if story.started is None or story.end is None or not story.steps:
        return
    if st.button(
        "What if memory had been otherwise",
        key=Key.COMPARE_EPISODE,
        type="tertiary",
        icon=":material/compare_arrows:",
        help="The same episode with memory off, without one entry, with a forged one, or at an earlier position.",
    ):
        st.switch_page("pages/compare.py", query_params={str(Param.OF): story.started.episode_id})


def replay(story: Story) -> None:
    """Play the finished episode again as it went, on the Recordings page."""
    if story.started is None or story.end is None:
        return
    if st.button("Replay", key=Key.REPLAY, type="tertiary", icon=":material/slideshow:"):
        st.switch_page("pages/recordings.py", query_params={str(Param.RECORDING): story.started.episode_id})


def save_again(failed: Failed, save: Callable[[Failed], MemoryEntry]) -> None:
    """Offer to write again the entry that could not be written when the episode ended."""
    if not st.button("Save to memory again", key=Key.SAVE_AGAIN, icon=":material/save:"):
        return
    try:
        save(failed)
    except MeritError as error:
        notice.say(str(error))
    else:
        notice.say("What was learnt is in memory now.", urgent=False)
