"""What a language model and an encoder are to the rest of the house: two small protocols and their facts.

What this module does not know: any library that runs a model. Importing it is cheap.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

Stream = Callable[[int, str], None]
"""``stream(prompt_index, piece)``, called in the thread of ``complete``; the pieces of a prompt add up to its text."""

STOP, LENGTH, CANCELLED, TIME = "stop", "length", "cancelled", "time"
"""Finish reasons: the model ended by itself, ``max_new_tokens``, the cancel event, the time limit."""


@dataclass(frozen=True)
class Completion:
    """One answer. Token counts are those of the model's own tokeniser, chat framing included; 0 where unknown."""

    text: str
    prompt_tokens: int
    output_tokens: int
    finish_reason: str = STOP


@dataclass(frozen=True)
class ModelInfo:
    """What runs, for the models page. ``leaves_machine``: prompts are sent to another machine.

    ``notes`` are sentences for a person, such as why a smaller model was taken."""

    label: str
    revision: str = ""
    quantisation: str = "none"
    dtype: str = ""
    device: str = ""
    leaves_machine: bool = False
    notes: tuple[str, ...] = ()


@runtime_checkable
class LanguageModel(Protocol):
    """All that is asked of a foreign model. ``id, count_tokens, context_tokens, info, tokens_per_second`` are optional.

    ``context_tokens`` counts prompt and answer together."""

    def complete(
        self,
        prompts: Sequence[str],
        max_new_tokens: int = 512,
        *,
        system: str | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        stream: Stream | None = None,
        cancel: threading.Event | None = None,
    ) -> list[Completion]:
        """One completion per prompt, in order. ``temperature`` 0 is greedy. Chat framing happens inside."""
        ...


@runtime_checkable
class Encoder(Protocol):
    """Texts to unit vectors. ``id`` names weights and revision: another id means another memory table."""

    @property
    def id(self) -> str:
        """Name and revision."""
        ...

    @property
    def dimension(self) -> int:
        """d, the length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """float32 of shape (n, d), each row of length 1 (L2)."""
        ...


def id_of(model: object) -> str:
    """The id of a model or an encoder; of a foreign one without an id, its class."""
    return str(getattr(model, "id", None) or type(model).__name__)
