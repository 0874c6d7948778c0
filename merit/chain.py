"""The causal chain of one repair: symptom → diagnosis → entry used → edit → outcome, each link with its evidence.

The links are read from the events of the episode; nothing is inferred that is not in them. That an entry stood in the
prompt does not prove that it made the difference: the same episode without it does (``merit.comparison``).

What this module does not know: how a chain is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from merit.diagnosis import explain
from merit.episode import Outcome, Status
from merit.events import Cancelled, EpisodeFinalised, Failed
from merit.memory.entry import EntryView
from merit.sql_change import SqlChange, difference
from merit.story import Step, Story


class Kind(StrEnum):
    """The links of a chain, in their order."""

    SYMPTOM = "Symptom"
    DIAGNOSIS = "Diagnosis"
    ENTRY = "Entry used"
    EDIT = "Edit"
    OUTCOME = "Outcome"


@dataclass(frozen=True)
class Link:
    """One link. ``title`` is its short form, ``text`` a sentence or two; ``because`` words the arrow that leads to it
    from the link before ("" for the first)."""

    kind: Kind
    title: str
    text: str
    because: str = ""


@dataclass(frozen=True)
class Chain:
    """The chain of one repair of an episode. ``before`` and ``after`` are the steps it leads from and to (the same one
    where the first answer stood), ``entries`` what was recalled and stood in the prompt, best first, those that worked
    before those that failed; ``change`` is the edit, ``shared`` words of it that an entry's change has too."""

    question: str
    database_id: str
    links: tuple[Link, ...]
    before: Step
    after: Step
    entries: tuple[EntryView, ...]
    change: SqlChange | None
    shared: tuple[str, ...]

    @property
    def repair(self) -> int:
        """The number of the repair, 0 where the first answer stood."""
        return self.after.iteration


def repairs(story: Story) -> tuple[int, ...]:
    """The repairs that a chain can be told of: those that were judged."""
    return tuple(step.iteration for step in story.steps if step.iteration and step.judged is not None)


def chain(story: Story, repair: int | None = None) -> Chain | None:
    """The chain of one repair of an episode that has ended, of the last where none is named; of the first answer where
    there was none. None while there is nothing to tell."""
    told = repairs(story)
    number = told[-1] if repair is None and told else repair or 0
    after = next((step for step in story.steps if step.iteration == number and step.judged is not None), None)
    if story.started is None or story.end is None or after is None or after.attempt is None:
        return None
    before = story.failure_before(after) if number else after
    if before is None or before.attempt is None:
        return None
    question = story.started.question
    if before is after:
        links = tuple(_first_answer(story, after))
        return Chain(question.text, question.database_id, links, after, after, (), None, ())
    entries = shown(after)
    change = difference(before.attempt.sql, after.attempt.sql)
    known = {word for entry in entries for word in difference(entry.failed_sql, entry.new_sql).words}
    shared = tuple(word for word in change.words if word in known)
    links = tuple(_links(story, before, after, entries, change, shared))
    return Chain(question.text, question.database_id, links, before, after, entries, change, shared)


def shown(step: Step) -> tuple[EntryView, ...]:
    """The entries that were recalled for a step and not left out of its prompt to make it fit."""
    if step.retrieved is None:
        return ()
    left_out = set(step.prompt.dropped) if step.prompt is not None else set()
    pools = (("positive", step.retrieved.retrieval.positive), ("negative", step.retrieved.retrieval.negative))
    return tuple(
        entry
        for name, entries in pools
        for number, entry in enumerate(entries, start=1)
        if f"{name} {number}" not in left_out
    )


def as_text(chain: Chain) -> str:
    """The chain as plain text, one paragraph a link."""
    lines = [f"{chain.question}", f"Database: {chain.database_id}", ""]
    for link in chain.links:
        if link.because:
            lines.append(f"  -> {link.because}")
        lines.append(f"{link.kind.upper()}: {link.title}")
        lines += [f"    {line}" for line in link.text.splitlines()]
    return "\n".join(lines) + "\n"


