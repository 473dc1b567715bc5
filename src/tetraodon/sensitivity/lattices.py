"""Largest moves over the edges of a map, and over any graph for rows that depend on a label.

A map's graph has too many edges to go through (a billion on 400 × 300 cells within 500 km), but the largest value among the
partners of *every* cell takes one pass over the row distances of an edge (``Lattice.largest_partner``). Every maximum here
is built from that.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from ..axes import Axis, Ints
from ..errors import Unsupported
from ..lattice import Grid, Lattice
from . import rows
from .rows import Edge, Layer

MAX_PASSES = 2_000_000_000
LOW = -(2**62)


def largest_on_map(layers: tuple[Layer, ...], axis: Grid) -> tuple[int, Edge]:
    """(max of D over the edges between ordinary cells, an edge that attains it), exact.

    One row for every cell moves by 2 along any edge. For other rows v_1 … v_m with |Δ|,
    max over edges of Σ|v_r[x] − v_r[y]| = max over signs s and cells x of (max over partners y of s·v[y]) − s·v[x],
    one pass for each of 2^(m−1) signs; with squares that holds for a single row. Otherwise edges are gone through.

    Raises:
        Unsupported: too many rows, and too many edges to go through.
    """
    if not axis.has_inner_edges:
        return 0, (0, 0)
    plain = [x for x in layers if isinstance(x, rows.Blocks) and x.starts is None]
    fixed = 2 * sum(x.weight for x in plain)
    others = tuple(
        moving for x in layers if x not in plain and (moving := rows._moving(x, axis.base)) is not None
    )
    if not others:
        return fixed, axis.widest[1]
    matrices = [x for x in others if isinstance(x, rows.Matrix)]
    count = sum(len(x.matrix) for x in matrices)
    linear = len(matrices) == len(others) and (count == 1 or all(x.power == 1 for x in matrices))
    passes = axis.base * (axis.depth + 1 if isinstance(axis, Lattice) else 1) * 2 ** min(count, 64)
    if not linear or passes > max(MAX_PASSES, axis.n_edges * count):
        return _enumerated(layers, axis)
    table = np.concatenate([x.matrix[:, : axis.base] for x in matrices])
    weights = np.concatenate([np.full(len(x.matrix), x.weight, dtype=np.int64) for x in matrices])
    power = matrices[0].power if count == 1 else 1
    best, edge = 0, (0, 0)
    for signs in product((1, -1), repeat=count - 1):
        scale = np.array([1, *signs], dtype=np.int64) * (1 if count == 1 else weights)
        values = scale @ table
        nearby = axis.largest_partner(values, int(values.min()))
        x = int(np.argmax(nearby - values))
        found = int(nearby[x] - values[x])
        if found > best:
            best, edge = found, (x, axis.partner(x, values == nearby[x]))
    moved = int(weights[0]) * best**power if count == 1 else best
    return fixed + moved, edge if best else axis.widest[1]


def _enumerated(layers: tuple[Layer, ...], axis: Grid) -> tuple[int, Edge]:
    return rows._enumerate(layers, replace(axis, stars=()))


def boundary_move(axis: Axis, labels: Ints, coordinates: Ints) -> int:
    """Largest move of the sums of coordinates by label when a record moves along one edge:

        max over edges x – y of ‖x − y‖₁ where the labels agree, of ‖x‖₁ + ‖y‖₁ where they do not.

    Exact. A cell with label −1 is in no sum and counts as 0.

    Args:
        axis: a graph of one attribute.
        labels: int64, shape (axis.size,): −1, 0, 1, …
        coordinates: int64, shape (axis.size, d), each within ±2^40.

    >>> boundary_move(Axis(4, window=1), np.array([0, 0, 1, 1]), np.array([[-2], [1], [-1], [1]]))
    3
    """
    held = np.where(labels[:, None] >= 0, coordinates, 0).astype(np.int64)
    inner, inside = labels[: axis.base], held[: axis.base]
    norm = np.abs(inside).sum(axis=1)
    best = max(_at_stars(axis, labels, held), _across(axis, inner, norm))
    return max(best, _within_labels(axis, inner, inside, best))


def _at_stars(axis: Axis, labels: Ints, held: Ints) -> int:
    norm, best = np.abs(held).sum(axis=1), 0
    for star, told in enumerate(axis.stars):
        if told is False:
            continue
        partners, cell = np.flatnonzero(axis.star_mask(star)), axis.base + star
        apart = np.abs(held[partners] - held[cell]).sum(axis=1)
        moved = np.where(labels[partners] == labels[cell], apart, norm[partners] + norm[cell])
        best = max(best, int(moved.max(initial=0)))
    return best


def _across(axis: Axis, labels: Ints, norm: Ints) -> int:
    """max ‖x‖ + ‖y‖ over edges between different labels; labels that cannot exceed what was found are left out."""
    best = 0
    present = np.unique(labels)
    longest = {int(v): int(norm[labels == v].max()) for v in present}
    for label in sorted((v for v in longest if v >= 0), key=lambda v: -longest[v]):
        elsewhere = max((n for v, n in longest.items() if v != label), default=0)
        if longest[label] + elsewhere <= best:
            continue
        nearby = largest_partner(axis, np.where(labels == label, LOW, norm))
        moved = np.where((labels == label) & (nearby > LOW), norm + nearby, 0)
        best = max(best, int(moved.max(initial=0)))
    return best


def _within_labels(axis: Axis, labels: Ints, inside: Ints, least: int) -> int:
    """max ‖x − y‖₁ over edges within one label, or something not above ``least``.

    ‖x − y‖₁ is the largest of ±(x − y)·s over the signs s; over all edges it is an upper bound, found in one pass for each
    sign, and labels are told apart only if it exceeds ``least``.
    """
    best = least
    signs = [np.array([1, *s], dtype=np.int64) for s in product((1, -1), repeat=inside.shape[1] - 1)]
    for sign in signs:
        values = inside @ sign
        bound = int((largest_partner(axis, values) - values).max(initial=0))
        if bound <= best:
            continue
        for label in np.unique(labels[labels >= 0]).tolist():
            own = labels == label
            if int(np.ptp(values[own])) <= best:
                continue
            nearby = largest_partner(axis, np.where(own, values, LOW))
            best = max(best, int((nearby - values)[own].max()))
    return best


def largest_partner(axis: Axis, values: Ints) -> Ints:
    """Shape (base,): the largest value among every ordinary cell and the ordinary cells that it is joined to."""
    if isinstance(axis, Grid):
        return axis.largest_partner(values, int(values.min(initial=0)))
    if axis.is_interval:
        cells = np.arange(axis.base, dtype=np.int64)
        last = np.searchsorted(axis.first, cells, side="right") - 1
        at: Ints = values[rows._window_maxima(values, axis.first, np.maximum(last, cells))]
        return at
    if axis.n_edges > rows.MAX_WORK:
        raise Unsupported("this secret graph has too many edges to go through; use coarser cells.")
    best = values.copy()
    for a, b in replace(axis, stars=()).edges():
        np.maximum.at(best, a, values[b])
        np.maximum.at(best, b, values[a])
    return best
