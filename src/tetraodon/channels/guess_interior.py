"""Interior point for channels that leave a guessing attacker least: a linear program whose columns meet in row sums and a budget.

    min_K Σ_z max_g (A K)[g, z]   s.t.   Σ C K ≤ L,   Σ_z K[w, z] = 1,   K ≥ 0.

With slacks s = v − A K ≥ 0 of the guesses and multipliers y, Σ_g y[g, z] = 1, the Newton matrix of column z is

    diag(S/k) + A' (diag(r) − r r'/Σ r) A,   r = y/s,

so Woodbury with guesses × guesses matrices, then one rows × rows matrix couples the columns, and one border the budget. Mehrotra's
predictor and corrector; one refinement of each solution, because the columns' inverses cancel many digits near the end
(derived).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .lower_bound import Floats

MOST_STEPS = 100
REFINEMENTS = 1


class Iterate(NamedTuple):
    """K with its reduced costs, slacks of the guesses with their multipliers, and the other duals."""

    K: Floats
    S: Floats
    s: Floats  # slacks v − A K
    y: Floats
    v: Floats
    nu: Floats
    lam: float
    t: float  # room left in the budget

    def moved(self, d: Iterate, primal: float, dual: float) -> Iterate:
        return Iterate(
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

    def reach(self, d: Iterate) -> tuple[float, float]:
        """The longest steps, at most 1, that keep everything positive: primal, dual."""
        primal = min(float((d.K / self.K).min()), float((d.s / self.s).min()), d.t / self.t, -1e-9)
        dual = min(float((d.S / self.S).min()), float((d.y / self.y).min()), d.lam / self.lam, -1e-9)
        return min(1.0, -1 / primal), min(1.0, -1 / dual)


class Best(NamedTuple):
    """Where it stopped: a channel, guessing strategies, the multiplier of the budget, steps."""

    K: Floats
    y: Floats
    lam: float
    steps: int


def interior(A: Floats, C: Floats, cost: Floats, L: float, tolerance: float) -> Best:
    """Run until the gap is at most ``tolerance`` or the digits end.

    Args:
        A: (guesses, rows), what a guess gains from the mass of a row.
        C: (rows, outputs), costs times masses; ``cost`` without the masses.
        L: the budget, above the least attainable.
    """
    with np.errstate(all="ignore"):  # where digits end, the last step is thrown away
        return _run(A, C, cost, L, tolerance)


def _run(A: Floats, C: Floats, cost: Floats, L: float, tolerance: float) -> Best:
    unit = max(float(np.abs(A).sum(1).max()), 1e-300)
    A, price = A / unit, L if L > 0 else float(C.max())
    C, L = C / price, L / price
    now = _start(A, C, cost, L)
    best, value, bound = Best(now.K, now.y, now.lam, 0), np.inf, -np.inf
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
        except (np.linalg.LinAlgError, ZeroDivisionError):  # the end of double precision
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


def _start(A: Floats, C: Floats, cost: Floats, L: float) -> Iterate:
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
    v = pushed.max(0) + np.abs(pushed).mean() + 0.1 / C.shape[1]
    y = np.full((len(A), C.shape[1]), 1.0 / len(A))
    lam = 1.0
    total = A.T @ y + lam * C
    nu = total.min(1) - np.abs(total).mean()
    return Iterate(K, total - nu[:, None], v - pushed, y, v, nu, lam, max(L - float((C * K).sum()), 0.05 * L))


def _newton(
    A: Floats, C: Floats, now: Iterate, slack: Floats, sums: Floats, budget: float
) -> Callable[[Floats, Floats, float], Iterate]:
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

    def newton(of_K: Floats, of_s: Floats, of_t: float) -> Iterate:
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
        return Iterate(dK, dS, ds, dy, dv, dnu, dlam, (of_t - now.t * dlam) / now.lam)

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
