"""Orders of values that have none of their own, so that intervals can group them.

Intervals along an order are grouped exactly; that the order is a good one is a heuristic. For the cells of a map a
space-filling curve keeps neighbours of the order neighbours on the map. For unordered categories the first axis of
correspondence analysis puts values with alike laws of clusters next to each other.

Source: Hilbert 1891, extended to any rectangle by the recursion of Červený's generalised curve; Benzécri 1973.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..axes import Bools, Ints
from ..errors import SpecificationError
from .families import Floats


def curve_order(shape: tuple[int, int], present: Bools | None = None) -> Ints:
    """The cells of a grid along a Hilbert-like curve, for any numbers of rows and columns.

    The curve passes from cell to cell through a side, only once through a corner where the longer side of the grid is odd and
    the shorter one even. Absent cells are left out of it, so that there it may jump.

    Args:
        shape: rows and columns.
        present: which cells are values, of that shape (None: all).
    Returns:
        The values, numbered row by row among the present cells, in the order of the curve.

    >>> curve_order((2, 4)).tolist()
    [0, 4, 5, 1, 2, 6, 7, 3]
    """
    if len(shape) != 2 or min(shape) < 1:
        raise SpecificationError("shape: rows and columns, at least 1 each.")
    rows, columns = shape
    mask = np.ones(shape, dtype=bool) if present is None else np.asarray(present, dtype=bool)
    if mask.shape != tuple(shape):
        raise SpecificationError(f"present: shape {rows} × {columns}, that of the grid.")
    if not mask.any():
        raise SpecificationError("present: at least one cell.")
    wide = columns >= rows
    steps = _walk(0j, 1 + 0j, columns, 1j, rows) if wide else _walk(0j, 1j, rows, 1 + 0j, columns)
    places = np.array(list(steps))
    cells = np.rint(places.imag).astype(np.int64) * columns + np.rint(places.real).astype(np.int64)
    rank = np.cumsum(mask.ravel()) - 1
    found: Ints = rank[cells[mask.ravel()[cells]]].astype(np.int64)
    return found


def _walk(start: complex, along: complex, length: int, across: complex, width: int) -> Iterator[complex]:
    """Every cell of a box of length × width cells, from ``start`` to the other end of the side ``along``."""
    if width == 1:
        yield from (start + i * along for i in range(length))
    elif length == 1:
        yield from (start + i * across for i in range(width))
    elif 2 * length > 3 * width:  # long: two boxes one after the other
        half = _half(length)
        yield from _walk(start, along, half, across, width)
        yield from _walk(start + half * along, along, length - half, across, width)
    else:  # up along one side, over, and down along the other
        up, half = _half(width), length // 2
        yield from _walk(start, across, up, along, half)
        yield from _walk(start + up * across, along, length, across, width - up)
        turned = start + (length - 1) * along + (up - 1) * across
        yield from _walk(turned, -across, up, -along, length - half)


def _half(length: int) -> int:
    """About half, and even where it can be: boxes of even length join through sides."""
    half = length // 2
    return half + 1 if half % 2 and length > 2 else half


def correspondence_order(joint: Floats) -> Ints:
    """Values by their coordinate on the first axis of correspondence analysis.

    With P the table over its sum, r and c its margins, the coordinates are u / √r, where u is the first left singular vector
    of D_r^{−1/2} (P − r c') D_c^{−1/2}. The axis has no direction of its own: of its two ends the one with the smaller code
    comes first. Values without mass have no coordinate and come last.

    Args:
        joint: counts or masses, shape (values, clusters), ≥ 0.
    Raises:
        SpecificationError: another shape, entries that are negative or not finite, no mass at all.

    >>> correspondence_order(np.array([[9, 1, 0], [0, 1, 9], [5, 5, 0], [0, 5, 5]])).tolist()
    [0, 2, 3, 1]
    """
    table = np.asarray(joint, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any() or not table.sum() > 0:
        raise SpecificationError("joint: shape (values, clusters), finite, ≥ 0, and not all 0.")
    share = table / table.sum()
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    held, kept = np.flatnonzero(rows > 0), np.flatnonzero(columns > 0)
    r, c = rows[held, None], columns[None, kept]
    left, values, _ = np.linalg.svd((share[np.ix_(held, kept)] - r * c) / np.sqrt(r * c), full_matrices=False)
    at = left[:, 0] / np.sqrt(r[:, 0])
    # Where all laws are alike the table is rounding: no axis, and the codes keep their order. Equal laws keep it too.
    at = np.zeros_like(at) if values[0] < 1e-12 else np.round(at / np.abs(at).max(), 12)
    order = np.argsort(at, kind="stable")
    if order[0] > order[-1]:
        order = np.argsort(-at, kind="stable")
    return np.concatenate([held[order], np.flatnonzero(rows == 0)]).astype(np.int64)
