"""The boxes of cells that the positions of a histogram stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..axes import Bools, Ints
from ..binning import Grouping
from ..mechanisms.variance import Floats
from ..workload import Resolved
from .space import Space


@dataclass(frozen=True, eq=False)
class Grid:
    """Boxes, row-major over groups and positions.

    Attributes:
        low, high: shape (boxes, d), in steps; 0 where the position is no place.
        inside: shape (boxes,): which positions are places.
    """

    low: Ints
    high: Ints
    inside: Bools

    @property
    def middles(self) -> Floats:
        """Shape (boxes, d)."""
        return np.asarray((self.low + self.high) / 2)


def grid(room: Space, resolved: Resolved) -> Grid:
    """The boxes of a histogram of the space's attributes.

    >>> from tetraodon import Domain, Histogram, Integer
    >>> from tetraodon.clustering.space import space
    >>> from tetraodon.workload import resolve
    >>> domain = Domain(a=Integer(0, 4), b=Integer(0, 1))
    >>> grid(space(domain), resolve(Histogram("a", "b", bins={"a": 3, "b": 2}), domain)).middles.tolist()
    [[1.0, 0.5], [3.5, 0.5]]
    """
    every: list[Grouping] = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
    low, high, inside = np.zeros((1, 0), dtype=np.int64), np.zeros((1, 0), dtype=np.int64), np.ones(1, bool)
    order: list[int] = []
    for g in every:
        number = room.domain.names.index(g.name)
        dims = [i for i, a in enumerate(room.of) if a == number]
        mesh = np.meshgrid(*(room.lines[i] for i in dims), indexing="ij")
        cells = np.stack(mesh, axis=-1).reshape(-1, len(dims))
        at = g.positions(np.arange(len(cells)))
        least = np.full((g.size, len(dims)), np.iinfo(np.int64).max)
        most = np.full((g.size, len(dims)), -1)
        np.minimum.at(least, at[at >= 0], cells[at >= 0])
        np.maximum.at(most, at[at >= 0], cells[at >= 0])
        held = most[:, 0] >= 0
        low = _beside(low, np.where(held[:, None], least, 0))
        high = _beside(high, np.where(held[:, None], most, 0))
        inside = np.repeat(inside, g.size) & np.tile(held, len(inside))
        order += dims
    back = np.argsort(order)
    return Grid(low[:, back], high[:, back], inside)


def _beside(first: Ints, then: Ints) -> Ints:
    """Every combination of rows, those of ``then`` fastest."""
    return np.concatenate([np.repeat(first, len(then), axis=0), np.tile(then, (len(first), 1))], axis=1)
