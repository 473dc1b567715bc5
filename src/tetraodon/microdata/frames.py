"""Frames in and out: private columns and classes read off a table, and what is published in the frame's own kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..axes import Ints
from ..errors import DataError, SpecificationError
from ..files import sealed
from ..reading import kind_of
from .classes import classes_of
from .data import PrivateColumn
from .drawing import Drawn
from .plan import Plan
from .settings import Hybrid

MOST_PLACES = 100_000
Frame = Any  # of pandas, Polars or Arrow, a dict of columns, or a table of Ibis
BATCH = 1 << 18


def table_of(frame: Frame, names: Sequence[str] | None = None) -> pa.Table:
    """A frame as an Arrow table.

    Args:
        names: columns that are needed, where that is known: of a table of Ibis no others are read.

    Raises:
        SpecificationError: neither a frame nor a dict of columns of one length.
        EngineError: a table of Ibis that cannot be read.

    >>> table_of({"age": [31, 45]}).num_rows
    2
    """
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "to_pyarrow_batches"):
        return sealed("hybrid", "reading", _of_ibis, frame, names)
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    try:
        if isinstance(frame, Mapping):
            return pa.table(
                {
                    str(name): list(values) if isinstance(values, tuple) else values
                    for name, values in frame.items()
                }
            )
        if hasattr(frame, "columns") and hasattr(frame, "iloc"):
            return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError):
        raise SpecificationError("hybrid: columns of one length, each of numbers or of texts.") from None
    raise SpecificationError(
        f"hybrid: a frame of pandas, Polars or Arrow, a dict of columns or a table of Ibis, not {kind_of(frame)}."
    )


def _of_ibis(frame: Any, names: Sequence[str] | None) -> pa.Table:
    """The columns of a table of Ibis, batch by batch, texts as codes into their different values.

    The rows themselves stay outside, but these columns are held, since any row can be the donor of another.
    """
    wanted = [c for c in frame.columns if names is None or c in names]
    told = frame.select(wanted)
    batches = [_texts_coded(batch) for batch in told.to_pyarrow_batches(chunk_size=BATCH)]
    found = pa.Table.from_batches(batches) if batches else told.schema().to_pyarrow().empty_table()
    return found.unify_dictionaries()


def _texts_coded(batch: pa.RecordBatch) -> pa.RecordBatch:
    texts = [pa.types.is_string(c.type) or pa.types.is_large_string(c.type) for c in batch.columns]
    columns = [c.dictionary_encode() if t else c for c, t in zip(batch.columns, texts, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def like(frame: Frame, table: pa.Table) -> Any:
    """The table as a frame of the same kind, of Arrow for a table of Ibis; pandas frames get a fresh index, since an index can
    name people."""
    if isinstance(frame, pa.Table) or hasattr(frame, "to_pyarrow_batches"):
        return table
    if hasattr(frame, "to_arrow"):
        import polars

        return polars.from_arrow(table)
    if isinstance(frame, Mapping):
        return {name: table.column(name).to_pylist() for name in table.column_names}
    return table.to_pandas()


def columns_in(
    table: pa.Table,
    names: Sequence[str],
    hierarchy: Mapping[str, Mapping[str, str]] | None = None,
    map_width: int | None = None,
) -> tuple[tuple[PrivateColumn, ...], tuple[Ints, ...]]:
    """Private columns with the values that occur, and their codes: numbers and ordered categories in their order, texts by
    their letters.

    Raises:
        DataError: a column with nulls, or of another type.
        SpecificationError: a hierarchy of a column that is not private.
    """
    if hierarchy is not None and not (
        isinstance(hierarchy, Mapping) and all(isinstance(v, Mapping) for v in hierarchy.values())
    ):
        raise SpecificationError(
            "hybrid.hierarchy: for each private column a mapping from its values and nodes to the node above."
        )
    for name in hierarchy or {}:
        if name not in names:
            raise SpecificationError(f"hybrid.hierarchy: {name!r} is no private column.")
    if map_width is not None and (
        isinstance(map_width, bool) or not isinstance(map_width, int) or map_width < 1
    ):
        raise SpecificationError("hybrid.map_width: a whole number of at least 1.")
    found = [_column(table, name, (hierarchy or {}).get(name), map_width) for name in names]
    return tuple(c for c, _ in found), tuple(codes for _, codes in found)


def _column(
    table: pa.Table, name: str, parents: Mapping[str, str] | None, map_width: int | None
) -> tuple[PrivateColumn, Ints]:
    array = _whole(table, name)
    kind = array.type
    if pa.types.is_dictionary(kind):
        labels, codes = _categories(array)
        if kind.ordered and parents is None:
            numbers = np.arange(len(labels), dtype=np.float64)
            return PrivateColumn(name, labels, "ordered", numbers), codes
        return _plain(name, labels, codes, parents)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        told = array.to_numpy()
        # Widened, so that a number is written alike wherever it is read.
        values, codes = np.unique(
            told if told.dtype.kind in "iu" else told.astype(np.float64), return_inverse=True
        )
        if not np.isfinite(values).all():
            raise DataError(f"hybrid: the private column {name!r} holds values that are no finite numbers.")
        codes = codes.astype(np.int64)
        if map_width is not None:
            return _places(name, values, codes, map_width)
        if parents is not None:
            return _plain(name, tuple(_shown(v) for v in values), codes, parents)
        return PrivateColumn(
            name, tuple(_shown(v) for v in values), "ordered", values.astype(np.float64)
        ), codes
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind):
        texts = np.array([_shown(v) for v in array.to_pylist()], dtype=object)
        values, codes = np.unique(texts.astype(str), return_inverse=True)
        return _plain(name, tuple(values.tolist()), codes.astype(np.int64), parents)
    raise DataError(
        f"hybrid: the private column {name!r} is of a type that has no groups; numbers or texts have."
    )


def _plain(
    name: str, labels: tuple[str, ...], codes: Ints, parents: Mapping[str, str] | None
) -> tuple[PrivateColumn, Ints]:
    if parents is None:
        return PrivateColumn(name, labels, "plain"), codes
    return PrivateColumn(name, labels, "tree", None, dict(parents)), codes


def _places(name: str, values: Any, codes: Ints, width: int) -> tuple[PrivateColumn, Ints]:
    """Cells of a map within the smallest box that holds them."""
    if (values != np.floor(values)).any() or (values < 0).any():
        raise DataError(
            f"hybrid: the private column {name!r} must hold cells, whole numbers of 0 or more, where map_width is stated."
        )
    rows, cols = np.divmod(values.astype(np.int64), width)
    top, left = int(rows.min()), int(cols.min())
    shape = int(rows.max()) - top + 1, int(cols.max()) - left + 1
    if shape[0] * shape[1] > MOST_PLACES:
        raise SpecificationError(
            f"hybrid.map_width: the map of {name!r} would have more than {MOST_PLACES:,} cells; use coarser ones."
        )
    grid = np.stack(np.divmod(np.arange(shape[0] * shape[1]), shape[1]), axis=1)
    labels = tuple(str((r + top) * width + c + left) for r, c in grid.tolist())
    place = (rows - top) * shape[1] + cols - left
    return PrivateColumn(name, labels, "grid", grid.astype(np.float64), None, shape), place[codes]


def recoded(table: pa.Table, columns: Sequence[PrivateColumn], map_width: int | None) -> tuple[Ints, ...]:
    """Codes of other rows.

    Raises:
        SpecificationError: a value that the fitted rows did not have; the message names the column alone.
    """
    found = []
    for column in columns:
        array = _whole(table, column.name)
        told = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        place = {label: i for i, label in enumerate(column.labels)}
        codes = np.array([place.get(_shown(v), -1) for v in told.to_pylist()], dtype=np.int64)
        if (codes < 0).any():
            raise SpecificationError(
                f"hybrid: the private column {column.name!r} has a value that was not fitted; fit on the rows that are published."
            )
        found.append(codes)
    return tuple(found)


def classes_in(table: pa.Table, settings: Hybrid) -> tuple[Ints, dict[str, list[str]]]:
    """The class of each row, and what is published of each class in each quasi-identifier.

    Raises:
        DataError: a column with nulls.
        Refused: fewer rows than a class needs.
    """
    names = settings.quasi_identifiers
    if not names:
        return np.zeros(table.num_rows, dtype=np.int64), {}
    columns, codes = columns_in(table, names)
    found = classes_of(codes, [c.size for c in columns], settings.class_size)
    shown = {
        c.name: [
            c.label(np.arange(low, high + 1), i)
            for i, (low, high) in enumerate(zip(found.lows[:, at], found.highs[:, at], strict=True))
        ]
        for at, c in enumerate(columns)
    }
    return found.labels, shown


def published(table: pa.Table, plan: Plan, made: Drawn, classes: Mapping[str, Sequence[str]]) -> pa.Table:
    """Columns in the table's order: labels of groups and classes, and the donors' or prototypes' values; nothing else."""
    settings = plan.settings
    labels = {
        c.name: np.array([g.label for g in groups], dtype=object)[own]
        for c, groups, own in zip(plan.columns, plan.groups, made.groups, strict=True)
    }
    rows = plan.prepared.data.classes if classes else None
    prototypes = (
        None
        if made.donors is not None
        else plan.prepared.clusters.prototypes.to_arrow().take(pa.array(made.clusters))
    )
    columns: dict[str, Any] = {}
    for name in table.column_names:
        if name in labels:
            columns[name] = pa.array(labels[name].tolist(), type=pa.string())
        elif name in settings.insensitive:
            columns[name] = (
                _own_dictionary(table.column(name).take(pa.array(made.donors)))
                if prototypes is None
                else prototypes.column(name)
            )
        elif name in classes and rows is not None:
            columns[name] = pa.array(np.array(classes[name], dtype=object)[rows].tolist(), type=pa.string())
    return pa.table(columns)


