"""From noisy rows to published answers. Everything here sees noisy values only: its inputs are a ``Noisy`` and a strategy.

Values are least-squares estimates, then made possible: prefix sums non-decreasing (isotonic regression weighted by
1/variance) and within [0, n], cells non-negative. Intervals are those of the linear estimate, cut to the possible range
and widened where they would miss the published value.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from .axes import Ints
from .mechanisms.parts import Noisy
from .mechanisms.project import Projection
from .mechanisms.strategy import Strategy
from .mechanisms.variance import Floats
from .workload import AllRanges, Cells, Prefixes, Rows, SomeRanges

if TYPE_CHECKING:
    from .clustering.released import Way
    from .marginals.strategy import MarginalStrategy


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
    """

    values: Floats
    lower: Floats
    upper: Floats
    prefix: Floats | None = None
    raw_prefix: Floats | None = None


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
        cells = np.diff(known.applied(_summed(cells), noisy.total), axis=1)
    asked, total = strategy.resolved.workload, float(noisy.total)
    if isinstance(asked, Rows):
        linear = cells @ asked.matrix.T.astype(np.float64) / asked.denominator
        half = strategy.half_widths(strategy.answer_variance(), strategy.jumps) / asked.denominator
        low, high = _possible(strategy, noisy)
        return around(np.clip(linear, low, high), linear, half, low, high)
    half = strategy.half_widths(strategy.answer_variance())
    if isinstance(asked, Cells) and not _in_order(strategy):
        clipped = np.clip(cells, 0.0, total)
        if strategy.hood.classes is not None:
            clipped = np.minimum(possible_cells(cells, _public_sums(strategy, chain, noisy.total)), total)
        return around(clipped, cells, outward(cells, half), 0.0, total)
    raw = _summed(cells)
    exact = strategy.parts[0].exact
    raw[:, strategy.bounds[exact]] = chain[:, exact]  # without the rounding of the sums
    variance = strategy.prefix_variance()
    raw = np.where(variance == 0, np.rint(raw), raw)  # exact counts, without what adding up cells rounded
    prefix = possible_prefixes(raw, variance, total)
    if known is not None:
        prefix = _agreeing(prefix, known, variance, noisy.total)
    if isinstance(asked, Cells):
        return around(np.diff(prefix, axis=1), cells, outward(cells, half), 0.0, total, prefix, raw)
    if isinstance(asked, SomeRanges):
        told, linear = (p[:, asked.highs] - p[:, asked.lows] for p in (prefix, raw))
        return around(told, linear, outward(linear, half), 0.0, total, prefix, raw)
    assert isinstance(asked, Prefixes | AllRanges)
    return around(prefix[:, 1:], raw[:, 1:], outward(raw[:, 1:], half), 0.0, total, prefix, raw)


def _agreeing(prefix: Floats, known: Projection, variance: Floats, total: int) -> Floats:
    """Possible prefix sums that agree with the public counts, as nearly as turns of both steps bring them."""
    for _ in range(ROUNDS):
        fresh = possible_prefixes(known.applied(prefix, total), variance, float(total))
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
    values: Floats, linear: Floats, half: Floats, low: float, high: float,
    prefix: Floats | None = None, raw: Floats | None = None,
) -> Answers:  # fmt: skip
    """Values with the intervals of their linear estimates, cut to [low, high] and widened to hold the values."""
    least, most = linear - half, linear + half
    astray = (most < low) | (least > high)  # the interval missed everything possible, so it tells nothing
    lower = np.where(astray, low, np.clip(least, low, high))
    upper = np.where(astray, high, np.clip(most, low, high))
    return Answers(values, np.minimum(lower, values), np.maximum(upper, values), prefix, raw)


def outward(linear: Floats, half: Floats) -> Floats:
    """Half-widths of counts: those of a few records are widened to whole ends, since the truth is whole and an interval of
    one or two counts would be overrun by the fraction that faint draws add."""
    whole = np.maximum(np.ceil(linear + half) - linear, linear - np.floor(linear - half))
    return np.where((half > 0) & (half <= FEW), whole, half)


def _public_sums(strategy: Strategy, chain: Floats, total: int) -> list[tuple[Ints, float]]:
    """Sets of places whose sum is known: what public counts say, and what was observed exactly."""
    size = strategy.resolved.n_positions
    known = strategy.projection.facts if strategy.projection is not None else ()
    found = [(f.places, float((f.constant or 0) + f.records * total)) for f in known]
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
    return min(0.0, float(values.min()) * noisy.total), max(0.0, float(values.max()) * noisy.total)


def _rows(strategy: Strategy, noisy: Noisy) -> Answers:
    asked = strategy.resolved.workload
    assert isinstance(asked, Rows)
    if strategy.resolved.query.word == "mean":
        return _means(strategy, noisy)
    linear = np.concatenate(noisy.values, axis=1) / asked.denominator
    half = strategy.half_widths(strategy.answer_variance()) / asked.denominator
    low, high = _possible(strategy, noisy)
    return around(np.clip(linear, low, high), linear, half, low, high)


def _means(strategy: Strategy, noisy: Noisy) -> Answers:
    """Total over count. With a noisy count the interval is the box of two 97.5 % intervals (Bonferroni)."""
    asked = strategy.resolved.workload
    assert isinstance(asked, Rows)
    sums, counts = noisy.values
    ordinary = asked.matrix[0][asked.matrix[1] > 0] / asked.denominator
    least, most = float(ordinary.min()), float(ordinary.max())
    scales = [strategy.scale(p) for p in strategy.parts]
    coverage = Fraction(95, 100) if scales[1] is None else Fraction(975, 1000)
    wide = [0.0 if s is None else strategy.noise_quantile(s, coverage) for s in scales]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = sums / asked.denominator / np.maximum(counts, 1.0)
        corners = [
            (sums + a * wide[0]) / asked.denominator / np.maximum(counts + b * wide[1], 1.0)
            for a in (-1, 1)
            for b in (-1, 1)
        ]
    told = np.clip(value, least, most)
    lower = np.clip(np.minimum.reduce(corners), least, most)
    upper = np.clip(np.maximum.reduce(corners), least, most)
    unsure = counts - wide[1] < 1  # the group may be empty: nothing is known but the declared range
    lower, upper = np.where(unsure, least, lower), np.where(unsure, most, upper)
    return Answers(told, np.minimum(lower, told), np.maximum(upper, told))


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
