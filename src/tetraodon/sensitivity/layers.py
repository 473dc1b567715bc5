"""Integer rows along one axis.

A strategy, and a query, is a list of *layers* along the axis; each layer is a set of integer rows that share one positive
integer weight w. Moving a record from position a to position b changes the rows by

    D(a, b) = Σ_layers w · Σ_rows |A[r, a] − A[r, b]|,

an exact integer. The position P (one past the last) stands for "counts nowhere": its column is zero, so D(a, P) is the
weighted norm N(a) of column a.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from .gram import exact_gram
from .joint import Joint
from .ratios import Ratios

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
    """Σ_layers w · Σ_rows |A·h|^power over all groups, for integer tables h of shape (groups, size), exact.

    >>> weighed((Matrix(np.array([[2**30, -(2**30)]])),), np.array([[4, -4]]), 2) == 2**66
    True
    """
    total, reach = 0, int(np.abs(table).sum())
    for layer in layers:
        # No row takes a larger value than this, in Python integers: beyond 64 bits numpy counts in them too.
        most = _largest_entry(layer) * reach
        told = table if most < LARGEST else table.astype(object)
        moved = _applied(layer, told)
        if most**power * max(moved.size, 1) >= LARGEST:
            moved = moved.astype(object)
        total += layer.weight * int((np.abs(moved) ** power).sum())
    return total


def _largest_entry(layer: Layer) -> int:
    if isinstance(layer, Matrix):
        return int(np.abs(layer.matrix).max(initial=0))
    return prod(int(np.abs(f).max(initial=0)) for f in layer.factors) if isinstance(layer, Joint) else 1


def _applied(layer: Layer, table: Ints) -> Ints:
    """The rows of a layer on a table of integers."""
    if isinstance(layer, Joint):
        return layer.applied(table)
    if isinstance(layer, Matrix):
        return np.asarray(table @ layer.matrix.T)
    if isinstance(layer, Blocks) and layer.starts is None:
        return table
    prefix = np.cumsum(np.pad(table, ((0, 0), (1, 0))), axis=1)
    if isinstance(layer, Prefixes):
        return np.asarray(prefix[:, 1:] if layer.bounds is None else prefix[:, layer.bounds])
    if isinstance(layer, Blocks):
        return np.asarray(prefix[:, layer.ends] - prefix[:, layer.starts])
    assert isinstance(layer, Ranges)
    lows, highs = (layer.lows, layer.highs) if layer.lows is not None else np.triu_indices(layer.size + 1, 1)
    return np.asarray(prefix[:, highs] - prefix[:, lows])


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
    return layer.ceiling if isinstance(layer, Joint | Ratios) else 2 * layer.weight


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
