"""How far integer rows along one axis move when a record moves along an edge: the largest D(a, b) over a graph, exact.

Sources: He, Machanavajjhala, Ding 2014 for single queries; the maximisation over a graph is derived, see docs/sensitivity.md.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ..axes import Axis, Ints
from ..errors import Unsupported
from ..lattice import Grid
from .layers import LARGEST as LARGEST
from .layers import Blocks as Blocks
from .layers import Layer as Layer
from .layers import Matrix as Matrix
from .layers import Prefixes as Prefixes
from .layers import Ranges as Ranges
from .layers import ceiling as ceiling
from .layers import difference as difference
from .layers import largest_norm as largest_norm
from .layers import squared as squared
from .layers import weighed as weighed

Edge = tuple[int, int]
MAX_WORK = 400_000_000


def largest_difference(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge]:
    """(max over the edges of D, an edge that attains it), exact; (0, (0, 0)) if no edge moves any row.

    Args:
        axis: a graph on the positions 0..P−1 and possibly the position P ("nowhere").

    Raises:
        Unsupported: no closed form applies and the graph has too many edges to go through.
    """
    if not axis.has_edges:
        return 0, (0, 0)
    best: tuple[int, Edge]
    if isinstance(axis, Grid):
        from .lattices import largest_on_map

        best = largest_on_map(layers, axis)
    elif not axis.is_interval:
        return _enumerate(layers, axis)
    else:
        best = _along_order(layers, axis)
    for star in range(len(axis.stars)):
        best = max(best, _at_star(layers, axis, star), key=lambda found: found[0])
    return best


def _enumerate(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge]:
    rows = sum(x.looks if isinstance(x, Matrix) else 1 for x in layers)
    if axis.n_edges * rows > MAX_WORK:
        raise Unsupported(
            "this query has too many rows for this secret graph; ask for fewer or use coarser cells."
        )
    best, edge = 0, (0, 0)
    for a, b in axis.edges():
        found = difference(layers, a, b)
        at = int(np.argmax(found))
        if found[at] > best:
            best, edge = int(found[at]), (int(a[at]), int(b[at]))
    return best, edge


def _at_star(layers: tuple[Layer, ...], axis: Axis, star: int) -> tuple[int, Edge]:
    cell = axis.base + star
    if axis.stars[star] is False:
        return 0, (0, 0)
    if axis.stars[star] is True and len(layers) == 1 and axis.base:
        only = layers[0]
        if isinstance(only, Blocks) and only.starts is None:
            return 2 * only.weight, (0, cell)
        if isinstance(only, Prefixes) and only.bounds is None:
            return only.weight * cell, (0, cell)
    partners = np.flatnonzero(axis.star_mask(star)).astype(np.int64)
    if not len(partners):
        return 0, (0, 0)
    found = difference(layers, partners, np.full(len(partners), cell, dtype=np.int64))
    at = int(np.argmax(found))
    return int(found[at]), (int(partners[at]), cell)


def _along_order(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge]:
    gap, edge = axis.widest
    layers = tuple(moving for layer in layers if (moving := _moving(layer, axis.base)) is not None)
    if not gap or not layers:
        return 0, (0, 0)
    if len(layers) == 1:
        only = layers[0]
        if isinstance(only, Blocks) and only.starts is None:
            return 2 * only.weight, (edge[1] - 1, edge[1])
        if isinstance(only, Prefixes) and only.bounds is None:
            return only.weight * gap, edge
        if isinstance(only, Ranges) and only.lows is None:
            used = min(gap, (only.size + 1) // 2)  # d(P + 1 − d) rises up to (P + 1)/2
            return only.weight * used * (only.size + 1 - used), (edge[1] - used, edge[1])
        if isinstance(only, Matrix) and len(only.matrix) == 1:
            return _one_row(only, axis)
    if all(isinstance(x, Prefixes | Blocks) for x in layers):
        found = _at_bounds(layers, axis) or _nested(layers, axis)
        if found is not None:
            return found
    return _enumerate(layers, replace(axis, stars=()))


def _moving(layer: Layer, base: int) -> Layer | None:
    """A layer without its rows that are constant on the ordered positions, which no edge among these moves."""
    if not isinstance(layer, Matrix) or not base:
        return layer
    held = layer.matrix[:, :base]
    moves = (held != held[:, :1]).any(axis=1)
    return replace(layer, matrix=layer.matrix[moves]) if moves.any() else None


def _one_row(layer: Matrix, axis: Axis) -> tuple[int, Edge]:
    """|v[y] − v[x]| over windows: the largest and the least value of each window."""
    values = layer.matrix[0][: axis.base]
    ends = np.arange(axis.base, dtype=np.int64)
    best, edge = 0, (0, 0)
    for sign in (1, -1):
        lowest = _window_maxima(-sign * values, axis.first, ends)
        joined = axis.first < ends
        found = np.where(joined, sign * values - sign * values[lowest], -1)
        y = int(np.argmax(found))
        if found[y] > best:
            best, edge = int(found[y]), (int(lowest[y]), y)
    return layer.weight * best**layer.power, edge


def _window_maxima(values: Ints, lefts: Ints, rights: Ints) -> Ints:
    """For every window [lefts[i], rights[i]] an index of its largest value (for an empty window, its left end)."""
    length = np.maximum(rights - lefts + 1, 1)
    level = np.floor(np.log2(length)).astype(np.int64)
    result = lefts.copy()
    best = np.arange(len(values), dtype=np.int64)  # best[i]: where the largest of values[i : i + 2^k] is
    for k in range(int(level.max(initial=0)) + 1):
        here = np.flatnonzero(level == k)
        left, right = best[lefts[here]], best[np.maximum(rights[here] - (1 << k) + 1, lefts[here])]
        result[here] = np.where(values[left] >= values[right], left, right)
        shifted = best[1 << k :]
        trimmed = best[: len(shifted)]
        best = best.copy()
        best[: len(shifted)] = np.where(values[trimmed] >= values[shifted], trimmed, shifted)
    return result


def _at_bounds(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge] | None:
    """The sum of the layers' own largest moves, if an edge that ends where a row begins attains it; else None."""
    ceiling = 0
    ends: list[Ints] = []
    for layer in layers:
        if isinstance(layer, Prefixes):
            bounds = np.arange(axis.base) if layer.bounds is None else layer.bounds[layer.bounds < axis.base]
            passed = layer.passed(bounds) - layer.passed(axis.first[bounds])
            if not len(bounds) or not int(passed.max()):
                return None
            ceiling += layer.weight * int(passed.max())
            ends.append(bounds[passed == passed.max()])
        elif isinstance(layer, Blocks):
            ceiling += 2 * layer.weight
            ends.append(
                (np.arange(axis.base) if layer.starts is None else layer.starts[layer.starts < axis.base])[1:]
            )
    y = np.concatenate([e[:: max(1, len(e) // 256)] for e in ends])
    y = y[axis.first[y] < y]
    if not len(y):
        return None
    found = difference(layers, axis.first[y], y)
    at = int(np.argmax(found))
    return (ceiling, (int(axis.first[y[at]]), int(y[at]))) if found[at] == ceiling else None


def _nested(layers: tuple[Layer, ...], axis: Axis) -> tuple[int, Edge] | None:
    """Prefixes and nested runs (trees) on an interval graph; None if the layers turn out not to be nested.

    Two positions x < y that part at level l have D = N(x) + N(y) − 2·(weight of the levels above l) + prefixes passed.
    For every level, the best x of the window [first[y], start of y's run) is looked up; a pair that already parted
    higher up is understated there and found at its own level.
    """
    base = axis.base
    positions = np.arange(base, dtype=np.int64)
    passed = np.zeros(base, dtype=np.int64)
    norm = np.zeros(base, dtype=np.int64)
    levels: list[tuple[int, Ints]] = []
    for layer in layers:
        if isinstance(layer, Prefixes):
            passed += layer.weight * layer.passed(positions)
        elif isinstance(layer, Blocks):
            label = layer.label(positions)
            norm += layer.weight * (label >= 0)
            # A position without a row of its own at this level is alone.
            breaks = np.ones(base, dtype=bool)
            breaks[1:] = (label[1:] != label[:-1]) | (label[1:] < 0)
            starts = np.maximum.accumulate(np.where(breaks, positions, 0))
            levels.append((layer.weight, starts))
    levels.sort(key=lambda item: int((item[1] == positions).sum()))
    for (_, coarse), (_, fine) in pairwise(levels):
        if (fine < coarse).any():
            return None
    first = axis.first
    up, down = norm + passed, norm - passed
    even = bool((norm == norm[0]).all()) if base else True
    best, edge, above = 0, (0, 0), 0
    for weight, starts in [*levels, (0, positions)]:
        reached = first < starts
        if reached.any():
            at = first if even else _window_maxima(down, first, np.maximum(starts - 1, first))
            found = np.where(reached, up + down[at] - 2 * above, -1)
            y = int(np.argmax(found))
            if found[y] > best:
                best, edge = int(found[y]), (int(at[y]), y)
        above += weight
    exact = int(difference(layers, np.array([edge[0]]), np.array([edge[1]]))[0])
    return (best, edge) if exact == best else None
