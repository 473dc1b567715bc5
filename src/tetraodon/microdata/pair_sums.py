"""Sums of distances over all pairs of rows, by the keys of the two: from every pair, or column by column from counts.

A key stands for what the rows are counted by (a private value and a cluster). Asked for is T[a, b] = Σ d(u, v) over the rows
u of key a and v of key b, self pairs included; every mean between groups of keys follows by adding entries.

*Every pair.* Blocks of distances between rows sorted by key, added up by key in both directions; half of them by symmetry.

*From counts.* Gower's, Hamming's and the Jensen–Shannon distance are sums over columns of a kernel κ(x, y). For a column
with few different values g, T is N K Nᵀ with N the counts (key, value) and K = κ(g, g): exact, at any number of rows. For
many values the g are knots, and a row counts at the two around it, in proportion (hat weights). That replaces κ by its
interpolation in either argument, which is nowhere below κ if κ is convex in either: |x − y| is, and so is −ψ with
ψ(p, q) = φ(p + q) − φ(p) − φ(q), φ(t) = t ln t, as ∂²ψ/∂p² = −q/(p (p + q)) ≤ 0. The sums are then **upper bounds**:

* Gower: above the truth only for two numbers in the same cell, by at most half its width;
* Jensen–Shannon: with knots that grow by a factor of at most 1 + r each, a divergence is above the truth by at most r²/16.
  On a cell (a, (1 + r) a) the error in p is at most (r a)²/8 · q/(a (a + q)) ≤ r²/8 · pq/(p + q), that in q the same, and
  ½ Σ_j r²/4 · pq/(p + q) ≤ r²/16, because pq/(p + q) ≤ (p + q)/4.

Source: derived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .distances import LN2, Codes, Floats, Ints, block, column, prepared

if TYPE_CHECKING:
    from .features import Features

TILE = 1024  # rows on either side of a block of distances
KNOTS = 128  # of a column with many different values, and the most of different values that are counted one by one
_SAMPLE = 50_000  # rows from which knots are chosen


def pairwise(features: Features, metric: str, rows: Ints, keys: Ints, size: int) -> Floats:
    """The sums from every pair of rows; see the module.

    Args:
        rows: row numbers, shape (n,), each with its key from 0 to ``size`` − 1 in ``keys``.
    Returns:
        Shape (size, size), symmetric.
    """
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    x, c = prepared(features, metric, rows[order])
    total = np.zeros((size, size))
    for i in range(0, len(keys), TILE):
        a = slice(i, i + TILE)
        first = np.flatnonzero(np.diff(keys[a], prepend=-1))
        for j in range(i, len(keys), TILE):
            b = slice(j, j + TILE)
            second = np.flatnonzero(np.diff(keys[b], prepend=-1))
            part = np.add.reduceat(block(x[a], c[a], x[b], c[b], metric), second, axis=1)
            part = np.add.reduceat(part, first, axis=0)
            held, met = keys[a][first], keys[b][second]
            total[np.ix_(held, met)] += part
            if j > i:
                total[np.ix_(met, held)] += part.T
    return total


def work(features: Features, metric: str, rows: Ints) -> float:
    """Pairs of numbers that ``pairwise`` takes a logarithm of (jensen-shannon), or compares."""
    if metric != "jensen-shannon":
        return 0.5 * len(rows) * len(rows) * len(features.names)
    held = np.count_nonzero(features.numbers[rows], axis=0).astype(np.float64)
    return 0.5 * float(np.square(held).sum())


def counted(
    features: Features, metric: str, rows: Ints, keys: Ints, size: int, exactly: bool = False
) -> tuple[Floats, bool] | None:
    """The sums from counts, and whether they are exact rather than upper bounds; see the module.

    Args:
        exactly: give None instead of upper bounds.
    Returns:
        Shape (size, size), symmetric. None for the Euclidean distance, which is no sum over columns.
    """
    if metric == "euclidean":
        return None
    width, codes = features.numbers.shape[1], features.codes
    sums = features.numbers[rows].sum(axis=1) if metric == "jensen-shannon" else None
    exact = True
    number = np.bincount(keys, minlength=size).astype(np.float64)
    everyone = np.outer(number, number)
    total = np.zeros((size, size))
    for j in range(width):
        x = column(features, metric, rows, j, sums)
        short = metric == "hamming" or _few(x)
        exact &= short
        if exactly and not exact:
            return None
        if metric == "hamming":
            level, code = np.unique(x, return_inverse=True)
            total += everyone - _equal(keys, code.reshape(-1), size, len(level))
        elif metric == "gower":
            total += _weighted(x, keys, size, np.unique(x) if short else knots_of(x, False), metric)
        else:
            held = np.flatnonzero(x)
            if len(held):
                x = x[held]
                knots = np.unique(x) if short else knots_of(x, True)
                total += _weighted(x, keys[held], size, knots, metric)
    for j, levels in enumerate(features.levels):
        total += everyone - _equal(keys, codes[rows, j], size, levels)
    if metric == "jensen-shannon":
        total *= -0.5
        total += LN2 * everyone
    else:
        total /= width + codes.shape[1]
    return np.maximum(total, 0.0, out=total), exact


def _few(x: Floats) -> bool:
    """Whether a column has few different values."""
    return len(np.unique(x[:4096])) <= KNOTS and len(np.unique(x)) <= KNOTS


def knots_of(x: Floats, growing: bool) -> Floats:
    """Knots from the least to the greatest value: some of equal steps (or of equal ratios), some of equal shares of rows.

    Any knots give upper bounds; these give close ones both where the values are dense and where they are few.
    """
    even = 32 if not growing else 96
    low, high = float(x.min()), float(x.max())
    spread = np.geomspace if growing else np.linspace
    shares = np.quantile(x[:: max(1, len(x) // _SAMPLE)], np.linspace(0, 1, KNOTS - even))
    inner = np.concatenate([spread(low, high, even), shares])
    return np.unique(np.concatenate([[low, high], inner[(inner > low) & (inner < high)]]))


def _weighted(x: Floats, keys: Ints, size: int, knots: Floats, metric: str) -> Floats:
    """N K Nᵀ of one column: hat weights at the knots on either side."""
    count = len(knots)
    at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, max(count - 2, 0))
    above = np.minimum(at + 1, count - 1)
    width = knots[above] - knots[at]
    share = np.divide(x - knots[at], width, out=np.zeros(len(x)), where=width > 0)
    at += keys * count
    held: Floats = np.asarray(np.bincount(at, 1 - share, minlength=size * count), dtype=np.float64)
    if count > 1:
        held += np.bincount(at + 1, share, minlength=size * count)
    table = held.reshape(size, count)
    if metric == "gower":
        kernel = np.abs(knots[:, None] - knots)
    else:
        both, own = knots[:, None] + knots, knots * np.log(knots)
        kernel = both * np.log(both) - own[:, None] - own
    found: Floats = (table @ kernel) @ table.T
    return found


def _equal(keys: Ints, code: Ints | Codes, size: int, levels: int) -> Floats:
    """How many pairs of rows have the same code, by their keys."""
    if levels <= 4 * KNOTS:
        held = np.bincount(keys * levels + code, minlength=size * levels)
        table = held.astype(np.float64).reshape(size, levels)
        found: Floats = table @ table.T
        return found
    from scipy.sparse import csr_array

    counts = csr_array((np.ones(len(keys)), (keys, code)), shape=(size, levels))
    counts.sum_duplicates()
    dense: Floats = (counts @ counts.T).toarray()
    return dense
