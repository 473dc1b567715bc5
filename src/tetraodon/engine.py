"""The definition of a cell (``attributes``) as a query.

``cells_expression`` computes what ``Attribute.cells`` computes, inside the engine; property tests hold the two equal. No
branch of it can raise, whatever a row holds: text is cast only where it is a number, numbers are cast to integers only
where they lie between declared bounds, and no literal is a decimal fraction (engines read those inexactly).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from . import postgres
from .attributes import MAX_EXACT, Attribute, Categorical, Integer, Numeric, Point
from .domain import Domain
from .errors import Unsupported
from .readable import check_readable, kind_of

__all__ = [
    "as_number",
    "cells_expression",
    "check_readable",
    "encoded",
    "is_between",
    "is_joined",
    "is_listed",
    "without",
]

CASES = 64
SMALL = 2**31
Scalar = Integer | Numeric | Categorical

_BLANK = r"[ \t\n\r\f\v]*"
_NUMBER = rf"^{_BLANK}[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?){_BLANK}$"


_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,19}", re.ASCII)


# Cells


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


def cells_expression(attribute: Attribute, column: Any) -> Any:
    """The cell of each value of a column, as an Ibis int64 expression equal to ``attribute.cells``.

    Null takes the place of −1: the value is null or invalid and the attribute has ``missing="refuse"``.

    Args:
        column: an Ibis column of a type that ``check_readable`` accepts; two of them for a ``Point``.

    Raises:
        ValueError: more than 64 categories, or a NUL in one; ``encoded`` joins those.

    >>> import ibis, pyarrow
    >>> rows = ibis.memtable(pyarrow.table({"age": ["17", "90", "no answer"]}))
    >>> cells = cells_expression(Integer(17, 90, missing="secret"), rows.age)
    >>> rows.select(cell=cells).to_pyarrow()["cell"].to_pylist()
    [0, 73, 74]
    """
    if isinstance(attribute, Point):
        return _of_sides(
            attribute, [cells_expression(s, c) for s, c in zip(attribute.sides, column, strict=True)]
        )
    number = as_number(column) if _reads_number(attribute, column) else None
    helper = None if number is None else _helper(attribute, number)
    if isinstance(attribute, Categorical):
        pairs = _pairs(attribute, column)
        if len(pairs) > CASES:
            raise ValueError(
                f"{len(pairs)} categories; more than {CASES} are joined, not compared one by one."
            )
        return _compared(attribute, column, helper, pairs).cast("int64")
    return _number_cells(attribute, column, number, helper).cast("int64")


def _of_sides(attribute: Attribute, cells: Sequence[Any]) -> Any:
    """The cell of an attribute from the cells of its sides: one of each, but two (either may be null) of a ``Point``."""
    import ibis

    if not isinstance(attribute, Point):
        return cells[0]
    whole = "int32" if attribute.size < SMALL else "int64"
    row, column = (cell.cast(whole) for cell in cells)
    place = ((row * attribute.shape[1]).cast(whole) + column).cast(whole)
    return place if attribute.missing_cell is None else ibis.coalesce(place, attribute.missing_cell)


def _sides(attribute: Attribute) -> tuple[Scalar, ...]:
    return attribute.sides if isinstance(attribute, Point) else (attribute,)


def _missing(attribute: Scalar) -> Any:
    import ibis

    # The narrowest null: a wider one would widen the arithmetic of every row.
    return ibis.null("int8") if attribute.missing_cell is None else attribute.missing_cell


def _is_nan(number: Any) -> Any:
    """NaN test; False in engines that have no NaN (SQLite, MySQL)."""
    import ibis
    import ibis.expr.operations as ops

    return number.isnan() if number.get_backend().has_operation(ops.IsNan) else ibis.literal(False)


def _integer_branches(attribute: Integer | Numeric, column: Any) -> tuple[list[Any], list[Any]]:
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

    low, high, top, missing = attribute.low, attribute.high, attribute.n_values - 1, _missing(attribute)

    def whole(cell: Any) -> Any:
        return ibis.cases((number.floor() == number, cell), else_=missing)

    inside = _floor_divide(number.cast("int64") - low, attribute.step, high - low)
    return ibis.cases(
        (number.between(low, high), whole(inside)),
        (_is_nan(number), missing),
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


def _guess(attribute: Numeric, number: Any) -> Any:
    """floor((value − low) / width) between the first and the last inner boundary, else null; off by at most one."""
    import ibis

    start, gap, scale = (ibis.literal(v).cast("float64") for v in attribute.lattice)
    inner = (number >= _boundary(attribute, 1)) & (number < _boundary(attribute, attribute.n_cells - 1))
    return ibis.cases((inner, ((number - start / scale) / (gap / scale)).floor()), else_=ibis.null("int64"))


def _interval_cells(attribute: Numeric, number: Any, guess: Any) -> Any:
    import ibis

    top, missing = attribute.n_cells - 1, _missing(attribute)
    if top == 0:
        return ibis.cases((_is_nan(number), missing), (number.notnull(), 0), else_=missing)
    settled = ibis.cases(
        (number >= _boundary(attribute, guess + 1), guess + 1),
        (number < _boundary(attribute, guess), guess - 1),
        else_=guess,
    )
    return ibis.cases(
        (guess.notnull(), settled),
        (_is_nan(number), missing),
        (number < _boundary(attribute, 1), 0),
        (number.notnull(), top),
        else_=missing,
    )


def _reads_number(attribute: Scalar, column: Any) -> bool:
    """Whether the cell comes from a double: not for text categories, nor, in general, for integer columns."""
    if not isinstance(attribute, Categorical):
        return kind_of(column.type()) != "integer"
    if not attribute.of_integers:
        return False
    # Rule 1 rounds 2^53 + 1 to 2^53; every other code within the bounds is the double of one integer only.
    at_limit = any(abs(int(v)) == MAX_EXACT for v in attribute.values)
    return at_limit or kind_of(column.type()) != "integer"


def _helper(attribute: Scalar, number: Any) -> Any:
    """What is worth computing once from a double: an interval's first guess, the whole number that a code may equal."""
    import ibis

    if isinstance(attribute, Numeric):
        return _guess(attribute, number)
    if isinstance(attribute, Categorical):
        none = ibis.null("int64")
        whole = ibis.cases((number.floor() == number, number.cast("int64")), else_=none)
        return ibis.cases((number.between(-MAX_EXACT, MAX_EXACT), whole), else_=none)
    return None


