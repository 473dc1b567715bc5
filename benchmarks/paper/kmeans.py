"""k-means as published, for comparison only: its noise is too small for the promise it makes.

He, Machanavajjhala, Ding 2014, section 6 (after Blum, Dwork, McSherry, Nissim 2005): in every round each record is assigned to
its nearest centroid; sizes get noise Lap(2/ε₁), each coordinate of the sums Lap(S/ε₂) with S = 2θ for thresholds, 2·(longest
side) attribute-wise, 2·(longest side of a block's box) for partitions and 2·diameter for Laplace (all L1). A record that
crosses a boundary between clusters leaves one sum and enters another, so the sums can move by far more than 2θ: on 0 … 10 with
centroids 2 and 8 and θ = 1 by 11. Not stated there and inferred by fitting their figure: ε₁ = ε₂ = ε/(2·rounds), uniformly
random starting centroids, sizes clamped to at least 1, centroids left where they fall.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Place = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def anywhere(centroids: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Centroids as they fall, as published."""
    return centroids


def in_box(centroids: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Centroids clipped to the declared box, which cuts the error of the Laplace curve several times."""
    return np.clip(centroids, low, high)


def run(
    points: np.ndarray,
    weights: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    sensitivity: float,
    epsilon: float,
    rng: np.random.Generator,
    k: int = 4,
    rounds: int = 10,
    place: Place = anywhere,
) -> np.ndarray:
    """Centroids, shape (k, d), of one simulated run.

    Args:
        points, weights: shape (n, d) and (n,): records at each point.
        low, high: the declared box, shape (d,).
        sensitivity: S above.
    """
    d = points.shape[1]
    share = epsilon / (2 * rounds)
    centroids = rng.uniform(low, high, (k, d))
    for _ in range(rounds):
        label = distances(points, centroids).argmin(axis=1)
        sizes = np.bincount(label, weights, k) + rng.laplace(0, 2 / share, k)
        sums = np.stack([np.bincount(label, weights * x, k) for x in points.T], axis=1)
        sums = sums + rng.laplace(0, sensitivity / share, (k, d))
        centroids = place(sums / np.maximum(sizes, 1.0)[:, None], low, high)
    return centroids


def distances(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Shape (n, k): squared distances."""
    found = np.zeros((len(points), len(centroids)))
    for a in range(points.shape[1]):
        found += (points[:, a, None] - centroids[None, :, a]) ** 2
    return found


def objective(points: np.ndarray, weights: np.ndarray, centroids: np.ndarray) -> float:
    """Σ weight · squared distance to the nearest centroid."""
    return float(weights @ distances(points, centroids).min(axis=1))
