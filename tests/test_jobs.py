"""Background jobs: found again, stopped, one at a time, gone when nobody comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from merit.episode import Outcome
from merit.errors import BadInput
from merit.events import Cancelled, EpisodeFinalised, Event, Failed, Judged, JudgementRequested, TokenStreamed
from merit.jobs import MAX_KEPT_PER_OWNER, JobState, Registry

END = EpisodeFinalised(Outcome.CORRECT, None, 1, 0)


@pytest.fixture
def registry() -> Registry:
    return Registry()


def short(cancel: threading.Event) -> Iterator[Event]:
    yield TokenStreamed(0, "SELECT")
    yield END


def until_stopped(cancel: threading.Event) -> Iterator[Event]:
    yield TokenStreamed(0, "…")
    assert cancel.wait(20)
    yield Cancelled()


def wait_for_state(job: object, state: JobState, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while job.state is not state:  # type: ignore[attr-defined]
        assert time.monotonic() < deadline, f"state stayed {job.state}"  # type: ignore[attr-defined]
        time.sleep(0.01)


def test_a_job_collects_all_events_and_finishes(registry: Registry) -> None:
    job = registry.start("ann", short, label="a question", context={"database": "shop"})
    assert job.wait(5)
    assert job.events == [TokenStreamed(0, "SELECT"), END]
    assert job.state is JobState.FINISHED
    assert job.context == {"database": "shop"}
    assert job.finished_at is not None
    assert job.finished_at >= job.created_at


def test_a_reloaded_page_finds_its_running_job_and_nobody_else_does(registry: Registry) -> None:
    job = registry.start("ann", until_stopped)
    assert registry.latest("ann") is job
    assert registry.get(job.id, "ann") is job
    assert registry.get(job.id, "bob") is None
    assert registry.latest("bob") is None
    job.cancel()
    assert job.wait(5)


def test_stop_ends_as_cancelled_which_is_no_error(registry: Registry) -> None:
    job = registry.start("ann", until_stopped)
    wait_for_state(job, JobState.RUNNING)
    job.cancel()
    assert job.cancelling
    assert job.wait(5)
    assert job.state is JobState.CANCELLED
    assert job.events[-1] == Cancelled()


def test_a_job_knows_its_place_in_the_queue_of_the_model(registry: Registry) -> None:
    """Every generation has a stop of its own, so the queue did not know a job by its cancel event."""
    from merit.generation import generate
    from merit.models import Completion
    from merit.models.queue import Queued

    go = threading.Event()

    class Slow:
        def complete(self, prompts: object, *_: object, **__: object) -> list[Completion]:
            go.wait(10)
            return [Completion("SELECT 1", 1, 1)]

    model = Queued(Slow())

    def source(cancel: threading.Event) -> Iterator[Event]:
        for piece in generate(model, "prompt", cancel, seed=0):
            yield TokenStreamed(0, piece)
        yield Cancelled()

    jobs = []
    for number, owner in enumerate(("first", "second", "third")):
        jobs.append(registry.start(owner, source))
        deadline = time.monotonic() + 5
        while jobs[-1].place(model) != number:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert [job.place(model) for job in jobs] == [0, 1, 2]
    assert jobs[0].place(object()) is None
    go.set()


def test_a_second_start_gets_a_sentence_and_the_first_goes_on(registry: Registry) -> None:
    job = registry.start("ann", until_stopped)
    with pytest.raises(BadInput, match="still running"):
        registry.start("ann", short)
    assert job.state is JobState.RUNNING
    assert not job.cancelling
    other = registry.start("bob", short)
    assert other.wait(5)
    job.cancel()
    assert job.wait(5)
    assert registry.start("ann", short).wait(5)


def test_the_number_of_running_jobs_is_bounded_over_all_owners(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merit.jobs.MAX_RUNNING", 2)
    jobs = [registry.start(owner, until_stopped) for owner in ("ann", "bob")]
    with pytest.raises(BadInput, match="as many questions as it can"):
        registry.start("eve", short)
    for job in jobs:
        job.cancel()
        assert job.wait(5)


def test_waiting_for_a_person_is_a_state_until_the_verdict_is_in(registry: Registry) -> None:
    answered = threading.Event()

    def asks(cancel: threading.Event) -> Iterator[Event]:
        yield JudgementRequested(0)
        assert answered.wait(20)
        yield Judged(0, Outcome.CORRECT, "person")
        assert cancel.wait(20)
        yield Cancelled()

    job = registry.start("ann", asks)
    wait_for_state(job, JobState.WAITING_FOR_PERSON)
    answered.set()
    wait_for_state(job, JobState.RUNNING)
    job.cancel()
    assert job.wait(5)


def test_a_source_that_raises_ends_as_failed_and_tells_no_foreign_text(registry: Registry) -> None:
    """A foreign exception's text may quote gold, so only its class may show."""

    def breaks(cancel: threading.Event) -> Iterator[Event]:
        yield TokenStreamed(0, "x")
        raise RuntimeError("SELECT secret FROM gold")

    job = registry.start("ann", breaks)
    assert job.wait(5)
    assert job.state is JobState.FAILED
    last = job.events[-1]
    assert isinstance(last, Failed)
    assert "RuntimeError" in last.reason
    assert "secret" not in last.reason


def test_a_source_that_refuses_with_a_sentence_shows_that_sentence(registry: Registry) -> None:
    def refuses(cancel: threading.Event) -> Iterator[Event]:
        raise BadInput("This database has no tables.")
        yield

    job = registry.start("ann", refuses)
    assert job.wait(5)
    assert job.events == [Failed("This database has no tables.")]


def test_owners_who_do_not_come_back_expire_and_their_running_job_is_cancelled() -> None:
    registry = Registry(expires_after_s=0.3, sweep_every_s=0.05)
    gone = registry.start("gone", until_stopped)
    here = registry.start("here", until_stopped)
    deadline = time.monotonic() + 10
    while not gone.state.ended:
        assert time.monotonic() < deadline
        assert registry.latest("here") is here
        time.sleep(0.02)
    assert gone.state is JobState.CANCELLED
    assert here.state is JobState.RUNNING
    assert not here.cancelling
    while registry._jobs.get(gone.id) is not None:
        assert time.monotonic() < deadline
        registry.latest("here")
        time.sleep(0.02)
    assert registry.latest("gone") is None
    here.cancel()
    assert here.wait(5)


def test_finished_jobs_of_one_owner_do_not_pile_up(registry: Registry) -> None:
    jobs = []
    for _ in range(MAX_KEPT_PER_OWNER + 5):
        job = registry.start("ann", short)
        assert job.wait(5)
        jobs.append(job)
    assert registry.get(jobs[0].id, "ann") is None
    assert registry.latest("ann") is jobs[-1]
    assert len(registry._jobs) == MAX_KEPT_PER_OWNER


def test_many_owners_at_once_get_their_own_events(registry: Registry) -> None:
    def named(owner: str) -> list[Event]:
        def source(cancel: threading.Event) -> Iterator[Event]:
            for index in range(50):
                yield TokenStreamed(index, owner)
            yield END

        job = registry.start(owner, source)
        assert job.wait(10)
        return job.events

    results: dict[str, list[Event]] = {}
    threads = [
        threading.Thread(target=lambda owner=f"owner{index}": results.update({owner: named(owner)}))
        for index in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 8
    for owner, events in results.items():
        assert events == [*(TokenStreamed(index, owner) for index in range(50)), END]
