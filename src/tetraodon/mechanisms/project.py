"""Least squares with equalities: what public counts say about the answers, put into the estimate and its variances.

Let F be the prefix sums of all groups, F̂ their linear estimate with covariance Σ (the same in every group, none between
groups), and C·F = a what the public counts say. The projected estimate and its covariance are

    F̃ = F̂ − ΣCᵀ(CΣCᵀ)⁺(CF̂ − a),    Σ − ΣCᵀ(CΣCᵀ)⁺CΣ = Σ − BᵀB,   B = (CΣCᵀ)^(−1/2) C Σ,

known before any data are read; no variance grows. Source: Gauss–Markov with equalities (textbook), derived in docs/mechanisms.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from ..axes import Ints
from ..sensitivity import Neighbourhood
from ..sensitivity.kinds import kinds_of
from ..workload import Resolved
from .variance import Floats

MAX_ENTRIES = 20_000_000
MAX_FACTS = 5000
NOTHING = 1e-10  # share of a variance below which it counts as none left


class Covariance(Protocol):
    """What is needed of an estimate: variances of prefix sums and of their differences."""

    @property
    def prefix_variance(self) -> Floats: ...
    def range_variance(self, lows: Ints, highs: Ints) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Fact:
    """A public sum of cells of a query's table: Σ over the places = constant + records·n.

    Attributes:
        places: group·positions + position.
        constant: None where the answers are not stated.
        records: how often the number of all records enters.
    """

    places: Ints
    constant: int | None
    records: int


@lru_cache(maxsize=64)
def facts(resolved: Resolved, hood: Neighbourhood) -> tuple[Fact, ...]:
    """The sums of a query's cells that follow from single constraints: the finest sets of places that are unions of labels."""
    if hood.classes is None:
        return ()
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    kinds = kinds_of((resolved,), hood)
    place = kinds.places[:, 0] + 1  # 0: nowhere
    count = resolved.n_groups * resolved.n_positions + 1
    found: list[Fact] = []
    for column, known in zip(hood.classes.signatures.T, hood.classes.known, strict=True):
        label = column[kinds.label]
        size = count + known.n_labels
        links = coo_array((np.ones(len(place)), (place, count + label)), shape=(size, size))
        _, part = connected_components(links, directed=False)
        told = (
            np.array([0, *(known.answers or (0,))])
            if known.first
            else np.array(known.answers or [0] * known.n_labels)
        )
        order = np.argsort(part[1:count], kind="stable")
        ends = np.flatnonzero(np.diff(part[1:count][order])) + 1
        for places in np.split(order, ends):
            own = int(part[1 + places[0]])
            labels = np.flatnonzero(part[count:] == own)
            if own == part[0] or not len(labels) or len(labels) == known.n_labels:
                continue  # some of these records count nowhere, or this is the number of all records
            # Of a count only the answer of label 1 is stated; label 0 has the rest.
            rest = int(known.first == 1 and 0 in labels)
            total = int(told[labels].sum()) - (rest * int(told.sum()) if rest else 0)
            found.append(Fact(places.astype(np.int64), total if known.answers else None, rest))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Projection:
    """Public facts, ready to be put into an estimate.

    Attributes:
        facts: those used.
        rows: shape (facts, groups, ends): the facts as combinations of the prefix sums at ``ends``.
        ends: bounds of prefix sums that the facts use.
        half: shape (rank, facts): (CΣCᵀ)^(−1/2).
        reduction: shape (rank, groups, P + 1): B.
    """

    facts: tuple[Fact, ...]
    rows: Floats
    ends: Ints
    half: Floats
    reduction: Floats

    def applied(self, prefix: Floats, stated: Floats) -> Floats:
        """Prefix sums, shape (groups, P + 1), moved to where they agree with the facts.

        Args:
            stated: shape (facts,): what their sums are.
        """
        apart = np.einsum("cgk,gk->c", self.rows, prefix[:, self.ends]) - stated
        moved: Floats = prefix - np.einsum("r,rgp->gp", self.half @ apart, self.reduction)
        return moved

    def prefixes(self) -> Floats:
        """Shape (groups, P + 1): by how much the variance of each prefix sum falls."""
        return np.asarray((self.reduction**2).sum(axis=0))

    def cells(self) -> Floats:
        """Shape (groups, P)."""
        return np.asarray((np.diff(self.reduction, axis=2) ** 2).sum(axis=0))

    def ranges(self, lows: Ints, highs: Ints) -> Floats:
        """Shape (groups, ranges)."""
        return np.asarray(((self.reduction[:, :, highs] - self.reduction[:, :, lows]) ** 2).sum(axis=0))

    def rows_of(self, matrix: Floats) -> Floats:
        """Shape (groups, answers), for combinations of cells."""
        return np.asarray(((np.diff(self.reduction, axis=2) @ matrix.T) ** 2).sum(axis=0))

    def all_ranges(self) -> float:
        """Mean over groups of the mean over all ranges: Σ_{i<j} (b_j − b_i)² = (P + 1)Σb² − (Σb)²."""
        b = self.reduction
        count = b.shape[2]
        pairs = count * (b**2).sum(axis=2) - b.sum(axis=2) ** 2
        return float(pairs.sum(axis=0).mean() / (count * (count - 1) / 2))


