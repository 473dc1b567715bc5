"""The two tables of an attack: the original and what was released of it, person beside person. Private; nothing is printed.

A column is numbers or texts. Texts of which every one reads as a number are numbers, so that a CSV file and a parquet file
of the same table are attacked alike; dates are numbers of days; truth values are texts; an empty text is missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, Unsupported
from ..spreadsheets import as_published, unescaped
from .tables import Floats, Ints

# Texts that stand for a missing number among numbers.
NO_NUMBER = {"nan", "na", "n/a", "null", "none", "?"}
_NUMBER = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?|\d+(?:\.\d+)?")


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """One column, in either form.

    Attributes:
        numbers: float64, NaN where missing; None for texts.
        codes: of texts, the place of each in ``levels``, −1 where missing; empty for numbers.
        levels: the different texts, in no particular order; empty for numbers.
    """

    numbers: Floats | None
    codes: Ints
    levels: tuple[str, ...] = ()

    @property
    def missing(self) -> Any:
        """Where there is no value."""
        return self.codes < 0 if self.numbers is None else np.isnan(self.numbers)

    def take(self, rows: Ints) -> Column:
        """These rows."""
        if self.numbers is None:
            return Column(None, self.codes[rows], self.levels)
        return Column(self.numbers[rows], self.codes)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """A table read.

    Attributes:
        where: how messages name it.
        columns: by name.
        size: number of rows.
        keys: who each row is about, as text; None where rows are paired by their order.
    """

    where: str
    columns: dict[str, Column]
    size: int
    keys: Any = None

    def take(self, rows: Ints) -> Rows:
        """These rows."""
        return Rows(self.where, {n: c.take(rows) for n, c in self.columns.items()}, len(rows))


@dataclass(frozen=True, eq=False, repr=False)
class Given:
    """A table that can be read.

    Attributes:
        where: how messages name it.
        names: of its columns.
        may_be_values: whether these may be a row of values.
        written: the names as they stand in a released CSV file, where formulas have an apostrophe in front (``spreadsheets``): an
            attacker takes it off, and so does not meet other values than those of the original.
    """

    where: str
    names: list[str]
    may_be_values: bool
    source: Any
    written: list[str] | None = None

    @staticmethod
    def of(source: object, role: str) -> Given:
        """Look at the schema alone.

        Args:
            source: a path, a pandas, polars or pyarrow frame, or a dict of columns.
            role: "original" or "released".
        Raises:
            DataError: no such file. EngineError: it cannot be opened. Unsupported: another kind of source.
        """
        from ..files import FORMATS, column_names, suffix

        if isinstance(source, str) and "://" in source:
            raise Unsupported(f"{role}: a path or a frame; export the table of a database to parquet first.")
        if isinstance(source, str | os.PathLike):
            path = Path(os.fspath(source))
            kind = FORMATS.get(suffix(path.name))
            if kind is None:
                raise DataError(f"{path.name}: not one of {', '.join(FORMATS)}.")
            names = column_names(path)
            if kind == "csv" and role == "released":
                return Given(path.name, [unescaped(n) for n in names], True, path, names)
            return Given(path.name, names, kind == "csv", path)
        if isinstance(source, Mapping):
            return Given(role, [str(k) for k in source], False, dict(source))
        kinds = {f"{c.__module__.partition('.')[0]}.{c.__name__}" for c in type(source).__mro__}
        frame: Any = source
        if "polars.LazyFrame" in kinds:
            from ..files import sealed

            frame = sealed(role, "reading", frame.collect)
            return Given(role, list(frame.columns), False, frame)
        if kinds & {"pandas.DataFrame", "polars.DataFrame"}:
            return Given(role, [str(c) for c in frame.columns], False, frame)
        if kinds & {"pyarrow.Table", "pyarrow.RecordBatch"}:
            return Given(role, list(frame.schema.names), False, frame)
        raise Unsupported(
            f"{role}: a path, a pandas, polars or pyarrow frame or a dict of columns, not {type(source).__name__}."
        )

    def read(self, wanted: list[str], ident: str | None = None) -> Rows:
        """The wanted columns, and who each row is about, in the order of the rows.

        Raises:
            DataError: a column is lacking, not unique, of a type that is neither number nor text, or of another length;
                an id is missing or occurs twice.
            EngineError: the file cannot be read.
        """
        from ..files import positions, sealed

        named = wanted if ident is None else [*wanted, ident]
        places = positions(self.where, self.names, named, header=self.may_be_values)
        arrays = sealed(self.where, "reading", self._arrays, named, places)
        sizes = {len(array) for array in arrays}
        if len(sizes) > 1:
            raise DataError(f"{self.where}: the columns are not equally long.")
        keys = (
            None if ident is None else sealed(self.where, "reading", _keys, arrays.pop(), self.where, ident)
        )
        columns = {
            name: sealed(self.where, "reading", column, array, self.where, name)
            for name, array in zip(wanted, arrays, strict=True)
        }
        return Rows(self.where, columns, sizes.pop() if sizes else 0, keys)

    def _arrays(self, wanted: list[str], places: list[int]) -> list[Any]:
        from ..sources import arrow_column

        source = self.source
        if isinstance(source, Path):
            written = wanted if self.written is None else [self.written[i] for i in places]
            table = self._file(source, written, places)
            found = table.columns if self.written is None else [as_published(c) for c in table.columns]
            return [arrow_column(c, self.where, n) for c, n in zip(found, wanted, strict=True)]
        if isinstance(source, dict):
            values = list(source.values())
            found = [values[i] for i in places]
        elif hasattr(source, "iloc"):
            found = [source.iloc[:, i] for i in places]
        elif hasattr(source, "to_series"):
            found = [source.to_series(i) for i in places]
        else:
            found = [source.column(i) for i in places]
        return [arrow_column(v, self.where, n) for v, n in zip(found, wanted, strict=True)]

    def _file(self, path: Path, wanted: list[str], places: list[int]) -> Any:
        """An Arrow table of the wanted columns, rows in the file's order."""
        if self.may_be_values:  # CSV: read as the rest of the package reads it, but in order
            from ..sources import open_source

            with open_source(path, wanted).opened() as (backend, table):
                backend.con.execute("SET preserve_insertion_order = true")
                return table.to_pyarrow()
        if path.suffix.lower() in (".parquet", ".pq"):
            import pyarrow.parquet as pq

            file = pq.ParquetFile(path)
            return file.read(columns=wanted, use_threads=False).select(wanted)
        from pyarrow import ipc

        with ipc.open_file(str(path)) as reader:
            return reader.read_all().select(places)


