"""Places: one attribute over two columns, in a grid of half-open cells over a declared box.

The box is cut into the fewest equal rows and columns whose cells are no longer than declared, so that cells fill the box
exactly and their sides are exact rationals. Row 0 is at the low end of the first coordinate, column 0 at the low end of the
second one; cells are numbered row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from .cellular import MISSING_LABEL, Cells, Cellular, Missing
from .errors import SpecificationError
from .exact import Number, exact, show
from .lengths import LENGTHS, NORTH, cosine, measured
from .numeric import Numeric
from .reading import elements, kind_of, listed, name_or_none

MAX_SIDE = 2**24
# Coordinates of centres are whole numbers of a half or of a hundredth of half the shorter side.
_FINE = 100


@dataclass(frozen=True)
class Point(Cellular):
    """Places on a map or in a plane: **one** attribute over two columns.

    Args:
        first, second: names of the two columns: latitude and longitude in degrees, or any two plane coordinates.
        box: ((first_low, first_high), (second_low, second_high)). Values outside are clipped, each coordinate by
            itself, which puts a place into the nearest cell of the box.
        cell: longest side of a cell, such as "250 m", "10 km" or a number in ``unit``.
        metric: "local" (degrees, measured in local metres at the middle of the box: a degree north is 111,195.08 m, a
            degree east that times the cosine of the middle latitude) or "planar" (coordinates are lengths already).
        unit: of distances; metres unless told otherwise. For "planar" the unit of the coordinates themselves.
        missing: as for every attribute; a place is missing if either coordinate is.

    Raises:
        SpecificationError: a box that is empty or not on the map, a cell that is no length.

    >>> home = Point("lat", "lon", box=((48, 49), (1, 3)), cell="10 km")
    >>> home.shape, home.cells([(48.0, 1.0), (48.5, 2.0), (90, 180)]).tolist()
    ((12, 15), [0, 97, 179])
    """

    first: str
    second: str
    box: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]
    longest: Fraction
    metric: str = "local"
    unit: str | None = "m"
    kind = "point"

    def __init__(
        self,
        first: str,
        second: str,
        *,
        box: Sequence[Sequence[Number]],
        cell: Number,
        metric: str = "local",
        unit: str | None = None,
        missing: Missing = "refuse",
    ) -> None:
        for name in (first, second):
            if not isinstance(name, str) or not name:
                raise SpecificationError(f"point: the names of two columns, as texts, not {kind_of(name)}.")
        if first == second:
            raise SpecificationError("point: two different columns.")
        if metric not in ("local", "planar"):
            raise SpecificationError('metric: "local" (degrees) or "planar" (lengths).')
        name_or_none(unit, "unit")
        if metric == "local":
            unit = "m" if unit is None else unit
            if unit not in LENGTHS:
                raise SpecificationError(f"unit: a length, one of {', '.join(LENGTHS)}.")
        bounds = _box(box)
        for name, value in (
            ("first", first), ("second", second), ("box", bounds), ("metric", metric), ("unit", unit), ("missing", missing),
            ("column", (first, second)),
        ):  # fmt: skip
            object.__setattr__(self, name, value)
        super().__post_init__()
        if metric == "local":
            _check_on_map(bounds)
        longest = measured(cell, unit, "cell")
        if longest <= 0:
            raise SpecificationError("cell: must be above 0.")
        object.__setattr__(self, "longest", longest)
        _ = self.sides  # too many cells are reported here

    @cached_property
    def scale(self) -> tuple[Fraction, Fraction]:
        """Length, in ``unit``, of one step of each coordinate."""
        if self.metric == "planar":
            return Fraction(1), Fraction(1)
        north = NORTH / LENGTHS[self.unit or "m"]
        return north, north * cosine(sum(self.box[0], Fraction(0)) / 2)

    @cached_property
    def sides(self) -> tuple[Numeric, Numeric]:
        """The two coordinates as numbers in equal cells."""
        made = []
        for (low, high), scale in zip(self.box, self.scale, strict=True):
            count = -int(-(high - low) * scale // self.longest)
            if count > MAX_SIDE:
                raise SpecificationError(
                    "cell: more than 2^24 cells along one side of the box; declare longer cells."
                )
            try:
                made.append(Numeric(low, high, cells=count))
            except SpecificationError:
                raise SpecificationError(
                    "box: the boundaries of its cells need more than 51 bits; use rounder numbers."
                ) from None
        return made[0], made[1]

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.sides[0].n_cells, self.sides[1].n_cells

    @property
    def lengths(self) -> tuple[Fraction, Fraction]:
        """Sides of a cell in ``unit``, exact: along the first coordinate, along the second."""
        return self.sides[0].width * self.scale[0], self.sides[1].width * self.scale[1]

    @property
    def n_values(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def ordered(self) -> bool:
        return False

    def columns(self, name: str) -> tuple[str, ...]:
        return self.first, self.second

    def cells(self, values: object) -> Cells:
        """Cell of each place.

        Args:
            values: array-like of shape (…, 2): pairs of first and second coordinate.
        """
        array = elements(values)
        if not array.ndim or array.shape[-1] != 2:
            raise SpecificationError("values: pairs of numbers, one pair for each place.")
        row, column = (side.cells(array[..., i]) for i, side in enumerate(self.sides))
        return self._finish(row * self.shape[1] + column, (row < 0) | (column < 0))

    def cell(self, value: object, where: str = "value") -> int:
        """Cell of a declared place: a pair of numbers within the box, or the label of a cell."""
        if isinstance(value, str):
            if value == MISSING_LABEL and self.missing_cell is not None:
                return self.missing_cell
            value = tuple(value.split())
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise SpecificationError(f"{where}: a place: a pair of numbers, or the label of a cell.")
        row, column = (side.cell(v, where) for side, v in zip(self.sides, value, strict=True))
        return row * self.shape[1] + column

    def _label(self, cell: int) -> str:
        """The middle of the cell, with as many decimals as keep it well inside."""
        row, column = divmod(int(cell), self.shape[1])
        return f"{self._middles[0][row]} {self._middles[1][column]}"

    @cached_property
    def _middles(self) -> tuple[list[str], list[str]]:
        """Names of the rows and of the columns."""
        rows, columns = ([self._middle(i, k, k) for k in range(n)] for i, n in enumerate(self.shape))
        return rows, columns

    def _middle(self, side: int, low: int, high: int) -> str:
        """The middle of a run of rows (side 0) or columns (side 1)."""
        line = self.sides[side]
        digits = 0
        while line.width * 10**digits < 10:
            digits += 1
        return _decimal(line.low + line.width * Fraction(low + high + 1, 2), digits)

    def block_labels(self, tops: list[int], lefts: list[int]) -> list[str]:
        """Names of blocks of cells, row by row: the middle of each.

        Args:
            tops, lefts: the first row of every run of rows, the first column of every run of columns, from 0 on.
        """
        rows, columns = (
            [self._middle(i, low, high - 1) for low, high in zip(cut, [*cut[1:], n], strict=True)]
            for i, (cut, n) in enumerate(zip((tops, lefts), self.shape, strict=True))
        )
        return [f"{row} {column}" for row in rows for column in columns]

    def centres(self) -> tuple[Cells, Fraction]:
        """Middles of the ordinary cells on an integer grid, for sums.

        Returns:
            Coordinates, int64, shape (n_values, 2), counted from the low corner of the box, and the length of one grid
            step in ``unit``. Exact where cells are squares; otherwise rounded to the nearest hundredth of half the
            shorter side, a public rule that is part of the question and no error of the answer's noise.
        """
        height, width = self.lengths
        unit = min(height, width) / (2 if height == width else 2 * _FINE)
        axes = []
        for length, count in zip((height, width), self.shape, strict=True):
            half = length / unit / 2
            top, bottom = half.numerator, half.denominator
            axes.append(
                np.array(
                    [(2 * (2 * i + 1) * top + bottom) // (2 * bottom) for i in range(count)], dtype=np.int64
                )
            )
        grid = np.stack(np.meshgrid(axes[0], axes[1], indexing="ij"), axis=-1)
        return grid.reshape(-1, 2), unit

    def to_spec(self) -> dict[str, Any]:
        told = f"{show(self.longest)} {self.unit}" if self.unit else show(self.longest)
        spec: dict[str, Any] = {
            "point": [self.first, self.second],
            "box": [[show(low), show(high)] for low, high in self.box],
            "cell": told,
        }
        if self.metric != "local":
            spec["metric"] = self.metric
        if self.unit is not None and (self.metric, self.unit) != ("local", "m"):
            spec["unit"] = self.unit
        return spec | ({} if self.missing == "refuse" else {"missing": self.missing})


def _box(box: object) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    expected = "two pairs of bounds, ((low, high), (low, high))"
    pairs = [listed(pair, "box", expected) for pair in listed(box, "box", expected)]
    if len(pairs) != 2 or any(len(pair) != 2 for pair in pairs):
        raise SpecificationError(f"box: {expected}.")
    (a, b), (c, d) = ([exact(v, "box") for v in pair] for pair in pairs)
    if a >= b or c >= d:
        raise SpecificationError("box: each low bound must lie below its high bound.")
    return (a, b), (c, d)


def _check_on_map(box: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]) -> None:
    (south, north), (west, east) = box
    if south < -90 or north > 90:
        raise SpecificationError("box: latitudes, which come first, lie from −90 to 90.")
    if west < -360 or east > 360 or east - west > 360:
        raise SpecificationError("box: longitudes lie from −360 to 360 and span 360 degrees at most.")


def _decimal(number: Fraction, digits: int) -> str:
    """A number rounded to some decimals, by integer arithmetic.

    >>> _decimal(Fraction(-1, 3), 3), _decimal(Fraction(5, 2), 0)
    ('-0.333', '2')
    """
    scaled = round(number * 10**digits)
    whole, part = divmod(abs(scaled), 10**digits)
    sign = "-" if scaled < 0 else ""
    return f"{sign}{whole}.{part:0{digits}d}" if digits else f"{sign}{whole}"
