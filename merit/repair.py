"""Algorithm 1 as one generator of events: answer, execute, judge, diagnose, retrieve, repair, remember (spec §1).

Every use goes through ``run_episode``: the Ask page, a stream, the command line. Memory changes only when an
episode is finalised, and gold never leaves the verifier: the events, the prompts and the entry are made from the
question without its gold, from the model's SQL and from what the database said.

A single episode of a strategy that is about whole streams means: ``transductive`` and ``leaky`` retrieve without
the temporal rule from whatever the store holds (a stream fills it beforehand), ``static_examples`` shows one solved
question of each of four sample databases, never of the database that is asked.

What this module does not know: who judges (a verifier), where entries are kept (a store), streams of questions,
bundles, pages.
"""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from merit import events, prompts
from merit.diagnosis import FAILURES, diagnose
from merit.episode import Diagnosis, FailureType, Outcome, Polarity, Question, Status
from merit.errors import JudgementStopped, MeritError, told_as
from merit.events import Event
from merit.generation import GENERATION_TIMEOUT_S, Answer, counter, generate, prompt_limit
from merit.judging import execute, message_of, schema_of, verdict_of
from merit.memory.entry import EntryView, MemoryEntry, failure_context
from merit.memory.retrieval import Retrieval, RetrievalQuery
from merit.models.language import id_of
from merit.strategy import Regime, Strategy, get
from merit.verification import ExecutionOnlyVerifier, Verifier
from merit.waiting import Stopped

if TYPE_CHECKING:
    from merit.database import Database
    from merit.memory.facts import EpisodicMemory
    from merit.models.language import LanguageModel

SHOWN_ROWS = 50
"""Most rows in an event."""


@dataclass(frozen=True)
class _Attempt:
    """One attempt that was judged; ``error`` is the DBMS message, None where there is none."""

    sql: str
    outcome: Outcome
    error: str | None


def run_episode(
    question: Question,
    database: Database,
    model: LanguageModel,
    verifier: Verifier,
    store: EpisodicMemory,
    strategy: Strategy | str,
    position: int,
    budget: int = 7,
    *,
    initial: str | None = None,
    cancel: threading.Event | None = None,
    seed: int = 0,
    extraction: str = "product",
    episode_id: str | None = None,
    generation_timeout_s: float = GENERATION_TIMEOUT_S,
) -> Iterator[Event]:
    """One question from the first answer to its end; paper Algorithm 1, spec §1.

    The last event is exactly one of ``EpisodeFinalised | Failed | Cancelled``. ``position`` is the question's
    0-based place in its stream, ``budget`` the number of repairs K. ``initial`` is the SQL of a first answer that is
    already there (nothing is generated for it). ``cancel`` stops at any moment, within a second and one token.
    ``episode_id`` makes a resumed stream finalise the same episode once; without it the id is new.
    ``budget=0``, Cancelled and Failed store nothing. An attempt that executed and that nobody judged ends the
    episode as NOT_JUDGED and stores nothing (always so in the regime ``dbms_only``).
    """
    chosen = strategy if isinstance(strategy, Strategy) else get(strategy)
    episode = _Episode(
        id=episode_id or uuid.uuid4().hex,
        question=replace(question, gold_sql=None),
        judged_question=question,
        database=database,
        model=model,
        verifier=ExecutionOnlyVerifier() if chosen.regime is Regime.DBMS_ONLY else verifier,
        store=store,
        strategy=chosen,
        position=position,
        repairs=max(0, chosen.repairs(budget)),
        cancel=cancel or threading.Event(),
        seed=seed,
        extraction=extraction,
        generation_timeout_s=generation_timeout_s,
    )
    try:
        yield from episode.run(initial)
    except (Stopped, JudgementStopped):
        yield events.Cancelled()
    except MeritError as error:
        yield events.Failed(str(error))
    except Exception as error:  # noqa: BLE001 - the end must reach the person; a foreign text may quote gold
        yield events.Failed(f"The episode ended unexpectedly ({type(error).__name__}). Nothing was stored.")


