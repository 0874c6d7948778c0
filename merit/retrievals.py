"""What past episodes asked of memory and what they got, read back from their events: the query and the retrieval.

What this module does not know: the memory as it is today, and who looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from merit import live
from merit.episode import Outcome
from merit.events import AttemptMade, Diagnosed, EpisodeStarted, Event, Judged, Retrieved
from merit.memory.entry import failure_context
from merit.memory.retrieval import Retrieval, RetrievalQuery
from merit.strategy import STRATEGIES, Scope, Strategy


@dataclass(frozen=True)
class PastRetrieval:
    """One retrieval of an episode: what was asked before repair ``query.iteration``, how, and the answer as it was
    kept (at most ``retrieval.SHOWN`` candidates a pool). ``status`` and ``message`` are of the attempt that failed."""

    episode_id: str
    encoder_id: str
    strategy: Strategy
    query: RetrievalQuery
    status: Outcome
    message: str
    retrieval: Retrieval


def of(events: Iterable[Event]) -> tuple[PastRetrieval, ...]:
    """All retrievals of one episode, in order; ``UnknownStrategy`` where its strategy is not known here."""
    started: EpisodeStarted | None = None
    attempt: AttemptMade | None = None
    judged: Judged | None = None
    diagnosed: Diagnosed | None = None
    found: list[PastRetrieval] = []
    for event in events:
        match event:
            case EpisodeStarted():
                started = event
            case AttemptMade():
                attempt = event
            case Judged():
                judged = event
            case Diagnosed():
                diagnosed = event
            case Retrieved() if started and attempt and judged and diagnosed:
                query = RetrievalQuery(
                    started.question.text,
                    attempt.sql,
                    failure_context(attempt.sql, judged.outcome, diagnosed.message),
                    diagnosed.failure_type,
                    started.question.id,
                    started.question.database_id,
                    started.position,
                    event.iteration,
                )
                strategy = replace(STRATEGIES[started.strategy], scope=Scope(started.scope))
                found.append(
                    PastRetrieval(
                        started.episode_id,
                        started.encoder_id,
                        strategy,
                        query,
                        judged.outcome,
                        diagnosed.message,
                        event.retrieval,
                    )
                )
    return tuple(found)


def of_episode(episode_id: str, owner: str) -> tuple[PastRetrieval, ...]:
    """The retrievals of a recorded episode of ``owner``, read once; ``BadInput`` when it is not there or not theirs."""
    file = live.bundle_path(episode_id)
    return _read(episode_id, owner, file.stat().st_mtime_ns if file.is_file() else 0)


@lru_cache(maxsize=16)
def _read(episode_id: str, owner: str, changed_ns: int) -> tuple[PastRetrieval, ...]:
    return of(live.load(episode_id, owner))
