"""From noisy rows to published answers. Everything here sees noisy values only: its inputs are a ``Noisy`` and a strategy.

Values are least-squares estimates, then made possible: prefix sums non-decreasing (isotonic regression weighted by
1/variance) and within [0, n], cells non-negative. Intervals are those of the linear estimate, cut to the possible range
and widened where they would miss the published value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .axes import Ints
from .mechanisms.coverage import COVERAGE
from .mechanisms.parts import Noisy
from .mechanisms.project import EqualCells, Projection
from .mechanisms.strategy import Strategy
from .mechanisms.variance import Floats
from .workload import AllRanges, Cells, Prefixes, Rows, SomeRanges

if TYPE_CHECKING:
    from .clustering.released import Way
    from .marginals.strategy import MarginalStrategy


# Half-widths, or ends, of all answers for a coverage.
Halves = Callable[[Fraction], Floats]
Ends = Callable[[Fraction], tuple[Floats, Floats]]
ROUNDS = 50
NEAR = 1e-6
FEW = 3.0


@dataclass(frozen=True, eq=False)
class Answers:
    """Published numbers for every group.

    Attributes:
        values, lower, upper: shape (groups, answers).
        prefix: shape (groups, P + 1): non-decreasing prefix sums, for queries along an ordered axis; else None.
        raw_prefix: the same before they were made possible (linear, unbiased).
        estimate: shape (groups, answers): the linear estimates of ``values``, where they are sums of records.
        span: what such a sum lies in.
        ends: lower and upper ends for another coverage, from public widths.
    """

    values: Floats
    lower: Floats
    upper: Floats
    prefix: Floats | None = None
    raw_prefix: Floats | None = None
    estimate: Floats | None = None
    span: tuple[float, float] = (-np.inf, np.inf)
    ends: Ends | None = None

    def at(self, coverage: Fraction) -> Answers:
        """The same values with intervals of another coverage."""
        if coverage == COVERAGE:
            return self
        assert self.ends is not None
        lower, upper = self.ends(coverage)
        return replace(self, lower=lower, upper=upper)

    def times(self, factor: float) -> Answers:
        """The same numbers in another unit."""
        prefix, raw, estimate = (
            None if p is None else p * factor for p in (self.prefix, self.raw_prefix, self.estimate)
        )
        low, high = self.span
        return replace(
            self, values=self.values * factor, lower=self.lower * factor, upper=self.upper * factor,
            prefix=prefix, raw_prefix=raw, estimate=estimate, span=(low * factor, high * factor), ends=self._scaled(factor),
        )  # fmt: skip

    def _scaled(self, factor: float) -> Ends | None:
        ends = self.ends
        if ends is None:
            return None

        def scaled(coverage: Fraction) -> tuple[Floats, Floats]:
            lower, upper = ends(coverage)
            return lower * factor, upper * factor

        return scaled


def answers(strategy: Strategy | MarginalStrategy | Way, noisy: Noisy) -> Answers:
    """Answers of the strategy's query with 95 % intervals."""
    if not isinstance(strategy, Strategy):
        from .clustering.released import Way
        from .marginals.answers import table_answers

        return strategy.finish(noisy) if isinstance(strategy, Way) else table_answers(strategy, noisy)
    if strategy.is_direct:
        return _rows(strategy, noisy)
    chain = noisy.values[0]
    cells = strategy.estimate(noisy)
    known = strategy.projection
    if known is not None:
        cells = np.diff(known.applied(_summed(cells), strategy.stated(noisy)), axis=1)
    asked, total = strategy.resolved.workload, noisy.most
    if isinstance(asked, Rows):
        linear = cells @ asked.matrix.T.astype(np.float64) / asked.denominator
        low, high = _possible(strategy, noisy)
        halves = halves_of(strategy, linear, strategy.answer_variance(), strategy.jumps)
        return around(np.clip(linear, low, high), linear, halves, low, high)
    asked_variance = strategy.answer_variance()
    if isinstance(asked, Cells) and not _in_order(strategy):
        clipped = np.clip(cells, 0.0, total)
        if strategy.hood.classes is not None or known is not None:
            clipped = np.minimum(possible_cells(cells, _public_sums(strategy, chain, noisy)), total)
        return around(clipped, cells, halves_of(strategy, cells, asked_variance), 0.0, total)
    raw = _summed(cells)
    exact = strategy.parts[0].exact
    raw[:, strategy.bounds[exact]] = chain[:, exact]  # without the rounding of the sums
    variance = strategy.prefix_variance()
    raw = np.where(variance == 0, np.rint(raw), raw)  # exact counts, without what adding up cells rounded
    prefix = possible_prefixes(raw, variance, total)
    if known is not None:
        prefix = _agreeing(prefix, known, variance, strategy.stated(noisy), total)
    if isinstance(asked, Cells):
        return around(
            np.diff(prefix, axis=1),
            cells,
            halves_of(strategy, cells, asked_variance),
            0.0,
            total,
            prefix,
            raw,
        )
    if isinstance(asked, SomeRanges):
        told, linear = (p[:, asked.highs] - p[:, asked.lows] for p in (prefix, raw))
        return around(told, linear, halves_of(strategy, linear, asked_variance), 0.0, total, prefix, raw)
    assert isinstance(asked, Prefixes | AllRanges)
    return around(
        prefix[:, 1:], raw[:, 1:], halves_of(strategy, raw[:, 1:], asked_variance), 0.0, total, prefix, raw
    )


