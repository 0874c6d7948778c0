"""One stream: every question of a dataset in one order under one strategy, a trajectory a line on disk (spec §1, §7).

A stream begins with an empty memory and asks each question at its position through ``run_episode``; nothing here
repairs or judges. It can be killed at any point: what is finished is on disk, episode ids follow from the settings, so
the question that was under way is asked again under the same id and its entry is stored once.

What this module does not know: other streams (``experiment``), how prompts are batched, figures over a stream.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merit.episode import Outcome, Question
from merit.errors import BadInput, DatabaseNotFound, DatabaseUnreadable, GoldUnavailable, MeritError
from merit.events import Cancelled, EpisodeStarted, Event, Failed, TokenStreamed
from merit.judging import execute, schema_of, verdict_of
from merit.memory.store import MemoryStore
from merit.repair import run_episode
from merit.strategy import STRATEGIES, Causality, Regime, Strategy, get
from merit.streams.batching import Batcher, SharedModel
from merit.streams.cache import GenerationCache, cache_for
from merit.streams.datasets import Dataset
from merit.streams.folder import StreamFolder, read_events, read_settings, read_trajectories
from merit.streams.measures import check_accounts
from merit.streams.memories import StreamMemory, TimedEncoder, begin, commit, initial_failures
from merit.streams.plan import Initial, Plan, first_answers, is_independent, label, settings_of, stream_order
from merit.streams.trajectory import Trajectory, fold
from merit.verification.base import GOLD_FAILS, GOLD_TOO_LARGE, NO_GOLD

if TYPE_CHECKING:
    from merit.database import Database
    from merit.models.language import Encoder, LanguageModel
    from merit.verification import Verifier

GOLD_FAULTS = {NO_GOLD: "no gold", GOLD_FAILS: "gold fails", GOLD_TOO_LARGE: "gold too large"}
"""Why a question counts in no accuracy, by the verifier's sentence."""
NEVER_S = 1e9
"""Time limits are the batcher's and the model's own: an episode waits for its place in a batch."""

Watch = Callable[[Trajectory, int, int], None]
"""``watch(trajectory, done, total)`` after each finished question."""


class RunPaused(MeritError):
    """The run cannot go on now (model or server out of reach, disk full); what is finished is kept. The message says
    why; the same call goes on from there."""


class RunCancelled(MeritError):
    """The run was stopped; what is finished is kept, and the same call goes on from there."""


def run(
    dataset: Dataset,
    strategy: Strategy | str,
    seed: int,
    model: LanguageModel,
    store: MemoryStore | None,
    initial: Initial = None,
    *,
    verifier: Verifier,
    out: str | Path,
    budget: int = 7,
    encoder: Encoder | None = None,
    extraction: str = "product",
    cache: GenerationCache | None = None,
    cancel: threading.Event | None = None,
    watch: Watch | None = None,
) -> list[Trajectory]:
    """Run one stream to its end and return its trajectories by position; or go on where it was left.

    ``store`` is empty at the start and holds afterwards what the stream left; None: a memory of its own, over
    ``encoder``. ``initial``: first answers by question id or in the dataset's order; None: the model's, greedy, kept in
    ``cache`` (default: the one all runs of this machine share). ``out`` is the run folder.

    Errors: ``BadInput`` for a folder of other settings or another version, a memory that is not empty, first answers
    that do not fit; ``RunPaused``; ``RunCancelled``; ``AccountingError``.
    """
    chosen = strategy if isinstance(strategy, Strategy) else get(strategy)
    cancel = cancel or threading.Event()
    plan = Plan(dataset, verifier, budget, extraction, first_answers(initial, dataset))
    answers = cache if cache is not None else cache_for(model)
    with Batcher(model, 1, cache=answers, cancel=cancel) as batcher:
        stream = Stream(plan, chosen, seed, batcher, store, encoder, Path(out), cancel=cancel, watch=watch)
        return stream.run()


