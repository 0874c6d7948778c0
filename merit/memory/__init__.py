"""Causal episodic memory: entries, the store, the causal view, the ranking.

Importing this package loads neither LanceDB nor numpy; ``MemoryStore`` does so on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merit.memory.store import MemoryStore

__all__ = ["MemoryStore"]


def __getattr__(name: str) -> Any:
    if name == "MemoryStore":
        from merit.memory.store import MemoryStore

        return MemoryStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
