"""Speed and size of the memory, as ratios in one run, against the published way and a bare matrix-vector product.

    python -m benchmarks.memory [--entries 10000] [--dimension 384]

The published way: for every query tokenise all candidates in Python, build rank_bm25 with the spec's IDF, one dense
product, min–max, sort. Both sides get the same entries and vectors; the rankings must be identical, or this fails.
What it does not measure: the encoder (both sides are given the query's vector) and the network.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from merit.episode import FailureType
from merit.memory.entry import MemoryEntry
from merit.memory.retrieval import RetrievalQuery
from merit.memory.store import MemoryStore
from merit.memory.texts import bm25_text, tokenise
from merit.strategy import STRATEGIES

TABLES = [f"table_{number}" for number in range(300)]
COLUMNS = [f"column_{number}" for number in range(3000)]
WORDS = [
    "how",
    "many",
    "which",
    "what",
    "list",
    "show",
    "all",
    "the",
    "of",
    "for",
    "with",
    "name",
    "average",
    "number",
    "each",
    "most",
    "before",
    "after",
    "city",
    "year",
]
TYPES = [FailureType.RESULT_MISMATCH] * 6 + [FailureType.SCHEMA_LINKING] * 3 + [FailureType.SYNTAX]
SCHEMAS = [
    f"Database: db_{number}\n\n"
    + "\n\n".join(
        f"Table: {table}\n" + "\n".join(f"  - {column} (text)" for column in COLUMNS[:8]) for table in TABLES[:5]
    )
    for number in range(200)
]


class RandomVectors:
    """Unit vectors that depend on the text alone; clustered, as embeddings of alike texts are."""

    id = "random"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._centre = np.random.default_rng(0).normal(size=dimension)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [
            np.random.default_rng(zlib.crc32(text.encode())).normal(size=self.dimension) + self._centre
            for text in texts
        ]
        return np.asarray([row / np.linalg.norm(row) for row in rows], np.float32)


def made(number: int, dice: random.Random) -> MemoryEntry:
    """One entry of ordinary length: a question of 14 words, two statements of about 25 tokens."""
    table, other = dice.sample(TABLES, 2)
    columns = dice.sample(COLUMNS, 5)
    failed = (
        f"SELECT {columns[0]}, count({columns[1]}) FROM {table} JOIN {other} ON {table}.{columns[2]} = "
        f"{other}.{columns[2]} WHERE {columns[3]} = '{dice.randrange(10**6)}' GROUP BY {columns[0]}"
    )
    good = dice.random() < 0.7
    return MemoryEntry(
        polarity="positive" if good else "negative",  # type: ignore[arg-type]
        failure_type=dice.choice(TYPES),
        question=" ".join(dice.choice([*WORDS, *columns]) for _ in range(14)) + "?",
        schema=dice.choice(SCHEMAS),
        database_id=f"db_{dice.randrange(200)}",
        failed_sql=failed,
        new_sql=failed.replace(columns[3], columns[4]) + f" ORDER BY {columns[1]} DESC",
        status="EXECUTION_ERROR",  # type: ignore[arg-type]
        db_error=f"no such column: {columns[3]}",
        outcome="CORRECT" if good else "EXECUTION_ERROR",  # type: ignore[arg-type]
        question_id=f"q{number}",
        episode_id=f"e{number}",
        position=number,
        iteration=1,
        model_id="model",
        created_at="2026-01-01T00:00:00+00:00",
    )


def query(dice: random.Random, position: int) -> RetrievalQuery:
    like = made(position, dice)
    return RetrievalQuery(
        like.question, like.failed_sql, like.failure_context, like.failure_type, "asked", "db_1", position
    )


class OurIdf(BM25Okapi):  # type: ignore[misc]
    """rank_bm25 with the IDF of spec §4."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {word: math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5)) for word, n in nd.items()}


