"""From a release to what a presentation sees: the released numbers by attribute, with the intervals of their sums.

Nothing here reads a table: the answers hold noise already, and widths come from the strategy's closed forms.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from .answers import Answers, Halves, cut_at, halves_of
from .binning import Grouping
from .clustering.query import KMeans
from .clustering.released import Clusters, Way
from .domain import Domain
from .errors import SpecificationError, unknown
from .layout import Column, Layout, layout, quantile_columns, quantiles_of, rounded, texts
from .marginals.answers import TableAnswers, table_columns
from .marginals.asked import ask
from .marginals.query import Marginals
from .marginals.residuals import outside
from .marginals.strategy import MarginalStrategy
from .mechanisms.kron_strategy import KroneckerStrategy
from .mechanisms.strategy import Strategy
from .mechanisms.variance import Floats
from .presentation import Presentation
from .presenting import ALL, NUMBERS, STATUS, Block, Published, with_totals
from .queries import CDF, Histogram, Quantiles, Query, Ranges
from .workload import Rows, resolve

COUNTS = ("histogram", "cdf", "ranges", "marginals", "kmeans")
ADDED = ("histogram", "cdf", "ranges", "marginals", "sum", "linear")


def check_presentation(how: Presentation, query: Query, domain: Domain) -> None:
    """Whether a presentation suits a query.

    Raises:
        SpecificationError: names the key: what rounds or suppresses numbers beside a query that has none, totals over what does
            not add up, a label or unit of no column, two columns of one name.
    """
    word = query.word
    if how.round_to is not None and word == "quantiles":
        raise SpecificationError("present.round_to: quantiles are values of their attribute; bin it instead.")
    if how.suppress_below is not None and word not in COUNTS:
        raise SpecificationError(f"present.suppress_below: for counts, not for {word}; leave it out.")
    if how.totals and word not in ADDED:
        raise SpecificationError(f"present.totals: {word} does not add up over groups; leave it out.")
    groupings = _groupings(query, domain)
    added = [g for g in groupings if word in ("histogram", "marginals") or g.name in query.by]
    names = [g.name for g in added]
    for name in how.totals:
        if name not in names:
            raise unknown("present.totals", "attribute that splits this table", name, names)
    for g in added:
        if g.name in how.totals and ALL in texts(g).tolist():
            raise SpecificationError(
                f"present.totals: {g.name} has a value called {ALL!r}, which is the name of totals; bin it under another name."
            )
    columns, beside = _columns(query, groupings, domain), _beside(query, groupings)
    if how.suppress_below is not None:
        if STATUS in columns:
            raise SpecificationError(
                f"present.suppress_below: adds a column {STATUS!r}, which is the name of an attribute; declare that under "
                f"another name with column={STATUS!r}."
            )
        columns = [*columns, STATUS]
    for key, told in (("labels", how.labels), ("units", how.units)):
        for name, _ in told:
            if name not in (*columns, *beside):
                raise unknown(f"present.{key}", "column of this table", name, [*columns, *beside])
    shared = [n if n in NUMBERS else how.named(n) for n in beside]
    for shown in ([how.named(n) for n in columns], shared):
        twice = next((n for i, n in enumerate(shown) if n in shown[:i]), None)
        if twice is not None:
            raise SpecificationError(
                f"present.labels: two columns would be called {twice!r}; choose another."
            )


def domain_of(strategy: Strategy | MarginalStrategy | Way) -> Domain:
    """A domain over which the strategy's query means what it meant."""
    return strategy.asked.whole if isinstance(strategy, MarginalStrategy) else strategy.domain


def _groupings(query: Query, domain: Domain) -> list[Grouping]:
    """The attributes of a published table, in declared order."""
    if isinstance(query, Marginals):
        return list(ask(query, domain).groupings)
    if isinstance(query, KMeans):
        return []  # centres, which are computed
    resolved = resolve(query, domain)
    every = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
    shown = query.by + query.attributes if isinstance(query, Histogram | CDF) or _is_all(query) else query.by
    return [g for n in domain.names for g in every if g.name == n and n in shown]


def _is_all(query: Query) -> bool:
    return isinstance(query, Ranges) and isinstance(query.of, str)


def _columns(query: Query, groupings: list[Grouping], domain: Domain) -> list[str]:
    names = [g.name for g in groupings]
    if isinstance(query, KMeans):
        from .clustering.select import room_of

        names = list(room_of(query, domain).names)
    elif isinstance(query, Marginals):
        names = ["table", *names]
    elif isinstance(query, Quantiles):
        names = [*names, "level"]
    elif isinstance(query, Ranges) and not _is_all(query):
        names = [*names, f"{query.attribute}_from", f"{query.attribute}_to"]
    elif query.word == "linear":
        names = [*names, "row"]
    return [*names, *NUMBERS]


