"""Maps of cells as inline SVG: no tiles, nothing loaded, one path for each shade.

A degree east is drawn as long as the cosine of the box's middle latitude makes it, so that a kilometre has one length; north
is up. Cells are published ones, or blocks of them where there would be too many to see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .density import Field, Ints, metres
from .shades import Shades, round_down, round_up, shades
from .svg import INK, MUTED
from .words import exactly, minus, safe, short

WIDTH = 460
TALLEST = 340
ALONE = (700, 460)  # a map beside which nothing stands
MOST = 4096  # rectangles on one map
GROUND, EDGE = "#f4f3ef", "#c9cdd0"
LETTER = 6.0


@dataclass(frozen=True)
class Picture:
    """An SVG element, with what must be said of it."""

    svg: str
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Window:
    """A part of a field, in pixels: rows and columns from the first to before the last, and the size of a cell as drawn."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    scale: tuple[float, float]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        return (
            (self.columns[1] - self.columns[0]) * self.scale[1],
            (self.rows[1] - self.rows[0]) * self.scale[0],
        )


def blocks(grid: Ints) -> tuple[Ints, int]:
    """Counts of square blocks of cells, as few cells a side as leave at most 4,096 of them, and that number of cells.

    >>> blocks(np.ones((100, 100), dtype=np.int64))[0][-1].tolist()[-2:]
    [4, 4]
    """
    side = 1
    while math.prod(-(-n // side) for n in grid.shape) > MOST:
        side += 1
    tops, lefts = (np.arange(0, n, side) for n in grid.shape)
    return np.add.reduceat(np.add.reduceat(grid, tops, axis=0), lefts, axis=1), side


def density(
    field: Field,
    grid: Ints,
    things: str,
    label: str,
    room: tuple[float, float] = (WIDTH, TALLEST),
    nothing: str = "none",
    over: Callable[[Window, tuple[float, float], int], str] | None = None,
) -> Picture:
    """How many were reported where.

    Args:
        grid: counts, shape of the field.
        things: what is counted, in the plural.
        label: for those who do not see it.
        room: width of the picture, and the greatest height of the map in it.
        nothing: what the legend calls a count of 0.
        over: what is drawn over the cells, from the window, its upper left corner and how many cells a block has a side.
    """
    drawn, side = blocks(grid)
    told = shades(drawn, is_whole=True)
    rows, columns = drawn.shape
    tall, wide = field.sides[0] * side, field.sides[1] * side
    # As many whole blocks as there are; those at the high ends may reach beyond the box, by less than a block.
    beside = columns * wide < 1.1 * rows * tall
    left, top = _margins(field)
    across = room[0] - left - (118 if beside else 8)
    pixels = min(across / (columns * wide), room[1] / (rows * tall))
    window = Window((0, rows), (0, columns), (tall * pixels, wide * pixels))
    width, height = window.size
    parts = [cells(drawn, told, window, (left, top)), _ticks(field, side, window, (left, top))]
    if over is not None:
        parts.append(over(window, (left, top), side))
    below = top + height + 22 + (16 if not field.is_map else 0)
    parts.append(_compass(field, pixels, (left, below), width))
    used = below + (22 if metres(field) or field.is_map or field.unit else 0)
    unit = f"{things} a {'block' if side > 1 else 'cell'}"
    if told is not None:
        if beside:
            parts.append(_legend(told, unit, (left + width + 16, top + 8), nothing))
        else:
            parts.append(strip(told, unit, (left, used + 12), nothing))
            used += 50
    notes = []
    if side > 1:
        notes.append(
            f"Drawn in blocks of {side} × {side} cells{_measure(field, side)}; the file has single cells."
        )
    total = max(used, top + 8 + (17 * (len(told.limits) + 2) if told is not None and beside else 0))
    return Picture(svg(room[0], total + 4, label, parts), tuple(notes))


def _measure(field: Field, side: int) -> str:
    if not field.unit:
        return ""
    tall, wide = (length_words(s * side, field.unit) for s in field.sides)
    return f" ({tall} × {wide})" if tall != wide else f" ({tall} a side)"


def length_words(length: float, unit: str) -> str:
    """A length, with kilometres from 1,000 m on.

    >>> length_words(250.0, "m"), length_words(1500.0, "m"), length_words(2.5, "mi")
    ('250 m', '1.5 km', '2.5 mi')
    """
    if unit == "m" and length >= 1000:
        length, unit = length / 1000, "km"
    return f"{exactly(float(f'{length:.3g}'))} {unit}"


def _margins(field: Field) -> tuple[float, float]:
    return (62.0, 8.0) if field.is_map else (54.0, 24.0)


def svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg aria-label="{safe(label)}" style="max-width:{width:g}px" role="img" viewBox="0 0 {width:g} {height:.4g}">'
        f"{''.join(parts)}</svg>"
    )


def cells(grid: NDArray[Any], told: Shades | None, window: Window, at: tuple[float, float]) -> str:
    """The ground and the cells of a window, one path for each shade, runs of cells of one shade as one rectangle."""
    width, height = window.size
    ground = f'<rect x="{at[0]:.6g}" y="{at[1]:.6g}" width="{width:.6g}" height="{height:.6g}" fill="{GROUND}"></rect>'
    paths = []
    if told is not None:
        (r0, r1), (c0, c1) = window.rows, window.columns
        classes = told.of(grid[r0:r1, c0:c1])[::-1]
        for i, colour in enumerate(told.colours):
            runs = "".join(f"M{x} {y}h{n}v1h-{n}z" for x, y, n in _runs(classes == i))
            if runs:
                paths.append(f'<path fill="{colour}" d="{runs}"></path>')
    scale = f"translate({at[0]:.6g} {at[1]:.6g}) scale({window.scale[1]:.6g} {window.scale[0]:.6g})"
    drawn = f'<g transform="{scale}" shape-rendering="crispEdges">{"".join(paths)}</g>' if paths else ""
    frame = (
        f'<rect x="{at[0]:.6g}" y="{at[1]:.6g}" width="{width:.6g}" height="{height:.6g}" fill="none" '
        f'stroke="{EDGE}" stroke-width="1"></rect>'
    )
    return ground + drawn + frame


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Column, row and length of every run of marked cells along a row."""
    edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    rows, starts = np.nonzero(edges == 1)
    ends = np.nonzero(edges == -1)[1]
    return [(int(x), int(y), int(e - x)) for y, x, e in zip(rows, starts, ends, strict=True)]


def text(
    x: float, y: float, told: str, anchor: str = "start", colour: str = MUTED, size: float = 11.5
) -> str:
    """One line of text."""
    return f'<text x="{x:.4g}" y="{y:.4g}" text-anchor="{anchor}" font-size="{size:g}px" fill="{colour}">{safe(told)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = MUTED, width: float = 1) -> str:
    """One straight line."""
    return f'<line x1="{x1:.4g}" y1="{y1:.4g}" x2="{x2:.4g}" y2="{y2:.4g}" stroke="{colour}" stroke-width="{width:g}"></line>'


def _ticks(field: Field, side: int, window: Window, at: tuple[float, float]) -> str:
    """A few round coordinates along the left and the lower border."""
    width, height = window.size
    parts = []
    for axis, pixels in ((0, height), (1, width)):
        low, step = field.low[axis], field.step[axis] * side
        cells = (window.rows, window.columns)[axis][1]
        span = step * cells
        apart = round_up(span / max(2.0, min(5.0, pixels / (44 if axis == 0 else 84))))
        digits = max(0, -math.floor(math.log10(apart) + 1e-9))
        value = math.ceil(low / apart - 1e-9) * apart
        high = min(low + span, low + field.step[axis] * field.shape[axis])
        while value <= high + 1e-9 * span:
            place = (value - low) / span * pixels
            told = coordinate(value, digits, axis) if field.is_map else minus(f"{value + 0.0:,.{digits}f}")
            if axis == 0:
                y = at[1] + height - place
                parts += [line(at[0] - 4, y, at[0], y), text(at[0] - 7, y + 4, told, "end")]
            else:
                x = at[0] + place
                end = "middle" if place > 20 else "start"
                parts += [
                    line(x, at[1] + height, x, at[1] + height + 4),
                    text(x, at[1] + height + 17, told, end),
                ]
            value += apart
    if not field.is_map:
        parts.append(text(at[0], at[1] - 10, short(field.titles[0], 40)))
        parts.append(text(at[0] + width, at[1] + height + 33, short(field.titles[1], 40), "end"))
    return "".join(parts)


def coordinate(value: float, digits: int, axis: int) -> str:
    """Degrees with their side of the world.

    >>> coordinate(40.75, 2, 0), coordinate(-73.9, 1, 1), coordinate(0.0, 0, 1)
    ('40.75° N', '73.9° W', '0°')
    """
    told = f"{abs(value):.{digits}f}"
    if not told.strip("0."):
        return f"{told}°"
    return f"{told}° {('NS', 'EW')[axis][value < 0]}"


def _compass(field: Field, pixels: float, at: tuple[float, float], width: float) -> str:
    """The scale, and on a map where north is.

    Args:
        pixels: how many one unit of the field takes.
    """
    parts = []
    if field.unit:
        length = round_down(0.36 * width / pixels)
        if field.unit == "m" and length >= 1000:
            told = f"{exactly(length / 1000)} km"
        else:
            told = f"{exactly(length)} {field.unit}"
        long, y = length * pixels, at[1] + 10
        parts += [line(at[0], y, at[0] + long, y, INK, 1.6)]
        parts += [line(x, y - 4, x, y + 0.8, INK, 1.6) for x in (at[0] + 0.8, at[0] + long - 0.8)]
        parts.append(text(at[0] + long + 7, y + 3, short(told, 24), colour=INK))
    if field.is_map:
        x, y = at[0] + width - 6, at[1]
        parts.append(f'<path d="M{x:.4g} {y + 1:.4g}l4 11l-4 -3l-4 3z" fill="{INK}"></path>')
        parts.append(text(x - 9, y + 12, "N", "end", INK))
    return "".join(parts)


def _legend(told: Shades, unit: str, at: tuple[float, float], nothing: str) -> str:
    """Classes below each other, the largest first."""
    parts = [text(at[0], at[1] + 2, unit)]
    rows = [*zip(told.colours[::-1], told.labels[::-1], strict=True), (GROUND, nothing)]
    for i, (colour, label) in enumerate(rows):
        y = at[1] + 12 + 17 * i
        edge = f' stroke="{EDGE}"' if colour == GROUND else ""
        parts.append(
            f'<rect x="{at[0]:.4g}" y="{y:.4g}" width="15" height="13" fill="{colour}"{edge}></rect>'
        )
        parts.append(text(at[0] + 21, y + 11, label, colour=INK))
    return "".join(parts)


def strip(told: Shades, unit: str, at: tuple[float, float], nothing: str = "none") -> str:
    """Classes side by side, each with what it holds below; ``nothing`` names the ground."""
    parts, x = [text(at[0], at[1], unit)], at[0]
    for colour, label in ((GROUND, nothing), *zip(told.colours, told.labels, strict=True)):
        width = max(34.0, LETTER * len(label) + 8)
        edge = f' stroke="{EDGE}"' if colour == GROUND else ""
        parts.append(
            f'<rect x="{x:.4g}" y="{at[1] + 7:.4g}" width="{width - 2:.4g}" height="11" fill="{colour}"{edge}></rect>'
        )
        parts.append(text(x + (width - 2) / 2, at[1] + 31, label, "middle", INK, 11))
        x += width
    return "".join(parts)
