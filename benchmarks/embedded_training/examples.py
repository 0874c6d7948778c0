"""From training questions to (prompt, answer) pairs in the product's own words, and those to packs.

A pack holds questions that share what the prompt begins with: initial prompts of one database and one schema form;
repair prompts that also share cards and feedback. It does not know the network.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import sqlglot
from sqlglot import exp

from benchmarks.embedded_training.collate import Pack, pack
from benchmarks.embedded_training.corpus import Asked, TrainingDatabase
from merit import prompts
from merit.episode import Question

PACK_TOKENS = 2600
"""Most tokens of one training sequence."""
BIRD_SHARE = 1 / 12
LONGEST_ANSWER = 120
"""Most tokens of an answer to train towards; longer gold costs much and is hardly ever reached."""
END = "<|im_end|>"


@dataclass(frozen=True)
class Codec:
    """A tokenizer with the chat frame of the product: one user message, no system prompt of ours."""

    tokenizer: Any

    def prompt(self, text: str) -> list[int]:
        framed = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
        )
        return list(self.tokenizer(framed, add_special_tokens=False)["input_ids"])

    def answer(self, text: str) -> list[int]:
        return list(self.tokenizer(text + END, add_special_tokens=False)["input_ids"])

    def count(self, text: str) -> int:
        return len(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    @property
    def end(self) -> int:
        return int(self.tokenizer.convert_tokens_to_ids(END))


def in_tags(sql: str) -> str:
    """The answer the prompts ask for."""
    return f"<answer>{sql}</answer>"


def chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Consecutive runs of nearly equal length, none longer than `size`."""
    count = max(1, -(-len(items) // size))
    for i in range(count):
        part = items[len(items) * i // count : len(items) * (i + 1) // count]
        if part:
            yield part


def initial_packs(
    databases: Sequence[TrainingDatabase], codec: Codec, rng: random.Random, *, per_pack: int = 20
) -> Iterator[Callable[[], list[Pack]]]:
    """One pass over all questions as initial prompts, in random order; each item renders its packs when called.

    The schema is shown with Spider's types or with the declared ones, drawn anew for every pack; one pack in twelve
    has the bird form, with evidence where the question's own words give some.
    """
    jobs: list[Callable[[], list[Pack]]] = []
    for database in databases:
        asked = list(database.questions)
        rng.shuffle(asked)
        for part in chunks(asked, per_pack):
            schema = rng.choice(database.schemas)
            if rng.random() < BIRD_SHARE:
                part = [replace(a, question=in_bird_form(a)) for a in part]
            jobs.append(partial(_initial, part, schema, codec))
    rng.shuffle(jobs)
    yield from jobs


def in_bird_form(asked: Asked) -> Question:
    """The question as BIRD would ask it: evidence ties a value that the question names to its column."""
    try:
        tree = sqlglot.parse_one(asked.sql, read="sqlite")
    except sqlglot.errors.SqlglotError:
        return replace(asked.question, benchmark="bird")
    hints = []
    for equals in tree.find_all(exp.EQ):
        column, value = equals.this, equals.expression
        if isinstance(column, exp.Column) and isinstance(value, exp.Literal):
            word = str(value.this)
            if word.lower() in asked.question.text.lower():
                hints.append(f"{word} refers to {column.name} = {value.sql(dialect='sqlite')}")
    return replace(asked.question, benchmark="bird", evidence="; ".join(hints))


def _initial(asked: Sequence[Asked], schema: str, codec: Codec) -> list[Pack]:
    return pack_texts(((prompts.initial_prompt(a.question, schema), in_tags(a.sql)) for a in asked), codec)


def together(jobs: Sequence[Callable[[], list[Pack]]], count: int) -> list[Callable[[], list[Pack]]]:
    """Jobs of `count` jobs each, so that one step of the optimiser sees several small packs."""
    return [partial(_all, part) for part in chunks(jobs, count)]


def _all(jobs: Sequence[Callable[[], list[Pack]]]) -> list[Pack]:
    return [made for job in jobs for made in job()]


def pack_texts(pairs: Any, codec: Codec) -> list[Pack]:
    """Packs of (prompt, answer) texts that begin alike; answers that are too long are left out."""
    encoded = [(codec.prompt(prompt), codec.answer(answer)) for prompt, answer in pairs]
    return pack([pair for pair in encoded if len(pair[1]) <= LONGEST_ANSWER], PACK_TOKENS)
