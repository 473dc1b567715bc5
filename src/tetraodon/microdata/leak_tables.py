"""What each candidate group leaks when the published features are fixed: prices that add up to I(Y; Ĉ, Ỹ).

With φ(t) = t ln t, b(y, ĉ) = Pr(y, ĉ), p(y) = Σ_ĉ b(y, ĉ), and B_S(ĉ) = Σ_{y ∈ S} b(y, ĉ) for a group S,

    I(Y; Ĉ, Ỹ) = Σ_S c(S),     c(S) = Σ_{y ∈ S} [ Σ_ĉ φ(b(y, ĉ)) − φ(p(y)) ] − Σ_ĉ φ(B_S(ĉ))      (nats).

φ(a + b) ≥ φ(a) + φ(b), so with one table b merging two groups never leaks more, and one group is best unless something else
forbids it. That is *not* so where a value takes over the channel of its group (one table for each group, ``stage_leakage``),
nor for a whole plan with a distortion budget: the mean distance within a merged group can pass the budget.

Source: derived; tested against the definition of mutual information.
"""

from __future__ import annotations

import numpy as np

from ..errors import SpecificationError
from .families import Family, Floats, Intervals


def leakage_costs(family: Family, b: Floats) -> Floats:
    """c(S) in nats of every candidate, shape (candidates,).

    Args:
        b: the joint law of value and published cluster, shape (values, targets), ≥ 0.

    >>> from .families import intervals
    >>> table = np.array([[0.25, 0.0], [0.0, 0.25], [0.25, 0.25]])
    >>> costs = leakage_costs(intervals(3), table)
    >>> [round(float(c / np.log(2)), 4) for c in costs]
    [0.5, 1.0, 0.5, 0.5, 0.5, 0.5]
    """
    table = np.asarray(b, dtype=np.float64)
    if table.ndim != 2 or len(table) != family.n or not np.isfinite(table).all() or (table < 0).any():
        raise SpecificationError(f"b: shape ({family.n} values, targets), finite and ≥ 0.")
    own = _phi(table).sum(axis=1) - _phi(table.sum(axis=1))
    merged = np.maximum(
        family.counts_of(table), 0.0
    )  # differences of running sums can fall below 0 by rounding
    costs: Floats = family.counts_of(own) - _phi(merged).sum(axis=1)
    return costs


def interval_leakage(b: Floats, most: int | None = None) -> Floats:
    """``leakage_costs`` of ``intervals(len(b), most)``: the c(i, j) of runs of neighbouring values."""
    from .families import intervals

    return leakage_costs(intervals(len(b), most), b)


def stage_leakage(family: Intervals, tables: Floats) -> Floats:
    """c_s(S) in nats, shape (groups, candidates), for ``family.best_by_stage``: group s, from the left, moves by its own table.

    Args:
        tables: shape (groups, values, targets); b_s(y, ĉ) = Σ_c p(y, c) W_s(ĉ | c).

    >>> from .families import intervals
    >>> same = np.full((2, 2, 1), 0.5)
    >>> stage_leakage(intervals(2), same).shape
    (2, 3)
    """
    if np.ndim(tables) != 3 or not len(tables):
        raise SpecificationError("tables: shape (groups, values, targets).")
    return np.stack([leakage_costs(family, table) for table in tables])


def _phi(t: Floats) -> Floats:
    return np.asarray(t * np.log(np.where(t > 0, t, 1.0)))
