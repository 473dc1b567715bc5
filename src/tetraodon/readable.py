"""Which types of columns an attribute can be read from; decided by the schema alone."""

from __future__ import annotations

from typing import Any

from .attributes import Attribute, Categorical
from .errors import DataError


def kind_of(dtype: Any) -> str:
    """How columns of an Ibis type are read: "integer", "float", "decimal", "text", "boolean" or "none of these"."""
    for kind, test in (
        ("integer", dtype.is_integer()), ("float", dtype.is_floating()), ("decimal", dtype.is_decimal()),
        ("text", dtype.is_string()), ("boolean", dtype.is_boolean()),
    ):  # fmt: skip
        if test:
            return kind
    return "none of these"


def check_readable(attribute: Attribute, dtype: Any, where: str, name: str) -> None:
    """Refuses a column whose declared type an attribute cannot be read from; no row is looked at.

    Raises:
        DataError: names the column, its type, and what to do.
    """
    of_text = isinstance(attribute, Categorical) and not attribute.of_integers
    kinds = ("text", "integer", "boolean") if of_text else ("integer", "float", "decimal", "text")
    if kind_of(dtype) in kinds:
        return
    given = "of an unknown type" if dtype.is_unknown() else str(dtype).partition("(")[0].partition("<")[0]
    if of_text and kind_of(dtype) in ("float", "decimal"):
        fix = "declare its codes as integers, or convert the column to text"
    else:
        fix = "convert the column"
    what = "text categories" if of_text else f"{attribute.kind} values"
    raise DataError(f"{where}: column {name!r} is {given}; {what} are read from {', '.join(kinds)}: {fix}.")
