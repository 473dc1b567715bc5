r"""What a channel observes of a record: no row of numbers, but a law of outputs, and laws lie apart.

The loss between values x and y is c(x, y) = max_z |ln P(z|x) − ln P(z|y)|. It enters the account like a move of weighted
rows, in whole units rounded up (2^-40 of what was asked), so that one rule prices channels and answers together, edge by edge, and under known
counts arc by arc (outputs stay attached to records: see ``rule_r``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from ..graphs import Graph

INFINITE = 2**56  # 65,536 times what was asked, which no budget covers
WORK = 2**26
PAIRWISE = 2048


@dataclass(frozen=True, eq=False)
class Listed:
    """How far the laws of two values lie apart, pair by pair.

    Attributes:
        table: int64, shape (cells, cells), symmetric: c in whole units, ``INFINITE`` where some output tells two apart.
    """

    table: Ints

    def units(self, a: Ints, b: Ints) -> Ints:
        return np.asarray(self.table[a, b])

    def widest(self, cells: Ints) -> int:
        return int(self.table[np.ix_(cells, cells)].max(initial=0))


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
    apart: Listed
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
            Unsupported: too many edges.
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

    def _edges(self, graph: Graph) -> Iterator[tuple[Ints, Ints]]:
        from .stack import edge_bound

        if edge_bound(graph) > WORK and graph.kind != "flat":
            raise Unsupported("this channel has too many pairs of secret values to price; use coarser cells.")
        return graph.edges()
