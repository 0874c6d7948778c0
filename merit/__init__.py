"""MERIT Explorer: Text-to-SQL repair with causal, error-typed episodic memory, told as a stream of events.

The public names are those below; everything is imported when it is first asked for, so that ``import merit`` loads
neither torch nor streamlit nor a database library.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merit.database import Database
    from merit.diagnosis import diagnose
    from merit.episode import FailureType, Outcome, Polarity, Question
    from merit.errors import DatabaseNotFound, GoldUnavailable, MeritError, UnknownStrategy
    from merit.memory.entry import MemoryEntry
    from merit.memory.retrieval import RetrievalQuery
    from merit.memory.store import MemoryStore
    from merit.repair import run_episode
    from merit.strategy import STRATEGIES

__version__ = "0.1.0"

__all__ = [
    "STRATEGIES",
    "Database",
    "DatabaseNotFound",
    "FailureType",
    "GoldUnavailable",
    "MemoryEntry",
    "MemoryStore",
    "MeritError",
    "Outcome",
    "Polarity",
    "Question",
    "RetrievalQuery",
    "UnknownStrategy",
    "diagnose",
    "run_episode",
]

_HOME_OF = {
    "STRATEGIES": "merit.strategy",
    "Database": "merit.database",
    "DatabaseNotFound": "merit.errors",
    "FailureType": "merit.episode",
    "GoldUnavailable": "merit.errors",
    "MemoryEntry": "merit.memory.entry",
    "MemoryStore": "merit.memory.store",
    "MeritError": "merit.errors",
    "Outcome": "merit.episode",
    "Polarity": "merit.episode",
    "Question": "merit.episode",
    "RetrievalQuery": "merit.memory.retrieval",
    "UnknownStrategy": "merit.errors",
    "diagnose": "merit.diagnosis",
    "run_episode": "merit.repair",
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    elif name in {module.name for module in pkgutil.iter_modules(__path__)} - {"__main__"}:
        value = import_module(f"merit.{name}")
    else:
        raise AttributeError(f"module 'merit' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
