"""The trained network: a frozen 16-bit Llama with low-rank adapters (LoRA) and an attention over prefix and tails.

Each adapted layer multiplies once by W + s·B·A, merged anew after every step, instead of adding the low-rank path to
every call; the gradients of A and B are the exact ones of that product. The frozen weights stay in float32 beside the
merged 16-bit copy, so that a change smaller than a 16-bit step still moves the rounding.
Adapters are written in PEFT's layout; PEFT itself is not needed. It knows nothing of prompts or SQL.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, AutoModelForCausalLM

from benchmarks.embedded_training.collate import IGNORED, Batch, Layout

ATTENTION = "prefix_and_tails"
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class _MergedProduct(torch.autograd.Function):
    """x·(W + s·B·A)ᵀ with gradients for x, A and B; the merged matrix is given, W itself needs none."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, merged: torch.Tensor, a: torch.Tensor, b: torch.Tensor, scale: float) -> Any:
        ctx.save_for_backward(x, merged, a, b)
        ctx.scale = scale
        return x @ merged.t()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, merged, a, b = ctx.saved_tensors
        flat_x, flat_g = x.reshape(-1, x.shape[-1]), grads[0].reshape(-1, merged.shape[0])
        down, up = flat_x @ a.to(x.dtype).t(), flat_g @ b.to(x.dtype)
        grad_a = (up.t() @ flat_x).to(a.dtype) * ctx.scale
        grad_b = (flat_g.t() @ down).to(b.dtype) * ctx.scale
        return (flat_g @ merged).view_as(x), None, grad_a, grad_b, None


_product: Callable[..., torch.Tensor] = _MergedProduct.apply


class LoraLinear(nn.Module):
    """A frozen linear layer (no bias) with a low-rank change: A (rank, in), B (out, rank)."""

    merged: torch.Tensor

    def __init__(self, linear: nn.Linear, rank: int, alpha: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.scale = alpha / rank
        self.frozen = linear.weight.detach().float()
        self.lora_A = nn.Parameter(torch.empty(rank, linear.in_features))
        self.lora_B = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.register_buffer("merged", self.frozen.to(dtype, copy=True), persistent=False)

    @torch.no_grad()
    def merge(self) -> None:
        """Brings the merged matrix up to date with A and B; to be called after every change of them."""
        self.merged.copy_(torch.addmm(self.frozen, self.lora_B, self.lora_A, alpha=self.scale))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.is_grad_enabled():
            return x @ self.merged.t()
        return _product(x, self.merged, self.lora_A, self.lora_B, self.scale)


class _Attention(torch.autograd.Function):
    """softmax(q·kᵀ·scale + bias)·v and its gradients; on a CPU in 16 bits cheaper than the built-in one.

    `q`, `k`, `v` (…, queries or keys, d); `bias` broadcasts to (…, queries, keys) and is 0 or -inf.
    """

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, bias: torch.Tensor, scale: float) -> Any:
        weights = torch.matmul(q * scale, k.transpose(-1, -2))
        weights = torch.softmax(weights.add_(bias), dim=-1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale = scale
        return weights @ v

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        q, k, v, weights = ctx.saved_tensors
        grad = grads[0]
        of_weights = grad @ v.transpose(-1, -2)
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype).mul_(ctx.scale)
        return of_scores @ k, of_scores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ grad, None, None


_attention: Callable[..., torch.Tensor] = _Attention.apply


