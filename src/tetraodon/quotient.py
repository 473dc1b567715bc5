"""What a secret graph becomes when cells are binned or filtered, and how far an edge can move a group label.

Positions are what a query sees of one attribute: several cells may share a position, and cells that a filter leaves out
have none (label −1).
"""

from __future__ import annotations

import numpy as np

from .axes import Axis, Bools, Ints
from .errors import Unsupported
from .lattice import Grid, Lattice

Edge = tuple[int, int]
MAX_PASSES = 2_000_000_000


def quotient(axis: Axis, labels: Ints | None) -> Axis:
    """The graph on positions: p – q is an edge if some cells with these positions are joined.

    Args:
        axis: the graph on cells.
        labels: shape (axis.size,): position of each cell, −1 for cells left out; None means position = cell.

    Returns:
        A graph on the positions 0..P−1 and, where cells are left out, one more star P standing for all of them.
    """
    if labels is None:
        return axis
    count = int(labels.max(initial=-1)) + 1
    outside = bool((labels < 0).any())
    if isinstance(axis, Grid):
        return Axis(count + outside, pairs=_pairs_on_map(axis, np.where(labels < 0, count, labels)))
    ordered, rest = labels[: axis.base], labels[axis.base :]
    inside = ordered >= 0
    kept = ordered[inside]
    base = int(kept.max(initial=-1)) + 1
    monotone = bool((np.diff(kept) >= 0).all()) and np.array_equal(np.unique(kept), np.arange(base))
    own = np.array_equal(rest[rest >= 0], np.arange(base, count))
    if not (axis.is_interval and monotone and own and all(isinstance(s, bool) for s in axis.stars)):
        ends = axis.all_edges()
        at = np.where(labels < 0, count, labels)[ends]
        at = np.sort(at[at[:, 0] != at[:, 1]], axis=1)
        pairs = np.unique(at, axis=0) if len(at) else np.zeros((0, 2), dtype=np.int64)
        return Axis(count + outside, pairs=pairs.astype(np.int64))
    starts = _starts(axis, inside, ordered, base)
    stars: list[bool | Bools] = [s for s, r in zip(axis.stars, rest, strict=True) if r >= 0]
    if outside:
        stars.append(_joined_to_outside(axis, labels, base, count))
    return Axis(base, starts=starts, stars=tuple(stars))


def _pairs_on_map(axis: Grid, labels: Ints) -> Ints:
    """Which positions hold joined cells, position by position."""
    inner = labels[: axis.base]
    present = np.unique(inner)
    depth = axis.depth + 1 if isinstance(axis, Lattice) else 1
    if len(present) * axis.base * depth > MAX_PASSES:
        raise Unsupported(
            "too many positions for a secret graph over places; ask for coarser bins, or declare coarser cells."
        )
    found = []
    for p in present.tolist():
        near = axis.largest_partner((inner == p).astype(np.int64), 0) > 0
        reached = np.unique(inner[near])
        found.append(np.stack([np.full(len(reached), p, dtype=np.int64), reached], axis=1))
    for star, told in enumerate(axis.stars):
        if told is not False:
            reached = np.unique(labels[np.flatnonzero(axis.star_mask(star))])
            found.append(np.stack([np.full(len(reached), labels[axis.base + star]), reached], axis=1))
    at = np.sort(np.concatenate(found), axis=1)
    return np.unique(at[at[:, 0] != at[:, 1]], axis=0).astype(np.int64)


def behind(axis: Grid, labels: Ints, edge: Edge) -> Edge:
    """Two joined cells of a map that have the positions of an edge of its quotient."""
    outside = int(labels.max()) + 1
    at = np.where(labels < 0, outside, labels)
    for p, q in (edge, edge[::-1]):
        for cell in np.flatnonzero(at[axis.base :] == p) + axis.base:
            partners = np.flatnonzero((at == q) & axis.joined(np.array(cell), np.arange(axis.size)))
            if len(partners):
                return (int(cell), int(partners[0])) if p == edge[0] else (int(partners[0]), int(cell))
    inner = at[: axis.base]
    near = axis.largest_partner((inner == edge[1]).astype(np.int64), 0) > 0
    x = int(np.argmax(near & (inner == edge[0])))
    return x, axis.partner(x, inner == edge[1])


def _starts(axis: Axis, inside: Bools, ordered: Ints, base: int) -> Ints:
    """first[] on positions: that of the first cell of each position, moved up to the next cell that is kept."""
    cells = np.flatnonzero(inside)
    _, at = np.unique(ordered[cells], return_index=True)
    heads = cells[at]
    nearest = np.searchsorted(cells, axis.first[heads])
    return np.minimum(ordered[cells[nearest]], np.arange(base)) if base else np.zeros(0, dtype=np.int64)


