"""Generation by a tiny random Qwen2, compared with plain ``generate`` of transformers."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from merit.errors import ModelUnavailable
from merit.models.decoding import CHUNK
from merit.models.local import LocalModel, load

SHORT = "how many singers"
LONG = "SELECT name FROM singer WHERE age > 3 " * 40


def plain_generate(model: LocalModel, prompt: str, max_new_tokens: int) -> str:
    """The text of transformers' own greedy decoding in one go: no chunks, no reuse, no criteria."""
    tokenizer, inner = model._tokenizer, model._model
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output = inner.generate(**ids, max_new_tokens=max_new_tokens, do_sample=False)
    return tokenizer.decode(output[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)


def never_ends(model: LocalModel) -> LocalModel:
    model._model.generation_config.eos_token_id = None
    model._ends = frozenset()
    return model


@pytest.mark.parametrize("prompt", [SHORT, LONG, "日本の歌手は何人ですか 🎤", ""])
def test_text_equals_plain_generate(tiny: LocalModel, prompt: str) -> None:
    expected = plain_generate(tiny, prompt, 60)
    assert tiny.complete([prompt], 60)[0].text == expected


def test_reused_prefix_is_not_read_again_and_changes_no_text(tiny: LocalModel, forwarded: list[int]) -> None:
    """The initial prompts over one database share the schema; a reused prefix must not change a single token."""
    prompts = [LONG + question for question in ("how many", "who is oldest", "how many")]
    tiny.reuse_prefix = False
    fresh = [tiny.complete([prompt], 40)[0] for prompt in prompts]
    read = sum(length for length in forwarded if length > 1)
    assert all(length <= CHUNK for length in forwarded)
    tiny.reuse_prefix = True
    del forwarded[:]
    assert [tiny.complete([prompt], 40)[0] for prompt in prompts] == fresh
    assert sum(length for length in forwarded if length > 1) < read / 2


def test_two_databases_in_turn_keep_both_prefixes(tiny: LocalModel, forwarded: list[int]) -> None:
    first, second = "Database: a " + LONG, "Database: b " + LONG
    tiny.complete([first], 2)
    tiny.complete([second], 2)
    del forwarded[:]
    tiny.complete([first], 2)
    tiny.complete([second], 2)
    assert sum(forwarded) < 2 * (CHUNK + 2)


def test_prefix_caches_are_bounded(tiny: LocalModel) -> None:
    for letter in "abcdefghijkl":
        tiny.complete([letter + LONG], 1)
    assert 0 < sum(len(kept.tokens) for kept in tiny._prefixes._kept) <= tiny._prefixes.max_tokens


def test_batch_gives_the_texts_of_single_prompts(tiny: LocalModel) -> None:
    prompts = [SHORT, LONG, "ORDER BY age", LONG + "x"]
    single = [tiny.complete([prompt], 30)[0] for prompt in prompts]
    assert tiny.complete(prompts, 30) == single


def test_no_prompts_no_completions(tiny: LocalModel) -> None:
    assert tiny.complete([]) == []


def test_counts_are_those_of_the_framed_prompt(tiny: LocalModel) -> None:
    tokenizer = tiny._tokenizer
    framed = f"<|im_start|>user\n{SHORT}<|im_end|>\n<|im_start|>assistant\n"
    expected = len(tokenizer(framed, add_special_tokens=False)["input_ids"])
    completion = tiny.complete([SHORT], 7)[0]
    assert tiny.count_tokens(SHORT) == completion.prompt_tokens == expected
    assert completion.output_tokens == 7
    assert completion.finish_reason == "length"


def test_end_token_ends_the_answer_and_is_not_in_the_text(tiny: LocalModel) -> None:
    never_ends(tiny)
    text = tiny.complete([SHORT], 30)[0].text
    produced = tiny._tokenizer(text, add_special_tokens=False)["input_ids"]
    end = next(token for token in produced[3:] if produced.index(token) > 2)
    tiny._model.generation_config.eos_token_id = end
    tiny._ends = frozenset({end})
    completion = tiny.complete([SHORT], 30)[0]
    assert completion.finish_reason == "stop"
    assert text.startswith(completion.text)
    assert completion.output_tokens < 30
    # in a batch the shorter row is padded; its padding is neither text nor counted
    assert tiny.complete([SHORT, LONG], 30)[0] == completion


@pytest.mark.parametrize("prompts", [[SHORT], [SHORT, LONG, "name"]])
def test_streamed_pieces_add_up_to_the_text(
    tiny: LocalModel, prompts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merit.models.decoding.STREAM_EVERY_S", 0.0)
    pieces: dict[int, list[str]] = {}
    completions = tiny.complete(prompts, 60, stream=lambda index, piece: pieces.setdefault(index, []).append(piece))
    assert ["".join(pieces[index]) for index in range(len(prompts))] == [c.text for c in completions]
    assert len(pieces[0]) > 5


def test_pieces_come_about_every_100_ms(tiny: LocalModel) -> None:
    never_ends(tiny)
    pieces: list[str] = []
    started = time.monotonic()
    tiny.complete([SHORT], 150, stream=lambda _, piece: pieces.append(piece))
    assert len(pieces) <= (time.monotonic() - started) / 0.1 + 2


def test_cancel_while_generating_stops_within_a_second(tiny: LocalModel) -> None:
    never_ends(tiny)
    cancel = threading.Event()
    cancelled_at: list[float] = []

    def stop_it() -> None:
        cancelled_at.append(time.monotonic())
        cancel.set()

    tiny.complete([SHORT], 1)
    timer = threading.Timer(0.3, stop_it)
    timer.start()
    completion = tiny.complete([SHORT], 1500, cancel=cancel)[0]
    assert time.monotonic() - cancelled_at[0] < 1.0
    assert completion.finish_reason == "cancelled"
    assert 0 < completion.output_tokens < 1500
    assert completion.text


def test_cancel_during_prefill_runs_no_further_chunk(tiny: LocalModel, forwarded: list[int]) -> None:
    """transformers looks at stopping criteria only after the whole prompt; a long one would not stop."""
    cancel = threading.Event()
    tiny._model.base_model.register_forward_hook(lambda *_: cancel.set())
    completion = tiny.complete([LONG], 50, cancel=cancel)[0]
    assert forwarded == [CHUNK]
    assert (completion.text, completion.output_tokens, completion.finish_reason) == ("", 0, "cancelled")


def test_cancelled_before_the_start_generates_nothing(tiny: LocalModel, forwarded: list[int]) -> None:
    cancel = threading.Event()
    cancel.set()
    assert tiny.complete([SHORT, LONG], cancel=cancel)[1].finish_reason == "cancelled"
    assert forwarded == []


def test_time_limit_ends_an_answer_that_never_ends(tiny: LocalModel) -> None:
    never_ends(tiny)
    started = time.monotonic()
    completion = tiny.complete([SHORT], 1500, max_time_s=0.3)[0]
    assert completion.finish_reason == "time"
    assert time.monotonic() - started < 2.0


def test_what_the_stream_raises_reaches_the_caller_and_the_model_lives_on(tiny: LocalModel) -> None:
    def broken(_index: int, _piece: str) -> None:
        raise LookupError("the page is gone")

    before = tiny.complete([LONG], 20)
    with pytest.raises(LookupError, match="the page is gone"):
        tiny.complete([LONG], 20, stream=broken)
    assert tiny.complete([LONG], 20) == before


def test_sampling_is_repeatable_and_leaves_the_global_generator_alone(tiny: LocalModel) -> None:
    import torch

    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    texts = [tiny.complete([SHORT], 40, temperature=0.8, seed=seed)[0].text for seed in (3, 3, 4)]
    assert torch.equal(torch.rand(1), expected)
    assert texts[0] == texts[1] != texts[2]


def test_prompt_longer_than_the_context_is_cut_on_the_left(tiny: LocalModel) -> None:
    """Spec §5: the input is truncated on the left, so that the question at its end stays."""
    read: list[list[int]] = []
    generate = tiny._generate

    def spy(rows: Any, *arguments: Any) -> Any:
        read.extend(rows)
        return generate(rows, *arguments)

    tiny._generate = spy  # type: ignore[method-assign]
    completion = tiny.complete(["a b c d e f g " * 3000 + "the very end"], 48)[0]
    assert completion.prompt_tokens == len(read[0]) == tiny.context_tokens - 48 == 2000
    assert tiny._tokenizer.decode(read[0]).endswith("the very end<|im_end|>\n<|im_start|>assistant\n")


def test_lone_surrogates_and_nul_are_no_crash(tiny: LocalModel) -> None:
    assert tiny.complete(["odd \ud800 \x00 text"], 3)[0].output_tokens == 3


def test_system_text_goes_in_only_when_given(tiny: LocalModel) -> None:
    assert "system" not in tiny._framed("q", None)
    assert tiny._framed("q", "Be brief.").startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nq")


def test_template_without_a_system_role_gets_the_text_before_the_question(tiny: LocalModel) -> None:
    tiny._tokenizer.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}{% endfor %}"
    )
    assert tiny._framed("q", "Be brief.") == "[user] Be brief.\n\nq"


