"""Published rows counted: how many were reported in every cell of a channel, and where those cells lie."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attributes import Attribute, Categorical, Integer, Numeric, Point
from ..domain import Domain
from ..errors import SpecificationError
from ..lengths import LENGTHS
from ..spreadsheets import as_published, escaped, unescaped
from .document import ChannelText, RowRelease
from .words import clean, short

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LONGEST = 60
LABELLED = 2**17  # cells that can be found by their names
ROWS = 1 << 18  # that are looked at together
COUNT = "\0count"  # no column of a published file has this name


@dataclass(frozen=True, eq=False)
class Field:
    """A grid of equal cells as it is drawn: rows upwards, columns to the right.

    Attributes:
        shape: rows, columns.
        low, step: of the rows' coordinate and of the columns', in their own units.
        sides: height and width of a cell as drawn, in ``unit``.
        unit: of the sides; empty where the two axes have no common one.
        titles: of the two coordinates.
        is_map: whether they are latitude and longitude.
        is_turned: whether the first coordinate runs to the right.
    """

    shape: tuple[int, int]
    low: tuple[float, float]
    step: tuple[float, float]
    sides: tuple[float, float]
    unit: str
    titles: tuple[str, str]
    is_map: bool
    is_turned: bool


@dataclass(frozen=True, eq=False)
class Ground:
    """The cells of a channel.

    Attributes:
        domain: of its attributes, in their order.
        field: how they lie where they form a grid; None elsewhere.
    """

    domain: Domain
    field: Field | None

    @property
    def _counts(self) -> tuple[int, int]:
        """Ordinary cells along the first coordinate and along the second."""
        parts = list(self.domain.values())
        if len(parts) == 1:
            [place] = parts
            assert isinstance(place, Point)
            return place.shape
        return parts[0].n_values, parts[1].n_values

    def grid(self, amounts: NDArray[Any]) -> NDArray[Any]:
        """Amounts of all cells, shape (cells,), as drawn: shape (rows, columns), row 0 lowest; special cells left out."""
        assert self.field is not None
        first, second = self._counts
        if len(self.domain) == 1:
            found = amounts[: first * second].reshape(first, second)
        else:
            found = amounts.reshape(self.domain.shape)[:first, :second]
        return found.T if self.field.is_turned else found

    def place(self, cell: int) -> tuple[int, int] | None:
        """Row and column of a cell as drawn; None for a special cell."""
        assert self.field is not None
        first, second = self._counts
        at = divmod(cell, second) if len(self.domain) == 1 else divmod(cell, self.domain.shape[1])
        if at[0] >= first or at[1] >= second:
            return None
        return (at[1], at[0]) if self.field.is_turned else at

    def label(self, cell: int) -> str:
        """The name of a cell."""
        return short(" · ".join(clean(told) for told in self.domain.labels(cell)), LONGEST)


def ground(channel: ChannelText, declared: Mapping[str, Mapping[str, Any]]) -> Ground:
    """Where the cells of a channel lie.

    Raises:
        SpecificationError: attributes that the policy's domain does not have, or another number of cells.
    """
    if not set(channel.attributes) <= set(declared):
        raise SpecificationError("releases.channels.attributes: attributes of the policy's domain.")
    domain = Domain.from_spec({name: declared[name] for name in channel.attributes})
    if domain.size != channel.cells:
        raise SpecificationError("releases.channels.cells: another number than the policy's domain has.")
    return Ground(domain, field_of(domain))


def field_of(domain: Domain) -> Field | None:
    """How the cells of a place, or of two numbers, lie; None where they are no grid."""
    parts = list(domain.items())
    if len(parts) == 1 and isinstance(parts[0][1], Point):
        place = parts[0][1]
        sides = place.sides
        is_map = place.metric == "local"
        titles = (
            ("latitude", "longitude") if is_map else (_title(place.first, place), _title(place.second, place))
        )
        lengths = (float(place.lengths[0]), float(place.lengths[1]))
        found = Field(
            place.shape, (float(sides[0].low), float(sides[1].low)), (float(sides[0].width), float(sides[1].width)),
            lengths, place.unit or "", titles, is_map, False,
        )  # fmt: skip
    elif len(parts) == 2 and all(isinstance(a, Integer | Numeric) for _, a in parts):
        (first, a), (second, b) = parts
        assert isinstance(a, Integer | Numeric) and isinstance(b, Integer | Numeric)
        widths = float(a.width), float(b.width)
        same = a.unit == b.unit
        heights = widths if same else (1.0 / a.n_values, 1.0 / b.n_values)
        found = Field(
            (a.n_values, b.n_values), (float(a.low), float(b.low)), widths, heights,
            (a.unit or "") if same else "", (_title(first, a), _title(second, b)), False, False,
        )  # fmt: skip
    else:
        return None
    return found if found.is_map else _turned(found)


def _turned(field: Field) -> Field:
    """Plane coordinates as in a figure: the first to the right, the second upwards."""
    return Field(
        field.shape[::-1], field.low[::-1], field.step[::-1], field.sides[::-1], field.unit, field.titles[::-1], False, True
    )  # fmt: skip


def _title(name: str, attribute: Attribute) -> str:
    return clean(f"{name} ({attribute.unit})" if attribute.unit else name)


def metres(field: Field) -> float | None:
    """How many metres one of the field's units is; None where it is no length."""
    return float(LENGTHS[field.unit]) if field.unit in LENGTHS else None


