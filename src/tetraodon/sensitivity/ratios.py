r"""What a channel observes of a record: no row of numbers, but a law of outputs, and laws lie apart.

The loss between values x and y is c(x, y) = max_z |ln P(z|x) − ln P(z|y)|. It enters the account like a move of weighted
rows, in whole units rounded up (2^-40 of what was asked), so that one rule prices channels and answers together, edge by edge, and under known
counts arc by arc (outputs stay attached to records: see ``rule_r``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Protocol

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from ..graphs import Graph

UNIT = Fraction(1, 2**40)
INFINITE = 2**56  # 65,536 times what was asked, which no budget covers
WORK = 4_000_000
PAIRWISE = 2048


class Apart(Protocol):
    """How far the laws of two values lie apart."""

    def units(self, a: Ints, b: Ints) -> Ints:
        """c(a, b) in whole units, rounded up, for arrays of cells; ``INFINITE`` where some output tells them apart."""

    def widest(self, cells: Ints) -> int:
        """No smaller than c of any two of these cells."""


@dataclass(frozen=True, eq=False)
class Listed:
    """Pair by pair.

    Attributes:
        table: int64, shape (cells, cells), symmetric.
    """

    table: Ints

    def units(self, a: Ints, b: Ints) -> Ints:
        return np.asarray(self.table[a, b])

    def widest(self, cells: Ints) -> int:
        return int(self.table[np.ix_(cells, cells)].max(initial=0))


@dataclass(frozen=True, eq=False)
class Lengths:
    """By the distance between cells of a grid: c(x, y) ≤ rate · |x − y|.

    Attributes:
        shape: rows and columns of the grid; cells beyond them are special, and apart from all others.
        sides: of a cell, exact.
        rate: loss per unit of length, exact.
        unit: of losses, exact.
    """

    shape: tuple[int, int]
    sides: tuple[Fraction, Fraction]
    rate: Fraction
    unit: Fraction = UNIT

    def units(self, a: Ints, b: Ints) -> Ints:
        count = self.shape[0] * self.shape[1]
        (i, j), (k, m) = (np.divmod(np.minimum(c, count - 1), self.shape[1]) for c in (a, b))
        height, width = (float(s * self.rate / self.unit) for s in self.sides)
        found = np.hypot((i - k) * height, (j - m) * width) * (1 + 1e-12)
        told = np.minimum(np.ceil(found), float(INFINITE)).astype(np.int64)
        special = (a >= count) | (b >= count)
        return np.where(special, np.where(a == b, 0, INFINITE), told)

    def widest(self, cells: Ints) -> int:
        if len(cells) < 2:
            return 0
        count = self.shape[0] * self.shape[1]
        if int(cells.max()) >= count:
            return INFINITE
        i, j = np.divmod(cells, self.shape[1])
        ends = np.array([0]), np.array([int(np.ptp(i)) * self.shape[1] + int(np.ptp(j))])
        return int(self.units(*ends)[0])


@dataclass(frozen=True, eq=False)
class Ratios:
    """What one channel observes, over the cells of a query in its own order.

    Attributes:
        shape: positions of the query's attributes.
        apart: how far the laws of two cells lie apart.

    >>> pair = Ratios((2,), Listed(np.array([[0, 7], [7, 0]])))
    >>> pair.difference(np.array([0, 1]), np.array([1, 1])).tolist()
    [7, 0]
    """

    shape: tuple[int, ...]
    apart: Apart
    weight: int = 1
    power: int = 1

    @property
    def size(self) -> int:
        """Cells."""
        return prod(self.shape)

    @property
    def ceiling(self) -> int:
        """No change of a record costs more units, infinite losses aside."""
        return self.weight * INFINITE

    def difference(self, a: Ints, b: Ints) -> Ints:
        """c(a, b) in whole units; a record that the channel sees and another that it does not are told apart."""
        a, b = np.broadcast_arrays(a, b)
        both = (a < self.size) & (b < self.size)
        inside = [np.where(both, c, 0) for c in (a, b)]
        return np.where(both, self.apart.units(*inside), np.where(a == b, 0, INFINITE))

    def largest(self, graph: Graph) -> tuple[int, tuple[int, int] | None, dict[str, int]]:
        """(largest weighted loss over the edges, an edge that attains it, the same by the attribute that an edge moves).

        Args:
            graph: over the query's attributes, cell for cell.

        Raises:
            Unsupported: too many edges, where the loss does not go by offsets.
        """
        found: dict[str, int] = {}
        best: tuple[int, tuple[int, int] | None] = (0, None)
        for a, b in self._edges(graph):
            moved = self.weight * self.apart.units(a, b)
            if not len(moved):
                continue
            changed = np.stack(
                [x != y for x, y in zip(graph.domain.decode(a), graph.domain.decode(b), strict=True)]
            )
            kinds = (
                zip(graph.domain.names, changed, strict=True)
                if graph.kind == "cartesian"
                else [("any", np.ones(len(a), dtype=bool))]
            )
            for name, own in kinds:
                if own.any():
                    found[name] = max(found.get(name, 0), int(moved[own].max()))
            at = int(np.argmax(moved))
            if moved[at] > best[0]:
                best = (int(moved[at]), (int(a[at]), int(b[at])))
        return best[0], best[1], {name: value for name, value in found.items() if value}

    def _edges(self, graph: Graph) -> list[tuple[Ints, Ints]]:
        from .stack import edge_bound

        if isinstance(self.apart, Lengths) and edge_bound(graph) > WORK:
            from ..offsets import representatives

            return [representatives(graph)]
        if edge_bound(graph) > 16 * WORK and graph.kind != "flat":
            raise Unsupported("this channel has too many pairs of secret values to price; use coarser cells.")
        return list(graph.edges())