def published(
    entries: list[MemoryEntry], ids: list[str], vectors: NDArray[np.float32], asked: RetrievalQuery, vector: Any
) -> dict[str, list[str]]:
    """Both pools ranked from scratch: ids, best first."""
    answer = {}
    for polarity in ("positive", "negative"):
        rows = [row for row, one in enumerate(entries) if one.polarity == polarity]
        bm25 = OurIdf([tokenise(bm25_text(entries[row])) for row in rows], k1=1.5, b=0.75)
        sparse = bm25.get_scores(tokenise(asked.text))
        dense = vectors[rows].astype(np.float64) @ vector.astype(np.float64)
        d, b = ((s - s.min()) / (s.max() - s.min()) if s.max() > s.min() else s * 0 for s in (dense, sparse))
        final = 0.75 * d + 0.25 * b
        match = [entries[row].failure_type == asked.failure_type for row in rows]
        columns = (final, d, b, match, [ids[row] for row in rows])
        keys = [(-round(f, 12), -round(x, 12), -round(y, 12), -m, i) for f, x, y, m, i in zip(*columns, strict=True)]
        answer[polarity] = [key[4] for key in sorted(keys)]
    return answer


def median_ms(work: Callable[[], Any], times: int) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent) * 1000


def resident_mb(uri: str, dimension: int) -> tuple[float, float]:
    """Opening in a fresh process: seconds, and MiB of memory that the open store adds."""
    code = (
        "import sys, time, resource; sys.path.insert(0, '.')\n"
        "from benchmarks.memory import RandomVectors, rss, MemoryStore\n"
        "MemoryStore.open('memory://', RandomVectors(8)); before = rss(); start = time.perf_counter()\n"
        f"store = MemoryStore.open({uri!r}, RandomVectors({dimension}))\n"
        "print(time.perf_counter() - start, rss() - before)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return float(out[0]), float(out[1])


def rss() -> float:
    """MiB of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=5)
    chosen = parser.parse_args()
    dice, encoder = random.Random(0), RandomVectors(chosen.dimension)
    entries = [made(number, dice) for number in range(chosen.entries)]
    strategy = STRATEGIES["no_type_filter"]
    print(f"{chosen.entries} entries of {chosen.dimension} dimensions")
    with tempfile.TemporaryDirectory() as folder:
        store = MemoryStore.open(folder, encoder)
        for start in range(0, len(entries), 10_000):
            store.finalise_many(entries[start : start + 10_000])
        store.compact()
        vectors = store._index.vectors.gather(np.arange(len(entries), dtype=np.int32))
        ids = [one.id for one in entries]
        queries = [query(dice, len(entries) + 1) for _ in range(chosen.queries)]
        given = dict(zip([one.text for one in queries], encoder.encode([one.text for one in queries]), strict=True))
        encoder.encode = lambda texts: np.stack([given[text] for text in texts])  # type: ignore[method-assign]
        ours, theirs, bare = [], [], []
        for asked in queries:
            vector = given[asked.text]
            ours.append(median_ms(lambda asked=asked: store.retrieve(asked, strategy), 11))  # type: ignore[misc]
            bare.append(median_ms(lambda vector=vector: vectors @ vector, 11))  # type: ignore[misc]
            begin = time.perf_counter()
            reference = published(entries, ids, vectors, asked, vector)
            theirs.append((time.perf_counter() - begin) * 1000)
            pools = store.retrieve(asked, strategy).pools
            for polarity, best in reference.items():
                found = [candidate.entry_id for candidate in pools[polarity].candidates]
                assert found == best, f"the rankings of the {polarity} pool differ"
        ours_ms, theirs_ms, bare_ms = (statistics.median(times) for times in (ours, theirs, bare))
        print(f"retrieval: ours {ours_ms:.2f} ms, published way {theirs_ms:.0f} ms, ratio {theirs_ms / ours_ms:.0f}")
        print(f"  ({len(queries)} queries, both pools, rankings identical to the last place)")
        print(f"retrieval over one bare float32 product ({bare_ms:.2f} ms): {ours_ms / bare_ms:.2f}")
        del encoder.encode  # type: ignore[misc]
        extra = iter([made(len(entries) + number, dice) for number in range(60)])
        print(f"finalise at {len(entries)} entries: median {median_ms(lambda: store.finalise(next(extra)), 60):.1f} ms")
        print(f"next_position: median {median_ms(store.next_position, 20):.1f} ms")
        print(f"counts as of a position: {median_ms(lambda: store.counts(before=len(entries) // 2), 20):.2f} ms")
        seconds, size = resident_mb(folder, chosen.dimension)
        raw = len(entries) * chosen.dimension * 4 / 2**20
        print(f"opening: {seconds:.2f} s; memory {size:.0f} MiB, {size / raw:.2f} times the vectors ({raw:.0f} MiB)")


if __name__ == "__main__":
    main()
