"""The databases people bring: one private folder per owner, one folder with a random name per upload.

    MERIT_HOME/uploads/<owner>/<id>/database.sqlite   what statements read, 0400
                                    upload.json       title, kind, time, report
                                    questions.json    the owner's own questions with gold, if any

An upload is received in a folder of its own, checked there, and appears by one rename: half an upload is never seen.
The name the client's file had is a title, text to show; no path is ever built from it. Another owner's upload and an
unknown one get the same answer.

What this module does not know: what memory an upload left (``merit.live`` removes both), who an owner is.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from merit.database import own_questions, samples
from merit.database.conversion import FileKind, TablePlan, convert, kind_of, preview_table
from merit.database.database import Database
from merit.database.upload import Report, check_upload
from merit.errors import BadInput
from merit.settings import settings

if TYPE_CHECKING:
    from merit.episode import Question

OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
ID = re.compile(r"[0-9a-f]{32}")
CHUNK_BYTES = 1 << 20
MOST_UPLOADS = 20
OWNER_EXPIRES_AFTER_S = 7 * 86_400.0
"""Seconds after which an owner who looked at none of their uploads counts as gone."""
STAGING_EXPIRES_AFTER_S = 3_600.0
UNKNOWN = "This database is not on this machine, or it is not yours."
_INCOMING, _OUTGOING = ".incoming-", ".outgoing-"
_DATABASE, _FACTS, _QUESTIONS, _SEEN = "database.sqlite", "upload.json", "questions.json", ".seen"
_LONGEST_TITLE = 120
_placing = threading.Lock()
"""Held from choosing a free name for prompts until it is taken."""


@dataclass(frozen=True)
class Upload:
    """One database of an owner. ``title`` is the client's name for it: untrusted text, to show as text. ``path`` is
    the SQLite file, ``database_id`` the name in prompts and memory (unique for the owner), ``kind`` what was sent
    (sqlite, sql, csv, parquet), ``created_at`` ISO 8601 in UTC."""

    id: str
    title: str
    path: Path
    report: Report
    created_at: str
    kind: str
    database_id: str


@dataclass(frozen=True)
class Staged:
    """A received file that is no upload yet, so that a table can be looked at first (``preview_table(path)``).

    It goes away by itself after an hour. ``size`` in bytes."""

    owner: str
    title: str
    path: Path
    kind: FileKind
    size: int

    def preview(self) -> TablePlan:
        """What a CSV or Parquet file would become, its table named after the file."""
        return preview_table(self.path, name=self.title)


def add(owner: str, source: bytes | IO[bytes], client_name: str, plan: TablePlan | None = None) -> Upload:
    """Receive a file and take it in: :func:`stage`, then :func:`accept`."""
    return accept(stage(owner, source, client_name), plan)


def stage(owner: str, source: bytes | IO[bytes], client_name: str) -> Staged:
    """Copy what ``source`` gives into a private file, a MiB at a time. ``BadInput`` with a sentence when it is larger
    than the limit, empty, of no known kind, or one too many."""
    home = _owner_folder(owner, make=True)
    _sweep(home)
    if len(_ids(home)) >= MOST_UPLOADS:
        raise BadInput(f"You have {MOST_UPLOADS} databases here, which is the most. Remove one first.")
    folder = home / f"{_INCOMING}{secrets.token_hex(16)}"
    folder.mkdir(mode=0o700)
    with _removed_on_error(folder):
        path = folder / "received"
        size = _receive(source, path)
        return Staged(owner, _title(client_name), path, kind_of(path, client_name), size)


def accept(staged: Staged, plan: TablePlan | None = None) -> Upload:
    """Turn a staged file into an upload: convert a dump or table (``plan``: as previewed, perhaps changed), check the
    database, give it its place. ``BadInput`` with the reason when it cannot be used; nothing is left then."""
    home = _owner_folder(staged.owner)
    folder = staged.path.parent
    if folder.parent != home or not staged.path.is_file():
        raise BadInput("This file was received too long ago. Please upload it again.")
    with _removed_on_error(folder):
        database = folder / _DATABASE
        if staged.kind is FileKind.SQLITE:
            staged.path.rename(database)
        else:
            convert(staged.path, database, staged.kind, plan, name=staged.title)
            staged.path.unlink()
        report = check_upload(database)
        if not report.ok:
            raise BadInput(report.reason)
        for leftover in folder.iterdir():
            if leftover != database:
                leftover.unlink()
        database.chmod(0o400)
        id = secrets.token_hex(16)
        with _placing:
            facts = {
                "title": staged.title,
                "kind": str(staged.kind),
                "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "database_id": _free_id(staged.owner, staged.title),
                "report": asdict(report),
            }
            _write(folder / _FACTS, json.dumps(facts).encode("ascii"))
            folder.rename(home / id)
    return get(staged.owner, id)


def discard(staged: Staged) -> None:
    """Remove a staged file that was not taken in."""
    if staged.path.parent.parent == _owner_folder(staged.owner):
        shutil.rmtree(staged.path.parent, ignore_errors=True)


def list_of(owner: str) -> list[Upload]:
    """The uploads of ``owner``, newest first; being asked for keeps an owner from expiring."""
    home = _owner_folder(owner)
    _see(home)
    found = [upload for id in _ids(home) if (upload := _read(home / id)) is not None]
    return sorted(found, key=lambda upload: (upload.created_at, upload.id), reverse=True)


def get(owner: str, id: str) -> Upload:
    """One upload; ``BadInput``, always the same, for one that is not there or another's."""
    home = _owner_folder(owner)
    upload = _read(home / id) if ID.fullmatch(id) else None
    if upload is None:
        raise BadInput(UNKNOWN)
    _see(home)
    return upload


