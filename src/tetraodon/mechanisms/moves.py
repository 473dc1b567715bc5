"""What strategies are optimised against: how one record may move, and what is asked, in coordinates without public totals.

The number of records of a component that nobody leaves is public, so answers and rows count modulo these totals (Haney,
Machanavajjhala, Ding 2015, case II). ``features`` gives coordinates for what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from ..axes import Axis, Bools, Ints
from ..errors import Unsupported
from ..graphs import Graph
from ..quotient import label_change, quotient
from ..workload import AllRanges, Cells, Prefixes, Resolved, SomeRanges, Workload
from .forest import Forest
from .variance import Floats

MAX_POSITIONS = 4096


def limit(size: int, largest: int = MAX_POSITIONS) -> None:
    """Refuse axes that are too long to optimise for."""
    if size > largest:
        raise Unsupported(f"optimised strategies are offered up to {largest:,} positions, not {size:,}.")


@dataclass(frozen=True, eq=False)
class Moves:
    """How one record may change the rows of a strategy.

    Attributes:
        size: positions.
        pairs: shape (m, 2), each pair a < b of positions once: a record may move from one to the other.
        leaves: shape (size,), c ≥ 0: a record that leaves position a costs c times the norm of column a (Laplace), or its
            square (Gaussian): c = 1 if it then counts nowhere, 2 if it goes to the same position of another group.
    """

    size: int
    pairs: Ints
    leaves: Floats

    @staticmethod
    def of(axis: Axis, size: int, leaves: Floats | None = None) -> Moves:
        """Along an axis whose position ``size``, if there is one, stands for "counts nowhere".

        Args:
            leaves: other ways to leave a position.

        Raises:
            Unsupported: more than 4096 positions.

        >>> Moves.of(Axis(4, window=1), 3).leaves.tolist()
        [0.0, 0.0, 1.0]
        """
        limit(size)
        edges = np.sort(axis.all_edges(), axis=1)
        gone = edges[:, 1] >= size
        out = np.zeros(size) if leaves is None else np.array(leaves, dtype=np.float64)
        out[edges[gone, 0]] = np.maximum(out[edges[gone, 0]], 1.0)
        return Moves(size, edges[~gone], out)

    @cached_property
    def components(self) -> tuple[Ints, Bools]:
        """(component of each position, whether the total of each component is public)."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        ends = self.pairs.astype(np.int32)
        joined = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(self.size, self.size))
        count, labels = connected_components(joined, directed=False)
        return labels.astype(np.int64), np.bincount(labels, weights=self.leaves, minlength=count) == 0

    @cached_property
    def known(self) -> Bools:
        """Shape (size,): whether the total of a position's component is public."""
        labels, closed = self.components
        return closed[labels]

    @property
    def totals(self) -> Ints:
        """The public totals as rows, shape (components that nobody leaves, size)."""
        labels, closed = self.components
        found: Ints = (labels == np.flatnonzero(closed)[:, None]).astype(np.int64)
        return found

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether reversal leaves everything as it is, every component being its own mirror or within one half."""
        last, labels = self.size - 1, self.components[0]
        a, b = self.pairs[:, 0], self.pairs[:, 1]
        codes, mirrored = np.sort(a * self.size + b), np.sort((last - b) * self.size + last - a)
        if not (np.array_equal(self.leaves, self.leaves[::-1]) and np.array_equal(codes, mirrored)):
            return False
        apart, left = labels != labels[::-1], 2 * np.arange(self.size) < last
        return not np.intersect1d(labels[apart & left], labels[apart & ~left]).size


def moves_along(resolved: Resolved, graph: Graph) -> Moves:
    """How a record may move along a query's axis, in one group, into another or out of all, without known counts.

    Exact where edges move attributes one by one or each by itself; for listed edges, a move from one group to another is taken
    for one between equal positions, at either end. What is chosen with it is priced exactly elsewhere.

    Args:
        graph: over any domain that holds the query's attributes.

    Raises:
        Unsupported: more than 4096 positions.
    """
    size = resolved.n_positions
    limit(size)
    small = graph.project(resolved.domain.names)
    if small.kind == "flat":
        return _listed(resolved, small)
    movers = [(g.name, g.labels) for g in resolved.groups]
    movers += [(n, np.where(kept, 0, -1).astype(np.int64)) for n, kept in resolved.filters]
    change = max((label_change(small.axis(n), labels)[0] for n, labels in movers), default=0)
    axis = Axis(1)
    if resolved.axis is not None:
        axis = quotient(small.axis(resolved.axis.name), resolved.axis.labels)
    return Moves.of(axis, size, np.full(size, float(change)))


def _listed(resolved: Resolved, graph: Graph) -> Moves:
    size = resolved.n_positions
    leaves = np.zeros(size)
    codes = [np.zeros(0, dtype=np.int64)]
    for a, b in graph.edges():
        (ga, pa), (gb, pb) = resolved.place(a), resolved.place(b)
        stay = (ga == gb) & (ga >= 0) & (pa != pb)
        codes.append(np.unique(np.minimum(pa, pb)[stay] * size + np.maximum(pa, pb)[stay]))
        for here, there, at in ((ga, gb, pa), (gb, ga, pb)):
            out = (here >= 0) & (here != there)
            np.maximum.at(leaves, at[out], np.where(there[out] >= 0, 2.0, 1.0))
    found = np.unique(np.concatenate(codes))
    return Moves(size, np.stack([found // size, found % size], axis=1), leaves)


def gram(workload: Workload, size: int) -> tuple[Floats, int]:
    """(V = WᵀW, number of answers) of a workload over ``size`` positions, in the rows' own unit.

    Raises:
        Unsupported: more than 4096 positions.

    >>> gram(AllRanges(), 2)
    (array([[2., 1.],
           [1., 2.]]), 3)
    """
    limit(size)
    at = np.arange(size, dtype=np.int64)
    low, high = np.minimum(at[:, None], at), np.maximum(at[:, None], at)
    if isinstance(workload, Cells):
        return np.eye(size), size
    if isinstance(workload, Prefixes):
        return (size - high).astype(np.float64), size
    if isinstance(workload, AllRanges):
        return ((low + 1) * (size - high)).astype(np.float64), size * (size + 1) // 2
    if isinstance(workload, SomeRanges):
        corner = np.zeros((size + 1, size + 1))
        np.add.at(corner, (workload.lows, workload.highs), 1.0)
        # holds[a, b]: ranges with low ≤ a and high ≥ b
        holds = np.cumsum(np.cumsum(corner, axis=0)[:, ::-1], axis=1)[:, ::-1]
        return np.ascontiguousarray(holds[low, high + 1]), len(workload.lows)
    rows = workload.matrix.astype(np.float64)
    return rows.T @ rows, len(rows)


def features(labels: Ints, known: Bools) -> tuple[Ints, Ints]:
    """Coordinates modulo public totals: prefix sums inside the components, in which workloads of ranges are well-conditioned.

    Returns:
        The last unit of each prefix sum, and the unit that follows in its component (−1 if none does). A prefix sum that
        is a public total is left out.

    >>> features(np.array([0, 0, 1]), np.array([True, True, False]))
    (array([0, 2]), array([ 1, -1]))
    """
    order = np.argsort(labels, kind="stable")
    ends = np.append(labels[order][1:] != labels[order][:-1], True)[: len(order)]
    after = np.where(ends, -1, np.append(order[1:], -1)[: len(order)])
    kept = ~(ends & known[order])
    return order[kept], after[kept]


def in_features(rows: Floats, told: Ints, after: Ints) -> Floats:
    """Rows over units in the coordinates of ``features``."""
    padded = np.concatenate([rows, np.zeros((len(rows), 1), dtype=rows.dtype)], axis=1)
    found: Floats = padded[:, told] - padded[:, after]
    return found


def in_units(coordinates: Floats, told: Ints, after: Ints, size: int) -> Floats:
    """Rows in the coordinates of ``features`` over units: zero on the last unit where the total is public."""
    out = np.zeros((size + 1, len(coordinates)))
    for j in range(len(told) - 1, -1, -1):
        out[told[j]] = out[after[j]] + coordinates[:, j]
    return np.ascontiguousarray(out[:size].T)


def forest_rows(forest: Forest) -> Floats:
    """All rows of a forest, the ends of its blocks first: a named strategy with equal budgets.

    >>> forest_rows(Forest(3, 3, 2)).astype(int).tolist()
    [[1, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    """
    at = np.arange(forest.size)
    listed = [at < forest.ends[:, None]]
    for level in forest.levels:
        listed.append((at >= level.starts[:, None]) & (at < (level.starts + level.widths)[:, None]))
    return np.concatenate(listed).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Merged:
    """A problem with positions that nothing asked tells apart made one.

    Attributes:
        place: shape (positions,): the new position of each.
        square, moves: the smaller problem.
        pair, leaver: the pair of positions behind each new pair, and the position behind each new one that can be left.
    """

    place: Ints
    square: Floats
    moves: Moves
    pair: Ints
    leaver: Ints


def classes(columns: Floats, labels: Ints) -> tuple[Ints, Ints]:
    """(class of each position, first position of each class): equal columns within a component, classes in order."""
    clean = np.ascontiguousarray(columns.T + 0.0)  # −0 becomes 0
    seen: dict[tuple[int, bytes], int] = {}
    digests = (blake2b(row.data, digest_size=16).digest() for row in clean)
    place = [seen.setdefault(key, len(seen)) for key in zip(labels.tolist(), digests, strict=True)]
    found = np.array(place, dtype=np.int64)
    return found, np.unique(found, return_index=True)[1]


def merged(square: Floats, moves: Moves) -> Merged:
    """Merge the positions of a component that have equal columns of V: the rows of an optimal Gaussian strategy combine
    answers and public totals, so they are equal there too."""
    place, first = classes(square, moves.components[0])
    ends = np.sort(place[moves.pairs], axis=1)
    apart = np.flatnonzero(ends[:, 0] != ends[:, 1])
    codes, pair = np.unique(ends[apart, 0] * len(first) + ends[apart, 1], return_index=True)
    by_cost = np.argsort(moves.leaves, kind="stable")
    leaver = np.empty(len(first), dtype=np.int64)
    leaver[place[by_cost]] = by_cost  # the dearest of each stays
    pairs = np.stack([codes // len(first), codes % len(first)], axis=1)
    small = Moves(len(first), pairs, moves.leaves[leaver])
    return Merged(place, square[np.ix_(first, first)], small, apart[pair], leaver)