def _beside(query: Query, groupings: list[Grouping]) -> list[str]:
    if not isinstance(query, CDF) or not query.quantiles:
        return []
    return [*(g.name for g in groupings if g.name in query.by), "level", *NUMBERS]


def presented_rows(
    strategy: Strategy | MarginalStrategy | Way, how: Presentation, rows: int
) -> tuple[int, int]:
    """(rows with their totals of a table of ``rows`` cells, rows of the quantiles beside it), known before the data are read."""
    if isinstance(strategy, Strategy):
        resolved = strategy.resolved
        every = [*resolved.groups, *([resolved.axis] if resolved.axis is not None else [])]
        for g in every:
            if g.name in how.totals:
                rows = rows // g.size * (g.size + 1)
        groups = prod(g.size + (g.name in how.totals) for g in resolved.groups)
        levels = resolved.query.quantiles if isinstance(resolved.query, CDF) else ()
        return rows, groups * len(levels)
    if not isinstance(strategy, MarginalStrategy):
        return rows, 0
    sizes = [g.size + (g.name in how.totals) for g in strategy.asked.groupings]
    return sum(prod(sizes[i] for i in t) for t in strategy.asked.tables), 0


def published(
    strategy: Strategy | MarginalStrategy | Way, answers: Answers, grain: Fraction, how: Presentation
) -> Published:
    """What was released, as a presentation takes it.

    Args:
        answers: in counted units, of which each stands for ``grain``.
    """
    factor = 1.0 if strategy.query.word in ("mean", "quantiles") else float(grain)
    told = answers.at(how.interval)
    if isinstance(strategy, Strategy):
        return _of_strategy(strategy, told, factor, how)
    if not isinstance(strategy, MarginalStrategy):
        told = told.times(factor)
        assert isinstance(told, Clusters)
        columns = dict(told.columns)
        return _alone("kmeans", columns, strategy.domain, "records")
    assert isinstance(told, TableAnswers)
    return _of_tables(strategy, told, factor, how)


def _alone(word: str, columns: dict[str, Column], domain: Domain, unit: str | None) -> Published:
    """Rows over which nothing is added up."""
    value, lower, upper = (columns[n] for n in NUMBERS)
    named = {n: c for n, c in columns.items() if n not in NUMBERS}
    block = Block(named, (len(value),), ("",), value, lower, upper)
    return Published(word, (block,), tuple(named), _units(domain, tuple(named), unit))


def _units(domain: Domain, names: tuple[str, ...], value: str | None) -> dict[str, str | None]:
    units = {n: domain[n].unit if n in domain.names else None for n in names}
    return units | dict.fromkeys(NUMBERS, value or None)


def _of_strategy(strategy: Strategy, told: Answers, factor: float, how: Presentation) -> Published:
    resolved, query = strategy.resolved, strategy.query
    unit = resolved.axis.attribute.unit if resolved.axis is not None else None
    if isinstance(query, Quantiles):
        columns = quantile_columns(strategy, told, query.levels, how.interval)
        return _alone("quantiles", columns, resolved.domain, unit)
    rows = layout(strategy, told.values.shape[1])
    totals = tuple(i for i, n in enumerate(rows.axes) if n in how.totals)
    sums = {
        over: _sum(strategy, told, rows, over, how.interval, factor) for over in _subsets(totals)
    }  # fmt: skip
    value, lower, upper = (
        rounded(np.ascontiguousarray(rows.laid(v * factor)).ravel())
        for v in (told.values, told.lower, told.upper)
    )
    block = Block(rows.columns, rows.shape, rows.axes, value, lower, upper, sums)
    names = tuple(rows.columns)
    of_values = query.word in ("sum", "mean")
    units = _units(resolved.domain, names, unit if of_values else "records")
    beside = None
    if isinstance(query, CDF) and query.quantiles:
        beside = _quantiles(strategy, told, query, how)
    return Published(query.word, (block,), names, units, beside, unit or None)


