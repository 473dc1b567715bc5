"""A law held as a table of rows, exactly: probabilities are dyadic rationals and rows sum to one, not nearly.

Every entry is a double, read as the exact rational that it is, except one in each row, its largest, which stands for one
minus the sum of the others. So no positive entry ever rounds to zero however small it is (a table of integers with as many
bits as its least entry needs, in other words), every entry keeps 53 significant bits, and what is sampled, saved and
measured is one and the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from math import fsum, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import Ints
from ..errors import SpecificationError
from .bounds import Bounds
from .geometry import Floats, Geometry, distances

LEAST = 2.0**-960  # below, doubles lose digits
SUM = 1e-6
CHUNK = 1 << 22
# Logarithms up to ln 2^960 of doubles that are right to one unit in the last place, and their difference.
MARGIN = 2e-12
DIGITS = Context(prec=60)


@dataclass(frozen=True, eq=False)
class Table:
    """A row-stochastic matrix.

    Attributes:
        entries: float64, shape (rows, used columns), read-only.
        rest: int64, shape (rows,): the column of each row whose probability is exactly 1 − Σ of the others; its entry is that
            number's nearest double.
        columns: int64, ascending: which outputs the columns are; the others never come out.
        row_of: int64, shape (inputs,): the row of each input.
        n_outputs: how many outputs there are.

    >>> table = Table.of([[0.5, 0.5, 0], [0.25, 0.75, 0]])
    >>> table.columns.tolist(), table.exact_row(1)
    ([0, 1], [Fraction(1, 4), Fraction(3, 4)])
    """

    entries: Floats
    rest: Ints
    columns: Ints
    row_of: Ints
    n_outputs: int

    @staticmethod
    def of(
        matrix: object,
        columns: Ints | None = None,
        n_outputs: int | None = None,
        row_of: Ints | None = None,
    ) -> Table:
        """The exact table nearest to a matrix whose rows sum to 1 nearly.

        Args:
            matrix: shape (rows, columns), not negative.
            columns, n_outputs: which outputs its columns are, of how many; all of them unless told otherwise.
            row_of: the row of each input; row i is that of input i unless told otherwise.

        Raises:
            SpecificationError: an entry that is negative or no number, rows that do not sum to 1 within 10^-6.
        """
        try:
            told: Floats = np.array(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise SpecificationError("channel: a table of probabilities, one row for each input.") from None
        if told.ndim != 2 or not told.size:
            raise SpecificationError("channel: a table with at least one row and one column.")
        if not np.isfinite(told).all() or (told < 0).any():
            raise SpecificationError("channel: every probability must be finite and not negative.")
        sums = told.sum(axis=1, keepdims=True)
        if (np.abs(sums - 1) > SUM).any():
            raise SpecificationError("channel: every row must sum to 1.")
        told = told / sums
        told[told < LEAST] = 0.0
        count = told.shape[1] if n_outputs is None else n_outputs
        which = np.arange(told.shape[1], dtype=np.int64) if columns is None else np.asarray(columns, np.int64)
        order = np.argsort(which, kind="stable")
        used = order[(told[:, order] > 0).any(axis=0)]
        told, which = np.ascontiguousarray(told[:, used]), which[used]
        if len(which) and (which[0] < 0 or which[-1] >= count or (np.diff(which) <= 0).any()):
            raise SpecificationError("channel: columns name different outputs.")
        rows = np.arange(len(told), dtype=np.int64) if row_of is None else np.asarray(row_of, np.int64)
        rest = told.argmax(axis=1).astype(np.int64)
        return Table.exact(told, rest, which, rows, count)

    @staticmethod
    def exact(entries: Floats, rest: Ints, columns: Ints, row_of: Ints, n_outputs: int) -> Table:
        """The table whose entries are these doubles, all but the ``rest`` of each row, which is worked out.

        Raises:
            SpecificationError: a row whose other entries sum to 1 or more, indices out of range.
        """
        told = np.array(entries, dtype=np.float64)
        whole = (
            (rest, len(told), told.shape[1]),
            (row_of, None, len(told)),
            (columns, told.shape[1], n_outputs),
        )
        for indices, length, limit in whole:
            if (
                indices.dtype != np.int64
                or (length is not None and len(indices) != length)
                or (len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= limit))
            ):
                raise SpecificationError("channel: the table's rows and columns do not fit each other.")
        if (np.diff(columns) <= 0).any():
            raise SpecificationError("channel: columns name different outputs, in ascending order.")
        if not np.isfinite(told).all() or (told < 0).any() or ((told > 0) & (told < LEAST)).any():
            raise SpecificationError(
                "channel: every probability must be 0 or a positive number that keeps its digits."
            )
        for row, at in zip(told, rest.tolist(), strict=True):
            row[at] = -1.0
            row[at] = -fsum(row)  # correctly rounded
            if row[at] <= 0:
                raise SpecificationError("channel: a row of probabilities exceeds 1.")
        for array in (told, rest, columns, row_of):
            array.flags.writeable = False
        return Table(told, rest, columns, row_of, n_outputs)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(self.row_of)

    def exact_row(self, row: int) -> list[Fraction]:
        """The probabilities of one row over ``columns``, exactly."""
        found = [Fraction(v) for v in self.entries[row].tolist()]
        at = int(self.rest[row])
        found[at] = Fraction(0)
        found[at] = 1 - sum(found, Fraction(0))
        return found

    def rows(self, cells: Ints) -> Floats:
        found = np.zeros((len(cells), self.n_outputs))
        found[:, self.columns] = self.entries[self.row_of[cells]]
        return found

    def push(self, joint: Floats) -> Floats:
        weights = np.zeros((len(joint), len(self.entries)))
        np.add.at(weights.T, self.row_of, np.asarray(joint, dtype=np.float64).T)
        found = np.zeros((len(joint), self.n_outputs))
        found[:, self.columns] = weights @ self.entries
        return found

    def expected(self, prior: Floats, metric: object, place: Geometry) -> float:
        if isinstance(metric, np.ndarray):
            cost = distances(metric, place.domain) if metric.shape[1] == place.domain.size else metric
            used = cost[:, self.columns]
            return float(np.einsum("w,wz,wz->", prior, self.entries[self.row_of], used))
        total, step = 0.0, max(1, CHUNK // max(len(self.columns), 1))
        for at in range(0, self.n_inputs, step):
            cells = np.arange(at, min(at + step, self.n_inputs))
            cost = place.between(metric, cells[:, None], self.columns[None, :])  # type: ignore[arg-type]
            total += float(np.einsum("w,wz,wz->", prior[cells], self.entries[self.row_of[cells]], cost))
        return total

    @cached_property
    def _logs(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.entries))

    def losses(self, a: Ints, b: Ints) -> Floats:
        first, second = self.row_of[np.asarray(a)], self.row_of[np.asarray(b)]
        found = np.zeros(len(first))
        step = max(1, CHUNK // max(len(self.columns), 1))
        for at in range(0, len(first), step):
            x, y = self._logs[first[at : at + step]], self._logs[second[at : at + step]]
            with np.errstate(invalid="ignore"):
                apart = np.abs(x - y)
            found[at : at + step] = np.where(np.isnan(apart), 0.0, apart).max(axis=1)
        return np.where(first == second, 0.0, found + MARGIN)

    def keeps(self, bounds: Bounds) -> bool:
        """Whether max_z |ln P(z | a) − ln P(z | b)| ≤ loss for every pair, decided exactly: by floats where they leave no doubt,
        in integers where they do.

        >>> from fractions import Fraction
        >>> pair = np.array([0]), np.array([1])
        >>> table = Table.of([[0.75, 0.25], [0.25, 0.75]])
        >>> [table.keeps(Bounds(*pair, np.array([loss]))) for loss in (1.0986, 1.0987)]
        [False, True]
        """
        first, second = self.row_of[bounds.first], self.row_of[bounds.second]
        step = max(1, CHUNK // max(len(self.columns), 1))
        doubtful: list[tuple[int, int, int, float]] = []
        for at in range(0, len(first), step):
            i, j, most = (v[at : at + step] for v in (first, second, bounds.losses))
            with np.errstate(invalid="ignore"):
                apart = np.abs(self._logs[i] - self._logs[j])
            apart = np.where(np.isnan(apart), 0.0, apart)  # zero in both
            apart[i == j] = 0.0
            if (apart > most[:, None] + MARGIN).any():
                return False
            pairs, z = np.nonzero((apart > most[:, None] - MARGIN) & (i != j)[:, None])
            doubtful += zip(
                i[pairs].tolist(), j[pairs].tolist(), z.tolist(), most[pairs].tolist(), strict=True
            )
        return all(self._keeps_one(*each) for each in dict.fromkeys(doubtful))

    def _keeps_one(self, i: int, j: int, z: int, most: float) -> bool:
        x, y = self._one(i, z), self._one(j, z)
        return max(x, y) <= _power(most) * min(x, y)

    def _one(self, row: int, z: int) -> Fraction:
        if z != self.rest[row]:
            return Fraction(float(self.entries[row, z]))
        return self._rests(row)

    @lru_cache(maxsize=4096)  # noqa: B019 - tables are few and live as long as their channel
    def _rests(self, row: int) -> Fraction:
        return self.exact_row(row)[int(self.rest[row])]

    @cached_property
    def _choices(self) -> Any:
        from .._choices import Choices

        return Choices.exact(self.entries, self.rest)

    def draw(self, cells: Ints) -> Ints:
        from ..noise import choose

        return np.asarray(self.columns[choose(self._choices, self.row_of[cells])], dtype=np.int64)

    def spec(self) -> dict[str, Any]:
        return {"law": "table", "outputs": self.n_outputs}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {"entries": self.entries, "rest": self.rest, "columns": self.columns, "row_of": self.row_of}

    @staticmethod
    def read(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Table:
        """The table that ``spec`` and ``arrays`` wrote."""
        told = [np.array(arrays[name]) for name in ("entries", "rest", "columns", "row_of")]
        if told[0].dtype != np.float64 or told[0].ndim != 2 or any(a.ndim != 1 for a in told[1:]):
            raise SpecificationError("channel: a damaged table.")
        return Table.exact(told[0], told[1], told[2], told[3], int(spec["outputs"]))


@lru_cache(maxsize=65536)
def _power(exponent: float) -> Fraction:
    """A rational just below e^exponent."""
    if exponent == inf:
        return Fraction(2) ** 4000
    near = DIGITS.exp(Decimal(exponent))
    return Fraction(near) * (1 - Fraction(1, 10**58))
