"""Charts along a long axis: cumulative counts with their quantiles, and histograms with their error band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .answers import Axis, Group, View
from .document import Entry
from .frames import (
    COUNTS,
    HEIGHT,
    OVERLAID,
    PANELS,
    POINTS,
    Drawing,
    Panels,
    Row,
    beside,
    framed,
    largest,
    multiples,
    numeric,
    peaks,
    scale_room,
    shade,
    spread,
    thin,
    typical,
    within,
)
from .svg import COLOURS, MUTED, PALE, data, distinct
from .words import listed, percent, rounded

SHARES = (0.1, 0.5, 0.9)
SPOKEN = 4


def quantile(axis: Axis, group: Group, share: float) -> int:
    """First ordinary position at which a cumulative count reaches a share of all ordinary records."""
    value = group.value[: axis.n_ordinary]
    found = int(np.searchsorted(value, share * value[-1] * (1 - 1e-12)))
    return min(found, axis.n_ordinary - 1)


def cumulative(entry: Entry, seen: View) -> Drawing:
    """A CDF: a step line with its interval, marked where it reaches 10, 50 and 90 per cent."""
    import altair as alt

    axis, n = seen.axis, seen.axis.n_ordinary
    groups, note = largest(seen.groups, PANELS, lambda g: float(g.value[n - 1]))
    names = distinct([g.label for g in groups], 22)
    # A cumulative count is known at the last value of every cell.
    at: list[Any] = axis.tops.tolist() if axis.tops is not None else distinct(axis.labels[:n], 14)
    rows: list[Row] = []
    # Quantiles that were published beside it are not read off it again: it may be rounded. Where several of them fall on
    # one value they tell nothing that the curve does not.
    shares = SHARES if entry.quantiles is None and _tells(axis, groups) else ()
    for g, name in zip(groups, names, strict=True):
        value = g.value[:n]
        rows += [
            {"m": "curve", "x": at[i], "y": value[i], "l": g.lower[i], "u": g.upper[i], "g": name}
            for i in thin(value, POINTS // len(groups))
        ]
        rows += [
            {"m": "mark", "x": at[quantile(axis, g, q)], "y": q * value[-1], "t": percent(q), "g": name}
            for q in shares
        ]
    apart = len(groups) > OVERLAID
    colour = alt.value(COLOURS[0]) if apart else shade(names, None)
    upward = f"{seen.measured} at or below"

    def upwards(is_first: bool) -> Any:
        shown = alt.Axis(
            title=None if apart else upward,
            format=COUNTS,
            tickMinStep=1,
            labels=is_first,
        )
        return alt.Y(field="y", type="quantitative", axis=shown)

    def build(some: list[Row], title: str, is_first: bool) -> Any:
        x, y = _along(axis, title, 3 if apart else 6), upwards(is_first)
        curve = alt.Chart(data([r for r in some if r["m"] == "curve"])).encode(x=x, color=colour)
        mark = alt.Chart(data([r for r in some if r["m"] == "mark"])).encode(x=x, y=y, color=colour)
        layers = [
            curve.mark_area(interpolate="step-after", opacity=0.22).encode(
                y=alt.Y(field="l", type="quantitative"), y2=alt.Y2(field="u")
            ),
            curve.mark_line(interpolate="step-after", strokeWidth=1.6).encode(y=y),
        ]
        if shares:
            layers.append(mark.mark_rule(strokeDash=[2, 3], strokeWidth=0.8).encode(y2=alt.Y2(datum=0)))
            layers.append(mark.mark_point(filled=True, size=36, opacity=1, stroke="white", strokeWidth=1))
        if shares and len(groups) == 1:
            levels = mark.mark_text(align="left", dx=7, dy=9, fontSize=10.5)
            layers.append(levels.encode(text=alt.Text(field="t", type="nominal"), color=alt.value(MUTED)))
        return alt.layer(*layers)

    top = max(float(g.upper[:n].max()) for g in groups)
    label = f"Cumulative count of records along {axis.title} with its {percent(entry.shown)} interval"
    label += f", by {seen.by}. " if seen.by else ". "
    read_off = _quantiles(axis, groups, seen.measured) if shares else ""
    label += read_off
    ranges = (
        "Cumulative counts: the number in a range is the difference of two." if entry.word == "ranges" else ""
    )
    scale = f"Upwards: {upward}." if apart else ""
    notes = tuple(filter(None, (scale, ranges, note, read_off, _special(axis, groups, np.diff))))
    if apart:
        size = Panels(_height(len(groups)), scale_room(top))
        return Drawing(multiples(build, rows, names, axis.title, size), notes, label)
    chart, right = build(rows, axis.title, True), 8.0
    if len(groups) > 1:
        ends = spread([float(g.value[n - 1]) for g in groups], 15 * top / HEIGHT)
        tails = [{"x": at[-1], "y": end, "g": name} for end, name in zip(ends, names, strict=True)]
        tail = alt.Chart(data(tails)).mark_text(align="left", dx=6, fontWeight="bold")
        named = tail.encode(
            x=_along(axis, axis.title, 6),
            y=upwards(True),
            text=alt.Text(field="g", type="nominal"),
            color=colour,
        )
        chart, right = alt.layer(chart, named), 6 + beside(names)
    return Drawing(framed(chart, HEIGHT, scale_room(top), right), notes, label)


def _along(axis: Axis, title: str, ticks: int) -> Any:
    import altair as alt

    if axis.tops is None:
        return alt.X(field="x", type="ordinal", sort=None, axis=alt.Axis(title=title or None, labelAngle=0))
    scale = alt.Scale(zero=False, nice=False)
    return alt.X(field="x", type="quantitative", axis=numeric(axis, title, ticks), scale=scale)


def _tells(axis: Axis, groups: Sequence[Group]) -> bool:
    """Whether every group reaches the shares that could be marked at values of their own."""
    return all(len({quantile(axis, g, share) for share in SHARES}) == len(SHARES) for g in groups)


def _quantiles(axis: Axis, groups: Sequence[Group], things: str) -> str:
    """Where the published curve reaches the shares that are marked."""
    if len(groups) > SPOKEN:
        return f"Dots: {listed([percent(share) for share in SHARES])} of the {things}."
    told = []
    for g in groups:
        values = " / ".join(axis.labels[quantile(axis, g, share)] for share in SHARES)
        told.append(f"{g.label} {values}" if g.label else values)
    levels = " / ".join(f"{100 * share:.0f}" for share in SHARES)
    return f"Quantiles at {levels} %{f', in {axis.unit}' if axis.unit else ''}: {'; '.join(told)}."


def _special(axis: Axis, groups: Sequence[Group], counts: Any = None) -> str:
    """The cells that have no place on the axis (other, missing), with their counts.

    Args:
        counts: what makes counts of the published numbers, where those are cumulative.
    """
    special = axis.labels[axis.n_ordinary :]
    if not special:
        return ""
    if len(groups) > SPOKEN or any(g.hidden is not None for g in groups):
        return f"Not on the axis, but in the file: {listed(special)}."
    half = typical(groups)
    told = []
    for i, name in enumerate(special, axis.n_ordinary):
        for g in groups:
            value = g.value if counts is None else counts(g.value, prepend=0.0)
            told.append(f"{f'{name}, {g.label}' if g.label else name}: {rounded(float(value[i]), half)}")
    return f"Not on the axis: {'; '.join(told)}."


def steps(seen: View, sure: str) -> Drawing:
    """A histogram over many cells of a numeric axis: a step line with its error band."""
    import altair as alt

    axis, n = seen.axis, seen.axis.n_ordinary
    assert axis.starts is not None and axis.ends is not None
    groups, note = largest(seen.groups, PANELS, lambda g: float(g.value[:n].sum()))
    names = distinct([g.label for g in groups], 22)
    most = POINTS // len(groups) - 1
    rows: list[Row] = []
    inside, far = within(groups)
    for g, name in zip(inside, names, strict=True):
        kept = peaks(g.value[:n], most)
        at = [float(axis.starts[0]), *(float(axis.starts[i]) for i in kept[1:]), float(axis.ends[-1])]
        for x_at, i in zip(at, [*kept, kept[-1]], strict=True):
            rows.append({"x": x_at, "y": g.value[i], "l": g.lower[i], "u": g.upper[i], "g": name})

    def build(some: list[Row], title: str, is_first: bool) -> Any:
        base = alt.Chart(data(some)).encode(
            x=alt.X(
                field="x",
                type="quantitative",
                axis=numeric(axis, title, 6 if len(groups) <= 3 else 3),
                scale=alt.Scale(zero=False, nice=False),
            )
        )
        band = base.mark_area(interpolate="step-after", color=PALE)
        line = base.mark_line(interpolate="step-after", strokeWidth=1.4, color=COLOURS[0])
        return alt.layer(
            band.encode(y=alt.Y(field="l", type="quantitative"), y2=alt.Y2(field="u")),
            line.encode(
                y=alt.Y(
                    field="y",
                    type="quantitative",
                    axis=alt.Axis(
                        title=seen.measured if len(groups) == 1 else None,
                        format=COUNTS,
                        tickMinStep=1,
                        labels=is_first,
                    ),
                )
            ),
        )

    top = max(groups, key=lambda g: float(g.value[:n].max()))
    peak = int(np.argmax(top.value[:n]))
    label = f"Number of {seen.measured} for every {axis.title}{sure}"
    label += f", by {seen.by}. " if seen.by else ". "
    label += f"Largest: {rounded(float(top.value[peak]), float(top.reach[peak]))} at {axis.labels[peak]}"
    label += f", {top.label}." if top.label else "."
    run = -(-n // most)
    thinned = (
        f"Of every {run:,} neighbouring cells the largest is drawn; all are in the file." if n > most else ""
    )
    scale = f"Upwards: {seen.measured}." if len(groups) > 1 else ""
    notes = tuple(filter(None, (scale, note, thinned, far, _special(axis, groups))))
    room = scale_room(max(r["u"] for r in rows))
    if len(groups) == 1:
        return Drawing(framed(build(rows, axis.title, True), HEIGHT, room), notes, label)
    size = Panels(_height(len(groups)), room)
    return Drawing(multiples(build, rows, names, axis.title, size), notes, label)


def _height(count: int) -> int:
    """Of one of so many small charts."""
    return 96 if count <= 9 else 74
