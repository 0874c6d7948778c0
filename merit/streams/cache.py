"""Greedy answers that were generated once and are never generated again, shared by all runs and processes on disk.

The key is the model, the exact prompt and how it was decoded. The first answer that is written is the answer: on
hardware whose greedy ties depend on the batch, two runs still read the same text.

What this module does not know: prompts, questions, who asks.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from merit.errors import MeritError
from merit.models.language import LENGTH, STOP, Completion
from merit.settings import settings

FORMAT = 1
PRIVATE = ":memory:"
"""The path of a cache that lives and ends with its object."""
_BUSY_S = 60.0
_CREATE = (
    "CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, text TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, "
    "output_tokens INTEGER NOT NULL, finish_reason TEXT NOT NULL) WITHOUT ROWID"
)


class GenerationCache:
    """Answers by key in one SQLite file; safe for threads and processes. Only whole greedy answers are kept.

    Errors: ``MeritError`` with a sentence (a full disk, a file that is none of ours).
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else settings().runs_dir / "generations.sqlite"
        self._private = str(path) == PRIVATE
        self.hits = 0
        self.misses = 0
        self._lock = threading.Lock()
        try:
            if not self._private:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", _CREATE):
                with closing(self._connection.execute(statement)):
                    pass
        except (OSError, sqlite3.Error) as error:
            raise MeritError(_sentence(self.path, error)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the cache cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def key(self, model: object, prompt: str, max_new_tokens: int) -> str | None:
        """The key of a greedy answer. None for a model without an id, which on disk cannot be told from others."""
        id = getattr(model, "id", None)
        if not isinstance(id, str) or not id:
            if not self._private:
                return None
            id = type(model).__name__
        info = getattr(model, "info", None)
        how = [str(getattr(info, name, "")) for name in ("revision", "quantisation", "dtype")]
        # Foreign letters are escaped, lone surrogates too, so that any prompt has a key.
        facts = json.dumps([FORMAT, id, how, max_new_tokens, "greedy", prompt], ensure_ascii=True)
        return hashlib.sha256(facts.encode("ascii")).hexdigest()

    def get(self, key: str) -> Completion | None:
        """The answer under this key, or None."""
        row = self._run("SELECT text, prompt_tokens, output_tokens, finish_reason FROM answer WHERE key = ?", (key,))
        if row is None:
            self.misses += 1
            return None
        self.hits += 1
        return Completion(json.loads(row[0]), row[1], row[2], row[3])

    def keep(self, key: str, completion: Completion) -> Completion:
        """Keep an answer and return the one that holds: that of whoever was first. A cut answer is not kept."""
        if completion.finish_reason not in (STOP, LENGTH):
            return completion
        values = (json.dumps(completion.text), completion.prompt_tokens, completion.output_tokens)
        self._run("INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?, ?)", (key, *values, completion.finish_reason))
        row = self._run("SELECT text, prompt_tokens, output_tokens, finish_reason FROM answer WHERE key = ?", (key,))
        return completion if row is None else Completion(json.loads(row[0]), row[1], row[2], row[3])

    def __len__(self) -> int:
        row = self._run("SELECT count(*) FROM answer", ())
        return 0 if row is None else int(row[0])

    def _run(self, sql: str, values: tuple[Any, ...]) -> Any:
        try:
            with self._lock, closing(self._connection.execute(sql, values)) as cursor:
                return cursor.fetchone()
        except sqlite3.Error as error:
            raise MeritError(_sentence(self.path, error)) from None


def _sentence(path: Path, error: Exception) -> str:
    text = str(error).lower()
    if "full" in text or "no space" in text:
        return f"The answers could not be kept at {path}: the disk is full. Free some space and go on."
    if "not a database" in text or "malformed" in text:
        return f"{path} is not a file of kept answers, or it is damaged. Move it away and go on."
    return f"The answers could not be kept at {path} ({type(error).__name__}). Check the folder's rights."


def cache_for(model: object) -> GenerationCache:
    """The shared cache of this machine, or for a model without an id a private one."""
    return GenerationCache(None if getattr(model, "id", None) else PRIVATE)
