"""Families of candidate groups, and the cheapest way to part all values into groups of a family.

A family lists its *candidates*: sets of private values that may form a group. Prices of groups add up, so the cheapest
generalisation within the family is a shortest path or a cheapest cut, found exactly by dynamic programming:

    intervals       runs of neighbouring values of an order (``families``)
    tree cuts       nodes of a hierarchy, mixed levels allowed (``trees``)
    rectangles      boxes of a map that straight cuts from side to side make (``rectangles``)

A price is any finite number, or inf where the group is not allowed. Optimality is within the family, never over all ways of
grouping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any, Protocol, overload

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ..axes import Ints
from ..errors import SpecificationError

Floats = NDArray[np.float64]


class Family(Protocol):
    """Candidate groups of the values 0 … n − 1."""

    @property
    def n(self) -> int:
        """How many values there are."""

    @property
    def members(self) -> Sequence[Ints]:
        """The values of each candidate."""

    def counts_of(self, per_value: NDArray[Any]) -> NDArray[Any]:
        """Sums of a table over every candidate: shape (n, …) to (candidates, …)."""

    def best(self, costs: Floats, groups: int | None = None) -> tuple[float, Ints] | None:
        """The least total price of parting all values into candidates, and those candidates; None where there is no way.

        Args:
            costs: a price of each candidate, inf where it is not allowed, shape (candidates,).
            groups: how many groups exactly; None for any number.
        """


@dataclass(frozen=True, eq=False)
class Runs(Sequence[Ints]):
    """Candidates that are runs of one order of the values, made when they are asked for.

    Args:
        order: the values in order, shape (n,).
        starts, ends: each run, from start to before end, shape (candidates,).

    >>> runs = Runs(np.array([2, 0, 1]), np.array([0, 1]), np.array([2, 3]))
    >>> [run.tolist() for run in runs], runs.sums(np.array([10, 20, 40])).tolist()
    ([[2, 0], [0, 1]], [50, 30])
    """

    order: Ints
    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, place: int) -> Ints: ...
    @overload
    def __getitem__(self, place: slice) -> Runs: ...
    def __getitem__(self, place: int | slice) -> Ints | Runs:
        if isinstance(place, slice):
            return Runs(self.order, self.starts[place], self.ends[place])
        return self.order[self.starts[place] : self.ends[place]]

    def sums(self, per_value: NDArray[Any]) -> NDArray[Any]:
        """Sums over every run, from differences of running sums; exact for whole numbers."""
        table = np.asarray(per_value)[self.order]
        if table.dtype.kind == "b":
            table = table.astype(np.int64)
        running = np.zeros((len(table) + 1, *table.shape[1:]), dtype=np.cumsum(table[:0]).dtype)
        np.cumsum(table, axis=0, out=running[1:])
        found: NDArray[Any] = running[self.ends] - running[self.starts]
        return found


def sums(members: Sequence[Ints], per_value: NDArray[Any]) -> NDArray[Any]:
    """Sums of a table over the values of every candidate: fast for the members of a family, right for any list.

    >>> sums([np.array([0, 2]), np.array([1])], np.array([1, 2, 4])).tolist()
    [5, 2]
    """
    quick = getattr(members, "sums", None)
    if quick is not None:
        return np.asarray(quick(per_value))
    table = np.asarray(per_value)
    return np.array([table[held].sum(axis=0) for held in members]).reshape(len(members), *table.shape[1:])


def group_of(family: Family, chosen: Ints) -> Ints:
    """The group of each value, shape (n,): the place in ``chosen`` of the candidate that holds it.

    >>> family = intervals(3)
    >>> group_of(family, family.best(np.array([1.0, 1, 9, 1, 9, 0]))[1]).tolist()
    [0, 0, 1]
    """
    found = np.full(family.n, -1, dtype=np.int64)
    for group, candidate in enumerate(chosen.tolist()):
        found[family.members[candidate]] = group
    return found


def read_costs(costs: Floats, candidates: int) -> Floats:
    """Prices of so many candidates, as float64.

    Raises:
        SpecificationError: another number of them, NaN or −inf.
    """
    read = np.asarray(costs, dtype=np.float64)
    if read.shape != (candidates,):
        raise SpecificationError(f"costs: one price for each of the {candidates} candidates.")
    if np.isnan(read).any() or (read == -inf).any():
        raise SpecificationError("costs: finite prices, or inf where a candidate is not allowed.")
    return read


def read_groups(groups: int | None) -> int | None:
    """A number of groups, or None.

    Raises:
        SpecificationError: it is no whole number from 1 on.
    """
    if groups is None:
        return None
    if isinstance(groups, bool) or not isinstance(groups, int | np.integer) or groups < 1:
        raise SpecificationError("groups: a whole number, at least 1, or none for any number of groups.")
    return int(groups)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Runs of at most ``most`` neighbouring values; candidates stand by their start, then by their length.

    >>> family = intervals(4, most=2)
    >>> [run.tolist() for run in family.members]
    [[0], [0, 1], [1], [1, 2], [2], [2, 3], [3]]
    >>> prices = np.array([3.0, 1, 3, 1, 3, 1, 3])
    >>> value, chosen = family.best(prices)
    >>> value, chosen.tolist(), family.best(prices, groups=3)[0]
    (2.0, [1, 5], 7.0)
    """

    order: Ints
    most: int

    @property
    def n(self) -> int:
        return len(self.order)

    @cached_property
    def members(self) -> Runs:
        """The values of each run, in order."""
        lengths = np.minimum(self.most, self.n - np.arange(self.n))
        starts = np.repeat(np.arange(self.n), lengths)
        firsts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Runs(self.order, starts, starts + np.arange(len(starts)) - firsts + 1)

    def candidate(self, start: int, end: int) -> int:
        """Which candidate the run from place ``start`` to before place ``end`` is.

        >>> family = intervals(4, most=2)
        >>> family.members[family.candidate(1, 3)].tolist()
        [1, 2]
        """
        if not 0 <= start < end <= self.n or end - start > self.most:
            raise SpecificationError("candidate: a run within the values, of at most the declared length.")
        shorter = max(0, start - (self.n - self.most))  # starts with fewer than `most` runs
        return start * self.most - shorter * (shorter - 1) // 2 + (end - start - 1)

    def counts_of(self, per_value: NDArray[Any]) -> NDArray[Any]:
        """Sums of a table over every candidate: shape (n, …) to (candidates, …)."""
        return self.members.sums(per_value)

    def best(self, costs: Floats, groups: int | None = None) -> tuple[float, Ints] | None:
        """The cheapest partition, see ``Family.best``: V_s(j) = min_i V_{s−1}(i) + cost(i, j), or V(j) = min_i V(i) + cost(i, j).

        Time n · most, times the number of groups where that is fixed.
        """
        read = read_costs(costs, len(self.members))
        wanted = read_groups(groups)
        if wanted is None:
            return self._any(read)
        return self._staged([read] * wanted)

    def best_by_stage(self, costs: Floats) -> tuple[float, Ints] | None:
        """The cheapest partition where a price depends on which group, counted from the left, the run is.

        Args:
            costs: shape (groups, candidates); row s prices the runs as group s.
        """
        if np.ndim(costs) != 2 or not len(costs):
            raise SpecificationError("costs: one row of prices for each group.")
        rows = [read_costs(row, len(self.members)) for row in costs]
        return self._staged(rows)

    def _by_end(self, costs: Floats) -> Floats:
        """Shape (n, most): the price of the run of each length that ends at each place."""
        runs, table = self.members, np.full((self.n, self.most), inf)
        table[runs.ends - 1, runs.ends - runs.starts - 1] = costs
        return table

    def _any(self, costs: Floats) -> tuple[float, Ints] | None:
        table, n = self._by_end(costs), self.n
        value = np.full(n + 1, inf)
        value[0] = 0.0
        back = np.zeros(n + 1, dtype=np.int64)
        for end in range(1, n + 1):
            longest = min(self.most, end)
            ways = table[end - 1, :longest] + value[end - longest : end][::-1]
            back[end] = ways.argmin()
            value[end] = ways[back[end]]
        if value[n] == inf:
            return None
        ends = [n]
        while ends[-1]:
            ends.append(ends[-1] - int(back[ends[-1]]) - 1)
        chosen = self._places(ends)
        return math.fsum(costs[chosen].tolist()), chosen

    def _staged(self, costs: list[Floats]) -> tuple[float, Ints] | None:
        n = self.n
        if len(costs) > n:
            return None
        value = np.full(n + 1, inf)
        value[0] = 0.0
        backs, table, told = [], self._by_end(costs[0]), costs[0]
        for prices in costs:
            if prices is not told:
                table, told = self._by_end(prices), prices
            padded = np.concatenate([np.full(self.most - 1, inf), value[:-1]])
            ways = sliding_window_view(padded, self.most)[:, ::-1] + table
            backs.append(ways.argmin(axis=1))
            value = np.concatenate([[inf], ways[np.arange(n), backs[-1]]])
        if value[n] == inf:
            return None
        ends = [n]
        for back in reversed(backs):
            ends.append(ends[-1] - int(back[ends[-1] - 1]) - 1)
        chosen = self._places(ends)
        paid = [float(prices[place]) for prices, place in zip(costs, chosen.tolist(), strict=True)]
        return math.fsum(paid), chosen

    def _places(self, ends: list[int]) -> Ints:
        cuts = ends[::-1]
        return np.array([self.candidate(a, b) for a, b in pairwise(cuts)], dtype=np.int64)


def intervals(n: int, most: int | None = None, order: Ints | None = None) -> Intervals:
    """Runs of neighbours among n values.

    Args:
        most: the longest run (None: any); only a bound on *declared* values, whether they appear in rows or not.
        order: the values in the order whose neighbours count (None: 0 … n − 1), as ``orders`` makes them.
    Raises:
        SpecificationError: no values, a longest run below 1, an order that does not hold each value once.
    """
    if n < 1:
        raise SpecificationError("values: at least one.")
    if most is not None and most < 1:
        raise SpecificationError("most: at least 1 value in a group.")
    placed = np.arange(n) if order is None else np.asarray(order, dtype=np.int64)
    if not np.array_equal(np.sort(placed), np.arange(n)):
        raise SpecificationError("order: each value from 0 on exactly once.")
    return Intervals(placed, n if most is None else min(n, most))
