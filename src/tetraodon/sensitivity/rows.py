"""Integer rows along one axis, and how far they move when a record moves.

A strategy, and a query, is a list of *layers* along the axis; each layer is a set of integer rows that share one positive
integer weight w. Moving a record from position a to position b changes the rows by

    D(a, b) = Σ_layers w · Σ_rows |A[r, a] − A[r, b]|,

an exact integer. The position P (one past the last) stands for "counts nowhere": its column is zero, so D(a, P) is the
weighted norm N(a) of column a. Sources: He, Machanavajjhala, Ding 2014 for single queries; the maximisation over a graph
is derived, see docs/sensitivity.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from ..axes import Axis, Ints
from ..errors import Unsupported
from ..lattice import Grid
from .gram import exact_gram
from .joint import Joint

Edge = tuple[int, int]
MAX_WORK = 400_000_000
MAX_CORNER = 5000
LARGEST = 2**61
MANY = 16


class Layer(Protocol):
    """Rows along an axis of ``size`` positions, each weighted by ``weight``."""

    @property
    def size(self) -> int: ...
    @property
    def weight(self) -> int: ...
    def difference(self, a: Ints, b: Ints) -> Ints:
        """Unweighted Σ_r |A[r, a] − A[r, b]| for arrays of positions, ``size`` meaning nowhere."""


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Rows "position < bound", one per bound.

    Attributes:
        bounds: increasing, in 1..size; None means every one of them.
    """

    size: int
    bounds: Ints | None = None
    weight: int = 1

    @property
    def count(self) -> int:
        return self.size if self.bounds is None else len(self.bounds)

    def passed(self, a: Ints) -> Ints:
        """Number of bounds at or before a position: the rows that do *not* hold it."""
        if self.bounds is None:
            found: Ints = np.minimum(a, self.size)
        else:
            found = np.where(a >= self.size, self.count, np.searchsorted(self.bounds, a, side="right"))
        return found

    def difference(self, a: Ints, b: Ints) -> Ints:
        moved: Ints = np.abs(self.passed(a) - self.passed(b))
        return moved


@dataclass(frozen=True, eq=False)
class Blocks:
    """Disjoint rows "start ≤ position < end", in order.

    Attributes:
        starts, ends: of each row; None means a row for every position.
    """

    size: int
    starts: Ints | None = None
    ends: Ints | None = None
    weight: int = 1

    def label(self, a: Ints) -> Ints:
        """Row of each position, −1 for none."""
        if self.starts is None or self.ends is None:
            return np.where(a >= self.size, -1, a)
        if not len(self.starts):
            return np.full(np.shape(a), -1, dtype=np.int64)
        at = np.searchsorted(self.starts, a, side="right") - 1
        return np.where((at >= 0) & (a < self.ends[np.maximum(at, 0)]), at, -1)

    def difference(self, a: Ints, b: Ints) -> Ints:
        x, y = self.label(a), self.label(b)
        return np.where(x == y, 0, (x >= 0).astype(np.int64) + (y >= 0))


@dataclass(frozen=True, eq=False)
class Matrix:
    """Any integer rows, shape (rows, size). ``power`` 2 measures squared differences, as Gaussian noise does."""

    matrix: Ints
    weight: int = 1
    power: int = 1

    @property
    def size(self) -> int:
        return int(self.matrix.shape[1])

    @cached_property
    def gram(self) -> Ints | None:
        """AᵀA with a last row and column for "nowhere", where squared moves of many rows are asked; else None."""
        if self.power == 1 or len(self.matrix) < MANY:
            return None
        return np.pad(exact_gram(self.matrix), (0, 1))

    @property
    def looks(self) -> int:
        """How many passes a move costs."""
        return len(self.matrix) if self.gram is None else 1

    def difference(self, a: Ints, b: Ints) -> Ints:
        if self.gram is not None:
            own = self.gram.diagonal()
            return np.asarray(own[a] + own[b] - 2 * self.gram[a, b])
        total = np.zeros(np.broadcast(a, b).shape, dtype=np.int64)
        for row in self.matrix:
            padded = np.append(row, 0)
            total += np.abs(padded[a] - padded[b]) ** self.power
        return total


