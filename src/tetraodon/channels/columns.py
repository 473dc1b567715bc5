"""Many outputs: optimal channels use few of them, so the interior point works on some and the others are priced.

Given multipliers (λ, and m_w = the least of a row over the outputs in use), an output z is worth nothing if some classifier
q(· | z) keeps every slack Σ_x p(x | w) ln q(x | z)/p(x) + λ d(w, z) − m_w at 0 or above. Finding it is a convex problem with
as many unknowns as secrets,

    min over θ of  ln Σ_x p_x e^θ_x   with   Σ_x p(x | w) θ_x + λ d(w, z) − m_w ≥ 0  for every row w,

worthless iff the least is at most 0 (derived). A small interior point solves it for all outputs at once. Its θ is at the same
time the classifier with which the output enters the certificate: the bound always covers every output, used or not.

On a grid the first outputs come from the same problem on cells twice as wide.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from . import interior
from .interior import Point
from .lower_bound import LN2, Floats, Ints, Problem, Solved, gains, solved

BLOCK = 2_000_000  # numbers of a rows × outputs table handled at a time
SAMPLED = 64  # rows by which outputs are compared
PRICING_STEPS = 30
SUPPORT = 0.998  # of the mass: the outputs that a finer grid starts from
FEW = 50  # of them at least, and a quarter of all at most
DIRECT = 400  # outputs that need no pricing
ROUNDS = 30
SPREAD = 150  # outputs to begin with where there is no grid
DROPS = 3  # rounds after which no output leaves, so that the rounds end
FAINT = 1e-5  # mass of an output that leaves
LARGE = 150_000  # rows × outputs in use from which the first round is only a rough one
BACK = 6  # a round begins where the last one was this many times as far from the optimum as it ended
FLOOR = 0.1  # nats: least slack of a new output


@dataclass(frozen=True)
class Priced:
    """Classifiers of some outputs; how far each falls short, Σ_w π_w min(slack, 0); the least slack of each row."""

    log_ratio: Floats
    short: Floats
    worst: Floats


def price(problem: Problem, columns: Ints, hint: Floats, lam: float, floor: Floats, enough: float) -> Priced:
    """Price outputs, beginning with the classifiers ``hint``; those already short by no more than ``enough`` are left."""
    found = hint.copy()
    short = np.empty(len(columns))
    worst = np.full(len(floor), inf)
    block = max(BLOCK // len(floor), 1)
    for start in range(0, len(columns), block):
        part = slice(start, start + block)
        cost = lam * problem.cost[:, columns[part]] - floor[:, None]
        slack = problem.given.T @ found[:, part] + cost
        lack = problem.mass @ np.minimum(slack, 0)
        hard = np.flatnonzero(lack < -enough)
        if len(hard):
            ratio, better = _classify(problem, cost[:, hard], found[:, start + hard], slack[:, hard], enough)
            told = problem.mass @ np.minimum(better, 0)
            gain = told > lack[hard]
            slack[:, hard[gain]] = better[:, gain]
            found[:, start + hard[gain]] = ratio[:, gain]
            lack[hard[gain]] = told[gain]
        short[part] = lack
        np.minimum(worst, slack.min(1), out=worst)
    return Priced(found, short, worst)


def _classify(
    problem: Problem, cost: Floats, hint: Floats, slack: Floats, enough: float
) -> tuple[Floats, Floats]:
    """For each output the θ of least ln Σ_x p_x e^θ_x whose slacks Σ_x p(x | w) θ_x + cost are all positive.

    One small primal–dual interior point for each output (as many unknowns as secrets), all outputs at once. θ less that
    logarithm is a classifier; where the least is above 0 the output is worth having, else it is certified useless.
    """
    given, prior = problem.given, problem.prior
    secrets, rows = given.shape
    pairs = (given[:, None, :] * given[None]).reshape(secrets * secrets, rows)
    shift = np.maximum(0.05 - slack.min(0), 0.0)
    theta, s = hint + shift, slack + shift
    mu = np.full(len(shift), 0.05 / rows)
    y = mu / s
    best, best_short, found = slack.copy(), problem.mass @ np.minimum(slack, 0), hint.copy()
    live = np.arange(len(shift))
    eye = np.arange(secrets)
    for _ in range(PRICING_STEPS):
        weight = prior[:, None] * np.exp(theta)
        total = weight.sum(0)
        level, q = np.log(total), weight / total
        told = s - level
        short = problem.mass @ np.minimum(told, 0)
        gain = short > best_short[live]
        best[:, live[gain]], found[:, live[gain]] = told[:, gain], (theta - level)[:, gain]
        best_short[live[gain]] = short[gain]
        on = (level > 0) & (mu * rows > 0.1 * enough)
        if not on.any():
            break
        if not on.all():
            live, theta, s, y, mu, q = live[on], theta[:, on], s[:, on], y[:, on], mu[on], q[:, on]
        mu = np.einsum("wz,wz->z", y, s) / rows * 0.1
        H = (pairs @ (y / s)).T.reshape(-1, secrets, secrets) - q.T[:, :, None] * q.T[:, None, :]
        H[:, eye, eye] += q.T * (1 + 1e-12)
        right = given @ (mu / s) - q
        step = np.linalg.solve(H, right.T[:, :, None])[:, :, 0].T
        ds = given.T @ step
        dy = mu / s - y - y / s * ds
        a = np.minimum(1.0, 0.95 / np.maximum(-(ds / s).min(0), 1e-9))
        b = np.minimum(1.0, 0.95 / np.maximum(-(dy / y).min(0), 1e-9))
        theta, s, y = theta + a * step, s + a * ds, y + b * dy
    return found, best


def nearest(problem: Problem, columns: Ints, among: Ints) -> Ints:
    """For each output the place in ``among`` of the one whose costs differ least, judged by some of the rows."""
    rows = np.unique(np.linspace(0, len(problem.mass) - 1, SAMPLED).astype(np.int64))
    cost = problem.cost[rows]
    own = cost[:, among]
    size = np.einsum("wz,wz->z", own, own)
    found = np.empty(len(columns), dtype=np.int64)
    block = max(BLOCK // max(len(among), 1), 1)
    for start in range(0, len(columns), block):
        part = cost[:, columns[start : start + block]]
        found[start : start + block] = (size - 2 * (part.T @ own)).argmin(1)
    return found


def spread(problem: Problem, count: int) -> Ints:
    """Outputs that lie far from each other (each next one farthest from those before), judged by some of the rows."""
    rows = np.unique(np.linspace(0, len(problem.mass) - 1, SAMPLED).astype(np.int64))
    cost = problem.cost[rows]
    chosen = [int((problem.mass[rows] @ cost).argmin())]
    far = np.full(cost.shape[1], inf)
    for _ in range(min(count, cost.shape[1]) - 1):
        far = np.minimum(far, ((cost - cost[:, chosen[-1] : chosen[-1] + 1]) ** 2).sum(0))
        chosen.append(int(far.argmax()))
    return np.unique(np.concatenate([np.array(chosen), problem.cost.argmin(1)]))


def merged(problem: Problem, shape: tuple[int, int], cells: Ints) -> tuple[Problem, tuple[int, int], Ints]:
    """The same problem on cells twice as wide: rows of a cell share their law, outputs of a cell are given evenly.

    The budget moves by as much as the smallest attainable distortion does.
    """
    rows, columns = shape
    wide = (-(-rows // 2), -(-columns // 2))
    block = (cells // columns // 2) * wide[1] + cells % columns // 2
    order = np.argsort(block, kind="stable")
    whole, first = np.unique(block[order], return_index=True)
    joint = np.add.reduceat(problem.joint[:, order], first, axis=1)
    cost = np.add.reduceat((problem.mass[:, None] * problem.cost)[order], first, axis=0)
    cost /= joint.sum(0)[:, None]
    cost = cost.reshape(-1, rows, columns)
    for axis, (size, parts) in enumerate(zip(shape, wide, strict=True), start=1):
        ends = np.arange(parts) * 2
        count = np.minimum(2, size - ends).astype(np.float64)
        cost = np.add.reduceat(cost, ends, axis=axis) / np.expand_dims(count, tuple({0, 1, 2} - {axis}))
    cost = cost.reshape(len(whole), -1)
    coarse = Problem.of(joint, cost, problem.budget)
    budget = problem.budget - problem.least() + coarse.least()
    return Problem.of(joint, cost, budget), wide, whole


def inside(support: Ints, wide: tuple[int, int], shape: tuple[int, int]) -> Ints:
    """The cells that make up these wide cells.

    >>> inside(np.array([1]), (2, 2), (3, 3)).tolist()
    [2, 5]
    """
    i, j = np.divmod(support, wide[1])
    rows = 2 * i[:, None, None] + np.array([0, 1])[None, :, None]
    columns = 2 * j[:, None, None] + np.array([0, 1])[None, None, :]
    there = (rows < shape[0]) & (columns < shape[1])
    found: Ints = np.unique((rows * shape[1] + columns)[there])
    return found


def on_grid(
    problem: Problem, shape: tuple[int, int], cells: Ints, tol_bits: float = 1e-4, max_seconds: float = inf
) -> Solved:
    """Coarse to fine: ``cells`` are the cells of the rows, the outputs are all cells of a grid of this shape."""
    began = time.perf_counter()
    outputs = problem.cost.shape[1]
    if outputs <= DIRECT:
        return interior.solve(problem, tol_bits, max_seconds)
    wider, wide, whole = merged(problem, shape, cells)
    coarse = on_grid(wider, wide, whole, tol_bits, max_seconds)
    active = inside(used(wider, coarse), wide, shape)
    left = max_seconds - (time.perf_counter() - began)
    return solve(problem, active, tol_bits, left)


def without_grid(problem: Problem, tol_bits: float = 1e-4, max_seconds: float = inf) -> Solved:
    """The least leaking channel where outputs lie on no grid: all of them, or some far from each other to begin with."""
    if problem.cost.shape[1] <= DIRECT:
        return interior.solve(problem, tol_bits, max_seconds)
    return solve(problem, spread(problem, SPREAD), tol_bits, max_seconds)


def used(problem: Problem, found: Solved) -> Ints:
    """The outputs that carry all but a trace of the mass; the heaviest of them where they are many."""
    mass = problem.mass @ found.K
    order = np.argsort(-mass)
    count = int(np.searchsorted(np.cumsum(mass[order]), SUPPORT)) + 1
    count = min(count, max(problem.cost.shape[1] // 4, FEW))
    return found.columns[order[:count]]


def solve(problem: Problem, active: Ints, tol_bits: float = 1e-4, max_seconds: float = inf) -> Solved:
    """The least leaking channel over all outputs, by the interior point on some of them, to begin with ``active``.

    Rounds of solving and pricing until the certified gap over **all** outputs is ``tol_bits`` or the time is up; the best
    channel and the best bound of all rounds are kept.
    """
    began = time.perf_counter()
    tol = tol_bits * LN2
    steps, aim = 0, (0.7 if problem.mass.size * len(active) < LARGE else 14) * tol_bits
    best: Solved | None = None
    proof: tuple[float, float, Floats] | None = None
    start: Point | None = None
    if problem.only(active).least() - problem.least() > 0.25 * (problem.budget - problem.least()):
        active = np.union1d(active, problem.cost.argmin(1))
    for turn in range(ROUNDS):
        part = problem.only(active)
        found, passed, took = _round(part, aim, max_seconds - (time.perf_counter() - began), start)
        steps += took
        if best is None or found.value < best.value:
            best = replace(found, columns=active)
        rest = np.setdiff1d(np.arange(problem.cost.shape[1]), active)
        prices, bound, log_ratio = _proof(problem, part, found, active, rest, 0.02 * tol)
        if proof is None or bound > proof[0]:
            proof = (bound, found.multiplier, log_ratio)
        late = time.perf_counter() - began > max_seconds
        if best.value * LN2 - max(proof[0], 0.0) <= tol or late:
            break
        if aim <= tol_bits and prices.short.min(initial=0.0) == 0:
            break
        bad = np.argsort(prices.short)[: max(32, len(active) // 3)]
        bad = rest[bad[prices.short[bad] < -0.01 * tol]]
        stay = active[problem.mass @ found.K > FAINT] if turn < DROPS else active
        new = np.union1d(stay, bad)
        level = max(BACK * (found.value * LN2 - bound), 20 * tol)
        far = [at for at in passed if interior.complementarity(part, at) >= level]
        start = _extended(problem, part, far[-1], active, new, log_ratio) if far else None
        active, aim = new, 0.5 * tol_bits
    assert best is not None and proof is not None
    spent = time.perf_counter() - began
    return solved(problem, best.K, best.columns, proof[2], proof[1], steps=steps, seconds=spent)


def _round(part: Problem, aim: float, left: float, start: Point | None) -> tuple[Solved, list[Point], int]:
    """From a warm start, and from the centre if that leads nowhere."""
    began = time.perf_counter()
    found, passed = interior.run(part, aim, left, start)
    if start is None or found.gap <= 2 * aim:
        return found, passed, found.steps
    other, passed = interior.run(part, aim, left - (time.perf_counter() - began))
    return other, passed, found.steps + other.steps


def _extended(problem: Problem, part: Problem, at: Point, old: Ints, new: Ints, log_ratio: Floats) -> Point:
    """A point of the problem with other outputs: those in both as they were, new ones with their classifier, raised until
    every slack is positive, and as much mass as the other outputs' complementarity suggests."""
    mu = interior.complementarity(part, at) / (len(old) + 1)
    both = np.isin(new, old)
    where = np.searchsorted(old, new[both])
    theta = log_ratio[:, new]
    theta[:, both] = at.theta[:, where]
    S = problem.given.T @ theta + at.lam * problem.cost[:, new] - at.nu[:, None]
    lift = np.maximum(FLOOR - S[:, ~both].min(0), 0.0)
    theta[:, ~both] += lift
    S[:, ~both] += lift
    S[:, both] = at.S[:, where]
    K = mu / S
    K[:, both] = at.K[:, where]
    return Point(K, S, theta, at.nu, at.lam, at.spare)


def _proof(
    problem: Problem, part: Problem, found: Solved, active: Ints, rest: Ints, enough: float
) -> tuple[Priced, float, Floats]:
    """Prices of the other outputs, the bound (nats) over all, and its classifiers."""
    lam, log_ratio = found.multiplier, np.zeros((len(problem.prior), problem.cost.shape[1]))
    log_ratio[:, active] = found.log_ratio
    floor = (gains(problem.given, found.log_ratio) + lam * part.cost).min(1)
    hint = found.log_ratio[:, nearest(problem, rest, active)]
    prices = price(problem, rest, hint, lam, floor, enough)
    log_ratio[:, rest] = prices.log_ratio
    bound = float(problem.mass @ (floor + np.minimum(prices.worst, 0))) - lam * problem.budget
    return prices, bound, log_ratio
