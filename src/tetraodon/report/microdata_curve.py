"""Leakage of fixed groups along the distance allowed: the certified least, its floor, its ceiling, and this release."""

from __future__ import annotations

import math
from typing import Any

from ..plans import number
from .document import Line
from .frames import Row
from .microdata_document import Limits, MicrodataEvidence
from .svg import COLOURS, MUTED, data
from .tradeoff import QUIET
from .words import clean, of_unit, short, small

WIDTH, HEIGHT = 330, 230
BEST = COLOURS[3]
FLAT = 0.01  # bits below which nothing is drawn larger
VISIBLE = 0.012  # of the height of the chart
FAR = 3.0  # all there is to tell is drawn where it lies within so many times the height of the curve


def leaking_groups(
    evidence: MicrodataEvidence, limits: Limits, what: str
) -> tuple[Any, str, tuple[str, ...]] | None:
    """The chart, what it shows, and what is to be said below it; None where there is nothing to choose.

    Args:
        what: the private columns, in words.
    """
    import altair as alt

    if not evidence.curve or not evidence.curve[0].distortion:
        return None
    line, told = evidence.curve[0], evidence.figures
    floor = told.classes + told.naming
    rows: list[Row] = [
        {"d": d, "b": b, "l": low}
        for d, b, low in sorted(zip(line.distortion, line.leakage, line.bound or line.leakage, strict=True))
    ]
    height = max(told.unprotected - floor, *(r["b"] - floor for r in rows), FLAT)
    is_near = told.unknown - floor <= FAR * height
    low = max(0.0, min(floor, *(r["l"] for r in rows)) - 0.14 * height)
    high = (told.unknown if is_near else floor + height) + 0.14 * height
    digits = max(1, math.ceil(-math.log10((high - low) / 5)))
    right = 1.02 * max(told.distortion, *(r["d"] for r in rows)) or 1.0
    title = f"expected distance ({short(clean(limits.metric), 16)})"
    x = alt.X(
        field="d", type="quantitative", scale=alt.Scale(domain=[0, right], nice=False),
        axis=alt.Axis(title=title, format=",~r", tickCount=4),
    )  # fmt: skip
    y = alt.Y(
        field="b", type="quantitative", scale=alt.Scale(domain=[low, high], nice=False),
        axis=alt.Axis(title="bits that one row tells", format=f".{digits}f", tickCount=5),
    )  # fmt: skip
    above, below = (right, "right", -1), (0.0, "left", 1)
    layers = _level(told.unprotected, "clusters unprotected", above, x, y)
    layers += _level(floor, "groups’ names alone", below, x, y)
    if is_near:
        layers += _level(told.unknown, "all there is to tell", above, x, y)
    base = alt.Chart(data(rows))
    if _gap(line) > VISIBLE * (high - low):
        layers.append(
            base.mark_area(color=BEST, opacity=0.22, clip=True).encode(x=x, y=y, y2=alt.Y2(field="l"))
        )
    layers.append(base.mark_line(color=BEST, strokeWidth=2.4).encode(x=x, y=y))
    if evidence.bound is not None and told.leakage - evidence.bound > VISIBLE * (high - low):
        spot = alt.Chart(data([{"d": told.distortion, "b": max(evidence.bound, low)}]))
        layers.append(
            spot.mark_tick(orient="horizontal", size=18, thickness=2, color=COLOURS[1]).encode(x=x, y=y)
        )
    own = alt.Chart(data([{"d": told.distortion, "b": told.leakage}]))
    layers.append(own.mark_rule(strokeDash=[2, 3], color=MUTED, strokeWidth=0.9).encode(x=x))
    mark = own.mark_point(filled=True, size=80, opacity=1, color=COLOURS[0], stroke="white", strokeWidth=1.4)
    layers.append(mark.encode(x=x, y=y))
    chart = alt.layer(*layers).properties(
        width=WIDTH - 62, height=HEIGHT, padding={"left": 2, "top": 6, "bottom": 2, "right": 8}
    )
    first, last = rows[0], rows[-1]
    label = (
        f"Bits that one row tells of {clean(what)} against {title}: {number(first['b'])} bits at {number(first['d'])} down to "
        f"{number(last['b'])} bits at {number(last['d'])}. This release: {number(told.leakage)} bits at {number(told.distortion)}; the "
        f"groups’ names alone tell {number(floor)}, unprotected clusters {number(told.unprotected)}, of {number(told.unknown)}."
    )
    return chart, label, _notes(evidence, line, high - low, is_near)


def _level(at: float, name: str, edge: tuple[float, str, int], x: Any, y: Any) -> list[Any]:
    """A horizontal line with its name: above it on the right, or below it on the left, where a curve has not come down yet.

    Args:
        edge: where the name stands, how it is aligned, and whether above (−1) or below (1).
    """
    import altair as alt

    place, align, side = edge
    base = alt.Chart(data([{"d": place, "b": at, "t": name}]))
    rule = base.mark_rule(strokeDash=[4, 3], color=QUIET, strokeWidth=1).encode(y=y)
    told = base.mark_text(
        align="right" if align == "right" else "left", baseline="bottom" if side < 0 else "top",
        dx=-2 if align == "right" else 3, dy=3 * side, fontSize=10.5, color=MUTED,
    )  # fmt: skip
    return [rule, told.encode(x=x, y=y, text=alt.Text(field="t", type="nominal"))]


def _gap(line: Line) -> float:
    return max(b - low for b, low in zip(line.leakage, line.bound or line.leakage, strict=True))


def _notes(evidence: MicrodataEvidence, line: Line, span: float, is_near: bool) -> tuple[str, ...]:
    gap = _gap(line)
    if gap > VISIBLE * span:
        said = f"Green: the least known for these groups; certified: no exchange lies below the pale band (up to {number(gap)} bits)."
    else:
        shown = "under 0.0001" if gap < 0.0001 else small(gap)
        said = f"Green: the least that is possible with these groups, certified to within {shown} bits."
    notes = [said]
    told = evidence.figures
    if evidence.bound is not None:
        gap = evidence.gap or 0.0
        within = "under 0.0001" if gap < 0.0001 else small(gap)
        if evidence.coarse > 1e-9:
            notes.append(
                f"Certified of all groups of this kind, with the price of coarse ones: nothing better by more than {within} bits."
            )
        else:
            notes.append(
                f"Certified of all groups of this kind, with these clusters: none leak less than {number(max(evidence.bound, 0))} bits at this distance."
            )
    if not is_near:
        notes.append(f"Beyond the chart: all there is to tell, {of_unit(number(told.unknown), 'bits')}.")
    return tuple(notes)