@dataclass(frozen=True, eq=False)
class EqualCells:
    """What known sums of disjoint blocks add to cells that are estimated one by one, with one variance: what a block's sum misses is
    shared equally by its cells. The same as ``Projection`` says, at any size.

    Attributes:
        labels: shape (groups, P): block of every cell; every cell is in one.
        variance: of every cell.
    """

    facts: tuple[Fact, ...]
    labels: Ints
    variance: float

    def applied(self, prefix: Floats, stated: Floats) -> Floats:
        """As ``Projection.applied``."""
        cells, blocks = np.diff(prefix, axis=1), self.labels.ravel()
        found = np.bincount(blocks, weights=cells.ravel(), minlength=len(stated))
        moved: Floats = cells - ((found - stated) / self._sizes)[self.labels]
        return np.concatenate([prefix[:, :1], prefix[:, :1] + np.cumsum(moved, axis=1)], axis=1)

    @property
    def _sizes(self) -> Floats:
        return np.bincount(self.labels.ravel()).astype(np.float64)

    def prefixes(self) -> Floats:
        """As ``Projection.prefixes``."""
        size = self.labels.shape[1]
        return self.ranges(np.zeros(size + 1, dtype=np.int64), np.arange(size + 1, dtype=np.int64))

    def cells(self) -> Floats:
        """As ``Projection.cells``."""
        return np.asarray(self.variance / self._sizes[self.labels])

    def ranges(self, lows: Ints, highs: Ints) -> Floats:
        """As ``Projection.ranges``."""
        fall = np.empty((len(self.labels), len(lows)))
        for g, row in enumerate(self.labels):
            for i, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
                held, count = np.unique(row[low:high], return_counts=True)
                fall[g, i] = self.variance * float((count**2 / self._sizes[held]).sum())
        return fall

    def rows_of(self, matrix: Floats) -> Floats:
        """As ``Projection.rows_of``."""
        fall = np.empty((len(self.labels), len(matrix)))
        for g, row in enumerate(self.labels):
            held, at = np.unique(row, return_inverse=True)
            for i, weights in enumerate(matrix):
                fall[g, i] = self.variance * float((np.bincount(at, weights) ** 2 / self._sizes[held]).sum())
        return fall

    def all_ranges(self) -> float:
        """As ``Projection.all_ranges``."""
        size = self.labels.shape[1]
        lows, highs = np.triu_indices(size + 1, 1)
        return float(self.ranges(lows, highs).mean())


def sums_of(labels: Ints) -> tuple[Fact, ...]:
    """The sums of the places of every block, block by block."""
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    return tuple(Fact(places.astype(np.int64), None, 0) for places in np.split(order, ends))


def projection(told: tuple[Fact, ...], resolved: Resolved, weights: Covariance) -> Projection | None:
    """What public facts add to an estimate; None where they add nothing or are too many."""
    groups, size = resolved.n_groups, resolved.n_positions
    if not told or len(told) > MAX_FACTS or len(told) * groups * (size + 1) > MAX_ENTRIES:
        return None
    runs = [_runs(f.places, size) for f in told]
    ends = np.unique(np.concatenate([np.concatenate([first, past]) for _, first, past in runs]))
    variance = weights.prefix_variance
    if len(ends) * (size + 1) > MAX_ENTRIES or not np.isfinite(variance).all():
        return None
    rows = np.zeros((len(told), groups, len(ends)))
    for c, (group, first, past) in enumerate(runs):
        np.add.at(rows[c], (group, np.searchsorted(ends, past)), 1.0)
        np.add.at(rows[c], (group, np.searchsorted(ends, first)), -1.0)
    every = np.arange(size + 1)
    low, high = np.minimum(ends[:, None], every), np.maximum(ends[:, None], every)
    apart = weights.range_variance(low.ravel(), high.ravel()).reshape(low.shape)
    covariance = 0.5 * (variance[ends][:, None] + variance[None, :] - apart)
    meet = np.einsum("cgk,kl,dgl->cd", rows, covariance[:, ends], rows, optimize=True)
    values, vectors = np.linalg.eigh((meet + meet.T) / 2)
    kept = values > max(float(values.max(initial=0.0)), float(variance.max())) * NOTHING
    if not kept.any():
        return None
    half = vectors[:, kept].T / np.sqrt(values[kept])[:, None]
    reduction = np.einsum("rc,cgk,kp->rgp", half, rows, covariance, optimize=True)
    return Projection(told, rows, ends, half, reduction)


def _runs(places: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """Runs of neighbouring positions in one group: (group, first position, one past the last)."""
    places = np.sort(places)
    new = np.ones(len(places), dtype=bool)
    new[1:] = (np.diff(places) != 1) | (places[1:] % size == 0)
    heads = np.flatnonzero(new)
    tails = np.append(heads[1:], len(places)) - 1
    return places[heads] // size, places[heads] % size, places[tails] % size + 1
