"""Fewer pairs that imply all the others: shortest ways, pairs that a third cell implies, greedy spanners.

Bounds chain: K[a] ≤ e^{b(a,c)} K[c] ≤ e^{b(a,c) + b(c,d)} K[d]. So the pairs of a graph hold for every two cells with the
length of the shortest way between them, and a pair that a way is as short as needs no constraint of its own.

A *δ-spanner* of a distance keeps few pairs, such that ways along them are at most δ times as long (greedy: take pairs from the
nearest on, keep one if no way of that length exists yet; Althöfer, Das, Dobkin, Joseph, Soares 1993). A channel that keeps the
kept pairs with bounds divided by δ keeps all of them (Bordenabe, Chatzikokolakis, Palamidessi 2014), and loses a little for it.
δ is an upper limit: what is divided by is the longest detour there *is*.
"""

from __future__ import annotations

from math import inf

import numpy as np

from ..axes import Bools, Ints
from .geometry import Floats

EQUAL = 1e-10  # relative: lengths that differ by rounding only


def closure(count: int, first: Ints, second: Ints, losses: Floats) -> Floats:
    """Shape (count, count): length of the shortest way between any two cells, infinite where there is none.

    >>> closure(3, np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0])).tolist()[0]
    [0.0, 1.0, 3.0]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    ends = first.astype(np.int32), second.astype(np.int32)
    if not len(first):
        found = np.full((count, count), inf)
        np.fill_diagonal(found, 0.0)
        return found
    graph = coo_array((losses, ends), shape=(count, count)).tocsr()
    return np.asarray(shortest_path(graph, directed=False), dtype=np.float64)


def needed(lengths: Floats) -> Bools:
    """Which entries of a symmetric table of bounds no third cell implies, above the diagonal; infinite ones are none.

    >>> line = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
    >>> np.argwhere(needed(line)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    count = len(lengths)
    with np.errstate(invalid="ignore"):
        most = lengths * (1 + EQUAL)
    keep = np.isfinite(lengths)
    for middle in range(count):
        by = lengths[:, middle, None] + lengths[None, middle, :] <= most
        by[middle] = by[:, middle] = False
        keep &= ~by
    return np.asarray(np.triu(keep, 1), dtype=bool)


def spanner(lengths: Floats, delta: float) -> tuple[Ints, Ints, float]:
    """Pairs of the greedy δ-spanner of a distance, and the longest detour along them (from 1 to δ).

    Args:
        lengths: symmetric, shape (cells, cells), finite, positive off the diagonal.
        delta: at least 1.

    >>> square = np.sqrt([[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]])
    >>> [len(spanner(square, delta)[0]) for delta in (1, 1.5)], round(spanner(square, 1.5)[2], 4)
    ([6, 4], 1.4142)
    """
    count = len(lengths)
    ways = np.full((count, count), inf)
    np.fill_diagonal(ways, 0.0)
    rows, columns = np.triu_indices(count, 1)
    order = np.argsort(lengths[rows, columns], kind="stable")
    kept = []
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        length = lengths[i, j]
        if ways[i, j] <= delta * length * (1 + EQUAL):
            continue
        kept.append((i, j))
        near = np.minimum(ways[:, i], ways[:, j] + length)  # to i, over the new pair or not
        far = np.minimum(ways[:, j], ways[:, i] + length)
        closer = np.flatnonzero((near < ways[:, i]) | (far < ways[:, j]))
        best = np.minimum(ways[closer, i, None] + (length + ways[None, j, :]),
                          ways[closer, j, None] + (length + ways[None, i, :]))  # fmt: skip
        ways[closer] = np.minimum(ways[closer], best)
        ways[:, closer] = ways[closer].T
    pairs = np.array(kept, dtype=np.int64).reshape(-1, 2)
    off = ~np.eye(count, dtype=bool)
    longest = float((ways[off] / lengths[off]).max()) if count > 1 else 1.0
    return pairs[:, 0], pairs[:, 1], max(1.0, longest)
