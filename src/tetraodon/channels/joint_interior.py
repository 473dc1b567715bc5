"""Interior point for channels whose rows must stay within given ratios of each other, column by column.

    min f(K)   s.t.  Σ_z K[w, z] = 1,   e^{b/2} K[w', z] − e^{−b/2} K[w, z] = s ≥ 0 for each ordered pair (w, w'),   K ≥ 0,

with f either the information I(X; Z), under Σ C[w, z] K[w, z] ≤ L, or the cost Σ C K itself. Columns meet in the row sums
and in the budget alone. In column z the Newton matrix is

    N_z = P' M_z P + A' diag(y/s) A + diag(v/k),    M_z = diag(1/J_z) − 11'/p_z,  J = P K,  p = Σ_x J,

dense and W × W, with A the sparse matrix of pairs (y their multipliers, v those of K ≥ 0). One batched inverse, in the
variables dk/k because the entries of a column span many powers of ten, gives Σ_z N_z^{-1}, the W × W matrix that couples
the rows; the budget adds one border. θ[x, z], kept beside K and moved linearly, is at the optimum ln p(x|z)/p(x); so
v = P'θ + λC − A'y − ν ≥ 0 holds along the way, and θ scaled to a law is a classifier that certifies nearly empty columns,
where the posterior says nothing yet (derived).

Arrays are (rows, outputs) for K, (pairs, outputs) for slacks; all logarithms natural.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .joint_pairs import Pairs
from .lower_bound import Floats

EXACT = 1e-7  # relative residual at which a solution is refined no further
REFINEMENTS = 3  # the explicit inverse is not backward stable
START = 10.0  # a first complementarity well above the dual residual
CORRECTIONS = 3
SUMS = 3e-7  # most that row sums may be off, for pairs of exponent 1; they are divided out in the end
FADING = 1e-2  # mean entry below which a shrinking column is vanishing
BATCH = 2**24  # numbers inverted at a time


@dataclass(frozen=True, eq=False)
class Program:
    """What is made small: I(X; Z) under ``budget``, or, where that is None, the cost alone.

    ``joint`` (secrets, rows), no empty secret, and no secret at all where the cost alone counts; rows may be empty. ``cost`` (rows, outputs) holds Σ π_w d, weights included.
    ``honest`` is the budget that bounds speak of; ``budget`` is below it by a hair.
    """

    joint: Floats
    cost: Floats
    budget: float | None
    honest: float
    pairs: Pairs

    def posterior(self, K: Floats) -> tuple[Floats, Floats, Floats, float]:
        """J, p, ln p(x|z)/p(x), I(X; Z)."""
        J = self.joint @ K
        p = J.sum(0)
        R = np.log(J / p) - np.log(self.joint.sum(1))[:, None]
        return J, p, R, float((J * R).sum())


@dataclass(frozen=True, eq=False)
class Iterate:
    """An iterate: K and its slacks, multipliers y, v, ν, λ, the room t left in the budget, and θ."""

    k: Floats
    s: Floats
    y: Floats
    v: Floats
    nu: Floats
    lam: float
    t: float
    theta: Floats

    def moved(self, d: Iterate, primal: float, dual: float) -> Iterate:
        return Iterate(
            self.k + primal * d.k,
            self.s + primal * d.s,
            self.y + dual * d.y,
            self.v + dual * d.v,
            self.nu + dual * d.nu,
            self.lam + dual * d.lam,
            self.t + primal * d.t,
            self.theta + dual * d.theta,
        )

    def product(self) -> float:
        """Σ of all products that are 0 at the optimum."""
        return float((self.s * self.y).sum() + (self.k * self.v).sum()) + self.lam * self.t

    def reach(self, d: Iterate) -> tuple[float, float]:
        """The longest steps, at most 1, that keep everything positive: primal, dual."""

        def least(pairs: list[tuple[Any, Any]]) -> float:
            found = min(float(np.min(b / a)) for a, b in pairs if np.size(a))
            return min(1.0, -1.0 / min(found, -1e-9))

        primal: list[tuple[Any, Any]] = [(self.k, d.k), (self.s, d.s)]
        dual: list[tuple[Any, Any]] = [(self.y, d.y), (self.v, d.v)]
        if self.t > 0:
            primal.append((self.t, d.t))
            dual.append((self.lam, d.lam))
        return least(primal), least(dual)


@dataclass(frozen=True, eq=False)
class Found:
    """The best channel met (None: none was within the constraints), what it gives (nats or cost), the best bound with its
    multipliers, and ``unreachable``: a proved lower bound on the least cost, above the budget, or None."""

    K: Floats | None
    value: float
    bound: float
    lam: float
    log_ratio: Floats
    y: Floats
    steps: int
    unreachable: float | None = None

    @property
    def gap(self) -> float:
        return self.value - self.bound


def twice(program: Program, start: Floats, tolerance: float) -> Found:
    """The best channel and the best bound of two runs, the second only where the first leaves a gap.

    The first keeps row sums to the last digit, and its channel is good; the second keeps the shape of vanishing outputs, and its
    bound is.
    """
    first = interior(program, start, tolerance)
    if first.gap <= tolerance or first.unreachable is not None:
        return first
    second = interior(program, start, tolerance, fading=FADING)
    best = first if first.value <= second.value else second
    proof = first if first.bound >= second.bound else second
    return replace(
        proof, K=best.K, value=best.value, steps=first.steps + second.steps, unreachable=second.unreachable
    )


def interior(
    program: Program,
    start: Floats,
    tolerance: float,
    most: int = 150,
    fading: float = 0.0,
    enough: Callable[[Found], bool] = lambda found: False,
) -> Found:
    """Run from a positive channel until the gap is at most ``tolerance``, the digits end, or ``enough`` says so."""
    with np.errstate(all="ignore"):  # where digits end, the last step is thrown away
        return _run(program, start, tolerance, most, fading, enough)


def _run(
    program: Program,
    start: Floats,
    tolerance: float,
    most: int,
    fading: float,
    enough: Callable[[Found], bool],
) -> Found:
    point = _first(program, start)
    J, p, R, value = program.posterior(point.k)
    found = Found(None, np.inf, -np.inf, point.lam, R, point.y, 0)
    progress: list[tuple[float, float]] = []
    for step in range(most):
        cost = float((program.cost * point.k).sum())
        if program.budget is None:
            value = cost
        found = _judged(program, point, R, value, cost, replace(found, steps=step))
        progress.append((found.gap, point.product()))
        stalled = len(progress) > 8 and all(
            now > 0.8 * before for now, before in zip(progress[-1], progress[-9], strict=True)
        )
        if found.gap <= tolerance or stalled or found.unreachable is not None or enough(found):
            break
        try:
            newton = _newton(program, point, J, p, R, cost)
            direction, primal, dual = _direction(point, newton)
        except (np.linalg.LinAlgError, ZeroDivisionError):  # the end of double precision
            break
        primal, dual = min(1.0, 0.98 * primal), min(1.0, 0.98 * dual)
        if program.budget is not None:
            primal, dual = min(primal, 2 * dual), min(dual, 2 * primal)  # θ absorbs a small difference
        point = _faded(point, direction, primal, point.moved(direction, primal, dual), fading)
        J, p, R, value = program.posterior(point.k)
        if not (np.isfinite(R).all() and np.isfinite(point.product())):
            break
    return found


def _first(program: Program, K: Floats) -> Iterate:
    _, _, R, value = program.posterior(K)
    s = np.maximum(program.pairs.forward @ K, 1e-3 * K.mean())
    cost = float((program.cost * K).sum())
    count = s.size + K.size
    if program.budget is None:
        lam, t, mu = 1.0, 0.0, START * max(cost, 1e-12) / count
    else:
        t = max(program.budget - cost, 0.05 * abs(program.budget), 1e-12)
        lam, mu = 0.5 * max(value, 0.05) / max(program.budget, t), START * max(value, 0.05) / count
    y, v = mu / s, mu / K
    nu = (program.joint.T @ R + lam * program.cost - program.pairs.backward @ y - v).mean(1)
    return Iterate(K, s, y, v, nu, lam, t, R)


def _judged(program: Program, at: Iterate, R: Floats, value: float, cost: float, found: Found) -> Found:
    """``found`` with this iterate's channel and bound, where they are better."""
    P, C, pairs = program.joint, program.cost, program.pairs
    taken = pairs.asked @ at.y
    if program.budget is None:
        bound, log_ratio = float((C - taken).min(1).sum()), R
    else:
        top = at.theta.max(0)
        scaled = at.theta - top - np.log(P.sum(1) @ np.exp(at.theta - top))
        several = [R, scaled, found.log_ratio]
        totals = [P.T @ one + (at.lam * C - taken) for one in several]
        best = np.stack([(total - at.nu[:, None]).min(0) for total in totals]).argmax(0)
        log_ratio = np.choose(best[None], several)
        bound = float(np.choose(best[None], totals).min(1).sum()) - at.lam * program.honest
        least = float((C - taken / at.lam).min(1).sum())
        if least > program.budget:
            found = replace(found, unreachable=least)
    if bound > found.bound:
        found = replace(found, bound=bound, lam=at.lam, log_ratio=log_ratio, y=at.y)
    rows, slack = np.abs(1 - at.k.sum(1)).max(), pairs.forward @ at.k
    least = float(pairs.exponents.min(initial=1.0))
    kept = rows < SUMS * min(least, 1.0) and (not slack.size or float(slack.min()) > 0)
    room = np.inf if program.budget is None else 0.5 * (program.budget + program.honest)
    if kept and value < found.value and cost <= room:
        found = replace(found, K=at.k, value=value)
    return found


