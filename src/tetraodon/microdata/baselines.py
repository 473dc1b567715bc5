"""What HyObscure is compared with, one row at a time: every row gets the columns of a donor, by a law over all rows.

| baseline | law of the donor of row u |
|---|---|
| ``Random`` | with probability p a uniformly drawn other row, else u itself |
| ``Frapp`` | u itself with probability γ/(γ + n − 1), each other row with 1/(γ + n − 1) |
| ``Exponential`` | row v in proportion to exp(−β d(u, v)), u itself included |
| ``Similarity`` | other rows in proportion to their cosine similarity, those too similar left out; sometimes u itself |

None of them looks at the private column. ``in_group`` draws from the rows of u's own group alone, in which case n counts
these; a row without any other to draw from keeps its own columns.

*Exactness.* Donors come from ``tetraodon.noise``, since a baseline may be what somebody really publishes: ``Random`` and
``Frapp`` from their rational law, the other two from the doubles that ``law`` returns, each read as the rational that it is,
with the most likely donor of a row standing for 1 − Σ of the others. ``law`` and ``expected_distortion`` speak of the same numbers.

*No promise.* ``Exponential`` is what the literature calls its differentially private baseline. It is **not** ε-private as
published: the donors are the private table's own rows, and the divisor of each law is a sum over them (with ``in_group`` also
over people of the same private group), so that exchanging one person's row changes who can be drawn at all.

Source: Han et al. 2021 (comparison); Agrawal and Haritsa 2005 (γ-diagonal).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import SpecificationError, unknown
from ..exact import Number, exact
from ..noise import Choices, below, choose
from .distances import METRICS
from .donor_distances import OWN_METRICS, cosines, distances, vectors

if TYPE_CHECKING:
    from .features import Features

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ENTRIES = 1 << 20  # of a block of laws, padded to a power of two


class Baseline(Protocol):
    """A law of donors, row by row."""

    def within(self, features: Features, rows: Ints, pool: Ints) -> Floats:
        """Shape (rows, pool): the law of each of these rows, all of them members of ``pool``, over its members."""

    def drawn(self, features: Features, pool: Ints) -> Ints:
        """For each member of ``pool`` a donor among them, by its place in ``pool``."""


@dataclass(frozen=True)
class Random:
    """With probability ``replace`` a row gets the columns of a uniformly drawn other row, else it keeps its own.

    Attributes:
        replace: the probability, from 0 to 1, exact.

    Raises:
        SpecificationError: it is no probability.

    >>> Random("0.6")
    Random(replace=Fraction(3, 5))
    """

    replace: Fraction

    def __init__(self, replace: Number) -> None:
        object.__setattr__(self, "replace", _share(replace, "random.replace"))

    def odds(self, size: int) -> tuple[Fraction, Fraction]:
        """Of a pool of this size, the weights of the row itself and of all others together."""
        return (1 - self.replace, self.replace) if size > 1 else (Fraction(1), Fraction(0))

    def within(self, features: Features, rows: Ints, pool: Ints) -> Floats:
        return _diagonal(rows, pool, *self.odds(len(pool)))

    def drawn(self, features: Features, pool: Ints) -> Ints:
        return _kept_or_other(len(pool), *self.odds(len(pool)))


@dataclass(frozen=True)
class Frapp:
    """The γ-diagonal law: a row stays itself γ times as often as it gets the columns of any one other row.

    Attributes:
        gamma: 1 (uniform) or more, exact; whatever the pool, the likeliest donor is γ times as likely as any other.

    Raises:
        SpecificationError: it is below 1.
    Source: Agrawal and Haritsa 2005.

    >>> Frapp(60)
    Frapp(gamma=Fraction(60, 1))
    """

    gamma: Fraction

    def __init__(self, gamma: Number) -> None:
        number = exact(gamma, "frapp.gamma")
        if number < 1:
            raise SpecificationError("frapp.gamma: a number of 1 or more.")
        object.__setattr__(self, "gamma", number)

    def odds(self, size: int) -> tuple[Fraction, Fraction]:
        """Of a pool of this size, the weights of the row itself and of all others together."""
        return self.gamma, Fraction(size - 1)

    def within(self, features: Features, rows: Ints, pool: Ints) -> Floats:
        return _diagonal(rows, pool, *self.odds(len(pool)))

    def drawn(self, features: Features, pool: Ints) -> Ints:
        return _kept_or_other(len(pool), *self.odds(len(pool)))


@dataclass(frozen=True)
class Exponential:
    """Donors in proportion to exp(−β d(u, v)), u itself included. Not ε-private as published: see this module.

    Attributes:
        beta: 0 (uniform) or more, per unit of the metric.
        metric: one of ``microdata.distances.METRICS``, or of this baseline's own: "peak-euclidean" (Euclidean, after each row of
            numbers is divided by its largest magnitude) and "jaccard" (of the columns that are not 0 in both rows, the share
            that differs; 0 where there are none). For these two a category is a column of 0 or 1 for each level.

    Raises:
        SpecificationError: a negative beta, a metric of no such name.
    """

    beta: float
    metric: str = "gower"

    def __init__(self, beta: Number, metric: str = "gower") -> None:
        number = float(exact(beta, "exponential.beta"))
        if not 0 <= number < float("inf"):
            raise SpecificationError("exponential.beta: a number of 0 or more.")
        if metric not in (*METRICS, *OWN_METRICS):
            raise unknown("exponential.metric", "metric", metric, (*METRICS, *OWN_METRICS))
        object.__setattr__(self, "beta", number)
        object.__setattr__(self, "metric", metric)

    def within(self, features: Features, rows: Ints, pool: Ints) -> Floats:
        far = self.beta * distances(features, rows, pool, self.metric)
        far -= far.min(axis=1, keepdims=True)
        weights: Floats = np.exp(-far)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def drawn(self, features: Features, pool: Ints) -> Ints:
        return _by_blocks(self, features, pool)


@dataclass(frozen=True)
class Similarity:
    """Donors in proportion to cosine similarity, but none that is too similar; with probability ``keep`` the row itself.

    Of each row's similarities to its pool, its own counted as 0 and negative ones as 0, those above the ``percentile``-th (the
    entry at place ⌊percentile · n / 100⌋ of the sorted ones, from 0) are set to 0. A row for which nothing is left keeps its own
    columns. Whether a row is kept is drawn for each row by itself.

    Attributes:
        percentile: from 0 to 100, where nothing is cut off.
        keep: the probability, from 0 to 1.

    Raises:
        SpecificationError: a number outside these.
    """

    percentile: float = 80.0
    keep: float = 0.0

    def __init__(self, percentile: Number = 80, keep: Number = 0) -> None:
        at = exact(percentile, "similarity.percentile")
        if not 0 <= at <= 100:
            raise SpecificationError("similarity.percentile: a number from 0 to 100.")
        object.__setattr__(self, "percentile", float(at))
        object.__setattr__(self, "keep", float(_share(keep, "similarity.keep")))

    def within(self, features: Features, rows: Ints, pool: Ints) -> Floats:
        near = cosines(vectors(features, rows), vectors(features, pool))
        is_own = rows[:, None] == pool[None, :]
        near[is_own] = 0.0
        at = int(Fraction(str(self.percentile)) * len(pool) / 100)
        if at < len(pool):
            cut = np.partition(near, at, axis=1)[:, at : at + 1]
            near[near > cut] = 0.0
        total = near.sum(axis=1, keepdims=True)
        law = np.divide(near, total, out=is_own.astype(np.float64), where=total > 0)
        return np.asarray((1 - self.keep) * law + self.keep * is_own)

    def drawn(self, features: Features, pool: Ints) -> Ints:
        return _by_blocks(self, features, pool)


BASELINES: dict[str, Callable[[Number], Baseline]] = {
    "random": Random,
    "frapp": Frapp,
    "exponential": Exponential,
    "similarity": lambda percentile: Similarity(percentile),
}
"""By name, from the one parameter that is swept: ``replace``, ``gamma``, ``beta``, ``percentile``."""


def donors(
    baseline: Baseline | str,
    features: Features,
    groups: Ints | None = None,
    parameter: Number | None = None,
    in_group: bool = False,
) -> Ints:
    """The donor of every row, drawn independently by the baseline's law.

    Args:
        baseline: one of this module, or its name in ``BASELINES`` with its ``parameter``.
        features: of the rows.
        groups: shape (rows,), the group of each row; needed for ``in_group``.
        in_group: draw from the rows of the same group alone.
    Returns:
        int64, shape (rows,): whose columns each row gets.
    Raises:
        SpecificationError: no baseline of this name, a parameter out of its range, groups that are missing or not one a row.
        Refused: the operating system gives no randomness.
    """
    law_of = _baseline(baseline, parameter)
    found = np.empty(_size(features), dtype=np.int64)
    for pool in _pools(features, groups, in_group):
        found[pool] = pool[law_of.drawn(features, pool)]
    return found


def law(
    baseline: Baseline | str,
    features: Features,
    groups: Ints | None = None,
    parameter: Number | None = None,
    in_group: bool = False,
    rows: Ints | None = None,
) -> Floats:
    """The law that ``donors`` draws from, shape (rows asked, all rows): each row sums to 1.

    Args:
        rows: the rows whose law is wanted, all of them when left out.
    Raises:
        SpecificationError: as ``donors``.
    """
    law_of = _baseline(baseline, parameter)
    n = _size(features)
    asked = np.arange(n) if rows is None else np.asarray(rows, dtype=np.int64)
    found = np.zeros((len(asked), n))
    for pool in _pools(features, groups, in_group):
        at = np.flatnonzero(np.isin(asked, pool))
        if len(at):
            found[np.ix_(at, pool)] = law_of.within(features, asked[at], pool)
    return found


def expected_distortion(
    baseline: Baseline | str,
    features: Features,
    metric: str,
    groups: Ints | None = None,
    parameter: Number | None = None,
    in_group: bool = False,
) -> float:
    """(1/n) Σ_u Σ_v P(v | u) d(u, v): what the baseline changes on average, without drawing, in the unit of the metric.

    Raises:
        SpecificationError: as ``donors``; a metric of no such name.
    """
    law_of = _baseline(baseline, parameter)
    total = 0.0
    for pool in _pools(features, groups, in_group):
        for rows in _blocks(pool):
            chances = law_of.within(features, rows, pool)
            total += float((chances * distances(features, rows, pool, metric)).sum())
    return total / _size(features)


# Drawing


def _kept_or_other(size: int, own: Fraction, others: Fraction) -> Ints:
    """A donor for each of ``size`` rows: itself with weight ``own``, a uniformly drawn other one with weight ``others``."""
    places = np.arange(size, dtype=np.int64)
    if size < 2:
        return places
    scale = own.denominator * others.denominator
    coin = Choices.of([[int(own * scale), int(others * scale)]])
    goes = np.flatnonzero(choose(coin, np.zeros(size, dtype=np.int64)))
    other = below(np.full(len(goes), size - 1, dtype=np.int64))
    places[goes] = other + (other >= goes)
    return places


def _by_blocks(baseline: Baseline, features: Features, pool: Ints) -> Ints:
    found: list[Ints] = []
    for rows in _blocks(pool):
        entries = baseline.within(features, rows, pool)
        choices = Choices.exact(entries, entries.argmax(axis=1).astype(np.int64))
        found.append(choose(choices, np.arange(len(rows), dtype=np.int64)))
    return np.concatenate(found)


def _diagonal(rows: Ints, pool: Ints, own: Fraction, others: Fraction) -> Floats:
    """Shape (rows, pool), from the weights of a row itself and of all others together."""
    each = float(others / (own + others) / max(1, len(pool) - 1))
    return np.where(rows[:, None] == pool[None, :], float(own / (own + others)), each)


def _blocks(pool: Ints) -> Iterator[Ints]:
    step = max(1, _ENTRIES >> (len(pool) - 1).bit_length())
    for start in range(0, len(pool), step):
        yield pool[start : start + step]


# What is given


def _baseline(baseline: Baseline | str, parameter: Number | None) -> Baseline:
    if not isinstance(baseline, str):
        if parameter is not None:
            raise SpecificationError(
                "baseline: a parameter goes with a baseline's name, not with one that has its own."
            )
        return baseline
    if baseline not in BASELINES:
        raise unknown("baseline", "baseline", baseline, BASELINES)
    if parameter is None:
        raise SpecificationError(f"baseline: {baseline!r} needs its parameter.")
    return BASELINES[baseline](parameter)


def _share(value: Number, where: str) -> Fraction:
    number = exact(value, where)
    if not 0 <= number <= 1:
        raise SpecificationError(f"{where}: a number from 0 to 1.")
    return number


def _size(features: Features) -> int:
    return len(features.numbers)


def _pools(features: Features, groups: Ints | None, in_group: bool) -> list[Ints]:
    """Who may be whose donor: all rows, or the rows of each group."""
    n = _size(features)
    if not in_group:
        return [np.arange(n, dtype=np.int64)] if n else []
    if groups is None:
        raise SpecificationError("baseline: donors of the same group need the group of each row.")
    told = np.asarray(groups)
    if told.shape != (n,) or told.dtype.kind not in "iu":
        raise SpecificationError("baseline.groups: one whole number for each row.")
    order = np.argsort(told, kind="stable").astype(np.int64)
    ends = np.flatnonzero(np.diff(told[order])) + 1
    return list(np.split(order, ends)) if n else []
