"""Which prefix rows a policy leaves free: those that no edge of the secret graph changes."""

from __future__ import annotations

import numpy as np

from ..axes import Axis, Bools, Ints
from ..graphs import Graph
from ..quotient import label_change, quotient
from ..workload import Resolved


def free_bounds(resolved: Resolved, graph: Graph) -> Bools:
    """Shape (P + 1,): prefix rows "position < bound" that no edge of the policy changes."""
    size = resolved.n_positions
    small = graph.project(resolved.domain.names)
    touched = np.zeros(size + 2, dtype=np.int64)  # difference array over bounds
    if small.kind == "flat":
        for a, b in small.edges():
            (ga, pa), (gb, pb) = resolved.place(a), resolved.place(b)
            x, y = np.where(ga < 0, size, pa), np.where(gb < 0, size, pb)
            apart = (ga != gb) & (ga >= 0) & (gb >= 0)
            _cross(touched, np.minimum(x, y), np.where(apart, size, np.maximum(x, y)))
    else:
        axis = Axis(1)
        if resolved.axis is not None:
            axis = quotient(small.axis(resolved.axis.name), resolved.axis.labels)
        movers = [(g.name, g.labels) for g in resolved.groups]
        movers += [(n, np.where(kept, 0, -1).astype(np.int64)) for n, kept in resolved.filters]
        if any(label_change(small.axis(n), labels)[0] for n, labels in movers):
            _cross(touched, np.array([0]), np.array([size]))
        if axis.is_interval:
            _cross(touched, axis.first, np.arange(axis.base, dtype=np.int64))
        else:
            ends = axis.all_edges()
            _cross(touched, ends[:, 0], ends[:, 1])
        for star in range(len(axis.stars)):
            partners = np.flatnonzero(axis.star_mask(star)).astype(np.int64)
            cell = np.full(len(partners), axis.base + star, dtype=np.int64)
            _cross(touched, np.minimum(partners, cell), np.maximum(partners, cell))
    return np.asarray(np.cumsum(touched)[: size + 1] == 0, dtype=bool)


def _cross(touched: Ints, low: Ints, high: Ints) -> None:
    """Mark the bounds low + 1 … high, which hold ``low`` but not ``high``."""
    kept = low < high
    np.add.at(touched, low[kept] + 1, 1)
    np.add.at(touched, high[kept] + 1, -1)
