"""Offsets between cells of a grid that the edges of a secret graph span.

What depends on offsets alone need not go through edges: a map of 65,536 cells has 4·10^9 pairs but 130,000 offsets.
"""

from __future__ import annotations

import numpy as np

from .attributes import Point
from .axes import Axis, Ints
from .errors import Unsupported
from .graphs import Graph
from .lattice import Blocks, Lattice


def shape_of(graph: Graph) -> tuple[int, int]:
    """(rows, columns) of the ordinary cells of a domain that is a grid of one or two axes.

    Raises:
        Unsupported: it is none.
    """
    sides = [n for a in graph.domain.values() for n in (a.shape if isinstance(a, Point) else (a.n_values,))]
    if len(sides) > 2:
        raise Unsupported("channel: a grid has one or two axes; name fewer attributes.")
    return (1, sides[0]) if len(sides) == 1 else (sides[0], sides[1])


def representatives(graph: Graph) -> tuple[Ints, Ints]:
    """Ordinary cells (a, b), one pair for every offset that an edge spans, and perhaps some for offsets that none does; pairs
    with special cells that edges join come on top."""
    a, b = pairs_of_offsets(shape_of(graph), _offsets(graph))
    stars = [axis for axis in graph.axes if any(told is not False for told in axis.stars)]
    if not stars:
        return a, b
    if len(graph.axes) > 1:
        raise Unsupported(
            "channel: special cells of two axes that are secret from others; declare missing='refuse'."
        )
    [axis] = stars
    ends = [np.flatnonzero(axis.star_mask(k))[:1] for k, told in enumerate(axis.stars) if told is not False]
    cells = [np.full(len(e), axis.base + k, dtype=np.int64) for k, e in enumerate(ends)]
    return np.concatenate([a, *ends]), np.concatenate([b, *cells])


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
    if axis.pairs is not None:
        a, b = axis.all_edges().T
        inside = (a < axis.base) & (b < axis.base)
        low, high = (np.divmod(c[inside], shape[1]) for c in (np.minimum(a, b), np.maximum(a, b)))
        return np.unique(np.stack([high[0] - low[0], high[1] - low[1]], axis=1), axis=0)
    if isinstance(axis, Blocks):
        boxes = [_box(rows, columns) for rows, columns in extents(axis.components[: axis.base], shape[1])]
        return np.unique(np.concatenate(boxes), axis=0)
    if not isinstance(axis, Lattice):
        return _box(shape[0] - 1, shape[1] - 1)
    found = [(d, k) for d, most in enumerate(axis.offsets.tolist()) for k in range(-most, most + 1)]
    return np.array([(d, k) for d, k in found if d > 0 or k > 0], dtype=np.int64).reshape(-1, 2)


def extents(label: Ints, columns: int) -> list[tuple[int, int]]:
    """Rows and columns between the outermost cells of every block of a map, each pair once.

    >>> extents(np.array([0, 0, 1, 0, 0, 1]), 3)
    [(1, 0), (1, 1)]
    """
    found = []
    for line in np.divmod(np.arange(len(label)), columns):
        low = np.full(int(label.max()) + 1, len(label), dtype=np.int64)
        high = np.zeros_like(low)
        np.minimum.at(low, label, line)
        np.maximum.at(high, label, line)
        found.append(np.maximum(high - low, 0))
    return [(int(d), int(k)) for d, k in np.unique(np.stack(found, axis=1), axis=0)]


def _box(rows: int, columns: int) -> Ints:
    d, k = np.meshgrid(np.arange(rows + 1), np.arange(-columns, columns + 1), indexing="ij")
    keep = (d > 0) | (k > 0)
    return np.stack([d[keep], k[keep]], axis=1)


def _widest(axis: Axis) -> int:
    if not axis.has_edges:
        return 0
    return axis.widest[0] if axis.is_interval else axis.base - 1


def pairs_of_offsets(shape: tuple[int, int], offsets: Ints) -> tuple[Ints, Ints]:
    """A pair of cells for every (row, column) offset."""
    columns = shape[1]
    d, k = offsets[:, 0], offsets[:, 1]
    a = np.maximum(-k, 0)
    return a, d * columns + a + k
