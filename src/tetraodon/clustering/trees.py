"""Trees of boxes over released counts: k-d trees and quadtrees. Post-processing; it never sees a private number.

Where to cut is read off noisy counts, so it costs nothing more. Boxes are runs of cells, half-open, per attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SpecificationError
from ..mechanisms.variance import Floats

if TYPE_CHECKING:
    from ..release import Release

MAX_DEPTH = 64


@dataclass(frozen=True)
class Box:
    """A box of cells: low[a] ≤ cell < high[a] along every attribute a.

    Attributes:
        count: released records in it.
        depth: how many cuts led to it.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    count: float
    depth: int


def kd_tree(released: Release | Any, depth: int) -> tuple[Box, ...]:
    """Boxes of about equal released counts: each is cut at its median along its longest side, ``depth`` times over.

    Args:
        released: a release of a ``Histogram``, ``CDF`` or ``Ranges`` (without ``by``), or an array of released counts with
            one axis per attribute; negative entries count as 0.
        depth: number of cuts on the way to a box; boxes of one cell are not cut.

    Returns:
        The final boxes, in the order of their cells. Their counts add up to the released total.

    Raises:
        SpecificationError: no such numbers, or a depth that is no whole number from 0 to 64.
    Source: derived (median cuts, Bentley 1975, on noisy counts).

    >>> [(box.low, box.high, box.count) for box in kd_tree([4.0, 0.0, 0.0, 4.0, 8.0], 1)]
    [((0,), (4,), 8.0), ((4,), (5,), 8.0)]
    """
    counts = _counts(released)
    done, waiting = [], [_whole(counts, depth)]
    while waiting:
        box = waiting.pop()
        cut = _median(counts, box) if box.depth < depth else None
        if cut is None:
            done.append(box)
            continue
        axis, at = cut
        waiting += [
            _box(counts, box.low, _set(box.high, axis, at), box.depth + 1),
            _box(counts, _set(box.low, axis, at), box.high, box.depth + 1),
        ]
    return tuple(sorted(done, key=lambda b: b.low))


def quadtree(released: Release | Any, depth: int, least: float = 0.0) -> tuple[Box, ...]:
    """Boxes that are halved along every attribute at once, ``depth`` times or until they hold fewer than ``least``.

    Args:
        released: as for ``kd_tree``.
        least: a box with a smaller released count is not cut.

    >>> [box.high for box in quadtree([[9.0, 0.0], [0.0, 0.0]], 1)]
    [(1, 1), (1, 2), (2, 1), (2, 2)]
    """
    counts = _counts(released)
    if isinstance(least, bool) or not isinstance(least, int | float) or not np.isfinite(least):
        raise SpecificationError("quadtree.least: a number.")
    done, waiting = [], [_whole(counts, depth)]
    while waiting:
        box = waiting.pop()
        if box.depth >= depth or box.count < least or prod(np.subtract(box.high, box.low).tolist()) == 1:
            done.append(box)
            continue
        halves = []
        for low, high in zip(box.low, box.high, strict=True):
            middle = (low + high + 1) // 2
            halves.append([(low, middle)] + ([(middle, high)] if middle < high else []))
        waiting += [
            _box(counts, tuple(s[0] for s in sides), tuple(s[1] for s in sides), box.depth + 1)
            for sides in product(*halves)
        ]
    return tuple(sorted(done, key=lambda b: b.low))


def _counts(released: Any) -> Floats:
    """Released cells with one axis per attribute, none negative."""
    values = released
    if hasattr(released, "answers") and hasattr(released, "strategy"):
        values = _of_release(released)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(())
    if array.ndim == 0 or not array.size or not np.isfinite(array).all():
        raise SpecificationError(
            "tree: a release, or an array of finite released counts with one axis per attribute."
        )
    return np.maximum(array, 0.0)


def _of_release(release: Any) -> Floats:
    resolved, word = release.strategy.resolved, release.query.word
    if word not in ("histogram", "cdf", "ranges") or release.query.by:
        raise SpecificationError("tree: a Histogram, CDF or Ranges without by.")
    if word != "histogram":
        return np.asarray(release.histogram(), dtype=np.float64)
    every = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
    cells = release.answers.values.reshape([g.size for g in every])
    ordinary = cells[tuple(slice(g.n_ordinary) for g in every)]
    names = [g.name for g in every]
    return np.asarray(ordinary.transpose([names.index(n) for n in resolved.domain.names if n in names]))


def _whole(counts: Floats, depth: int) -> Box:
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= MAX_DEPTH:
        raise SpecificationError(f"tree.depth: a whole number from 0 to {MAX_DEPTH}.")
    return _box(counts, (0,) * counts.ndim, counts.shape, 0)


def _box(counts: Floats, low: tuple[int, ...], high: tuple[int, ...], depth: int) -> Box:
    return Box(low, high, float(counts[_slices(low, high)].sum()), depth)


def _slices(low: tuple[int, ...], high: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in zip(low, high, strict=True))


def _set(corner: tuple[int, ...], axis: int, at: int) -> tuple[int, ...]:
    return (*corner[:axis], at, *corner[axis + 1 :])


def _median(counts: Floats, box: Box) -> tuple[int, int] | None:
    """(axis, cell) of the cut that halves a box best along its longest side; None for a single cell."""
    sides = np.subtract(box.high, box.low)
    axis = int(sides.argmax())
    if sides[axis] < 2:
        return None
    inside = counts[_slices(box.low, box.high)]
    along = inside.sum(axis=tuple(a for a in range(counts.ndim) if a != axis))
    before = np.cumsum(along)[:-1]
    best = np.flatnonzero(
        np.abs(before - box.count / 2) <= np.abs(before - box.count / 2).min() * (1 + 1e-12)
    )
    middle = best[
        np.abs(best + 1 - sides[axis] / 2).argmin()
    ]  # of equally good cuts the one nearest the middle
    return axis, box.low[axis] + int(middle) + 1