def _joined_to_outside(axis: Axis, labels: Ints, base: int, count: int) -> Bools:
    mask = np.zeros(count + 1, dtype=bool)
    out = labels < 0
    ordered_out = out[: axis.base]
    before = np.concatenate([[0], np.cumsum(ordered_out)])
    cells = np.flatnonzero(~ordered_out)
    first = axis.first
    last = np.searchsorted(first, cells, side="right")  # one past the last cell joined from above
    last = np.maximum(last, cells + 1)
    touches = (before[cells] > before[first[cells]]) | (before[last] > before[cells + 1])
    star_out = any(s is True and o for s, o in zip(axis.stars, out[axis.base :], strict=True))
    mask[labels[cells[touches | star_out]]] = True
    live_out = bool(ordered_out.any()) or star_out
    for told, label in zip(axis.stars, labels[axis.base :], strict=True):
        if label >= 0:
            mask[label] = told is True and live_out
    return mask


def label_change(axis: Axis, labels: Ints | None) -> tuple[int, Edge]:
    """How an edge can move a record between groups: 2 = from one group to another, 1 = in or out of all groups, 0 = not.

    Args:
        labels: shape (axis.size,): group of each cell, −1 for none; None means that every cell is a group of its own.

    Returns:
        The largest change and an edge that attains it (for 1, its first end is inside).
    """
    if labels is None:
        if not axis.has_edges:
            return 0, (0, 0)
        gap, edge = axis.widest
        if gap:
            return 2, edge
        a, b = next(axis.edges(1))
        return 2, (int(a[0]), int(b[0]))
    best, witness = 0, (0, 0)
    for a, b in _telling_edges(axis, labels):
        x, y = labels[a], labels[b]
        both = np.flatnonzero((x >= 0) & (y >= 0) & (x != y))
        if len(both):
            return 2, (int(a[both[0]]), int(b[both[0]]))
        one = np.flatnonzero((x >= 0) != (y >= 0))
        if len(one) and not best:
            p, q = int(a[one[0]]), int(b[one[0]])
            best, witness = 1, (p, q) if labels[p] >= 0 else (q, p)
    return best, witness


def _telling_edges(axis: Axis, labels: Ints) -> list[tuple[Ints, Ints]]:
    """Edges among which the largest change is found.

    On an interval graph a subinterval of an edge is an edge, so if two joined cells lie in different groups, two joined
    cells do that have no grouped cell between them; if one of two joined cells is grouped and the other is not, two
    neighbouring cells differ likewise. Stars are looked at in full.
    """
    if isinstance(axis, Grid):
        return _telling_on_map(axis, labels) + _at_stars(axis)
    if not axis.is_interval:
        return list(axis.edges())
    listed = []
    first = axis.first
    kept = np.flatnonzero(labels[: axis.base] >= 0)
    for a, b in ((kept[:-1], kept[1:]), (np.arange(axis.base - 1), np.arange(1, axis.base))):
        joined = a >= first[b]
        listed.append((a[joined].astype(np.int64), b[joined].astype(np.int64)))
    return listed + _at_stars(axis)


def _telling_on_map(axis: Grid, labels: Ints) -> list[tuple[Ints, Ints]]:
    """An edge between two groups, and one between a grouped cell and another, where there are any."""
    inner = labels[: axis.base]
    inside, beyond = inner >= 0, int(inner.max(initial=0)) + 1
    highest = axis.largest_partner(np.where(inside, inner, -1), -1)
    lowest = -axis.largest_partner(np.where(inside, -inner, -beyond), -beyond)
    leaving = axis.largest_partner((~inside).astype(np.int64), 0) > 0
    listed = []
    for chosen, wanted in (((highest > inner) | (lowest < inner), inside), (leaving, ~inside)):
        if (chosen & inside).any():
            x = int(np.argmax(chosen & inside))
            y = axis.partner(x, wanted & (inner != inner[x]))
            listed.append((np.array([x], dtype=np.int64), np.array([y], dtype=np.int64)))
    return listed


def _at_stars(axis: Axis) -> list[tuple[Ints, Ints]]:
    listed = []
    for star, told in enumerate(axis.stars):
        if told is False:
            continue
        partners = np.flatnonzero(axis.star_mask(star)).astype(np.int64)
        listed.append((partners, np.full(len(partners), axis.base + star, dtype=np.int64)))
    return listed
