"""A model and a verifier that repeat what an episode recorded up to one judgement, then hand over to the real ones.

They let a mistaken yes or no be taken back without a second loop: ``run_episode`` runs again and cannot tell the
difference. What this module does not know: memory, bundles, what the corrected judgement leads to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from merit.episode import Execution, Outcome, Question, Verdict
from merit.events import AttemptMade, Event, Executed, Judged, PromptBuilt, Reflected
from merit.models.language import Completion, LanguageModel
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
    answers, prompted = [], False
    for event in events:
        if isinstance(event, PromptBuilt):
            prompted = True
        elif prompted and isinstance(event, AttemptMade | Reflected):
            text = event.raw if isinstance(event, AttemptMade) else event.text
            answers.append(Completion(text, event.prompt_tokens, event.output_tokens))
    return answers


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
