"""What goes with an upload: its file, the questions that came with it, what was remembered and recorded of it.

What this module does not know: streamlit, and where files lie (``merit.database.uploads``, ``merit.live``).
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from merit import jobs, live
from merit.database import uploads
from merit.errors import BadInput, MemoryUnavailable, MeritError
from merit.live import Request
from merit.models.loading import Loading
from merit.ui import asking, catalogue

log = logging.getLogger(__name__)

EXPIRE_EVERY_S = 600.0
_STOPS_WITHIN_S = 5.0
_ALL = 1_000_000
_expiry = threading.Lock()
_expired_at = float("-inf")


@dataclass(frozen=True)
class Belongings:
    """What there is of an upload beside its file. ``entries`` is None while the memory cannot be opened."""

    questions: int
    recordings: int
    entries: int | None


def belongings(id: str, owner: str, loading: Loading) -> Belongings:
    """Count what would go with the upload."""
    try:
        entries = asking.memory_of(loading, catalogue.stream(id, owner)).counts(databases=[id]).entries
    except MemoryUnavailable:
        entries = None
    return Belongings(len(catalogue.questions(id, owner)), _recordings(id, owner), entries)


def remove(id: str, owner: str, loading: Loading) -> None:
    """Remove an upload for good. Memory and recordings go first: if one of them cannot, the upload stays in the list
    and can be removed again."""
    upload = catalogue.find(id, owner).upload
    if upload is None:
        raise BadInput("A sample database cannot be removed.")
    _stop(id, owner)
    try:
        store = asking.memory_of(loading, catalogue.stream(id, owner))
    except MemoryUnavailable:
        if _recordings(id, owner):  # else nothing was asked of it, so nothing is remembered
            raise
        uploads.remove(owner, upload.id)
    else:
        live.remove_upload(owner, upload.id, store)
    asking.forget_opened()


def expire(loading: Loading) -> None:
    """Remove what idle owners left, with their memory, in the background and at most every ten minutes; not before the
    memory can be opened."""
    global _expired_at
    if loading.encoder is None or not _expiry.acquire(blocking=False):
        return
    due = time.monotonic() - _expired_at >= EXPIRE_EVERY_S
    _expired_at = time.monotonic() if due else _expired_at
    _expiry.release()
    if due:
        threading.Thread(target=_expire, args=(loading,), name="merit-expiry", daemon=True).start()


def _expire(loading: Loading) -> None:
    def forget(owner: str) -> None:
        asking.memory_of(loading, catalogue.private(owner)).delete_stream()
        for upload in uploads.list_of(owner):
            live.forget_recordings(owner, upload.database_id)

    try:
        uploads.expire(forget=forget)
    except (MeritError, OSError) as error:
        log.warning("Uploads of idle owners could not all be removed (%s); tried again later.", type(error).__name__)


def _stop(id: str, owner: str) -> None:
    running = jobs.latest(owner)
    if running is None or running.state.ended or not isinstance(running.context, Request):
        return
    if running.context.database.id == id:
        running.cancel()
        if not running.wait(_STOPS_WITHIN_S):
            raise BadInput("A question on this database is still being stopped. Try again in a moment.")


def _recordings(id: str, owner: str) -> int:
    return sum(summary.database_id == id for summary in live.history(owner, _ALL))
