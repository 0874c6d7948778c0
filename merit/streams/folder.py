"""The folder of one stream on disk: its settings, a trajectory a line, the trace of each, and who is writing.

A trajectory that is in ``trajectories.jsonl`` with its line end is finished; whatever a killed process left beyond
that is cut off when the folder is opened again. Traces are gzip members, one an episode, one a line when unpacked.

What this module does not know: what a trajectory means, and how a stream is run.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from merit import trace
from merit.errors import BadInput, MeritError
from merit.events import Event, Retrieved, TokenStreamed
from merit.streams.trajectory import Trajectory

FORMAT = 1
SETTINGS, TRAJECTORIES, TRACES, LOCK = "settings.json", "trajectories.jsonl", "traces.jsonl.gz", ".lock"
SHOWN_CANDIDATES = 10
"""Most candidates of a pool in a kept trace."""


class StreamFolder:
    """One stream being written; use as a context manager. ``BadInput`` where the folder is of other settings, of
    another version, or in use by another process."""

    def __init__(self, path: str | Path, settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.settings = dict(settings)
        self.trajectories: list[Trajectory] = []
        self._lock = FileLock(self.path / LOCK)
        self._end = 0
        self._trace_end = 0

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise BadInput(f"Another process is working in the run folder {self.path}. Wait for its end.") from None
        except OSError as error:
            raise MeritError(_cannot(self.path, error)) from None
        try:
            self._check()
            self._resume()
        except OSError as error:
            self._lock.release()
            raise MeritError(_cannot(self.path, error)) from None
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()

    def append(self, trajectory: Trajectory, events: Sequence[Event]) -> Trajectory:
        """Keep a finished question, whole or not at all; how it is kept. ``MeritError`` on a full disk."""
        kept = [trace.to_json(_shortened(event)) for event in events if not isinstance(event, TokenStreamed)]
        packed = gzip.compress(json.dumps(kept, ensure_ascii=True, allow_nan=False).encode("ascii") + b"\n", 5, mtime=0)
        whole = replace(trajectory, trace=(self._trace_end, len(packed)))
        try:
            _write(self.path / TRACES, self._trace_end, packed)
            line = whole.to_line().encode("ascii") + b"\n"
            _write(self.path / TRAJECTORIES, self._end, line)
        except OSError as error:
            raise MeritError(_cannot(self.path, error)) from None
        self._trace_end += len(packed)
        self._end += len(line)
        self.trajectories.append(whole)
        return whole

    def _check(self) -> None:
        file = self.path / SETTINGS
        if not file.exists():
            if (self.path / TRAJECTORIES).exists():
                raise BadInput(f"The folder {self.path} holds trajectories without settings. Choose another folder.")
            draft = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
            draft.write_text(json.dumps(self.settings, indent=1, ensure_ascii=True) + "\n", encoding="ascii")
            os.replace(draft, file)
            return
        found = read_settings(self.path)
        wanted = json.loads(json.dumps(self.settings))
        for version in ("format", "version"):
            if found.get(version) != wanted.get(version):
                raise BadInput(
                    f"The run folder {self.path} was made by another version of MERIT Explorer ({version} "
                    f"{found.get(version)}, here {wanted.get(version)}). Go on with that version, or choose another "
                    "folder."
                )
        if differing := list(_differences(found, wanted)):
            raise BadInput(
                f"The run folder {self.path} was made with other settings: {'; '.join(differing[:5])}. Choose another "
                "folder, or the same settings as before."
            )

    def _resume(self) -> None:
        """Read what is finished and cut off the rest."""
        file = self.path / TRAJECTORIES
        if not file.exists():
            return
        self.trajectories, self._end = _whole_lines(file)
        if self.trajectories and (last := self.trajectories[-1].trace):
            self._trace_end = sum(last)


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a run folder; ``BadInput`` where there are none."""
    try:
        settings = json.loads((path / SETTINGS).read_text(encoding="utf-8"))
    except OSError:
        raise BadInput(f"{path} is no run folder: it has no {SETTINGS}.") from None
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise BadInput(f"The {SETTINGS} of the run folder {path} cannot be read.")
    return settings


def read_trajectories(path: Path) -> list[Trajectory]:
    """The finished trajectories of a run folder, while it is written too."""
    file = path / TRAJECTORIES
    return _whole_lines(file)[0] if file.exists() else []


def read_events(path: Path, trajectory: Trajectory) -> tuple[Event, ...]:
    """The trace of one trajectory of a run folder."""
    if trajectory.trace is None:
        raise BadInput("This question was not asked, so there is no trace of it.")
    start, length = trajectory.trace
    try:
        with (path / TRACES).open("rb") as file:
            file.seek(start)
            packed = gzip.decompress(file.read(length))
        return tuple(trace.from_json(event) for event in json.loads(packed))
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"The trace of question {trajectory.question_id} in {path} cannot be read.") from None


def _whole_lines(file: Path) -> tuple[list[Trajectory], int]:
    """The finished lines and where they end. A line that cannot be read is an error, unless it is the torn last one."""
    data = file.read_bytes()
    end = data.rfind(b"\n") + 1
    lines = data[:end].splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(Trajectory.from_line(line))
        except BadInput:
            if number == len(lines):  # a power cut can leave zeros where the last line was to be
                return found, end - len(line) - 1
            raise BadInput(f"Line {number} of {file} is damaged. Move the folder away and run again.") from None
    return found, end


def _write(file: Path, at: int, data: bytes) -> None:
    """Write at a place and cut off what lay behind it; after an error the file ends there again."""
    with open(file, "r+b" if file.exists() else "w+b", buffering=0) as opened:
        opened.seek(at)
        opened.truncate()
        try:
            left = memoryview(data)
            while left:
                left = left[opened.write(left) :]
        except OSError:
            opened.truncate(at)
            raise


def _shortened(event: Event) -> Event:
    if isinstance(event, Retrieved):
        return replace(event, retrieval=event.retrieval.capped(SHOWN_CANDIDATES))
    return event


def _differences(found: Any, wanted: Any, name: str = "") -> Iterator[str]:
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted({*found, *wanted}):
            yield from _differences(found.get(key), wanted.get(key), f"{name} {key}".strip())
    elif found != wanted:
        yield f"{name} {json.dumps(found)} there, {json.dumps(wanted)} here"


def _cannot(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"The run folder {path} could not be written: the disk is full. What is finished is kept; free some space "
            "and go on."
        )
    return (
        f"The run folder {path} could not be used ({type(error).__name__}). Check its rights, or choose another folder."
    )
