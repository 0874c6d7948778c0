"""The few error classes of the library; every message is a sentence for a person.

What this module does not know: who shows the message, or how.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class MeritError(Exception):
    """Base of all errors that a person can act on; ``str(error)`` is the sentence to show."""


class DatabaseNotFound(MeritError):
    """There is no file at the path of a database (runner and CLI report ``database not found``)."""


class DatabaseUnreadable(MeritError):
    """The file exists but is no usable SQLite database; the message says why in words."""


class GoldUnavailable(MeritError):
    """A verifier could not evaluate the gold query. Carries no DBMS message: that message quotes gold."""


class JudgementStopped(MeritError):
    """The person who judges asked to stop; the episode ends as Cancelled and stores nothing."""


class ModelUnavailable(MeritError):
    """A language model or an encoder could not be loaded or reached; the message says what would help."""


class MemoryUnavailable(MeritError):
    """The memory cannot be opened, read or written (other encoder, other format, disk full, locked)."""


class BadInput(MeritError, ValueError):
    """Something a person typed or uploaded cannot be used; the message says what to change."""


class UnknownStrategy(MeritError, KeyError):
    """No strategy has this name; the message lists those that exist."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"There is no strategy called {name!r}. Known strategies: {', '.join(self.known)}.")

    def __str__(self) -> str:
        return str(self.args[0])


@contextmanager
def told_as(what: str) -> Iterator[None]:
    """Turn a foreign exception into ``MeritError("{what} ({its class}).")``.

    Its own text is dropped, chain included: it may quote anything, gold included. A MeritError passes through.
    """
    try:
        yield
    except MeritError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a foreign part raises
        raise MeritError(f"{what} ({type(error).__name__}).") from None
