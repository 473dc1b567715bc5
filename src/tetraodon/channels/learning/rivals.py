r"""What a channel is set beside, at the same expected distortion: noise of one scale for all, and the exact optimum on a grid.

*Noise.* Density ∝ e^{−d(w, z)/b}: Laplace noise, planar in two dimensions, spherical in more. In n dimensions its length is
Gamma(n) distributed, E d = n b (Euclidean), and n b for the sum of n absolute coordinates ("manhattan", each of them Laplace
noise); for squared distances the Euclidean noise has E d² = n (n + 1) b². Who knows the law of the rows has the posterior in closed
form, Σ over the rows of a secret of w_i e^{−d(w_i, z)/b}, and simulation with it errs by chance only.

*Optimum.* Values go to the cells of a grid, outputs are the cells' middles; the cost of a cell and an output is the mean distance
of the rows in the cell, so that the distortion is that of the rows. It is the least leaking channel *for these very rows*, which no
learned channel has seen: a floor to compare with, not a rival on fresh rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...axes import Ints
from .. import leaking_search
from ..attainable import Unreachable
from ..geometry import Floats
from ..lower_bound import Problem
from .intervals import mean_ends
from .samples import Samples, apart

NAMES = {1: "Laplace noise", 2: "planar Laplace noise"}
KNOWN = 4000  # rows whose law is known to who knows it
DRAWS = 8000
CHUNK = 1 << 22
MOST = 20_000  # rows for the grid
TOLERANCE = 1e-3  # bits
SECONDS = 30.0


@dataclass(frozen=True, eq=False)
class Laplace:
    """Noise of one scale for all values. For comparison: drawn in doubles from a seed, which no release may do.

    Attributes:
        scale: b, in the values' unit.
        metric: of d.
        rng: what draws come from.
    """

    scale: float
    metric: str
    rng: np.random.Generator

    @staticmethod
    def of(distortion: float, axes: int, metric: str, rng: np.random.Generator) -> Laplace:
        """With this expected distortion in so many dimensions.

        >>> round(Laplace.of(90.0, 2, "euclidean", np.random.default_rng(0)).scale, 6)
        45.0
        """
        if metric == "squared":
            return Laplace(float(np.sqrt(distortion / (axes * (axes + 1)))), metric, rng)
        return Laplace(distortion / axes, metric, rng)

    def sample(self, values: Floats) -> Floats:
        """An output for each value, shape (values, dimensions)."""
        if self.metric == "manhattan":
            return np.asarray(values + self.rng.laplace(0.0, self.scale, values.shape))
        turns = self.rng.normal(size=values.shape)
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        lengths = self.rng.gamma(values.shape[1], self.scale, len(values))
        return np.asarray(values + lengths[:, None] * turns)


@dataclass(frozen=True)
class Known:
    """What noise tells those who know the law of the rows.

    Attributes:
        bits, bits_interval: leakage about these rows.
        error, error_interval: of the best guess.
        rows: rows in the law.
    """

    bits: float
    bits_interval: tuple[float, float]
    error: float
    error_interval: tuple[float, float]
    rows: int


def known_law(noise: Laplace, samples: Samples, level: float) -> Known:
    """By simulation, with two-sided intervals for what chance does in it."""
    part = samples.at_most(KNOWN, noise.rng)
    values, joint = part.distinct
    at = even(part.weights, max(DRAWS, part.rows), noise.rng)
    secrets, prior = part.secrets[at], part.prior
    outputs = noise.sample(part.values[at])
    kind = "manhattan" if noise.metric == "manhattan" else "euclidean"
    shown, missed = np.empty(len(at)), np.empty(len(at))
    step = max(1, CHUNK // len(values))
    for start in range(0, len(at), step):
        rows = slice(start, start + step)
        far = apart(outputs[rows], values, kind) / noise.scale
        chance = np.exp(far.min(axis=1, keepdims=True) - far) @ joint.T
        chance /= chance.sum(axis=1, keepdims=True)
        own = chance[np.arange(len(chance)), secrets[rows]]
        with np.errstate(divide="ignore"):
            shown[rows] = np.log2(own / prior[secrets[rows]])
        missed[rows] = 1 - chance.max(axis=1)
    one_sided = (1 + level) / 2
    weights = np.full(len(at), 1 / len(at))
    zero = np.zeros(len(prior))
    # An output never falls far from its value by more than chance allows; what draws showed least stands for the least there is.
    bits = mean_ends(shown, weights, secrets, (zero + shown.min(), -np.log2(prior)), one_sided)
    error = mean_ends(missed, weights, secrets, (zero, zero + 1 - 1 / len(prior)), one_sided)
    return Known(bits[0], (max(bits[1], 0.0), bits[2]), error[0], error[1:], part.rows)


@dataclass(frozen=True)
class Optimum:
    """The least leaking channel on a grid, for these rows.

    Attributes:
        bits: what it leaks. ``bound``: no channel on this grid leaks less.
        error: of the best guess.
        distortion: that it spends, at most what was asked.
        shape: rows and columns of the grid.
        rows: that it was made for.
    """

    bits: float
    bound: float
    error: float
    distortion: float
    shape: tuple[int, int]
    rows: int


def optimum(
    samples: Samples, distortion: float, metric: str, cells: int, rng: np.random.Generator
) -> Optimum | None:
    """On a grid over the box of all values, with so many cells along its longer side; None where the grid is too coarse.

    Args:
        samples: of two dimensions.
        distortion: the largest expected distance, in the unit of the samples.
    """
    part = samples.at_most(MOST, rng)
    low, width = part.values.min(axis=0), np.ptp(part.values, axis=0)
    side = float(width.max()) / cells if width.max() > 0 else 1.0
    across, up = (max(1, int(np.ceil(w / side - 1e-9))) for w in width)
    start = low + (width - side * np.array([across, up])) / 2
    centres = start + side * (
        np.stack(np.meshgrid(np.arange(across), np.arange(up)), -1).reshape(-1, 2) + 0.5
    )
    at = np.clip(((part.values - start) / side).astype(np.int64), 0, np.array([across, up]) - 1)
    there, cell = np.unique(at[:, 1] * across + at[:, 0], return_inverse=True)
    joint, cost = np.zeros((part.n_secrets, len(there))), np.zeros((len(there), len(centres)))
    np.add.at(joint, (part.secrets, cell), part.weights)
    step = max(1, CHUNK // len(centres))
    for first in range(0, part.rows, step):
        rows = slice(first, first + step)
        far = part.weights[rows, None] * apart(part.values[rows], centres, metric)
        np.add.at(cost, cell[rows], far)
    cost /= joint.sum(axis=0)[:, None]
    problem = Problem.of(joint, cost, distortion)
    try:
        found = leaking_search.search(problem, (up, across), there, TOLERANCE, SECONDS)
    except Unreachable:
        return None
    told = joint @ found.K
    spent = problem.only(found.columns).distortion(found.K)
    return Optimum(
        max(found.value, 0.0), max(found.bound, 0.0), float(1 - told.max(axis=0).sum()), spent, (up, across), part.rows
    )  # fmt: skip


def even(weights: Floats, count: int, rng: np.random.Generator) -> Ints:
    """So many rows, each as often as its weight has it up to one more or less, in random order.

    >>> sorted(even(np.array([0.25, 0.75]), 4, np.random.default_rng(0)).tolist())
    [0, 1, 1, 1]
    """
    marks = (np.arange(count) + rng.random()) / count
    found = np.searchsorted(np.cumsum(weights) / weights.sum(), marks, side="right")
    return rng.permutation(np.minimum(found, len(weights) - 1))
