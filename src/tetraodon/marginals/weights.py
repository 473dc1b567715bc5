"""How the budget is split between tables: least exact error of the consistent estimate, from public inputs only.

Table S has a budget weight w_S ≥ 0 and moves by m_{gS} along an edge of kind g (one kind for each secret attribute, or one in
all), so noise of variance φ(max_g Σ_S m_{gS}·w_S / w_S) is enough, φ(s) = 2s² for Laplace and s for Gaussian noise. With the
precisions q_A of ``residuals`` the mean squared error of a published cell is Σ_A c_A/q_A with constants c_A ≥ 0, so

    minimise  log Σ_A c_A/q_A(w) + h · log max_g Σ_S m_{gS}·w_S,      h = 2 (Laplace) or 1 (Gaussian),

which does not change when all weights are multiplied. Closed forms without the gain of consistency: one kind of edge moves
all tables by the same amount (``Full``): w_S ∝ (cells of S)^(1/3), or ^(1/2) for Gaussian noise; tables that share no
attribute, under ``AttributeWise``: every weight is the largest; tables alike in every attribute: equal weights. For
Gaussian noise q is linear in w and the problem convex; for Laplace it is not, and several starts are improved. Derived.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..axes import Ints
from ..mechanisms.variance import Floats
from .residuals import Axes, Shape, cells, closure, outside, subsets

SHARPNESS = (20.0, 100.0, 500.0)
FLOOR, QUIET, UNEVEN, KEPT = -14.0, 1e-2, 4, 3
MEMORY, HALVINGS, LONGEST, STILL = 10, 30, 2.0, 1e-9
HOPS, LIFTS = 40, (0.1, 0.2, 0.3, 0.5)
GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it fill the unit interval evenly
TOPS = (1, 2, 3, 4, 6, 12, 24, 60, 120, 1000)
SLACK = 1e-3


CONVEX, LEAST, TINY = 200, 1e-2, 1e-12


@dataclass(frozen=True, eq=False)
class Problem:
    """What is measured and what is asked.

    Attributes:
        shape: positions of every attribute.
        measured: tables that may carry noise.
        wanted: tables that are published.
        exact: tables that are known without noise.
        moves: shape (kinds of edges, measured): how far an edge moves each table.
        power: 1 for Laplace noise, 2 for Gaussian.
    """

    shape: Shape
    measured: tuple[Axes, ...]
    wanted: tuple[Axes, ...]
    exact: tuple[Axes, ...]
    moves: Floats
    power: int

    @cached_property
    def costs(self) -> dict[Axes, float]:
        """c_A for every interaction that is not known exactly: the error of a mean published cell is Σ c_A/q_A."""
        every = sum(cells(self.shape, t) for t in self.wanted)
        known = set(closure(self.exact))
        found: dict[Axes, float] = {}
        for table in self.wanted:
            for inner in subsets(table):
                spread = cells(self.shape, outside(table, inner))
                cost = math.prod(self.shape[i] - 1 for i in inner) / spread / every
                if cost and inner not in known:
                    found[inner] = found.get(inner, 0.0) + cost
        return found

    @cached_property
    def incidence(self) -> tuple[Ints, Ints, Floats]:
        """(interaction, table, 1/Π d over the rest) of every table that tells an interaction that is needed."""
        number = {a: i for i, a in enumerate(self.costs)}
        rows, columns, factors = [], [], []
        for j, table in enumerate(self.measured):
            held = set(table)
            within = subsets(table) if 2 ** len(table) <= len(number) else number
            for inner in within:
                if inner in number and held >= set(inner):
                    rows.append(number[inner])
                    columns.append(j)
                    factors.append(1 / cells(self.shape, outside(table, inner)))
        return np.array(rows, np.int64), np.array(columns, np.int64), np.array(factors)

    def error(self, weights: Floats | Ints) -> float:
        """The mean squared error of a published cell, in units of 1/ε² (Laplace, scales taken for large) or 1/(2ρ)."""
        if not self.costs:
            return 0.0
        told = np.asarray(weights, dtype=np.float64)
        rows, columns, factors = self.incidence
        level = float((self.moves @ told).max())
        unit = told**2 / 2 if self.power == 1 else told
        precision = np.bincount(rows, factors * unit[columns], minlength=len(self.costs))
        if not (precision > 0).all():
            return math.inf
        return float((np.array(list(self.costs.values())) / precision).sum()) * level ** (3 - self.power)


def equal(problem: Problem) -> Ints:
    """The same weight for every table."""
    return np.ones(len(problem.measured), dtype=np.int64)


def optimal(problem: Problem) -> Ints:
    """Small integer weights of least error, to within 0.1 % of what the search in real numbers found; never worse than equal.

    Weight 0 means that a table is not released and follows from the others.

    >>> tables = ((0, 1), (2,))
    >>> optimal(Problem((4, 2, 2), tables, tables, (), np.array([[2.0, 2.0]]), 1)).tolist()
    [24, 13]
    """
    if not problem.costs:
        return equal(problem)
    best = searched(problem)
    aim = min(problem.error(best), problem.error(equal(problem)))
    tried = [rounded(best, top) for top in TOPS]
    for weights in (equal(problem), *tried):
        if problem.error(weights) <= aim * (1 + SLACK):
            return weights
    return min([equal(problem), *tried], key=problem.error)


def searched(problem: Problem) -> Floats:
    """Real weights of least error, the largest 1: the optimum for Gaussian noise, the best local one found for Laplace."""
    tried = [_improved(problem, start, SHARPNESS[0], 100) for start in _starts(problem)]
    if problem.power == 1 and len({len(t) for t in problem.measured}) > 1:
        # From the best one, lift what is small, shake all, and descend again.
        best = min(tried, key=problem.error)
        for turn in range(HOPS):
            shaken = np.maximum(best, LIFTS[turn % 4]) * _uneven(len(best), turn + 1, 1 + turn % 3)
            best = min(best, _improved(problem, shaken, SHARPNESS[0], 100), key=problem.error)
        tried.append(best)
    for sharp in SHARPNESS[1:]:
        kept = sorted(tried, key=problem.error)[:KEPT]
        tried = [*kept, *(_improved(problem, start, sharp, 400) for start in kept)]
    best = min(tried, key=problem.error)
    return min(best, _convex(problem, best), key=problem.error) if problem.power == 2 else best


def _convex(problem: Problem, start: Floats) -> Floats:
    """Gaussian budgets are a convex program, Σ c/(Aw) for Mw ≤ 1, w ≥ 0: solved in w itself, where a weight can leave 0."""
    from scipy.optimize import minimize

    if len(start) > CONVEX:
        return start
    rows, columns, factors = problem.incidence
    costs = np.array(list(problem.costs.values()))
    matrix = np.zeros((len(costs), len(start)))
    matrix[rows, columns] = factors

    def error(w: Floats) -> tuple[float, Floats]:
        precision = np.maximum(matrix @ w, TINY)
        return float((costs / precision).sum()), -matrix.T @ (costs / precision**2)

    begin = np.maximum(start / start.max(), LEAST)
    begin /= (problem.moves @ begin).max()
    limit = {"type": "ineq", "fun": lambda w: 1 - problem.moves @ w, "jac": lambda w: -problem.moves}
    scale = error(begin)[0]
    found = minimize(
        lambda w: tuple(v / scale for v in error(w)), begin, jac=True, method="SLSQP", bounds=[(0, None)] * len(begin),
        constraints=limit, options={"maxiter": 300, "ftol": 1e-10},
    )  # fmt: skip
    weights = np.maximum(np.asarray(found.x, dtype=np.float64), 0.0)
    return weights / weights.max() if weights.max() > 0 else start


def _uneven(count: int, turn: int, height: float) -> Floats:
    """Factors from 1 to e^height, different ones at every turn."""
    found: Floats = np.exp(height * ((np.arange(1, count + 1) * GOLDEN * turn) % 1))
    return found


def rounded(weights: Floats, top: int) -> Ints:
    """Integers in the same proportions, the largest ``top`` (divided by what they have in common)."""
    found = np.rint(weights / weights.max() * top).astype(np.int64)
    whole: Ints = found // max(int(np.gcd.reduce(found)), 1)
    return whole


def _starts(problem: Problem) -> Iterator[Floats]:
    """Equal, by size, and each order of tables with little for the others.

    Sparse budgets are local optima of the Laplace problem that even starts do not reach, so uneven ones are tried too.
    """
    sizes = np.array([cells(problem.shape, t) for t in problem.measured], dtype=np.float64)
    orders = np.array([len(t) for t in problem.measured])
    yield np.ones(len(sizes))
    yield sizes ** (1 / (1 + 2 / problem.power))
    if orders.min() == orders.max():
        return
    for order in np.unique(orders):
        even = np.where(orders == order, 1.0, QUIET)
        yield even
        if problem.power == 1 and order >= max(map(len, problem.wanted)):
            for turn in range(1, UNEVEN + 1):
                yield even * _uneven(len(even), turn, 4)


def _improved(problem: Problem, start: Floats, sharp: float, rounds: int) -> Floats:
    """Towards a local optimum in log weights, with the largest cost smoothed: limited-memory BFGS (Nocedal, Wright 2006,
    section 7.2) with halved steps. (Library routines call threaded linear algebra, which such small problems wait for.)
    """
    here = np.log(np.maximum(start / start.max(), math.exp(FLOOR)))
    value, slope = _smooth(here, problem, sharp)
    pairs: list[tuple[Floats, Floats, float]] = []
    for _ in range(rounds):
        free = (here > FLOOR) | (slope < 0)
        way = np.where(free, -_applied(pairs, np.where(free, slope, 0.0)), 0.0)
        if (way * slope).sum() > -1e-12:
            pairs, way = [], np.where(free, -slope, 0.0)
        step = min(1.0, LONGEST / max(float(np.abs(way).max()), 1e-12))
        for _ in range(HALVINGS):
            there = np.maximum(here + step * way, FLOOR)
            fresh, tilt = _smooth(there, problem, sharp)
            if fresh <= value + 1e-4 * float(((there - here) * slope).sum()):
                break
            step /= 2
        else:
            break
        moved, bent = there - here, tilt - slope
        curve = float((moved * bent).sum())
        if curve > 1e-12:
            pairs = [*pairs[1 - MEMORY :], (moved, bent, curve)]
        done = value - fresh <= STILL
        here, value, slope = there - there.max(), fresh, tilt  # nothing changes if all weights are multiplied
        if done:
            break
    weights: Floats = np.exp(here - here.max())
    return weights


def _applied(pairs: list[tuple[Floats, Floats, float]], slope: Floats) -> Floats:
    """The inverse curvature that the last steps tell, times a slope (the two-loop recursion)."""
    left, shares = slope.copy(), []
    for moved, bent, curve in reversed(pairs):
        share = float((moved * left).sum()) / curve
        left -= share * bent
        shares.append(share)
    if pairs:
        _, bent, curve = pairs[-1]
        left *= curve / float((bent * bent).sum())
    for (moved, bent, curve), share in zip(pairs, reversed(shares), strict=True):
        left += (share - float((bent * left).sum()) / curve) * moved
    return left


def _smooth(logs: Floats, problem: Problem, sharp: float) -> tuple[float, Floats]:
    """Objective and gradient in log weights; the maximum over edges as a softmax."""
    rows, columns, factors = problem.incidence
    costs = np.array(list(problem.costs.values()))
    degree = 3 - problem.power  # of the error in the noise scale, and of the precision in the weights
    weights = np.exp(logs)
    unit = factors * weights[columns] ** degree
    precision = np.bincount(rows, unit, minlength=len(costs))
    error = float((costs / precision).sum())
    slope = np.bincount(columns, (costs / precision**2)[rows] * unit, minlength=len(weights))
    told = (problem.moves * weights).sum(axis=1)
    top = told.max()
    powers = (told / top) ** sharp
    shares = powers / powers.sum()
    level = math.log(top) + math.log(powers.sum()) / sharp
    pull = ((shares / told)[:, None] * problem.moves).sum(axis=0) * weights
    return math.log(error) + degree * level, degree * (pull - slope / error)
