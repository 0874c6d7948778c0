"""Admission: which episodes are stored (paper §3.5, §4).

``verified`` stores what an independent check accepted, ``ungated`` the first candidate whether right or not,
``noisy`` the verified decisions with a share of them flipped (the paper says 5–20 %; our levels are 5, 10, 20).
Which decisions flip follows from seed and question alone, and a higher rate flips those of a lower one too.

What this module does not know: how a card is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from merit.crystallization.episodes import Episode

FLIP_RATES = (0.05, 0.10, 0.20)


class Admission(StrEnum):
    """Who decides what is stored."""

    VERIFIED = "verified"
    UNGATED = "ungated"
    NOISY = "noisy"


@dataclass(frozen=True)
class Admitted:
    """What went into the banks, in the order of collection. ``flipped``: how many decisions were turned round."""

    episodes: tuple[Episode, ...]
    flipped: int = 0

    @property
    def correct(self) -> int:
        """How many of them are right."""
        return sum(episode.correct for episode in self.episodes)


def admit(
    episodes: Sequence[Episode], admission: Admission | str, *, flip_rate: float = 0.0, seed: int = 0
) -> Admitted:
    """The episodes stored. An episode without a candidate can never be."""
    if not 0 <= flip_rate <= 1:
        raise ValueError("A flip rate is a fraction between 0 and 1.")
    candidates = [episode for episode in episodes if episode.candidate is not None and episode.final_sql.strip()]
    match Admission(admission):
        case Admission.VERIFIED:
            return Admitted(tuple(episode for episode in candidates if episode.correct))
        case Admission.UNGATED:
            first = [replace(episode, candidate=1) if episode.repaired else episode for episode in candidates]
            return Admitted(tuple(episode for episode in first if episode.final_sql.strip()))
        case Admission.NOISY:
            kept, flipped = [], 0
            for episode in candidates:
                flips = _draw(episode, seed) < flip_rate
                flipped += flips
                if episode.correct is not flips:
                    kept.append(episode)
            return Admitted(tuple(kept), flipped)


def _draw(episode: Episode, seed: int) -> float:
    """A number in [0, 1) that belongs to this question and seed."""
    digest = hashlib.sha256(f"{seed}|{episode.id}|flip".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
