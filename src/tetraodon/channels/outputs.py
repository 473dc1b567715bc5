"""Output cells as columns: the values that they stand for, dictionary-encoded over everything that was declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attributes import Attribute, Categorical, Integer, Point
from ..axes import Ints

TEXT_BYTES = 1 << 31


def narrow(size: int) -> type[np.signedinteger[Any]]:
    """The smallest integers that hold a number of cells.

    >>> narrow(127).__name__, narrow(128).__name__
    ('int8', 'int16')
    """
    kinds: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32)
    return next((kind for kind in kinds if size <= np.iinfo(kind).max), np.int64)


@dataclass(frozen=True)
class Output:
    """One attribute of a channel's outputs, the columns it fills, and its place among the channel's outputs."""

    attribute: Attribute
    columns: tuple[str, ...]
    place: int

    def arrays(self, cells: NDArray[Any]) -> Iterator[tuple[str, Any]]:
        """Its columns by name, for these output cells."""
        attribute = self.attribute
        missing = None if attribute.missing_cell is None else cells == attribute.missing_cell
        if not isinstance(attribute, Point):
            yield self.columns[0], _column(_values(attribute), cells.astype(narrow(attribute.size)), missing)
            return
        width = cells.dtype.type(attribute.shape[1])
        rows = cells // width
        for name, side, part in zip(self.columns, attribute.sides, (rows, cells - rows * width), strict=True):
            yield name, _column(_values(side), part.astype(narrow(side.n_values)), missing)


def _column(values: Any, cells: NDArray[Any], missing: NDArray[np.bool_] | None) -> Any:
    import pyarrow as pa

    index = pa.array(cells, mask=missing) if missing is not None else pa.array(cells)
    return pa.DictionaryArray.from_arrays(index, values)


def _values(attribute: Attribute) -> Any:
    """The published value of every cell but the missing one, in declared order: public, and the same whatever was drawn."""
    import pyarrow as pa

    if isinstance(attribute, Categorical):
        if attribute.of_integers and attribute.other is None:
            return pa.array(attribute.values, pa.int64())
        other = [] if attribute.other is None else [attribute.other]
        return pa.array([*map(str, attribute.values), *other], pa.string())
    if isinstance(attribute, Point):
        raise AssertionError("a place has two columns")
    if isinstance(attribute, Integer) and attribute.step == 1:
        return pa.array(np.arange(attribute.low, attribute.high + 1, dtype=np.int64))
    numerators, denominator = attribute.midpoints()
    return pa.array(np.array(numerators, dtype=np.int64) / denominator, pa.float64())


def taken(parts: Sequence[Any], order: Ints) -> Any:
    """A kept column in the new order, without dictionary or slack of the source's."""
    import pyarrow as pa

    if pa.types.is_string(parts[0].type) and sum(part.nbytes for part in parts) >= TEXT_BYTES:
        parts = [part.cast(pa.large_string()) for part in parts]
    return pa.concat_arrays(parts).take(pa.array(order))
