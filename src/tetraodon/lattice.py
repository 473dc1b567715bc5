"""The secret graph of a place: cells of a map, in rows and columns.

``Lattice``: cell (i, j) is joined to (i + d, j ± k) for k up to a reach that depends on the row distance d and, for
great circles, on the row. The reach does not grow with d in the sense that nearer cells are joined too: if an offset
(d, k) is joined, so is every (d, k') with k' ≤ k. ``Blocks``: cells of one block are joined, blocks of any shape.

Both have the interface of ``Axis``; neither has an order that would make it an interval graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .axes import MAX_ARRAY, Axis, Bools, Ints
from .errors import Unsupported


@dataclass(frozen=True, eq=False)
class Grid(Axis):
    """What both graphs share: ordinary cells without an order, then stars that are joined to all cells or to none."""

    @property
    def is_interval(self) -> bool:
        return False

    @property
    def first(self) -> Ints:
        raise AssertionError("not an interval graph")

    @property
    def _is_closed(self) -> bool:
        return True

    def largest_partner(self, values: Ints, low: int) -> Ints:
        """Shape (base,): the largest value among every ordinary cell and those that it is joined to.

        Args:
            values: int64, shape (base,).
            low: at most every value.
        """
        raise AssertionError

    def partner(self, cell: int, wanted: Bools) -> int:
        """An ordinary cell that is joined to ``cell`` and wanted; there is one."""
        return int(np.argmax(self.joined(np.array(cell), np.arange(self.base)) & wanted))


@dataclass(frozen=True, eq=False)
class Lattice(Grid):
    """Edges between near cells of a map.

    Attributes:
        columns: of the map; cell (i, j) has number i·columns + j.
        reach: int64, shape (1 or rows, D + 1): cells (i, j) and (i + d, j ± k), 0 ≤ d ≤ D, are joined iff
            k ≤ reach[i, d] (−1 if not even k = 0), the cell itself aside. One row stands for all.

    Along a shortest path every column step can be taken towards the goal and none beyond it, since a shorter step within
    the same rows is allowed too; so the path stays between the two columns and the hops inside the map are those of an
    endless one. Where one row of ``reach`` stands for all, the same holds for rows.
    """

    columns: int = 1
    reach: Ints | None = None

    @property
    def rows(self) -> int:
        return self.base // self.columns

    @cached_property
    def _reach(self) -> Ints:
        assert self.reach is not None
        return np.minimum(self.reach, self.columns - 1)[:, : self.rows]

    @property
    def depth(self) -> int:
        """The largest row distance that an edge spans."""
        return int(self._reach.shape[1]) - 1

    @property
    def breadth(self) -> int:
        """The largest column distance that an edge spans."""
        return int(self._reach.max())

    @property
    def offsets(self) -> Ints:
        """Shape (depth + 1,): the largest column distance at every row distance, over all rows."""
        return np.asarray(self._reach.max(axis=0), dtype=np.int64)

    def _row_reach(self, d: int) -> Ints:
        """Reach from row i to row i + d, for every i that has one."""
        return np.broadcast_to(self._reach[: self.rows - d, d], (self.rows - d,))

    @property
    def has_inner_edges(self) -> bool:
        return bool((self._reach[:, 0] > 0).any()) or bool((self._reach[:, 1:] >= 0).any())

    @property
    def widest(self) -> tuple[int, tuple[int, int]]:
        for d in range(self.depth, -1, -1):
            told = self._row_reach(d)
            i = int(np.argmax(told))
            gap = d * self.columns + int(told[i])
            if told[i] >= 0 and gap > 0:
                return gap, (i * self.columns, i * self.columns + gap)
        return 0, (0, 0)

    def _inside(self, low: Ints, high: Ints) -> Bools:
        i, a = np.divmod(np.minimum(low, self.base - 1), self.columns)
        j, b = np.divmod(np.minimum(high, self.base - 1), self.columns)
        d = np.minimum(j - i, self.depth)
        told = self._reach[np.minimum(i, len(self._reach) - 1), d]
        return np.asarray((j - i <= self.depth) & (np.abs(a - b) <= told), dtype=bool)

    def inner_edges(self, chunk: int) -> Iterator[tuple[Ints, Ints]]:
        for d in range(self.depth + 1):
            told = self._row_reach(d)
            most = int(told.max(initial=-1))
            for k in range(-most if d else 1, most + 1):
                rows = np.flatnonzero(told >= abs(k))
                across = np.arange(max(0, -k), self.columns - max(0, k), dtype=np.int64)
                low = (rows[:, None] * self.columns + across[None, :]).ravel()
                for at in range(0, len(low), chunk):
                    part = low[at : at + chunk]
                    yield part, part + (d * self.columns + k)

    @property
    def _n_inner(self) -> int:
        count = 0
        for d in range(self.depth + 1):
            told = self._row_reach(d)
            sideways = told * self.columns - told * (told + 1) // 2
            count += int(np.where(told >= 0, 2 * sideways + self.columns if d else sideways, 0).sum())
        return count

    def _ordered_distance(self, low: int, high: int) -> int | None:
        """Hops by how far along the columns every row can be reached: one maximum over row steps for every hop."""
        (i, a), (j, b) = divmod(low, self.columns), divmod(high, self.columns)
        goal, wide = abs(a - b), self._reach
        if i == j and len(wide) == 1:
            return -(-goal // int(wide[0, 0])) if wide[0, 0] else None
        if a == b and len(wide) == 1:
            deepest = int(np.flatnonzero(wide[0] >= 0)[-1])
            return -(-(j - i) // deepest) if deepest else None
        uniform = len(wide) == 1
        start, stop = (i, j + 1) if uniform else (0, self.rows)
        far = np.full(stop - start, -1, dtype=np.int64)  # −1: the row is not reached yet
        far[i - start] = 0
        hops = 0
        while far[j - start] < goal:
            reached = far
            for d in range(min(self.depth, len(far) - 1) + 1):
                step = self._row_reach(d)[start : stop - d]
                for source, target in (
                    (slice(0, len(far) - d), slice(d, None)),
                    (slice(d, None), slice(0, len(far) - d)),
                ):
                    at = far[source]
                    found = np.where((at >= 0) & (step >= 0), at + step, -1)
                    if reached is far:
                        reached = far.copy()
                    reached[target] = np.maximum(reached[target], found)
                    if uniform:
                        break
            reached = np.minimum(reached, goal)
            if np.array_equal(reached, far):
                return None
            far, hops = reached, hops + 1
        return hops

    @property
    def _unit_steps(self) -> tuple[bool, bool]:
        """Whether neighbours in a column, and in a row, are joined: these connect whatever longer steps do."""
        down = self.depth > 0 and bool((self._reach[: self.rows - 1, 1] >= 0).all())
        return down, self.columns > 1 and bool((self._reach[:, 0] > 0).all())

    def _inner_components(self) -> Ints:
        if self.base > MAX_ARRAY:
            raise Unsupported("more than 2^25 cells in this secret graph; declare coarser cells.")
        down, along = self._unit_steps
        cell = np.arange(self.base, dtype=np.int64)
        if along:
            return np.zeros_like(cell) if down or self.rows == 1 else cell // self.columns
        return cell % self.columns if down else cell

    @cached_property
    def n_components(self) -> int:
        down, along = self._unit_steps
        joined = (1 if down else self.rows) * (1 if along else self.columns)
        return (1 if True in self.stars else joined) + sum(1 for told in self.stars if told is False)

    def largest_partner(self, values: Ints, low: int) -> Ints:
        rows, columns = self.rows, self.columns
        grid = values.reshape(rows, columns)
        pad = max(int(self._reach.max()), 0)
        padded = np.full((rows, columns + 2 * pad), low, dtype=np.int64)
        padded[:, pad : pad + columns] = grid
        doubled = [padded]  # doubled[p][:, c]: the largest of 2^p columns from c
        while 2 ** len(doubled) <= 2 * pad + 1:
            last, step = doubled[-1], 2 ** (len(doubled) - 1)
            doubled.append(np.maximum(last[:, :-step], last[:, step:]))
        best = grid.copy()
        for d in range(self.depth + 1):
            told = self._row_reach(d)
            for width in np.unique(told[told >= 0]).tolist():
                here = np.flatnonzero(told == width) if len(self._reach) > 1 else slice(0, rows - d)
                p = (2 * width + 1).bit_length() - 1
                start, stop = pad - width, pad + width + 1 - 2**p
                windows = doubled[p]
                for source, target in ((0, d), (d, 0)):
                    at = (
                        slice(source, source + rows - d) if isinstance(here, slice) else here + source,
                        slice(target, target + rows - d) if isinstance(here, slice) else here + target,
                    )
                    wide = windows[at[0]]
                    found = np.maximum(wide[:, start : start + columns], wide[:, stop : stop + columns])
                    best[at[1]] = np.maximum(best[at[1]], found)
                    if d == 0:
                        break
        return best.ravel()


@dataclass(frozen=True, eq=False)
class Blocks(Grid):
    """Edges between any two cells of one block.

    Attributes:
        labels: int64, shape (base,): the block of each ordinary cell, 0, 1, … in order of first appearance.
    """

    labels: Ints | None = None

    @cached_property
    def _labels(self) -> Ints:
        assert self.labels is not None
        return self.labels

    @cached_property
    def sizes(self) -> Ints:
        """How many cells each block has."""
        return np.bincount(self._labels)

    @property
    def has_inner_edges(self) -> bool:
        return bool((self.sizes > 1).any())

    @cached_property
    def _ends(self) -> tuple[Ints, Ints]:
        """First and last cell of each block."""
        first = np.full(len(self.sizes), self.base, dtype=np.int64)
        last = np.zeros(len(self.sizes), dtype=np.int64)
        cells = np.arange(self.base, dtype=np.int64)
        np.minimum.at(first, self._labels, cells)
        np.maximum.at(last, self._labels, cells)
        return first, last

    @property
    def widest(self) -> tuple[int, tuple[int, int]]:
        first, last = self._ends
        at = int(np.argmax(last - first))
        gap = int(last[at] - first[at])
        return gap, ((int(first[at]), int(last[at])) if gap else (0, 0))

    def _inside(self, low: Ints, high: Ints) -> Bools:
        last = self.base - 1
        return np.asarray(
            self._labels[np.minimum(low, last)] == self._labels[np.minimum(high, last)], dtype=bool
        )

    def inner_edges(self, chunk: int) -> Iterator[tuple[Ints, Ints]]:
        order = np.argsort(self._labels, kind="stable").astype(np.int64)
        at = 0
        for size in self.sizes.tolist():
            members = order[at : at + size]
            for i in range(size - 1):
                for start in range(i + 1, size, chunk):
                    later = members[start : start + chunk]
                    yield np.full(len(later), members[i], dtype=np.int64), later
            at += size

    @property
    def _n_inner(self) -> int:
        return int((self.sizes * (self.sizes - 1) // 2).sum())

    def _ordered_distance(self, low: int, high: int) -> int | None:
        return 1 if self._labels[low] == self._labels[high] else None

    def _inner_components(self) -> Ints:
        return self._labels

    @cached_property
    def n_components(self) -> int:
        return int(self.components.max()) + 1

    def largest_partner(self, values: Ints, low: int) -> Ints:
        best = np.full(len(self.sizes), low, dtype=np.int64)
        np.maximum.at(best, self._labels, values)
        return best[self._labels]
