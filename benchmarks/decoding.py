"""Answers of the embedded model by our decoding beside plain ``generate`` of transformers, on MERIT's own prompts.

Prints processor seconds (they hold on a busy machine), wall seconds, ratios, and how many texts are equal.
usage: python benchmarks/decoding.py [questions per database, default 4] [threads, default 1]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MAX_NEW_TOKENS = 100


def prompts(per_database: int) -> list[str]:
    """Initial prompts of the first questions of each sample database, database by database."""
    from merit import Database
    from merit.database import samples
    from merit.prompts import initial_prompt

    out = []
    for name in samples.ids():
        schema = Database.open(samples.path(name)).schema("listing")
        out += [initial_prompt(question, schema) for question in samples.questions(name)[:per_database]]
    return out


def plain(model: Any, asked: Sequence[str], **options: Any) -> list[str]:
    """One ``generate`` per prompt, as anyone would write it."""
    import torch

    texts = []
    for prompt in asked:
        ids = torch.tensor([model._tokens(prompt, None)])
        with torch.inference_mode():
            output = model._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=MAX_NEW_TOKENS,
                do_sample=False,
                pad_token_id=model._tokenizer.pad_token_id,
                **options,
            )
        texts.append(model._tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True))
    return texts


def ours(model: Any, asked: Sequence[str], *, reuse: bool) -> list[str]:
    """``complete`` with or without the reuse of prompt prefixes."""
    model.reuse_prefix = reuse
    return [model.complete([prompt], MAX_NEW_TOKENS)[0].text for prompt in asked]


def main() -> None:
    import torch

    from merit.models import load

    torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    asked = prompts(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
    model: Any = load("embedded").model  # type: ignore[attr-defined]
    tokens = sum(map(model.count_tokens, asked)) // len(asked)
    print(f"{model.id}, {len(asked)} prompts of {tokens} tokens on average, {torch.get_num_threads()} thread(s)")
    ways: dict[str, Callable[[], list[str]]] = {
        "plain generate": lambda: plain(model, asked),
        "plain generate, prompt lookup": lambda: plain(model, asked, prompt_lookup_num_tokens=3),
        "ours, chunked prefill": lambda: ours(model, asked, reuse=False),
        "ours, prefix reused": lambda: ours(model, asked, reuse=True),
    }
    first: tuple[float, list[str]] | None = None
    for name, way in ways.items():
        cpu, wall = time.process_time(), time.perf_counter()
        texts = way()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        first = first or (cpu, texts)
        equal = sum(a == b for a, b in zip(first[1], texts, strict=True))
        print(f"{name:32} {cpu:7.1f} CPU s {wall:7.1f} s  {first[0] / cpu:5.2f} x  {equal}/{len(texts)} texts equal")


if __name__ == "__main__":
    main()
