"""Attributes that are numbers: whole numbers, and real numbers in equal cells (rules 2 and 3 of ``attributes``)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from .cellular import Cells, Cellular, Missing
from .errors import SpecificationError
from .exact import Number, exact, show
from .reading import numbers

MAX_EXACT = 2**53
# Numerators of cell boundaries: rounding to doubles then moves a boundary by at most a quarter of a cell, so that no two
# coincide and floor((value − low) / width) is off by at most one.
MAX_LATTICE = 2**51


@dataclass(frozen=True)
class Spacing:
    """The least distance between values of cells k ≥ 1 apart: nearest + (k − 1)·step.

    Attributes:
        nearest, step: in the attribute's unit.
        is_open: whether that distance is only approached (half-open cells of real numbers).

    >>> Integer(0, 99, step=10).spacing
    Spacing(nearest=Fraction(1, 1), step=Fraction(10, 1), is_open=False)
    """

    nearest: Fraction
    step: Fraction
    is_open: bool = False


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

    @property
    def spacing(self) -> Spacing:
        """How near values of different cells come to each other."""
        return Spacing(Fraction(1), Fraction(self.step))

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
        denominator = lcm(self.low.denominator, self.width.denominator)
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

    @property
    def spacing(self) -> Spacing:
        """How near values of different cells come to each other."""
        return Spacing(Fraction(0), self.width, is_open=True)

    def to_spec(self) -> dict[str, Any]:
        return {"numeric": [show(self.low), show(self.high)], "cells": self.n_cells} | self._common_spec()
