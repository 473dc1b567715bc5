"""How far cells of a map lie apart at least, as the reach of a ``Lattice``.

Two cells are joined iff some place of one and some place of the other are within θ. In a plane that is decided in exact
rationals: cells are half-open, so that the infimum of their distance, (rows apart − 1)·height and (columns apart − 1)·width
where these are positive, is only approached, and an offset is joined iff the infimum is below θ. On the sphere the least
great-circle distance is found in closed form, in doubles, and rounded outward: joined if it is at most θ·(1 + 1e-9).
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .axes import Ints
from .lengths import LENGTHS, RADIUS
from .points import Point

Floats = NDArray[np.float64]
OUTWARD = 1e-9
CHUNK = 1_000_000


def plane_reach(point: Point, theta: Fraction, power: int) -> Ints:
    """Shape (1, D + 1): columns joined at each row distance, for L1 (power 1) or L2 (power 2) in the point's unit.

    >>> square = Point("x", "y", box=((0, 9), (0, 9)), cell=1, metric="planar")
    >>> plane_reach(square, Fraction(2), 1).tolist(), plane_reach(square, Fraction(2), 2).tolist()
    ([[2, 2, 1]], [[2, 2, 2]])
    """
    rows, columns = point.shape
    scale = lcm(*(v.denominator for v in (theta, *point.lengths)))
    limit, height, width = (int(v * scale) for v in (theta, *point.lengths))
    reach: list[int] = []
    for d in range(rows):
        above = max(d - 1, 0) * height
        if power == 1:
            room = limit - above
            told = -(-room // width) if room > 0 else -1
        else:
            rest = limit**2 - above**2
            # The least k with (k·width)² ≥ rest is one more than the largest gap (k − 1) that is allowed.
            told = isqrt((rest - 1) // width**2) + 1 if rest > 0 and above < limit else -1
        if told < 0:
            break
        reach.append(min(told, columns - 1))
    return np.array([reach or [0]], dtype=np.int64)


def sphere_reach(point: Point, theta: Fraction) -> Ints:
    """Shape (rows, D + 1): columns joined at each row and row distance, by great circles.

    The distance grows with the difference in longitude (at most 180°). The largest column distance is estimated from the
    circles around the corners and then settled by the least angle itself.
    """
    rows, columns = point.shape
    if theta <= 0:
        return np.zeros((1, 1), dtype=np.int64)
    angle = theta * LENGTHS[point.unit or "m"] / RADIUS
    limit = float(min(angle, Fraction(4))) * (1 + OUTWARD)  # no angle exceeds π
    edges = np.radians([float(point.sides[0].low + i * point.sides[0].width) for i in range(rows + 1)])
    width = float(np.radians(float(point.sides[1].width)))
    depth = min(rows - 1, int(limit / float(np.diff(edges).min())) + 2)
    found = np.concatenate(
        [
            _band_reach(
                edges, np.arange(at, min(at + CHUNK // (depth + 1) + 1, rows)), depth, limit, width, columns
            )
            for at in range(0, rows, CHUNK // (depth + 1) + 1)
        ]
    )
    used = (found >= 0).any(axis=0)
    return found[:, : int(np.flatnonzero(used)[-1]) + 1]


def _band_reach(edges: Floats, south: Any, depth: int, limit: float, width: float, columns: int) -> Ints:
    rows = len(edges) - 1
    south = south[:, None]
    north = south + np.arange(depth + 1, dtype=np.int64)[None, :]
    exists = north < rows
    north = np.minimum(north, rows - 1)
    low, high = (edges[south], edges[south + 1]), (edges[north], edges[north + 1])

    def joined(k: Ints) -> Any:
        return _least_angle(low, high, np.maximum(k - 1, 0) * width) <= limit

    gap = np.minimum(_widest_gap(low, high, limit), np.pi)
    reach = np.minimum(np.floor(gap / width), columns).astype(np.int64) + 1
    reach = np.minimum(np.broadcast_to(reach, exists.shape), columns - 1)
    while (down := (reach >= 0) & ~joined(np.maximum(reach, 0))).any():
        reach = reach - down
    while (up := (reach >= 0) & (reach < columns - 1) & joined(reach + 1)).any():
        reach = reach + up
    return np.where(exists, reach, -1)


def _widest_gap(low: tuple[Floats, Floats], high: tuple[Floats, Floats], limit: float) -> Floats:
    """About the largest difference in longitude at which two latitude bands hold places within an angle of each other.

    A circle around a place reaches farthest east at the latitude whose sine is that of the place over cos(angle).
    """
    found: Floats = np.zeros(np.broadcast(low[0], high[0]).shape)
    for ends, band in ((low, high), (high, low)):
        for fixed in ends:
            turn = np.arcsin(np.clip(np.sin(fixed) / max(np.cos(limit), 1e-300), -1.0, 1.0))
            for other in (band[0], band[1], np.clip(turn, band[0], band[1])):
                room = np.sin(min(limit, np.pi) / 2) ** 2 - np.sin((fixed - other) / 2) ** 2
                across = np.maximum(np.cos(fixed) * np.cos(other), 1e-300)
                found = np.maximum(found, 2 * np.arcsin(np.sqrt(np.clip(room / across, 0.0, 1.0))))
    return found


def _least_angle(low: tuple[Floats, Floats], high: tuple[Floats, Floats], gap: Floats) -> Floats:
    """Least central angle between latitude bands ``low`` and ``high`` at a difference in longitude of ``gap``.

    With one latitude fixed the cosine of the angle is a sinusoid of the other one, largest at
    atan2(sin φ, cos φ·cos gap) or at an end of its band. A stationary pair inside both bands exists only on the equator,
    where it is a saddle, or for gap 0, where the bands' distance decides; so one of the two is always at an end.
    """
    found = np.full(np.broadcast(low[0], high[0], gap).shape, np.inf)
    for ends, band in ((low, high), (high, low)):
        for fixed in ends:
            best = np.arctan2(np.sin(fixed), np.cos(fixed) * np.cos(gap))
            for other in (band[0], band[1], np.clip(best, band[0], band[1])):
                found = np.minimum(found, _angle(fixed, other, gap))
    same = (np.maximum(low[0], high[0]) <= np.minimum(low[1], high[1])) & (gap == 0)
    return np.where(same, 0.0, found)


def _angle(a: Floats, b: Floats, gap: Floats) -> Floats:
    chord = np.sin((a - b) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin(gap / 2) ** 2
    result: Floats = 2 * np.arcsin(np.sqrt(np.clip(chord, 0.0, 1.0)))
    return result
