"""Parts of a generation that transformers leaves to its caller: chunked prefill with reuse, stopping, streaming.

A prompt is read in chunks whose borders lie at fixed multiples of ``CHUNK``, and only whole chunks are reused. A reused
prefix therefore holds bit for bit the values that reading it again would give: the text does not depend on what
was asked before. Between two chunks the cancel event is looked at, so Stop waits for one chunk at most.

What this module does not know: how a prompt is framed or where its tokens come from. It needs no more of a model than
transformers' own call with a cache.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merit.models.language import CANCELLED, LENGTH, STOP, TIME, Stream

if TYPE_CHECKING:
    import torch

CHUNK = 128
"""Tokens per prefill step on a CPU and unit of reuse (contract: at most 256)."""
STREAM_EVERY_S = 0.1


@dataclass(frozen=True)
class _Prefix:
    tokens: tuple[int, ...]
    cache: Any


class PrefixCache:
    """Key-value caches of the last prompts, at most ``max_tokens`` in all; for one generation at a time."""

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self._kept: list[_Prefix] = []

    def take(self, tokens: Sequence[int]) -> tuple[Any | None, int]:
        """The cache with the longest reusable prefix of ``tokens`` and its length, cut to it and removed from here.

        The last token is never part of it, because the model must be run on something. (None, 0) when nothing fits.
        """
        lengths = [_common_chunks(kept.tokens, tokens) for kept in self._kept]
        best = max(range(len(lengths)), key=lambda i: lengths[i], default=None)
        if best is None or lengths[best] == 0:
            return None, 0
        kept = self._kept.pop(best)
        crop(kept.cache, lengths[best])
        return kept.cache, lengths[best]

    def keep(self, tokens: Sequence[int], cache: Any) -> None:
        """Keep the whole chunks of the prompt ``tokens``; the oldest caches go when there are too many tokens."""
        length = (len(tokens) - 1) // CHUNK * CHUNK
        if length == 0 or length > self.max_tokens or not cache.is_croppable:
            return
        crop(cache, length)
        self._kept.append(_Prefix(tuple(tokens[:length]), cache))
        while sum(len(kept.tokens) for kept in self._kept) > self.max_tokens:
            self._kept.pop(0)

    def clear(self) -> None:
        """Give the memory back."""
        self._kept.clear()


def _common_chunks(kept: Sequence[int], tokens: Sequence[int]) -> int:
    limit = min(len(kept), len(tokens) - 1)
    common = next((i for i in range(limit) if kept[i] != tokens[i]), limit)
    return common // CHUNK * CHUNK


def crop(cache: Any, length: int) -> None:
    """Cut a cache back to its first ``length`` tokens and really free the rest (a slice would keep it alive)."""
    surplus = cache.get_seq_length() - length
    if surplus > 0:
        cache.crop(-surplus)
        for layer in cache.layers:
            layer.keys, layer.values = layer.keys.contiguous(), layer.values.contiguous()


def prefill(model: Any, ids: torch.Tensor, mask: torch.Tensor, cache: Any, done: int, chunk: int, watch: Watch) -> bool:
    """Read all but the last chunk of ``ids`` (batch, length) into ``cache``, which holds ``done`` tokens already.

    Returns False when the watch said stop in between. What is left, 1 to ``chunk`` tokens, is for ``generate``.
    """
    import torch

    position_ids = (mask.cumsum(-1) - 1).clamp(min=0)
    padded = bool((mask == 0).any())
    last = (ids.shape[1] - 1) // chunk * chunk
    for start in range(done, last, chunk):
        if watch.should_stop():
            return False
        stop = min(start + chunk, last)
        with torch.inference_mode():
            model.base_model(
                input_ids=ids[:, start:stop],
                attention_mask=mask[:, :stop] if padded else None,
                position_ids=position_ids[:, start:stop],
                cache=cache,
                use_cache=True,
            )
    return not watch.should_stop()


class Watch:
    """Looks at cancel and clock, streams new text, and knows at the end why each row ended.

    It is called by ``generate`` after every step as a stopping criterion (see ``criterion``). ``stream`` runs in the
    generating thread: what it raises ends the generation and reaches the caller; nothing can hang.
    """

    def __init__(
        self,
        tokenizer: Any,
        ends: frozenset[int],
        *,
        stream: Stream | None,
        cancel: threading.Event | None,
        deadline: float,
    ) -> None:
        self._tokenizer = tokenizer
        self._ends = ends
        self._stream = stream
        self._cancel = cancel
        self._deadline = deadline
        self._reason: str | None = None
        self._sent: dict[int, str] = {}
        self._next_look = 0.0
        self._steps: list[float] = []

    def should_stop(self) -> bool:
        """Whether the caller cancelled or the time is up (``deadline`` on the monotonic clock)."""
        if self._cancel is not None and self._cancel.is_set():
            self._reason = CANCELLED
        elif time.monotonic() > self._deadline:
            self._reason = TIME
        return self._reason is not None

    def criterion(self, prompt_length: int) -> Any:
        """A transformers StoppingCriteria over this watch."""
        import torch
        from transformers import StoppingCriteria

        watch = self

        class Criterion(StoppingCriteria):
            def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
                now = time.monotonic()
                watch._steps.append(now)
                if watch._stream is not None and now >= watch._next_look:
                    watch._next_look = now + STREAM_EVERY_S
                    for row, tokens in enumerate(input_ids[:, prompt_length:].tolist()):
                        watch._send(row, watch._text(tokens), final=False)
                return torch.full((input_ids.shape[0],), watch.should_stop(), device=input_ids.device)

        return Criterion()

    @property
    def steps_per_second(self) -> float | None:
        """Speed of decoding after the first token, or None when there was no second one."""
        if len(self._steps) < 2:
            return None
        return (len(self._steps) - 1) / max(self._steps[-1] - self._steps[0], 1e-6)

    def finish(self, row: int, tokens: Sequence[int]) -> tuple[str, int, str]:
        """(text, number of tokens, finish reason) of a row; sends what was not streamed yet.

        ``tokens`` are the generated ones, padding after the end included.
        """
        end = self._end(tokens)
        text = self._text(tokens)
        self._send(row, text, final=True)
        if end is not None:
            return text, end + 1, STOP
        return text, len(tokens), self._reason or LENGTH

    def _end(self, tokens: Sequence[int]) -> int | None:
        return next((i for i, token in enumerate(tokens) if token in self._ends), None)

    def _text(self, tokens: Sequence[int]) -> str:
        shown = tokens[: self._end(tokens)]
        return str(self._tokenizer.decode(shown, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _send(self, row: int, text: str, *, final: bool) -> None:
        if self._stream is None:
            return
        # A character whose bytes are not complete yet decodes to U+FFFD: it waits for its last token.
        ready = text if final else text.rstrip("\ufffd")
        sent = self._sent.get(row, "")
        if len(ready) > len(sent) and ready.startswith(sent):
            self._sent[row] = ready
            self._stream(row, ready[len(sent) :])
