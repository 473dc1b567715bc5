"""The secret graph of one attribute: which pairs of its cells are secret.

Two forms cover every secret among numbers and categories; ``lattice`` has those of places.

* ``Interval``: cells in order, cell y joined to every cell of [first[y], y). The complete graph, distance thresholds and
  partitions into runs are of this form, and so are their images under coarser bins and filters.
* ``Pairs``: an explicit list.

Both carry *stars*: cells outside the order (``other``, ``missing``, everything that a filter leaves out), each joined to
a stated set of cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import Unsupported

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
MAX_ARRAY = 2**25
MAX_PAIRS = 20_000_000


@dataclass(frozen=True, eq=False)
class Axis:
    """Edges among the cells 0..size−1 of one attribute.

    Attributes:
        base: number of ordered cells; cells base..size−1 are stars.
        window: cell y < base is joined to [y − window, y), unless ``starts`` or ``pairs`` says otherwise.
        starts: shape (base,), nondecreasing, starts[y] ≤ y: cell y is joined to [starts[y], y).
        pairs: shape (m, 2), a < b < base: the edges among ordered cells, for graphs that are not intervals.
        stars: for each star, True (joined to every other cell), False (to none) or a mask over all cells; masks agree
            with each other, and no cell is joined to a False star.
    """

    base: int
    window: int = 0
    starts: Ints | None = None
    pairs: Ints | None = None
    stars: tuple[bool | Bools, ...] = ()

    @property
    def size(self) -> int:
        return self.base + len(self.stars)

    @property
    def is_interval(self) -> bool:
        return self.pairs is None

    def star_mask(self, star: int) -> Bools:
        """Cells joined to star number ``star`` (cell base + star)."""
        told = self.stars[star]
        if not isinstance(told, bool):
            return told
        if self.size > MAX_ARRAY:
            raise Unsupported("more than 2^25 cells on one attribute; declare coarser cells for this query.")
        mask = np.full(self.size, told)
        if told:
            for other, said in enumerate(self.stars):
                mask[self.base + other] = said if isinstance(said, bool) else said[self.base + star]
        mask[self.base + star] = False
        return mask

    @cached_property
    def first(self) -> Ints:
        """Shape (base,): the smallest cell joined to y through the order (y itself when there is none)."""
        if self.pairs is not None:
            raise AssertionError("not an interval graph")
        if self.starts is not None:
            return self.starts
        if self.base > MAX_ARRAY:
            raise Unsupported("more than 2^25 cells on one attribute; declare coarser cells for this query.")
        return np.maximum(np.arange(self.base, dtype=np.int64) - self.window, 0)

    @property
    def has_edges(self) -> bool:
        if self.size < 2:
            return False
        return self.has_inner_edges or any(self._star_used(s) for s in range(len(self.stars)))

    @property
    def has_inner_edges(self) -> bool:
        """Whether two cells that are no stars are joined."""
        if self.pairs is not None:
            return len(self.pairs) > 0
        if self.starts is not None:
            return bool((self.starts < np.arange(self.base)).any())
        return self.window > 0 and self.base > 1

    def _star_used(self, star: int) -> bool:
        told = self.stars[star]
        if told is True:
            others = [said for s, said in enumerate(self.stars) if s != star]
            return self.base > 0 or any(
                s if isinstance(s, bool) else bool(s[self.base + star]) for s in others
            )
        return told is not False and bool(told.any())

    @property
    def widest(self) -> tuple[int, tuple[int, int]]:
        """(y − x, (x, y)) for an edge along the order with the largest gap; (0, (0, 0)) without edges."""
        if self.pairs is not None:
            if not len(self.pairs):
                return 0, (0, 0)
            at = int(np.argmax(self.pairs[:, 1] - self.pairs[:, 0]))
            x, y = (int(v) for v in self.pairs[at])
            return y - x, (x, y)
        if self.starts is None:
            gap = max(0, min(self.window, self.base - 1))
            return gap, (0, gap)
        if not self.base:
            return 0, (0, 0)
        y = int(np.argmax(np.arange(self.base) - self.starts))
        return y - int(self.starts[y]), (int(self.starts[y]), y)

    def joined(self, a: Ints, b: Ints) -> Bools:
        """Whether cells a and b form an edge, elementwise."""
        a, b = np.broadcast_arrays(np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64))
        low, high = np.minimum(a, b), np.maximum(a, b)
        result = (high < self.base) & (low != high) & self._inside(low, high)
        for star in range(len(self.stars)):
            cell = self.base + star
            touched = (high == cell) | (low == cell)
            if touched.any():
                partner = np.where(high == cell, low, high)
                result |= touched & self.star_mask(star)[partner]
        return np.asarray(result, dtype=bool)

    def _inside(self, low: Ints, high: Ints) -> Bools:
        """Whether cells low < high that are no stars are joined (anything for others)."""
        if self.pairs is not None:
            return self._is_listed(low, high)
        if self.starts is not None:
            last = np.minimum(high, self.base - 1)
            return np.asarray(low >= self.starts[last] if self.base else low < 0, dtype=bool)
        return np.asarray(high - low <= self.window, dtype=bool)

    def _is_listed(self, low: Ints, high: Ints) -> Bools:
        assert self.pairs is not None
        if not len(self.pairs):
            return np.zeros(low.shape, dtype=bool)
        # Numbers of the cells that occur: the square of the number of all cells may exceed 64 bits.
        cells, pairs = np.unique(self.pairs, return_inverse=True)
        pairs = pairs.reshape(-1, 2)
        x, y = (np.minimum(np.searchsorted(cells, c), len(cells) - 1) for c in (low, high))
        found = np.isin(x * len(cells) + y, pairs[:, 0] * len(cells) + pairs[:, 1])
        return np.asarray(found & (cells[x] == low) & (cells[y] == high), dtype=bool)

    def edges(self, chunk: int = 1_000_000) -> Iterator[tuple[Ints, Ints]]:
        """Every edge once, as arrays (a, b) with a < b, at most about ``chunk`` at a time."""
        yield from self.inner_edges(chunk)
        for star, told in enumerate(self.stars):
            if told is False:
                continue
            cell = self.base + star
            partners = np.flatnonzero(self.star_mask(star)[:cell]).astype(np.int64)
            if len(partners):
                yield partners, np.full(len(partners), cell, dtype=np.int64)

    def inner_edges(self, chunk: int) -> Iterator[tuple[Ints, Ints]]:
        """The edges that touch no star."""
        if self.pairs is not None:
            for at in range(0, len(self.pairs), chunk):
                yield self.pairs[at : at + chunk, 0], self.pairs[at : at + chunk, 1]
            return
        for offset in range(1, self.widest[0] + 1):
            for at in range(offset, self.base, chunk):
                high = np.arange(at, min(at + chunk, self.base), dtype=np.int64)
                if self.starts is not None:
                    high = high[high - offset >= self.starts[high]]
                if len(high):
                    yield high - offset, high

    @property
    def _n_inner(self) -> int:
        if self.pairs is not None:
            return len(self.pairs)
        if self.starts is not None:
            return int((np.arange(self.base, dtype=np.int64) - self.starts).sum())
        reach = max(0, min(self.window, self.base - 1))
        return reach * self.base - reach * (reach + 1) // 2

    @cached_property
    def n_edges(self) -> int:
        count = self._n_inner
        for star, told in enumerate(self.stars):
            if isinstance(told, bool):
                before = sum(1 for s in range(star) if self.stars[s] is not False)
                count += (self.base + before) if told else 0
            else:
                count += int(self.star_mask(star)[: self.base + star].sum())
        return count

    def distance(self, a: int, b: int) -> int | None:
        """Least number of edges from a to b; None where there is no path.

        Closed form: ⌈|a − b|/window⌉ on a window, greedy steps on other intervals, at most 2 through a star that is
        joined to everything. Breadth-first search otherwise.
        """
        if a == b:
            return 0
        if not self._is_closed:
            return self._breadth_first(a, b)
        told = [self.stars[c - self.base] for c in (a, b) if c >= self.base]
        if False in told:
            return None
        if True in told:
            return 1
        direct = self._ordered_distance(min(a, b), max(a, b))
        return min(direct or 2, 2) if True in self.stars else direct

    @property
    def _is_closed(self) -> bool:
        """Whether distances and components have closed forms."""
        return self.pairs is None and all(isinstance(s, bool) for s in self.stars)

    def _ordered_distance(self, low: int, high: int) -> int | None:
        if self.starts is None:
            return -(-(high - low) // self.window) if self.window else None
        hops, at = 0, high
        while at > low:  # the farthest step is always best on an interval graph
            step = int(self.starts[at])
            if step == at:
                return None
            at, hops = step, hops + 1
        return hops

    def _breadth_first(self, a: int, b: int) -> int | None:
        from scipy.sparse.csgraph import shortest_path

        cells, matrix = self._listed
        at = np.searchsorted(cells, [a, b])
        if (at == len(cells)).any() or cells[at].tolist() != [a, b]:
            return None
        found = shortest_path(matrix, directed=False, unweighted=True, indices=[int(at[0])])[0, at[1]]
        return int(found) if np.isfinite(found) else None

    @cached_property
    def _listed(self) -> tuple[Ints, Any]:
        """The cells that have edges and the matrix of these edges: a few pairs in a vast domain stay few."""
        from scipy.sparse import csr_array

        cells, ends = np.unique(self.all_edges(), return_inverse=True)
        ends = ends.reshape(-1, 2).astype(np.int32)  # older scipy searches graphs with 32-bit indices only
        return cells, csr_array(
            (np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(cells), len(cells))
        )

    @cached_property
    def _listed_components(self) -> tuple[int, Ints]:
        """How many components the cells that have edges form, and the component of each of them."""
        from scipy.sparse.csgraph import connected_components

        cells, matrix = self._listed
        if not len(cells):
            return 0, np.zeros(0, dtype=np.int64)
        count, labels = connected_components(matrix, directed=False)
        return int(count), labels.astype(np.int64)

    def all_edges(self) -> Ints:
        """Every edge, shape (m, 2). Refused above 20 million."""
        if self.n_edges > MAX_PAIRS:
            raise Unsupported(
                "this secret graph has too many edges to list; use a named graph or coarser cells."
            )
        listed = [np.stack(e, axis=1) for e in self.edges()]
        return np.concatenate(listed) if listed else np.zeros((0, 2), dtype=np.int64)

    @cached_property
    def components(self) -> Ints:
        """Shape (size,): number of the connected component of each cell."""
        if self._is_closed:
            labels = self._inner_components()
            if True in self.stars:
                labels = np.zeros(self.base, dtype=np.int64)
            fresh = int(labels.max()) + 1 if self.base else int(True in self.stars)
            tail = [
                0 if told else fresh + sum(1 for s in self.stars[:i] if not s)
                for i, told in enumerate(self.stars)
            ]
            return np.concatenate([labels, np.array(tail, dtype=np.int64)])
        if self.size > MAX_ARRAY:
            raise Unsupported("more than 2^25 cells in this secret graph; declare coarser cells.")
        count, labels = self._listed_components
        found = np.full(self.size, -1, dtype=np.int64)
        found[self._listed[0]] = labels
        lonely = found < 0
        found[lonely] = count + np.arange(int(lonely.sum()))
        return found

    def _inner_components(self) -> Ints:
        breaks = self.first >= np.arange(self.base)
        return np.cumsum(breaks, dtype=np.int64) - 1 if self.base else np.zeros(0, dtype=np.int64)

    @cached_property
    def n_components(self) -> int:
        """Number of connected components."""
        if not self._is_closed:
            return self.size - len(self._listed[0]) + self._listed_components[0]
        if self.starts is not None:
            return int(self.components.max()) + 1
        joined = self.window > 0 or True in self.stars
        ordered = int(self.base > 0 or True in self.stars) if joined else self.base
        return ordered + sum(1 for told in self.stars if told is False)
