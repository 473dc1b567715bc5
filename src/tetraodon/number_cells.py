"""Cells of numbers as a query: what ``Integer`` and ``Numeric`` define, on columns of any engine.

No branch can raise, whatever a row holds: numbers are cast to integers only where they lie between declared bounds, text only
where it is a number, and no literal is a decimal fraction (engines read those inexactly).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from . import postgres
from .attributes import MAX_EXACT, Categorical, Integer, Numeric
from .errors import Unsupported
from .readable import kind_of

SMALL = 2**31
Scalar = Integer | Numeric | Categorical

_BLANK = r"[ \t\n\r\f\v]*"
_NUMBER = rf"^{_BLANK}[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?){_BLANK}$"


def as_number(column: Any) -> Any:
    """Rule 1: the nearest double of each value of a text or number column, null where it is not a number."""
    import ibis
    import ibis.expr.operations as ops

    kind = kind_of(column.type())
    if kind == "text":
        backend = column.get_backend()
        if backend.name == "postgres":  # its casts raise errors where a text is no double
            number = ibis.cases((postgres.matches(column, _NUMBER), column), else_=ibis.null("string"))
            return ibis.cases((number.notnull(), postgres.number_of_text(number)), else_=ibis.null("float64"))
        if not all(backend.has_operation(o) for o in (ops.TryCast, ops.RegexSearch)):
            raise Unsupported(
                f"source: {backend.name} cannot read numbers from text; convert the column in the source."
            )
        return ibis.cases((column.re_search(_NUMBER), column.try_cast("float64")), else_=ibis.null("float64"))
    if kind == "decimal" and (column.type().precision or 38) > 15:
        return column.cast("string").cast("float64")  # engines divide the digits by a power of ten, inexactly
    return column.cast("float64")


def missing_of(attribute: Scalar) -> Any:
    import ibis

    # The narrowest null: a wider one would widen the arithmetic of every row.
    return ibis.null("int8") if attribute.missing_cell is None else attribute.missing_cell


def absent_of(attribute: Scalar, column: Any) -> Any:
    """``missing_of`` for an integer column, to be used where it is null."""
    if attribute.missing_cell is None and column.get_backend().name == "duckdb":
        # The column itself is null there, and unlike a null that is written down has the bounds without which DuckDB counts slower.
        return column.try_cast("int32" if attribute.size < SMALL else "int64")
    return missing_of(attribute)


def is_nan(number: Any) -> Any:
    """NaN test; False in engines that have no NaN (SQLite, MySQL)."""
    import ibis
    import ibis.expr.operations as ops

    return number.isnan() if number.get_backend().has_operation(ops.IsNan) else ibis.literal(False)


def integer_branches(attribute: Integer | Numeric, column: Any) -> tuple[list[Any], list[Any]]:
    """(between the bounds, beyond them): (condition, cell) pairs for an integer column, in integer arithmetic throughout.

    An integer is below a boundary rounded to a double if and only if it is below the boundary.
    """
    bounds = column.type().bounds
    top = attribute.n_values - 1
    if isinstance(attribute, Integer):
        start, gap, scale = attribute.low, attribute.step, 1
        first, last = attribute.low, attribute.high
    else:
        start, gap, scale = attribute.lattice
        first, last = -(-start // scale), -(-(start + gap * attribute.n_cells) // scale) - 1
    within: list[Any] = []
    low, high = max(first, bounds.lower), min(last, bounds.upper)
    if low <= high:
        largest = max(abs(low), abs(high)) * scale + abs(start)
        # The cast comes first: engines give a small integer minus a literal the small integer's type.
        whole = "int32" if largest < SMALL else "int64"
        part = column.cast(whole)
        part = (part * scale).cast(whole) if scale > 1 else part
        part = (part - start).cast(whole) if start else part
        every = (low, high) == (bounds.lower, bounds.upper)
        inside = column.notnull() if every else column.between(low, high)
        within.append((inside, _floor_divide(part, gap, largest)))
    beyond: list[Any] = []
    if bounds.lower < first:
        beyond.append((column < first if first <= bounds.upper else column.notnull(), 0))
    if bounds.upper > last:
        beyond.append((column > last if last >= bounds.lower else column.notnull(), top))
    return within, beyond


def _floor_divide(part: Any, gap: int, largest: int) -> Any:
    """part // gap for 0 ≤ part ≤ largest. Ibis divides doubles, which is exact below 2^53 and off by one above."""
    if gap == 1:
        return part
    quotient = part // gap
    if largest < MAX_EXACT:
        return quotient
    rest = part - quotient * gap
    # Not every engine casts truth values to bigint.
    return quotient + (rest >= gap).ifelse(1, 0) - (rest < 0).ifelse(1, 0)


