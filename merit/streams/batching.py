"""Side by side: many episodes wait for their next answer, and their prompts are generated in one batch.

Each lane runs an ordinary ``run_episode`` in a thread of its own with a :class:`SharedModel`. A prompt is answered from
the cache, or it waits at the :class:`Batcher` until the lanes that run have nothing else to do (or one has waited long
enough), and then goes to the model together with theirs. What an episode sees does not depend on who else waits.

What this module does not know: strategies, orders, what is done with an answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from merit.errors import ModelUnavailable
from merit.models.language import CANCELLED, TIME, Completion, LanguageModel
from merit.streams.cache import GenerationCache

LINGER_S = 0.25
"""How long a prompt waits for lanes that are busy with SQL."""
PAUSES_S = (2.0, 5.0, 15.0, 30.0, 60.0)
"""Waits before a prompt is tried again when the model or its server fails; after the last the run pauses."""
_LOOK_S = 0.05


@dataclass(eq=False)
class _Request:
    prompt: str
    max_new_tokens: int
    since: float = field(default_factory=time.monotonic)
    done: threading.Event = field(default_factory=threading.Event)
    answer: Completion | None = None
    error: Exception | None = None


class Batcher:
    """Collects prompts of running lanes and generates up to ``width`` at once. Use as a context manager.

    ``cancel`` ends every wait. ``said`` is told, as a sentence, when the model fails and is asked again.
    """

    def __init__(
        self,
        model: LanguageModel,
        width: int = 8,
        *,
        cache: GenerationCache | None = None,
        cancel: threading.Event | None = None,
        linger_s: float = LINGER_S,
        said: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.model = model
        self.width = max(1, width)
        self.cancel = cancel or threading.Event()
        self.batches: list[int] = []
        self.generating_s = 0.0
        self._linger_s = linger_s
        self._said = said
        self._cache = cache
        self._waiting: list[_Request] = []
        self._in_flight: dict[tuple[str, int], _Request] = {}
        self._failure: Exception | None = None
        self._lanes = 0
        self._open = True
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="merit-batcher", daemon=True)

    def __enter__(self) -> Batcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._open = False
            self._changed.notify_all()
        self._thread.join()

    @contextmanager
    def lane(self) -> Iterator[None]:
        """While it lasts, a batch waits for this lane's prompt too."""
        with self._changed:
            self._lanes += 1
        try:
            yield
        finally:
            with self._changed:
                self._lanes -= 1
                self._changed.notify_all()

    def ask(self, prompt: str, max_new_tokens: int, cancel: threading.Event | None) -> Completion:
        """The greedy answer. Errors: what the model raised, once trying again did not help."""
        known = self._known(prompt, max_new_tokens)
        if isinstance(known, Completion):
            return known
        request = known
        while not request.done.wait(_LOOK_S):
            if self.cancel.is_set() or (cancel is not None and cancel.is_set()):
                return Completion("", 0, 0, CANCELLED)
        if request.error is not None:
            raise request.error
        assert request.answer is not None
        return request.answer

    def _known(self, prompt: str, max_new_tokens: int) -> Completion | _Request:
        """The kept answer, else the request of a lane that waits for the same, else a new one."""
        key = self._key(prompt, max_new_tokens)
        with self._changed:
            if (prompt, max_new_tokens) in self._in_flight:
                return self._in_flight[prompt, max_new_tokens]
            if self._cache is not None and key is not None and (kept := self._cache.get(key)) is not None:
                return kept
            request = self._in_flight[prompt, max_new_tokens] = _Request(prompt, max_new_tokens)
            self._waiting.append(request)
            self._changed.notify_all()
            return request

    def _key(self, prompt: str, max_new_tokens: int) -> str | None:
        return None if self._cache is None else self._cache.key(self.model, prompt, max_new_tokens)

    def _work(self) -> None:
        while batch := self._next_batch():
            self._answer(batch)

    def _next_batch(self) -> list[_Request]:
        """The prompts to generate now; [] when the batcher closes."""
        with self._changed:
            while self._open or self._waiting:
                if self.cancel.is_set():
                    self._waiting.clear()
                    self._in_flight.clear()
                if self._waiting and self._full():
                    return self._taken()
                self._changed.wait(self._patience())
        return []

    def _full(self) -> bool:
        waits = len(self._waiting)
        oldest = time.monotonic() - self._waiting[0].since
        return not self._open or waits >= min(self.width, self._lanes) or oldest >= self._linger_s

    def _patience(self) -> float:
        if not self._waiting:
            return _LOOK_S * 4
        return max(0.001, self._waiting[0].since + self._linger_s - time.monotonic())

    def _taken(self) -> list[_Request]:
        """The oldest prompt and those nearest to it in length: rows of a batch are padded to the longest."""
        first = self._waiting[0]
        same_limit = [request for request in self._waiting if request.max_new_tokens == first.max_new_tokens]
        near = sorted(same_limit, key=lambda request: abs(len(request.prompt) - len(first.prompt)))[: self.width]
        for request in near:
            self._waiting.remove(request)
        return near

    def _answer(self, batch: list[_Request]) -> None:
        """One batch; where it fails, its halves. Once a single prompt has failed for good, so do all others: the run
        pauses, and nobody waits for each of them in turn."""
        try:
            if self._failure is not None:
                raise self._failure
            for request, answer in zip(batch, self._generated(batch), strict=True):
                key = self._key(request.prompt, request.max_new_tokens)
                kept = self._cache.keep(key, answer) if self._cache is not None and key is not None else answer
                self._finish(request, kept)
        except Exception as error:  # noqa: BLE001 - carried to the lanes that wait
            left = [request for request in batch if not request.done.is_set()]
            if len(left) > 1 and self._failure is None and not self.cancel.is_set():
                self._answer(left[: len(left) // 2])
                self._answer(left[len(left) // 2 :])
                return
            self._failure = error
            for request in left:
                self._finish(request, error)

    def _finish(self, request: _Request, end: Completion | Exception) -> None:
        with self._changed:
            self._in_flight.pop((request.prompt, request.max_new_tokens), None)
        if isinstance(end, Exception):
            request.error = end
        else:
            request.answer = end
        request.done.set()

    def _generated(self, batch: list[_Request]) -> list[Completion]:
        pauses = list(PAUSES_S) if len(batch) == 1 else []
        while True:
            started = time.monotonic()
            try:
                answers = generated(
                    self.model, [request.prompt for request in batch], batch[0].max_new_tokens, self.cancel
                )
                self.batches.append(len(batch))
                return answers
            except ModelUnavailable as error:
                if not pauses or self.cancel.is_set():
                    raise
                pause = pauses.pop(0)
                self._said(f"{error} Asking again in {pause:g} s.")
                self.cancel.wait(pause)
            finally:
                self.generating_s += time.monotonic() - started


def generated(
    model: LanguageModel, prompts: Sequence[str], max_new_tokens: int, cancel: threading.Event | None
) -> list[Completion]:
    """Greedy answers, one a prompt, whole ones only: an answer that was cut by the clock is a failure of the model, so
    that no accuracy ever depends on how busy a machine was."""
    answers = model.complete(list(prompts), max_new_tokens=max_new_tokens, temperature=0.0, seed=0, cancel=cancel)
    if not isinstance(answers, list | tuple) or len(answers) != len(prompts):
        raise ModelUnavailable("The model did not give one answer for each prompt.")
    if not all(isinstance(answer, Completion) for answer in answers):
        raise ModelUnavailable("The model's answer is not a completion.")
    if any(answer.finish_reason == TIME for answer in answers):
        raise ModelUnavailable("The model did not come to the end of its answer in time.")
    return list(answers)


class SharedModel:
    """What a lane's episode takes for its language model: answers of the cache, else of the batcher.

    ``waited_s`` adds up how long its prompts waited for their answers, ``failure`` is what the model could not do.
    Everything else (``id``, ``context_tokens`` …) is the model's own.
    """

    def __init__(self, batcher: Batcher) -> None:
        self.waited_s = 0.0
        self.failure: Exception | None = None
        self._batcher = batcher
        count = getattr(batcher.model, "count_tokens", None)
        if callable(count):
            self.count_tokens: Callable[[str], int] = count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batcher.model, name)

    def complete(
        self, prompts: Sequence[str], max_new_tokens: int = 512, *, cancel: threading.Event | None = None, **_: Any
    ) -> list[Completion]:
        """As a language model's; greedy whatever is asked for."""
        started = time.monotonic()
        try:
            return [self._batcher.ask(prompt, max_new_tokens, cancel) for prompt in prompts]
        except Exception as error:
            self.failure = error
            raise
        finally:
            self.waited_s += time.monotonic() - started
