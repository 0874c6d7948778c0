"""Charts in the colours of the theme.

What this module does not know: what the numbers mean for the episode; it draws what it is handed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from merit.episode import FailureType
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


def shares(sets: Sequence[tuple[str, Sequence[FailureType]]], dark: bool) -> go.Figure:
    """One bar for each named set of labels, cut into the shares of its types; each part carries its two letters."""
    side = 1 if dark else 0
    figure = go.Figure()
    for kind in FailureType:
        parts = [sum(one is kind for one in labels) / max(1, len(labels)) for _, labels in sets]
        if not any(parts):
            continue
        sign = theme.FAILURES[kind]
        figure.add_bar(
            y=[name for name, _ in sets],
            x=parts,
            name=f"{sign.letters} {kind}",
            orientation="h",
            marker={"color": sign.fill, "line": {"color": theme.FILL_INK, "width": 1}},
            text=[f"{sign.letters} {part:.1%}" if part > 0.07 else "" for part in parts],
            textposition="inside",
            insidetextanchor="middle",
            textfont={"color": theme.FILL_INK},
            hovertemplate=f"{kind}: %{{x:.1%}}<extra></extra>",
        )
    figure.update_layout(
        barmode="stack",
        height=96 + 48 * len(sets),
        margin={"l": 0, "r": 8, "t": 8, "b": 28},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": theme.TEXT[side], "size": 13},
        legend={"orientation": "h", "y": -0.1, "yanchor": "top", "x": 0, "traceorder": "normal"},
        bargap=0.35,
        dragmode=False,
    )
    figure.update_xaxes(range=[0, 1], tickformat=".0%", gridcolor=theme.HAIRLINE[side], zeroline=False, visible=False)
    figure.update_yaxes(autorange="reversed", automargin=True, ticks="")
    return figure


def confusion(counts: Mapping[tuple[FailureType, FailureType], int], dark: bool) -> go.Figure:
    """Counts of (right label, label given) as a square with a number in each field; the darker, the larger its share
    of its row. Only labels that occur are drawn."""
    side = 1 if dark else 0
    kinds = [kind for kind in FailureType if any(kind in pair for pair in counts)]
    rows = [[counts.get((right, given), 0) for given in kinds] for right in kinds]
    shares = [[number / max(1, sum(row)) for number in row] for row in rows]
    names = [f"{kind} <b>{theme.FAILURES[kind].letters}</b>" for kind in kinds]
    letters = [f"<b>{theme.FAILURES[kind].letters}</b>" for kind in kinds]
    fill = theme.ACCENT.dark_fill if dark else theme.ACCENT.light_fill
    full = theme.ACCENT.dark if dark else theme.ACCENT.light
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=letters,
            y=names,
            text=[[f"{number:,}" if number else "" for number in row] for row in rows],
            texttemplate="%{text}",
            customdata=[[f"{right}, named {given} by the rules" for given in kinds] for right in kinds],
            hovertemplate="%{customdata}: %{text}<extra></extra>",
            colorscale=[[0, theme.SURFACE[side]], [0.001, fill], [1, full]],
            zmin=0,
            zmax=2,  # half of the accent at most: the numbers keep their contrast
            textfont={"color": theme.TEXT[side]},
            showscale=False,
            xgap=2,
            ygap=2,
        )
    )
    figure.update_layout(
        height=64 + 44 * len(kinds),
        margin={"l": 0, "r": 0, "t": 24, "b": 0},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": theme.TEXT[side], "size": 13},
        dragmode=False,
    )
    figure.update_xaxes(side="top", ticks="", showgrid=False, fixedrange=True)
    figure.update_yaxes(autorange="reversed", automargin=True, ticks="", showgrid=False, fixedrange=True)
    return figure