def _whole_number_cells(attribute: Integer, number: Any) -> Any:
    """Integer cells of doubles. Beyond ±2^53 every double is whole and may not fit an integer, so it is not cast."""
    import ibis

    low, high, top, missing = attribute.low, attribute.high, attribute.n_values - 1, missing_of(attribute)

    def whole(cell: Any) -> Any:
        return ibis.cases((number.floor() == number, cell), else_=missing)

    inside = _floor_divide(number.cast("int64") - low, attribute.step, high - low)
    return ibis.cases(
        (number.between(low, high), whole(inside)),
        (is_nan(number), missing),
        (number < -MAX_EXACT, 0),
        (number > MAX_EXACT, top),
        (number < low, whole(0)),
        (number > high, whole(top)),
        else_=missing,
    )


def _boundary(attribute: Numeric, j: Any) -> Any:
    """Boundary j (an integer or a column of integers) rounded once: whole numbers, themselves doubles, are divided."""
    import ibis

    start, gap, scale = attribute.lattice
    numerator = ibis.literal(start + j * gap) if isinstance(j, int) else j * gap + start
    return numerator.cast("float64") / ibis.literal(scale).cast("float64")


def first_guess(attribute: Numeric, number: Any) -> Any:
    """floor((value − low) / width) between the first and the last inner boundary, else null; off by at most one."""
    import ibis

    start, gap, scale = (ibis.literal(v).cast("float64") for v in attribute.lattice)
    inner = (number >= _boundary(attribute, 1)) & (number < _boundary(attribute, attribute.n_cells - 1))
    return ibis.cases((inner, ((number - start / scale) / (gap / scale)).floor()), else_=ibis.null("int64"))


def _interval_cells(attribute: Numeric, number: Any, guess: Any) -> Any:
    import ibis

    top, missing = attribute.n_cells - 1, missing_of(attribute)
    if top == 0:
        return ibis.cases((is_nan(number), missing), (number.notnull(), 0), else_=missing)
    settled = ibis.cases(
        (number >= _boundary(attribute, guess + 1), guess + 1),
        (number < _boundary(attribute, guess), guess - 1),
        else_=guess,
    )
    return ibis.cases(
        (guess.notnull(), settled),
        (is_nan(number), missing),
        (number < _boundary(attribute, 1), 0),
        (number.notnull(), top),
        else_=missing,
    )


def number_cells(attribute: Integer | Numeric, column: Any, number: Any, helper: Any) -> Any:
    import ibis

    if number is None:
        within, beyond = integer_branches(attribute, column)
        return ibis.cases(*within, *beyond, else_=absent_of(attribute, column))
    if isinstance(attribute, Integer):
        return _whole_number_cells(attribute, number)
    return _interval_cells(attribute, number, helper)


def is_between(number: Any, low: Fraction, high: Fraction) -> Any:
    """Whether a double lies between two numbers, each rounded once; false or null where it is no number.

    Args:
        low, high: with numerators and denominators within ±2^53.
    """
    ends = (_whole(end.numerator) / _whole(end.denominator) for end in (low, high))
    return number.between(*ends) & ~is_nan(number)


def _whole(value: int) -> Any:
    import ibis

    return ibis.literal(value).cast("float64")
