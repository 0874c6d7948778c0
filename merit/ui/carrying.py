"""The memory as a file: taken along, brought back, checked line by line before anything of it is taken in.

Checking and computing vectors can take minutes, so both run in a thread of their own, found again after a reload; a
person has at most one such work at a time.

What this module does not know: the form of the files (``merit.memory.transfer``, ``merit.memory.backup``).
"""

from __future__ import annotations

import io
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

import streamlit as st

from merit import jobs
from merit.database import uploads
from merit.errors import BadInput, MeritError
from merit.events import Cancelled, Event, Failed
from merit.jobs import Job
from merit.memory import backup, transfer
from merit.memory.backup import Backup
from merit.memory.facts import Observed
from merit.memory.store import MemoryStore
from merit.models.loading import Loading
from merit.settings import settings
from merit.ui import asking, catalogue, notice
from merit.ui.state import Key
from merit.ui.text import count, escape, label, visible
from merit.waiting import Stopped

SHARED, PRIVATE = "shared", "private"
_TICK_S = 0.5
_RUNNING = jobs.Registry()
"""Apart from the questions that are asked: one does not stand in the way of the other."""
_WHOSE = {SHARED: "the shared memory", PRIVATE: "your private memory"}


@dataclass
class Work:
    """A file on its way: what is being done, how far, what was found in it, and what came of it."""

    name: str
    doing: str = "Checking every line"
    done: int = 0
    total: int = 0
    found: list[Observed] | Backup | None = None
    said: str = ""


def stores(owner: str, loading: Loading) -> dict[str, MemoryStore]:
    """The memories that this owner may see, by the names they have in a backup."""
    found = {SHARED: asking.memory_of(loading, catalogue.SHARED)}
    if uploads.list_of(owner):
        found[PRIVATE] = asking.memory_of(loading, catalogue.private(owner))
    return found


def panel(store: MemoryStore, owner: str, loading: Loading) -> None:
    """Downloads on the left; on the right uploads, or the work that one of them has become."""
    left, right = st.columns(2, gap="large")
    with left:
        _take_along(store, owner, loading)
    with right:
        st.html('<h3 class="m-head">Bring back</h3>')
        job = _RUNNING.latest(owner)
        if job is not None and not job.state.ended:
            st.fragment(_running, run_every=_TICK_S)(job)
        elif job is not None and job.context.found is not None and not job.events:
            _agree(job.context, store, owner, loading)
        else:
            _bring(owner)
            _said(job)


def _take_along(store: MemoryStore, owner: str, loading: Loading) -> None:
    st.html('<h3 class="m-head">Take along</h3>')
    today = datetime.now(UTC).date().isoformat()
    st.download_button(
        "Export the entries",
        partial(exported, store),
        f"memory-{today}.zip",
        "application/zip",
        key=Key.EXPORT,
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption("positive.jsonl and negative.jsonl, one merged entry a line, as they are seen now.")
    st.download_button(
        "Back up everything",
        lambda: backup.packed(stores(owner, loading)),
        f"memory-backup-{today}.zip",
        "application/zip",
        key=Key.BACKUP,
        icon=":material/inventory_2:",
        on_click="ignore",
    )
    names = " and ".join(_WHOSE[name] for name in stores(owner, loading))
    st.caption(f"One file with {names}: entries, tagged states, and the marks of what was forgotten.")


def exported(store: MemoryStore) -> bytes:
    """A .zip with the two files of an export."""
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="merit-export-") as folder:
        store.export_jsonl(folder)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(Path(folder).iterdir()):
                archive.write(file, file.name)
    return packed.getvalue()


def _bring(owner: str) -> None:
    state = st.session_state
    turn, most = state.setdefault(Key.BRING_TURN, 0), settings().upload_limit_mb
    files = st.file_uploader(
        "An export (.jsonl or .zip) or a backup (.zip)",
        key=f"{Key.BRING}-{turn}",
        max_upload_size=most,
        accept_multiple_files=True,
        help="Every line is checked first; then you see what there is and decide. Nothing is ever half taken in.",
    )
    if files:
        try:
            check(owner, [(visible(file.name), file) for file in files])
            state.pop(Key.BRING_SAID, None)
        except MeritError as error:
            state[Key.BRING_SAID] = str(error)
        state[Key.BRING_TURN] += 1
        st.rerun()
    if sentence := state.get(Key.BRING_SAID, ""):
        notice.say(sentence)


def check(owner: str, files: Sequence[tuple[str, IO[bytes]]]) -> Job:
    """Copy the files to a private place and read them in the background."""
    work = Work(", ".join(name for name, _ in files))
    folder = Path(tempfile.mkdtemp(prefix="merit-bring-"))
    paths = [(name, folder / str(number)) for number, (name, _) in enumerate(files)]
    try:
        for (_, file), (_, path) in zip(files, paths, strict=True):
            with path.open("wb") as copy:
                shutil.copyfileobj(file, copy)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise BadInput(f"{work.name} could not be kept for checking: {error.strerror}. Nothing was taken in.") from None

    def source(cancel: threading.Event) -> Iterator[Event]:
        try:
            work.found = _read(paths)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if cancel.is_set():
            yield Cancelled()

    return _start(owner, source, work)


