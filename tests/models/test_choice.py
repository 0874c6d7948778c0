"""Specifications, the automatic choice, and that nothing heavy is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from merit.errors import BadInput, ModelUnavailable
from merit.models import choice, embedded, encoder, load, load_encoder, local
from merit.models.endpoint import EndpointModel
from merit.models.language import LanguageModel
from merit.models.queue import Queued
from merit.settings import settings


class Named:
    """A model that only knows how it was asked for."""

    def __init__(self, **asked: Any) -> None:
        self.asked = asked

    def complete(self, prompts: Any, max_new_tokens: int = 512, **_: Any) -> list[Any]:
        return []


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> list[dict[str, Any]]:
    """Calls of ``local.load`` and the embedded model instead of real weights."""
    calls: list[dict[str, Any]] = []

    def fake(reference: str, **options: Any) -> Named:
        calls.append({"reference": reference, **options})
        return Named(**calls[-1])

    monkeypatch.setattr(local, "load", fake)
    monkeypatch.setattr(embedded, "fetch", lambda *_, **__: tmp_path / "embedded")
    return calls


@pytest.mark.parametrize("spec", ["", "qwen", "local:", "endpoint:", "embedded:x", "auto:x", "Qwen/Qwen2.5-7B"])
def test_unknown_spec_lists_what_can_be_written(spec: str) -> None:
    with pytest.raises(BadInput, match=r"auto, embedded, local:<hub id or folder> or endpoint:<address>#<model>"):
        load(spec)


def test_unknown_encoder_spec_lists_what_can_be_written() -> None:
    with pytest.raises(BadInput, match="auto, embedded or local:"):
        load_encoder("endpoint:x#y")


def test_auto_takes_the_model_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERIT_MODEL", "endpoint:http://localhost:9/v1#some-model")
    settings.cache_clear()
    model = load("auto")
    assert isinstance(model, EndpointModel)
    assert model.id == "endpoint:http://localhost:9/v1#some-model"


@pytest.mark.parametrize(
    ("free_gib", "taken"),
    [(None, None), (80.0, "7B"), (8.0, "7B"), (7.9, "3B"), (3.5, "1.5B"), (2.0, "0.5B"), (1.0, None)],
)
def test_auto_takes_the_largest_qwen_that_fits(free_gib: float | None, taken: str | None) -> None:
    candidate = choice.fitting(free_gib)
    assert (candidate and candidate.reference) == (taken and f"Qwen/Qwen2.5-{taken}-Instruct")


def test_auto_pins_the_revision_on_a_gpu(loads: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "free_gpu_gib", lambda: 40.0)
    assert isinstance(load("auto"), Queued)
    assert loads[0]["reference"] == "Qwen/Qwen2.5-7B-Instruct"
    assert len(loads[0]["revision"]) == 40


def test_auto_without_a_gpu_is_the_embedded_model(loads: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "free_gpu_gib", lambda: None)
    load("auto")
    assert loads[0]["reference"].endswith("embedded")
    assert loads[0]["model_id"] == embedded.model_id()
    assert loads[0]["notes"] == ()


def test_auto_falls_back_to_the_embedded_model_and_says_why(
    loads: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU without a network or a cached model must still give a running explorer."""
    monkeypatch.setattr(choice, "free_gpu_gib", lambda: 40.0)
    fake = local.load

    def hub_is_away(reference: str, **options: Any) -> Any:
        if reference.startswith("Qwen/"):
            raise ModelUnavailable("The model hub cannot be reached.")
        return fake(reference, **options)

    monkeypatch.setattr(local, "load", hub_is_away)
    load("auto")
    assert loads[-1]["notes"] == ("The model hub cannot be reached. The embedded model answers instead.",)


def test_encoder_of_the_paper_on_a_gpu_else_the_embedded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []
    monkeypatch.setattr(encoder, "load_local", lambda *arguments: taken.append(arguments[:2]))
    monkeypatch.setattr(encoder, "load_embedded", lambda *_: taken.append("embedded"))
    monkeypatch.setattr(choice, "free_gpu_gib", lambda: 40.0)
    load_encoder("auto")
    monkeypatch.setattr(choice, "free_gpu_gib", lambda: None)
    load_encoder("auto")
    assert taken == [("BAAI/bge-large-en-v1.5", "d4aa6901d3a41ba39fb536a557fa166f842b0e09"), "embedded"]


def test_importing_the_package_and_its_parts_imports_no_torch() -> None:
    script = (
        "import sys, merit.models, merit.models.loading, merit.models.queue, merit.models.local\n"
        "import merit.models.embedded, merit.models.encoder, merit.models.endpoint, merit.models.hub\n"
        "print([n for n in ('torch', 'transformers', 'streamlit', 'openai', 'huggingface_hub') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_model_of_ours_is_a_language_model() -> None:
    assert isinstance(EndpointModel("http://localhost:9/v1", "m"), LanguageModel)
    assert isinstance(Queued(Named()), LanguageModel)
