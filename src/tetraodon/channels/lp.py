"""The same programme by a general solver, HiGHS: for cross-checks, and for the small ones that the structured method leaves open.

Rows are scaled by e^{−b/2}, which keeps their coefficients within reach of each other. Whatever the solver says, the bound is
worked out from its multipliers, and a channel of it counts only as far as it is feasible.
"""

from __future__ import annotations

import warnings

import numpy as np

from ..errors import Unsupported
from .geo_interior import Optimum, Program

LARGEST = 400_000  # constraints


def solve_by_highs(program: Program) -> Optimum:
    """An optimum by the interior point method of HiGHS, without crossover; its K may miss constraints by 10^-8 or so.

    Vertices are avoided on purpose: they hold exact zeros beside numbers near 10^-10, for which no ε is kept at all.

    Raises:
        Unsupported: more than 400,000 constraints, or the solver gave up.
    """
    from scipy import sparse
    from scipy.optimize import OptimizeWarning, linprog

    n, columns = program.cost.shape
    pairs = len(program.first)
    if 2 * pairs * columns > LARGEST:
        raise Unsupported("least_distortion: HiGHS is used for up to 400,000 constraints.")
    up, down = np.exp(program.exponents / 2), np.exp(-program.exponents / 2)
    at = np.arange(pairs)
    rows = np.concatenate([at, at, at + pairs, at + pairs])
    places = np.concatenate([program.second, program.first, program.first, program.second])
    one = sparse.coo_array((np.concatenate([-up, down, -up, down]), (rows, places)), shape=(2 * pairs, n))
    slacks = sparse.kron(one, sparse.eye_array(columns), format="csr")
    sums = sparse.kron(
        sparse.coo_array((np.ones(n), (program.orbit, np.arange(n)))), program.weight[None, :], format="csr"
    )
    sizes = np.bincount(program.orbit).astype(np.float64)
    cost = program.cost * program.weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimizeWarning)
        found = linprog(
            cost.ravel(), A_ub=slacks, b_ub=np.zeros(2 * pairs * columns), A_eq=sums, b_eq=sizes,
            method="highs-ipm", options={"presolve": True},
        )  # fmt: skip
    if found.x is None or found.status not in (0, 1, 4):
        raise Unsupported("least_distortion: HiGHS found no channel.")
    matrix = np.maximum(found.x.reshape(n, columns), 0.0)
    multipliers = np.maximum(-found.ineqlin.marginals, 0.0).reshape(2 * pairs, columns) / program.weight
    reduced = program.cost + (one.T @ multipliers)
    least = np.full(len(sizes), np.inf)
    np.minimum.at(least, program.orbit, reduced.min(axis=1))
    value = float((cost * matrix).sum())
    own = down[:, None]
    return Optimum(
        matrix, value, float(least @ sizes), own * multipliers[:pairs], own * multipliers[pairs:], found.nit
    )
