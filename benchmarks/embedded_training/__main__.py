"""python -m benchmarks.embedded_training: train, gather failures, check. Each command goes on after a kill.

The whole recipe is three calls (see assets/embedded_adapter/README.md):
train first answers, gather the model's own failures with what came of it, train again with half repair.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.embedded_training.collate import Pack
from benchmarks.embedded_training.corpus import HELD_OUT, TrainingDatabase, read
from benchmarks.embedded_training.examples import Codec, initial_packs, together
from benchmarks.embedded_training.own_failures import Failed, gather, read_failures
from benchmarks.embedded_training.repairs import reflection_packs, repair_packs
from merit.models import embedded

app = typer.Typer(no_args_is_help=True, add_completion=False)

Spider = Annotated[Path, typer.Option(help="Spider's official folder (train_spider.json, tables.json, database/).")]
Adapter = Annotated[Path, typer.Option(help="The adapter to start from or to ask.")]
Base = Annotated[Path | None, typer.Option(help="The converted base model; fetched and converted if not given.")]
REPAIRS_A_STEP = 3
"""Repair packs are small (one to eight answers); three have about the tokens of one step on initial prompts."""
REFLECTIONS = 0.05
"""Share of the failed questions that also give a reflection prompt in each pass."""


def mixed(
    databases: list[TrainingDatabase], failures: list[Failed], codec: Codec, rng: random.Random
) -> Iterator[Callable[[], list[Pack]]]:
    """A pass of repairs, step about with initial prompts of as many tokens; without failures initial prompts alone."""
    first = list(initial_packs(databases, codec, rng))
    if not failures:
        yield from first
        return
    later = list(repair_packs(databases, failures, codec, rng))
    later += reflection_packs(databases, failures, codec, rng, REFLECTIONS)
    rng.shuffle(later)
    for number, repairs in enumerate(together(later, REPAIRS_A_STEP)):
        yield repairs
        yield first[number % len(first)]


def _jobs(
    databases: list[TrainingDatabase], failures: Path | None, codec: Codec, _epoch: int, rng: random.Random
) -> Iterator[Callable[[], list[Pack]]]:
    """One pass; failures that were gathered meanwhile are in the next."""
    return mixed(databases, read_failures(failures) if failures else [], codec, rng)


def _network(base: Path | None, adapter: Path, threads: int) -> tuple[Any, Codec]:
    import torch
    from transformers import AutoTokenizer

    from benchmarks.embedded_training.network import load_adapter, load_network

    os.nice(19)
    torch.set_num_threads(threads)
    folder = base or embedded.base_folder()
    model = load_network(folder)
    load_adapter(model, adapter)
    return model, Codec(AutoTokenizer.from_pretrained(folder))


def _answer(model: Any, codec: Codec, seed: int) -> Callable[[list[str], float], list[str]]:
    import torch

    from benchmarks.embedded_training import decode

    generator = torch.Generator().manual_seed(seed)

    def answer(texts: list[str], temperature: float) -> list[str]:
        ids = [codec.prompt(text) for text in texts]
        answers = decode.answer(model, ids, end=codec.end, temperature=temperature, generator=generator)
        return [codec.text(tokens) for tokens in answers]

    return answer


@app.command()
def train(
    spider: Spider,
    work: Annotated[Path, typer.Option(help="Where checkpoint and adapter go; outside the repository.")],
    minutes: Annotated[float, typer.Option(help="Minutes of training in all.")],
    adapter: Adapter = embedded.ADAPTER,
    failures: Annotated[Path | None, typer.Option(help="Own failures; half of the packs are repairs then.")] = None,
    learning_rate: Annotated[float, typer.Option()] = 1e-3,
    seed: Annotated[int, typer.Option()] = 0,
    threads: Annotated[int, typer.Option()] = os.cpu_count() or 2,
    base: Base = None,
) -> None:
    """Train the adapter further; a second call with the same --work goes on where the first was stopped."""
    from benchmarks.embedded_training import train as loop

    model, codec = _network(base, adapter, threads)
    databases = read(spider, count_tokens=codec.count)
    plan = loop.Plan(minutes=minutes, learning_rate=learning_rate, seed=seed)
    asked_to_stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked_to_stop.set())  # ends after the step, with a checkpoint
    jobs = partial(_jobs, databases, failures, codec)
    loop.train(model, jobs, plan, work, stopped=asked_to_stop.is_set)


@app.command()
def failures(
    spider: Spider,
    out: Annotated[Path, typer.Option(help="The JSON lines file to write or continue.")],
    minutes: Annotated[float, typer.Option(help="Stop after so many minutes.")],
    adapter: Adapter = embedded.ADAPTER,
    seed: Annotated[int, typer.Option()] = 0,
    threads: Annotated[int, typer.Option()] = os.cpu_count() or 2,
    base: Base = None,
) -> None:
    """Let the adapter answer the training questions and keep what it got wrong."""
    deadline = time.monotonic() + 60 * minutes
    model, codec = _network(base, adapter, threads)
    gather(read(spider, count_tokens=codec.count), _answer(model, codec, seed), out, deadline=deadline)


@app.command()
def check(
    spider: Spider,
    adapter: Adapter = embedded.ADAPTER,
    budget: Annotated[int, typer.Option(help="Repairs of a wrong answer, at most.")] = 1,
    questions: Annotated[int, typer.Option(help="Questions a database, at most.")] = 20,
    threads: Annotated[int, typer.Option()] = os.cpu_count() or 2,
    base: Base = None,
) -> None:
    """First-try and repaired counts on the databases held out of Spider train."""
    from benchmarks.embedded_training.check import check as held_out

    model, codec = _network(base, adapter, threads)
    databases = read(spider, keep=HELD_OUT.__contains__, count_tokens=codec.count, most_questions=questions)
    typer.echo(str(held_out(databases, _answer(model, codec, 0), budget=budget)))


if __name__ == "__main__":
    app()
