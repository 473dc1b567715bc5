"""People who never were: an ordered private value, and counts of liked items whose taste drifts with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tetraodon.microdata.blocks import Block


def people(
    n: int = 4000, values: int = 60, items: int = 120, tastes: int = 12, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Private codes 0…values − 1 (n,), and counts (n, items), at least one of them positive.

    Each taste is a sparse law over the items and is strongest about one private value; a person's mixture is that
    tendency and as much of her own, her counts are Poisson of a total about 80.
    """
    rng = np.random.default_rng(seed)
    code = np.minimum((values * rng.beta(2.0, 3.0, n)).astype(np.int64), values - 1)
    laws = rng.dirichlet(np.full(items, 0.08), tastes)
    middle = np.linspace(0, values - 1, tastes)
    pull = -(((code[:, None] - middle) * 4 / values) ** 2) + rng.normal(0.0, 1.2, (n, tastes))
    mixture = np.exp(pull - pull.max(1, keepdims=True))
    mixture /= mixture.sum(1, keepdims=True)
    counts = rng.poisson((mixture @ laws) * rng.gamma(4.0, 20.0, n)[:, None])
    counts[np.arange(n), rng.integers(0, items, n)] += 1
    return code, counts.astype(np.float64)


def apart(counts: np.ndarray) -> np.ndarray:
    """Jensen–Shannon divergence of every two rows, each scaled to a sum of 1; natural logarithm, (n, n), 4-byte numbers."""
    law = (counts / counts.sum(1, keepdims=True)).astype(np.float32)
    own = np.sum(np.where(law > 0, law * np.log(np.where(law > 0, law, 1)), 0), axis=1)
    found = np.empty((len(law), len(law)), dtype=np.float32)
    for i in range(len(law)):
        half = 0.5 * (law[i] + law)
        both = np.sum(half * np.log(np.where(half > 0, half, 1)), axis=1)
        found[i] = np.maximum(0.5 * (own[i] + own) - both, 0.0)
    return found


def clusters(counts: np.ndarray, number: int, seed: int = 0, rounds: int = 30) -> np.ndarray:
    """K-means on square roots of relative counts, from people drawn far from one another; no cluster is empty."""
    points = np.sqrt(counts / counts.sum(1, keepdims=True))  # each of length 1
    rng = np.random.default_rng(seed)
    middles = points[[rng.integers(len(points))]]
    off = np.full(len(points), np.inf)
    while len(middles) < number:
        off = np.minimum(off, np.maximum(2 - 2 * points @ middles[-1], 0.0))
        middles = np.vstack([middles, points[rng.choice(len(points), p=off / off.sum())]])
    for _ in range(rounds):
        label = (points @ middles.T - 0.5 * np.sum(middles**2, axis=1)).argmax(1)
        size = np.bincount(label, minlength=number)
        total = np.zeros_like(middles)
        np.add.at(total, label, points)
        middles = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], middles)
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def equal_groups(code: np.ndarray, groups: int) -> np.ndarray:
    """Group of every person: intervals of private values with about as many people in each."""
    rows = np.bincount(code)
    before = np.cumsum(rows) - rows / 2
    group_of = np.minimum((before / rows.sum() * groups).astype(np.int64), groups - 1)
    return np.unique(group_of[code], return_inverse=True)[1].astype(np.int64)


def blocks(
    code: np.ndarray, label: np.ndarray, group: np.ndarray, distances: np.ndarray
) -> tuple[Sequence[Block], float, float]:
    """One block for each group; the mean distance of staying in one's cluster, and of going to anybody's in the group."""
    n, C, values = len(code), int(label.max()) + 1, int(code.max()) + 1
    found: list[Block] = []
    stay = anybody = 0.0
    for g in range(int(group.max()) + 1):
        here = np.flatnonzero(group == g)
        counts = np.zeros((values, C), dtype=np.int64)
        np.add.at(counts, (code[here], label[here]), 1)
        among = np.zeros((len(here), C), dtype=np.float32)
        among[np.arange(len(here)), label[here]] = 1
        total = (among.T @ distances[np.ix_(here, here)] @ among).astype(np.float64)
        size = counts.sum(0)
        pairs = np.outer(size, size)
        cost = np.where(pairs > 0, total / np.maximum(pairs, 1), np.nan)
        block, rows, columns = Block.of(counts, cost, n)
        mass = block.joint.sum(0)
        stay += float(mass @ cost[rows, rows])
        anybody += float(mass @ block.cost @ (size[columns] / len(here)))
        found.append(block)
    return found, stay, anybody