def _own_dictionary(column: pa.ChunkedArray) -> Any:
    """Categories as those that occur, in their order or by their letters: a source's dictionary holds others, in the order of
    its rows."""
    if not pa.types.is_dictionary(column.type):
        return column
    kind, plain = column.type, column.combine_chunks()
    plain = plain.chunk(0) if isinstance(plain, pa.ChunkedArray) else plain
    told = plain.dictionary_decode().to_pylist()
    occurring = set(told)
    if kind.ordered:
        values = [v for v in plain.dictionary.to_pylist() if v in occurring]
    else:
        values = sorted(occurring, key=str)
    place = {value: at for at, value in enumerate(values)}
    index = pa.array([place[v] for v in told], pa.int32())
    return pa.DictionaryArray.from_arrays(index, pa.array(values, kind.value_type), ordered=kind.ordered)


def _whole(table: pa.Table, name: str) -> pa.Array:
    array = table.column(name).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], type=array.type)
    if array.null_count or (pa.types.is_dictionary(array.type) and array.dictionary_decode().null_count):
        raise DataError(
            f"hybrid: the column {name!r} holds nulls; say what they are before it can be published."
        )
    return array


def _categories(array: Any) -> tuple[tuple[str, ...], Ints]:
    """Labels of the categories that occur, equal ones once, and codes."""
    labels = [_shown(v) for v in array.dictionary.to_pylist()]
    first = {label: at for at, label in reversed(list(enumerate(labels)))}
    alike = np.array([first[label] for label in labels], dtype=np.int64)
    codes = alike[np.asarray(array.indices.to_numpy(zero_copy_only=False), dtype=np.int64)]
    used = np.unique(codes)
    place = np.full(len(labels), -1, dtype=np.int64)
    order = used if array.type.ordered else used[np.argsort([labels[u] for u in used], kind="stable")]
    place[order] = np.arange(len(order))
    return tuple(labels[u] for u in order.tolist()), place[codes]


def _shown(value: Any) -> str:
    """A number or text as it is published: 17.0 as 17."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
