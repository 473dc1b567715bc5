"""The one linear mechanism path: integer rows, a noise scale per row, least-squares reconstruction.

A ``Strategy`` observes integer rows of the table of counts, each with discrete Laplace noise of an exact rational scale.
Its privacy cost is max over the policy's edges of Σ_r |A[r, x] − A[r, y]| / scale_r, in exact arithmetic (pure ε; He,
Machanavajjhala, Ding 2014). Scales are set so that this cost is the ε that was asked for, exactly. A row whose cost is 0
(it does not change along any edge) is observed exactly: it is disclosed by the policy already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import noise
from ..axes import Axis, Bools, Ints
from ..errors import Unsupported
from ..graphs import Graph
from ..quotient import label_change, quotient
from ..sensitivity import Move, Sensitivity, describe, largest_move, rows
from ..workload import AllRanges, Cells, Prefixes, Resolved, Rows, SomeRanges
from .estimate import Weights
from .forest import Forest
from .variance import Floats, Posterior, posterior

if TYPE_CHECKING:
    from . import Mechanism

MAX_CELLS = 10**8
LARGEST_SUM = 2**61
COVERAGE = Fraction(95, 100)
# Half-width of the 95 % interval of one Laplace variable in standard deviations, −ln(0.05)/√2; no sum of independent
# Laplace variables needs more (docs/mechanisms.md).
WIDEST = -math.log(0.05) / math.sqrt(2)


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one kind that share a scale.

    Attributes:
        name: "chain", "level 1", …, or "rows".
        layer: the rows, with unit weight.
        weight: share of the budget, an integer; 0 = not released (except rows that are free).
        exact: shape (rows,): rows that no edge changes.
    """

    name: str
    layer: rows.Layer
    weight: int
    exact: Bools

    @property
    def noisy(self) -> rows.Layer | None:
        """The rows that carry noise, weighted; None if there are none."""
        if not self.weight or bool(self.exact.all()):
            return None
        layer = self.layer
        if isinstance(layer, rows.Prefixes):
            if not self.exact.any():
                return rows.Prefixes(layer.size, layer.bounds, self.weight)
            bounds = np.arange(1, layer.size + 1) if layer.bounds is None else layer.bounds
            return rows.Prefixes(layer.size, bounds[~self.exact], self.weight)
        if isinstance(layer, rows.Blocks):
            return rows.Blocks(layer.size, layer.starts, layer.ends, self.weight)
        assert isinstance(layer, rows.Matrix)
        return rows.Matrix(layer.matrix, self.weight)


@dataclass(frozen=True, eq=False)
class Noisy:
    """What a strategy observed: the only thing that reconstruction and post-processing ever see.

    Attributes:
        values: one float array (groups, rows) per part; rows that are not released hold 0.
        total: the number of records, public.
    """

    values: tuple[Floats, ...]
    total: int


