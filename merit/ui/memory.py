"""What memory gave for a repair: cards of both polarities with their scores, and why these and not others.

What this module does not know: how entries are ranked; it reads the retrieval that the event carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from merit.episode import Polarity
from merit.events import Retrieved
from merit.memory.entry import EntryView, MemoryEntry
from merit.memory.retrieval import Candidate, Pool, Retrieval
from merit.sql_change import difference
from merit.strategy import STRATEGIES, Strategy
from merit.ui import charts, theme
from merit.ui.diagnosis import chip
from merit.ui.sql import short, text_change
from merit.ui.text import count, escape

NEAR_MISSES = 4
"""How many of the best that were not taken are shown."""


@dataclass(frozen=True)
class Taken:
    """One chosen entry with its candidate ("None" where the pool has none for it)."""

    entry: EntryView
    candidate: Candidate | None


def taken(retrieval: Retrieval, polarity: Polarity) -> tuple[Taken, ...]:
    """The chosen entries of one polarity, best first, with their scores."""
    entries = retrieval.positive if polarity is Polarity.POSITIVE else retrieval.negative
    pool = retrieval.pools.get(polarity) or retrieval.pools.get("all")
    scores = {candidate.entry_id: candidate for candidate in pool.candidates} if pool else {}
    return tuple(Taken(entry, scores.get(entry.id)) for entry in entries)


def line(retrieved: Retrieved) -> str:
    """One line: every chosen entry with mark, change and score, and how many there were to choose from."""
    retrieval = retrieved.retrieval
    marks = [mark(item) for polarity in Polarity for item in taken(retrieval, polarity)]
    if not marks:
        nothing = f'<span class="m-soft">{_nothing(retrieval)}</span>'
        return f'<div class="m-link"><span class="m-verb">Remembered</span><div>{nothing}</div></div>'
    sizes = "; ".join(_size(name, pool) for name, pool in retrieval.pools.items() if pool.legal)
    return (
        f'<div class="m-link"><span class="m-verb">Remembered</span><div>{"".join(marks)}'
        f'<span class="m-soft">{escape(sizes)}</span></div></div>'
    )


def mark(item: Taken) -> str:
    """One chosen entry in a few words, as HTML; the whole title and the id on hover."""
    sign, polarity = theme.POLARITIES[item.entry.polarity], item.entry.polarity
    return (
        f'<span class="m-recall m-recall-{polarity}" title="{sign.word} ({item.entry.id[:12]})">'
        f"<b>{sign.mark}</b> {escape(title(item.entry))} {_score(item.candidate)}</span>"
    )


def _nothing(retrieval: Retrieval) -> str:
    legal = sum(pool.legal for pool in retrieval.pools.values())
    return "nothing yet: no earlier question left an entry that may be used here" if not legal else "nothing was taken"


def _size(name: str, pool: Pool) -> str:
    what = {"positive": " that worked", "negative": " that failed"}.get(name, "")
    return f"from {pool.legal:,}{what}, {pool.typed:,} of this type"


def title(entry: MemoryEntry, longest: int = 44) -> str:
    """What an entry changes, in a few words."""
    words = short(difference(entry.failed_sql, entry.new_sql)) or entry.delta
    return words if len(words) <= longest else words[: longest - 1] + "…"


def _score(candidate: Candidate | None) -> str:
    return "" if candidate is None else f'<span class="m-score">{candidate.final:.2f}</span>'


def cards(retrieval: Retrieval) -> str:
    """Both polarities as HTML cards: rounded for what worked, square for what failed."""
    html = [card(item.entry, item.candidate) for polarity in Polarity for item in taken(retrieval, polarity)]
    return f'<div class="m-cards">{"".join(html)}</div>'


def card(entry: MemoryEntry, candidate: Candidate | None = None) -> str:
    """One entry as an HTML card."""
    sign = theme.POLARITIES[entry.polarity]
    found = difference(entry.failed_sql, entry.new_sql)
    words = "".join(f"<li>{escape(word)}</li>" for word in found.words) or f"<li>{escape(found.note)}</li>"
    seen = ""
    if isinstance(entry, EntryView):
        seen = f" · worked {entry.successes}×, failed {entry.failures}×"
    error = f'<p class="m-soft">{escape(entry.db_error)}</p>' if entry.db_error else ""
    return (
        f'<article class="m-card m-card-{entry.polarity}"><header><span class="m-sign"><b>{sign.mark}</b> {sign.word}'
        f"</span>{chip(entry.failure_type)}{_score(candidate)}</header>"
        f'<p class="m-question">{escape(entry.question)}</p>{error}<ul class="m-words">{words}</ul>'
        f"{text_change(found)}"
        f"<footer>From question {entry.position} on {escape(entry.database_id)}{seen}</footer></article>"
    )


def why(retrieved: Retrieved, strategy_name: str) -> None:
    """Pool by pool: the bars of what was taken and of the near misses, and why those lost."""
    retrieval = retrieved.retrieval
    strategy = STRATEGIES[strategy_name] if strategy_name in STRATEGIES else STRATEGIES["merit"]
    if not any(pool.candidates for pool in retrieval.pools.values()):
        st.caption(_nothing(retrieval).capitalize() + ".")
        return
    for name, pool in retrieval.pools.items():
        if pool.candidates:
            _pool(name, pool, retrieval, strategy, retrieved.iteration)


def _pool(name: str, pool: Pool, retrieval: Retrieval, strategy: Strategy, iteration: int) -> None:
    entries = {entry.id: entry for entry in (*retrieval.positive, *retrieval.negative)}
    mine = [c for c in pool.candidates if c.entry_id in entries and _belongs(name, entries[c.entry_id])]
    misses = [c for c in pool.candidates if c not in mine][:NEAR_MISSES]
    heading = theme.POLARITIES[Polarity(name)] if name in tuple(Polarity) else None
    title = f"{heading.mark} {heading.word}" if heading else "All entries"
    st.html(
        f'<h4 class="m-head">{title}</h4><p class="m-note">{count(len(mine), "entry", "entries")} taken of '
        f"{pool.count:,} ranked, {escape(_size(name, pool))}.{_fallback(pool, strategy)}</p>"
    )
    bars = [_bar(c, entries.get(c.entry_id), strategy, rank, c in mine) for rank, c in _ranked(pool, mine, misses)]
    figure = charts.score_bars(bars, theme.is_dark())
    st.plotly_chart(figure, theme=None, key=f"why-{name}-{iteration}", config={"displayModeBar": False})
    if misses:
        lost = "".join(f"<li>{_lost(c, mine, strategy)}</li>" for c in misses)
        st.html(f'<p class="m-note">Near misses (hatched)</p><ul class="m-words">{lost}</ul>')


def _fallback(pool: Pool, strategy: Strategy) -> str:
    if not pool.fallback:
        return ""
    return f" Fewer than {strategy.min_typed} are of this type, so those of other types were ranked as well."


def _belongs(name: str, entry: EntryView) -> bool:
    return name not in tuple(Polarity) or entry.polarity == name


def _ranked(pool: Pool, mine: Sequence[Candidate], misses: Sequence[Candidate]) -> list[tuple[int, Candidate]]:
    return [(rank, c) for rank, c in enumerate(pool.candidates, start=1) if c in mine or c in misses]


def _bar(candidate: Candidate, entry: EntryView | None, strategy: Strategy, rank: int, is_taken: bool) -> charts.Bar:
    dense, bm25 = strategy.dense_weight * candidate.dense, strategy.bm25_weight * candidate.bm25
    name = f"{rank}. {title(entry, 40) if entry else candidate.entry_id[:8]}"
    # Text on a plotly axis is read as a small HTML; only these three characters start it.
    name = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return charts.Bar(name, dense, bm25, max(0.0, candidate.final - dense - bm25), is_taken)


def _lost(candidate: Candidate, mine: Sequence[Candidate], strategy: Strategy) -> str:
    name = f"<code>{escape(candidate.entry_id[:8])}</code>"
    if not mine:
        return f"{name} scored {candidate.final:.2f}; this strategy takes none of them"
    worst = mine[-1]
    gap = worst.final - candidate.final
    if gap <= 0:
        return f"{name} scored the same and came later by the tie rule (meaning, words, type, id)"
    dense = strategy.dense_weight * (worst.dense - candidate.dense)
    bm25 = strategy.bm25_weight * (worst.bm25 - candidate.bm25)
    channel = "meaning" if dense >= bm25 else "words"
    return f"{name} scored {candidate.final:.2f}, {gap:.2f} below the last one taken, mostly for its {channel}"
