"""Least squares on a forest: from noisy rows to consistent cells and prefix sums, and the variance of each.

The same recursions as in ``variance``, carried out on the pieces themselves: up from the cells, along the chain (a
tridiagonal system), down again. O(positions) for each group of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..axes import Ints
from .forest import Forest
from .variance import Chain, Floats, chain

INF = np.inf


@dataclass(frozen=True, eq=False)
class Weights:
    """Everything about the estimate that does not depend on the data.

    Attributes:
        forest: the shape.
        observed: shape (blocks,), variance of the chain's rows (0 exact, infinite absent).
        levels: variance of the rows of each level.
    """

    forest: Forest
    observed: Floats
    levels: tuple[float, ...]

    @cached_property
    def below(self) -> list[Floats]:
        """Per depth (blocks first): variance of a piece's count as told by the rows strictly inside it."""
        found: list[Floats] = []
        lower: Floats = np.zeros(0)
        for depth in range(self.forest.height, -1, -1):
            pieces = self.forest.block_widths if depth == 0 else self.forest.levels[depth - 1].widths
            inside = np.full(len(pieces), INF)
            if depth < self.forest.height:
                parent = self.forest.levels[depth].parent
                total = np.bincount(parent, weights=lower, minlength=len(pieces))
                inside = np.where(pieces > 1, total, INF)
            found.insert(0, inside)
            lower = inside if depth == 0 else _combined(inside, self.levels[depth - 1])
        return found

    @cached_property
    def own(self) -> list[Floats]:
        """Per level: variance of a piece's count as told by its own row and those inside."""
        return [_combined(self.below[d + 1], v) for d, v in enumerate(self.levels)]

    @cached_property
    def left(self) -> list[Floats]:
        """Per level: Σ of ``own`` over the siblings to the left."""
        found = []
        for pieces, own in zip(self.forest.levels, self.own, strict=True):
            sums = np.cumsum(own) - own
            heads = np.flatnonzero(pieces.rank == 0)
            found.append(sums - np.repeat(sums[heads], np.diff(np.append(heads, len(own)))))
        return found

    @cached_property
    def shares(self) -> list[tuple[Floats, Floats, Floats]]:
        """Per level: (Σ over the siblings, slope of the left siblings' sum, slope of the piece) in the parent's count."""
        found = []
        for depth, pieces in enumerate(self.forest.levels):
            whole = self.below[depth][pieces.parent]
            siblings = np.bincount(pieces.parent)[pieces.parent]
            known = whole > 0
            safe = np.where(known, whole, 1.0)
            slope = np.where(known, self.left[depth] / safe, pieces.rank / siblings)
            share = np.where(known, self.own[depth] / safe, 1 / siblings)
            found.append((safe, slope, share))
        return found

    @cached_property
    def links(self) -> Chain:
        """The posterior along the chain."""
        return chain(self.below[0], self.observed)

    @cached_property
    def prefix_variance(self) -> Floats:
        """Shape (P + 1,): variance of each prefix sum F_0 … F_P."""
        out = np.zeros(self.forest.size + 1)
        variance, cross = self.links.increments
        start = self.links.variance[:-1]
        out[np.append(0, self.forest.ends)] = self.links.variance
        own = variance
        for depth, pieces in enumerate(self.forest.levels):
            p, c, x = start[pieces.parent], cross[pieces.parent], own[pieces.parent]
            whole, a, g = self.shares[depth]
            nu, left = self.own[depth], self.left[depth]
            start = p + 2 * a * c + a * a * x + left - left * left / whole
            cross = g * c + a * g * x - left * nu / whole
            own = g * g * x + nu - nu * nu / whole
            inner = pieces.rank > 0
            out[pieces.starts[inner]] = start[inner]
        return np.maximum(out, 0.0)

    @cached_property
    def cell_variance(self) -> Floats:
        """Shape (P,): variance of each cell."""
        out = np.zeros(self.forest.size)
        variance, _ = self.links.increments
        single = self.forest.block_widths == 1
        out[(self.forest.ends - 1)[single]] = variance[single]
        own = variance
        for depth, pieces in enumerate(self.forest.levels):
            nu, (whole, _, g) = self.own[depth], self.shares[depth]
            own = g * g * own[pieces.parent] + nu - nu * nu / whole
            single = pieces.widths == 1
            out[pieces.starts[single]] = own[single]
        return np.maximum(out, 0.0)

    def range_variance(self, lows: Ints, highs: Ints) -> Floats:
        """Variance of F_high − F_low for arrays of positions 0 ≤ low ≤ high ≤ P; O(height) each."""
        return _ranges(self, np.asarray(lows, dtype=np.int64), np.asarray(highs, dtype=np.int64))

    def rows_variance(self, rows: Floats) -> Floats:
        """Variance of each row of a matrix (answers, P) times the cells."""
        slope = np.asarray(rows, dtype=np.float64)
        if not len(slope):
            return np.zeros(0)
        carried, spread = _gather(self, slope)
        links = self.links
        weights = carried - np.concatenate([carried[:, 1:], np.zeros((len(carried), 1))], axis=1)
        return np.asarray(spread + np.array([links.functional(w) for w in weights]), dtype=np.float64)

    def estimate(self, chain_values: Floats, level_values: Sequence[Floats]) -> Floats:
        """Consistent cells, shape (groups, P), from noisy rows of the same shapes as ``Forest.apply`` gives.

        Minimises Σ_r (row_r·x − value_r)² / variance_r, exact rows held.
        """
        forest = self.forest
        known = _upwards(self, level_values)
        ends = _along(self, chain_values, known[0])
        counts = np.diff(ends, axis=1, prepend=0.0)
        cells = np.zeros((len(counts), forest.size))
        single = forest.block_widths == 1
        cells[:, (forest.ends - 1)[single]] = counts[:, single]
        for depth, pieces in enumerate(forest.levels):
            told = known[depth + 1]
            surplus = counts - _sums(told, pieces.parent, counts.shape[1])
            counts = told + self.shares[depth][2] * surplus[:, pieces.parent]
            single = pieces.widths == 1
            cells[:, pieces.starts[single]] = counts[:, single]
        return cells


