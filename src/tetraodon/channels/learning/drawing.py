"""Draws from laws that are worked out value by value, from the operating system's randomness."""

from __future__ import annotations

import numpy as np

from ...axes import Ints
from ...errors import DataError
from ...noise import below
from ..geometry import Floats

BITS = 53


def uniform(count: int) -> Floats:
    """So many whole multiples of 2^−53 in [0, 1), each equally likely."""
    return np.asarray(below(np.full(count, 1 << BITS, dtype=np.int64)) / float(1 << BITS))


def drawn(law: Floats) -> Ints:
    """One outcome of each row, to 53 bits: probabilities are those of the row to within 2^−52 for each outcome, and outcomes below
    that may never come.

    Args:
        law: rows of probabilities, shape (rows, outcomes).
    """
    edges = np.cumsum(law, axis=1)
    edges /= edges[:, -1:]
    if not np.isfinite(edges).all():
        raise DataError(
            "channel.values: so far away that no law of outputs can be worked out; leave such rows out."
        )
    return np.asarray((uniform(len(law))[:, None] >= edges).sum(axis=1), dtype=np.int64)
