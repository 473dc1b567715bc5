"""The insensitive columns of a table of people, as numbers and codes.

Numbers stay float64 whatever the number of rows (a million rows of thirty columns are 240 MB); what is derived from them
is made in chunks and thrown away. Texts, booleans and dictionaries become codes into the sorted values that occur, so that
the order of a dictionary, its unused entries and the library that wrote it make no difference. Ordered categories are
codes too: their order is known to no metric; give ranks as numbers where it should count.

Private: neither a ``repr`` nor an error shows a value or a number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SpecificationError, unknown
from .distances import METRICS, apart, between

if TYPE_CHECKING:
    import pyarrow

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

LARGEST = 1e100  # of a number's size: its square is far from overflow

__all__ = ["METRICS", "Features", "apart", "between"]


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Rows of insensitive columns, numbers apart from codes. Arrays are read-only.

    Attributes:
        names: the columns in the order asked for.
        number_names, code_names: those that are numbers, and those that are codes, each in that order.
        numbers: float64, shape (rows, numbers), finite.
        codes: int32, shape (rows, codes), each from 0 to its number of levels − 1.
        low, ranges: float64, shape (numbers,): least number and range of each, declared or of the rows it was made from.
            Gower's distance takes numbers beyond them as the nearest number within.
        categories: for each code column an Arrow array: what each code stands for, ascending.

    >>> import pyarrow as pa
    >>> people = pa.table({"height": [1.5, 1.7, 2.0], "team": ["red", "blue", "red"]})
    >>> found = Features.of_arrow(people, ["team", "height"])
    >>> found.codes.tolist(), found.levels, found.ranges.tolist()
    ([[1], [0], [1]], (2,), [0.5])
    >>> found
    Features(1 number, 1 code: team, height)
    """

    names: tuple[str, ...]
    number_names: tuple[str, ...]
    code_names: tuple[str, ...]
    numbers: Floats
    codes: Codes
    low: Floats
    ranges: Floats
    categories: tuple[Any, ...]

    @staticmethod
    def of_arrow(
        table: pyarrow.Table,
        names: Sequence[str],
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Features:
        """Features of an Arrow table.

        Args:
            table: at least one row.
            names: the columns, at least one, none twice. Integers, floats and decimals are numbers; texts, booleans and
                dictionaries are codes.
            ranges: least and greatest number of some columns, as declared; of the rows, if a column is not named.
        Raises:
            SpecificationError: no columns, a column named twice, one that the table has not or has twice, a range that
                is no range or of a column that is no number.
            DataError: no rows; a column of another type; one with a null, or a number that is not finite or beyond 1e100
                in size. Names the column.
        """
        asked = tuple(names)
        if isinstance(names, str) or not asked or not all(isinstance(n, str) for n in asked):
            raise SpecificationError("insensitive: a list of at least one column's name.")
        if len(set(asked)) < len(asked):
            twice = next(n for n in asked if asked.count(n) > 1)
            raise SpecificationError(f"insensitive: column {twice!r} is named twice.")
        if table.num_rows == 0:
            raise DataError("insensitive: the table has no rows.")
        columns = {name: _column(table, name) for name in asked}
        number_names = tuple(n for n, c in columns.items() if _is_number(c.type))
        code_names = tuple(n for n in asked if n not in number_names)
        numbers = _stacked([_numbers(columns[n], n) for n in number_names], table.num_rows, np.float64)
        categories = tuple(_values(columns[n]) for n in code_names)
        codes = _stacked(
            [_coded(columns[n], v, n) for n, v in zip(code_names, categories, strict=True)],
            table.num_rows,
            np.int32,
        )
        low, spread = _extent(numbers, number_names, ranges or {})
        return Features(
            asked, number_names, code_names, _fixed(numbers), _fixed(codes), low, spread, categories
        )

    @property
    def rows(self) -> int:
        """How many rows. Private."""
        return len(self.numbers)

    @property
    def levels(self) -> tuple[int, ...]:
        """How many values each code column has."""
        return tuple(len(c) for c in self.categories)

    def take(self, rows: Ints) -> Features:
        """Some of the rows, in the order given."""
        return replace(self, numbers=_fixed(self.numbers[rows]), codes=_fixed(self.codes[rows]))

    def encode(self, other: pyarrow.Table) -> Features:
        """Other rows, with the categories and ranges of these.

        Raises:
            SpecificationError: a column that the table has not, or has twice.
            DataError: a column of another kind; one with a null, a number that is not finite, or a value that is none of
                its categories. Names the column.
        """
        columns = {name: _column(other, name) for name in self.names}
        for name in self.number_names:
            if not _is_number(columns[name].type):
                raise DataError(
                    f"insensitive: column {name!r} held numbers when it was fitted; give numbers."
                )
        numbers = _stacked([_numbers(columns[n], n) for n in self.number_names], other.num_rows, np.float64)
        codes = _stacked(
            [
                _coded(columns[n], values, n)
                for n, values in zip(self.code_names, self.categories, strict=True)
            ],
            other.num_rows,
            np.int32,
        )
        return replace(self, numbers=_fixed(numbers), codes=_fixed(codes))

    def with_rows(self, numbers: Floats, codes: Codes) -> Features:
        """Made-up rows (prototypes) with these columns, categories and ranges."""
        return replace(
            self,
            numbers=_fixed(np.array(numbers, dtype=np.float64)),
            codes=_fixed(np.array(codes, dtype=np.int32)),
        )

    def to_arrow(self) -> pyarrow.Table:
        """The rows as an Arrow table: numbers as doubles, codes as what they stand for, columns in their order.

        >>> import pyarrow as pa
        >>> Features.of_arrow(pa.table({"a": ["y", "x"], "n": [3, 4]}), ["n", "a"]).to_arrow().to_pydict()
        {'n': [3.0, 4.0], 'a': ['y', 'x']}
        """
        import pyarrow as pa

        made = {n: pa.array(self.numbers[:, i]) for i, n in enumerate(self.number_names)}
        for i, (name, values) in enumerate(zip(self.code_names, self.categories, strict=True)):
            made[name] = values.take(pa.array(self.codes[:, i]))
        return pa.table({name: made[name] for name in self.names})

    def __repr__(self) -> str:
        kinds = [(len(self.number_names), "number"), (len(self.code_names), "code")]
        told = ", ".join(f"{n} {kind}{'s' * (n > 1)}" for n, kind in kinds if n)
        return f"Features({told}: {', '.join(self.names)})"


class Deferred(Features):
    """Features of many rows that are made part by part (``take``); the whole of them is made where it is asked for.

    Args:
        rows: how many there are.
        part: the features of some rows, by their numbers.

    >>> import pyarrow as pa
    >>> people = Features.of_arrow(pa.table({"n": [0, 10, 5]}), ["n"])
    >>> Deferred(3, people.take).take(np.array([1])).numbers.tolist()
    [[10.0]]
    """

    def __init__(self, rows: int, part: Callable[[Ints], Features]) -> None:
        none = part(np.empty(0, dtype=np.int64))
        for name in ("names", "number_names", "code_names", "low", "ranges", "categories"):
            object.__setattr__(self, name, getattr(none, name))
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_part", part)

    def __getattr__(self, name: str) -> Any:
        if name not in ("numbers", "codes"):
            raise AttributeError(name)
        made = self._part(np.arange(self._rows))
        object.__setattr__(self, "numbers", made.numbers)
        object.__setattr__(self, "codes", made.codes)
        return getattr(made, name)

    @property
    def rows(self) -> int:
        """How many rows. Private."""
        return int(self._rows)

    def take(self, rows: Ints) -> Features:
        """Some of the rows, in the order given."""
        made: Features = self._part(rows)
        return made


def _fixed(array: NDArray[Any]) -> Any:
    found: NDArray[Any] = array.view()
    found.flags.writeable = False
    return found


def _stacked(columns: Sequence[NDArray[Any]], rows: int, kind: type) -> Any:
    found: NDArray[Any] = np.empty((rows, len(columns)), dtype=kind)
    for i, column in enumerate(columns):
        found[:, i] = column
    return found


def _column(table: pyarrow.Table, name: str) -> Any:
    """The column as one type without nulls: dictionaries decoded, texts of one width."""
    import pyarrow as pa

    found = table.schema.get_all_field_indices(name)
    if not found:
        raise unknown("insensitive", "column", name, dict.fromkeys(table.schema.names))
    if len(found) > 1:
        raise SpecificationError(f"insensitive: the table has column {name!r} twice.")
    column, kind = table.column(found[0]), table.schema.field(found[0]).type
    coded = pa.types.is_dictionary(kind)
    if coded:
        kind = kind.value_type
        column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], kind)
    if column.null_count:
        raise DataError(
            f"insensitive: column {name!r} has nulls; drop the rows, fill them, or give missing its own category."
        )
    if _is_text(kind):
        return column.cast(pa.large_string())
    if pa.types.is_boolean(kind):
        return column
    if not _is_number(kind):
        raise DataError(f"insensitive: column {name!r} is {kind}; give it as numbers, text or booleans.")
    if coded:
        if pa.types.is_floating(kind) and not np.isfinite(column.to_numpy()).all():
            raise DataError(f"insensitive: column {name!r} has a category that is not a finite number.")
        return column.dictionary_encode()  # categories that are numbers stay categories
    return column


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    view = getattr(pa.types, "is_string_view", None)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or (view and view(kind)))


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _numbers(column: Any, name: str) -> Floats:
    import pyarrow as pa

    found: Floats = column.cast(pa.float64(), safe=False).to_numpy()
    if not (np.abs(found) <= LARGEST).all():  # NaN is not
        raise DataError(f"insensitive: column {name!r} has NaN, an infinity or a number beyond 1e100.")
    return found


