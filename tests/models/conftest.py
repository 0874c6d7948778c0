"""A tiny random Qwen2 made on the fly, and one converted embedded model for all tests of all runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from merit.models.local import LocalModel, load

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WORDS = "SELECT name, COUNT(*) FROM singer WHERE country = 'France' GROUP BY name ORDER BY age LIMIT 3 how many singers"


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen2 of 2 layers with a byte-level BPE tokeniser of 400 tokens and a chat template."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    folder = tmp_path_factory.mktemp("tiny") / "tiny-qwen2"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [WORDS] * 4, trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)
    # Threads that wait for each other on a busy machine make tiny matrices many times slower.
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.3,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def tiny(tiny_folder: Path) -> LocalModel:
    return load(str(tiny_folder), quantise=False)


@pytest.fixture
def forwarded(tiny: LocalModel) -> list[int]:
    """Sequence length of every call of the decoder, in order."""
    lengths: list[int] = []

    def note(module: object, args: object, kwargs: dict[str, object]) -> None:
        lengths.append(kwargs["input_ids"].shape[1])  # type: ignore[attr-defined]

    tiny._model.base_model.register_forward_pre_hook(note, with_kwargs=True)
    return lengths


@pytest.fixture(scope="session")
def kept_models() -> Path:
    """Where tests keep converted models from run to run: MERIT_TEST_MODELS, else inside the virtual environment."""
    return Path(os.environ.get("MERIT_TEST_MODELS") or Path(__file__).parents[2] / ".venv" / "merit-models")


@pytest.fixture
def embedded_home(merit_home: Path, kept_models: Path) -> Callable[[], Path]:
    """A home whose embedded models are the kept ones, fetched and converted if this is the first run."""
    kept_models.mkdir(parents=True, exist_ok=True)
    (merit_home / "models").symlink_to(kept_models)
    return lambda: kept_models
