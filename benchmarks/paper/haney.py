"""The transformed Laplace mechanisms of Haney, Machanavajjhala, Ding 2015 with their continuous noise, n known.

Line: a histogram becomes its prefix sums, each with Lap(1/ε); a count is a difference of two of them (their theorem 4.3).
θ-line: red values every θ in a path, every other value joined to the next red one: a tree in which neighbours of
the policy are at most 3 edges apart, so ε/3 on every edge. The variant called consistent is the isotonic regression of the
prefix sums, unweighted.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

Floats = np.ndarray


def line(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> Floats:
    """Noisy prefix sums, shape (k + 1,): the first is 0, the last the known total."""
    inner = np.cumsum(counts)[:-1] + rng.laplace(scale=1 / epsilon, size=len(counts) - 1)
    return np.concatenate([[0.0], inner, [counts.sum()]])


def consistent(prefix: Floats) -> Floats:
    """The non-decreasing sequence nearest to the prefix sums, within [0, n]."""
    return np.clip(isotonic_regression(prefix).x, 0.0, prefix[-1])


def spanner(counts: np.ndarray, theta: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """Noisy prefix sums under the θ-line, shape (k + 1,), by the tree of red values with Lap(3/ε) on every edge.

    An edge to a red value carries the count of the other value; an edge of the path carries the sum of everything up to it.
    """
    k, scale = len(counts), 3 / epsilon
    cells = counts + rng.laplace(scale=scale, size=k)
    prefix = np.zeros(k + 1)
    truth = np.concatenate([[0], np.cumsum(counts)])
    for start in range(0, k, theta):
        end = min(start + theta, k)
        # The red value is the last of its group, so a prefix inside a group adds noisy counts to the last path edge.
        prefix[start + 1 : end] = prefix[start] + np.cumsum(cells[start : end - 1])
        prefix[end] = truth[end] + (rng.laplace(scale=scale) if end < k else 0.0)
    return prefix
