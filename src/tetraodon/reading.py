"""Reading raw values as numbers, text and codes: rules 1 and 4 of the definition in ``attributes``, for numpy."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import SpecificationError

NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*\Z", re.ASCII)
INFINITY = re.compile(r"\s*[+-]?inf(?:inity)?\s*\Z", re.ASCII | re.IGNORECASE)


def number(value: object) -> float:
    """Rule 1 for one Python value; NaN where it is not a number."""
    if value is None or isinstance(value, bool | np.bool_):
        return float("nan")
    if isinstance(value, str) and NUMBER.match(value) is None and INFINITY.match(value) is None:
        return float("nan")
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")  # type: ignore[operator]
    except (TypeError, ValueError):
        return float("nan")


def numbers(values: object) -> NDArray[np.float64]:
    """Rule 1 for an array-like of any shape."""
    array = np.asarray(values)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    return np.array([number(v) for v in array.astype(object).ravel()], dtype=np.float64).reshape(array.shape)


def text(value: object) -> str | None:
    """The text that a categorical compares; None where the value counts as null."""
    if value is None or isinstance(value, float | np.floating):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(value)


def codes(path: Path) -> list[str]:
    """The codes that a file lists: one a line, or the column named ``code``."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecificationError(
            f"{path.name}: the file of codes cannot be read ({type(error).__name__})."
        ) from None
    rows = [row for row in csv.reader(lines) if row]
    if rows and "code" in rows[0]:
        at = rows[0].index("code")
        return [row[at] for row in rows[1:] if len(row) > at]
    if any(len(row) != 1 for row in rows):
        raise SpecificationError(f"{path.name}: one code a line, or a CSV file with a column named 'code'.")
    return [row[0] for row in rows]
