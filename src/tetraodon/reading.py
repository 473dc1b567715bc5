"""Reading raw values as numbers, text and codes: rules 1 and 4 of the definition in ``attributes``, for numpy."""

from __future__ import annotations

import csv
import datetime
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import SpecificationError

NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*\Z", re.ASCII)
INFINITY = re.compile(r"\s*[+-]?inf(?:inity)?\s*\Z", re.ASCII | re.IGNORECASE)


FOREIGN = "\ufffd"
_MOMENT = (datetime.date, datetime.time)
_NUMBER = (int, np.integer, float, np.floating, Decimal, Fraction)
_NO_NUMBER = (bool, np.bool_, np.timedelta64)  # the first and the last are integers to Python and numpy
_HUGE = 10**400


def is_null(value: object) -> bool:
    """Whether a value counts as null: None, NaN of any kind, and the missing markers of numpy and pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def number(value: object) -> float:
    """Rule 1 for one Python value; NaN where it is not a number."""
    if isinstance(value, str):
        known = NUMBER.match(value) is not None or INFINITY.match(value) is not None
        return float(value) if known else float("nan")
    if is_null(value) or isinstance(value, _NO_NUMBER) or not isinstance(value, _NUMBER):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def numbers(values: object) -> NDArray[np.float64]:
    """Rule 1 for an array-like of any shape."""
    array = elements(values)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    flat = [number(v) for v in plain(array)]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def text(value: object) -> str | None:
    """The text that a categorical compares; None where the value counts as null.

    Rule 1 reads the same number off the text as off the value. What is neither text, number, truth value nor date
    becomes a text that is no number and that nobody declares.
    """
    if is_null(value):
        return None
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer) and not isinstance(value, np.timedelta64):
        whole = int(value)
        # Python refuses to spell out thousands of digits; to rule 1 such a number is an infinity.
        if abs(whole) >= _HUGE:
            return "1e999" if whole > 0 else "-1e999"
        return str(whole)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float | np.floating | Fraction):
        return repr(number(value))
    return str(value) if isinstance(value, _MOMENT) else FOREIGN


def elements(values: object) -> NDArray[Any]:
    """The values as an array in which no element's type has changed another's (``np.asarray`` would: [1, 2.5], [3, "a"])."""
    if isinstance(values, np.ma.MaskedArray):
        return np.array(values.tolist(), dtype=object)
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        return np.asarray(values)
    return np.array(values, dtype=object)


def plain(array: NDArray[Any]) -> list[Any]:
    """The elements of an array as Python values; moments stay numpy's (as Python values some would become integers)."""
    return list(array.ravel()) if array.dtype.kind in "mM" else array.ravel().tolist()


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
