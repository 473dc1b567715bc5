"""One axis of a clamped grid: the ways in which an output is reached, and sums over them.

Seen along an axis of n cells, an output inside is reached from cell a by one offset (a *point*, −(n − 2) to n − 2), the low
border by every offset ≤ −a (*lower*, −(n − 1) to 0) and the high border by every offset ≥ n − 1 − a (*upper*, 0 to n − 1).
These states stand in a row in that order. Without inner cells (n ≤ 2) there are no points; one cell has one state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import Ints
from .geometry import Floats


@dataclass(frozen=True)
class States:
    """The states of one axis of n cells.

    >>> axis = States(3)
    >>> axis.offsets.tolist(), axis.seen(np.array([0, 2])).tolist()
    ([1, 2, 3, 0, 1, 2, 2, 3, 4], [[5, 2, 8], [3, 0, 6]])
    """

    n: int

    @property
    def _points(self) -> int:
        return max(2 * self.n - 3, 0) if self.n > 2 else 0

    @cached_property
    def kinds(self) -> tuple[slice, ...]:
        """Where the states of each kind are."""
        if self.n == 1:
            return (slice(0, 1),)
        p, n = self._points, self.n
        return tuple(s for s in (slice(0, p), slice(p, p + n), slice(p + n, p + 2 * n)) if s.stop > s.start)

    @cached_property
    def offsets(self) -> Ints:
        """The offset of each state from the cell to the output, as an index into 2n − 1 of them."""
        if self.n == 1:
            return np.zeros(1, dtype=np.int64)
        n = self.n
        points = np.arange(1, 2 * n - 2) if self._points else np.zeros(0, dtype=np.int64)
        return np.concatenate([points, np.arange(n), np.arange(n - 1, 2 * n - 1)])

    def sums(self, table: Floats, axis: int) -> Floats:
        """The offset table with its axis of 2n − 1 offsets replaced by states."""
        if self.n == 1:
            return table
        n, told = self.n, np.moveaxis(table, axis, 0)
        points = told[1 : 2 * n - 2] if self._points else told[:0]
        lower = np.cumsum(told, axis=0)[:n]
        upper = np.cumsum(told[::-1], axis=0)[::-1][n - 1 :]
        return np.moveaxis(np.concatenate([points, lower, upper]), 0, axis)

    def seen(self, cells: Ints) -> Ints:
        """Shape (cells, n): the state of every output from each cell."""
        if self.n == 1:
            return np.zeros((len(cells), 1), dtype=np.int64)
        n, p = self.n, self._points
        found = np.arange(n)[None, :] - cells[:, None] + (n - 2)  # point offset z − a, from −(n − 2) on
        found[:, 0] = p + (n - 1) - cells  # lower: offset −a, from −(n − 1) on
        found[:, -1] = p + n + (n - 1) - cells  # upper: offset n − 1 − a, from 0 on
        return found

    def totals(self, table: Floats, axis: int) -> Floats:
        """Sums over the outputs of every cell: the axis of states becomes one of n cells."""
        if self.n == 1:
            return table
        n, p, told = self.n, self._points, np.moveaxis(table, axis, 0)
        cells = np.arange(n)
        found = told[p + (n - 1) - cells] + told[p + n + (n - 1) - cells]
        if p:
            below = np.concatenate([np.zeros_like(told[:1]), np.cumsum(told[:p], axis=0)])
            found = found + below[2 * n - 3 - cells] - below[n - 1 - cells]  # point offsets 1 − a … n − 2 − a
        return np.moveaxis(found, 0, axis)


def clamped(table: NDArray[Any], n: int, axis: int) -> NDArray[Any]:
    """Positions −(n − 1) … 2n − 2 along an axis, those outside the n cells added to the border."""
    told = np.moveaxis(table, axis, 0)
    found = told[n - 1 : 2 * n - 1].copy()
    found[0] += told[: n - 1].sum(axis=0)
    found[-1] += told[2 * n - 1 :].sum(axis=0)
    return np.moveaxis(found, 0, axis)


def fast_length(least: int) -> int:
    """The least 2^i 3^j 5^k of at least this, a length that transforms are fast for."""
    return min(_smooth(least))


def _smooth(least: int) -> Iterator[int]:
    five = 1
    while five < 5 * least:
        three = five
        while three < 3 * least:
            found = three
            while found < least:
                found *= 2
            yield found
            three *= 3
        five *= 5
