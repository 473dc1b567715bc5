"""Exact error of the least-squares estimate of a forest, in closed form, before any data is read.

Every noisy row is an independent observation; the least-squares estimate is the mean of the Gaussian with these
observations, and its covariance depends on the variances alone. Two recursions give it: subtree by subtree (a piece's
count given its parent's is independent of everything outside), and along the chain (a Markov chain of prefix sums).
Equal subtrees are computed once, so the cost does not grow with the number of positions. Derived, see docs/mechanisms.md.

A variance of 0 is an exact row, an infinite one a row that is not released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .forest import Forest

Floats = NDArray[np.float64]
INF = math.inf


def combine(a: float, b: float) -> float:
    """Variance of the best average of two independent estimates."""
    if a == 0 or b == 0:
        return 0.0
    if a == INF:
        return b
    return a if b == INF else a * b / (a + b)


@dataclass(frozen=True)
class Subtree:
    """What a piece contributes, given its count x and the prefix sum P at its start.

    With F_j = P + u_j the prefix sums strictly inside, and given x: u_j has slope s_j in x and variance β_j.

    Attributes:
        below: variance of x as told by the rows strictly inside the piece.
        inner: number of positions strictly inside (width − 1).
        s1, s2, beta: Σ s_j, Σ s_j², Σ β_j.
        total: variance of Σ u_j given x.
        cell_s2, cell_beta: Σ over the cells of slope² and of variance given x.
    """

    below: float
    inner: int
    s1: float
    s2: float
    beta: float
    total: float
    cell_s2: float
    cell_beta: float


LEAF = Subtree(INF, 0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def subtree(
    width: int, fanout: int, levels: tuple[float, ...], memo: dict[tuple[int, int], Subtree]
) -> Subtree:
    """The recursion over pieces; ``levels`` are the row variances of the levels below this piece."""
    if width == 1:
        return LEAF
    key = (width, len(levels))
    if key in memo:
        return memo[key]
    step = -(-width // fanout)
    count = -(-width // step) - 1  # full children; the tail is one more
    inside = levels[1:]
    body = subtree(step, fanout, inside, memo)
    tail = subtree(width - step * count, fanout, inside, memo)
    nu_body, nu_tail = combine(levels[0], body.below), combine(levels[0], tail.below)
    whole = nu_body * count + nu_tail
    # Slope of a child in this piece's count; equal shares where every child is known exactly.
    g_body, g_tail = (nu_body / whole, nu_tail / whole) if whole > 0 else (1 / (count + 1), 1 / (count + 1))
    # The sum of the children to the left of child i has slope i·g_body. Σ i and Σ i² over full children, and over all:
    i1, i2 = count * (count - 1) / 2, (count - 1) * count * (2 * count - 1) / 6
    all1, all2 = i1 + count, i2 + count * count
    own_body, own_tail = nu_body * (1 - g_body), nu_tail * (1 - g_tail)
    # Σ of the prefix sums inside, given the children: child i has weight first − i·step, the tail that of its own inside.
    first = body.s1 + width - step
    mean = nu_body * (count * first - step * i1) + nu_tail * tail.s1
    square = nu_body * (count * first**2 - 2 * first * step * i1 + step**2 * i2) + nu_tail * tail.s1**2
    result = Subtree(
        below=whole,
        inner=width - 1,
        s1=g_body * (body.inner * i1 + tail.inner * count + count * body.s1 + all1) + g_tail * tail.s1,
        s2=g_body**2 * (body.inner * i2 + tail.inner * count**2 + 2 * i1 * body.s1 + count * body.s2 + all2)
        + g_tail * (2 * g_body * count * tail.s1 + g_tail * tail.s2),
        beta=count * body.beta
        + tail.beta
        + nu_body
        * (
            body.inner * (i1 - g_body * i2)
            + tail.inner * (count - g_body * count**2)
            + all1
            - g_body * all2
            - 2 * (body.s1 * g_body * i1 + tail.s1 * g_tail * count)
        )
        + count * body.s2 * own_body
        + tail.s2 * own_tail,
        total=count * body.total + tail.total + square - (mean * mean / whole if whole > 0 else 0.0),
        cell_s2=count * g_body**2 * body.cell_s2 + g_tail**2 * tail.cell_s2,
        cell_beta=count * (body.cell_beta + body.cell_s2 * own_body)
        + tail.cell_beta
        + tail.cell_s2 * own_tail,
    )
    memo[key] = result
    return result


@dataclass(frozen=True, eq=False)
class Chain:
    """Posterior of the prefix sums S_0 = 0, S_1, …, S_K at the ends of the blocks.

    Attributes:
        variance: shape (K + 1,), of each S_i.
        gain: shape (K + 1,): Cov(S_{i−1}, S_i) = gain[i] · variance[i]; going backwards S_{i−1} = gain[i]·S_i + e_i.
        loose: shape (K + 1,): variance of e_i.
    """

    variance: Floats
    gain: Floats
    loose: Floats

    @cached_property
    def increments(self) -> tuple[Floats, Floats]:
        """Var(X_i) and Cov(S_{i−1}, X_i) for X_i = S_i − S_{i−1}; shape (K,) each."""
        covariance = self.gain[1:] * self.variance[1:]
        return (
            np.maximum(self.variance[1:] + self.variance[:-1] - 2 * covariance, 0.0),
            covariance - self.variance[:-1],
        )

    def functional(self, weights: Floats) -> float:
        """Var(Σ_{i≥1} weights[i − 1]·S_i)."""
        kept = _recurrence(self.gain[1:], weights)
        return float(
            np.sum(np.concatenate([[0.0], kept[:-1]]) ** 2 * self.loose[1:])
            + kept[-1] ** 2 * self.variance[-1]
        )

    @cached_property
    def _log_gain(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.cumsum(np.maximum(np.log(self.gain[1:]), -1000.0), dtype=np.float64)

    def covariance(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
        """Cov(S_i, S_j), elementwise."""
        low, high = np.minimum(i, j), np.maximum(i, j)
        padded = np.concatenate([[0.0], self._log_gain])
        with np.errstate(under="ignore"):
            found: Floats = np.exp(padded[high] - padded[low]) * self.variance[high]
        return np.where(low == 0, 0.0, found)


def _recurrence(gain: Floats, added: Floats) -> Floats:
    """t_i = added_i + gain_i · t_{i−1}, t_{−1} = 0; filled in at once where it has settled and nothing changes."""
    stops = _changes(gain, added)
    slopes, terms = gain.tolist(), added.tolist()
    kept, last, i, at = np.empty(len(gain)), 0.0, 0, 0
    while i < len(gain):
        fresh = terms[i] + slopes[i] * last
        kept[i] = fresh
        while stops[at] <= i:
            at += 1
        if abs(fresh - last) <= 1e-15 * abs(fresh):
            kept[i : stops[at]] = fresh
            i = int(stops[at])
        else:
            i += 1
        last = fresh
    return kept


def _changes(first: Floats, second: Floats) -> NDArray[np.int64]:
    """Where either sequence takes a new value, and the end."""
    fresh = np.flatnonzero((first[1:] != first[:-1]) | (second[1:] != second[:-1])) + 1
    return np.append(fresh, len(first))


def chain(steps: Floats, observed: Floats) -> Chain:
    """The posterior along the chain.

    Args:
        steps: shape (K,): variance of each block's count as told by its tree (infinite without one).
        observed: shape (K,): variance of the row at each block's end.
    """
    count = len(steps)
    if count == 1:
        alone = combine(float(steps[0]), float(observed[0]))
        return Chain(np.array([0.0, alone]), np.zeros(2), np.zeros(2))
    if np.isinf(steps).all():
        variance = np.concatenate([[0.0], observed])
        return Chain(variance, np.zeros(count + 1), np.concatenate([[0.0], variance[:-1]]))
    forward = _settle(steps, observed)  # known from the left, own row included
    right = np.full(count, INF)  # what the rows to the right say about each S_i, walked back over one step
    if count > 1:
        walked = np.concatenate([[0.0], steps[:1:-1]])
        right[:-1] = _settle(walked, observed[:0:-1], start=INF)[::-1] + steps[1:]
    before = np.concatenate([[0.0], forward[:-1]])
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = np.where(before + steps > 0, before / (before + steps), 0.0)
        variance = np.where(
            (forward == 0) | (right == 0),
            0.0,
            np.where(np.isinf(right), forward, forward * right / (forward + right)),
        )
    gain = np.where(np.isinf(steps), 0.0, gain)
    return Chain(
        np.concatenate([[0.0], variance]),
        np.concatenate([[0.0], gain]),
        np.concatenate([[0.0], before * (1 - gain)]),
    )


def _settle(steps: Floats, observed: Floats, start: float = 0.0) -> Floats:
    """v_i = combine(v_{i−1} + steps_i, observed_i); filled in at once where it has settled and nothing changes."""
    out = np.empty(len(steps))
    last, i, count = start, 0, len(steps)
    if not count:
        return out
    stops = _changes(steps, observed)
    at = 0
    listed, seen = steps.tolist(), observed.tolist()
    if start == INF:  # nothing is known yet on this side: the first row stands alone
        last = seen[0]
        out[0] = last
        i = 1
    while i < count:
        fresh = combine(last + listed[i], seen[i])
        out[i] = fresh
        while stops[at] <= i:
            at += 1
        if abs(fresh - last) <= 1e-15 * fresh:
            out[i : stops[at]] = fresh
            i = int(stops[at])
        else:
            i += 1
        last = fresh
    return out


@dataclass(frozen=True, eq=False)
class Posterior:
    """Everything that closed forms need: the chain, and one ``Subtree`` per kind of block."""

    forest: Forest
    links: Chain
    body: Subtree
    tail: Subtree

    def _per_block(self, a: float, z: float) -> Floats:
        values = np.full(self.forest.n_blocks, a)
        values[-1] = z
        return values

    @property
    def cells(self) -> float:
        """Mean variance of a cell."""
        variance, _ = self.links.increments
        slope = self._per_block(self.body.cell_s2, self.tail.cell_s2)
        extra = self._per_block(self.body.cell_beta, self.tail.cell_beta)
        return float((slope * variance + extra).sum()) / self.forest.size

    @property
    def prefix_sum(self) -> float:
        """Σ_j Var(F_j) over all prefixes."""
        if self.forest.n_blocks == 1:
            whole = float(self.links.variance[1])
            return self.tail.s2 * whole + self.tail.beta + whole
        variance, cross = self.links.increments
        start = self.links.variance[:-1]
        b, z = self.body, self.tail
        inner = (
            self._per_block(b.inner, z.inner) * start
            + 2 * self._per_block(b.s1, z.s1) * cross
            + self._per_block(b.s2, z.s2) * variance
            + self._per_block(b.beta, z.beta)
        )
        return float(inner.sum() + self.links.variance[1:].sum())

    @property
    def prefixes(self) -> float:
        """Mean variance of a prefix sum."""
        return self.prefix_sum / self.forest.size

    @property
    def all_ranges(self) -> float:
        """Mean variance of a range of consecutive positions.

        Σ_{i<j} Var(F_j − F_i) = (P + 1)·Σ_j Var(F_j) − Var(Σ_j F_j).
        """
        s1 = self._per_block(self.body.s1, self.tail.s1)
        inner = self._per_block(self.body.inner, self.tail.inner)
        weights = 1 + s1
        weights[:-1] += inner[1:] - s1[1:]
        spread = self.links.functional(weights) + float(
            self._per_block(self.body.total, self.tail.total).sum()
        )
        points = self.forest.size + 1
        return max(0.0, 2 * (points * self.prefix_sum - spread) / (points * (points - 1)))


def posterior(forest: Forest, observed: float | Floats, levels: Sequence[float]) -> Posterior:
    """The exact covariance structure of the least-squares estimate.

    Args:
        observed: variance of the chain's rows (one, or per block).
        levels: variance of the rows of each level.

    >>> round(posterior(Forest(5, 1, 2), 2.0, ()).prefixes, 6)
    2.0
    """
    memo: dict[tuple[int, int], Subtree] = {}
    body = subtree(min(forest.block, forest.size), forest.fanout, tuple(levels), memo)
    tail = subtree(
        int(forest.size - forest.block * (forest.n_blocks - 1)), forest.fanout, tuple(levels), memo
    )
    steps = np.full(forest.n_blocks, body.below)
    steps[-1] = tail.below
    rows = np.broadcast_to(np.asarray(observed, dtype=np.float64), (forest.n_blocks,))
    return Posterior(forest, chain(steps, rows), body, tail)
