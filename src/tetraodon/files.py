"""Files as sources: CSV and Arrow files, read through a private in-memory DuckDB; ``partitions`` has parquet, ``duckdb_files`` DuckDB files.

A ``Source`` knows the table's schema and can be connected to again and again; each connection shows the wanted columns,
and no others, as ``c0``, ``c1``, … so that no name of the user's meets a query language or its rules about letter case.
What an engine or a reader raises never leaves this package (``sealed``): its text may quote rows.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import hashlib
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from .errors import DataError, EngineError, TetraodonError, Unsupported

T = TypeVar("T")
Close = Callable[[], object]
Connection = tuple[Any, Any, Close]

VIEW = "rows that tetraodon reads"  # nobody's table has this name: a view of a query would meet itself
MEMORY = "2GB"
# Fields beyond the header that a row may have; they are read and ignored.
SPARE = 16
HEADER_BYTES = 1 << 20

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".csv.gz": "csv", ".tsv.gz": "csv",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Source:
    """A table that can be read.

    Attributes:
        where: how messages name it: a file's name, never its folder or an address.
        columns: the wanted columns; column i is ``c<i>`` of every connection.
        types: their declared types (Ibis).
        embedded: whether the engine is DuckDB within this process.
        flaws: what the table is refused for where a row's column ``flaw`` is not null but a place in this list.
        is_weighted: whether connections show how much a row counts, as ``steps``.
        is_placed: whether they show where it stands, as ``place``.
        is_spread: whether rows are drawn where they lie, by the workers of an engine (``spark_rows``), not in this process.
        files: the files whose bytes, and nothing else, are the source: parquet, CSV and Arrow files, and the DuckDB file of a
            table with its log, which need not be there. Empty where there are none: frames, databases, views and queries, which may
            read anything, and generated columns of a DuckDB table, which are computed anew whenever they are read.
    """

    where: str
    columns: tuple[str, ...]
    types: tuple[Any, ...]
    embedded: bool
    connect: Callable[[], Connection]
    flaws: tuple[str, ...] = ()
    is_weighted: bool = False
    is_placed: bool = False
    is_spread: bool = False
    files: tuple[Path, ...] = ()

    @contextmanager
    def opened(self) -> Iterator[tuple[Any, Any]]:
        """(backend, table) for the length of a ``with`` block."""
        backend, table, close = sealed(self.where, "opening", self.connect)
        try:
            yield backend, table
        finally:
            sealed(self.where, "closing", close)


def sealed(where: str, stage: str, action: Callable[..., T], *args: object) -> T:
    """The result of ``action``; if it fails, an error of ours that carries nothing of the original but its kind.

    Raises:
        Unsupported: Ibis has no words for an operation in this engine.
        EngineError: anything else but an error of this package was raised. Neither has a cause or a context.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # readers quote values in warnings too
            return action(*args)
    except TetraodonError as error:
        failure: TetraodonError = error
    except Exception as error:
        failure = _lacking(where, error) or EngineError(
            f"{where}: {stage} failed ({type(error).__name__}). The engine's own message is withheld because it may "
            f"quote rows.{' Check that it may be read.' if isinstance(error, OSError) else _hint(where)}"
        )
    failure.__cause__ = failure.__context__ = None
    raise failure


def _lacking(where: str, error: Exception) -> Unsupported | None:
    """Which operation an engine lacks, if that is what failed. Of the message only names of Ibis' operations are taken."""
    if (type(error).__module__, type(error).__name__) != (
        "ibis.common.exceptions",
        "OperationNotDefinedError",
    ):
        return None
    import ibis.expr.operations as ops

    named = [word for word in re.findall(r"[A-Z]\w+", str(error)) if hasattr(ops, word)]
    told = f" ({', '.join(named)})" if named else ""
    return Unsupported(
        f"{where}: this engine lacks an operation that the declaration needs{told}. Write the table to parquet files and give these, "
        "or use an engine of docs/engines.md."
    )


def _hint(where: str) -> str:
    if FORMATS.get(suffix(where)) == "csv":
        return (
            " A CSV file must be UTF-8, end every line the same way, close every quote, and have at most"
            f" {SPARE} fields more than its header."
        )
    return ""


