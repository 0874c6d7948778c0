"""Charts in the colours of the theme.

What this module does not know: what the numbers mean for the episode; it draws what it is handed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from merit.ui import theme

ROW_HEIGHT = 28
"""Height of one bar with its gap, in pixels."""


@dataclass(frozen=True)
class Bar:
    """One candidate: its name, the two parts of its score (weight times min–max value), the bonus of an equal type,
    and whether it was taken."""

    name: str
    dense: float
    bm25: float
    bonus: float
    taken: bool


def score_bars(bars: Sequence[Bar], dark: bool) -> go.Figure:
    """Stacked horizontal bars, best on top: meaning (dense), words (BM25), type bonus. Taken ones are full, others
    hatched, so that colour is not the only sign."""
    side = 1 if dark else 0
    ink, line = theme.TEXT[side], theme.HAIRLINE[side]
    figure = go.Figure()
    parts = (
        ("meaning (dense)", theme.ACCENT, [bar.dense for bar in bars]),
        ("words (BM25)", theme.SLOW, [bar.bm25 for bar in bars]),
        ("same type", theme.DIFFERENT, [bar.bonus for bar in bars]),
    )
    for name, tone, values in parts:
        if not any(values):
            continue
        figure.add_bar(
            y=[bar.name for bar in bars],
            x=values,
            name=name,
            orientation="h",
            marker={
                "color": tone.dark if dark else tone.light,
                "pattern": {"shape": ["" if bar.taken else "/" for bar in bars], "fgopacity": 0.6},
            },
            hovertemplate=f"{name}: %{{x:.3f}}<extra></extra>",
        )
    figure.update_layout(
        barmode="stack",
        height=max(3, len(bars)) * ROW_HEIGHT + 86,
        margin={"l": 0, "r": 8, "t": 24, "b": 28},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": ink, "size": 13},
        legend={"orientation": "h", "y": -0.02, "yanchor": "top", "x": 0, "traceorder": "normal"},
        bargap=0.35,
        dragmode=False,
    )
    figure.update_xaxes(range=[0, 1.02], gridcolor=line, zeroline=False, tickfont={"size": 12}, side="top", dtick=0.25)
    figure.update_yaxes(autorange="reversed", automargin=True, ticks="")
    return figure
