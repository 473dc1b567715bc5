"""Sets of cells whose total no neighbouring table changes: the blocks that a policy discloses, over several attributes at once.

A record that moves along edges never leaves its component of the secret graph, so the number of records of every component
is no secret. Along one axis prefix rows say so already (``free``); over several attributes, or places of a map, the sum of
such a block joins groups. It is observed exactly, at no cost, and finer answers are made to agree with it. Source: math of
components (Haney, Machanavajjhala, Ding 2015, case II), derived in docs/mechanisms.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from ..axes import Axis, Ints
from ..binning import Grouping
from ..quotient import label_change, quotient
from ..sensitivity import Neighbourhood
from ..sensitivity.joint import Joint
from ..workload import Resolved

MAX_PLACES = 2**22
FEW, SMALL = 256, 2_000_000


@dataclass(frozen=True, eq=False)
class DisclosedBlocks:
    """The blocks of a query's table, shape (groups, positions), that nothing leaves or enters.

    Attributes:
        factors: for each attribute, groups first, then the axis: 0/1 rows, one for every component of its positions.
        labels: shape (places,): number of the block of each place, row-major over the components of the attributes.
    """

    factors: tuple[Ints, ...]
    labels: Ints

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return prod(len(f) for f in self.factors)

    @property
    def is_small(self) -> bool:
        """Whether their totals can be put into an estimate that is not cell by cell, in a moment."""
        return self.count <= FEW and self.count * len(self.labels) <= SMALL

    @property
    def layer(self) -> Joint:
        """Their totals as rows."""
        return Joint(self.factors)

    def totals(self, table: Ints) -> Ints:
        """Shape (blocks,): the total of every block of a table of counts."""
        found = np.zeros(self.count, dtype=np.int64)
        np.add.at(found, self.labels, table.ravel())
        return found


@lru_cache(maxsize=64)
def disclosed_blocks(resolved: Resolved, hood: Neighbourhood) -> DisclosedBlocks | None:
    """The blocks whose totals are no secret; None where there are none beyond single cells, runs of an axis, or everything."""
    if hood.classes is not None or hood.vanishing or hood.spares(resolved):
        return None
    small = hood.graph.project(resolved.domain.names)
    every = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
    if small.kind == "flat" or not every or resolved.n_groups * resolved.n_positions > MAX_PLACES:
        return None
    for name, kept in resolved.filters:
        if label_change(small.axis(name), np.where(kept, 0, -1).astype(np.int64))[0]:
            return None
    told = [_components(small.axis(g.name), g) for g in every]
    if any(t is None for t in told):
        return None
    parts = [t for t in told if t is not None]
    sizes = [int(p.max()) + 1 for p in parts]
    count, places = prod(sizes), prod(len(p) for p in parts)
    by_group = all(size == len(p) for size, p in zip(sizes[: len(resolved.groups)], parts, strict=False))
    if count in (1, places) or (by_group and resolved.axis is not None):
        return None  # rows repeated in every group, or the total of all, say as much
    labels: Ints = np.zeros(1, dtype=np.int64)
    for size, part in zip(sizes, parts, strict=True):
        labels = (labels[:, None] * size + part[None, :]).ravel()
    rows = [(np.arange(n)[:, None] == p).astype(np.int64) for n, p in zip(sizes, parts, strict=True)]
    return DisclosedBlocks(tuple(rows), labels)


def _components(axis: Axis, grouping: Grouping) -> Ints | None:
    """Component of every position of an attribute, numbered from 0; None where a filter can take a record of one out."""
    joined = quotient(axis, grouping.labels)
    found = joined.components
    if joined.size > grouping.size and np.isin(found[: grouping.size], found[grouping.size :]).any():
        return None
    _, numbered = np.unique(found[: grouping.size], return_inverse=True)
    return np.ravel(numbered).astype(np.int64)