def _links(
    story: Story, before: Step, after: Step, entries: tuple[EntryView, ...], change: SqlChange, shared: tuple[str, ...]
) -> Iterator[Link]:
    assert before.diagnosed is not None
    assert before.judged is not None
    name = before.diagnosed
    yield Link(Kind.SYMPTOM, _judged(before), f"{before.title}. {_said(before)}\n{_sql(before)}")
    fired = explain(before.judged.outcome, name.message)[-1]
    subtype = f" ({name.subtype})" if name.subtype else ""
    yield Link(Kind.DIAGNOSIS, f"{name.failure_type}{subtype}", fired.why, f"named by rule {name.rule}")
    yield _entry(after, entries)
    edit = "; ".join(change.words[:4]) or change.note.rstrip(".") or "Nothing changed"
    used = f"It shares “{shared[0]}” with what was recalled." if shared else ""
    if entries and not used:
        used = "No words of this edit are those of an entry; the recalled ones may still have mattered."
    yield Link(Kind.EDIT, edit[:1].upper() + edit[1:], f"{_sql(after)}\n{used}".strip(), "stood in the prompt")
    yield _outcome(story, after, "run and judged")


def _entry(after: Step, entries: tuple[EntryView, ...]) -> Link:
    if after.retrieved is None:
        return Link(Kind.ENTRY, "None", "This strategy does not ask memory before a repair.", "nothing was recalled")
    legal = sum(pool.legal for pool in after.retrieved.retrieval.pools.values())
    if not entries:
        why = "No earlier question had left an entry that may be used here." if not legal else "None was taken."
        return Link(Kind.ENTRY, "None", why, "memory was asked")
    titles = []
    for entry in entries:
        words = difference(entry.failed_sql, entry.new_sql).words
        sign = "+" if entry.successful_direction is not None else "−"
        titles.append(f"{sign} {'; '.join(words[:2]) or entry.delta}")
    noun = "entry" if legal == 1 else "entries"
    where = "\n".join(
        f"{title[:1]} from question {entry.position} on {entry.database_id} (worked {entry.successes}×, "
        f"failed {entry.failures}×): {entry.question}"
        for title, entry in zip(titles, entries, strict=True)
    )
    return Link(Kind.ENTRY, " · ".join(titles[:2]), where, f"recalled from {legal} legal {noun}")


def _outcome(story: Story, step: Step, because: str) -> Link:
    return Link(Kind.OUTCOME, _judged(step), f"{_said(step)}\n{_left(story, step)}".strip(), because)


def _first_answer(story: Story, step: Step) -> Iterator[Link]:
    by = "written by the model" if step.prompt is not None else "was already there"
    assert step.attempt is not None
    yield Link(Kind.EDIT, f"First answer, {by}", _sql(step))
    yield _outcome(story, step, "run and judged")


def _left(story: Story, step: Step) -> str:
    """What the episode left, where this step was its last."""
    end = story.end
    if story.last is not step:
        return "The episode went on."
    if isinstance(end, EpisodeFinalised):
        if end.entry is None:
            return "Nothing was remembered."
        return f"One entry was remembered ({end.entry.polarity}); it can help from question {end.visible_from} on."
    if isinstance(end, Failed):
        return f"The episode could not be finished: {end.reason}"
    return "The episode was stopped; nothing was remembered." if isinstance(end, Cancelled) else ""


_WORDS = {
    Outcome.CORRECT: "Correct",
    Outcome.DENOTATION_MISMATCH: "Wrong rows",
    Outcome.EXECUTION_ERROR: "Database error",
    Outcome.TIMEOUT: "Timed out",
    Outcome.NOT_JUDGED: "Not judged",
}


def _judged(step: Step) -> str:
    assert step.judged is not None
    return _WORDS[step.judged.outcome]


def _said(step: Step) -> str:
    done = step.executed
    if done is None:
        return ""
    if done.status is not Status.EXECUTED:
        return f"The database said “{done.error or done.status}”."
    rows = f"{done.row_count:,} row{'' if done.row_count == 1 else 's'}"
    return f"The query gave {rows}{' or more' if done.truncated else ''}, judged by {_by(step)}."


def _by(step: Step) -> str:
    assert step.judged is not None
    return step.judged.by or "nobody"


def _sql(step: Step) -> str:
    return " ".join(step.attempt.sql.split()) if step.attempt and step.attempt.sql.strip() else "(no single statement)"
