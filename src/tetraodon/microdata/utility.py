"""What a released table is still good for, measured against the original: margins, pairs of columns, and models trained on it.

**Every figure here comes from private rows.** None has a guarantee, and none is written beside a release unless asked for: a
margin that is exactly as it was tells something about the original, and so does one that is not.

* *Margins*: of a category column the total variation ½ Σ_v |p(v) − q(v)|; of a number column the Wasserstein-1 distance divided by
  the range of both tables together. Both are in [0, 1], 0 where the law is the same.
* *Pairs*: the total variation between two-way tables, numbers in bins of equal shares of the original; and the difference of
  Pearson correlations of number columns (a constant column correlates with none).
* *Training*: a model trained on released rows and tested on original ones, beside one trained on original rows and tested on the
  same, over random splits. Rows of the two tables are not known to belong together, so what is held out of the original may
  have been swapped into what the released model saw, which flatters it; give ``is_aligned`` where rows do correspond, and held-out
  people are then left out of both.

Two samples of one law differ too: distances of small tables are above 0 by chance, of pairs more than of margins.

Source: standard; interval of the training figures after Nadeau and Bengio 2003 (splits share rows, so that the plain t interval
would be too short).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, SpecificationError, Unsupported, unknown
from ..terminal import text_of
from .given import given, plain

if TYPE_CHECKING:
    from .training import Trained

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BINS = 10


@dataclass(frozen=True)
class Utility:
    """How far a release is from the original. Private.

    Attributes:
        marginals: (column, distance) for each column compared.
        pairs: (column, column, distance) for each two of them.
        correlations: (column, column, released minus original) for each two columns of numbers.
        trained: figures of the models; None without a target.
    """

    marginals: tuple[tuple[str, float], ...]
    pairs: tuple[tuple[str, str, float], ...]
    correlations: tuple[tuple[str, str, float], ...]
    trained: Trained | None

    def words(self) -> str:
        """The figures as sentences, of each kind the mean and the worst."""
        name, worst = max(self.marginals, key=lambda m: m[1])
        mean = float(np.mean([m[1] for m in self.marginals]))
        told = [
            "Computed from private rows: for the publisher alone.",
            f"Margins of {len(self.marginals)} columns: {mean:.3f} from the original on average, at most {worst:.3f} ({name!r}).",
        ]
        if self.pairs:
            one, other, worst = max(self.pairs, key=lambda p: p[2])
            mean = float(np.mean([p[2] for p in self.pairs]))
            told.append(
                f"Pairs of columns, in bins: total variation {mean:.3f} on average, at most {worst:.3f} ({one!r} and {other!r})."
            )
        if self.correlations:
            one, other, worst = max(self.correlations, key=lambda c: abs(c[2]))
            mean = float(np.mean([abs(c[2]) for c in self.correlations]))
            told.append(
                f"Correlations: {mean:.3f} apart on average, most for {one!r} and {other!r} ({worst:+.3f})."
            )
        if self.trained is not None:
            told.append(self.trained.words())
        return text_of(told)


def utility(
    original: Any,
    released: Any,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    *,
    bins: int = BINS,
    **training: Any,
) -> Utility:
    """Margins, pairs and, for a stated target, models. Private.

    Args:
        original, released: frames of pandas, Polars or Arrow, or dicts of columns.
        columns: those compared; None: those that both tables have as numbers, or both as categories.
        target: the column that models predict from the other ``columns``.
        bins: at most so many for a number column, in pairs.
        training: settings of ``training.trained``.

    Raises:
        SpecificationError: no columns to compare, one that a table has not, one that is a number in one table only.
        DataError: an empty table, a missing or infinite number. Names the column.
    """
    pair = Pair.of(original, released, columns)
    found = None
    if target is not None:
        from .training import trained

        rest = [name for name in pair.names if name != target]
        found = trained(original, released, target, rest, **training)
    elif training:
        raise SpecificationError("utility: settings of training need a target.")
    return Utility(pair.marginals(), pair.pairs(bins), pair.correlations(), found)


@dataclass(frozen=True, eq=False, repr=False)
class Pair:
    """The columns of two tables in one coding. Private.

    Attributes:
        names: of the columns.
        numbers: for each number column its values in either table.
        codes: for each category column its codes in either table, and how many categories there are; a missing one is one more.
    """

    names: tuple[str, ...]
    numbers: Mapping[str, tuple[Floats, Floats]]
    codes: Mapping[str, tuple[Ints, Ints, int]]

    @staticmethod
    def of(original: Any, released: Any, columns: Sequence[str] | None = None) -> Pair:
        """Read the columns of two frames.

        Raises:
            SpecificationError, DataError: as ``utility``.
        """
        original, released = given(original, "original"), given(released, "released")
        if not (original.num_rows and released.num_rows):
            raise DataError("utility: a table has no rows.")
        if columns is None:
            names = [
                name
                for name in original.column_names
                if name in released.column_names and is_number(original[name]) == is_number(released[name])
            ]
        else:
            names = list(columns)
        if isinstance(columns, str) or not names or len(set(names)) < len(names):
            raise SpecificationError(
                "columns: a list of at least one column that both tables have, each once."
            )
        numbers, codes = {}, {}
        for name in names:
            for where, table in (("original", original), ("released", released)):
                if name not in table.column_names:
                    raise unknown(where, "column", name, table.column_names)
            one, other = original[name], released[name]
            if is_number(one) != is_number(other):
                raise SpecificationError(
                    f"columns: {name!r} holds numbers in one table only; leave it out, or convert one."
                )
            if is_number(one):
                numbers[name] = read_numbers(one, name), read_numbers(other, name)
            else:
                codes[name] = read_codes(one, other)
        return Pair(tuple(names), numbers, codes)

    def marginals(self) -> tuple[tuple[str, float], ...]:
        """(column, distance of its two laws), in [0, 1]."""
        return tuple((name, self._margin(name)) for name in self.names)

    def pairs(self, bins: int = BINS) -> tuple[tuple[str, str, float], ...]:
        """(column, column, total variation of the two-way tables), in [0, 1].

        Raises:
            SpecificationError: fewer than two bins.
        """
        if isinstance(bins, bool) or not isinstance(bins, int) or bins < 2:
            raise SpecificationError("utility.bins: a whole number of 2 or more.")
        binned = {name: self._binned(name, bins) for name in self.names}
        return tuple((a, b, _two_way(binned[a], binned[b])) for a, b in combinations(self.names, 2))

    def correlations(self) -> tuple[tuple[str, str, float], ...]:
        """(column, column, correlation in the released table minus that in the original)."""
        names = [name for name in self.names if name in self.numbers]
        if len(names) < 2:
            return ()
        one, other = (_correlated(np.stack([self.numbers[n][at] for n in names])) for at in (0, 1))
        apart = other - one
        return tuple((names[i], names[j], float(apart[i, j])) for i, j in combinations(range(len(names)), 2))

    def _margin(self, name: str) -> float:
        if name in self.codes:
            one, other, levels = self.codes[name]
            return _variation(one, other, levels)
        from scipy.stats import wasserstein_distance

        a, b = self.numbers[name]
        spread = max(a.max(), b.max()) - min(a.min(), b.min())
        return float(wasserstein_distance(a, b) / spread) if spread > 0 else 0.0

    def _binned(self, name: str, bins: int) -> tuple[Ints, Ints, int]:
        if name in self.codes:
            return self.codes[name]
        a, b = self.numbers[name]
        inner = np.unique(np.quantile(a, np.arange(1, bins) / bins))
        # The upper end belongs to the lower bin, and what lies beyond all that occurs in the original to bins of its own.
        edges = np.unique(np.concatenate([[np.nextafter(a.min(), -np.inf)], inner, [a.max()]]))
        one, other = (np.searchsorted(edges, x, side="left").astype(np.int64) for x in (a, b))
        return one, other, len(edges) + 1


def _variation(one: Ints, other: Ints, levels: int) -> float:
    p, q = (np.bincount(codes, minlength=levels) / len(codes) for codes in (one, other))
    return float(0.5 * np.abs(p - q).sum())


def _two_way(a: tuple[Ints, Ints, int], b: tuple[Ints, Ints, int]) -> float:
    joint: list[Ints] = [one * b[2] + other for one, other in zip(a[:2], b[:2], strict=True)]
    if a[2] * b[2] > 4 * (len(joint[0]) + len(joint[1])):  # more cells than rows to fill them
        both = np.unique(np.concatenate(joint), return_inverse=True)[1].astype(np.int64)
        return _variation(both[: len(joint[0])], both[len(joint[0]) :], int(both.max()) + 1)
    return _variation(joint[0], joint[1], a[2] * b[2])


def _correlated(rows: Floats) -> Floats:
    """Correlations between rows; 0 with a constant one."""
    scale = np.abs(rows).max(axis=1, keepdims=True)
    centred = rows / np.where(scale > 0, scale, 1.0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    is_flat = length <= 1e-12 * np.sqrt(rows.shape[1])
    centred = np.where(is_flat, 0.0, centred / np.where(is_flat, 1.0, length))
    return np.asarray(np.clip(centred @ centred.T, -1.0, 1.0))


# Columns


def is_number(column: Any) -> bool:
    """Whether an Arrow column holds quantities; dictionaries, texts, booleans and dates are categories."""
    import pyarrow as pa

    kind = column.type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def read_numbers(column: Any, name: str) -> Floats:
    """The column as doubles.

    Raises:
        DataError: a missing, infinite or undefined number.
    """
    import pyarrow as pa

    found = np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    if column.null_count or not np.isfinite(found).all():
        raise DataError(
            f"utility: column {name!r} has missing or infinite numbers; leave those rows or the column out."
        )
    return found


def read_codes(one: Any, other: Any) -> tuple[Ints, Ints, int]:
    """Two columns of categories in one coding, by what they look like as text; a missing one is a category of its own.

    Raises:
        Unsupported: a type that has no text.
    """
    import pyarrow as pa

    try:
        chunks = [chunk for column in (one, other) for chunk in plain(column).cast(pa.large_string()).chunks]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise Unsupported(
            "utility: categories are texts, booleans, dates or dictionaries of these."
        ) from None
    coded = pa.chunked_array(chunks, type=pa.large_string()).dictionary_encode("encode").combine_chunks()
    codes = np.asarray(coded.indices, dtype=np.int64)
    return codes[: len(one)], codes[len(one) :], len(coded.dictionary)
