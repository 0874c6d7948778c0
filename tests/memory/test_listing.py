"""The list is what a plain loop over the merged entries gives, whatever is asked of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merit.episode import FailureType, Polarity
from merit.memory import listing
from merit.memory.entry import EntryView
from merit.memory.listing import Filter, Order
from merit.memory.store import MemoryStore
from tests.memory.encoders import HashEncoder, entry

TYPES = ("Schema Linking", "Syntax")
ORDERS: dict[Order, Any] = {
    Order.NEWEST: lambda e: (-e.first_position, e.id),
    Order.OLDEST: lambda e: (e.first_position, e.id),
    Order.SEEN: lambda e: (-e.successes - e.failures, e.first_position, e.id),
    Order.FAILED: lambda e: (-e.failures, e.first_position, e.id),
    Order.TYPE: lambda e: (list(FailureType).index(e.failure_type), e.first_position, e.id),
    Order.DATABASE: lambda e: (e.database_id, e.first_position, e.id),
}


def passes(view: EntryView, wanted: Filter) -> bool:
    text = wanted.text.strip().casefold()
    fields = (view.question, view.failed_sql, view.new_sql, view.db_error or "", view.database_id)
    return (
        (wanted.polarity is None or view.polarity is wanted.polarity)
        and (not wanted.failure_types or view.failure_type in wanted.failure_types)
        and (not wanted.databases or view.database_id in wanted.databases)
        and view.first_position >= wanted.first
        and (wanted.last is None or view.first_position <= wanted.last)
        and (wanted.ids is None or view.id in wanted.ids)
        and (not text or any(text in field.casefold() for field in fields))
    )


FILTERS = st.builds(
    Filter,
    polarity=st.sampled_from([None, *Polarity]),
    failure_types=st.frozensets(st.sampled_from([FailureType.SCHEMA_LINKING, FailureType.SYNTAX])),
    databases=st.frozensets(st.sampled_from(["a", "b'\"", "never"])),
    first=st.integers(0, 4),
    last=st.sampled_from([None, 2, 5]),
    text=st.sampled_from(["", " select X2 ", "ÄRGER", "question", "nowhere"]),
)


@settings(max_examples=60, deadline=None)
@given(
    made=st.lists(
        st.tuples(
            st.integers(0, 6),
            st.sampled_from(list(Polarity)),
            st.integers(0, 3),
            st.sampled_from(["a", "b'\""]),
            st.sampled_from(TYPES),
        ),
        max_size=14,
    ),
    wanted=FILTERS,
    order=st.sampled_from(list(Order)),
    before=st.sampled_from([None, 0, 3, 5]),
    start=st.integers(0, 3),
    limit=st.integers(1, 4),
)
def test_it_is_the_plain_loop(
    made: list[Any], wanted: Filter, order: Order, before: int | None, start: int, limit: int
) -> None:
    store = MemoryStore.open("memory://", HashEncoder(8))
    store.finalise_many(
        entry(
            number,
            position=position,
            polarity=polarity,
            failure_type=kind,
            database_id=database,
            question="Warum Ärger?" if change else "Why?",
            failed_sql="SELECT x",
            new_sql=f"SELECT x{change}",
        )
        for number, (position, polarity, change, database, kind) in enumerate(made)
    )
    everything = store.entries(before=before)
    expected = sorted((view for view in everything if passes(view, wanted)), key=ORDERS[order])
    ask = partial(listing.listing, before=before, wanted=wanted, order=order, start=start, limit=limit)
    found = store.look(ask)
    assert found.entries == tuple(expected[start : start + limit])
    assert found.matching == len(expected)
    assert (found.positive, found.negative) == tuple(
        sum(view.polarity is polarity for view in everything) for polarity in Polarity
    )
    assert found.observations == sum(len(view.history) for view in everything)
    seen = {observation.database_id for view in everything for observation in view.history}
    assert store.look(partial(listing.databases, before=before)) == tuple(sorted(seen))


def test_only_these_ids_and_one_of_them() -> None:
    store = MemoryStore.open("memory://", HashEncoder(8))
    first, second = store.finalise_many([entry(0), entry(1)])
    found = store.look(partial(listing.listing, wanted=Filter(ids=frozenset({first.id, "never"}))))
    assert found.entries == (first,)
    assert store.look(partial(listing.one, entry_id=second.id)) == second
    assert store.look(partial(listing.one, entry_id=second.id, before=1)) is None
    assert store.look(partial(listing.one, entry_id="never")) is None


def test_words_are_found_in_what_came_later_and_not_in_what_was_forgotten() -> None:
    """The folded texts grow with the memory, and begin anew with it after a forgetting."""
    store = MemoryStore.open("memory://", HashEncoder(8))

    def found(text: str) -> list[str]:
        return [view.episode_id for view in store.look(partial(listing.listing, wanted=Filter(text=text))).entries]

    store.finalise(entry(0, question="first"))
    assert found("FIRST") == ["e0"]
    view = store.finalise(entry(1, question="second \ud800 straße"))
    assert found("second") == ["e1"]
    assert found("STRASSE") == ["e1"]
    store.forget(view.id)
    assert found("second") == []
    assert found("first") == ["e0"]


@pytest.mark.parametrize("name", ["question", "failed_sql", "position", '", "'])
def test_names_of_fields_are_not_found(name: str) -> None:
    store = MemoryStore.open("memory://", HashEncoder(8))
    store.finalise(entry(0, question="Who?"))
    assert store.look(partial(listing.listing, wanted=Filter(text=name))).matching == 0
