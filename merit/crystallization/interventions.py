"""What is done to the episodes of a bank before they are written down: mispairing, matched counts, fractions.

All draws follow from the seed and the question ids alone and keep the order of collection (paper §3, §5.2).

What this module does not know: cards, retrieval.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from merit.crystallization.episodes import Episode

H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True)
class Permuted:
    """Mispaired episodes, in their order. ``left``: how many kept their own SQL, because their database has no other
    statement to give (a bank of one, or of one statement)."""

    episodes: tuple[Episode, ...]
    left: int


def permuted(episodes: Sequence[Episode], seed: int) -> Permuted:
    """Within each database every question gets the repair of another, no one its own SQL.

    Questions, their order, the multiset of statements and the count stay, and with them what retrieval sees.
    """
    result: dict[int, Episode] = {}
    left = 0
    for database, places in _by_database(episodes).items():
        givers, kept = derangement([episodes[place].final_sql for place in places], f"{seed}|{database}")
        left += kept
        for place, giver in zip(places, givers, strict=True):
            own, other = episodes[place], episodes[places[giver]]
            result[place] = replace(other, question=own.question, evidence=own.evidence, question_id=own.question_id)
    return Permuted(tuple(result[place] for place in range(len(episodes))), left)


def derangement(items: Sequence[H], seed: object) -> tuple[list[int], int]:
    """For each place the index of the item it gets, and how many places keep an equal item.

    Equal items stand in one shuffled block and everything moves on by the length of the longest block, so that a place
    keeps its item only where more than half of them are equal: then as few as can be.
    """
    draw = random.Random(f"{seed}|derangement")
    blocks: dict[H, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        blocks[item].append(place)
    grouped = list(blocks.values())
    for block in grouped:
        draw.shuffle(block)
    draw.shuffle(grouped)
    order = [place for block in grouped for place in block]
    step = max((len(block) for block in grouped), default=0)
    givers = [0] * len(items)
    for number, place in enumerate(order):
        givers[place] = order[(number + step) % len(order)]
    return givers, sum(items[place] == items[giver] for place, giver in enumerate(givers))


def drawn(episodes: Sequence[Episode], counts: Mapping[str, int], *, draw: int, seed: int) -> tuple[Episode, ...]:
    """At most ``counts[database]`` episodes of each database, in their order; ``draw`` tells draws apart."""
    kept: set[int] = set()
    for database, places in _by_database(episodes).items():
        ranked = sorted(places, key=lambda place: _lot(episodes[place], draw, seed))
        kept |= set(ranked[: counts.get(database, 0)])
    return tuple(episode for place, episode in enumerate(episodes) if place in kept)


def fraction(episodes: Sequence[Episode], share: float, *, seed: int) -> tuple[Episode, ...]:
    """A share of each database's episodes, rounded up; a smaller share is part of a larger one."""
    if not 0 < share <= 1:
        raise ValueError("The share of a bank lies above 0 and is at most 1.")
    counts = {database: math.ceil(share * n - 1e-9) for database, n in count_by_database(episodes).items()}
    return drawn(episodes, counts, draw=0, seed=seed)


def count_by_database(episodes: Iterable[Episode]) -> Counter[str]:
    """How many episodes each database has."""
    return Counter(episode.database_id for episode in episodes)


def _by_database(episodes: Sequence[Episode]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, episode in enumerate(episodes):
        places[episode.database_id].append(place)
    return places


def _lot(episode: Episode, draw: int, seed: int) -> str:
    text = f"{seed}|{draw}|{episode.id}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
