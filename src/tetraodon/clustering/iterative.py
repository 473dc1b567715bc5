"""k-means in rounds of noisy sizes and sums, with budgets fixed in advance (Blum, Dwork, McSherry, Nissim 2005, made sound).

Before a round its public part is fixed: centroids (from the domain at first, then from released numbers), offsets, radius.
The round's exact cost at unit scale follows (``costs``), then its noise is drawn, and only then are counts looked at. Sizes
and sums are whole numbers, so the noise is discrete. Nothing but noisy numbers enters the next round; the number of
rounds never depends on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..axes import Ints
from ..loss import Loss
from ..mechanisms.variance import Floats
from ..noise import LARGEST_SCALE, LARGEST_SIGMA2
from .costs import FINE, Assignment, Weights, reach
from .lloyd import covering, in_order
from .space import Space

Draw = Callable[[Sequence[tuple[Fraction, int]]], Sequence[Ints]]
LARGEST = 2**61
# Residuals are divided by at least this many standard deviations of the noise on a size (and by 1), so that a cluster that
# may well be empty hardly moves.
STANDS_OUT = 2.0
SIZE_SHARE = Fraction(15, 100)
GRAIN = 1 << 12


@dataclass(frozen=True, eq=False)
class Rounds:
    """Everything about the rounds that is fixed in advance.

    Attributes:
        k: number of clusters.
        count: number of rounds.
        radius: shape (d,), whole: residuals are clipped to ± this.
        loss: of all rounds together; each spends an equal share.
        blocks: how finely costs are bounded.
        is_filtered: whether some records count nowhere, so that one may come in or go.
    """

    k: int
    count: int
    radius: Ints
    loss: Loss
    blocks: int = FINE
    is_filtered: bool = False

    @property
    def power(self) -> int:
        return self.loss.power

    def weights(self, reach: int) -> Weights:
        """Whole weights that give sizes ``SIZE_SHARE`` of the cost, where residuals alone move by ``reach``."""
        total = max(1, GRAIN // max(reach, 1))
        size = max(1, round(SIZE_SHARE / (1 - SIZE_SHARE) * total * reach / 2))
        return Weights(size, total)

    @property
    def each(self) -> Fraction:
        """What one round spends."""
        return self.loss.amount / self.count

    @property
    def fits(self) -> bool:
        """Whether noise of every scale that may come up fits 64-bit integers; asked before anything is charged.

        Residuals move by at most Σ (2R)^p. Weights give sizes at least a 25th of the cost, sums at least half of the rest.
        """
        reach = int(((2 * self.radius) ** self.power).sum())
        most = Fraction(max(25, 2 * reach + 2)) / self.each
        return most <= (LARGEST_SCALE if self.power == 1 else LARGEST_SIGMA2)


@dataclass(frozen=True, eq=False)
class Found:
    """What the rounds released.

    Attributes:
        centroids: shape (k, d), in steps of the space; lexicographic order.
        sizes: shape (k,), noisy number of records nearest to the centroids of the last round, before they moved.
        scale: of the last sizes' noise (Laplace scale, or σ² for ρ); None if the sizes are exact.
    """

    centroids: Floats
    sizes: Floats
    scale: Fraction | None


def start(room: Space, k: int) -> Ints:
    """Starting centroids, from the box alone."""
    return np.rint(covering(room.extents.astype(np.float64), k)).astype(np.int64)


def scales(rounds: Rounds, room: Space, assignment: Assignment) -> tuple[Fraction, Fraction]:
    """Noise scales of sizes and of sums such that a round spends its share on any pair of cells (Laplace scales; σ² for ρ)."""
    told = reach(room, assignment, rounds.power, rounds.blocks)
    if rounds.is_filtered:
        told = told.twice
    weights = rounds.weights(told.move(Weights(0, 1)))
    base = Fraction(max(1, told.move(weights))) / rounds.each
    if rounds.power == 2:
        base /= 2
    return base / weights.size, base / weights.total


def iterate(
    rounds: Rounds,
    room: Space,
    points: Ints,
    counts: Ints,
    draw: Draw,
    deviation: Callable[[Fraction], float],
) -> Found:
    """Run the rounds.

    Args:
        points, counts: places that hold records, shape (n, d), and how many, shape (n,). Private.
        draw: (scale, number) of every block of noise → the noise. Called once per round, before counts are used.
        deviation: standard deviation of the noise at a scale.
    """
    k, d = rounds.k, len(room.lines)
    centroids = start(room, k)
    moved: Floats = centroids.astype(np.float64)
    sizes: Floats = np.zeros(k)
    size_scale = Fraction(1)
    for _ in range(rounds.count):
        assignment = Assignment(centroids, centroids, rounds.radius)
        size_scale, sum_scale = scales(rounds, room, assignment)
        noise = draw([(size_scale, k), (sum_scale, k * d)])
        true_sizes, true_sums = observed(assignment, points, counts)
        sizes = _clipped(true_sizes, noise[0]).astype(np.float64)
        sums = _clipped(true_sums, noise[1].reshape(k, d)).astype(np.float64)
        moved = shifted(assignment, sizes, sums, max(1.0, STANDS_OUT * deviation(size_scale)), room)
        centroids = np.rint(moved).astype(np.int64)
    order = np.lexsort(moved.T[::-1])
    return Found(in_order(moved), sizes[order], size_scale)


def observed(assignment: Assignment, points: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """The true rows of a round: sizes, shape (k,), and sums of residuals, shape (k, d)."""
    k = len(assignment.centroids)
    labels = assignment.labels(points)
    residual = assignment.residuals(points, labels)
    sizes = np.zeros(k, dtype=np.int64)
    sums = np.zeros((k, points.shape[1]), dtype=np.int64)
    np.add.at(sizes, labels, counts)
    np.add.at(sums, labels, residual * counts[:, None])
    return sizes, sums


def shifted(assignment: Assignment, sizes: Floats, sums: Floats, enough: float, room: Space) -> Floats:
    """Centroids after a round, from its noisy rows alone: offset + mean residual, within the radius and the box.

    Args:
        enough: a noisy size below this counts as this, which keeps a cluster that may be empty near its offset.
    """
    step = np.clip(sums / np.maximum(sizes, enough)[:, None], -assignment.radius, assignment.radius)
    return np.asarray(np.clip(assignment.offsets + step, 0, room.extents), dtype=np.float64)


def _clipped(true: Ints, noise: Ints) -> Ints:
    # The sampler tells magnitudes apart up to 2^62; clipping below that gives the law of unbounded integers.
    return np.asarray(np.clip(true + noise, -LARGEST, LARGEST))
