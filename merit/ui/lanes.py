"""The lanes of a comparison as they stand in the inputs and in the URL, and what the library makes of them.

What this module does not know: streamlit, and how lanes are lived (``merit.comparison``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from urllib.parse import quote, unquote

from merit.comparison import Lane
from merit.episode import Outcome, Polarity
from merit.errors import BadInput, UnknownStrategy
from merit.memory import listing
from merit.memory.entry import EntryView, MemoryEntry
from merit.memory.store import MemoryStore
from merit.memory.whatif import Change
from merit.strategy import STRATEGIES, Causality, Scope

LETTERS = "ABCD"
LONGEST_FORGED = 600
"""Most characters of a forged query: it has to fit into an address."""
MAX_OFFERED = 200
"""Most entries of the picker; the newest, after those that the compared episode recalled."""

COMPARABLE = tuple(name for name, strategy in STRATEGIES.items() if strategy.causal is Causality.CAUSAL)


SCOPED = ("merit", "same_database", "cross_database")
"""Strategies that differ by their scope alone."""


class Memory(StrEnum):
    """What a lane's memory is."""

    AS_IT_IS = "as"
    OFF = "off"
    WITHOUT = "without"
    FORGED = "forged"
    EARLIER = "at"


@dataclass(frozen=True)
class LaneDraft:
    """One lane as it was chosen. ``scope``: entries of which databases are recalled; that of a strategy named for its
    scope stays. Only the fields that ``memory`` needs are read: ``entry`` (an id), ``sql`` and ``polarity`` of what
    stands in its place, ``position`` (0-based)."""

    strategy: str = "same_database"
    scope: Scope = Scope.SAME
    memory: Memory = Memory.AS_IT_IS
    entry: str = ""
    sql: str = ""
    polarity: Polarity = Polarity.POSITIVE
    position: int = 0

    @property
    def code(self) -> str:
        """The lane as it stands in the URL; :func:`parse` reads it."""
        match self.memory:
            case Memory.WITHOUT:
                parts = [self.entry]
            case Memory.FORGED:
                sql = quote(self.sql[:LONGEST_FORGED], safe="", errors="replace").replace("~", "%7E")
                parts = [self.entry, self.polarity, sql]
            case Memory.EARLIER:
                parts = [str(self.position)]
            case _:
                parts = []
        name = self.strategy if self.scope is Scope.SAME else f"{self.strategy}@{self.scope}"
        return "~".join([name, *([] if self.memory is Memory.AS_IT_IS else [self.memory]), *parts])


START = (LaneDraft("same_database"), LaneDraft("same_database", memory=Memory.OFF))
"""What stands there at first: does memory matter at all?"""


def parse(code: str) -> LaneDraft:
    """A lane of the URL; ``BadInput`` with a sentence for what is none."""
    strategy, memory, *rest = [*code.split("~"), ""]
    strategy, _, where = strategy.partition("@")
    if strategy not in COMPARABLE:
        known = UnknownStrategy(strategy[:80], COMPARABLE)
        raise BadInput(f"{known} The column is left out.")
    try:
        scope = Scope(where or Scope.SAME)
        kind = Memory(memory) if memory else Memory.AS_IT_IS
        match kind, rest:
            case Memory.WITHOUT, [entry, *_]:
                return LaneDraft(strategy, scope, kind, entry)
            case Memory.FORGED, [entry, polarity, sql, *_]:
                return LaneDraft(strategy, scope, kind, entry, unquote(sql)[:LONGEST_FORGED], Polarity(polarity))
            case Memory.EARLIER, [position, *_] if position.isascii() and position.isdigit() and len(position) < 16:
                return LaneDraft(strategy, scope, kind, position=int(position))
            case ((Memory.AS_IT_IS | Memory.OFF), _):
                return LaneDraft(strategy, scope, kind)
    except ValueError:
        pass
    raise BadInput("A column of this address cannot be read and is left out. Choose its memory below.")


def lane(draft: LaneDraft, store: MemoryStore, position: int) -> Lane:
    """What the library lives for a draft, for a question at ``position``; ``BadInput`` says what to change."""
    strategy = STRATEGIES[draft.strategy]
    if draft.strategy not in SCOPED and strategy.uses_memory:
        strategy = replace(strategy, scope=draft.scope)
    match draft.memory:
        case Memory.OFF:
            return Lane(strategy, Change(off=True))
        case Memory.WITHOUT:
            return Lane(strategy, Change(without=_entry(draft.entry, store, position).id))
        case Memory.FORGED:
            truth = _entry(draft.entry, store, position)
            return Lane(strategy, Change(without=truth.id, forged=forged(truth, draft.sql, draft.polarity)))
        case Memory.EARLIER:
            if draft.position > position:
                raise BadInput(f"The question stands at {position:,}; only an earlier place can be tried.")
            return Lane(strategy, position=draft.position)
        case _:
            return Lane(strategy)


def forged(truth: EntryView, sql: str, polarity: Polarity) -> MemoryEntry:
    """An entry that says something else than was observed: another query, or that the change failed (or worked)."""
    if not sql.strip():
        raise BadInput("Type the query that the forged entry shall claim.")
    if sql.strip() == truth.new_sql.strip() and polarity is truth.polarity:
        raise BadInput("Nothing is forged yet: change the query of the entry, or whether it worked.")
    worked = polarity is Polarity.POSITIVE
    entry = replace(
        truth.entry(),
        new_sql=sql.strip(),
        polarity=polarity,
        outcome=Outcome.CORRECT if worked else Outcome.DENOTATION_MISMATCH,
        model_id="forged",
        prompt_version="forged",
    )
    # A failure quotes the new query, whose message nobody has; the type stays, so that the entry is recalled as before.
    return entry if worked else replace(entry, status=Outcome.DENOTATION_MISMATCH, db_error=None)


def offered(store: MemoryStore, position: int, first: tuple[str, ...] = ()) -> dict[str, EntryView]:
    """Entries to choose from as the question at ``position`` could see them: those of ``first``, then the newest."""
    named = [store.look(partial(listing.one, entry_id=entry, before=position)) for entry in first]
    newest = store.look(partial(listing.listing, before=position, limit=MAX_OFFERED)).entries
    return {entry.id: entry for entry in (*[entry for entry in named if entry], *newest)}


def _entry(entry_id: str, store: MemoryStore, position: int) -> EntryView:
    if not entry_id:
        raise BadInput("Choose the entry that this column is about.")
    found = store.look(partial(listing.one, entry_id=entry_id, before=position))
    if found is None:
        raise BadInput(f"The entry {entry_id[:12]} cannot be seen by question {position:,}. Choose another one.")
    return found
