"""Consistent tables from noisy ones: every interaction of the attributes is estimated on its own.

A table over a set S of attributes splits into *interactions*, one for every A ⊆ S: what the counts say about the attributes
of A together and about no fewer of them. With d_i positions of attribute i, y_A the table over A and C_i = I − J/d_i (which
takes the mean away along one attribute),

    r_A = (⊗_{i∈A} C_i) y_A,        y_S = Σ_{A⊆S} r_A / Π_{i∈S∖A} d_i      (each r_A repeated along S ∖ A).

The noise of one table is independent with one variance v_S in all its cells, so the parts of it that lie in different
interactions are uncorrelated, and table S tells r_A with covariance v_S·Π_{i∈S∖A} d_i · (⊗ C_i). All tables tell the same
r_A with covariances that differ by a factor only, so generalised least squares over all of them at once is the average
weighted by precision, for every A apart:

    q_A = Σ_{S⊇A} 1/(v_S·Π_{i∈S∖A} d_i),     Cov r̂_A = (⊗ C_i)/q_A,
    Var of a cell of T = Σ_{A⊆T} Π_{i∈A} (1 − 1/d_i) / (q_A·Π_{i∈T∖A} d_i²),      the same for all its cells.

No matrix over the domain is formed. Derived, see docs/marginals.md. A variance of 0 is an exact table, which is held.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..mechanisms.variance import Floats

Axes = tuple[int, ...]
Shape = tuple[int, ...]


def subsets(table: Axes) -> list[Axes]:
    """Every set of attributes within one, smaller ones first.

    >>> subsets((0, 2))
    [(), (0,), (2,), (0, 2)]
    """
    return [a for k in range(len(table) + 1) for a in itertools.combinations(table, k)]


def closure(tables: Iterable[Axes]) -> tuple[Axes, ...]:
    """Every set of attributes within any of some tables, smaller ones first.

    >>> closure([(0, 1), (2,)])
    ((), (0,), (1,), (2,), (0, 1))
    """
    found = {a for table in tables for a in subsets(table)}
    return tuple(sorted(found, key=lambda a: (len(a), a)))


def cells(shape: Shape, axes: Iterable[int]) -> int:
    """Number of cells of a table over some attributes."""
    return math.prod(shape[i] for i in axes)


def outside(table: Axes, inner: Axes) -> Axes:
    """The attributes of a table that are not in a part of it."""
    return tuple(i for i in table if i not in inner)


def precisions(shape: Shape, variances: Mapping[Axes, float], wanted: Iterable[Axes]) -> dict[Axes, float]:
    """q_A for every A within a wanted table; infinite where an exact table tells it, 0 where none tells it.

    Args:
        variances: of one cell of each noisy table; 0 for an exact one.
    """
    told: dict[Axes, float] = dict.fromkeys(closure(wanted), 0.0)
    for table, variance in variances.items():
        for inner in subsets(table) if len(table) < 16 else told:
            if inner in told and set(inner) <= set(table):
                spread = variance * cells(shape, outside(table, inner))
                told[inner] += math.inf if spread == 0 else 1 / spread
    return told


def cell_variance(shape: Shape, table: Axes, precision: Mapping[Axes, float]) -> float:
    """Exact variance of the least-squares estimate of one cell; infinite where the noisy tables do not tell it.

    >>> cell_variance((2, 3), (0, 1), precisions((2, 3), {(0, 1): 1.0}, [(0, 1)]))
    1.0
    """
    total = 0.0
    for inner in subsets(table):
        contrast = math.prod(1 - 1 / shape[i] for i in inner)
        if not contrast or precision[inner] == math.inf:
            continue
        if not precision[inner]:
            return math.inf
        total += contrast / (precision[inner] * cells(shape, outside(table, inner)) ** 2)
    return total


def summed(values: Floats, table: Axes, onto: Axes) -> Floats:
    """A table summed onto fewer attributes."""
    found: Floats = values.sum(axis=tuple(i for i, axis in enumerate(table) if axis not in onto))
    return found


def interactions(
    shape: Shape, observed: Mapping[Axes, Floats], variances: Mapping[Axes, float], wanted: Iterable[Axes]
) -> dict[Axes, Floats]:
    """The least-squares estimate of r_A for every A within a wanted table.

    Args:
        observed: noisy tables, each of shape (d_i for i in its attributes).
        variances: of one cell of each; 0 for exact ones, which are held (they agree with each other).
    """
    found = {}
    for inner in closure(wanted):
        weights = {}
        for table, variance in variances.items():
            if set(inner) <= set(table):
                weights[table] = variance * cells(shape, outside(table, inner))
        exact = [table for table, spread in weights.items() if spread == 0]
        if exact:
            mean = summed(observed[exact[0]], exact[0], inner)
        else:
            total = sum(1 / spread for spread in weights.values())
            mean = np.zeros([shape[i] for i in inner])
            for table, spread in weights.items():
                mean = mean + summed(observed[table], table, inner) / (spread * total)
        for axis in range(len(inner)):
            mean = mean - mean.mean(axis=axis, keepdims=True)
        found[inner] = mean
    return found


def assembled(shape: Shape, table: Axes, parts: Mapping[Axes, Floats]) -> Floats:
    """y_T from its interactions."""
    total = np.zeros([shape[i] for i in table])
    for inner in subsets(table):
        spread = [shape[i] if i in inner else 1 for i in table]
        total += parts[inner].reshape(spread) / cells(shape, outside(table, inner))
    return total


def consistent(
    shape: Shape, observed: Mapping[Axes, Floats], variances: Mapping[Axes, float], wanted: Sequence[Axes]
) -> dict[Axes, Floats]:
    """Least-squares estimates of the wanted tables: any two agree wherever they speak of the same counts.

    >>> noisy = {(0,): np.array([4.0, 6.0]), (1,): np.array([5.0, 7.0])}
    >>> {t: v.tolist() for t, v in consistent((2, 2), noisy, {(0,): 1.0, (1,): 1.0}, [(0,), (1,)]).items()}
    {(0,): [4.5, 6.5], (1,): [4.5, 6.5]}
    """
    parts = interactions(shape, observed, variances, wanted)
    return {
        table: observed[table] if variances.get(table) == 0 else assembled(shape, table, parts)
        for table in wanted
    }
