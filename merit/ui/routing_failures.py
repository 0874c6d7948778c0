"""How the failures of real predictions route: a dataset and a file of predictions, the work, and what came of it.

The work runs in a thread of its own, found again after a reload; a person has at most one at a time.

What this module does not know: how answers are judged and named (``merit.routing.distribution``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from merit import jobs
from merit.diagnosis import RULES
from merit.errors import BadInput, MeritError
from merit.events import Cancelled, Event, Failed
from merit.jobs import Job
from merit.routing import labelled
from merit.routing.distribution import ANY_OTHER_MESSAGE, Distribution, Routed, distribution, route
from merit.routing.labelled import Failure
from merit.streams import Dataset, Predictions, load_dataset, read_predictions
from merit.ui import charts, notice, results, routing_validation, theme
from merit.ui.state import Key
from merit.ui.text import count, visible
from merit.waiting import Stopped

LARGEST_FILE_MB = 50
MOST_SHOWN = 1_000
_TICK_S = 1.0
_RUNNING = jobs.Registry()
"""Apart from the questions that are asked: one does not stand in the way of the other."""
_BUNDLED = "Embedded model on the samples"
_PUBLISHED = "Spider, published"


@dataclass
class Work:
    """One file on its way; ``done`` grows in the thread of the job."""

    name: str
    total: int
    notes: tuple[str, ...] = ()
    done: list[Routed] = field(default_factory=list)


def begin(owner: str, dataset: Dataset, predictions: Predictions, name: str) -> Job:
    """Run and judge every answer in the background."""
    work = Work(name, len(predictions.covered), dataset.notes)

    def source(cancel: threading.Event) -> Iterator[Event]:
        try:
            for routed in route(dataset, predictions, cancel):
                work.done.append(routed)
                if cancel.is_set():
                    raise Stopped
        except Stopped:
            yield Cancelled()

    try:
        return _RUNNING.start(owner, source, label=name, context=work)
    except BadInput:
        raise BadInput("A file of yours is still being routed. Wait for its end or stop it first.") from None


def panel(owner: str) -> None:
    """The inputs, the work while it runs, and the result beside what is known otherwise."""
    _inputs(owner)
    job = _RUNNING.latest(owner)
    if job is not None and not job.state.ended:
        st.fragment(_running, run_every=_TICK_S)(job)
        return
    found = _found(job)
    _bars(found)
    if found is not None and job is not None:
        _details(job.context, found)


def _inputs(owner: str) -> None:
    state = st.session_state
    turn = state.setdefault(Key.PREDICTIONS_TURN, 0)
    with st.expander("Route the failures of your own predictions", icon=":material/upload_file:", key="bring-answers"):
        st.text_input(
            "Dataset",
            value="samples",
            key=Key.DATASET,
            persist_state="session",
            help="“samples”, or on the machine that serves this page the folder of a dataset in Spider's or BIRD's "
            "layout, or the question file in it, such as spider/train_spider.json.",
        )
        file = st.file_uploader(
            "Predictions: JSON lines, a JSON list, or one SQL a line (.jsonl, .json, .sql, .txt)",
            key=f"{Key.PREDICTIONS}-{turn}",
            max_upload_size=LARGEST_FILE_MB,
            help="The SQL stands in a field such as predicted or sql; a question_id, an index, or db_id and question "
            "say what it answers. Without these there must be one line a question, in the order of the dataset.",
        )
        st.caption("Each answer is run, read-only, and judged by the dataset's own answer, which is never shown.")
        if file is not None:
            state[Key.PREDICTIONS_SAID] = _take(owner, str(state[Key.DATASET]), file.getvalue(), visible(file.name))
            state[Key.PREDICTIONS_TURN] += 1
            st.rerun()
        if said := state.get(Key.PREDICTIONS_SAID, ""):
            notice.say(said)


def _take(owner: str, place: str, data: bytes, name: str) -> str:
    """Begin with a file; the sentence that says why not, else ""."""
    if not place.strip():
        return "Say first which dataset the predictions are for."
    try:
        with st.spinner("Reading the file"):
            dataset = load_dataset(place.strip())
            predictions = read_predictions(data, dataset, name)
            begin(owner, dataset, predictions, name)
    except MeritError as error:
        return f"{name} was not taken. {error}"
    return ""


def _running(job: Job) -> None:
    work: Work = job.context
    if job.state.ended:
        st.rerun()
    done = len(work.done)
    st.progress(done / max(1, work.total), f"{visible(work.name)}: {done:,} of {count(work.total, 'answer')} judged")
    st.button("Stop", key=Key.PREDICTIONS_STOP, on_click=job.cancel, disabled=job.cancelling)


def _found(job: Job | None) -> Distribution | None:
    """What came of the last work, as far as it got; None where there is none."""
    if job is None:
        return None
    last = job.events[-1] if job.events else None
    if isinstance(last, Failed):
        notice.say(last.reason)
    elif isinstance(last, Cancelled):
        notice.say("It was stopped; this is how far it got.", urgent=False)
    with_empty = not st.session_state.get(Key.LEAVE_EMPTY, False)
    return distribution(tuple(job.context.done), with_empty=with_empty) if job.context.done else None


def _bars(found: Distribution | None) -> None:
    bundled = labelled.population(labelled.bundled())
    known = [(_BUNDLED, [failure.ruled for failure in bundled])]
    if found is not None:
        known.insert(0, ("Your predictions", list(found.types.elements())))
    st.html('<h3 class="m-head">How failures route</h3>')
    st.plotly_chart(charts.shares(known, theme.is_dark()), theme=None, key="routes", config={"displayModeBar": False})
    st.caption(
        f"{_BUNDLED}: {count(len(bundled), 'failure')} of 120 sample questions. {_PUBLISHED} (Qwen2.5-7B, 425 "
        "failures): 84.71% Result Mismatch, the other shares and those of BIRD are not available."
    )


def _details(work: Work, found: Distribution) -> None:
    name = work.name
    wrong = len(found.failures)
    judged = found.answers - found.not_judged
    right = f" ({found.correct / judged:.1%} of those that could be judged)" if judged else ""
    told = [
        f"{visible(name)}: {count(found.answers, 'answer')}, {found.correct:,} correct{right}, "
        f"{count(wrong, 'failure')}."
    ]
    if found.not_judged:
        told.append(
            f"{count(found.not_judged, 'answer')} could not be judged: the dataset's own answer fails or is missing."
        )
    notice.listed([*told, *work.notes])
    if found.empty:
        st.toggle(
            f"Leave out the {count(found.empty, 'empty answer')}", key=Key.LEAVE_EMPTY, persist_state="session",
            help="An empty answer is a failure that the rules name Unknown. Where a model was never asked, or its "
            "answer got lost, it says nothing about the model.",
        )  # fmt: skip
    if not wrong:
        return
    rules = [
        (rule.number, rule.condition, f"{theme.FAILURES[rule.failure_type].letters}  {rule.failure_type}",
         found.rules[rule.number], f"{found.rules[rule.number] / wrong:.1%}")
        for rule in RULES
        if found.rules[rule.number]
    ]  # fmt: skip
    st.dataframe(
        pd.DataFrame(rules, columns=["Rule", "When", "Label", "Failures", "Share"]), hide_index=True, height="content"
    )
    if found.unknown:
        known = "; ".join(f"“{visible(text)[:120]}” {times:,}×" for text, times in found.unknown.most_common(5))
        notice.listed([f"Messages that only rule {ANY_OTHER_MESSAGE} takes: {known}"])
    shown = found.failures[:MOST_SHOWN]
    rows = [(one.ruled, one.database_id, one.question, one.sql, one.message) for one in shown]
    st.dataframe(
        results.frame(("Label", "Database", "Question", "SQL", "Message"), rows), hide_index=True, key="routed-failures"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        if wrong > MOST_SHOWN:
            st.caption(f"The first {MOST_SHOWN:,} of {wrong:,}; the file holds all.")
        st.download_button(
            "Failures as CSV", lambda: labelled.to_csv(found.failures), "failures.csv", "text/csv",
            key="routed-csv", type="tertiary", icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        st.button(
            "Label these", key=Key.PREDICTIONS_LABEL, type="tertiary", on_click=_label, args=(name, found.failures)
        )


def _label(name: str, failures: tuple[Failure, ...]) -> None:
    routing_validation.choose((visible(name), failures))
    st.session_state[Key.ROUTING_TABS] = "Label"
