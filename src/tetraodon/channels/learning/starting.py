"""Where learning starts: output points and the exact optimum for a few hundred rows, by turns.

With the points z_k held, the best P(k | row) is a least-leaking channel and solved to its global optimum. With P held, the
leakage is what it is and only the distortion depends on the points: the best are weighted medians. Neither step makes things
worse. Points that are not used are given up; new ones are tried near those that are. Derived.

The certificate of the last solve says what an output costs a row: its gain Σ_x p(x | w) G[x, k] and λ d(w, z_k), and a row
goes where the sum is least. That is the form in which ``atoms`` go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...axes import Ints
from ...errors import Refused
from .. import leaking_search
from ..attainable import Unreachable
from ..geometry import Floats
from ..lower_bound import Problem
from .samples import Samples, apart

ROWS = 500
TURNS = 7
USED = 1e-4  # of the mass
TOLERANCE = 1e-3  # bits
SECONDS = 20.0
MOVES = 20


@dataclass(frozen=True, eq=False)
class Start:
    """Output points with the channel that is best for them.

    Attributes:
        points: shape (points, dimensions).
        masses: P(point | secret), shape (secrets, points).
        gains: G[x, k] = ln q(x | k)/p(x) of the certificate, in nats, shape (secrets, points).
        multiplier: λ, in nats for each unit of distance; 0 where the budget does not bind.
        leak: bits, for the rows that were used.
    """

    points: Floats
    masses: Floats
    gains: Floats
    multiplier: float
    leak: float


def start(samples: Samples, budget: float, metric: str, outputs: int, rng: np.random.Generator) -> Start:
    """Points and channel for a part of the rows.

    Args:
        budget: the largest expected distance, in the unit of the samples' values.
        outputs: how many points there may be.

    Raises:
        Refused: so few points cannot keep the budget.
    """
    part = samples.at_most(ROWS, rng)
    rows, joint = part.distinct
    points = _first(rows, outputs, rng)
    width = 0.3 * budget if metric != "squared" else 0.3 * float(np.sqrt(budget))
    for turn in range(TURNS):
        found, kept = _solved(joint, rows, points, budget, metric, outputs)
        points = _moved(rows, joint.sum(axis=0)[:, None] * found, points[kept], metric)
        if turn < TURNS - 1:
            tried = points + rng.normal(0.0, width * 0.7**turn, points.shape)
            points = np.concatenate([points, tried])
    try:
        made = leaking_search.search(
            Problem.of(joint, apart(rows, points, metric), budget), None, np.arange(len(rows)), 1e-4, SECONDS
        )
    except Unreachable:
        raise _too_few() from None
    K = np.zeros((len(rows), len(points)))
    K[:, made.columns] = made.K
    J = joint @ K
    used = J.sum(axis=0) > USED / 10
    with np.errstate(invalid="ignore"):
        gains = np.clip(made.log_ratio, -20.0, 20.0)
    masses = J[:, used] / J[:, used].sum(axis=1, keepdims=True)
    return Start(points[used], masses, gains[:, used], made.multiplier, made.value)


def _first(rows: Floats, outputs: int, rng: np.random.Generator) -> Floats:
    """The rows themselves, so that any budget can be kept, and points between two or three of them."""
    count = 2 * outputs
    corners = rows[rng.integers(len(rows), size=(count, 3))]
    mixed = np.einsum("ci,cid->cd", rng.dirichlet(np.ones(3), size=count), corners)
    own = rows if len(rows) <= outputs else rows[rng.choice(len(rows), outputs, replace=False)]
    return np.concatenate([own, mixed])


def _solved(
    joint: Floats, rows: Floats, points: Floats, budget: float, metric: str, outputs: int
) -> tuple[Floats, Ints]:
    """The best channel over these points, and the points that it uses most."""
    problem = Problem.of(joint, apart(rows, points, metric), budget)
    try:
        found = leaking_search.search(problem, None, np.arange(len(rows)), TOLERANCE, SECONDS)
    except Unreachable:
        raise _too_few() from None
    used = joint.sum(axis=0) @ found.K
    top = np.argsort(-used, kind="stable")[:outputs]
    top = np.sort(top[used[top] > USED])
    return found.K[:, top], found.columns[top]


def _moved(rows: Floats, flow: Floats, points: Floats, metric: str) -> Floats:
    """Weighted medians (means, of squared distances) of the rows that come to each point, with ``flow`` (rows, points)."""
    mass = flow / flow.sum(axis=0)
    if metric == "squared":
        return np.asarray(mass.T @ rows)
    if metric == "manhattan":
        return _medians(rows, mass)
    spread = float(np.ptp(rows, axis=0).max())
    for _ in range(MOVES):  # Weiszfeld
        pull = mass / np.maximum(apart(rows, points, metric), 1e-6 * spread + 1e-300)
        points = (pull.T @ rows) / pull.sum(axis=0)[:, None]
    return np.asarray(points)


def _medians(rows: Floats, mass: Floats) -> Floats:
    found = np.empty((mass.shape[1], rows.shape[1]))
    for axis in range(rows.shape[1]):
        order = np.argsort(rows[:, axis], kind="stable")
        below = np.cumsum(mass[order], axis=0)
        found[:, axis] = rows[order[(below >= 0.5).argmax(axis=0)], axis]
    return found


def _too_few() -> Refused:
    return Refused(
        "learn.outputs: so few output points cannot keep the distortion; how far off they are is a function of the rows and withheld. "
        "State more outputs, or allow more distortion."
    )
