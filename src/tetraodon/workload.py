"""A query resolved against a domain: groups × one axis, and what is asked of every group.

The records are laid out as a table of counts, shape (groups, positions). A record counts in one group at one position, or
nowhere if the filter leaves it out. What is asked of each group is a ``Workload``, never a dense matrix over the domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .attributes import Categorical, Point
from .axes import MAX_ARRAY, Bools, Ints
from .binning import Grouping, grouping, mask, span
from .domain import Domain
from .errors import SpecificationError, Unsupported
from .queries import CDF, Histogram, Linear, Mean, Quantiles, Query, Ranges, Sum
from .reading import kind_of

if TYPE_CHECKING:
    from .table import Counts


@dataclass(frozen=True)
class Cells:
    """Every position of the axis."""

    description = "every cell"


@dataclass(frozen=True)
class Prefixes:
    """Every prefix sum along the axis (the last one is the group's total)."""

    description = "every value of the cumulative count"


@dataclass(frozen=True)
class AllRanges:
    """Every range of consecutive positions."""

    description = "all ranges, on average"


@dataclass(frozen=True, eq=False)
class SomeRanges:
    """Stated ranges: positions lows[q] … highs[q] − 1."""

    lows: Ints
    highs: Ints
    description = "the ranges asked for, on average"


@dataclass(frozen=True, eq=False)
class Rows:
    """Integer combinations of positions, divided by ``denominator``; shape (answers, positions)."""

    matrix: Ints
    denominator: int = 1
    description = "every answer"


Workload = Cells | Prefixes | AllRanges | SomeRanges | Rows


@dataclass(frozen=True, eq=False)
class Resolved:
    """A query over a domain.

    Attributes:
        query, domain: the domain of the attributes that the query uses, in declared order.
        groups: one ``Grouping`` per attribute that splits the table.
        axis: the attribute along which strategies work; None if all attributes are in ``groups``.
        filters: attributes that only filter, with the cells that they keep.
        workload: what is asked of every group.
    """

    query: Query
    domain: Domain
    groups: tuple[Grouping, ...]
    axis: Grouping | None
    filters: tuple[tuple[str, Bools], ...]
    workload: Workload

    @cached_property
    def n_groups(self) -> int:
        return prod(g.size for g in self.groups)

    @property
    def n_positions(self) -> int:
        return 1 if self.axis is None else self.axis.size

    @cached_property
    def is_filtered(self) -> bool:
        """Whether some declared record counts nowhere."""
        every = [*self.groups, *([self.axis] if self.axis is not None else [])]
        dropped = any(g.labels is not None and bool((g.labels < 0).any()) for g in every)
        return dropped or any(not kept.all() for _, kept in self.filters)

    def place(self, codes: Ints) -> tuple[Ints, Ints]:
        """Group and position of whole-domain cells; group −1 for those left out."""
        cells = dict(zip(self.domain.names, self.domain.decode(codes), strict=True))
        group = np.zeros(len(codes), dtype=np.int64)
        out = np.zeros(len(codes), dtype=bool)
        for g in self.groups:
            at = g.positions(cells[g.name])
            out |= at < 0
            group = group * g.size + at
        position = np.zeros(len(codes), dtype=np.int64)
        if self.axis is not None:
            position = self.axis.positions(cells[self.axis.name])
            out |= position < 0
        for name, kept in self.filters:
            out |= ~kept[cells[name]]
        return np.where(out, -1, group), position

    def tabulate(self, counts: Counts) -> Ints:
        """The table of counts, shape (groups, positions), in int64."""
        shape = (self.n_groups, self.n_positions)
        if counts.dense is not None and not self.is_filtered and self._plain:
            ordered = [*self.groups, *([self.axis] if self.axis is not None else [])]
            cube = counts.dense.reshape(self.domain.shape)
            table: Ints = (
                cube.transpose([self.domain.names.index(g.name) for g in ordered]).reshape(shape).copy()
            )
            return table
        table = np.zeros(shape[0] * shape[1], dtype=np.int64)
        for codes, numbers in counts.items():
            group, position = self.place(codes)
            kept = group >= 0
            np.add.at(table, group[kept] * shape[1] + position[kept], numbers[kept])
        return table.reshape(shape)

    @property
    def _plain(self) -> bool:
        every = [*self.groups, *([self.axis] if self.axis is not None else [])]
        return all(g.labels is None for g in every) and not self.filters


def resolve(query: Query, domain: Domain) -> Resolved:
    """Lay a query out over the domain of the attributes it uses.

    Raises:
        SpecificationError: an unknown attribute, an unordered one where order is needed, a range that cuts a cell.
    """
    if not isinstance(query, Query) or not query.word:
        raise SpecificationError(f'query: a query such as td.CDF("age"), not {kind_of(query)}.')
    if query.word == "kmeans":
        raise SpecificationError(
            "kmeans: has no linear answers of its own, and so no sensitivity; a session's plan prices it."
        )
    place = query.word
    for name in query.used:
        domain.attribute(name, place)
    _check_columns(query)
    small = domain.select(*query.used)
    bins, where = dict(query.bins), dict(query.where)

    def group(name: str) -> Grouping:
        return grouping(name, domain[name], bins.get(name), where.get(name), place)

    filters = tuple(
        (n, mask(domain[n], where[n], f"{place}.where.{n}"))
        for n in where
        if n not in query.by + query.attributes
    )
    for name, kept in filters:
        if not kept.any():
            raise SpecificationError(f"{place}.where.{name}: leaves no cell.")
    groups = [group(n) for n in query.by]
    axis: Grouping | None
    workload: Workload
    if query.word == "rows":
        groups, axis, workload = [group(n) for n in query.attributes], None, Cells()
    elif isinstance(query, Histogram):
        columns = [group(n) for n in query.columns]
        axis = _histogram_axis(columns)
        groups += [c for c in columns if c is not axis]
        workload = Cells()
    else:
        axis = group(query.attributes[0])
        workload = _workload(query, axis)
    order = {n: i for i, n in enumerate(domain.names)}
    groups.sort(key=lambda g: order[g.name])
    return Resolved(query, small, tuple(groups), axis, filters, workload)


def _check_columns(query: Query) -> None:
    """An attribute may not be called like a column of the published table."""
    taken = {"value", "lower", "upper"}
    if isinstance(query, Quantiles) or (isinstance(query, CDF) and query.quantiles):
        taken |= {"level"}
    if isinstance(query, Linear):
        taken |= {"row"}
    if isinstance(query, Ranges):
        taken |= {f"{query.attribute}_from", f"{query.attribute}_to"}
    for name in query.by + query.attributes:
        if name in taken:
            raise SpecificationError(
                f"{query.word}: {name!r} is the name of a column of the answers; declare the attribute under another name "
                f"with column={name!r}."
            )


def _histogram_axis(columns: list[Grouping]) -> Grouping | None:
    """The longest attribute in order, else none: order is what strategies exploit."""
    ordered = [c for c in columns if c.attribute.ordered and c.is_run]
    return max(ordered, key=lambda c: c.size) if ordered else None


def _workload(query: Query, axis: Grouping) -> Workload:
    place, attribute = query.word, axis.attribute
    if isinstance(query, Linear):
        matrix = np.array(query.matrix, dtype=np.int64)
        if matrix.shape[1] != axis.size:
            raise SpecificationError(
                f"linear.matrix: {axis.size} cells are declared (special ones included), {matrix.shape[1]} columns given."
            )
        return Rows(matrix)
    if isinstance(query, Sum | Mean):
        return _sum_rows(query, axis)
    if isinstance(query, CDF | Ranges | Quantiles) and isinstance(attribute, Point):
        raise SpecificationError(f"{place}: {axis.name} is a place and has no order; ask for a Histogram.")
    if isinstance(query, CDF | Ranges | Quantiles) and not (attribute.ordered and axis.is_run):
        raise SpecificationError(
            f"{place}: {axis.name} is not ordered; declare ordered=True or ask for a Histogram."
        )
    of_values = isinstance(query, Quantiles) or (isinstance(query, CDF) and bool(query.quantiles))
    if of_values and not axis.n_ordinary:
        raise SpecificationError(f"{place}: the filter leaves no ordinary value.")
    if not isinstance(query, Ranges):
        return Prefixes()
    if isinstance(query.of, str):
        return AllRanges()
    lows, highs = [], []
    for low, high in query.of:
        first, last = span(attribute, low, high, f"{place}.of")
        lows.append(_edge(axis, first, place))
        highs.append(_edge(axis, last, place))
    return SomeRanges(np.array(lows, dtype=np.int64), np.array(highs, dtype=np.int64))


def _edge(axis: Grouping, cell: int, place: str) -> int:
    """The position that starts at a cell (n_ordinary at the end)."""
    if axis.ends is None:
        return cell
    at = int(np.searchsorted(axis.ends[:, 0], cell))
    cut = at > 0 and axis.ends[at - 1, 1] >= cell
    if cut:
        raise SpecificationError(f"{place}.of: a range cuts a bin.")
    return at


def _sum_rows(query: Query, axis: Grouping) -> Rows:
    attribute = axis.attribute
    if isinstance(attribute, Categorical | Point):
        kind = "categorical" if isinstance(attribute, Categorical) else "a place"
        raise SpecificationError(f"{query.word}: {axis.name} is {kind}; only numbers can be added up.")
    if attribute.size > MAX_ARRAY:
        raise Unsupported(f"{query.word}: {axis.name} has more than 2^25 cells; declare coarser cells.")
    numerators, denominator = attribute.midpoints()
    if max(abs(v) for v in (numerators[0], numerators[-1])) > 2**40:
        raise Unsupported(f"{query.word}: values beyond 2^40 in units of the cell; declare a coarser unit.")
    values = np.zeros(axis.size, dtype=np.int64)
    cells = np.arange(attribute.n_values) if axis.ends is None else axis.ends[:, 0]
    values[: axis.n_ordinary] = np.asarray(numerators, dtype=np.int64)[cells]
    rows = [values]
    if isinstance(query, Mean):
        rows.append((np.arange(axis.size) < axis.n_ordinary).astype(np.int64))
    return Rows(np.stack(rows), denominator)
