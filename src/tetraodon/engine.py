"""The definition of a cell (``attributes``) as a query.

``cells_expression`` computes what ``Attribute.cells`` computes, inside the engine; property tests hold the two equal. No
branch of it can raise, whatever a row holds: text is cast only where it is a number, numbers are cast to integers only
where they lie between declared bounds, and no literal is a decimal fraction (engines read those inexactly).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from . import postgres
from .attributes import MAX_EXACT, Attribute, Categorical, Numeric, Point
from .domain import Domain
from .number_cells import (
    SMALL,
    Scalar,
    absent_of,
    as_number,
    first_guess,
    integer_branches,
    is_nan,
    missing_of,
    number_cells,
)
from .readable import kind_of
from .reading import FOREIGN

CASES = 64


_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,19}", re.ASCII)


# Cells


def cells_expression(attribute: Attribute, column: Any) -> Any:
    """The cell of each value of a column, as an Ibis int64 expression equal to ``attribute.cells``.

    Null takes the place of −1: the value is null or invalid and the attribute has ``missing="refuse"``.

    Args:
        column: an Ibis column of a type that ``check_readable`` accepts; two of them for a ``Point``.

    Raises:
        ValueError: more than 64 categories, or a NUL in one; ``encoded`` joins those.

    >>> import ibis, pyarrow
    >>> from tetraodon import Integer
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
    return number_cells(attribute, column, number, helper).cast("int64")


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
        return first_guess(attribute, number)
    if isinstance(attribute, Categorical):
        none = ibis.null("int64")
        whole = ibis.cases((number.floor() == number, number.cast("int64")), else_=none)
        return ibis.cases((number.between(-MAX_EXACT, MAX_EXACT), whole), else_=none)
    return None


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

    missing = missing_of(attribute)
    absent = column.isnull() | is_nan(column) if kind_of(column.type()) == "float" else column.isnull()
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
    branches = [integer_branches(a, table[f"v{i}"]) for i, a in enumerate(attributes)]
    code = _row_major(
        domain,
        [
            ibis.cases(*within, *beyond, else_=absent_of(a, table[f"v{i}"]))
            for i, (a, (within, beyond)) in enumerate(zip(attributes, branches, strict=True))
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
        return table.mutate(**{f"cell{i}": number_cells(attribute, column, number, helper)})
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


def person_of(column: Any) -> Any:
    """A column of ids as text, null where it names nobody: nulls, blanks, and what no text was made of."""
    import ibis

    text = column.cast("string")
    return ibis.cases((text.strip().isin(["", FOREIGN]), ibis.null("string")), else_=text)


def without(column: Any, null: Sequence[str]) -> Any:
    """The column with the texts that count as null, null."""
    import ibis

    if kind_of(column.type()) != "text" or not null:
        return column
    return ibis.cases((column.isin(list(null)), ibis.null("string")), else_=column)