def remove(owner: str, id: str) -> Upload:
    """Remove an upload with all that lies beside it, and return what it was. Its memory: ``live.remove_upload``."""
    upload = get(owner, id)
    _vanish(upload.path.parent)
    return upload


def remove_owner(owner: str) -> None:
    """Remove everything that an owner brought."""
    home = _owner_folder(owner)
    if home.is_dir():
        _vanish(home)


def expire(now: float | None = None, forget: Callable[[str], None] | None = None) -> tuple[str, ...]:
    """Remove all that idle owners brought (``now``: seconds since the epoch); their names.

    ``forget`` is called first, with each owner, to remove the memory: should it fail, the folder stays and the next
    call tries both again."""
    now = time.time() if now is None else now
    gone = []
    _sweep(settings().uploads_dir, now)
    for home in sorted(settings().uploads_dir.glob("*")):
        if not OWNER.fullmatch(home.name) or home.is_symlink() or not home.is_dir():
            continue
        _sweep(home, now)
        seen = _last_seen(home)
        if seen is not None and now - seen > OWNER_EXPIRES_AFTER_S:
            if forget is not None:
                forget(home.name)
            _vanish(home)
            gone.append(home.name)
    return tuple(gone)


def set_questions(owner: str, id: str, source: bytes | Path) -> list[Question]:
    """Keep an owner's own questions for an upload, in place of earlier ones. ``BadInput`` naming every wrong line
    (see ``own_questions.load``); then the earlier ones stay."""
    upload = get(owner, id)
    records = own_questions.check(source, Database.open(upload.path, upload.database_id)).complete()
    fresh = upload.path.with_name(f"{_QUESTIONS}.{secrets.token_hex(8)}")
    _write(fresh, own_questions.to_json(records))
    fresh.replace(upload.path.with_name(_QUESTIONS))
    return [record.question for record in records]


def questions(owner: str, id: str) -> list[Question]:
    """The questions an owner brought for an upload, gold inside, in the order of the file."""
    return [record.question for record in records(owner, id)]


def records(owner: str, id: str) -> tuple[own_questions.OwnRecord, ...]:
    """The same with what is known of each, like ``samples.records``."""
    upload = get(owner, id)
    file = upload.path.with_name(_QUESTIONS)
    return own_questions.from_json(file.read_bytes(), upload.database_id) if file.is_file() else ()


