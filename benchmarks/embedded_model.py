"""How well and how fast the embedded model answers and repairs, through the product's own modules.

First-try EX (Spider semantics, every fault of the official script off, greedy) on Spider dev where it is at hand and
on the questions of the sample databases; then repair of what was wrong at first, strategy by strategy, with gold
verdicts. Every greedy answer is kept by model, exact prompt and length in a cache, so that nothing is generated twice.

The model is trained to read memory cards: a memory lift measured here says nothing of models that are not. None of
the papers' numbers are claimed for it.

    python benchmarks/embedded_model.py [--quick] [--dev N] [--repair N] [--budget K] [--orders N] [--cache FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from merit.database import Database, samples  # noqa: E402
from merit.episode import Outcome, Question  # noqa: E402
from merit.events import AttemptMade, EpisodeFinalised, Failed  # noqa: E402
from merit.memory import MemoryStore  # noqa: E402
from merit.models import Completion, load, load_encoder  # noqa: E402
from merit.prompts import extract_sql, initial_prompt  # noqa: E402
from merit.repair import run_episode  # noqa: E402
from merit.verification import SpiderVerifier  # noqa: E402

SPIDER = Path(os.environ.get("MERIT_TEST_DATA") or ROOT.parent / "shared" / "data") / "spider"
STRATEGIES = ("iterative", "merit", "same_database", "dynamic_rag")
ANSWER_TOKENS = 512
AT_ONCE = 8
VERIFIER = SpiderVerifier(official=False)


@dataclass(frozen=True)
class Asked:
    """A question over its open database; `level` is Spider's hardness where it is known."""

    question: Question
    database: Database
    level: str = ""


class Cached:
    """A model whose greedy answers are kept in a JSON lines file by model, exact prompt and length."""

    def __init__(self, model: Any, file: Path) -> None:
        self._model, self._file = model, file
        self._known: dict[str, Completion] = {}
        if file.is_file():
            for line in file.read_text(encoding="utf-8").splitlines():
                raw = json.loads(line)
                self._known[raw.pop("key")] = Completion(**raw)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def complete(self, prompts: Sequence[str], max_new_tokens: int = 512, **options: Any) -> list[Completion]:
        """As the model's own, for greedy answers without a system prompt."""
        keys = [hashlib.sha256(f"{self._model.id}\n{max_new_tokens}\n{p}".encode()).hexdigest() for p in prompts]
        new = {key: prompt for key, prompt in zip(keys, prompts, strict=True) if key not in self._known}
        for part in _parts(sorted(new.items(), key=lambda item: len(item[1])), AT_ONCE):
            made = self._model.complete([prompt for _, prompt in part], max_new_tokens, **options)
            with self._file.open("a", encoding="utf-8") as file:
                for (key, _), completion in zip(part, made, strict=True):
                    self._known[key] = completion
                    file.write(json.dumps({"key": key, **vars(completion)}) + "\n")
        return [self._known[key] for key in keys]


