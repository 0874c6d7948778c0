"""One generation at a time, first come first served, with the place in the queue visible.

Sessions share one model and cannot starve each other: whoever asks again stands at the end.

What this module does not know: what the model is or who asks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from merit.models.language import CANCELLED, Completion, LanguageModel, Stream

_LOOK_EVERY_S = 0.05


class _Ticket:
    """One caller in the line; two calls with the same cancel event are still two callers."""

    def __init__(self, cancel: threading.Event | None) -> None:
        self.cancel = cancel

    def is_for(self, event: threading.Event) -> bool:
        """Whether this caller passed the event, or an event that stands for it."""
        return self.cancel is not None and (self.cancel is event or getattr(self.cancel, "on_behalf_of", None) is event)


class Queued:
    """A language model in front of which callers line up; everything else (``id``, ``info`` …) is the model's own.

    The ticket of a caller is the ``cancel`` event it passes to ``complete``: ask ``place(cancel)`` for its place.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self._changed = threading.Condition()
        self._line: deque[_Ticket] = deque()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    @property
    def waiting(self) -> int:
        """How many callers wait behind the one that is served."""
        with self._changed:
            return max(0, len(self._line) - 1)

    def place(self, ticket: threading.Event) -> int | None:
        """0 for the caller being served, k for the k-th waiting, None for one that is not in the queue.

        A call made on behalf of another event (its cancel event has ``on_behalf_of``) is found by that one too."""
        with self._changed:
            return next((place for place, held in enumerate(self._line) if held.is_for(ticket)), None)

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
        """Wait for the turn, then the model's ``complete``; cancelled while waiting: leave at once, texts empty."""
        ticket = _Ticket(cancel)
        with self._changed:
            self._line.append(ticket)
        try:
            if not self._wait_for_turn(ticket):
                return [Completion("", 0, 0, CANCELLED) for _ in prompts]
            return self.model.complete(
                prompts,
                max_new_tokens,
                system=system,
                temperature=temperature,
                seed=seed,
                stream=stream,
                cancel=cancel,
            )
        finally:
            with self._changed:
                self._line.remove(ticket)
                self._changed.notify_all()

    def _wait_for_turn(self, ticket: _Ticket) -> bool:
        with self._changed:
            while self._line[0] is not ticket:
                if ticket.cancel is not None and ticket.cancel.is_set():
                    return False
                self._changed.wait(_LOOK_EVERY_S)
            return True
