"""Public facts in CSV files: codes, the levels above them, counts that everybody knows. What is wrong is named by its line."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from .errors import SpecificationError

Lines = list[tuple[int, list[str]]]


def called(path: Path) -> str:
    """The name of a file, short enough for a message."""
    return path.name if len(path.name) <= 80 else f"{path.name[:80]}…"


def codes(path: Path) -> list[str]:
    """The codes that a file lists: one a line, or the column named ``code``.

    Raises:
        SpecificationError: the file cannot be read or is of another form; a code is listed twice.
    """
    rows = _lines(path, "values")
    if rows and "code" in rows[0][1]:
        rows = columns_of(path, ["code"], "values")
    elif any(len(row) != 1 for _, row in rows) or (rows and "code" in rows[0][1][0].split(";")):
        raise SpecificationError(
            f"values: {called(path)}: one code a line, or a CSV file, with commas between fields, with a column named 'code'."
        )
    seen: set[str] = set()
    for line, (code,) in rows:
        if code in seen:
            raise SpecificationError(
                f"values: {called(path)}, line {line}: this code stands in a line before."
            )
        seen.add(code)
    return [code for _, (code,) in rows]


def levels(path: Path) -> list[tuple[str, str]]:
    """The pairs (code, parent) that a file lists. A root may have a line of its own, without a parent.

    Raises:
        SpecificationError: the file cannot be read or is of another form.
    """
    rows = columns_of(path, ["code", "parent"], "hierarchy")
    return [(code, parent) for _, (code, parent) in rows if code and parent]


def columns_of(path: Path, names: Sequence[str], where: str) -> Lines:
    """The columns that are named, in this order, of every row below the first, which names them.

    Raises:
        SpecificationError: it cannot be read; a column is not there, or there twice; a row ends before it.
    """
    rows = _lines(path, where)
    header = rows[0][1] if rows else []
    if any(header.count(name) != 1 for name in names):
        raise SpecificationError(
            f"{where}: {called(path)}: its first line names each of the columns {', '.join(map(repr, names))} once, with commas between."
        )
    at = [header.index(name) for name in names]
    for line, row in rows[1:]:
        if len(row) <= max(at):
            raise SpecificationError(f"{where}: {called(path)}, line {line}: too few fields.")
    return [(line, [row[i] for i in at]) for line, row in rows[1:]]


def _lines(path: Path, where: str) -> Lines:
    """The rows, blank ones left out, each with the number of the line that it ends in."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            return [(rows.line_num, row) for row in rows if row]
    except (OSError, ValueError, csv.Error) as error:
        raise SpecificationError(
            f"{where}: {called(path)}: cannot be read ({type(error).__name__}); give the path of a CSV file in UTF-8, "
            "or what it should hold as a list or a table."
        ) from None
