"""An observation as a row of the log: ids as hashes, texts as JSON, the tokens of BM25 counted once and for all.

What this module does not know: what happens to rows (``index``).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merit.memory.facts import Observed
from merit.memory.texts import bm25_text, tokenise


def key(text: str) -> str:
    """32 hex digits that stand for an id or a stream in the log: safe in any filter, equal iff the text is."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def short(keys: Iterable[str]) -> NDArray[np.int64]:
    """Keys as 64-bit numbers, for comparisons over whole columns (two of a million differ but for 1 in 10^7)."""
    return np.array([int(name[:16], 16) - 2**63 for name in keys], np.int64)


def observation_rows(
    columns: pa.Schema,
    stream: str,
    new: list[Observed],
    vectors: NDArray[np.float32],
    kind: Literal["observation", "returned"] = "observation",
) -> pa.Table:
    """Rows for observations and their float32 (n, d) vectors; ``columns`` is that of the log, ``stream`` its key,
    ``kind`` what the fold does with them (see ``index``)."""
    values: dict[str, list[Any]] = {name: [] for name in columns.names if name != "vector"}
    for seen in new:
        entry = seen.entry
        body = entry.to_json()
        schema = body.pop("schema")
        tokens = Counter(tokenise(bm25_text(entry)))
        row = {
            "kind": kind,
            "stream": stream,
            "episode": key(entry.episode_id),
            "entry": entry.id,
            "question": key(entry.question_id),
            "database": key(entry.database_id),
            "failure_type": str(entry.failure_type),
            "polarity": str(entry.polarity),
            "position": entry.position,
            "floor": seen.visible_from,
            # ASCII: a lone surrogate in a stranger's text is no valid UTF-8, but its escape is
            "body": json.dumps(body),
            "schema": json.dumps(schema),
            "terms": list(tokens),
            "counts": list(tokens.values()),
        }
        for name, value in row.items():
            values[name].append(value)
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    arrays = [
        pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        if name == "vector"
        else pa.array(values[name], columns.field(name).type)
        for name in columns.names
    ]
    return pa.Table.from_arrays(arrays, schema=columns)
