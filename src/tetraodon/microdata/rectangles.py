"""Rectangles of a map, parted by guillotine cuts: straight from side to side, again and again.

With V(R) of a rectangle R that holds values, and V = 0 without a group where it holds none,

    V(R) = min( price(R), min over cuts of R into R₁, R₂ of V(R₁) + V(R₂) ),

and for exactly s groups the least V_a(R₁) + V_b(R₂) over a + b = s. A grid of r × c cells has about r²c²/4 rectangles and
r + c cuts of each at most. Optimal among partitions that such cuts make; pinwheels, and shapes that are no rectangle, are not
among them. Rectangles with the same values are one candidate, their tight box.

Source: derived.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, overload

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..axes import Bools, Ints
from ..errors import SpecificationError
from .families import Floats, read_costs, read_groups

LONGEST = 64  # cells along a side: beyond, the tables of all rectangles take gigabytes
Cut = tuple[int, int, int, int]  # a rectangle: height, width, top row, left column


@dataclass(frozen=True, eq=False)
class Boxes(Sequence[Ints]):
    """Candidates that are rectangles, their values read when they are asked for.

    Args:
        codes: the value of each cell, −1 where there is none, shape (rows, columns).
        top, left, bottom, right: each rectangle, from top to before bottom, from left to before right.
    """

    codes: Ints
    top: Ints
    left: Ints
    bottom: Ints
    right: Ints

    def __len__(self) -> int:
        return len(self.top)

    @overload
    def __getitem__(self, place: int) -> Ints: ...
    @overload
    def __getitem__(self, place: slice) -> Boxes: ...
    def __getitem__(self, place: int | slice) -> Ints | Boxes:
        if isinstance(place, slice):
            sides = (self.top, self.left, self.bottom, self.right)
            return Boxes(self.codes, *(side[place] for side in sides))
        cells = self.codes[self.top[place] : self.bottom[place], self.left[place] : self.right[place]].ravel()
        return cells[cells >= 0]

    def sums(self, per_value: NDArray[Any]) -> NDArray[Any]:
        """Sums over every rectangle, from differences of running sums; exact for whole numbers."""
        table = np.asarray(per_value)
        if table.dtype.kind == "b":
            table = table.astype(np.int64)
        rows, columns = self.codes.shape
        total = np.zeros((rows + 1, columns + 1, *table.shape[1:]), dtype=np.cumsum(table[:0]).dtype)
        total[1:, 1:][self.codes >= 0] = table[self.codes[self.codes >= 0]]
        np.cumsum(total, axis=0, out=total)
        np.cumsum(total, axis=1, out=total)
        found: NDArray[Any] = total[self.bottom, self.right] - total[self.top, self.right]
        found -= total[self.bottom, self.left]
        found += total[self.top, self.left]
        return found


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Rectangles of a grid as candidates; values are the present cells, row by row.

    Args:
        codes: the value of each cell, −1 where there is none, shape (rows, columns).
    """

    codes: Ints

    @property
    def n(self) -> int:
        return int((self.codes >= 0).sum())

    @cached_property
    def _numbered(self) -> tuple[NDArray[np.int32], Boxes]:
        """The candidate of each rectangle, −1 without values, [height − 1, width − 1, top, left]; and the candidates."""
        present = self.codes >= 0
        rows, columns = present.shape
        number = np.full((rows, columns, rows, columns), -1, dtype=np.int32)
        sides: list[list[Ints]] = [[], [], [], []]
        count = 0
        in_row = np.pad(np.cumsum(present, axis=1), ((0, 0), (1, 0)))
        in_column = np.pad(np.cumsum(present, axis=0), ((1, 0), (0, 0)))
        for h in range(1, rows + 1):
            for w in range(1, columns + 1):
                down, across = rows - h + 1, columns - w + 1
                filled_row = in_row[:, w:] > in_row[:, :across]  # any value in w cells of the row from here
                filled_column = in_column[h:] > in_column[:down]
                # What a rectangle with an empty side shrinks to, found before: smaller shapes come first.
                found = np.full((down, across), -1, dtype=np.int32)
                tight = filled_row[:down] & filled_row[h - 1 :]
                tight &= filled_column[:, :across] & filled_column[:, w - 1 :]
                if w > 1:
                    found = np.where(filled_column[:, w - 1 :], found, number[h - 1, w - 2, :down, :across])
                    found = np.where(
                        filled_column[:, :across], found, number[h - 1, w - 2, :down, 1 : across + 1]
                    )
                if h > 1:
                    found = np.where(filled_row[h - 1 :], found, number[h - 2, w - 1, :down, :across])
                    found = np.where(filled_row[:down], found, number[h - 2, w - 1, 1 : down + 1, :across])
                top, left = np.nonzero(tight)
                found[tight] = np.arange(count, count + len(top))
                count += len(top)
                number[h - 1, w - 1, :down, :across] = found
                for side, place in zip(sides, (top, left, top + h, left + w), strict=True):
                    side.append(place)
        return number, Boxes(self.codes, *(np.concatenate(side) for side in sides))

    @property
    def members(self) -> Boxes:
        """The values of each rectangle."""
        return self._numbered[1]

    def counts_of(self, per_value: NDArray[Any]) -> NDArray[Any]:
        """Sums of a table over every rectangle: shape (n, …) to (candidates, …)."""
        return self.members.sums(per_value)

    def best(self, costs: Floats, groups: int | None = None) -> tuple[float, Ints] | None:
        """The cheapest guillotine partition, see ``Family.best``.

        Time rows² · columns² · (rows + columns) in array steps, times groups squared where that is fixed; memory
        8 · rows² · columns² bytes, times groups + 1 where that is fixed.
        """
        number, boxes = self._numbered
        read = read_costs(costs, len(boxes))
        wanted = read_groups(groups)
        if wanted is not None and wanted > self.n:
            return None
        priced = np.concatenate([read, [0.0 if wanted is None else inf]])  # the last: no values
        if wanted is None:
            value = _values(priced[number])
            if value[-1, -1, 0, 0] == inf:
                return None
            chosen = self._cut(value, read)
        else:
            counted = _counted_values(priced[number], wanted)
            if counted[-1, -1, 0, 0, wanted] == inf:
                return None
            chosen = self._cut_exactly(counted, read, wanted)
        return math.fsum(read[chosen].tolist()), chosen

    def _cut(self, value: Floats, costs: Floats) -> Ints:
        number = self._numbered[0]
        rows, columns = self.codes.shape
        chosen, waiting = [], [(rows, columns, 0, 0)]
        while waiting:
            whole = waiting.pop()
            candidate = int(number[_at(whole)])
            if candidate < 0:
                continue
            if costs[candidate] <= value[_at(whole)]:
                chosen.append(candidate)
                continue
            pairs = _cuts(whole)
            totals = [value[_at(first)] + value[_at(second)] for first, second in pairs]
            waiting += pairs[int(np.argmin(totals))]
        return np.array(sorted(chosen), dtype=np.int64)

    def _cut_exactly(self, value: Floats, costs: Floats, groups: int) -> Ints:
        number = self._numbered[0]
        rows, columns = self.codes.shape
        chosen: list[int] = []
        waiting: list[tuple[Cut, int]] = [((rows, columns, 0, 0), groups)]
        while waiting:
            whole, left = waiting.pop()
            candidate = int(number[_at(whole)])
            if left == 1:
                chosen.append(candidate)
                continue
            pairs = _cuts(whole)
            totals = np.stack([value[_at(a)][: left + 1] + value[_at(b)][left::-1] for a, b in pairs])
            cut, share = np.unravel_index(int(totals.argmin()), totals.shape)
            first, second = pairs[int(cut)]
            waiting += [(first, int(share)), (second, left - int(share))]
        return np.array(sorted(chosen), dtype=np.int64)


