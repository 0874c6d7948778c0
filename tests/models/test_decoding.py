"""Chunked prefill, reuse of prefixes and incremental text, by themselves."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from merit.models.decoding import CHUNK, PrefixCache, Watch
from merit.models.local import LocalModel

PROMPT = "SELECT name FROM singer WHERE age > 3 " * 40


class FakeCache:
    """Only as long as it says."""

    is_croppable = True
    layers: tuple[()] = ()

    def __init__(self, length: int) -> None:
        self.length = length

    def get_seq_length(self) -> int:
        return self.length

    def crop(self, tokens: int) -> None:
        assert tokens < 0, "transformers wants the number to remove as a negative one"
        self.length += tokens


prompts = st.builds(
    lambda head, tail: [1] * head + tail, st.integers(0, 3 * CHUNK + 2), st.lists(st.integers(1, 2), max_size=CHUNK + 2)
).filter(bool)


@given(st.lists(prompts, max_size=5), prompts)
def test_taken_prefix_is_whole_chunks_of_a_true_prefix(before: list[list[int]], prompt: list[int]) -> None:
    prefixes = PrefixCache(6 * CHUNK)
    for earlier in before:
        prefixes.keep(earlier, FakeCache(len(earlier) + 10))
    assert sum(len(kept.tokens) for kept in prefixes._kept) <= 6 * CHUNK
    kept = [list(entry.tokens) for entry in prefixes._kept]
    cache, length = prefixes.take(prompt)
    assert length % CHUNK == 0
    assert length < len(prompt), "the model must be run on at least one token"
    assert (cache.length if cache else 0) == length
    possible = range(0, len(prompt), CHUNK)
    assert length == max(
        n for n in possible if n == 0 or any(tokens[:n] == prompt[:n] for tokens in kept if len(tokens) >= n)
    )


def test_cache_that_cannot_be_cut_is_not_kept() -> None:
    cache = FakeCache(3 * CHUNK)
    cache.is_croppable = False
    prefixes = PrefixCache(10 * CHUNK)
    prefixes.keep([1] * (3 * CHUNK), cache)
    assert prefixes.take([1] * (3 * CHUNK)) == (None, 0)


def test_reused_values_are_bit_for_bit_those_of_a_fresh_reading(tiny: LocalModel) -> None:
    """Reused at any token instead of a chunk border, the values differed in their last bits and a tie could tip."""
    import torch

    def values() -> list[Any]:
        layers = tiny._prefixes._kept[-1].cache.layers
        return [tensor.clone() for layer in layers for tensor in (layer.keys, layer.values)]

    tiny.complete([PROMPT + "one question"], 3)
    fresh = values()
    tiny._prefixes.clear()
    tiny.complete([PROMPT[: len(PROMPT) // 2] + "another question " * 9], 3)
    tiny.complete([PROMPT + "one question"], 3)
    reused = values()
    assert all(torch.equal(a, b) for a, b in zip(fresh, reused, strict=True))


def watch_over(tokenizer: Any, pieces: list[str], **options: Any) -> Watch:
    return Watch(
        tokenizer,
        frozenset({0}),
        stream=lambda _, piece: pieces.append(piece),
        cancel=options.get("cancel"),
        deadline=options.get("deadline", time.monotonic() + 60),
    )


BYTES = SimpleNamespace(decode=lambda tokens, **_: bytes(tokens).decode("utf-8", "replace"))
"""A tokeniser with one token per byte, the hardest case for incremental text."""


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_no_piece_breaks_a_character(text: str) -> None:
    pieces: list[str] = []
    watch = watch_over(BYTES, pieces)
    tokens = list(text.encode())
    for length in range(1, len(tokens) + 1):
        watch._send(0, watch._text(tokens[:length]), final=False)
    assert watch.finish(0, tokens) == (text, len(tokens), "length")
    assert "".join(pieces) == text
    if "\ufffd" not in text:
        assert all("\ufffd" not in piece for piece in pieces)


def test_bytes_that_are_no_character_are_shown_at_the_end() -> None:
    pieces: list[str] = []
    watch = watch_over(BYTES, pieces)
    assert watch.finish(0, [65, 0xE6, 0x97]) == ("A\ufffd", 3, "length")
    assert pieces == ["A\ufffd"]


def test_reasons() -> None:
    cancel = threading.Event()
    assert watch_over(BYTES, []).finish(0, [65, 0, 0, 0]) == ("A", 2, "stop")
    watch = watch_over(BYTES, [], cancel=cancel)
    assert not watch.should_stop()
    cancel.set()
    assert watch.should_stop()
    assert watch.finish(0, [65])[2] == "cancelled"
    assert watch.finish(1, [65, 0])[2] == "stop", "a row that ended by itself was not cancelled"
    late = watch_over(BYTES, [], deadline=time.monotonic() - 1)
    assert late.should_stop()
    assert late.finish(0, [65])[2] == "time"


def test_stopping_criterion_is_one_boolean_per_row() -> None:
    import torch

    cancel = threading.Event()
    criterion = watch_over(BYTES, [], cancel=cancel).criterion(1)
    ids = torch.tensor([[1, 65], [1, 66], [1, 67]])
    assert criterion(ids, None).tolist() == [False] * 3
    cancel.set()
    assert criterion(ids, None).tolist() == [True] * 3
    assert criterion(ids, None).dtype == torch.bool


def test_speed_counts_steps_after_the_first() -> None:
    watch = watch_over(BYTES, [])
    assert watch.steps_per_second is None
    watch._steps[:] = [10.0, 10.5, 11.0]
    assert watch.steps_per_second == 2.0
