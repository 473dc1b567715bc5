"""Groups of a private column, drawn: as bands of its histogram where that is published, and as areas of a map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..attributes import Point
from ..domain import Domain
from ..errors import TetraodonError
from .density import LABELLED, Ints, field_of
from .maps import LETTER, Window, density, line, svg, text
from .microdata_document import Generalised, Histogram
from .svg import INK, MUTED
from .words import clean, counted, safe, short

WIDTH, TALL = 460.0, 190.0
NAMED = 30  # values that stand on lines of their own
BARS = 120
TONES = ("#1d5b8f", "#8db0cf")  # of neighbouring groups
BANDS = ("#eceeee", "#f7f7f5")
BORDER = "#a8401a"
STEP = 18.0
RIGHT = 118.0
MOST_AREAS = 60


@dataclass(frozen=True)
class Drawn:
    """A picture with what is said below it."""

    svg: str
    notes: tuple[str, ...]


def bands(histogram: Histogram, column: Generalised) -> Drawn:
    """The histogram of a private column with its groups as bands, values of one group beside each other."""
    order = {g.label: i for i, g in enumerate(column.groups)}
    runs = sum(a[1] != b[1] for a, b in pairwise(histogram.values)) + 1
    together = runs == len({g for _, g, _ in histogram.values})
    values = list(histogram.values) if together else sorted(histogram.values, key=lambda v: order[v[1]])
    notes = () if together else ("Values stand by group, in their order within each.",)
    numbered = all(_number(v) is not None for v, *_ in values)
    found = (
        _lying(values)
        if len(values) <= NAMED and not numbered
        else _upright(values, clean(histogram.column), numbered)
    )
    spoken = "; ".join(f"{g}: {sum(n for _, own, n in values if own == g):,} rows" for g in list(order)[:16])
    label = f"Rows of every value of {clean(histogram.column)} with its groups as bands. {spoken}."
    return Drawn(svg(WIDTH, found[1], label, found[0]), (*notes, *found[2]))


def _spans(values: Sequence[tuple[str, str, int]]) -> list[tuple[str, int, int]]:
    """Each group with where its values begin and end."""
    found: list[tuple[str, int, int]] = []
    for i, (_, group, _) in enumerate(values):
        if found and found[-1][0] == group:
            found[-1] = (group, found[-1][1], i + 1)
        else:
            found.append((group, i, i + 1))
    return found


def _upright(
    values: Sequence[tuple[str, str, int]], title: str, numbered: bool
) -> tuple[list[str], float, tuple[str, ...]]:
    """Bars beside each other; where they are too many, runs of neighbours of one group as their mean."""
    spans, n = _spans(values), len(values)
    run = -(-n // BARS)
    bars = []
    for at, (_, start, end) in enumerate(spans):
        for i in range(start, end, run):
            stop = min(i + run, end)
            bars.append((at, i, stop, sum(c for *_, c in values[i:stop]) / (stop - i)))
    most = max((c for *_, c in bars), default=1) or 1
    left = 14 + LETTER * len(f"{most:,.0f}")
    each, top = (WIDTH - left) / n, 22.0
    base = top + TALL
    parts = []
    for at, (group, start, end) in enumerate(spans):
        x, wide = left + start * each, (end - start) * each
        parts.append(
            f'<rect x="{x:.5g}" y="{top - 18:g}" width="{wide:.5g}" height="{TALL + 18:g}" fill="{BANDS[at % 2]}"></rect>'
        )
        if LETTER * len(clean(group)) + 4 <= wide:
            parts.append(text(x + wide / 2, top - 5, group, "middle", INK))
    parts += _scale(most, left, base)
    for tone in (0, 1):
        path = "".join(
            f"M{left + i * each + _gap(each):.5g} {base:g}V{base - TALL * c / most:.5g}h{(stop - i) * each - 2 * _gap(each):.4g}V{base:g}z"
            for at, i, stop, c in bars
            if at % 2 == tone and c
        )
        if path:
            parts.append(f'<path fill="{TONES[tone]}" d="{path}"></path>')
    parts.append(line(left, base, WIDTH, base, MUTED, 0.8))
    parts += _below(values, left, each, base) if numbered else []
    parts.append(
        text(WIDTH, base + 34, f"{short(title, 50)}{'' if numbered else ', in declared order'}", "end")
    )
    notes = (f"A bar is the mean of up to {counted(run, 'neighbouring value')}.",) if run > 1 else ()
    return parts, base + 40, notes


def _gap(each: float) -> float:
    return min(1.5, 0.08 * each)


def _scale(most: float, left: float, base: float) -> list[str]:
    """A few counts along the left border."""
    parts = []
    step = _round(most / 4)
    value = 0.0
    while value <= most:
        y = base - TALL * value / most
        parts.append(text(left - 6, y + 4, f"{value:,.6g}", "end"))
        if value:
            parts.append(
                f'<line x1="{left:.4g}" y1="{y:.4g}" x2="{WIDTH:g}" y2="{y:.4g}" stroke="#fff" stroke-width="1"></line>'
            )
        value += step
    return parts


def _round(value: float) -> float:
    """The next of 1, 2, 5, 10, … at or above a positive number, at least 1."""
    power = 10.0 ** math.floor(math.log10(max(value, 1)))
    return next(s * power for s in (1, 2, 5, 10) if s * power >= value * (1 - 1e-9))


def _below(values: Sequence[tuple[str, str, int]], left: float, each: float, base: float) -> list[str]:
    """Names of some values below their bars, evenly far apart."""
    wide = max(LETTER * max(len(clean(v)) for v, *_ in values) + 14, each)
    every = max(1, math.ceil(wide / each))
    if every > 1:
        every = next(s * 10**p for p in range(6) for s in (2, 5, 10) if s * 10**p >= every)
    first = (
        next((i for i, (v, *_) in enumerate(values) if (_number(v) or 0.0) % every == 0), 0)
        if every > 1
        else 0
    )
    return [
        text(
            min(left + (i + 0.5) * each, WIDTH - LETTER * len(clean(values[i][0])) / 2),
            base + 16,
            values[i][0],
            "middle",
        )
        for i in range(first, len(values), every)
    ]


def _number(label: str) -> float | None:
    """The number that a value's name is, or begins with where it is a range."""
    head = label.partition("–")[0]
    try:
        found = float(head)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _lying(values: Sequence[tuple[str, str, int]]) -> tuple[list[str], float, tuple[str, ...]]:
    """A line for each value, its group beside it."""
    most = max((c for *_, c in values), default=1) or 1
    left = min(150.0, LETTER * max(len(short(v, 24)) for v, *_ in values) + 10)
    across = WIDTH - left - RIGHT - LETTER * len(f"{most:,}") - 10
    parts = []
    for at, (group, start, end) in enumerate(_spans(values)):
        y, tall = 2 + start * STEP, (end - start) * STEP
        parts.append(
            f'<rect x="0" y="{y:.5g}" width="{WIDTH:g}" height="{tall:.5g}" fill="{BANDS[at % 2]}"></rect>'
        )
        parts.append(text(WIDTH - 6, y + tall / 2 + 4, short(group, 18), "end", INK))
        for i in range(start, end):
            value, _, count = values[i]
            parts.append(text(left - 6, 2 + i * STEP + 13, short(value, 24) or "(blank)", "end", INK, 11))
            wide = across * count / most
            if count:
                parts.append(
                    f'<rect x="{left:.4g}" y="{2 + i * STEP + 3:.5g}" width="{wide:.4g}" height="{STEP - 6:g}" fill="{TONES[at % 2]}"></rect>'
                )
            parts.append(text(left + wide + 5, 2 + i * STEP + 13, f"{count:,}", "start", MUTED, 11))
    return parts, 6 + len(values) * STEP, ()


