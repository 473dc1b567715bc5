"""The least expected cost at which an output can tell nothing about the secret: the zero-leakage budget.

I(X; Z) = 0 says that every secret gives the same law of outputs. With T[x, w] = p(w | x) − π_w,

    L₀ = min_K Σ_w π_w Σ_z K[w, z] d(w, z)   s.t.   Σ_w T[x, w] K[w, z] = 0 for all x, z;   Σ_z K[w, z] = 1;   K ≥ 0,

a linear program; where no value is shared by two secrets it is the Wasserstein barycentre of the laws p(W | x). From L₀ on
a least leaking channel leaks nothing; the best constant output costs at least as much, often more.

For any potentials φ[x, z] every feasible K satisfies Σ π_w d K = Σ (π_w d − Σ_x T φ) K, hence

    L₀ ≥ Σ_w min_z [ π_w d(w, z) − Σ_x T[x, w] φ[x, z] ].

Columns meet in the row sums alone. With an orthonormal basis V of the rows of T (rank r ≤ secrets − 1) a Newton step needs,
for each column, the r × r matrix V' diag(K/S) V, and in all one rows × rows matrix, Σ_z [D_z − D_z V (V' D_z V)^{-1} V' D_z]:
rows² · outputs · r operations in matrix products. It is singular along V, where the right-hand side vanishes (derived).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from .attainable import checked
from .lower_bound import Floats

MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class ZeroLeakage:
    """A channel whose outputs tell nothing about the secret.

    Args:
        K: (rows, outputs); rows sum to 1 (to rounding), Σ_w T K = 0 to about 1e-9.
        value: its expected cost.
        bound: no channel without leakage costs less (``zero_bound`` of ``potentials``).
        potentials: φ, (secrets, outputs).
        steps, seconds: what it took.
    """

    K: Floats
    value: float
    bound: float
    potentials: Floats
    steps: int
    seconds: float


def zero_bound(P: ArrayLike, D: ArrayLike, potentials: ArrayLike) -> float:
    """Σ_w min_z [ π_w d(w, z) − Σ_x T[x, w] φ[x, z] ], less a margin for rounding: no channel without leakage costs less.

    Args:
        P: joint law P(x, w), (secrets, rows).
        D: cost d(w, z), (rows, outputs).
        potentials: φ, (secrets, outputs), any numbers.

    >>> round(zero_bound([[0.5, 0.0], [0.0, 0.5]], [[0, 1], [1, 0]], [[-0.5, 0.5], [0.0, 0.0]]), 6)
    0.5
    """
    joint, cost = checked(P, D, 0.0, "zero leakage")
    phi = np.asarray(potentials, dtype=np.float64)
    reduced = joint.sum(0)[:, None] * cost - _spread(joint).T @ phi
    size = float(np.abs(reduced).max()) + float(np.abs(phi).max(initial=0.0))
    return float(reduced.min(1).sum() - 2.0**-50 * sum(reduced.shape) * size)


def solve(P: ArrayLike, D: ArrayLike, tolerance: float = 1e-7) -> ZeroLeakage:
    """The cheapest channel without leakage.

    Args:
        P: joint law P(x, w), (secrets, rows), divided by its sum; rows without mass get their cheapest output.
        D: cost d(w, z), (rows, outputs), finite and ≥ 0.
        tolerance: relative gap at which to stop.

    Raises:
        SpecificationError: shapes or numbers that fit no program.

    >>> d = abs(np.arange(3.0)[:, None] - np.arange(3.0))
    >>> found = solve(np.array([[0.25, 0.25, 0.0], [0.0, 0.25, 0.25]]), d)
    >>> round(found.value, 6), round(found.bound, 6)
    (0.5, 0.5)
    """
    began = perf_counter()
    joint, cost = checked(P, D, 0.0, "zero leakage")
    rows = joint.sum(0) > 0
    mass = joint.sum(0)[rows]
    spread = _spread(joint)[:, rows]
    left, size, right = np.linalg.svd(spread, full_matrices=False)
    rank = int((size > 1e-12 * max(float(size.max(initial=0.0)), 1.0)).sum())
    priced = mass[:, None] * cost[rows]
    K = np.zeros(cost.shape)
    K[np.arange(len(cost)), cost.argmin(1)] = 1.0
    potentials = np.zeros((len(joint), cost.shape[1]))
    steps = 0
    if rank and priced.any():
        unit = float(priced.sum(0).min()) or float(priced.max())  # the best constant's cost, or what there is
        with np.errstate(all="ignore"):  # where digits end, the last step is thrown away
            found, theta, steps = _interior(priced / unit, right[:rank], tolerance)
        K[rows] = found
        potentials = (left[:, :rank] / size[:rank]) @ (theta * unit)
    value = float((priced * K[rows]).sum())
    bound = max(zero_bound(joint, cost, potentials), 0.0)
    return ZeroLeakage(K, value, bound, potentials, steps, perf_counter() - began)


def _spread(joint: Floats) -> Floats:
    """T[x, w] = p(w | x) − π_w, 0 for a secret without mass."""
    prior, mass = joint.sum(1), joint.sum(0)
    found: Floats = (
        joint / np.where(prior > 0, prior, 1.0)[:, None] - np.where(prior > 0, 1.0, 0.0)[:, None] * mass
    )
    return found


def _interior(C: Floats, V: Floats, tolerance: float) -> tuple[Floats, Floats, int]:
    """min Σ C K with V K = 0, rows of sum 1, K ≥ 0, by Mehrotra's method: K, θ with reduced costs C − V'θ − ν, steps."""
    W, Z = C.shape
    r = len(V)
    K = np.full((W, Z), 1.0 / Z)  # no leakage, rows of sum 1
    theta, nu = np.zeros((r, Z)), np.full(W, -0.1 * float(C.mean()) - 1e-12)
    nu = nu + C.min(1)
    S = C - nu[:, None]
    best, best_theta, floor, cheapest, steps = K, theta, -np.inf, np.inf, 0
    while steps < MOST_STEPS:
        value = float((C * K).sum())
        bound = float((S + nu[:, None]).min(1).sum())
        sums, kept = 1 - K.sum(1), -(V @ K)
        if bound > floor:
            floor, best_theta = bound, theta
        if value < cheapest and max(np.abs(sums).max(), np.abs(kept).max()) < 1e-9:
            cheapest, best = value, K
        if cheapest - floor <= tolerance * max(cheapest, 1e-12):
            break
        try:
            newton = _newton(V, K, S, sums, kept)
        except np.linalg.LinAlgError:  # the end of double precision: what is certified so far stays
            break
        product = float((K * S).sum())
        dK, dtheta, dnu, dS = newton(-K * S)
        primal, dual = _reach(K, dK), _reach(S, dS)
        after = float(((K + primal * dK) * (S + dual * dS)).sum())
        aim = min(max((after / product) ** 3, 1e-8), 1.0) * product / K.size
        dK, dtheta, dnu, dS = newton(aim - K * S - dK * dS)
        primal, dual = 0.98 * _reach(K, dK), 0.98 * _reach(S, dS)
        if max(primal, dual) < 1e-3 or not np.isfinite(dS).all():
            break
        K, S = K + primal * dK, S + dual * dS
        theta, nu = theta + dual * dtheta, nu + dual * dnu
        steps += 1
    best = np.maximum(best, 0.0)
    return best / best.sum(1, keepdims=True), best_theta, steps


def _newton(
    V: Floats, K: Floats, S: Floats, sums: Floats, kept: Floats
) -> Callable[[Floats], tuple[Floats, Floats, Floats, Floats]]:
    """The direction (dK, dθ, dν, dS) for given targets of S dK + K dS."""
    from scipy.linalg import cho_factor, cho_solve

    ratio = K / S
    inverse = np.linalg.inv(np.linalg.cholesky(_small(V, ratio)))  # (outputs, r, r), lower triangular
    schur = np.diag(ratio.sum(1))
    for j in range(len(V)):
        Y = (V.T @ inverse[:, j].T) * ratio
        schur -= Y @ Y.T
    scale = float(np.trace(schur)) / len(schur)
    schur += scale * (V.T @ V)
    schur[np.diag_indices(len(schur))] += 1e-13 * scale
    factor = cho_factor(schur, check_finite=False)

    def small(b: Floats) -> Floats:
        half = inverse @ b.T[:, :, None]
        found: Floats = (inverse.transpose(0, 2, 1) @ half)[:, :, 0].T
        return found

    def newton(target: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        plain = target / S
        first = small(kept - V @ plain)
        right = sums - plain.sum(1) - (ratio * (V.T @ first)).sum(1)
        dnu: Floats = cho_solve(factor, right, check_finite=False)
        dtheta = first - small(V @ (ratio * dnu[:, None]))
        dS = -(V.T @ dtheta) - dnu[:, None]
        return plain - ratio * dS, dtheta, dnu, dS

    return newton


def _small(V: Floats, ratio: Floats) -> Floats:
    """V diag(ratio_z) V' for every column, (outputs, r, r), with a hair on the diagonal."""
    r = len(V)
    pairs = (V[:, None, :] * V[None, :, :]).reshape(r * r, -1)
    found: Floats = (pairs @ ratio).T.reshape(-1, r, r)
    hair = 1e-14 * np.trace(found, axis1=1, axis2=2)
    found[:, np.arange(r), np.arange(r)] += hair[:, None]
    return found


def _reach(a: Floats, d: Floats) -> float:
    """The longest step, at most 1, that keeps ``a`` positive."""
    return min(1.0, -1.0 / min(float((d / a).min()), -1e-9))
