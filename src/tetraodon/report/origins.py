"""Rows of a channel as small pictures of one scale: where a record with this value may be reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..attributes import Integer, Numeric
from ..exact import show
from .density import Field, Floats, Ground
from .document import ChannelText, Origin
from .maps import EDGE, Window, cells, coordinate, length_words, line, strip, svg, text
from .shades import Shades, round_down, shades
from .svg import COLOURS, INK, MUTED
from .words import listed, minus, safe, short

TRUE = COLOURS[1]
PANELS = 6
SMALL, WIDE = 126.0, 240.0  # widths of a picture, in pixels
HELD = 0.95  # share of what is drawn that a window shows at least
NARROWEST = 9  # cells along a window
NEARLY = 0.72  # a window that is this share of the map shows all of it
NAMED = 6  # outputs told by name
LINE_HEIGHT = 58.0


@dataclass(frozen=True)
class Panels:
    """Small pictures, each under its title, with a legend for all of them and what is to be said."""

    pictures: tuple[tuple[str, str], ...]
    legend: str
    told: str
    is_wide: bool = False


def panels(channel: ChannelText, ground: Ground) -> Panels | None:
    """Pictures of some rows of a channel; None where none were published."""
    evidence = channel.evidence
    if evidence is None or not evidence.rows:
        return None
    rows = evidence.rows[:PANELS]
    if ground.field is not None and all(ground.place(row.cell) is not None for row in rows):
        return _maps(rows, ground, ground.field)
    [*attributes] = ground.domain.values()
    is_line = len(attributes) == 1 and isinstance(attributes[0], Integer | Numeric)
    if is_line and all(row.cell < attributes[0].n_values for row in rows):
        return _lines(rows, ground)
    return _names(rows, ground)


def _title(row: Origin) -> str:
    return safe(short(row.label, 40))


def _spot(at: tuple[int, int], field: Field) -> str:
    """The middle of a cell on a map; empty elsewhere."""
    if not field.is_map:
        return ""
    told = []
    digits = max(0, math.ceil(-math.log10(min(field.step))))
    for axis in (0, 1):
        told.append(coordinate(field.low[axis] + field.step[axis] * (at[axis] + 0.5), digits, axis))
    return safe(" ".join(told))


def _stays(row: Origin) -> float:
    return sum(p for cell, p in row.outputs if cell == row.cell)


def share(amount: float) -> str:
    """A probability in per cent.

    >>> share(0.0312), share(0.42), share(0.00001), share(1.0), share(0.0)
    ('3.1 %', '42 %', 'under 0.01 %', '100 %', '0 %')
    """
    if 0 < amount < 0.0001:
        return "under 0.01 %"
    return f"{100 * amount:.2g} %" if amount < 0.995 else f"{100 * amount:.3g} %"


# -------------------------------------------------------------------------------------------------------------------- maps


def _maps(rows: Sequence[Origin], ground: Ground, field: Field) -> Panels:
    grids = [_grid(row, ground) for row in rows]
    told = shades(np.concatenate([g.ravel() for g in grids]), is_whole=False)
    shape = _window(rows, ground, field)
    is_part = shape != field.shape
    tall, wide = field.sides
    pixels = min(SMALL / (shape[1] * wide), SMALL / (shape[0] * tall))
    pictures = []
    for row, grid in zip(rows, grids, strict=True):
        at = ground.place(row.cell)
        assert at is not None
        spans = [
            (first := max(0, min(place - n // 2, most - n)), first + n)
            for place, n, most in zip(at, shape, field.shape, strict=True)
        ]
        window = Window(spans[0], spans[1], (tall * pixels, wide * pixels))
        pictures.append((_spot(at, field) or _title(row), _map(row, grid, told, window, at, field, pixels)))
    note = "The ring is the cell of the record. Darker: likelier; all of one scale."
    if not is_part:
        note += " Each map shows the whole box."
    if is_part and field.unit:
        size = length_words(shape[1] * wide, field.unit)
        note += (
            f" Each map shows the {size} around its cell, with {100 * HELD:.0f} % of the outcomes or more."
        )
    if is_part and not field.unit:
        note += f" Each map shows {shape[1]} × {shape[0]} cells of {field.shape[1]} × {field.shape[0]}."
    legend = _legend(told) if told is not None else ""
    return Panels(tuple(pictures), legend, note)


def _grid(row: Origin, ground: Ground) -> Floats:
    amounts = np.zeros(ground.domain.size)
    for cell, p in row.outputs:
        amounts[cell] += p
    return np.asarray(ground.grid(amounts))


def _window(rows: Sequence[Origin], ground: Ground, field: Field) -> tuple[int, int]:
    """Rows and columns of a window that holds most of what any of these records may become."""
    reach = 0.0
    for row in rows:
        at = ground.place(row.cell)
        assert at is not None
        far = []
        for cell, p in row.outputs:
            place = ground.place(cell)
            if place is not None:
                gaps = [abs(a - b) * s for a, b, s in zip(place, at, field.sides, strict=True)]
                far.append((max(gaps), p))
        far.sort()
        total, held = sum(p for _, p in far), 0.0
        for gap, p in far:
            held += p
            if held >= HELD * total:
                reach = max(reach, gap)
                break
    counts = [
        min(n, max(NARROWEST, 2 * math.ceil(reach / s - 0.1) + 1))
        for n, s in zip(field.shape, field.sides, strict=True)
    ]
    if all(c >= NEARLY * n for c, n in zip(counts, field.shape, strict=True)):
        return field.shape
    return counts[0], counts[1]


def _map(
    row: Origin,
    grid: Floats,
    told: Shades | None,
    window: Window,
    at: tuple[int, int],
    field: Field,
    pixels: float,
) -> str:
    width, height = window.size
    left, top = 0.5, 4.0
    x = left + (at[1] - window.columns[0] + 0.5) * window.scale[1]
    y = top + height - (at[0] - window.rows[0] + 0.5) * window.scale[0]
    radius = max(4.5, max(window.scale) * 0.72)
    rings = "".join(
        f'<circle cx="{x:.4g}" cy="{y:.4g}" r="{radius:.4g}" fill="none" stroke="{colour}" stroke-width="{thick}"></circle>'
        for colour, thick in (("#ffffff", "3.6"), (TRUE, "1.8"))
    )
    parts = [cells(grid, told, window, (left, top)), rings]
    below = top + height
    if field.unit:
        length = round_down(0.36 * width / pixels)
        long = length * pixels
        parts.append(line(left, below + 9, left + long, below + 9, MUTED, 1.6))
        parts.append(text(left + long + 6, below + 13, length_words(length, field.unit)))
    label = (
        f"Map of where a record in the cell {row.label} may be reported: in that cell {share(_stays(row))}. "
    )
    label += f"{_likeliest(row, field)}"
    return svg(SMALL + 1, below + (20 if field.unit else 4), label, parts)


def _likeliest(row: Origin, field: Field) -> str:
    most = max(p for _, p in row.outputs)
    return f"{len(row.outputs):,} cells are drawn, none likelier than {share(most)}."


def _legend(told: Shades) -> str:
    """The shades of all panels."""
    labels = listed([f"{label}" for label in told.labels], len(told.labels))
    return svg(
        460,
        46,
        f"Shades, probability of a cell: {labels}",
        [strip(told, "probability of a cell", (1, 12), "≈ 0")],
    )


# -------------------------------------------------------------------------------------------------------------------- lines


def _lines(rows: Sequence[Origin], ground: Ground) -> Panels:
    """Bars along an axis of numbers."""
    [(name, attribute)] = ground.domain.items()
    n = attribute.n_values
    reach = 0
    for row in rows:
        far = sorted((abs(cell - row.cell), p) for cell, p in row.outputs if cell < n)
        total, held = sum(p for _, p in far), 0.0
        for gap, p in far:
            held += p
            if held >= HELD * total:
                reach = max(reach, gap)
                break
    count = max(NARROWEST, 2 * reach + 1)
    count = n if count >= NEARLY * n else count
    top = max(p for row in rows for cell, p in row.outputs if cell < n)
    pictures = []
    for row in rows:
        first = max(0, min(row.cell - count // 2, n - count))
        pictures.append((_title(row), _line(row, ground, (first, first + count), n, top)))
    unit = f" ({attribute.unit})" if attribute.unit else ""
    note = f"Along {short(name)}{unit}; the bar of the true value is orange. All of one scale, up to {share(top)}."
    return Panels(tuple(pictures), "", note)


def _line(row: Origin, ground: Ground, span: tuple[int, int], n: int, top: float) -> str:
    step = SMALL / (span[1] - span[0])
    base = 6 + LINE_HEIGHT
    gap = 0.0 if step < 3 else 1.0
    bars, own = [], ""
    for cell, p in row.outputs:
        if cell < n and span[0] <= cell < span[1]:
            high = LINE_HEIGHT * p / top
            x = (cell - span[0]) * step
            bar = f"M{x + gap / 2:.5g} {base:.4g}v-{high:.4g}h{step - gap:.4g}v{high:.4g}z"
            if cell == row.cell:
                own = f'<path fill="{TRUE}" d="{bar}"></path>'
            else:
                bars.append(bar)
    middle = (row.cell - span[0] + 0.5) * step
    parts = [
        f'<path fill="{COLOURS[0]}" fill-opacity="0.55" d="{"".join(bars)}"></path>' if bars else "",
        own,
    ]
    parts.append(line(0, base, SMALL, base, EDGE))
    parts.append(f'<path fill="{TRUE}" d="M{middle:.5g} {base + 2:.4g}l4 6h-8z"></path>')
    first, last = _ends(ground, span)
    parts += [text(0, base + 20, first), text(SMALL, base + 20, last, "end")]
    label = f"Where a record with {row.label} may be reported: as it is {share(_stays(row))}."
    return svg(SMALL, base + 26, label, parts)


def _ends(ground: Ground, span: tuple[int, int]) -> tuple[str, str]:
    """Where an axis begins and ends, as numbers."""
    [attribute] = ground.domain.values()
    assert isinstance(attribute, Integer | Numeric)
    low = attribute.low + span[0] * attribute.width
    high = attribute.low + span[1] * attribute.width - isinstance(attribute, Integer)
    return short(minus(show(Fraction(low))), 10), short(minus(show(Fraction(min(high, attribute.high)))), 10)


# -------------------------------------------------------------------------------------------------------------------- names


def _names(rows: Sequence[Origin], ground: Ground) -> Panels:
    """The likeliest outputs by name."""
    top = max(p for row in rows for _, p in row.outputs)
    pictures = [(_title(row), _named(row, ground, top)) for row in rows]
    note = "The true value is orange. All of one scale."
    if any(len(row.outputs) > NAMED for row in rows):
        note += f" The {NAMED} likeliest outcomes of each are named."
    return Panels(tuple(pictures), "", note, True)


def _named(row: Origin, ground: Ground, top: float) -> str:
    shown = sorted(row.outputs, key=lambda pair: (-pair[1], pair[0]))[:NAMED]
    if all(attribute.ordered for attribute in ground.domain.values()):
        shown = sorted(shown)
    rest = 1 - sum(p for _, p in shown)
    names = [(short(ground.label(cell), 17), p, cell == row.cell) for cell, p in shown]
    if rest > 0.0005:
        names.append(("others", rest, False))
    left, right = 100.0, 44.0
    parts = []
    for i, (name, p, is_true) in enumerate(names):
        y = 4 + 19.0 * i
        width = min(1.0, p / top) * (WIDE - left - right)
        colour, opacity = (TRUE, 1) if is_true else (COLOURS[0], 0.55)
        parts.append(text(left - 7, y + 11, name, "end", INK))
        if name != "others" or p <= top:
            parts.append(
                f'<rect x="{left:g}" y="{y:.4g}" width="{max(width, 0.6):.4g}" height="13" fill="{colour}" '
                f'fill-opacity="{opacity}"></rect>'
            )
        parts.append(text(left + width + 6, y + 11, share(p), colour=MUTED))
    told = listed([f"{name} {share(p)}" for name, p, _ in names], len(names))
    return svg(
        WIDE, 8 + 19.0 * len(names), f"What a record with {row.label} may be reported as: {told}.", parts
    )
