"""Background loading, with loaders that follow the test's script."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from merit.errors import ModelUnavailable
from merit.models import choice, loading
from merit.models.loading import State


class Thing:
    """Stands for a model or an encoder."""


class Loaders:
    """What ``choice.load`` and ``choice.load_encoder`` do in a test."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.loaded: list[str] = []
        self.fail: Exception | None = None
        self.encoder_fail: Exception | None = None
        self.messages: list[tuple[str, float | None]] = []

    def model(self, spec: str, progress: Any, cancel: Any) -> Thing:
        self.loaded.append(spec)
        for message, fraction in self.messages:
            progress(message, fraction)
        while not self.go.wait(0.01):
            progress("loading slowly", None)
        if self.fail:
            raise self.fail
        return Thing()

    def encoder(self, spec: str, progress: Any, cancel: Any) -> Thing:
        self.loaded.append(f"encoder {spec}")
        if self.encoder_fail:
            raise self.encoder_fail
        return Thing()


@pytest.fixture
def loaders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaders]:
    scripted = Loaders()
    monkeypatch.setattr(choice, "load", scripted.model)
    monkeypatch.setattr(choice, "load_encoder", scripted.encoder)
    monkeypatch.setattr(loading, "_current", None)
    yield scripted
    scripted.go.set()


def test_many_threads_load_once(loaders: Loaders) -> None:
    loaders.go.clear()
    found: list[loading.Loading] = []
    threads = [threading.Thread(target=lambda: found.append(loading.start("auto"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loaders.go.set()
    assert len(set(map(id, found))) == 1
    assert found[0].wait(5).state == State.READY
    assert loaders.loaded == ["auto", "encoder auto"]
    assert found[0].model is not None
    assert found[0].encoder is not None


def test_start_does_not_block_and_states_follow_the_messages(loaders: Loaders) -> None:
    loaders.go.clear()
    started = time.monotonic()
    running = loading.start()
    assert time.monotonic() - started < 0.2
    assert running.state in (State.WAITING, State.LOADING)
    seen = []
    for message, fraction in [("downloading x (93 MB)", 0.25), ("converting x", 0.5), ("merging y", None)]:
        running._progress(message, fraction)
        seen.append((running.state, running.message, running.fraction))
    assert seen == [
        (State.DOWNLOADING, "downloading x (93 MB)", 0.25),
        (State.CONVERTING, "converting x", 0.5),
        (State.CONVERTING, "merging y", None),
    ]
    assert running.model is None
    loaders.go.set()
    running.wait(5)
    elapsed = running.elapsed_s
    time.sleep(0.05)
    assert running.elapsed_s == elapsed


def test_failure_is_a_value_and_retry_tries_again(loaders: Loaders) -> None:
    loaders.fail = ModelUnavailable("The hub cannot be reached.")
    failed = loading.start().wait(5)
    assert (failed.state, failed.error, failed.model) == (State.FAILED, "The hub cannot be reached.", None)
    assert loading.start() is failed, "a page that polls must not load again by itself"
    assert loaders.loaded == ["auto"]
    loaders.fail = None
    failed.retry()
    assert failed.wait(5).state == State.READY
    assert failed.error is None


def test_unexpected_exception_is_a_sentence_too(loaders: Loaders) -> None:
    loaders.fail = ZeroDivisionError("odd")
    assert "ZeroDivisionError: odd" in (loading.start().wait(5).error or "")


def test_retry_after_a_failed_encoder_does_not_load_the_model_again(loaders: Loaders) -> None:
    loaders.encoder_fail = ModelUnavailable("No encoder.")
    failed = loading.start().wait(5)
    assert failed.state == State.FAILED
    loaders.encoder_fail = None
    failed.retry()
    assert failed.wait(5).state == State.READY
    assert loaders.loaded.count("auto") == 1


def test_retry_while_loading_or_ready_does_nothing(loaders: Loaders) -> None:
    loaders.go.clear()
    running = loading.start()
    running.retry()
    loaders.go.set()
    running.wait(5)
    model = running.model
    running.retry()
    assert running.model is model
    assert loaders.loaded.count("auto") == 1


def test_switching_releases_the_old_model_and_keeps_the_encoder(loaders: Loaders) -> None:
    first = loading.start("embedded").wait(5)
    old, encoder = weakref.ref(first.model), first.encoder  # type: ignore[arg-type]
    second = loading.start("local:other")
    assert second is not first
    assert second.wait(5).state == State.READY
    gc.collect()
    assert old() is None, "two models at once do not fit the memory"
    assert second.encoder is encoder
    assert first.state == State.FAILED
    assert "another one was chosen" in (first.error or "")
    first.retry()
    assert first.state == State.FAILED, "a page left open must not load the old model beside the new one"
    assert loading.start() is second


def test_switching_the_encoder_loads_the_new_one(loaders: Loaders) -> None:
    loading.start("embedded", "embedded").wait(5)
    loading.start("embedded", "local:x").wait(5)
    assert loaders.loaded == ["embedded", "encoder embedded", "embedded", "encoder local:x"]


def test_cancel_ends_a_loading(loaders: Loaders) -> None:
    loaders.go.clear()
    running = loading.start()
    running.cancel()
    assert running.wait(5).state == State.FAILED
    assert running.error == "Loading was stopped."