def _at(cut: Cut) -> Cut:
    return cut[0] - 1, cut[1] - 1, cut[2], cut[3]


def _cuts(whole: Cut) -> list[tuple[Cut, Cut]]:
    h, w, top, left = whole
    return [((a, w, top, left), (h - a, w, top + a, left)) for a in range(1, h)] + [
        ((h, a, top, left), (h, w - a, top, left + a)) for a in range(1, w)
    ]


def _values(price: Floats) -> Floats:
    """V of every rectangle, [height − 1, width − 1, top, left], in place of its price."""
    rows, columns = price.shape[:2]
    for h in range(1, rows + 1):
        down = rows - h + 1
        here = price[h - 1, :, :down]  # all widths at once: cuts across need lower rectangles only
        for a in range(1, h):
            np.minimum(here, price[a - 1, :, :down] + price[h - a - 1, :, a : a + down], out=here)
        for w in range(1, columns + 1):
            across = columns - w + 1
            own = here[w - 1, :, :across]
            for a in range(1, w):
                np.minimum(own, here[a - 1, :, :across] + here[w - a - 1, :, a : a + across], out=own)
    return price


def _counted_values(price: Floats, groups: int) -> Floats:
    """V_s of every rectangle for s = 0 … groups along a last axis, inf for s = 0.

    A cut beside empty cells alone is never needed: the rectangle has the price, and the other cuts, of its tight box.
    """
    rows, columns = price.shape[:2]
    value = np.full((groups + 1, *price.shape), inf)
    value[1] = price
    for h in range(1, rows + 1):
        down = rows - h + 1
        here = value[:, h - 1, :, :down]  # all widths at once: cuts across need lower rectangles only
        for a in range(1, h):
            first, second = value[:, a - 1, :, :down], value[:, h - a - 1, :, a : a + down]
            for share in range(1, groups):
                part = here[share + 1 :]
                np.minimum(part, first[share] + second[1 : groups - share + 1], out=part)
        counts, widths, tops, lefts = here.strides
        for w in range(2, columns + 1):
            across = columns - w + 1
            first = here[:, : w - 1, :, :across]  # left parts of width a = 1 … w − 1
            # Right parts: of width w − a, a columns farther right; the next a is one width less and one column on.
            second = as_strided(
                here[:, w - 2 :, :, 1:], (groups + 1, w - 1, down, across), (counts, lefts - widths, tops, lefts), writeable=False
            )  # fmt: skip
            for share in range(1, groups):
                part = here[share + 1 :, w - 1, :, :across]
                np.minimum(part, (first[share] + second[1 : groups - share + 1]).min(axis=1), out=part)
    return np.moveaxis(value, 0, -1)


