"""Mean distances between the clusters of chosen groups, over all rows of a table, in one pass over parts of it.

A plan that was found on a sample is brought to all rows (``from_sample``): its groups and clusters stand, so that sums over pairs
are needed within each group alone, by cluster, and these follow from counts of every column's values by (group, cluster):

* Gower, Jensen–Shannon: counts at knots, as in ``pair_sums``. Knots come from the sample and from the ends of the range, 0 and 1.
  Any knots give upper bounds, and exact sums where no row lies between two of them.
* Hamming: counts of the sample's values. Rows of other values count as unlike all others, themselves too: an upper bound.
* Euclidean: the root of the exact mean square, which is never below the mean (Jensen's inequality).

What is held does not grow with the rows.

Source: derived (``pair_sums``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import SpecificationError
from .distances import LN2, Floats, Ints, column
from .features import Features
from .group_means import Divergence
from .pair_sums import KNOTS, knots_of

MOST = 60_000_000  # entries of the counts: 480 MB
ROUNDED = 1e-12  # of squares that are subtracted from each other


@dataclass(frozen=True, eq=False, repr=False)
class GroupSums:
    """Mean distances within groups that are known. Private.

    Attributes:
        groups: the group of every private value that occurs.
        mean: shape (groups, clusters, clusters); NaN where a cluster has no row in the group.
        is_exact: whether these are the means themselves, and not upper bounds.
    """

    groups: Ints
    mean: Floats
    is_exact: bool

    def of_group(self, class_: int, members: Ints) -> Divergence:
        """The distances of a group, asked for by its private values that occur.

        Raises:
            SpecificationError: values of no group, or of several.
        """
        own = np.unique(self.groups[members])
        if class_ or len(own) != 1:
            raise SpecificationError("group_sums: the values of one group of one class.")
        mean = self.mean[own[0]]
        return Divergence(mean, mean, "exact" if self.is_exact else "bounded")

    def __repr__(self) -> str:
        return f"GroupSums({' × '.join(map(str, self.mean.shape))} groups, clusters, clusters)"


@dataclass(eq=False, repr=False)
class _Column:
    """Counts of a column's values by key; ``knots`` of numbers, ascending, None of codes."""

    at: int
    knots: Floats | None
    table: Floats


def summed(
    parts: Iterable[tuple[Features, Ints]], sample: Features, metric: str, groups: int, clusters: int
) -> tuple[Floats, bool]:
    """Mean distances by group, and whether they are exact rather than upper bounds.

    Args:
        parts: features of some rows, and group · clusters + cluster of each of them; together all rows.
        sample: features of some rows, at least one, from which knots are taken.

    Returns:
        Shape (groups, clusters, clusters).

    Raises:
        SpecificationError: too many values of too many groups and clusters.

    >>> import pyarrow as pa
    >>> people = Features.of_arrow(pa.table({"n": [0, 10, 5]}), ["n"])
    >>> summed([(people, np.array([0, 1, 1]))], people, "gower", 1, 2)[0].tolist()
    [[[0.0, 0.75], [0.75, 0.25]]]
    """
    size = groups * clusters
    numbers = _number_columns(sample, metric, size)
    codes = [_Column(j, None, np.zeros((size, levels))) for j, levels in enumerate(sample.levels)]
    if sum(c.table.size for c in [*numbers, *codes]) > MOST:
        raise SpecificationError(
            "hybrid.sample: the exchanged columns have too many values to be counted by group and cluster; ask for fewer clusters, or "
            "declare coarser values."
        )
    middle = sample.numbers.mean(axis=0)
    first, second = np.zeros((size, len(middle))), np.zeros((size, len(middle)))
    rows = np.zeros(size)
    is_exact = metric != "euclidean"
    for features, keys in parts:
        rows += np.bincount(keys, minlength=size)
        everyone = np.arange(features.rows)
        sums = features.numbers.sum(axis=1) if metric == "jensen-shannon" else None
        for told in numbers:
            is_exact &= _add_numbers(told, column(features, metric, everyone, told.at, sums), keys, metric)
        for told in codes:
            levels = told.table.shape[1]
            told.table += np.bincount(
                keys * levels + features.codes[:, told.at], minlength=told.table.size
            ).reshape(size, levels)
        if metric == "euclidean":
            for j in range(len(middle)):
                x = features.numbers[:, j] - middle[j]
                first[:, j] += np.bincount(keys, x, minlength=size)
                second[:, j] += np.bincount(keys, x * x, minlength=size)
    apart = _apart(numbers, codes, first, second, rows, metric, (groups, clusters))
    return np.where(_pairs(rows, (groups, clusters)) > 0, apart, np.nan), is_exact