def column(array: Any, where: str, name: str) -> Column:
    """An Arrow array as a column.

    Raises:
        DataError: it is neither numbers, texts, truth values nor dates.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        return column(array.cast(kind.value_type), where, name)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        array = pc.divide(array.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64()), 86_400e6)
        kind = pa.float64()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _numbers(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        array = array.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"{where}: column {name!r} is {kind}; give it as numbers, dates or text.")
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    told = array.dictionary_encode()
    if isinstance(told, pa.ChunkedArray):
        told = told.combine_chunks()
    codes = told.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    levels = [str(v) for v in told.dictionary.to_pylist()]
    return _texts(codes, levels)


def _numbers(values: Any) -> Column:
    found = np.array(values, dtype=np.float64)
    found[~np.isfinite(found)] = np.nan
    return Column(found, np.empty(0, np.int64))


def _texts(codes: Ints, levels: list[str]) -> Column:
    """Numbers, where every text but those for missing ones reads as one."""
    stripped = [level.strip() for level in levels]
    absent = np.array([not s for s in stripped], dtype=bool)
    numbers = np.full(len(levels), np.nan)
    readable = bool(levels) and not absent.all()
    for i, text in enumerate(stripped):
        if absent[i] or text.lower() in NO_NUMBER:
            continue
        try:
            numbers[i] = float(text)
        except ValueError:
            readable = False
            break
    if readable and not np.isnan(numbers).all():
        return _numbers(np.where(codes < 0, np.nan, numbers[codes]))
    place = np.where(absent, -1, np.cumsum(~absent) - 1)
    return Column(
        None,
        np.where(codes < 0, -1, place[codes]) if levels else codes,
        tuple(t for t, a in zip(levels, absent, strict=True) if not a),
    )


def middle(text: str) -> float:
    """The middle of the numbers that a text begins with, at most two: where a published range lies. NaN if it has none.

    >>> middle("17–24"), middle("[20, 30)"), middle("< 25"), middle("-3"), middle("none")
    (20.5, 25.0, 25.0, -3.0, nan)
    """
    found = [float(n) for n in _NUMBER.findall(text)[:2]]
    return sum(found) / len(found) if found else float("nan")


def beside(original: Rows, released: Rows) -> tuple[Rows, Rows, Ints]:
    """Both tables with the same person in each row, and which row of the original each of them was.

    Raises:
        DataError: different lengths without an id; no id in common.
    """
    if original.keys is None or released.keys is None:
        if original.size != released.size:
            raise DataError(
                f"{original.where} and {released.where}: not equally many rows, so they cannot be paired row by row; "
                "name the column that tells who is who (id)."
            )
        return original, released, np.arange(original.size)
    _, mine, theirs = np.intersect1d(original.keys, released.keys, assume_unique=True, return_indices=True)
    if not mine.size:
        raise DataError(
            f"{original.where} and {released.where}: no id occurs in both; name a column that both hold."
        )
    order = np.argsort(mine, kind="stable")
    return original.take(mine[order]), released.take(theirs[order]), mine[order].astype(np.int64)


def in_other_order(original: Rows, released: Rows) -> tuple[str, ...]:
    """Columns that seem to say who is who and stand in another order: a text or whole number of one person alone, the same ones
    in both tables."""
    found = []
    for name in original.columns.keys() & released.columns.keys():
        told = [_whole(table.columns[name]) for table in (original, released)]
        if told[0] is None or told[1] is None or np.array_equal(*told):
            continue
        mine, theirs = (np.unique(t) for t in told)
        if len(mine) == original.size and np.array_equal(mine, theirs):
            found.append(name)
    return tuple(sorted(found))


def _whole(column: Column) -> Any:
    """The texts or whole numbers of a column; None for any other, or where one is missing."""
    if column.missing.any():
        return None
    if column.numbers is None:
        alone = len(column.levels) == len(column.codes)
        return np.array(column.levels, dtype=str)[column.codes] if alone else None
    return column.numbers if (column.numbers % 1 == 0).all() else None


def _keys(array: Any, where: str, name: str) -> Any:
    """Ids as texts; whole numbers in any form are the same text, however many digits they have."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        return _keys(array.cast(kind.value_type), where, name)
    readable = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_floating)
    if not any(test(kind) for test in readable):
        raise DataError(f"{where}: the id column {name!r} is {kind}; give it as whole numbers or text.")
    values = array.to_pylist()
    if any(v is None or v != v or v == "" for v in values):
        raise DataError(f"{where}: the id column {name!r} has missing values.")
    keys = [_key(v) for v in values]
    if len(set(keys)) < len(keys):
        raise DataError(
            f"{where}: a value of the id column {name!r} occurs more than once; one row per person."
        )
    return np.array(keys, dtype=str)


def _key(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    return text[:-2] if text.endswith(".0") and text[:-2].lstrip("-").isdigit() else text