def halves_of(strategy: Strategy, linear: Floats, variance: Floats, jumps: Floats | float = 0.0) -> Halves:
    """Half-widths of linear estimates of the query's answers, or of sums of them.

    Args:
        variance: of each, in the rows' own unit.
        jumps: as ``Strategy.half_widths`` takes them.
    """
    asked = strategy.resolved.workload

    def halves(coverage: Fraction) -> Floats:
        half = strategy.half_widths(variance, jumps, coverage)
        if not isinstance(asked, Rows):
            return outward(linear, half)
        if coverage > COVERAGE:  # rarer than what faint draws add to an interval of one or two units
            half = outward(linear * asked.denominator, half)
        return half / asked.denominator

    return halves


def _agreeing(
    prefix: Floats, known: Projection | EqualCells, variance: Floats, stated: Floats, total: float
) -> Floats:
    """Possible prefix sums that agree with the public counts, as nearly as turns of both steps bring them."""
    for _ in range(ROUNDS):
        fresh = possible_prefixes(known.applied(prefix, stated), variance, total)
        moved, prefix = float(np.abs(fresh - prefix).max()), fresh
        if moved < NEAR:
            break
    return prefix


def _summed(cells: Floats) -> Floats:
    """Shape (groups, P + 1): prefix sums."""
    return np.concatenate([np.zeros((len(cells), 1)), np.cumsum(cells, axis=1)], axis=1)


def _in_order(strategy: Strategy) -> bool:
    """Whether prefix sums are what was observed: clamping cells alone would then ignore their correlation."""
    if strategy.resolved.n_positions == 1:
        return False
    return strategy.forest is None or strategy.forest.height != 1 or strategy.forest.n_blocks > 1


def around(
    values: Floats, linear: Floats, halves: Halves, low: float, high: float,
    prefix: Floats | None = None, raw: Floats | None = None,
) -> Answers:  # fmt: skip
    """Values with the intervals of their linear estimates, cut to [low, high] and widened to hold the values."""

    def ends(coverage: Fraction) -> tuple[Floats, Floats]:
        lower, upper = cut_at(linear, halves, low, high, coverage)
        return np.minimum(lower, values), np.maximum(upper, values)

    lower, upper = ends(COVERAGE)
    return Answers(values, lower, upper, prefix, raw, linear, (low, high), ends)


def cut_at(
    linear: Floats, halves: Halves, low: float, high: float, coverage: Fraction
) -> tuple[Floats, Floats]:
    """Intervals of linear estimates cut to [low, high]."""
    lower, upper, astray = cut(linear, halves(coverage), low, high)
    if coverage < COVERAGE and astray.any():
        # A narrow interval often misses what is possible; a wider one may still tell something.
        wider = cut(linear, halves(COVERAGE), low, high)
        lower, upper = np.where(astray, wider[0], lower), np.where(astray, wider[1], upper)
    return lower, upper


