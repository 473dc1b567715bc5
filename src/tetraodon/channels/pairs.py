"""Which pairs of values a question about ε has to look at.

A law that only moves values by offsets gives the same loss to all pairs of one offset, so one pair of each is enough.
"""

from __future__ import annotations

import numpy as np

from ..axes import Ints
from ..domain import Domain
from ..errors import Unsupported
from ..graphs import Graph
from ..offsets import pairs_of_offsets, representatives
from .bounds import edges_of
from .geometry import MAX_ENTRIES, Geometry
from .law import Law

FEW = 512


def pairs_of(graph: Graph, law: Law) -> tuple[Ints, Ints]:
    """Cells (a, b) among which is a pair for every edge that has that edge's loss.

    For laws of offsets they may be more than the edges (a superset has no smaller loss); for others they are the edges.
    """
    by_offsets = getattr(law, "moves_by_offsets", False)
    if not by_offsets or graph.kind == "flat" or graph.domain.size <= FEW:
        return edges_of(graph)
    return representatives(graph)


def every_pair(domain: Domain, law: Law) -> tuple[Ints, Ints]:
    """Any two ordinary cells, or one pair for each offset."""
    place = Geometry(domain)
    if getattr(law, "moves_by_offsets", False):
        rows, columns = place.shape
        d, k = np.meshgrid(np.arange(rows), np.arange(-(columns - 1), columns), indexing="ij")
        keep = (d > 0) | (k > 0)
        return pairs_of_offsets(place.shape, np.stack([d[keep], k[keep]], axis=1))
    cells = np.flatnonzero(place.ordinary)
    if len(cells) ** 2 > MAX_ENTRIES:
        raise Unsupported("channel: all pairs of cells are compared up to 4,096 cells; declare coarser ones.")
    i, j = np.triu_indices(len(cells), 1)
    return cells[i], cells[j]
