"""Tables as the measures of risk and utility take them: any frame, as Arrow, with one type for each kind of column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import SpecificationError

if TYPE_CHECKING:
    import pyarrow


def given(frame: Any, where: str) -> pyarrow.Table:
    """A frame as an Arrow table.

    Args:
        frame: of pandas, Polars or Arrow, or a dict of columns.
        where: what the table is called in errors.
    Raises:
        SpecificationError: it is neither; a column is there twice.

    >>> given({"age": [31, 45]}, "risk").num_rows
    2
    """
    from .frames import table_of

    try:
        table = table_of(frame)
    except SpecificationError:
        raise SpecificationError(
            f"{where}: a frame of pandas, Polars or Arrow, or a dict of columns of one length."
        ) from None
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise SpecificationError(f"{where}: column {twice!r} is there twice; rename one.")
    return table


def plain(column: Any) -> Any:
    """A column without a dictionary, of the widest type of its kind."""
    wide = widest(column.type)
    return column if wide == column.type else column.cast(wide)


def widest(kind: Any) -> Any:
    """The type that stands for all of a kind: texts of any width, whole numbers and fractions of any size.

    >>> import pyarrow as pa
    >>> widest(pa.dictionary(pa.int8(), pa.string())), widest(pa.int16()), widest(pa.uint64())
    (DataType(large_string), DataType(int64), DataType(uint64))
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return widest(kind.value_type)
    view = getattr(pa.types, "is_string_view", None)
    if pa.types.is_string(kind) or (view is not None and view(kind)):
        return pa.large_string()
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    return kind
