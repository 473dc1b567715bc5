"""Which pairs of values a question about ε has to look at.

A law that only moves values by offsets gives the same loss to all pairs of one offset, so one pair of each is enough: a map
of 65,536 cells has 4·10^9 pairs but 130,000 offsets.
"""

from __future__ import annotations

import numpy as np

from ..attributes import Point
from ..axes import Axis, Ints
from ..domain import Domain
from ..errors import Unsupported
from ..graphs import Graph
from ..lattice import Lattice
from .bounds import edges_of
from .geometry import MAX_ENTRIES, Geometry
from .law import Law


def pairs_of(graph: Graph, law: Law) -> tuple[Ints, Ints]:
    """Cells (a, b) among which is a pair for every edge that has that edge's loss.

    For laws of offsets they may be more than the edges (a superset has no smaller loss); for others they are the edges.
    """
    if not getattr(law, "moves_by_offsets", False) or graph.kind == "flat" or _few(graph):
        return edges_of(graph)
    place = Geometry(graph.domain)
    if not place.ordinary.all():
        special = [a.size > a.n_values for a in graph.domain.values()]
        if any(special) and graph.has_edges and _special_edges(graph):
            return edges_of(graph)
    return _representatives(place.shape, _offsets(graph))


def every_pair(domain: Domain, law: Law) -> tuple[Ints, Ints]:
    """Any two ordinary cells, or one pair for each offset."""
    place = Geometry(domain)
    if getattr(law, "moves_by_offsets", False):
        rows, columns = place.shape
        d, k = np.meshgrid(np.arange(rows), np.arange(-(columns - 1), columns), indexing="ij")
        keep = (d > 0) | (k > 0)
        return _representatives(place.shape, np.stack([d[keep], k[keep]], axis=1))
    cells = np.flatnonzero(place.ordinary)
    if len(cells) ** 2 > MAX_ENTRIES:
        raise Unsupported("channel: all pairs of cells are compared up to 4,096 cells; declare coarser ones.")
    i, j = np.triu_indices(len(cells), 1)
    return cells[i], cells[j]


def _few(graph: Graph) -> bool:
    return graph.domain.size <= 512


def _special_edges(graph: Graph) -> bool:
    return any(told is not False for axis in graph.axes for told in axis.stars)


def _offsets(graph: Graph) -> Ints:
    """Row and column offsets of at least every edge, shape (offsets, 2), each in one direction."""
    [*attributes] = graph.domain.values()
    if len(attributes) == 1 and isinstance(attributes[0], Point):
        return _on_map(graph.axes[0], attributes[0].shape)
    reach = [_widest(axis) for axis in graph.axes]
    if len(reach) == 1:
        reach = [0, *reach]
    if graph.kind == "cartesian":
        rows = [(d, 0) for d in range(1, reach[0] + 1)]
        return np.array(rows + [(0, k) for k in range(1, reach[1] + 1)], dtype=np.int64).reshape(-1, 2)
    return _box(*reach)


def _on_map(axis: Axis, shape: tuple[int, int]) -> Ints:
    if not axis.has_edges:
        return np.zeros((0, 2), dtype=np.int64)
    if not isinstance(axis, Lattice):
        return _box(shape[0] - 1, shape[1] - 1)
    found = [(d, k) for d, most in enumerate(axis.offsets.tolist()) for k in range(-most, most + 1)]
    return np.array([(d, k) for d, k in found if d > 0 or k > 0], dtype=np.int64).reshape(-1, 2)


def _box(rows: int, columns: int) -> Ints:
    d, k = np.meshgrid(np.arange(rows + 1), np.arange(-columns, columns + 1), indexing="ij")
    keep = (d > 0) | (k > 0)
    return np.stack([d[keep], k[keep]], axis=1)


def _widest(axis: Axis) -> int:
    if not axis.has_edges:
        return 0
    return axis.widest[0] if axis.is_interval else axis.base - 1


def _representatives(shape: tuple[int, int], offsets: Ints) -> tuple[Ints, Ints]:
    columns = shape[1]
    d, k = offsets[:, 0], offsets[:, 1]
    a = np.maximum(-k, 0)
    return a, d * columns + a + k
