"""``import merit``: the public names and nothing heavy."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import merit

REPOSITORY = Path(__file__).parents[1]
HEAVY = ("torch", "streamlit", "lancedb", "transformers", "sentence_transformers", "pandas", "openai", "typer")


def in_a_fresh_process(script: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, timeout=100, check=True
    )
    return finished.stdout.strip()


def test_import_merit_loads_nothing_heavy() -> None:
    script = f"import merit, sys; merit.Outcome, merit.run_episode; print([m for m in {HEAVY!r} if m in sys.modules])"
    loaded = in_a_fresh_process(script)
    assert loaded == "[]"


@pytest.mark.parametrize("module", ["merit.cli", "merit.live", "merit.jobs", "merit.models"])
def test_the_shared_rooms_load_neither_torch_nor_streamlit(module: str) -> None:
    script = f"import {module}, sys; print([m for m in ('torch', 'streamlit') if m in sys.modules])"
    assert in_a_fresh_process(script) == "[]"


# The names of the contract, by hand.
PUBLIC = {
    "Outcome", "FailureType", "Polarity", "Question", "Database", "diagnose", "MemoryEntry", "MemoryStore",
    "RetrievalQuery", "STRATEGIES", "run_episode",
}  # fmt: skip
ERRORS = {"MeritError", "DatabaseNotFound", "GoldUnavailable", "UnknownStrategy"}


def test_the_public_names_are_those_of_the_contract() -> None:
    assert set(merit.__all__) == PUBLIC | ERRORS
    assert set(dir(merit)) >= PUBLIC | ERRORS


@pytest.mark.parametrize("name", sorted(PUBLIC | ERRORS))
def test_every_public_name_is_there_and_explained(name: str) -> None:
    value = getattr(merit, name)
    assert name == "STRATEGIES" or inspect.getdoc(value)


@pytest.mark.parametrize("module", ["prompts", "verification", "models", "memory", "events", "trace"])
def test_rooms_are_reached_as_attributes(module: str) -> None:
    assert getattr(merit, module) is importlib.import_module(f"merit.{module}")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = merit.nonsense


def test_the_signatures_of_the_contract() -> None:
    parameters = inspect.signature(merit.run_episode).parameters
    assert list(parameters)[:8] == [
        "question", "database", "model", "verifier", "store", "strategy", "position", "budget",
    ]  # fmt: skip
    assert {name: parameters[name].default for name in ("budget", "initial", "cancel", "seed", "extraction")} == {
        "budget": 7, "initial": None, "cancel": None, "seed": 0, "extraction": "product",
    }  # fmt: skip


def test_python_m_merit_answers() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "merit", "--version"], cwd=REPOSITORY, capture_output=True, text=True, timeout=100
    )
    assert (finished.returncode, finished.stdout.strip()) == (0, merit.__version__)


def test_every_module_says_what_it_does_and_what_it_does_not_know() -> None:
    silent = []
    for file in sorted((REPOSITORY / "merit").rglob("*.py")):
        first = file.read_text(encoding="utf-8").lstrip()
        if not first.startswith('"""'):
            silent.append(str(file.relative_to(REPOSITORY)))
    assert silent == []
