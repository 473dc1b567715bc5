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
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class Agreement:
    """Least squares for some observed tables: what does not depend on what was observed.

    Attributes:
        shape: positions of every attribute.
        wanted: tables that are estimated.
        sources: for every A within a wanted table, the observed tables that tell r_A with their weights, which add up to 1; one
            exact table where there is one.
    """

    shape: Shape
    wanted: tuple[Axes, ...]
    sources: dict[Axes, list[tuple[Axes, float]]]

    @staticmethod
    def of(shape: Shape, variances: Mapping[Axes, float], wanted: Iterable[Axes]) -> Agreement:
        """From the variance of one cell of each observed table: 0 for exact ones, which are held (and agree with each other)."""
        wanted = tuple(wanted)
        spreads: dict[Axes, list[tuple[Axes, float]]] = {a: [] for a in closure(wanted)}
        for table, variance in variances.items():
            for inner in subsets(table) if 2 ** len(table) <= len(spreads) else spreads:
                if inner in spreads and set(inner) <= set(table):
                    spreads[inner].append((table, variance * cells(shape, outside(table, inner))))
        sources = {}
        for inner, told in spreads.items():
            exact = [table for table, spread in told if spread == 0]
            total = sum(1 / spread for _, spread in told) if not exact else 1.0
            sources[inner] = (
                [(exact[0], 1.0)] if exact else [(table, 1 / (spread * total)) for table, spread in told]
            )
        return Agreement(shape, wanted, sources)

    def interactions(self, observed: Mapping[Axes, Floats]) -> dict[Axes, Floats]:
        """The least-squares estimate of r_A for every A within a wanted table; 0 where no table tells it.

        Args:
            observed: tables of shape (d_i for i in their attributes).
        """
        sums: dict[tuple[Axes, Axes], Floats] = {(t, t): np.asarray(v) for t, v in observed.items()}

        def told(table: Axes, inner: Axes) -> Floats:
            """A table summed onto fewer attributes, one after the other."""
            if (table, inner) not in sums:
                rest = outside(table, inner)
                before = tuple(i for i in table if i in inner or i == rest[0])
                sums[table, inner] = np.asarray(
                    np.add.reduce(told(table, before), axis=before.index(rest[0]))
                )
            return sums[table, inner]

        found = {}
        for inner, sources in self.sources.items():
            mean: Floats = np.zeros([self.shape[i] for i in inner])
            for table, weight in sources:
                mean = mean + weight * told(table, inner)
            for axis in range(len(inner)):
                mean = mean - np.add.reduce(mean, axis=axis, keepdims=True) / mean.shape[axis]
            found[inner] = mean
        return found

    def tables(self, observed: Mapping[Axes, Floats]) -> dict[Axes, Floats]:
        """Least-squares estimates of the wanted tables: any two agree wherever they speak of the same counts."""
        parts = self.interactions(observed)
        return {t: assembled(self.shape, t, parts) for t in self.wanted}


def assembled(shape: Shape, table: Axes, parts: Mapping[Axes, Floats]) -> Floats:
    """y_T from its interactions, one attribute after the other."""
    here, every = {inner: parts[inner] for inner in subsets(table)}, (slice(None),) * len(table)
    for place, axis in enumerate(table):
        # The attributes up to here are in all arrays, in front; ``rest`` names those of the others that are.
        here = {
            rest: here[axis, *rest] + (here[rest] / shape[axis])[(*every[:place], None)]
            for rest in subsets(table[place + 1 :])
        }
    return here[()]


def consistent(
    shape: Shape, observed: Mapping[Axes, Floats], variances: Mapping[Axes, float], wanted: Sequence[Axes]
) -> dict[Axes, Floats]:
    """Least-squares estimates of the wanted tables, exact ones as they are.

    >>> noisy = {(0,): np.array([4.0, 6.0]), (1,): np.array([5.0, 7.0])}
    >>> {t: v.tolist() for t, v in consistent((2, 2), noisy, {(0,): 1.0, (1,): 1.0}, [(0,), (1,)]).items()}
    {(0,): [4.5, 6.5], (1,): [4.5, 6.5]}
    """
    found = Agreement.of(shape, variances, wanted).tables(observed)
    return found | {t: np.asarray(observed[t]) for t in wanted if variances.get(t) == 0}