def _number_columns(sample: Features, metric: str, size: int) -> list[_Column]:
    if metric == "euclidean":
        return []
    every = np.arange(sample.rows)
    sums = sample.numbers.sum(axis=1) if metric == "jensen-shannon" else None
    found = []
    for j in range(sample.numbers.shape[1]):
        x = column(sample, metric, every, j, sums)
        knots = np.unique(x)
        if metric == "hamming":
            found.append(
                _Column(j, knots, np.zeros((size, len(knots) + 1)))
            )  # the last one is of all other values
            continue
        if len(knots) > KNOTS:
            knots = knots_of(x[x > 0], True) if metric == "jensen-shannon" else knots_of(x, False)
        knots = np.unique(np.concatenate([[0.0, 1.0], knots]))
        found.append(_Column(j, knots, np.zeros((size, len(knots)))))
    return found


def _add_numbers(told: _Column, x: Floats, keys: Ints, metric: str) -> bool:
    """Counts some rows; whether all of them have values that are counted one by one."""
    assert told.knots is not None
    knots, (size, levels) = told.knots, told.table.shape
    if metric == "hamming":
        place = np.minimum(np.searchsorted(knots, x), len(knots) - 1)
        place = np.where(knots[place] == x, place, len(knots))
        told.table += np.bincount(keys * levels + place, minlength=told.table.size).reshape(size, levels)
        return not told.table[:, -1].any()
    at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, levels - 2)
    share = (x - knots[at]) / (knots[at + 1] - knots[at])
    place = keys * levels + at
    told.table += np.bincount(place, 1 - share, minlength=told.table.size).reshape(size, levels)
    told.table += np.bincount(place + 1, share, minlength=told.table.size).reshape(size, levels)
    return bool(((share == 0) | (share == 1)).all())


def _pairs(rows: Floats, shape: tuple[int, int]) -> Floats:
    own = rows.reshape(shape)
    return own[:, :, None] * own[:, None, :]


def _apart(
    numbers: Sequence[_Column],
    codes: Sequence[_Column],
    first: Floats,
    second: Floats,
    rows: Floats,
    metric: str,
    shape: tuple[int, int],
) -> Floats:
    everyone = _pairs(rows, shape)
    total = np.zeros(everyone.shape)
    for told in numbers:
        assert told.knots is not None
        table = told.table.reshape(*shape, -1)
        if metric == "hamming":
            total += everyone - _alike(table[:, :, :-1])
        else:
            total += (table @ _kernel(told.knots, metric)) @ table.transpose(0, 2, 1)
    for told in codes:
        total += everyone - _alike(told.table.reshape(*shape, -1))
    if metric == "jensen-shannon":
        total = LN2 * everyone - 0.5 * total
    mean = np.divide(total, everyone, out=np.zeros(total.shape), where=everyone > 0)
    if metric == "euclidean":
        held = np.maximum(rows, 1)[:, None]
        middles, squares = (first / held).reshape(*shape, -1), (second / held).sum(axis=1).reshape(shape)
        apart = squares[:, :, None] + squares[:, None, :]
        mean += apart * (1 + ROUNDED) - 2 * middles @ middles.transpose(0, 2, 1)
        return np.asarray(np.sqrt(np.maximum(mean, 0.0)))
    if metric != "jensen-shannon":
        mean /= len(numbers) + len(codes)
    return np.maximum(mean, 0.0)


def _alike(table: Floats) -> Floats:
    """How many pairs of rows have one value, by cluster, in each group."""
    return np.asarray(table @ table.transpose(0, 2, 1))


def _kernel(knots: Floats, metric: str) -> Floats:
    if metric == "gower":
        return np.abs(knots[:, None] - knots)
    both, own = knots[:, None] + knots, knots * np.log(np.where(knots > 0, knots, 1.0))
    return np.asarray(both * np.log(np.where(both > 0, both, 1.0)) - own[:, None] - own)
