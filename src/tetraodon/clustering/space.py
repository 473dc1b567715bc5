"""Cells as points: whole coordinates of every declared cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..attributes import Attribute, Categorical
from ..axes import Bools, Ints
from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..mechanisms.variance import Floats

LARGEST = 2**28
MAX_CELLS = 2**22
NAMES = ("x", "y")


@dataclass(frozen=True, eq=False)
class Space:
    """Middles of the cells on a whole-number lattice, measured from the corner of the box.

    Attributes:
        domain: the attributes that are clustered, in declared order.
        lines: one increasing int64 array per coordinate: its values at the cells along it.
        of: the attribute of each coordinate (its number in the domain).
        unit: length of one step in the attributes' own unit.
        corner: the point 0 in that unit.
        names: names of the coordinates.
    """

    domain: Domain
    lines: tuple[Ints, ...]
    of: tuple[int, ...]
    unit: Fraction
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

    def in_units(self, coordinates: Floats) -> Floats:
        """Coordinates in the attributes' own unit."""
        return np.asarray(coordinates * float(self.unit) + np.array([float(c) for c in self.corner]))


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
    raw: list[tuple[list[int], Fraction]] = []
    of, names = [], []
    for number, (name, attribute) in enumerate(domain.items()):
        lines, unit = _lines(name, attribute)
        raw += [(line, unit) for line in lines]
        of += [number] * len(lines)
        names += [name] if len(lines) == 1 else [f"{name}_{NAMES[i]}" for i in range(len(lines))]
    common = math.lcm(*(unit.denominator for _, unit in raw))
    factors = [int(unit * common) for _, unit in raw]
    whole = [[(v - line[0]) * f for v in line] for (line, _), f in zip(raw, factors, strict=True)]
    step = math.gcd(*(v for line in whole for v in line)) or 1
    if max(line[-1] for line in whole) // step >= LARGEST:
        raise Unsupported("kmeans: the cells need coordinates beyond 2^28; declare coarser or rounder cells.")
    corner = tuple(Fraction(line[0] * f, common) for (line, _), f in zip(raw, factors, strict=True))
    arrays = tuple(np.array([v // step for v in line], dtype=np.int64) for line in whole)
    return Space(domain, arrays, tuple(of), Fraction(step, common), corner, tuple(names))


def _lines(name: str, attribute: Attribute) -> tuple[list[list[int]], Fraction]:
    """Values of the coordinates along an attribute's cells, and their unit."""
    centres: Any = getattr(attribute, "centres", None)
    if centres is not None:
        points, unit = centres()
        lines = [np.unique(points[:, i]).tolist() for i in range(points.shape[1])]
        grid = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, points.shape[1])
        if not np.array_equal(grid, points):
            raise Unsupported(f"kmeans: the cells of {name} are no grid.")
        return lines, Fraction(unit)
    if isinstance(attribute, Categorical):
        raise SpecificationError(f"kmeans: {name} is categorical; only numbers and places have distances.")
    if attribute.n_values > MAX_CELLS:
        raise Unsupported(f"kmeans: {name} has more than 2^22 cells; declare coarser cells.")
    numerators, denominator = attribute.midpoints()
    return [list(numerators)], Fraction(1, denominator)
