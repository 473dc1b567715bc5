"""The engines that the suite runs on: each makes the rows of one Arrow table its own and says how ``Table`` opens them.

An engine is added by one more entry of ``ENGINES``: its name, and a function of (Arrow table, folder) that gives the
arguments of ``Table``, or skips by name where the engine is not there.
"""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import database
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from spark_local import session

Arguments = dict[str, Any]
NAME = 'odd "select" Tab'
_numbers = itertools.count()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def duckdb_file(rows: pa.Table, folder: Path) -> Arguments:
    file = folder / f"rows{next(_numbers)}.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.register("rows", rows)
        connection.execute(f"CREATE TABLE {_quoted(NAME)} AS SELECT * FROM rows")
    return {"source": f"duckdb://{file}", "table": NAME}


def duckdb_parquet(rows: pa.Table, folder: Path) -> Arguments:
    file = folder / f"rows{next(_numbers)}.parquet"
    pyarrow.parquet.write_table(rows, file, row_group_size=5)
    return {"source": file}


def parquet_folder(rows: pa.Table, folder: Path) -> Arguments:
    """Partition files of uneven length, columns in another order in each, and what Spark leaves beside them."""
    parts = folder / f"rows{next(_numbers)}"
    parts.mkdir()
    ends = sorted({0, min(3, rows.num_rows), min(4, rows.num_rows), rows.num_rows})
    for number, (start, end) in enumerate(itertools.pairwise(ends) if len(ends) > 1 else [(0, 0)]):
        part = rows.slice(start, end - start).select(rows.column_names[:: (-1) ** number])
        pyarrow.parquet.write_table(part, parts / f"part-{number:05}.snappy.parquet", row_group_size=7)
    (parts / "_SUCCESS").touch()
    (parts / ".part-00000.crc").touch()
    return {"source": f"{parts}/"}


def polars(rows: pa.Table, folder: Path) -> Arguments:
    return {"source": pl.from_arrow(rows)}


def pandas(rows: pa.Table, folder: Path) -> Arguments:
    return {"source": rows.to_pandas(types_mapper=_nullable().get)}


def _nullable() -> dict[Any, Any]:
    """Integers and truth values beside nulls keep their types."""
    import pandas as pd

    return {pa.int16(): pd.Int16Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def sqlite(rows: pa.Table, folder: Path) -> Arguments:
    """Numbers stay numbers; what SQLite has no type for is text."""
    file = folder / f"rows{next(_numbers)}.db"
    with closing(sqlite3.connect(file)) as connection:
        # No type at all: what is stored is what was given.
        connection.execute(f"CREATE TABLE {_quoted(NAME)} ({', '.join(map(_quoted, rows.column_names))})")
        columns = [_stored(column) for column in rows.columns]
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {_quoted(NAME)} VALUES ({marks})", zip(*columns, strict=True))
        connection.commit()
    return {"source": f"sqlite://{file}", "table": NAME}


def _stored(column: pa.ChunkedArray) -> list[Any]:
    told = column.to_pylist()
    if pa.types.is_boolean(column.type):
        return [None if v is None else str(v).lower() for v in told]
    return [v if v is None or isinstance(v, int | float | str) else str(v) for v in told]


# PostgreSQL

_TYPES = {
    "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "float": "REAL", "double": "DOUBLE PRECISION",
    "string": "TEXT", "bool": "BOOLEAN", "date32[day]": "DATE", "timestamp[us]": "TIMESTAMP",
}  # fmt: skip


@cache
def server() -> str:
    """The URL of a server of our own in a private folder, on a Unix socket; stopped when the tests end. Skips by name."""
    try:
        from ibis.backends.postgres import Backend  # noqa: F401
    except ImportError:
        pytest.skip("postgres: the extra postgres is not installed")
    folder = database.started("fsync=off", "timezone=Asia/Tokyo").folder
    return f"postgres://{database.ROLE}@/postgres?host={folder}"


def postgres(rows: pa.Table, folder: Path) -> Arguments:
    url = server()
    import psycopg

    table = f"{NAME} {next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        typed = [_typed(field.type) for field in rows.schema]
        told = ", ".join(f"{_quoted(n)} {t}" for n, t in zip(rows.column_names, typed, strict=True))
        connection.execute(f"CREATE TABLE {_quoted(table)} ({told})")
        with connection.cursor().copy(f"COPY {_quoted(table)} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                copy.write_row(row)
    return {"source": url, "table": table}


def _typed(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"NUMERIC({kind.precision}, {kind.scale})"
    return _TYPES[str(kind)]


def spark(rows: pa.Table, folder: Path) -> Arguments:
    return {"source": session().createDataFrame(rows)}


ENGINES: dict[str, Callable[[pa.Table, Path], Arguments]] = {
    "duckdb-file": duckdb_file,
    "duckdb-parquet": duckdb_parquet,
    "parquet-folder": parquet_folder,
    "polars": polars,
    "pandas": pandas,
    "sqlite": sqlite,
    "postgres": postgres,
    "spark": spark,
}


def seen(engine: str, values: list[Any]) -> list[Any]:
    """What an engine can hold of some values: SQLite has no NaN, which is a null there; both are missing."""
    if engine != "sqlite":
        return values
    return [None if isinstance(v, float) and math.isnan(v) else v for v in values]