def _combined(inside: Floats, row: float) -> Floats:
    if row == 0:
        return np.zeros(len(inside))
    if np.isinf(row):
        return inside
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(inside), row, inside * row / (inside + row))


def _sums(values: Floats, parent: Ints, count: int) -> Floats:
    heads = np.flatnonzero(np.diff(parent, prepend=-1))
    out = np.zeros((len(values), count))
    if len(heads):
        out[:, parent[heads]] = np.add.reduceat(values, heads, axis=1)
    return out


def _upwards(weights: Weights, level_values: Sequence[Floats]) -> list[Floats]:
    """Per depth (blocks first): the best estimate of each piece from its own row and those inside (blocks: inside)."""
    forest = weights.forest
    known: list[Floats] = []
    lower: Floats | None = None
    for depth in range(forest.height, -1, -1):
        count = forest.n_blocks if depth == 0 else len(forest.levels[depth - 1].starts)
        inside = np.zeros((len(level_values[0]) if level_values else 0, count))
        if lower is not None:
            inside = _sums(lower, forest.levels[depth].parent, count)
        if depth == 0:
            lower = inside
        else:
            below, row = weights.below[depth], weights.levels[depth - 1]
            # Share of the piece's own row in the average; 1 where nothing is known from inside.
            share = np.where(np.isinf(below), 1.0, 0.0 if np.isinf(row) else _share(below, row))
            lower = share * level_values[depth - 1] + (1 - share) * inside
        known.insert(0, lower)
    return known


def _share(below: Floats, row: float) -> Floats:
    if row == 0:
        return np.ones(len(below))
    return np.where(np.isinf(below), 1.0, below / np.where(np.isinf(below), 1.0, below + row))


def _along(weights: Weights, values: Floats, told: Floats) -> Floats:
    """Prefix sums at the ends of the blocks, shape (groups, blocks)."""
    observed, steps = weights.observed, weights.below[0]
    if np.isinf(steps).all():
        return np.asarray(values, dtype=np.float64)
    from scipy.linalg import solveh_banded

    count = len(steps)
    with np.errstate(divide="ignore"):
        link = np.where(steps > 0, 1 / np.where(steps > 0, steps, 1.0), 0.0)
        own = np.where(observed > 0, 1 / np.where(observed > 0, observed, 1.0), 0.0)
    told = np.where(np.isinf(steps), 0.0, told) if told.size else np.zeros((len(values), count))
    fixed = observed == 0
    diagonal = own + link + np.append(link[1:], 0.0)
    right = own * np.where(own > 0, values, 0.0) + link * told
    right[:, :-1] -= link[1:] * told[:, 1:]
    above = np.append(0.0, -link[1:])
    if fixed.any():  # held values move to the right-hand side
        held = np.where(fixed, values, 0.0)
        right[:, 1:] += link[1:] * held[:, :-1]
        right[:, :-1] += link[1:] * held[:, 1:]
        right = np.where(fixed, values, right)
        diagonal = np.where(fixed, 1.0, diagonal)
        above[1:] = np.where(fixed[1:] | fixed[:-1], 0.0, above[1:])
    if count == 1:
        return np.asarray(right / diagonal, dtype=np.float64)
    solved = solveh_banded(np.stack([above, diagonal]), right.T, check_finite=False)
    return np.asarray(solved.T, dtype=np.float64)


