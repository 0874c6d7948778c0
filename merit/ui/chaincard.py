"""The causal chain of an episode on the screen: five links, an arrow between them that opens its evidence; and to take
along, as a picture and as text.

What this module does not know: what a chain is made of (``merit.chain``).
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from merit import chain as chains
from merit.chain import Chain, Kind, Link
from merit.story import Story
from merit.ui import chain_svg, diagnosis, memory, prompts, results, sql
from merit.ui.state import step_key
from merit.ui.text import escape

_PROMPT_TOKENS = 4096


def draw(story: Story, letter: str = "") -> None:
    """The card, folded; ``letter`` tells two cards on one page apart. Nothing while there is no chain to tell."""
    if story.started is None or chains.chain(story) is None:
        return
    episode = f"{letter}{story.started.episode_id}"
    name = f"Why it ended so: the causal chain{f' of {letter}' if letter else ''}"
    box = st.expander(name, key=step_key(episode, 0, "chain"), icon=":material/account_tree:", on_change="rerun")
    if box.open:
        with box:
            _card(story, episode)


def _card(story: Story, episode: str) -> None:
    told = chains.repairs(story)
    number = told[-1] if told else None
    if len(told) > 1:
        number = st.segmented_control(
            "Repair", told, default=number, required=True, key=step_key(episode, 0, "chain-of"),
            format_func=lambda number: f"Repair {number}",
        )  # fmt: skip
    found = chains.chain(story, number)
    if found is None:
        return
    with st.container(key=step_key(episode, found.repair, "chain-body"), gap=None):
        for link in found.links:
            if link.because:
                _arrow(found, link, episode)
            tone = chain_svg.tone(found, link)
            st.html(
                f'<section class="m-chain m-tint-{tone.name}"><h4>{link.kind}</h4><div><b class="m-{tone.name}">'
                f"{escape(link.title)}</b><p>{escape(link.text)}</p></div></section>"
            )
    _exports(story, found, episode)


def _arrow(found: Chain, link: Link, episode: str) -> None:
    """What joins two links, as a button that opens the evidence for it."""
    key = step_key(episode, found.repair, f"because-{link.kind.name.lower()}")
    box = st.popover(link.because, type="tertiary", icon=":material/arrow_downward:", key=key, on_change="rerun")
    if box.open:
        with box:
            _EVIDENCE[link.kind](found, key)


def _rules(found: Chain, _key: str) -> None:
    assert found.before.diagnosed is not None
    assert found.before.judged is not None
    diagnosis.ladder(found.before.diagnosed, found.before.judged.outcome)


def _recalled(found: Chain, _key: str) -> None:
    if not found.entries:
        st.caption("No entry stood in the prompt of this repair.")
        return
    st.html(f'<div class="m-cards">{"".join(memory.card(entry) for entry in found.entries)}</div>')
    st.caption(
        "An entry that stood in the prompt need not have made the difference. Live the episode again without it on the "
        "Compare page to see."
    )


def _edit(found: Chain, _key: str) -> None:
    before, after = found.before.attempt, found.after.attempt
    sql.change(before.sql if before else "", after.sql if after else "")
    if found.after.prompt is not None:
        prompts.draw(found.after.prompt, _PROMPT_TOKENS)


def _judged(found: Chain, key: str) -> None:
    after = found.after
    if after.attempt is not None:
        sql.query(after.attempt.sql)
    if after.execution is not None and after.executed is not None:
        results.display(after.execution, key=f"{key}-rows", row_count=after.executed.row_count, downloads=False)
    if after.judged is not None:
        st.caption(f"Judged by {after.judged.by or 'nobody'}.")


_EVIDENCE: dict[Kind, Callable[[Chain, str], None]] = {
    Kind.DIAGNOSIS: _rules,
    Kind.ENTRY: _recalled,
    Kind.EDIT: _edit,
    Kind.OUTCOME: _judged,
}


def _exports(story: Story, found: Chain, episode: str) -> None:
    assert story.started is not None
    started = story.started
    foot = (
        f"{found.database_id} · question {started.position} · strategy {started.strategy} · {started.model_id} · "
        f"judged by {started.verifier}{' (oracle-assisted)' if started.oracle_assisted else ''} · "
        f"episode {started.episode_id[:12]}"
    )
    name = f"chain-{started.episode_id[:8]}-{found.repair}"
    with st.container(horizontal=True, gap="small", key=step_key(episode, found.repair, "chain-exports")):
        for title, kind, mime, content in (
            ("Picture (SVG)", "svg", "image/svg+xml", chain_svg.svg(found, [foot])),
            ("Text", "txt", "text/plain", f"{chains.as_text(found)}\n{foot}\n"),
        ):
            st.download_button(
                title, content.encode("utf-8", "replace"), f"{name}.{kind}", mime, type="tertiary",
                icon=":material/download:", on_click="ignore", key=step_key(episode, found.repair, f"chain-{kind}"),
            )  # fmt: skip