def test_model_without_chat_template_is_used_as_plain_text_and_says_so(tiny_folder: Path, tmp_path: Path) -> None:
    bare = copy_of(tiny_folder, tmp_path)
    (bare / "chat_template.jinja").unlink()
    model = load(str(bare), quantise=False)
    assert any("no chat template" in note for note in model.info.notes)
    assert model.count_tokens(SHORT) == len(model._tokenizer(SHORT)["input_ids"])
    assert model.complete([SHORT], 3, system="Be brief.")[0].output_tokens == 3


def test_own_generation_settings_of_a_model_are_kept(tiny_folder: Path, tmp_path: Path) -> None:
    """Qwen ships a repetition penalty: greedy means its greedy, as plain ``generate`` would do."""
    import json

    folder = copy_of(tiny_folder, tmp_path)
    settings = json.loads((folder / "generation_config.json").read_text())
    settings |= {"repetition_penalty": 3.0, "do_sample": True, "top_k": 20, "temperature": 0.7}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    model = load(str(folder), quantise=False)
    text = model.complete([LONG], 40)[0].text
    assert text == plain_generate(model, LONG, 40)
    assert text != load(str(tiny_folder), quantise=False).complete([LONG], 40)[0].text


def test_nf4_with_double_quantisation_runs_on_the_cpu(tiny_folder: Path) -> None:
    """The very path of a GPU: 4-bit NormalFloat weights, nested quantisation, bf16 compute."""
    import bitsandbytes
    import torch

    model = load(str(tiny_folder), quantise=True)
    layer = model._model.model.layers[0].self_attn.q_proj
    assert isinstance(layer, bitsandbytes.nn.Linear4bit)
    assert layer.weight.dtype == torch.uint8
    assert layer.weight.quant_state.quant_type == "nf4"
    assert layer.weight.quant_state.nested
    assert layer.compute_dtype == torch.bfloat16
    assert model.info.quantisation == "NF4, double quantisation"
    pieces: list[str] = []
    completion = model.complete([LONG], 20, stream=lambda _, piece: pieces.append(piece))[0]
    assert completion.output_tokens == 20
    assert "".join(pieces) == completion.text
    assert model.complete([LONG], 20)[0].text == completion.text