def _owner_folder(owner: str, make: bool = False) -> Path:
    """The folder of an owner. The name comes from a cookie, so it may hold anything: only plain names get through."""
    if not OWNER.fullmatch(owner):
        raise BadInput("This browser has no valid key of its own yet. Reload the page.")
    home = settings().uploads_dir / owner
    if make:
        settings().uploads_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            home.mkdir(mode=0o700)
            (home / _SEEN).touch(0o600)
    if os.path.lexists(home) and not stat.S_ISDIR(home.lstat().st_mode):
        raise BadInput(UNKNOWN)
    return home


def _ids(home: Path) -> list[str]:
    return [entry.name for entry in home.glob("*") if ID.fullmatch(entry.name)]


def _read(folder: Path) -> Upload | None:
    """The upload in a folder; None where there is none, or where a link stands in its place."""
    database, facts = folder / _DATABASE, folder / _FACTS
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode) or not stat.S_ISREG(database.lstat().st_mode):
            return None
        told = json.loads(facts.read_bytes())
        report = told.pop("report")
        report |= {"tables": tuple(report["tables"]), "findings": tuple(report["findings"])}
        return Upload(id=folder.name, path=database, report=Report(**report), **told)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _receive(source: bytes | IO[bytes], path: Path) -> int:
    limit = settings().upload_limit_mb << 20
    too_large = f"The file is larger than {settings().upload_limit_mb} MB, the most this place takes."
    if isinstance(source, bytes) and len(source) > limit:
        raise BadInput(too_large)
    if shutil.disk_usage(path.parent).free < 2 * limit:
        raise BadInput("There is not enough room on this machine for another database. Try again later.")
    size = 0
    with _created(path) as file:
        if isinstance(source, bytes):
            file.write(source)
            return len(source)
        while chunk := source.read(CHUNK_BYTES):
            size += len(chunk)
            if size > limit:
                raise BadInput(too_large)
            file.write(chunk)
    return size


def _created(path: Path) -> IO[bytes]:
    """A new file, 0600, that was not there before, not even as a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _write(path: Path, data: bytes) -> None:
    with _created(path) as file:
        file.write(data)


def _title(client_name: str) -> str:
    """The client's name for its file as one short line: no folders, no control characters, no marks that turn text."""
    last = re.split(r"[/\\]", client_name)[-1]
    shown = "".join(char if char.isprintable() else " " for char in last)
    return " ".join(shown.split())[:_LONGEST_TITLE] or "database"


def _free_id(owner: str, title: str) -> str:
    """A name for prompts and memory made of the title: plain letters, unlike a sample's and the owner's others."""
    words = re.sub(r"[^a-z0-9]+", "_", title.rsplit(".", 1)[0].lower()).strip("_")[:40].strip("_")
    taken = {*samples.ids(), *(upload.database_id for upload in list_of(owner))}
    base = words or "database"
    numbered = (f"{base}_{number}" for number in range(2, MOST_UPLOADS + len(taken) + 3))
    return base if base not in taken else next(name for name in numbered if name not in taken)


def _see(home: Path) -> None:
    with suppress(OSError):
        os.utime(home / _SEEN)


def _last_seen(home: Path) -> float | None:
    """When the owner last looked, in seconds since the epoch; None for one who went meanwhile."""
    for path in (home / _SEEN, home):
        with suppress(OSError):
            return path.lstat().st_mtime
    return None


def _sweep(home: Path, now: float | None = None) -> None:
    """Remove what was received long ago and never taken in, and what a crash kept from vanishing."""
    now = time.time() if now is None else now
    for folder in home.glob(".*-*"):
        with suppress(FileNotFoundError):  # another upload's folder took its place or went meanwhile
            old = now - folder.lstat().st_mtime > STAGING_EXPIRES_AFTER_S
            if folder.name.startswith(_OUTGOING) or (folder.name.startswith(_INCOMING) and old):
                shutil.rmtree(folder, ignore_errors=True)


def _vanish(folder: Path) -> None:
    """Remove a folder: gone for everybody at once, then from the disk. One that went meanwhile is gone as well."""
    outgoing = folder.with_name(f"{_OUTGOING}{secrets.token_hex(16)}")
    with suppress(FileNotFoundError):
        folder.rename(outgoing)
        shutil.rmtree(outgoing, ignore_errors=True)


@contextmanager
def _removed_on_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise BadInput(f"The file could not be kept ({error.strerror}). Nothing was stored.") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
