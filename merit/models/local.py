"""A causal language model run here by transformers: any folder or hub id, NF4 on a CUDA card, plain on the CPU.

What this module does not know: which model suits a machine (``choice``), who waits for it (``queue``).
Not safe for concurrent calls; ``merit.models.load`` puts a queue in front of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from merit.errors import ModelUnavailable
from merit.models import hub
from merit.models.decoding import CHUNK, PrefixCache, Watch, prefill
from merit.models.language import Completion, ModelInfo, Stream
from merit.models.packages import Progress, silent

MAX_CONTEXT_TOKENS = 8192
"""Prompt and answer together, where the model itself allows more: bounds the memory of the cache."""
PREFIX_TOKENS = 4096
"""Tokens of prompts whose key-value caches are kept for reuse."""
CUDA_CHUNK = 256
MAX_TIME_S = 600.0


def load(
    reference: str,
    *,
    revision: str | None = None,
    quantise: bool | None = None,
    model_id: str | None = None,
    label: str | None = None,
    notes: tuple[str, ...] = (),
    progress: Progress = silent,
    cancel: threading.Event | None = None,
) -> LocalModel:
    """Load a folder or hub id. ``quantise``: NF4 with double quantisation; default only on CUDA.

    Errors: ``ModelUnavailable`` in a sentence: not found, hub out of reach, not a causal model, out of memory.
    """
    path = hub.folder(reference, revision, progress, cancel)
    name = label or (path.name if Path(reference).expanduser().is_dir() else reference)
    progress(f"loading {name}", None)
    import torch

    try:
        model, tokenizer, quantisation = _from_folder(path, quantise)
    except torch.OutOfMemoryError:
        _free()
        raise ModelUnavailable(
            f"{name} does not fit the free memory of the GPU. Close other programs that use it "
            "or choose a smaller model."
        ) from None
    except Exception as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelUnavailable(f"{name} could not be loaded as a causal language model: {first_line}") from error
    if not tokenizer.chat_template:
        notes += ("This model has no chat template: prompts are sent to it as plain text.",)
    info = ModelInfo(
        label=name,
        revision=revision or "",
        quantisation=quantisation,
        dtype=str(model.dtype).removeprefix("torch."),
        device=_device_name(model.device),
        notes=notes,
    )
    return LocalModel(model, tokenizer, model_id or f"local:{name}" + (f"@{revision}" if revision else ""), info)


def _from_folder(path: Path, quantise: bool | None) -> tuple[Any, Any, str]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

    cuda = torch.cuda.is_available()
    options: dict[str, Any] = {"dtype": torch.float32, "local_files_only": True}
    quantisation = "none"
    if quantise if quantise is not None else cuda:
        # The defaults of bitsandbytes (fp4, float32 compute) are silently slow.
        compute = torch.float16 if cuda and not torch.cuda.is_bf16_supported() else torch.bfloat16
        options["dtype"] = compute
        options["quantization_config"] = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=compute,
        )
        quantisation = "NF4, double quantisation"
    elif cuda:
        options["dtype"] = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if cuda:
        options["device_map"] = {"": 0}
    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(path, **options)
    model.eval()  # type: ignore[no-untyped-call]
    return model, tokenizer, quantisation


class LocalModel:
    """One loaded model (``merit.models.language.LanguageModel``).

    Greedy and sampled decoding keep the model's own generation settings (a repetition penalty, top-p) and set only
    ``do_sample`` and the temperature. ``reuse_prefix`` switches the reuse of prompt prefixes; it never changes a text.
    """

    def __init__(self, model: Any, tokenizer: Any, model_id: str, info: ModelInfo) -> None:
        self.id = model_id
        self.info = info
        self.reuse_prefix = True
        self.max_time_s = MAX_TIME_S
        self.tokens_per_second: float | None = None
        self._model = model
        self._tokenizer = tokenizer
        self._prefixes = PrefixCache(PREFIX_TOKENS)
        self.context_tokens = min(int(getattr(model.config, "max_position_embeddings", 4096)), MAX_CONTEXT_TOKENS)
        ends = model.generation_config.eos_token_id
        self._ends = frozenset(ends if isinstance(ends, list) else [ends]) - {None}
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token_id = next(iter(self._ends), 0)
        self._chunk = CUDA_CHUNK if model.device.type == "cuda" else CHUNK

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text`` as one user message, chat framing included."""
        return len(self._tokens(text, None))

    def complete(
        self,
        prompts: Sequence[str],
        max_new_tokens: int = 512,
        *,
        system: str | None = None,
        temperature: float = 0.0,
        seed: int | None = None,
        stream: Stream | None = None,
        cancel: threading.Event | None = None,
        max_time_s: float | None = None,
    ) -> list[Completion]:
        """One completion per prompt; several prompts run as one left-padded batch.

        A prompt that leaves no room for ``max_new_tokens`` in the context is cut on the left (spec §5).
        ``seed`` makes sampling repeatable for the same batch. ``max_time_s`` defaults to ten minutes.
        Errors: ``ModelUnavailable`` when the GPU is out of memory (it is freed first).
        """
        if not prompts:
            return []
        import torch

        deadline = time.monotonic() + (self.max_time_s if max_time_s is None else max_time_s)
        watch = Watch(self._tokenizer, self._ends, stream=stream, cancel=cancel, deadline=deadline)
        room = max(1, min(max_new_tokens, self.context_tokens // 2))
        rows = [self._tokens(prompt, system)[-(self.context_tokens - room) :] for prompt in prompts]
        try:
            outputs = self._generate(rows, room, temperature, seed, watch)
        except torch.OutOfMemoryError:
            self._prefixes.clear()
            _free()
            raise ModelUnavailable(
                "The GPU ran out of memory while answering. Its memory was freed; ask again with a smaller model or a "
                "shorter prompt."
            ) from None
        return [
            Completion(text, len(row), count, reason)
            for row, (text, count, reason) in zip(
                rows, (watch.finish(i, output) for i, output in enumerate(outputs)), strict=True
            )
        ]

    def release(self) -> None:
        """Give up weights and caches, so that another model finds the memory; the model cannot answer afterwards."""
        self._prefixes.clear()
        self._model = None
        _free()

    def _tokens(self, prompt: str, system: str | None) -> list[int]:
        prompt = prompt.encode("utf-8", "replace").decode("utf-8")
        if not self._tokenizer.chat_template:
            text = f"{system}\n\n{prompt}" if system else prompt
            return list(self._tokenizer(text)["input_ids"])
        text = self._framed(prompt, system)
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _framed(self, prompt: str, system: str | None) -> str:
        from jinja2 import TemplateError

        user = {"role": "user", "content": prompt}
        # Models that think first are asked not to; templates that do not know the switch ignore it.
        options = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        if system is not None:
            try:
                messages = [{"role": "system", "content": system}, user]
                return str(self._tokenizer.apply_chat_template(messages, **options))
            except TemplateError:  # some templates know no system role
                user = {"role": "user", "content": f"{system}\n\n{prompt}"}
        return str(self._tokenizer.apply_chat_template([user], **options))

    def _generate(
        self, rows: Sequence[Sequence[int]], max_new_tokens: int, temperature: float, seed: int | None, watch: Watch
    ) -> list[list[int]]:
        """Generated tokens per row, padding after the end included; [] where stopped before the first token."""
        import torch
        from transformers import DynamicCache

        if self._model is None:
            raise ModelUnavailable("This model was unloaded. Load a model and ask again.")
        length = max(len(row) for row in rows)
        pad = self._tokenizer.pad_token_id
        device = self._model.device
        ids = torch.tensor([[pad] * (length - len(row)) + list(row) for row in rows], device=device)
        mask = torch.tensor([[0] * (length - len(row)) + [1] * len(row) for row in rows], device=device)
        cache, done = self._prefixes.take(rows[0]) if self.reuse_prefix and len(rows) == 1 else (None, 0)
        if cache is None:
            cache = DynamicCache(config=self._model.config.get_text_config(decoder=True))
        chunk = self._chunk if device.type == "cuda" else max(1, self._chunk // len(rows))
        if not prefill(self._model, ids, mask, cache, done, chunk, watch):
            return [[] for _ in rows]
        sampling = {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
        with torch.inference_mode(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            if seed is not None:
                torch.manual_seed(seed)
            output = self._model.generate(
                ids,
                attention_mask=mask,
                cache=cache,
                max_new_tokens=max_new_tokens,
                num_beams=1,
                pad_token_id=pad,
                stopping_criteria=[watch.criterion(length)],
                **sampling,
            )
        generated: list[list[int]] = output[:, length:].tolist()
        if watch.steps_per_second is not None:
            self.tokens_per_second = watch.steps_per_second * len(rows)
        if self.reuse_prefix and len(rows) == 1:
            self._prefixes.keep(rows[0], cache)
        return generated


def _device_name(device: Any) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def _free() -> None:
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
