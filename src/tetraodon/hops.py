"""How many edges of one secret graph lie between the two ends of an edge of another.

A release whose rows are not known, only that it is ε-private under a graph G, loses at most ε·d_G(x, y) between any two
values; so under another graph it costs ε times the largest d_G(x, y) over that graph's edges, and no finite amount where an
edge joins two components of G.
"""

from __future__ import annotations

import numpy as np

from .axes import MAX_ARRAY, Axis, Ints
from .errors import Unsupported
from .graphs import Graph
from .lattice import Grid
from .map_hops import farthest_on_map

SMALL = 2048


def farthest(measured: Graph, along: Graph) -> dict[str, int] | None:
    """The largest number of edges of ``measured`` between the ends of an edge of ``along``, or a bound of it, for the edges
    that move each attribute ("any" for edges that move several); None if an edge joins two components.

    Raises:
        Unsupported: graphs over whole cells, or listed pairs, of more than 2,048 cells.

    >>> from .attributes import Integer
    >>> from .binding import bind
    >>> from .domain import Domain
    >>> from .graphs import Full, Within
    >>> ages = Domain(age=Integer(0, 99))
    >>> farthest(bind(Within(10), ages), bind(Within(25), ages)), farthest(bind(Within(25), ages), bind(Full(), ages))
    ({'age': 3}, {'any': 4})
    """
    if "flat" in (measured.kind, along.kind):
        if measured.domain.size > SMALL:
            raise Unsupported(
                "secrets over whole cells are compared up to 2,048 cells; use coarser attributes."
            )
        told = [_edges(graph) for graph in (measured, along)]
        found = _dense(measured.domain.size, told[0], told[1])
        return None if found is None else {"any": found} if found else {}
    hops: dict[str, int] = {}
    for name, axis in zip(along.domain.names, along.axes, strict=True):
        found = _along(measured.axis(name), axis)
        if found is None:
            return None
        if found:
            hops[name] = found
    if along.kind == "cartesian" or not hops:
        return hops
    # Only where any attributes may change at once, each as far as it alone may, do the hops of one serve another.
    return {"any": max(hops.values()) if measured.kind == "strong" else sum(hops.values())}


def widest(measured: Graph) -> int | None:
    """The largest number of edges between any two cells of the domain, or a bound of it; None if it is not connected."""
    domain = measured.domain
    every = Graph(domain, "strong", tuple(Axis(size, window=size - 1) for size in domain.shape))
    found = farthest(measured, every)
    return None if found is None else max(found.values(), default=0)


def _edges(graph: Graph) -> Ints:
    listed = [np.stack(pair, axis=1) for pair in graph.edges()]
    return np.concatenate(listed) if listed else np.zeros((0, 2), dtype=np.int64)


def _dense(size: int, measured: Ints, along: Ints) -> int | None:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    if not len(along):
        return 0
    ends = measured.astype(np.int32)
    matrix = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
    distance = shortest_path(matrix, directed=False, unweighted=True)
    most = float(distance[along[:, 0], along[:, 1]].max())
    return int(most) if np.isfinite(most) else None


def _along(measured: Axis, along: Axis) -> int | None:
    if not along.has_edges:
        return 0
    if measured.size <= SMALL:
        return _dense(measured.size, measured.all_edges(), along.all_edges())
    if isinstance(measured, Grid) or isinstance(along, Grid):
        return farthest_on_map(measured, along)
    if not (measured.is_interval and along.is_interval) or measured.size > MAX_ARRAY:
        raise Unsupported(
            "secrets given as pairs are compared up to 2,048 cells of an attribute; use coarser cells."
        )
    flags = [told for axis in (measured, along) for told in axis.stars]
    if not all(isinstance(told, bool) for told in flags):
        raise Unsupported("secrets of filtered cells are compared up to 2,048 cells of an attribute.")
    if measured.base != along.base:  # one of them has a cell outside the order that the other does not
        return 2 if measured.stars and all(measured.stars) else None
    if measured.base == along.base and any(
        q and not p for p, q in zip(measured.stars, along.stars, strict=True)
    ):
        return None
    if any(measured.stars):
        return 2  # through a cell that is joined to every other
    low, high = along.first, np.arange(along.base, dtype=np.int64)
    if measured.starts is None:
        gap = int((high - low).max(initial=0))
        if gap and not measured.window:
            return None
        return -(-gap // measured.window) if gap else 0
    return _greedy(measured.starts, low, high)


def _greedy(starts: Ints, low: Ints, high: Ints) -> int | None:
    """Largest number of steps y → starts[y] from high[i] down to low[i] or below, by doubling; None if some step stands."""
    jumps = [starts]
    while (jumps[-1] > 0).any() and len(jumps) < 40:
        jumps.append(jumps[-1][jumps[-1]])
    at, hops = high.copy(), np.zeros(len(high), dtype=np.int64)
    for power in reversed(range(len(jumps))):
        far = jumps[power][at]
        go = far > low
        at = np.where(go, far, at)
        hops += np.where(go, 1 << power, 0)
    left = at > low
    if (starts[at][left] > low[left]).any():
        return None
    return int((hops + left).max(initial=0))
