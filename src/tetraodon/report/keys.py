"""Keys of a manifest, each checked for its kind. Every function raises ``SpecificationError`` that names the key."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ..errors import SpecificationError
from ..exact import exact


def take(spec: Mapping[str, Any], key: str, where: str) -> Any:
    """The value of a key that must be there."""
    if key not in spec:
        raise SpecificationError(f"{where}.{key}: required.")
    return spec[key]


def mapping(spec: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """A table."""
    found = take(spec, key, where)
    if not isinstance(found, Mapping):
        raise SpecificationError(f"{where}.{key}: a table.")
    return found


def items(spec: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """A list."""
    found = take(spec, key, where)
    if not isinstance(found, list):
        raise SpecificationError(f"{where}.{key}: a list.")
    return found


def text(spec: Mapping[str, Any], key: str, where: str) -> str:
    """A text."""
    found = take(spec, key, where)
    if not isinstance(found, str):
        raise SpecificationError(f"{where}.{key}: a text.")
    return found


def texts(spec: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """A list of texts."""
    found = items(spec, key, where)
    if not all(isinstance(item, str) for item in found):
        raise SpecificationError(f"{where}.{key}: a list of texts.")
    return tuple(found)


def flag(spec: Mapping[str, Any], key: str, where: str) -> bool:
    """True or false."""
    found = take(spec, key, where)
    if not isinstance(found, bool):
        raise SpecificationError(f"{where}.{key}: true or false.")
    return found


def whole(spec: Mapping[str, Any], key: str, where: str) -> int:
    """A whole number of at least 0."""
    found = take(spec, key, where)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise SpecificationError(f"{where}.{key}: a whole number of at least 0.")
    return found


def whole_or_none(spec: Mapping[str, Any], key: str, where: str) -> int | None:
    """A whole number, or nothing."""
    return None if take(spec, key, where) is None else whole(spec, key, where)


def is_finite(found: Any) -> bool:
    """Whether it is a number that a double holds; JSON has whole ones beyond."""
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return is_number and abs(found) <= sys.float_info.max


def real(found: Any, where: str) -> float:
    """A finite number that is not negative: all that a manifest holds are."""
    if not is_finite(found) or found < 0:
        raise SpecificationError(f"{where}: a finite number of at least 0.")
    return float(found)


def number_or_none(spec: Mapping[str, Any], key: str, where: str) -> float | None:
    """A finite number of at least 0, or nothing."""
    found = take(spec, key, where)
    return None if found is None else real(found, f"{where}.{key}")


def share(spec: Mapping[str, Any], key: str, where: str) -> float:
    """A number between 0 and 1."""
    found = real(take(spec, key, where), f"{where}.{key}")
    if not 0 < found < 1:
        raise SpecificationError(f"{where}.{key}: between 0 and 1.")
    return found


def amount(spec: Mapping[str, Any], key: str, where: str) -> Fraction:
    """An exact number of at least 0."""
    found = exact(text(spec, key, where), f"{where}.{key}")
    if found < 0:
        raise SpecificationError(f"{where}.{key}: not negative.")
    return found
