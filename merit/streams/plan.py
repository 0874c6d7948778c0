"""What is asked and how, before anything runs: the plan of an experiment, the order of a stream, and the settings that
a run folder may not mix.

What this module does not know: how a stream is run.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING, Any

import merit
from merit import prompts
from merit.episode import Question
from merit.errors import BadInput
from merit.models.language import id_of
from merit.strategy import STRATEGIES, Strategy
from merit.streams.datasets import Dataset
from merit.streams.folder import FORMAT
from merit.streams.predictions import Predictions

if TYPE_CHECKING:
    from merit.verification import Verifier

Initial = Predictions | Mapping[str, str] | Sequence[str] | None


@dataclass(frozen=True)
class Plan:
    """What is the same in all streams of an experiment. ``initial`` maps question ids to first answers that were
    brought; a question it does not name is asked."""

    dataset: Dataset
    verifier: Verifier
    budget: int = 7
    extraction: str = "product"
    initial: Mapping[str, str] | None = None


def stream_order(questions: Sequence[Question], seed: int) -> list[Question]:
    """The questions by position: ``random.Random(seed).shuffle`` of the list in file order (spec §7)."""
    order = list(questions)
    random.Random(seed).shuffle(order)
    return order


def is_independent(strategy: Strategy) -> bool:
    """Whether what happens to a question under this strategy does not depend on the order: nothing is remembered."""
    return not strategy.uses_memory


def label(strategy: Strategy) -> str:
    """The strategy's name, with what differs from the known one of that name; usable as the name of a folder."""
    known = STRATEGIES[strategy.name] if strategy.name in STRATEGIES else Strategy(name="", title="", description="")
    changed = {name: value for name, value in _facts(strategy).items() if value != _facts(known)[name]}
    return "--".join([strategy.name, *(f"{name}-{value}" for name, value in sorted(changed.items()) if name != "name")])


def first_answers(initial: Initial, dataset: Dataset) -> dict[str, str] | None:
    """Brought answers by question id; ``BadInput`` where they are not as many as the questions, or of others."""
    if initial is None:
        return None
    if isinstance(initial, Predictions):
        known = {question.id for question in dataset}
        return {id: sql for id, sql in initial.by_id.items() if id in known}
    if isinstance(initial, Mapping):
        if foreign := sorted({*initial} - {question.id for question in dataset}):
            raise BadInput(
                f"There are first answers for questions that {dataset.name} lacks: {', '.join(foreign[:5])}."
            )
        return dict(initial)
    if len(initial) != len(dataset):
        raise BadInput(f"There are {len(initial)} first answers for the {len(dataset)} questions of {dataset.name}.")
    return {question.id: sql for question, sql in zip(dataset, initial, strict=True)}


def settings_of(plan: Plan, strategy: Strategy, seed: int, model: object, encoder: object) -> dict[str, Any]:
    """All that decides what a stream does, as JSON: what a run folder may not mix."""
    return {
        "format": FORMAT,
        "version": merit.__version__,
        "dataset": {
            "name": plan.dataset.name,
            "benchmark": plan.dataset.benchmark,
            "questions": len(plan.dataset),
            "fingerprint": plan.dataset.fingerprint,
        },
        "strategy": _facts(strategy),
        "seed": seed,
        "budget": plan.budget,
        "extraction": plan.extraction,
        "prompts": _prompts_fingerprint(),
        "initial": None if plan.initial is None else _fingerprint(sorted(plan.initial.items())),
        "verifier": repr(plan.verifier)
        if hasattr(plan.verifier, "faults")
        else str(getattr(plan.verifier, "name", "")),
        "model": id_of(model),
        "encoder": id_of(encoder),
    }


def _facts(strategy: Strategy) -> dict[str, Any]:
    """What a strategy does, without its words for the screen."""
    facts = {name: value for name, value in asdict(strategy).items() if name not in ("title", "description")}
    return {**facts, "hard_types": sorted(strategy.hard_types)}


def _fingerprint(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True).encode("ascii")).hexdigest()[:16]


@once
def _prompts_fingerprint() -> str:
    """The prompt texts as they are in this version."""
    folder = Path(prompts.__file__).parent / "templates"
    return _fingerprint([[file.name, file.read_text(encoding="utf-8")] for file in sorted(folder.glob("*.[tj]*"))])
