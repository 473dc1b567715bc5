"""DuckDB files as sources: a table or a view of one, or a query on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from .errors import DataError
from .files import (
    VIEW,
    Source,
    described,
    embedded,
    finish,
    literal,
    positions,
    quoted,
    require_file,
    sealed,
    view,
)


def from_duckdb(rest: str, wanted: Sequence[str], table: str | None, query: str | None = None) -> Source:
    """A table or view of a DuckDB file, or a query on it, attached read-only to a private in-memory DuckDB."""
    path = Path(rest) if Path(rest).exists() else Path(unquote(rest.partition("?")[0]))
    if not rest or not path.name:
        raise DataError("duckdb: give the path of a file, duckdb://people.duckdb.")
    require_file(path)

    def attach(backend: Any) -> dict[str, str]:
        backend.con.execute(f"ATTACH {literal(str(path))} AS source (READ_ONLY)")
        if query is not None:
            backend.con.execute("USE source")
            return {}
        found = backend.con.execute(
            # A generated column is computed whenever it is read, even at random.
            "SELECT schema_name, table_name, NOT contains(upper(sql), 'GENERATED ALWAYS AS') FROM duckdb_tables() "
            "WHERE database_name = 'source' UNION "
            "SELECT schema_name, view_name, false FROM duckdb_views() WHERE database_name = 'source' AND NOT internal"
        ).fetchall()
        named = [
            (n if schema == "main" else f"{schema}.{n}", schema, n, held) for schema, n, held in sorted(found)
        ]
        stored.update(called for called, *_, held in named if held)
        return {called: f"source.{quoted(schema)}.{quoted(n)}" for called, schema, n, _ in named}

    def look(backend: Any) -> None:
        tables.update(attach(backend))
        if query is not None:
            columns.extend(described(backend, asked))
        elif table in tables:
            columns.extend(described(backend, tables[table]))
        backend.con.execute(f"CREATE TEMP VIEW {quoted(VIEW)} AS SELECT 1")

    tables: dict[str, str] = {}
    stored: set[str] = set()
    columns: list[tuple[str, str]] = []
    asked = f"({query}\n) AS asked"
    where = f"{path.name}:{'sql' if query is not None else table}"
    sealed(where if query is not None else path.name, "opening", lambda: embedded(look)[2]())
    if query is None and (table is None or table not in tables):
        problem = "table= must name a table" if table is None else f"no table {table!r}"
        raise DataError(f"{path.name}: {problem}; the file has {', '.join(tables) or 'none'}.")
    places = positions(where, [name for name, _ in columns], wanted)
    # Text compares letter by letter, whatever collation the column was given.
    shown = [
        quoted(columns[i][0]) + (' COLLATE "binary"' if columns[i][1] == "VARCHAR" else "") for i in places
    ]

    def prepare(backend: Any) -> None:
        found = attach(backend)
        view(backend, shown, asked if query is not None or table is None else found[table])

    # What was committed and not yet merged lies in the log beside the file, which may come and go.
    files = (path, path.with_name(f"{path.name}.wal")) if table in stored else ()
    return finish(where, wanted, partial(embedded, prepare), True, files)
