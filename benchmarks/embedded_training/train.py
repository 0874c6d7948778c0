"""The training loop: niced, checkpointed by the clock, resumed after a kill from the last checkpoint.

The learning rate follows the planned time (warm-up, then a cosine to a twentieth), so a run on a shared machine ends
when it was planned to. The checkpoint (adapter in float32, optimiser, place in the data) is written to the work
folder, outside the repository, by one rename. It does not know where the packs come from.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.embedded_training.collate import IGNORED, Pack, collate
from benchmarks.embedded_training.network import adapters, answer_loss, merge, save_adapter

CHECKPOINT = "state.pt"
Jobs = Callable[[int, random.Random], Iterator[Callable[[], list[Pack]]]]
"""One pass over the data: (its number, a generator seeded for it) → jobs that render the packs of one step each."""


@dataclass(frozen=True)
class Plan:
    """How long and how fast; `minutes` of training in all, kills and restarts not counted."""

    minutes: float
    learning_rate: float = 1e-3
    warm_up_steps: int = 20
    seed: int = 0
    checkpoint_s: float = 180.0
    base: str = "HuggingFaceTB/SmolLM2-135M-Instruct"


@dataclass
class _Progress:
    seconds: float = 0.0
    steps: int = 0
    tokens: int = 0
    answers: int = 0
    epoch: int = 0
    jobs_done: int = 0
    loss: float = 0.0


def train(
    model: Any,
    jobs: Jobs,
    plan: Plan,
    work: Path,
    *,
    steps: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Trains the adapters of `model` until the planned minutes (or `steps` in all) are over or `stopped()` says so.

    Continues from `work/state.pt` if there is one. Leaves `work/adapter/` (PEFT's layout, 16 bits) and the checkpoint.
    """
    work.mkdir(parents=True, exist_ok=True)
    parameters = [p for _, layer in adapters(model) for p in (layer.lora_A, layer.lora_B)]
    optimiser = torch.optim.AdamW(parameters, lr=plan.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, foreach=True)
    progress = _restore(model, optimiser, work)
    before = saved = time.monotonic()

    def over() -> bool:
        spent = progress.seconds >= plan.minutes * 60
        return spent or stopped() or (steps is not None and progress.steps >= steps)

    while not over():
        rng = random.Random(f"{plan.seed} {progress.epoch}")
        for number, job in enumerate(jobs(progress.epoch, rng)):
            if number < progress.jobs_done:
                continue
            if packs := job():
                _step(model, optimiser, parameters, packs, progress, plan)
            now = time.monotonic()
            progress.seconds += now - before
            before = now
            progress.jobs_done = number + 1
            if over():
                break
            if before - saved > plan.checkpoint_s:
                _save(model, optimiser, progress, plan, work)
                saved = before
        else:
            progress.epoch, progress.jobs_done = progress.epoch + 1, 0
    _save(model, optimiser, progress, plan, work)


def learning_rate(plan: Plan, seconds: float, step: int) -> float:
    """Linear over the first steps, then a cosine over the planned time down to a twentieth."""
    share = min(1.0, seconds / (plan.minutes * 60))
    warm = min(1.0, (step + 1) / plan.warm_up_steps)
    return plan.learning_rate * warm * (0.05 + 0.475 * (1 + math.cos(math.pi * share)))


def _step(
    model: Any,
    optimiser: torch.optim.Optimizer,
    parameters: list[Any],
    packs: Sequence[Pack],
    progress: _Progress,
    plan: Plan,
) -> None:
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(plan, progress.seconds, progress.steps)
    batches = [collate(pack) for pack in packs]
    answer_tokens = sum(int((batch.labels != IGNORED).sum()) for batch in batches)
    mean = 0.0
    for batch in batches:
        loss = answer_loss(model, batch) / answer_tokens
        loss.backward()  # type: ignore[no-untyped-call]
        mean += loss.item()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    merge(model)
    progress.steps += 1
    progress.tokens += sum(pack.tokens for pack in packs)
    progress.answers += sum(len(pack.tails) for pack in packs)
    progress.loss = 0.95 * progress.loss + 0.05 * mean if progress.steps > 1 else mean
    if progress.steps % 10 == 0:
        speed = progress.tokens / max(progress.seconds, 1e-9)
        sys.stdout.write(
            f"step {progress.steps} pass {progress.epoch} loss {progress.loss:.3f} answers {progress.answers} "
            f"tokens {progress.tokens} tok/s {speed:.0f} min {progress.seconds / 60:.1f}\n"
        )
        sys.stdout.flush()


def _save(model: Any, optimiser: torch.optim.Optimizer, progress: _Progress, plan: Plan, work: Path) -> None:
    state = {
        "weights": {name: (layer.lora_A.detach(), layer.lora_B.detach()) for name, layer in adapters(model)},
        "optimiser": optimiser.state_dict(),
        "progress": vars(progress),
    }
    torch.save(state, work / (CHECKPOINT + ".part"))
    (work / (CHECKPOINT + ".part")).replace(work / CHECKPOINT)
    save_adapter(model, work / "adapter", plan.base)


def _restore(model: Any, optimiser: torch.optim.Optimizer, work: Path) -> _Progress:
    progress = _Progress()
    if (work / CHECKPOINT).is_file():
        state = torch.load(work / CHECKPOINT, weights_only=True)
        with torch.no_grad():
            for name, layer in adapters(model):
                a, b = state["weights"][name]
                layer.lora_A.copy_(a)
                layer.lora_B.copy_(b)
        optimiser.load_state_dict(state["optimiser"])
        vars(progress).update(state["progress"])
    merge(model)
    return progress
