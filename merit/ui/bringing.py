"""Bring a file along: what may come, what a table file would become, the check, and what it found or refused.

A refusal is a sentence; the database chosen before stays chosen. A file is copied to its private place at once and
the uploader begins anew, so that its buffer is freed.

What this module does not know: how a file is checked and kept (``merit.database.uploads``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import IO, cast

import pandas as pd
import streamlit as st

from merit.database import conversion, uploads
from merit.database.conversion import COLUMN_TYPES, FileKind, TablePlan
from merit.database.uploads import Staged, Upload
from merit.errors import MeritError
from merit.settings import settings
from merit.ui import notice
from merit.ui.databases import size
from merit.ui.state import Key
from merit.ui.text import count, escape, visible

_DAYS = round(uploads.OWNER_EXPIRES_AFTER_S / 86_400)


def panel(owner: str) -> None:
    """The uploader in a fold of its own; a file that passed becomes the chosen database in the next run."""
    state = st.session_state
    turn = state.setdefault(Key.UPLOAD_TURN, 0)
    with st.expander("Bring your own database", icon=":material/upload_file:", key="bring"):
        most = settings().upload_limit_mb
        file = st.file_uploader(
            "A SQLite database (.sqlite, .db, .sqlite3), an SQL dump (.sql) or one table (.csv, .parquet)",
            key=f"{Key.UPLOAD}-{turn}",
            max_upload_size=most,
        )
        st.caption(
            f"At most {most} MB. It is copied, checked and only ever read. Only this browser sees it. It goes when you "
            f"remove it, or {_DAYS} days after your last visit, and what was remembered of it goes too."
        )
        if file is not None:
            _receive(owner, cast(IO[bytes], file), file.name)
        if Key.STAGED in state:
            _planned(*state[Key.STAGED])
        else:
            _said()


def _receive(owner: str, file: IO[bytes], name: str) -> None:
    """Copy the file; a database is taken in at once, a table is shown first. The page then begins anew."""
    state = st.session_state
    _drop_staged()
    try:
        with st.spinner("Checking the file"):
            staged = uploads.stage(owner, file, name)
            if staged.kind in (FileKind.CSV, FileKind.PARQUET):
                try:
                    state[Key.STAGED] = (staged, staged.preview())
                except BaseException:
                    uploads.discard(staged)
                    raise
            else:
                _taken(uploads.accept(staged))
    except MeritError as error:
        _say(False, f"{visible(name)} was not taken. {error} Nothing of it was kept, and nothing else has changed.")
    state[Key.UPLOAD_TURN] += 1
    st.rerun()


def _planned(staged: Staged, plan: TablePlan) -> None:
    """What a table file would become, names and types open to change; it does so when the person says so."""
    state = st.session_state
    st.html(
        f"<p>{escape(staged.title)} becomes the table {escape(plan.table)} with "
        f"{count(plan.rows, 'row')}. Nothing is made yet; names and types can be changed.</p>"
    )
    notice.listed(plan.notes)
    if staged.kind is FileKind.CSV:
        st.toggle(
            "The first line holds the names",
            plan.header,
            key=f"{Key.UPLOAD_HEADER}-{state[Key.UPLOAD_TURN]}-{plan.header}",
            on_change=_read_again,
            args=(staged, not plan.header),
        )
    columns = pd.DataFrame(
        {
            "In the file": [visible(column.heading) for column in plan.columns],
            "Column": [column.name for column in plan.columns],
            "Type": [column.type for column in plan.columns],
            "First values": [visible(" · ".join(column.examples)) for column in plan.columns],
        }
    )
    edited = st.data_editor(
        columns,
        hide_index=True,
        disabled=["In the file", "First values"],
        column_config={"Type": st.column_config.SelectboxColumn(options=list(COLUMN_TYPES), required=True)},
        key=f"plan-{state[Key.UPLOAD_TURN]}-{plan.header}",
    )
    with st.container(horizontal=True, gap="small"):
        agreed = st.button("Make it a database", type="primary", key=Key.UPLOAD_AGREE)
        if st.button("Leave it", key=Key.UPLOAD_LEAVE):
            _drop_staged()
            st.rerun()
    if not agreed:
        return
    try:
        wanted = conversion.checked(_changed(plan, edited))
    except MeritError as error:
        notice.say(f"{error} The file is still here.")
        return
    try:
        with st.spinner("Making the database"):
            _taken(uploads.accept(staged, wanted))
    except MeritError as error:
        _say(False, f"{visible(staged.title)} was not taken. {error} Nothing of it was kept.")
    state.pop(Key.STAGED, None)
    st.rerun()


def _changed(plan: TablePlan, edited: pd.DataFrame) -> TablePlan:
    names, types = edited["Column"].fillna("").astype(str), edited["Type"].astype(str)
    columns = zip(plan.columns, names, types, strict=True)
    return replace(plan, columns=tuple(replace(column, name=name, type=kind) for column, name, kind in columns))


def _read_again(staged: Staged, header: bool) -> None:
    try:
        plan = conversion.preview_table(staged.path, staged.title, header)
    except MeritError as error:
        notice.keep(str(error))
    else:
        st.session_state[Key.STAGED] = (staged, plan)


def _drop_staged() -> None:
    state = st.session_state
    state.pop(Key.UPLOAD_SAID, None)
    staged = state.pop(Key.STAGED, None)
    if staged is not None:
        uploads.discard(staged[0])


def _taken(upload: Upload) -> None:
    report = upload.report
    st.session_state[Key.WANTED] = upload.database_id
    _say(
        True,
        f"{upload.title} was checked and is ready: {count(len(report.tables), 'table')}, {size(report.size)}. "
        "It is chosen below and in the list on Ask.",
        report.findings,
    )


def _say(ok: bool, sentence: str, findings: Iterable[str] = ()) -> None:
    """Keep what is to be said for the next run and all after it, until another file comes."""
    st.session_state[Key.UPLOAD_SAID] = (ok, sentence, tuple(findings))


def _said() -> None:
    ok, sentence, findings = st.session_state.get(Key.UPLOAD_SAID, (True, "", ()))
    if sentence:
        notice.say(sentence, urgent=not ok)
        notice.listed(findings)