def _gather(weights: Weights, slope: Floats) -> tuple[Floats, Floats]:
    """Row combinations carried up to the blocks: (slope per block, variance given the blocks' counts)."""
    forest = weights.forest
    spread = np.zeros(len(slope))
    carried: Floats = np.zeros((len(slope), 0))
    for depth in range(forest.height, -1, -1):
        if depth == 0:
            widths, starts = forest.block_widths, forest.ends - forest.block_widths
        else:
            widths, starts = forest.levels[depth - 1].widths, forest.levels[depth - 1].starts
        here = np.where(widths == 1, slope[:, starts], 0.0)
        if depth < forest.height:
            pieces = forest.levels[depth]
            nu, (whole, _, share) = weights.own[depth], weights.shares[depth]
            mean = _sums(carried * nu, pieces.parent, len(widths))
            heads = np.flatnonzero(pieces.rank == 0)
            spread += (carried**2 * nu).sum(axis=1) - (mean[:, pieces.parent[heads]] ** 2 / whole[heads]).sum(
                axis=1
            )
            here = here + _sums(carried * share, pieces.parent, len(widths))
        carried = here
    return carried, np.maximum(spread, 0.0)


def _ranges(weights: Weights, lows: Ints, highs: Ints) -> Floats:
    """Walk both ends up to their common piece, then to the chain."""
    forest, last = weights.forest, weights.forest.size - 1
    a, b = _Walk.start(weights, np.minimum(lows, last)), _Walk.start(weights, np.minimum(highs, last))
    at_end = highs > last  # F_P is an end of the chain, not the start of a cell
    out = np.full(len(lows), np.nan)
    own = _piece_variances(weights)
    for depth in range(forest.height - 1, -1, -1):
        pieces = forest.levels[depth]
        # A walk that has not begun yet (its cell is a larger piece further up) meets nobody here.
        meet = (a.node[depth] >= 0) & (b.node[depth] >= 0)
        ca, cb = np.where(meet, a.node[depth], 0), np.where(meet, b.node[depth], 0)
        meet &= (pieces.parent[ca] == pieces.parent[cb]) & (ca != cb) & ~at_end & np.isnan(out)
        if meet.any():
            nu, left = weights.own[depth], weights.left[depth]
            whole, _, share = weights.shares[depth]
            gap = left[cb] - left[ca]
            mean = gap - a.slope * nu[ca] + b.slope * nu[cb]
            square = gap - nu[ca] + (1 - a.slope) ** 2 * nu[ca] + b.slope**2 * nu[cb]
            slope = weights.shares[depth][1][cb] - weights.shares[depth][1][ca]
            slope = slope - a.slope * share[ca] + b.slope * share[cb]
            found = (
                slope**2 * own[depth][pieces.parent[ca]] + square - mean**2 / whole[ca] + a.spread + b.spread
            )
            out = np.where(meet, found, out)
        a.up(weights, depth)
        b.up(weights, depth)
    i, j = a.block, b.block
    slope_b, spread_b = np.where(at_end, 1.0, b.slope), np.where(at_end, 0.0, b.spread)
    points = np.stack([i, i + 1, j, j + 1])
    factors = np.stack([a.slope - 1, -a.slope, 1 - slope_b, slope_b])
    shared = weights.links.covariance(points[:, None], points[None, :])
    total = a.spread + spread_b + np.einsum("pn,qn,pqn->n", factors, factors, shared)
    out = np.where(np.isnan(out), total, out)
    return np.maximum(np.where(lows == highs, 0.0, out), 0.0)


def _piece_variances(weights: Weights) -> list[Floats]:
    """Per depth (blocks first): variance of every piece's count."""
    found = [weights.links.increments[0]]
    for depth, pieces in enumerate(weights.forest.levels):
        nu, (whole, _, share) = weights.own[depth], weights.shares[depth]
        found.append(share**2 * found[-1][pieces.parent] + nu - nu * nu / whole)
    return found


@dataclass(eq=False)
class _Walk:
    """Prefix sums on their way up: F_j = (prefix at the start of the current piece) + slope·count + noise."""

    node: list[NDArray[np.int64]]
    block: Ints
    slope: Floats
    spread: Floats

    @staticmethod
    def start(weights: Weights, cells: Ints) -> _Walk:
        forest = weights.forest
        node = []
        for pieces in forest.levels:
            at = np.searchsorted(pieces.starts, cells, side="right") - 1
            inside = (at >= 0) & (cells < pieces.starts[np.maximum(at, 0)] + pieces.widths[np.maximum(at, 0)])
            node.append(np.where(inside, at, -1).astype(np.int64))
        return _Walk(node, cells // forest.block, np.zeros(len(cells)), np.zeros(len(cells)))

    def up(self, weights: Weights, depth: int) -> None:
        present = self.node[depth] >= 0
        at = np.where(present, self.node[depth], 0)
        nu, left = weights.own[depth][at], weights.left[depth][at]
        whole, a, share = (v[at] for v in weights.shares[depth])
        s = self.slope
        spread = (
            self.spread
            + s * s * (nu - nu * nu / whole)
            - 2 * s * left * nu / whole
            + left
            - left * left / whole
        )
        self.slope = np.where(present, a + s * share, s)
        self.spread = np.where(present, spread, self.spread)
