"""Integer rows over several attributes at once: a Kronecker product of one matrix per attribute.

A record at x = (x_1, …, x_m) adds the column ⊗ B_j e_{x_j} to the rows, so that

    ‖Δ‖₂² = Π n_j(x_j) + Π n_j(y_j) − 2 Π G_j[x_j, y_j],    G_j = B_jᵀB_j, n_j its diagonal,

and a move of attribute j alone costs ‖B_j (e_x − e_y)‖^p · Π_{i≠j} ‖B_i e_{x_i}‖^p. Derived; all of it in exact integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from .gram import exact_gram

LARGEST = 2**61
CHUNK = 1 << 22
MAX_WORK = 2_000_000_000


@dataclass(frozen=True, eq=False)
class Joint:
    """Rows over the cells of a query, groups first, then its axis, row-major.

    Attributes:
        factors: shape (rows, positions) of every attribute.
        power: 2 measures squared differences, as Gaussian noise does.

    >>> Joint((np.eye(2, dtype=np.int64), np.ones((1, 3), dtype=np.int64))).difference(np.array([0, 0]), np.array([2, 3])).tolist()
    [0, 2]
    """

    factors: tuple[Ints, ...]
    weight: int = 1
    power: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions of every attribute."""
        return tuple(int(f.shape[1]) for f in self.factors)

    @property
    def size(self) -> int:
        """Cells."""
        return math.prod(self.shape)

    @property
    def count(self) -> int:
        """Rows."""
        return math.prod(len(f) for f in self.factors)

    @cached_property
    def norms(self) -> tuple[Ints, ...]:
        """Σ_r |B_j[r, a]|^power of every attribute, shape (positions,)."""
        if self.power == 2:
            return tuple(g.diagonal() for g in self._grams)
        if any(int(np.abs(f).max(initial=0)) * len(f) >= LARGEST for f in self.factors):
            raise Unsupported("the rows are too large to price exactly; use fewer bits.")
        return tuple(np.abs(f).sum(axis=0) for f in self.factors)

    @property
    def ceiling(self) -> int:
        """No move of a record changes the weighted rows by more."""
        step = 4 if self.power == 2 else 2
        return self.weight * step * math.prod(int(n.max(initial=0)) for n in self.norms)

    @cached_property
    def _grams(self) -> tuple[Ints, ...]:
        return tuple(exact_gram(f) for f in self.factors)

    def difference(self, a: Ints, b: Ints) -> Ints:
        """Unweighted Σ_r |A[r, a] − A[r, b]|^power for arrays of cells, ``size`` meaning nowhere."""
        a, b = np.broadcast_arrays(a, b)
        x, y = self._place(a), self._place(b)
        own = [math.prod(n[i] for n, i in zip(self.norms, at, strict=True)) for at in (x, y)]
        p, q = (np.where(told < self.size, n, 0) for told, n in zip((a, b), own, strict=True))
        both = (a < self.size) & (b < self.size)
        if self.power == 2:
            cross = math.prod(g[i, j] for g, i, j in zip(self._grams, x, y, strict=True))
            return np.asarray(p + q - 2 * np.where(both, cross, 0))
        found = np.where(both, 0, p + q)
        differ = np.stack([i != j for i, j in zip(x, y, strict=True)]).reshape(len(x), -1)
        apart = np.flatnonzero(both.ravel() & differ.any(axis=0))
        flat = found.reshape(-1).copy()
        ends = [np.stack([i.ravel()[apart], j.ravel()[apart]]) for i, j in zip(x, y, strict=True)]
        single = differ[:, apart].sum(axis=0) == 1
        flat[apart[single]] = self._one([e[:, single] for e in ends], differ[:, apart[single]])
        flat[apart[~single]] = self._many([e[:, ~single] for e in ends])
        return flat.reshape(found.shape)

    def _place(self, cells: Ints) -> tuple[Ints, ...]:
        inside = np.where(cells < self.size, cells, 0)
        return tuple(np.asarray(i) for i in np.unravel_index(inside, self.shape))

    def _one(self, ends: list[Ints], differ: Ints) -> Ints:
        """Pairs that differ in one attribute."""
        total = np.ones(differ.shape[1], dtype=np.int64)
        for factor, norm, (i, j), moved in zip(self.factors, self.norms, ends, differ, strict=True):
            step = np.zeros(len(i), dtype=np.int64)
            for row in factor:
                step += np.abs(row[i] - row[j])
            total *= np.where(moved, step, norm[i])
        return total

    def _many(self, ends: list[Ints]) -> Ints:
        """Pairs that differ in several attributes, row by row."""
        count = ends[0].shape[1]
        if count * self.count > MAX_WORK:
            raise Unsupported("this release has too many rows for this secret graph.")
        found, step = np.zeros(count, dtype=np.int64), max(1, CHUNK // max(self.count, 1))
        for at in range(0, count, step):
            part = [e[:, at : at + step] for e in ends]
            sides = []
            for side in (0, 1):
                whole = np.ones((part[0].shape[1], 1), dtype=np.int64)
                for factor, cells in zip(self.factors, part, strict=True):
                    column = factor[:, cells[side]].T
                    whole = (whole[:, :, None] * column[:, None, :]).reshape(len(column), -1)
                sides.append(whole)
            found[at : at + step] = np.abs(sides[0] - sides[1]).sum(axis=1)
        return found

    def applied(self, table: Ints) -> Ints:
        """Exact values of the rows, one axis per attribute, of a table of counts in any form with the right cells in order.

        >>> Joint((np.ones((1, 2), dtype=np.int64), np.eye(2, dtype=np.int64))).applied(np.array([[1, 2], [3, 4]])).tolist()
        [[4, 6]]
        """
        values = table.reshape(self.shape)
        for axis, factor in enumerate(self.factors):
            values = np.moveaxis(np.tensordot(factor, values, axes=(1, axis)), 0, axis)
        return values
