"""Labelling on the page: one failure after the other, blind at first, and everything to take away as a file.

What this module does not know: what the labels are measured with (``routing_validation``).
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from merit.episode import FailureType
from merit.routing import labelled
from merit.routing.labelled import Failure
from merit.ui import diagnosis, sql, theme
from merit.ui.state import Key
from merit.ui.text import count, escape

GUIDE: dict[FailureType, str] = {
    FailureType.SYNTAX: "no valid SQLite: form, names that need quotes, functions of another SQL, counts of arguments",
    FailureType.EXECUTION: "it would change the data, or never come to an end",
    FailureType.SCHEMA_LINKING: "a table, column or join that is wrong, missing or made up",
    FailureType.FILTER_VALUE: "a condition, or a value in one, that is wrong, missing or too much",
    FailureType.AGGREGATION: "grouping, a count, sum or average that is wrong or stands where it may not",
    FailureType.RESULT_MISMATCH: "all of that is right, but not order, limit, DISTINCT or the columns given",
    FailureType.UNKNOWN: "there is no statement, or one cannot say",
}
"""What each label means when a statement is read, in the order in which one looks (assets/routing_validation)."""


def draw(found: Sequence[Failure]) -> None:
    """The failure whose turn it is, the seven labels to press, and the file."""
    state = st.session_state
    place = min(state.get(Key.LABEL_AT, _first_without(found)), len(found) - 1)
    state[Key.LABEL_AT] = place
    failure = found[place]
    done = sum(one.own_label is not None for one in found)
    left, right = st.columns([7, 4], gap="large")
    with left:
        with st.container(horizontal=True, vertical_alignment="center"):
            told = f"{place + 1:,} of {len(found):,}, {done:,} labelled by you"
            st.html(f'<span class="m-soft" role="status">{told}</span>', width="content")
            st.button("Back", key="label-back", on_click=_go, args=(place - 1,), disabled=place == 0, type="tertiary")
            st.button("Skip", key="label-skip", on_click=_go, args=(place + 1,), disabled=place + 1 == len(found),
                      type="tertiary")  # fmt: skip
        hint = f'<p class="m-soft">Hint: {escape(failure.evidence)}</p>' if failure.evidence else ""
        where = f'<p class="m-soft">{escape(failure.database_id)}</p>' if failure.database_id else ""
        st.html(f'<p class="m-question"><b>{escape(failure.question or "(no question)")}</b></p>{hint}{where}')
        sql.query(failure.sql)
        _revealed(failure)
    with right:
        st.html("<b>What is wrong in it first?</b>")
        for kind, meaning in GUIDE.items():
            chosen = failure.own_label is kind
            st.button(
                f"{theme.FAILURES[kind].letters}  {kind}{'  ✓' if chosen else ''}",
                key=f"label-{kind}", width="stretch", help=meaning, on_click=_label,
                args=(failure.id, kind, min(place + 1, len(found) - 1)),
                type="primary" if chosen else "secondary",
            )  # fmt: skip
        st.download_button(
            "All labels as CSV", lambda: labelled.to_csv(found), "labelled_failures.csv", "text/csv",
            key="own-labels-csv", icon=":material/download:", on_click="ignore", width="stretch",
            help=f"The whole set with the column own_label; {count(done, 'label')} of yours. Bring it here again to go "
            "on.",
        )  # fmt: skip


def _revealed(failure: Failure) -> None:
    """What would bias a labeller, only when asked for."""
    if not st.toggle(
        "Show what the database said and how others label it", key=Key.LABEL_REVEAL, persist_state="session"
    ):
        return
    sign = theme.OUTCOMES[failure.status]
    others = "".join(
        f"<li>{word}: {diagnosis.chip(kind) if kind else 'none'}</li>"
        for word, kind in (
            ("the rules", failure.ruled),
            ("first label", failure.label),
            ("second label", failure.second_label),
        )
    )
    st.html(
        f'<p><b class="m-{sign.tone.name}">{sign.mark} {sign.word}</b> {escape(failure.message)}</p>'
        f'<ul class="m-words">{others}</ul>'
    )


def _first_without(found: Sequence[Failure]) -> int:
    return next((place for place, one in enumerate(found) if one.own_label is None), 0)


def _go(place: int) -> None:
    st.session_state[Key.LABEL_AT] = place


def _label(id: str, kind: FailureType, then: int) -> None:
    state = st.session_state
    state[Key.OWN_LABELS] = {**state.get(Key.OWN_LABELS, {}), id: kind}
    state[Key.LABEL_AT] = then
