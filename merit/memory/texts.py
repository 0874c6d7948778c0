"""The texts by which an entry is found: one for the encoder, one for BM25, and the tokens of the latter (spec §4).

What this module does not know: encoders and scores.
"""

from __future__ import annotations

import re

from merit.memory.entry import MemoryEntry, normalise_delta

_TOKEN = re.compile(r"[a-z0-9_]+")


def dense_text(entry: MemoryEntry) -> str:
    """What the encoder reads of an entry."""
    return (
        f"QUESTION: {entry.question} SCHEMA: {entry.schema} FAILURE: {entry.failure_context} "
        f"TRANSFORMATION: {normalise_delta(entry.delta)} ERROR: {entry.failure_type} OUTCOME: {entry.outcome} "
        f"DB ERROR: {entry.observed_db_error or '(none)'}"
    )


def bm25_text(entry: MemoryEntry) -> str:
    """What BM25 reads of an entry; the schema is not in it."""
    return " ".join(
        (
            entry.question,
            entry.failure_context,
            entry.delta,
            entry.failure_type,
            entry.outcome,
            entry.observed_db_error or "",
            entry.successful_direction or "",
        )
    )


def tokenise(text: str) -> list[str]:
    """The tokens of BM25: runs of ``[a-z0-9_]`` of the lower-cased text, in order, with repetition."""
    return _TOKEN.findall(text.lower())