class Stream:
    """One stream under way; :meth:`run` once. Several may share a batcher, each in a thread of its own.

    ``lanes``: how many questions are asked at once, where the strategy remembers nothing.
    """

    def __init__(
        self,
        plan: Plan,
        strategy: Strategy,
        seed: int,
        batcher: Batcher,
        store: MemoryStore | None,
        encoder: Encoder | None,
        out: Path,
        *,
        cancel: threading.Event,
        watch: Watch | None = None,
        lanes: int = 1,
    ) -> None:
        self.plan, self.strategy, self.seed, self.out = plan, strategy, seed, out
        self.order = stream_order(plan.dataset.questions, seed)
        self._batcher, self._cancel, self._watch = batcher, cancel, watch
        if store is None:
            if encoder is None:
                raise BadInput("A stream needs a memory, or an encoder for one of its own.")
            timed = encoder if isinstance(encoder, TimedEncoder) else TimedEncoder(encoder)
            store = MemoryStore.open("memory://", timed, "stream")
        self._store = store
        self._label = label(strategy)
        self._lanes = lanes if is_independent(strategy) else 1
        self.settings = settings_of(plan, strategy, seed, batcher.model, store.encoder)
        self._key = json.dumps(self.settings, sort_keys=True)

    def run(self, taken_from: Path | None = None) -> list[Trajectory]:
        """The trajectories by position. ``taken_from``: the finished folder of the same strategy in another order; as
        it remembers nothing, what happened there is what happens here."""
        with StreamFolder(self.out, self.settings) as folder:
            self._check_order(folder.trajectories)
            self._prepare(folder.trajectories)
            steps = self._steps(len(folder.trajectories)) if taken_from is None else self._taken(folder, taken_from)
            for trajectory, events in steps:
                kept = folder.append(trajectory, events)
                if self._watch is not None:
                    self._watch(kept, len(folder.trajectories), len(self.order))
            if self.strategy.causal is Causality.TRANSDUCTIVE:
                commit(self._store, folder.trajectories)
            check_accounts(folder.trajectories, self.strategy, [q.id for q in self.order], self.plan.budget)
            if self.strategy.uses_memory:
                self._store.export_jsonl(self.out / "memory")
            return list(folder.trajectories)

    @property
    def _frozen(self) -> bool:
        return self.strategy.causal is not Causality.CAUSAL

    def _episode_id(self, question_id: str, kind: str = "") -> str:
        return hashlib.sha256(json.dumps([self._key, question_id, kind]).encode("ascii")).hexdigest()[:32]

    def _check_order(self, finished: Sequence[Trajectory]) -> None:
        here = [question.id for question in self.order[: len(finished)]]
        if [row.question_id for row in finished] != here:
            raise BadInput(f"The run folder {self.out} holds other questions. Choose another folder.")

    # memory at the start ------------------------------------------------------------------------------------

    def _prepare(self, finished: Sequence[Trajectory]) -> None:
        """The memory as the first unfinished question finds it."""
        if not self.strategy.uses_memory:
            return
        ids = [question.id for question in self.order]
        mine = {self._episode_id(id, kind) for id in ids for kind in ("", "initial")}
        if self.strategy.causal is Causality.CAUSAL:
            begin(self._store, finished, mine)
            return
        if self.strategy.causal is Causality.LEAKY:
            ahead = self._pass(replace(STRATEGIES["merit"], regime=self.strategy.regime))
            begin(self._store, ahead, {row.entry.episode_id for row in ahead if row.entry})
            return
        begin(self._store, (), mine)
        first = self._pass(replace(STRATEGIES["zero_shot"], regime=self.strategy.regime))
        entries = initial_failures(
            first,
            self.order,
            lambda id: schema_of(self.plan.dataset.database(id)),
            lambda id: self._episode_id(id, "initial"),
        )
        self._store.finalise_many(entries)

    def _pass(self, strategy: Strategy) -> list[Trajectory]:
        """A whole stream in the same order that comes before this one; its answers are shared through the cache."""
        before = Stream(
            self.plan,
            strategy,
            self.seed,
            self._batcher,
            None,
            self._store.encoder,
            self.out / "pass",
            cancel=self._cancel,
        )
        return before.run()

    # question by question -----------------------------------------------------------------------------------

    def _steps(self, done: int) -> Iterator[tuple[Trajectory, list[Event]]]:
        """The unfinished questions in order."""
        left = list(enumerate(self.order))[done:]
        if self._lanes == 1:
            with self._batcher.lane():
                for position, question in left:
                    yield self._answered(position, question)
            return

        def in_a_lane(position: int, question: Question) -> tuple[Trajectory, list[Event]]:
            with self._batcher.lane():
                return self._answered(position, question)

        pending: deque[Future[tuple[Trajectory, list[Event]]]] = deque()
        with ThreadPoolExecutor(self._lanes, thread_name_prefix="merit-lane") as pool:
            try:
                for position, question in left:
                    pending.append(pool.submit(in_a_lane, position, question))
                    if len(pending) >= 2 * self._lanes:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def _taken(self, folder: StreamFolder, source: Path) -> Iterator[tuple[Trajectory, list[Event]]]:
        other = read_settings(source)
        if {**other, "seed": None} != json.loads(json.dumps({**self.settings, "seed": None})):
            raise BadInput(f"The run folder {source} was made with other settings.")
        by_id = {row.question_id: row for row in read_trajectories(source)}
        for position, question in list(enumerate(self.order))[len(folder.trajectories) :]:
            row = by_id[question.id]
            events: list[Event] = []
            if row.trace and row.attempts:
                started, *rest = read_events(source, row)
                assert isinstance(started, EpisodeStarted)
                events = [replace(started, episode_id=self._episode_id(question.id), position=position), *rest]
            yield replace(row, seed=self.seed, position=position), events

    def _answered(self, position: int, question: Question) -> tuple[Trajectory, list[Event]]:
        """One episode, or why there is none. Errors: ``RunPaused``, ``RunCancelled``."""
        if self._cancel.is_set():
            raise RunCancelled("The run was stopped.")
        started = time.monotonic()
        try:
            database = self.plan.dataset.database(question.database_id)
        except DatabaseNotFound:
            return self._unasked(position, question, "database not found"), []
        except DatabaseUnreadable:
            return self._unasked(position, question, "database unreadable"), []
        shared, memory = SharedModel(self._batcher), StreamMemory(self._store, frozen=self._frozen)
        brought = None if self.plan.initial is None else self.plan.initial.get(question.id)
        events: list[Event] = [
            event
            for event in run_episode(
                question,
                database,
                shared,
                self.plan.verifier,
                memory,
                self.strategy,
                position,
                self.plan.budget,
                initial=brought,
                cancel=self._cancel,
                extraction=self.plan.extraction,
                episode_id=self._episode_id(question.id),
                generation_timeout_s=NEVER_S,
            )
            if not isinstance(event, TokenStreamed)
        ]
        fault = self._fault(events[-1], shared, memory)
        attempts, facts = fold(events, question, brought=brought is not None)
        first, last = (attempts[i].outcome if attempts else None for i in (0, -1))
        trajectory = Trajectory(
            **self._place(position, question),
            initial_outcome=first,
            outcome=last,
            attempts=attempts,
            **facts,
            fault=fault,
            entry=None if fault else memory.left,
            generation_s=shared.waited_s,
            retrieval_s=memory.retrieval_s,
            embedding_s=memory.embedding_s,
            indexing_s=memory.indexing_s,
        )
        if self.strategy.regime is Regime.DBMS_ONLY and fault is None:
            trajectory = self._scored(trajectory, question, database)
        return replace(trajectory, elapsed_s=time.monotonic() - started), events

    def _fault(self, last: Event, shared: SharedModel, memory: StreamMemory) -> str | None:
        """Why the question counts in no accuracy; a failure of model or memory is no property of the question."""
        if isinstance(last, Cancelled):
            raise RunCancelled("The run was stopped.")
        if not isinstance(last, Failed):
            return None
        if shared.failure is not None or memory.failure is not None:
            raise RunPaused(f"{last.reason} The run is paused; what is finished is kept.")
        return GOLD_FAULTS.get(last.reason, last.reason)

    def _scored(self, trajectory: Trajectory, question: Question, database: Database) -> Trajectory:
        """EX of the regime ``dbms_only``, where nobody judged during the episode (spec §7)."""
        try:
            first, last = (self._score(trajectory.attempts[i].sql, question, database) for i in (0, -1))
        except GoldUnavailable as error:
            return replace(trajectory, fault=GOLD_FAULTS.get(str(error), "gold fails"))
        return replace(trajectory, initial_outcome=first, outcome=last)

    def _score(self, sql: str, question: Question, database: Database) -> Outcome:
        execution = execute(database, sql, self._cancel)
        return verdict_of(self.plan.verifier, question, database, sql, execution, self._cancel).outcome

    def _unasked(self, position: int, question: Question, fault: str) -> Trajectory:
        failed = Outcome.EXECUTION_ERROR
        return Trajectory(
            **self._place(position, question),
            initial_outcome=failed,
            outcome=failed,
            attempts=(),
            calls=0,
            fault=fault,
        )

    def _place(self, position: int, question: Question) -> dict[str, Any]:
        return {
            "strategy": self._label,
            "seed": self.seed,
            "position": position,
            "question_id": question.id,
            "database_id": question.database_id,
            "difficulty": self.plan.dataset.difficulty.get(question.id),
        }