def positions(where: str, names: Sequence[str], wanted: Sequence[str], *, header: bool = False) -> list[int]:
    """Place of each wanted column among the table's; the first line of a CSV file is never quoted."""
    for name in wanted:
        if names.count(name) > 1:
            raise DataError(f"{where}: more than one column is named {name!r}.")
        if name in names:
            continue
        if header:  # what stands there may be a row
            raise DataError(
                f"{where}: no column {name!r} in its first line; a CSV file begins with a line of column names. Its names "
                "are not shown, because a file without that line begins with a row."
            )
        near = difflib.get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        raise DataError(f"{where}: no column {name!r}; the table has {shown}.{hint}")
    return [names.index(name) for name in wanted]


def finish(
    where: str,
    wanted: Sequence[str],
    connect: Callable[[], Connection],
    embedded: bool,
    files: tuple[Path, ...] = (),
) -> Source:
    """The source, once its types are known."""

    def types() -> tuple[Any, ...]:
        _, table, close = connect()
        try:
            schema = table.schema()
            return tuple(schema[f"c{i}"] for i in range(len(wanted)))
        finally:
            close()

    return Source(where, tuple(wanted), sealed(where, "opening", types), embedded, connect, files=files)


# DuckDB within this process


def embedded(prepare: Callable[[Any], None]) -> Connection:
    """A private in-memory DuckDB in which ``prepare`` has made the view; what it spills goes to a private folder."""
    import ibis

    folder = tempfile.mkdtemp(prefix="tetraodon-")
    clear = partial(shutil.rmtree, folder, ignore_errors=True)
    try:
        backend = ibis.duckdb.connect(
            temp_directory=os.path.join(folder, "spill"),
            memory_limit=MEMORY,
            preserve_insertion_order=False,
            autoinstall_known_extensions=False,
            autoload_known_extensions=False,
        )
    except BaseException:
        clear()
        raise

    def close() -> None:
        backend.disconnect()
        clear()

    try:
        backend.con.execute("SET enable_progress_bar = false")
        prepare(backend)
        return backend, backend.table(VIEW), close
    except BaseException:
        close()
        raise


def quoted(text: str) -> str:
    """A name as DuckDB reads it."""
    return '"' + text.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as DuckDB reads it."""
    return "'" + text.replace("'", "''") + "'"


def literal_path(path: Path) -> str:
    """The path as DuckDB reads it, which takes every path for a pattern."""
    return literal("".join(f"[{c}]" if c in "*?[" else c for c in str(path)))


def view(backend: Any, columns: Sequence[str], rows: str) -> None:
    """Makes the view, of columns as a query writes them."""
    shown = ", ".join(f"{column} AS c{i}" for i, column in enumerate(columns))
    backend.con.execute(f"CREATE TEMP VIEW {quoted(VIEW)} AS SELECT {shown} FROM {rows}")


def described(backend: Any, rows: str) -> list[tuple[str, str]]:
    """(name, type) of each column in DuckDB's eyes."""
    return [row[:2] for row in backend.con.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()]


# Files


def sha256(path: Path) -> str:
    """Digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def suffix(name: str) -> str:
    """The known ending of a file's name, or nothing."""
    name = name.lower()
    return next((s for s in sorted(FORMATS, key=len, reverse=True) if name.endswith(s)), "")


def require_file(path: Path) -> None:
    """Refuses a path at which no file lies.

    Raises:
        DataError: names it.
    """
    if path.is_dir():
        raise DataError(f"{path.name}: a folder; give one file.")
    if not path.exists():
        raise DataError(f"{path.name}: no such file.")


def from_file(path: Path, wanted: Sequence[str]) -> Source:
    """A file, by the ending of its name, or a folder of parquet files."""
    from .partitions import from_folder, from_parquet

    if path.is_dir():
        return from_folder(path, wanted)
    kind = FORMATS.get(suffix(path.name))
    if kind is None:
        hint = " A DuckDB file is opened by duckdb://." if path.suffix in (".duckdb", ".db") else ""
        raise DataError(f"{path.name}: not one of {', '.join(FORMATS)}.{hint}")
    require_file(path)
    opener = {"parquet": from_parquet, "csv": _from_csv, "arrow": _from_arrow}[kind]
    return opener(path, wanted)


def unchanged(where: str, told: object, found: object) -> None:
    """Columns are read by their place, which is another column's once the file was replaced by one of another layout."""
    if told != found:
        raise DataError(f"{where}: its columns are not those that it had when it was opened; open it again.")


