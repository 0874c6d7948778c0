"""SQLite files: schema, read-only execution in worker processes, checks of uploads, sample databases.

Names are loaded on first use, so that the worker (``python -m merit.database.worker``) starts without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merit.database import samples
    from merit.database.database import Database
    from merit.database.upload import Report, check_upload

HOMES = {
    "Database": "merit.database.database",
    "Report": "merit.database.upload",
    "check_upload": "merit.database.upload",
}

__all__ = ["Database", "Report", "check_upload", "samples"]


def __getattr__(name: str) -> Any:
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    if name == "samples":  # a part to reach as an attribute, like the names
        return import_module("merit.database.samples")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