def cut(linear: Floats, half: Floats, low: float, high: float) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Intervals of linear estimates cut to [low, high], and which of them miss everything possible, so that they say nothing."""
    least, most = linear - half, linear + half
    astray = (most < low) | (least > high)
    lower = np.where(astray, low, np.clip(least, low, high))
    # Without a known end the width of the interval is what is left to say.
    upper = np.where(astray, high if np.isfinite(high) else half, np.clip(most, low, high))
    return lower, upper, astray


def outward(linear: Floats, half: Floats) -> Floats:
    """Half-widths of counts: those of a few records are widened to whole ends, since the truth is whole and an interval of
    one or two counts would be overrun by the fraction that faint draws add."""
    whole = np.maximum(np.ceil(linear + half) - linear, linear - np.floor(linear - half))
    return np.where((half > 0) & (half <= FEW), whole, half)


def _public_sums(strategy: Strategy, chain: Floats, noisy: Noisy) -> list[tuple[Ints, float]]:
    """Sets of places whose sum is known: what public counts say, and what was observed exactly."""
    size = strategy.resolved.n_positions
    found: list[tuple[Ints, float]] = []
    if strategy.projection is not None:
        facts = strategy.projection.facts
        found += [(f.places, float(s)) for f, s in zip(facts, strategy.stated(noisy), strict=True)]
    exact = np.flatnonzero(strategy.parts[0].exact)
    ends = np.concatenate([[0], strategy.bounds[exact]])
    for group, row in enumerate(np.diff(chain[:, exact], axis=1, prepend=0.0)):
        found += [
            (np.arange(a, b, dtype=np.int64) + group * size, float(s))
            for a, b, s in zip(ends[:-1], ends[1:], row, strict=True)
        ]
    return found


def possible_cells(cells: Floats, sums: list[tuple[Ints, float]]) -> Floats:
    """Non-negative cells, near the linear estimates, with the known sums of sets of places.

    Sets are projected on one after the other, each exactly: of sets that do not overlap all sums are kept, of others nearly.

    >>> possible_cells(np.array([[3.0, -1.0, 2.0]]), [(np.array([0, 1]), 2.0)]).tolist()
    [[2.0, 0.0, 2.0]]
    """
    fitted = cells.ravel().copy()
    taken = np.zeros(len(fitted), dtype=np.int64)
    for places, _ in sums:
        taken[places] += 1
    for _ in range(ROUNDS if (taken > 1).any() else 1):
        for places, total in sums:
            fitted[places] = _on_simplex(fitted[places], total)
    return np.maximum(fitted, 0.0).reshape(cells.shape)


def _on_simplex(values: Floats, total: float) -> Floats:
    """The nearest non-negative numbers of a given sum: max(v − t, 0) for the right t."""
    if total <= 0:
        return np.zeros_like(values)
    falling = np.sort(values)[::-1]
    shift = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > shift)[-1]) if (falling > shift).any() else 0
    nearest: Floats = np.maximum(values - shift[last], 0.0)
    return nearest


def possible_prefixes(raw: Floats, variance: Floats, total: float) -> Floats:
    """Non-decreasing prefix sums within [0, total] that keep the exact ones.

    Args:
        raw: shape (groups, P + 1), linear estimates; entries of variance 0 are exact.
        variance: shape (P + 1,), or (groups, P + 1).

    The weighted projection on non-decreasing vectors inside every run between exact entries, then a clip to these. Both move
    the vector towards a convex set that holds the truth, so neither raises the total weighted squared error. (Clipping first
    would bias the averages of what lies near 0 or near all records.)
    """
    from scipy.optimize import isotonic_regression

    variance = np.broadcast_to(variance, raw.shape)
    exact = variance <= 0
    low = np.maximum.accumulate(np.where(exact, raw, 0.0), axis=1)
    high = np.minimum.accumulate(np.where(exact, raw, total)[:, ::-1], axis=1)[:, ::-1]
    low, high = np.maximum(low, 0.0), np.minimum(high, total)
    fitted = raw.copy()
    loud = ~exact & np.isfinite(variance)
    scale = float(variance[loud].min()) if loud.any() else 1.0
    weights = np.where(exact, 1.0, scale / np.where(exact, 1.0, variance))
    for group, fixed in enumerate(exact):
        # A step between runs that is larger than any spread: no pool crosses an exact entry.
        run = np.cumsum(fixed) + np.cumsum(np.concatenate([[False], fixed[:-1]]))
        spread = np.where(fixed, 0.0, raw[group] - low[group])
        lift = (float(spread.max()) - float(spread.min()) + 1.0) * run
        pooled = isotonic_regression(spread + lift, weights=np.maximum(weights[group], 1e-12)).x - lift
        kept = np.clip(pooled + low[group], low[group], high[group])
        fitted[group] = np.where(fixed, raw[group], kept)
    return fitted


def _possible(strategy: Strategy, noisy: Noisy) -> tuple[float, float]:
    """Range in which a total can lie, from the declared bounds and the number of records."""
    asked = strategy.resolved.workload
    assert isinstance(asked, Rows)
    if strategy.resolved.query.word != "sum":
        return -np.inf, np.inf
    values = asked.matrix[0] / asked.denominator
    least, most = float(values.min()), float(values.max())
    return least * noisy.most if least < 0 else 0.0, most * noisy.most if most > 0 else 0.0


def _rows(strategy: Strategy, noisy: Noisy) -> Answers:
    asked = strategy.resolved.workload
    assert isinstance(asked, Rows)
    if strategy.resolved.query.word == "mean":
        return _means(strategy, noisy)
    linear = np.concatenate(noisy.values, axis=1) / asked.denominator
    low, high = _possible(strategy, noisy)
    halves = halves_of(strategy, linear, strategy.answer_variance())
    return around(np.clip(linear, low, high), linear, halves, low, high)


def _means(strategy: Strategy, noisy: Noisy) -> Answers:
    """Total over count. With a noisy count the interval is the box of two 97.5 % intervals (Bonferroni; likewise for other
    coverages)."""
    asked = strategy.resolved.workload
    assert isinstance(asked, Rows)
    sums, counts = noisy.values
    ordinary = asked.matrix[0][asked.matrix[1] > 0] / asked.denominator
    least, most = float(ordinary.min()), float(ordinary.max())
    scales = [strategy.scale(p) for p in strategy.parts]
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.clip(sums / asked.denominator / np.maximum(counts, 1.0), least, most)

    def ends(coverage: Fraction) -> tuple[Floats, Floats]:
        each = coverage if scales[1] is None else (1 + coverage) / 2
        wide = [0.0 if s is None else strategy.noise_quantile(s, each) for s in scales]
        with np.errstate(divide="ignore", invalid="ignore"):
            corners = [
                (sums + a * wide[0]) / asked.denominator / np.maximum(counts + b * wide[1], 1.0)
                for a in (-1, 1)
                for b in (-1, 1)
            ]
        lower = np.clip(np.minimum.reduce(corners), least, most)
        upper = np.clip(np.maximum.reduce(corners), least, most)
        unsure = counts - wide[1] < 1  # the group may be empty: nothing is known but the declared range
        lower, upper = np.where(unsure, least, lower), np.where(unsure, most, upper)
        return np.minimum(lower, told), np.maximum(upper, told)

    return Answers(told, *ends(COVERAGE), ends=ends)


def quantile_positions(prefix: Floats, levels: tuple[Fraction, ...], ordinary: int) -> Ints:
    """Shape (groups, levels): first ordinary position whose prefix sum reaches the level's share of all ordinary records."""
    total = prefix[:, ordinary]
    found = np.empty((len(prefix), len(levels)), dtype=np.int64)
    for j, level in enumerate(levels):
        target = float(level) * total
        for group in range(len(prefix)):
            at = int(
                np.searchsorted(prefix[group, 1 : ordinary + 1], target[group] * (1 - 1e-12), side="left")
            )
            found[group, j] = min(at, ordinary - 1)
    return found
