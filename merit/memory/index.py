"""The log of one stream, folded into columns in memory: what is alive, where it lies, and how it is found.

Every process folds the same rows in the same order, so all see the same memory. The rules of the fold:

* ``position``: the counter becomes ``max(counter, floor)``, that is the position given, plus one.
* ``observation``: ignored when its episode has a living one already (two processes finalised it) or was
  forgotten; else it is visible from ``max(position + 1, counter, floor)`` (spec §8: an episode that runs now
  drew its position from the counter and can never see it).
* ``returned``: the same, but what it says of the earliest position is taken as it is: it was seen there before
  (a forgetting that was undone, a backup).
* ``retract``: the observation of an episode dies. ``restore``: those that lived at a tag live, all others die (a
  name that was taken off meanwhile: nothing happens). ``untag``: the name goes. ``clear``: all die.
* ``forget``: observations of an entry die for good; no restored tag revives them, nor does a repeated finalise
  of the same episode. An observation of another episode that comes later lives. ``unforget``: its episode may
  return.
* ``forget_database``: the same for all observations made on a database.
* ``drop``: everything before it is gone, the counter too. ``floor``: positions below it are
  taken, and the counter is at least at its ``position``.

What this module does not know: which observations a question may see (``legality``) and how they rank.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from merit.episode import FailureType, Polarity
from merit.memory.columns import Column, Postings, Texts, Vectors
from merit.memory.entry import EntryView, MemoryEntry, Observation
from merit.memory.rows import key, short

Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Tagged:
    """A named state: the ``size`` rows there were, those of them that were ``dead``, the next position then."""

    size: int
    dead: Rows
    position: int


class Index:
    """Columns over all observations of a stream, dead ones included; row numbers never change."""

    type_codes: ClassVar[dict[str, int]] = {str(kind): number for number, kind in enumerate(FailureType)}

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.next_sequence = 0
        self._clear()

    def _clear(self) -> None:
        self._folded = 0
        self.dropped_at = 0
        self.counter = 0
        self.last_position = -1
        self.allocated: dict[str, int] = {}
        self.tags: dict[str, Tagged] = {}
        self.forgotten_episodes: set[str] = set()
        self.entries: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self._sequence, self._position, self._visible_from = Column(np.int64), Column(np.int64), Column(np.int64)
        self._entry, self._question, self._database = Column(np.int32), Column(np.int64), Column(np.int64)
        self._type, self._positive, self._alive = Column(np.int8), Column(np.bool_), Column(np.bool_)
        self._forgotten, self._length, self._schema = Column(np.bool_), Column(np.int32), Column(np.int32)
        self._ids, self._uses = Column("S64"), Column(np.int32)
        self._schema_texts: list[str] = []
        self._living: dict[str, int] = {}
        self._bodies = Texts()
        self._repeated: Rows | None = None
        self.vectors = Vectors(self.dimension)
        self.postings = Postings()

    # columns, one value a row -----------------------------------------------------------------------------

    @property
    def size(self) -> int:
        return len(self.vectors)

    @property
    def next_position(self) -> int:
        """The position that would be allocated now."""
        return max(self.counter, self.last_position + 1)

    @property
    def sequence(self) -> NDArray[np.int64]:
        """The number of each observation among all rows of the log, ascending."""
        return self._sequence.values

    @property
    def position(self) -> NDArray[np.int64]:
        return self._position.values

    @property
    def visible_from(self) -> NDArray[np.int64]:
        return self._visible_from.values

    @property
    def question(self) -> NDArray[np.int64]:
        """``rows.short`` of the question's key; likewise ``database``."""
        return self._question.values

    @property
    def database(self) -> NDArray[np.int64]:
        return self._database.values

    @property
    def entry_code(self) -> Rows:
        return self._entry.values

    @property
    def failure_type(self) -> NDArray[np.int8]:
        """The code of the type in ``type_codes``."""
        return self._type.values

    @property
    def positive(self) -> Mask:
        return self._positive.values

    @property
    def alive(self) -> Mask:
        return self._alive.values

    @property
    def length(self) -> Rows:
        """Number of BM25 tokens."""
        return self._length.values

    def ids(self, rows: Rows) -> NDArray[np.bytes_]:
        """Entry ids as ASCII bytes, which sort like the texts."""
        ids: NDArray[np.bytes_] = self._ids.values[self.entry_code[rows]]
        return ids

    def repeated(self) -> Rows:
        """Rows of all entries that were observed more than once, by entry, then position, then sequence."""
        if self._repeated is None:
            rows = np.flatnonzero(self._uses.values[self.entry_code] > 1).astype(np.int32)
            self._repeated = rows[np.lexsort((rows, self.position[rows], self.entry_code[rows]))]
        return self._repeated

    def living(self, episode_id: str) -> int | None:
        """The row of the living observation of an episode."""
        return self._living.get(key(episode_id))

    def welcome(self, episode_id: str) -> bool:
        """Whether an episode may leave an observation: it has no living one, and none was forgotten."""
        name = key(episode_id)
        return name not in self._living and name not in self.forgotten_episodes

    def remembered(self, entry_id: str) -> list[str]:
        """The keys of all episodes that observed an entry and were not forgotten yet."""
        code = self.entries.get(entry_id)
        rows: list[int] = [] if code is None else np.flatnonzero(self.entry_code == code).tolist()
        return [name for name in map(self._episode, rows) if name not in self.forgotten_episodes]

    def remembered_of(self, database: str) -> list[str]:
        """The keys of all episodes that left an observation on a database (its key) and were not forgotten yet."""
        rows: list[int] = np.flatnonzero(self.database == short([database])).tolist()
        return sorted({*map(self._episode, rows)} - self.forgotten_episodes)

    def forgotten(self) -> list[int]:
        """Sequence numbers of forgotten observations that this index was built with: to be erased."""
        numbers: list[int] = self.sequence[self._forgotten.values].tolist()
        return numbers

    def alive_at(self, tag: Tagged) -> Mask:
        """Which observations a tagged state holds: those that lived then and were not forgotten since."""
        mask = np.arange(self.size) < tag.size
        mask[tag.dead] = False
        mask &= ~self._forgotten.values
        return mask

    def without(self, entry_id: str, *, apart: bool = False) -> Index:
        """The same columns as if nobody had observed this entry; nothing of this index changes, and the columns are
        shared, so use it before anything is folded. ``apart``: with columns of its own, to which more can be folded."""
        seen = copy.deepcopy(self) if apart else copy.copy(self)
        seen._alive = Column(np.bool_)
        seen._alive.extend(self.alive & (self.entry_code != self.entries.get(entry_id, -1)))
        return seen

    # facts of one row -------------------------------------------------------------------------------------

    def entry(self, row: int) -> MemoryEntry:
        """The entry that was observed."""
        return MemoryEntry.from_json(self._fields(row))

    def view(self, row: int, members: Rows) -> EntryView:
        """The merged view with the text of ``row`` and the history of ``members`` (in order of the fold)."""
        successes = int(self.positive[members].sum())
        return EntryView.from_json(
            self._fields(row)
            | {
                "successes": successes,
                "failures": len(members) - successes,
                "history": tuple(self._observation(int(member)) for member in members),
            }
        )

    def body(self, row: int) -> str:
        """The observed entry as JSON, without its schema."""
        return self._bodies[row]

    def _episode(self, row: int) -> str:
        return key(json.loads(self._bodies[row])["episode_id"])

    def _fields(self, row: int) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self._bodies[row])
        return fields | {"schema": self._schema_texts[self._schema.values[row]]}

    def _observation(self, row: int) -> Observation:
        entry = self.entry(row)
        return Observation(
            polarity=entry.polarity,
            database_id=entry.database_id,
            question_id=entry.question_id,
            episode_id=entry.episode_id,
            position=entry.position,
            iteration=entry.iteration,
            visible_from=int(self.visible_from[row]),
            outcome=entry.outcome,
            model_id=entry.model_id,
            created_at=entry.created_at,
        )

    # the fold ---------------------------------------------------------------------------------------------

    def apply(self, rows: pa.Table, next_sequence: int) -> None:
        """Fold further rows of the log, in order of ``_rowid``; the next ones have ``next_sequence`` or more."""
        pending: list[int] = []
        counters: list[int] = []
        specials = rows.select(["_rowid", "episode", "entry", "position", "floor", "body"])
        for number, kind in enumerate(rows["kind"].to_pylist()):
            self._folded += 1
            if kind in ("observation", "returned"):  # gathered: opening a memory row by row would take minutes
                pending.append(number)
                counters.append(self.counter if kind == "observation" else 0)
                continue
            facts = specials.slice(number, 1).to_pylist()[0]
            if kind == "position":
                given = max(self.counter, facts["floor"])
                self.counter = given + 1
                self.allocated[facts["episode"]] = given
                continue
            self._observe(rows, pending, counters)
            pending, counters = [], []
            self._happen(kind, facts)
        self._observe(rows, pending, counters)
        self.next_sequence = next_sequence

    def _observe(self, table: pa.Table, numbers: list[int], counters: list[int]) -> None:
        if not numbers:
            return
        first = self.size
        rows = table.take(numbers).combine_chunks()
        position, floor = (rows[name].to_numpy() for name in ("position", "floor"))
        lives = []
        for row, episode in enumerate(rows["episode"].to_pylist(), first):
            lives.append(episode not in self._living and episode not in self.forgotten_episodes)
            if lives[-1]:
                self._living[episode] = row
        self._alive.extend(lives)
        self._forgotten.extend(np.zeros(len(lives), np.bool_))
        codes = self._entry_codes(rows["entry"].to_pylist())
        self._entry.extend(codes)
        self._position.extend(position)
        self._visible_from.extend(np.maximum(np.maximum(position + 1, floor), counters))
        self._sequence.extend(rows["_rowid"].to_numpy().astype(np.int64))
        self._question.extend(short(rows["question"].to_pylist()))
        self._database.extend(short(rows["database"].to_pylist()))
        self._type.extend([self.type_codes[text] for text in rows["failure_type"].to_pylist()])
        self._positive.extend([text == Polarity.POSITIVE for text in rows["polarity"].to_pylist()])
        self._schema.extend(self._schema_codes(rows["schema"].chunk(0)))
        counts = rows["counts"].chunk(0)
        ends = np.concatenate(([0], np.cumsum(counts.flatten().to_numpy(), dtype=np.int64)))
        offsets = counts.offsets.to_numpy() - counts.offsets[0].as_py()
        self._length.extend(ends[offsets[1:]] - ends[offsets[:-1]])
        self.postings.extend(first, rows["terms"].chunk(0), counts)
        self._bodies.extend(rows["body"].chunk(0))
        self.vectors.extend(rows["vector"].chunk(0).flatten().to_numpy().reshape(-1, self.dimension))
        self.last_position = max(self.last_position, int(position.max()))
        if bool((self._uses.values[codes] > 1).any()):
            self._repeated = None

    def _entry_codes(self, identities: list[str]) -> NDArray[np.intp]:
        known = len(self.entries)
        codes = np.array([self.entries.setdefault(identity, len(self.entries)) for identity in identities], np.intp)
        fresh = list(islice(self.entries, known, None))  # a dict keeps the order of insertion
        self._ids.extend(np.array(fresh, "S64"))
        self._uses.extend(np.zeros(len(fresh), np.int32))
        np.add.at(self._uses.values, codes, 1)
        return codes

    def _schema_codes(self, texts: pa.Array) -> NDArray[np.int32]:
        encoded = texts.dictionary_encode()
        codes = []
        for text in encoded.dictionary.to_pylist():
            code = self._schemas.setdefault(key(text), len(self._schemas))
            if code == len(self._schema_texts):
                self._schema_texts.append(json.loads(text))
            codes.append(code)
        numbers: NDArray[np.int32] = np.asarray(codes, np.int32)[encoded.indices.to_numpy()]
        return numbers

    def _happen(self, kind: str, row: dict[str, Any]) -> None:
        if kind == "retract":
            dying = self._living.pop(row["episode"], None)
            if dying is not None:
                self.alive[dying] = False
        elif kind == "forget":
            self.last_position = max(self.last_position, row["floor"] - 1)
            self._forget(row["entry"], row["episode"])
        elif kind == "forget_database":
            self.last_position = max(self.last_position, row["floor"] - 1)
            self._forget_database(**json.loads(row["body"]))
        elif kind == "unforget":
            self.forgotten_episodes.discard(row["episode"])
        elif kind == "tag":
            dead = np.flatnonzero(~self.alive).astype(np.int32)
            name = json.loads(row["body"])
            self.tags.pop(name, None)  # a name given anew is the latest
            self.tags[name] = Tagged(self.size, dead, self.next_position)
        elif kind == "untag":
            self.tags.pop(json.loads(row["body"]), None)
        elif kind == "restore":
            self._restore(self.tags.get(json.loads(row["body"])))
        elif kind == "clear":
            self.alive[:] = False
            self._living = {}
        elif kind == "floor":
            self.last_position = max(self.last_position, row["floor"] - 1)
            self.counter = max(self.counter, row["position"])
        elif kind == "drop":
            stale = self._folded > 1  # the drop itself is one
            self._clear()
            self.dropped_at = row["_rowid"] if stale else 0

    def _forget(self, identity: str, episode: str) -> None:
        self.forgotten_episodes.add(episode)
        code = self.entries.get(identity)
        if code is None:
            return
        rows = np.flatnonzero(self.entry_code == code)
        self._forgotten.values[rows] = True
        self.alive[rows] = False
        for row in rows.tolist():
            if self._living.get(self._episode(row)) == row:
                del self._living[self._episode(row)]

    def _forget_database(self, database: str, episodes: list[str]) -> None:
        self.forgotten_episodes.update(episodes)  # their rows may be erased by now
        rows = np.flatnonzero(self.database == short([database]))
        for row in rows[~self._forgotten.values[rows]].tolist():
            episode = self._episode(row)
            self.forgotten_episodes.add(episode)
            if self._living.get(episode) == row:
                del self._living[episode]
        self._forgotten.values[rows] = True
        self.alive[rows] = False

    def _restore(self, tag: Tagged | None) -> None:
        if tag is not None:
            self.alive[:] = self.alive_at(tag)
            self._living = {self._episode(row): row for row in np.flatnonzero(self.alive).tolist()}
