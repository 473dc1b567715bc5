"""BᵀB of integer rows, exact: it prices every move of a Gaussian strategy at the cost of one product."""

from __future__ import annotations

import numpy as np

from ..axes import Ints
from ..errors import Unsupported

LARGEST = 2**61
DIGITS = 53


def exact_gram(matrix: Ints) -> Ints:
    """BᵀB of an integer matrix, exact, by floating-point products whose sums stay below 2^53.

    ‖B(e_a − e_b)‖² = G_aa + G_bb − 2·G_ab prices every move of a Gaussian strategy at the cost of one product.

    Raises:
        Unsupported: an entry of the result could exceed 2^61.

    >>> exact_gram(np.array([[2**25, 1], [1, 2**25]])).tolist()
    [[1125899906842625, 67108864], [67108864, 1125899906842625]]
    """
    size = int(np.abs(matrix).max(initial=0))
    if size * size * len(matrix) >= LARGEST:
        raise Unsupported("the rows are too large to price exactly; use fewer bits.")
    if size * size * len(matrix) < 2**DIGITS:
        plain = matrix.astype(np.float64)
        return np.asarray((plain.T @ plain).astype(np.int64))
    step = (size.bit_length() + 1) // 2
    high = (matrix + (1 << (step - 1))) >> step
    low = matrix - (high << step)
    if 2 ** (2 * step) * len(matrix) >= 2**DIGITS:
        raise Unsupported("too many rows to price exactly.")
    x, y = high.astype(np.float64), low.astype(np.float64)
    cross = (x.T @ y).astype(np.int64)
    found: Ints = (
        ((x.T @ x).astype(np.int64) << (2 * step)) + ((cross + cross.T) << step) + (y.T @ y).astype(np.int64)
    )
    return found
