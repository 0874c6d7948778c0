"""The memory of one stream: what finished episodes leave, seen as of any position, ranked for a repair.

Several threads may share one store, several processes one memory: each sees what all others have written, at the
next call. Nothing is ever half-written, and finalising an episode twice is the same as once (also after kill -9).

What this module does not know: how an episode comes about, what a card looks like in a prompt.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from merit.errors import BadInput
from merit.memory import backup, listing, overview, transfer
from merit.memory.backup import Fact
from merit.memory.entry import EntryView, MemoryEntry
from merit.memory.facts import Counts, Forgotten, Observed, Progress, Restored, Statistics, TextEncoder
from merit.memory.index import Index
from merit.memory.legality import View, entry_view, entry_views, legal, living, merge
from merit.memory.log import Log
from merit.memory.retrieval import Retrieval, RetrievalQuery
from merit.memory.rows import key, observation_rows
from merit.memory.search import retrieve
from merit.memory.stream import Stream, T
from merit.memory.texts import dense_text
from merit.strategy import Strategy


class MemoryStore(Stream):
    """One stream of a memory; see :meth:`open`. Raises :class:`MemoryUnavailable` with a sentence."""

    @classmethod
    def open(cls, uri: str | Path, encoder: TextEncoder, stream: str = "live") -> Self:
        """Open or create the memory at a LanceDB URI (a folder, ``s3://…``, ``memory://`` for this store alone).

        A memory holds vectors of one encoder, whose name and dimension it records; another one is refused.
        """
        return cls(Log(str(uri), encoder.id, encoder.dimension), encoder, stream)

    # writing ----------------------------------------------------------------------------------------------

    def finalise(self, entry: MemoryEntry) -> EntryView:
        """Remember what an episode left and return the merged view of its entry over the whole stream.

        Idempotent: an episode that is remembered already is not written again. It can be seen from position
        ``max(position + 1, next unallocated position now)`` on.
        """
        return self.finalise_many([entry])[0]

    def finalise_many(self, entries: Iterable[MemoryEntry]) -> list[EntryView]:
        """The same for several episodes, in one atomic write."""
        wanted = list(entries)
        self._remember([Observed(entry, 0) for entry in wanted])
        with self._lock:
            everything = merge(self._index, legal(self._index))
            return [self._view_of(entry, everything) for entry in wanted]

    def retract(self, episode_id: str) -> bool:
        """Take back the observation an episode left; others of the same entry stay. False: there was none."""
        with self._lock:
            self._refresh()
            if self._index.living(episode_id) is None:
                return False
            self._append([{"kind": "retract", "episode": key(episode_id)}])
            return True

    def forget(self, entry_id: str) -> int:
        """Forget an entry: all its present observations die and leave the disk. Returns how many there were.

        No merge, tag, import or repeated finalise brings them back; a new episode may find the same out again.
        """
        return self.forget_for_now(entry_id).erased

    def forget_for_now(self, entry_id: str) -> Forgotten:
        """:meth:`forget`, and hand out what it takes for :meth:`undo_forget`. Nobody else keeps it."""
        with self._lock:
            self._refresh()
            entry, erased = listing.one(self._index, entry_id), 0
            kept: list[Observed] = []
            while episodes := self._index.remembered(entry_id):  # again for what came in between
                erased += len(episodes)
                kept += living(self._index, entry_id)
                floor = self._index.last_position + 1  # erased or not, positions that were given stay given
                self._append(
                    [{"kind": "forget", "entry": entry_id, "episode": name, "floor": floor} for name in episodes]
                )
            self._log.erase(self._key, self._index.forgotten(), self._index.next_sequence)
            self._rebuild()
            return Forgotten(entry, tuple(kept), erased)

    def undo_forget(self, forgotten: Forgotten) -> int:
        """Bring back what :meth:`forget_for_now` handed out, seen from the positions it was seen from before; states
        tagged before stay without it. Returns how many observations came back (0: it was undone already)."""
        vectors = self._encode([dense_text(seen.entry) for seen in forgotten.observations])
        with self._lock:
            self._refresh()
            gone = [
                number
                for number, seen in enumerate(forgotten.observations)
                if self._index.living(seen.entry.episode_id) is None
            ]
            if gone:
                new = [forgotten.observations[number] for number in gone]
                may = self._rows([{"kind": "unforget", "episode": key(seen.entry.episode_id)} for seen in new])
                rows = observation_rows(self._log.columns, self._key, new, vectors[gone], kind="returned")
                self._write(pa.concat_tables([may, rows]))
            return len(gone)

    def forget_database(self, database_id: str) -> int:
        """Forget every observation made on a database, physically, as :meth:`forget` does; those of the same entries
        made on others stay. Returns how many there were."""
        with self._lock:
            self._refresh()
            episodes = self._index.remembered_of(key(database_id))
            body = json.dumps({"database": key(database_id), "episodes": episodes})
            self._append([{"kind": "forget_database", "body": body, "floor": self._index.last_position + 1}])
            self._log.erase(self._key, self._index.forgotten(), self._index.next_sequence)
            self._rebuild()
            return len(episodes)

    def tag(self, name: str) -> None:
        """Name the present state, so that :meth:`restore` can go back to it. A name can be given anew."""
        if not name.strip():
            raise BadInput("Give the state a name.")
        self._append([{"kind": "tag", "body": json.dumps(name.strip())}])

    def untag(self, name: str) -> None:
        """Take a name off; what only that state held can go with the next :meth:`compact`. Others keep theirs."""
        self._known(name)
        self._append([{"kind": "untag", "body": json.dumps(name)}])

    def tags(self) -> tuple[str, ...]:
        """The names given, oldest first."""
        with self._lock:
            self._refresh()
            return tuple(self._index.tags)

    def restore(self, name: str) -> None:
        """Go back to a tagged state: what came later is no longer seen, what was retracted since is seen again;
        what was forgotten stays forgotten. Positions go on counting."""
        with self._lock:
            self._known(name)
            self._append([{"kind": "restore", "body": json.dumps(name)}])

    def go_back(self, name: str) -> str:
        """:meth:`restore`, after the state that is left was given a name, which is returned: so one can come again."""
        with self._lock:
            self._known(name)
            left = self._free_name(f"before going back to {name}")
            self._append([{"kind": "tag", "body": json.dumps(left)}, {"kind": "restore", "body": json.dumps(name)}])
            return left

    def delete_stream(self) -> None:
        """Remove everything of this stream from the disk, its counter and tags included."""
        with self._lock:
            self._append([{"kind": "drop"}])
            self._log.erase(self._key, None, self._index.dropped_at)
            self._rebuild()

    def next_position(self) -> int:
        """Allocate the next position of the stream: ``max(counter, 1 + largest stored position)``. No two calls
        get the same, in whatever process."""
        token = uuid.uuid4().hex
        with self._lock:
            self._refresh()
            self._append([{"kind": "position", "episode": token, "floor": self._index.last_position + 1}])
            return self._index.allocated[token]

    def import_jsonl(self, folder: str | Path, progress: Progress | None = None) -> int:
        """Take in what :meth:`export_jsonl` wrote, all or nothing; a wrong line is named. Episodes that are
        remembered already, or were forgotten, are left out. Returns how many observations are new."""
        return self.take_in(transfer.read(transfer.sources(Path(folder))), progress)

    def take_in(self, observations: Iterable[Observed], progress: Progress | None = None) -> int:
        """Take in observations made elsewhere, as :meth:`import_jsonl` does."""
        return self._remember(list(observations), progress)

    def compact(self) -> int:
        """Merge fragments and drop old versions now (otherwise done in the background), and erase the observations
        that neither live nor belong to a tagged state; how many of these there were. Everything else stays."""
        with self._lock:
            self._refresh()
            useless: list[int] = self._index.sequence[~overview.useful(self._index)].tolist()
            if not useless:
                self._log.compact()
                return 0
            self._append([{"kind": "floor", "floor": self._index.last_position + 1, "position": 0}])
            self._log.erase(self._key, useless, self._index.next_sequence)
            self._rebuild()
            return len(useless)

    def backup(self, to: IO[bytes]) -> int:
        """Write everything of this stream that can still be seen or gone back to, one JSON value a line (see
        ``backup``); how many observations that were."""
        with self._lock:
            self._refresh()
            return backup.write(to, self._index, self._log.read(self._key, 0))

    def restore_backup(self, facts: Sequence[Fact], name: str, progress: Progress | None = None) -> Restored:
        """Make the memory what it was when a backup was made, its tags included. What is seen now gets the tag
        ``name``, so that one can come back to it; what was forgotten here stays forgotten. Positions go on counting.
        One write: all or nothing."""
        wanted = self.look(lambda index: [fact for fact in facts if not backup.forgotten(fact, index)])
        seen = [fact for fact in wanted if isinstance(fact, Observed)]
        vectors = self._encode([dense_text(one.entry) for one in seen], progress)
        with self._lock:
            self._refresh()
            before = self._free_name(name) if self._index.size or self._index.tags else None
            head: list[dict[str, Any]] = [] if before is None else [{"kind": "tag", "body": json.dumps(before)}]
            tables = [self._rows([*head, {"kind": "clear"}])]
            done = 0
            for same, run in groupby(wanted, lambda fact: isinstance(fact, Observed)):
                if same:
                    group = [fact for fact in run if isinstance(fact, Observed)]
                    own = vectors[done : done + len(group)]
                    tables.append(observation_rows(self._log.columns, self._key, group, own, kind="returned"))
                    done += len(group)
                else:
                    tables.append(self._rows(list(run)))
            tables.append(self._rows([{"kind": "floor", "floor": self._index.last_position + 1, "position": 0}]))
            self._write(pa.concat_tables(tables).combine_chunks())
            return Restored(len(seen), len(facts) - len(wanted), before)

    # reading ----------------------------------------------------------------------------------------------

    def entries(
        self, before: int | None = None, exclude_question: str | None = None, databases: Iterable[str] | None = None
    ) -> list[EntryView]:
        """Merged views of the observations legal at position ``before`` (None: all), without those of a question,
        from these databases only; filtered first, then folded; ordered by first position."""
        with self._lock:
            self._refresh()
            return entry_views(self._index, self._view(before, exclude_question, databases))

    def counts(
        self, before: int | None = None, exclude_question: str | None = None, databases: Iterable[str] | None = None
    ) -> Counts:
        """How many entries and observations :meth:`entries` would be made of, without making them."""
        with self._lock:
            self._refresh()
            view = self._view(before, exclude_question, databases)
            positive = int(view.positive.sum())
            return Counts(positive, len(view.rows) - positive, int(view.legal.sum()))

    def retrieve(self, query: RetrievalQuery, strategy: Strategy) -> Retrieval:
        """What a strategy recalls for a query (spec §4), as of ``query.position``."""
        if not strategy.uses_memory:
            return Retrieval()
        vector = self._encode([query.text])[0]
        with self._lock:
            self._refresh()
            return retrieve(self._index, query, strategy, vector)

    def upcoming(self) -> int:
        """The position that :meth:`next_position` would give now; it stays free."""
        return self.look(lambda index: index.next_position)

    def look(self, at: Callable[[Index], T]) -> T:
        """Hand the folded log, up to date, to a function that only reads it (``listing``, ``exclusions``, …)."""
        with self._lock:
            self._refresh()
            return at(self._index)

    def export_jsonl(self, folder: str | Path) -> Path:
        """Write ``positive.jsonl`` and ``negative.jsonl``, one merged entry a line, and return the folder."""
        with self._lock:
            self._refresh()
            transfer.write(Path(folder), self._index, merge(self._index, legal(self._index)))
        return Path(folder)

    def stats(self) -> Statistics:
        """Counts, tags, size on disk."""
        with self._lock:
            counts = self.counts()
            return Statistics(
                uri=self.uri,
                stream=self.stream,
                encoder_id=self.encoder.id,
                dimension=self.encoder.dimension,
                counts=counts,
                next_position=self._index.next_position,
                tags=tuple(self._index.tags),
                **self._log.statistics(),
            )

    def disk_bytes(self) -> int | None:
        """What the whole memory takes on the disk; None where it is in no folder (object storage)."""
        return self._log.disk_bytes()

    # inside -----------------------------------------------------------------------------------------------

    def _view(self, before: int | None, exclude_question: str | None, databases: Iterable[str] | None) -> View:
        mask = legal(
            self._index,
            before=before,
            exclude_question=None if exclude_question is None else key(exclude_question),
            databases=None if databases is None else [key(name) for name in databases],
        )
        return merge(self._index, mask)

    def _view_of(self, entry: MemoryEntry, everything: View) -> EntryView:
        row = self._index.living(entry.episode_id)
        if row is None:  # forgotten, so it is not written again: the caller's own words, with no evidence
            return EntryView.from_json(entry.to_json())
        code = self._index.entry_code[row]
        speaks = everything.rows[self._index.entry_code[everything.rows] == code][0]
        return entry_view(self._index, everything, int(speaks))

    def _known(self, name: str) -> None:
        known = self.tags()
        if name not in known:
            raise BadInput(f"There is no state called {name!r}. Known states: {', '.join(known) or 'none'}.")

    def _free_name(self, name: str) -> str:
        """The name, with a number behind it where another state has it already."""
        taken, number, free = self.tags(), 1, name
        while free in taken:
            number += 1
            free = f"{name} ({number})"
        return free
