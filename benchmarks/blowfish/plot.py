"""Small multiples of curves on logarithmic axes, as SVG: what was read off the papers as points, what was run as lines.

A row has ``facet`` (which small plot), ``series`` (which curve), ``x``, ``y`` and, where a spread was measured, ``low`` and
``high`` (quartiles). The look is that of the report.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tetraodon.report.svg import COLOURS, CONFIG, INK, MUTED, inline

from .common import Row

LABEL = "format(datum.value, datum.value < 1 ? '~g' : '~s')"
LONG, TAG = re.compile(r"\d+\.\d{2,}"), re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Curve:
    """How a series is drawn.

    Attributes:
        name: as in the rows' ``series``.
        mark: "line", "dashed" or "points".
        colour: which of the report's colours.
        shape: of its points.
    """

    name: str
    mark: str
    colour: str
    shape: str = "circle"


PAPER_INK, OURS_BLUE, THEIRS, OTHER = INK, COLOURS[0], COLOURS[1], COLOURS[2]
MORE, PALE_BLUE = COLOURS[3:], "#8fb3d3"


@dataclass(frozen=True)
class Look:
    """What a figure says around its curves.

    Attributes:
        title, notes: above and below it.
        x, y: titles of the axes.
        categories: order of the x values where they are names, empty where they are numbers.
        across: small plots in a row.
        log_x: whether the x axis is logarithmic.
        one_scale: whether all small plots share the span of their y axes.
        top: what is above is drawn there.
    """

    title: str
    notes: tuple[str, ...]
    x: str
    y: str
    curves: tuple[Curve, ...]
    across: int = 4
    categories: tuple[str, ...] = ()
    log_x: bool = False
    one_scale: bool = True
    top: float = math.inf
    width: int = 170
    height: int = 140


def draw(rows: Sequence[Row], look: Look, path: Path) -> Path:
    """Write the figure; returns its path."""
    import altair as alt
    import vl_convert

    rows = [r | {key: min(r[key], look.top) for key in ("y", "low", "high") if key in r} for r in rows]
    facets = list(dict.fromkeys(str(row["facet"]) for row in rows))
    everything = _span(rows)
    plots = []
    for at, facet in enumerate(facets):
        mine = [r for r in rows if str(r["facet"]) == facet]
        span = everything if look.one_scale else _span(mine)
        plots.append(_plot(mine, facet, look, span, at % look.across == 0))
    chart = alt.vconcat(
        alt.concat(*plots, columns=look.across, spacing=18).resolve_scale(color="shared"),
        *(_note(text) for text in look.notes),
        spacing=6,
    ).properties(
        title=alt.TitleParams(look.title, anchor="start", fontSize=14, color=INK, limit=900, offset=8)
    )
    spec = chart.to_dict()
    spec["config"] = {**CONFIG, "background": "#ffffff", "padding": 12}
    spec.pop("usermeta", None)
    full = vl_convert.vegalite_to_svg(spec)
    found = re.search(r'width="([0-9.]+)" height="([0-9.]+)"', full)
    assert found is not None
    head = '<svg xmlns="http://www.w3.org/2000/svg" font-family="Arial, Helvetica, sans-serif" '
    head += f'width="{found[1]}" height="{found[2]}" '
    text = head + inline(full, look.title, "figure").removeprefix("<svg")
    path.write_text(TAG.sub(lambda tag: LONG.sub(_rounded, tag.group()), text) + "\n", encoding="utf-8")
    return path


def _span(rows: Sequence[Row]) -> tuple[float, float]:
    heights = [v for r in rows for v in (r["y"], r.get("low", r["y"]), r.get("high", r["y"])) if v > 0]
    return min(heights) / 1.15, max(heights) * 1.15


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number.group()):.1f}".removesuffix(".0")


def _plot(rows: Sequence[Row], facet: str, look: Look, span: tuple[float, float], first: bool) -> Any:
    import altair as alt

    x = _along(look, rows)
    scale = alt.Scale(type="log", domain=list(span), nice=False)
    axis = alt.Axis(title=look.y if first else None, values=_ticks(*span), labelExpr=LABEL)
    y = alt.Y("y:Q", scale=scale, axis=axis)
    names = [c.name for c in look.curves]
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=names, range=[c.colour for c in look.curves]),
        legend=alt.Legend(
            symbolType="stroke", symbolStrokeWidth=3, symbolSize=200, labelLimit=300, columns=4
        ),
        sort=names,
    )
    layers = []
    for curve in look.curves:
        mine = [r for r in rows if r["series"] == curve.name]
        if not mine:
            continue
        spread = [r for r in mine if "low" in r]
        if spread:
            base = _base(spread).encode(
                x=x, y=alt.Y("low:Q", scale=scale, axis=axis), y2=alt.Y2("high:Q"), color=colour
            )
            bars = base.mark_rule(strokeWidth=1) if curve.mark == "points" else base.mark_area(opacity=0.14)
            layers.append(bars)
        base = _base(mine).encode(x=x, y=y, color=colour)
        if curve.mark == "points":
            layers.append(
                base.mark_point(shape=curve.shape, size=26, filled=False, strokeWidth=1.4, opacity=1)
            )
        else:
            dash = [4, 3] if curve.mark == "dashed" else [1, 0]
            layers.append(base.mark_line(strokeWidth=1.6, strokeDash=dash))
    title = alt.TitleParams(facet, fontSize=11.5, anchor="start", color=INK)
    return alt.layer(*layers).properties(width=look.width, height=look.height, title=title)


def _base(rows: Sequence[Row]) -> Any:
    import altair as alt

    return alt.Chart(alt.InlineData(values=[{k: v for k, v in r.items() if k != "facet"} for r in rows]))


def _along(look: Look, rows: Sequence[Row]) -> Any:
    import altair as alt

    if look.categories:
        axis = alt.Axis(title=look.x, labelAngle=0)
        return alt.X("x:N", sort=list(look.categories), axis=axis, scale=alt.Scale(type="point", padding=0.5))
    values = sorted({float(r["x"]) for r in rows})
    if look.log_x:
        scale = alt.Scale(type="log", domain=[values[0] / 1.2, values[-1] * 1.2], nice=False)
        return alt.X("x:Q", scale=scale, axis=alt.Axis(title=look.x, values=values, format="~g"))
    room = 0.05 * (values[-1] - values[0])
    scale = alt.Scale(domain=[values[0] - room, values[-1] + room], nice=False)
    return alt.X("x:Q", scale=scale, axis=alt.Axis(title=look.x, tickCount=5))


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten; with fewer than two decades, twos and fives between them; with less than one, more."""
    decades = math.log10(high / low)
    steps = (1,) if decades > 2.5 else (1, 2, 5) if decades > 1 else (1, 1.2, 1.5, 2, 3, 4, 5, 7)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [s * 10.0**p for p in powers for s in steps if low <= s * 10.0**p <= high]


def _note(text: str) -> Any:
    import altair as alt

    return (
        alt.Chart(alt.InlineData(values=[{}]))
        .mark_text(align="left", fontSize=11, color=MUTED, x=0)
        .encode(text=alt.value(text))
        .properties(width=10, height=12)
    )
