"""The memory as one would write it to be read, not to be fast: plain lists, loops and floats.

Written from spec §3, §4 and §8 alone; the tests hold the product against it.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from merit.memory.entry import MemoryEntry
from merit.memory.retrieval import RetrievalQuery
from merit.strategy import Strategy


@dataclass
class Seen:
    entry: MemoryEntry
    visible_from: int
    alive: bool = True
    forgotten: bool = False


@dataclass
class Merged:
    id: str
    entry: MemoryEntry
    polarity: str
    successes: int
    failures: int
    episodes: list[str]


@dataclass
class Model:
    """What a stream must do, step by step."""

    counter: int = 0
    log: list[Seen] = field(default_factory=list)
    forgotten_episodes: set[str] = field(default_factory=set)
    tags: dict[str, list[bool]] = field(default_factory=dict)

    def finalise(self, entry: MemoryEntry) -> None:
        if entry.episode_id in self.forgotten_episodes:
            return
        if any(seen.alive and seen.entry.episode_id == entry.episode_id for seen in self.log):
            return
        self.log.append(Seen(entry, max(entry.position + 1, self.counter)))

    def next_position(self) -> int:
        given = max([self.counter, *(seen.entry.position + 1 for seen in self.log)])
        self.counter = given + 1
        return given

    def retract(self, episode: str) -> None:
        for seen in self.log:
            seen.alive = seen.alive and seen.entry.episode_id != episode

    def forget(self, entry_id: str) -> None:
        for seen in self.log:
            if seen.entry.id == entry_id:
                seen.alive, seen.forgotten = False, True
                self.forgotten_episodes.add(seen.entry.episode_id)

    def forget_database(self, database: str) -> None:
        for seen in self.log:
            if seen.entry.database_id == database:
                seen.alive, seen.forgotten = False, True
                self.forgotten_episodes.add(seen.entry.episode_id)

    def tag(self, name: str) -> None:
        self.tags[name] = [seen.alive for seen in self.log]

    def restore(self, name: str) -> None:
        lived = self.tags[name]
        for number, seen in enumerate(self.log):
            seen.alive = number < len(lived) and lived[number] and not seen.forgotten


def merged(
    log: Sequence[Seen], before: int | None = None, exclude_question: str | None = None, databases: Any = None
) -> list[Merged]:
    """Filter first, then fold in order of position."""
    legal = [
        seen
        for seen in log
        if seen.alive
        and (before is None or seen.visible_from <= before)
        and seen.entry.question_id != exclude_question
        and (databases is None or seen.entry.database_id in databases)
    ]
    folded: dict[str, Merged] = {}
    for seen in sorted(legal, key=lambda one: one.entry.position):  # stable: equals stay as they came
        entry = seen.entry
        if entry.id not in folded:
            folded[entry.id] = Merged(entry.id, entry, str(entry.polarity), 0, 0, [])
        view = folded[entry.id]
        view.episodes.append(entry.episode_id)
        if entry.polarity == "positive":
            view.successes += 1
        else:
            view.failures += 1
        if view.successes != view.failures:
            view.polarity = "positive" if view.successes > view.failures else "negative"
    for view in folded.values():
        speaking = [one for one in legal if one.entry.id == view.id and one.entry.polarity == view.polarity]
        latest = max(one.entry.position for one in speaking)
        view.entry = [one.entry for one in speaking if one.entry.position == latest][-1]
    return list(folded.values())


def words(text: str) -> list[str]:
    return re.findall("[a-z0-9_]+", text.lower())


def bm25_text(entry: MemoryEntry) -> str:
    direction = f"Observed successful transition: {entry.delta}" if entry.polarity == "positive" else ""
    error = (entry.db_error or "") if entry.polarity == "negative" else ""
    parts = [entry.question, entry.failure_context, entry.delta, entry.failure_type, entry.outcome, error, direction]
    return " ".join(parts)


def bm25(texts: list[list[str]], query: list[str]) -> list[float]:
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        score = 0.0
        for word in query:
            often, holders = text.count(word), sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
            score += idf * (often * 2.5 / (often + 1.5 * (1 - 0.75 + 0.75 * len(text) / mean)))
        scores.append(score)
    return scores


def min_max(scores: list[float], flat: float) -> list[float]:
    low, high = min(scores), max(scores)
    if low == high:
        return [flat if low else 0.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def ranked(pool: list[Merged], query: RetrievalQuery, strategy: Strategy, encoder: Any, name: str) -> list[Merged]:
    """The candidates of one pool, best first."""
    typed = [view for view in pool if view.entry.failure_type == query.failure_type]
    hard = strategy.type_filter == "hard"
    bonus = 0.0
    if strategy.type_filter == "reliability":
        hard = query.failure_type in ("Syntax", "Schema Linking", "Execution")
        bonus = 0.0 if hard else 0.10
    candidates = typed if hard and len(typed) >= 3 else pool
    if not candidates:
        return []
    if strategy.selection == "random":
        drawn = sorted(candidates, key=lambda view: view.id)
        recipe = f"42|{query.question_id}|{query.iteration}|{name}".encode()
        random.Random(int.from_bytes(hashlib.sha256(recipe).digest()[:8], "big")).shuffle(drawn)
        return drawn
    text = f"{query.question} {query.sql} {query.failure_context} {query.failure_type}"
    vector = encoder.encode([text])[0].astype(np.float64)
    stored = encoder.encode([dense_text(view.entry) for view in candidates]).astype(np.float64)
    dense = [math.fsum(a * b for a, b in zip(row, vector, strict=True)) for row in stored.tolist()]
    sparse = bm25([words(bm25_text(view.entry)) for view in candidates], words(text))
    dense_share = min_max(dense, strategy.flat_pool_score) if strategy.dense_weight else [0.0] * len(dense)
    sparse_share = min_max(sparse, strategy.flat_pool_score) if strategy.bm25_weight else [0.0] * len(sparse)
    keys = []
    for view, d, b in zip(candidates, dense_share, sparse_share, strict=True):
        same = view.entry.failure_type == query.failure_type
        final = strategy.dense_weight * d + strategy.bm25_weight * b + bonus * same
        keys.append((-round(final, 12), -round(d, 12), -round(b, 12), not same, view.id))
    return [view for _, view in sorted(zip(keys, candidates, strict=True), key=lambda pair: pair[0])]


def dense_text(entry: MemoryEntry) -> str:
    from merit.memory.entry import normalise_delta

    error = entry.db_error if entry.polarity == "negative" and entry.db_error else "(none)"
    return (
        f"QUESTION: {entry.question} SCHEMA: {entry.schema} FAILURE: {entry.failure_context} TRANSFORMATION: "
        f"{normalise_delta(entry.delta)} ERROR: {entry.failure_type} OUTCOME: {entry.outcome} DB ERROR: {error}"
    )
