"""Answers many prompts that begin alike at once: the shared prefix is computed once and never copied.

Greedy, or sampled at a temperature. Used to gather the model's own failures and to check a training run; the product
generates with `merit.models.local`. It knows token ids only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface

from benchmarks.embedded_training.collate import shared_prefix

ATTENTION = "shared_prefix_decoding"


@dataclass
class _Cache:
    """Keys and values: of the prefix once (key heads, prefix, d), of the rows (rows, key heads, slots, d).

    `visible` (rows, slots) marks the slots that hold a token of that row; `used` counts the filled slots.
    """

    slots: int
    prefix: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    own: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    visible: torch.Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.bool))
    used: int = 0

    def keep(self, rows: torch.Tensor) -> None:
        self.own = [(k[rows], v[rows]) for k, v in self.own]
        self.visible = self.visible[rows]


def _attend(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    state: tuple[_Cache, bool],
    **_: Any,
) -> tuple[torch.Tensor, None]:
    (cache, reading) = state  # `cache` itself is a keyword that the layer takes for its own
    layer, (rows, heads, count, d), shared = int(module.layer_idx), query.shape, key.shape[1]  # type: ignore[arg-type]
    group = heads // shared
    if reading:  # the prefix itself
        cache.prefix.append((key[0], value[0]))
        k, v = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
        out = nn.functional.scaled_dot_product_attention(query, k, v, is_causal=True, scale=scaling)
        return out.transpose(1, 2), None
    if len(cache.own) == layer:
        cache.own.append((key.new_zeros(rows, shared, cache.slots, d), key.new_zeros(rows, shared, cache.slots, d)))
    k_own, v_own = cache.own[layer]
    start, end = cache.used, cache.used + count
    k_own[:, :, start:end], v_own[:, :, start:end] = key, value
    k_prefix, v_prefix = cache.prefix[layer]
    q = query.reshape(rows, shared, group * count, d)
    by_head = q.transpose(0, 1).reshape(shared, rows * group * count, d)
    far = (by_head @ k_prefix.transpose(1, 2)).view(shared, rows, group * count, -1).transpose(0, 1)
    near = q @ k_own[:, :, :end].transpose(2, 3)
    seen = cache.visible[:, None, :end].expand(rows, count, end)
    if count > 1:
        seen = seen & torch.tril(torch.ones(count, end, dtype=torch.bool), diagonal=start)
    hidden = ~seen.repeat(1, group, 1)[:, None]
    near = near.masked_fill(hidden, float("-inf"))
    weights = torch.softmax(torch.cat([far, near], dim=3).float() * scaling, dim=3).to(value.dtype)
    split = k_prefix.shape[1]
    part = weights[..., :split].transpose(0, 1).reshape(shared, rows * group * count, split)
    out = (part @ v_prefix).view(shared, rows, group * count, d).transpose(0, 1)
    out = out + weights[..., split:] @ v_own[:, :, :end]
    return out.reshape(rows, heads, count, d).transpose(1, 2), None


AttentionInterface.register(ATTENTION, _attend)


@contextmanager
def _decoding(model: Any) -> Iterator[None]:
    before = model.config._attn_implementation
    model.config._attn_implementation = ATTENTION
    try:
        with torch.no_grad():
            yield
    finally:
        model.config._attn_implementation = before


def _states(model: Any, ids: torch.Tensor, positions: torch.Tensor, cache: _Cache, *, reading: bool) -> torch.Tensor:
    inner = model.model
    h = inner.embed_tokens(ids)
    angles = inner.rotary_emb(h, position_ids=positions)
    for layer in inner.layers:
        h = layer(h, position_embeddings=angles, state=(cache, reading))
    result: torch.Tensor = inner.norm(h)
    return result


def answer(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    max_new_tokens: int = 120,
    temperature: float = 0.0,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """The continuation of every prompt up to `end` (not included) or `max_new_tokens`; greedy at temperature 0."""
    cut = shared_prefix(prompts)
    tails = [list(prompt[cut:]) for prompt in prompts]
    longest = max(map(len, tails))
    cache = _Cache(longest + max_new_tokens)
    ids = torch.zeros(len(tails), longest, dtype=torch.long)
    cache.visible = torch.zeros(len(tails), cache.slots, dtype=torch.bool)
    for row, tail in enumerate(tails):
        ids[row, : len(tail)] = torch.tensor(tail)
        cache.visible[row, : len(tail)] = True
    lengths = torch.tensor([len(tail) for tail in tails])
    answers: list[list[int]] = [[] for _ in prompts]
    alive = torch.arange(len(prompts))
    with _decoding(model):
        _states(model, torch.tensor([list(prompts[0][:cut])]), torch.arange(cut)[None], cache, reading=True)
        h = _states(model, ids, torch.arange(cut, cut + longest)[None], cache, reading=False)
        cache.used = longest
        last = h[torch.arange(len(tails)), lengths - 1]
        for step in range(max_new_tokens):
            chosen = _choose(model.lm_head(last).float(), temperature, generator)
            going = chosen != end
            if not bool(going.all()):
                alive, chosen, lengths = alive[going], chosen[going], lengths[going]
                cache.keep(going)
            for row, token in zip(alive.tolist(), chosen.tolist(), strict=True):
                answers[row].append(token)
            if not len(alive) or step + 1 == max_new_tokens:
                break
            cache.visible[:, cache.used] = True
            last = _states(model, chosen[:, None], (cut + lengths + step)[:, None], cache, reading=False)[:, 0]
            cache.used += 1
    return answers


def _choose(logits: torch.Tensor, temperature: float, generator: torch.Generator | None) -> torch.Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1)
    chances = torch.softmax(logits / temperature, dim=-1)
    return torch.multinomial(chances, 1, generator=generator)[:, 0]
