"""Minimum-leakage channels by a structured primal–dual interior point method.

    min_K I(X; Z)   with   Σ_w π_w Σ_z K[w, z] d(w, z) ≤ L,   rows of K sum to 1,   K ≥ 0,   X → W → Z.

Why it is cheap (derived). With J = P K (secrets × outputs) and p = 1ᵀJ the Hessian of I in column z of K is PᵀM P,
M = diag(1/J_z) − 11ᵀ/p_z, of rank (secrets − 1). Columns meet only in the row sums and in the budget. A Newton step needs
one small factorisation for each column (Woodbury) and one Schur complement over the rows; all the rest is products of
skinny matrices.

The dual side is kept in a form that is a certificate at every step: θ[x, z] lives beside K, the slack
S[w, z] = Σ_x p(x | w) θ[x, z] + λ d(w, z) − ν_w stays positive, and q(x | z) ∝ p_x e^θ is a classifier for
``lower_bound``. θ = ln p(x | z)/p(x) is what Newton's steps are for, not an assumption.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from .lower_bound import LN2, Floats, Problem, Solved, best_bound, gains, leaked, normalised, solved, within

REACH = 0.97  # share of the way to the border that a step may go
CORRECTIONS = 8
BLOCKED = 0.15  # a step shorter than that gives way to one towards the centre
MOST_STEPS = 250
CHUNK = 4_000_000  # numbers in one block of the Schur complement's factor


@dataclass(frozen=True)
class Point:
    """An interior point: channel, slack, classifier and the multipliers of rows (ν) and budget (λ); ``spare`` = L − E d."""

    K: Floats
    S: Floats
    theta: Floats
    nu: Floats
    lam: float
    spare: float


@dataclass(frozen=True)
class Factors:
    """What all Newton systems at one point share."""

    D: Floats  # K / (π S): inverse Hessian of the barrier
    B: Floats  # (outputs, secrets, secrets): the part of the inverse that Woodbury takes away, D − D Pᵀ B P D
    cho: Any
    J: Floats
    p: Floats
    missed: Floats  # D times the gradient's part of the classifier's miss
    pushed: Floats  # P D π d
    priced: Floats  # inverse Hessian times π d
    priced_rows: Floats
    solved_rows: Floats
    weight: float


@dataclass(frozen=True)
class Step:
    K: Floats
    S: Floats
    theta: Floats
    nu: Floats
    lam: float
    spare: float


def centre(problem: Problem, mu: float) -> Point:
    """A central point of the same problem without leakage: K[w, z] = r / (d(w, z) + c_w).

    c_w by Newton so that rows sum to 1, r so that E d is 75–90 % of the way from its minimum to the budget.
    """
    cost = problem.cost
    nearest, outputs = cost.min(1), cost.shape[1]
    least = problem.least()
    low, high = (least + share * (problem.budget - least) for share in (0.75, 0.9))
    top = 100 * float(cost.max()) / outputs
    under: float | None = None
    over, r = top, float(cost.max()) / outputs
    for _ in range(24):
        K, c = _rows(cost, nearest, r)
        spent = problem.distortion(K)
        if low <= spent <= high or (spent < low and r >= top * 0.99):
            break
        if spent > high:
            over = r
            r = r / 4 if under is None else float(np.sqrt(under * r))
        else:
            under = r
            r = min(r * 4, top) if over == top else float(np.sqrt(r * over))
    lam = mu / r
    theta = np.zeros((len(problem.prior), outputs))
    return Point(K, lam * (cost + c[:, None]), theta, -lam * c, lam, problem.budget - spent)


def _rows(cost: Floats, nearest: Floats, r: float) -> tuple[Floats, Floats]:
    low, high = r - nearest, cost.shape[1] * r - nearest
    c = np.sqrt(np.maximum(low + nearest, 1e-300) * (high + nearest)) - nearest
    for _ in range(12):
        q = 1.0 / (cost + c[:, None])
        miss, slope = r * q.sum(1) - 1, -r * np.einsum("wz,wz->w", q, q)
        low, high = np.where(miss > 0, c, low), np.where(miss > 0, high, c)
        newton = c - miss / slope
        c = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
    K = r / (cost + c[:, None])
    return K / K.sum(1, keepdims=True), c


def _tangents(J: Floats, p: Floats) -> Floats:
    """(outputs, secrets, secrets − 1): N with N Nᵀ = diag(1/J) − 11ᵀ/p, column by column of J."""
    v = np.sqrt(J / p).T
    u = v.copy()
    u[:, 0] += 1.0  # Householder's vector; v ≥ 0 keeps it away from 0
    H = np.eye(len(J))[None] - u[:, :, None] * (u / (1.0 + v[:, :1]))[:, None, :]
    tangents: Floats = H[:, :, 1:] / np.sqrt(J).T[:, :, None]
    return tangents


def factorise(problem: Problem, at: Point, theta_miss: Floats) -> Factors:
    """Woodbury for each column, one Schur complement over the rows, and the budget's part."""
    import scipy.linalg as linalg

    P, mass = problem.joint, problem.mass
    secrets, rows, outputs = len(P), len(mass), at.K.shape[1]
    J = P @ at.K
    p = J.sum(0)
    D = at.K / at.S
    D /= mass[:, None]
    N = _tangents(J, p)
    if secrets <= 16:
        pairs = (P[:, None, :] * P[None]).reshape(secrets * secrets, rows)
        G = (pairs @ D).T.reshape(outputs, secrets, secrets)
    else:
        G = np.stack([(P * D[:, z]) @ P.T for z in range(outputs)])
    NT = N.transpose(0, 2, 1)
    T = NT @ G @ N
    size = np.trace(T, axis1=1, axis2=2)
    index = np.arange(secrets - 1)
    T[:, index, index] += 1.0 + 1e-14 * size[:, None]
    R = np.linalg.solve(np.linalg.cholesky(T), NT)  # (outputs, secrets − 1, secrets)
    schur = np.zeros((rows, rows))
    block = max(CHUNK // (rows * max(secrets - 1, 1)), 1)
    for start in range(0, outputs, block):
        part = slice(start, start + block)
        Y = (P.T @ R[part].reshape(-1, secrets).T).reshape(rows, -1, secrets - 1)
        Y *= D[:, part, None]
        flat = Y.reshape(rows, -1)
        schur -= flat @ flat.T
    sums = D.sum(1)
    here = np.arange(rows)
    schur[here, here] += sums * (1 + 1e-13)
    cho = _cholesky(schur, sums)
    B = R.transpose(0, 2, 1) @ R
    price = mass[:, None] * problem.cost
    priced = D * price
    pushed = P @ priced
    priced -= D * (P.T @ _small(B, pushed))
    priced_rows = priced.sum(1)
    solved_rows = linalg.cho_solve(cho, priced_rows, check_finite=False)
    weight = float(np.vdot(price, priced)) + at.spare / at.lam - float(priced_rows @ solved_rows)
    missed = D * (mass[:, None] * (problem.given.T @ theta_miss))
    return Factors(D, B, cho, J, p, missed, pushed, priced, priced_rows, solved_rows, weight)


def _cholesky(schur: Floats, sums: Floats) -> Any:
    """Factors of the Schur complement, with a little more on the diagonal where rounding made it indefinite."""
    import scipy.linalg as linalg

    here = np.arange(len(sums))
    for extra in (0.0, 1e-10, 1e-7, 1e-4):
        schur[here, here] += extra * sums
        try:
            return linalg.cho_factor(schur, check_finite=False)
        except linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError


def _small(B: Floats, values: Floats) -> Floats:
    """B applied column by column of (secrets, outputs)."""
    found: Floats = (B @ values.T[:, :, None])[:, :, 0].T
    return found


def newton(
    problem: Problem,
    at: Point,
    f: Factors,
    misses: tuple[Floats, float, Floats],
    target: Floats,
    spare_target: float,
) -> Step:
    """The step that (to first order) ends all misses and brings K·S and λ·spare to their targets (given as differences)."""
    import scipy.linalg as linalg

    P, mass = problem.joint, problem.mass
    rows_miss, budget_miss, theta_miss = misses
    h = target / at.S
    h -= f.missed
    inner = _small(f.B, P @ h)
    sums = h.sum(1) - np.einsum("xw,wx->w", P, f.D @ inner.T)
    price = float(mass @ np.einsum("wz,wz->w", problem.cost, h)) - float(np.vdot(f.pushed, inner))
    x = linalg.cho_solve(f.cho, rows_miss - sums, check_finite=False)
    two = budget_miss - price - spare_target / at.lam
    lam = (float(f.priced_rows @ x) - two) / f.weight
    y = x + f.solved_rows * lam
    inner += _small(f.B, (P * y) @ f.D)
    K = P.T @ -inner
    K += y[:, None]
    K *= f.D
    K += h
    K -= f.priced * lam
    J = P @ K
    theta = theta_miss + J / f.J - J.sum(0) / f.p
    nu = y / mass
    S = problem.given.T @ theta
    S += lam * problem.cost
    S -= nu[:, None]
    return Step(K, S, theta, nu, lam, (spare_target - at.spare * lam) / at.lam)


def _room(value: Floats, change: Floats) -> float:
    return -1.0 / min(float((change / value).min()), -1e-9)


def lengths(at: Point, step: Step) -> tuple[float, float]:
    """How far channel and multipliers may go before something reaches 0 (at most 1)."""
    primal = min(1.0, _room(at.K, step.K), -1.0 / min(step.spare / at.spare, -1e-9))
    dual = min(1.0, _room(at.S, step.S), -1.0 / min(step.lam / at.lam, -1e-9))
    return primal, dual


def moved(at: Point, step: Step, primal: float, dual: float) -> Point:
    return Point(
        at.K + primal * step.K,
        at.S + dual * step.S,
        at.theta + dual * step.theta,
        at.nu + dual * step.nu,
        at.lam + dual * step.lam,
        at.spare + primal * step.spare,
    )


def complementarity(problem: Problem, at: Point) -> float:
    """π K·S summed, and λ times what is left of the budget: the duality gap of a feasible point, in nats."""
    return float(problem.mass @ np.einsum("wz,wz->w", at.K, at.S)) + at.lam * at.spare


def direction(
    problem: Problem, at: Point, f: Factors, misses: tuple[Floats, float, Floats], gap: float
) -> Step:
    """Mehrotra's predictor and corrector, then Gondzio's corrections for as long as they lengthen the step.

    The path is strongly curved on irregular instances: even a central point allows a tenth of the affine step. A target of at
    most half the present complementarity, reached by up to ``CORRECTIONS`` solves with the same factors, takes half as
    many steps as a target that the affine step alone would suggest.
    """
    mu = gap / (at.K.shape[1] + 1)
    products = at.K * at.S, at.lam * at.spare
    guess = newton(problem, at, f, misses, -products[0], -products[1])
    a = min(lengths(at, guess))
    left = complementarity(problem, moved(at, guess, a, a))
    aim = min(max((left / gap) ** 3, 1e-4), 0.5) * mu
    target = aim - products[0] - np.clip(a * a * guess.K * guess.S, -3 * mu, 3 * mu)
    spare_target = aim - products[1] - a * a * guess.lam * guess.spare
    step, a = _corrected(problem, at, f, misses, target, spare_target, aim)
    if a < BLOCKED:
        aim = 0.9 * mu
        step, a = _corrected(problem, at, f, misses, aim - products[0], aim - products[1], aim)
    return step


def _corrected(
    problem: Problem,
    at: Point,
    f: Factors,
    misses: tuple[Floats, float, Floats],
    target: Floats,
    spare_target: float,
    aim: float,
) -> tuple[Step, float]:
    """Newton's step to a target and Gondzio's corrections: products that a longer step would send astray are pulled back."""
    step = newton(problem, at, f, misses, target, spare_target)
    a = min(lengths(at, step))
    for _ in range(CORRECTIONS):
        if a > 0.9:
            break
        wish = min(1.0, 1.5 * a + 0.1)
        product = (at.K + wish * step.K) * (at.S + wish * step.S)
        other = target + np.maximum(np.clip(product, 0.1 * aim, 10 * aim) - product, -10 * aim)
        tried = newton(problem, at, f, misses, other, spare_target)
        b = min(lengths(at, tried))
        if b < a + 0.01 * (wish - a):
            break
        a, step, target = b, tried, other
    return step, a


def solve(
    problem: Problem, tol_bits: float = 1e-4, max_seconds: float = inf, start: Point | None = None
) -> Solved:
    """The least leaking channel over all outputs of ``problem``, to a gap of ``tol_bits`` or until the time is up.

    >>> ends = Problem.of([[0.5, 0.0], [0.0, 0.5]], [[0.0, 1.0], [1.0, 0.0]], 0.25)
    >>> found = solve(ends, 1e-6)
    >>> round(found.value, 5), found.gap < 2e-6  # 1 − h(1/4) bits
    (0.18872, True)
    """
    return run(problem, tol_bits, max_seconds, start)[0]


def run(
    problem: Problem, tol_bits: float, max_seconds: float = inf, start: Point | None = None
) -> tuple[Solved, list[Point]]:
    """``solve``, and the points passed on the way (one for each factor of 4 in complementarity), to start again from."""
    began = time.perf_counter()
    tol = tol_bits * LN2
    cost, log_prior = problem.cost, problem.log_prior[:, None]
    at = start or centre(problem, 2.0 / cost.shape[1])
    passed: list[Point] = []
    marked, stuck, steps = inf, 0, 0
    best_K, best = at.K, inf
    classifier: Floats | None = None
    bound, lam, kept = -inf, at.lam, normalised(problem, at.theta)
    for steps in range(MOST_STEPS):
        J = problem.joint @ at.K
        p = J.sum(0)
        R = np.log(J) - np.log(p) - log_prior
        gap = complementarity(problem, at)
        misses = (1.0 - at.K.sum(1), problem.budget - problem.distortion(at.K) - at.spare, R - at.theta)
        if gap < marked / 4:
            marked = gap
            passed.append(at)
        late = stuck > 3 or time.perf_counter() - began > max_seconds
        if gap < 20 * tol or steps % 5 == 4 or late:
            offers = [R, normalised(problem, at.theta)] + ([] if classifier is None else [classifier])
            worth = [gains(problem.given, offer) for offer in offers]
            slack = np.stack([(g + (at.lam * cost - at.nu[:, None])).min(0) for g in worth])
            pick = slack.argmax(0)[None]
            classifier = np.choose(pick, offers)
            found, at_lam = best_bound(problem, np.choose(pick, worth), at.lam)
            if found > bound:
                bound, lam, kept = found, at_lam, classifier
            if abs(misses[0]).max() < 1e-3 or late:
                K = within(problem, at.K)
                value = leaked(problem, K) * LN2
                if value < best:
                    best, best_K = value, K
            if best - max(bound, 0.0) <= tol or late:
                break
        try:
            step = direction(problem, at, factorise(problem, at, misses[2]), misses, gap)
            primal, dual = (REACH * a for a in lengths(at, step))
            primal, dual = min(primal, 2 * dual), min(dual, 2 * primal)
        except np.linalg.LinAlgError:  # the end of double precision: what is certified so far stays
            primal = nan
        if not (np.isfinite(primal) and np.isfinite(dual)):
            stuck = MOST_STEPS
            continue
        stuck = stuck + 1 if primal < 1e-3 else 0
        at = moved(at, step, primal, dual)
    took = {"steps": steps, "seconds": time.perf_counter() - began}
    return solved(problem, best_K, np.arange(cost.shape[1]), kept, lam, **took), passed
