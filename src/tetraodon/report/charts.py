"""What was published, drawn: one chart for every release, chosen by what its query is and how its axis reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .answers import Axis, Group, View
from .curves import cumulative, steps
from .document import Entry
from .frames import (
    COUNTS,
    HEIGHT,
    LINES,
    OVERLAID,
    PANELS,
    TALL,
    VALUES,
    Drawing,
    Panels,
    Row,
    beside,
    fitting,
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
    groups, note = largest(shown.groups, _most_bars(shown), lambda g: float(g.value.sum()))
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
    together = _is_together(len(groups), len(labels))

    def build(some: list[Row], title: str, is_first: bool) -> Any:
        base = alt.Chart(data(some)).encode(y=_lines(labels, is_first))
        if together:
            base = base.encode(yOffset=alt.YOffset(field="g", type="nominal", sort=names))
        ticks = 4 if together or len(groups) == 1 else 2
        scale = alt.Axis(title=title or None, format=COUNTS, grid=True, tickCount=ticks, tickMinStep=1)
        bar = base.mark_bar(opacity=0.5).encode(
            x=alt.X(field="v", type="quantitative", axis=scale),
            color=shade(names, alt.Legend()) if together else alt.value(COLOURS[0]),
        )
        whisker = base.mark_rule(strokeWidth=1.6, color=INK)
        whisker = whisker.encode(x=alt.X(field="l", type="quantitative"), x2=alt.X2(field="u"))
        return alt.layer(bar, whisker, _told(base))

    if len(groups) > 1 and not together:
        return multiples(build, rows, names, things, _small(axis, groups))
    room = beside(labels) + beside([r["t"] for r in rows])
    step = 16 * len(groups) + 6 if together else 22
    return framed(build(rows, things, True), step * len(labels), room, 0)


def _is_together(groups: int, lines: int) -> bool:
    """Whether the bars of several groups share their lines."""
    return 1 < groups <= OVERLAID and lines * (16 * groups + 6) <= TALL


def _small(axis: Axis, groups: Sequence[Group], line: int = 17) -> Panels:
    """Sizes of one of several charts of lines."""
    rows, _, labels = marks(axis, groups)
    return Panels(line * len(labels), beside(labels), beside([r["t"] for r in rows]))


def _most_bars(seen: View) -> int:
    """How many groups are drawn, so that a chart fits a page."""
    count, lines = len(seen.groups), len(seen.axis.labels)
    if count == 1 or _is_together(count, lines):
        return count
    return fitting(min(count, PANELS), _small(seen.axis, seen.groups[:PANELS]))


def _lines(labels: list[str], is_first: bool = True) -> Any:
    import altair as alt

    return alt.Y(
        field="c",
        type="ordinal",
        sort=labels,
        axis=alt.Axis(title=None, labelLimit=150, grid=False, ticks=False, labels=is_first),
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

    is_compact = _is_compact(entry, seen)
    axis, groups, note = _on_lines(seen, is_compact)
    rows, names, labels = marks(axis, groups)
    label = f"{seen.measured} with {percent(entry.shown)} intervals. {said(axis, groups)}"
    if is_compact:
        return Drawing(_levels(entry, seen, axis, groups), tuple(filter(None, (note,))), label)
    together = 1 < len(groups) <= OVERLAID + 1
    value = _scale(entry, seen)
    if seen.named is not None:
        # Names of an ordered list stand at 0, 1, 2, …: drawn by name, on an axis that holds them all.
        named = distinct(seen.named, 14)
        rows = [row | {end: named[int(row[end])] for end in ("v", "l", "u")} for row in rows]

    def build(some: list[Row], title: str, is_first: bool) -> Any:
        base = alt.Chart(data(some)).encode(
            y=_lines(labels, is_first),
            color=shade(names, alt.Legend()) if together else alt.value(COLOURS[0]),
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

    clusters = f"Sizes of the clusters, by centre ({axis.title})." if entry.word == "kmeans" else ""
    notes = tuple(filter(None, (clusters, note)))
    if len(groups) > 1 and not together:
        return Drawing(multiples(build, rows, names, seen.measured, _small(axis, groups, 20)), notes, label)
    room = beside(labels) + beside([r["t"] for r in rows])
    step = 17 * len(groups) + 8 if together else 22 if len(labels) > FEW else 30
    return Drawing(framed(build(rows, seen.measured, True), 10 + step * len(labels), room, 0), notes, label)


def _most_lines(seen: View, is_compact: bool) -> int:
    """How many groups are drawn, so that a chart fits a page."""
    count, lines = len(seen.groups), len(seen.axis.labels)
    if is_compact:
        return LINES
    if count <= OVERLAID + 1 and lines * (17 * count + 8) <= TALL:
        return count
    return fitting(min(count, PANELS), _small(seen.axis, seen.groups[:PANELS], 20))


def _is_compact(entry: Entry, seen: View) -> bool:
    """Whether groups take the lines, each with all its quantiles: there are many groups and few quantiles."""
    many = len(seen.groups) > OVERLAID + 1
    return entry.word == "quantiles" and seen.named is None and many and len(seen.axis.labels) <= len(COLOURS)


def _levels(entry: Entry, seen: View, axis: Axis, groups: tuple[Group, ...]) -> Any:
    """A line for every group, with a point of another colour for every quantile."""
    import altair as alt

    names, levels = distinct([g.label for g in groups], 24), distinct(axis.labels, 24)
    rows = [
        {"c": name, "g": level, "v": g.value[i], "l": g.lower[i], "u": g.upper[i]}
        for g, name in zip(groups, names, strict=True)
        for i, level in enumerate(levels)
    ]
    value, colour = _scale(entry, seen), shade(levels, alt.Legend())
    base = alt.Chart(data(rows)).encode(y=_lines(names), color=colour)
    whisker = base.mark_rule(strokeWidth=3, opacity=0.45).encode(
        x=value("l", seen.measured), x2=alt.X2(field="u")
    )
    point = base.mark_point(filled=True, size=46, opacity=1).encode(x=value("v", seen.measured))
    return framed(alt.layer(whisker, point), 10 + 20 * len(names), beside(names), 0)


def _on_lines(seen: View, is_compact: bool) -> tuple[Axis, tuple[Group, ...], str]:
    """What takes the lines, the groups that share them, and a note on what is left out."""
    if len(seen.axis.labels) > 1:
        shown, note = longest(seen)
        groups, cut = largest(shown.groups, _most_lines(shown, is_compact), lambda g: float(g.value.max()))
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
    one = Group("", value, lower, upper, told, hidden if hidden.any() else None, False, groups[0].decimals)
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
