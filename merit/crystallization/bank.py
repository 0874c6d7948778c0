"""Banks of cards, one for each database, frozen once built, and how a question finds its cards (paper §3.3).

Default: cosine between the new question and each card's source question, the best five of the same database. BM25,
MMR and hybrid are the other methods; λ = 0.5, the hybrid's halves and the random draw are reconstructed (the paper
does not name its fourth method). Ties go to the card collected first.

What this module does not know: models other than an encoder, and what a card is worth.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merit.crystallization.cards import Card
from merit.errors import BadInput
from merit.memory.columns import Postings
from merit.memory.ranking import bm25, min_max
from merit.memory.texts import tokenise

if TYPE_CHECKING:
    from merit.models.language import Encoder

MMR_LAMBDA = 0.5
HYBRID_DENSE = 0.5

Floats = NDArray[np.float64]


class Method(StrEnum):
    """How cards are ranked."""

    DENSE = "dense"
    BM25 = "bm25"
    MMR = "mmr"
    HYBRID = "hybrid"
    RANDOM = "random"


class Key(StrEnum):
    """What of a card is compared with the question."""

    QUESTION = "question"
    PAYLOAD = "payload"


class Scope(StrEnum):
    """Whose cards may be found."""

    SAME = "same"
    FOREIGN = "foreign"
    SIMILAR = "schema-similar"


@dataclass(frozen=True)
class Lookup:
    """One retrieval configuration. ``seed`` matters for ``random`` alone."""

    k: int = 5
    method: Method = Method.DENSE
    key: Key = Key.QUESTION
    scope: Scope = Scope.SAME
    seed: int = 0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise BadInput("The number of cards to retrieve is at least 1.")


@dataclass(frozen=True)
class Hit:
    """A retrieved card, its rank from 1, and its score in the method's own unit."""

    card: Card
    rank: int
    score: float


class Vectors:
    """Texts to unit vectors, each encoded once; safe to share between banks. ``encoded`` counts encoder calls."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.encoded = 0
        self._known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 (n, d)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self.learn(zip(new, self.encoder.encode(new), strict=True))
            self.encoded += len(new)
        if not texts:
            return np.empty((0, self.encoder.dimension), np.float32)
        return np.stack([self._known[text] for text in texts])

    def learn(self, pairs: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Vectors that are known already."""
        self._known.update((text, np.asarray(vector, np.float32)) for text, vector in pairs)


def key_text(card: Card, key: Key) -> str:
    """What is compared with a question."""
    return card.question if key is Key.QUESTION else f"{card.question}\n{card.text}"


