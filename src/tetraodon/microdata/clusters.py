"""Clusters of people who are alike in their insensitive columns, and new rows assigned to them.

Which method goes with which metric:

================  ==============================================================================================
metric            rows are clustered by
================  ==============================================================================================
jensen-shannon    up to 5,000 rows agglomeration, cosine distance, complete linkage; above, K-means on the rows'
                  shares
euclidean         K-means; a code is an indicator of each level, over √2, so that two codes differ by 1
gower, hamming    K-means on numbers scaled to their range, and codes as for euclidean
================  ==============================================================================================

Above 20,000 rows K-means sees that many of them, drawn once, and all rows are assigned to the nearest centre. A new row goes
to the nearest centre; after agglomeration, which has none, to the prototype of least divergence.

Every draw in here comes from a fixed seed. Clusters protect nobody: they are part of the plan, like the bins of a histogram,
and the same table gives the same plan. Releases draw elsewhere, from the operating system.

A cluster's prototype is the mean of its rows' numbers (of counts, not of shares, for jensen-shannon too) and the most
frequent of their codes, the first of equally frequent ones.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SpecificationError
from ..threads import one_thread
from .distances import BLOCK, Codes, Floats, Ints, between, check_features, prepared

if TYPE_CHECKING:
    from .features import Features

AGGLOMERATED = 5_000  # rows: their distances take 200 MB
FITTED = 20_000  # rows that K-means sees
WIDE = 512  # columns from which indicators are held sparse
SEED = 0
STARTS = 4


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    """A clustering of the rows of some features. Private.

    Attributes:
        labels: int64, shape (rows,): the cluster of each row, 0 to ``number`` − 1; none is empty. Read-only.
        prototypes: one row for each cluster.
        metric: what rows were compared by.
        centres: K-means' centres in its own coordinates; None after agglomeration.

    >>> import pyarrow as pa
    >>> from tetraodon.microdata.features import Features
    >>> people = Features.of_arrow(pa.table({"n": [0, 1, 9, 10]}), ["n"])
    >>> found = clustered(people, 2, "gower")
    >>> found.number, found.labels.tolist(), found.prototypes.numbers.tolist()
    (2, [0, 0, 1, 1], [[0.5], [9.5]])
    >>> found.assign(people.encode(pa.table({"n": [8, 2]}))).tolist()
    [1, 0]
    """

    labels: Ints
    prototypes: Features
    metric: str
    centres: Floats | None

    @property
    def number(self) -> int:
        """How many clusters there are; fewer than were asked for where fewer rows differ."""
        return self.prototypes.rows

    def assign(self, features: Features) -> Ints:
        """The cluster of each of other rows, in chunks; of equally near ones the first.

        Args:
            features: encoded like the rows that were clustered (``Features.encode``).
        Raises:
            SpecificationError: other columns.
            DataError: as ``distances.check_features``.
        """
        if features.names != self.prototypes.names or features.levels != self.prototypes.levels:
            raise SpecificationError(
                "clusters: rows with the columns and categories that were clustered; use Features.encode."
            )
        check_features(features, self.metric)
        if self.centres is not None:
            return _nearest(features, self.metric, self.centres)
        found = np.empty(features.rows, dtype=np.int64)
        every = np.arange(self.number)
        step = max(1, BLOCK // self.number)
        for start in range(0, features.rows, step):
            rows = np.arange(start, min(start + step, features.rows))
            found[rows] = between(features, rows, every, self.metric, self.prototypes).argmin(axis=1)
        return found

    def __repr__(self) -> str:
        return f"Clusters({self.number} by {self.metric})"


def clustered(features: Features, clusters: int, metric: str) -> Clusters:
    """Cluster the rows; see the module for how.

    Args:
        clusters: how many are wanted, at least 1. Where fewer rows differ, each different row is a cluster; where K-means
            leaves some without rows, they are dropped.
    Raises:
        SpecificationError: an unknown metric, codes given to jensen-shannon, fewer than 1 cluster, more than rows.
        DataError: as ``distances.check_features``; no rows.
    """
    if isinstance(clusters, bool) or not isinstance(clusters, int | np.integer) or clusters < 1:
        raise SpecificationError("clusters: a whole number of 1 or more.")
    check_features(features, metric)
    if features.rows == 0:
        raise DataError("clusters: there are no rows.")
    if clusters > features.rows:
        raise SpecificationError("clusters: more clusters than rows; ask for fewer.")
    centres: Floats | None = None
    if metric == "jensen-shannon" and features.rows <= AGGLOMERATED:
        labels = _agglomerated(features, int(clusters))
    else:
        centres = _centres(features, int(clusters), metric)
        labels = _nearest(features, metric, centres)
    held, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)  # clusters are numbered as they first occur
    held = held[order]
    labels = np.argsort(order)[labels.reshape(-1)]
    labels.flags.writeable = False
    if centres is not None:
        centres = centres[held]
    return Clusters(labels, prototypes(features, labels, len(held)), metric, centres)


def prototypes(features: Features, labels: Ints, count: int) -> Features:
    """One row for each cluster: the mean of its rows' numbers, the most frequent of their codes.

    Args:
        labels: the cluster of each row; each of the ``count`` clusters has some.
    """
    size = np.bincount(labels, minlength=count)
    numbers = np.empty((count, features.numbers.shape[1]))
    for j in range(numbers.shape[1]):
        numbers[:, j] = np.bincount(labels, features.numbers[:, j], minlength=count) / size
    codes = np.empty((count, len(features.levels)), dtype=np.int32)
    for j, levels in enumerate(features.levels):
        pair, number = np.unique(labels * levels + features.codes[:, j], return_counts=True)
        label, code = np.divmod(pair, levels)
        order = np.lexsort((code, -number, label))
        first = np.flatnonzero(np.diff(label[order], prepend=-1))
        codes[:, j] = code[order][first]
    return features.with_rows(numbers, codes)


def _scaled(features: Features, metric: str, rows: Ints | slice) -> tuple[Floats, Codes]:
    """Numbers as K-means takes them, and codes."""
    return prepared(features, "gower" if metric == "hamming" else metric, rows)


def _points(numbers: Floats, codes: Codes, levels: tuple[int, ...]) -> Any:
    """Coordinates: the numbers, and for each code column an indicator of each level, over √2."""
    width = numbers.shape[1] + sum(levels)
    offsets = numbers.shape[1] + np.concatenate([[0], np.cumsum(levels)[:-1]]).astype(np.int64)
    if width <= WIDE:
        points = np.zeros((len(numbers), width))
        points[:, : numbers.shape[1]] = numbers
        if levels:
            points[np.arange(len(numbers))[:, None], codes + offsets] = np.sqrt(0.5)
        return points
    from scipy.sparse import csr_matrix, hstack

    per = len(levels)
    places = (codes + offsets - numbers.shape[1]).reshape(-1)
    ends = np.arange(len(numbers) + 1) * per
    indicators = csr_matrix((np.full(len(places), np.sqrt(0.5)), places, ends), (len(numbers), sum(levels)))
    return hstack([csr_matrix(numbers), indicators], format="csr")


def _centres(features: Features, clusters: int, metric: str) -> Floats:
    """K-means' centres; where no more rows differ than clusters are wanted, the different rows."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows: Ints | slice = slice(None)
    if features.rows > FITTED:
        rows = np.sort(np.random.default_rng(SEED).choice(features.rows, FITTED, replace=False))
    numbers, codes = _scaled(features, metric, rows)
    different = _first_of_each(numbers, codes)
    if len(different) <= clusters:
        points = _points(numbers[different], codes[different], features.levels)
        return np.asarray(points if isinstance(points, np.ndarray) else points.toarray(), dtype=np.float64)
    model = KMeans(clusters, n_init=STARTS, random_state=SEED)
    # One thread: the order of additions, and with it the last digit, would depend on their number. The warning says that
    # rows nearly coincide, so that some clusters stay empty: those are dropped by the caller.
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(_points(numbers, codes, features.levels))
    centres: Floats = np.asarray(model.cluster_centers_, dtype=np.float64)
    return centres