def _subsets(totals: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every choice of at least one of some attributes."""
    for count in range(1, len(totals) + 1):
        yield from itertools.combinations(totals, count)


def spread_of_sum(variance: Floats, over: tuple[int, ...], strategy: Strategy) -> Floats:
    """Variance of sums over groups, from those of the summands: they add up where groups have noise of their own; where public
    counts or one product tie groups together, no sum has a larger deviation than its summands together.

    Args:
        variance: an array with a dimension for every attribute; ``over``: those that are summed over.
    """
    if strategy.projection is None and not isinstance(strategy, KroneckerStrategy):
        found: Floats = variance.sum(axis=over, keepdims=True)
    else:
        found = np.sqrt(variance).sum(axis=over, keepdims=True) ** 2
    return found


def _sum(
    strategy: Strategy, told: Answers, rows: Layout, over: tuple[int, ...], coverage: Fraction, factor: float
) -> tuple[Floats, Floats]:
    """Ends of the intervals of sums of released estimates, shape of the rest."""
    assert told.estimate is not None
    linear = rows.laid(told.estimate).sum(axis=over, keepdims=True)
    resolved, groups = strategy.resolved, strategy.resolved.n_groups
    along = next((i for i in over if resolved.axis is not None and rows.axes[i] == resolved.axis.name), None)
    if along is not None:
        # The whole axis of a group is one range, whose variance is known in closed form.
        ends = np.array([0]), np.array([resolved.n_positions])
        each = np.broadcast_to(np.atleast_2d(strategy.range_variance(*ends)), (groups, 1))
        plain = [1 if i == along else n for i, n in enumerate(rows.shape)]
        variance = replace(rows, shape=tuple(plain)).laid(each)
    else:
        each = np.broadcast_to(np.atleast_2d(strategy.answer_variance()), told.values.shape)
        variance = rows.laid(each)
    spread = spread_of_sum(variance, tuple(i for i in over if i != along), strategy)
    if not isinstance(resolved.workload, Rows):
        linear = np.where(spread == 0, np.rint(linear), linear)  # exact, but for adding up
    halves = halves_of(strategy, linear, spread, strategy.jumps)
    return _ends(linear, halves, told.span, coverage, factor)


def _ends(
    linear: Floats, halves: Halves, span: tuple[float, float], coverage: Fraction, factor: float
) -> tuple[Floats, Floats]:
    lower, upper = cut_at(linear, halves, *span, coverage)
    return rounded(lower * factor), rounded(upper * factor)


def _quantiles(strategy: Strategy, told: Answers, query: CDF, how: Presentation) -> dict[str, Column]:
    """Quantiles beside a CDF, those of totals over groups included."""
    groups = strategy.resolved.groups
    totals = tuple(i for i, g in enumerate(groups) if g.name in how.totals)
    if not totals:
        return quantile_columns(strategy, told, query.quantiles, how.interval)
    assert told.prefix is not None and told.raw_prefix is not None
    shape = (*(g.size for g in groups), told.prefix.shape[1])
    prefix, raw = (p.reshape(shape) for p in (told.prefix, told.raw_prefix))
    variance = np.broadcast_to(np.atleast_2d(strategy.prefix_variance()), told.prefix.shape).reshape(shape)

    def summed(values: Floats) -> Floats:
        return with_totals(values, totals, lambda over: values.sum(axis=over, keepdims=True))

    spread = with_totals(variance, totals, lambda over: spread_of_sum(variance, over, strategy))
    half = strategy.half_widths(spread.reshape(-1, shape[-1]), 0.0, how.interval)
    labels = {}
    for g in groups:
        names = texts(g)
        if g.name in how.totals:
            names = np.append(names.astype(str), ALL).astype(object)
        labels[g.name] = names
    counts = summed(prefix).reshape(-1, shape[-1]), summed(raw).reshape(-1, shape[-1]), half
    return quantiles_of(strategy, labels, query.quantiles, counts)


def _of_tables(strategy: MarginalStrategy, told: TableAnswers, factor: float, how: Presentation) -> Published:
    asked = strategy.asked
    columns, blocks, start = table_columns(asked, told), [], 0
    names = tuple(n for n in columns if n not in NUMBERS)
    for t in asked.tables:
        value, lower, upper = told.tables[t]
        end = start + value.size
        totals = tuple(i for i, n in enumerate(asked.names(t)) if n in how.totals)
        sums = {}
        for over in _subsets(totals):
            rest = outside(t, tuple(t[i] for i in over))

            def halves(coverage: Fraction, rest: tuple[int, ...] = rest) -> Floats:
                return np.array(strategy.half_width_of(rest, coverage))

            linear = told.linear[t].sum(axis=over, keepdims=True)
            linear = linear if strategy.half_width_of(rest) else np.rint(linear)  # exact, but for adding up
            sums[over] = _ends(linear, halves, told.span, how.interval, factor)
        shown = [rounded(v.ravel() * factor) for v in (value, lower, upper)]
        blocks.append(
            Block(
                {n: columns[n][start:end] for n in names},
                value.shape,
                asked.names(t),
                shown[0],
                shown[1],
                shown[2],
                sums,
            )
        )
        start = end
    return Published("marginals", tuple(blocks), names, _units(asked.domain, names, "records"))