@dataclass
class _Episode:
    """The state of one running episode. ``question`` has no gold; ``judged_question`` is for the verifier alone."""

    id: str
    question: Question
    judged_question: Question
    database: Database
    model: LanguageModel
    verifier: Verifier
    store: EpisodicMemory
    strategy: Strategy
    position: int
    repairs: int
    cancel: threading.Event
    seed: int
    extraction: str
    generation_timeout_s: float
    schema: str = ""
    created_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    attempts: list[_Attempt] = field(default_factory=list)
    reflections: list[str] = field(default_factory=list)

    def run(self, initial: str | None) -> Iterator[Event]:
        """Algorithm 1, line by line."""
        self.schema = schema_of(self.database)
        yield self._started()
        if initial is None:
            prompt = self._fixed(prompts.initial_prompt(self.question, self.schema))
            sql = yield from self._attempt(0, prompt, "initial")
        else:
            sql = initial.strip()
            yield events.AttemptMade(0, sql, initial, 0, 0)
        yield from self._judge(0, sql)
        iteration = 0
        while self.attempts[-1].outcome in FAILURES:
            diagnosis = yield from self._diagnose(iteration)
            if self.strategy.reflects:
                yield from self._reflect(iteration, diagnosis.failure_type)
            if iteration == self.repairs:
                break
            iteration += 1
            sql = yield from self._repair(iteration, diagnosis.failure_type)
            yield from self._judge(iteration, sql)
        yield self._finalise()

    def _started(self) -> Event:
        return events.EpisodeStarted(
            episode_id=self.id,
            question=self.question,
            strategy=self.strategy.name,
            scope=str(self.strategy.scope),
            budget=self.repairs,
            position=self.position,
            model_id=id_of(self.model),
            encoder_id=id_of(self.store.encoder),
            schema=self.schema,
            schema_hash=hashlib.sha256(self.schema.encode("utf-8", "surrogatepass")).hexdigest(),
            seed=self.seed,
            verifier=_name_of(self.verifier),
            oracle_assisted=bool(getattr(self.verifier, "oracle", False)),
            created_at=self.created_at,
        )

    def _repair(self, iteration: int, failure_type: FailureType) -> Generator[Event, None, str]:
        """Retrieve, build the prompt that fits, and generate repair ``iteration``."""
        found = Retrieval()
        if self.strategy.uses_memory:
            found = self._retrieve(iteration, failure_type)
            yield events.Retrieved(iteration, found)
        last = self.attempts[-1]
        history = [attempt.sql for attempt in self.attempts]
        examples = prompts.static_examples(self.database.id) if self.strategy.static_examples else ()

        def build(positive: Sequence[prompts.Card], negative: Sequence[prompts.Card], skipped: int) -> str:
            return prompts.repair_prompt(
                self.question,
                self.schema,
                positive=positive,
                negative=negative,
                reflections=self.reflections,
                status=last.outcome,
                failure_type=failure_type,
                error=last.error,
                history=history,
                static_examples=examples,
                skipped=skipped,
            )

        fitted = prompts.fit(
            build,
            counter(self.model),
            prompt_limit(self.model),
            positive=found.positive,
            negative=found.negative,
            attempts=len(history),
        )
        return (yield from self._attempt(iteration, fitted, "repair"))

    def _retrieve(self, iteration: int, failure_type: FailureType) -> Retrieval:
        last = self.attempts[-1]
        query = RetrievalQuery(
            self.question.text,
            last.sql,
            failure_context(last.sql, last.outcome, last.error),
            failure_type,
            self.question.id,
            self.database.id,
            self.position,
            iteration,
        )
        with told_as("The memory could not be searched"):
            return self.store.retrieve(query, self.strategy)

    def _attempt(self, iteration: int, fitted: prompts.Fitted, purpose: str) -> Generator[Event, None, str]:
        yield events.PromptBuilt(iteration, purpose, *fitted)
        answer = yield from self._generate(iteration, fitted.prompt)
        sql = prompts.extract_sql(answer.text, self.extraction)
        yield events.AttemptMade(
            iteration,
            sql,
            answer.text,
            answer.prompt_tokens,
            answer.output_tokens,
            answer.elapsed_s,
            answer.finish_reason,
        )
        return sql

    def _reflect(self, iteration: int, failure_type: FailureType) -> Iterator[Event]:
        """A verbal reflection on every attempt so far (strategy reflexion)."""
        seen = [(attempt.sql, attempt.outcome, attempt.error) for attempt in self.attempts]
        fitted = self._fixed(
            prompts.reflection_prompt(self.question, self.schema, failure_type=failure_type, attempts=seen)
        )
        yield events.PromptBuilt(iteration, "reflection", *fitted)
        answer = yield from self._generate(iteration, fitted.prompt)
        text = prompts.extract_reflection(answer.text)
        self.reflections.append(text)
        yield events.Reflected(iteration, text, answer.prompt_tokens, answer.output_tokens)

    def _fixed(self, prompt: str) -> prompts.Fitted:
        """A prompt of which no part may be left out."""
        return prompts.Fitted(prompt, counter(self.model)(prompt), ())

    def _generate(self, iteration: int, prompt: str) -> Generator[Event, None, Answer]:
        """One call of the model; its text comes out as ``TokenStreamed`` while it is written."""
        pieces = generate(self.model, prompt, self.cancel, seed=self.seed, timeout_s=self.generation_timeout_s)
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                answer: Answer = end.value
                return answer
            yield events.TokenStreamed(iteration, piece)

    def _judge(self, iteration: int, sql: str) -> Iterator[Event]:
        """Execute, then let the verifier judge."""
        execution = execute(self.database, sql, self.cancel)
        yield events.Executed(
            iteration,
            execution.status,
            execution.columns,
            execution.rows[:SHOWN_ROWS],
            len(execution.rows),
            execution.truncated,
            execution.error,
            execution.elapsed_s,
        )
        if execution.status is Status.EXECUTED and getattr(self.verifier, "needs_person", False):
            yield events.JudgementRequested(iteration)
        verdict = verdict_of(self.verifier, self.judged_question, self.database, sql, execution, self.cancel)
        self.attempts.append(_Attempt(sql, verdict.outcome, message_of(verdict, execution)))
        yield events.Judged(iteration, verdict.outcome, verdict.by)

    def _diagnose(self, iteration: int) -> Generator[Event, None, Diagnosis]:
        last = self.attempts[-1]
        found = diagnose(last.outcome, last.error)
        yield events.Diagnosed(iteration, found.failure_type, found.subtype, found.rule, last.error or "")
        return found

    def _finalise(self) -> Event:
        """The only place where memory changes."""
        entry = self._entry()
        if self.cancel.is_set():
            raise Stopped
        outcome, repairs = self.attempts[-1].outcome, len(self.attempts) - 1
        if entry is None:
            return events.EpisodeFinalised(outcome, None, self.position + 1, repairs)
        try:
            with told_as("The memory could not be written"):
                view = self.store.finalise(entry)
        except MeritError as error:
            return events.Failed(f"{error} What was learnt is kept here and can be saved again.", entry)
        return events.EpisodeFinalised(outcome, view, visible_from(view, self.id), repairs)

    def _entry(self) -> MemoryEntry | None:
        """What this episode leaves behind, if anything (spec §1, step 3)."""
        last = self.attempts[-1]
        solved = last.outcome is Outcome.CORRECT
        polarity = Polarity.POSITIVE if solved else Polarity.NEGATIVE
        if len(self.attempts) < 2 or not self.strategy.stores(polarity):
            return None
        if not solved and last.outcome not in FAILURES:
            return None
        failed = self.attempts[-2]
        quoted = failed if solved else last
        return MemoryEntry(
            polarity=polarity,
            failure_type=diagnose(quoted.outcome, quoted.error).failure_type,
            question=self.question.text,
            schema=self.schema,
            database_id=self.database.id,
            failed_sql=failed.sql,
            new_sql=last.sql,
            status=quoted.outcome,
            db_error=quoted.error,
            outcome=last.outcome,
            question_id=self.question.id,
            episode_id=self.id,
            position=self.position,
            iteration=len(self.attempts) - 1,
            prompt_version=prompts.prompt_version(self.question, "repair"),
            model_id=id_of(self.model),
            encoder_id=id_of(self.store.encoder),
            created_at=self.created_at,
        )


def visible_from(view: EntryView, episode_id: str) -> int:
    """From which position on what this episode observed can be seen."""
    mine = [seen.visible_from for seen in view.history if seen.episode_id == episode_id]
    return max(mine, default=view.visible_from)


def _name_of(thing: object) -> str:
    return str(getattr(thing, "name", None) or type(thing).__name__)