def rectangles(shape: tuple[int, int], present: Bools | None = None) -> Rectangles:
    """The rectangles of a grid; values are the present cells, numbered row by row.

    Args:
        shape: rows and columns.
        present: which cells are values, of that shape (None: all).
    Raises:
        SpecificationError: no cell, a mask of another shape, a side above 64 cells.

    >>> family = rectangles((2, 2), np.array([[True, True], [False, True]]))
    >>> [box.tolist() for box in family.members]
    [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]]
    >>> family.best(np.array([5.0, 1, 1, 1, 1, 9]))[1].tolist()
    [2, 3]
    """
    if len(shape) != 2 or min(shape) < 1:
        raise SpecificationError("shape: rows and columns, at least 1 each.")
    if max(shape) > LONGEST:
        raise SpecificationError(
            f"shape: at most {LONGEST} cells along a side for rectangles; take coarser cells, "
            "or intervals along curve_order(shape)."
        )
    mask = np.ones(shape, dtype=bool) if present is None else np.asarray(present, dtype=bool)
    if mask.shape != tuple(shape):
        raise SpecificationError(f"present: shape {shape[0]} × {shape[1]}, that of the grid.")
    if not mask.any():
        raise SpecificationError("present: at least one cell.")
    return Rectangles(np.where(mask, np.cumsum(mask).reshape(shape) - 1, -1).astype(np.int64))
