"""k-anonymous classes of quasi-identifiers: boxes of their cells with enough rows each, by median cuts (Mondrian)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..axes import Ints
from ..errors import Refused


@dataclass(frozen=True, eq=False, repr=False)
class Classes:
    """Boxes of cells.

    Attributes:
        labels: the class of each row, shape (rows,).
        lows, highs: first and last cell of each class in each column, shape (classes, columns).
    """

    labels: Ints
    lows: Ints
    highs: Ints


def classes_of(columns: Sequence[Ints], sizes: Sequence[int], class_size: int) -> Classes:
    """Classes of at least ``class_size`` rows each, every one a box of declared cells; the boxes cover the domain.

    A box is cut at the median of the column in which its rows are spread widest, as a share of that column's cells, for as
    long as both sides keep enough rows. Source: LeFevre, DeWitt, Ramakrishnan 2006 (strict Mondrian).

    Args:
        columns: cells of each quasi-identifier, int64 of shape (rows,); none make one class.
        sizes: cells that each of them has.

    Raises:
        Refused: fewer rows than one class needs.

    >>> found = classes_of([np.array([0, 1, 2, 3, 9, 9])], [10], 2)
    >>> found.labels.tolist(), found.lows.tolist(), found.highs.tolist()
    ([0, 0, 0, 1, 1, 1], [[0], [3]], [[2], [9]])
    """
    rows = len(columns[0]) if columns else 0
    if columns and rows < class_size:
        raise Refused(
            "hybrid.class_size: the table has fewer rows than one class needs; state a smaller one."
        )
    labels = np.zeros(rows, dtype=np.int64)
    lows: list[list[int]] = []
    highs: list[list[int]] = []
    start = (np.arange(rows), [0] * len(columns), [size - 1 for size in sizes])
    stack = [start]
    while stack:
        own, low, high = stack.pop()
        cut = _cut(columns, own, low, high, class_size)
        if cut is None:
            labels[own] = len(lows)
            lows.append(low)
            highs.append(high)
            continue
        at, last = cut
        left = columns[at][own] <= last
        stack.append((own[~left], [*low[:at], last + 1, *low[at + 1 :]], high))
        stack.append((own[left], low, [*high[:at], last, *high[at + 1 :]]))
    shape = (len(lows), len(columns))
    return Classes(labels, np.array(lows, np.int64).reshape(shape), np.array(highs, np.int64).reshape(shape))


def _cut(
    columns: Sequence[Ints], own: Ints, low: Sequence[int], high: Sequence[int], least: int
) -> tuple[int, int] | None:
    """The column to cut and the last cell of its lower side."""
    if len(own) < 2 * least:
        return None
    spread = []
    for at, column in enumerate(columns):
        cells = column[own]
        spread.append((int(cells.max() - cells.min()) / (high[at] - low[at] + 1), at))
    for share, at in sorted(spread, key=lambda s: (-s[0], s[1])):
        if not share:
            continue
        cells = np.sort(columns[at][own])
        # Of the cuts between different cells the one nearest to the median that leaves enough rows on both sides.
        ends = np.flatnonzero(np.diff(cells) > 0) + 1
        ends = ends[(ends >= least) & (len(cells) - ends >= least)]
        if len(ends):
            best = int(ends[np.abs(ends - len(cells) / 2).argmin()])
            return at, int(cells[best - 1])
    return None
