"""A published histogram of places, drawn as the map that it is: one map, or one for each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attributes import Point
from ..domain import Domain
from .answers import Group, View
from .density import Field, Ints, field_of
from .document import Entry
from .frames import largest
from .map_panels import PANELS, Panel, side_by_side
from .maps import MOST, Picture, density, length_words
from .spots import axes_note, spot
from .words import counted, size

LARGEST = 2**22  # cells of a place that are looked at for a map of its blocks


@dataclass(frozen=True, eq=False)
class Squares:
    """The positions of an axis as squares on a map.

    Attributes:
        field: how they lie; a position is a block of ``side`` × ``side`` cells.
        counts: rows and columns of the place's own grid, in blocks.
        names: of all positions, special cells last.
    """

    field: Field
    counts: tuple[int, int]
    side: int
    names: tuple[str, ...]

    @property
    def ordinary(self) -> int:
        """How many have a place on the map."""
        return self.counts[0] * self.counts[1]

    def grid(self, amounts: NDArray[Any]) -> NDArray[Any]:
        """Amounts of all positions as drawn, row 0 lowest."""
        found = amounts[: self.ordinary].reshape(self.counts)
        return found.T if self.field.is_turned else found

    def at(self, position: int) -> tuple[int, int]:
        """Row and column of a position as drawn."""
        row, column = divmod(position, self.counts[1])
        return (column, row) if self.field.is_turned else (row, column)


def place_map(entry: Entry, seen: View, declared: Mapping[str, Mapping[str, Any]]) -> Picture | None:
    """The map of a histogram of places; None for everything else, and where there are too many squares to draw each.

    Squares that may as well hold none are left blank. No sums are drawn: they have no published interval.
    """
    squares = _squares(entry, seen, declared) if entry.word == "histogram" else None
    if squares is None or squares.ordinary > MOST:
        return None
    half = 0.0 if entry.loss.is_zero or entry.half_width is None else entry.half_width
    drawn = (
        _one(seen, squares, half) if len(seen.groups) == 1 else _several(entry, seen, squares, half, declared)
    )
    notes = [*drawn.notes]
    if half:
        notes.append(f"Blank: cells of up to {size(half)}, the ±, which may as well hold none.")
    if any(g.hidden is not None for g in seen.groups):
        notes.append("Blank too: numbers that are not shown.")
    return Picture(drawn.svg, tuple(notes))


def _squares(entry: Entry, seen: View, declared: Mapping[str, Mapping[str, Any]]) -> Squares | None:
    """Where the positions of the axis lie; None where they are no whole grid of equal squares of a place."""
    if "point" not in declared.get(seen.along, {}):
        return None
    domain = Domain.from_spec({seen.along: declared[seen.along]})
    place, field = domain[seen.along], field_of(domain)
    assert isinstance(place, Point) and field is not None
    side = _side(entry, seen.along)
    if side is None or place.n_values > LARGEST:
        return None
    tops, lefts = (list(range(0, n, side)) for n in place.shape)
    counts = len(tops), len(lefts)
    if not 1 < counts[0] * counts[1] <= MOST:
        return None
    ordinary = place.block_labels(tops, lefts)
    names = [*ordinary, *(place.label(c) for c in range(place.n_values, place.size))]
    told = tuple(spot(name, declared[seen.along]) for name in names)
    if seen.axis.labels != told:
        return None
    shape = counts[::-1] if field.is_turned else counts
    wide = replace(field, shape=shape, step=_times(field.step, side), sides=_times(field.sides, side))
    return Squares(wide, counts, side, told)


def _side(entry: Entry, name: str) -> int | None:
    """How many cells a side the squares of a place have; None where their rows and columns are stated one by one."""
    bins = entry.query.get("bins")
    told = bins.get(name, 1) if isinstance(bins, Mapping) else 1
    if isinstance(told, str) and told.isdecimal() and len(told) <= 9:
        told = int(told)
    return told if isinstance(told, int) and told > 0 else None


def _times(pair: tuple[float, float], factor: int) -> tuple[float, float]:
    return pair[0] * factor, pair[1] * factor


def _amounts(group: Group, half: float) -> Ints:
    """Whole numbers to shade, 0 where there may as well be none."""
    shaded: Ints = np.rint(np.where(group.value > half, group.value, 0)).astype(np.int64)
    return shaded


def _one(seen: View, squares: Squares, half: float) -> Picture:
    [group] = seen.groups
    amounts = _amounts(group, half)
    most = int(np.argmax(amounts))
    label = f"Map of the number of {seen.measured} for every {seen.axis.title}. Most, about {amounts[most]:,}, in {squares.names[most]}."
    drawn = density(squares.field, squares.grid(amounts), seen.measured, label, nothing=_nothing(half))
    notes = [*drawn.notes]
    if len(squares.names) > squares.ordinary:
        special = ", ".join(
            f"{name} {round(float(value)):,}"
            for name, value in zip(
                squares.names[squares.ordinary :], group.value[squares.ordinary :], strict=True
            )
        )
        notes.append(f"Not on the map: {special}.")
    return Picture(drawn.svg, tuple(notes))


def _nothing(half: float) -> str:
    return f"up to {size(half)}" if half else "none"


def _several(
    entry: Entry, seen: View, squares: Squares, half: float, declared: Mapping[str, Mapping[str, Any]]
) -> Picture:
    """A map for every group. Where the groups are places of the same grid, each has a ring on its own."""
    groups, cut = largest(seen.groups, PANELS, lambda g: float(g.value[: squares.ordinary].sum()))
    own = _own(entry, squares, seen.along, declared)
    shown = [_amounts(g, half) for g in groups]
    panels = [
        Panel(g.label, squares.grid(amounts), own.get(g.label))
        for g, amounts in zip(groups, shown, strict=True)
    ]
    peak = max(range(len(groups)), key=lambda i: int(shown[i].max()))
    cell = int(np.argmax(shown[peak]))
    label = (
        f"Maps of the number of {seen.measured} for every {seen.axis.title}, by {seen.by}, all of one scale. Most, about "
        f"{shown[peak][cell]:,}, in {squares.names[cell]}, {groups[peak].label}."
    )
    field = squares.field
    what = "square" if abs(field.sides[0] - field.sides[1]) < 1e-9 * field.sides[0] else "cell"
    notes = [f"One map for each {seen.by}: the whole box{_extent(field)}. All are of one scale."]
    if own:
        [other] = [n for n in entry.attributes if n != seen.along]
        notes.append(f"The ring is that place itself. {axes_note(declared[other])}")
    if len(squares.names) > squares.ordinary:
        special = counted(len(squares.names) - squares.ordinary, "special cell")
        notes.append(f"Not on the maps: {special}; in the file.")
    drawn = side_by_side(field, panels, f"{seen.measured} a {what}", label, _nothing(half))
    return Picture(drawn, (*notes, *([cut] if cut else [])))


def _extent(field: Field) -> str:
    if not field.unit:
        return ""
    tall, wide = (length_words(n * s, field.unit) for n, s in zip(field.shape, field.sides, strict=True))
    high, broad = (length_words(s, field.unit) for s in field.sides)
    cells = f"{high} a side" if high == broad else f"{broad} × {high}"
    return f", {wide} × {tall}, in cells of {cells}"


def _own(
    entry: Entry, squares: Squares, along: str, declared: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[int, int]]:
    """Where the groups themselves lie, if they are the places of one other attribute with the same grid."""
    others = [n for n in entry.attributes if n != along]
    if len(others) != 1:
        return {}
    [name] = others
    shape = ("box", "cell", "metric", "unit")
    other, own = declared.get(name, {}), declared[along]
    if any(other.get(key) != own.get(key) for key in shape) or _side(entry, name) != squares.side:
        return {}
    return {squares.names[i]: squares.at(i) for i in range(squares.ordinary)}
