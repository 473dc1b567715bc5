"""What the optimisers see of a table: codes of the private columns, features of the exchanged ones, classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from ..axes import Ints
from .families import Floats
from .features import Features

Kind = Literal["ordered", "tree", "grid", "plain"]
MOST_NAMED = 12
PART = 1 << 17  # rows whose columns are looked at together


@dataclass(frozen=True, eq=False, repr=False)
class PrivateColumn:
    """A private column's values and what groups they may form.

    Attributes:
        name: the column, or the attribute.
        labels: of its values, in order.
        kind: "ordered" (intervals), "tree" (nodes of a hierarchy), "grid" (places) or "plain" (categories without order).
        numbers: where values lie, shape (values,), or (values, 2) of places; None of categories.
        parents: a code's parent in the hierarchy, of a "tree".
        shape: rows and columns of a "grid"; value r·columns + c is the cell of row r and column c.
        ends: of ordered numbers, how the first and the last value of an interval are written where they differ from the label
            (cells that hold more than one number).
        is_declared: whether the values are those of a declaration, and not those that occur, whose number is private.
    """

    name: str
    labels: tuple[str, ...]
    kind: Kind
    numbers: Floats | None = None
    parents: Mapping[str, str] | None = None
    shape: tuple[int, int] | None = None
    ends: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    is_declared: bool = False

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.labels)

    def label(self, members: Ints, at: int) -> str:
        """What is published in place of these values.

        Args:
            members: values of one group, ascending.
            at: the group's number, for groups without a name of their own.

        >>> age = PrivateColumn("age", ("17", "18", "19", "20"), "ordered")
        >>> age.label(np.array([1, 2, 3]), 0), age.label(np.array([0]), 1)
        ('18–20', '17')
        >>> PrivateColumn("job", ("a", "b", "c"), "plain").label(np.array([0, 2]), 0)
        'a, c'
        """
        first, last = int(members[0]), int(members[-1])
        if self.kind == "ordered":
            low, high = (self.labels, self.labels) if self.ends is None else self.ends
            run = last - first + 1 == len(members)
            if run:
                return low[first] if low[first] == high[last] else f"{low[first]}–{high[last]}"
        if len(members) == 1:
            return self.labels[first]
        if self.kind == "grid" or len(members) > MOST_NAMED:
            return f"{'area' if self.kind == 'grid' else 'group'} {at + 1}"
        return ", ".join(self.labels[m] for m in members)


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """A table as the optimisers see it. Private.

    Attributes:
        features: of the exchanged columns.
        columns: the private columns.
        codes: values of each private column, int64 of shape (rows,).
        classes: the class of each row, by its quasi-identifiers; all 0 without.
    """

    features: Features
    columns: tuple[PrivateColumn, ...]
    codes: tuple[Ints, ...]
    classes: Ints

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.classes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Values of each private column."""
        return tuple(c.size for c in self.columns)

    @property
    def n_values(self) -> int:
        """Joint values of the private columns."""
        return prod(self.sizes)

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return int(self.classes.max(initial=0)) + 1

    @cached_property
    def values(self) -> Ints:
        """The joint private value of each row, row-major over the columns."""
        return np.ravel_multi_index(self.codes, self.sizes).astype(np.int64)

    def take(self, rows: Ints) -> Data:
        """Some of the rows, in the order given."""
        codes = tuple(own[rows] for own in self.codes)
        return Data(self.features.take(rows), self.columns, codes, self.classes[rows])

    def joint(self, members: Sequence[Ints]) -> Ints:
        """Joint values whose part in each column is one of these.

        >>> none = np.zeros(0, dtype=np.int64)
        >>> two = tuple(PrivateColumn(n, ("0", "1", "2"), "ordered") for n in "ab")
        >>> Data(None, two, (none, none), none).joint([np.array([1]), np.array([0, 2])]).tolist()
        [3, 5]
        """
        grid = np.meshgrid(*members, indexing="ij")
        return np.sort(np.ravel_multi_index(tuple(g.ravel() for g in grid), self.sizes)).astype(np.int64)


def parts_of(rows: int) -> Iterator[Ints]:
    """The numbers of all rows, some at a time.

    >>> [part.tolist() for part in parts_of(3)]
    [[0, 1, 2]]
    """
    for start in range(0, rows, PART):
        yield np.arange(start, min(start + PART, rows))


def labels_of(labels: Sequence[str]) -> list[str]:
    """Labels that tell the groups of a column apart, whatever the values are called.

    >>> labels_of(["a, b", "a, b", "c"])
    ['a, b', 'a, b (2)', 'c']
    """
    found: list[str] = []
    for label in labels:
        own, n = label, 2
        while own in found or (own != label and own in labels):
            own, n = f"{label} ({n})", n + 1
        found.append(own)
    return found
