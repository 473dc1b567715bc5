"""Mean distances between the clusters of a group: what exchanging people inside it costs.

For a group of private values (in one class of quasi-identifiers) and clusters c, ĉ,

    d(c, ĉ) = mean of d(x_u, x_v) over all members u of c and v of ĉ, self pairs included,

the expected distortion of a person of c who gets the row of a uniformly drawn donor of ĉ; d(c, c) is above 0 unless a cluster's
rows are all alike. It is NaN where either cluster has no member in the group.

How it is found, class by class (``Divergence.how``):

* *exact*: sums over all pairs of (value, cluster) keys, added up for each group, for classes of up to ``exact_up_to`` rows.
  Gower and Hamming distances are exact at any number of rows where no column has more than 128 different numbers.
* *bounded*: the same sums from counts at knots, for gower and jensen-shannon on larger classes (or on more than about 10,000
  rows of 30 positive columns for jensen-shannon): certain upper bounds, above the truth by 10⁻⁴ and less as a rule
  (``pair_sums``). ``mean`` is the bound, too.
* *sampled*: the Euclidean distance in larger classes, and any metric in those with more than about 5,400 keys: means of
  sampled pairs, with an upper bound that holds with 99 % confidence at once for all entries of a group (``sampled``); of the
  Euclidean distance it is never above the root of the exact mean square.

Source: microdata.md §2 (A2) for d; the sums and bounds are derived.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import SpecificationError
from .distances import Floats, Ints, check_features
from .group_means import Divergence, membership
from .pair_sums import counted, pairwise, work
from .sampled import Pool
from .to_prototypes import ToPrototypes

if TYPE_CHECKING:
    from numpy.random import Generator

    from .features import Features

MOST = 30_000_000  # entries of the sums held at a time: 240 MB
MOST_WORK = 1.5e9  # logarithms: some 15 seconds

__all__ = ["Divergence", "Divergences", "ToPrototypes"]


@dataclass(frozen=True, eq=False, repr=False)
class _Sums:
    """Of one class: keys (cluster-major), how many rows each has, and the sums over their pairs."""

    values: Ints
    clusters: Ints
    number: Floats
    total: Floats
    exact: bool

    @property
    def entries(self) -> int:
        return self.total.size

    def of(self, member: NDArray[np.bool_], clusters: int) -> Divergence:
        at = np.flatnonzero(member[self.values])
        count = np.bincount(self.clusters[at], self.number[at], minlength=clusters)
        mean = np.full((clusters, clusters), np.nan)
        if len(at):
            first = np.flatnonzero(np.diff(self.clusters[at], prepend=-1))
            part = np.add.reduceat(self.total[np.ix_(at, at)], first, axis=1)
            part = np.add.reduceat(part, first, axis=0)
            held = self.clusters[at][first]
            part = (part + part.T) / 2  # symmetric to the last digit
            mean[np.ix_(held, held)] = part / np.outer(count[held], count[held])
        return Divergence(mean, mean, "exact" if self.exact else "bounded")


@dataclass(frozen=True, eq=False, repr=False)
class Divergences:
    """Distances between rows by their class, private value and cluster, added up (or sampled) once and asked for by group.

    Sums are made when a class is first asked for, and the latest are kept, up to 240 MB. Private.

    Attributes:
        shape: numbers of (classes, values, clusters).

    >>> import pyarrow as pa
    >>> from tetraodon.microdata.features import Features
    >>> people = Features.of_arrow(pa.table({"n": [0, 10, 5]}), ["n"])
    >>> values, clusters = np.array([0, 0, 1]), np.array([0, 0, 1])
    >>> found = Divergences.of(people, "gower", np.zeros(3, int), values, clusters, (1, 2, 2))
    >>> found.of_group(0, np.array([0, 1])).mean.tolist()
    [[0.5, 0.5], [0.5, 0.0]]
    """

    features: Features
    metric: str
    values: Ints
    clusters: Ints
    classes: Ints
    shape: tuple[int, int, int]
    exact_up_to: int
    order: Ints
    starts: Ints
    rng: Generator
    _held: dict[int, _Sums | Pool] = field(default_factory=dict)

    @staticmethod
    def of(
        features: Features,
        metric: str,
        classes: Ints,
        values: Ints,
        clusters: Ints,
        shape: tuple[int, int, int],
        exact_up_to: int = 20_000,
        rng: Generator | None = None,
    ) -> Divergences:
        """Check and prepare; no pair is looked at yet.

        Args:
            classes, values, clusters: codes of each row, shape (rows,).
            shape: how many (classes, values, clusters) there are.
            exact_up_to: rows of a class up to which every pair is looked at.
            rng: of the pairs sampled; by default seeded by the operating system. What is sampled decides how close a bound
                is and is no noise that protects anybody.
        Raises:
            SpecificationError: codes of another shape or outside ``shape``; an unknown metric; codes given to
                jensen-shannon; too many keys for a class that is small enough for exact sums.
            DataError: as ``check_features``.
        """
        check_features(features, metric)
        read = []
        for what, codes, size in zip(
            ("classes", "values", "clusters"), (classes, values, clusters), shape, strict=True
        ):
            array = np.asarray(codes)
            if array.shape != (features.rows,) or array.dtype.kind not in "iu":
                raise SpecificationError(f"divergences: {what} is one whole number for each row.")
            if size < 1 or (len(array) and (array.min() < 0 or array.max() >= size)):
                raise SpecificationError(f"divergences: {what} are codes from 0 to one below their number.")
            read.append(array.astype(np.int64))
        order = np.argsort(read[0], kind="stable")
        starts = np.searchsorted(read[0][order], np.arange(shape[0] + 1))
        sizes = np.diff(starts)
        largest = int(sizes[sizes <= exact_up_to].max(initial=0))
        if min(shape[1] * shape[2], largest) ** 2 > MOST:
            raise SpecificationError(
                "divergences: private values times clusters are too many to compare all pairs of; ask for fewer clusters or make the "
                "private column coarser."
            )
        drawn = np.random.default_rng() if rng is None else rng
        return Divergences(
            features, metric, read[1], read[2], read[0], shape, exact_up_to, order, starts, drawn
        )

    def of_group(self, class_: int, members: Ints) -> Divergence:
        """Mean distances of the rows of a class that have one of these values.

        Args:
            class_: of quasi-identifiers, from 0.
            members: private values (codes); an order or a repetition makes no difference.
        Returns:
            Shape (clusters, clusters).
        Raises:
            SpecificationError: no such class, or a value that is none.
        """
        member = membership(class_, members, self.shape)
        found = self._of_class(class_)
        if isinstance(found, _Sums):
            return found.of(member, self.shape[2])
        mean, upper = found.of_group(member, self.shape[2], self.rng)
        return Divergence(mean, upper, "sampled")

    def update_final(self, class_: int, members: Ints) -> Divergence:
        """As ``of_group``, for a group that was chosen among many: where pairs are sampled, from fresh and more pairs.

        A group that won because its sampled distances happened to be small would keep an upper bound that is too low; the
        bound of pairs drawn after the choice holds for it.
        """
        member = membership(class_, members, self.shape)
        found = self._of_class(class_)
        if isinstance(found, _Sums):
            return found.of(member, self.shape[2])
        mean, upper = found.afresh(member, self.shape[2], self.rng)
        return Divergence(mean, upper, "sampled")

    def of_prototypes(self, prototypes: Features) -> ToPrototypes:
        """The same rows' mean distances to published prototypes, one for each cluster."""
        return ToPrototypes.of(
            self.features, prototypes, self.metric, self.classes, self.values, self.clusters, self.shape
        )

    def _of_class(self, class_: int) -> _Sums | Pool:
        if class_ in self._held:
            return self._held[class_]
        rows = self.order[self.starts[class_] : self.starts[class_ + 1]]
        sums = self._sums(rows)
        if sums is not None:
            made: _Sums | Pool = sums
        else:
            made = Pool.draw(
                self.features, self.metric, rows, self.values, self.clusters, self.shape[1], self.rng
            )
        for other in list(self._held):  # oldest first
            if sum(h.entries for h in self._held.values()) + made.entries <= MOST:
                break
            self._held.pop(other, None)
        self._held[class_] = made
        return made

    def _sums(self, rows: Ints) -> _Sums | None:
        """The sums of a class; None where pairs must be sampled."""
        small = len(rows) <= self.exact_up_to
        if not len(rows):
            none = np.empty(0, dtype=np.int64)
            return _Sums(none, none, np.empty(0), np.empty((0, 0)), True)
        if not small and (
            self.metric == "euclidean" or min(self.shape[1] * self.shape[2], len(rows)) ** 2 > MOST
        ):
            return None
        key, at, number = np.unique(
            self.clusters[rows] * self.shape[1] + self.values[rows], return_inverse=True, return_counts=True
        )
        at = at.reshape(-1)
        pairs = small and (
            self.metric != "jensen-shannon" or work(self.features, self.metric, rows) <= MOST_WORK
        )
        told = counted(self.features, self.metric, rows, at, len(key), exactly=pairs)
        if told is None:
            told = pairwise(self.features, self.metric, rows, at, len(key)), True
        clusters, values = np.divmod(key, self.shape[1])
        return _Sums(values, clusters, number.astype(np.float64), *told)

    def __repr__(self) -> str:
        return f"Divergences({self.metric}, {' × '.join(map(str, self.shape))} classes, values, clusters)"
