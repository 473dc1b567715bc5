"""How many edges of one graph lie between the ends of an edge of another, where one of them is the graph of a map."""

from __future__ import annotations

from .axes import Axis
from .errors import Unsupported
from .lattice import Blocks, Grid, Lattice
from .offsets import extents
from .quotient import label_change


def farthest_on_map(measured: Axis, along: Axis) -> int | None:
    """The largest number of edges of ``measured`` between the ends of an edge of ``along``, or a bound of it; None if such
    an edge joins two components.

    Between two maps whose reach is the same for all rows the maximum is exact: hops depend on the offset alone and do not
    fall with it, so the longest offset of every row distance is enough. Blocks of a map are taken for the rectangles around
    them.

    Raises:
        Unsupported: great circles over more than a few thousand cells.

    >>> import numpy as np
    >>> short, long = (Lattice(16, columns=4, reach=np.array([r])) for r in ([1, 1], [3, 1, 0]))
    >>> farthest_on_map(short, long)
    3
    """
    if not along.has_edges:
        return 0
    if measured.base != along.base or len(measured.stars) != len(along.stars):
        # What is a special cell of one graph is a value like any other of the other graph.
        return 2 if measured.stars and all(told is True for told in measured.stars) else None
    if any(q is not False and p is not True for p, q in zip(measured.stars, along.stars, strict=True)):
        return None
    if True in measured.stars:
        return 2  # through a cell that is joined to every other
    if not measured.has_inner_edges:
        return None
    if isinstance(measured, Blocks):
        return 1 if label_change(along, measured.components)[0] == 0 else None
    if measured.is_interval and measured.starts is None and measured.window >= measured.base - 1:
        return 1
    if not isinstance(measured, Lattice) or (measured.reach is not None and len(measured.reach) > 1):
        raise Unsupported(
            "secrets of places by great circles, or by pairs, are compared up to 2,048 cells; use coarser cells."
        )
    most = 0
    for d, k in _offsets(along, measured.columns):
        if d or k:
            hops = measured.distance(0, d * measured.columns + k)
            if hops is None:
                return None
            most = max(most, hops)
    return most


def _offsets(along: Axis, columns: int) -> list[tuple[int, int]]:
    """Row and column distances that no edge exceeds in both, from the first cell of the map."""
    rows = along.base // columns
    if isinstance(along, Lattice):
        return [(d, k) for d, k in enumerate(along.offsets.tolist()) if k >= 0]
    if not isinstance(along, Grid):
        return [(rows - 1, columns - 1)]  # any two cells, at most
    return extents(along.components[: along.base], columns)
