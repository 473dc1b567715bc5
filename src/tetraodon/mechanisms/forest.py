"""The shape of a strategy along one axis: blocks in a chain, a tree inside every block.

Positions 0..P−1 are cut into blocks of ``block`` positions (the last may be shorter). Rows of the strategy are

* the *chain*: the prefix sum at the end of every block;
* the *levels*: every block is split into ``fanout`` pieces of width ⌈width/fanout⌉, those again, down to single positions;
  level l holds the count of every piece of depth l. Pieces of width 1 are not split further.

``Ordered`` is block = 1 (only the chain), ``Hierarchical`` is block = P (one tree and the total), ``Identity`` is one tree
with fan-out P, ``OrderedHierarchical`` is what lies between (He, Machanavajjhala, Ding 2014, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..axes import Ints
from ..sensitivity import rows


@dataclass(frozen=True, eq=False)
class Level:
    """The pieces of one depth, in order.

    Attributes:
        starts, widths: of each piece.
        parent: index of its parent in the level above (in the blocks, for the first level).
        rank: its place among its siblings.
    """

    starts: Ints
    widths: Ints
    parent: Ints
    rank: Ints


@dataclass(frozen=True)
class Forest:
    """Blocks of ``block`` positions in a chain over ``size`` positions, split with ``fanout``.

    >>> [level.widths.tolist() for level in Forest(5, 5, 2).levels]
    [[3, 2], [2, 1, 1, 1], [1, 1]]
    """

    size: int
    block: int
    fanout: int

    @property
    def n_blocks(self) -> int:
        return -(-self.size // self.block)

    @cached_property
    def height(self) -> int:
        """Number of levels below the blocks."""
        width, height = self.block, 0
        while width > 1:
            width, height = -(-width // self.fanout), height + 1
        return height

    @cached_property
    def ends(self) -> Ints:
        """Shape (n_blocks,): one past the last position of each block; the bounds of the chain's rows."""
        return np.minimum(np.arange(1, self.n_blocks + 1, dtype=np.int64) * self.block, self.size)

    @cached_property
    def block_widths(self) -> Ints:
        return np.diff(np.concatenate([[0], self.ends]))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The pieces, level by level; a level holds the children of the pieces wider than 1 above it."""
        starts, widths = self.ends - self.block_widths, self.block_widths
        listed = []
        for _ in range(self.height):
            split = np.flatnonzero(widths > 1)
            step = -(-widths[split] // self.fanout)
            count = -(-widths[split] // step)
            parent = np.repeat(split, count)
            rank = np.arange(len(parent), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
            step = np.repeat(step, count)
            child = starts[parent] + rank * step
            width = np.minimum(step, starts[parent] + widths[parent] - child)
            listed.append(Level(child, width, parent, rank))
            starts, widths = child, width
        return tuple(listed)

    def level_rows(self, level: int, weight: int) -> rows.Blocks:
        """One level as strategy rows."""
        pieces = self.levels[level]
        if self.height == 1 and len(pieces.starts) == self.size:
            return rows.Blocks(self.size, weight=weight)
        return rows.Blocks(self.size, pieces.starts, pieces.starts + pieces.widths, weight)

    def chain_rows(self, kept: Ints, weight: int) -> rows.Prefixes:
        """The chain's rows at some of its bounds (indices into ``ends``)."""
        if self.block == 1 and len(kept) == self.size:
            return rows.Prefixes(self.size, None, weight)
        return rows.Prefixes(self.size, self.ends[kept], weight)

    def apply(self, table: Ints) -> tuple[Ints, list[Ints]]:
        """Exact values of all rows: (chain (groups, blocks), one array (groups, pieces) per level), int64."""
        prefix = np.zeros((table.shape[0], self.size + 1), dtype=np.int64)
        np.cumsum(table, axis=1, out=prefix[:, 1:])
        chain = prefix[:, self.ends]
        levels = [prefix[:, p.starts + p.widths] - prefix[:, p.starts] for p in self.levels]
        return chain, levels
