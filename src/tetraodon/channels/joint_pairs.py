"""Ordered pairs of rows whose ratio is bounded, as a sparse matrix, and which of them matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..axes import Bools
from .lower_bound import Floats, Ints


@dataclass(frozen=True, eq=False)
class Pairs:
    """Ordered pairs of rows with exponents b > 0: K[first, z] ≤ e^b K[second, z].

    ``forward`` is A, ``backward`` A', ``squares`` A'∘A'; ``asked`` is A' for the exponents asked for, which those solved
    for stay below by a hair.
    """

    first: Ints
    second: Ints
    exponents: Floats
    forward: Any
    backward: Any
    squares: Any
    asked: Any

    @classmethod
    def of(cls, first: Ints, second: Ints, exponents: Floats, shrink: float, rows: int) -> Pairs:
        from scipy.sparse import csr_array

        at = np.concatenate([np.arange(len(first))] * 2)
        cells = np.concatenate([second, first])
        held = exponents * (1 - shrink)
        up, down = np.exp(held / 2), np.exp(-held / 2)
        shape = (len(first), rows)
        forward = csr_array((np.concatenate([up, -down]), (at, cells)), shape=shape)
        asked = csr_array((np.concatenate([np.exp(exponents - held / 2), -down]), (at, cells)), shape=shape)
        backward = forward.T.tocsr()
        return cls(
            first, second, exponents, forward, backward, backward.multiply(backward).tocsr(), asked.T.tocsr()
        )


def needed(B: Floats) -> Bools:
    """Which ordered pairs a third row does not imply: (n, n), True where B[a, b] < B[a, m] + B[m, b] for every m.

    >>> int(needed(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])).sum())
    4
    """
    n = len(B)
    keep = np.isfinite(B) & ~np.eye(n, dtype=bool)
    slack = 1e-9 * (1 + np.where(np.isfinite(B), B, 0.0))
    for m in range(n):
        implied = B[:, m, None] + B[None, m, :] <= B + slack
        implied[m] = implied[:, m] = False
        keep &= ~implied
    return keep