def _nearest(features: Features, metric: str, centres: Floats) -> Ints:
    """The nearest centre of each row, in chunks: |x − μ|² less |x|², with no indicators made."""
    width = features.numbers.shape[1]
    lengths = np.einsum("ij,ij->i", centres, centres)
    numbers_part = np.ascontiguousarray(centres[:, :width].T)
    offsets = width + np.concatenate([[0], np.cumsum(features.levels)]).astype(np.int64)
    found = np.empty(features.rows, dtype=np.int64)
    step = max(1, BLOCK // (len(centres) + width))
    with one_thread():
        for start in range(0, features.rows, step):
            part = slice(start, start + step)
            numbers, codes = _scaled(features, metric, part)
            far = numbers @ numbers_part
            for j in range(codes.shape[1]):
                levels = centres[:, offsets[j] : offsets[j + 1]].T * np.sqrt(0.5)
                far += levels[codes[:, j]]
            far *= -2
            far += lengths
            found[part] = far.argmin(axis=1)
    return found


def _agglomerated(features: Features, clusters: int) -> Ints:
    numbers, codes = prepared(features, "jensen-shannon", slice(None))
    different = _first_of_each(numbers, codes, inverse := np.empty(features.rows, dtype=np.int64))
    if len(different) <= clusters:
        return inverse
    from sklearn.cluster import AgglomerativeClustering

    with one_thread():
        model = AgglomerativeClustering(clusters, metric="cosine", linkage="complete").fit(numbers)
    labels: Ints = model.labels_.astype(np.int64)
    return labels


def _first_of_each(numbers: Floats, codes: Codes, inverse: Ints | None = None) -> Ints:
    """The first row of each different one, ascending; ``inverse`` is filled with the place of each row's."""
    both = np.ascontiguousarray(np.hstack([numbers + 0.0, codes]))  # −0 is 0
    rows: NDArray[np.void] = both.view(np.dtype((np.void, both.shape[1] * both.itemsize))).reshape(-1)
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    if inverse is not None:
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        inverse[:] = rank[place.reshape(-1)]
    return np.asarray(first[order], dtype=np.int64)
