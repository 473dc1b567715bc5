"""PostgreSQL as a source: read-only, every column in a form in which the definition of a cell can be computed.

The SELECT that shows the columns meets what is PostgreSQL's own, so that no other module has to:

* text compares byte by byte (``COLLATE "C"``), whatever collation a column was given; enumerations are their labels;
* NaN in a ``numeric`` is null, and a ``numeric`` without a declared precision is text, because it may be longer than
  any number here.

Needs psycopg (extra ``postgres``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from .errors import DataError, Unsupported
from .files import Connection, Source, finish, positions, sealed

INSTALL = "postgres: install tetraodon[postgres] to read from it."
BATCH = 1 << 16  # rows that the driver holds as Python values
_NUMBERS = {"int2": "int16", "int4": "int32", "int8": "int64", "float4": "float32", "float8": "float64"}
_MOMENTS = {"date": "date", "timestamp": "timestamp(6)", "timestamptz": "timestamp('UTC', 6)"}
_DIGITS = 38  # of the longest decimal that Arrow holds
_HEADER, _END = 19, b"\xff\xff"  # bytes before the first row of a binary COPY, and after the last one
_COUNTED = np.dtype([("fields", ">i2"), ("wide", ">i4"), ("code", ">i8"), ("deep", ">i4"), ("amount", ">i8")])


def from_postgres(url: str, wanted: Sequence[str], table: str | None, query: str | None = None) -> Source:
    """A table or view of a database, or a query on it.

    Args:
        url: as libpq reads it, ``postgres://user@host:5432/base?sslmode=require``; what it leaves out comes from libpq's
            environment and password file.
        table: ``people`` of the search path, or ``schema.people``.

    Raises:
        DataError: no such table or column.
        EngineError: the server cannot be reached, or the query fails.
        Unsupported: psycopg is not installed, or the database is not encoded as UTF-8.
    """
    where = f"postgres:{table or 'sql'}"

    def connect() -> Any:
        try:
            import psycopg
            from ibis.backends.postgres import Backend
        except ImportError:
            raise Unsupported(INSTALL) from None
        opened = psycopg.connect(url, autocommit=True)
        try:
            if opened.info.parameter_status("server_encoding") != "UTF8":
                raise Unsupported("postgres: the database is not encoded as UTF-8; read it from one that is.")
            for setting in (
                "default_transaction_read_only = on",
                "client_encoding = 'UTF8'",
                "standard_conforming_strings = on",
            ):
                opened.execute(f"SET {setting}".encode())
            return Backend.from_connection(opened)
        except BaseException:
            opened.close()
            raise

    def rows(engine: Any) -> str | None:
        return f"(\n{query}\n) AS asked" if query is not None else _relation(engine, table or "")

    return _source(where, wanted, connect, rows, lambda engine: engine.con.close())


def from_expression(expression: Any, wanted: Sequence[str]) -> Source:
    """An Ibis table of a PostgreSQL connection, which stays as it is: nothing is set or closed.

    Raises:
        DataError: no such column.
        EngineError: the query fails.
    """
    engine = expression.get_backend()

    def rows(engine: Any) -> str:
        return f"(\n{engine.compile(expression)}\n) AS asked"

    return _source("table", wanted, lambda: engine, rows, lambda engine: None)


def _source(
    where: str,
    wanted: Sequence[str],
    connect: Callable[[], Any],
    rows: Callable[[Any], str | None],
    close: Callable[[Any], object],
) -> Source:
    def look() -> tuple[str, list[tuple[str, str, str, Any]]] | None:
        engine = connect()
        try:
            found = rows(engine)
            return None if found is None else (found, _described(engine, found))
        finally:
            close(engine)

    found = sealed(where, "opening", look)
    if found is None:
        raise DataError(f"{where}: no such table in the search path; name it schema.table.")
    relation, columns = found
    places = positions(where, [name for name, *_ in columns], wanted)
    shown = [_shown(*columns[i]) for i in places]
    schema = {f"c{i}": kind for i, (_, kind) in enumerate(shown)}
    listed = ", ".join(f"{expression} AS c{i}" for i, (expression, _) in enumerate(shown))

    def opened() -> Connection:
        engine = connect()
        try:
            return (
                engine,
                engine.sql(f"SELECT {listed} FROM {relation}", schema=schema),
                lambda: close(engine),
            )
        except BaseException:
            close(engine)
            raise

    return finish(where, wanted, opened, False)


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _relation(engine: Any, table: str) -> str | None:
    """The quoted name of a table: of the search path, or else of the schema before its first dot; None where there is none."""
    schema, _, name = table.partition(".")
    for told in (_name(table), f"{_name(schema)}.{_name(name)}"):
        if engine.con.execute("SELECT to_regclass(%s)", (told,)).fetchone()[0] is not None:
            return told
    return None


def _described(engine: Any, rows: str) -> list[tuple[str, str, str, Any]]:
    """(name, type's name, type's category, (precision, scale) or None) of each column; no row is read."""
    with engine.con.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {rows} LIMIT 0".encode())
        columns = cursor.description
        cursor.execute(
            "SELECT oid, typname, typcategory::text FROM pg_catalog.pg_type WHERE oid = ANY(%s)",
            ([c.type_code for c in columns],),
        )
        types = {oid: (name, category) for oid, name, category in cursor.fetchall()}
    return [
        (c.name, *types[c.type_code], None if c.precision is None else (c.precision, c.scale))
        for c in columns
    ]


def _shown(name: str, typed: str, category: str, digits: tuple[int, int] | None) -> tuple[str, Any]:
    """(SQL, Ibis type) of a column."""
    import ibis
    import ibis.expr.datatypes as dt

    column = _name(name)
    text = f'CAST({column} AS TEXT) COLLATE "C"'
    if typed in _NUMBERS or typed in _MOMENTS:
        return column, ibis.dtype((_NUMBERS | _MOMENTS)[typed])
    if typed == "numeric":
        number = f"NULLIF({column}, CAST('NaN' AS NUMERIC))"
        if digits is None or not 0 <= digits[1] <= digits[0] <= _DIGITS:
            return f"CAST({number} AS TEXT)", dt.string
        return number, dt.Decimal(*digits)
    if category in "SE":
        return text, dt.string
    if typed == "bool":
        return column, dt.boolean
    return column, dt.binary if typed == "bytea" else dt.unknown


# Counts


def copied(engine: Any, counts: Any) -> Iterator[Any]:
    """Batches of a query of two whole numbers, a code (null at most once) and its count, by COPY in binary.

    A row of it is the number of its fields, then the length and the bytes of each, the most significant byte first.
    """
    code, amount = counts.schema()
    query = (
        f"COPY (SELECT COALESCE({_name(code)}, -1)::BIGINT, COALESCE({_name(amount)}, 0)::BIGINT "
        f"FROM (\n{engine.compile(counts)}\n) AS counted) TO STDOUT (FORMAT binary)"
    )
    with engine.con.cursor() as cursor, cursor.copy(query.encode()) as copy:
        held, start = bytearray(), _HEADER
        for block in copy:
            held += block
            if len(held) >= _COUNTED.itemsize * BATCH:
                end = start + (len(held) - start) // _COUNTED.itemsize * _COUNTED.itemsize
                yield _counted(bytes(held[start:end]))
                held, start = held[end:], 0
        yield _counted(bytes(held[start:].removesuffix(_END)))


def _counted(packed: bytes) -> Any:
    """The rows of ``copied``: what they say of their own form is looked at, because all else depends on it."""
    import pyarrow as pa

    rows = np.frombuffer(packed, _COUNTED)
    if not (np.all(rows["fields"] == 2) and np.all(rows["wide"] == 8) and np.all(rows["deep"] == 8)):
        raise ValueError("COPY of another form")
    codes, amounts = (rows[name].astype(np.int64) for name in ("code", "amount"))
    return pa.record_batch({"code": pa.array(codes, mask=codes < 0), "n": pa.array(amounts)})


# What the definition of a cell needs, and Ibis does not offer


def _call(name: str, result: str, *arguments: Any) -> Any:
    """A call of a function of the server."""
    import ibis

    given = [ibis.literal(a) if isinstance(a, str | bool) else a for a in arguments]
    return _function(name, result, tuple(a.type() for a in given))(*given)


@cache
def _function(name: str, result: str, kinds: tuple[Any, ...]) -> Any:
    import ibis

    def called() -> None: ...

    named = [f"a{i}" for i in range(len(kinds))]
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in named]
    called.__name__ = name
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return ibis.udf.scalar.builtin(called, signature=(kinds, result))


def matches(text: Any, pattern: str) -> Any:
    """Whether a regular expression is found in a text (the operator ``~``; ``regexp_like`` came with version 15)."""
    return _call("textregexeq", "boolean", text, pattern)


def sha256_of(text: Any) -> Any:
    """The SHA-256 of a text's UTF-8, as bytes, which sort as their hexadecimal digits do."""
    return _call("sha256", "binary", _call("convert_to", "binary", text, "UTF8"))