def _plain(column: Any) -> Any:
    """A dictionary's values instead of its codes."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], kind)


def _values(column: Any) -> Any:
    """The values that occur, ascending."""
    import pyarrow.compute as pc

    found = pc.unique(_plain(column))
    return found.take(pc.sort_indices(found))


def _coded(column: Any, values: Any, name: str) -> Codes:
    """Places of a column's values among the categories."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = _plain(column)
    if plain.type != values.type:
        alike = _is_number(plain.type) and _is_number(values.type)
        try:
            plain = plain.cast(values.type) if alike else None
        except pa.ArrowInvalid:  # a number that the categories' type does not hold is no category
            plain = None
        if plain is None:
            raise DataError(
                f"insensitive: column {name!r} held {values.type} categories when it was fitted; give the same."
            )
    found = pc.index_in(plain, value_set=values)
    if found.null_count:
        raise DataError(
            f"insensitive: column {name!r} has a category that did not occur when it was fitted; "
            "fit on a table that has it, or map it to one that occurred."
        )
    coded: Codes = found.to_numpy().astype(np.int32, copy=False)
    return coded


def _extent(
    numbers: Floats, names: Sequence[str], declared: Mapping[str, tuple[float, float]]
) -> tuple[Floats, Floats]:
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    for name, told in declared.items():
        if name not in names:
            raise unknown("ranges", "column of numbers", name, names)
        try:
            least, most = (float(v) for v in told)
        except (TypeError, ValueError):
            least, most = 1.0, 0.0
        if not -LARGEST <= least <= most <= LARGEST:
            raise SpecificationError(f"ranges: {name!r} is a pair of numbers, the lower one first.")
        at = list(names).index(name)
        low[at], high[at] = least, most
    return _fixed(low), _fixed(high - low)
