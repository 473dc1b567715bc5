"""How far a secret graph reaches: hops between any two cells, and the longest distance that one edge spans."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

from ..attributes import Point
from ..axes import Axis, Ints
from ..errors import SpecificationError, Unsupported
from ..graphs import Graph
from ..lattice import Blocks, Lattice
from ..offsets import extents
from .bounds import edges_of
from .geometry import MAX_ENTRIES, Floats, Geometry

LISTED = 4096


def hops(graph: Graph) -> Floats:
    """Shape (cells, cells): edges between any two cells, infinite where no path joins them.

    Raises:
        Unsupported: more than 4,096 cells.

    >>> from ..attributes import Integer
    >>> from ..binding import bind
    >>> from ..domain import Domain
    >>> from ..secrets import Within
    >>> hops(bind(Within(2), Domain(x=Integer(0, 4)))).tolist()[0]
    [0.0, 1.0, 1.0, 2.0, 2.0]
    """
    n = graph.domain.size
    if n * n > MAX_ENTRIES:
        raise Unsupported("channel: hops between up to 4,096 cells; declare coarser ones.")
    if graph.kind not in ("cartesian", "strong"):
        return _shortest(n, np.stack(edges_of(graph), axis=1))
    cells = graph.domain.decode(np.arange(n))
    found: Floats = np.zeros((n, n))
    for axis, own in zip(graph.axes, cells, strict=True):
        told = _shortest(axis.size, axis.all_edges())[own[:, None], own[None, :]]
        found = found + told if graph.kind == "cartesian" else np.maximum(found, told)
    return found


def _shortest(n: int, edges: Ints) -> Floats:
    if len(edges) == n * (n - 1) // 2:
        return 1.0 - np.eye(n)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    ends = edges.astype(np.int32)
    matrix = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return np.asarray(shortest_path(matrix, directed=False, unweighted=True), dtype=np.float64)


def longest(graph: Graph, place: Geometry) -> Fraction:
    """The longest distance between the centres of two joined cells of a grid, or a little more; 0 without edges.

    Graphs over two attributes of more than 4,096 cells in all count as if an edge could move both of them as far as it can
    move each.

    Raises:
        SpecificationError: an edge with a special cell, which has no place.

    >>> from ..attributes import Point
    >>> from ..binding import bind
    >>> from ..domain import Domain
    >>> from ..secrets import Within
    >>> plane = Domain(at=Point("x", "y", box=((0, 9), (0, 9)), cell=1, metric="planar"))
    >>> float(longest(bind(Within(1), plane), Geometry(plane))) == 2**0.5
    True
    """
    if any(told is not False for axis in graph.axes for told in axis.stars) and graph.has_edges:
        raise SpecificationError(
            "secrets: planar noise cannot hide whether a place is missing; declare missing='public', or use "
            "channels.exponential."
        )
    height, width = place.steps
    spans = _spans(graph, place)
    return max((_root(d * d * height**2 + k * k * width**2) for d, k in spans), default=Fraction(0))


def _spans(graph: Graph, place: Geometry) -> list[tuple[int, int]]:
    """Rows and columns that edges span: enough of them to hold the longest."""
    rows, columns = place.shape
    [first, *others] = graph.domain.values()
    axis = graph.axes[0]
    if isinstance(first, Point) and not others and isinstance(axis, Lattice):
        return [(d, int(k)) for d, k in enumerate(axis.offsets) if k >= 0 and axis.has_edges]
    if isinstance(axis, Blocks) and not others:
        return extents(axis.components[: axis.base], columns)
    if rows * columns <= LISTED or graph.kind == "flat" or axis.pairs is not None:
        a, b = edges_of(graph)
        d, k = np.abs(b // columns - a // columns), np.abs(b % columns - a % columns)
        return [(int(i), int(j)) for i, j in np.unique(np.stack([d, k], axis=1), axis=0)]
    if isinstance(first, Point):
        return [(rows - 1, columns - 1)] if axis.has_edges else []
    told = [_widest(each) for each in graph.axes]
    if len(told) == 1:
        return [(0, told[0])]
    return [(told[0], 0), (0, told[1])] if graph.kind == "cartesian" else [(told[0], told[1])]


def _widest(axis: Axis) -> int:
    if not axis.has_edges:
        return 0
    return axis.widest[0] if axis.is_interval else axis.base - 1


def _root(square: Fraction) -> Fraction:
    """The square root, rounded up to 64 more bits than the denominator has; exact where it is rational with that many.

    >>> _root(Fraction(9, 4))
    Fraction(3, 2)
    """
    number = square.numerator * square.denominator << 128
    whole = isqrt(number)
    return Fraction(whole + (whole * whole < number), square.denominator << 64)
