"""The one linear mechanism path: integer rows, a noise scale per row, least-squares reconstruction.

A ``Strategy`` observes integer rows of the table of counts, each with discrete Laplace noise of an exact rational scale s_r, or
discrete Gaussian noise of an exact rational σ_r². Its privacy cost is computed in exact arithmetic: the largest
Σ_r |Δ_r| / s_r (pure ε), or Σ_r Δ_r² / (2σ_r²) (ρ, zero-concentrated), between neighbouring tables (``sensitivity``). Scales are
set so that this cost is what was asked for, exactly. A row whose cost is 0 is observed exactly: it is disclosed by the
policy already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import noise
from ..axes import Ints
from ..errors import Unsupported
from ..loss import Loss
from ..sensitivity import Move, Neighbourhood, Sensitivity, Term, rows
from ..workload import AllRanges, Cells, Prefixes, Resolved, Rows, SomeRanges
from . import charged
from .blocks import DisclosedBlocks, disclosed_blocks
from .charged import LARGEST_SUM as LARGEST_SUM
from .coverage import COVERAGE as COVERAGE
from .coverage import JUMP as JUMP
from .coverage import NORMAL as NORMAL
from .coverage import WIDEST as WIDEST
from .coverage import jump, widest
from .dense import DenseWeights
from .estimate import Weights
from .forest import Forest
from .parts import Noisy, Part, dense
from .project import EqualCells, Projection, facts, projection, sums_of
from .variance import Floats, Posterior, posterior

if TYPE_CHECKING:
    from ..domain import Domain
    from ..queries import Query
    from ..table import Counts
    from . import Mechanism

MAX_CELLS = 10**8
LEAST_VARIANCE = 1e-100
# Least variance of a noisy row of a tree in the reconstruction, absolute and as a share of the largest, lest least squares
# lose its digits. A larger one than the true one only overstates errors, by less than this.
QUIET, UNEVEN = 1e-6, 2e-11
# Share of a variance below which public counts have settled the answer.
SETTLED = 1e-9


@dataclass(frozen=True, eq=False)
class Strategy:
    """A priced mechanism for one query under one policy at one loss.

    Attributes:
        mechanism: the declaration it came from.
        resolved: the query over its domain.
        hood: what neighbouring tables are.
        loss: what was asked for.
        forest: the shape along the axis; None for the query's own rows.
        parts: the rows.
        move: the largest weighted move between neighbours (of squares, for Gaussian noise), exact or a proved bound.
    """

    mechanism: Mechanism
    resolved: Resolved
    hood: Neighbourhood
    loss: Loss
    forest: Forest | None
    parts: tuple[Part, ...]
    move: Move

    @property
    def query(self) -> Query:
        return self.resolved.query

    @property
    def domain(self) -> Domain:
        """Of the attributes that are counted."""
        return self.resolved.domain

    def tabulate(self, counts: Counts) -> Ints:
        """The table of counts, shape (groups, positions)."""
        return self.resolved.tabulate(counts)

    @property
    def is_gaussian(self) -> bool:
        return self.loss.is_gaussian

    @property
    def spent(self) -> Loss:
        """Exact privacy cost: what was asked for, or nothing if every row is free."""
        return charged.spent(self.loss, self.move)

    @property
    def cost(self) -> Sensitivity:
        """The cost in ε or ρ with the edge that attains it."""
        return charged.cost(self.loss, self.move)

    def scale(self, part: Part) -> Fraction | None:
        """Scale s of a part's Laplace noise, or σ² of its Gaussian noise, for the row as it is; None without noise."""
        if not self.move.value or part.noisy is None:
            return None
        return charged.scale(self.loss, self.move.value, part.weight)

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is observed with noise, so that the largest move of the terms is the loss (``sensitivity.stacked``)."""
        layers = tuple(layer for p in self.parts if (layer := p.noisy) is not None)
        if not self.move.value or not layers:
            return ()
        return (Term(self.resolved, layers, self.loss.amount / Fraction(self.move.value)),)

    @property
    def exact_terms(self) -> tuple[Term, ...]:
        """What is observed exactly."""
        layers = tuple(layer for p in self.parts if (layer := p.quiet) is not None)
        told = [Term(self.resolved, layers)] if layers else []
        return tuple(told) if self.blocks is None else (*told, Term(self.resolved, (self.blocks.layer,)))

    @cached_property
    def blocks(self) -> DisclosedBlocks | None:
        """Totals over several groups that the policy discloses; none are of use to the query's own rows."""
        if self.is_direct or not self.move.value:
            return None
        found = disclosed_blocks(self.resolved, self.hood)
        return found if found is not None and (self._has_equal_cells or found.is_small) else None

    @property
    def _has_equal_cells(self) -> bool:
        """Whether cells, and nothing else, are observed, all alike."""
        chain, *levels = self.parts
        alone = not chain.weight and not chain.exact.any() and len(levels) == 1
        return alone and self.forest is not None and self.forest.fanout >= self.forest.size

    def noise_variance(self, scale: Fraction) -> float:
        """Exact variance of one draw."""
        return charged.variance(self.loss, scale)

    def noise_quantile(self, scale: Fraction, coverage: Fraction) -> float:
        """The least t with P(|Z| > t) ≤ 1 − coverage for one draw."""
        return charged.quantile(self.loss, scale, coverage)

    def variance(self, part: Part) -> Floats:
        """Shape (rows,): exact variance of the sampler for each row; infinite for rows that are not released."""
        scale = self.scale(part)
        # A noisy row never counts as exact, however small its noise.
        loud = math.inf if scale is None else max(self.noise_variance(scale), LEAST_VARIANCE)
        return np.where(part.exact, 0.0, loud)

    @property
    def draws(self) -> list[tuple[Fraction, int]]:
        """(scale or σ², number) of every block of noise that a release needs."""
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

    @property
    def is_direct(self) -> bool:
        """Whether the query's own rows are observed: nothing is reconstructed."""
        return self.forest is None and self.parts[0].name != "chain"

    @property
    def bounds(self) -> Ints:
        """The bounds of the prefix sums in ``parts[0]``."""
        if self.forest is not None:
            return self.forest.ends
        told = self.parts[0].layer
        assert isinstance(told, rows.Prefixes) and told.bounds is not None
        return told.bounds

    @cached_property
    def _assumed(self) -> tuple[Floats, list[float]]:
        chain, *levels = self.parts
        found = [float(self.variance(p)[0]) for p in levels]
        return assumed(self.variance(chain), found)

    @cached_property
    def weights(self) -> Weights | DenseWeights:
        """Data-independent part of the reconstruction."""
        if self.forest is None:
            told = [dense(p.layer) for p in self.parts]
            return DenseWeights(np.concatenate(told), np.concatenate([self.variance(p) for p in self.parts]))
        observed, levels = self._assumed
        return Weights(self.forest, observed, tuple(levels))

    @cached_property
    def posterior(self) -> Posterior:
        """Closed-form covariance structure (forests only)."""
        assert self.forest is not None
        return posterior(self.forest, *self._assumed)

    def admit(self, total: int) -> None:
        """Whether rows over up to ``total`` records, a public number, stay exact in 64 bits with their noise; asked before charging.

        Raises:
            Unsupported: a row could exceed 2^61.
        """
        largest = 1
        if self.forest is None:
            largest = max(int(np.abs(dense(p.layer)).max(initial=0)) for p in self.parts)
        if largest * max(total, 1) >= LARGEST_SUM:
            raise Unsupported(
                f"{self.resolved.query.word}: an answer could exceed 2^61 in units of its cell; declare coarser values."
            )

    def observe(self, table: Ints, total: int | None, reserve: noise.Reserve) -> Noisy:
        """Exact rows plus noise. The noise was reserved before the table was read.

        Args:
            total: the number of records, where it is public.

        Raises:
            Unsupported: a row could exceed 2^61.
        """
        if total is not None:
            self.admit(total)
        values = []
        for part, true in zip(self.parts, self._apply(table), strict=True):
            scale = self.scale(part)
            if scale is None:
                values.append(np.where(part.exact, true, 0).astype(np.float64))
                continue
            noisy = true.copy()
            loud = np.flatnonzero(~part.exact)
            noisy[:, loud] = charged.added(true[:, loud], reserve, self.loss, scale)
            values.append(noisy.astype(np.float64))
        held = self.blocks
        return Noisy(tuple(values), total, None if held is None else held.totals(table).astype(np.float64))

    def estimate(self, noisy: Noisy) -> Floats:
        """Consistent cells, shape (groups, positions), by least squares."""
        if isinstance(self.weights, DenseWeights):
            return self.weights.estimate(np.concatenate(noisy.values, axis=1))
        return self.weights.estimate(noisy.values[0], noisy.values[1:])

    def _apply(self, table: Ints) -> list[Ints]:
        """The exact value of every row, int64, shape (groups, rows) per part."""
        if self.forest is not None:
            chain, levels = self.forest.apply(table)
            return [chain, *levels]
        return [table @ dense(p.layer).T for p in self.parts]

    @cached_property
    def projection(self) -> Projection | EqualCells | None:
        """What public counts and disclosed blocks add to the estimate; nothing to the query's own rows."""
        if self.is_direct:
            return None
        if self.blocks is not None and self._has_equal_cells:
            shape = (self.resolved.n_groups, self.resolved.n_positions)
            variance = float(self.variance(self.parts[1])[0])
            return EqualCells(sums_of(self.blocks.labels), self.blocks.labels.reshape(shape), variance)
        told = facts(self.resolved, self.hood) if self.blocks is None else sums_of(self.blocks.labels)
        return projection(told, self.resolved, self.weights)

    def stated(self, noisy: Noisy) -> Floats:
        """Shape (facts,): what the sums of the projection's facts are known to be."""
        if noisy.blocks is not None:
            return noisy.blocks
        assert self.projection is not None and noisy.total is not None
        return np.array(
            [(f.constant or 0) + f.records * noisy.total for f in self.projection.facts], dtype=np.float64
        )

    def prefix_variance(self) -> Floats:
        """Shape (P + 1,), or (groups, P + 1) where public counts tell groups apart: variance of each prefix sum."""
        found = self.weights.prefix_variance
        return found if self.projection is None else _less(found, self.projection.prefixes())

    def range_variance(self, lows: Ints, highs: Ints) -> Floats:
        """Shape (ranges,), or (groups, ranges): variance of the count of positions low … high − 1."""
        found = self.weights.range_variance(lows, highs)
        return found if self.projection is None else _less(found, self.projection.ranges(lows, highs))

    def answer_variance(self) -> Floats:
        """Shape (answers,), or (groups, answers): variance of every answer of the workload, in the rows' own unit."""
        asked, known = self.resolved.workload, self.projection
        if self.is_direct:
            return np.concatenate([self.variance(p) for p in self.parts])
        if isinstance(asked, Cells):
            found = self.weights.cell_variance
            return found if known is None else _less(found, known.cells())
        if isinstance(asked, Prefixes | AllRanges):
            return self.prefix_variance()[..., 1:]
        if isinstance(asked, SomeRanges):
            return self.range_variance(asked.lows, asked.highs)
        matrix = asked.matrix.astype(np.float64)
        found = self.weights.rows_variance(matrix)
        return found if known is None else _less(found, known.rows_of(matrix))

    @cached_property
    def expected_error(self) -> float:
        """Mean squared error of an answer: exact for the linear estimate, in the square of the answer's unit.

        For quantiles, which have no data-free error, that of the worst prefix count; for means, that of the total.
        """
        asked, known = self.resolved.workload, self.projection
        if self.is_direct or isinstance(asked, Rows | SomeRanges):
            found = self.answer_variance()
            if self.resolved.query.word == "mean":
                found = found[:1]
            scale = asked.denominator if isinstance(asked, Rows) else 1
            return float(found.mean()) / scale**2
        if self.resolved.query.word == "quantiles":
            return float(self.prefix_variance().max())
        if isinstance(self.weights, DenseWeights) and isinstance(asked, AllRanges):
            return self.weights.all_ranges - (known.all_ranges() if known else 0.0)
        if isinstance(self.weights, DenseWeights):
            return float(self.answer_variance().mean())
        if isinstance(asked, Cells):
            return self.posterior.cells - (float(known.cells().mean()) if known else 0.0)
        if isinstance(asked, AllRanges):
            return self.posterior.all_ranges - (known.all_ranges() if known else 0.0)
        return self.posterior.prefixes - (float(known.prefixes()[:, 1:].mean()) if known else 0.0)

    @property
    def half_width(self) -> float:
        """95 % half-width of an answer whose mean squared error is ``expected_error``, in the answer's unit."""
        asked = self.resolved.workload
        scale = asked.denominator if isinstance(asked, Rows) else 1
        jumps = self.jumps[:1] if self.resolved.query.word == "mean" else self.jumps.mean(keepdims=True)
        return float(self.half_widths(np.array([self.expected_error * scale**2]), jumps)[0]) / scale

    @property
    def jumps(self) -> Floats:
        """Shape (answers,), or (1,) for all: weight of one draw of noise in an answer, at most; 0 where it is at most 1."""
        asked = self.resolved.workload
        if self.is_direct or not isinstance(asked, Rows):
            return np.zeros(1)
        # A record that changes position, or counts nowhere, moves the answer by no more than this.
        matrix = asked.matrix
        span = np.maximum(matrix.max(axis=1), 0) - np.minimum(matrix.min(axis=1), 0)
        return np.where(span > 1, span, 0).astype(np.float64)

    def half_widths(
        self, variance: Floats, jumps: Floats | float = 0.0, coverage: Fraction = COVERAGE
    ) -> Floats:
        """Half-widths (95 % if not told otherwise) for answers of given variances, in the rows' own unit (whole numbers).

        Exact quantile where every answer carries one draw of noise; otherwise ``widest``·σ + ``jump``·jumps, rounded up
        (``coverage``).

        Args:
            variance: shape (answers,).
            jumps: weight of one draw in each answer where that may exceed 1.
        """
        single = self.single_scale
        factor, beyond = widest(coverage, self.is_gaussian), jump(coverage, self.is_gaussian)
        wide = np.ceil(factor * np.sqrt(variance) + np.where(variance > 0, beyond * jumps, 0.0) - 1e-9) + 0.0
        if single is not None:
            told, exact = self.noise_variance(single), self.noise_quantile(single, coverage)
            wide = np.where(np.isclose(variance, told, rtol=1e-9), exact, wide)
        return np.where(np.isinf(variance), np.inf, wide)

    @property
    def single_scale(self) -> Fraction | None:
        """The one noise scale of all answers, where each answer is one noisy row."""
        loud = [p for p in self.parts if self.scale(p) is not None]
        if len(loud) != 1 or self.projection is not None:
            return None
        own_rows = self.is_direct
        prefixes = (
            self.forest is not None
            and self.forest.block == 1
            and isinstance(self.resolved.workload, Prefixes)
        )
        return self.scale(loud[0]) if own_rows or prefixes else None


def _less(variance: Floats, fall: Floats) -> Floats:
    """Variances after public counts are put in; what is left of rounding counts as none."""
    left = variance - fall
    return np.where(left > variance * SETTLED, left, 0.0)


def assumed(chain: Floats, levels: list[float]) -> tuple[Floats, list[float]]:
    """Variances of the chain's rows and of each level, as the reconstruction takes them (0 exact, infinite absent)."""
    if not levels:
        return chain, levels
    loud = [v for v in (*chain.tolist(), *levels) if 0 < v < math.inf]
    floor = max(QUIET, UNEVEN * max(loud, default=0.0))

    return np.where(chain > 0, np.maximum(chain, floor), 0.0), [
        max(v, floor) if v > 0 else 0.0 for v in levels
    ]
