"""What one round of k-means costs: how far its rows move when one record changes, bounded from above.

A round has public centroids c_1 … c_k. Cell x has the label ℓ(x) of its nearest centroid (whole numbers, ties to the lowest
index) and the residual v(x) = clip(x − o_ℓ(x), ±R), coordinate by coordinate, around a public offset o of its cluster. The
rows are the size of every cluster, weight w, and the sum of the residuals in it, weight u. A record that changes from x to
y moves them by

    u · ‖v(x) − v(y)‖                      if ℓ(x) = ℓ(y),
    2w + u · (‖v(x)‖ + ‖v(y)‖)             if ℓ(x) ≠ ℓ(y),

with ‖·‖ = Σ|·| for pure ε and Σ(·)² for ρ. The published calibration takes the first line for every edge, which is false: a
record that crosses a boundary leaves one sum and enters another, however short the edge.

The price of a round is the largest move over **all** pairs of cells, edges or not, so that a round costs any pair of values
at most its share under every policy. Under a threshold policy little is lost by that: at the faces of the box residuals are
long on both sides of a boundary. With four random centroids and edges of up to an eighth of a side, the longest edge across a
boundary was within 3 % of the longest pair in a cube (median of 30; at most 9 %) and 5 % in a square (at most 31 %); with
residuals clipped to a quarter of the side they agreed in most draws. Along a line the gap is wider (18 %), but there cumulative counts, which
do profit from thresholds, do better than rounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..axes import Bools, Ints
from .lloyd import nearest
from .space import Space

FINE, COARSE = 1 << 14, 1 << 9


@dataclass(frozen=True, eq=False)
class Assignment:
    """The public part of a round.

    Attributes:
        centroids: shape (k, d), whole coordinates.
        offsets: shape (k, d), whole: what residuals are measured from.
        radius: shape (d,), whole, at least 1: residuals are clipped to ± this.
    """

    centroids: Ints
    offsets: Ints
    radius: Ints

    def labels(self, points: Ints) -> Ints:
        """Shape (n,): cluster of each point. The one rule, for sums and for their cost."""
        return nearest(points, self.centroids)

    def residuals(self, points: Ints, labels: Ints) -> Ints:
        """Shape (n, d): clipped residuals of points with these labels."""
        return np.asarray(np.clip(points - self.offsets[labels], -self.radius, self.radius))


@dataclass(frozen=True)
class Weights:
    """Weights of a round's rows: of every size, and of every sum."""

    size: int
    total: int


@dataclass(frozen=True)
class Reach:
    """How far residuals reach, whatever the weights.

    Attributes:
        inside: bound of ‖v(x) − v(y)‖ for one label.
        across: bound of ‖v(x)‖ + ‖v(y)‖ for two labels; None where one label has all cells.
        longest: bound of ‖v(x)‖.
        leaving: the same for a record that becomes no place; None where there is no such cell.
    """

    inside: int
    across: int | None
    longest: int
    leaving: int | None

    @property
    def twice(self) -> Reach:
        """For tables in which a record may count nowhere: bounds twice what a record moves that comes in or goes, so that the
        complete histogram, which such a record moves by half as much as others, still dominates."""
        return Reach(self.inside, 2 * self.longest, self.longest, self.leaving)

    def move(self, weights: Weights) -> int:
        """An upper bound of the move of a round's rows when one record changes from any cell to any other."""
        most = weights.total * self.inside
        if self.leaving is not None:
            most = max(most, weights.size + weights.total * self.leaving)
        if self.across is not None:
            most = max(most, 2 * weights.size + weights.total * self.across)
        return most


def reach(room: Space, assignment: Assignment, power: int, blocks: int = FINE) -> Reach:
    """How far the residuals of a round reach, at most.

    The box is cut into at most about ``blocks`` blocks. Which labels a block can hold, and how long the residuals in it can
    be, are closed forms (differences of squared distances are linear). With blocks of one cell the part of the pairs that
    change label is exact.
    """
    count = list(room.shape)
    starts = [np.arange(0, n, s) for n, s in zip(count, _sides(count, blocks), strict=True)]
    low = [line[s] for line, s in zip(room.lines, starts, strict=True)]
    high = [line[np.append(s[1:], n) - 1] for line, s, n in zip(room.lines, starts, count, strict=True)]
    radius = assignment.radius.tolist()
    inside, found = 0, []
    for j, offset in enumerate(assignment.offsets.tolist()):
        mask = _possible(low, high, assignment.centroids, j)
        if not mask.any():
            continue
        away = [
            np.minimum(np.maximum(np.abs(x - o), np.abs(y - o)), r) ** power
            for x, y, o, r in zip(low, high, offset, radius, strict=True)
        ]
        far = int(_outer(away)[mask].max())
        box = sum(min(e, 2 * r) ** power for e, r in zip(_extent(mask, low, high), radius, strict=True))
        found.append(far)
        inside = max(inside, min(box, 2**power * far))
    found.sort()
    across = found[-1] + found[-2] if len(found) > 1 else None
    return Reach(inside, across, found[-1], found[-1] if room.has_special else None)


def _sides(count: list[int], blocks: int) -> list[int]:
    """Cells per block along each coordinate, as equal as the budget of blocks allows."""
    per, left, order = {}, float(blocks), sorted(range(len(count)), key=lambda a: count[a])
    for seen, a in enumerate(order):
        fair = max(1, int(left ** (1 / (len(order) - seen)) + 1e-9))
        per[a] = min(count[a], fair)
        left /= per[a]
    return [-(-n // per[a]) for a, n in enumerate(count)]


def _outer(parts: list[Ints]) -> Ints:
    """Sum of one value per coordinate over a grid; a leading axis that all parts share is kept."""
    total = parts[0]
    for part in parts[1:]:
        total = total[..., None] + part
    return total


def _possible(low: list[Ints], high: list[Ints], centroids: Ints, j: int) -> Bools:
    """Which blocks can hold a point of cluster j: |x − c_j|² − |x − c_i|² is linear, so its least value is at a corner."""
    before, d = np.arange(len(centroids)) < j, len(low)
    total: Ints = np.zeros((len(centroids),), dtype=np.int64)
    for a, (x, y) in enumerate(zip(low, high, strict=True)):
        own, others = centroids[j, a], centroids[:, a]
        slope = 2 * (others - own)[:, None]
        least = np.minimum(slope * x, slope * y) + (own * own - others * others)[:, None]
        total = total[..., None] + least.reshape(len(centroids), *(1,) * a, len(x))
    before = before.reshape(-1, *(1,) * d)
    total[j] = -1  # of equally near centroids the lowest has the point
    return np.asarray(np.where(before, total < 0, total <= 0).all(axis=0))


def _extent(mask: Bools, low: list[Ints], high: list[Ints]) -> list[int]:
    """Sides of the box around the blocks of a mask."""
    sides = []
    for a in range(mask.ndim):
        held = np.flatnonzero(mask.any(axis=tuple(b for b in range(mask.ndim) if b != a)))
        sides.append(int(high[a][held[-1]] - low[a][held[0]]))
    return sides
