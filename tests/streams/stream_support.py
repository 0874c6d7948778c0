"""A small world for streams: two databases, a dozen questions, a model whose answers follow from the prompt alone."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from support import build_shop

from merit.episode import Question
from merit.models.language import CANCELLED, Completion
from merit.streams import Dataset
from merit.verification import SpiderVerifier

TASKS = [
    ("How many products are there?", "SELECT count(*) FROM product"),
    ("Which products are there?", "SELECT name FROM product"),
    ("What is the highest price?", "SELECT max(price) FROM product"),
    ("What is sold more than twice at once?", "SELECT product_id FROM sale WHERE amount > 2"),
    ("How many pieces were sold?", "SELECT sum(amount) FROM sale"),
    ("Which product is cheapest?", "SELECT name FROM product ORDER BY price LIMIT 1"),
    ("What do tea and jam cost?", "SELECT price FROM product WHERE name IN ('tea', 'jam')"),
]
WRONG = [
    "SELECT nmae FROM product",
    "SELECT name FROM products",
    "SELECT name, FROM product",
    "SELECT sum(max(price)) FROM product",
    "SELECT id FROM sale",
    "",
]


def dataset(folder: Path, databases: Sequence[str] = ("shop", "stall"), **extra: Any) -> Dataset:
    """The tasks over each database; ids are places."""
    files = {id: build_shop(folder / id / f"{id}.sqlite") for id in databases if not (folder / id).exists()} or {
        id: folder / id / f"{id}.sqlite" for id in databases
    }
    questions = [
        Question(f"{text} ({id})", id, gold_sql=gold, question_id=str(number * 10 + place), benchmark="spider")
        for number, id in enumerate(databases)
        for place, (text, gold) in enumerate(TASKS)
    ]
    return Dataset("tasks", "spider", tuple(questions), dict(files), difficulty={"0": "easy"}, **extra)


def verifier() -> SpiderVerifier:
    return SpiderVerifier(official=False)


class BookModel:
    """Answers by what the prompt says alone: right in one of ``luck`` prompts, else one of the wrong answers; so a
    memory that changes a prompt changes what happens. ``asked`` keeps every prompt, ``batches`` each call's size."""

    context_tokens = 8192

    def __init__(self, id: str | None = "book", luck: int = 4, before: Callable[[], None] = lambda: None) -> None:
        if id is not None:
            self.id = id
        self.luck = luck
        self.before = before
        self.asked: list[str] = []
        self.batches: list[int] = []
        self.lock = threading.Lock()

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def complete(
        self, prompts: Sequence[str], max_new_tokens: int = 512, *, cancel: threading.Event | None = None, **_: Any
    ) -> list[Completion]:
        with self.lock:
            self.before()
            self.batches.append(len(prompts))
            self.asked += prompts
            if cancel is not None and cancel.is_set():
                return [Completion("", 0, 0, CANCELLED) for _ in prompts]
            return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: str) -> Completion:
        number = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4], "big")
        if "-reflection-" in prompt:
            text = f"<reflection>Note {number % 97}.</reflection>"
        else:
            question = re.search(r"QUESTION:\n(.*) \(", prompt)
            assert question is not None
            right = dict(TASKS)[question.group(1)]
            sql = right if number % self.luck == 0 else WRONG[number % len(WRONG)]
            text = f"<answer>{sql}</answer>"
        return Completion(text, self.count_tokens(prompt), len(text.split()), "stop")


class Stopper:
    """Lets ``calls`` calls pass, then sets an event."""

    def __init__(self, calls: int, event: threading.Event) -> None:
        self.left, self.event = calls, event

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.event.set()
            time.sleep(0.01)
