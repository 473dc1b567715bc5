"""From noisy tables to published ones: consistent, possible, with intervals. Sees noisy values only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers, Ends, Halves, around
from ..layout import VALUE_COLUMNS, Column, rounded, texts
from ..mechanisms.parts import Noisy
from ..mechanisms.variance import Floats
from .asked import Asked
from .possible import possible
from .residuals import Axes, cells, consistent
from .strategy import MarginalStrategy


@dataclass(frozen=True, eq=False)
class TableAnswers(Answers):
    """Published tables.

    ``values``, ``lower`` and ``upper`` hold all cells of all tables in a row, shape (1, cells).

    Attributes:
        linear: the least-squares estimate of each table, before it was made possible.
        tables: (values, lower, upper) of each table.
    """

    linear: dict[Axes, Floats] = field(default_factory=dict)
    tables: dict[Axes, tuple[Floats, Floats, Floats]] = field(default_factory=dict)

    def at(self, coverage: Fraction) -> TableAnswers:
        """The same tables with intervals of another coverage."""
        told = super().at(coverage)
        assert isinstance(told, TableAnswers)
        tables, start = {}, 0
        for table, (values, _, _) in self.tables.items():
            end = start + values.size
            lower, upper = (v[0, start:end].reshape(values.shape) for v in (told.lower, told.upper))
            tables[table], start = (values, lower, upper), end
        return replace(told, tables=tables)

    def times(self, factor: float) -> TableAnswers:
        """The same numbers in another unit."""
        tables = {t: (v * factor, a * factor, b * factor) for t, (v, a, b) in self.tables.items()}
        linear = {t: v * factor for t, v in self.linear.items()}
        return replace(
            self, values=self.values * factor, lower=self.lower * factor, upper=self.upper * factor,
            span=(0.0, self.span[1] * factor), ends=self._scaled(factor), tables=tables, linear=linear,
        )  # fmt: skip


def table_answers(strategy: MarginalStrategy, noisy: Noisy) -> TableAnswers:
    """The tables asked for: least squares over all that was observed, the nearest ones without negative cells, and 95 %
    intervals of the linear estimate, cut to 0 … n and widened where they would miss the published value.
    """
    asked, spread = strategy.asked, strategy.table_variances
    shape, total = asked.shape, noisy.most
    observed = strategy.observed(noisy)
    linear = consistent(shape, observed, strategy.variances, asked.tables)
    # Exact counts, without what adding up parts rounded.
    linear = {t: np.rint(v) if spread[t] == 0 else v for t, v in linear.items()}
    exact = {t: observed[t] for t in strategy.exact_tables} | {
        t: v for t, v in linear.items() if spread[t] == 0
    }
    told = possible(shape, linear, spread, exact)
    tables = {}
    found = {
        t: around(np.minimum(told[t], total), linear[t], _halves(strategy, t), 0.0, total)
        for t in asked.tables
    }
    for table, each in found.items():
        tables[table] = (each.values, each.lower, each.upper)
    values, lower, upper = (
        np.concatenate([tables[t][i].ravel() for t in asked.tables])[None, :] for i in range(3)
    )
    return TableAnswers(
        values,
        lower,
        upper,
        span=(0.0, total),
        ends=_ends(tuple(found.values())),
        linear=linear,
        tables=tables,
    )


def _halves(strategy: MarginalStrategy, table: Axes) -> Halves:
    return lambda coverage: np.array(strategy.half_width_of(table, coverage))


def _ends(found: tuple[Answers, ...]) -> Ends:
    """Ends of the cells of all tables in a row."""

    def ends(coverage: Fraction) -> tuple[Floats, Floats]:
        told = [each.at(coverage) for each in found]
        lower, upper = (
            np.concatenate([v.ravel() for v in side])[None, :]
            for side in ([a.lower for a in told], [a.upper for a in told])
        )
        return lower, upper

    return ends


def table_columns(asked: Asked, answers: TableAnswers) -> dict[str, Column]:
    """One long table: the name of the table, every attribute (empty where the table does not have it), then the numbers.

    In a spreadsheet a filter on the first column shows one table with its own columns filled; one file is sent, hashed and
    checked as a whole, and an empty attribute means that the count runs over all its values.
    """
    names = [asked.title(t) for t in asked.tables]
    sizes = [cells(asked.shape, t) for t in asked.tables]
    columns: dict[str, Column] = {"table": np.repeat(np.array(names, dtype=object), sizes)}
    for axis, grouping in enumerate(asked.groupings):
        labels = texts(grouping).astype(object)
        columns[grouping.name] = np.concatenate([_along(asked, t, axis, labels) for t in asked.tables])
    for name, told in zip(VALUE_COLUMNS, (answers.values, answers.lower, answers.upper), strict=True):
        columns[name] = rounded(told.ravel())
    return columns


def one_table(asked: Asked, answers: TableAnswers, table: Axes) -> dict[str, Column]:
    """One table on its own: its attributes, then the numbers."""
    columns: dict[str, Column] = {}
    for axis in table:
        columns[asked.groupings[axis].name] = _along(asked, table, axis, texts(asked.groupings[axis]))
    for name, told in zip(VALUE_COLUMNS, answers.tables[table], strict=True):
        columns[name] = rounded(told.ravel())
    return columns


def _along(asked: Asked, table: Axes, axis: int, labels: NDArray[np.generic]) -> Column:
    """The labels of one attribute in every cell of a table, row-major; None where the table does not have it."""
    if axis not in table:
        return np.full(cells(asked.shape, table), None, dtype=object)
    at = table.index(axis)
    after, before = cells(asked.shape, table[at + 1 :]), cells(asked.shape, table[:at])
    found: Column = np.tile(np.repeat(labels, after), before)
    return found
