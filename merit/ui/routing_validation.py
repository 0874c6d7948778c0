"""The rules measured on labelled failures: which set, whose labels, the figures beside the published ones.

What this module does not know: how figures come about (``merit.routing.validation``), and how one labels
(``routing_labelling``).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from merit.episode import FailureType
from merit.errors import MeritError
from merit.routing import labelled
from merit.routing.labelled import COLUMNS, LARGEST_FILE, MOST_ROWS, REQUIRED, Failure
from merit.routing.validation import PUBLISHED, Agreement, Reference, Validation, agreement, references, validate
from merit.ui import charts, notice, theme
from merit.ui.state import Key
from merit.ui.text import count, visible

BUNDLED = "The set that comes along"


def failures() -> tuple[Failure, ...]:
    """The failures that are looked at, with the labels that were given on this page."""
    state = st.session_state
    _, found = state.get(Key.LABELLED) or (BUNDLED, labelled.bundled())
    own: dict[str, FailureType | None] = state.get(Key.OWN_LABELS, {})
    return tuple(labelled.labelled(one, own[one.id]) if one.id in own else one for one in found)


def name() -> str:
    """What the set is called."""
    title: str = (st.session_state.get(Key.LABELLED) or (BUNDLED, ()))[0]
    return title


def upload() -> None:
    """A file of one's own, in place of the set that comes along; a refusal says what to mend and changes nothing."""
    state = st.session_state
    turn = state.setdefault(Key.LABELLED_TURN, 0)
    with st.expander("Bring labelled failures of your own", icon=":material/upload_file:", key="bring-labelled"):
        st.caption(
            f"A CSV file in UTF-8 with a line of column names, at most {MOST_ROWS:,} rows. Without labels it can be "
            "labelled here. It stays in this browser session only."
        )
        st.dataframe(
            pd.DataFrame(
                [(one, "yes" if one in REQUIRED else "", meaning) for one, meaning in COLUMNS.items()],
                columns=["Column", "Needed", "What it says"],
            ),
            hide_index=True,
            height="content",
        )
        file = st.file_uploader(
            "Labelled failures (.csv)", key=f"{Key.LABELLED_FILE}-{turn}", max_upload_size=LARGEST_FILE >> 20
        )
        if file is not None:
            state[Key.LABELLED_SAID] = _take(file.getvalue(), visible(file.name))
            state[Key.LABELLED_TURN] += 1
            st.rerun()
        good, sentences = state.get(Key.LABELLED_SAID, (True, ()))
        if sentences:
            notice.say(sentences[0], urgent=not good)
            notice.listed(sentences[1:])
        if Key.LABELLED in state and st.button("Back to the set that comes along", key=Key.LABELLED_BACK):
            choose(None)
            st.rerun()


def _take(data: bytes, file: str) -> tuple[bool, tuple[str, ...]]:
    try:
        found = labelled.read(data)
    except MeritError as error:
        return False, (f"{file} was not taken, and the figures below are what they were. {error}",)
    if found.problems:
        head = f"{file} was not taken, and the figures below are what they were. Mend these and bring it again:"
        more = (f"And {count(found.more, 'more line')}.",) if found.more else ()
        return False, (head, *(f"Line {one.line}: {one.sentence}" for one in found.problems), *more)
    choose((file, found.failures))
    return True, (f"{file}: {count(len(found.failures), 'failure')} read.",)


def choose(chosen: tuple[str, tuple[Failure, ...]] | None) -> None:
    """Look at another set, by name, or with None at the one that comes along."""
    state = st.session_state
    for key in (Key.LABELLED, Key.OWN_LABELS, Key.LABEL_AT, Key.LABELLED_SAID, Key.REFERENCE):
        state.pop(key, None)
    if chosen is not None:
        state[Key.LABELLED] = chosen


