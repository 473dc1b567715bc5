"""Known counts and Gaussian noise: the squared norm of a whole cycle of classes from inner products, exact in integers.

A change along a simple cycle through the classes S moves the rows A by Σ_{C ∈ S} A(e_{y_C} − e_{x_C}), x_C and y_C in C, so its
squared norm is at most

    Σ_{C, C' ∈ S} g(C, C'),   g(C, C') = max |⟨A(e_y − e_x), A(e_y' − e_x')⟩| over x, y ∈ C and x', y' ∈ C'.

With squared moves D, the inner product is ½(D[y, x'] + D[x, y'] − D[y, y'] − D[x, x']). Never more than (Σ diam)²; exact for
histograms. Source: derived, docs/sensitivity.md.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import Ints

LARGEST = 2**61
Whole = NDArray[np.object_] | Ints


def inner_products(moves: Whole, heads: Ints) -> Any:
    """Shape (classes, classes): 2·g, from squared moves between kinds sorted by class.

    >>> inner_products(np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0]]), np.array([0, 2])).tolist()
    [[4, 0], [0, 0]]
    """
    if int(moves.max(initial=0)) * 2 * len(heads) ** 2 >= LARGEST:
        moves = moves.astype(object)  # sums over all pairs of classes must not wrap
    ends = [*heads.tolist(), len(moves)]
    found = np.zeros((len(heads), len(heads)), dtype=moves.dtype)
    for i, (a, b) in enumerate(pairwise(ends)):
        for j, (c, d) in enumerate(pairwise(ends)):
            if j < i or b - a == 1 or d - c == 1:  # a class of one kind does not move
                continue
            block = moves[a:b, c:d]
            gain = np.stack(
                [(block - row).max(axis=1) for row in block]
            )  # [x, y]: max over z of D[y, z] − D[x, z]
            found[i, j] = found[j, i] = (gain + gain.T).max()
    return found


def squares_of_sets(twice: Any) -> Any:
    """Shape (2^classes,): twice the bound of the squared norm for every set of classes, as a bit mask.

    >>> squares_of_sets(np.array([[4, 1], [1, 6]])).tolist()
    [0, 4, 6, 12]
    """
    count = len(twice)
    total = np.zeros(1 << count, dtype=twice.dtype)
    cross = np.zeros((1 << count, count), dtype=twice.dtype)  # Σ over the set of 2g(c, ·)
    for c in range(count):  # sets whose last class is c, from those without it
        rest, grown = slice(0, 1 << c), slice(1 << c, 2 << c)
        total[grown] = total[rest] + twice[c, c] + 2 * cross[rest, c]
        cross[grown] = cross[rest] + twice[c]
    return total


def squares_of_many(twice: Any, most: int) -> int:
    """Twice a bound for any ``most`` of the classes: the rows whose ``most`` largest entries sum to most."""
    rows = np.sort(twice, axis=1)[:, ::-1][:, :most].sum(axis=1)
    return int(np.sort(rows)[::-1][:most].sum())
