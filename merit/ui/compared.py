"""A comparison on the screen: its lanes side by side, step by step, and where each parts from the first.

What this module does not know: whether the lanes run or are on record, and how they were chosen (``comparing``).
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from merit import comparison, jobs, live
from merit.comparison import Plan, Totals, flipped, parting, row_difference
from merit.database import Database
from merit.episode import Execution, Polarity, Status
from merit.errors import MeritError
from merit.events import EpisodeFinalised, Event, Failed
from merit.jobs import Job, JobState
from merit.sql_change import difference
from merit.story import Step, Story, fold
from merit.strategy import STRATEGIES
from merit.ui import chaincard, memory, notice, results, sql, steps, theme
from merit.ui.inputs import strategy_word
from merit.ui.lanes import LETTERS
from merit.ui.state import Key, Param
from merit.ui.text import count, escape, seconds

_TICK_S = 0.5


@dataclass(frozen=True)
class Lived:
    """One lane as far as it is known, with the words for what is otherwise in it."""

    letter: str
    words: str
    story: Story
    totals: Totals

    @property
    def title(self) -> str:
        """The strategy, and the databases whose entries it recalls."""
        started = self.story.started
        if started is None or started.strategy not in STRATEGIES:
            return started.strategy if started else "…"
        return strategy_word(started.strategy)


@dataclass(frozen=True)
class Shown:
    """What stands on the page: the job while this process has it, else episodes from disk with their words."""

    job: Job | None = None
    recorded: tuple[tuple[str, tuple[Event, ...]], ...] = ()
    known: tuple[Event, ...] = ()

    def lanes(self) -> tuple[Lived, ...]:
        """Every lane as far as it has come."""
        told = self.recorded
        if self.job is not None:
            plan: Plan = self.job.context
            events = self.job.events[: len(self.job.events)]
            lived = comparison.by_lane(events, len(plan.lanes))
            told = tuple((comparison.in_words(lane), one) for lane, one in zip(plan.lanes, lived, strict=True))
        took = comparison.answering_times([self.known, *(events for _, events in told)])
        return tuple(
            Lived(LETTERS[number], words, fold(events), comparison.totals(events, took))
            for number, (words, events) in enumerate(told)
        )


def find(owner: str) -> Shown | None:
    """The comparison of this session, the one that still runs, or the episodes that the URL names."""
    job = jobs.get(st.session_state.get(Key.COMPARISON, ""), owner)
    latest = jobs.latest(owner)
    if job is None and latest is not None and not latest.state.ended and isinstance(latest.context, Plan):
        job = latest
    if job is not None:
        return Shown(job, known=job.context.known)
    found = []
    for episode_id in st.query_params.get_all(Param.EPISODE)[: comparison.MAX_LANES]:
        try:
            bundle = live.recording(episode_id, owner)
        except MeritError as error:
            notice.keep(str(error))
        else:
            words = bundle.header.memory_version.partition("nothing written, ")[2]
            found.append((words, bundle.events))
    return Shown(recorded=tuple(found)) if found else None


def draw(shown: Shown, database: Database | None, model: object = None) -> None:
    """The comparison so far; redrawn by itself while it runs."""
    state = shown.job.state if shown.job is not None else JobState.FINISHED
    st.fragment(_draw, run_every=None if state.ended else _TICK_S)(shown, database, model, state)


def _draw(shown: Shown, database: Database | None, model: object, drawn: JobState) -> None:
    job = shown.job
    now = job.state if job is not None else JobState.FINISHED
    if now.ended is not drawn.ended:
        st.rerun()
    lanes = shown.lanes()
    ids = [lane.story.started.episode_id for lane in lanes if lane.story.started]
    if ids and st.query_params.get_all(Param.EPISODE) != ids:
        st.query_params[Param.EPISODE] = ids
    _waiting(job, now, model)
    failure = job.events[-1] if job is not None and job.events and isinstance(job.events[-1], Failed) else None
    if failure is not None:
        notice.say(failure.reason)
    if not any(lane.story.started for lane in lanes):
        return
    ended = now.ended
    _grid([_head(lane, ended) for lane in lanes], "Columns")
    for lane in lanes[1:]:
        _told(lanes[0], lane, ended)
    for iteration in sorted({step.iteration for lane in lanes for step in lane.story.steps}):
        _step(lanes, iteration, ended, database)
    for lane in lanes:
        chaincard.draw(lane.story, lane.letter)


def _waiting(job: Job | None, now: JobState, model: object) -> None:
    if job is None or now.ended:
        return
    ahead = job.place(model)
    if not job.events:
        said = "Waiting for the model. The comparison begins as soon as it is there."
    elif job.cancelling:
        said = "○ Stopping: the model finishes the token it is at."
    else:
        said = f"◌ The model answers one prompt at a time{f': {ahead} before you' if ahead else ''}."
    st.html(f'<p class="m-soft" role="status">{said}</p>')


def _grid(cells: list[str], name: str) -> None:
    inside = "".join(f'<section class="m-lane">{cell}</section>' for cell in cells)
    st.html(
        f'<div class="m-lanes" style="--lanes:{len(cells)}" role="group" aria-label="{escape(name)}">{inside}</div>'
    )


def _head(lane: Lived, ended: bool) -> str:
    started, cost = lane.story.started, lane.totals
    otherwise = f'<p class="m-different">{escape(lane.words)}</p>' if lane.words else ""
    place = f"question {started.position:,}" if started else ""
    return (
        f'<header><b class="m-letter">{lane.letter}</b><b>{escape(lane.title)}</b></header>{otherwise}'
        f'<p>{_end(lane.story, ended)}</p><p class="m-note" title="Embedding and searching memory are not in it.">'
        f"{count(cost.calls, 'call')} · {cost.prompt_tokens:,} + {cost.output_tokens:,} tokens · "
        f"{seconds(cost.answering_s)} answering, {seconds(cost.running_s)} running · {place}</p>"
    )


def _end(story: Story, ended: bool) -> str:
    last = story.end
    if isinstance(last, EpisodeFinalised):
        how = "at the first answer" if last.repairs == 0 else f"after {count(last.repairs, 'repair')}"
        return f"{_sign(theme.OUTCOMES[last.outcome])} {how}"
    if isinstance(last, Failed):
        return f"{_sign(theme.FAILED)} {escape(last.reason)}"
    if last is not None or ended:
        return _sign(theme.STOPPED)
    return f"{_sign(theme.WORKING)} {escape(story.last.doing() if story.last else 'Waiting')} …"


def _sign(sign: theme.Sign) -> str:
    return f'<b class="m-{sign.tone.name}">{sign.mark} {sign.word}</b>'


def _told(first: Lived, other: Lived, ended: bool) -> None:
    """In words: where the other lane parts from the first, and what that came to."""
    found = parting(first.story, other.story)
    names = f"<b>{first.letter} and {other.letter}</b>"
    if found is None:
        if ended and first.story.end is not None and other.story.end is not None:
            st.html(f'<p class="m-told">{names} are alike, prompt by prompt and answer by answer.</p>')
        return
    where = "the first answer" if found.iteration == 0 else f"repair {found.iteration}"
    parts = [*_recall(first, found.here, found.recalled_here), *_recall(other, found.there, found.recalled_there)]
    if found.here is None or found.there is None:
        parts.append(f"{first.letter if found.there is None else other.letter} goes on while the other has ended")
    elif comparison.sql_of(found.here) == comparison.sql_of(found.there):
        parts.append("the SQL is the same all the same")
    else:
        change = sql.short(found.change).rstrip(".")
        parts.append(f"in the SQL from {first.letter} to {other.letter}: {escape(change)}")
    if found.here and found.there and found.here.judged and found.there.judged:
        one, two = found.here.judged.outcome, found.there.judged.outcome
        if one is not two:
            parts.append(f"{_sign(theme.OUTCOMES[one])} becomes {_sign(theme.OUTCOMES[two])}")
    flip = ""
    if flipped(first.story, other.story):
        ends = ", ".join(f"{lane.letter} {_end(lane.story, True)}" for lane in (first, other))
        flip = f" <b>The end flips:</b> {ends}."
    elif first.story.end is not None and other.story.end is not None:
        flip = " Both come to the same end." if first.story.solved and other.story.solved else ""
    st.html(f'<p class="m-told">{names} part at {where}: {"; ".join(parts) or "their prompts differ"}.{flip}</p>')


def _recall(lane: Lived, step: Step | None, only: tuple[str, ...]) -> list[str]:
    if not only or step is None or step.retrieved is None:
        return []
    retrieval = step.retrieved.retrieval
    chosen = {entry.id: entry for entry in (*retrieval.positive, *retrieval.negative)}
    named = ", ".join(
        f"{theme.POLARITIES[chosen[id].polarity].mark} {escape(memory.title(chosen[id]))}" for id in only[:3]
    )
    return [f"only {lane.letter} recalls {named}{' and more' if len(only) > 3 else ''}"]


def _step(lanes: tuple[Lived, ...], iteration: int, ended: bool, database: Database | None) -> None:
    name = "First answer" if iteration == 0 else f"Repair {iteration}"
    number = steps.NUMBERS[iteration] if iteration < len(steps.NUMBERS) else f"({iteration + 1})"
    st.html(f'<h3 class="m-head m-step">{number} {name}</h3>')
    found = [next((s for s in lane.story.steps if s.iteration == iteration), None) for lane in lanes]
    first = found[0]
    cells = [
        _cell(lane, step, first if lane is not lanes[0] else None, ended)
        for lane, step in zip(lanes, found, strict=True)
    ]
    _grid(cells, name)
    apart = [
        (lane.letter, step)
        for lane, step in zip(lanes[1:], found[1:], strict=True)
        if first and first.executed and step and step.executed and comparison.sql_of(first) != comparison.sql_of(step)
    ]
    if first is not None and apart:
        ids = "-".join(lane.story.started.episode_id[:8] for lane in lanes if lane.story.started)
        box = st.expander("Rows and text that differ", key=f"apart-{ids}-{iteration}", on_change="rerun")
        if box.open:
            with box:
                for tab, (letter, step) in zip(
                    st.tabs([f"{lanes[0].letter} and {letter}" for letter, _ in apart], key=f"pairs-{ids}-{iteration}"),
                    apart,
                    strict=True,
                ):
                    with tab:
                        _pair(lanes[0].letter, first, letter, step, database, f"{ids}-{iteration}-{letter}")


def _cell(lane: Lived, step: Step | None, first: Step | None, ended: bool) -> str:
    letter = f'<b class="m-letter">{lane.letter}</b>'
    if step is None:
        over = lane.story.end is not None or ended
        return f'<header>{letter}<span class="m-soft">{"has ended" if over else "waits for the others"}</span></header>'
    sign = steps.sign(step, ended or lane.story.end is not None, isinstance(lane.story.end, Failed))
    working = f" {step.doing()} …" if step.judged is None and not ended else ""
    marks = ""
    if step.retrieved is not None:
        chosen = [item for polarity in Polarity for item in memory.taken(step.retrieved.retrieval, polarity)]
        marks = "".join(memory.mark(item) for item in chosen) or '<span class="m-soft">nothing recalled</span>'
        marks = f'<div class="m-recalls">{marks}</div>'
    written = comparison.sql_of(step) or step.streamed
    query = f'<pre class="m-pre">{escape(written)}</pre>' if written else ""
    change = ""
    if first is not None and first.attempt is not None and step.attempt is not None:
        found = difference(first.attempt.sql, step.attempt.sql)
        said = sql.short(found) if first.attempt.sql != step.attempt.sql else "the same query"
        change = f'<p class="m-note">against A: {escape(said)}</p>'
    head = f"<header>{letter}{_sign(sign)}<span class='m-soft'>{working}</span></header>"
    return f"{head}{marks}{query}{_rows(step)}{change}"


def _rows(step: Step) -> str:
    done = step.executed
    if done is None:
        return ""
    if done.status is not Status.EXECUTED:
        return f'<p class="m-broken">{escape((done.error or str(done.status))[:400])}</p>'
    return f'<p class="m-soft">{count(done.row_count, "row")}{" or more" if done.truncated else ""}</p>'


def _pair(mine: str, first: Step, other: str, step: Step, database: Database | None, key: str) -> None:
    """Two steps beside each other: words, text, and the rows that only one of them has."""
    sql.change(comparison.sql_of(first), comparison.sql_of(step))
    here, there = _whole(first, database), _whole(step, database)
    found = row_difference(here, there)
    if here is None or there is None or found is None:
        st.caption("At least one of the two gave no rows, so there are none to compare.")
        return
    if found.note or found.same:
        st.caption(found.note or "The same rows.")
    for letter, rows, result, side in ((mine, found.here, here, "here"), (other, found.there, there, "there")):
        if rows:
            st.html(f'<h4 class="m-head">Only in {letter}: {count(len(rows), "row")}</h4>')
            part = Execution(Status.EXECUTED, result.columns, rows, None, result.elapsed_s)
            results.display(part, key=f"only-{side}-{key}", downloads=False)


def _whole(step: Step, database: Database | None) -> Execution | None:
    """The result with all its rows where the event holds only the first; those where it cannot be had again."""
    shown = step.execution
    if shown is None or step.executed is None or database is None or step.executed.row_count <= len(shown.rows):
        return shown
    again = database.execute(comparison.sql_of(step))
    return again if again.status is Status.EXECUTED else shown
