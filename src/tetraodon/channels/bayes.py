"""Channels against an attacker with one guess: the largest Bayes error within a distortion budget, and its kin.

An attacker sees z and picks a guess g; it gains G[g, x] where the secret is x (with the Bayes error, 1 for the right one),
or G[g, w] where what counts is the value itself (minus the distance between guess and value: Shokri et al. 2012). With
A[g, w] = Σ_x G[g, x] P(x, w), or π_w G[g, w], the attacker's best expected gain is Σ_z max_g (A K)[g, z], and

    min_K Σ_z v_z   s.t.   v_z ≥ Σ_w A[g, w] K[w, z] for every g, z;   Σ_w π_w Σ_z K d ≤ L;   Σ_z K[w, z] = 1;   K ≥ 0

is a linear program. The Bayes error is 1 minus its value for G the identity.

For any guessing strategy y(g | z) (Σ_g y = 1) and any λ ≥ 0, every channel within the budget leaves the attacker at least

    Σ_w min_z [ Σ_g A[g, w] y(g | z) + λ π_w d(w, z) ] − λ L.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from ..errors import SpecificationError, Unsupported
from .attainable import Unreachable, best_constant, checked, constant
from .guess_interior import interior
from .lower_bound import Floats, Solved


@dataclass(frozen=True)
class Guessed(Solved):
    """``Solved`` for an attacker with one guess. ``value`` and ``bound`` are the attacker's *failure*: 1 − its gain for the Bayes
    error, minus its gain for other gains; ``bound`` is an upper bound: no channel within the budget makes it larger.

    Args:
        strategy: y(g | z), (guesses, outputs), columns of sum 1.
        gains: A, (guesses, rows).
        offset: 1 for the Bayes error, 0 for other gains: value = offset − gain.
    """

    strategy: Floats
    gains: Floats
    offset: float

    @property
    def gap(self) -> float:
        return max(self.bound - self.value, 0.0)


def gain_bound(
    A: ArrayLike, mass: ArrayLike, D: ArrayLike, L: float, strategy: ArrayLike, multiplier: float
) -> float:
    """What the attacker gains at least, whatever channel of expected cost at most L is used, less a margin for rounding.

    Args:
        A: (guesses, rows): what a guess gains from the mass of a row.
        mass: π_w, (rows,).
        D: cost d(w, z), (rows, outputs).
        strategy: y(g | z) ≥ 0, (guesses, outputs); columns are divided by their sums.
        multiplier: λ ≥ 0.

    Raises:
        SpecificationError: a negative multiplier or a column without guesses.

    >>> gain_bound(np.eye(2) / 2, [0.5, 0.5], 1 - np.eye(2), 0.25, np.eye(2), 1.0) > 0.7499999
    True
    """
    gains, pi, cost, y = (np.asarray(a, dtype=np.float64) for a in (A, mass, D, strategy))
    if not (multiplier >= 0 and (y >= 0).all() and (y.sum(0) > 0).all()):
        raise SpecificationError("gain_bound: a multiplier of at least 0 and guesses for every output.")
    total = gains.T @ (y / y.sum(0)) + multiplier * pi[:, None] * cost
    size = float(np.abs(total).max()) + multiplier * abs(L)
    return float(total.min(1).sum() - multiplier * L - 2.0**-50 * sum(total.shape) * size)


def solve(
    P: ArrayLike,
    D: ArrayLike,
    L: float,
    gain: ArrayLike | None = None,
    about: str = "secret",
    tolerance: float = 1e-7,
) -> Guessed:
    """The channel of expected cost at most L that leaves an attacker with one guess worst off.

    Args:
        P: joint law P(x, w), (secrets, rows), divided by its sum.
        D: cost d(w, z), (rows, outputs), finite and ≥ 0.
        L: the most that the expected cost may be.
        gain: G, (guesses, secrets) or, with ``about="value"``, (guesses, rows): what a guess is worth to the attacker; by default
            1 for the right secret. Distances to be kept large: minus the distance.
        about: "secret" or "value": what the guess is about.
        tolerance: gap at which to stop, in units of the gain (relative where that is above 1).

    Returns:
        ``Guessed``; the Bayes error itself, largest, where ``gain`` is not given. ``log_ratio`` is ln p(x|z)/p(x) of the channel.

    Raises:
        SpecificationError: shapes or numbers that fit no program.
        Unreachable: even the nearest output of every row costs more than L.

    >>> found = solve(np.eye(2) / 2, 1 - np.eye(2), 0.25)
    >>> round(found.value, 5), round(found.bound, 5)
    (0.25, 0.25)
    """
    began = perf_counter()
    joint, cost = checked(P, D, L, "bayes")
    A = _gains(joint, gain, about)
    mass = joint.sum(0)
    output, spent = best_constant(mass, cost)
    least = float(mass @ cost.min(1))
    if least > L:
        raise Unreachable(least, L)
    W, Z = cost.shape
    if spent <= L:
        best = A.sum(1).argmax()
        y = np.zeros((len(A), Z))
        y[best] = 1.0
        return _told(joint, cost, L, A, gain, constant(W, Z, output), y, 0.0, 0, began)
    rows = mass > 0
    K = np.zeros((W, Z))
    K[np.arange(W), cost.argmin(1)] = 1.0
    inside = max(L, least + 1e-7 * (spent - least))  # an interior point needs room
    found = interior(A[:, rows], mass[rows, None] * cost[rows], cost[rows], inside, tolerance)
    K[rows] = found.K
    return _told(joint, cost, L, A, gain, K, found.y, found.lam, found.steps, began)


def by_highs(
    P: ArrayLike, D: ArrayLike, L: float, gain: ArrayLike | None = None, about: str = "secret"
) -> tuple[Floats, float]:
    """The same linear program by HiGHS, to check against: a channel, and the attacker's gain.

    Raises:
        Unsupported: HiGHS found no optimum (a budget out of reach, or more than 2^22 numbers in the program).

    >>> round(by_highs(np.eye(2) / 2, 1 - np.eye(2), 0.25)[1], 6)
    0.75
    """
    from scipy import sparse
    from scipy.optimize import linprog

    joint, cost = checked(P, D, L, "bayes")
    A = _gains(joint, gain, about)
    W, Z = cost.shape
    if np.count_nonzero(A) * Z > 2**22:
        raise Unsupported("bayes: HiGHS is used up to 2^22 numbers.")
    each = sparse.identity(Z)
    guesses = sparse.hstack(
        [sparse.kron(sparse.csr_array(A), each), sparse.kron(-np.ones((len(A), 1)), each)]
    )
    budget = sparse.csr_array(np.concatenate([(joint.sum(0)[:, None] * cost).ravel(), np.zeros(Z)])[None])
    sums = sparse.hstack([sparse.kron(sparse.identity(W), np.ones((1, Z))), sparse.csr_array((W, Z))])
    done = linprog(
        np.concatenate([np.zeros(W * Z), np.ones(Z)]),
        sparse.vstack([guesses, budget]).tocsr(),
        np.concatenate([np.zeros(len(A) * Z), [L]]),
        sums.tocsr(),
        np.ones(W),
        bounds=[(0, None)] * (W * Z) + [(None, None)] * Z,
        method="highs",
    )
    if done.x is None:
        raise Unsupported("bayes: HiGHS found no channel; is the distortion attainable?")
    K = np.maximum(done.x[: W * Z].reshape(W, Z), 0.0)
    return K / K.sum(1, keepdims=True), float(done.fun)


def _gains(joint: Floats, gain: ArrayLike | None, about: str) -> Floats:
    if about not in ("secret", "value"):
        raise SpecificationError('bayes.about: "secret" or "value".')
    if gain is None and about == "secret":
        return joint
    G = np.asarray(np.eye(joint.shape[1]) if gain is None else gain, dtype=np.float64)
    expected = joint.shape[0] if about == "secret" else joint.shape[1]
    if G.ndim != 2 or G.shape[1] != expected or not len(G) or not np.isfinite(G).all():
        raise SpecificationError(f"bayes.gain: finite numbers, (guesses, {expected}); got {G.shape}.")
    found: Floats = G @ joint if about == "secret" else G * joint.sum(0)
    return found


def _told(
    joint: Floats,
    cost: Floats,
    L: float,
    A: Floats,
    gain: ArrayLike | None,
    K: Floats,
    y: Floats,
    lam: float,
    steps: int,
    began: float,
) -> Guessed:
    """The result, with value and bound worked out again from what is returned."""
    mass = joint.sum(0)
    K = _within(np.maximum(K, 0.0), A, mass, cost, L)
    offset = 1.0 if gain is None and A is joint else 0.0
    value = offset - float((A @ K).max(0).sum())
    bound = offset - gain_bound(A, mass, cost, L, y, lam)
    pushed = joint @ K
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(pushed) - np.log(pushed.sum(0)) - np.log(joint.sum(1))[:, None]
    ratio[np.isnan(ratio)] = 0.0
    held = np.flatnonzero(K.max(0) > 0)
    return Guessed(K[:, held], held, value, bound, lam, ratio, steps, perf_counter() - began, y, A, offset)


def _within(K: Floats, A: Floats, mass: Floats, cost: Floats, L: float) -> Floats:
    """Rows of sum 1 and an expected cost of at most L: mixed by a hair with the nearest outputs, or on nearest outputs alone."""
    K = K / K.sum(1, keepdims=True)
    spent = float(mass @ (K * cost).sum(1))
    if spent <= L:
        return K
    least = cost.min(1)
    share = min((spent - L) / max(spent - float(mass @ least), 1e-300) * (1 + 1e-9) + 1e-15, 1.0)
    mixed = (1 - share) * K
    mixed[np.arange(len(K)), cost.argmin(1)] += share
    near = np.where(cost <= least[:, None], K, 0.0)
    near[np.arange(len(K)), cost.argmin(1)] += 1e-300
    near /= near.sum(1, keepdims=True)
    return min(mixed, near, key=lambda one: float((A @ one).max(0).sum()))
