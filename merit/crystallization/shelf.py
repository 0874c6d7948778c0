"""Frozen banks on disk: one LanceDB table for an encoder, the cards with the vectors of their questions.

It pays where banks are shared: another process, another arm or the next start finds cards and vectors and encodes
nothing again; any LanceDB URI works. A bank is addressed by the digest of its cards and never changes, so writing it
twice is harmless. Ranking stays exact and in memory (``bank``).

What this module does not know: how a bank is built.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lancedb
import numpy as np
import pyarrow as pa

from merit.crystallization.bank import Banks, Vectors
from merit.crystallization.cards import Card, CardFormat
from merit.errors import MemoryUnavailable
from merit.memory.rows import key

if TYPE_CHECKING:
    from merit.models.language import Encoder


class Shelf:
    """The banks kept at one LanceDB URI for one encoder. Raises ``MemoryUnavailable`` with a sentence."""

    def __init__(self, table: Any, encoder: Encoder) -> None:
        self._table = table
        self.encoder = encoder

    @classmethod
    def open(cls, uri: str | Path, encoder: Encoder) -> Shelf:
        """Open or create; each encoder has a table of its own, so vectors never mix."""
        name = f"banks-{key(encoder.id)[:12]}-{encoder.dimension}"
        columns = pa.schema(
            [
                pa.field("bank", pa.string()),
                pa.field("place", pa.int32()),
                pa.field("card", pa.string()),
                pa.field("vector", pa.list_(pa.float32(), encoder.dimension)),
            ]
        )
        try:
            connection = lancedb.connect(str(uri), read_consistency_interval=timedelta(0))
            table = connection.create_table(name, schema=columns, exist_ok=True)
        except Exception as error:
            raise MemoryUnavailable(f"The banks at {uri} cannot be opened ({type(error).__name__}).") from error
        return cls(table, encoder)

    def keep(self, banks: Banks) -> str:
        """Write all banks of one build in one go, unless they are there; the digest they are found by."""
        if banks.cards and not self._rows(banks.digest):
            vectors = banks.vectors([card.question for card in banks.cards])
            self._table.add(
                [
                    {"bank": banks.digest, "place": place, "card": json.dumps(asdict(card)), "vector": vector}
                    for place, (card, vector) in enumerate(zip(banks.cards, vectors, strict=True))
                ]
            )
        return banks.digest

    def banks(self, digest: str, schemas: Mapping[str, str], vectors: Vectors | None = None) -> Banks | None:
        """The banks of this digest, their vectors known; None where there are none, or where they are damaged."""
        if not all(letter in "0123456789abcdef" for letter in digest):
            return None
        rows = {int(row["place"]): row for row in self._rows(digest)}  # two processes may have written the same
        known = vectors or Vectors(self.encoder)
        cards = []
        for _, row in sorted(rows.items()):
            value = json.loads(row["card"])
            card = Card(**{**value, "format": CardFormat(value["format"]), "notes": tuple(value["notes"])})
            cards.append(card)
            known.learn([(card.question, np.array(row["vector"], np.float32))])
        found = Banks(tuple(cards), schemas, known)
        return found if cards and found.digest == digest else None

    def _rows(self, digest: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._table.search().where(f"bank = '{digest}'").limit(10_000_000).to_list()
        return rows
