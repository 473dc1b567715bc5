"""Distances and likeness of rows as the baselines' authors measured them, beside the metrics of ``distances``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .distances import between

if TYPE_CHECKING:
    from .features import Features

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OWN_METRICS = ("peak-euclidean", "jaccard")


def distances(features: Features, a: Ints, b: Ints, metric: str) -> Floats:
    """Shape (a, b): d of each row of ``a`` to each of ``b``, in a metric of ``microdata.features`` or ``OWN_METRICS``."""
    if metric == "peak-euclidean":
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(_peaked(vectors(features, a)), _peaked(vectors(features, b))))
    if metric == "jaccard":
        return _jaccard(vectors(features, a), vectors(features, b))
    return between(features, a, b, metric)


def vectors(features: Features, rows: Ints) -> Floats:
    """Shape (rows, columns): the numbers of these rows, then one column of 0 or 1 for each level of each category."""
    parts = [np.asarray(features.numbers[rows], dtype=np.float64)]
    for column, levels in enumerate(features.levels):
        parts.append((features.codes[rows, column][:, None] == np.arange(levels)).astype(np.float64))
    return np.concatenate(parts, axis=1)


def _peaked(rows: Floats) -> Floats:
    peak = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(np.divide(rows, peak, out=np.zeros_like(rows), where=peak > 0))


def _jaccard(a: Floats, b: Floats) -> Floats:
    some, differ = np.zeros((len(a), len(b))), np.zeros((len(a), len(b)))
    for left, right in zip(a.T, b.T, strict=True):
        some += (left != 0)[:, None] | (right != 0)[None, :]
        differ += left[:, None] != right[None, :]
    return np.divide(differ, some, out=np.zeros_like(differ), where=some > 0)


def cosines(a: Floats, b: Floats) -> Floats:
    """Cosine similarities, negative ones as 0; a row of zeros is similar to none."""
    lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)[None, :]
    found = np.divide(a @ b.T, lengths, out=np.zeros(lengths.shape), where=lengths > 0)
    return np.asarray(np.maximum(found, 0.0))