@dataclass(frozen=True)
class Banks:
    """The frozen banks of all databases, in order of collection.

    ``schemas``: the CREATE text of each database, for the schema-similar scope.
    """

    cards: tuple[Card, ...]
    schemas: Mapping[str, str] = field(repr=False)
    vectors: Vectors = field(repr=False, compare=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all cards in order: equal before and after a run that left the banks alone."""
        whole = hashlib.sha256()
        for card in self.cards:
            for text in (card.id, card.question, card.sql, card.text):
                whole.update(f"{len(text)}|{text}|".encode("utf-8", "surrogatepass"))
        return whole.hexdigest()

    @cached_property
    def by_database(self) -> dict[str, tuple[Card, ...]]:
        """The bank of each database that has one."""
        found: dict[str, list[Card]] = defaultdict(list)
        for card in self.cards:
            found[card.database_id].append(card)
        return {database: tuple(cards) for database, cards in found.items()}

    def retrieve(
        self, question: str, question_key: str, database_id: str, how: Lookup, *, exclude_own: bool = False
    ) -> tuple[Hit, ...]:
        """The best ``how.k`` cards for a question, best first; () from an empty bank.

        ``exclude_own``: the question's own card is not there (retention). Held-out questions have none.
        """
        pool = [card for card in self._scope(database_id, how.scope) if not (exclude_own and card.id == question_key)]
        if not pool:
            return ()
        texts = [key_text(card, how.key) for card in pool]
        if how.method is Method.RANDOM:
            order, scores = _shuffled(pool, f"{how.seed}|{question_key}"), np.zeros(len(pool))
        elif how.method is Method.MMR:
            order, scores = _mmr(self._cosines(question, texts), self.vectors(texts), how.k)
        else:
            scores = self._scores(question, texts, how.method)
            order = _best(scores)
        return tuple(Hit(pool[i], rank, float(scores[i])) for rank, i in enumerate(order[: how.k], 1))

    def nearest(self, database_id: str) -> str | None:
        """The other database with a bank whose CREATE text is nearest to this one's; None where there is none."""
        others = sorted(other for other in self.by_database if other != database_id)
        if not others or database_id not in self.schemas:
            return None
        vectors = self.vectors([self.schemas[name] for name in (database_id, *others)]).astype(np.float64)
        return others[_best(vectors[1:] @ vectors[0])[0]]

    def _scope(self, database_id: str, scope: Scope) -> tuple[Card, ...]:
        match scope:
            case Scope.SAME:
                return self.by_database.get(database_id, ())
            case Scope.FOREIGN:
                return tuple(card for card in self.cards if card.database_id != database_id)
            case Scope.SIMILAR:
                return self.by_database.get(self.nearest(database_id) or "", ())

    def _scores(self, question: str, texts: list[str], method: Method) -> Floats:
        if method is Method.DENSE:
            return self._cosines(question, texts)
        words = _words_score(question, texts)
        if method is Method.BM25:
            return words
        dense = self._cosines(question, texts)
        return HYBRID_DENSE * _stretched(dense) + (1 - HYBRID_DENSE) * _stretched(words)

    def _cosines(self, question: str, texts: list[str]) -> Floats:
        wide = self.vectors(texts).astype(np.float64)
        # Summed row by row, so that equal texts have equal scores whatever else is there.
        products: Floats = wide * self.vectors([question])[0].astype(np.float64)
        cosines: Floats = products.sum(axis=1)
        return cosines


@dataclass(frozen=True)
class _Words:
    """What ``bm25`` needs to know of a pool."""

    size: int
    length: NDArray[np.int32]
    postings: Postings


def _words_score(question: str, texts: list[str]) -> Floats:
    counted = [Counter(tokenise(text)) for text in texts]
    postings = Postings()
    terms = pa.array([list(counts) for counts in counted], pa.list_(pa.string()))
    postings.extend(0, terms, pa.array([list(counts.values()) for counts in counted], pa.list_(pa.int32())))
    lengths = np.array([counts.total() for counts in counted], np.int32)
    words = _Words(len(texts), lengths, postings)
    return bm25(words, np.arange(len(texts), dtype=np.int32), tokenise(question))


def _stretched(scores: Floats) -> Floats:
    return min_max(scores, float(scores.min()), float(scores.max()), 0.0)


def _best(scores: Floats) -> list[int]:
    """Indices, best first, compared after twelve decimals; ties in order."""
    order: list[int] = np.argsort(-np.rint(scores * 1e12), kind="stable").tolist()
    return order


def _mmr(cosines: Floats, vectors: NDArray[np.float32], k: int) -> tuple[list[int], Floats]:
    """Maximal marginal relevance: each next card is near the question and unlike those chosen before."""
    wide = vectors.astype(np.float64)
    chosen: list[int] = []
    gains = np.zeros(len(cosines))
    nearest = np.full(len(cosines), -np.inf)
    left = set(range(len(cosines)))
    while left and len(chosen) < k:
        gain = cosines if not chosen else MMR_LAMBDA * cosines - (1 - MMR_LAMBDA) * nearest
        best = min(left, key=lambda i: (-round(float(gain[i]) * 1e12), i))
        gains[best] = gain[best]
        chosen.append(best)
        left.remove(best)
        nearest = np.maximum(nearest, wide @ wide[best])
    return chosen, gains


def _shuffled(pool: Sequence[Card], seed: str) -> list[int]:
    def lot(index: int) -> Any:
        return hashlib.sha256(f"{seed}|{pool[index].id}".encode("utf-8", "surrogatepass")).digest()

    return sorted(range(len(pool)), key=lot)
