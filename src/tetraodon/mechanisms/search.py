"""How good a forest can be for a stated workload: a model of its error in floating point, and the best budget for it.

A budget divides ε: a share for the chain and one for each level, together 1. The model knows the sampler's variance and
takes a strategy's cost for the sum of its parts' costs; the true cost, computed exactly when a strategy is built, is at
most that. Everything here is a function of public declarations: query, domain, policy, ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..axes import Axis, Bools
from ..loss import Loss, Unit
from ..quotient import quotient
from ..sensitivity import Neighbourhood, largest_move, rows
from ..workload import AllRanges, Cells, Resolved, Rows, SomeRanges
from .build import is_still
from .estimate import Weights
from .forest import Forest
from .free import free_bounds
from .strategy import assumed
from .variance import Floats, posterior

WEIGHT_TOTAL = 1 << 16
ROUNDS = 24
# How far a step goes (1/3 is Newton's for parts that do not interact), and the gain below which it is shortened.
STEP, SETTLED = 0.6, 1e-5
LONG_CHAIN = 256
EACH_ANSWER = 2**13
WORST = 100
NUDGE = 1e-4
FEW_PARTS = 4
FACTORS = (0.0, 0.25, 0.5, 2.0, 4.0)
LEAST_SHARE = 1 / WEIGHT_TOTAL


@dataclass(frozen=True, eq=False)
class Search:
    """What is known about a query under a policy before a shape is chosen, computed once."""

    resolved: Resolved
    hood: Neighbourhood
    loss: Loss

    @property
    def power(self) -> int:
        """1: moves count in full (Laplace noise); 2: squared (Gaussian noise)."""
        return self.loss.power

    def move(self, *layers: rows.Layer) -> float:
        """The largest weighted move of some rows."""
        return float(largest_move(self.resolved, self.hood, layers, self.power).value)

    @cached_property
    def free(self) -> Bools:
        """Prefix rows that no neighbour changes."""
        return free_bounds(self.resolved, self.hood)

    @cached_property
    def tree_move(self) -> float:
        """How far a neighbour moves the rows of one level, at most: without constraints 2, or 1 if edges only leave or enter
        the query."""
        return self.move(rows.Blocks(self.resolved.n_positions))

    @cached_property
    def is_cut(self) -> bool:
        """Whether some row strictly inside the axis is free."""
        return bool(self.free[1:-1].any())

    @cached_property
    def by_answer(self) -> bool:
        """Whether the workload has no closed form and is small enough to go through, answer by answer."""
        alone = (
            isinstance(self.resolved.workload, SomeRanges | Rows) or self.resolved.query.word == "quantiles"
        )
        return alone and self.resolved.n_positions <= EACH_ANSWER

    @cached_property
    def reach(self) -> int:
        """Largest distance along the axis that an edge spans; all of it if an edge joins the ends, or a star is joined."""
        size = self.resolved.n_positions
        small = self.hood.graph.project(self.resolved.domain.names)
        if self.resolved.axis is None or small.kind == "flat":
            return size
        axis = quotient(small.axis(self.resolved.axis.name), self.resolved.axis.labels)
        if Axis(axis.base, stars=axis.stars).has_edges or axis.widest[0] >= axis.base - 1:
            return size
        return max(1, axis.widest[0])

    def shape(self, block: int, fanout: int) -> Shape:
        return Shape(self, Forest(self.resolved.n_positions, block, fanout))


@dataclass(frozen=True, eq=False)
class Shape:
    """A forest for a query under a policy, and the model of its error as a function of the budget."""

    search: Search
    forest: Forest

    @cached_property
    def free(self) -> Bools:
        """The chain's rows that are exact."""
        return self.search.free[self.forest.ends]

    @cached_property
    def crossing(self) -> float:
        """Largest move of the chain's rows alone."""
        kept = np.flatnonzero(~self.free)
        return self.search.move(self.forest.chain_rows(kept, 1)) if len(kept) else 0.0

    @cached_property
    def still(self) -> tuple[bool, ...]:
        """Levels that are exact; none where only the ends of the axis are free, since every level cuts it."""
        if not self.search.is_cut or self.forest.size > 2**16:
            return (False,) * self.forest.height
        return tuple(is_still(pieces, self.search.free) for pieces in self.forest.levels)

    @cached_property
    def moves(self) -> Floats:
        """Shape (1 + levels,): how far an edge moves the rows of each part, at most."""
        tree = [0.0 if still else self.search.tree_move for still in self.still]
        return np.array([self.crossing, *tree])

    @property
    def active(self) -> Bools:
        """The parts that need a budget."""
        return self.moves > 0

    @property
    def is_deep(self) -> bool:
        """Whether there are too many parts to try every subset."""
        return int(self.active.sum()) > FEW_PARTS

    def budget(self, levels: str) -> Floats:
        """Half for the chain, half for the levels: equal shares, or growing by fanout^(1/3) from level to level."""
        grown = [
            self.forest.fanout ** (d / 3) if levels == "geometric" else 1.0 for d in range(self.forest.height)
        ]
        inside = np.where(self.active[1:], np.array(grown), 0.0)
        chain = (inside.sum() or 1.0) if self.active[0] else 0.0
        return _whole(np.array([chain, *inside]))

    def weights(self, budget: Floats) -> tuple[int, tuple[int, ...]]:
        """A budget as integer weights of the rows; a row that is released keeps at least 1."""
        per_row = np.where(self.active, budget / np.where(self.active, self.moves, 1.0), 0.0)
        whole = per_row.sum() or 1.0
        chain, *inside = (max(1, round(v / whole * WEIGHT_TOTAL)) if v > 0 else 0 for v in per_row.tolist())
        if not self.active[0] and not self.forest.height:
            chain = 1
        return chain, tuple(v or 1 for v in inside)

    def error(self, budget: Floats) -> float:
        """Mean squared error of the workload under a budget (shares may add up to something else than 1)."""
        amount, unit = float(self.search.loss.amount), self.search.loss.unit
        told = [
            0.0 if not move else variance_of(unit, move, amount * share) if share > 0 else math.inf
            for move, share in zip(self.moves.tolist(), budget.tolist(), strict=True)
        ]
        if self.search.by_answer:
            return self._each(told)
        size, block, count = self.forest.size, self.forest.block, self.forest.n_blocks
        if count <= LONG_CHAIN:
            return self._mean(self.forest, self.free, told)
        # Far from its ends a chain looks the same everywhere: measure a short one, and what its last block adds.
        last = size - block * (count - 1)
        free = np.append(self.free[: LONG_CHAIN - 1], self.free[-1])
        rest = block * (LONG_CHAIN - 1)
        plain = self._mean(Forest(rest + block, block, self.forest.fanout), free, told)
        if last == block:
            return plain
        ragged = self._mean(Forest(rest + last, block, self.forest.fanout), free, told)
        return (plain * (size - last - rest) + ragged * (rest + last)) / size

    def _mean(self, forest: Forest, free: Bools, told: list[float]) -> float:
        found = posterior(forest, *assumed(np.where(free, 0.0, told[0] or math.inf), told[1:]))
        asked = self.search.resolved.workload
        if isinstance(asked, Cells):
            return found.cells
        return found.all_ranges if isinstance(asked, AllRanges | SomeRanges) else found.prefixes

    def _each(self, told: list[float]) -> float:
        observed, levels = assumed(np.where(self.free, 0.0, told[0] or math.inf), told[1:])
        weights, asked = Weights(self.forest, observed, tuple(levels)), self.search.resolved.workload
        if isinstance(asked, SomeRanges):
            return float(weights.range_variance(asked.lows, asked.highs).mean())
        if isinstance(asked, Rows):
            return float(weights.rows_variance(asked.matrix.astype(np.float64)).mean())
        # Nearly the largest, but smooth, so that every part's effect on it shows.
        found = weights.prefix_variance
        most = float(found.max())
        return most * float(((found / most) ** WORST).sum() ** (1 / WORST)) if most > 0 else 0.0

    def optimal(self, budget: Floats, rounds: int = ROUNDS, chain: float | None = None) -> Floats:
        """Improve a budget: at the optimum each part's share of ε is its share of the error's decrease.

        A multiplicative step towards these shares is repeated, and the best budget seen is kept.

        Args:
            chain: hold the chain's share at this.
        """
        moving = self.active.copy()
        if chain is not None:
            moving[0] = False
        if moving.sum() < 1 + (chain is None):
            return budget
        best, step = self.error(budget), STEP
        for _ in range(rounds):
            if not best > 0:
                break
            falls = np.zeros(len(budget))
            for i in np.flatnonzero(moving):
                nudged = budget.copy()
                nudged[i] *= 1 + NUDGE
                falls[i] = max(1e-9 * NUDGE, best - self.error(nudged))
            ratio = falls[moving] / falls.sum() / (budget[moving] / budget[moving].sum())
            fresh = _within(budget, moving, budget[moving] * np.clip(ratio, 0.05, 20.0) ** step)
            found = self.error(fresh)
            small = found >= best * (1 - SETTLED)
            if found < best:
                best, budget = found, fresh
            if small:
                step /= 2
                if step < 0.1:
                    break
        return budget

    def swept(self, budget: Floats) -> Floats:
        """One pass over the parts: each in turn left out, or given less or more, where that is better."""
        best = self.error(budget)
        for i in np.flatnonzero(self.active):
            chosen = budget
            for factor in FACTORS:
                scaled = np.where(np.arange(len(budget)) == i, factor * budget, budget)[self.active]
                fresh = _within(budget, self.active, scaled)
                found = self.error(fresh)
                if found < best:
                    best, chosen = found, fresh
            budget = chosen
        return budget

    def best_chain(self, budget: Floats) -> Floats:
        """The chain's share of least error, the levels kept in proportion (golden section on its log-odds)."""
        if not (self.active[0] and self.active[1:].any()):
            return budget
        inside = budget[1:] / budget[1:].sum()

        def at(x: float) -> Floats:
            share = 1 / (1 + math.exp(-x))
            return np.append(share, (1 - share) * inside)

        low, high, ratio = -7.0, 7.0, (math.sqrt(5) - 1) / 2
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        fa, fb = self.error(at(a)), self.error(at(b))
        for _ in range(20):
            if fa < fb:
                high, b, fb = b, a, fa
                a = high - ratio * (high - low)
                fa = self.error(at(a))
            else:
                low, a, fa = a, b, fb
                b = low + ratio * (high - low)
                fb = self.error(at(b))
        return min((budget, at((low + high) / 2)), key=self.error)

    def chosen(self, levels: str) -> Floats:
        """The budget that ``levels`` means, where no share is stated."""
        if levels != "optimal":
            return self.best_chain(self.budget(levels))
        starts = self.starts if self.is_deep else self.starts[:2]
        tried = [self.best_chain(self.budget("uniform")), *(self.optimal(b, 3) for b in starts)]
        found = self.optimal(min(tried, key=self.error))
        better = self.swept(found)
        return found if better is found else self.optimal(better)

    @cached_property
    def starts(self) -> list[Floats]:
        """Equal shares for some of the parts, the best first. Optima are sparse (a level left out is a larger fan-out), so
        searches begin at every subset of few parts; of many parts, at every second, third, … level above the cells."""
        parts = [int(p) for p in np.flatnonzero(self.active)]
        if not self.is_deep:
            subsets = [
                [p for k, p in enumerate(parts) if bits >> k & 1] for bits in range(1, 1 << len(parts))
            ]
        else:
            leaves, inner = self._leaves, [p for p in parts if p and p not in self._leaves]
            strides = range(1, min(len(inner) + 2, 5))
            trees = [
                [*inner[first::stride], *leaves] for stride in strides for first in range(min(stride, 2))
            ]
            subsets = [[0, *tree] for tree in trees] + (trees if parts[0] == 0 else [])
        even = _whole(self.active.astype(np.float64))
        budgets = [_within(even, self.active, np.isin(parts, some).astype(np.float64)) for some in subsets]
        return sorted(budgets, key=self.error) or [even]

    @property
    def _leaves(self) -> list[int]:
        """Parts with rows for single cells."""
        forest = self.forest
        widths, found = {forest.block, int(forest.block_widths[-1])}, []
        for level in range(1, forest.height + 1):
            steps = {w: -(-w // forest.fanout) for w in widths if w > 1}
            widths = {v for w, step in steps.items() for v in (step, w - step * ((w - 1) // step))}
            if 1 in widths:
                found.append(level)
        return found


def _within(budget: Floats, moving: Bools, parts: Floats) -> Floats:
    """A budget with other parts, none below the least share, in place of the moving ones; the same in all."""
    fresh, share = budget.copy(), float(budget[moving].sum())
    kept = np.maximum(parts * (share / max(float(parts.sum()), LEAST_SHARE)), LEAST_SHARE)
    fresh[moving] = kept * (share / kept.sum())
    return fresh


def _whole(budget: Floats) -> Floats:
    total = float(budget.sum())
    return budget / total if total > 0 else budget


def variance_of(unit: Unit, move: float, share: float) -> float:
    """Of the noise on rows that move by ``move`` (squared for Gaussian noise) and get a share of the loss; in floating point."""
    if unit == "rho":
        return _gaussian(move / (2 * share))
    return _laplace(move / share)


def _laplace(scale: float) -> float:
    if math.isinf(scale):
        return math.inf
    half = 0.5 / scale
    return 0.0 if half > 300 else 0.5 / math.sinh(half) ** 2


def _gaussian(sigma2: float) -> float:
    if sigma2 > 2:
        return sigma2  # the discrete law's variance differs by less than 1e-14
    terms = [(z, math.exp(-z * z / (2 * sigma2))) for z in range(1, 18)]
    return 2 * sum(z * z * p for z, p in terms) / (1 + 2 * sum(p for _, p in terms))
