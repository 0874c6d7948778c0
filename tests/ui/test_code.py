"""The lines shown for a step do what the step did when they are run as they stand."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from support import HashEncoder, ScriptedModel, answer

from merit import live
from merit.database import Database, samples
from merit.episode import Diagnosis
from merit.memory.store import MemoryStore
from merit.settings import settings
from merit.story import Story, fold
from merit.strategy import STRATEGIES
from merit.ui.code import snippet
from merit.verification import SpiderVerifier

BROKEN = "SELECT author.name FROM book"
WRONG = "SELECT 'it''s \"\"\" -- \\\\' AS quoted"


def lived(store: MemoryStore, number: int, *answers: str) -> Story:
    question = samples.questions("library")[number]
    library = Database.open(samples.path("library"), "library")
    request = live.Request(question, library, STRATEGIES["same_database"], SpiderVerifier(official=False))
    model = ScriptedModel(*map(answer, (*answers, str(question.gold_sql))))
    return fold(list(live.ask(request, model, store)))


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, "snippet", "exec"), names)
    return names


def test_every_step_can_be_done_again_with_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setattr("merit.models.load_encoder", HashEncoder)
    store = MemoryStore.open(settings().memory_uri, HashEncoder())
    lived(store, 1, BROKEN)
    story = lived(store, 0, BROKEN, WRONG)
    for step in story.steps:
        names = run(snippet(story, step))
        assert step.execution is not None
        assert names["execution"].rows[:50] == step.execution.rows
        assert names["execution"].error == step.execution.error
        if step.diagnosed is not None:
            told = step.diagnosed
            assert names["diagnosis"] == Diagnosis(told.failure_type, told.subtype, told.rule)
        if step.retrieved is not None:
            assert names["recalled"].positive == step.retrieved.retrieval.positive
            assert len(names["recalled"].positive) == 1
    assert str(samples.questions("library")[0].gold_sql) in snippet(story, story.steps[-1])  # the model's own answer
