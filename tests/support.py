"""What many tests need: a model that follows a script, an encoder without a network, small databases.

What this module does not know: the product's own models. Nothing here is imported by the product.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merit.episode import Execution, Outcome, Question, Status, Verdict
from merit.models.language import Completion

Answer = str | BaseException | Callable[[str, threading.Event | None], Any]


@dataclass(frozen=True)
class Call:
    """One prompt the scripted model was given, with what came along."""

    prompt: str
    max_new_tokens: int
    seed: int | None
    temperature: float
    cancel: threading.Event | None


class ScriptedModel:
    """Gives the enqueued answers in order and keeps what it was asked in ``history``.

    An answer is a text, an exception to raise, or a function of (prompt, cancel) that returns the text.
    Asked more often than it has answers, it fails the test.
    """

    id = "scripted"

    def __init__(self, *answers: Answer) -> None:
        self._answers: deque[Answer] = deque(answers)
        self.history: list[Call] = []

    def enqueue(self, *answers: Answer) -> ScriptedModel:
        self._answers.extend(answers)
        return self

    @property
    def left(self) -> int:
        """How many answers were not asked for."""
        return len(self._answers)

    @property
    def prompts(self) -> list[str]:
        return [call.prompt for call in self.history]

    def complete(
        self,
        prompts: Sequence[str],
        max_new_tokens: int = 512,
        *,
        system: str | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        stream: Callable[[int, str], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> list[Completion]:
        completions = []
        for index, prompt in enumerate(prompts):
            self.history.append(Call(prompt, max_new_tokens, seed, temperature, cancel))
            if not self._answers:
                raise RuntimeError("the script has no further answer")
            answer = self._answers.popleft()
            if isinstance(answer, BaseException):
                raise answer
            text = answer if isinstance(answer, str) else answer(prompt, cancel)
            if stream is not None and isinstance(text, str):
                for piece in re.findall(r"\s*\S+|\s+", text[:10_000]):
                    stream(index, piece)
            output_tokens = len(text.split()) if isinstance(text, str) else 0
            completions.append(Completion(text, len(prompt.split()), output_tokens, "stop"))
        return completions


def answer(sql: str) -> str:
    """The model's usual form of an answer."""
    return f"<answer>{sql}</answer>"


class HashEncoder:
    """Bag of hashed words, L2-normalised: similar texts are near, nothing is downloaded."""

    def __init__(self, dimension: int = 32, id: str = "hash-encoder") -> None:
        self.dimension = dimension
        self.id = id

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"[a-z0-9_]+", text.lower()) or ["(nothing)"]:
                digest = hashlib.sha256(word.encode()).digest()
                vectors[row, digest[0] % self.dimension] += 1.0 if digest[1] % 2 else -1.0
            norm = np.linalg.norm(vectors[row])
            if norm == 0:
                vectors[row, 0], norm = 1.0, 1.0
            vectors[row] /= norm
        return vectors


def build_database(path: Path, *statements: str) -> Path:
    """A SQLite file made of the given statements."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def build_shop(path: Path) -> Path:
    """Two small tables: products with prices, and sales that point to them."""
    return build_database(
        path,
        "CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, price REAL)",
        "CREATE TABLE sale (id INTEGER PRIMARY KEY, product_id INTEGER REFERENCES product(id), amount INTEGER)",
        "INSERT INTO product VALUES (1, 'tea', 3.5), (2, 'bread', 2.0), (3, 'jam', 4.25)",
        "INSERT INTO sale VALUES (1, 1, 2), (2, 1, 1), (3, 2, 5)",
    )


class ScriptedVerifier:
    """Gives the enqueued outcomes for what executed, in order (an exception is raised); the rest as the database says.

    ``seen`` keeps the questions with which it was asked, gold inside.
    """

    name = "scripted"

    def __init__(self, *outcomes: Outcome | BaseException) -> None:
        self._outcomes: deque[Outcome | BaseException] = deque(outcomes)
        self.seen: list[Question] = []

    def judge(self, question: Question, database: Any, sql: str, execution: Execution | None = None) -> Verdict:
        self.seen.append(question)
        assert execution is not None
        if execution.status is not Status.EXECUTED:
            return Verdict(Outcome(execution.status), execution.error, "database")
        outcome = self._outcomes.popleft()
        if isinstance(outcome, BaseException):
            raise outcome
        return Verdict(outcome, None, self.name)
