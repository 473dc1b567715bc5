"""Mean squared Euclidean distances between the clusters of a group: exact from counts, sums and sums of squares.

For independent uniform members u of c and v of ĉ, with n rows each, S their sum of numbers and Q that of |x|²,

    E |u − v|² = Q_c / n_c + Q_ĉ / n_ĉ − 2 S_c · S_ĉ / (n_c n_ĉ),

and a column of codes adds 1 − Σ_l (share of l in c) (share of l in ĉ). All of these are sums over (value, cluster) keys. The root
a of the mean square is at least the mean distance E d, certainly (Jensen): (d − a)² ≥ 0 and E d² = a² give

    E d = a − E (d − a)² / (2 a),

above which a lies by half the square of the distances' coefficient of variation: 2 % where distances vary by a fifth. It also
makes sampled means better: with the known E d², m + (a² − m₂) / (2 a) estimates E d from a sample's mean m and mean square m₂
with the error of a mean of (d − a)² / (2 a) only.

Source: derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .distances import Floats, Ints

if TYPE_CHECKING:
    from .features import Features


@dataclass(frozen=True, eq=False, repr=False)
class Squares:
    """Counts, sums and sums of squares by key. Private.

    Attributes:
        values, clusters: of each key, cluster-major.
        number: rows of each.
        sums, squares: of the numbers, less the mean of the class; shapes (keys, columns) and (keys,).
        codes: for each column of codes how many rows of a key have each level, sparse.
    """

    values: Ints
    clusters: Ints
    number: Floats
    sums: Floats
    squares: Floats
    codes: tuple[Any, ...]

    @staticmethod
    def of(features: Features, rows: Ints, values: Ints, clusters: Ints, n_values: int) -> Squares:
        """Of some rows; ``values`` and ``clusters`` are codes of all rows."""
        from scipy.sparse import csr_array

        key, at, number = np.unique(
            clusters[rows] * n_values + values[rows], return_inverse=True, return_counts=True
        )
        at = at.reshape(-1)
        size, width = len(key), features.numbers.shape[1]
        sums, squares = np.empty((size, width)), np.zeros(size)
        for j in range(width):
            x = features.numbers[rows, j]
            x = x - x.mean()  # so that little cancels
            sums[:, j] = np.bincount(at, x, minlength=size)
            squares += np.bincount(at, x * x, minlength=size)
        codes = []
        for j, levels in enumerate(features.levels):
            counts = csr_array(
                (np.ones(len(rows)), (at, features.codes[rows, j])), shape=(size, max(levels, 1))
            )
            counts.sum_duplicates()
            codes.append(counts)
        own, value = np.divmod(key, n_values)
        return Squares(value, own, number.astype(np.float64), sums, squares, tuple(codes))

    def of_group(self, member: NDArray[np.bool_], clusters: int) -> Floats:
        """Mean squared distances, shape (clusters, clusters); NaN where a cluster has no member."""
        from scipy.sparse import csr_array

        found = np.full((clusters, clusters), np.nan)
        at = np.flatnonzero(member[self.values])
        if not len(at):
            return found
        first = np.flatnonzero(np.diff(self.clusters[at], prepend=-1))
        size = np.add.reduceat(self.number[at], first)
        mean = np.add.reduceat(self.sums[at], first, axis=0) / size[:, None]
        square = np.add.reduceat(self.squares[at], first) / size
        part = square[:, None] + square - 2 * (mean @ mean.T)
        if self.codes:
            weights = np.repeat(1 / size, np.diff(np.append(first, len(at))))
            share = csr_array((weights, at, np.append(first, len(at))), shape=(len(first), len(self.values)))
            for counts in self.codes:
                levels = share @ counts
                part += 1 - (levels @ levels.T).toarray()
        held = self.clusters[at][first]
        found[np.ix_(held, held)] = np.maximum(part, 0.0)
        return found