def _header(path: Path) -> tuple[list[str], str]:
    """(names, delimiter) from the first line alone: a semicolon delimits where the line has one and no comma."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        start = file.read(HEADER_BYTES).decode("utf-8-sig", "replace")
    line = start.partition("\n")[0]
    delimiter = (
        "\t" if suffix(path.name).startswith(".tsv") else ";" if ";" in line and "," not in line else ","
    )
    if line.count('"') % 2:
        raise DataError(
            f"{path.name}: a quote is left open in its first line, which must hold the column names."
        )
    return next(csv.reader([line.rstrip("\r")], delimiter=delimiter), []), delimiter


def column_names(path: Path) -> list[str]:
    """Names of a file's columns, from its schema or its first line alone; what stands in the first line of a CSV file may be a row."""

    def names() -> list[str]:
        import pyarrow.parquet as pq
        from pyarrow import ipc

        if kind == "csv":
            return _header(path)[0]
        if kind == "parquet":
            return list(pq.read_schema(path).names)
        with ipc.open_file(str(path)) as reader:
            return list(reader.schema.names)

    kind = FORMATS.get(suffix(path.name))
    require_file(path)
    return sealed(path.name, "opening", names)


def _from_csv(path: Path, wanted: Sequence[str]) -> Source:
    """Every column is text; nothing is sniffed off the rows.

    One thread reads the file: DuckDB's parallel reader can lose count of quoted line ends. A row with fewer fields than
    the header has empty texts in their place, spare fields are ignored, and an empty line is not a row. A quote that
    is never closed would silently swallow the rest of the file; it leaves a null in the last spare column, which no
    other row can have, and is refused there.
    """
    names, delimiter = sealed(path.name, "opening", _header, path)
    places = positions(path.name, names, wanted, header=True)
    every = [f"f{i}" for i in range(len(names) + SPARE)]
    listed = ", ".join(f"'{c}': 'VARCHAR'" for c in every)
    kept = ", ".join(f"'{c}'" for c in every)
    rows = (
        f"read_csv([{literal_path(path)}], columns = {{{listed}}}, auto_detect = false, header = true, "
        f"delim = {literal(delimiter)}, quote = '\"', escape = '\"', strict_mode = true, parallel = false, "
        f"null_padding = true, force_not_null = [{kept}], hive_partitioning = false, "
        f"compression = '{'gzip' if path.name.lower().endswith('.gz') else 'none'}') "
        f"WHERE CASE WHEN {every[-1]} IS NULL THEN error('malformed') ELSE true END"
    )

    def prepare(backend: Any) -> None:
        unchanged(path.name, (names, delimiter), _header(path))
        view(backend, [every[i] for i in places], rows)

    return finish(path.name, wanted, partial(embedded, prepare), True, (path,))


def _from_arrow(path: Path, wanted: Sequence[str]) -> Source:
    """Arrow files, read batch by batch and only the wanted columns."""
    import pyarrow as pa
    from pyarrow import ipc

    def schema() -> Any:
        with pa.memory_map(str(path)) as file:
            return ipc.open_file(file).schema

    fields = sealed(path.name, "opening", schema)
    places = positions(path.name, fields.names, wanted)
    kinds = [readable(fields.field(i).type, path.name, n) for i, n in zip(places, wanted, strict=True)]
    order = [sorted(places).index(i) for i in places]
    shown = pa.schema([(f"c{i}", kind) for i, kind in enumerate(kinds)])

    def batches() -> Iterator[Any]:
        with pa.memory_map(str(path)) as file:
            reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=places))
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                arrays = [batch.column(i).cast(kind) for i, kind in zip(order, kinds, strict=True)]
                yield pa.record_batch(arrays, schema=shown)

    def prepare(backend: Any) -> None:
        unchanged(path.name, fields, schema())
        backend.con.register(VIEW, pa.RecordBatchReader.from_batches(shown, batches()))

    return finish(path.name, wanted, partial(embedded, prepare), True, (path,))


def readable(kind: Any, where: str, column: str) -> Any:
    """The Arrow type in which DuckDB can read a column of this type, value for value.

    Raises:
        DataError: none can (extension types: periods, intervals, …).
    """
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        raise DataError(f"{where}: column {column!r} is {kind.extension_name}; give it as numbers or text.")
    if pa.types.is_dictionary(kind):
        return readable(kind.value_type, where, column)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.large_string()
    return kind
