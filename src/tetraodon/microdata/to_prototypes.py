"""Mean distances of the people of a group to published prototypes: what giving out prototypes instead of donors' rows costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import SpecificationError
from .distances import BLOCK, Floats, Ints, between, check_features
from .group_means import Divergence, membership

if TYPE_CHECKING:
    from .features import Features

MOST = 30_000_000  # entries: 240 MB


@dataclass(frozen=True, eq=False, repr=False)
class ToPrototypes:
    """Sums of distances to each prototype by the rows' class, private value and cluster. Exact at any number of rows.

    Attributes:
        shape: numbers of (classes, values, clusters).
        targets: number of prototypes.

    >>> import pyarrow as pa
    >>> from tetraodon.microdata.features import Features
    >>> people = Features.of_arrow(pa.table({"n": [0, 10, 5]}), ["n"])
    >>> zeros, clusters = np.zeros(3, int), np.array([0, 0, 1])
    >>> found = ToPrototypes.of(people, people.take(np.array([2, 1])), "gower", zeros, zeros, clusters, (1, 1, 2))
    >>> found.of_group(0, np.array([0])).mean.tolist()
    [[0.5, 0.5], [0.0, 0.5]]
    """

    shape: tuple[int, int, int]
    targets: int
    classes: Ints
    clusters: Ints
    values: Ints
    number: Floats
    total: Floats

    @staticmethod
    def of(
        features: Features,
        prototypes: Features,
        metric: str,
        classes: Ints,
        values: Ints,
        clusters: Ints,
        shape: tuple[int, int, int],
    ) -> ToPrototypes:
        """Compare every row with every prototype, in chunks.

        Args:
            prototypes: one row for each, with the same columns.
            classes, values, clusters: codes of each row within ``shape``.
        Raises:
            SpecificationError: more than 3·10⁷ sums; prototypes of other columns; codes given to jensen-shannon.
            DataError: as ``distances.check_features``.
        """
        if prototypes.names != features.names:
            raise SpecificationError(
                "prototypes: the columns of the rows that they stand for, in the same order."
            )
        check_features(features, metric)
        check_features(prototypes, metric)
        key = (classes.astype(np.int64) * shape[2] + clusters) * shape[1] + values
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        held = key[first]
        targets = prototypes.rows
        if len(held) * targets > MOST:
            raise SpecificationError(
                "prototypes: too many classes, private values and clusters to add distances up for; "
                "ask for fewer clusters or make the private column coarser."
            )
        place = np.cumsum(np.diff(key, prepend=-1) > 0) - 1
        total = np.zeros((len(held), targets))
        every = np.arange(targets)
        step = max(1, BLOCK // (targets + len(features.names)))
        for start in range(0, len(order), step):
            part = slice(start, start + step)
            apart = between(features, order[part], every, metric, prototypes)
            begins = np.flatnonzero(np.diff(place[part], prepend=-1))
            total[place[part][begins]] += np.add.reduceat(apart, begins, axis=0)
        number = np.diff(np.append(first, len(key))).astype(np.float64)
        rest, value = np.divmod(held, shape[1])
        class_, cluster = np.divmod(rest, shape[2])
        return ToPrototypes(shape, targets, class_, cluster, value, number, total)

    def of_group(self, class_: int, members: Ints) -> Divergence:
        """Mean distance of the group's rows in each cluster to each prototype; NaN where a cluster has no member.

        Returns:
            Shape (clusters, targets); always exact.
        Raises:
            SpecificationError: no such class, or a value that is none.
        """
        member = membership(class_, members, self.shape)
        begin, end = np.searchsorted(self.classes, [class_, class_ + 1])
        at = begin + np.flatnonzero(member[self.values[begin:end]])
        mean = np.full((self.shape[2], self.targets), np.nan)
        if len(at):
            first = np.flatnonzero(np.diff(self.clusters[at], prepend=-1))
            count = np.add.reduceat(self.number[at], first)
            mean[self.clusters[at][first]] = np.add.reduceat(self.total[at], first, axis=0) / count[:, None]
        return Divergence(mean, mean, "exact")

    def __repr__(self) -> str:
        return f"ToPrototypes({self.targets} prototypes)"