def draw(found: Sequence[Failure]) -> None:
    """The figures of a set against the labels that are chosen."""
    known = references(found)
    if not known:
        notice.say("None of these failures has a label yet. Label some on the tab beside this one.", urgent=False)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if st.session_state.get(Key.REFERENCE) not in known:
            st.session_state[Key.REFERENCE] = known[0]
        picked = st.selectbox(
            "Measured against", known, key=Key.REFERENCE, persist_state="session", format_func=str, width=320,
            help="The rules are compared with these labels. How the labels of the set that comes along came about is "
            "told in its README (assets/routing_validation).",
        )  # fmt: skip
        st.download_button(
            "This set as CSV", lambda: labelled.to_csv(found), "labelled_failures.csv", "text/csv",
            key="labelled-csv", type="tertiary", icon=":material/download:", on_click="ignore",
        )  # fmt: skip
    figures = validate(found, Reference(picked))
    st.dataframe(_table(figures, name()), hide_index=True, height="content", key="validation-figures")
    st.caption(_notes(figures))
    _agreements(found)
    with st.container(key="measures"):
        _details(figures)


def _details(figures: Validation) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.html('<h3 class="m-head">Which label for which</h3><p class="m-note">Rows: the label taken for right. '
                "Columns: the label of the rules. The diagonal is where both are the same.</p>")  # fmt: skip
        st.plotly_chart(
            charts.confusion(figures.confusion, theme.is_dark()), theme=None, key="confusion",
            config={"displayModeBar": False},
        )  # fmt: skip
    with right:
        st.html(
            '<h3 class="m-head">Type by type</h3><p class="m-note">Shares of the labelled failures. Precision: how '
            "often the rules are right when they give this label. Recall: how much of it they find.</p>"
        )
        st.dataframe(_types(figures), hide_index=True, height="content", key="validation-types")


def _percent(value: float | None) -> str:
    return "not available" if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "not available" if value is None else f"{value:.3f}"


def _table(figures: Validation, title: str) -> pd.DataFrame:
    mine = (
        visible(title),
        f"{figures.labelled:,}",
        _percent(figures.accuracy),
        _percent(figures.weighted_accuracy),
        _number(figures.macro_f1),
        _percent(figures.result_mismatch),
    )
    published = [
        (
            one.benchmark,
            f"{one.failures:,}",
            "not available",
            f"near {one.weighted_accuracy:.0%}",
            _number(one.macro_f1),
            "not available" if one.result_mismatch is None else f"{one.result_mismatch:.2%}",
        )
        for one in PUBLISHED
    ]
    names = ["", "Failures", "Accuracy", "Population-weighted", "Macro-F1", "Result Mismatch among all"]
    return pd.DataFrame([mine, *published], columns=names)


def _notes(figures: Validation) -> str:
    between = figures.accuracy_interval
    interval = f"95 % interval of the accuracy: {between[0]:.1%} to {between[1]:.1%}. " if between else ""
    return (
        f"{interval}Population-weighted: the accuracy within each label of the rules, weighted by that label's share "
        f"among {count(sum(figures.population.values()), 'failure')} of the model (of all, where none is marked so). "
        "The published figures are for other failures, of another model, and called provisional by their authors; they "
        "stand here for orientation, not for comparison."
    )


def _agreements(found: Sequence[Failure]) -> None:
    pairs = (
        (Reference.FIRST, Reference.SECOND),
        (Reference.OWN, Reference.FIRST),
        (Reference.OWN, Reference.SECOND),
    )
    notice.listed(_agreed(one, two, both) for one, two in pairs if (both := agreement(found, one, two)) is not None)


def _agreed(one: Reference, two: Reference, found: Agreement) -> str:
    kappa = "not defined" if found.kappa is None else f"{found.kappa:.2f}"
    return (
        f"{str(one).capitalize()} and {two} agree on {found.plain:.1%} of {count(found.count, 'failure')}; Cohen's "
        f"kappa {kappa} (agreement beyond chance, 1 at most)."
    )


def _types(figures: Validation) -> pd.DataFrame:
    total = figures.labelled
    rows = [
        (
            f"{theme.FAILURES[score.failure_type].letters}  {score.failure_type}",
            f"{figures.labels[score.failure_type] / total:.1%}",
            f"{figures.ruled[score.failure_type] / total:.1%}",
            f"{score.precision:.1%}",
            f"{score.recall:.1%}",
            f"{score.f1:.3f}",
        )
        for score in figures.scores
    ]
    return pd.DataFrame(rows, columns=["Type", "By the labels", "By the rules", "Precision", "Recall", "F1"])
