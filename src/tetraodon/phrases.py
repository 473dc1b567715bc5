"""The parts that queries and constraints are written with: filters, bins and names, frozen and as plain specifications.

A ``where`` value is a list of values, or a pair (low, high) as a tuple, both ends included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .errors import SpecificationError
from .exact import plain
from .reading import listed, table

Frozen = tuple[tuple[str, Any], ...]


def frozen(value: Any, where: str) -> Any:
    """Lists and mappings as hashable tuples that remember what they were; numbers as specifications write them."""
    if isinstance(value, Mapping):
        return ("mapping", *((str(k), frozen(v, where)) for k, v in value.items()))
    if isinstance(value, tuple):
        return ("pair", *(frozen(v, where) for v in value))
    if isinstance(value, list | range | np.ndarray):
        return ("list", *(frozen(v, where) for v in value))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | Decimal | Fraction):
        return plain(value, where)
    raise SpecificationError(f"{where}: numbers, texts and lists of them, not {type(value).__name__}.")


def without_pairs(value: Any) -> Any:
    """Bins know no pairs: a tuple there is a list."""
    if isinstance(value, Mapping):
        return {k: without_pairs(v) for k, v in value.items()}
    return [without_pairs(v) for v in value] if isinstance(value, tuple | list) else value


def named(value: Mapping[str, Any] | None, where: str) -> Frozen:
    """A mapping from attributes, frozen."""
    if value is None:
        return ()
    told = table(value, where, "a mapping from attribute names")
    if not all(isinstance(k, str) for k in told):
        raise SpecificationError(f"{where}: attributes are named by texts.")
    return tuple((str(k), frozen(v, f"{where}.{k}")) for k, v in told.items())


def attribute_names(value: Sequence[str] | str, where: str) -> tuple[str, ...]:
    """One name, or a list of them, each once."""
    names = (
        (value,) if isinstance(value, str) else tuple(listed(value, where, "a list of names of attributes"))
    )
    if any(not isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise SpecificationError(f"{where}: attribute names, each once.")
    return names


def thawed(value: Any) -> Any:
    """What ``frozen`` froze, as plain lists and tables; pairs become {"between": [low, high]}."""
    if isinstance(value, tuple):
        kind, items = value[0], value[1:]
        if kind == "mapping":
            return {k: thawed(v) for k, v in items}
        listed = [thawed(v) for v in items]
        return {"between": listed} if kind == "pair" else listed
    return value


def between(value: Any, where: str) -> Any:
    """{"between": [low, high]} as the pair it stands for; anything else as it is."""
    if isinstance(value, Mapping) and set(value) == {"between"}:
        return tuple(listed(value["between"], f"{where}.between", "a list [low, high]"))
    return value


def bins_text(told: Mapping[str, Any]) -> str:
    """The ``bins`` of a query in words, to stand behind what is counted; nothing without any.

    >>> bins_text({"age": 5, "size": {"small": [1, 2], "large": [3]}, "cut": [0, 10]})
    ', age in bins of 5, size in the groups small, large, cut in bins from 0, 10'
    """
    return "".join(f", {name} in {_bin(value)}" for name, value in told.items())


def kept_text(value: Any) -> str:
    """One value of a ``where``, as specifications write it, in words.

    >>> kept_text({"between": [18, 64]}), kept_text(["n", "s"])
    ('from 18 to 64', '= n or s')
    """
    if isinstance(value, Mapping):
        low, high = value["between"]
        return f"from {low} to {high}"
    values = value if isinstance(value, list) else [value]
    return f"= {' or '.join(map(str, values))}"


def every(names: Sequence[str], bins: Mapping[str, Any]) -> str:
    """Attributes that a table is split by, each with its bins.

    >>> every(["origin", "sex"], {"origin": 4})
    'origin (bins of 4), sex'
    """
    return ", ".join(f"{name} ({_bin(bins[name])})" if name in bins else name for name in names)


def _bin(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"the groups {', '.join(map(str, value))}"
    if isinstance(value, list):
        ends = [f"[{', '.join(map(str, v))}]" if isinstance(v, list) else str(v) for v in value]
        return f"bins from {', '.join(ends)}"
    return f"bins of {value}"
