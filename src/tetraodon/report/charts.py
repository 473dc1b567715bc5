"""What was published, drawn: one chart for every release, chosen by what its query is and how its axis reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from .answers import Axis, Group, View
from .curves import cumulative, steps
from .document import Entry
from .frames import (
    COUNTS,
    HEIGHT,
    MARKS,
    OVERLAID,
    VALUES,
    Drawing,
    Row,
    beside,
    framed,
    largest,
    longest,
    marks,
    multiples,
    said,
    scale_room,
    shade,
    within,
)
from .svg import COLOURS, INK, data, distinct
from .words import percent, short

FEW = 16


def drawing(entry: Entry, seen: View) -> Drawing:
    """The chart of one release."""
    if not seen.axis.n_ordinary:
        return histogram(seen, _sure(entry)) if entry.word in ("cdf", "histogram") else intervals(entry, seen)
    if entry.word == "cdf" or (entry.word == "ranges" and isinstance(entry.query.get("of"), str)):
        return cumulative(entry, seen)
    if entry.word != "histogram":
        return intervals(entry, seen)
    return counts(seen, _sure(entry))


def _sure(entry: Entry) -> str:
    return f" with its {percent(entry.shown)} interval"


def counts(seen: View, sure: str) -> Drawing:
    """Counts of cells, many of them in a row or few.

    Args:
        sure: what is said of their intervals; empty where they have none.
    """
    axis = seen.axis
    joined = (
        axis.starts is not None and axis.ends is not None and bool((axis.starts[1:] == axis.ends[:-1]).all())
    )
    return steps(seen, sure) if joined and axis.n_ordinary > FEW else histogram(seen, sure)


def histogram(seen: View, sure: str) -> Drawing:
    """Counts of few cells: columns where they are in order and their names short, bars with numbers elsewhere."""
    shown, cut = longest(seen)
    axis = shown.axis
    groups, note = largest(shown.groups, max(1, MARKS // len(axis.labels)), lambda g: float(g.value.sum()))
    label = f"Number of {seen.measured} for every {axis.title}{sure}"
    label += f", by {seen.by}. " if seen.by else ". "
    letters = sum(len(short(t, 24)) + 2 for t in axis.labels)
    upright = axis.ordered and len(axis.labels) <= FEW and letters <= 66 and len(groups) <= OVERLAID
    inside, far = within(groups)
    chart = _columns(axis, inside, seen.measured) if upright else _bars(axis, inside, seen.measured)
    return Drawing(chart, tuple(filter(None, (cut, note, far))), label + said(axis, groups))


def _columns(axis: Axis, groups: tuple[Group, ...], things: str) -> Any:
    import altair as alt

    rows, names, labels = marks(axis, groups)
    along = alt.Axis(title=axis.title, labelAngle=0, ticks=False, labelOverlap=False)
    base = alt.Chart(data(rows)).encode(x=alt.X(field="c", type="ordinal", sort=labels, axis=along))
    if len(groups) > 1:
        base = base.encode(xOffset=alt.XOffset(field="g", type="nominal", sort=names))
    y = alt.Y(field="v", type="quantitative", axis=alt.Axis(title=things, format=COUNTS, tickMinStep=1))
    bar = base.mark_bar(opacity=0.5).encode(y=y, color=shade(names, alt.Legend()))
    whisker = base.mark_rule(strokeWidth=1.6, color=INK)
    whisker = whisker.encode(y=alt.Y(field="l", type="quantitative"), y2=alt.Y2(field="u"))
    return framed(alt.layer(bar, whisker), HEIGHT, scale_room(max(r["u"] for r in rows)))


def _bars(axis: Axis, groups: tuple[Group, ...], things: str) -> Any:
    import altair as alt

    rows, names, labels = marks(axis, groups)
    together = 1 < len(groups) <= OVERLAID

    def build(some: list[Row], title: str) -> Any:
        base = alt.Chart(data(some)).encode(y=_lines(labels))
        if together:
            base = base.encode(yOffset=alt.YOffset(field="g", type="nominal", sort=names))
        scale = alt.Axis(title=title or None, format=COUNTS, grid=True, tickCount=4, tickMinStep=1)
        bar = base.mark_bar(opacity=0.5).encode(
            x=alt.X(field="v", type="quantitative", axis=scale),
            color=shade(names, alt.Legend()) if together else alt.value(COLOURS[0]),
        )
        whisker = base.mark_rule(strokeWidth=1.6, color=INK)
        whisker = whisker.encode(x=alt.X(field="l", type="quantitative"), x2=alt.X2(field="u"))
        return alt.layer(bar, whisker, _told(base))

    room = beside(labels) + beside([r["t"] for r in rows])
    if len(groups) > 1 and not together:
        return multiples(build, rows, names, things, (17 * len(labels), room))
    step = 16 * len(groups) + 6 if together else 22
    return framed(build(rows, things), step * len(labels), room, 0)


def _lines(labels: list[str]) -> Any:
    import altair as alt

    return alt.Y(
        field="c",
        type="ordinal",
        sort=labels,
        axis=alt.Axis(title=None, labelLimit=150, grid=False, ticks=False),
    )


def _told(base: Any) -> Any:
    """The number of every mark, beyond the end of its interval."""
    import altair as alt

    text = base.mark_text(align="left", dx=6)
    return text.encode(
        x=alt.X(field="u", type="quantitative"),
        text=alt.Text(field="t", type="nominal"),
        color=alt.value(INK),
    )


def intervals(entry: Entry, seen: View) -> Drawing:
    """Single numbers: a point with its interval on a line of its own."""
    import altair as alt

    axis, groups, note = _on_lines(seen)
    rows, names, labels = marks(axis, groups)
    label = f"{seen.measured} with {percent(entry.shown)} intervals. {said(axis, groups)}"
    together = 1 < len(groups) <= OVERLAID + 1
    value = _scale(entry, seen)
    if seen.named is not None:
        # Names of an ordered list stand at 0, 1, 2, …: drawn by name, on an axis that holds them all.
        named = distinct(seen.named, 14)
        rows = [row | {end: named[int(row[end])] for end in ("v", "l", "u")} for row in rows]

    def build(some: list[Row], title: str) -> Any:
        base = alt.Chart(data(some)).encode(
            y=_lines(labels), color=shade(names, alt.Legend()) if together else alt.value(COLOURS[0])
        )
        if together:
            base = base.encode(yOffset=alt.YOffset(field="g", type="nominal", sort=names))
        whisker = base.mark_rule(strokeWidth=3, opacity=0.45).encode(
            x=value("l", title), x2=alt.X2(field="u")
        )
        point = base.mark_point(filled=True, size=46, opacity=1).encode(x=value("v", title))
        layers = [whisker, point]
        if seen.named is None:
            layers.append(_told(base))
        return alt.layer(*layers)

    room = beside(labels) + beside([r["t"] for r in rows])
    clusters = f"Sizes of the clusters, by centre ({axis.title})." if entry.word == "kmeans" else ""
    notes = tuple(filter(None, (clusters, note)))
    if len(groups) > 1 and not together:
        return Drawing(multiples(build, rows, names, seen.measured, (20 * len(labels), room)), notes, label)
    step = 17 * len(groups) + 8 if together else 30
    return Drawing(framed(build(rows, seen.measured), 10 + step * len(labels), room, 0), notes, label)


def _on_lines(seen: View) -> tuple[Axis, tuple[Group, ...], str]:
    """What takes the lines, the groups that share them, and a note on what is left out."""
    if len(seen.axis.labels) > 1:
        shown, note = longest(seen)
        most = max(1, MARKS // len(shown.axis.labels))
        groups, cut = largest(shown.groups, most, lambda g: float(g.value.max()))
        return shown.axis, groups, f"{note} {cut}".strip()
    # One number a group: the groups themselves take the lines.
    groups, note = largest(seen.groups, 30, lambda g: float(g.value[0]))
    labels = tuple(g.label or seen.axis.labels[0] or "all records" for g in groups)
    value, lower, upper = (
        np.array([end[0] for end in ends])
        for ends in zip(*((g.value, g.lower, g.upper) for g in groups), strict=True)
    )
    told = None if groups[0].told is None else tuple(g.told[0] for g in groups if g.told is not None)
    hidden = np.array([g.hidden is not None and bool(g.hidden[0]) for g in groups])
    one = Group("", value, lower, upper, told, hidden if hidden.any() else None)
    return Axis(seen.by, "", labels, len(labels), False), (one,), note


def _scale(entry: Entry, seen: View) -> Any:
    """The axis of the numbers, for a field and a title."""
    import altair as alt

    def named(field: str, title: str) -> Any:
        domain = distinct(seen.named or (), 14)
        scale = alt.Scale(domain=domain)
        limit = 320 / max(len(domain), 1)
        axis = alt.Axis(title=title or None, labelAngle=0, labelOverlap=False, labelLimit=limit, grid=True)
        return alt.X(field=field, type="ordinal", sort=domain, scale=scale, axis=axis)

    def measured(field: str, title: str) -> Any:
        shown = VALUES if entry.word == "quantiles" else COUNTS
        axis = alt.Axis(title=title or None, grid=True, format=shown, tickCount=4)
        counts = entry.word in ("ranges", "linear")
        scale = alt.Scale(zero=True) if counts else alt.Scale(zero=False, nice=False, padding=14)
        return alt.X(field=field, type="quantitative", scale=scale, axis=axis)

    return measured if seen.named is None else named
