"""Growing columns for the in-memory index: numbers, vectors, postings, texts. Appending never rebuilds anything.

A big batch (opening a memory) becomes immutable arrays; single rows (an episode that ends) go to small growing
tails. What this module does not know: what the rows mean.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array

BLOCK = 16384
"""Rows of one block of vectors."""

BIG = 64
"""From this many rows on, a batch becomes a segment of its own instead of going to the tail."""


class Column:
    """A growing one-dimensional array; ``values`` is a view of what is filled."""

    def __init__(self, dtype: Any) -> None:
        self._data = np.empty(BIG, dtype)
        self._size = 0

    @property
    def values(self) -> NDArray[Any]:
        return self._data[: self._size]

    def extend(self, values: Any) -> None:
        new = np.asarray(values, self._data.dtype)
        end = self._size + len(new)
        if end > len(self._data):
            grown = np.empty(max(end, len(self._data) + len(self._data) // 4), self._data.dtype)
            grown[: self._size] = self.values
            self._data = grown
        self._data[self._size : end] = new
        self._size = end


class Vectors:
    """Rows of float32 vectors in blocks of ``BLOCK``, so that growing copies nothing.

    ``norm`` is the largest Euclidean norm of a row, for the error bound of :meth:`approximate`.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.norm = 0.0
        self._blocks: list[NDArray[np.float32]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def extend(self, rows: NDArray[np.float32]) -> None:
        """Append (n, d) rows."""
        if len(rows):
            self.norm = max(self.norm, float(np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64).max())))
        while len(rows):
            at = self._size % BLOCK
            if at == 0:
                self._blocks.append(np.empty((BLOCK, self.dimension), np.float32))
            part = rows[: BLOCK - at]
            self._blocks[-1][at : at + len(part)] = part
            self._size += len(part)
            rows = rows[len(part) :]

    def gather(self, rows: NDArray[np.int32]) -> NDArray[np.float32]:
        """The vectors of these rows, in this order: (len(rows), d)."""
        out = np.empty((len(rows), self.dimension), np.float32)
        block_of = rows // BLOCK
        for block in np.unique(block_of):
            chosen = block_of == block
            out[chosen] = self._blocks[block][rows[chosen] % BLOCK]
        return out

    def exact(self, rows: NDArray[np.int32], query: NDArray[np.float32]) -> NDArray[np.float64]:
        """Inner products in float64. Each row is summed on its own in a fixed order, so that equal vectors
        have bitwise equal scores whatever else is in the batch."""
        wide = query.astype(np.float64)
        out = np.empty(len(rows), np.float64)
        for start in range(0, len(rows), 1024):
            part = self.gather(rows[start : start + 1024]).astype(np.float64)
            part *= wide
            out[start : start + 1024] = part.sum(axis=1)
        return out

    def approximate(self, query: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
        """Inner products of all rows in float32 by BLAS, and a bound on their error (summation in any order)."""
        scores = np.empty(self._size, np.float32)
        for number, block in enumerate(self._blocks):
            part = scores[number * BLOCK : (number + 1) * BLOCK]
            np.matmul(block[: len(part)], query, out=part)
        unit = (self.dimension + 2) * 2.0**-24
        length = float(np.linalg.norm(query.astype(np.float64)))
        return scores, unit / (1 - unit) * self.norm * length + 1e-30


class Postings:
    """For each token the rows that hold it and how often. Immutable segments for big batches, a tail for the rest."""

    def __init__(self) -> None:
        self._segments: list[tuple[dict[str, int], NDArray[np.int32], NDArray[np.int32], NDArray[Any]]] = []
        self._tail: dict[str, tuple[array[int], array[int]]] = {}
        self._common: dict[str, NDArray[Any]] = {}

    def extend(self, first_row: int, terms: pa.Array, counts: pa.Array) -> None:
        """Append rows from ``first_row`` on: one list of distinct tokens and one of their counts for each row."""
        self._common.clear()
        if len(terms) < BIG:
            for row, (tokens, times) in enumerate(zip(terms.to_pylist(), counts.to_pylist(), strict=True), first_row):
                for token, count in zip(tokens, times, strict=True):
                    rows, numbers = self._tail.setdefault(token, (array("i"), array("i")))
                    rows.append(row)
                    numbers.append(count)
            return
        encoded = terms.flatten().dictionary_encode()
        sizes = np.diff(terms.offsets.to_numpy())
        by_row = csr_array(
            (
                _narrow(counts.flatten().to_numpy()),
                encoded.indices.to_numpy().astype(np.int32, copy=False),
                np.concatenate(([0], np.cumsum(sizes))).astype(np.int32),
            ),
            shape=(len(terms), len(encoded.dictionary)),
        )
        by_token = by_row.tocsc()
        tokens = {token: number for number, token in enumerate(encoded.dictionary.to_pylist())}
        self._segments.append((tokens, by_token.indptr, by_token.indices + np.int32(first_row), by_token.data))

    def of(self, token: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Rows (each once, in no promised order) and counts of one token."""
        found: list[tuple[NDArray[np.int32], NDArray[Any]]] = []
        for tokens, starts, rows, counts in self._segments:
            number = tokens.get(token)
            if number is not None:
                part = slice(starts[number], starts[number + 1])
                found.append((rows[part], counts[part]))
        if token in self._tail:
            # copied: a view would forbid the tail to grow while somebody holds it
            found.append((np.array(self._tail[token][0], np.int32), np.array(self._tail[token][1], np.int32)))
        if len(found) == 1:
            return found[0]
        if not found:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        return np.concatenate([rows for rows, _ in found]), np.concatenate([counts for _, counts in found])

    def common(self, token: str, size: int) -> NDArray[Any] | None:
        """Counts of a token for each of ``size`` rows, kept until the next row comes; None for a token that fewer
        than a quarter of the rows hold, whose posting list is the shorter way."""
        if token not in self._common:
            rows, counts = self.of(token)
            if len(rows) * 4 < size:
                return None
            column = np.zeros(size, counts.dtype)
            column[rows] = counts
            self._common[token] = column
        return self._common[token]


def _narrow(counts: NDArray[np.int32]) -> NDArray[Any]:
    """A quarter of the memory where no token occurs more than 255 times in a text."""
    return counts.astype(np.uint8 if int(counts.max(initial=0)) < 256 else np.int32)


class Texts:
    """One text a row; big batches stay in Arrow memory, which needs no Python object a row."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._parts: list[pa.Array | list[str]] = []
        self._size = 0

    def extend(self, texts: pa.Array) -> None:
        last = self._parts[-1] if self._parts else None
        if len(texts) < BIG and isinstance(last, list):
            last.extend(texts.to_pylist())
        else:
            self._starts.append(self._size)
            self._parts.append(texts if len(texts) >= BIG else texts.to_pylist())
        self._size += len(texts)

    def __getitem__(self, row: int) -> str:
        part = bisect_right(self._starts, row) - 1
        text = self._parts[part][row - self._starts[part]]
        return text if isinstance(text, str) else str(text.as_py())
