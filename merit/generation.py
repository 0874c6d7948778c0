"""Ask any language model for one answer and survive whatever it does.

A foreign model needs only ``complete`` (contract: Loop); it may raise, answer with the wrong number or kind of
things, say five megabytes, or never come to an end. Each of these becomes a sentence or a cut answer here.

What this module does not know: prompts, SQL, the loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merit.errors import MeritError, ModelUnavailable
from merit.waiting import TookTooLong, wait_for

if TYPE_CHECKING:
    from merit.models.language import LanguageModel

MAX_NEW_TOKENS = 512
"""Most tokens of one answer (spec §5)."""
MAX_PROMPT_TOKENS = 4096
"""Most tokens of one prompt (spec §5); less where the model's context is smaller."""
MAX_ANSWER_CHARS = 100_000
"""A longer answer is cut here and treated like one that met the token limit."""
MAX_STREAMED_CHARS = 1_000_000
"""A model that has streamed so much ignores its token limit and is stopped."""
GENERATION_TIMEOUT_S = 600.0
"""Most seconds of one answer from its first token, and most seconds of waiting for that."""
_CHARS_PER_TOKEN = 3.5


@dataclass(frozen=True)
class Answer:
    """The text of one answer; counts are 0 where the model does not tell; ``elapsed_s`` in seconds."""

    text: str
    prompt_tokens: int
    output_tokens: int
    finish_reason: str
    elapsed_s: float


def generate(
    model: LanguageModel, prompt: str, cancel: threading.Event, *, seed: int, timeout_s: float = GENERATION_TIMEOUT_S
) -> Generator[str, None, Answer]:
    """One greedy answer; yields its text about every 0.1 s where the model streams.

    Raises ``Stopped`` once ``cancel`` is set, ``MeritError`` with a sentence when there is no usable answer.
    """

    def work(say: Callable[[str], None], inner: threading.Event) -> Any:
        return model.complete(
            [prompt],
            max_new_tokens=MAX_NEW_TOKENS,
            temperature=0.0,
            seed=seed,
            stream=lambda _index, piece: say(piece),
            cancel=inner,
        )

    started = time.monotonic()
    try:
        completions = yield from wait_for(work, cancel, timeout_s=timeout_s, max_chars=MAX_STREAMED_CHARS)
    except MeritError:
        raise
    except TookTooLong:
        raise ModelUnavailable(
            "The model did not come to the end of its answer and was stopped. Nothing was stored; ask again, "
            "or choose another model."
        ) from None
    except Exception as error:  # noqa: BLE001 - a foreign model may raise anything
        raise ModelUnavailable(f"The model failed with {type(error).__name__}. Nothing was stored.") from None
    return _checked(completions, time.monotonic() - started)


def counter(model: LanguageModel | None) -> Callable[[str], int]:
    """``model.count_tokens`` where there is one, else an estimate of one token per 3.5 characters."""
    count = getattr(model, "count_tokens", None)
    return count if callable(count) else lambda text: round(len(text) / _CHARS_PER_TOKEN)


def prompt_limit(model: LanguageModel) -> int:
    """Most tokens a prompt may have, so that an answer of 512 tokens still fits the model's context."""
    context = getattr(model, "context_tokens", None)
    return min(MAX_PROMPT_TOKENS, context - MAX_NEW_TOKENS) if isinstance(context, int) else MAX_PROMPT_TOKENS


def _checked(completions: Any, elapsed_s: float) -> Answer:
    if not isinstance(completions, list | tuple) or len(completions) != 1:
        raise ModelUnavailable("The model did not give exactly one answer for one prompt. Nothing was stored.")
    text = getattr(completions[0], "text", None)
    if not isinstance(text, str):
        raise ModelUnavailable("The model's answer is not a text. Nothing was stored.")
    finish_reason = str(getattr(completions[0], "finish_reason", None) or "stop")
    if len(text) > MAX_ANSWER_CHARS:
        text, finish_reason = text[:MAX_ANSWER_CHARS], "length"
    return Answer(
        text,
        _count(completions[0], "prompt_tokens"),
        _count(completions[0], "output_tokens"),
        finish_reason,
        elapsed_s,
    )


def _count(completion: Any, name: str) -> int:
    value = getattr(completion, name, 0)
    return value if isinstance(value, int) and value >= 0 else 0