@dataclass(frozen=True, eq=False)
class Ranges:
    """Rows "low ≤ position < high": every range of positions (lows is None), or a list."""

    size: int
    lows: Ints | None = None
    highs: Ints | None = None
    weight: int = 1

    def difference(self, a: Ints, b: Ints) -> Ints:
        a, b = np.minimum(a, b), np.maximum(a, b)
        if self.lows is None or self.highs is None:
            nowhere = b >= self.size
            holding = (a + 1) * (self.size - a)
            return np.where(
                a >= self.size, 0, np.where(nowhere, holding, (b - a) * (self.size + 1 - (b - a)))
            )
        if self.size > MAX_CORNER:
            raise Unsupported("ranges: the sensitivity of a list of ranges is offered up to 5,000 positions.")
        corner = np.zeros((self.size + 2, self.size + 2), dtype=np.int64)
        np.add.at(corner, (self.lows, self.highs), 1)
        # holds[a, b]: ranges with low ≤ a and high > b
        holds = np.cumsum(np.cumsum(corner, axis=0)[:, ::-1], axis=1)[:, ::-1]

        def both(x: Ints, y: Ints) -> Ints:
            return np.where(
                (x >= self.size) | (y >= self.size), 0, holds[x, np.minimum(y + 1, self.size + 1)]
            )

        return both(a, a) + both(b, b) - 2 * both(a, b)


def difference(layers: tuple[Layer, ...], a: Ints, b: Ints) -> Ints:
    """D(a, b) for arrays of positions."""
    total = np.zeros(np.broadcast(a, b).shape, dtype=np.int64)
    for layer in layers:
        total += layer.weight * layer.difference(a, b)
    return total


def weighed(layers: tuple[Layer, ...], table: Ints, power: int) -> int:
    """Σ_layers w · Σ_rows |A·h|^power over all groups, for integer tables h of shape (groups, size)."""
    total = 0
    prefix = np.concatenate([np.zeros((len(table), 1), dtype=np.int64), np.cumsum(table, axis=1)], axis=1)
    for layer in layers:
        if isinstance(layer, Prefixes):
            moved = prefix[:, 1:] if layer.bounds is None else prefix[:, layer.bounds]
        elif isinstance(layer, Blocks):
            moved = table if layer.starts is None else prefix[:, layer.ends] - prefix[:, layer.starts]
        elif isinstance(layer, Ranges):
            lows, highs = (
                (layer.lows, layer.highs) if layer.lows is not None else np.triu_indices(layer.size + 1, 1)
            )
            moved = prefix[:, highs] - prefix[:, lows]
        elif isinstance(layer, Joint):
            moved = layer.applied(table)
        else:
            assert isinstance(layer, Matrix)
            moved = table @ layer.matrix.T
        total += layer.weight * int((np.abs(moved) ** power).sum())
    return total


