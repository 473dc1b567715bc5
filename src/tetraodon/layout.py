"""The published table: every declared cell in declared order, attributes in domain order, then value, lower, upper."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .answers import Answers, outward, quantile_positions
from .binning import Grouping
from .mechanisms.strategy import Strategy
from .mechanisms.variance import Floats
from .queries import CDF, Histogram, Quantiles, Query, Ranges

if TYPE_CHECKING:
    from .clustering.released import Way
    from .marginals.strategy import MarginalStrategy

Column = NDArray[Any]
VALUE_COLUMNS = ("value", "lower", "upper")
DECIMALS = 6


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
    resolved = strategy.resolved
    query, groups = resolved.query, list(resolved.groups)
    if isinstance(query, Quantiles):
        return _quantiles(strategy, answers, query, groups)
    told = (answers.values, answers.lower, answers.upper)
    arrays = [v.reshape([*(g.size for g in groups), v.shape[1]]) for v in told]
    columns: dict[str, Column] = {}
    if resolved.axis is not None and _along_axis(query):
        order = {n: i for i, n in enumerate(resolved.domain.names)}
        every = [*groups, resolved.axis]
        permutation = sorted(range(len(every)), key=lambda i: order[every[i].name])
        arrays = [a.transpose(permutation) for a in arrays]
        columns = _attributes([every[i] for i in permutation])
    else:
        labels = _answer_labels(query, answers.values.shape[1])
        columns = _attributes(groups, answers.values.shape[1])
        for name, column in labels.items():
            columns[name] = np.tile(column, prod(g.size for g in groups))
    for name, array in zip(VALUE_COLUMNS, arrays, strict=True):
        columns[name] = rounded(np.ascontiguousarray(array).ravel())
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


def _attributes(groupings: Sequence[Grouping], inner: int = 1) -> dict[str, Column]:
    """One column per attribute, row-major, every combination present, each row ``inner`` times."""
    columns, before = {}, 1
    after = inner * prod(g.size for g in groupings)
    for g in groupings:
        after //= g.size
        columns[g.name] = np.tile(np.repeat(texts(g), after), before)
        before *= g.size
    return columns


def _quantiles(
    strategy: Strategy, answers: Answers, query: Quantiles, groups: list[Grouping]
) -> dict[str, Column]:
    axis = strategy.resolved.axis
    assert axis is not None and answers.prefix is not None and answers.raw_prefix is not None
    n, prefix, raw = axis.n_ordinary, answers.prefix, answers.raw_prefix
    half = outward(raw, strategy.half_widths(strategy.prefix_variance()))
    best = quantile_positions(prefix, query.levels, n)
    # Position q stays possible while F(q) may reach the share and F(q − 1) may fall short of it: two intervals of its own
    # hold at the true q, however many other positions there are. Published: from the first possible one to the last.
    high, low = raw + half, np.maximum(raw - half, 0.0)
    most = np.maximum.accumulate(high[:, 1 : n + 1], axis=1)
    least = np.minimum.accumulate(low[:, n - 1 :: -1], axis=1)[:, ::-1]
    first = np.minimum(_below(most, low[:, n], query.levels, 1 - 1e-12), best)
    last = np.maximum(_below(least, high[:, n], query.levels, 1 + 1e-12) - 1, best)
    columns = _attributes(groups, len(query.levels))
    columns["level"] = np.tile([float(q) for q in query.levels], len(prefix))
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
