"""The published table: every declared cell in declared order, attributes in domain order, then value, lower, upper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .answers import Answers, outward, quantile_positions
from .binning import Grouping
from .mechanisms.coverage import COVERAGE
from .mechanisms.strategy import Strategy
from .mechanisms.variance import Floats
from .queries import CDF, Histogram, Quantiles, Query, Ranges

if TYPE_CHECKING:
    from .clustering.released import Way
    from .marginals.strategy import MarginalStrategy

Column = NDArray[Any]
VALUE_COLUMNS = ("value", "lower", "upper")
DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Layout:
    """How the answers of all groups become rows.

    Attributes:
        columns: what names a row: attributes, and others that tell answers apart.
        axes: of every dimension of the rows, its attribute; "" for several answers to each combination.
        shape: their sizes.
        order: where each of them is among groups and answers.
    """

    columns: dict[str, Column]
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...]

    def laid(self, values: Floats) -> Floats:
        """Numbers of shape (groups, answers) as an array of ``shape``."""
        plain = [0] * len(self.shape)
        for size, at in zip(self.shape, self.order, strict=True):
            plain[at] = size
        return values.reshape(plain).transpose(self.order)


def layout(strategy: Strategy, count: int) -> Layout:
    """The rows of a query that is answered in ``count`` numbers a group."""
    resolved = strategy.resolved
    query, groups = resolved.query, list(resolved.groups)
    if resolved.axis is not None and _along_axis(query):
        order = {n: i for i, n in enumerate(resolved.domain.names)}
        every = [*groups, resolved.axis]
        permutation = sorted(range(len(every)), key=lambda i: order[every[i].name])
        told = [every[i] for i in permutation]
        return Layout(
            attribute_columns(told),
            tuple(g.name for g in told),
            tuple(g.size for g in told),
            tuple(permutation),
        )
    columns = attribute_columns(groups, count)
    for name, column in _answer_labels(query, count).items():
        columns[name] = np.tile(column, prod(g.size for g in groups))
    return Layout(
        columns,
        (*(g.name for g in groups), ""),
        (*(g.size for g in groups), count),
        tuple(range(len(groups) + 1)),
    )


def published_columns(strategy: Strategy | MarginalStrategy | Way, answers: Answers) -> dict[str, Column]:
    """The columns of a release, each of one length."""
    if not isinstance(strategy, Strategy):
        from .clustering.released import Clusters, Way
        from .marginals.answers import TableAnswers, table_columns

        if isinstance(strategy, Way):
            assert isinstance(answers, Clusters)
            return answers.columns
        assert isinstance(answers, TableAnswers)
        return table_columns(strategy.asked, answers)
    query = strategy.resolved.query
    if isinstance(query, Quantiles):
        return quantile_columns(strategy, answers, query.levels)
    rows = layout(strategy, answers.values.shape[1])
    columns = dict(rows.columns)
    for name, values in zip(VALUE_COLUMNS, (answers.values, answers.lower, answers.upper), strict=True):
        columns[name] = rounded(np.ascontiguousarray(rows.laid(values)).ravel())
    return columns


def rounded(values: Floats) -> Column:
    """Numbers as they are published: six decimals, no negative zero."""
    found: Column = np.round(values, DECIMALS) + 0.0
    return found


def _along_axis(query: Query) -> bool:
    return isinstance(query, Histogram | CDF) or (isinstance(query, Ranges) and isinstance(query.of, str))


def _answer_labels(query: Query, count: int) -> dict[str, Column]:
    if isinstance(query, Ranges) and not isinstance(query.of, str):
        ends = np.array([[str(low), str(high)] for low, high in query.of], dtype=object)
        return {f"{query.attribute}_from": ends[:, 0], f"{query.attribute}_to": ends[:, 1]}
    return {"row": np.arange(count)} if query.word == "linear" else {}


def texts(grouping: Grouping) -> Column:
    """The published name of every position; plain integers where there is nothing else."""
    plain = grouping.first_values
    if plain is not None:
        return np.array(plain, dtype=np.int64)
    return np.array([grouping.text(p) for p in range(grouping.size)], dtype=object)


def attribute_columns(groupings: Sequence[Grouping], inner: int = 1) -> dict[str, Column]:
    """One column per attribute, row-major, every combination present, each row ``inner`` times."""
    return combinations({g.name: texts(g) for g in groupings}, inner)


def combinations(labels: dict[str, Column], inner: int = 1) -> dict[str, Column]:
    """Columns of every combination of labels, row-major, each row ``inner`` times."""
    columns, before = {}, 1
    after = inner * prod(len(told) for told in labels.values())
    for name, told in labels.items():
        after //= len(told)
        columns[name] = np.tile(np.repeat(told, after), before)
        before *= len(told)
    return columns


def quantile_columns(
    strategy: Strategy, answers: Answers, levels: tuple[Fraction, ...], coverage: Fraction = COVERAGE
) -> dict[str, Column]:
    """Quantiles of every group, read off its cumulative counts: attributes, ``level``, ``value``, ``lower``, ``upper``."""
    assert answers.prefix is not None and answers.raw_prefix is not None
    half = strategy.half_widths(strategy.prefix_variance(), 0.0, coverage)
    labels = {g.name: texts(g) for g in strategy.resolved.groups}
    return quantiles_of(strategy, labels, levels, (answers.prefix, answers.raw_prefix, half))


def quantiles_of(
    strategy: Strategy, labels: dict[str, Column], levels: tuple[Fraction, ...], counts: tuple[Floats, Floats, Floats]
) -> dict[str, Column]:  # fmt: skip
    """Quantiles of groups that are all combinations of some labels.

    Args:
        counts: possible prefix sums and raw ones, shape (groups, P + 1), with half-widths of the latter.
    """
    axis = strategy.resolved.axis
    assert axis is not None
    n, (prefix, raw, half) = axis.n_ordinary, counts
    half = outward(raw, half)
    best = quantile_positions(prefix, levels, n)
    # Position q stays possible while F(q) may reach the share and F(q − 1) may fall short of it: two intervals of its own
    # hold at the true q, however many other positions there are. Published: from the first possible one to the last.
    high, low = raw + half, np.maximum(raw - half, 0.0)
    most = np.maximum.accumulate(high[:, 1 : n + 1], axis=1)
    least = np.minimum.accumulate(low[:, n - 1 :: -1], axis=1)[:, ::-1]
    first = np.minimum(_below(most, low[:, n], levels, 1 - 1e-12), best)
    last = np.maximum(_below(least, high[:, n], levels, 1 + 1e-12) - 1, best)
    unsure = low[:, n] < 1  # the group may be empty: nothing is known but the declared range
    first[unsure], last[unsure] = 0, n - 1
    columns = combinations(labels, len(levels))
    columns["level"] = np.tile([float(q) for q in levels], len(prefix))
    named = texts(axis)
    for name, found in zip(VALUE_COLUMNS, (best, first, last), strict=True):
        columns[name] = named[found.ravel()]
    return columns


def _below(rising: Floats, total: Floats, levels: tuple[Fraction, ...], slack: float) -> NDArray[np.int64]:
    """Shape (groups, levels): how many entries of a group's rising row lie below the level's share of its total."""
    found = np.empty((len(rising), len(levels)), dtype=np.int64)
    for j, level in enumerate(levels):
        for group, row in enumerate(rising):
            found[group, j] = np.searchsorted(row, float(level) * total[group] * slack)
    return found
