"""Models and a verifier that repeat what was recorded, then hand over to the real ones.

They let a mistaken yes or no be taken back, and an episode be run again under another memory, without a second loop:
``run_episode`` cannot tell the difference. What this module does not know: memory, bundles, what is made of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from merit.episode import Execution, Outcome, Question, Verdict
from merit.events import AttemptMade, EpisodeStarted, Event, Executed, Judged, PromptBuilt, Reflected
from merit.models.language import CANCELLED, Completion, LanguageModel, id_of
from merit.verification import Verifier


class ReplayingModel:
    """Gives the recorded answers up to the judgement of ``iteration``, in order, then asks ``model``."""

    def __init__(self, model: LanguageModel, events: Sequence[Event], iteration: int) -> None:
        self._model = model
        self._recorded = deque(_answers(_until(events, iteration)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def complete(self, prompts: Sequence[str], max_new_tokens: int = 512, **options: Any) -> list[Completion]:
        """As a language model's; the recorded answers are given whatever the prompt."""
        if self._recorded:
            return [self._recorded.popleft() for _ in prompts]
        return self._model.complete(prompts, max_new_tokens, **options)


class OncePerPrompt:
    """Asks ``model`` each prompt once; the same prompt has the same answer again, also in another episode.

    Greedy decoding of one model answers a prompt always alike, so episodes that share this differ by their prompts
    alone. ``known`` are the events of an episode whose answers count as given, if they are of the same model.
    """

    def __init__(self, model: LanguageModel, known: Sequence[Event] = ()) -> None:
        self._model = model
        started = known[0] if known else None
        same = isinstance(started, EpisodeStarted) and started.model_id == id_of(model)
        self._given = dict(answered(known)) if same else {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def complete(self, prompts: Sequence[str], max_new_tokens: int = 512, **options: Any) -> list[Completion]:
        """As a language model's."""
        return [self._one(prompt, max_new_tokens, options) for prompt in prompts]

    def _one(self, prompt: str, max_new_tokens: int, options: dict[str, Any]) -> Completion:
        if prompt not in self._given:
            (answer,) = self._model.complete([prompt], max_new_tokens, **options)
            cancel = options.get("cancel")
            if getattr(answer, "finish_reason", "") == CANCELLED or (cancel is not None and cancel.is_set()):
                return answer
            self._given[prompt] = answer
        return self._given[prompt]


class ReplayingVerifier:
    """Gives the recorded verdicts before ``iteration``, ``corrected`` for that attempt, then asks ``verifier``."""

    def __init__(self, verifier: Verifier, events: Sequence[Event], iteration: int, corrected: Outcome) -> None:
        self._verifier = verifier
        self._recorded = deque(_verdicts(_until(events, iteration), iteration, corrected))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._verifier, name)

    @property
    def needs_person(self) -> bool:
        """Nobody is asked again what is on record."""
        return not self._recorded and bool(getattr(self._verifier, "needs_person", False))

    def judge(self, question: Question, database: Any, sql: str, execution: Execution | None = None) -> Verdict:
        """As a verifier's."""
        if self._recorded:
            return self._recorded.popleft()
        return self._verifier.judge(question, database, sql, execution)


def _until(events: Sequence[Event], iteration: int) -> list[Event]:
    """The events up to the judgement of ``iteration``, that included."""
    kept = []
    for event in events:
        kept.append(event)
        if isinstance(event, Judged) and event.iteration == iteration:
            break
    return kept


def _answers(events: Sequence[Event]) -> list[Completion]:
    """What the model said; a first answer that was given, before any prompt, is not among it."""
    return [answer for _, answer in answered(events)]


def answered(events: Sequence[Event]) -> Iterator[tuple[str, Completion]]:
    """Each prompt with the model's answer to it, in order."""
    prompt: str | None = None
    for event in events:
        if isinstance(event, PromptBuilt):
            prompt = event.prompt
        elif prompt is not None and isinstance(event, AttemptMade):
            yield prompt, Completion(event.raw, event.prompt_tokens, event.output_tokens, event.finish_reason)
            prompt = None
        elif prompt is not None and isinstance(event, Reflected):
            yield prompt, Completion(event.text, event.prompt_tokens, event.output_tokens)
            prompt = None


def _verdicts(events: Sequence[Event], iteration: int, corrected: Outcome) -> list[Verdict]:
    """One verdict for each attempt that a verifier was asked about (an empty answer never is)."""
    asked = {event.iteration for event in events if isinstance(event, AttemptMade) and event.sql}
    errors = {event.iteration: event.error for event in events if isinstance(event, Executed)}
    return [
        Verdict(corrected, None, event.by)
        if event.iteration == iteration
        else Verdict(event.outcome, errors.get(event.iteration), event.by)
        for event in events
        if isinstance(event, Judged) and event.iteration in asked
    ]
