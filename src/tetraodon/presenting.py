"""How released numbers are shown: rounded, suppressed, added up, under other names.

All of it is a function of ``Published``, which holds numbers that were released already and public facts, so it costs
nothing and protects nothing. Nothing here can read a table: the module imports nothing that can.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import SpecificationError, Unsupported
from .presentation import Presentation

if TYPE_CHECKING:
    import pandas
    import pyarrow

Column = NDArray[Any]
Floats = NDArray[np.float64]
NUMBERS = ("value", "lower", "upper")
STATUS, SUPPRESSED, ALL = "status", "suppressed", "All"
DECIMALS = 10**6
"""Published numbers are multiples of its inverse."""
EXACT = 2**62


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a published table that are all combinations of some attributes' labels, in row-major order.

    Attributes:
        columns: attributes, and what else names an answer.
        shape: how many labels each of ``axes`` has.
        axes: attributes, in order; "" for several answers to each combination.
        value, lower, upper: released numbers, with intervals of the coverage that is to be shown.
        sums: for attributes that are summed over (positions in ``axes``), the ends of the sums' intervals.
    """

    columns: Mapping[str, Column]
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    value: Column
    lower: Column
    upper: Column
    sums: Mapping[tuple[int, ...], tuple[Floats, Floats]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Published:
    """What was released, and public facts about it: all that a presentation sees.

    Attributes:
        word: the query's.
        blocks: the released table, one block below the other.
        names: columns in their order, without the numbers.
        units: the declared unit of every column, None where there is none.
        quantiles: the columns of quantiles read off the same numbers; None where none were asked for.
        unit_beside: the unit of these quantiles.
    """

    word: str
    blocks: tuple[Block, ...]
    names: tuple[str, ...]
    units: Mapping[str, str | None]
    quantiles: Mapping[str, Column] | None = None
    unit_beside: str | None = None


@dataclass(frozen=True, eq=False)
class Presented:
    """A published table as it is shown.

    Attributes:
        presentation: how.
        columns: by their names as written: attributes, ``value``, ``lower``, ``upper``, and ``status`` where something may
            be suppressed; NaN where it is.
        attributes: the columns before the numbers, by their own names.
        rows: of each block.
        suppressed: how many numbers are not shown.
        units: of every column, by its name as written.
        quantile_columns: the table of quantiles beside it, by names as written; None where there is none. Its numbers are values
            of the attribute, so that a label of ``value`` is not theirs.
        quantile_units: of its columns.
    """

    presentation: Presentation
    columns: dict[str, Column]
    attributes: tuple[str, ...]
    rows: tuple[int, ...]
    suppressed: int
    units: dict[str, str | None]
    quantile_columns: dict[str, Column] | None = None
    quantile_units: dict[str, str | None] = field(default_factory=dict)

    def to_arrow(self) -> pyarrow.Table:
        """The table; null where a number is suppressed."""
        return arrow(self.columns, [self.presentation.named(n) for n in NUMBERS])

    def to_frame(self) -> pandas.DataFrame:
        """The table as a pandas frame; NaN where a number is suppressed."""
        return frame(self.columns)

    @property
    def quantiles(self) -> pandas.DataFrame:
        """The quantiles beside a CDF as a pandas frame.

        Raises:
            SpecificationError: none were asked for.
        """
        if self.quantile_columns is None:
            raise SpecificationError("quantiles: none were asked for; state them in the CDF.")
        return frame(self.quantile_columns)


def arrow(columns: Mapping[str, Column], numbers: Sequence[str] = ()) -> pyarrow.Table:
    """Columns as an Arrow table; NaN among numbers is null."""
    import pyarrow as pa

    return pa.table(
        {
            n: pa.array(c, from_pandas=True) if n in numbers and c.dtype.kind == "f" else pa.array(c)
            for n, c in columns.items()
        }
    )


def frame(
    columns: Mapping[str, Any], asked: str = "to_frame", instead: str = "to_arrow()"
) -> pandas.DataFrame:
    """Columns as a pandas frame.

    Args:
        asked, instead: what was called, and what does without pandas, for the message.
    """
    try:
        import pandas as pd
    except ImportError:
        raise Unsupported(f"{asked}: needs pandas; install it or use {instead}.") from None
    return pd.DataFrame(dict(columns))


def presented(published: Published, presentation: Presentation) -> Presented:
    """The published table as it is to be shown.

    Numbers are rounded first. Totals are sums of the rounded numbers, so that what is printed adds up, before any of them is
    suppressed; their intervals are those of the sums of the released estimates, widened to hold the printed sum.
    """
    parts = [_block(b, presentation) for b in published.blocks]
    columns: dict[str, Column] = {}
    for name in published.names:
        columns[name] = joined([p.columns[name] for p in parts])
    status = joined([p.status for p in parts])
    columns["value"] = joined([p.value for p in parts])
    columns["lower"] = joined([p.lower for p in parts])
    columns["upper"] = joined([p.upper for p in parts])
    units = {n: published.units.get(n) for n in columns} | {
        n: u for n, u in presentation.units if n in columns
    }
    if presentation.suppress_below is not None:
        columns[STATUS], units[STATUS] = status, None
    beside = published.quantiles
    names = {} if beside is None else {n: n if n in NUMBERS else presentation.named(n) for n in beside}
    return Presented(
        presentation,
        {presentation.named(n): c for n, c in columns.items()},
        published.names,
        tuple(len(p.value) for p in parts),
        int((status == SUPPRESSED).sum()),
        {presentation.named(n): u for n, u in units.items()},
        None if beside is None else {names[n]: c for n, c in beside.items()},
        {told: published.unit_beside if n in NUMBERS else units.get(n) for n, told in names.items()},
    )


def joined(parts: Sequence[Column]) -> Column:
    """Columns of several blocks, one below the other."""
    found: Column = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return found


@dataclass(frozen=True, eq=False)
class _Shown:
    """Rows of one block as they are shown."""

    columns: dict[str, Column]
    value: Column
    lower: Column
    upper: Column
    status: Column


def _block(block: Block, how: Presentation) -> _Shown:
    totals = tuple(i for i, n in enumerate(block.axes) if n in how.totals)
    columns, lower, upper = dict(block.columns), block.lower, block.upper
    if block.value.dtype.kind != "f":  # values of an attribute, as quantiles are
        return _Shown(columns, block.value, lower, upper, np.full(len(block.value), None, dtype=object))
    step = Fraction(1, DECIMALS) if how.round_to is None else how.round_to
    value = nearest(block.value, step)
    if how.round_to is not None:
        lower, upper = outward(lower, step, False), outward(upper, step, True)
    if totals:
        columns = {
            n: _with_all(c, block, totals, n) if n in block.axes else _spread(c, block, totals)
            for n, c in columns.items()
        }
        value, lower, upper = _margins(block, how, totals, (value, lower, upper), step)
    is_plain = how.round_to is None and not totals
    shown = block.value if is_plain else numbers(value, step)
    status = np.full(len(shown), None, dtype=object)
    if how.suppress_below is not None:
        # In steps, so that a number equal to the threshold stays.
        hidden = np.array(value < math.ceil(how.suppress_below / step), dtype=bool)
        shown, lower, upper = (np.where(hidden, np.nan, v) for v in (shown, lower, upper))
        status[hidden] = SUPPRESSED
    return _Shown(columns, shown, lower, upper, status)


def _with_all(column: Column, block: Block, totals: tuple[int, ...], name: str) -> Column:
    at = block.axes.index(name)
    wide = column.reshape(block.shape)
    if at in totals:
        wide = wide.astype(str).astype(object)  # "All" is no number
    for i in totals:
        label = wide.take([0], axis=i) if i != at else np.full_like(wide.take([0], axis=i), ALL)
        wide = np.concatenate([wide, label], axis=i)
    return wide.ravel()


def _spread(column: Column, block: Block, totals: tuple[int, ...]) -> Column:
    """A column that names answers, or an attribute that is not an axis, repeated for the totals."""
    wide = column.reshape(block.shape)
    for i in totals:
        wide = np.concatenate([wide, wide.take([0], axis=i)], axis=i)
    return wide.ravel()


def _margins(
    block: Block, how: Presentation, totals: tuple[int, ...], cells: tuple[Column, Column, Column], step: Fraction
) -> tuple[Column, Column, Column]:  # fmt: skip
    """Numbers with the totals of some attributes, in the order of their columns.

    Args:
        cells: value in steps, lower, upper.
    """
    value, lower, upper = (v.reshape(block.shape) for v in cells)

    def total(over: tuple[int, ...]) -> Column:
        found: Column = value.sum(axis=over, keepdims=True)
        return found

    def end(over: tuple[int, ...], is_upper: bool) -> Floats:
        shown = numbers(total(over), step)
        told = block.sums[over][int(is_upper)].reshape(shown.shape)
        if how.round_to is not None:
            told = outward(told, step, is_upper)
        return np.maximum(told, shown) if is_upper else np.minimum(told, shown)

    return (
        with_totals(value, totals, total).ravel(),
        with_totals(lower, totals, lambda over: end(over, False)).ravel(),
        with_totals(upper, totals, lambda over: end(over, True)).ravel(),
    )


def with_totals(cells: Column, totals: Sequence[int], total: Callable[[tuple[int, ...]], Column]) -> Column:
    """An array with one more place along some dimensions, for what stands for all of it.

    Args:
        total: what stands there, for every choice of these dimensions, of length 1 along them.

    >>> with_totals(np.array([1, 2]), (0,), lambda over: np.array([3])).tolist()
    [1, 2, 3]
    """
    size = tuple(n + (i in totals) for i, n in enumerate(cells.shape))
    found = np.empty(size, dtype=cells.dtype)
    for count in range(len(totals) + 1):
        for over in itertools.combinations(totals, count):
            place = tuple(
                (slice(n, n + 1) if i in over else slice(0, n)) if i in totals else slice(None)
                for i, n in enumerate(cells.shape)
            )
            found[place] = total(over) if over else cells
    return found


def _units(values: Column, step: Fraction) -> tuple[Column, int]:
    """Published numbers N/10^6 in steps p/q are N·q/(10^6·p): N·q, in integers that hold its double, and 10^6·p."""
    under = DECIMALS * step.numerator
    largest = (float(np.abs(values).max(initial=0.0)) * DECIMALS + 1) * step.denominator
    if 2 * largest + under < EXACT and 2 * under < EXACT:
        return np.rint(values * DECIMALS).astype(np.int64) * step.denominator, under
    exactly = [round(Fraction(v) * DECIMALS) * step.denominator for v in values.ravel().tolist()]
    return np.array(exactly, dtype=object).reshape(values.shape), under


def nearest(values: Column, step: Fraction) -> Column:
    """Published numbers in whole steps, halves away from zero, exactly.

    >>> nearest(np.array([0.15, -0.15, 0.25, 12.0]), Fraction(1, 10)).tolist()
    [2, -2, 3, 120]
    """
    units, under = _units(values, step)
    found = (2 * abs(units) + under) // (2 * under) * np.where(units < 0, -1, 1)
    # Whole numbers of any length where sums of many could outgrow 64 bits.
    large = float(abs(found).astype(np.float64).sum()) >= EXACT
    exactly: Column = found.astype(object) if large else found.astype(np.int64)
    return exactly


def outward(ends: Column, step: Fraction, is_upper: bool) -> Floats:
    """Ends of intervals as multiples of a step, never inwards.

    >>> outward(np.array([12.0, 10.0]), Fraction(10), True).tolist()
    [20.0, 10.0]
    """
    finite = np.isfinite(ends)
    units, under = _units(np.where(finite, ends, 0.0), step)
    return np.where(finite, numbers(-(-units // under) if is_upper else units // under, step), ends)


def numbers(steps: Column, step: Fraction) -> Floats:
    """Whole steps as the nearest numbers.

    >>> numbers(np.array([1, 3]), Fraction(1, 10)).tolist()
    [0.1, 0.3]
    """
    largest = float(abs(steps).astype(np.float64).max(initial=0.0)) * step.numerator
    if largest < 2**53 and step.denominator < 2**53:  # a division of two whole numbers is rounded once
        found: Floats = steps.astype(np.int64) * step.numerator / step.denominator
        return found + 0.0
    exactly = [float(int(k) * step) for k in steps.ravel().tolist()]
    return np.array(exactly, dtype=np.float64).reshape(steps.shape)
