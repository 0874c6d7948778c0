"""How long the reading of a stranger's file may take, and how it is refused: shared by all parts of ``importing``.

What this module does not know: files and formats.
"""

from __future__ import annotations

import time


class Refused(Exception):
    """The file cannot be used; the message is a sentence for a person."""


class Deadline:
    """Raises :class:`Refused` once time is up; also a progress handler for SQLite."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.at = time.monotonic() + seconds

    def check(self) -> None:
        if time.monotonic() >= self.at:
            raise Refused(f"The file could not be read within {self.seconds:g} seconds. Try a smaller part of it.")

    def __call__(self) -> int:
        return time.monotonic() >= self.at