def _read(paths: Sequence[tuple[str, Path]]) -> list[Observed] | Backup:
    if len(paths) == 1 and zipfile.is_zipfile(paths[0][1]):
        name, path = paths[0]
        if transfer.MANIFEST in transfer.members_of(path, name):
            return backup.load(path, name)
    return transfer.read(source for name, path in paths for source in transfer.sources(path, name))


def take(owner: str, work: Work, target: MemoryStore, into: Mapping[str, MemoryStore]) -> Job:
    """Take in what was found: entries into ``target``, a backup into each of its memories."""
    found, again = work.found, Work(work.name, "Computing vectors")

    def source(cancel: threading.Event) -> Iterator[Event]:
        def progress(done: int, total: int) -> None:
            again.done, again.total = done, total
            if cancel.is_set():
                raise Stopped

        try:
            again.said = _taken(found, target, into, progress)
        except Stopped:
            yield Cancelled()

    job = _start(owner, source, again)
    work.found = None
    return job


def _taken(
    found: list[Observed] | Backup | None,
    target: MemoryStore,
    into: Mapping[str, MemoryStore],
    progress: Callable[[int, int], None],
) -> str:
    if not isinstance(found, Backup):
        wanted = found or []
        new = target.take_in(wanted, progress)
        return (
            f"{count(new, 'observation')} taken in, seen from the next question on; {len(wanted) - new:,} were here "
            "already or are forgotten here."
        )
    said = []
    for name, facts in found.streams.items():
        if name in into:
            when = found.manifest.created_at[:16].replace("T", " ")
            done = into[name].restore_backup(facts, f"before restoring the backup of {when}", progress)
            forgotten = f", {done.left_out:,} left out, as they were forgotten here" if done.left_out else ""
            back = f" The state before is tagged “{done.before}”." if done.before else ""
            said.append(f"{_WHOSE[name].capitalize()}: {count(done.observations, 'observation')}{forgotten}.{back}")
    return "Restored. " + " ".join(said)


def _start(owner: str, source: Callable[[threading.Event], Iterator[Event]], work: Work) -> Job:
    try:
        return _RUNNING.start(owner, source, label=work.name, context=work)
    except BadInput:
        raise BadInput("A file of yours is still being taken in. Wait for its end or stop it first.") from None


def _running(job: Job) -> None:
    work: Work = job.context
    if job.state.ended:
        st.rerun()
    share = f": {work.done:,} of {work.total:,}" if work.total else ""
    st.progress(work.done / max(1, work.total), f"{label(work.name)}. {work.doing}{share}")
    st.button("Stop", key=Key.BRING_STOP, on_click=job.cancel, disabled=job.cancelling)


def _agree(work: Work, store: MemoryStore, owner: str, loading: Loading) -> None:
    """What was found, and the person's yes or no."""
    into = stores(owner, loading)
    facts, verb, some = _contents(work.found, store, into)
    st.html(f'<p role="status">{escape(work.name)}: every line was checked. This would happen:</p>')
    notice.listed(facts)
    shared = store.stream == catalogue.SHARED or isinstance(work.found, Backup)
    sure = not shared or st.checkbox("The shared memory changes for everybody who uses this server", key=Key.BRING_SURE)
    with st.container(horizontal=True, gap="small"):
        if st.button(verb, type="primary", key=Key.BRING_AGREE, disabled=not (sure and some)):
            try:
                take(owner, work, store, into)
            except MeritError as error:
                notice.say(str(error))
                return
            st.rerun()
        if st.button("Leave it", key=Key.BRING_LEAVE):
            work.found = None
            st.rerun()


def _contents(found: Any, store: MemoryStore, into: Mapping[str, MemoryStore]) -> tuple[list[str], str, bool]:
    if isinstance(found, Backup):
        manifest = found.manifest
        facts = [f"a backup of {visible(manifest.created_at[:16].replace('T', ' '))} UTC becomes the memory again"]
        for name, observations in manifest.streams.items():
            whose = _WHOSE.get(name, visible(name))
            here = "" if name in into else ", which is left out: there is no such memory here"
            facts.append(f"{whose}: {count(observations, 'observation')}{here}")
        facts.append("what was learnt since is no longer seen; it gets a tag, so that you can go back to it")
        facts.append("what was forgotten here stays forgotten")
        return [*facts, *_encoders({manifest.encoder_id}, store)], "Restore it", True
    new = store.look(lambda index: sum(index.welcome(seen.entry.episode_id) for seen in found))
    entries = len({seen.entry.id for seen in found})
    facts = [
        f"{count(len(found), 'observation')} of {count(entries, 'entry', 'entries')} in the file",
        f"{count(new, 'observation')} would be new here and seen from the next question on",
    ]
    encoders = {seen.entry.encoder_id for seen in found} - {""}
    return [*facts, *_encoders(encoders, store)], f"Import {count(new, 'observation')}", new > 0


def _encoders(ids: set[str], store: MemoryStore) -> list[str]:
    others = sorted(ids - {store.encoder.id})
    if not others:
        return []
    return [f"it was written with the encoder {visible(others[0])}; vectors are computed anew with {store.encoder.id}"]


def _said(job: Job | None) -> None:
    if job is None:
        return
    last = job.events[-1] if job.events else None
    if isinstance(last, Failed):
        notice.say(last.reason)
    elif isinstance(last, Cancelled):
        notice.say("It was stopped. Nothing was taken in.", urgent=False)
    elif job.context.said:
        notice.say(job.context.said, urgent=False)
