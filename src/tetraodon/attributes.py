"""Attributes: which values a record can have, and the cell that each value belongs to.

Domain facts are declared, never read off the data, and nothing is ever dropped by value.

**The cell of a value.** This is the definition; ``Attribute.cells`` computes it with numpy and ``engine.cells_expression``
as a query, and property tests hold the two equal.

1. A *number* is read as the nearest IEEE double. Text is a number if, blanks at both ends aside, it is a decimal number
   (``-1``, ``2.50``, ``1e3``) or an infinity (``inf``, ``-Infinity``); beyond the range of a double it is an infinity.
   Null, NaN and any other text are not numbers.
2. ``Integer``: a number that is not whole is invalid. A whole one (an infinity counts as whole) is clipped to
   [low, high]; its cell is (value − low) // step.
3. ``Numeric``: a number is clipped to [low, high]; its cell is the number of inner boundaries low + j·width, each
   rounded once to the nearest double, that are ≤ the value. Cells are half-open [a, b); the last one is closed.
4. ``Categorical`` of integers: a number equal to a declared code has that code's cell. ``Categorical`` of text: text
   equal to a declared value, letter by letter, has that value's cell; whole numbers are read as their decimal digits,
   truth values as ``true`` and ``false`` and, among values of mixed kinds, other numbers and dates as the text that
   Python gives them. Any other non-null value goes to the ``other`` cell where one is declared; without one it is
   invalid.
5. Null and invalid values go to the ``missing`` cell; with ``missing="refuse"`` there is none (the cell is −1) and a
   table that holds such a value is refused.

Ordinary cells come first in declared order, then ``other``, then ``missing``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .cellular import INVALID, MISSING_LABEL, Cells, Cellular, Missing
from .errors import SpecificationError, Unsupported, unknown
from .exact import Number, exact, show
from .reading import codes, elements, is_null, kind_of, listed, numbers, plain, text

MAX_EXACT = 2**53
# Numerators of cell boundaries: rounding to doubles then moves a boundary by at most a quarter of a cell, so that no two
# coincide and floor((value − low) / width) is off by at most one.
MAX_LATTICE = 2**51


@dataclass(frozen=True)
class Integer(Cellular):
    """Whole numbers from ``low`` to ``high``, in cells of ``step`` consecutive values (the last may be shorter).

    Args:
        low, high: inclusive bounds within ±2^53; values outside are clipped.
        step: how many consecutive integers share a cell.
        unit: printed beside every ± ("USD", "years").
        missing: "refuse" (you declare that no value is missing or invalid), "secret" (a cell joined to every value) or
            "public" (who did not answer is disclosed).
        column: name of the column if it differs from the attribute's.

    >>> Integer(17, 90).cells([17, 90, 200]).tolist()
    [0, 73, 73]
    >>> Integer(0, 99, step=10, missing="secret").cells([5, 99, None]).tolist()
    [0, 9, 10]
    """

    low: int
    high: int
    step: int = 1
    unit: str | None = None
    kind = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("low", "high", "step"):
            value = exact(getattr(self, name), name)
            if value.denominator != 1 or abs(value) > MAX_EXACT:
                raise SpecificationError(f"{name}: a whole number within ±2^53.")
            object.__setattr__(self, name, int(value))
        if self.step < 1:
            raise SpecificationError("step: at least 1.")
        if self.high < self.low:
            raise SpecificationError("high: must not lie below low.")

    @property
    def n_values(self) -> int:
        return (self.high - self.low) // self.step + 1

    def _label(self, cell: int) -> str:
        start = self.low + cell * self.step
        if self.step == 1:
            return str(start)
        return f"{start}–{min(start + self.step - 1, self.high)}"

    def cells(self, values: object) -> Cells:
        number = numbers(values)
        invalid = np.isnan(number) | (number != np.floor(number))
        clipped = np.clip(np.where(invalid, self.low, number), self.low, self.high)
        return self._finish((clipped.astype(np.int64) - self.low) // self.step, invalid)

    def _declared_cell(self, value: object, where: str) -> int:
        number = exact(value, where)
        if number.denominator != 1 or not self.low <= number <= self.high:
            raise SpecificationError(f"{where}: a whole number from {self.low} to {self.high}.")
        return (int(number) - self.low) // self.step

    def midpoints(self) -> tuple[list[int] | range, int]:
        """Value of each ordinary cell as integers over one denominator: (numerators, denominator)."""
        if self.step == 1:
            return range(self.low, self.high + 1), 1
        starts = range(self.low, self.high + 1, self.step)
        return [s + min(s + self.step - 1, self.high) for s in starts], 2

    @property
    def width(self) -> Fraction:
        """Length of a cell in the attribute's unit."""
        return Fraction(self.step)

    def reach(self, theta: Fraction) -> int:
        """Largest cell offset at which two cells hold values at most ``theta`` apart (math: derived, docs/policies.md)."""
        return 0 if theta < 1 else int((theta - 1) // self.step) + 1

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"integer": [self.low, self.high]}
        if self.step != 1:
            spec["step"] = self.step
        return spec | self._common_spec()


