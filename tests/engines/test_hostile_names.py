"""C37 on every engine: a name of a column, table or category is a name and nothing else, whatever it is made of."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from opened import ENGINES, server

import tetraodon as td
from tetraodon.errors import DataError, TetraodonError

engines = pytest.mark.parametrize("engine", ENGINES)
DROPS = '"; DROP TABLE people; --'
# Two of each: what looks alike, or is alike to a parser that folds, trims, cuts or composes, is another column.
NAMES = [
    "count", "age", "аge", "ａge", "age ", " age", "agе", "a\u200bge", "\u202eega", "é", "e\u0301", "ﬁ", "fi", "K", "\u212a",
    'a"b', 'a""b', "a'b", "a''b", "a`b", "a\\b", "a\\\\b", "a\nb", "a\tb", "a\r\nb", "%s", "%%s", "%(a)s", "{x}", "{{x}}", "$1", "?", ":a", "@a",
    "*", "c0", "c1", "p0", "code", "steps", "place", "flaw", "rowid", "select", "null", "true", "[x]", "a.b", "public.age", "--", "/*", "*/", ";",
    DROPS, "' OR '1'='1", "age\" AS c0, \"count",
]  # fmt: skip
# Not all engines can hold two columns that differ in letter case alone; each of these is tried by itself.
CASED = ["Count", "ROWID", "Select"]


def counts(table: td.Table) -> list[int]:
    found = table.counts().dense
    assert found is not None
    return found.tolist()


def one(name: str) -> td.Domain:
    return td.Domain(x=td.Integer(0, 99, column=name))


@engines
def test_c37_every_column_is_the_one_that_was_named(engine: str, tmp_path: Path) -> None:
    """Column i holds the number i: whatever name reaches another column gives another count."""
    assert len({*NAMES}) == len(NAMES)
    rows = pa.table({name: pa.array([i], pa.int64()) for i, name in enumerate(NAMES)})
    given = ENGINES[engine](rows, tmp_path)
    for some in (list(enumerate(NAMES))[:8], list(enumerate(NAMES))[-8:]):
        table = td.Table(
            domain=td.Domain({f"n{i}": td.Integer(0, 99, column=name) for i, name in some}), **given
        )
        [code] = [int(c) for part in table.codes() for c in part]
        assert [int(v) for v in table.domain.decode(code)] == [i for i, _ in some]
    [part] = table.rows(keep=NAMES)
    assert [str(v) for column in part.kept for v in column.to_pylist()] == [str(i) for i in range(len(NAMES))]
    for name in CASED[: None if engine in ("polars", "pandas", "duckdb-parquet") else 0]:
        with pytest.raises(DataError, match="no column"):
            td.Table(domain=one(name), **given)


@engines
def test_c37_a_name_with_a_nul_reaches_no_other_column(engine: str, tmp_path: Path) -> None:
    """Query text ends at a NUL in some engines: the column before it would be read in place of the one that was named."""
    wanted = "age\0b"
    try:
        given = ENGINES[engine](pa.table({"age": pa.array([7, 7]), wanted: pa.array([3, 4])}), tmp_path)
    except Exception:  # the engine has no such column
        given = ENGINES[engine](pa.table({"age": pa.array([7, 7])}), tmp_path)
    try:
        found = counts(td.Table(domain=one(wanted), **given))
    except TetraodonError as error:
        assert error.__cause__ is None
        return
    assert [i for i, n in enumerate(found) if n] == [3, 4]


@engines
def test_c37_no_category_is_part_of_a_query(engine: str, tmp_path: Path) -> None:
    """Each of these texts is one declared value, compared one by one, joined, and in a filter."""
    texts = [*NAMES, "\\'", "'' ; --", "\\", "'"]
    rows = pa.table({"x": pa.array(texts), "y": pa.array(range(len(texts)))})
    given = ENGINES[engine](rows, tmp_path)
    for some in (texts[:30], texts):  # at most 64 are compared, and these are no more
        assert counts(td.Table(domain=td.Domain(x=td.Categorical(some, other="o")), **given))[
            : len(some)
        ] == [1] * len(some)
    many = [*texts, *(f"{i}" for i in range(40))]
    assert counts(td.Table(domain=td.Domain(x=td.Categorical(many)), **given)) == [1] * len(texts) + [0] * 40
    chosen = td.Table(domain=td.Domain(y=td.Integer(0, 99)), **given, where={"x": [DROPS, "' OR '1'='1"]})
    assert chosen.counts().total == 2


TABLES = ['"', '""', "'", DROPS, "count", "a.b", "a\nb", "аge", "--", "main", "*", "temp.x", "information_schema.tables", "(SELECT 1)"]  # fmt: skip


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "postgres"])
def test_c37_every_table_is_the_one_that_was_named(engine: str, tmp_path: Path) -> None:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    made = [f'CREATE TABLE {quoted(name)} AS SELECT {i} AS "x"' for i, name in enumerate(TABLES)]
    if engine == "duckdb":
        with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
            for statement in made:
                connection.execute(statement)
        source = f"duckdb://{tmp_path / 't.duckdb'}"
    elif engine == "sqlite":
        with closing(sqlite3.connect(tmp_path / "t.db")) as file:
            for statement in made:
                file.execute(statement)
            file.commit()
        source = f"sqlite://{tmp_path / 't.db'}"
    else:
        source = server()
        import psycopg

        with psycopg.connect(source, autocommit=True) as held:
            held.execute("CREATE SCHEMA IF NOT EXISTS hostile")
            for name, statement in zip(TABLES, made, strict=True):
                held.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
                held.execute(statement)
    for i, name in enumerate(TABLES):
        found = counts(td.Table(source, one("x"), table=name))
        assert [j for j, n in enumerate(found) if n] == [i], name
    for name in ("count\0x", "x\0", "\0", "", '"count"', 'x" UNION SELECT 1 --', "pg_catalog.nothing"):
        with pytest.raises(TetraodonError) as caught:
            td.Table(source, one("x"), table=name)
        error: Any = caught.value
        assert error.__cause__ is None and error.__context__ is None


LAYOUTS = ({"age": [1, 2], "secret": [7, 8]}, {"secret": [7, 8], "age": [1, 2]})


@pytest.mark.parametrize("form", ["parquet", "csv", "arrow", "sqlite", "duckdb", "postgres"])
def test_c27_a_table_made_anew_with_other_columns_is_not_read_by_place(form: str, tmp_path: Path) -> None:
    """Between opening and reading, two columns change places: the secret one would be counted, and leave, as the other."""
    from pyarrow import feather, parquet

    path = tmp_path / f"t.{form}"

    def write(rows: dict[str, list[int]]) -> None:
        names = list(rows)
        made = f"CREATE TABLE swapped AS SELECT {rows[names[0]][0]} AS {names[0]}, {rows[names[1]][0]} AS {names[1]}"
        if form == "parquet":
            parquet.write_table(pa.table(rows), path)
        elif form == "arrow":
            feather.write_feather(pa.table(rows), path)
        elif form == "csv":
            path.write_text(
                ",".join(names) + "\n" + "".join(f"{a},{b}\n" for a, b in zip(*rows.values(), strict=True))
            )
        elif form == "sqlite":
            with closing(sqlite3.connect(path)) as file:
                file.executescript(f"DROP TABLE IF EXISTS swapped; {made};")
        elif form == "duckdb":
            with duckdb.connect(str(path)) as held:
                held.execute("DROP TABLE IF EXISTS swapped")
                held.execute(made)
        else:
            import psycopg

            with psycopg.connect(server(), autocommit=True) as base:
                base.execute("DROP TABLE IF EXISTS swapped")
                base.execute(made)

    write(LAYOUTS[0])
    source: Any = (
        path
        if form in ("parquet", "csv", "arrow")
        else server()
        if form == "postgres"
        else f"{form}://{path}"
    )
    table = td.Table(source, one("age"), **({} if source is path else {"table": "swapped"}))
    write(LAYOUTS[1])
    try:
        found = counts(table)
    except TetraodonError as error:
        assert "columns" in str(error)
        return
    assert found[7] == found[8] == 0 and found[1] == 1