@dataclass(frozen=True, eq=False)
class Strategy:
    """A priced mechanism for one query under one policy at one ε.

    Attributes:
        mechanism: the declaration it came from.
        resolved: the query over its domain.
        epsilon: what was asked for.
        forest: the shape along the axis; None for the query's own rows.
        parts: the rows.
        move: the largest weighted move over the policy's edges, an exact integer, with an edge that attains it.
    """

    mechanism: Mechanism
    resolved: Resolved
    epsilon: Fraction
    forest: Forest | None
    parts: tuple[Part, ...]
    move: Move

    @property
    def spent(self) -> Fraction:
        """Exact privacy cost: ε, or 0 if every row is free."""
        return self.epsilon if self.move.value else Fraction(0)

    @property
    def cost(self) -> Sensitivity:
        """The cost in ε with the edge that attains it."""
        found = describe(self.resolved, self.move)
        return Sensitivity(self.spent, found.witness, found.rule)

    def scale(self, part: Part) -> Fraction | None:
        """Noise scale of a part's rows in units of the row; None where it carries no noise."""
        if not self.move.value or part.noisy is None:
            return None
        return Fraction(self.move.value) / (self.epsilon * part.weight)

    def variance(self, part: Part) -> Floats:
        """Shape (rows,): exact variance of the sampler for each row; infinite for rows that are not released."""
        scale = self.scale(part)
        loud = math.inf if scale is None else noise.discrete_laplace_variance(scale)
        return np.where(part.exact, 0.0, loud)

    @property
    def draws(self) -> list[tuple[Fraction, int]]:
        """(scale, number) of every block of noise that a release needs."""
        listed = []
        for part in self.parts:
            scale = self.scale(part)
            if scale is not None:
                listed.append((scale, self.resolved.n_groups * int((~part.exact).sum())))
        return listed

    @property
    def n_exact(self) -> int:
        """Rows per group that are disclosed exactly."""
        return sum(int(p.exact.sum()) for p in self.parts)

    @cached_property
    def weights(self) -> Weights:
        """Data-independent part of the reconstruction (forests only)."""
        assert self.forest is not None
        chain, *levels = self.parts
        return Weights(self.forest, self.variance(chain), tuple(float(self.variance(p)[0]) for p in levels))

    @cached_property
    def posterior(self) -> Posterior:
        """Closed-form covariance structure (forests only)."""
        assert self.forest is not None
        chain, *levels = self.parts
        return posterior(self.forest, self.variance(chain), [float(self.variance(p)[0]) for p in levels])

    def observe(self, table: Ints, total: int, reserve: noise.Reserve) -> Noisy:
        """Exact rows plus noise. The noise was reserved before the table was read.

        Raises:
            Unsupported: a row could exceed 2^61.
        """
        values = []
        for part, true in zip(self.parts, self._apply(table, total), strict=True):
            scale = self.scale(part)
            if scale is None:
                values.append(np.where(part.exact, true, 0).astype(np.float64))
                continue
            noisy = true.copy()
            loud = np.flatnonzero(~part.exact)
            drawn = reserve.laplace(scale, len(table) * len(loud)).reshape(len(table), len(loud))
            noisy[:, loud] += drawn
            # The sampler tells magnitudes apart up to 2^62; clipping below that gives the law of unbounded integers.
            values.append(np.clip(noisy, -LARGEST_SUM, LARGEST_SUM).astype(np.float64))
        return Noisy(tuple(values), total)

    def _apply(self, table: Ints, total: int) -> list[Ints]:
        if self.forest is not None:
            chain, levels = self.forest.apply(table)
            return [chain, *levels]
        found = []
        for part in self.parts:
            assert isinstance(part.layer, rows.Matrix)
            if int(np.abs(part.layer.matrix).max()) * max(total, 1) >= LARGEST_SUM:
                raise Unsupported("the sum could exceed 2^61 in units of its cell; declare coarser values.")
            found.append(table @ part.layer.matrix.T)
        return found

    def answer_variance(self) -> Floats:
        """Variance of every answer of the workload in one group (the same in all groups), in the rows' own unit."""
        asked = self.resolved.workload
        if self.forest is None:
            return np.concatenate([self.variance(p) for p in self.parts])
        if isinstance(asked, Cells):
            return self.weights.cell_variance
        if isinstance(asked, Prefixes | AllRanges):
            return self.weights.prefix_variance[1:]
        if isinstance(asked, SomeRanges):
            return self.weights.range_variance(asked.lows, asked.highs)
        return self.weights.rows_variance(asked.matrix.astype(np.float64))

    @cached_property
    def expected_error(self) -> float:
        """Mean squared error of an answer: exact for the linear estimate, in the square of the answer's unit.

        For quantiles, which have no data-free error, that of the worst prefix count; for means, that of the total.
        """
        asked = self.resolved.workload
        if self.forest is None or isinstance(asked, Rows | SomeRanges):
            found = self.answer_variance()
            if self.resolved.query.word == "mean":
                found = found[:1]
            scale = asked.denominator if isinstance(asked, Rows) else 1
            return float(found.mean()) / scale**2
        if self.resolved.query.word == "quantiles":
            return float(self.weights.prefix_variance.max())
        if isinstance(asked, Cells):
            return self.posterior.cells
        return self.posterior.all_ranges if isinstance(asked, AllRanges) else self.posterior.prefixes

    @property
    def half_width(self) -> float:
        """95 % half-width of an answer whose mean squared error is ``expected_error``, in the answer's unit."""
        asked = self.resolved.workload
        scale = asked.denominator if isinstance(asked, Rows) else 1
        return float(self.half_widths(np.array([self.expected_error * scale**2]))[0]) / scale

    def half_widths(self, variance: Floats) -> Floats:
        """95 % half-widths for answers of given variances, in the rows' own unit (whole numbers).

        Exact quantile where every answer carries one draw of noise; otherwise the bound ``WIDEST``·σ, rounded up.
        """
        single = self.single_scale
        wide = np.ceil(WIDEST * np.sqrt(variance) - 1e-9)
        if single is not None:
            told = noise.discrete_laplace_variance(single)
            exact = float(noise.discrete_laplace_quantile(single, COVERAGE))
            wide = np.where(np.isclose(variance, told, rtol=1e-9), exact, wide)
        return np.where(np.isinf(variance), np.inf, wide)

    @property
    def single_scale(self) -> Fraction | None:
        """The one noise scale of all answers, where each answer is one noisy row."""
        loud = [p for p in self.parts if self.scale(p) is not None]
        if len(loud) != 1:
            return None
        own_rows = self.forest is None
        prefixes = (
            self.forest is not None
            and self.forest.block == 1
            and isinstance(self.resolved.workload, Prefixes)
        )
        return self.scale(loud[0]) if own_rows or prefixes else None


