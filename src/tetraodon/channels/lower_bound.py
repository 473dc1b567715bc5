"""How little any channel within a distortion budget can leak: lower bounds that a stranger can recompute.

A secret X, its value W and the published value Z form a chain X → W → Z; the joint law of (X, W) is fixed and the channel
K[w, z] = P(z | w) is chosen. For **any** classifier q (Σ_x q(x | z) ≤ 1) and any λ ≥ 0,

    I(X; Z) ≥ Σ_w π_w min_z [ Σ_x p(x | w) ln( q(x | z) / p(x) ) + λ d(w, z) ] − λ L

holds for every channel with E d ≤ L, because E ln(q/p) never exceeds the information and the least over z never exceeds
the mean over z. It is tight at the optimum, with the posterior as q and the multiplier of the budget as λ (derived).

Inside the solvers everything is natural logarithms; what leaves them is bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import SpecificationError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LN2 = float(np.log(2.0))
MARGIN = 1e-9  # nats; far above what rounding does to the bound, far below any tolerance asked for
UNIT = 2.0**-53


@dataclass(frozen=True)
class Problem:
    """min_K I(X; Z) with E d ≤ budget, on plain arrays without masses of zero.

    ``joint`` (secrets, rows) sums to 1 and has no empty row or column; ``cost`` (rows, outputs) is finite and ≥ 0. The
    rest is derived: ``mass`` π_w, ``prior`` p_x, ``given`` p(x | w), ``log_prior`` ln p_x.
    """

    joint: Floats
    cost: Floats
    budget: float
    mass: Floats
    prior: Floats
    given: Floats
    log_prior: Floats

    @classmethod
    def of(cls, joint: ArrayLike, cost: ArrayLike, budget: float) -> Problem:
        P = np.asarray(joint, dtype=np.float64)
        mass, prior = P.sum(0), P.sum(1)
        return cls(P, np.asarray(cost, np.float64), float(budget), mass, prior, P / mass, np.log(prior))

    def only(self, columns: Ints) -> Problem:
        """The same problem with these outputs alone."""
        return Problem(
            self.joint, self.cost[:, columns], self.budget, self.mass, self.prior, self.given, self.log_prior
        )

    def least(self) -> float:
        """The smallest attainable distortion: every row to its nearest output."""
        return float(self.mass @ self.cost.min(1))

    def distortion(self, K: Floats) -> float:
        return float(self.mass @ np.einsum("wz,wz->w", K, self.cost))


@dataclass(frozen=True)
class Solved:
    """What a solver found: a channel, what it leaks, and a proof of how little any channel can leak.

    Args:
        K: (rows with mass, len(columns)); rows sum to 1 (to rounding) and E d ≤ L.
        columns: the outputs that the columns of ``K`` stand for.
        value: what ``K`` leaks, in bits.
        bound: no channel within the budget leaks less, in bits (``information_bound`` of the next two).
        multiplier: λ, in nats for each unit of cost.
        log_ratio: ln q(x | z) / p(x), natural logarithm, for **every** output: (secrets, outputs).
        steps, seconds: what it took.
    """

    K: Floats
    columns: Ints
    value: float
    bound: float
    multiplier: float
    log_ratio: Floats
    steps: int
    seconds: float

    @property
    def gap(self) -> float:
        """Bits between the channel found and the bound; never negative."""
        return max(self.value - max(self.bound, 0.0), 0.0)


def leaked(problem: Problem, K: Floats) -> float:
    """I(X; Z) in bits of a channel (rows, any outputs).

    >>> round(leaked(Problem.of([[0.5, 0.0], [0.0, 0.5]], np.zeros((2, 2)), 0.0), np.eye(2)), 12)
    1.0
    """
    J = problem.joint @ K
    p = J.sum(0)
    told = J > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(J) - np.log(p) - problem.log_prior[:, None]
    return float(np.sum(J[told] * logs[told])) / LN2


def posterior(problem: Problem, K: Floats) -> Floats:
    """ln p(x | z) / p(x) of a channel: −inf where x never gives z; 0 (the prior) for an output never given."""
    J = problem.joint @ K
    p = J.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = np.log(J) - np.log(p) - problem.log_prior[:, None]
    logs[:, p <= 0] = 0.0
    return logs


def normalised(problem: Problem, log_ratio: Floats) -> Floats:
    """The same classifiers scaled so that Σ_x q(x | z) = 1 (no larger than that: see ``MARGIN`` for rounding)."""
    top = log_ratio.max(0)
    top = np.where(np.isfinite(top), top, 0.0)
    total = problem.prior @ np.exp(log_ratio - top)
    with np.errstate(divide="ignore"):
        shift: Floats = top + np.log(total)
    return log_ratio - np.where(np.isfinite(shift), shift, 0.0)


def gains(given: Floats, log_ratio: Floats) -> Floats:
    """Σ_x p(x | w) ln q(x | z)/p(x): (rows, outputs), with 0 · ln 0 = 0 and −inf where a possible x has q = 0."""
    never = np.isneginf(log_ratio)
    if not never.any():
        return given.T @ log_ratio
    found: Floats = given.T @ np.where(never, 0.0, log_ratio)
    found[((given > 0).T.astype(np.float64) @ never) > 0] = -np.inf
    return found


def best_bound(
    problem: Problem, gain: Floats, multiplier: float, evaluations: int = 10
) -> tuple[float, float]:
    """The largest bound over λ ≥ 0 near the given one, and its λ, in nats (before the margin of rounding).

    The bound is concave and piecewise linear in λ: each evaluation gives a tangent, and the next λ is where the tangents
    on both sides of the top meet.
    """
    rows = np.arange(len(problem.mass))
    best = (-np.inf, multiplier)
    below: tuple[float, float, float] | None = None  # λ, value, slope > 0
    above: tuple[float, float, float] | None = None
    lam, reach = max(multiplier, 0.0), 1e-3
    for _ in range(evaluations):
        total = gain + lam * problem.cost
        least = total.argmin(1)
        value = float(problem.mass @ total[rows, least]) - lam * problem.budget
        slope = float(problem.mass @ problem.cost[rows, least]) - problem.budget
        if value > best[0]:
            best = (value, lam)
        if not np.isfinite(value) or slope == 0:
            break
        if slope > 0:
            below = (lam, value, slope)
        else:
            above = (lam, value, slope)
            if lam == 0:
                break
        if below and above:
            meet = (below[1] - above[1] + above[2] * above[0] - below[2] * below[0]) / (above[2] - below[2])
            if below[1] + below[2] * (meet - below[0]) - best[0] < 1e-9:
                break
            width = above[0] - below[0]
            lam = min(max(meet, below[0] + 0.01 * width), above[0] - 0.01 * width)
        elif below:
            lam, reach = lam * (1 + reach) + 1e-300, reach * 8
        else:
            lam, reach = lam * max(1 - reach, 0.0), reach * 8
    return best


def information_bound(
    joint: ArrayLike, cost: ArrayLike, budget: float, log_ratio: ArrayLike, multiplier: float
) -> float:
    """Bits that every channel with E d ≤ ``budget`` leaks at least, whatever classifier and multiplier are given.

    Σ_w π_w min_z [ Σ_x p(x|w) ln q(x|z)/p(x) + λ d(w, z) ] − λ L, in bits, with 0 · ln 0 = 0; secrets and rows without mass
    count for nothing; a classifier that adds up to more than 1 over the secrets is scaled down to 1; a margin for rounding
    is subtracted. A poor classifier gives a poor bound, possibly −inf, never a wrong one.

    Args:
        joint: P(secret, value), (secrets, rows), ≥ 0; divided by its sum.
        cost: d(w, z) ≥ 0, finite, (rows, outputs).
        budget: L, in the unit of ``cost``.
        log_ratio: ln q(x | z)/p(x), (secrets, outputs), natural logarithm; −inf for q = 0.
        multiplier: λ ≥ 0, in nats for each unit of ``cost``.

    Raises:
        SpecificationError: shapes that do not fit, NaN, a negative multiplier.

    >>> information_bound([[0.5, 0.0], [0.0, 0.5]], [[0, 1], [1, 0]], 0.0, np.log([[2, 1e-9], [1e-9, 2]]), 30.0) > 0.999
    True
    """
    P, D, R = (np.asarray(a, dtype=np.float64) for a in (joint, cost, log_ratio))
    _check(P, D, R, budget, multiplier)
    P = P / P.sum()
    rows, secrets = P.sum(0) > 0, P.sum(1) > 0
    problem = Problem.of(P[np.ix_(secrets, rows)], D[rows], budget)
    R = R[secrets]
    with np.errstate(over="ignore"):
        total = problem.prior @ np.exp(R)
    if np.isposinf(total).any():
        return -np.inf
    with np.errstate(divide="ignore"):
        R = R - np.maximum(np.log(total), 0.0)
    least = (gains(problem.given, R) + multiplier * problem.cost).min(1)
    value = float(problem.mass @ least) - multiplier * budget
    if not np.isfinite(value):
        return -np.inf
    finite = np.abs(R[np.isfinite(R)])
    size = (float(finite.max()) if finite.size else 0.0) + multiplier * (
        float(problem.cost.max()) + abs(budget)
    )
    return float(value - MARGIN - 4 * UNIT * sum(P.shape) * size) / LN2


def _check(P: Floats, D: Floats, R: Floats, budget: float, multiplier: float) -> None:
    where = "information_bound"
    if P.ndim != 2 or D.ndim != 2 or R.ndim != 2 or D.shape[0] != P.shape[1]:
        raise SpecificationError(
            f"{where}: joint (secrets, rows), cost (rows, outputs), got {P.shape}, {D.shape}."
        )
    if R.shape != (P.shape[0], D.shape[1]):
        raise SpecificationError(
            f"{where}: log_ratio (secrets, outputs) = {(P.shape[0], D.shape[1])}, got {R.shape}."
        )
    if not (np.isfinite(P).all() and (P >= 0).all() and P.sum() > 0):
        raise SpecificationError(f"{where}: joint: finite numbers ≥ 0, not all of them 0.")
    if not (np.isfinite(D).all() and (D >= 0).all()):
        raise SpecificationError(f"{where}: cost: finite numbers ≥ 0.")
    if np.isnan(R).any() or np.isposinf(R).any():
        raise SpecificationError(
            f"{where}: log_ratio: no NaN and no +inf; −inf stands for a classifier of 0."
        )
    if not (np.isfinite(multiplier) and multiplier >= 0 and np.isfinite(budget)):
        raise SpecificationError(f"{where}: multiplier: finite and ≥ 0; budget: finite.")


def within(problem: Problem, K: Floats) -> Floats:
    """Rows of ``K`` normalised, and mixed by a hair with "nearest output" if the budget is then exceeded."""
    K = np.maximum(K, 0.0)
    K = K / K.sum(1, keepdims=True)
    spent = problem.distortion(K)
    if spent <= problem.budget:
        return K
    share = min((spent - problem.budget) / max(spent - problem.least(), 1e-300) * (1 + 1e-9) + 1e-15, 1.0)
    K = (1 - share) * K
    K[np.arange(len(K)), problem.cost.argmin(1)] += share
    return K


def solved(
    problem: Problem, K: Floats, columns: Ints, log_ratio: Floats, multiplier: float, **took: Any
) -> Solved:
    """``Solved`` with value and bound computed here, from what it will hold."""
    K = within(problem.only(columns), K)
    bound = information_bound(problem.joint, problem.cost, problem.budget, log_ratio, multiplier)
    if bound < 0:  # the prior as classifier and no price for distortion say 0
        log_ratio, multiplier = np.zeros((len(problem.prior), problem.cost.shape[1])), 0.0
        bound = information_bound(problem.joint, problem.cost, problem.budget, log_ratio, multiplier)
    value = leaked(problem, K)
    return Solved(K, columns, value, bound, float(multiplier), log_ratio, **took)
