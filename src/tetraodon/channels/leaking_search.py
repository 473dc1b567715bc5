"""The least leaking channel on plain arrays, by whichever method suits, and the cases that need none."""

from __future__ import annotations

from math import inf

import numpy as np

from . import columns, interior, mirror, zero
from .attainable import Unreachable, best_constant, constant
from .lower_bound import Floats, Ints, Problem, Solved, leaked, solved, within

MOST_ROWS = 4000  # beyond, and beyond as many secrets, the first-order method
MOST_SECRETS = 24
MOST_WORK = 10**8  # rows² · outputs up to which the cheapest channel without leakage is looked for
FAINT = 1e-6  # of the mass: outputs given more rarely are left out where that costs next to nothing


def search(
    problem: Problem,
    shape: tuple[int, int] | None,
    cells: Ints,
    tol_bits: float,
    max_seconds: float,
    near: Ints | None = None,
) -> Solved:
    """The least leaking channel on plain arrays, by whichever method suits.

    Args:
        shape, cells: rows and columns of the grid that the outputs are, or None; the cells of the problem's rows.
        near: outputs to begin with, if the optimum of a similar problem is known.

    Raises:
        Unreachable: no channel keeps the budget.
    """
    W, Z = problem.cost.shape
    every, prior = np.arange(Z), np.zeros((len(problem.prior), Z))
    least = problem.least()
    output, spent = best_constant(problem.mass, problem.cost)
    if spent <= problem.budget:
        return solved(problem, constant(W, Z, output), every, prior, 0.0, steps=0, seconds=0.0)
    if least > problem.budget:
        raise Unreachable(least, problem.budget)
    if len(problem.prior) == 1:
        return solved(problem, _nearest(problem), every, prior, 0.0, steps=0, seconds=0.0)
    if problem.budget - least <= 1e-9 * (spent - least):
        return _forced(problem)
    found = _optimised(problem, shape, cells, tol_bits, max_seconds, near)
    if found.bound <= 0 and W * W * Z <= MOST_WORK:
        return _silent(problem, found)
    return found


def _optimised(
    problem: Problem,
    shape: tuple[int, int] | None,
    cells: Ints,
    tol_bits: float,
    max_seconds: float,
    near: Ints | None,
) -> Solved:
    if len(problem.prior) > MOST_SECRETS or len(problem.mass) > MOST_ROWS:
        return mirror.solve(problem.joint, problem.cost, problem.budget, tol_bits, max_seconds)
    if problem.cost.shape[1] <= columns.DIRECT:
        return interior.solve(problem, tol_bits, max_seconds)
    if near is not None:
        return columns.solve(problem, near, tol_bits, max_seconds)
    if shape is not None:
        return columns.on_grid(problem, shape, cells, tol_bits, max_seconds)
    return columns.without_grid(problem, tol_bits, max_seconds)


def _silent(problem: Problem, found: Solved) -> Solved:
    """A channel that leaks nothing, if the budget has room for one."""
    nothing = zero.solve(problem.joint, problem.cost)
    if nothing.value > problem.budget:
        return found
    every, prior = np.arange(problem.cost.shape[1]), np.zeros((len(problem.prior), problem.cost.shape[1]))
    other = solved(
        problem, nothing.K, every, prior, 0.0, steps=found.steps + nothing.steps, seconds=found.seconds
    )
    return other if other.value < found.value else found


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
