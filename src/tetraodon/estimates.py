"""Ranges asked of a release: their positions, and numbers whose intervals are worked out when asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .attributes import MAX_EXACT, Integer
from .axes import Ints
from .binning import Grouping, span
from .errors import SpecificationError


@dataclass(frozen=True, eq=False)
class Estimate:
    """One number per group (a single one without groups) with its 95 % interval, which is worked out when it is asked for.

    Attributes:
        value: the number, or an array (groups…, asked).
    """

    value: Any
    _ends: Callable[[], tuple[Any, Any]]

    @cached_property
    def interval(self) -> tuple[Any, Any]:
        """(lower, upper), each shaped like ``value``."""
        return self._ends()

    @property
    def lower(self) -> Any:
        return self.interval[0]

    @property
    def upper(self) -> Any:
        return self.interval[1]

    def __repr__(self) -> str:
        return f"Estimate(value={self.value}, lower={self.lower}, upper={self.upper})"


def bounds(axis: Grouping, lows: Any, highs: Any) -> tuple[Ints, Ints]:
    """Positions at which stated ranges start, and one past those at which they end."""
    if lows.ndim != 1 or lows.shape != highs.shape:
        raise SpecificationError(
            "range: one low and one high end, or two lists of the same length in one dimension; "
            f"got shapes {_shape(lows)} and {_shape(highs)}."
        )
    if any(ends.dtype.kind == "u" and ends.size and int(ends.max()) > MAX_EXACT for ends in (lows, highs)):
        raise SpecificationError("range: ends lie within ±2^53.")
    attribute = axis.attribute
    plain = lows.dtype.kind in "iu" and highs.dtype.kind in "iu" and axis.labels is None
    if plain and isinstance(attribute, Integer) and attribute.step == 1:
        first, past = lows.astype(np.int64) - attribute.low, highs.astype(np.int64) - attribute.low + 1
        if (first < 0).any() or (past > axis.n_ordinary).any() or (first >= past).any():
            raise SpecificationError(f"range: from {attribute.low} to {attribute.high}, low not above high.")
        return first, past
    spans = [span(attribute, a, b, "range") for a, b in zip(lows.tolist(), highs.tolist(), strict=True)]
    first = np.array([_position(axis, a) for a, _ in spans], dtype=np.int64)
    return first, np.array([_position(axis, b) for _, b in spans], dtype=np.int64)


def _shape(ends: Any) -> str:
    return " × ".join(map(str, ends.shape))


def _position(axis: Grouping, cell: int) -> int:
    if axis.ends is None:
        return cell
    at = int(np.searchsorted(axis.ends[:, 0], cell))
    if at > 0 and axis.ends[at - 1, 1] >= cell:
        raise SpecificationError("range: cuts a bin of the query.")
    return at
