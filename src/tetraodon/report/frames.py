"""What all charts share: sizes, rows of marks, and what is left out where not everything fits.

Every mark is a published number. Where there are too many, some are left out and the page says so; none is averaged, since
an average has no published interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..presenting import SUPPRESSED
from .answers import Axis, Floats, Group, View
from .svg import COLOURS, MUTED, distinct
from .words import listed, minus, rounded, short

WIDTH = 460
HEIGHT = 190
POINTS = 400
LINES = 30
PANELS = 15
NARROWEST = 78
SPACING = 12
ABOVE = 34  # title and scale of a small chart
TALL = 640  # as much as fits a printed page with its heading
FAR = 8
OVERLAID = 3
COUNTS = ",.6~r"
# Values of an attribute stand as they are: 2025 may be a year.
VALUES = "~f"

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A chart with what is said below it and to those who do not see it."""

    chart: Any
    notes: tuple[str, ...]
    label: str


def largest(
    groups: tuple[Group, ...], most: int, size: Callable[[Group], float]
) -> tuple[tuple[Group, ...], str]:
    """The groups that fit, in their own order, and a note where some are left out."""
    if len(groups) <= most:
        return groups, ""
    kept = np.sort(np.argsort([-size(g) for g in groups], kind="stable")[:most])
    note = f"Drawn: the {most} of {len(groups):,} groups with the largest published numbers; all are in the file."
    return tuple(groups[i] for i in kept), note


def longest(seen: View) -> tuple[View, str]:
    """The positions that fit on lines of their own, and a note where some are left out."""
    axis = seen.axis
    if len(axis.labels) <= LINES:
        return seen, ""
    size = np.sum([g.value for g in seen.groups], axis=0)
    kept = np.sort(np.argsort(-size, kind="stable")[:LINES]).tolist()
    cut = Axis(axis.title, axis.unit, tuple(axis.labels[i] for i in kept), LINES, axis.ordered)
    groups = tuple(
        Group(
            g.label,
            g.value[kept],
            g.lower[kept],
            g.upper[kept],
            None if g.told is None else tuple(g.told[i] for i in kept),
            None if g.hidden is None else g.hidden[kept],
            g.is_total,
            g.decimals,
        )
        for g in seen.groups
    )
    note = f"Drawn: the {LINES} of {len(axis.labels):,} cells with the largest published numbers; all are in the file."
    return replace(seen, axis=cut, groups=groups), note


def thin(value: Floats, most: int) -> list[int]:
    """At most ``most`` positions of a cumulative count: the ends, and wherever it or its axis has moved far enough.

    >>> thin(np.array([0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0, 9.0]), 6)
    [0, 3, 4, 7]
    """
    n = len(value)
    if n <= most:
        return list(range(n))
    room = (most - 2) / 2
    rise = float(value[-1] - value[0])
    moved = np.floor((value - value[0]) * (room / rise)) if rise > 0 else np.zeros(n)
    bucket = moved + np.floor(np.arange(n) * (room / n))
    kept = np.flatnonzero(np.diff(bucket) > 0) + 1
    return sorted({0, n - 1, *kept.tolist()})


