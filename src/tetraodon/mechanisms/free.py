"""Which prefix rows a policy leaves free: those that no neighbouring table changes."""

from __future__ import annotations

import numpy as np

from ..axes import Axis, Bools, Ints
from ..graphs import Graph
from ..lattice import Grid
from ..quotient import label_change, quotient
from ..sensitivity import Neighbourhood
from ..sensitivity.kinds import Kinds, kinds_of
from ..workload import Resolved


def free_bounds(resolved: Resolved, hood: Neighbourhood) -> Bools:
    """Shape (P + 1,): prefix rows "position < bound" that no neighbour changes, in any group."""
    if hood.spares(resolved):
        return np.ones(resolved.n_positions + 1, dtype=bool)
    if hood.vanishing:  # every row but the empty one holds somebody who may not be there
        return np.asarray(np.arange(resolved.n_positions + 1) == 0, dtype=bool)
    if hood.is_plain:
        return _along_edges(resolved, hood.graph)
    return _known(resolved, kinds_of((resolved,), hood))


def _along_edges(resolved: Resolved, graph: Graph) -> Bools:
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
        elif isinstance(axis, Grid):
            cells = np.arange(axis.base, dtype=np.int64)
            _cross(touched, -axis.largest_partner(-cells, -axis.base), cells)
        else:
            ends = axis.all_edges()
            _cross(touched, ends[:, 0], ends[:, 1])
        for star in range(len(axis.stars)):
            partners = np.flatnonzero(axis.star_mask(star)).astype(np.int64)
            cell = np.full(len(partners), axis.base + star, dtype=np.int64)
            _cross(touched, np.minimum(partners, cell), np.maximum(partners, cell))
    return _untouched(touched, size)


def _known(resolved: Resolved, kinds: Kinds) -> Bools:
    """Under constraints that an edge can break, a row is free if it is constant on every class and class counts cannot move
    it; a class that lies in one group touches the bounds between its positions, one that does not also those after."""
    classes, size = kinds.hood.classes, resolved.n_positions
    assert classes is not None
    place = kinds.places[:, 0]
    group, position = np.where(place < 0, -1, place // size), np.where(place < 0, size, place % size)
    touched = np.zeros(size + 2, dtype=np.int64)
    heads = kinds.heads
    low, high = np.minimum.reduceat(position, heads), np.maximum.reduceat(position, heads)
    mixed = np.minimum.reduceat(group, heads) != np.maximum.reduceat(group, heads)
    _cross(touched, low, np.where(mixed, size, high))
    free = _untouched(touched, size)
    if classes.is_determined:
        return free
    if classes.kernel is None:
        # Only what is constant over the whole domain is sure not to move.
        everywhere = len(np.unique(place)) == 1 or (len(np.unique(group)) == 1 and group[0] >= 0)
        free[1:size] = False
        free[size] &= everywhere
        return free
    # Σ over classes of u_C · [the row holds C] must vanish in every group.
    held = group[heads] >= 0
    u = np.array(classes.kernel, dtype=np.int64)[held]
    table = np.zeros((resolved.n_groups, size), dtype=np.int64)
    np.add.at(table, (group[heads][held], low[held]), u)
    moved = (np.cumsum(table, axis=1) != 0).any(axis=0)
    free[1:] &= ~moved
    return free


def _untouched(touched: Ints, size: int) -> Bools:
    return np.asarray(np.cumsum(touched)[: size + 1] == 0, dtype=bool)


def _cross(touched: Ints, low: Ints, high: Ints) -> None:
    """Mark the bounds low + 1 … high, which hold ``low`` but not ``high``."""
    kept = low < high
    np.add.at(touched, low[kept] + 1, 1)
    np.add.at(touched, high[kept] + 1, -1)
