"""The point sets of figure 1: skin colours, synthetic points, tweets. Points with weights, in the unit of their thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .common import columns, histogram_2d, source

SYNTHETIC_SEED, SAMPLE_SEED = 2014, 10
KM_PER_DEGREE = 111.195  # a great circle of 6,371 km
MIDDLE_LATITUDE = 40.0
DEGREES = (15 / 256, 20 / 256)  # longitude, latitude of a cell


@dataclass(frozen=True, eq=False)
class Cloud:
    """Weighted points in a box.

    Attributes:
        points: shape (n, d), distinct.
        weights: shape (n,), whole: records at each point.
        low, high: shape (d,), the declared box.
        told: what it is, for the plot.
    """

    name: str
    points: np.ndarray
    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray
    told: str

    @property
    def records(self) -> int:
        return int(self.weights.sum())


def skin(share: int = 1) -> Cloud:
    """B, G, R in 0 … 255; every ``share``-th record of a public random order (1: all)."""
    path = source("skin_segmentation", "skin_nonskin.csv.gz")
    rows = np.stack(columns(path, ["b", "g", "r"]), axis=1).astype(np.int64)
    if share > 1:
        chosen = np.random.default_rng(SAMPLE_SEED).permutation(len(rows))[: len(rows) // share]
        rows = rows[chosen]
    points, weights = np.unique(rows, axis=0, return_counts=True)
    name = {1: "skin", 10: "skin10", 100: "skin01"}[share]
    box = np.zeros(3), np.full(3, 255.0)
    return Cloud(
        name, points.astype(float), weights, *box, f"{name}: {len(rows):,} colours (B, G, R in 0…255)"
    )


def synthetic(k: int = 4, size: int = 1000, spread: float = 0.2) -> Cloud:
    """Points around k uniformly random centres of (0,1)^4 with N(0, spread) on every coordinate, redrawn until inside."""
    rng = np.random.default_rng(SYNTHETIC_SEED)
    centres = rng.random((k, 4))
    found: list[np.ndarray] = []
    while len(found) < size:
        point = centres[len(found) % k] + rng.normal(scale=spread, size=4)
        if ((point > 0) & (point < 1)).all():
            found.append(point)
    told = f"synthetic: {size:,} points of (0,1)⁴ around {k} centres, σ {spread}, seed {SYNTHETIC_SEED}"
    return Cloud("synthetic", np.array(found), np.ones(size, dtype=np.int64), np.zeros(4), np.ones(4), told)


def tweets() -> Cloud:
    """Tweets in the middles of 256 × 256 cells, in kilometres east and north of the box's corner at its middle latitude."""
    cells = histogram_2d("TWITTER")
    step = cell_km()
    i, j = np.nonzero(cells)
    points = np.stack([(i + 0.5) * step[0], (j + 0.5) * step[1]], axis=1)
    told = f"twitter: {int(cells.sum()):,} tweets, 256 × 256 cells of {step[0]:.2f} × {step[1]:.2f} km (the paper: 300 × 400)"
    return Cloud("twitter", points, cells[i, j], np.zeros(2), 256 * step, told)


def cell_km() -> np.ndarray:
    """Width and height of a cell of the tweets' grid in km."""
    return np.array(
        [DEGREES[0] * KM_PER_DEGREE * math.cos(math.radians(MIDDLE_LATITUDE)), DEGREES[1] * KM_PER_DEGREE]
    )
