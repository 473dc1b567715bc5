"""Rows summed up: clusters, counts and distances, from which the channel problem of any group of values is read off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from ..axes import Ints
from ..errors import SpecificationError
from .clusters import Clusters, clustered
from .data import Data
from .divergence import Divergence, Divergences, ToPrototypes
from .families import Floats
from .group_sums import GroupSums
from .obfuscate import Block
from .settings import Hybrid


@dataclass(frozen=True, eq=False, repr=False)
class Piece:
    """The channel problem of one group of values within one class.

    Attributes:
        class_: the class of quasi-identifiers.
        block: the problem.
        rows, columns: which clusters its rows and targets are.
    """

    class_: int
    block: Block
    rows: Ints
    columns: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """What the search for groups works on. Private.

    Attributes:
        data: the rows.
        settings: what was asked.
        clusters: of the exchanged columns.
        counts: rows by class, joint private value that occurs, and cluster.
        present: the joint private values that occur, ascending.
        divergences: distances between rows, summed by class, value and cluster.
        tested: the rows of which requirements are tested: the same, or all rows where these are a sample of them.
    """

    data: Data
    settings: Hybrid
    clusters: Clusters
    counts: Ints
    present: Ints
    divergences: Divergences | ToPrototypes | GroupSums
    tested: Data
    _pieces: dict[bytes, tuple[Piece, ...] | None] = field(default_factory=dict)
    _settled: dict[tuple[int, bytes], Divergence] = field(default_factory=dict)

    @staticmethod
    def of(
        data: Data, settings: Hybrid, clusters: Clusters | None = None, tested: Data | None = None
    ) -> Prepared:
        """Cluster the rows and sum up their distances.

        Args:
            clusters: of the same rows, where they were made elsewhere.
            tested: all rows, where these are a sample of them.

        Raises:
            SpecificationError: more clusters than rows, or too many values for exact sums.
        """
        if not data.rows:
            raise SpecificationError("hybrid: the table has no rows.")
        if clusters is None:
            clusters = clustered(data.features, settings.clusters, settings.metric)
        present, values = np.unique(data.values, return_inverse=True)
        shape = (data.n_classes, len(present), clusters.number)
        counts = np.bincount(
            np.ravel_multi_index((data.classes, values, clusters.labels), shape),
            minlength=int(np.prod(shape)),
        ).reshape(shape)
        pairs = Divergences.of(data.features, settings.metric, data.classes, values, clusters.labels, shape)
        made = pairs.of_prototypes(clusters.prototypes) if settings.published == "prototypes" else pairs
        return Prepared(
            data,
            settings,
            clusters,
            counts.astype(np.int64),
            present,
            made,
            data if tested is None else tested,
        )

    @property
    def total(self) -> int:
        """Rows."""
        return self.data.rows

    @property
    def classes(self) -> float:
        """I(private value; class of quasi-identifiers), in nats: what leaves before any group is named."""
        counts = self.counts.sum(axis=2) / self.total
        there = counts > 0
        apart = np.outer(counts.sum(axis=1), counts.sum(axis=0))
        return max(float((counts[there] * np.log(counts[there] / apart[there])).sum()), 0.0)

    def per_value(self) -> Ints:
        """Of all rows that are tested, those of every joint private value, values that do not occur included."""
        return self._per_value

    @cached_property
    def _per_value(self) -> Ints:
        return np.bincount(self.tested.values, minlength=self.tested.n_values).astype(np.int64)

    def rows_of(self, at: int) -> Ints:
        """The same of the values of one private column."""
        others = tuple(i for i in range(len(self.tested.sizes)) if i != at)
        return np.asarray(self._per_value.reshape(self.tested.sizes).sum(axis=others))

    def inside(self, members: Ints) -> Ints:
        """Where the occurring ones of these joint values stand among all that occur."""
        at = np.searchsorted(self.present, members)
        at = np.minimum(at, len(self.present) - 1)
        return np.asarray(at[self.present[at] == members], dtype=np.int64)

    def grouping(self, members: Ints) -> float:
        """What naming this group tells of the private value, in nats: Σ_q −w ln(w / w_q) over classes q, w = P(group, q)."""
        own = self.counts[:, self.inside(members)].sum(axis=(1, 2)) / self.total
        whole = self.counts.sum(axis=(1, 2)) / self.total
        here = own > 0
        return float(-(own[here] * np.log(own[here] / whole[here])).sum())

    def pieces(self, members: Ints) -> tuple[Piece, ...] | None:
        """The channel problems of a group, one for each class that it occurs in; None where some row has no possible donor."""
        key = members.tobytes()
        if key not in self._pieces:
            self._pieces[key] = self._made(self.inside(members), self.divergences.of_group)
        return self._pieces[key]

    def settle(self, groups: Sequence[Ints]) -> bool:
        """Distances of chosen groups from pairs sampled after the choice; whether anything is sampled at all.

        A group that was chosen because its sampled distances were small would keep bounds that are too low.
        """
        divergences = self.divergences
        if not isinstance(divergences, Divergences):
            return False
        sampled = False
        for members in groups:
            inside = self.inside(members)
            own = [q for q in range(len(self.counts)) if self.counts[q, inside].any()]
            if all(divergences.of_group(q, inside).how != "sampled" for q in own):
                continue
            sampled = True
            fresh = {q: divergences.update_final(q, inside) for q in own}
            self._settled.update({(q, inside.tobytes()): d for q, d in fresh.items()})
            self._pieces[members.tobytes()] = self._made(inside, partial(_fresh, fresh))
        return sampled

    def _made(self, inside: Ints, apart_of: Callable[[int, Ints], Divergence]) -> tuple[Piece, ...] | None:
        found = []
        for q in range(len(self.counts)):
            own = self.counts[q, inside]
            if not own.any():
                continue
            targets = self.targets(own)
            apart = apart_of(q, inside)
            targets &= np.isfinite(apart.upper).any(axis=0)
            if not targets.any():
                return None
            block, rows, columns = Block.of(own, apart.upper, self.total, targets)
            found.append(Piece(q, block, rows, columns))
        return tuple(found)

    def targets(self, own: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Clusters that enough rows of a group are in to come from (of donors), or enough rows at all (of prototypes); those of
        the group itself where their shares are kept."""
        if self.settings.published == "prototypes" and self.settings.is_invariant:
            return np.asarray(own.sum(axis=0) > 0)
        if self.settings.published == "prototypes":
            return np.asarray(self.counts.sum(axis=(0, 1)) >= self.settings.donors)
        return np.asarray(own.sum(axis=0) >= self.settings.donors)

    @property
    def is_exact(self) -> bool:
        """Whether all distances that the budget is charged with are means themselves, and not upper bounds of them."""
        if isinstance(self.divergences, GroupSums):
            return self.divergences.is_exact
        every = np.arange(len(self.present))
        return all(
            self.divergences.of_group(q, every).exact for q, own in enumerate(self.counts) if own.any()
        )

    def mean_cost(self, piece: Piece, members: Ints) -> Floats:
        """A piece's cost without what sampling adds to be safe."""
        inside = self.inside(members)
        apart = self._settled.get((piece.class_, inside.tobytes()))
        if apart is None:
            apart = self.divergences.of_group(piece.class_, inside)
        return apart.mean[np.ix_(piece.rows, piece.columns)]


def _fresh(held: Mapping[int, Divergence], class_: int, inside: Ints) -> Divergence:
    return held[class_]
