"""Distances between rows of features: four metrics, by pairs of rows or by blocks.

================  ===============================================================  ===================
metric            distance of two rows                                             range
================  ===============================================================  ===================
gower             mean over columns: |x − y| / range for numbers, 0 or 1 for       [0, 1]
                  codes; a column of range 0 counts 0, numbers beyond the range
                  count as its end (Gower 1971)
hamming           share of columns, numbers or codes, that differ                  [0, 1]
jensen-shannon    Jensen–Shannon divergence of the rows divided by their sums,     [0, ln 2]
                  natural logarithm, no root (Lin 1991)
euclidean         root of (Σ (x − y)² over numbers as they are, not scaled, plus   [0, ∞)
                  the number of codes that differ)
================  ===============================================================  ===================

Jensen–Shannon takes numbers of 0 or more and no codes. A row of nothing but zeros has no profile: it is refused, since any
stand-in (even shares, say) would make people without any records alike to people who have some of everything.

With φ(t) = t ln t and p, q of sum 1 the divergence is H((p + q)/2) − (H(p) + H(q))/2, and

    JSD(p, q) = ln 2 − ½ Σ_j [φ(p_j + q_j) − φ(p_j) − φ(q_j)],

where only columns in which both are positive count: φ((p + q)/2) = φ(p + q)/2 − (p + q)/2 · ln 2, and the bracket is 0 if
either is 0 (derived). Rows with few non-zero columns cost accordingly.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SpecificationError, unknown

if TYPE_CHECKING:
    from .features import Features

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

METRICS = ("gower", "jensen-shannon", "euclidean", "hamming")
LN2 = log(2)
PAIRS = 1 << 16  # pairs of rows handled at a time
BLOCK = 1 << 21  # entries of a block of distances handled at a time
TILE = (256, 1024)  # of Jensen–Shannon: it and its logarithms stay in the cache


def check_metric(metric: str) -> None:
    """Refuse an unknown metric.

    Raises:
        SpecificationError: it is none of ``METRICS``.
    """
    if metric not in METRICS:
        raise unknown("metric", "metric", metric, METRICS)


def highest(metric: str) -> float:
    """The greatest distance that a metric can give.

    >>> highest("gower"), highest("euclidean")
    (1.0, inf)
    """
    return {"jensen-shannon": LN2, "euclidean": np.inf}.get(metric, 1.0)


def check_features(features: Features, metric: str) -> None:
    """Refuse features that a metric cannot compare.

    Raises:
        SpecificationError: an unknown metric, or codes given to jensen-shannon.
        DataError: jensen-shannon, and a column with a number below 0, or a row of zeros alone.
    """
    check_metric(metric)
    if metric != "jensen-shannon":
        return
    if features.code_names:
        raise SpecificationError(
            f"metric: jensen-shannon compares counts, and column {features.code_names[0]!r} holds categories; "
            "use gower for mixed columns."
        )
    if features.rows == 0:
        return
    below = np.flatnonzero(features.numbers.min(axis=0) < 0)
    if len(below):
        raise DataError(
            f"metric: jensen-shannon compares counts, and column {features.number_names[below[0]]!r} has a number "
            "below 0; use gower or euclidean."
        )
    if not features.numbers.any(axis=1).all():
        raise DataError(
            "metric: jensen-shannon compares each row's shares, and a row that is 0 in every column has none; "
            "drop such rows, add a column in which they count, or use gower."
        )


def prepared(features: Features, metric: str, rows: Ints | slice) -> tuple[Floats, Codes]:
    """Numbers and codes of some rows as the metric compares them: within the range and scaled, as shares, or as they are."""
    numbers, codes = features.numbers[rows], features.codes[rows]
    if metric == "gower":
        scale = np.where(features.ranges > 0, features.ranges, np.inf)
        numbers = np.clip((numbers - features.low) / scale, 0.0, 1.0)
    elif metric == "jensen-shannon":
        total = numbers.sum(axis=1, keepdims=True)
        if not (total > 0).all():
            check_features(features, metric)
        numbers = numbers / total
    return numbers, codes


def column(features: Features, metric: str, rows: Ints, j: int, sums: Floats | None) -> Floats:
    """One column of numbers as ``prepared`` gives it; ``sums`` are the rows' sums where shares are compared."""
    x: Floats = features.numbers[rows, j]
    if metric == "gower":
        spread = features.ranges[j] if features.ranges[j] > 0 else np.inf
        x = (x - features.low[j]) / spread
        return np.clip(x, 0.0, 1.0, out=x)
    return x if sums is None else x / sums


