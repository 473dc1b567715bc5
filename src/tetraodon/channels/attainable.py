"""What expected cost is attainable at all: the nearest output of every row at the low end, one output for everybody at the high."""

from __future__ import annotations

import numpy as np

from ..errors import Refused, SpecificationError
from .lower_bound import Floats


class Unreachable(Refused):
    """No channel has so small an expected cost.

    Attributes:
        least: the least expected cost that is attainable, in the unit of the cost (as attained by a channel found).
    """

    def __init__(self, least: float, asked: float, why: str = "") -> None:
        super().__init__(
            f"distortion: {why or 'every channel has'} an expected cost of at least {least:.9g}, "
            f"above the {asked:.9g} asked for; raise the distortion{' or epsilon' if why else ''}."
        )
        self.least = least


def best_constant(mass: Floats, cost: Floats) -> tuple[int, float]:
    """The output that costs least if everybody gets it, and what it costs: min_z Σ_w π_w d(w, z). It tells nothing.

    >>> best_constant(np.array([0.25, 0.5, 0.25]), np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    (1, 0.5)
    """
    each = mass @ cost
    return int(each.argmin()), float(each.min())


def constant(rows: int, outputs: int, output: int) -> Floats:
    """The channel that always gives ``output``."""
    K = np.zeros((rows, outputs))
    K[:, output] = 1.0
    return K


def checked(P: object, D: object, L: float, where: str) -> tuple[Floats, Floats]:
    """Joint law (secrets, rows), scaled to a sum of 1, and cost (rows, outputs), as tables of doubles.

    Raises:
        SpecificationError: shapes that do not fit, numbers that are no masses, no costs or no budget.
    """
    joint, cost = np.asarray(P, dtype=np.float64), np.asarray(D, dtype=np.float64)
    if joint.ndim != 2 or cost.ndim != 2 or cost.shape[0] != joint.shape[1] or not cost.size:
        raise SpecificationError(
            f"{where}: joint (secrets, rows) and cost (rows, outputs); got {joint.shape} and {cost.shape}."
        )
    if not (np.isfinite(joint).all() and (joint >= 0).all() and joint.sum() > 0):
        raise SpecificationError(f"{where}: joint: finite numbers of at least 0, not all of them 0.")
    if not (np.isfinite(cost).all() and (cost >= 0).all()):
        raise SpecificationError(f"{where}: cost: finite numbers of at least 0.")
    if not (np.isfinite(L) and L >= 0):
        raise SpecificationError(f"{where}: distortion: a finite number of at least 0.")
    total = joint.sum()
    return joint if abs(total - 1) < 1e-12 else joint / total, cost
