"""The heaviest simple cycle through every set of classes (dynamic programming over sets, Held and Karp 1962)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST = 15


def heaviest_cycles(free: Floats, bound: Floats) -> Floats:
    """For every set S of classes, as a bit mask, the largest weight of a simple cycle through exactly these classes.

    Args:
        free: shape (m, m), m ≤ 15: weight of the arc i → j.
        bound: shape (m, m): its weight if it is the arc that must run along an edge, −∞ where there is none. Each cycle
            has exactly one such arc, chosen to make the sum largest.

    Returns:
        Shape (2^m,); −∞ where no cycle has such an arc, and for sets of fewer than two classes.

    >>> heaviest_cycles(np.array([[0.0, 2.0], [3.0, 0.0]]), np.array([[-np.inf, 1.0], [1.0, -np.inf]])).tolist()
    [-inf, -inf, -inf, 4.0]
    """
    count = len(free)
    sets = np.arange(1 << count)
    size = np.array([int(s).bit_count() for s in sets])
    start = np.array([(int(s) & -int(s)).bit_length() - 1 for s in sets])  # a cycle starts at its first class
    # reached[edge used, S, last]: heaviest path from the first class of S through all of S that ends at `last`.
    reached = np.full((2, 1 << count, count), -np.inf)
    for c in range(count):
        reached[0, 1 << c, c] = 0.0
    best = np.full(1 << count, -np.inf)
    for n in range(1, count + 1):
        here = sets[size == n]
        if n >= 2:
            for last in range(count):
                done = here[(here >> last) & 1 == 1]
                first = start[done]
                whole = np.maximum(
                    reached[1, done, last] + free[last, first], reached[0, done, last] + bound[last, first]
                )
                best[done] = np.maximum(best[done], whole)
        for last in range(count):
            done = here[(here >> last) & 1 == 1]
            for following in range(count):
                kept = done[((done >> following) & 1 == 0) & (start[done] < following)]
                if not len(kept):
                    continue
                grown = kept | (1 << following)
                plain, used = reached[0, kept, last], reached[1, kept, last]
                reached[0, grown, following] = np.maximum(
                    reached[0, grown, following], plain + free[last, following]
                )
                along = np.maximum(used + free[last, following], plain + bound[last, following])
                reached[1, grown, following] = np.maximum(reached[1, grown, following], along)
    return best


def set_sums(values: Floats) -> Floats:
    """Σ of the values of every set, shape (2^m,).

    >>> set_sums(np.array([1.0, 2.0])).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    sums = np.zeros(1)
    for v in values:
        sums = np.concatenate([sums, sums + v])
    return sums
