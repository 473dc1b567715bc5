"""Public synthetic data to compare ways of k-means on, before any private row is read.

The recipe: ``SETS`` sets of ``POINTS`` points (fewer records: as many) in the declared box. A quarter of them are uniform; the
others lie around k uniformly drawn centres with shares drawn from a flat Dirichlet law, each coordinate normal with a
standard deviation of 8 % of the box's side, clipped to the box. Every point stands for the same number of records. Seeds
are fixed and public. What is measured is the objective of a private run over that of the best of several plain runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..axes import Ints
from ..mechanisms.variance import Floats
from .lloyd import cluster, objective
from .space import Space

SEED = 20140622
SETS, POINTS, DRAWS = 3, 1500, 2
UNIFORM, NARROW = 0.25, 0.08


@dataclass(frozen=True, eq=False)
class Sample:
    """One synthetic set.

    Attributes:
        codes: whole-domain cells that hold points, ascending.
        points: shape (n, d), their coordinates.
        counts: records in each.
        best: objective of plain k-means.
    """

    codes: Ints
    points: Ints
    counts: Ints
    best: float

    def ratio(self, centroids: Floats) -> float:
        """Objective over that of plain k-means; 1 where both are 0."""
        told = objective(self.points.astype(np.float64), self.counts.astype(np.float64), centroids)
        if self.best <= 0:
            return 1.0 if told <= 0 else np.inf
        return told / self.best


def samples(room: Space, k: int, records: int) -> list[Sample]:
    """The synthetic sets for a space, a number of clusters and about how many records there are.

    >>> from tetraodon import Domain, Integer
    >>> from tetraodon.clustering.space import space
    >>> [one] = samples(space(Domain(a=Integer(0, 9))), 2, 5)[:1]
    >>> int(one.counts.sum()), one.ratio(one.points.astype(float)) < 1
    (5, True)
    """
    found = []
    for number in range(SETS):
        rng = np.random.default_rng((SEED, number))
        count = min(records, POINTS)
        extents = np.maximum(room.extents.astype(np.float64), 1e-9)
        centres = rng.random((k, len(extents))) * extents
        share = rng.dirichlet(np.ones(k))
        label = rng.choice(k, count, p=share)
        near = centres[label] + rng.normal(size=(count, len(extents))) * NARROW * extents
        even = rng.random((count, len(extents))) * extents
        spot = np.clip(np.where(rng.random(count)[:, None] < UNIFORM, even, near), 0, extents)
        codes, held = np.unique(room.codes(spot), return_counts=True)
        points, _ = room.places(codes)
        counts = held.astype(np.int64) * (records // count)
        place, weight = points.astype(np.float64), counts.astype(np.float64)
        best = objective(place, weight, cluster(place, weight, k, rng, 4))
        found.append(Sample(codes, points, counts, best))
    return found


def drawn(rng: np.random.Generator, unit: str, draws: Sequence[tuple[Fraction, int]]) -> list[Ints]:
    """Simulated noise at stated scales (σ² for ρ), rounded; for synthetic data alone."""
    found = []
    for scale, size in draws:
        wide = float(scale)
        noise = rng.laplace(0, wide, size) if unit == "epsilon" else rng.normal(0, wide**0.5, size)
        found.append(np.rint(noise).astype(np.int64))
    return found
