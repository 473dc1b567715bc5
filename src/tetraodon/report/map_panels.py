"""Several small maps of one box in one picture: one for each group, all of one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .density import Field, Ints
from .maps import GROUND, LETTER, WIDTH, Window, cells, strip, svg, text
from .shades import shades
from .svg import COLOURS, INK
from .words import short

PANELS = 16
GAP = 14.0
TITLE = 18.0
TALLEST = 150.0
LEGEND = 48.0
RING = COLOURS[1]


@dataclass(frozen=True, eq=False)
class Panel:
    """One map: its title, its counts (shape of the field), and the cell that has a ring."""

    title: str
    grid: Ints
    ring: tuple[int, int] | None = None


def side_by_side(field: Field, panels: Sequence[Panel], unit: str, label: str, nothing: str) -> str:
    """Small maps in rows, their titles above, with one legend below.

    Args:
        unit: what a shade counts.
        label: for those who do not see it.
        nothing: what the legend calls a count of 0.
    """
    told = shades(np.concatenate([p.grid.ravel() for p in panels]), is_whole=True)
    columns = 2 if len(panels) < 3 else 3 if len(panels) <= 9 else 4
    across = (WIDTH - 2 - GAP * (columns - 1)) / columns
    tall, wide = field.sides
    pixels = min(across / (field.shape[1] * wide), TALLEST / (field.shape[0] * tall))
    window = Window((0, field.shape[0]), (0, field.shape[1]), (tall * pixels, wide * pixels))
    height = window.size[1]
    parts = []
    for i, panel in enumerate(panels):
        row, column = divmod(i, columns)
        left, top = 1 + column * (across + GAP), TITLE + row * (height + TITLE + GAP)
        title = short(panel.title, max(4, int(across / LETTER)))
        parts.append(text(left, top - 6, title, colour=INK))
        parts.append(cells(panel.grid, told, window, (left, top)))
        if panel.ring is not None:
            x = left + (panel.ring[1] + 0.5) * window.scale[1]
            y = top + height - (panel.ring[0] + 0.5) * window.scale[0]
            parts.append(_ring(x, y, max(3.0, min(6.0, 0.36 * min(window.scale)))))
    below = math.ceil(len(panels) / columns) * (height + TITLE + GAP)
    if told is None:
        return svg(WIDTH, below, label, parts)
    parts.append(strip(told, unit, (1, below + 12), nothing))
    # The legend may be wider than the maps; then the whole picture is drawn a little smaller.
    room = 1 + sum(max(34.0, LETTER * len(name) + 8) for name in (nothing, *told.labels))
    return svg(max(float(WIDTH), room), below + LEGEND, label, parts)


def _ring(x: float, y: float, radius: float) -> str:
    return "".join(
        f'<circle cx="{x:.4g}" cy="{y:.4g}" r="{radius:.3g}" fill="none" stroke="{colour}" stroke-width="{thick}"></circle>'
        for colour, thick in ((GROUND, "3"), (RING, "1.6"))
    )
