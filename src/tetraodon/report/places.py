"""A published histogram of places, drawn as the map that it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..attributes import Point
from ..domain import Domain
from .answers import View
from .density import Ground, field_of
from .document import Entry
from .maps import MOST, Picture, density
from .words import size


def place_map(entry: Entry, seen: View, declared: Mapping[str, Mapping[str, Any]]) -> Picture | None:
    """The map of a histogram of places; None for everything else, and where there are too many cells to draw each.

    Cells that may as well hold none are left blank. Blocks of cells are not drawn: their sums have no published interval.
    """
    names = entry.attributes
    if entry.word != "histogram" or len(names) != 1 or names[0] not in declared or len(seen.groups) != 1:
        return None
    domain = Domain.from_spec({names[0]: declared[names[0]]})
    place, [group] = domain[names[0]], seen.groups
    if not isinstance(place, Point) or not 1 < place.n_values <= MOST or len(group.value) != place.size:
        return None
    if list(seen.axis.labels) != [place.label(c) for c in range(place.size)]:
        return None
    ground = Ground(domain, field_of(domain))
    assert ground.field is not None
    half = 0.0 if entry.loss.is_zero or entry.half_width is None else entry.half_width
    amounts = np.rint(np.where(group.value > half, group.value, 0)).astype(np.int64)
    most = int(np.argmax(amounts))
    label = f"Map of the number of {seen.measured} for every {seen.axis.title}. Most, about {amounts[most]:,}, in {place.label(most)}."
    nothing = f"up to {size(half)}" if half else "none"
    drawn = density(ground.field, ground.grid(amounts), seen.measured, label, nothing=nothing)
    notes = [*drawn.notes]
    if half:
        notes.append(f"Blank: cells of up to {size(half)}, the ±, which may as well hold none.")
    if place.size > place.n_values:
        special = ", ".join(
            f"{place.label(c)} {round(float(group.value[c])):,}" for c in range(place.n_values, place.size)
        )
        notes.append(f"Not on the map: {special}.")
    return Picture(drawn.svg, tuple(notes))