def build(
    mechanism: Mechanism,
    resolved: Resolved,
    graph: Graph,
    epsilon: Fraction,
    forest: Forest,
    chain_weight: int,
    level_weights: tuple[int, ...],
) -> Strategy:
    """Price a forest with integer budget weights: scales spend ε exactly, free rows are exact.

    Args:
        graph: the policy's graph.
        chain_weight, level_weights: relative budget of each row of the chain and of each level.
    """
    if resolved.n_groups * resolved.n_positions > MAX_CELLS:
        raise Unsupported("more than 10^8 cells would have to be published; use coarser bins.")
    free = free_bounds(resolved, graph)
    parts = [Part("chain", forest.chain_rows(np.arange(forest.n_blocks), 1), chain_weight, free[forest.ends])]
    for level, pieces in enumerate(forest.levels):
        # A level is free if no edge crosses the end of any of its pieces.
        still = bool(free[pieces.starts].all() and free[pieces.starts + pieces.widths].all())
        exact = np.full(len(pieces.starts), still)
        parts.append(Part(f"level {level + 1}", forest.level_rows(level, 1), level_weights[level], exact))
    return _priced(mechanism, resolved, graph, epsilon, forest, parts)


def build_rows(
    mechanism: Mechanism, resolved: Resolved, graph: Graph, epsilon: Fraction, weights: tuple[int, ...]
) -> Strategy:
    """Price the query's own rows: one weight for all of them, or one for each."""
    asked = resolved.workload
    assert isinstance(asked, Rows)
    split = [asked.matrix] if len(weights) == 1 else [row[None, :] for row in asked.matrix]
    parts = []
    for matrix, weight in zip(split, weights, strict=True):
        layer = rows.Matrix(matrix)
        still = largest_move(resolved, graph, (layer,)).value == 0
        parts.append(Part("rows", layer, weight, np.full(len(matrix), still)))
    return _priced(mechanism, resolved, graph, epsilon, None, parts)


def _priced(
    mechanism: Mechanism,
    resolved: Resolved,
    graph: Graph,
    epsilon: Fraction,
    forest: Forest | None,
    parts: list[Part],
) -> Strategy:
    loud = tuple(layer for p in parts if (layer := p.noisy) is not None)
    move = largest_move(resolved, graph, loud) if loud else Move(0, None)
    return Strategy(mechanism, resolved, epsilon, forest, tuple(parts), move)


def free_bounds(resolved: Resolved, graph: Graph) -> Bools:
    """Shape (P + 1,): prefix rows "position < bound" that no edge of the policy changes."""
    size = resolved.n_positions
    small = graph.project(resolved.domain.names)
    touched = np.zeros(size + 2, dtype=np.int64)  # difference array over bounds
    if small.kind == "flat":
        for a, b in small.edges():
            (ga, pa), (gb, pb) = resolved.place(a), resolved.place(b)
            x, y = np.where(ga < 0, size, pa), np.where(gb < 0, size, pb)
            apart = (ga != gb) & (ga >= 0) & (gb >= 0)
            _cross(touched, np.minimum(x, y), np.where(apart, size, np.maximum(x, y)))
    else:
        axis = Axis(1)
        if resolved.axis is not None:
            axis = quotient(small.axis(resolved.axis.name), resolved.axis.labels)
        movers = [(g.name, g.labels) for g in resolved.groups]
        movers += [(n, np.where(kept, 0, -1).astype(np.int64)) for n, kept in resolved.filters]
        if any(label_change(small.axis(n), labels)[0] for n, labels in movers):
            _cross(touched, np.array([0]), np.array([size]))
        if axis.is_interval:
            _cross(touched, axis.first, np.arange(axis.base, dtype=np.int64))
        else:
            ends = axis.all_edges()
            _cross(touched, ends[:, 0], ends[:, 1])
        for star in range(len(axis.stars)):
            partners = np.flatnonzero(axis.star_mask(star)).astype(np.int64)
            cell = np.full(len(partners), axis.base + star, dtype=np.int64)
            _cross(touched, np.minimum(partners, cell), np.maximum(partners, cell))
    return np.asarray(np.cumsum(touched)[: size + 1] == 0, dtype=bool)


def _cross(touched: Ints, low: Ints, high: Ints) -> None:
    """Mark the bounds low + 1 … high, which hold ``low`` but not ``high``."""
    kept = low < high
    np.add.at(touched, low[kept] + 1, 1)
    np.add.at(touched, high[kept] + 1, -1)
