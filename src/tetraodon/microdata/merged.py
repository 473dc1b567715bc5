"""A family of candidate groups over units: runs of neighbouring values that stay together, where values are very many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..axes import Ints
from .families import Family, Floats


@dataclass(frozen=True, eq=False)
class _Unions(Sequence[Ints]):
    units: Sequence[Ints]
    members: Sequence[Ints]

    def __len__(self) -> int:
        return len(self.members)

    @overload
    def __getitem__(self, place: int) -> Ints: ...
    @overload
    def __getitem__(self, place: slice) -> _Unions: ...
    def __getitem__(self, place: int | slice) -> Ints | _Unions:
        if isinstance(place, slice):
            return _Unions(self.units, self.members[place])
        return np.concatenate([self.units[unit] for unit in self.members[place].tolist()])


@dataclass(frozen=True, eq=False)
class Merged:
    """The candidates of a family whose values are units.

    Attributes:
        family: over the units.
        units: the values of each; together every value once.

    >>> from .families import intervals
    >>> pairs = Merged(intervals(2), [np.array([0, 1]), np.array([2, 3])])
    >>> [m.tolist() for m in pairs.members], pairs.counts_of(np.array([1, 2, 4, 8])).tolist()
    ([[0, 1], [0, 1, 2, 3], [2, 3]], [3, 15, 12])
    """

    family: Family
    units: Sequence[Ints]

    @cached_property
    def n(self) -> int:
        """How many values there are."""
        return sum(len(unit) for unit in self.units)

    @cached_property
    def members(self) -> Sequence[Ints]:
        """The values of each candidate."""
        return _Unions(self.units, self.family.members)

    def counts_of(self, per_value: NDArray[Any]) -> NDArray[Any]:
        """Sums of a table over every candidate."""
        table = np.asarray(per_value)
        return self.family.counts_of(np.array([table[unit].sum(axis=0) for unit in self.units]))

    def best(self, costs: Floats, groups: int | None = None) -> tuple[float, Ints] | None:
        """The least total price of parting all units into candidates; see ``Family``."""
        return self.family.best(costs, groups)


def units_of(order: Ints, rows: NDArray[Any], most: int) -> list[Ints]:
    """At most so many runs of an order with about equally many rows each, none of them empty of values.

    >>> [u.tolist() for u in units_of(np.array([2, 0, 1, 3]), np.array([1, 1, 1, 1]), 2)]
    [[2, 0], [1, 3]]
    """
    weight = np.asarray(rows, dtype=np.float64)[order] + 1e-9 * max(float(np.sum(rows)), 1.0) / len(order)
    place = np.cumsum(weight) - weight / 2
    unit = np.minimum((place / weight.sum() * most).astype(np.int64), most - 1)
    return np.split(order, np.flatnonzero(np.diff(unit)) + 1)