def squared(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The same rows with squared moves; rows of zeros and ones move alike either way."""
    return tuple(replace(x, power=2) if isinstance(x, Matrix | Joint) else x for x in layers)


def ceiling(layer: Layer) -> int:
    """No move of a record changes the weighted rows of a layer by more (a Python integer, which cannot wrap)."""
    if isinstance(layer, Prefixes):
        return 2 * layer.weight * layer.count
    if isinstance(layer, Ranges):
        listed = layer.size * (layer.size + 1) // 2 if layer.lows is None else len(layer.lows)
        return 2 * layer.weight * listed
    if isinstance(layer, Matrix):
        most = np.abs(layer.matrix).max(axis=1, initial=0).tolist()
        total: int = sum((2 * int(v)) ** layer.power for v in most)
        return layer.weight * total
    return layer.ceiling if isinstance(layer, Joint) else 2 * layer.weight


def largest_norm(layers: tuple[Layer, ...]) -> tuple[int, int]:
    """(max_a N(a), a)."""
    size = layers[0].size
    if all(isinstance(x, Blocks) and x.starts is None for x in layers):
        return sum(x.weight for x in layers), 0
    if all(isinstance(x, Prefixes) for x in layers):
        return sum(x.weight * x.count for x in layers if isinstance(x, Prefixes)), 0
    if all(isinstance(x, Ranges) and x.lows is None for x in layers):
        middle = (size - 1) // 2
        return sum(x.weight for x in layers) * (middle + 1) * (size - middle), middle
    positions = np.arange(size, dtype=np.int64)
    norms = difference(layers, positions, np.full(size, size, dtype=np.int64))
    at = int(np.argmax(norms))
    return int(norms[at]), at


def largest_difference(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge]:
    """(max over the edges of D, an edge that attains it), exact; (0, (0, 0)) if no edge moves any row.

    Args:
        axis: a graph on the positions 0..P−1 and possibly the position P ("nowhere").

    Raises:
        Unsupported: no closed form applies and the graph has too many edges to go through.
    """
    if not axis.has_edges:
        return 0, (0, 0)
    best: tuple[int, Edge]
    if isinstance(axis, Grid):
        from .lattices import largest_on_map

        best = largest_on_map(layers, axis)
    elif not axis.is_interval:
        return _enumerate(layers, axis)
    else:
        best = _along_order(layers, axis)
    for star in range(len(axis.stars)):
        best = max(best, _at_star(layers, axis, star), key=lambda found: found[0])
    return best


def _enumerate(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge]:
    rows = sum(x.looks if isinstance(x, Matrix) else 1 for x in layers)
    if axis.n_edges * rows > MAX_WORK:
        raise Unsupported(
            "this query has too many rows for this secret graph; ask for fewer or use coarser cells."
        )
    best, edge = 0, (0, 0)
    for a, b in axis.edges():
        found = difference(layers, a, b)
        at = int(np.argmax(found))
        if found[at] > best:
            best, edge = int(found[at]), (int(a[at]), int(b[at]))
    return best, edge


def _at_star(layers: tuple[Layer, ...], axis: Axis, star: int) -> tuple[int, Edge]:
    cell = axis.base + star
    if axis.stars[star] is False:
        return 0, (0, 0)
    if axis.stars[star] is True and len(layers) == 1 and axis.base:
        only = layers[0]
        if isinstance(only, Blocks) and only.starts is None:
            return 2 * only.weight, (0, cell)
        if isinstance(only, Prefixes) and only.bounds is None:
            return only.weight * cell, (0, cell)
    partners = np.flatnonzero(axis.star_mask(star)).astype(np.int64)
    if not len(partners):
        return 0, (0, 0)
    found = difference(layers, partners, np.full(len(partners), cell, dtype=np.int64))
    at = int(np.argmax(found))
    return int(found[at]), (int(partners[at]), cell)


def _along_order(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge]:
    gap, edge = axis.widest
    layers = tuple(moving for layer in layers if (moving := _moving(layer, axis.base)) is not None)
    if not gap or not layers:
        return 0, (0, 0)
    if len(layers) == 1:
        only = layers[0]
        if isinstance(only, Blocks) and only.starts is None:
            return 2 * only.weight, (edge[1] - 1, edge[1])
        if isinstance(only, Prefixes) and only.bounds is None:
            return only.weight * gap, edge
        if isinstance(only, Ranges) and only.lows is None:
            used = min(gap, (only.size + 1) // 2)  # d(P + 1 − d) rises up to (P + 1)/2
            return only.weight * used * (only.size + 1 - used), (edge[1] - used, edge[1])
        if isinstance(only, Matrix) and len(only.matrix) == 1:
            return _one_row(only, axis)
    if all(isinstance(x, Prefixes | Blocks) for x in layers):
        found = _at_bounds(layers, axis) or _nested(layers, axis)
        if found is not None:
            return found
    return _enumerate(layers, replace(axis, stars=()))


def _moving(layer: Layer, base: int) -> Layer | None:
    """A layer without its rows that are constant on the ordered positions, which no edge among these moves."""
    if not isinstance(layer, Matrix) or not base:
        return layer
    held = layer.matrix[:, :base]
    moves = (held != held[:, :1]).any(axis=1)
    return replace(layer, matrix=layer.matrix[moves]) if moves.any() else None


def _one_row(layer: Matrix, axis: Axis) -> tuple[int, Edge]:
    """|v[y] − v[x]| over windows: the largest and the least value of each window."""
    values = layer.matrix[0][: axis.base]
    ends = np.arange(axis.base, dtype=np.int64)
    best, edge = 0, (0, 0)
    for sign in (1, -1):
        lowest = _window_maxima(-sign * values, axis.first, ends)
        joined = axis.first < ends
        found = np.where(joined, sign * values - sign * values[lowest], -1)
        y = int(np.argmax(found))
        if found[y] > best:
            best, edge = int(found[y]), (int(lowest[y]), y)
    return layer.weight * best**layer.power, edge


def _window_maxima(values: Ints, lefts: Ints, rights: Ints) -> Ints:
    """For every window [lefts[i], rights[i]] an index of its largest value (for an empty window, its left end)."""
    length = np.maximum(rights - lefts + 1, 1)
    level = np.floor(np.log2(length)).astype(np.int64)
    result = lefts.copy()
    best = np.arange(len(values), dtype=np.int64)  # best[i]: where the largest of values[i : i + 2^k] is
    for k in range(int(level.max(initial=0)) + 1):
        here = np.flatnonzero(level == k)
        left, right = best[lefts[here]], best[np.maximum(rights[here] - (1 << k) + 1, lefts[here])]
        result[here] = np.where(values[left] >= values[right], left, right)
        shifted = best[1 << k :]
        trimmed = best[: len(shifted)]
        best = best.copy()
        best[: len(shifted)] = np.where(values[trimmed] >= values[shifted], trimmed, shifted)
    return result


def _at_bounds(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge] | None:
    """The sum of the layers' own largest moves, if an edge that ends where a row begins attains it; else None."""
    ceiling = 0
    ends: list[Ints] = []
    for layer in layers:
        if isinstance(layer, Prefixes):
            bounds = np.arange(axis.base) if layer.bounds is None else layer.bounds[layer.bounds < axis.base]
            passed = layer.passed(bounds) - layer.passed(axis.first[bounds])
            if not len(bounds) or not int(passed.max()):
                return None
            ceiling += layer.weight * int(passed.max())
            ends.append(bounds[passed == passed.max()])
        elif isinstance(layer, Blocks):
            ceiling += 2 * layer.weight
            ends.append(
                (np.arange(axis.base) if layer.starts is None else layer.starts[layer.starts < axis.base])[1:]
            )
    y = np.concatenate([e[:: max(1, len(e) // 256)] for e in ends])
    y = y[axis.first[y] < y]
    if not len(y):
        return None
    found = difference(layers, axis.first[y], y)
    at = int(np.argmax(found))
    return (ceiling, (int(axis.first[y[at]]), int(y[at]))) if found[at] == ceiling else None


def _nested(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge] | None:
    """Prefixes and nested runs (trees) on an interval graph; None if the layers turn out not to be nested.

    Two positions x < y that part at level l have D = N(x) + N(y) − 2·(weight of the levels above l) + prefixes passed.
    For every level, the best x of the window [first[y], start of y's run) is looked up; a pair that already parted
    higher up is understated there and found at its own level.
    """
    base = axis.base
    positions = np.arange(base, dtype=np.int64)
    passed = np.zeros(base, dtype=np.int64)
    norm = np.zeros(base, dtype=np.int64)
    levels: list[tuple[int, Ints]] = []
    for layer in layers:
        if isinstance(layer, Prefixes):
            passed += layer.weight * layer.passed(positions)
        elif isinstance(layer, Blocks):
            label = layer.label(positions)
            norm += layer.weight * (label >= 0)
            # A position without a row of its own at this level is alone.
            breaks = np.ones(base, dtype=bool)
            breaks[1:] = (label[1:] != label[:-1]) | (label[1:] < 0)
            starts = np.maximum.accumulate(np.where(breaks, positions, 0))
            levels.append((layer.weight, starts))
    levels.sort(key=lambda item: int((item[1] == positions).sum()))
    for (_, coarse), (_, fine) in pairwise(levels):
        if (fine < coarse).any():
            return None
    first = axis.first
    up, down = norm + passed, norm - passed
    even = bool((norm == norm[0]).all()) if base else True
    best, edge, above = 0, (0, 0), 0
    for weight, starts in [*levels, (0, positions)]:
        reached = first < starts
        if reached.any():
            at = first if even else _window_maxima(down, first, np.maximum(starts - 1, first))
            found = np.where(reached, up + down[at] - 2 * above, -1)
            y = int(np.argmax(found))
            if found[y] > best:
                best, edge = int(found[y]), (int(at[y]), y)
        above += weight
    exact = int(difference(layers, np.array([edge[0]]), np.array([edge[1]]))[0])
    return (best, edge) if exact == best else None
