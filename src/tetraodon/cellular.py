"""What all attributes share: special cells, labels, and the keyword arguments that every one of them takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .errors import SpecificationError
from .reading import kind_of, name_or_none, single

Missing = Literal["refuse", "secret", "public"]
Cells = NDArray[np.int64]

INVALID = -1
MISSING_LABEL = "missing"


@dataclass(frozen=True)
class _Common:
    """What the kinds of attribute share; the keyword arguments every one of them takes."""

    kind: ClassVar[str] = ""

    missing: Missing = field(default="refuse", kw_only=True)
    column: str | tuple[str, str] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.missing, str):
            raise SpecificationError(f"missing: 'refuse', 'secret' or 'public', not {kind_of(self.missing)}.")
        if self.missing not in ("refuse", "secret", "public"):
            raise SpecificationError(f"missing: 'refuse', 'secret' or 'public', not {self.missing!r}.")
        if self.column is not None and not isinstance(self.column, str) and self.kind != "point":
            raise SpecificationError("column: the name of a column, as text.")


class Cellular(_Common):
    """Cell arithmetic common to all attributes; subclasses say how many ordinary cells and what a label is."""

    other: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        name_or_none(self.unit, "unit")

    @property
    def n_values(self) -> int:
        """Number of ordinary cells."""
        raise AssertionError

    @property
    def ordered(self) -> bool:
        """Whether the ordinary cells have a meaningful order (prefix sums, ranges and distances make sense)."""
        return True

    def columns(self, name: str) -> tuple[str, ...]:
        """The table's columns that an attribute of this name is read from."""
        return (self.column if isinstance(self.column, str) else name,)

    @property
    def other_cell(self) -> int | None:
        return None if self.other is None else self.n_values

    @property
    def missing_cell(self) -> int | None:
        return None if self.missing == "refuse" else self.n_values + (self.other is not None)

    @property
    def size(self) -> int:
        """Number of cells, the ``other`` and ``missing`` cells included."""
        return self.n_values + (self.other is not None) + (self.missing != "refuse")

    def label(self, cell: int) -> str:
        """The published name of a cell."""
        if cell == self.missing_cell:
            return MISSING_LABEL
        if self.other is not None and cell == self.other_cell:
            return self.other
        return self._label(cell)

    def _label(self, cell: int) -> str:
        raise AssertionError

    def cells(self, values: object) -> Cells:
        """Cell of each value by the definition at the head of ``attributes``; −1 where ``missing="refuse"`` has no cell.

        Args:
            values: array-like of any shape.
        """
        raise AssertionError

    def cell(self, value: object, where: str = "value") -> int:
        """Cell of one *declared* value (used for filters and secrets, where a typing error must not pass silently).

        Raises:
            SpecificationError: the value is outside the declared domain or not of its kind.
        """
        if not isinstance(value, list):  # shown as it was written, below
            single(value, where)
        if value == MISSING_LABEL and self.missing_cell is not None:
            return self.missing_cell
        if self.other is not None and value == self.other:
            return self.n_values
        return self._declared_cell(value, where)

    def _declared_cell(self, value: object, where: str) -> int:
        raise AssertionError

    def _finish(self, cells: NDArray[Any], invalid: NDArray[np.bool_]) -> Cells:
        fallback = INVALID if self.missing_cell is None else self.missing_cell
        return np.where(invalid, fallback, cells).astype(np.int64)

    def _common_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        if self.missing != "refuse":
            spec["missing"] = self.missing
        if self.column is not None:
            spec["column"] = self.column
        if self.unit is not None:
            spec["unit"] = self.unit
        return spec

    def to_spec(self) -> dict[str, Any]:
        raise AssertionError
