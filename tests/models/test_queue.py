"""The line in front of a model."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from merit.models import Completion
from merit.models.queue import Queued


class Gate:
    """A model that answers when it is let; notes who is inside."""

    id = "gate"

    def __init__(self) -> None:
        self.open = threading.Event()
        self.served: list[str] = []
        self.inside = 0
        self.most_inside = 0

    def complete(self, prompts: Sequence[str], max_new_tokens: int = 512, **_: Any) -> list[Completion]:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.served.append(prompts[0])
        try:
            if not self.open.wait(10) or prompts[0] == "raise":
                raise RuntimeError("broken")
            time.sleep(0.01)
            return [Completion("answer", 1, 1) for _ in prompts]
        finally:
            self.inside -= 1


def until(condition: Any) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def ask(queued: Queued, name: str, results: dict[str, Any]) -> tuple[threading.Thread, threading.Event]:
    cancel = threading.Event()

    def work() -> None:
        try:
            results[name] = queued.complete([name], cancel=cancel)
        except RuntimeError as error:
            results[name] = error

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: queued.place(cancel) is not None)
    return thread, cancel


def test_one_at_a_time_in_order_with_visible_places() -> None:
    model, results = Gate(), {}
    queued = Queued(model)
    asked = [ask(queued, name, results) for name in "abcd"]
    assert [queued.place(cancel) for _, cancel in asked] == [0, 1, 2, 3]
    assert queued.waiting == 3
    model.open.set()
    for thread, _ in asked:
        thread.join(5)
    assert model.served == list("abcd")
    assert model.most_inside == 1
    assert queued.waiting == 0
    assert queued.place(asked[0][1]) is None


def test_cancelled_waiter_leaves_at_once_and_the_others_move_up() -> None:
    model, results = Gate(), {}
    queued = Queued(model)
    first, second, third = (ask(queued, name, results) for name in "abc")
    second[1].set()
    second[0].join(0.5)
    assert not second[0].is_alive()
    assert results["b"] == [Completion("", 0, 0, "cancelled")]
    assert queued.place(third[1]) == 1
    model.open.set()
    first[0].join(5)
    third[0].join(5)
    assert model.served == ["a", "c"]


def test_failure_of_one_does_not_block_the_next() -> None:
    model, results = Gate(), {}
    queued = Queued(model)
    first, second = ask(queued, "raise", results), ask(queued, "b", results)
    model.open.set()
    first[0].join(5)
    second[0].join(5)
    assert isinstance(results["raise"], RuntimeError)
    assert results["b"] == [Completion("answer", 1, 1)]


def test_one_event_used_by_two_calls_is_still_two_places() -> None:
    """Two calls with one cancel event were both served at once."""
    model = Gate()
    queued = Queued(model)
    cancel = threading.Event()
    threads = [threading.Thread(target=queued.complete, args=([name],), kwargs={"cancel": cancel}) for name in "ab"]
    for thread in threads:
        thread.start()
    until(lambda: queued.waiting == 1)
    model.open.set()
    for thread in threads:
        thread.join(5)
    assert model.most_inside == 1


def test_who_asks_again_stands_at_the_end() -> None:
    model, results = Gate(), {}
    queued = Queued(model)
    model.open.set()

    def greedy() -> None:
        for _ in range(10):
            queued.complete(["greedy"])

    hog = threading.Thread(target=greedy)
    hog.start()
    until(lambda: model.served.count("greedy") >= 2)
    other, _ = ask(queued, "other", results) if hog.is_alive() else (None, None)
    hog.join(5)
    if other is not None:
        other.join(5)
        assert model.served.index("other") < 10


def test_the_rest_of_the_model_shows_through() -> None:
    queued = Queued(Gate())
    assert queued.id == "gate"
    with pytest.raises(AttributeError):
        _ = queued.count_tokens
