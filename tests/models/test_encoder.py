"""The encoder in the box: unit vectors that depend on the text alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from merit.errors import ModelUnavailable
from merit.models import Encoder, load_encoder
from merit.models.encoder import SentenceEncoder

pytestmark = pytest.mark.timeout(300)

TEXTS = [
    "how many singers are there",
    "",
    "SELECT count(*) FROM singer",
    "歌手は何人ですか",
    "odd \ud800 \x00",
    "word " * 900,
]


@pytest.fixture(scope="module")
def loaded() -> dict[str, Encoder]:
    return {}


@pytest.fixture
def encoder(embedded_home: Callable[[], Path], loaded: dict[str, Encoder]) -> Encoder:
    if not loaded:
        import torch

        torch.set_num_threads(1)
        loaded["embedded"] = load_encoder("embedded")
    return loaded["embedded"]


def test_float32_unit_rows(encoder: Encoder) -> None:
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimension) == (6, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_no_texts_is_an_empty_matrix(encoder: Encoder) -> None:
    assert encoder.encode([]).shape == (0, 384)


def test_vector_does_not_depend_on_the_other_texts(encoder: Encoder) -> None:
    """Padded to a longer neighbour, a text got a slightly different vector and a ranking could tip."""
    together = encoder.encode(TEXTS)
    alone = np.vstack([encoder.encode([text]) for text in reversed(TEXTS)])[::-1]
    assert np.array_equal(together, alone)


def test_vectors_are_those_of_mean_pooling(encoder: Encoder, kept_models: Path) -> None:
    """Worked out with transformers alone: mean of the last hidden states over the tokens, divided by its length."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = next(kept_models.glob("all-MiniLM-L6-v2-*/*/model"))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    with torch.inference_mode():
        hidden = model(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[0]
    mean = hidden.mean(0)
    expected: NDArray[np.float32] = (mean / mean.norm()).numpy()
    assert np.allclose(encoder.encode([TEXTS[0]])[0], expected, atol=1e-5)


def test_near_texts_are_nearer_than_far_ones(encoder: Encoder) -> None:
    near, same, far = encoder.encode(["count the singers", "how many singers are there", "average price of a tractor"])
    assert near @ same > 0.6 > near @ far


def test_long_text_is_cut_at_its_end(encoder: Encoder) -> None:
    long = "word " * 900
    assert np.array_equal(encoder.encode([long])[0], encoder.encode([long + "and something else"])[0])


def test_many_threads_get_the_same_vectors(encoder: Encoder) -> None:
    """The fast tokeniser raises 'Already borrowed' when two threads use it at once."""
    expected = encoder.encode(TEXTS[:4])
    results: list[NDArray[np.float32]] = []
    threads = [threading.Thread(target=lambda: results.append(encoder.encode(TEXTS[:4]))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(np.array_equal(result, expected) for result in results)


def test_id_names_model_and_files(encoder: Encoder) -> None:
    assert encoder.id.startswith("embedded:all-MiniLM-L6-v2@")


def test_folder_that_is_no_encoder_gives_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="could not be loaded"):
        SentenceEncoder(tmp_path, "local:x")
