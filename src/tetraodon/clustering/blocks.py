"""Whole blocks: the connected pieces of a secret graph as points, for policies that disclose which piece a record lies in."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ..axes import MAX_ARRAY, Ints
from ..errors import Unsupported
from ..graphs import Graph
from .space import Space

MAX_BLOCKS = 2**16


@dataclass(frozen=True, eq=False)
class Blocks:
    """The pieces as boxes.

    Attributes:
        room: the space.
        labels: per attribute (or once, over the whole domain), shape (cells,): the piece of each cell.
        low, high: shape (blocks, d): the box around each block.
        moved: the longest edge in Σ|Δ|, and in Σ Δ².
    """

    room: Space
    labels: tuple[Ints, ...]
    low: Ints
    high: Ints
    moved: tuple[int, int]

    @property
    def count(self) -> int:
        return len(self.low)

    @property
    def centres(self) -> Ints:
        """Shape (blocks, d), whole coordinates: the middle of each box, rounded down."""
        return np.asarray((self.low + self.high) // 2)

    def of(self, codes: Ints) -> Ints:
        """The block of each whole-domain cell."""
        if len(self.labels) == 1:
            return self.labels[0][codes]
        found = np.zeros(len(codes), dtype=np.int64)
        for label, cells in zip(self.labels, self.room.domain.decode(codes), strict=True):
            found = found * (int(label.max()) + 1) + label[cells]
        return found


def blocks(room: Space, graph: Graph) -> Blocks | None:
    """The blocks of a graph over the space's domain; None where there is one alone, or too many, or where a record could
    change between places and cells that are none.

    Within a block an edge moves a record by at most the block's sides: their sum, or the longest attribute's where edges
    change one attribute at a time.
    """
    try:
        pieces = [
            np.asarray(axis.components, dtype=np.int64) for axis in graph.axes if axis.size <= MAX_ARRAY
        ]
    except Unsupported:
        return None
    if len(pieces) < len(graph.axes) or room.has_special:
        return None
    counts = [int(p.max()) + 1 for p in pieces]
    if not 1 < prod(counts) <= MAX_BLOCKS:
        return None
    lows, highs, sides = [], [], []
    for number, (label, count) in enumerate(zip(pieces, counts, strict=True)):
        dims = [i for i, a in enumerate(room.of) if a == number or len(pieces) == 1]
        at = _coordinates(room, dims, len(label))
        low = np.full((count, len(dims)), np.iinfo(np.int64).max)
        high = np.full((count, len(dims)), -1)
        np.minimum.at(low, label, at)
        np.maximum.at(high, label, at)
        lows.append(low)
        highs.append(high)
        sides.append([int(((high - low) ** p).sum(axis=1).max()) for p in (1, 2)])
    together = max if graph.kind == "cartesian" else sum
    moved = (together(s[0] for s in sides), together(s[1] for s in sides))
    return Blocks(room, tuple(pieces), _product(lows), _product(highs), moved)


def _coordinates(room: Space, dims: list[int], size: int) -> Ints:
    """Coordinates, along some dimensions, of the cells that they number row-major."""
    grid = np.meshgrid(*(room.lines[i] for i in dims), indexing="ij")
    found = np.stack(grid, axis=-1).reshape(-1, len(dims))
    assert len(found) == size
    return found


def _product(parts: list[Ints]) -> Ints:
    """Every combination of rows, the last part fastest, side by side."""
    found = parts[0]
    for part in parts[1:]:
        found = np.concatenate([np.repeat(found, len(part), axis=0), np.tile(part, (len(found), 1))], axis=1)
    return found
