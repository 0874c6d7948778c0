"""Packs prompts that begin alike into one training sequence: the shared prefix once, the rest as tails behind it.

All questions over one database share the prompt up to the question (frame, schema), so a sequence is one prefix and
many tails; every tail sees the prefix and itself only, at the positions it would have alone. That equals training on
the single prompts and costs a fraction (the schema is computed once, not once a question).
It does not know what a prompt says: it takes token ids. Lengths are tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

IGNORED = -100


@dataclass(frozen=True)
class Tail:
    """What follows the prefix: the rest of the prompt and the answer, the last `answer` ids of it."""

    ids: tuple[int, ...]
    answer: int


@dataclass(frozen=True)
class Pack:
    """One training sequence: a prefix that every tail continues on its own."""

    prefix: tuple[int, ...]
    tails: tuple[Tail, ...]

    @property
    def tokens(self) -> int:
        return len(self.prefix) + sum(len(tail.ids) for tail in self.tails)


@dataclass(frozen=True)
class Layout:
    """Where the tails of a flattened pack lie, for the attention.

    `prefix`: its length; `grid`: (tails, longest tail) index of each tail token in the sequence, the first one's where
    padded; `flat`: (tokens after the prefix,) index into the flattened grid.
    """

    prefix: int
    grid: torch.Tensor
    flat: torch.Tensor


@dataclass(frozen=True)
class Batch:
    """A pack as tensors: `ids` and `positions` (1, tokens), `labels` (tokens,) with IGNORED outside the answers."""

    ids: torch.Tensor
    positions: torch.Tensor
    labels: torch.Tensor
    layout: Layout


def shared_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """How many ids all prompts begin with; at most the shortest less one, so that every tail keeps a prompt token."""
    first, last = min(map(tuple, prompts)), max(map(tuple, prompts))
    limit = min(len(prompt) for prompt in prompts) - 1
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b or i == limit), limit)


def pack(examples: Iterable[tuple[Sequence[int], Sequence[int]]], budget: int) -> list[Pack]:
    """Packs (prompt ids, answer ids) pairs that share a prefix into sequences of at most `budget` tokens.

    Tails are sorted by length before they are dealt out, so that the attention pads little. A single pair longer than
    the budget becomes a pack of its own.
    """
    pairs = [(tuple(prompt), tuple(answer)) for prompt, answer in examples]
    if not pairs:
        return []
    cut = shared_prefix([prompt for prompt, _ in pairs])
    tails = sorted((Tail(prompt[cut:] + answer, len(answer)) for prompt, answer in pairs), key=lambda t: len(t.ids))
    room = max(1, budget - cut)
    total = sum(len(tail.ids) for tail in tails)
    share = total / max(1, -(-total // room))  # equal packs instead of full ones and a rest
    packs: list[Pack] = []
    current: list[Tail] = []
    for tail in tails:
        size = sum(len(t.ids) for t in current)
        if current and (size + len(tail.ids) > room or size >= share):
            packs.append(Pack(pairs[0][0][:cut], tuple(current)))
            current = []
        current.append(tail)
    packs.append(Pack(pairs[0][0][:cut], tuple(current)))
    return packs


def collate(pack: Pack) -> Batch:
    """Flattens a pack: the prefix, then the tails one behind the other, each at the positions it has alone."""
    import torch

    start, longest = len(pack.prefix), max(len(tail.ids) for tail in pack.tails)
    ids, positions = list(pack.prefix), list(range(start))
    labels = [IGNORED] * start
    grid = torch.full((len(pack.tails), longest), start)
    real = torch.zeros(len(pack.tails), longest, dtype=torch.bool)
    for row, tail in enumerate(pack.tails):
        length = len(tail.ids)
        grid[row, :length] = torch.arange(len(ids), len(ids) + length)
        real[row, :length] = True
        ids += tail.ids
        positions += range(start, start + length)
        labels += [IGNORED] * (length - tail.answer) + list(tail.ids[length - tail.answer :])
    layout = Layout(start, grid, real.flatten().nonzero()[:, 0])
    return Batch(torch.tensor([ids]), torch.tensor([positions]), torch.tensor(labels), layout)
