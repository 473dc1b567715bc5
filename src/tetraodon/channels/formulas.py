"""Tables by formula: e^{−rate·d} with rows divided by their sums, or with columns weighted so that rows sum to 1.

``table`` makes one for an ε that is smaller by what rounding can come to. An entry is its formula's value up to a relative
error of ``planar.ERROR`` (exponents of at most 600 right to 8 units of rounding, a quotient; the difference between table and
formula is measured), so a log-ratio is off by 2 ERROR at most, and whoever certifies it adds a margin of at most
``planar.CERTIFIED``. With ε' = ε (1 − (2 ERROR + CERTIFIED)/ℓ − CERTIFIED), where ℓ is the least bound asked for of any pair
(ε itself along edges, ε times the shortest distance otherwise), loss ≤ ε' d + 2 ERROR + CERTIFIED ≤ ε d for all pairs.

Where e^{−ε·d} is too small for doubles at the longest distance, the table is mixed, with weight e^{−400}, with one that falls
more slowly: a mixture of ε-private laws is ε-private, and no entry of a component is 0.

Source: derived.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf

import numpy as np

from ..axes import Bools
from ..errors import Unsupported
from . import planar
from .geometry import Floats
from .table import Table

Formula = Callable[[Floats, float], Floats]


def falling(apart: Floats, rate: float) -> Floats:
    """e^{−rate·d}, each row divided by its sum.

    >>> falling(np.array([[0.0, 1.0], [1.0, 0.0]]), np.log(3)).round(3).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    told = _kernel(apart, rate)
    return np.asarray(told / told.sum(axis=1, keepdims=True))


def tight(apart: Floats, rate: float) -> Floats:
    """e^{−rate·d} y with the y that makes rows sum to 1; rows that do not where no y ≥ 0 does.

    >>> tight(np.array([[0.0, 1.0], [1.0, 0.0]]), np.log(3)).round(3).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    told = _kernel(apart, rate)
    try:
        y = np.linalg.solve(told, np.ones(len(told)))
    except np.linalg.LinAlgError:
        return np.zeros_like(told)
    # What is negative by rounding alone is 0; the sums of the rows tell whether it was more.
    return np.asarray(told * np.maximum(y, 0.0))


def exists(apart: Floats, rate: float) -> bool:
    """Whether there is a ``tight`` table of this rate."""
    return bool((np.abs(tight(apart, rate).sum(axis=1) - 1) < 1e-12).all())


def _kernel(apart: Floats, rate: float) -> Floats:
    held = np.isfinite(apart)
    return np.where(held, np.exp(-rate * np.where(held, apart, 0.0)), 0.0)


def table(make: Formula, apart: Floats, rate: Fraction, least: Fraction) -> Table:
    """The table that ``make(apart, rate)`` says, for a rate smaller by what rounding comes to."""
    error = planar.ERROR
    held = np.isfinite(apart)
    reach = float(apart[held].max())
    while True:
        room = Fraction(2 * error + planar.CERTIFIED) / least + Fraction(planar.CERTIFIED)
        if room > Fraction(1, 2):
            raise Unsupported(
                "epsilon: so small that rounding is not small beside it; use a larger one, or coarser cells."
            )
        near = float(rate * (1 - room))
        matrix = make(apart, near)
        if near * reach > planar.DEEPEST:
            slower = falling(apart, planar.DEEPEST / 4 / reach)
            matrix = (matrix + planar.WEIGHT * slower) / (1 + planar.WEIGHT)
        found = Table.of(matrix)
        if _rounding(found, matrix, held) <= error / 2:
            return found
        error *= 8


def _rounding(found: Table, matrix: Floats, held: Bools) -> float:
    """The largest relative difference between the table and its formula; infinite where an entry that is not 0 became 0."""
    told, used = matrix[:, found.columns], (matrix > 0).any(axis=0)
    if used.sum() != len(found.columns) or not np.array_equal(found.entries > 0, held[:, found.columns]):
        return inf
    return float(np.abs(np.divide(found.entries, told, out=np.ones_like(told), where=told > 0) - 1).max())