def test_info_and_id_name_what_runs(tiny: LocalModel) -> None:
    assert tiny.id == "local:tiny-qwen2"
    assert (tiny.info.label, tiny.info.dtype, tiny.info.quantisation) == ("tiny-qwen2", "float32", "none")
    assert tiny.info.leaves_machine is False
    assert tiny.context_tokens == 2048


def test_speed_is_known_after_an_answer(tiny: LocalModel) -> None:
    assert tiny.tokens_per_second is None
    tiny.complete([SHORT], 10)
    assert (tiny.tokens_per_second or 0) > 1


def test_unloaded_model_says_so(tiny: LocalModel) -> None:
    tiny.release()
    with pytest.raises(ModelUnavailable, match="unloaded"):
        tiny.complete([SHORT])


@pytest.mark.parametrize("damage", ["no weights", "no configuration", "no model at all", "cut weights"])
def test_folder_that_is_no_model_gives_a_sentence(tiny_folder: Path, tmp_path: Path, damage: str) -> None:
    folder = copy_of(tiny_folder, tmp_path)
    weights = folder / "model.safetensors"
    match damage:
        case "no weights":
            weights.unlink()
        case "no configuration":
            (folder / "config.json").unlink()
        case "cut weights":
            weights.write_bytes(weights.read_bytes()[:5000])
        case _:
            for path in folder.iterdir():
                path.unlink()
    with pytest.raises(ModelUnavailable, match="could not be loaded"):
        load(str(folder), quantise=False)


def test_out_of_gpu_memory_frees_and_gives_a_sentence(tiny: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    tiny.complete([LONG], 1)

    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(tiny._model, "generate", full)
    with pytest.raises(ModelUnavailable, match="ran out of memory"):
        tiny.complete([LONG], 1)
    assert tiny._prefixes._kept == []


def copy_of(folder: Path, into: Path) -> Path:
    import shutil

    return Path(shutil.copytree(folder, into / "model"))
