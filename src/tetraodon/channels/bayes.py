"""Channels against an attacker with one guess: the largest Bayes error within a distortion budget, and its kin.

An attacker sees z and picks a guess g; it gains G[g, x] where the secret is x (with the Bayes error, 1 for the right one),
or G[g, w] where what counts is the value itself (minus the distance between guess and value: Shokri et al. 2012). With
A[g, w] = Σ_x G[g, x] P(x, w), or π_w G[g, w], the attacker's best expected gain is Σ_z max_g (A K)[g, z], and

    min_K Σ_z v_z   s.t.   v_z ≥ Σ_w A[g, w] K[w, z] for every g, z;   Σ_w π_w Σ_z K d ≤ L;   Σ_z K[w, z] = 1;   K ≥ 0

is a linear program. The Bayes error is 1 minus its value for G the identity.

For any guessing strategy y(g | z) (Σ_g y = 1) and any λ ≥ 0, every channel within the budget leaves the attacker at least

    Σ_w min_z [ Σ_g A[g, w] y(g | z) + λ π_w d(w, z) ] − λ L.

Columns meet in the row sums and the budget alone; in column z the Newton matrix is diag(S/k) + A'(diag(r) − r r'/Σ r) A, r the
ratios of multipliers to slacks: Woodbury with guesses × guesses matrices, then one rows × rows matrix (derived).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import SpecificationError, Unsupported
from .attainable import Unreachable, best_constant, checked, constant
from .lower_bound import Floats, Solved

MOST_STEPS = 100
REFINEMENTS = 1  # the columns' inverses cancel many digits near the end


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
    found = _interior(A[:, rows], mass[rows, None] * cost[rows], cost[rows], L, tolerance)
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
    K = np.maximum(K, 0.0)
    K = K / K.sum(1, keepdims=True)
    spent, nearest = float((mass[:, None] * cost * K).sum()), cost.argmin(1)
    if spent > L:
        least = float(mass @ cost.min(1))
        share = min((spent - L) / max(spent - least, 1e-300) * (1 + 1e-9) + 1e-15, 1.0)
        K = (1 - share) * K
        K[np.arange(len(K)), nearest] += share
    offset = 1.0 if gain is None and A is joint else 0.0
    value = offset - float((A @ K).max(0).sum())
    bound = offset - gain_bound(A, mass, cost, L, y, lam)
    pushed = joint @ K
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(pushed) - np.log(pushed.sum(0)) - np.log(joint.sum(1))[:, None]
    ratio[np.isnan(ratio)] = 0.0
    held = np.flatnonzero(K.max(0) > 0)
    return Guessed(K[:, held], held, value, bound, lam, ratio, steps, perf_counter() - began, y, A, offset)


class _Iterate(NamedTuple):
    K: Floats
    S: Floats
    s: Floats  # slacks v − A K
    y: Floats
    v: Floats
    nu: Floats
    lam: float
    t: float  # room left in the budget

    def moved(self, d: _Iterate, primal: float, dual: float) -> _Iterate:
        return _Iterate(
            self.K + primal * d.K,
            self.S + dual * d.S,
            self.s + primal * d.s,
            self.y + dual * d.y,
            self.v + primal * d.v,
            self.nu + dual * d.nu,
            self.lam + dual * d.lam,
            self.t + primal * d.t,
        )

    def product(self) -> float:
        return float((self.K * self.S).sum() + (self.s * self.y).sum()) + self.lam * self.t

    def reach(self, d: _Iterate) -> tuple[float, float]:
        """The longest steps, at most 1, that keep everything positive: primal, dual."""
        primal = min(float((d.K / self.K).min()), float((d.s / self.s).min()), d.t / self.t, -1e-9)
        dual = min(float((d.S / self.S).min()), float((d.y / self.y).min()), d.lam / self.lam, -1e-9)
        return min(1.0, -1 / primal), min(1.0, -1 / dual)


class _Best(NamedTuple):
    K: Floats
    y: Floats
    lam: float
    steps: int


def _interior(A: Floats, C: Floats, cost: Floats, L: float, tolerance: float) -> _Best:
    unit = max(float(np.abs(A).sum(1).max()), 1e-300)
    A, price = A / unit, L if L > 0 else float(C.max())
    C, L = C / price, L / price
    now = _start(A, C, cost, L)
    best, value, bound = _Best(now.K, now.y, now.lam, 0), np.inf, -np.inf
    for steps in range(MOST_STEPS):
        pushed, spent, sums = A @ now.K, float((C * now.K).sum()), 1 - now.K.sum(1)
        y = now.y / now.y.sum(0)
        least = float((A.T @ y + now.lam * C).min(1).sum()) - now.lam * L
        if least > bound:
            bound, best = least, best._replace(y=y, lam=now.lam * unit / price)
        reached = float(pushed.max(0).sum())
        if np.abs(sums).max() < 1e-7 and spent <= L * (1 + 1e-7) and reached < value:
            value, best = reached, best._replace(K=now.K)
        best = best._replace(steps=steps)
        if (value - bound) <= tolerance * max(1.0, 1 / unit):
            break
        try:
            newton = _newton(A, C, now, now.v - pushed - now.s, sums, L - spent - now.t)
        except np.linalg.LinAlgError:  # the end of double precision: what is certified so far stays
            break
        product = now.product()
        count = now.K.size + now.s.size + 1
        flat = (-now.K * now.S, -now.s * now.y, -now.lam * now.t)
        d = newton(*flat)
        primal, dual = now.reach(d)
        after = now.moved(d, primal, dual).product()
        aim = min(max((after / product) ** 3, 1e-8), 1.0) * product / count
        d = newton(aim + flat[0] - d.K * d.S, aim + flat[1] - d.s * d.y, aim + flat[2] - d.lam * d.t)
        primal, dual = now.reach(d)
        if max(primal, dual) < 1e-3 or not np.isfinite(d.S).all():
            break
        now = now.moved(d, min(1.0, 0.98 * primal), min(1.0, 0.98 * dual))
    return best


def _start(A: Floats, C: Floats, cost: Floats, L: float) -> _Iterate:
    """Rows e^{−τ d} that spend four fifths of what the budget leaves, and duals that fit."""
    apart = cost - cost.min(1, keepdims=True)
    least = float((C.sum(1) / np.maximum(cost.sum(1), 1e-300)) @ cost.min(1)) if cost.any() else 0.0
    low, high = 0.0, 1e6 / max(float(apart.max()), 1e-300)
    K: Floats = np.full(C.shape, 1.0 / C.shape[1])
    for _ in range(60):
        spent = float((C * K).sum())
        if low == 0 and spent <= least + 0.8 * (L - least):
            break
        if least + 0.7 * (L - least) <= spent <= least + 0.9 * (L - least):
            break
        tau = np.sqrt(max(low, 1e-6 * high) * high) if low else 1e-3 * high
        K = np.exp(-tau * apart)
        K = K / K.sum(1, keepdims=True)
        low, high = (tau, high) if float((C * K).sum()) > least + 0.8 * (L - least) else (low, tau)
    K = 0.99 * K + 0.01 / K.shape[1]
    pushed = A @ K
    v = pushed.max(0) + pushed.mean() + 0.1 / C.shape[1]
    y = np.full((len(A), C.shape[1]), 1.0 / len(A))
    lam = 1.0
    total = A.T @ y + lam * C
    nu = total.min(1) - total.mean()
    return _Iterate(
        K, total - nu[:, None], v - pushed, y, v, nu, lam, max(L - float((C * K).sum()), 0.05 * L)
    )


def _newton(
    A: Floats, C: Floats, now: _Iterate, slack: Floats, sums: Floats, budget: float
) -> Callable[[Floats, Floats, float], _Iterate]:
    """The direction for given targets of S dK + K dS, s dy + y ds and t dλ + λ dt; ``slack``, ``sums`` and ``budget`` are what the
    iterate lacks in v − A K − s = 0, the row sums and the budget."""
    from scipy.linalg import cho_solve

    G, W = A.shape
    D, r = now.K / now.S, now.y / now.s
    R = r.sum(0)
    root = np.sqrt(r).T
    unit = np.sqrt(r / R).T
    N = (np.eye(G) - unit[:, :, None] * unit[:, None, :]) * root[
        :, :, None
    ]  # (Z, G, G), N N' = diag(r) − rr'/R
    pairs = (A[:, None, :] * A[None, :, :]).reshape(G * G, W)
    inner = np.eye(G) + N.transpose(0, 2, 1) @ (pairs @ D).T.reshape(-1, G, G) @ N
    low = np.linalg.solve(_lower(inner), N.transpose(0, 2, 1))  # (Z, G, G)
    Y = [(A.T @ low[:, j].T) * D for j in range(G)]
    schur = np.diag(D.sum(1))
    for one in Y:
        schur -= one @ one.T
    factor = _factor(schur, D.sum(1))

    def inverse(b: Floats) -> Floats:
        found = D * b
        for one in Y:
            found -= one * np.einsum("wz,wz->z", one, b)
        return found

    # Column z: (diag(S/K) + A'M A) dK = b + dν − dλ C.
    priced = inverse(C)
    border = priced.sum(1)
    across = cho_solve(factor, border, check_finite=False)
    pivot = float((C * priced).sum()) + now.t / now.lam - float(border @ across)
    dual = A.T @ now.y + now.lam * C - now.S - now.nu[:, None]
    short = 1 - now.y.sum(0)

    def system(b: Floats, rows: Floats, spent: float) -> tuple[Floats, Floats, float]:
        h = inverse(b)
        dnu = cho_solve(factor, rows - h.sum(1), check_finite=False)
        dlam = (float((C * h).sum()) + float(border @ dnu) - spent) / pivot
        dnu = dnu + across * dlam
        return h - dlam * priced + inverse(np.repeat(dnu[:, None], C.shape[1], 1)), dnu, dlam

    def newton(of_K: Floats, of_s: Floats, of_t: float) -> _Iterate:
        pulled = of_s / now.s - r * slack
        free = (pulled.sum(0) - short) / R
        b = of_K / now.K - dual - A.T @ (pulled - r * free)
        spent = budget - of_t / now.lam
        dK, dnu, dlam = system(b, sums, spent)
        for _ in range(REFINEMENTS):
            pushed = A @ dK
            left = b + dnu[:, None] - dlam * C - dK / D - A.T @ (r * (pushed - (r * pushed).sum(0) / R))
            more = system(left, sums - dK.sum(1), spent - float((C * dK).sum()) + now.t / now.lam * dlam)
            dK, dnu, dlam = dK + more[0], dnu + more[1], dlam + more[2]
        pushed = A @ dK
        dv = free + (r * pushed).sum(0) / R
        ds = dv - pushed + slack
        dy = of_s / now.s - r * ds
        dS = (of_K - now.S * dK) / now.K
        return _Iterate(dK, dS, ds, dy, dv, dnu, dlam, (of_t - now.t * dlam) / now.lam)

    return newton


def _lower(inner: Floats) -> Floats:
    """Cholesky factors of a stack of matrices, with a ridge where they need one."""
    for ridge in (0.0, 1e-15, 1e-13):
        try:
            hair = ridge * np.trace(inner, axis1=1, axis2=2)
            return np.linalg.cholesky(inner + hair[:, None, None] * np.eye(inner.shape[1]))
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError


def _factor(schur: Floats, diagonal: Floats) -> tuple[Floats, bool]:
    """Cholesky factor, with as small a ridge as it takes."""
    from scipy.linalg import cho_factor

    for ridge in (1e-13, 1e-10, 1e-7):
        try:
            found: tuple[Floats, bool] = cho_factor(schur + ridge * np.diag(diagonal), check_finite=False)
            return found
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError
