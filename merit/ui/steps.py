"""The story of an episode, drawn step by step: one line each, the newest one open.

What this module does not know: where the events come from, and what may be done about them (``judging``,
``correction``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from merit.database import Database
from merit.episode import Execution, Outcome, Status
from merit.events import EpisodeFinalised, EpisodeStarted, Failed
from merit.sql_change import difference
from merit.story import Step, Story
from merit.ui import code, diagnosis, memory, prompts, results, sql, theme
from merit.ui.state import step_key
from merit.ui.text import count, escape, label, seconds, visible

NUMBERS = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
MAX_DOWNLOAD_ROWS = 100_000


@dataclass(frozen=True)
class Frame:
    """What all steps of one drawing share. ``limit`` is the most tokens of a prompt; ``judge`` draws the question to
    the person beneath the rows of the step that waits for it. ``opened`` is a step that stands open from the start,
    beside the latest; ``turned`` is told which step was opened or folded."""

    story: Story
    database: Database | None
    limit: int
    ended: bool
    judge: Callable[[Step], None]
    opened: int | None = None
    turned: Callable[[int, bool], None] | None = None


def draw(frame: Frame) -> None:
    """All steps so far."""
    for step in frame.story.steps:
        _links(frame, step)
        _step(frame, step)


def _links(frame: Frame, step: Step) -> None:
    """Between two steps: how the failure was named, and what memory gave for the repair."""
    failure = frame.story.failure_before(step)
    if failure is None or failure.diagnosed is None or failure.judged is None:
        return
    episode = frame.story.started.episode_id if frame.story.started else ""
    with st.container(key=step_key(episode, step.iteration, "links"), gap=None):
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small"):
            st.html(diagnosis.line(failure.diagnosed, failure.judged.outcome))
            with st.popover("Why not the others", type="tertiary", key=step_key(episode, step.iteration, "rules")):
                diagnosis.ladder(failure.diagnosed, failure.judged.outcome)
        if failure.reflected is not None:
            st.html(
                f'<div class="m-link"><span class="m-verb">Noted</span>'
                f'<div><span class="m-soft">{escape(failure.reflected.text)}</span></div></div>'
            )
        if step.retrieved is not None:
            with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small"):
                st.html(memory.line(step.retrieved))
                why = st.popover(
                    "Why these", type="tertiary", key=step_key(episode, step.iteration, "why"), on_change="rerun"
                )
                if why.open and frame.story.started:
                    with why:
                        memory.why(step.retrieved, frame.story.started.strategy)


def sign(step: Step, ended: bool, failed: bool = False) -> theme.Sign:
    """Mark, word and tone of where a step stands; ``ended`` says that nothing more will happen, ``failed`` that the
    episode could not be carried to its end."""
    if step.judged is not None:
        return theme.OUTCOMES[step.judged.outcome]
    if ended:
        return theme.FAILED if failed else theme.STOPPED
    return theme.WAITING if step.asked else theme.WORKING


def heading(frame: Frame, step: Step) -> str:
    """The one line of a step as Markdown for a label: number, name, mark and word, change, cost."""
    number = NUMBERS[step.iteration] if step.iteration < len(NUMBERS) else f"({step.iteration + 1})"
    parts = [f"**{number} {step.title}**", sign(step, frame.ended, isinstance(frame.story.end, Failed)).label]
    before = frame.story.previous_sql(step)
    if step.judged is None and not frame.ended:
        parts.append(f":gray[{step.doing()} …]")
    elif before is not None and step.attempt is not None:
        parts.append(f":gray[{label(sql.short(difference(before, step.attempt.sql)), 90)}]")
    elif step.executed is not None and step.executed.status is Status.EXECUTED:
        parts.append(f":gray[{count(step.executed.row_count, 'row')}]")
    if step.attempt is not None and step.prompt is None:
        parts.append(":gray[:small[given, not generated]]")
    elif step.attempt is not None:
        cost = f"{step.attempt.prompt_tokens:,} + {step.attempt.output_tokens:,} tokens"
        parts.append(f":gray[:small[{seconds(step.attempt.elapsed_s)} · {cost}]]")
    return "  ".join(parts)


def _step(frame: Frame, step: Step) -> None:
    episode = frame.story.started.episode_id if frame.story.started else ""
    latest = step is frame.story.last
    # A step that a newer one follows is another widget than the one that was open: it starts folded.
    key = step_key(episode, step.iteration, "open" if latest else "folded")
    box = st.expander(
        heading(frame, step),
        expanded=latest or step.iteration == frame.opened,
        key=key,
        on_change=partial(_turned, frame, step.iteration, key),
    )
    if not box.open:
        return
    with box:
        if step.attempt is None:
            _generating(frame, step)
        else:
            _finished(frame, step, episode)


def _turned(frame: Frame, iteration: int, key: str) -> None:
    if frame.turned is not None:
        frame.turned(iteration, bool(st.session_state.get(key)))


def _generating(frame: Frame, step: Step) -> None:
    if step.prompt is not None:
        st.html(prompts.budget(step.prompt, frame.limit))
    if step.streamed:
        st.html(f'<pre class="m-pre m-stream" aria-live="off">{escape(step.streamed)}<i></i></pre>')
    if step.prompt is not None:
        with st.popover("Read the prompt", type="tertiary", key=f"peek-{step.iteration}"):
            prompts.draw(step.prompt, frame.limit)


def _finished(frame: Frame, step: Step, episode: str) -> None:
    assert step.attempt is not None
    names = ["Result", "SQL change", "Prompt", "Retrieval", "Code"]
    key = step_key(episode, step.iteration, "tabs")
    result, change, prompt, retrieval, lines = st.tabs(names, key=key, on_change="rerun")
    if result.open:
        with result:
            _result(frame, step, episode)
    if change.open:
        with change:
            sql.change(frame.story.previous_sql(step), step.attempt.sql)
    if prompt.open:
        with prompt:
            _prompt(frame, step)
    if retrieval.open:
        with retrieval:
            _retrieval(frame, step)
    if lines.open:
        with lines:
            st.caption("The same step with the library:")
            st.code(visible(code.snippet(frame.story, step)), language="python", wrap_lines=True)


def _result(frame: Frame, step: Step, episode: str) -> None:
    assert step.attempt is not None
    left, right = st.columns([5, 6], gap="medium")
    with left:
        if step is frame.story.waiting:
            sql.reading(step.attempt.sql)
            frame.judge(step)
        sql.query(step.attempt.sql)
        if step is not frame.story.waiting and step.attempt.sql:
            sql.reading(step.attempt.sql)
    with right:
        execution = step.execution
        if execution is None or step.executed is None:
            st.caption("The query is running.")
        else:
            database, text = frame.database, step.attempt.sql
            results.display(
                execution,
                key=step_key(episode, step.iteration, "result"),
                row_count=step.executed.row_count,
                fetch=None if database is None else lambda: _all_rows(database, text, execution),
            )
    if step.streamed:
        st.html(f'<pre class="m-pre m-stream">{escape(step.streamed)}<i></i></pre>')
    if not step.attempt.sql and step.attempt.raw:
        with st.popover("What the model wrote", type="tertiary"):
            st.code(visible(step.attempt.raw[:20_000]), language=None, wrap_lines=True)


def _all_rows(database: Database, text: str, shown: Execution) -> Execution:
    """The rows again, all of them; the first ones where the query does not run a second time."""
    again = database.execute(text, max_rows=MAX_DOWNLOAD_ROWS)
    return again if again.status is Status.EXECUTED else shown


def _prompt(frame: Frame, step: Step) -> None:
    if step.prompt is None:
        st.caption("No prompt was needed: this answer was already there.")
        return
    prompts.draw(step.prompt, frame.limit)
    if step.reflection_prompt is not None:
        with st.popover("The prompt of the reflection", type="tertiary"):
            prompts.draw(step.reflection_prompt, frame.limit)


def _retrieval(frame: Frame, step: Step) -> None:
    if step.retrieved is None or frame.story.started is None:
        st.caption(
            "Memory was not asked for this attempt." if step.iteration else "Memory is asked before repairs only."
        )
        return
    st.html(memory.cards(step.retrieved.retrieval))
    memory.why(step.retrieved, frame.story.started.strategy)


def end(story: Story) -> None:
    """The last line: how it ended, what was written to memory and from when it can be seen."""
    if story.end is None:
        return
    st.html(f'<div class="m-end" role="status">{_end(story)}</div>')
    if isinstance(story.end, EpisodeFinalised) and story.end.entry is not None:
        with st.popover("See what was remembered", type="tertiary", key="see-entry"):
            st.html(memory.card(story.end.entry))


def _end(story: Story) -> str:
    last = story.end
    if isinstance(last, EpisodeFinalised):
        sign = theme.OUTCOMES[last.outcome]
        repairs = "at the first answer" if last.repairs == 0 else f"after {count(last.repairs, 'repair')}"
        return f"{_sign(sign)}<span>Finished {repairs}. {_remembered(last, story.started)}</span>"
    if isinstance(last, Failed):
        return f"{_sign(theme.FAILED)}<span>{escape(last.reason)}</span>"
    return f"{_sign(theme.STOPPED)}<span>Stopped. Nothing was stored; the question can be asked again.</span>"


def _remembered(last: EpisodeFinalised, started: EpisodeStarted | None) -> str:
    if last.entry is None:
        if last.outcome is Outcome.CORRECT and last.repairs == 0:
            return "The first answer was right, so there was nothing to remember."
        if last.outcome is Outcome.NOT_JUDGED:
            return "Nobody judged the rows, so nothing was remembered."
        return "Nothing was remembered: this strategy, budget or comparison keeps none."
    sign = theme.POLARITIES[last.entry.polarity]
    what = f"{diagnosis.chip(last.entry.failure_type)} <b>{sign.mark} {sign.word.lower()}</b>"
    return f"One entry was remembered {what}. It can help from question {last.visible_from} on."


def _sign(sign: theme.Sign) -> str:
    return f'<b class="m-{sign.tone.name}">{sign.mark} {sign.word}</b>'