def _faded(before: Iterate, d: Iterate, primal: float, after: Iterate, fading: float) -> Iterate:
    """``after``, with the steps of vanishing outputs taken in scale and in shape one after the other.

    k + c k + δ with c near −1 would magnify δ, the change of shape, by 1/(1 + c), and classifiers depend on shape alone; so such
    columns become (1 + c)(k + δ). They weigh too little for the row sums to notice.
    """
    mass = before.k.sum(0)
    change = primal * d.k.sum(0) / mass
    few = np.flatnonzero((mass < fading * len(before.k)) & (change < -0.1))
    if not len(few):
        return after
    c, k, s = change[few], after.k.copy(), after.s.copy()
    k[:, few] = (1 + c) * (k[:, few] - c * before.k[:, few])
    s[:, few] = (1 + c) * (s[:, few] - c * before.s[:, few])
    return replace(after, k=k, s=s)


def _inverses(program: Program, at: Iterate, J: Floats, p: Floats, ratio: Floats) -> Floats:
    """N_z^{-1} for every column, (outputs, rows, rows)."""
    W, Z = at.k.shape
    first, second = program.pairs.first, program.pairs.second
    diagonal = (program.pairs.squares @ ratio + at.v / at.k).T
    found = np.empty((Z, W, W))
    every, chunk = np.arange(W), max(1, BATCH // (W * W))
    orders = (np.flatnonzero(first < second), np.flatnonzero(first > second))
    for z in range(0, Z, chunk):
        cut = slice(z, min(z + chunk, Z))
        N = np.zeros((cut.stop - z, W, W))
        if program.budget is not None:
            Q = program.joint[None] / np.sqrt(J[:, cut]).T[:, :, None]
            u = np.sqrt(J[:, cut] / p[cut]).T
            Q -= u[:, :, None] * (u[:, None, :] @ Q)
            np.matmul(Q.transpose(0, 2, 1), Q, out=N)
        for one in orders:  # within one order no pair comes twice
            r = ratio[one, cut].T
            N[:, first[one], second[one]] -= r
            N[:, second[one], first[one]] -= r
        N[:, every, every] += diagonal[cut]
        k = at.k.T[cut]
        N *= k[:, :, None]
        N *= k[:, None, :]
        inverse = np.linalg.inv(N)
        inverse += inverse.transpose(0, 2, 1).copy()
        inverse *= 0.5 * k[:, :, None]
        inverse *= k[:, None, :]
        found[cut] = inverse
    return found


Targets = tuple[Floats, Floats, float]
Newton = Callable[[Floats, Floats, float], Iterate]


def _newton(program: Program, at: Iterate, J: Floats, p: Floats, R: Floats, cost: float) -> Newton:
    """The Newton direction for given targets of s dy + y ds, of k dv + v dk and of t dλ + λ dt."""
    from scipy.linalg import cho_factor, cho_solve

    P, C, A = program.joint, program.cost, program.pairs
    informed = program.budget is not None
    ratio = at.y / at.s
    dual = P.T @ R + at.lam * C - A.backward @ at.y - at.v - at.nu[:, None]
    rows, slack = 1 - at.k.sum(1), A.forward @ at.k - at.s
    budget = program.budget - cost - at.t if program.budget is not None else 0.0
    inverses = _inverses(program, at, J, p, ratio)
    factor = cho_factor(inverses.sum(0), check_finite=False)

    def apply(b: Floats) -> Floats:
        found: Floats = np.matmul(inverses, b.T[:, :, None])[:, :, 0].T
        return found

    def curved(d: Floats) -> Floats:
        dJ = P @ d
        found: Floats = dJ / J - dJ.sum(0) / p if informed else dJ
        return found

    if informed:
        priced = apply(C)
        border = priced.sum(1)
        across = cho_solve(factor, border, check_finite=False)
        pivot = float((C * priced).sum()) + at.t / at.lam - float(border @ across)

    def solve(b: Floats, sums: Floats, spent: float) -> tuple[Floats, Floats, float]:
        h = apply(b)
        dnu = cho_solve(factor, sums - h.sum(1), check_finite=False)
        dlam = 0.0
        if informed:
            dlam = (float((C * h).sum()) + float(border @ dnu) - spent) / pivot
            dnu = dnu + across * dlam
            h = h - priced * dlam
        return h + apply(np.repeat(dnu[:, None], C.shape[1], 1)), dnu, dlam

    def newton(of_pairs: Floats, of_entries: Floats, of_budget: float) -> Iterate:
        b = A.backward @ (of_pairs / at.s - ratio * slack) + of_entries / at.k - dual
        spent = budget - of_budget / at.lam if informed else 0.0
        dk, dnu, dlam = solve(b, rows, spent)
        for _ in range(REFINEMENTS):
            left = b + dnu[:, None] - A.backward @ (ratio * (A.forward @ dk)) - at.v / at.k * dk
            short = 0.0
            if informed:
                left -= P.T @ curved(dk) + dlam * C
                short = spent - float((C * dk).sum()) + at.t / at.lam * dlam
            missing = rows - dk.sum(1)
            if np.abs(at.k * left).max() <= EXACT * np.abs(at.k * b).max() and np.abs(missing).max() < 1e-12:
                break
            more = solve(left, missing, short)
            dk, dnu, dlam = dk + more[0], dnu + more[1], dlam + more[2]
        ds = A.forward @ dk + slack
        return Iterate(
            dk,
            ds,
            (of_pairs - at.y * ds) / at.s,
            (of_entries - at.v * dk) / at.k,
            dnu,
            dlam,
            (of_budget - at.t * dlam) / at.lam if informed else 0.0,
            R - at.theta + curved(dk),
        )

    return newton


def _direction(at: Iterate, newton: Newton) -> tuple[Iterate, float, float]:
    """Mehrotra's predictor and corrector, a plain centring step where they are blocked, then Gondzio's corrections."""
    product = at.product()
    mu = product / (at.s.size + at.k.size + 1)
    sy, kv, lt = -at.s * at.y, -at.k * at.v, -at.lam * at.t
    d = newton(sy, kv, lt)
    primal, dual = at.reach(d)
    sigma = min(max((at.moved(d, primal, dual).product() / product) ** 3, 1e-6), 1.0)
    both = primal * dual
    aim = sigma * mu
    of_pairs, of_entries = aim + sy - both * d.s * d.y, aim + kv - both * d.k * d.v
    of_budget = aim + lt - both * d.t * d.lam
    d = newton(of_pairs, of_entries, of_budget)
    primal, dual = at.reach(d)
    if min(primal, dual) < 0.1:
        of_pairs, of_entries, of_budget, aim = 0.8 * mu + sy, 0.8 * mu + kv, 0.8 * mu + lt, 0.8 * mu
        d = newton(of_pairs, of_entries, of_budget)
        primal, dual = at.reach(d)
    for _ in range(CORRECTIONS):
        if min(primal, dual) > 0.9:
            break
        further, wider = min(1.0, 1.5 * primal + 0.1), min(1.0, 1.5 * dual + 0.1)
        of_pairs = of_pairs + _pulled((at.s + further * d.s) * (at.y + wider * d.y), aim)
        of_entries = of_entries + _pulled((at.k + further * d.k) * (at.v + wider * d.v), aim)
        other = newton(of_pairs, of_entries, of_budget)
        reach = at.reach(other)
        if min(reach) < min(primal, dual) + 0.02:
            break
        d, (primal, dual) = other, reach
    return d, primal, dual


def _pulled(products: Floats, aim: float) -> Floats:
    """What brings products that lie far from ``aim`` back to within a factor of 10 of it (Gondzio 1996)."""
    found: Floats = np.maximum(np.clip(products, 0.1 * aim, 10 * aim) - products, -10 * aim)
    return found
