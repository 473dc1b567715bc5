"""Leakage against expected distance: the certified optimum, the named channels, and where the release stands among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..plans import number
from .document import ChannelEvidence, ChannelText, Line
from .frames import Row, beside, spread
from .svg import COLOURS, MUTED, data, distinct
from .tradeoff import QUIET
from .words import clean, listed, of_unit, short, small

WIDTH, HEIGHT = 330, 230
BEST = COLOURS[3]
VISIBLE = 0.012  # of the height of the chart


def leaking(channel: ChannelText, is_share: bool) -> tuple[Any, str, tuple[str, ...]] | None:
    """The chart, what it shows, and what is to be said below it; None where no curve was published.

    Args:
        is_share: whether a distance is the share of values that change.
    """
    import altair as alt

    evidence, along = channel.evidence, _along(channel, is_share)
    lines = [] if evidence is None else [line for line in evidence.curve if line.distortion]
    if evidence is None or not lines:
        return None
    names = distinct([line.name.removesuffix(" (certified)") for line in lines], 20)
    rows: list[Row] = []
    unit = 100 if is_share else 1
    for name, line in zip(names, lines, strict=True):
        bound = line.bound or line.leakage
        rows += [
            {"d": unit * d, "b": b, "l": max(0.0, low), "g": name}
            for d, b, low in sorted(zip(line.distortion, line.leakage, bound, strict=True))
        ]
    own = [(unit * d, b) for d, b in _own(evidence)]
    ceiling = evidence.attack.plain_bits if evidence.attack is not None else 0.0
    top = max([r["b"] for r in rows] + [ceiling] + [b for _, b in own]) * 1.04 or 1.0
    right = max([r["d"] for r in rows] + [d for d, _ in own]) or 1.0
    x = alt.X(
        field="d",
        type="quantitative",
        scale=alt.Scale(domain=[0, right], nice=False),
        axis=alt.Axis(title=along, format=",~r", tickCount=3),
    )
    y = alt.Y(
        field="b",
        type="quantitative",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(title="bits that one row tells", format="~g", tickCount=5),
    )
    layers = []
    if ceiling:
        layers += _ceiling(ceiling, x, y)
    for name, line in sorted(zip(names, lines, strict=True), key=lambda pair: pair[1].bound is not None):
        layers += _line([r for r in rows if r["g"] == name], line, top, x, y)
    layers.append(_tags(rows, names, lines, top, x, y))
    if own:
        spot = alt.Chart(data([{"d": d, "b": b} for d, b in own]))
        layers.append(spot.mark_rule(strokeDash=[2, 3], color=MUTED, strokeWidth=0.9).encode(x=x))
        mark = spot.mark_point(
            filled=True, size=80, opacity=1, color=COLOURS[0], stroke="white", strokeWidth=1.4
        )
        layers.append(mark.encode(x=x, y=y))
    room = 44 + beside(names)
    chart = alt.layer(*layers).properties(
        width=round(WIDTH - room), height=HEIGHT, padding={"left": 2, "top": 6, "bottom": 2, "right": 4}
    )
    return chart, _label(channel, evidence, lines, along), _notes(lines, top)


def _own(evidence: ChannelEvidence) -> list[tuple[float, float]]:
    if evidence.distortion is None or evidence.attack is None:
        return []
    return [(evidence.distortion, evidence.attack.bits)]


def _along(channel: ChannelText, is_share: bool) -> str:
    if is_share:
        return "share of the rows changed (%)"
    return f"expected distance ({short(channel.unit, 16)})" if channel.unit else "expected distance"


def _ceiling(bits: float, x: Any, y: Any) -> list[Any]:
    """What the value itself tells."""
    import altair as alt

    base = alt.Chart(data([{"d": 0, "b": bits, "t": "without protection"}]))
    rule = base.mark_rule(strokeDash=[4, 3], color=QUIET, strokeWidth=1).encode(y=y)
    told = base.mark_text(align="left", baseline="bottom", dx=4, dy=-2, fontSize=10.5, color=MUTED)
    return [rule, told.encode(x=x, y=y, text=alt.Text(field="t", type="nominal"))]


def _line(rows: list[Row], line: Line, top: float, x: Any, y: Any) -> list[Any]:
    import altair as alt

    base = alt.Chart(data(rows))
    certified = line.bound is not None
    colour, width = (BEST, 2.4) if certified else (QUIET, 1.2)
    layers = []
    if certified and _gap(line) > VISIBLE * top:
        band = base.mark_area(color=BEST, opacity=0.22)
        layers.append(band.encode(x=x, y=y, y2=alt.Y2(field="l")))
    if len(rows) == 1:
        mark = base.mark_point(
            filled=True, size=44, opacity=1, color=BEST if certified else MUTED, shape="diamond"
        )
        return [*layers, mark.encode(x=x, y=y)]
    return [*layers, base.mark_line(color=colour, strokeWidth=width).encode(x=x, y=y)]


def _gap(line: Line) -> float:
    return max(b - max(0.0, low) for b, low in zip(line.leakage, line.bound or line.leakage, strict=True))


def _tags(
    rows: Sequence[Row], names: Sequence[str], lines: Sequence[Line], top: float, x: Any, y: Any
) -> Any:
    """The name of every line beside its end."""
    import altair as alt

    ends = [max((r for r in rows if r["g"] == name), key=lambda r: float(r["d"])) for name in names]
    placed = spread([max(float(r["b"]), 0.03 * top) for r in ends], 13 / HEIGHT * top)
    right = max(float(r["d"]) for r in rows)
    layers = []
    styles: tuple[tuple[bool, str, Any], ...] = ((False, MUTED, "normal"), (True, BEST, "bold"))
    for certified, colour, weight in styles:
        tags = [
            {"d": right, "b": at, "g": name}
            for name, line, at in zip(names, lines, placed, strict=True)
            if (line.bound is not None) == certified
        ]
        if tags:
            text = alt.Chart(data(tags)).mark_text(
                align="left",
                dx=7,
                fontSize=11,
                fontWeight=weight,
                color=colour,
            )
            layers.append(text.encode(x=x, y=y, text=alt.Text(field="g", type="nominal")))
    return alt.layer(*layers)


def _label(channel: ChannelText, evidence: ChannelEvidence, lines: Sequence[Line], along: str) -> str:
    told = []
    for line in lines:
        d, b = min(zip(line.distortion, line.leakage, strict=True))
        e, c = max(zip(line.distortion, line.leakage, strict=True))
        told.append(
            f"{clean(line.name)} from {number(b)} bits at {of_unit(number(d), channel.unit)} to {number(c)} bits at "
            f"{of_unit(number(e), channel.unit)}"
        )
    own = "".join(
        f" This release: {number(b)} bits at {of_unit(number(d), channel.unit)}." for d, b in _own(evidence)
    )
    return f"Bits that one row tells against {along}: {listed(told, 6)}.{own}"


def _notes(lines: Sequence[Line], top: float) -> tuple[str, ...]:
    certified = [line for line in lines if line.bound is not None]
    if not certified:
        return ()
    gap = max(_gap(line) for line in certified)
    if gap > VISIBLE * top:
        return (
            f"Green: the least that is known to be possible; no channel lies below the pale band (up to {number(gap)} bits).",
        )
    shown = "under 0.0001" if gap < 0.0001 else small(gap)
    return (f"Green: the least that is possible; a lower bound lies within {shown} bits of it.",)
