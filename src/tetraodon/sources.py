"""Where rows come from: files, data frames, dicts of columns, databases. Everything is opened read-only.

In-memory columns keep their declared type; columns of mixed Python objects become text, element by element, so that the
type of one row never changes the cell of another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .duckdb_files import from_duckdb
from .errors import DataError, SpecificationError, Unsupported
from .files import (
    VIEW,
    Connection,
    Source,
    embedded,
    finish,
    from_file,
    positions,
    readable,
    sealed,
)
from .reading import FOREIGN, text

SCHEMES = {
    "bigquery": "bigquery", "clickhouse": "clickhouse", "databricks": "databricks", "mssql": "mssql", "mysql": "mysql",
    "oracle": "oracle", "postgres": "postgres", "postgresql": "postgres", "pyspark": "pyspark",
    "snowflake": "snowflake", "trino": "trino",
}  # fmt: skip

SQLITE = "source: give the URL of the SQLite file, sqlite://people.db, not an Ibis table of it (its columns hold values of any type)."

# Functions that run a text as a query, which nobody has looked at, or draw at random under a name that a parser does not know.
HIDDEN = (
    "query", "query_table", "query_to_xml", "query_to_xml_and_xmlschema", "dblink", "random_normal", "randomblob",
)  # fmt: skip


def open_source(
    source: object, wanted: Sequence[str], table: str | None = None, sql: str | None = None
) -> Source:
    """Opens a source and looks at its schema; no row is read.

    Args:
        source: a path (parquet, csv, csv.gz, tsv, arrow, feather), a folder of parquet files, a list of parquet files, an Ibis URL
            (``duckdb://file.duckdb``), a pandas, polars or pyarrow frame, a dict of columns, or an Ibis table.
        wanted: the columns that connections will show.
        table: name of the table, for URLs.
        sql: a SELECT whose result is read, for URLs, instead of ``table``.

    Raises:
        SpecificationError: ``sql`` is anything but one SELECT.
        DataError: no such file, table or column, or the name of a column is not unique.
        EngineError: the source cannot be opened.
        Unsupported: a kind of source, or an engine whose Ibis extra is not installed.
    """
    if isinstance(source, str) and "://" in source:
        return _from_url(source, wanted, table, sql)
    for name, value in (("table", table), ("sql", sql)):
        if value is not None:
            raise DataError(f"{name}: only a URL names a table or a query.")
    if isinstance(source, str | os.PathLike):
        return from_file(Path(os.fspath(source)), wanted)
    if isinstance(source, list | tuple):
        from .partitions import from_list

        return from_list(source, wanted)
    if isinstance(source, Mapping):
        columns = {str(k): v for k, v in source.items()}
        return _from_frame("table", list(columns), lambda i: list(columns.values())[i], wanted)
    kinds = {f"{c.__module__.partition('.')[0]}.{c.__name__}" for c in type(source).__mro__}
    frame: Any = source
    if "polars.LazyFrame" in kinds:
        names = sealed("table", "opening", lambda: frame.collect_schema().names())
        present = [n for n in names if n in wanted]
        frame = sealed("table", "reading", lambda: frame.select(present).collect())
        return _from_frame("table", names, lambda i: frame.get_column(names[i]), wanted)
    if "polars.DataFrame" in kinds:
        return _from_frame("table", list(frame.columns), lambda i: frame.to_series(i), wanted)
    if "pandas.DataFrame" in kinds:
        return _from_frame("table", [str(c) for c in frame.columns], lambda i: frame.iloc[:, i], wanted)
    if kinds & {"pyarrow.Table", "pyarrow.RecordBatch"}:
        return _from_frame("table", list(frame.schema.names), lambda i: frame.column(i), wanted)
    if "ibis.Table" in kinds:
        return _from_ibis(frame, wanted)
    if is_spark_frame(source):
        from .spark import from_frame

        return from_frame(frame, wanted)
    raise Unsupported(
        f"source: a path, a URL, a pandas, polars, pyarrow or Spark frame, a dict of columns or an Ibis table, "
        f"not {type(source).__name__}."
    )


def is_spark_frame(source: object) -> bool:
    """Whether a source is a Spark DataFrame, by the names of its classes, so that nothing is imported.

    >>> is_spark_frame({"age": [1]})
    False
    """
    kinds = [(c.__module__, c.__name__) for c in type(source).__mro__]
    return any(name == "DataFrame" and module.startswith("pyspark.sql.") for module, name in kinds)


def _from_frame(
    where: str, names: list[str], column: Callable[[int], object], wanted: Sequence[str]
) -> Source:
    """Columns in memory; only the wanted ones are converted."""
    import pyarrow as pa

    places = positions(where, names, wanted)
    arrays = [
        sealed(where, "reading", arrow_column, column(i), where, n)
        for i, n in zip(places, wanted, strict=True)
    ]
    if len({len(array) for array in arrays}) > 1:
        raise DataError(f"{where}: the columns are not equally long.")
    table = pa.table({f"c{i}": array for i, array in enumerate(arrays)})
    connect = partial(embedded, lambda backend: backend.con.register(VIEW, table))
    return finish(where, wanted, connect, True)


def arrow_column(values: Any, where: str, name: str) -> Any:
    """One column as an Arrow array: typed columns as they are, categories by value, anything else as text.

    Raises:
        DataError: the values are not a one-dimensional column, or of a type that is neither number nor text.
    """
    import pyarrow as pa

    home = type(values).__module__.partition(".")[0]
    if home == "polars":
        if str(values.dtype) in ("Object", "Int128", "UInt128"):
            return texts(values.to_list())
        values = values.to_arrow()
    elif home == "pandas":
        if hasattr(values.dtype, "categories"):
            labels = arrow_column(values.dtype.categories, where, name)
            codes = values.array.codes
            values = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), labels)
        elif isinstance(values.dtype, np.dtype):
            return arrow_column(values.to_numpy(), where, name)
        else:
            values = pa.array(values)
    elif isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DataError(f"{where}: column {name!r} must be one-dimensional.")
        if isinstance(values, np.ma.MaskedArray) or values.dtype.kind not in "iufbM":
            if values.dtype.kind in "cmSV":
                raise DataError(
                    f"{where}: column {name!r} is {values.dtype.name}; give it as numbers or text."
                )
            return texts(values.tolist())
        if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
            values = values.astype(np.float32 if values.dtype.itemsize == 2 else np.float64)
        values = pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
    elif home != "pyarrow":
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            raise DataError(
                f"{where}: column {name!r} must be a list or an array, not {type(values).__name__}."
            )
        return texts(values)
    kind = readable(values.type, where, name)
    if pa.types.is_dictionary(values.type) and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return values
    return values.cast(kind)


def texts(values: Sequence[object]) -> Any:
    """Values of any kinds as an Arrow array of texts, one by one (``reading.text``)."""
    import pyarrow as pa

    read = [v if type(v) is str else text(v) for v in values]
    try:
        return pa.array(read, pa.large_string())
    except UnicodeEncodeError:  # half of a surrogate pair: equal to nothing that can be declared
        return pa.array([FOREIGN if t and not _writable(t) else t for t in read], pa.large_string())


def _writable(text: str) -> bool:
    return text == text.encode("utf-8", "replace").decode()


# Databases


def _from_ibis(table: Any, wanted: Sequence[str]) -> Source:
    names = list(table.columns)
    positions("table", names, wanted)
    if table.get_backend().name == "postgres":
        from .postgres import from_expression

        return from_expression(table, wanted)
    if table.get_backend().name == "pyspark":
        from .spark import from_ibis

        return from_ibis(table, wanted)

    def connect() -> Connection:
        backend = table.get_backend()
        if backend.name == "sqlite":
            raise Unsupported(SQLITE)
        if backend.name == "polars":  # it computes every branch of a CASE and fails on the ones not taken
            raise Unsupported("source: give the polars frame itself, not an Ibis table of it.")
        shown = table.select(**{f"c{i}": table[name] for i, name in enumerate(wanted)})
        return backend, shown, lambda: None

    return finish("table", wanted, connect, False)


def _from_url(url: str, wanted: Sequence[str], table: str | None, sql: str | None) -> Source:
    scheme, _, rest = url.partition("://")
    if table is not None and sql is not None:
        raise SpecificationError("sql: instead of table, not beside it; leave one of them out.")
    query = None if sql is None else one_select(sql, scheme)
    if scheme == "duckdb" and rest.startswith(("md:", "motherduck:")):
        raise Unsupported(
            "duckdb: a base on a server (md:) needs an extension, and none is loaded; COPY the table to parquet files and give these."
        )
    if scheme == "duckdb":
        return from_duckdb(rest, wanted, table, query)
    if scheme == "sqlite":
        from .sqlite import from_sqlite

        return from_sqlite(rest, wanted, table, query)
    if scheme not in SCHEMES:
        raise Unsupported(
            f"source: no engine for {scheme}://; known: duckdb, sqlite, {', '.join(SCHEMES)}. A file is given by its path, and what "
            "lies elsewhere as parquet files copied here."
        )
    if table is None and query is None:
        raise DataError(f"{scheme}: table= must name a table, or sql= give a query.")
    if SCHEMES[scheme] == "postgres":
        from .postgres import from_postgres

        return from_postgres(url, wanted, table, query)
    if scheme == "pyspark":
        from .spark import from_url

        return from_url(rest, wanted, table, query)

    def backend() -> Any:
        import ibis

        try:
            return ibis.connect(url)
        except ImportError:
            return None

    where = f"{scheme}:{table or 'sql'}"

    def connect() -> Connection:
        engine = backend()
        if engine is None:
            raise Unsupported(f"{scheme}: install ibis-framework[{SCHEMES[scheme]}] to read from it.")
        shown = engine.table(table) if query is None else engine.sql(query)
        return engine, shown, engine.disconnect

    names = sealed(where, "opening", _names, connect)
    positions(where, names, wanted)

    def chosen() -> Connection:
        engine, shown, close = connect()
        return engine, shown.select(**{f"c{i}": shown[n] for i, n in enumerate(wanted)}), close

    return finish(where, wanted, chosen, False)


def one_select(sql: str, scheme: str) -> str:
    """A query as it is given to an engine, without what ends it.

    Raises:
        SpecificationError: it is not one SELECT, writes, or draws rows at random: a table must hold the same rows whenever it is
            read. It never shows the text.

    >>> one_select("SELECT * FROM people WHERE year = 2025;", "duckdb")
    'SELECT * FROM people WHERE year = 2025'
    """
    import sqlglot
    from sqlglot import exp

    wrong = SpecificationError(
        "sql: exactly one SELECT, which reads, does not write, and draws nothing at random."
    )
    spoken = "spark" if scheme == "pyspark" else SCHEMES.get(scheme, scheme)
    dialect = sqlglot.Dialect.get(spoken, sqlglot.Dialect.get("duckdb"))
    try:
        ends = [t.start for t in sqlglot.tokenize(sql, read=dialect) if t.text == ";"]
        text = sql[: ends[-1]] if ends and not sqlglot.tokenize(sql[ends[-1] + 1 :], read=dialect) else sql
        parsed = sqlglot.parse(text, read=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise wrong from None
    forbidden = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.TableSample, exp.Rand, exp.Randn, exp.Uuid)
    reads = exp.Select | exp.SetOperation | exp.Subquery
    if (
        len(parsed) != 1
        or not isinstance(parsed[0], reads)
        or any(isinstance(node, forbidden) and not isinstance(node, reads) for node in parsed[0].walk())
        or any(str(node.this).lower() in HIDDEN for node in parsed[0].find_all(exp.Anonymous))
    ):
        raise wrong
    return text


def _names(connect: Callable[[], Connection]) -> list[str]:
    _, table, close = connect()
    try:
        return list(table.columns)
    finally:
        close()