def peaks(value: Floats, most: int) -> list[int]:
    """At most ``most`` positions of a histogram: of each run of neighbours, the largest.

    >>> peaks(np.array([1.0, 5.0, 2.0, 3.0]), 2)
    [1, 3]
    """
    if len(value) <= most:
        return list(range(len(value)))
    ends = np.linspace(0, len(value), most + 1).astype(int)
    return [int(a + np.argmax(value[a:b])) for a, b in pairwise(ends)]


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions at least ``gap`` apart, close to those wanted.

    >>> spread([1.0, 1.2, 5.0], 1.0)
    [1.0, 2.0, 5.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = list(wanted)
    for before, after in pairwise(order):
        placed[after] = max(placed[after], placed[before] + gap)
    return placed


def typical(groups: Sequence[Group]) -> float:
    """The median half-width of what is not exact: all numbers of a chart that have an error are rounded alike."""
    found = np.concatenate([g.reach for g in groups])
    return float(np.median(found[found > 0])) if (found > 0).any() else 0.0


def shown(group: Group, at: int, half: float) -> str:
    """One published number, rounded by an error of ``half`` unless it is exact or was rounded already."""
    if group.hidden is not None and group.hidden[at]:
        return SUPPRESSED
    if group.told is not None:
        return group.told[at]
    if group.decimals is not None:
        return minus(f"{float(group.value[at]) + 0.0:,.{group.decimals}f}")
    return rounded(float(group.value[at]), half if group.reach[at] > 0 else 0.0)


def within(groups: tuple[Group, ...]) -> tuple[tuple[Group, ...], str]:
    """The groups with intervals that end where the chart does, and a note where some reach further.

    A draw that misses all that is possible is published with an interval that holds everything: on the scale of such an
    interval nothing else could be seen.
    """
    far = [g.reach > FAR * typical(groups) for g in groups]
    count = sum(int(f.sum()) for f in far)
    if not count or not typical(groups):
        return groups, ""
    near = [(g.lower[~f], g.upper[~f]) for g, f in zip(groups, far, strict=True)]
    values = np.concatenate([g.value for g in groups])
    low = min(float(values.min()), *(float(lower.min(initial=np.inf)) for lower, _ in near))
    high = max(float(values.max()), *(float(upper.max(initial=-np.inf)) for _, upper in near))
    cut = tuple(replace(g, lower=np.maximum(g.lower, low), upper=np.minimum(g.upper, high)) for g in groups)
    told = "1 interval reaches" if count == 1 else f"{count:,} intervals reach"
    return cut, f"{told} beyond the chart; all are in the file."


def marks(axis: Axis, groups: Sequence[Group]) -> tuple[list[Row], list[str], list[str]]:
    """One row a mark, with the names of groups and positions as drawn."""
    names, labels = distinct([g.label for g in groups], 24), distinct(axis.labels, 24)
    rows = []
    half = typical(groups)
    for g, name in zip(groups, names, strict=True):
        for i, label in enumerate(labels):
            rows.append(
                {
                    "c": label,
                    "g": name,
                    "v": g.value[i],
                    "l": g.lower[i],
                    "u": g.upper[i],
                    "t": short(shown(g, i, half), 24),
                }
            )
    return rows, names, labels


def said(axis: Axis, groups: Sequence[Group]) -> str:
    """The published numbers in words, as many as a listener can bear."""
    half = typical(groups)
    told = [
        f"{g.label + ', ' if g.label else ''}{name}: {shown(g, i, half)}"
        for g in groups
        for i, name in enumerate(axis.labels)
    ]
    return f"{listed(told, 16)}."


def shade(names: Sequence[str], legend: Any) -> Any:
    """A colour for every group; the first one where there is a single group."""
    import altair as alt

    if len(names) == 1:
        return alt.value(COLOURS[0])
    scale = alt.Scale(domain=list(names), range=[COLOURS[i % len(COLOURS)] for i in range(len(names))])
    return alt.Color(field="g", type="nominal", sort=list(names), legend=legend, scale=scale)


def numeric(axis: Axis, title: str, ticks: int) -> Any:
    """The scale of a numeric attribute, without ticks between whole numbers where there is nothing."""
    import altair as alt

    least = 1.0
    if axis.starts is not None and axis.ends is not None:
        least = min(least, float((axis.ends - axis.starts).min()))
    return alt.Axis(title=title or None, format=VALUES, tickCount=ticks, tickMinStep=least)


def beside(labels: Sequence[str], most: float = 150) -> float:
    """Room that labels take, in pixels."""
    return min(5.4 * max(map(len, labels), default=0), most) + 12


def scale_room(most: float) -> float:
    """Room for the scale of counts up to ``most``, with its title."""
    return beside([f"{most:,.0f}"]) + 20


def framed(chart: Any, height: int, left: float, right: float = 8) -> Any:
    """One chart about as wide as all others, what stands beside its plot included."""
    return chart.properties(
        width=round(WIDTH - left - right),
        height=height,
        padding={"left": 2, "top": 6, "bottom": 2, "right": 6},
    )


@dataclass(frozen=True)
class Panels:
    """Sizes of one of several small charts: its height, what its names take once a row, and what stands right of each plot."""

    height: int
    left: float
    right: float = 0.0

    def width(self, columns: int) -> float:
        """Of a plot, where so many stand in a row."""
        return (WIDTH - 20 - self.left - SPACING * (columns - 1)) / columns - self.right


def columns_of(count: int, size: Panels) -> int:
    """How many small charts stand in a row: as many as are wide enough, and no more than make the picture shorter."""
    wanted = 1 if count < 3 else 2 if count < 5 else 3
    return next((c for c in range(wanted, 1, -1) if size.width(c) >= NARROWEST), 1)


def fitting(count: int, size: Panels) -> int:
    """How many of so many small charts fit a printed page; at least one."""
    while count > 1 and math.ceil(count / columns_of(count, size)) * (size.height + ABOVE) > TALL:
        count -= 1
    return count


def multiples(
    build: Callable[[list[Row], str, bool], Any],
    rows: list[Row],
    names: list[str],
    title: str,
    size: Panels,
) -> Any:
    """The same chart once for every group, on one scale.

    Args:
        build: a chart from the rows of a group, the titles of its axes, and whether it stands first in its row and so carries
            the names of its lines.
        title: of the axis along all of them, which stands below them once.
    """
    import altair as alt

    columns = columns_of(len(names), size)
    parts = []
    for i, name in enumerate(names):
        first = i % columns == 0
        chart = build([r for r in rows if r["g"] == name], "", first)
        told = alt.TitleParams(text=name, limit=round(size.width(columns) + (size.left if first else 0)) + 20)
        parts.append(chart.properties(title=told, width=round(size.width(columns)), height=size.height))
    below = alt.TitleParams(
        text=title, orient="bottom", fontSize=11.5, fontWeight="normal", color=MUTED, limit=WIDTH
    )
    return (
        alt.concat(*parts, columns=columns, spacing={"row": 10, "column": SPACING}, align="each")
        .resolve_scale(x="shared", y="shared")
        .properties(title=below, padding={"left": 2, "top": 2, "bottom": 2, "right": 8})
    )