def number_of_text(text: Any) -> Any:
    """The nearest double of a text that is a decimal number or an infinity, which the caller has made sure of.

    PostgreSQL raises an error where a number is beyond the range of doubles or nearer to zero than any of them. Its
    jsonpath tells such texts without one; here the first is an infinity and the second is zero.
    """
    import ibis

    within = _call(
        "jsonb_path_exists", "boolean", _call("to_jsonb", "json", text), "$.double()", "{}", True
    ).fill_null(False)
    infinite, below = (matches(text, pattern) for pattern in ("[iI]", "^[^0-9.]*-"))
    infinity = ibis.cases((below, ibis.literal("-inf")), else_=ibis.literal("inf")).cast("float64")
    return ibis.cases(
        (infinite, infinity),
        (within, text.cast("float64")),
        (_leading(text) > 0, infinity),
        else_=ibis.literal(0).cast("float64"),
    )


def _leading(text: Any) -> Any:
    """The power of ten of the first digit that is not zero, of a number so large or small that a few more do not matter."""
    import ibis

    def cut(value: Any, pattern: str) -> Any:
        return _call("regexp_replace", "string", value, pattern, "")

    def unpadded(value: Any) -> Any:
        return _call("ltrim", "string", value, "0")

    written = cut(text, "^[^0-9.]*")
    mantissa, power = cut(written, "[eE].*$"), cut(written, "^[^eE]*[eE]?")
    digits = unpadded(cut(cut(power, "^[+-]"), "[^0-9]+$"))
    size = ibis.cases(
        (digits.length() > 9, 10**9), (digits.length() > 0, digits.cast("int64")), else_=ibis.literal(0)
    )
    whole, rest = unpadded(cut(mantissa, "[^0-9].*$")), cut(mantissa, "^[0-9]*[.]?")
    place = ibis.cases(
        (whole.length() > 0, whole.length() - 1), else_=unpadded(rest).length() - rest.length() - 1
    )
    return place + ibis.cases((matches(power, "^-"), -size), else_=size)


def listed(engine: Any, columns: dict[str, tuple[Any, Sequence[Any]]]) -> Any:
    """A small table within the query itself; a temporary one would need a connection that may write.

    Args:
        columns: (Ibis type, values) by name; values that are texts hold no NUL.
    """
    import ibis
    import sqlglot.expressions as sge

    rows = zip(*(values for _, values in columns.values()), strict=True)
    told = ", ".join("(" + ", ".join(sge.convert(v).sql("postgres") for v in row) + ")" for row in rows)
    types = {name: ibis.dtype(kind) for name, (kind, _) in columns.items()}
    shown = ", ".join(
        f"CAST(x{i} AS {'TEXT' if kind.is_string() else 'BIGINT'}) AS {name}"
        for i, (name, kind) in enumerate(types.items())
    )
    return engine.sql(
        f"SELECT {shown} FROM (VALUES {told}) AS told({', '.join(f'x{i}' for i in range(len(types)))})",
        schema=types,
    )