# Places


def is_place(column: Generalised, declared: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a column's values are cells of a declared place."""
    return "point" in declared.get(column.column, {})


def areas(
    column: Generalised, declared: Mapping[str, Mapping[str, Any]], histogram: Histogram | None
) -> Drawn | None:
    """Groups of a place as areas of a map, over its histogram where that is published; None where the column is no place.

    Args:
        declared: the policy's domain.
    """
    if not is_place(column, declared):
        return None
    try:
        domain = Domain.from_spec({column.column: declared[column.column]})
    except TetraodonError:
        return None
    [place] = domain.values()
    if not isinstance(place, Point) or domain.size > LABELLED:
        return None
    field = field_of(domain)
    assert field is not None
    cells = {place.label(c): c for c in range(place.n_values)}
    of, amounts = np.full(place.size, -1, dtype=np.int64), np.zeros(place.size, dtype=np.int64)
    for i, group in enumerate(column.groups):
        at = [cells[v] for v in group.values if v in cells]
        of[at] = i
    for value, _, count in histogram.values if histogram is not None else ():
        if value in cells:
            amounts[cells[value]] = count
    shape = place.shape
    owner = of[: shape[0] * shape[1]].reshape(shape)
    owner = owner.T if field.is_turned else owner
    grid = amounts[: shape[0] * shape[1]].reshape(shape)
    names = [short(g.label, 14) for g in column.groups]

    def over(window: Window, at: tuple[float, float], side: int) -> str:
        return _borders(owner, window, at, side, names)

    what = "rows" if histogram is not None else "groups alone"
    label = f"Map of the {counted(len(names), 'group')} of {clean(column.column)}"
    label += ", over the number of rows in every cell." if histogram is not None else "."
    made = density(field, grid.T if field.is_turned else grid, what, label, over=over)
    notes = made.notes if histogram is not None else ()
    if len(names) > MOST_AREAS:
        notes = (*notes, "Names are left out: there are too many.")
    return Drawn(made.svg, notes)


def _borders(owner: Ints, window: Window, at: tuple[float, float], side: int, names: Sequence[str]) -> str:
    """Lines where neighbouring cells are in different groups, and each group's name where most of it lies."""
    columns = owner.shape[1]
    tall, wide = window.scale[0] / side, window.scale[1] / side
    height = window.size[1]

    def x(c: float) -> float:
        return at[0] + c * wide

    def y(r: float) -> float:
        return at[1] + height - r * tall

    path = [
        f"M{x(c + 1):.5g} {y(r):.5g}V{y(r + 1):.5g}" for r, c in np.argwhere(owner[:, 1:] != owner[:, :-1])
    ]
    path += [f"M{x(c):.5g} {y(r + 1):.5g}H{x(c + 1):.5g}" for r, c in np.argwhere(owner[1:] != owner[:-1])]
    parts = (
        [f'<path fill="none" stroke="{BORDER}" stroke-width="1.4" d="{"".join(path)}"></path>']
        if path
        else []
    )
    if len(names) > MOST_AREAS:
        return "".join(parts)
    for i, name in enumerate(names):
        inside = np.argwhere(owner == i)
        if not len(inside):
            continue
        middle = inside.mean(axis=0)
        r, c = inside[np.abs(inside - middle).sum(axis=1).argmin()]
        spot = (
            min(max(x(c + 0.5), x(0) + LETTER * len(name) / 2), x(columns) - LETTER * len(name) / 2),
            y(r + 0.5) + 4,
        )
        parts.append(
            f'<text x="{spot[0]:.5g}" y="{spot[1]:.5g}" text-anchor="middle" font-size="11px" fill="{INK}" stroke="#fdfcfa" '
            f'stroke-width="3" paint-order="stroke">{safe(name)}</text>'
        )
    return "".join(parts)
