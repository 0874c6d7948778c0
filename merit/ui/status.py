"""The line on top: what memory holds, what runs, and how far it is loaded. The page is usable meanwhile.

What this module does not know: how a model is loaded (``merit.models.loading``) or what memory is made of.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from merit.errors import MeritError
from merit.generation import MAX_PROMPT_TOKENS, prompt_limit
from merit.models.loading import Loading, State
from merit.ui import notice
from merit.ui.asking import memory_of
from merit.ui.catalogue import SHARED
from merit.ui.state import Key
from merit.ui.text import count, escape, seconds

_TICK_S = 0.5


def memory(loading: Loading, stream: str) -> None:
    """How many entries there are and which question of the stream comes next."""
    if loading.state is not State.READY:
        st.html('<div class="m-status"><span>Memory opens together with the model</span></div>')
        return
    try:
        stats = memory_of(loading, stream).stats()
    except MeritError:
        st.html('<div class="m-status m-broken"><span>✕ No memory</span></div>')
        return
    counts = stats.counts
    name = "Memory" if stream == SHARED else "Your private memory"
    title = "Positions are counted from 0; a question sees only what questions before it have left."
    st.html(
        f'<div class="m-status" title="{title}"><span>{name} <b>{count(counts.entries, "entry", "entries")}</b></span>'
        f'<span><span class="m-good">+ {counts.positive:,}</span> &nbsp;<span class="m-broken">− {counts.negative:,}'
        f"</span></span><span>You are question <b>{stats.next_position:,}</b></span></div>"
    )


def model(loading: Loading) -> None:
    """The model's line; while it loads, redrawn twice a second, and the whole page once it is there."""
    running = loading.state not in (State.READY, State.FAILED)
    st.fragment(_model, run_every=_TICK_S if running else None)(loading, running)


def _model(loading: Loading, was_running: bool) -> None:
    if loading.state is State.READY:
        if was_running:
            st.rerun()
        st.html(f'<div class="m-status m-right">{_ready(loading.model)}</div>')
    elif loading.state is State.FAILED:
        if was_running:
            st.rerun()
        st.html('<div class="m-status m-right m-broken"><span>✕ No model</span></div>')
    else:
        share = "" if loading.fraction is None else f" {loading.fraction:.0%}"
        doing = f'<span class="m-accent">◌ {escape(_sentence(loading.message))}{share}</span>'
        st.html(
            f'<div class="m-status m-right" role="status"><span>{doing}'
            f" {seconds(loading.elapsed_s)}</span>{_bar(loading.fraction)}</div>"
        )


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:].partition(" (")[0]


def _bar(fraction: float | None) -> str:
    if fraction is None:
        return ""
    return f'<span class="m-bar"><span class="m-bar-accent" style="width:{fraction:.0%}"></span></span>'


def _ready(model: Any) -> str:
    info = getattr(model, "info", None)
    name = getattr(info, "label", None) or getattr(model, "id", None) or type(model).__name__
    speed = getattr(model, "tokens_per_second", None)
    short = str(name).partition(" (")[0]
    parts = [
        f'<span title="{escape(_details(model, info))}"><span class="m-good">●</span> <b>{escape(short)}</b></span>'
    ]
    if speed:
        parts.append(f"<span>{speed:.0f} tokens/s</span>")
    waiting = getattr(model, "waiting", 0)
    if waiting:
        parts.append(f"<span>{count(waiting, 'question')} waiting in line</span>")
    if getattr(info, "leaves_machine", False):
        parts.append('<span class="m-different">◐ Prompts leave this machine</span>')
    return "".join(parts)


def _details(model: Any, info: Any) -> str:
    parts = [str(getattr(info, "label", "")), str(getattr(model, "id", ""))]
    parts += [f"{name}: {value}" for name in ("quantisation", "dtype", "device") if (value := getattr(info, name, ""))]
    parts += list(getattr(info, "notes", ()))
    return "; ".join(part for part in parts if part)


def failure(loading: Loading) -> None:
    """When model or memory cannot be had: the sentence, and for the model a button to try again."""
    if loading.state is State.READY:
        try:
            memory_of(loading)
        except MeritError as error:
            notice.say(str(error))
    if loading.state is not State.FAILED:
        return
    notice.say(str(loading.error or loading.message))
    if st.button("Try again", key=Key.RETRY, icon=":material/refresh:"):
        loading.retry()
        st.rerun()


def limit(loading: Loading) -> int:
    """The most tokens of a prompt for the model that runs."""
    return prompt_limit(loading.model) if loading.model is not None else MAX_PROMPT_TOKENS