def counted_rows(entry: RowRelease, channel: ChannelText, domain: Domain) -> Ints:
    """How many published rows report every cell, shape (cells,).

    Raises:
        SpecificationError: the published file does not hold what the manifest says.
    """
    import pyarrow as pa

    widths = [2 if isinstance(attribute, Point) else 1 for attribute in domain.values()]
    needed = list(channel.columns)
    if sum(widths) != len(needed) or len(set(needed)) < len(needed):
        raise SpecificationError("releases.channels.columns: one for each attribute, two for a place.")
    ends = np.cumsum([0, *widths]).tolist()
    named = {n: needed[i:j] for n, i, j in zip(domain, ends, ends[1:], strict=False)}
    points = [column for n, columns in named.items() if isinstance(domain[n], Point) for column in columns]
    try:
        groups = _grouped(entry, needed, points)
    except (pa.ArrowException, KeyError):
        raise misfit(entry) from None
    cells = []
    for name, attribute in domain.items():
        if isinstance(attribute, Point):
            cells.append(_of_places(attribute, [groups.column(n) for n in named[name]]))
        else:
            cells.append(_of_values(attribute, groups.column(named[name][0]).to_pylist()))
    if any((c < 0).any() for c in cells):
        raise misfit(entry)
    found = np.zeros(domain.size, dtype=np.int64)
    np.add.at(found, domain.encode(cells), np.asarray(groups.column(COUNT), dtype=np.int64))
    return found


def misfit(entry: RowRelease) -> SpecificationError:
    """The refusal of a file that is not what its manifest says."""
    return SpecificationError(
        f"release {clean(entry.name)!r}: its published file does not hold the rows that the manifest describes."
    )


def _grouped(entry: RowRelease, needed: list[str], numbers: list[str]) -> Any:
    """Every combination of some published columns with its count, read some rows at a time: few places stand for any number of rows.

    Raises:
        SpecificationError: there are other columns, or more or fewer rows, than the manifest says.
    """
    import pyarrow as pa

    groups, rows = None, 0
    for table in _tables(entry, needed, numbers):
        rows += table.num_rows
        found = table.group_by(needed).aggregate([([], "count_all")]).rename_columns([*needed, COUNT])
        if groups is not None:
            both = pa.concat_tables([groups, found]).group_by(needed)
            found = both.aggregate([(COUNT, "sum")]).rename_columns([*needed, COUNT])
        groups = found
    if rows != entry.rows or groups is None:
        raise misfit(entry)
    return groups


def _tables(entry: RowRelease, needed: list[str], numbers: list[str]) -> Iterator[Any]:
    """Some columns of the published file, coordinates as numbers, one part of its rows after another."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    form, content = entry.content
    if form == "parquet":
        file = parquet.ParquetFile(pa.BufferReader(content))
        names = file.schema_arrow.names
        batches = file.iter_batches(ROWS, columns=needed)
        empty = file.schema_arrow.empty_table()
    else:
        kinds = {escaped(n): pa.float64() if n in numbers else pa.string() for n in entry.attributes}
        convert = csv.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True)
        parse = csv.ParseOptions(newlines_in_values=True)
        batches = csv.open_csv(pa.BufferReader(content), parse_options=parse, convert_options=convert)
        empty = batches.schema.empty_table()
        names = [unescaped(n) for n in empty.column_names]
    if set(names) != set(entry.attributes):
        raise misfit(entry)
    for table in itertools.chain([empty], map(pa.Table.from_batches, ([b] for b in batches))):
        read = table if form == "parquet" else _as_published(table)
        yield _plain(read.select(needed), numbers)


def _as_published(table: Any) -> Any:
    """A part of a CSV file with its names and texts as they were published."""
    import pyarrow as pa

    columns = [as_published(c) if pa.types.is_string(c.type) else c for c in table.columns]
    return pa.table(columns, [unescaped(n) for n in table.column_names])


def _plain(table: Any, numbers: list[str]) -> Any:
    """Columns without dictionaries, and coordinates as numbers."""
    import pyarrow as pa

    for i, name in enumerate(table.column_names):
        kind = pa.float64() if name in numbers else None
        column = table.column(i)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        table = table.set_column(i, name, column if kind is None else column.cast(kind))
    return table


def _of_places(place: Point, columns: Sequence[Any]) -> Ints:
    """Cells of published centres; −1 for what is no place of the box."""
    pairs = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=-1)
    with np.errstate(invalid="ignore"):
        outside = np.zeros(len(pairs), dtype=bool)
        for column, (low, high) in zip(pairs.T, place.box, strict=True):
            outside |= (column < float(low)) | (column > float(high))
    return np.where(outside, -1, place.cells(pairs))


def _of_values(attribute: Attribute, values: list[Any]) -> Ints:
    """Cells of published values, which are names of cells or numbers within them."""
    names = {attribute.label(c): c for c in range(attribute.size)} if attribute.size <= LABELLED else {}
    found = []
    for value in values:
        if value is None:
            found.append(-1 if attribute.missing_cell is None else attribute.missing_cell)
        elif str(value) in names:
            found.append(names[str(value)])
        elif isinstance(attribute, Categorical):
            found.append(-1)
        else:
            found.append(_of_number(attribute, value))
    return np.array(found, dtype=np.int64)


def _of_number(attribute: Attribute, value: Any) -> int:
    assert isinstance(attribute, Integer | Numeric)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return -1
    if not float(attribute.low) <= number <= float(attribute.high):
        return -1
    # The middle of a cell of whole numbers may lie between two of them.
    return int(attribute.cells([np.floor(number) if isinstance(attribute, Integer) else number])[0])
