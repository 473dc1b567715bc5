"""The histogram of true values behind the outputs of a channel, from the outputs alone.

Everything here looks at published outputs and at the channel, never at values: it costs nothing and anybody can do it. Two
ways. ``invert`` is unbiased and has an exact covariance, and exists only where no two histograms give the same outputs: the
channel has as many independent rows as there are values. ``estimate`` is the likeliest histogram (``likelihood``), without
negative counts; where the channel does not tell all histograms apart it says so, with the rank, and gives no interval to
values that the outputs say nothing of.

Intervals are of the histogram of the rows behind the outputs, given that each row was drawn independently. Where a person
has several rows, or answers are permanent (one draw for many rows), give the counts person by person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from ..axes import Bools
from ..errors import SpecificationError, Unsupported
from ..leakage.tables import plain_array, weights
from .channel import Channel
from .geometry import MAX_ENTRIES, Floats
from .likelihood import LEAST, Likeliest, Operator, Rows, central, likeliest, operator_of
from .table import Table

if TYPE_CHECKING:
    from numpy.random import Generator

# Values up to which a factorised matrix is quicker than many updates.
CENTRAL = 2048
# How much of a value's direction may lie outside what the outputs tell, squared, for it to count as told.
OUTSIDE = 1e-8


@dataclass(frozen=True, eq=False)
class Estimated:
    """A histogram of true values, estimated from outputs.

    Attributes:
        values: shape (values,), counts; they sum to ``rows``.
        lower, upper: shape (values,), the interval of each at ``level``; 0 and ``rows`` where ``identified`` says no.
        covariance: shape (values, values), of the estimate; None where some value is not identified.
        identified: shape (values,), whether the outputs determine this count at all.
        rank: independent rows of the channel; None where it was not worked out (more than 4,096 values).
        rows: outputs counted.
        level: of the intervals.
        method: "inverse" or "likelihood".
        log_likelihood: Σ m ln(θK) in nats of a "likelihood", else NaN.
        gap: nats by which the largest log-likelihood may exceed it; 0 for an inverse.
    """

    values: Floats
    lower: Floats
    upper: Floats
    covariance: Floats | None
    identified: Bools
    rank: int | None
    rows: float
    level: float
    method: str
    log_likelihood: float = math.nan
    gap: float = 0.0

    @property
    def law(self) -> Floats:
        """Shares instead of counts."""
        return self.values / self.rows

    @property
    def is_identified(self) -> bool:
        """Whether the outputs determine the whole histogram."""
        return bool(self.identified.all())

    def total(self, cells: object) -> tuple[float, float, float]:
        """The number of rows in a set of values, with its interval: (estimate, lower, upper).

        Args:
            cells: which values, as cell numbers.
        Raises:
            Unsupported: no covariance, so none of the sum.
            SpecificationError: a cell that is not there.

        >>> [round(v, 6) for v in invert([[0.75, 0.25], [0.25, 0.75]], [60, 40]).total([0, 1])]
        [100.0, 100.0, 100.0]
        """
        if self.covariance is None:
            raise Unsupported(f"total: {self}; sums have no interval. Use bootstrap.")
        told = plain_array(cells, "total")
        if told.dtype.kind not in "iu" or (told < 0).any() or (told >= len(self.values)).any():
            raise SpecificationError(f"total: cells, whole numbers from 0 to {len(self.values) - 1}.")
        chosen = np.zeros(len(self.values))
        chosen[told] = 1
        found = float(chosen @ self.values)
        half = NormalDist().inv_cdf((1 + self.level) / 2) * math.sqrt(
            max(0.0, float(chosen @ self.covariance @ chosen))
        )
        return found, max(0.0, found - half), min(self.rows, found + half)

    def __str__(self) -> str:
        if self.rank is None:
            return "rank not worked out (more than 4,096 values): no intervals"
        if not self.is_identified:
            told = int(self.identified.sum())
            return (
                f"not identified: the channel has rank {self.rank} for {len(self.values)} values, so different histograms "
                f"give the same outputs; {told} of the counts are determined"
            )
        return f"identified: rank {self.rank} for {len(self.values)} values"


def _read(channel: object, outputs: object, level: float) -> tuple[Operator, Floats, Floats | None]:
    if not 0 < level < 1:
        raise SpecificationError("level: between 0 and 1, such as 0.95.")
    law = operator_of(channel if isinstance(channel, Channel) else Table.of(channel))
    ndim = plain_array(outputs, "outputs").ndim
    told = weights(outputs, "outputs", ("persons", "outputs") if ndim == 2 else ("outputs",))
    if told.shape[-1] != law.n_outputs:
        raise SpecificationError(
            f"outputs: counts of {law.n_outputs} outputs, in cell order, or one row of them for each person, "
            f"not {told.shape[-1]}."
        )
    counts = told.sum(axis=0) if ndim == 2 else told
    if not counts.any():
        raise SpecificationError("outputs: nothing is counted.")
    possible = law.push(np.full(law.n_inputs, 1 / law.n_inputs)) > 0
    if (counts[~possible] > 0).any():
        raise SpecificationError(
            "outputs: one is counted that this channel never gives; is it the right channel?"
        )
    return law, counts, told if ndim == 2 else None


def _matrix(law: Operator) -> Floats:
    if law.n_inputs * law.n_outputs > MAX_ENTRIES:
        raise Unsupported("invert: more than 2^24 probabilities; use estimate, or declare coarser cells.")
    if isinstance(law, Rows):
        return np.asarray(law.entries[law.row_of])
    return np.stack([law.pull(column) for column in np.eye(law.n_outputs)], axis=1)


def rank_of(matrix: Floats) -> int:
    """Independent rows of a channel, to the precision of its entries."""
    used = matrix[:, matrix.any(axis=0)]
    return int(np.linalg.matrix_rank(used))


def _told(matrix: Floats, rank: int) -> Bools:
    """Which values' counts the outputs determine: those whose unit vector lies in the span of the columns."""
    if rank == len(matrix):
        return np.ones(rank, dtype=bool)
    u = np.linalg.svd(matrix, full_matrices=False)[0][:, :rank]
    return np.asarray(1 - (u * u).sum(axis=1) < OUTSIDE)


