"""Cells as points: whole coordinates of every declared cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ..attributes import Attribute, Categorical, Point
from ..axes import Bools, Ints
from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..mechanisms.variance import Floats

LARGEST = 2**28
MAX_CELLS = 2**20


@dataclass(frozen=True, eq=False)
class Space:
    """Middles of the cells on a whole-number lattice, measured from the corner of the box.

    Attributes:
        domain: the attributes that are clustered, in declared order.
        lines: one increasing int64 array per coordinate: its values at the cells along it.
        of: the attribute of each coordinate (its number in the domain).
        unit: length of one step, in which distances are measured.
        scale: what one step is in the published unit of each coordinate (degrees, for a place on a map).
        corner: the point 0 in these units.
        names: names of the coordinates.
    """

    domain: Domain
    lines: tuple[Ints, ...]
    of: tuple[int, ...]
    unit: Fraction
    scale: tuple[Fraction, ...]
    corner: tuple[Fraction, ...]
    names: tuple[str, ...]

    @property
    def extents(self) -> Ints:
        """Shape (d,): the largest value of each coordinate (the smallest is 0)."""
        return np.array([int(line[-1]) for line in self.lines], dtype=np.int64)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each coordinate."""
        return tuple(len(line) for line in self.lines)

    @cached_property
    def has_special(self) -> bool:
        """Whether some declared cell is no place (``other``, ``missing``): its records belong to no cluster."""
        return any(a.size > a.n_values for a in self.domain.values())

    def places(self, codes: Ints) -> tuple[Ints, Bools]:
        """Coordinates of whole-domain cells, shape (n, d), and which of them are places (0 where they are not)."""
        found = np.zeros((len(codes), len(self.lines)), dtype=np.int64)
        inside = np.ones(len(codes), dtype=bool)
        each = zip(self.domain.values(), self.domain.decode(codes), strict=True)
        for at, (attribute, cells) in enumerate(each):
            ordinary = cells < attribute.n_values
            inside &= ordinary
            rest = np.where(ordinary, cells, 0)
            dims = [i for i, a in enumerate(self.of) if a == at]
            for i in reversed(dims):
                rest, step = np.divmod(rest, len(self.lines[i]))
                found[:, i] = self.lines[i][step]
        return np.where(inside[:, None], found, 0), inside

    def codes(self, coordinates: Floats) -> Ints:
        """The whole-domain cell whose middle is nearest to each point, coordinate by coordinate."""
        steps = []
        for i, line in enumerate(self.lines):
            between = (line[1:] + line[:-1]) / 2
            steps.append(np.searchsorted(between, coordinates[:, i]).astype(np.int64))
        cells = []
        for at in range(len(self.domain)):
            cell = np.zeros(len(coordinates), dtype=np.int64)
            for i, step in enumerate(steps):
                if self.of[i] == at:
                    cell = cell * len(self.lines[i]) + step
            cells.append(cell)
        return self.domain.encode(cells)

    def published(self, coordinates: Floats) -> Floats:
        """Coordinates in their published units."""
        scale, corner = (np.array([float(v) for v in told]) for told in (self.scale, self.corner))
        return np.asarray(coordinates * scale + corner)


def space(domain: Domain) -> Space:
    """The space of the attributes of a domain.

    Raises:
        SpecificationError: an attribute that is no number and no place.
        Unsupported: cells too fine for whole coordinates below 2^28.

    >>> from tetraodon import Integer
    >>> found = space(Domain(b=Integer(10, 14), g=Integer(0, 1)))
    >>> found.extents.tolist(), found.places(np.array([9]))[0].tolist(), str(found.corner[0])
    ([4, 1], [[4, 1]], '10')
    """
    if len(domain) > 1 and any(isinstance(a, Point) for a in domain.values()):
        raise SpecificationError("kmeans: a place is clustered by itself; name one attribute.")
    raw: list[_Line] = []
    for number, (name, attribute) in enumerate(domain.items()):
        raw += _lines(number, name, attribute)
    common = math.lcm(*(line.unit.denominator for line in raw))
    factors = [int(line.unit * common) for line in raw]
    whole = [[(v - r.values[0]) * f for v in r.values] for r, f in zip(raw, factors, strict=True)]
    step = math.gcd(*(v for line in whole for v in line)) or 1
    if max(line[-1] for line in whole) // step >= LARGEST:
        raise Unsupported("kmeans: the cells need coordinates beyond 2^28; declare coarser or rounder cells.")
    unit = Fraction(step, common)
    return Space(
        domain,
        tuple(np.array([v // step for v in line], dtype=np.int64) for line in whole),
        tuple(r.of for r in raw),
        unit,
        tuple(unit * r.factor for r in raw),
        tuple(r.low + r.values[0] * r.unit * r.factor for r in raw),
        tuple(r.name for r in raw),
    )


@dataclass(frozen=True)
class _Line:
    """One coordinate: values in a unit, and how they are published: low + value · unit · factor."""

    of: int
    name: str
    values: list[int]
    unit: Fraction
    low: Fraction = Fraction(0)
    factor: Fraction = Fraction(1)


def _lines(number: int, name: str, attribute: Attribute) -> list[_Line]:
    if isinstance(attribute, Point):
        points, unit = attribute.centres()
        told = zip(attribute.columns(name), attribute.box, attribute.scale, strict=True)
        return [
            _Line(number, column, np.unique(points[:, i]).tolist(), unit, low, 1 / scale)
            for i, (column, (low, _), scale) in enumerate(told)
        ]
    if isinstance(attribute, Categorical):
        raise SpecificationError(f"kmeans: {name} is categorical; only numbers and places have distances.")
    if attribute.n_values > MAX_CELLS:
        raise Unsupported(f"kmeans: {name} has more than 2^20 cells; declare coarser cells.")
    numerators, denominator = attribute.midpoints()
    return [_Line(number, name, list(numerators), Fraction(1, denominator))]
