r"""What no channel leaks less than: the lower bound of ``lower_bound``, for outputs anywhere.

    I ≥ Σ_w π_w min_z [ Σ_x p(x | w) ln( q(x | z)/p(x) ) + λ d(w, z) ] − λ L      for every classifier q and every λ ≥ 0.

The least over all places z is taken over boxes: q is constant in each, and d(w, z) is replaced by the distance from w to the
nearest place of the box, which is where the bound gives away a little (at most λ times the boxes' size). Places outside the
box of all values need no look: moving them onto it brings them nearer to every value and, being post-processing, raises no
leakage. q is the classifier of the best channel over boxes for a part of the rows; the bound is for all of them.

In more than three dimensions boxes are too many. There the places are the channel's own output points, and the bound is one
for channels with these outputs. Derived.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import leaking_search
from ..geometry import Floats
from ..lower_bound import LN2, MARGIN, Problem, gains, normalised
from .samples import Samples, apart

BOXES = 2500
ROWS = 300
SECONDS = 30.0
CHUNK = 1 << 22
MOST_AXES = 3
FACTORS = np.array([0.9, 0.94, 0.97, 1.0, 1.03])  # of the part's multiplier, of which the best is kept


@dataclass(frozen=True)
class Bounded:
    """A lower bound on what any channel within the distortion leaks about these rows.

    Attributes:
        bits: the bound.
        outputs: "anywhere", or "points" where it is one for the channel's own output points.
        boxes: how many boxes, or points.
    """

    bits: float
    outputs: str
    boxes: int


def bounded(
    samples: Samples, budget: float, metric: str, points: Floats, rng: np.random.Generator
) -> Bounded:
    """The bound for these rows; all in scaled coordinates."""
    anywhere = samples.values.shape[1] <= MOST_AXES
    low, high = _boxes(samples.values) if anywhere else (points, points)
    part = samples.at_most(ROWS, rng)
    rows, joint = part.distinct
    centres = (low + high) / 2
    cost = apart(rows, centres, metric)
    asked = max(budget, float(joint.sum(axis=0) @ cost.min(axis=1)) * (1 + 1e-9))
    made = leaking_search.search(Problem.of(joint, cost, asked), None, np.arange(len(rows)), 1e-3, SECONDS)
    problem = Problem.of(joint, cost, asked)
    log_ratio = normalised(problem, np.maximum(made.log_ratio, -50.0))
    best = _worth(samples, (low, high), metric, log_ratio, FACTORS * made.multiplier, budget)
    return Bounded(max(best - MARGIN, 0.0) / LN2, "anywhere" if anywhere else "points", len(low))


def _boxes(values: Floats) -> tuple[Floats, Floats]:
    """Low and high corners of equal boxes that cover all values."""
    start, end = values.min(axis=0), values.max(axis=0)
    axes = values.shape[1]
    width = end - start
    long = width > 0
    if not long.any():
        return start[None], end[None]
    side = (np.prod(width[long]) / BOXES) ** (1 / long.sum())
    counts = np.where(long, np.maximum(1, np.floor(width / side)), 1).astype(int)
    while counts.prod() > BOXES:  # where one side is much shorter than the others
        counts[counts.argmax()] -= 1
    edges = [start[a] + width[a] * np.arange(counts[a] + 1) / counts[a] for a in range(axes)]
    lows = np.stack(np.meshgrid(*[e[:-1] for e in edges], indexing="ij"), axis=-1).reshape(-1, axes)
    highs = np.stack(np.meshgrid(*[e[1:] for e in edges], indexing="ij"), axis=-1).reshape(-1, axes)
    return lows, highs


def nearest(values: Floats, low: Floats, high: Floats, metric: str) -> Floats:
    """Distance from each value to the nearest place of each box, shape (values, boxes).

    >>> nearest(np.array([[0.0]]), np.array([[-1.0], [2.0]]), np.array([[1.0], [3.0]]), "euclidean").tolist()
    [[0.0, 2.0]]
    """
    found = np.zeros((len(values), len(low)))
    for axis in range(values.shape[1]):
        at = values[:, axis, None]
        gap = np.maximum(np.maximum(low[None, :, axis] - at, at - high[None, :, axis]), 0.0)
        found += gap if metric == "manhattan" else gap * gap
    return np.sqrt(found, out=found) if metric == "euclidean" else found


def _worth(
    samples: Samples,
    boxes: tuple[Floats, Floats],
    metric: str,
    log_ratio: Floats,
    multipliers: Floats,
    budget: float,
) -> float:
    """The bound in nats with one classifier and the best of these multipliers."""
    values, joint = samples.distinct
    mass = joint.sum(axis=0)
    given = joint / mass
    # q is scaled for the prior of the part; for that of all rows it may sum to a little more, which is taken off.
    total = np.log((samples.prior[:, None] * np.exp(log_ratio)).sum(axis=0))
    log_ratio = log_ratio - np.maximum(total, 0.0)
    rows = max(1, CHUNK // len(boxes[0]))
    found = -multipliers * budget
    for start in range(0, len(values), rows):
        part = slice(start, start + rows)
        worth, away = gains(given[:, part], log_ratio), nearest(values[part], *boxes, metric)
        for i, lam in enumerate(multipliers.tolist()):
            found[i] += mass[part] @ (worth + lam * away).min(axis=1)
    return float(found.max())
