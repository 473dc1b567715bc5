"""± against ε or ρ for every mechanism that was considered: what more or less budget would have bought."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..plans import number
from .document import Considered, Entry
from .frames import Row, beside, spread
from .losses import symbol
from .svg import COLOURS, MUTED, data, distinct
from .words import of_unit, short, size

WIDTH, HEIGHT = 330, 190
QUIET = "#98a2aa"


def curves(entry: Entry) -> list[list[tuple[float, float]]]:
    """(loss, ±) of every mechanism, by loss, that of the release included; what cannot stand on a logarithmic axis left out."""
    spent = float(entry.loss.amount)
    found = []
    for row in entry.considered:
        points = dict(zip(row.losses, row.half_widths, strict=True)) | {spent: row.half_width}
        found.append(sorted((e, h) for e, h in points.items() if h is not None and h > 0 and e > 0))
    return found


def names(considered: Sequence[Considered]) -> list[str]:
    """Short names, all different: the kind; where two are of one kind the whole name, or what it adds to another's."""
    kinds = [row.kind.replace("-", " ") for row in considered]
    whole = [row.name for row in considered]
    added = [min((n.removeprefix(f"{m}, ") for m in whole), key=len) for n in whole]
    return distinct([k if kinds.count(k) == 1 else a for k, a in zip(kinds, added, strict=True)], 24)


def tradeoff(entry: Entry) -> tuple[Any, str] | None:
    """The chart and what it shows; None where no noise was drawn and there is nothing to trade."""
    import altair as alt

    lines, told = curves(entry), names(entry.considered)
    drawn = [i for i, line in enumerate(lines) if line]
    if entry.loss.is_zero or not drawn:
        return None
    every = [h for i in drawn for _, h in lines[i]]
    low, high = _decade(min(every), math.floor), _decade(max(every), math.ceil)
    rows = [{"e": e, "h": h, "g": told[i]} for i in drawn for e, h in lines[i]]
    gap = 13 / HEIGHT * math.log10(high / low)
    ends = [lines[i][-1] for i in drawn]
    placed = spread([math.log10(h) for _, h in ends], gap)
    tags: list[Row] = [
        {"e": e, "h": 10**y, "g": told[i]} for i, (e, _), y in zip(drawn, ends, placed, strict=True)
    ]
    least, most = (pick(e for i in drawn for e, _ in lines[i]) for pick in (min, max))
    grid = [t for t in (0.01, 0.03, 0.1, 0.3, 1, 3, 10) if least <= t <= most]
    x = alt.X(
        field="e",
        type="quantitative",
        scale=alt.Scale(type="log", nice=False, domain=[least / 1.2, most]),
        axis=alt.Axis(title=symbol(entry.loss.unit), values=grid, format="~g"),
    )
    y = alt.Y(
        field="h",
        type="quantitative",
        scale=alt.Scale(type="log", nice=False, domain=[low, high]),
        axis=alt.Axis(
            title=f"± in {short(entry.unit, 24)}" if entry.unit else "±",
            values=_ticks(low, high),
            format=",.6~r",
            labelOverlap=False,
        ),
    )
    layers = [
        *_drawn(rows, tags, [told[i] for i in drawn if i != entry.chosen], x, y),
        *_drawn(
            rows,
            tags,
            [told[i] for i in drawn if i == entry.chosen],
            x,
            y,
            COLOURS[0],
            COLOURS[0],
            2.4,
            "bold",
        ),
    ]
    if entry.half_width:
        spot = alt.Chart(data([{"e": float(entry.loss.amount), "h": entry.half_width}]))
        layers.append(spot.mark_rule(strokeDash=[2, 3], color=MUTED, strokeWidth=0.9).encode(x=x))
        layers.append(
            spot.mark_point(
                filled=True, size=70, opacity=1, color=COLOURS[0], stroke="white", strokeWidth=1.2
            ).encode(x=x, y=y)
        )
    room = beside([f"{high:,.6g}"]) + 20 + beside([t["g"] for t in tags])
    chart = alt.layer(*layers).properties(
        width=round(WIDTH - room), height=HEIGHT, padding={"left": 2, "top": 6, "bottom": 2, "right": 4}
    )
    label = (
        f"Half-width against {entry.loss.unit}, both on logarithmic scales. At {entry.loss.unit} "
        f"{number(float(entry.loss.amount))}: "
        + "; ".join(f"{row.name} ± {of_unit(size(row.half_width), entry.unit)}" for row in entry.considered)
    )
    return chart, f"{label}."


def _drawn(
    rows: list[Row],
    tags: list[Row],
    kept: list[str],
    x: Any,
    y: Any,
    colour: str = QUIET,
    ink: str = MUTED,
    stroke: float = 1.1,
    weight: Any = "normal",
) -> list[Any]:
    """The lines of some mechanisms with their names at the end."""
    import altair as alt

    if not kept:
        return []
    line = alt.Chart(data([r for r in rows if r["g"] in kept])).mark_line(color=colour, strokeWidth=stroke)
    tag = alt.Chart(data([r for r in tags if r["g"] in kept]))
    text = tag.mark_text(align="left", dx=6, fontSize=11, fontWeight=weight, color=ink)
    return [
        line.encode(x=x, y=y, detail=alt.Detail(field="g", type="nominal")),
        text.encode(x=x, y=y, text=alt.Text(field="g", type="nominal")),
    ]


def _decade(value: float, way: Any) -> float:
    """The next of 1, 2, 5, 10, … at or beyond a value."""
    power = math.floor(math.log10(value))
    steps = [10.0**power * s for s in (1, 2, 5, 10)]
    if way is math.floor:
        return max(s for s in steps if s <= value * (1 + 1e-9))
    return min(s for s in steps if s >= value * (1 - 1e-9))


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten, and twos and fives between them where there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    found = [10.0**p * s for p in range(first, last + 1) for s in steps]
    return [t for t in found if low * 0.999 <= t <= high * 1.001]
