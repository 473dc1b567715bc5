"""The least leaking channel on plain arrays, by whichever method suits, and the cases that need none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from . import columns, interior, mirror, zero
from .attainable import Unreachable, best_constant, constant
from .interior import Point
from .lower_bound import LN2, Floats, Ints, Problem, Solved, gains, leaked, solved, within

MOST_ROWS = 4000  # beyond, and beyond as many secrets, the first-order method
MOST_SECRETS = 24
SPECK = 1e-12  # mass of a row or secret that no channel's leakage depends on
MOST_WORK = 10**8  # rows² · outputs up to which the cheapest channel without leakage is looked for
NEARLY = 0.97  # of the least cost of one output for all
BACK = 0.03  # bits: how far from the last optimum the next one's search begins
FAINT = 1e-6  # of the mass: outputs given more rarely are left out where that costs next to nothing


@dataclass(frozen=True, eq=False)
class Trail:
    """An optimum and the interior points that led to it: where the search for a similar budget may begin."""

    problem: Problem
    found: Solved
    passed: list[Point]


def search(
    problem: Problem, shape: tuple[int, int] | None, cells: Ints, tol_bits: float, max_seconds: float
) -> Solved:
    """The least leaking channel on plain arrays, by whichever method suits.

    Args:
        shape, cells: rows and columns of the grid that the outputs are, or None; the cells of the problem's rows.

    Raises:
        Unreachable: no channel keeps the budget.
    """
    return follow(problem, shape, cells, tol_bits, max_seconds, None).found


def follow(
    problem: Problem,
    shape: tuple[int, int] | None,
    cells: Ints,
    tol_bits: float,
    max_seconds: float,
    last: Trail | None,
) -> Trail:
    """``search``, from the optimum of the same problem with a smaller budget if there is one."""
    W, Z = problem.cost.shape
    every, prior = np.arange(Z), np.zeros((len(problem.prior), Z))
    least = problem.least()
    output, spent = best_constant(problem.mass, problem.cost)
    if least > problem.budget:
        raise Unreachable(least, problem.budget)
    if spent <= problem.budget:
        K = constant(W, Z, output)
    elif len(problem.prior) == 1:
        K = _nearest(problem)
    elif problem.budget - least <= 1e-9 * (spent - least):
        return Trail(problem, _forced(problem), [])
    else:
        can_be_silent = W * W * Z <= MOST_WORK
        if can_be_silent and problem.budget >= NEARLY * spent:
            # Little dearer than one output for all: most likely some channel tells nothing for it, and that is quicker to see.
            silent = _silent(problem)
            if silent is not None:
                return Trail(problem, silent, [])
        trail = _solid(problem, shape, cells, tol_bits, max_seconds, last)
        if can_be_silent and trail.found.bound <= 0 and problem.budget < NEARLY * spent:
            silent = _silent(problem)
            if silent is not None and silent.value < trail.found.value:
                return replace(trail, found=silent)
        return trail
    return Trail(problem, solved(problem, K, every, prior, 0.0, steps=0, seconds=0.0), [])


def _solid(
    problem: Problem,
    shape: tuple[int, int] | None,
    cells: Ints,
    tol_bits: float,
    max_seconds: float,
    last: Trail | None,
) -> Trail:
    """Rows and secrets of next to no mass are left out of the search, and given what suits them afterwards."""
    rows, secrets = problem.mass > SPECK, problem.prior > SPECK
    if rows.all() and secrets.all():
        return _optimised(problem, shape, cells, tol_bits, max_seconds, last)
    joint = problem.joint[np.ix_(secrets, rows)]
    part = Problem.of(joint / joint.sum(), problem.cost[rows], problem.budget)
    trail = follow(part, shape, cells[rows], tol_bits, max_seconds, last)
    found = trail.found
    log_ratio = np.zeros((len(secrets), problem.cost.shape[1]))
    log_ratio[secrets] = found.log_ratio
    priced = gains(problem.given, log_ratio) + found.multiplier * problem.cost
    K = np.zeros((len(rows), len(found.columns)))
    K[np.arange(len(rows)), priced[:, found.columns].argmin(1)] = 1.0
    K[rows] = found.K
    whole = solved(
        problem, K, found.columns, log_ratio, found.multiplier, steps=found.steps, seconds=found.seconds
    )
    return Trail(part, whole, trail.passed)


def _optimised(
    problem: Problem,
    shape: tuple[int, int] | None,
    cells: Ints,
    tol_bits: float,
    max_seconds: float,
    last: Trail | None,
) -> Trail:
    passed: list[Point] = []
    if len(problem.prior) > MOST_SECRETS or len(problem.mass) > MOST_ROWS:
        start = None if last is None else _whole(last.found, problem.cost.shape)
        found = mirror.solve(problem.joint, problem.cost, problem.budget, tol_bits, max_seconds, start)
    elif problem.cost.shape[1] <= columns.DIRECT:
        found, passed = interior.run(problem, tol_bits, max_seconds, _onward(problem, last))
        if found.gap > 2 * tol_bits and last is not None:
            found, passed = interior.run(problem, tol_bits, max_seconds)
        left = max_seconds - found.seconds
        if found.gap > tol_bits and left > 0:
            # The channel is there and only its proof is not: the classifiers of outputs that hardly come are poor. Prices mend them.
            used = found.columns[problem.mass @ found.K > FAINT]
            priced = columns.solve(problem, used, tol_bits, left)
            found = priced if priced.gap < found.gap else found
    elif last is not None:
        found = columns.solve(problem, last.found.columns, tol_bits, max_seconds)
    elif shape is not None:
        found = columns.on_grid(problem, shape, cells, tol_bits, max_seconds)
    else:
        found = columns.without_grid(problem, tol_bits, max_seconds)
    return Trail(problem, found, passed)


def _onward(problem: Problem, last: Trail | None) -> Point | None:
    """The latest point on the way to the last optimum that is far enough from it and within the budget."""
    if last is None:
        return None
    for at in reversed(last.passed):
        spare = problem.budget - (last.problem.budget - at.spare)
        if spare > 0 and interior.complementarity(last.problem, at) >= BACK * LN2:
            return replace(at, spare=spare)
    return None


def _whole(found: Solved, shape: tuple[int, int]) -> Floats:
    K = np.full(shape, 1e-12)
    K[:, found.columns] += found.K
    return K


def _silent(problem: Problem) -> Solved | None:
    """A channel that leaks nothing, if the budget has room for one."""
    nothing = zero.solve(problem.joint, problem.cost)
    if nothing.value > problem.budget:
        return None
    every, prior = np.arange(problem.cost.shape[1]), np.zeros((len(problem.prior), problem.cost.shape[1]))
    return solved(problem, nothing.K, every, prior, 0.0, steps=nothing.steps, seconds=0.0)


def _nearest(problem: Problem) -> Floats:
    K = np.zeros(problem.cost.shape)
    K[np.arange(len(K)), problem.cost.argmin(1)] = 1.0
    return K


def _forced(problem: Problem) -> Solved:
    """The budget is the least attainable: every row goes to a nearest output, and no multiplier is too large."""
    K = _nearest(problem)
    J = problem.joint @ K
    p = J.sum(0)
    q = np.where(p > 0, J / np.where(p > 0, p, 1.0), problem.prior[:, None])
    mixed = (1 - 1e-7) * q + 1e-7 * problem.prior[:, None]
    above = problem.cost - problem.cost.min(1, keepdims=True)
    step = float(above[above > 0].min(initial=inf))
    lam = 40.0 / step if step < inf else 0.0
    log_ratio = np.log(mixed / problem.prior[:, None])
    return solved(problem, K, np.arange(K.shape[1]), log_ratio, lam, steps=0, seconds=0.0)


def pruned(problem: Problem, found: Solved) -> tuple[Floats, Ints]:
    """The channel without outputs that hardly ever come, where leaving them out is next to free."""
    part = problem.only(found.columns)
    mass = problem.mass @ found.K
    keep = mass > FAINT
    if keep.all() or part.only(np.flatnonzero(keep)).least() > problem.budget:
        return found.K, found.columns
    rows = found.K[:, keep].sum(1)
    if rows.min() < 0.5:
        return found.K, found.columns
    fewer = part.only(np.flatnonzero(keep))
    K = within(fewer, found.K[:, keep])
    if leaked(fewer, K) > found.value + 1e-6 + 0.05 * found.gap:
        return found.K, found.columns
    return K, found.columns[keep]
