"""The Ordered Hierarchical tree as it was published, for comparison only: its first block breaks the promise of ε.

He, Machanavajjhala, Ding 2014, section 7.2, at ε = 1: blocks of θ positions; prefix sums at their ends with noise
Lap(1/ε_S); in every block a tree of h levels with noise Lap(2h/ε_H), ε_S + ε_H = 1. The first block's tree gets the whole
ε, which is what costs up to 1.33 ε; the repaired one treats it like the others. A range is answered as a difference of two
prefixes, each one prefix sum and the whole pieces to its right, without least squares.
"""

from __future__ import annotations

import math

import numpy as np


def height(theta: int, fanout: int) -> int:
    """Levels below a block."""
    levels, width = 0, theta
    while width > 1:
        levels, width = levels + 1, -(-width // fanout)
    return levels


def share(size: int, theta: int, fanout: int) -> float:
    """ε_S: the split of least estimated error."""
    if theta >= size:
        return 0.0
    levels = height(theta, fanout)
    chain = (4 * (size - theta) / (size + 1)) ** (1 / 3)
    tree = (8 * (fanout - 1) * levels**3 * size / (size + 1)) ** (1 / 3)
    return chain / (chain + tree)


def error(size: int, theta: int, fanout: int, whole_first_block: float) -> float:
    """Mean squared error of a uniformly random range, continuous Laplace noise.

    Args:
        whole_first_block: 1.0 as published, 0.0 as repaired.
    """
    levels, split = height(theta, fanout), share(size, theta, fanout)
    points = size + 1
    total = 0.0

    def count(scale: float, used: int) -> float:
        return 2 * scale**2 * 2 * used * (points - used) / (points * (points - 1))

    for start in range(0, size, theta):
        end = min(start + theta, size)
        tree = 1.0 if theta >= size else 1 - split
        if start == 0 and whole_first_block:
            tree = 1.0
        if end < size:
            own = 2 * levels / tree if start == 0 and whole_first_block and levels else 1 / split
            total += count(own, min(theta, size - end))
        pieces = [(start, end)]
        for _ in range(levels):
            inside = []
            for low, high in pieces:
                step = math.ceil((high - low) / fanout)
                if high - low > 1:
                    for s in range(low, high, step):
                        inside.append((s, min(s + step, high)))
                        total += count(2 * levels / tree, high - inside[-1][1])
            pieces = inside
    return total


def cost(size: int, theta: int, fanout: int) -> float:
    """What the published budget really spends of ε = 1: max over edges of Σ |ΔA|/scale.

    Worst is an edge from the first block to the second: every level of the first tree at Lap(2h), the first prefix sum at
    Lap(2h) too, and the second tree at its share: 1/2 + 1/(2h) + ε_H/2. Exact where the pieces of the blocks are full.
    """
    levels, split = height(theta, fanout), share(size, theta, fanout)
    if theta >= size or not levels:
        return 1.0
    return max(1.0, 0.5 + 1 / (2 * levels) + (1 - split) / 2)


def prefixes(
    counts: np.ndarray, theta: int, fanout: int, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """Prefix sums as published, shape (k + 1,), with continuous noise; n is known.

    A prefix is that of its block plus the whole pieces to its left, level by level.
    """
    size = len(counts)
    levels, split = height(theta, fanout), share(size, theta, fanout)
    truth = np.concatenate([[0], np.cumsum(counts)])
    found = truth.astype(float)
    for start in range(0, size, theta):
        end = min(start + theta, size)
        # The defect: the first block's tree, and with it the first prefix sum, is noised as if all of ε were its own.
        tree = epsilon if start == 0 else epsilon * (1 - split)
        if end < size:
            scale = 2 * levels / tree if start == 0 and levels else 1 / (epsilon * split)
            found[end] += rng.laplace(scale=scale)
        pieces = [(start, end)]
        for _ in range(levels):
            inside = []
            for low, high in pieces:
                step = math.ceil((high - low) / fanout)
                cuts = list(range(low, high, step))
                for first, past in zip(cuts, [*cuts[1:], high], strict=True):
                    inside.append((first, past))
                    if past < high:  # the last piece ends where its parent does
                        found[past] = (
                            found[first] + truth[past] - truth[first] + rng.laplace(scale=2 * levels / tree)
                        )
            pieces = [p for p in inside if p[1] - p[0] > 1]
    return found
