"""Parquet files as one table: a single file, a folder of partition files, or a list of files.

A folder is read in the order of its files' names, a list in its own order. No value comes from the name of a file or a folder,
and no file is skipped in silence, so that what is read is what lies there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .errors import DataError, SpecificationError
from .files import (
    FORMATS,
    Source,
    described,
    embedded,
    finish,
    literal_path,
    positions,
    quoted,
    require_file,
    sealed,
    suffix,
    unchanged,
    view,
)

UNFINISHED = "_temporary"


def from_folder(folder: Path, wanted: Sequence[str]) -> Source:
    """All parquet files of a folder, in the order of their names, letter by letter.

    Names that begin with "_" or "." are the business of the engine that wrote the folder, and are skipped.

    Raises:
        DataError: no parquet file, anything else in it, an unfinished write, one file under two names, or a file without a wanted
            column or with another type of it than the first file has; names file and column.
    """
    where = f"{folder.absolute().name}/"
    entries = sealed(where, "opening", _entries, folder)
    if any(entry.name == UNFINISHED for entry in entries):
        raise DataError(
            f"{where}: holds {UNFINISHED}, so the write of it has not ended; wait for it, or write it again."
        )
    files: list[Path] = []
    for entry in entries:
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            raise DataError(
                f"{where}: holds a folder, {entry.name!r}; folders within folders are not read, nor values from their names. "
                "Put all files into one folder, with every column in them."
            )
        if FORMATS.get(suffix(entry.name)) != "parquet":
            raise DataError(
                f"{where}: holds {entry.name!r}, which is no parquet file; a folder is read whole, so move it away."
            )
        files.append(folder / entry.name)
    if not files:
        raise DataError(f"{where}: a folder without a parquet file.")
    return _from_parquet(where, [f"{where}{file.name}" for file in files], files, wanted)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)


def from_list(paths: Sequence[object], wanted: Sequence[str]) -> Source:
    """Parquet files one after another.

    Raises:
        SpecificationError: something else than paths.
        DataError: as ``from_folder``; a file that is not there or no parquet file.
    """
    if not paths or not all(isinstance(path, str | os.PathLike) and "://" not in str(path) for path in paths):
        raise SpecificationError("source: a list of the paths of parquet files, at least one.")
    files = [Path(os.fspath(path)) for path in paths if isinstance(path, str | os.PathLike)]
    for file in files:
        if FORMATS.get(suffix(file.name)) != "parquet":
            raise DataError(f"{file.name}: is no parquet file; only parquet files are read as a list.")
        require_file(file)
    rest = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return _from_parquet(files[0].name + rest, [file.name for file in files], files, wanted)


def from_parquet(path: Path, wanted: Sequence[str]) -> Source:
    """One parquet file."""
    return _from_parquet(path.name, [path.name], [path], wanted)


def _from_parquet(where: str, names: Sequence[str], files: Sequence[Path], wanted: Sequence[str]) -> Source:
    """Files under the names by which messages call them."""
    known: dict[tuple[int, int], str] = {}
    for name, file in zip(names, files, strict=True):
        found = sealed(name, "opening", file.stat)
        other = known.setdefault((found.st_dev, found.st_ino), name) if len(files) > 1 else name
        if other is not name:
            raise DataError(f"{where}: {other} and {name} are one file; its rows would be read twice.")
    rows = _rows(files)
    columns: list[str] = []
    layouts: list[list[str]] = []

    def prepare(backend: Any) -> None:
        now = [_names(name, file) for name, file in zip(names, files, strict=True)]
        if not columns:  # the first connection looks at every file
            columns.extend(_columns(backend, names, files, wanted))
            layouts.extend(now)
        for each in zip(names, layouts, now, strict=True):
            unchanged(*each)
        view(backend, columns, rows)

    return finish(where, wanted, partial(embedded, prepare), True, tuple(files))


def _names(name: str, file: Path) -> list[str]:
    import pyarrow.parquet as pq

    return list(sealed(name, "opening", pq.read_schema, file).names)


def _rows(files: Sequence[Path]) -> str:
    listed = ", ".join(map(literal_path, files))
    return f"read_parquet([{listed}], hive_partitioning = false, union_by_name = false)"


def _columns(backend: Any, names: Sequence[str], files: Sequence[Path], wanted: Sequence[str]) -> list[str]:
    """What DuckDB calls the wanted columns, which all files have with the types of the first one."""
    first: dict[str, str] = {}
    shown: list[str] = []
    for name, file in zip(names, files, strict=True):
        told = _names(name, file)
        places = positions(name, told, wanted)
        # By place: DuckDB renames columns whose names differ in letter case only.
        seen = sealed(name, "opening", described, backend, _rows([file]))
        found = {column: seen[place] for column, place in zip(wanted, places, strict=True)}
        if len(files) > 1:
            lower = [n.lower() for n in told]
            for column in wanted:
                if lower.count(column.lower()) > 1:
                    raise DataError(
                        f"{name}: the names of two columns differ from {column!r} in letter case alone, by which columns of several "
                        "files are not told apart; rename one of them."
                    )
        for column, (_, kind) in found.items():
            if first.setdefault(column, kind) != kind:
                raise DataError(
                    f"{name}: column {column!r} is {kind} and in {names[0]} {first[column]}; all files must have one type of it."
                )
        shown = shown or [quoted(found[column][0]) for column in wanted]
    return shown