@dataclass(frozen=True)
class Numeric(Cellular):
    """Real numbers from ``low`` to ``high`` in equal half-open cells.

    Args:
        low, high: exact bounds; values outside are clipped.
        cells: number of cells, or
        width: their width (high − low must be a multiple of it).

    >>> Numeric(0, 1, n_cells=10).cells([0.3, 0.29999, -5, 1.0, float("inf")]).tolist()
    [3, 2, 0, 9, 9]
    """

    low: Fraction
    high: Fraction
    n_cells: int = 0
    unit: str | None = None
    kind = "numeric"

    def __init__(
        self,
        low: Number,
        high: Number,
        *,
        cells: int | None = None,
        width: Number | None = None,
        n_cells: int | None = None,
        unit: str | None = None,
        missing: Missing = "refuse",
        column: str | None = None,
    ) -> None:
        if cells is not None and n_cells is not None:
            raise SpecificationError("cells, n_cells: two names of one number; give one of them.")
        cells = cells if n_cells is None else n_cells
        first, last = exact(low, "low"), exact(high, "high")
        if last <= first:
            raise SpecificationError("high: must lie above low.")
        if (cells is None) == (width is None):
            raise SpecificationError(
                "cells or width: give exactly one of them; bins are declared, never inferred."
            )
        if cells is not None:
            number = exact(cells, "cells")
        else:
            assert width is not None
            step = exact(width, "width")
            if step <= 0:
                raise SpecificationError("width: must be above 0.")
            number = (last - first) / step
            if number.denominator != 1:
                raise SpecificationError("width: high − low must be a multiple of it.")
        if number.denominator != 1 or not 1 <= number <= 2**40:
            raise SpecificationError("cells: a whole number from 1 to 2^40.")
        for name, value in (
            ("low", first), ("high", last), ("n_cells", int(number)), ("unit", unit), ("missing", missing), ("column", column)
        ):  # fmt: skip
            object.__setattr__(self, name, value)
        super().__post_init__()
        start, gap, denominator = self.lattice
        if max(abs(start), abs(start + gap * self.n_cells), gap * self.n_cells, denominator) > MAX_LATTICE:
            raise SpecificationError("low, high: the boundaries need more than 51 bits; use rounder numbers.")

    @property
    def n_values(self) -> int:
        return self.n_cells

    @property
    def width(self) -> Fraction:
        """Length of a cell in the attribute's unit."""
        return (self.high - self.low) / self.n_cells

    @property
    def lattice(self) -> tuple[int, int, int]:
        """Integers (P, R, Q): boundary j is (P + j·R)/Q, so one division gives its nearest double."""
        denominator = (self.low.denominator * self.width.denominator) // np.gcd(
            self.low.denominator, self.width.denominator
        )
        denominator = int(denominator)
        return int(self.low * denominator), int(self.width * denominator), denominator

    def _label(self, cell: int) -> str:
        start = self.low + cell * self.width
        close = "]" if cell == self.n_cells - 1 else ")"
        return f"[{show(start)}, {show(start + self.width)}{close}"

    def cells(self, values: object) -> Cells:
        number = numbers(values)
        invalid = np.isnan(number)
        start, gap, denominator = (float(v) for v in self.lattice)
        first, last = float(self.low), float(self.high)
        clipped = np.clip(np.where(invalid, first, number), first, last)
        guess = np.clip(np.floor((clipped - first) / float(self.width)), 0, self.n_cells - 1)
        # The guess is off by at most one; comparing with the two boundaries themselves makes it exact.
        guess = guess + (clipped >= (start + (guess + 1) * gap) / denominator)
        guess = guess - (clipped < (start + guess * gap) / denominator)
        return self._finish(np.clip(guess, 0, self.n_cells - 1), invalid)

    def _declared_cell(self, value: object, where: str) -> int:
        number = exact(value, where)
        if not self.low <= number <= self.high:
            raise SpecificationError(f"{where}: a number from {show(self.low)} to {show(self.high)}.")
        return min(int((number - self.low) // self.width), self.n_cells - 1)

    def midpoints(self) -> tuple[list[int] | range, int]:
        """Middle of each ordinary cell as integers over one denominator: (numerators, denominator)."""
        start, gap, denominator = self.lattice
        return range(2 * start + gap, 2 * start + gap * (2 * self.n_cells), 2 * gap), 2 * denominator

    def reach(self, theta: Fraction) -> int:
        """Largest cell offset at which two cells hold values at most ``theta`` apart (half-open cells)."""
        return -int(-theta // self.width) if theta > 0 else 0

    def to_spec(self) -> dict[str, Any]:
        return {"numeric": [show(self.low), show(self.high)], "cells": self.n_cells} | self._common_spec()


@dataclass(frozen=True)
class Categorical(Cellular):
    """A declared list of codes.

    Args:
        values: a list of texts or of integers, or the path of a file of codes (one a line, or a CSV file with a
            column ``code``).
        ordered: the list's order is meaningful (prefix sums and ``Within`` count steps along it).
        other: label of a cell for every value that is not declared; without it such a value is invalid.

    >>> Categorical(["Female", "Male"], other="Unknown").cells(["Male", "x", "Female"]).tolist()
    [1, 2, 0]
    """

    values: tuple[str, ...] | tuple[int, ...]
    is_ordered: bool = False
    other: str | None = None
    unit: str | None = None
    kind = "categorical"

    def __init__(
        self,
        values: Iterable[str] | Iterable[int] | str | os.PathLike[str],
        *,
        ordered: bool = False,
        other: str | None = None,
        hierarchy: object = None,
        missing: Missing = "refuse",
        column: str | None = None,
    ) -> None:
        if hierarchy is not None:
            raise Unsupported("hierarchy: generalisation trees are not available in this version.")
        if not isinstance(ordered, bool | np.bool_):
            raise SpecificationError(f"ordered: true or false, not {kind_of(ordered)}.")
        told: list[Any] = (
            codes(Path(values))
            if isinstance(values, str | os.PathLike)
            else listed(values, "values", "a list of codes, or the path of a file of codes")
        )
        if not told:
            raise SpecificationError(
                "values: at least one; categories are declared, never read off the data."
            )
        if all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in told):
            told = [int(v) for v in told]
            if max(map(abs, told)) > MAX_EXACT:
                raise SpecificationError(
                    "values: integer codes lie within ±2^53; declare longer ones as text."
                )
        elif not all(isinstance(v, str) for v in told):
            raise SpecificationError("values: all texts or all integers.")
        if len(set(told)) != len(told):
            raise SpecificationError("values: one is listed twice.")
        if other is not None and (not isinstance(other, str) or other in map(str, told)):
            raise SpecificationError("other: a text that is not itself a declared value.")
        if missing != "refuse" and MISSING_LABEL in (*told, other):
            raise SpecificationError(
                f"values, other: {MISSING_LABEL!r} names the missing cell; use another text."
            )
        for name, value in (
            ("values", tuple(told)), ("is_ordered", bool(ordered)), ("other", other), ("missing", missing), ("column", column)
        ):  # fmt: skip
            object.__setattr__(self, name, value)
        super().__post_init__()

    @property
    def n_values(self) -> int:
        return len(self.values)

    @property
    def ordered(self) -> bool:
        return self.is_ordered

    @property
    def of_integers(self) -> bool:
        """Whether the codes are integers (read by rule 4's first half)."""
        return isinstance(self.values[0], int)

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {value: i for i, value in enumerate(self.values)}

    def _label(self, cell: int) -> str:
        return str(self.values[cell])

    def cells(self, values: object) -> Cells:
        array = elements(values)
        unlisted = INVALID if self.other is None else self.n_values
        if self.of_integers:
            number = numbers(array)
            flat = [
                self._index.get(v, unlisted) for v in np.where(np.isnan(number), 0.5, number).ravel().tolist()
            ]
            # A non-null text that is not a number is a value too: it belongs to `other`.
            null = np.array([is_null(v) for v in plain(array)], dtype=bool)
        else:
            texts = [text(v) for v in plain(array)]
            flat = [self._index.get(t, unlisted) for t in texts]
            null = np.array([t is None for t in texts], dtype=bool)
        cells = np.array(flat, dtype=np.int64).reshape(array.shape)
        null = null.reshape(array.shape)
        return self._finish(cells, null | (cells == INVALID))

    def _declared_cell(self, value: object, where: str) -> int:
        # True would pass for the code 1, and a list cannot be looked up.
        if not isinstance(value, str | int | float | np.number | Fraction | list):
            raise SpecificationError(f"{where}: a declared value, not {kind_of(value)}.")
        if isinstance(value, bool | list) or value not in self._index:
            raise unknown(where, "value", value, self.values)
        return self._index[value]

    def reach(self, theta: Fraction) -> int:
        """Steps along the declared order."""
        return int(theta // 1)

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"categorical": list(self.values)}
        if self.is_ordered:
            spec["ordered"] = True
        if self.other is not None:
            spec["other"] = self.other
        return spec | self._common_spec()


def Point(*args: object, **kwargs: object) -> None:
    """Places on a map (one attribute over two columns). Not available in this version.

    Raises:
        Unsupported: always; declare the two coordinates as two ``Numeric`` attributes.
    """
    raise Unsupported(
        "Point: places on a map are not available in this version; declare two Numeric attributes."
    )


Attribute = Integer | Numeric | Categorical