def _parts(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def dev_questions(count: int) -> list[Asked]:
    """A fixed random sample of Spider dev with the types of tables.json; empty where Spider is not at hand."""
    if not (SPIDER / "dev.json").is_file():
        return []
    lines = json.loads((SPIDER / "dev.json").read_text(encoding="utf-8"))
    random.Random(0).shuffle(lines)
    types = {entry["db_id"]: entry for entry in json.loads((SPIDER / "tables.json").read_text(encoding="utf-8"))}
    opened = {
        id: Database.open(SPIDER / "database" / id / f"{id}.sqlite", id=id, types=types[id])
        for id in sorted({line["db_id"] for line in lines[:count]})
    }
    return [
        Asked(
            Question(line["question"], line["db_id"], gold_sql=line["query"], benchmark="spider"), opened[line["db_id"]]
        )
        for line in lines[:count]
    ]


def sample_questions() -> list[Asked]:
    """All questions of the sample databases, as the Ask page shows their schemas."""
    return [
        Asked(record.question, database, record.difficulty)
        for id in samples.ids()
        for database in [Database.open(samples.path(id), id=id)]
        for record in samples.records(id)
    ]


def first_answers(model: Any, asked: Sequence[Asked]) -> list[str]:
    """The SQL of the first answer to each question, greedy; questions over one database are answered together."""
    order = sorted(range(len(asked)), key=lambda i: (asked[i].question.database_id, len(asked[i].question.text)))
    prompts = [initial_prompt(asked[i].question, asked[i].database.schema()) for i in order]
    texts = [completion.text for completion in model.complete(prompts, max_new_tokens=ANSWER_TOKENS)]
    return [sql for _, sql in sorted(zip(order, map(extract_sql, texts), strict=True))]


def outcomes(asked: Sequence[Asked], answers: Sequence[str]) -> list[Outcome]:
    """What the verifier says of each answer."""
    return [VERIFIER.judge(a.question, a.database, sql).outcome for a, sql in zip(asked, answers, strict=True)]


@dataclass(frozen=True)
class Repaired:
    """One strategy over one stream: initially wrong questions, how many were mended, how repairs repeat."""

    wrong: int
    mended: int
    repairs: int
    repeats: int


def repair(
    model: Any, encoder: Any, asked: Sequence[Asked], answers: Sequence[str], strategy: str, budget: int, order: int
) -> Repaired:
    """Runs the questions as one stream in the given order, first answers as they are, with an empty memory at first.

    A repeat is a repair whose SQL equals an earlier attempt of its episode.
    """
    places = list(range(len(asked)))
    random.Random(order).shuffle(places)
    wrong = mended = repairs = repeats = 0
    with MemoryStore.open("memory://embedded_model", encoder, stream=f"{strategy}-{order}") as store:
        for position, place in enumerate(places):
            events = run_episode(
                asked[place].question,
                asked[place].database,
                model,
                VERIFIER,
                store,
                strategy,
                position,
                budget,
                initial=answers[place],
            )
            tried: list[str] = []
            for event in events:
                if isinstance(event, AttemptMade):
                    repeats += event.iteration > 0 and event.sql in tried
                    repairs += event.iteration > 0
                    tried.append(event.sql)
                elif isinstance(event, EpisodeFinalised):
                    mended += event.repairs > 0 and event.outcome is Outcome.CORRECT
                    wrong += len(tried) > 1
                elif isinstance(event, Failed):
                    raise SystemExit(event.reason)
    return Repaired(wrong, mended, repairs, repeats)


def share(part: int, whole: int) -> str:
    """`part of whole (percent, 95 % Wilson interval)`."""
    from scipy.stats import binomtest

    if not whole:
        return "none"
    interval = binomtest(part, whole).proportion_ci(method="wilson")
    return f"{part} of {whole} = {100 * part / whole:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def say(text: str = "") -> None:
    print(text, flush=True)


def report_first(name: str, asked: Sequence[Asked], judged: Sequence[Outcome]) -> None:
    right = sum(outcome is Outcome.CORRECT for outcome in judged)
    errors = sum(outcome in (Outcome.EXECUTION_ERROR, Outcome.TIMEOUT) for outcome in judged)
    say(f"{name}: first-try EX {share(right, len(asked))}; {errors} did not run")
    for level in sorted({a.level for a in asked} - {""}, key=["easy", "medium", "hard", "extra"].index):
        of_level = [outcome for a, outcome in zip(asked, judged, strict=True) if a.level == level]
        say(f"  {level}: {share(sum(o is Outcome.CORRECT for o in of_level), len(of_level))}")


def speed(model: Any, asked: Sequence[Asked]) -> None:
    """Seconds a question, one at a time as the app asks, without the cache; the prefix of a database is reused."""
    started = time.perf_counter()
    made = [
        model.complete([initial_prompt(a.question, a.database.schema())], max_new_tokens=ANSWER_TOKENS)[0]
        for a in asked
    ]
    elapsed = time.perf_counter() - started
    tokens = sum(completion.output_tokens for completion in made)
    say(
        f"one at a time: {elapsed / len(asked):.2f} s a question, {tokens / elapsed:.1f} new tokens/s over {len(asked)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="60 dev questions, 30 repaired, one order, K = 2")
    parser.add_argument("--model", default="embedded", help="as in `merit ask --model`")
    parser.add_argument("--dev", type=int, default=616, help="questions of Spider dev")
    parser.add_argument("--repair", type=int, default=100, help="sample questions in the repair stream")
    parser.add_argument("--budget", type=int, default=7, help="K, repairs of a question at most")
    parser.add_argument("--orders", type=int, default=3, help="orders of the stream for strategies with memory")
    parser.add_argument("--cache", type=Path, default=Path("embedded_model_cache.jsonl"), help="kept answers")
    options = parser.parse_args()
    if options.quick:
        options.dev, options.repair, options.budget, options.orders = 60, 30, 2, 1
    plain: Any = load(options.model)
    model = Cached(plain, options.cache)
    say(f"{plain.id}, {date.today()}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    say("The model is trained to read memory cards. None of the papers' numbers are claimed for it.")
    dev = dev_questions(options.dev)
    if dev:
        report_first("Spider dev", dev, outcomes(dev, first_answers(model, dev)))
    else:
        say(f"Spider dev: not measured, there is no Spider at {SPIDER}")
    ours = sample_questions()
    answers = first_answers(model, ours)
    report_first("Sample databases", ours, outcomes(ours, answers))
    speed(plain, ours[:8])
    chosen = sorted(random.Random(0).sample(range(len(ours)), min(options.repair, len(ours))))
    stream, firsts = [ours[i] for i in chosen], [answers[i] for i in chosen]
    encoder = load_encoder()
    say(f"Repair of {len(stream)} sample questions, K = {options.budget}, gold verdicts:")
    for strategy in STRATEGIES:
        for order in range(1 if strategy == "iterative" else options.orders):
            result = repair(model, encoder, stream, firsts, strategy, options.budget, order)
            say(
                f"  {strategy}, order {order}: mended {share(result.mended, result.wrong)} of the initially wrong; "
                f"repairs that repeat an earlier attempt {share(result.repeats, result.repairs)}"
            )


if __name__ == "__main__":
    main()
