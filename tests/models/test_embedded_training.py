"""The training recipe of the embedded model on a tiny random Llama: it equals training on single prompts.

Contamination by Spider dev and the sample databases is pinned in test_embedded_contamination.py.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.embedded_training.collate import Pack, Tail, collate, pack, shared_prefix
from benchmarks.embedded_training.corpus import clean, plain_sql

torch = pytest.importorskip("torch")
WORDS = 97


@pytest.fixture(scope="module")
def plain() -> Any:
    """A random Llama of three layers in float32, with three query heads to each key head."""
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=36,
        intermediate_size=50,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=6,
        initializer_range=0.2,  # large enough for positions and masks to matter
        tie_word_embeddings=True,
    )
    return AutoModelForCausalLM.from_config(config).eval()


def adapted(plain: Any) -> Any:
    """A copy of the model with random adapters."""
    from benchmarks.embedded_training.network import adapt, adapters, merge

    torch.manual_seed(1)
    model = adapt(copy.deepcopy(plain), rank=4, alpha=8, dtype=torch.float32)
    for _, layer in adapters(model):
        torch.nn.init.normal_(layer.lora_B, std=0.1)
    merge(model)
    return model


def unmerged(plain: Any, model: Any) -> tuple[Any, dict[str, Any]]:
    """The plain model and its weights as W + s·B·A, differentiable in A and B: the textbook form."""
    from benchmarks.embedded_training.network import adapters

    factors = {
        name: (layer.lora_A.detach().clone().requires_grad_(), layer.lora_B.detach().clone().requires_grad_())
        for name, layer in adapters(model)
    }
    frozen = {name: (layer.frozen, layer.scale) for name, layer in adapters(model)}
    weights = {f"{name}.weight": frozen[name][0] + frozen[name][1] * b @ a for name, (a, b) in factors.items()}
    return (lambda ids: torch.func.functional_call(plain, weights, (ids,)).logits[0]), factors


def some_pack(tails: int = 5, seed: int = 0) -> Pack:
    rng = random.Random(seed)

    def ids(low: int, high: int) -> list[int]:
        return [rng.randrange(WORDS) for _ in range(rng.randint(low, high))]

    prefix = ids(13, 13)
    return pack((([*prefix, i, *ids(1, 8)], ids(1, 5)) for i in range(tails)), 10_000)[0]


def test_tails_behind_one_prefix_equal_single_prompts(plain: Any) -> None:
    from benchmarks.embedded_training.network import hidden_states

    model, packed = adapted(plain), some_pack()
    single, _ = unmerged(plain, model)
    logits = model.lm_head(hidden_states(model, collate(packed)))
    start = len(packed.prefix)
    for tail in packed.tails:
        alone = single(torch.tensor([[*packed.prefix, *tail.ids]]))[len(packed.prefix) :]
        torch.testing.assert_close(logits[start : start + len(tail.ids)], alone, atol=1e-5, rtol=1e-4)
        start += len(tail.ids)


def test_gradients_are_those_of_the_single_prompts(plain: Any) -> None:
    """The merged product and our attention write their own backward: held against autograd on W + s·B·A."""
    from benchmarks.embedded_training.network import adapters, answer_loss

    model, packed = adapted(plain), some_pack()
    single, factors = unmerged(plain, model)
    answer_loss(model, collate(packed)).backward()
    expected = 0.0
    for tail in packed.tails:
        ids = torch.tensor([[*packed.prefix, *tail.ids]])
        answer = ids[0, -tail.answer :]
        expected += torch.nn.functional.cross_entropy(single(ids)[-tail.answer - 1 : -1], answer, reduction="sum")
    expected.backward()  # type: ignore[attr-defined]
    for name, layer in adapters(model):
        torch.testing.assert_close(layer.lora_A.grad, factors[name][0].grad, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(layer.lora_B.grad, factors[name][1].grad, atol=1e-4, rtol=1e-3)


def test_answers_of_many_equal_answers_of_one(plain: Any) -> None:
    from benchmarks.embedded_training.decode import answer

    model = adapted(plain)
    packed = some_pack(tails=6, seed=3)
    prompts = [[*packed.prefix, *tail.ids] for tail in packed.tails]
    together = answer(model, prompts, end=5, max_new_tokens=12)
    reference, _ = unmerged(plain, model)
    for prompt, got in zip(prompts, together, strict=True):
        ids = list(prompt)
        for _ in range(12):
            ids.append(int(reference(torch.tensor([ids]))[-1].argmax()))
        expected = ids[len(prompt) :]
        assert got == (expected[: expected.index(5)] if 5 in expected else expected)


def test_only_the_adapters_learn_and_they_come_back_from_disk(plain: Any, tmp_path: Path) -> None:
    from benchmarks.embedded_training.network import adapters, load_adapter, save_adapter

    model = adapted(plain)
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learning == {f"{name}.lora_{letter}" for name, _ in adapters(model) for letter in "AB"}
    save_adapter(model, tmp_path, "a/base", dtype=torch.float32)
    other = adapted(plain)
    with torch.no_grad():
        for _, layer in adapters(other):
            layer.lora_B.zero_()
    load_adapter(other, tmp_path)
    for (_, one), (_, two) in zip(adapters(model), adapters(other), strict=True):
        torch.testing.assert_close(one.merged, two.merged)
    assert json.loads((tmp_path / "adapter_config.json").read_text())["r"] == 4


def test_the_product_merges_what_training_wrote(plain: Any, tmp_path: Path) -> None:
    """PEFT reads the folder as the product does; its merged weights are ours."""
    from peft import PeftModel

    from benchmarks.embedded_training.network import adapters, save_adapter

    model = adapted(plain)
    save_adapter(model, tmp_path, "a/base", dtype=torch.float32)
    merged = PeftModel.from_pretrained(copy.deepcopy(plain), str(tmp_path)).merge_and_unload()
    for name, layer in adapters(model):
        torch.testing.assert_close(merged.get_submodule(name).weight, layer.merged, atol=1e-6, rtol=1e-5)


def test_a_killed_run_goes_on_and_ends_like_one_that_was_not(plain: Any, tmp_path: Path) -> None:
    from benchmarks.embedded_training.network import adapters
    from benchmarks.embedded_training.train import Plan, train

    jobs = [[some_pack(tails=3, seed=seed)] for seed in range(6)]

    def in_order(epoch: int, rng: random.Random) -> Any:
        return iter([lambda packs=packs: packs for packs in rng.sample(jobs, len(jobs))])

    # Hours are planned, so that the learning rate of both runs is the same at every step.
    plan = Plan(minutes=1e6, learning_rate=1e-2, warm_up_steps=2, checkpoint_s=0.0)
    whole, first, second = adapted(plain), adapted(plain), adapted(plain)
    train(whole, in_order, plan, tmp_path / "whole", steps=9)

    class Killed(BaseException):
        pass

    def until_killed(epoch: int, rng: random.Random) -> Any:
        for number, job in enumerate(in_order(epoch, rng)):
            if number == 4:
                raise Killed
            yield job

    with pytest.raises(Killed):
        train(first, until_killed, plan, tmp_path / "killed", steps=9)
    train(second, in_order, plan, tmp_path / "killed", steps=9)
    for (_, one), (_, two) in zip(adapters(whole), adapters(second), strict=True):
        torch.testing.assert_close(one.lora_A, two.lora_A, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(one.lora_B, two.lora_B, atol=1e-6, rtol=1e-5)


def test_training_lowers_the_loss(plain: Any, tmp_path: Path) -> None:
    from benchmarks.embedded_training.network import answer_loss
    from benchmarks.embedded_training.train import Plan, train

    model, packed = adapted(plain), some_pack(tails=3)
    plan = Plan(minutes=1e6, learning_rate=3e-2, warm_up_steps=1)
    before = answer_loss(model, collate(packed)).item()
    train(model, lambda _epoch, _rng: iter([lambda: [packed]]), plan, tmp_path, steps=20)
    assert answer_loss(model, collate(packed)).item() < before - 1


def test_packs_keep_every_example_once_and_stay_in_budget() -> None:
    rng = random.Random(2)
    examples = [([1, 2, 3, 10 + i] + [0] * rng.randint(0, 20), [90, 91][: 1 + i % 2]) for i in range(30)]
    packs = pack(examples, 60)
    assert all(p.prefix == (1, 2, 3) and p.tokens <= 60 for p in packs)
    got = sorted((*p.prefix, *tail.ids) for p in packs for tail in p.tails)
    assert got == sorted((*prompt, *answer) for prompt, answer in examples)


@pytest.mark.parametrize(
    ("prompts", "length"),
    [
        ([[1, 2, 3], [1, 2, 4]], 2),
        ([[1, 2, 3], [1, 2, 3]], 2),
        ([[1, 2], [1, 2, 3]], 1),
        ([[1], [2]], 0),
        ([[7, 8]], 1),
    ],
)
def test_the_prefix_leaves_every_tail_a_prompt_token(prompts: list[list[int]], length: int) -> None:
    assert shared_prefix(prompts) == length


def test_labels_are_the_answers_alone() -> None:
    batch = collate(Pack((1, 2), (Tail((3, 4, 5), 2), Tail((6, 7), 1))))
    assert batch.labels.tolist() == [-100, -100, -100, 4, 5, -100, 7]
    assert batch.positions.tolist() == [[0, 1, 2, 3, 4, 2, 3]]


TABLES = {
    "table_names_original": ["Singer", "Concert"],
    "column_names_original": [[-1, "*"], [0, "ID"], [0, "Name"], [1, "Singer_ID"], [1, "Year"]],
}


@pytest.mark.parametrize(
    ("gold", "plain_form"),
    [
        (
            "SELECT T1.name FROM singer AS T1 JOIN concert AS T2 ON T1.id = T2.singer_id WHERE T2.year = 2014",
            "SELECT Singer.Name FROM Singer JOIN Concert ON Singer.ID = Concert.Singer_ID WHERE Concert.Year = 2014",
        ),
        ("SELECT count(*) FROM singer", "SELECT COUNT(*) FROM Singer"),
        (  # a self-join needs its aliases
            "SELECT T1.name FROM singer AS T1 JOIN singer AS T2 ON T1.id = T2.id",
            "SELECT T1.name FROM singer AS T1 JOIN singer AS T2 ON T1.id = T2.id",
        ),
        ("SELECT FROM WHERE", "SELECT FROM WHERE"),
    ],
)
def test_gold_is_rewritten_to_the_rules_of_the_prompt(gold: str, plain_form: str) -> None:
    assert plain_sql(gold, TABLES) == plain_form


def test_clean_joins_what_spider_split() -> None:
    assert clean(" SELECT a\n FROM t WHERE b > = 3 ; ") == "SELECT a FROM t WHERE b >= 3"
