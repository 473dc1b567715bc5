"""Lloyd's algorithm on weighted points: pure functions of what they are given.

Released numbers go in (or public synthetic ones), so nothing here costs budget. Where a start is drawn, it is drawn from a
``numpy.random.Generator`` that the caller seeds with a public constant: the same released histogram then always gives the
same centroids, and no secrecy is asked of the seed.
"""

from __future__ import annotations

import numpy as np

from ..axes import Ints
from ..mechanisms.variance import Floats

STARTS, ROUNDS = 8, 60
CLOSE = 1e-9
CHUNK = 1 << 16


def nearest(points: Ints, centroids: Ints) -> Ints:
    """Shape (n,): the nearest centroid of each point in whole numbers, the lowest index where several are equally near.

    Args:
        points, centroids: whole numbers of magnitude below 2^29, shapes (n, d) and (k, d).

    >>> nearest(np.array([[0], [5], [6]]), np.array([[2], [8]])).tolist()
    [0, 0, 1]
    """
    found = np.empty(len(points), dtype=np.int64)
    # |x − c|² less |x|², which is the same for all centroids.
    fixed = (centroids * centroids).sum(axis=1)
    for at in range(0, len(points), CHUNK):
        part = points[at : at + CHUNK]
        found[at : at + CHUNK] = np.argmin(fixed - 2 * (part @ centroids.T), axis=1)
    return found


def squares(points: Floats, centroids: Floats) -> Floats:
    """Shape (n, k): squared distance of every point to every centroid."""
    found = np.zeros((len(points), len(centroids)))
    for a in range(points.shape[1]):
        found += (points[:, a, None] - centroids[None, :, a]) ** 2
    return found


def objective(points: Floats, weights: Floats, centroids: Floats) -> float:
    """Σ weight · squared distance to the nearest centroid.

    >>> objective(np.array([[0.0], [3.0]]), np.array([1.0, 2.0]), np.array([[0.0], [2.0]]))
    2.0
    """
    return float(weights @ squares(points, centroids).min(axis=1))


def spread(points: Floats, weights: Floats, k: int, rng: np.random.Generator) -> Floats:
    """k-means++ starts: each next one drawn with probability ∝ weight · squared distance to those before it.

    Source: Arthur, Vassilvitskii 2007. Where the weighted points are fewer than k, starts repeat.
    """
    chosen = [points[_drawn(weights, rng)]]
    away = squares(points, np.array(chosen)).min(axis=1)
    for _ in range(k - 1):
        pull = weights * away
        chosen.append(points[_drawn(pull if pull.sum() > 0 else weights, rng)])
        away = np.minimum(away, squares(points, np.array(chosen[-1:]))[:, 0])
    return np.array(chosen)


def _drawn(weights: Floats, rng: np.random.Generator) -> int:
    rising = np.cumsum(weights)
    return int(np.searchsorted(rising, rng.random() * rising[-1], side="right").clip(0, len(weights) - 1))


def lloyd(points: Floats, weights: Floats, centroids: Floats, rounds: int = ROUNDS) -> Floats:
    """Centroids after at most ``rounds`` rounds of assigning and averaging; an empty cluster keeps its centroid."""
    k = len(centroids)
    for _ in range(rounds):
        label = squares(points, centroids).argmin(axis=1)
        size = np.bincount(label, weights, k)
        total = np.stack([np.bincount(label, weights * x, k) for x in points.T], axis=1)
        held = size > 0
        moved = np.where(held[:, None], total / np.where(held, size, 1.0)[:, None], centroids)
        still = float(np.abs(moved - centroids).max()) <= CLOSE
        centroids = moved
        if still:
            break
    return centroids


def cluster(
    points: Floats, weights: Floats, k: int, rng: np.random.Generator, starts: int = STARTS
) -> Floats:
    """The best of several runs of Lloyd's algorithm from k-means++ starts; shape (k, d), in lexicographic order.

    Args:
        points: shape (n, d).
        weights: shape (n,), not negative, some above 0.

    >>> data = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> cluster(data, np.ones(4), 2, np.random.default_rng(1)).tolist()
    [[0.5], [9.5]]
    """
    held = weights > 0
    points, weights = points[held], weights[held]
    best, found = np.inf, points[:0]
    for _ in range(starts):
        centroids = lloyd(points, weights, spread(points, weights, k, rng))
        value = objective(points, weights, centroids)
        if value < best:
            best, found = value, centroids
    return in_order(found)


def in_order(centroids: Floats) -> Floats:
    """Rows in lexicographic order, so that their order says nothing."""
    return np.asarray(centroids[np.lexsort(centroids.T[::-1])])


def on_simplex(values: Floats, total: float) -> Floats:
    """The nearest point with no negative entry whose sum is ``total``: max(v − t, 0) for one threshold t.

    A projection on a convex set that holds the truth: the total squared error does not rise. Of many noisy cells, most of
    them empty, it keeps those that stand out, where clamping alone would keep half of all noise.

    >>> on_simplex(np.array([3.0, -1.0, 1.0]), 3.0).tolist()
    [2.5, 0.0, 0.5]
    """
    if total <= 0:
        return np.zeros_like(values)
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > over)[-1])
    return np.asarray(np.maximum(values - over[last], 0.0))


def covering(extents: Floats, k: int) -> Floats:
    """k starting centroids spread over a box [0, extent_a], from the box alone; shape (k, d).

    Lloyd's algorithm on points that cover the box evenly (additive recurrence with the generalised golden ratio), from the
    first k of them.
    """
    d = len(extents)
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (d + 1))
    steps = ratio ** -np.arange(1, d + 1, dtype=np.float64)
    count = max(1024, 32 * k)
    even = (0.5 + np.arange(1, count + 1)[:, None] * steps) % 1.0 * extents
    return in_order(lloyd(even, np.ones(count), even[:k], 100))