def prefix_and_tails(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    layout: Layout,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one flattened pack: the prefix causally, each tail over the prefix and itself.

    `query` (1, heads, tokens, d), `key` and `value` (1, key heads, tokens, d); the result is (1, tokens, heads, d).
    Query heads that share a key head are laid side by side, so that keys are not copied once a head.
    """
    heads, tokens, d = query.shape[1:]
    shared = key.shape[1]
    group, start = heads // shared, layout.prefix
    tails, longest = layout.grid.shape
    rest = tokens - start
    (q_prefix, q_rest), (k_prefix, k_rest), (v_prefix, v_rest) = (
        torch.split(x, [start, rest], dim=2) for x in (query, key, value)
    )
    causal = torch.full((start, start), -torch.inf, dtype=query.dtype).triu(1).repeat(group, 1)
    q = q_prefix.reshape(1, shared, group * start, d)
    own = _attention(q, k_prefix, v_prefix, causal, scaling).reshape(1, heads, start, d)

    def rows(x: torch.Tensor) -> torch.Tensor:  # (1, h, tokens, d) → (tails, h, longest, d)
        return x[0][:, layout.grid - start].transpose(0, 1)

    q = rows(q_rest).reshape(tails, shared, group * longest, d)
    k = torch.cat([k_prefix.expand(tails, -1, -1, -1), rows(k_rest)], dim=2)
    v = torch.cat([v_prefix.expand(tails, -1, -1, -1), rows(v_rest)], dim=2)
    near = torch.full((longest, longest), -torch.inf, dtype=query.dtype).triu(1)
    bias = torch.cat([near.new_zeros(longest, start), near], dim=1).repeat(group, 1)
    out = _attention(q, k, v, bias, scaling).reshape(tails, heads, longest, d)
    flat = out.transpose(1, 2).reshape(tails * longest, heads, d)[layout.flat]
    return torch.cat([own.transpose(1, 2), flat[None]], dim=1), None


AttentionInterface.register(ATTENTION, prefix_and_tails)


def load_network(folder: str | Path, *, rank: int = 16, alpha: float = 32, dtype: torch.dtype = torch.bfloat16) -> Any:
    """The base model of `folder` (config and safetensors) with fresh adapters on all projections, the rest frozen."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=ATTENTION)
    return adapt(model, rank=rank, alpha=alpha, dtype=dtype)


def adapt(model: Any, *, rank: int, alpha: float, dtype: torch.dtype) -> Any:
    """Replaces every projection of a Llama by a LoraLinear, in place; everything else is frozen in `dtype`."""
    model.requires_grad_(False)
    for layer in model.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name in TARGETS:
                if isinstance(linear := getattr(part, name, None), nn.Linear):
                    setattr(part, name, LoraLinear(linear, rank, alpha, dtype))
    for module in model.modules():
        if not isinstance(module, LoraLinear):
            for tensor in module.parameters(recurse=False):
                tensor.data = tensor.data.to(dtype)
    model.config._attn_implementation = ATTENTION
    return model


def adapters(model: nn.Module) -> Iterator[tuple[str, LoraLinear]]:
    """The adapted layers by their names in the base model."""
    for name, module in model.named_modules():
        if isinstance(module, LoraLinear):
            yield name, module


def merge(model: nn.Module) -> None:
    """Brings all merged matrices up to date."""
    for _, layer in adapters(model):
        layer.merge()


def save_adapter(model: nn.Module, folder: Path, base: str, dtype: torch.dtype = torch.bfloat16) -> None:
    """Writes `adapter_model.safetensors` and `adapter_config.json` in PEFT's layout."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {}
    rank = alpha = 0.0
    for name, layer in adapters(model):
        rank, alpha = layer.lora_A.shape[0], layer.scale * layer.lora_A.shape[0]
        for letter, matrix in (("A", layer.lora_A), ("B", layer.lora_B)):
            weights[f"base_model.model.{name}.lora_{letter}.weight"] = matrix.detach().to(dtype).contiguous()
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": int(rank),
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
        "target_modules": list(TARGETS),
    }
    partial = folder / "adapter_model.safetensors.part"
    save_file(weights, partial, metadata={"format": "pt"})
    partial.replace(folder / "adapter_model.safetensors")  # whole or not at all: a kill leaves the one before
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")


def load_adapter(model: nn.Module, folder: Path) -> None:
    """Reads an adapter of the same rank into the model and merges it; a missing or wrong matrix is a KeyError."""
    from safetensors.torch import load_file

    weights = load_file(folder / "adapter_model.safetensors")
    with torch.no_grad():
        for name, layer in adapters(model):
            layer.lora_A.copy_(weights[f"base_model.model.{name}.lora_A.weight"])
            layer.lora_B.copy_(weights[f"base_model.model.{name}.lora_B.weight"])
    merge(model)


def hidden_states(model: Any, batch: Batch) -> torch.Tensor:
    """The last hidden states of a pack, (tokens, width)."""
    inner = model.model
    h = inner.embed_tokens(batch.ids)
    angles = inner.rotary_emb(h, position_ids=batch.positions)
    for layer in inner.layers:
        h = layer(h, position_embeddings=angles, position_ids=batch.positions, layout=batch.layout)
    result: torch.Tensor = inner.norm(h)[0]
    return result


def answer_loss(model: Any, batch: Batch) -> torch.Tensor:
    """Summed cross entropy of the answer tokens; only their positions pass through the output layer."""
    at = (batch.labels != IGNORED).nonzero()[:, 0]
    before = at - 1
    # the first answer token of a tail of one token would follow the prefix's last; prompts keep one token in the tail
    logits = model.lm_head(hidden_states(model, batch)[before]).float()
    return nn.functional.cross_entropy(logits, batch.labels[at], reduction="sum")
