"""SQLite files as sources: every value by the type that it has, not by the one that its column was given.

A column of SQLite holds values of any type. Rows are therefore read here, one after another, through a connection that
cannot write; each value becomes the text that a mixed column in memory becomes (``reading.text``), so that its cell is
the one that ``attributes`` defines. DuckDB within this process does the rest, out of core.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from .errors import DataError
from .files import VIEW, Source, embedded, finish, positions, require_file, sealed, unchanged

ROWS = 1 << 15  # that are in memory as Python values


def from_sqlite(rest: str, wanted: Sequence[str], table: str | None, query: str | None = None) -> Source:
    """A table or view of a SQLite file, or a query on it. Every column is text, as in a CSV file, but nulls are nulls.

    Args:
        rest: what follows ``sqlite://``: the path of a file.

    Raises:
        DataError: no such file, table or column.
        EngineError: the file cannot be read.
    """
    path = Path(rest) if Path(rest).exists() else Path(unquote(rest.partition("?")[0]))
    if not rest or not path.name:
        raise DataError("sqlite: give the path of a file, sqlite://people.db.")
    require_file(path)
    where = f"{path.name}:{'sql' if query is not None else table}"

    def described(reader: sqlite3.Connection) -> list[str]:
        return [c[0] for c in reader.execute(f"SELECT * FROM {_rows(table, query)} LIMIT 0").description]

    def look() -> tuple[list[str], list[str]]:
        with closing(_reader(path)) as reader:
            told = reader.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            )
            tables = sorted(name for (name,) in told)
            if query is None and table not in tables:
                return tables, []
            return tables, described(reader)

    tables, names = sealed(where if query is not None else path.name, "opening", look)
    if query is None and (table is None or table not in tables):
        problem = "table= must name a table" if table is None else f"no table {table!r}"
        raise DataError(f"{path.name}: {problem}; the file has {', '.join(tables) or 'none'}.")
    places = positions(where, names, wanted)
    # By place: SQLite takes names that differ in letter case for one.
    every = ", ".join(f"p{i}" for i in range(len(names)))
    shown = ", ".join(f"p{i}" for i in places) or "1"
    asked = f"WITH told({every}) AS (SELECT * FROM {_rows(table, query)}) SELECT {shown} FROM told"

    def prepare(backend: Any) -> None:
        import pyarrow as pa

        with closing(_reader(path)) as reader:
            unchanged(where, names, described(reader))
        typed = pa.schema([(f"c{i}", pa.large_string()) for i in range(len(wanted))])
        backend.con.register(VIEW, pa.RecordBatchReader.from_batches(typed, _batches(path, asked, typed)))

    return finish(where, wanted, partial(embedded, prepare), True)


def _reader(path: Path) -> sqlite3.Connection:
    """A connection that can neither write nor make the file."""
    opened = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    opened.execute("PRAGMA query_only = ON")
    # What is not UTF-8 is text all the same, and equal to nothing that can be declared.
    opened.text_factory = lambda held: held.decode("utf-8", "surrogateescape")
    return opened


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _rows(table: str | None, query: str | None) -> str:
    return f"({query}\n) AS asked" if query is not None else f"main.{_name(table or '')}"


def _batches(path: Path, asked: str, shown: Any) -> Iterator[Any]:
    import pyarrow as pa

    from .sources import texts

    with closing(_reader(path)) as reader:
        rows = reader.execute(asked)
        while part := rows.fetchmany(ROWS):
            columns = list(zip(*part, strict=True))[: len(shown)]
            # Its integers have 64 bits at most: no need to look at each.
            arrays = [texts([str(v) if type(v) is int else v for v in column]) for column in columns]
            yield pa.record_batch(arrays, schema=shown)
