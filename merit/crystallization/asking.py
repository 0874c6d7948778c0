"""Many small dialogues with one model at once: what each of them asks next goes out in one batch.

A dialogue is a generator that yields ``Ask``s and is sent the answers. Its own work between two questions (running
statements, judging) happens in a few threads. Greedy questions share a batch; what is sampled is asked alone with a
seed of its own, so that an answer never depends on what else was asked with it.

What this module does not know: what is asked, or why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from merit.crystallization.episodes import Usage
from merit.crystallization.prompts import Prompt
from merit.errors import MeritError, ModelUnavailable
from merit.waiting import Stopped

if TYPE_CHECKING:
    from merit.models.language import Completion, LanguageModel

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

WORKERS = 8
"""Threads that run statements and judge."""


@dataclass(frozen=True)
class Ask:
    """One question to the model. ``samples`` answers are drawn where ``temperature`` is above 0. ``rerun`` tells a
    repetition from the first time, so that it is really asked again."""

    prompt: Prompt
    temperature: float = 0.0
    samples: int = 1
    seed: int = 0
    rerun: int = 0


Dialogue = Generator[Ask, "list[Completion]", T]


class Model(Protocol):
    """Whoever answers a batch: ``AskedModel``, or a cache in front of it."""

    def answers(self, asks: Sequence[Ask], cancel: threading.Event) -> list[list[Completion]]:
        """For each question its ``samples`` completions, in order."""
        ...


@dataclass(frozen=True)
class AskedModel:
    """A language model that is asked in batches of at most ``batch`` prompts."""

    model: LanguageModel
    max_new_tokens: int
    batch: int = 1

    def answers(self, asks: Sequence[Ask], cancel: threading.Event) -> list[list[Completion]]:
        """See ``Model``. Raises ``ModelUnavailable`` with a sentence, ``Stopped`` once ``cancel`` is set."""
        found: dict[int, list[Completion]] = {}
        greedy: dict[str, list[int]] = {}
        for index, ask in enumerate(asks):
            if ask.temperature > 0:
                prompts = [ask.prompt.user] * ask.samples
                found[index] = self._complete(prompts, ask.prompt.system, cancel, ask.temperature, ask.seed)
            else:
                greedy.setdefault(ask.prompt.system, []).append(index)
        for system, indices in greedy.items():
            waiting = iter(indices)
            while part := list(islice(waiting, self.batch)):
                completions = self._complete([asks[index].prompt.user for index in part], system, cancel, 0.0, 0)
                found |= {index: [one] * asks[index].samples for index, one in zip(part, completions, strict=True)}
        return [found[index] for index in range(len(asks))]

    def _complete(
        self, prompts: list[str], system: str, cancel: threading.Event, temperature: float, seed: int
    ) -> list[Completion]:
        try:
            completions = self.model.complete(
                prompts, self.max_new_tokens, system=system, temperature=temperature, seed=seed, cancel=cancel
            )
        except MeritError:
            raise
        except Exception as error:  # noqa: BLE001 - a foreign model may raise anything
            raise ModelUnavailable(f"The model failed with {type(error).__name__}. What was done is kept.") from None
        if cancel.is_set():
            raise Stopped
        fits = isinstance(completions, list | tuple) and len(completions) == len(prompts)
        if not fits or not all(isinstance(getattr(one, "text", None), str) for one in completions):
            raise ModelUnavailable("The model did not give one text for each prompt. What was done is kept.")
        return list(completions)


def spent(completions: Iterable[Completion], probes: int = 0) -> Usage:
    """The usage of these completions."""
    kept = list(completions)
    prompt_tokens = sum(one.prompt_tokens for one in kept)
    return Usage(len(kept), prompt_tokens, sum(one.output_tokens for one in kept), probes)


def hold(
    dialogues: Iterable[tuple[K, Callable[[], Dialogue[T]]]],
    model: Model,
    *,
    width: int = 16,
    cancel: threading.Event | None = None,
) -> Iterator[tuple[K, T]]:
    """Hold all dialogues, at most ``width`` at a time; yield each one's key and result as it ends.

    Raises ``Stopped`` once ``cancel`` is set, and what a dialogue or the model raises; what ended before is out.
    """
    cancel = cancel or threading.Event()
    waiting = iter(dialogues)
    open_now: list[tuple[K, Dialogue[T], Ask]] = []
    with ThreadPoolExecutor(WORKERS, "crystallization") as pool:
        while True:
            if cancel.is_set():
                raise Stopped
            started = [(key, begin()) for key, begin in islice(waiting, width - len(open_now))]
            turns: list[tuple[K, Dialogue[T], Any]] = [(key, dialogue, None) for key, dialogue in started]
            if open_now:
                answers = model.answers([ask for _, _, ask in open_now], cancel)
                turns += [(key, dialogue, got) for (key, dialogue, _), got in zip(open_now, answers, strict=True)]
            if not turns:
                return
            open_now = []
            for (key, dialogue, _), (ended, value) in zip(turns, pool.map(_turn, turns), strict=True):
                if ended:
                    yield key, value
                else:
                    open_now.append((key, dialogue, value))


def _turn(turn: tuple[Any, Dialogue[Any], Any]) -> tuple[bool, Any]:
    """Send one dialogue its answer; (False, its next question) or (True, its result)."""
    _, dialogue, answer = turn
    try:
        return False, dialogue.send(answer)
    except StopIteration as end:
        return True, end.value
