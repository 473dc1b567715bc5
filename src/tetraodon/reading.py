"""Reading raw values as numbers, text and codes: rules 1 and 4 of the definition in ``attributes``, for numpy.

Also the kinds of values in declarations: lists where lists belong, and errors that name the key.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
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


# Declarations


def kind_of(value: object) -> str:
    """What a declared value is, in words; never the value itself.

    >>> kind_of([1, 2]), kind_of(True), kind_of(None)
    ('a list', 'a truth value', 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool | np.bool_):
        return "a truth value"
    if isinstance(value, _NUMBER):
        return "a number" if is_finite(value) else "a number that is not finite"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "text"),
        (Mapping, "a table"),
        ((set, frozenset), "a set, which has no order"),
        ((list, tuple, range), "a list"),
        (_MOMENT, "a date or a time"),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), type(value).__name__)


def is_finite(value: Any) -> bool:
    """Whether a number is neither an infinity nor NaN."""
    if isinstance(value, Decimal):
        return value.is_finite()
    return not isinstance(value, float | np.floating) or bool(np.isfinite(value))


def listed(value: object, where: str, expected: str) -> list[Any]:
    """The items of a declared list, in its order.

    Raises:
        SpecificationError: text, a table, a set (its order is not declared) or a single value.

    >>> listed(("f", "m"), "by", "a list of names")
    ['f', 'm']
    """
    refused = isinstance(value, str | bytes | Mapping | set | frozenset)
    if not refused and (not isinstance(value, np.ndarray) or value.ndim):
        try:
            return list(value) if isinstance(value, Iterable) else list(value[:])  # type: ignore[index]
        except TypeError:
            pass
    raise SpecificationError(f"{where}: {expected}, not {kind_of(value)}.")


def table(value: object, where: str, expected: str) -> dict[Any, Any]:
    """The entries of a declared table (a mapping).

    >>> table({"age": 2}, "weights", "a table of weights")
    {'age': 2}
    """
    if not isinstance(value, Mapping):
        raise SpecificationError(f"{where}: {expected}, not {kind_of(value)}.")
    return dict(value)


def name_or_none(value: object, where: str) -> str | None:
    """A declared name that may be left out."""
    if value is None or isinstance(value, str):
        return value
    raise SpecificationError(f"{where}: text, not {kind_of(value)}.")


def single(value: object, where: str) -> None:
    """Refuses a list or a table where one value belongs."""
    if isinstance(value, list | tuple | Mapping | set | frozenset | np.ndarray):
        raise SpecificationError(f"{where}: one value, not a list or a table.")


def integers(matrix: object, where: str) -> tuple[tuple[int, ...], ...]:
    """A declared matrix of integers within ±2^31; in an array a truth value would pass for one.

    >>> integers([[1, 0]], "matrix")
    ((1, 0),)
    """
    wrong = f"{where}: integers in two dimensions, answers × cells, rows of equal length"
    try:
        array = np.asarray(matrix, dtype=object)
    except (TypeError, ValueError):
        raise SpecificationError(f"{wrong}.") from None
    if array.ndim != 2 or not array.size:
        raise SpecificationError(f"{wrong}, not {'another shape' if array.ndim else kind_of(matrix)}.")
    entries = array.ravel().tolist()
    odd = [v for v in entries if isinstance(v, bool) or not isinstance(v, int | np.integer)]
    if odd:
        raise SpecificationError(f"{wrong}; an entry is {kind_of(odd[0])}.")
    if max(map(abs, entries)) > 2**31:
        raise SpecificationError(f"{where}: entries within ±2^31.")
    return tuple(tuple(map(int, row)) for row in array)


# What Python raises over a value of the wrong kind.
RAW = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


def wrong_kind(where: str) -> SpecificationError:
    """The error where Python noticed, and we did not."""
    return SpecificationError(f"{where}: holds a value of the wrong kind; compare it with the documentation.")


@contextmanager
def under(where: str) -> Iterator[None]:
    """Prefixes what is wrong in a declaration with its key, whether we noticed or Python did."""
    try:
        yield
    except SpecificationError as error:
        text = str(error)  # a class is no key
        raise type(error)(f"{where}: {text}" if text[:1].isupper() else f"{where}.{text}") from None
    except RAW:
        raise wrong_kind(where) from None
