"""Whole blocks: the connected pieces of a secret graph, for policies that disclose which piece a record lies in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..attributes import Categorical, Point
from ..axes import MAX_ARRAY, Ints
from ..domain import Domain
from ..errors import Unsupported
from ..graphs import Graph
from ..queries import Histogram
from ..workload import Resolved, resolve
from .grid import Grid, grid
from .space import Space

MAX_BLOCKS = 2**16


@dataclass(frozen=True, eq=False)
class Blocks:
    """The pieces as the cells of a coarse histogram that no edge changes.

    Attributes:
        resolved: the histogram, of all records.
        boxes: the box of cells of each of its positions.
        bins: its bins.
    """

    resolved: Resolved
    boxes: Grid
    bins: Mapping[str, Any]

    @property
    def count(self) -> int:
        return len(self.boxes.low)

    @property
    def middles(self) -> Ints:
        """Shape (blocks, d): the middle of each box, in half steps."""
        return self.boxes.low + self.boxes.high

    @property
    def sides(self) -> Ints:
        """Shape (d,): the longest side of a box along each coordinate, in steps."""
        return np.asarray((self.boxes.high - self.boxes.low).max(axis=0))

    def moved(self, power: int) -> int:
        """How far one record moves Σ (2x − low − high), at most, in Σ|Δ|^power: within a block by twice its sides, between
        two blocks by no more, since each of the two residuals is at most a side."""
        return int(((2 * self.sides) ** power).sum())

    def of(self, codes: Ints) -> Ints:
        """The block of each whole-domain cell."""
        group, position = self.resolved.place(codes)
        return np.asarray(group * self.resolved.n_positions + position)


def blocks(room: Space, graph: Graph, whole: Domain) -> Blocks | None:
    """The blocks of a graph over the space's domain; None where there is one alone, or too many, where they are no boxes, or
    where a record could change between places and cells that are none.
    """
    if graph.kind == "flat" or room.has_special:
        return None
    bins: dict[str, Any] = {}
    count = 1
    for name, axis in zip(room.domain.names, graph.axes, strict=True):
        if axis.size > MAX_ARRAY:
            return None
        try:
            pieces = np.asarray(axis.components, dtype=np.int64)
        except Unsupported:
            return None
        count *= int(pieces.max()) + 1
        if int(pieces.max()) + 1 == axis.size:
            continue
        told = _bins(room.domain, name, pieces)
        if told is None:
            return None
        bins[name] = told
    if not 1 < count <= MAX_BLOCKS:
        return None
    resolved = resolve(Histogram(*room.domain.names, bins=bins), whole)
    return Blocks(resolved, grid(room, resolved), bins)


def _bins(domain: Domain, name: str, pieces: Ints) -> Any:
    """Bins of a histogram whose cells are the pieces of an attribute; None where they are no runs, or no boxes of a map."""
    attribute = domain[name]
    assert not isinstance(attribute, Categorical)
    if isinstance(attribute, Point):
        grid_ = pieces.reshape(attribute.shape)
        cuts = [np.flatnonzero(np.diff(line, prepend=-1)) for line in (grid_[:, 0], grid_[0])]
        at = [
            np.searchsorted(cut, np.arange(n), side="right") - 1
            for cut, n in zip(cuts, grid_.shape, strict=True)
        ]
        boxes = at[0][:, None] * len(cuts[1]) + at[1][None, :]
        return [cut.tolist() for cut in cuts] if _same_parts(pieces, boxes.ravel()) else None
    heads = np.flatnonzero(np.diff(pieces, prepend=-1))
    if len(heads) != int(pieces.max()) + 1:
        return None
    return [attribute.low + int(h) * attribute.width for h in heads]


def _same_parts(a: Ints, b: Ints) -> bool:
    """Whether two labellings cut the cells into the same parts."""
    pairs = len(np.unique(a * (int(b.max()) + 1) + b))
    return pairs == len(np.unique(a)) == len(np.unique(b))
