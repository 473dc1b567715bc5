"""Mean distances between the clusters of a group from sampled pairs, with an upper bound.

A class has a pool: for every two of its clusters c and ĉ, pairs (u, v) with u uniform over the rows of c and v uniform over
those of ĉ, independent, and of each pair the two private values and the distance. The estimate for a group is the mean over
the pairs of which both rows are in it.

*Why that is right.* Let A be the rows of c that are in the group and B those of ĉ. Of the |c| |ĉ| equally likely pairs each one
of A × B has probability 1 / (|c| |ĉ|); so given that a pair lies in A × B, which has probability |A| |B| / (|c| |ĉ|), each has
1 / (|A| |B|): it is a uniform pair of A × B, hence its mean distance is the d(c, ĉ) that is asked for. Pairs are independent, so
given *which* pairs of the pool lie in A × B, those are independent uniform pairs of it; the number of them may be used as if
it had been chosen. Where they are fewer than 1,000, more are drawn from A × B itself, and where |A| |B| is at most that,
all are looked at instead.

*Upper bound.* Empirical Bernstein (Maurer, Pontil 2009, theorem 4): for n independent values of sample variance V in an
interval of length R, with probability at least 1 − δ the true mean is at most

    mean + √(2 V ln(2/δ) / n) + 7 R ln(2/δ) / (3 (n − 1)).

It supposes nothing but R, and so holds at n = 1,000 for skew distances, for which Student's quantile does not; it costs some
3 % of R at that n. R is the metric's range; for the Euclidean distance that of the two clusters: with centres z apart by D
and radii r, r̂, distances of the numbers lie in [max(0, D − r − r̂), D + r + r̂], and b codes add at most b under the root.
δ = 1 % / (number of entries sampled), so all entries of a group hold at once with 99 % confidence. This is a statement about
the pairs drawn, for one group; of the best of many groups the distance is measured anew (``afresh``).

For the Euclidean distance the root of the mean square is known exactly (``squares``). It is a certain upper bound, and the
smaller of the two is taken; the estimate is corrected by how far the sample's mean square is off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .distances import Floats, Ints, apart, highest
from .squares import Squares

if TYPE_CHECKING:
    from numpy.random import Generator

    from .features import Features

Bools = NDArray[np.bool_]

POOL = 2_000_000  # pairs of a class's pool
MOST_EACH = 20_000  # of them, of two clusters
ENOUGH = 1_000  # pairs of two clusters that a group is judged by, at least
FINAL = 4_000_000  # pairs of a group that was chosen, of all its clusters together
FINAL_EACH = 50_000
STEP = 1 << 20  # pairs handled at a time
DELTA = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class Pool:
    """Sampled pairs of one class. Private.

    Attributes:
        rows: the rows of the class, by cluster; ``starts``: where each of the ``held`` clusters begins, and the end.
        one, two: of every unordered pair of clusters (an entry) their places in ``held``.
        low, high: least and greatest distance possible, of every entry.
        squares: of the Euclidean distance; None of others.
        first, second: int32, shape (entries, pairs): private values of the two rows; ``distance``: float64.
    """

    features: Features
    metric: str
    values: Ints
    rows: Ints
    held: Ints
    starts: Ints
    one: Ints
    two: Ints
    low: Floats
    high: Floats
    squares: Squares | None
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    distance: Floats

    @staticmethod
    def draw(
        features: Features,
        metric: str,
        rows: Ints,
        values: Ints,
        clusters: Ints,
        n_values: int,
        rng: Generator,
    ) -> Pool:
        """Draw the pool of a class.

        Args:
            rows: the rows of the class, at least one.
            values, clusters: codes of all rows of the features; the values are below ``n_values``.
        """
        rows = rows[np.argsort(clusters[rows], kind="stable")]
        begins = np.flatnonzero(np.diff(clusters[rows], prepend=-1))
        held, starts = clusters[rows][begins], np.append(begins, len(rows))
        one, two = np.triu_indices(len(held))
        each = min(max(POOL // len(one), 1), MOST_EACH)
        shape = (len(one), each)
        low, high = _extents(features, metric, rows, starts, one, two)
        first, second = np.empty(shape, np.int32), np.empty(shape, np.int32)
        distance = np.empty(shape)
        step = max(1, STEP // each)
        for e in range(0, len(one), step):
            part = slice(e, e + step)
            u = _drawn(rows, starts, np.repeat(one[part], each), rng)
            v = _drawn(rows, starts, np.repeat(two[part], each), rng)
            first[part] = values[u].reshape(-1, each)
            second[part] = values[v].reshape(-1, each)
            distance[part] = apart(features, u, v, metric).reshape(-1, each)
        squares = Squares.of(features, rows, values, clusters, n_values) if metric == "euclidean" else None
        return Pool(
            features,
            metric,
            values,
            rows,
            held,
            starts,
            one,
            two,
            low,
            high,
            squares,
            first,
            second,
            distance,
        )

    @property
    def entries(self) -> int:
        """Numbers held."""
        return 2 * self.distance.size

    def of_group(self, member: Bools, clusters: int, rng: Generator) -> tuple[Floats, Floats]:
        """Mean and upper bound for a group; shapes (clusters, clusters)."""
        inside = member[self.first]
        inside &= member[self.second]
        seen = np.where(inside, self.distance, 0.0)
        moments = np.stack(
            [
                np.count_nonzero(inside, axis=1).astype(np.float64),
                seen.sum(axis=1),
                np.einsum("ij,ij->i", seen, seen),
            ]
        )
        return self._bounded(member, clusters, rng, moments, ENOUGH)

    def afresh(self, member: Bools, clusters: int, rng: Generator) -> tuple[Floats, Floats]:
        """The same from pairs drawn now, and more of them."""
        each = min(max(FINAL // len(self.one), ENOUGH), FINAL_EACH)
        return self._bounded(member, clusters, rng, np.zeros((3, len(self.one))), each)

    def _bounded(
        self, member: Bools, clusters: int, rng: Generator, moments: Floats, enough: int
    ) -> tuple[Floats, Floats]:
        """From the number, sum and sum of squares of pairs already seen, and of others up to ``enough`` of each entry."""
        ours = member[self.values[self.rows]]
        before = np.concatenate([[0], np.cumsum(ours)])[self.starts]
        rows, size = self.rows[ours], np.diff(before)
        pairs = size[self.one] * size[self.two]
        whole = (pairs > 0) & (pairs <= enough)
        moments = np.where(whole, 0.0, moments)
        open_ = np.where(pairs > enough, np.maximum(enough - moments[0].astype(np.int64), 0), 0)
        need = np.where(whole, pairs, open_)
        ends = np.cumsum(need)
        cuts = np.searchsorted(ends, np.arange(STEP, (ends[-1] if len(ends) else 0) + STEP, STEP))
        for part in np.split(np.arange(len(need)), np.unique(cuts)):
            owner = np.repeat(part, need[part])
            if not len(owner):
                continue
            within = np.arange(len(owner)) - np.repeat(np.cumsum(need[part]) - need[part], need[part])
            one, two = self.one[owner], self.two[owner]
            i, j = np.divmod(within, np.maximum(size[two], 1))
            drawn = ~whole[owner]
            i[drawn] = rng.integers(0, size[one[drawn]])
            j[drawn] = rng.integers(0, size[two[drawn]])
            far = apart(self.features, rows[before[one] + i], rows[before[two] + j], self.metric)
            for moment, weight in zip(moments, (None, far, far * far), strict=True):
                moment += np.bincount(owner, weight, minlength=len(need))
        number, total, squares = moments
        there = pairs > 0
        mean = np.divide(total, number, out=np.full(len(number), np.nan), where=there)
        upper = mean.copy()
        guess = there & ~whole
        if guess.any():
            n, m = number[guess], mean[guess]
            variance = np.maximum(squares[guess] - n * m * m, 0.0) / (n - 1)
            span, log_odds = (self.high - self.low)[guess], np.log(2 * np.count_nonzero(guess) / DELTA)
            margin = np.sqrt(2 * variance * log_odds / n) + 7 * span * log_odds / (3 * (n - 1))
            upper[guess] = np.minimum(m + margin, np.maximum(self.high[guess], m))
            if self.squares is not None:
                one, two = self.held[self.one[guess]], self.held[self.two[guess]]
                square = self.squares.of_group(member, clusters)[one, two]
                root = np.sqrt(square)
                off = np.divide(square - squares[guess] / n, 2 * root, out=np.zeros(len(n)), where=root > 0)
                mean[guess] = np.maximum(m + off, 0.0)
                upper[guess] = np.maximum(np.minimum(upper[guess], root), mean[guess])
        return self._square(mean, clusters), self._square(upper, clusters)

    def _square(self, entries: Floats, clusters: int) -> Floats:
        found = np.full((clusters, clusters), np.nan)
        one, two = self.held[self.one], self.held[self.two]
        found[one, two] = entries
        found[two, one] = entries
        return found

    def __repr__(self) -> str:
        return f"Pool({self.metric}, {len(self.held)} clusters)"


def _drawn(rows: Ints, starts: Ints, cluster: Ints, rng: Generator) -> Ints:
    """A uniform row of each cluster."""
    found: Ints = rows[rng.integers(starts[cluster], starts[cluster + 1])]
    return found


def _extents(
    features: Features, metric: str, rows: Ints, starts: Ints, one: Ints, two: Ints
) -> tuple[Floats, Floats]:
    """Least and greatest distance possible between the rows of two clusters."""
    if metric != "euclidean":
        return np.zeros(len(one)), np.full(len(one), highest(metric))
    centre = np.zeros((len(starts) - 1, features.numbers.shape[1]))
    radius = np.zeros(len(centre))
    for k in range(len(centre)):
        own = rows[starts[k] : starts[k + 1]]
        centre[k] = features.numbers[own].mean(axis=0)
        for start in range(0, len(own), STEP // 16):
            off = features.numbers[own[start : start + STEP // 16]] - centre[k]
            radius[k] = max(radius[k], float(np.sqrt(np.einsum("ij,ij->i", off, off).max())))
    between = np.empty(len(one))
    for start in range(0, len(one), STEP // 16):
        part = slice(start, start + STEP // 16)
        between[part] = np.sqrt(((centre[one[part]] - centre[two[part]]) ** 2).sum(axis=1))
    reach = radius[one] + radius[two]
    high = np.sqrt((between + reach) ** 2 + features.codes.shape[1])
    return np.maximum(between - reach, 0.0), high