def _number_cells(attribute: Integer | Numeric, column: Any, number: Any, helper: Any) -> Any:
    import ibis

    if number is None:
        within, beyond = _integer_branches(attribute, column)
        return ibis.cases(*within, *beyond, else_=_missing(attribute))
    if isinstance(attribute, Integer):
        return _whole_number_cells(attribute, number)
    return _interval_cells(attribute, number, helper)


def _pairs(attribute: Categorical, column: Any) -> list[tuple[Any, int]]:
    """(key, cell) for every declared value that a column of this type can hold."""
    pairs: list[tuple[Any, int]] = [(value, cell) for cell, value in enumerate(attribute.values)]
    kind = kind_of(column.type())
    if attribute.of_integers:
        bounds = column.type().bounds if kind == "integer" else None
        return pairs if bounds is None else [p for p in pairs if bounds.lower <= p[0] <= bounds.upper]
    if kind == "boolean":
        return [(v == "true", cell) for v, cell in pairs if v in ("false", "true")]
    if kind == "integer":
        bounds = column.type().bounds
        spelt = [(int(v), cell) for v, cell in pairs if _DIGITS.fullmatch(v)]
        return [p for p in spelt if bounds.lower <= p[0] <= bounds.upper]
    return [(v, cell) for v, cell in pairs if v == v.encode("utf-8", "replace").decode()]