def _weighted(matrix: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """(A, C): K A = 1 with the least Aᵀ diag(expected) A, which is C. By QR, which does not square the condition."""
    root = np.sqrt(expected)
    used = matrix[:, expected > 0] / root[expected > 0]
    q, r = np.linalg.qr(used.T)
    back = np.linalg.solve(r, np.eye(len(r)))
    a = np.zeros(matrix.T.shape)
    a[expected > 0] = (q / root[expected > 0, None]) @ back.T
    return a, back @ back.T


def _between(persons: Floats, a: Floats) -> Floats:
    """Covariance of a sum over persons, from how much they differ: at least that of the draws, whatever the persons' values are."""
    if len(persons) < 2:
        raise SpecificationError("outputs: at least two persons, or one row of counts without persons.")
    each = persons @ a
    apart = each - each.mean(axis=0)
    return np.asarray(apart.T @ apart * (len(persons) / (len(persons) - 1)))


def _interval(values: Floats, covariance: Floats, level: float) -> tuple[Floats, Floats]:
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(np.maximum(np.diagonal(covariance), 0))
    return values - half, values + half


def invert(channel: object, outputs: object, level: float = 0.95) -> Estimated:
    r"""The unbiased histogram of true values: counts of outputs times a right inverse of the channel.

    x̂ = m A with K A = 1, so that E x̂ is the true histogram whatever it is. Of all such A this one has the least variance for
    values that are equally frequent; it depends on the channel alone. Given the true histogram n the covariance is
    Aᵀ diag(n K) A − diag(n) [derived: Σ_w n_w (diag K_w − K_w K_wᵀ) between A], taken at the non-negative part of x̂. Counts can
    be negative; they are left so, as cutting would bias sums.

    Args:
        channel: a ``Channel``, or a matrix P(output | value), shape (values, outputs).
        outputs: counts in cell order, shape (outputs,); or shape (persons, outputs), where rows of one person are not
            independent draws. The covariance is then that between persons, which is never too small on average.
        level: of the intervals, which are normal ones.
    Raises:
        SpecificationError: malformed counts; a channel that gives different histograms the same outputs.
        Unsupported: more than 2^24 probabilities.

    >>> found = invert([[0.75, 0.25], [0.25, 0.75]], [60, 40])
    >>> found.values.round(6).tolist(), round(float(found.covariance[0, 0]), 6)
    ([70.0, 30.0], 75.0)
    """
    law, counts, persons = _read(channel, outputs, level)
    matrix = _matrix(law)
    rank = rank_of(matrix)
    if rank < len(matrix):
        raise SpecificationError(
            f"invert: not identified: the channel has rank {rank} for {len(matrix)} values, so different histograms give the "
            "same outputs and no unbiased estimate exists; td.channels.estimate gives one of the likeliest."
        )
    rows = float(counts.sum())
    a, _ = _weighted(matrix, matrix.mean(axis=0))
    values = counts @ a
    if persons is None:
        held = np.maximum(values, 0)
        held *= rows / held.sum()
        covariance = a.T @ ((held @ matrix)[:, None] * a) - np.diag(held)
    else:
        covariance = _between(persons, a)
    lower, upper = _interval(values, covariance, level)
    told = np.ones(len(values), dtype=bool)
    return Estimated(values, lower, upper, covariance, told, rank, rows, level, "inverse")


def estimate(
    channel: object,
    outputs: object,
    level: float = 0.95,
    gap: float = 1e-3,
    start: object = None,
    rounds: int = 1000,
) -> Estimated:
    """The likeliest histogram of true values behind counted outputs (iterative Bayesian update), with intervals.

    Intervals are normal ones from the Fisher information at the estimate, with all values free and cut to 0 … rows; an
    output expected less than once counts as expected once, which makes them no shorter. They are about the histogram of these
    rows: its sampling from a larger population is not in them.

    Args:
        channel, outputs, level: as for ``invert``.
        gap: nats of log-likelihood at which to stop; the answer says what it reached. 0.001 leaves every sum of counts within
            a twentieth of its standard error, nearly.
        rounds: updates at most.
        start: a law of values, shape (values,), to update from. Values at 0 stay there. Unless told, it is uniform, and up to
            2,048 values an interior point takes the place of the updates. Where the channel identifies the histogram it does
            not matter; where not, the answer is the one of the likeliest that is reached from here.
    Raises:
        SpecificationError: malformed counts or start, a start under which an output that is counted cannot occur.
        Unsupported: a composed channel of more than 2^24 entries.

    >>> found = estimate([[0.75, 0.25], [0.25, 0.75]], [60, 40])
    >>> found.values.round(1).tolist(), str(found)
    ([70.0, 30.0], 'identified: rank 2 for 2 values')
    >>> str(estimate([[0.5, 0.5], [0.5, 0.5]], [60, 40]))
    'not identified: the channel has rank 1 for 2 values, so different histograms give the same outputs; 0 of the counts are determined'
    """
    law, counts, persons = _read(channel, outputs, level)
    if not 0 < gap < math.inf:
        raise SpecificationError("estimate: the gap is a positive number of nats.")
    if rounds < 1:
        raise SpecificationError("estimate: rounds, from 1.")
    best = _best(law, counts, start, gap, rounds)
    rows = float(counts.sum())
    values, reached = best.law * rows, (best.log_likelihood, best.gap)
    if max(law.n_inputs, law.n_outputs) ** 2 > MAX_ENTRIES:
        none = np.zeros(law.n_inputs, dtype=bool)
        return Estimated(
            values, np.zeros_like(values), np.full_like(values, rows), None, none, None, rows, level, "likelihood", *reached
        )  # fmt: skip
    matrix = _matrix(law)
    rank = rank_of(matrix)
    told = _told(matrix, rank)
    lower, upper = np.zeros_like(values), np.full_like(values, rows)
    expected = np.where(matrix.any(axis=0), np.maximum(values @ matrix, 1), 0)
    covariance: Floats | None = None
    if rank == len(matrix):
        a, spread = _weighted(matrix, expected)
        covariance = spread - np.diag(values) if persons is None else _between(persons, a)
        low, high = _interval(values, covariance, level)
        lower, upper = np.clip(low, 0, rows), np.clip(high, 0, rows)
    elif told.any():
        # The counts that are told, alone: A = D Kᵀ (K D Kᵀ)⁺, D = 1 / expected, by the singular values that the rank keeps.
        root = np.sqrt(np.where(expected > 0, expected, 1))
        u, s, v = np.linalg.svd(matrix / root, full_matrices=False)
        a = (v[:rank].T / root[:, None] / s[:rank]) @ u[:, :rank].T
        part = (u[:, :rank] / s[:rank] ** 2) @ u[:, :rank].T - np.diag(values)
        low, high = _interval(values, part if persons is None else _between(persons, a), level)
        lower = np.where(told, np.clip(low, 0, rows), lower)
        upper = np.where(told, np.clip(high, 0, rows), upper)
    return Estimated(values, lower, upper, covariance, told, rank, rows, level, "likelihood", *reached)


def _best(law: Operator, counts: Floats, start: object, gap: float, rounds: int) -> Likeliest:
    """By the interior point where that is quicker and nobody asks where to start from, else by plain updates."""
    origin = _start(law, counts, start)
    if start is None and law.n_inputs <= CENTRAL and law.n_inputs * law.n_outputs <= MAX_ENTRIES:
        found = central(_matrix(law), counts, gap)
        if found.gap <= gap:
            return found
        origin = 0.999 * found.law + 0.001 * origin
    return likeliest(law, counts, origin, gap, rounds)


def _start(law: Operator, counts: Floats, start: object) -> Floats:
    if start is None:
        return np.full(law.n_inputs, 1 / law.n_inputs)
    told = weights(start, "start", ("values",))
    if len(told) != law.n_inputs or not told.any():
        raise SpecificationError(f"start: one number for each of {law.n_inputs} values, not all 0.")
    told = np.asarray(told / told.sum())
    if (counts[law.push(told) <= LEAST] > 0).any():
        raise SpecificationError("start: makes an output that is counted impossible; leave no value at 0.")
    return np.asarray(told)


def bootstrap(
    channel: object,
    outputs: object,
    rng: Generator,
    resamples: int = 200,
    level: float = 0.95,
    gap: float = 1e-2,
    rounds: int = 200,
) -> tuple[Floats, Floats]:
    """Percentile bootstrap intervals of ``estimate``: (lower, upper), each of shape (values,).

    Rows (or whole persons, where outputs are counted person by person) are drawn again from the outputs and the histogram is
    estimated anew. It needs no covariance, so it serves large grids too. Its intervals are about a larger population of which
    these rows are a sample, and so are longer than those of ``estimate``. Of values that are not identified they say nothing.

    Args:
        rng: for the resamples.
        gap, rounds: as for ``estimate``, of every resample.
    Raises:
        SpecificationError, Unsupported: as ``estimate``.

    >>> low, high = bootstrap([[0.75, 0.25], [0.25, 0.75]], [600, 400], np.random.default_rng(1))
    >>> bool(low[0] < 700 < high[0])
    True
    """
    law, counts, persons = _read(channel, outputs, level)
    if resamples < 20:
        raise SpecificationError("bootstrap: at least 20 resamples.")
    rows = float(counts.sum())
    drawn = (_again(counts, persons, rng) for _ in range(resamples))
    found = np.stack([_best(law, each, None, gap, rounds).law * rows for each in drawn])
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.asarray(low), np.asarray(high)


def _again(outputs: Floats, persons: Floats | None, rng: Generator) -> Floats:
    if persons is None:
        return np.asarray(
            rng.multinomial(round(float(outputs.sum())), outputs / outputs.sum()), dtype=np.float64
        )
    chosen = rng.integers(0, len(persons), len(persons))
    return np.asarray(persons[chosen].sum(axis=0))
