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
residuals clipped to a quarter of the side they agree. Along a line the gap is wider (18 %), but there cumulative counts, which
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
    """Weights of a round's rows, and the norm: power 1 for pure ε, 2 for ρ."""

    size: int
    total: int
    power: int = 1


def largest(room: Space, assignment: Assignment, weights: Weights, blocks: int = FINE) -> int:
    """An upper bound of the move of a round's rows when one record changes from any cell to any other.

    The box is cut into at most about ``blocks`` blocks. Which labels a block can hold, and how long the residuals in it can
    be, are closed forms (differences of squared distances are linear). With blocks of one cell the part of the pairs that
    change label is exact.
    """
    p = weights.power
    count = list(room.shape)
    starts = [np.arange(0, n, s) for n, s in zip(count, _sides(count, blocks), strict=True)]
    low = [line[s] for line, s in zip(room.lines, starts, strict=True)]
    high = [line[np.append(s[1:], n) - 1] for line, s, n in zip(room.lines, starts, count, strict=True)]
    inside, reach = 0, []
    for j, mask in enumerate(_possible(low, high, assignment.centroids)):
        if not mask.any():
            continue
        away = [
            np.minimum(np.maximum(np.abs(x - o), np.abs(y - o)), r) ** p
            for x, y, o, r in zip(
                low, high, assignment.offsets[j].tolist(), assignment.radius.tolist(), strict=True
            )
        ]
        far = int(_outer(away)[mask].max())
        across = sum(
            min(e, 2 * r) ** p
            for e, r in zip(_extent(mask, low, high), assignment.radius.tolist(), strict=True)
        )
        reach.append(far)
        inside = max(inside, min(across, 2**p * far))
    reach.sort()
    most = weights.total * inside
    if room.has_special:
        most = max(most, weights.size + weights.total * reach[-1])
    if len(reach) > 1:
        most = max(most, 2 * weights.size + weights.total * (reach[-1] + reach[-2]))
    return most


def _sides(count: list[int], blocks: int) -> list[int]:
    """Cells per block along each coordinate, as equal as the budget of blocks allows."""
    per, left, order = {}, float(blocks), sorted(range(len(count)), key=lambda a: count[a])
    for seen, a in enumerate(order):
        fair = max(1, int(left ** (1 / (len(order) - seen)) + 1e-9))
        per[a] = min(count[a], fair)
        left /= per[a]
    return [-(-n // per[a]) for a, n in enumerate(count)]


def _outer(parts: list[Ints]) -> Ints:
    """Sum of one value per coordinate over a grid."""
    total = parts[0]
    for part in parts[1:]:
        total = total[..., None] + part
    return total


def _possible(low: list[Ints], high: list[Ints], centroids: Ints) -> list[Bools]:
    """Per cluster, which blocks can hold a point of it: |x − c_j|² − |x − c_i|² is linear, so its least value is at a corner."""
    found = []
    for j, own in enumerate(centroids):
        mask = np.ones(tuple(map(len, low)), dtype=bool)
        for i, other in enumerate(centroids):
            if i == j:
                continue
            least = _outer(
                [
                    np.minimum(2 * x * (o - c), 2 * y * (o - c)) + c * c - o * o
                    for x, y, c, o in zip(low, high, own.tolist(), other.tolist(), strict=True)
                ]
            )
            mask &= least < 0 if i < j else least <= 0  # of equally near centroids the lowest has the point
        found.append(mask)
    return found


def _extent(mask: Bools, low: list[Ints], high: list[Ints]) -> list[int]:
    """Sides of the box around the blocks of a mask."""
    sides = []
    for a in range(mask.ndim):
        held = np.flatnonzero(mask.any(axis=tuple(b for b in range(mask.ndim) if b != a)))
        sides.append(int(high[a][held[-1]] - low[a][held[0]]))
    return sides
