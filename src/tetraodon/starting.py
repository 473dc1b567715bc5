"""A settings file to start from, made of the names and types of a table's columns.

It reads a schema: the footer of a parquet file, the header of an arrow file, the first line of a CSV file, the catalogue of a
database. It never reads rows, nor what such files say about them (statistics, dictionaries, metadata). Bounds and categories
are declared, so each is left as a "?" that no domain accepts.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from .errors import DataError
from .files import FORMATS, column_names, require_file, sealed, suffix

# A first line of anything else may be a row.
NAME = re.compile(r"[^\W\d][\w .%/()\[\]-]{0,63}")
BARE = re.compile(r"[A-Za-z0-9_-]+")
DATABASES = (".duckdb", ".db")


@dataclass(frozen=True)
class Column:
    """A column by name and declared type.

    Attributes:
        kind: "integer", "number", "text", "truth", "unknown" (any of these), or "other".
        type: the type in the words of its source.
    """

    name: str
    kind: str
    type: str


def settings_text(file: Path, out: Path, table: str | None = None) -> str:
    """A release.toml for a table whose bounds and categories are still to be filled in.

    Args:
        file: a parquet, csv or arrow file, or a DuckDB file.
        out: where the text will be written; the path of the table is stated from there.
        table: the table of a DuckDB file; it may be left out where the file has one.

    Raises:
        DataError: no such file or table, a first line that may be a row, or no column that an attribute can be read from.
        EngineError: the file cannot be opened.
    """
    columns, table = _columns(file, table)
    usable = [c for c in columns if c.kind != "other"]
    if not usable:
        raise DataError(f"{file.name}: no column holds numbers or text.")
    if table is None:
        source = os.path.relpath(file.absolute(), out.absolute().parent)
    else:
        source = f"duckdb://{file}"
    stem = table or file.name[: len(file.name) - len(suffix(file.name))]
    told = {
        "@source": _quoted(source),
        "@table": f"table = {_quoted(table)}\n" if table is not None else "",
        "@name": _quoted(stem),
        "@ledger": _quoted(f"{stem}.ledger"),
        "@first": _quoted(usable[0].name),
        "@domain": "".join(f"{_attribute(c)}\n" for c in columns),
    }
    template = resources.files("tetraodon").joinpath("data", "columns.toml").read_text(encoding="utf-8")
    # In one pass: a column may be called "@first".
    return re.sub("|".join(told), lambda found: told[found[0]], template)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _attribute(column: Column) -> str:
    """The table of a column in the settings file."""
    head = f"[domain.{column.name if BARE.fullmatch(column.name) else _quoted(column.name)}]"
    bounds = "the least and the largest value that there can be"
    lines = {
        "integer": [f'integer = ["?", "?"]                # {bounds}; others are clipped'],
        "number": [
            f'numeric = ["?", "?"]                # {bounds}; others are clipped',
            "cells = 100                         # equal cells, or width = …",
        ],
        "text": ['categorical = ["?", "?"]            # every value, or a file of codes: "codes.csv"'],
        "truth": ['categorical = ["false", "true"]'],
        "unknown": [
            "# Its type is not known. Keep one of these lines:",
            f'# integer = ["?", "?"]              # whole numbers: {bounds}',
            '# numeric = ["?", "?"]              # real numbers, with cells = 100 or width = …',
            '# categorical = ["?", "?"]          # every value, or a file of codes: "codes.csv"',
        ],
        "other": ["# cannot be read as it is: convert it to numbers or text, and declare it then"],
    }[column.kind]
    if column.kind == "other":
        head = f"# {head}"
    return "\n".join([f"{head:<35} # {column.type}", *lines, ""])


def _columns(file: Path, table: str | None) -> tuple[list[Column], str | None]:
    """The columns, and the name of the table in a database."""
    require_file(file)
    if file.suffix.lower() in DATABASES:
        return _of_database(file, table)
    if table is not None:
        raise DataError(f"{file.name}: only a DuckDB file has tables to choose from.")
    kind = FORMATS.get(suffix(file.name))
    if kind is None:
        raise DataError(f"{file.name}: not one of {', '.join([*FORMATS, *DATABASES])}.")
    if kind == "csv":
        names = column_names(file)
        if not names or not all(NAME.fullmatch(n) for n in names):
            raise DataError(
                f"{file.name}: its first line may be a row: names of columns begin with a letter and are short. Nothing was written; "
                "add a line of column names."
            )
        found = [Column(n, "unknown", "from a file of text") for n in names]
    else:
        found = sealed(file.name, "opening", _of_fields, file, kind)
    _unique(file.name, [c.name for c in found])
    return found, None


def _unique(where: str, names: Sequence[str]) -> None:
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise DataError(f"{where}: more than one column is named {twice!r}.")
    if "" in names:
        raise DataError(f"{where}: a column has no name.")


def _of_fields(file: Path, kind: str) -> list[Column]:
    import pyarrow.parquet as pq
    from pyarrow import ipc

    if kind == "parquet":
        schema = pq.read_schema(file)
    else:
        with ipc.open_file(str(file)) as reader:
            schema = reader.schema
    return [Column(field.name, *_kind(field.type)) for field in schema]


def _kind(type: Any) -> tuple[str, str]:
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_dictionary(type):
        return _kind(type.value_type)
    tests = {
        "integer": kinds.is_integer(type), "number": kinds.is_floating(type) or kinds.is_decimal(type),
        "text": kinds.is_string(type) or kinds.is_large_string(type), "truth": kinds.is_boolean(type),
    }  # fmt: skip
    shown = re.match(r"\w*", str(type))
    return next((k for k, holds in tests.items() if holds), "other"), shown[0] if shown else ""


def _of_database(file: Path, table: str | None) -> tuple[list[Column], str]:
    def read() -> list[tuple[str, str, str]]:
        import duckdb

        with duckdb.connect(str(file), read_only=True) as connection:
            return connection.execute(
                "SELECT CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END, column_name, "
                "data_type FROM duckdb_columns() WHERE NOT internal AND database_name = current_database() "
                "ORDER BY schema_name, table_name, column_index"
            ).fetchall()

    rows = sealed(file.name, "opening", read)
    tables = list(dict.fromkeys(name for name, _, _ in rows))
    if table is None and len(tables) == 1:
        table = tables[0]
    if table is None or table not in tables:
        problem = "--table must name a table" if table is None else f"no table {table!r}"
        raise DataError(f"{file.name}: {problem}; the file has {', '.join(tables) or 'none'}.")
    return [Column(column, *_named_kind(kind)) for name, column, kind in rows if name == table], table


def _named_kind(type: str) -> tuple[str, str]:
    """The kind of a DuckDB type. Values of an ENUM are facts about rows, so its name is all that is shown."""
    found = re.match(r"\w*", type)
    name = found[0] if found else ""
    if re.search(r"\[|^(STRUCT|MAP|UNION)", type):
        return "other", name.lower()
    if re.fullmatch(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?", name):
        return "integer", name.lower()
    kinds = {
        "FLOAT": "number",
        "DOUBLE": "number",
        "DECIMAL": "number",
        "VARCHAR": "text",
        "ENUM": "text",
        "BOOLEAN": "truth",
    }
    return kinds.get(name, "other"), name.lower()
