"""Least squares for any rows: from noisy and exact rows to consistent cells, and the variance of whatever is asked of them.

The estimate minimises Σ_r (row_r·x − value_r)² / variance_r over the tables x whose exact rows hold. With N an orthonormal
basis of what the exact rows leave open and K the noisy rows over their standard deviations, its covariance is
N (Nᵀ KᵀK N)⁻¹ Nᵀ. What no row tells has infinite variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..axes import Bools, Ints
from .variance import Floats

# Reciprocal condition number below which Cholesky is not trusted, and the share of the largest singular value, or of the
# length of a row, that counts as nothing.
TRUSTED, NOTHING, UNSEEN = 1e-11, 1e-10, 1e-7


@dataclass(frozen=True, eq=False)
class DenseWeights:
    """Everything about the estimate that does not depend on the data, for rows without structure.

    O(rows·positions²) once, O(positions²) for a group of the table. The same questions as ``estimate.Weights`` answers.

    Attributes:
        matrix: shape (rows, positions).
        variance: shape (rows,): of each row's noise; 0 for an exact row, infinite for one that is not released.

    >>> known = DenseWeights(np.array([[1, 0], [1, 1]]), np.array([2.0, 0.0]))
    >>> known.estimate(np.array([[3.0, 10.0]])).round(9).tolist(), known.cell_variance.round(9).tolist()
    ([[3.0, 7.0]], [2.0, 2.0])
    """

    matrix: Ints
    variance: Floats

    @staticmethod
    def of(matrix: Ints, variance: Floats | float, exact: Ints) -> DenseWeights:
        """Noisy rows with their variances (or one for all), then exact rows."""
        told = np.broadcast_to(np.asarray(variance, dtype=np.float64), (len(matrix),))
        return DenseWeights(np.concatenate([matrix, exact]), np.concatenate([told, np.zeros(len(exact))]))

    @property
    def size(self) -> int:
        """Positions."""
        return int(self.matrix.shape[1])

    @cached_property
    def _exact(self) -> tuple[Ints, Floats, Floats]:
        """(independent exact rows, x of least length = their values · this, N)."""
        from scipy.linalg import qr, solve_triangular

        rows = np.flatnonzero(self.variance == 0)
        if not len(rows):
            return rows, np.zeros((0, self.size)), np.eye(self.size)
        q, upper, pivots = qr(self.matrix[rows].T.astype(np.float64), pivoting=True)
        gains = np.abs(np.diagonal(upper))
        rank = int((gains > NOTHING * gains[0]).sum())
        if not rank:  # rows of zeros; older SciPy solves no empty systems
            return rows[:0], np.zeros((0, self.size)), np.eye(self.size)
        least = solve_triangular(upper[:rank, :rank], q[:, :rank].T)
        return rows[pivots[:rank]], np.asarray(least, dtype=np.float64), q[:, rank:]

    @cached_property
    def _noisy(self) -> tuple[Ints, Floats]:
        """(noisy rows, K)."""
        rows = np.flatnonzero((self.variance > 0) & np.isfinite(self.variance))
        return rows, self.matrix[rows] / np.sqrt(self.variance[rows])[:, None]

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        """(covariance, taking what is not identified as known; orthonormal basis of what is not, shape (positions, d))."""
        from scipy.linalg import lapack, solve_triangular

        free = self._exact[2]
        seen = self._noisy[1] @ free
        square = seen.T @ seen
        none = np.zeros((self.size, 0))
        if not free.shape[1]:
            return np.zeros((self.size, self.size)), none
        norm = float(np.abs(square).sum(axis=0).max())
        factor, failed = lapack.dpotrf(square, lower=1)
        if not failed and norm > 0 and lapack.dpocon(factor, norm, uplo="L")[0] > TRUSTED:
            half = solve_triangular(factor, free.T, lower=True)
            return half.T @ half, none
        _, gains, turned = np.linalg.svd(seen, full_matrices=True)
        rank = int((gains > NOTHING * gains[0]).sum()) if len(gains) else 0
        half = (turned[:rank] @ free.T) / gains[:rank, None]
        return half.T @ half, free @ turned[rank:].T

    @property
    def _open(self) -> Floats:
        return self._solved[1]

    def estimate(self, values: Floats) -> Floats:
        """Consistent cells, shape (groups, positions), from the values of all rows, shape (groups, rows).

        Exact rows hold to rounding; what is not identified is as small as possible. Values of rows that are not released
        are ignored.
        """
        told = np.asarray(values, dtype=np.float64)
        held, least, _ = self._exact
        noisy, scaled = self._noisy
        cells = told[:, held] @ least
        rest = told[:, noisy] / np.sqrt(self.variance[noisy]) - cells @ scaled.T
        cells = cells + rest @ scaled @ self._solved[0]
        # Once more for the digits that the exact rows lost on the way.
        found: Floats = cells + (told[:, held] - cells @ self.matrix[held].T) @ least
        return found

    @cached_property
    def covariance(self) -> Floats:
        """Shape (positions, positions): of the cells; infinite variance and NaN covariance where a cell is not identified."""
        found = self._solved[0].copy()
        lost = _lost(np.eye(self.size), self._open)
        found[lost] = found[:, lost] = np.nan
        found[lost, lost] = np.inf
        return found

    @cached_property
    def cell_variance(self) -> Floats:
        """Shape (positions,): variance of each cell."""
        return self.rows_variance(np.eye(self.size))

    @cached_property
    def _prefix(self) -> tuple[Floats, Floats]:
        """Covariance of the prefix sums F_0 … F_P, and what of each is not identified."""
        spread = np.zeros((self.size + 1, self.size + 1))
        spread[1:, 1:] = self._solved[0].cumsum(axis=0).cumsum(axis=1)
        unseen = np.zeros((self.size + 1, self._open.shape[1]))
        unseen[1:] = self._open.cumsum(axis=0)
        return spread, unseen

    @cached_property
    def prefix_variance(self) -> Floats:
        """Shape (positions + 1,): variance of each prefix sum F_0 … F_P."""
        ends = np.arange(self.size + 1)
        return self.range_variance(np.zeros_like(ends), ends)

    def range_variance(self, lows: Ints, highs: Ints) -> Floats:
        """Variance of F_high − F_low for arrays of positions 0 ≤ low ≤ high ≤ P."""
        spread, unseen = self._prefix
        own = spread.diagonal()
        found = np.maximum(own[lows] + own[highs] - 2 * spread[lows, highs], 0.0)
        width = np.sqrt(np.asarray(highs) - np.asarray(lows))
        lost = np.linalg.norm(unseen[highs] - unseen[lows], axis=1) > UNSEEN * width
        return np.where(lost, np.inf, found)

    @property
    def all_ranges(self) -> float:
        """Mean variance of all ranges of consecutive positions: Σ_{i<j} Var(F_j − F_i) = (P + 1)·tr − sum of the covariance."""
        spread, unseen = self._prefix
        if (np.abs(unseen) > UNSEEN).any():
            return float("inf")
        count = self.size + 1
        whole = count * float(np.trace(spread)) - float(spread.sum())
        return whole / (count * (count - 1) / 2)

    def rows_variance(self, rows: Floats) -> Floats:
        """Variance of each row of a matrix (answers, positions) times the cells."""
        asked = np.asarray(rows, dtype=np.float64)
        found = np.maximum(((asked @ self._solved[0]) * asked).sum(axis=1), 0.0)
        return np.where(_lost(asked, self._open), np.inf, found)


def _lost(rows: Floats, unseen: Floats) -> Bools:
    """Rows that need something that is not identified."""
    lost: Bools = np.linalg.norm(rows @ unseen, axis=1) > UNSEEN * np.linalg.norm(rows, axis=1)
    return lost
