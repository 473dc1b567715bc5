"""Tables that agree with each other, made possible: no cell below 0, and still in agreement.

The families of tables that agree and hold the exact ones are an affine space, those without a negative cell a convex cone;
the truth lies in both. The nearest family in both, in squares divided by variance, is looked for, so the total weighted squared
error never grows. Its dual problem has one multiplier λ ≥ 0 for every cell: tables(λ) are the least-squares tables of y + λ,
and λ ← max(0, λ − tables(λ)) climbs (Dykstra's alternating projections); it is accelerated (Nesterov, with restarts).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..mechanisms.variance import Floats
from .residuals import Agreement, Axes, Shape, consistent

ROUNDS, LEAST_ROUNDS = 1000, 20
WORK, SMALL = 6 * 10**8, 1000
SHARE, MOST, STILL = 1e-4, 1e-2, 1e-3
TINY = 1e-9

Tables = dict[Axes, Floats]


def possible(
    shape: Shape, tables: Mapping[Axes, Floats], variances: Mapping[Axes, float], exact: Mapping[Axes, Floats]
) -> Tables:
    """The nearest tables without negative cells that agree.

    After a bounded number of rounds what is left below 0 is taken out by moving all tables towards even ones, by at most
    1 %, which keeps them in agreement; where that does not do it, single cells are clipped, and tables may then differ.

    Args:
        tables: in agreement with each other and with the exact ones.
        variances: of one cell of each table, 0 for exact ones.
        exact: tables that are held, those among ``tables`` or not.

    >>> made = possible((2,), {(0,): np.array([5.0, -1.0])}, {(0,): 1.0}, {(): np.array(4.0)})
    >>> made[(0,)].round(3).tolist()
    [4.0, 0.0]
    """
    moving = {t: v for t, v in tables.items() if t not in exact}
    if not any((v < 0).any() for v in moving.values()):
        return dict(tables)
    weights = {t: max(variances[t], TINY) for t in moving} | dict.fromkeys(exact, 0.0)
    agreement = Agreement.of(shape, weights, moving)
    lifted = {t: np.zeros_like(v) for t, v in moving.items()}
    ahead, speed = lifted, 1.0
    each = sum((v.size + SMALL) << v.ndim for v in moving.values())
    for _ in range(max(LEAST_ROUNDS, min(ROUNDS, WORK // each))):
        told = {t: v + ahead[t] for t, v in moving.items()}
        here = agreement.tables(told | dict(exact))
        raised = {t: np.maximum(v - here[t], 0.0) for t, v in ahead.items()}
        drift = max(float(np.abs(v - ahead[t]).max()) / math.sqrt(weights[t]) for t, v in raised.items())
        if drift <= STILL and _share(here, _even(shape, here, exact)) <= SHARE:
            break
        step = {t: v - lifted[t] for t, v in raised.items()}
        turns = sum(float(((ahead[t] - raised[t]) * step[t]).sum()) / weights[t] for t in moving) > 0
        faster = 1.0 if turns else (1 + math.sqrt(1 + 4 * speed * speed)) / 2
        push = 0.0 if turns else (speed - 1) / faster
        ahead = {t: v + push * step[t] for t, v in raised.items()}
        lifted, speed = raised, faster
    even = _even(shape, here, exact)
    share = _share(here, even)
    if share <= MOST:
        here = {t: v + share * (even[t] - v) for t, v in here.items()}
    return {t: v if t in exact else np.maximum(here[t], 0.0) for t, v in tables.items()}


def _even(shape: Shape, tables: Tables, exact: Mapping[Axes, Floats]) -> Tables:
    """Tables in agreement that say nothing beyond the exact ones and the total."""
    told = {(): next(iter(tables.values())).sum(), **exact}
    return consistent(shape, told, dict.fromkeys(told, 0.0), list(tables))


def _share(tables: Tables, even: Tables) -> float:
    """How far tables must be moved towards even ones until no cell is negative, as a share of the way."""
    most = 0.0
    for table, values in tables.items():
        low = values < -TINY
        if low.any():
            below, above = values[low], even[table][low]
            most = max(most, float((below / (below - np.maximum(above, 0.0))).max()))
    return most