def apart(features: Features, a: Ints, b: Ints, metric: str, other: Features | None = None) -> Floats:
    """Distances of pairs of rows.

    Args:
        a, b: row numbers, of the same shape (n,); b counts rows of ``other`` where it is given.
    Returns:
        Shape (n,), fresh; unit and range as the metric's (see the module).
    Raises:
        SpecificationError, DataError: as ``check_features``, not checked row by row before.

    >>> import pyarrow as pa
    >>> from tetraodon.microdata.features import Features
    >>> people = Features.of_arrow(pa.table({"n": [0, 5, 10], "team": ["x", "x", "y"]}), ["n", "team"])
    >>> apart(people, np.array([0, 0]), np.array([1, 2]), "gower").tolist()
    [0.25, 1.0]
    """
    check_metric(metric)
    beside = features if other is None else other
    found = np.empty(len(a))
    width = max(1, features.numbers.shape[1] + features.codes.shape[1])
    step = max(1, min(PAIRS, (1 << 22) // width))
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        x, c = prepared(features, metric, a[part])
        y, d = prepared(beside, metric, b[part])
        found[part] = _pairs(x, c, y, d, metric)
    return found


def between(features: Features, a: Ints, b: Ints, metric: str, other: Features | None = None) -> Floats:
    """Distances of every row of ``a`` from every row of ``b``; shape (len(a), len(b)). Otherwise as ``apart``.

    >>> import pyarrow as pa
    >>> from tetraodon.microdata.features import Features
    >>> visits = Features.of_arrow(pa.table({"cafe": [2, 1, 0], "gym": [0, 1, 4]}), ["cafe", "gym"])
    >>> between(visits, np.array([0]), np.array([0, 2]), "jensen-shannon").round(4).tolist()
    [[0.0, 0.6931]]
    """
    check_metric(metric)
    x, c = prepared(features, metric, a)
    y, d = prepared(features if other is None else other, metric, b)
    return block(x, c, y, d, metric)


def block(x: Floats, c: Codes, y: Floats, d: Codes, metric: str) -> Floats:
    """Distances between all ``prepared`` rows (x, c) and all (y, d); shape (len(x), len(y))."""
    if metric == "jensen-shannon":
        return _divergences(x, y)
    from scipy.spatial.distance import cdist

    found = np.zeros((len(x), len(y)))
    if not found.size:
        return found
    kind = {"gower": "cityblock", "euclidean": "sqeuclidean", "hamming": "hamming"}[metric]
    times = x.shape[1] if metric == "hamming" else 1  # scipy's is a share of the columns
    if x.shape[1]:
        found += cdist(x, y, kind) * times
    if c.shape[1]:
        found += cdist(c.astype(np.float64), d.astype(np.float64), "hamming") * c.shape[1]
    if metric == "euclidean":
        return np.sqrt(found, out=found)
    found /= x.shape[1] + c.shape[1]
    return np.clip(found, 0.0, 1.0, out=found)


def _pairs(x: Floats, c: Codes, y: Floats, d: Codes, metric: str) -> Floats:
    """Row by row distances of ``prepared`` rows."""
    if metric == "jensen-shannon":
        halves = 0.5 * (_entropic(x).sum(axis=1) + _entropic(y).sum(axis=1) - _entropic(x + y).sum(axis=1))
        divergence: Floats = np.clip(LN2 + halves, 0.0, LN2)
        return divergence
    found: Floats = np.count_nonzero(c != d, axis=1).astype(np.float64)
    if metric == "euclidean":
        x = x - y
        found += np.einsum("ij,ij->i", x, x)
        return np.sqrt(found, out=found)
    found += np.count_nonzero(x != y, axis=1) if metric == "hamming" else np.abs(x - y).sum(axis=1)
    found /= x.shape[1] + c.shape[1]
    return np.minimum(found, 1.0, out=found)


def _entropic(t: Floats) -> Floats:
    """φ(t) = t ln t, 0 at 0."""
    found: Floats = np.log(np.where(t > 0, t, 1.0))
    found *= t
    return found


def _divergences(p: Floats, q: Floats) -> Floats:
    """Jensen–Shannon divergences between all rows of p and all of q, in tiles."""
    found = np.empty((len(p), len(q)))
    own, their = _entropic(p), _entropic(q)
    for i in range(0, len(p), TILE[0]):
        a = slice(i, i + TILE[0])
        for j in range(0, len(q), TILE[1]):
            b = slice(j, j + TILE[1])
            found[a, b] = _tile(p[a].T, own[a].T, q[b].T, their[b].T)
    return found


def _tile(p: Floats, own: Floats, q: Floats, their: Floats) -> Floats:
    """The same of one tile, given transposed: column by column over the rows in which it is not 0."""
    rows, columns = p.shape[1], q.shape[1]
    total = np.zeros((rows, columns))
    room, more = np.empty((rows, columns)), np.empty((rows, columns))
    for x, f, y, g in zip(p, own, q, their, strict=True):
        at, to = np.flatnonzero(x), np.flatnonzero(y)
        if len(at) == 0 or len(to) == 0:
            continue
        if len(at) * len(to) > 0.5 * rows * columns and x.all() and y.all():
            np.add.outer(x, y, out=room)
            np.log(room, out=more)
            more *= room
            total += more
            total -= f[:, None]
            total -= g
            continue
        both = np.add.outer(x[at], y[to])
        part = np.log(both)
        part *= both
        part -= f[at, None]
        part -= g[to]
        total[np.ix_(at, to)] += part
    total *= -0.5
    total += LN2
    return np.clip(total, 0.0, LN2, out=total)
