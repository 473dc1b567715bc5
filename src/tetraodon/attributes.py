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
5. ``Point``: two columns, each read as ``Numeric`` reads it (rule 3) along one side of the box. The cell is
   row·columns + column; if either number is missing, the place is.
6. Null and invalid values go to the ``missing`` cell; with ``missing="refuse"`` there is none (the cell is −1) and a
   table that holds such a value is refused.

Ordinary cells come first in declared order, then ``other``, then ``missing``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .cellular import INVALID, MISSING_LABEL, Cells, Cellular, Missing
from .errors import SpecificationError, unknown
from .hierarchy import Parents, parents_of
from .listings import codes
from .numeric import MAX_EXACT, Integer, Numeric, Spacing
from .points import Point
from .reading import elements, is_null, kind_of, listed, numbers, plain, text

__all__ = ["MAX_EXACT", "Attribute", "Categorical", "Integer", "Numeric", "Point"]


@dataclass(frozen=True)
class Categorical(Cellular):
    """A declared list of codes.

    Args:
        values: a list of texts or of integers, or the path of a file of codes (one a line, or a CSV file with a
            column ``code``).
        ordered: the list's order is meaningful (prefix sums and ``Within`` count steps along it).
        other: label of a cell for every value that is not declared; without it such a value is invalid.
        hierarchy: levels above the values, which microdata may be generalised to: a mapping from each value to the name of its
            group, and from groups to wider ones, or the path of a CSV file with the columns ``code`` and ``parent``.

    >>> Categorical(["Female", "Male"], other="Unknown").cells(["Male", "x", "Female"]).tolist()
    [1, 2, 0]
    """

    values: tuple[str, ...] | tuple[int, ...]
    is_ordered: bool = False
    other: str | None = None
    unit: str | None = None
    parents: Parents = ()
    kind = "categorical"

    def __init__(
        self,
        values: Iterable[str] | Iterable[int] | str | os.PathLike[str],
        *,
        ordered: bool = False,
        other: str | None = None,
        hierarchy: Mapping[Any, Any] | str | os.PathLike[str] | None = None,
        missing: Missing = "refuse",
        column: str | None = None,
    ) -> None:
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
        seen: set[Any] = set()
        for place, value in enumerate(told, 1):
            if value in seen:
                raise SpecificationError(f"values: number {place} of the list stands there before.")
            seen.add(value)
        if other is not None and (not isinstance(other, str) or other in map(str, told)):
            raise SpecificationError("other: a text that is not itself a declared value.")
        if missing != "refuse" and MISSING_LABEL in (*told, other):
            raise SpecificationError(
                f"values, other: {MISSING_LABEL!r} names the missing cell; use another text."
            )
        for name, value in (
            ("values", tuple(told)), ("is_ordered", bool(ordered)), ("other", other), ("missing", missing), ("column", column),
            ("parents", () if hierarchy is None else parents_of(hierarchy, told)),
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

    @property
    def spacing(self) -> Spacing:
        """How near values of different cells come to each other, in steps along the declared order."""
        return Spacing(Fraction(1), Fraction(1))

    def to_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"categorical": list(self.values)}
        if self.is_ordered:
            spec["ordered"] = True
        if self.other is not None:
            spec["other"] = self.other
        if self.parents:
            spec["hierarchy"] = dict(self.parents)
        return spec | self._common_spec()


Attribute = Integer | Numeric | Categorical | Point