def _joined(pairs: Sequence[tuple[Any, int]]) -> bool:
    """Whether categories need a join: a long CASE takes seconds to plan, and query text ends at a NUL."""
    return len(pairs) > CASES or any(isinstance(v, str) and "\0" in v for v, _ in pairs)


def is_joined(domain: Domain) -> bool:
    """Whether cells of some attribute come from a join, which keeps rows in no order."""
    return any(isinstance(a, Categorical) and _joined([(v, 0) for v in a.values]) for a in domain.values())


def _compared(attribute: Categorical, column: Any, helper: Any, pairs: Sequence[tuple[Any, int]]) -> Any:
    """Cells of at most ``CASES`` categories, one comparison after another."""
    import ibis

    key = column if helper is None else helper
    unlisted = _unlisted(attribute, column)
    runs = _runs(pairs) if key.type().is_integer() else [(value, value, cell) for value, cell in pairs]
    found = []
    for first, last, cell in runs:
        if first == last:
            found.append((key == ibis.literal(first, key.type()), cell))
        else:
            found.append((key.between(first, last), key.cast("int64") - (first - cell)))
    return ibis.cases(*found, else_=unlisted) if found else unlisted


def _runs(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(first value, last value, cell of the first) of the runs in which value and cell grow by one together: one comparison
    each, where every engine would otherwise make one for each value.

    >>> _runs([(1, 0), (2, 1), (3, 2), (9, 3), (7, 4)])
    [(1, 3, 0), (7, 7, 4), (9, 9, 3)]
    """
    found: list[tuple[int, int, int]] = []
    for value, cell in sorted(pairs):
        if found and value == found[-1][1] + 1 and cell - value == found[-1][2] - found[-1][0]:
            found[-1] = (found[-1][0], value, found[-1][2])
        else:
            found.append((value, value, cell))
    return found


def _unlisted(attribute: Categorical, column: Any) -> Any:
    """Cell of what equals no declared value: missing if null, else ``other`` where there is one."""
    import ibis

    missing = _missing(attribute)
    absent = column.isnull() | _is_nan(column) if kind_of(column.type()) == "float" else column.isnull()
    return ibis.cases(
        (absent, missing), else_=missing if attribute.other_cell is None else attribute.other_cell
    )


def is_listed(attribute: Categorical, column: Any) -> Any:
    """Whether a value equals one of the declared ones (rule 4), of any number of them; false or null where it is null."""
    import ibis

    number = as_number(column) if _reads_number(attribute, column) else None
    key = column if number is None else _helper(attribute, number)
    values = [ibis.literal(value, key.type()) for value, _ in _pairs(attribute, column)]
    return key.isin(values) if values else ibis.literal(False)


def is_between(number: Any, low: Fraction, high: Fraction) -> Any:
    """Whether a double lies between two numbers, each rounded once; false or null where it is no number.

    Args:
        low, high: with numerators and denominators within ±2^53.
    """
    ends = (_whole(end.numerator) / _whole(end.denominator) for end in (low, high))
    return number.between(*ends) & ~_is_nan(number)


def _whole(value: int) -> Any:
    import ibis

    return ibis.literal(value).cast("float64")


# The whole code


def encoded(
    table: Any, domain: Domain, columns: Sequence[str], null: Sequence[str] = (), carried: Sequence[str] = ()
) -> Any:
    """A table with a column ``code``: each row's cell of the whole domain, null where a value is refused.

    Args:
        columns: the table's column for each attribute, two for a ``Point``.
        null: texts that count as null in text columns.
        carried: columns ``c<i>`` that follow ``code`` as they are.
    """
    attributes = [side for a in domain.values() for side in _sides(a)]
    # In stages, so that what is used several times is computed once.
    table = table.select(*carried, **{f"v{i}": without(table[c], null) for i, c in enumerate(columns)})
    read = [i for i, a in enumerate(attributes) if _reads_number(a, table[f"v{i}"])]
    table = table.mutate(**{f"n{i}": as_number(table[f"v{i}"]) for i in read}) if read else table
    if not read and not any(isinstance(a, Categorical) for a in attributes):
        return table.select(code=_integer_code(table, domain), **{c: table[c] for c in carried})
    helpers = {f"h{i}": _helper(attributes[i], table[f"n{i}"]) for i in read}
    helpers = {name: helper for name, helper in helpers.items() if helper is not None}
    table = table.mutate(**helpers) if helpers else table
    for i, attribute in enumerate(attributes):
        table = _with_cell(table, i, attribute)
    code = _row_major(domain, [table[f"cell{i}"] for i in range(len(attributes))])
    return table.select(code=code, **{c: table[c] for c in carried})


def _row_major(domain: Domain, sides: Sequence[Any]) -> Any:
    """The code from the cells of every side of every attribute."""
    whole = "int32" if domain.size < SMALL else "int64"
    rest = iter(sides)
    cells = [_of_sides(a, [next(rest) for _ in _sides(a)]) for a in domain.values()]
    code = cells[0].cast(whole)
    for size, cell in zip(domain.shape[1:], cells[1:], strict=True):
        code = (code * size + cell.cast(whole)).cast(whole)
    return code


def _integer_code(table: Any, domain: Domain) -> Any:
    """The code where every column is of integers: rows between all bounds, usually all of them, take one branch."""
    import ibis

    attributes: list[Any] = [side for a in domain.values() for side in _sides(a)]
    branches = [_integer_branches(a, table[f"v{i}"]) for i, a in enumerate(attributes)]
    code = _row_major(
        domain,
        [
            ibis.cases(*within, *beyond, else_=_missing(a))
            for a, (within, beyond) in zip(attributes, branches, strict=True)
        ],
    )
    if len(attributes) == 1 or not all(within for within, _ in branches):
        return code
    inside = ibis.and_(*(within[0][0] for within, _ in branches))
    return ibis.cases((inside, _row_major(domain, [within[0][1] for within, _ in branches])), else_=code)


def _with_cell(table: Any, i: int, attribute: Scalar) -> Any:
    """The table with one more column, ``cell<i>``."""
    import ibis

    column = table[f"v{i}"]
    number, helper = (table[c] if (c := f"{x}{i}") in table.columns else None for x in "nh")
    if not isinstance(attribute, Categorical):
        return table.mutate(**{f"cell{i}": _number_cells(attribute, column, number, helper)})
    pairs = _pairs(attribute, column)
    if table.get_backend().name == "postgres":  # its texts hold no NUL
        pairs = [(v, cell) for v, cell in pairs if not (isinstance(v, str) and "\0" in v)]
    if not _joined(pairs):
        return table.mutate(**{f"cell{i}": _compared(attribute, column, helper, pairs)})
    key = column if helper is None else helper
    listed = _listed(table.get_backend(), i, key.type(), pairs)
    table = table.left_join(listed, key == listed[f"key{i}"])
    return table.mutate(
        **{f"cell{i}": ibis.coalesce(table[f"found{i}"], _unlisted(attribute, table[f"v{i}"]))}
    )


def _listed(backend: Any, i: int, kind: Any, pairs: Sequence[tuple[Any, int]]) -> Any:
    """A table of categories, ``key<i>``, and their cells, ``found<i>``."""
    import ibis
    import pyarrow as pa

    keys, cells = zip(*pairs, strict=True)
    if backend.name == "postgres":
        return postgres.listed(backend, {f"key{i}": (kind, keys), f"found{i}": ("int64", cells)})
    keyed = {f"key{i}": pa.array(keys, kind.to_pyarrow()), f"found{i}": pa.array(cells, pa.int64())}
    return ibis.memtable(pa.table(keyed))


def without(column: Any, null: Sequence[str]) -> Any:
    """The column with the texts that count as null, null."""
    import ibis

    if kind_of(column.type()) != "text" or not null:
        return column
    return ibis.cases((column.isin(list(null)), ibis.null("string")), else_=column)
