"""A deterministic encoder for tests: hashed words, L2-normalised; and a builder of memory entries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merit.memory.entry import MemoryEntry


class HashEncoder:
    """Each word adds ±1 at a place of the vector that its hash names. ``calls`` counts texts."""

    def __init__(self, dimension: int = 32, name: str = "hash") -> None:
        self.id = name
        self.dimension = dimension
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += len(texts)
        out = np.zeros((len(texts), self.dimension))
        for vector, text in zip(out, texts, strict=True):
            vector[0] = 0.5  # no text has the zero vector
            for word in re.findall(r"\w+", text.lower()):
                digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=5).digest()
                vector[int.from_bytes(digest[:4], "big") % self.dimension] += 1 if digest[4] % 2 else -1
        return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True), np.float32)


def entry(number: int = 0, **changes: Any) -> MemoryEntry:
    """A positive Schema Linking entry of episode ``number`` at position ``number``; any field can be changed."""
    fields: dict[str, Any] = {
        "polarity": "positive",
        "failure_type": "Schema Linking",
        "question": f"How many books has reader {number}?",
        "schema": "Database: library\n\nTable: books\n  - id (integer, PRIMARY KEY)",
        "database_id": "library",
        "failed_sql": f"SELECT count(bok) FROM books WHERE reader = {number}",
        "new_sql": f"SELECT count(*) FROM books WHERE reader = {number}",
        "status": "EXECUTION_ERROR",
        "db_error": "no such column: bok",
        "outcome": "CORRECT",
        "question_id": f"q{number}",
        "episode_id": f"e{number}",
        "position": number,
        "iteration": 1,
    }
    if changes.get("polarity") == "negative" and "outcome" not in changes:
        changes["outcome"] = "EXECUTION_ERROR"
    return MemoryEntry(**(fields | changes))
