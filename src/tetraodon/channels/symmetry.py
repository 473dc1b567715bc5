"""Symmetries of a grid that a programme has: flips and, for a square, the turn of rows into columns.

Whatever leaves costs and bounds as they are leaves some optimum as it is. One column of each orbit is then enough (a square grid
under an even prior: an eighth of them). A symmetry counts only if the numbers show it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..axes import Ints
from .geometry import Floats

SAME = 1e-11  # relative


@dataclass(frozen=True, eq=False)
class Group:
    """Permutations of cells, closed under composition, the identity first; shape (members, cells), ``members[g][w]`` is where
    w goes.

    >>> Group.of_grid((1, 3)).members.tolist()
    [[0, 1, 2], [2, 1, 0]]
    """

    members: Ints

    @staticmethod
    def of_grid(shape: tuple[int, int]) -> Group:
        """All flips and turns of a grid of rows and columns onto itself."""
        cells = np.arange(shape[0] * shape[1], dtype=np.int64).reshape(shape)
        views = [cells, cells.T] if shape[0] == shape[1] else [cells]
        told = [v[::a, ::b].ravel() for v in views for a in (1, -1) for b in (1, -1)]
        return Group(np.array(list(dict.fromkeys(map(tuple, told))), dtype=np.int64))

    @staticmethod
    def trivial(count: int) -> Group:
        """The identity alone."""
        return Group(np.arange(count, dtype=np.int64)[None, :])

    def kept_by(self, *tables: Floats) -> Group:
        """The members that leave square tables as they are; they are a group again."""
        kept = [g for g in self.members if all(_same(t, t[np.ix_(g, g)]) for t in tables)]
        return Group(np.array(kept, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.members)

    @property
    def orbits(self) -> tuple[Ints, Ints, Ints]:
        """(one cell of each orbit, the orbit of every cell, the length of each orbit)."""
        first, orbit = np.unique(self.members.min(axis=0), return_inverse=True)
        return first, orbit.reshape(-1).astype(np.int64), np.bincount(orbit.reshape(-1)).astype(np.int64)

    def spread(self, columns: Floats, which: Ints) -> Floats:
        """The invariant table, shape (cells, cells), whose columns ``which`` average to these over the members that keep them."""
        found = np.zeros((len(columns), len(columns)))
        lengths = np.bincount(self.orbits[1])[self.orbits[1][which]]
        for g in self.members:
            found[np.ix_(g, g[which])] += columns * (lengths / len(self))
        return found


def _same(a: Floats, b: Floats) -> bool:
    with np.errstate(invalid="ignore"):
        apart = np.where(a == b, 0.0, np.abs(a - b))  # infinities are equal to themselves
    return bool((apart <= SAME * np.maximum(np.abs(a), np.abs(b))).all())
