"""Bins and filters of a query, resolved against the declared attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .attributes import Attribute, Categorical, Integer, Numeric, Point
from .axes import MAX_ARRAY, Bools, Ints
from .errors import SpecificationError, Unsupported
from .exact import exact, show
from .reading import single


@dataclass(frozen=True, eq=False)
class Grouping:
    """How a query sees one attribute: a position for every cell.

    Attributes:
        name, attribute: whose cells.
        labels: shape (attribute.size,): position of each cell, −1 where the filter leaves it out; None = every cell is
            its own position.
        size: number of positions.
        n_ordinary: positions of ordinary cells come first; ``other`` and ``missing`` follow.
        text: published name of a position.
        ends: shape (n_ordinary, 2), first and last ordinary cell of each position; None where positions are cells or
            mix cells that are no run.
    """

    name: str
    attribute: Attribute
    labels: Ints | None
    size: int
    n_ordinary: int
    text: Callable[[int], str]
    ends: Ints | None = None

    @property
    def is_run(self) -> bool:
        """Whether every position is a run of ordinary cells, in order."""
        return self.labels is None or self.ends is not None

    def positions(self, cells: Ints) -> Ints:
        """Positions of an array of cells."""
        return cells if self.labels is None else self.labels[cells]

    @property
    def first_values(self) -> list[int] | None:
        """The positions as plain integers, where each is one integer value and there are no special cells."""
        a = self.attribute
        if not isinstance(a, Integer) or a.step != 1 or self.size != self.n_ordinary or not self.is_run:
            return None
        if self.ends is None:
            return list(range(a.low, a.high + 1))
        if (self.ends[:, 0] != self.ends[:, 1]).any():
            return None
        return [int(a.low + c) for c in self.ends[:, 0]]


def grouping(name: str, attribute: Attribute, bins: Any, where: Any, place: str) -> Grouping:
    """Positions of one attribute under the bins and the filter that a query states (either may be None)."""
    if bins is None and where is None:
        return Grouping(name, attribute, None, attribute.size, attribute.n_values, attribute.label)
    if attribute.size > MAX_ARRAY:
        raise Unsupported(
            f"{place}: {name} has more than 2^25 cells, too many for bins and filters; declare coarser cells."
        )
    n = attribute.n_values
    runs, labels, names = _binned(attribute, bins, f"{place}.bins.{name}")
    special = np.arange(n, attribute.size)
    labels = np.concatenate([labels, int(labels.max()) + 1 + special - n])
    if where is not None:
        labels = np.where(mask(attribute, where, f"{place}.where.{name}"), labels, -1)
    kept, labels = np.unique(labels, return_inverse=True)
    if kept[0] == -1:
        kept, labels = kept[1:], labels - 1
    if not len(kept):
        raise SpecificationError(f"{place}.where.{name}: leaves no cell.")
    ordinary = np.flatnonzero(labels[:n] >= 0)
    n_ordinary = int(labels[ordinary].max(initial=-1)) + 1
    ends = None
    if runs:
        _, first = np.unique(labels[ordinary], return_index=True)
        _, last = np.unique(labels[ordinary][::-1], return_index=True)
        ends = np.stack([ordinary[first], ordinary[::-1][last]], axis=1).astype(np.int64)
    specials = [int(c) for c in special if labels[c] >= 0]

    def text(position: int) -> str:
        if position >= n_ordinary:
            return attribute.label(specials[position - n_ordinary])
        if ends is not None:
            return _span(attribute, int(ends[position, 0]), int(ends[position, 1]))
        return names[int(kept[position])]

    if bins is not None and isinstance(attribute, Categorical):
        shown = [text(p) for p in range(len(kept))]
        if len(set(shown)) < len(shown):
            twice = next(t for i, t in enumerate(shown) if t in shown[:i])
            raise SpecificationError(
                f"{place}.bins.{name}: two rows would be called {twice!r}; choose other bins or another name for other."
            )
    return Grouping(name, attribute, labels.astype(np.int64), len(kept), n_ordinary, text, ends)


def _binned(attribute: Attribute, bins: Any, place: str) -> tuple[bool, Ints, list[str]]:
    """(positions are runs, position of each ordinary cell, names of positions that are no runs)."""
    cells = np.arange(attribute.n_values, dtype=np.int64)
    if bins is None:
        return True, cells, []
    if isinstance(attribute, Point):
        return False, *_squares(attribute, bins, place)
    kind, items = (bins[0], bins[1:]) if isinstance(bins, tuple) else ("width", (bins,))
    if kind == "mapping":
        if not isinstance(attribute, Categorical):
            raise SpecificationError(
                f"{place}: a mapping is for categorical attributes; give a width or lower ends."
            )
        labels = np.full(len(cells), -1, dtype=np.int64)
        taken = {attribute.label(c) for c in range(len(cells), attribute.size)}
        for group, (name, values) in enumerate(items):
            if name in taken:
                raise SpecificationError(
                    f"{place}: two rows would be called {name!r}, which also names a special cell or another group; "
                    "choose another name."
                )
            taken.add(name)
            if not isinstance(values, tuple) or values[0] not in ("list", "pair") or len(values) < 2:
                raise SpecificationError(f"{place}.{name}: a list of values, at least one.")
            for value in values[1:]:
                cell = attribute.cell(value, f"{place}.{name}")
                if cell >= len(cells) or labels[cell] >= 0:
                    raise SpecificationError(
                        f"{place}.{name}: {value!r} is named twice or is a special cell."
                    )
                labels[cell] = group
        if (labels < 0).any():
            lacking = attribute.label(int(np.argmin(labels)))
            raise SpecificationError(f"{place}: no group for {lacking!r}; name a group for every value.")
        return False, labels, [name for name, _ in items]
    if isinstance(attribute, Categorical) and not attribute.ordered:
        raise SpecificationError(
            f"{place}: the attribute is not ordered; give a mapping from names to lists of values."
        )
    if kind == "width":
        width = exact(items[0], place) / (1 if isinstance(attribute, Categorical) else attribute.width)
        if width.denominator != 1 or width < 1:
            raise SpecificationError(f"{place}: a multiple of the declared cell.")
        return True, cells // min(int(width), len(cells)), []  # one bin, if the width exceeds them all
    lower = [_boundary(attribute, v, place) for v in items]
    if not lower or sorted(set(lower)) != lower or lower[0] != 0:
        raise SpecificationError(f"{place}: increasing lower ends, the first one the declared low.")
    return True, np.searchsorted(lower, cells, side="right").astype(np.int64) - 1, []


def _squares(attribute: Point, bins: Any, place: str) -> tuple[Ints, list[str]]:
    """Blocks of cells of a map and their names: k × k cells (the last ones may be smaller), or between stated rows and columns."""
    rows, columns = attribute.shape
    tops, lefts = _cuts(bins, rows, columns, place)
    across = len(lefts)
    row, column = np.divmod(np.arange(rows * columns, dtype=np.int64), columns)
    at = (np.searchsorted(cut, cell, side="right") - 1 for cut, cell in ((tops, row), (lefts, column)))
    first, second = at
    return (first * across + second).astype(np.int64), attribute.block_labels(tops, lefts)


def _cuts(bins: Any, rows: int, columns: int, place: str) -> tuple[list[int], list[int]]:
    """The first row of every run of rows, and the first column of every run of columns."""
    expected = (
        f"{place}: a whole number k, for blocks of k × k cells, or two lists: the first row of every run of rows, the first "
        "column of every run of columns, each list from 0 on."
    )
    if isinstance(bins, tuple):
        if bins[0] != "list" or len(bins) != 3 or not all(isinstance(b, tuple) for b in bins[1:]):
            raise SpecificationError(expected)
        found = []
        for told, most in zip(bins[1:], (rows, columns), strict=True):
            cut = list(told[1:])
            whole = all(isinstance(c, int) and not isinstance(c, bool) for c in cut)
            if not whole or cut[:1] != [0] or sorted(set(cut)) != cut or cut[-1] >= most:
                raise SpecificationError(expected)
            found.append(cut)
        return found[0], found[1]
    side = exact(bins, place)
    if side.denominator != 1 or side < 1:
        raise SpecificationError(expected)
    k = int(side)
    return list(range(0, rows, k)), list(range(0, columns, k))


def _boundary(attribute: Integer | Numeric | Categorical, value: Any, place: str) -> int:
    """The cell that starts at a value; n_values for the end of the domain."""
    if isinstance(attribute, Categorical):
        return _in_order(attribute, value, place)
    single(value, place)
    offset = (exact(value, place) - attribute.low) / attribute.width
    end = isinstance(attribute, Integer) and exact(value, place) == attribute.high + 1
    if end:
        return attribute.n_values
    if offset.denominator != 1 or not 0 <= offset <= attribute.n_values:
        raise SpecificationError(f"{place}: must be a boundary of the declared cells.")
    return int(offset)


def _in_order(attribute: Categorical, value: Any, place: str) -> int:
    """The cell of a value that has a place in the order."""
    cell = attribute.cell(value, place)
    if cell >= attribute.n_values:
        raise SpecificationError(
            f"{place}: {attribute.label(cell)!r} has no place in the order; name a declared value."
        )
    return cell


def span(attribute: Attribute, low: Any, high: Any, place: str) -> tuple[int, int]:
    """First cell and one past the last cell of a stated range (both ends included; half-open for ``Numeric``)."""
    if isinstance(attribute, Point):
        raise SpecificationError(f"{place}: places have no order; list places, or labels of cells.")
    if isinstance(attribute, Numeric):
        first, last = _boundary(attribute, low, place), _boundary(attribute, high, place)
    elif isinstance(attribute, Integer):
        single(high, place)
        first, last = _boundary(attribute, low, place), _boundary(attribute, exact(high, place) + 1, place)
    else:
        if not attribute.ordered:
            raise SpecificationError(f"{place}: the attribute is not ordered; list the values.")
        first, last = _in_order(attribute, low, place), _in_order(attribute, high, place) + 1
    if first >= last:
        raise SpecificationError(f"{place}: the range is empty.")
    return first, last


def mask(attribute: Attribute, where: Any, place: str) -> Bools:
    """Which cells a filter keeps."""
    if attribute.size > MAX_ARRAY:
        raise Unsupported(f"{place}: filters on more than 2^25 cells; declare coarser cells.")
    kept = np.zeros(attribute.size, dtype=bool)
    if isinstance(where, tuple) and where[0] == "pair":
        if len(where) != 3:
            raise SpecificationError(f"{place}: a pair (low, high), or a list of values.")
        first, last = span(attribute, where[1], where[2], place)
        kept[first:last] = True
        return kept
    if isinstance(where, tuple) and where[0] == "mapping":
        raise SpecificationError(f"{place}: a pair (low, high), or a list of values.")
    values = where[1:] if isinstance(where, tuple) else (where,)
    for value in values:
        told = value[1:] if isinstance(attribute, Point) and isinstance(value, tuple) else value
        kept[attribute.cell(told, place)] = True
    return kept


def _span(attribute: Attribute, first: int, last: int) -> str:
    if first == last:
        return attribute.label(first)
    if isinstance(attribute, Integer):
        return f"{attribute.low + first * attribute.step}–{min(attribute.low + (last + 1) * attribute.step - 1, attribute.high)}"
    if isinstance(attribute, Numeric):
        close = "]" if last == attribute.n_cells - 1 else ")"
        low: Fraction = attribute.low + first * attribute.width
        return f"[{show(low)}, {show(attribute.low + (last + 1) * attribute.width)}{close}"
    return f"{attribute.label(first)}–{attribute.label(last)}"
