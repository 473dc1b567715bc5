"""Disclosure risk of a published table, in the words of the field: k, l and t, and who could be recognised.

Rows that agree on the stated quasi-identifiers form a *class*; f is a class's size in the published table, F in a population.

| measure | meaning |
|---|---|
| k | rows of the smallest class (k-anonymity; Sweeney 2002) |
| l, distinct | fewest different sensitive values in a class |
| l, entropy | least exp H(sensitive value) within a class (Machanavajjhala et al. 2007) |
| t | largest earth mover's distance from a class's law of the sensitive value to the whole table's (Li et al. 2007) |
| prosecutor | an attacker who knows that a person is in the table: 1/f for each row |
| journalist | one who only knows that the person is in the population: 1/F for each row |
| marketer | share of rows that one who links the whole table is expected to link correctly: Σ over classes of f/F, by rows |

The distance for t: of ordered values with equal steps between m of them, (1/(m − 1)) Σ_i |Σ_{j ≤ i} (p_j − q_j)|; of categories, any
two equally far apart, ½ Σ_i |p_i − q_i|, the total variation. Both are in [0, 1].

Without a population table F is unknown. F ≥ f makes the prosecutor's figures upper ends of the journalist's, and they stand in
for them; ``Risk.words`` says so. These figures are of the published table and can be recomputed from it by anybody; with a
population, from both. They say nothing about what the sensitive column discloses beyond classes: see ``leakage``.

A missing quasi-identifier is a value like others (a suppressed cell agrees with suppressed cells only).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..channels.words import percent
from ..errors import DataError, SpecificationError, unknown
from ..terminal import text_of
from .given import given, plain, widest

if TYPE_CHECKING:
    import pyarrow

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

THRESHOLD = 0.2
_ENTRIES = 1 << 22  # of a block of classes by values


@dataclass(frozen=True)
class Risk:
    """Disclosure risk of one table on stated quasi-identifiers.

    Attributes:
        rows, classes: how many.
        k: rows of the smallest class.
        l: fewest different sensitive values of a class; None without a sensitive column, and so the next three.
        entropy_l: least exp of a class's entropy of the sensitive value.
        t: largest distance of a class to the table.
        is_ordered: whether ``t`` is between ordered values, else between categories.
        prosecutor, journalist: highest risk, average over rows, and the share of rows above ``threshold``.
        marketer: expected share of rows linked correctly.
        has_population: whether the journalist's and marketer's figures are of a population; else they equal the prosecutor's.
        threshold: risk above which a row counts as at risk.
    """

    rows: int
    classes: int
    k: int
    l: int | None  # noqa: E741
    entropy_l: float | None
    t: float | None
    is_ordered: bool
    prosecutor: tuple[float, float, float]
    journalist: tuple[float, float, float]
    marketer: float
    has_population: bool
    threshold: float

    def words(self) -> str:
        """All figures as sentences.

        >>> print(risk_of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])).words())
        4 rows in 2 classes of equal quasi-identifiers. Smallest class: 2 rows (k = 2).
        Sensitive values in a class: at least 1 different (l = 1), entropy l = 1.00; law at most 0.25 from the table's (t, total variation).
        Prosecutor (knows that the person is in the table): at most 50 %, on average 50 %; 100 % of rows above 20 %.
        Journalist (knows the population only): no population given, taken as the prosecutor's, which are upper ends.
        Marketer (links the whole table): 50 % of rows linked correctly on average, an upper end.
        """
        told = [
            f"{self.rows} rows in {self.classes} classes of equal quasi-identifiers. "
            f"Smallest class: {self.k} row{'s' * (self.k != 1)} (k = {self.k})."
        ]
        if self.l is not None and self.entropy_l is not None and self.t is not None:
            distance = "earth mover's distance of ordered values" if self.is_ordered else "total variation"
            told.append(
                f"Sensitive values in a class: at least {self.l} different (l = {self.l}), entropy l = {self.entropy_l:.2f}; "
                f"law at most {self.t:.2f} from the table's (t, {distance})."
            )
        told.append(f"Prosecutor (knows that the person is in the table): {self._figures(self.prosecutor)}.")
        known = "Journalist (knows the population only)"
        if self.has_population:
            told.append(f"{known}: {self._figures(self.journalist)}.")
        else:
            told.append(f"{known}: no population given, taken as the prosecutor's, which are upper ends.")
        end = "" if self.has_population else ", an upper end"
        told.append(
            f"Marketer (links the whole table): {percent(self.marketer)} of rows linked correctly on average{end}."
        )
        return text_of(told)

    def _figures(self, of: tuple[float, float, float]) -> str:
        highest, average, above = of
        return (
            f"at most {percent(highest)}, on average {percent(average)}; "
            f"{percent(above)} of rows above {percent(self.threshold)}"
        )


def risk(
    frame: Any,
    quasi_identifiers: Sequence[str],
    sensitive: str | None = None,
    *,
    order: Sequence[object] | bool | None = None,
    population: Any = None,
    threshold: float = THRESHOLD,
) -> Risk:
    """Risk of a published table.

    Args:
        frame: the table: of pandas, Polars or Arrow, or a dict of columns.
        quasi_identifiers: columns that an attacker may know of a person.
        sensitive: the column whose disclosure counts, without missing values.
        order: for t, the sensitive values from least to greatest (also those that do not occur); True for the order of the values
            themselves; False for categories. None: ordered if the column holds numbers, dates or times.
        population: a frame of everybody with the same quasi-identifiers, the published people among them.
        threshold: a row is at risk above it.

    Raises:
        SpecificationError: no quasi-identifiers, an unknown column, a column that is both, an order with a value twice, a
            threshold outside [0, 1].
        DataError: an empty table; a sensitive value that is missing or not in ``order``; a population in which some class has
            fewer rows than in the table. Names the column, no value.

    >>> people = {"zip": ["12", "12", "34", "34"], "ill": ["flu", "cold", "flu", "flu"]}
    >>> found = risk(people, ["zip"], "ill")
    >>> found.k, found.l, found.t
    (2, 1, 0.25)
    """
    table = given(frame, "risk")
    names = tuple(quasi_identifiers)
    if isinstance(quasi_identifiers, str) or not names or len(set(names)) < len(names):
        raise SpecificationError("quasi_identifiers: a list of at least one column, each once.")
    for name in (*names, *(() if sensitive is None else (sensitive,))):
        if name not in table.column_names:
            raise unknown("risk", "column", name, table.column_names)
    if sensitive in names:
        raise SpecificationError(
            f"sensitive: {sensitive!r} is among the quasi-identifiers; state it as one of the two."
        )
    if not table.num_rows:
        raise DataError("risk: the table has no rows.")
    if population is None:
        classes, sizes = _classes([table], names)[0], None
    else:
        people = given(population, "population")
        for name in names:
            if name not in people.column_names:
                raise unknown("population", "column", name, people.column_names)
            ours, theirs = table.schema.field(name).type, people.schema.field(name).type
            if widest(ours) != widest(theirs):
                raise DataError(
                    f"population: column {name!r} is {theirs} there and {ours} in the table; convert one."
                )
        classes, everybody = _classes([table, people], names)
        found = np.bincount(everybody, minlength=int(classes.max()) + 1)
        sizes = found[np.unique(classes)]
    classes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    if sensitive is None:
        return risk_of(classes, population=sizes, threshold=threshold)
    values, is_ordered, levels = _sensitive(table[sensitive], sensitive, order)
    return risk_of(
        classes, values, is_ordered=is_ordered, levels=levels, population=sizes, threshold=threshold
    )


def risk_of(
    classes: Ints,
    sensitive: Ints | None = None,
    *,
    is_ordered: bool = False,
    levels: int | None = None,
    population: Ints | None = None,
    threshold: float = THRESHOLD,
) -> Risk:
    """The same from codes.

    Args:
        classes: shape (rows,), the class of each row, numbered from 0, each with rows.
        sensitive: shape (rows,), the sensitive value's code, in the order of the values if they are ordered.
        levels: how many sensitive values there are (default: up to the largest code).
        population: shape (classes,), rows of each class in the population.

    Raises:
        SpecificationError: codes that are none; a threshold outside [0, 1].
        DataError: a class with fewer rows in the population than in the table.
    """
    own = _codes(classes, "classes")
    sizes = np.bincount(own)
    if not sizes.all():
        raise SpecificationError("risk.classes: numbered from 0, each with rows.")
    if isinstance(threshold, bool) or not 0 <= threshold <= 1:
        raise SpecificationError("risk.threshold: a number from 0 to 1.")
    rows = len(own)
    by_row = 1.0 / sizes
    prosecutor = _figures(by_row, sizes, threshold)
    journalist = prosecutor
    if population is not None:
        everybody = np.asarray(population)
        if everybody.shape != sizes.shape or everybody.dtype.kind not in "iu":
            raise SpecificationError("risk.population: one whole number for each class.")
        if (everybody < sizes).any():
            raise DataError(
                "population: it lacks rows of the published table; give one that the published people are among."
            )
        journalist = _figures(1.0 / everybody, sizes, threshold)
    distinct = entropy_l = t = None
    if sensitive is not None:
        values = _codes(sensitive, "sensitive")
        if len(values) != rows or (levels is not None and levels <= values.max()):
            raise SpecificationError("risk.sensitive: one code for each row, below the number of levels.")
        distinct, entropy_l, t = _variety(own, values, sizes, is_ordered, levels or int(values.max()) + 1)
    return Risk(
        rows, len(sizes), int(sizes.min()), distinct, entropy_l, t, is_ordered, prosecutor, journalist, journalist[1],
        population is not None, float(threshold),
    )  # fmt: skip


def closeness(own: Floats, whole: Floats, is_ordered: bool) -> Floats:
    """Distance of each class's law to the whole table's, shape (classes,), in [0, 1]; see this module for the two formulas.

    Args:
        own: shape (classes, values), rows are laws.
        whole: shape (values,), a law.

    >>> whole = np.full(9, 1 / 9)
    >>> closeness(np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1]]) / 3, whole, True).round(3).tolist()
    [0.375, 0.167]
    """
    apart = own - whole
    if not is_ordered:
        return np.asarray(0.5 * np.abs(apart).sum(axis=1))
    steps = own.shape[1] - 1
    return np.asarray(np.abs(np.cumsum(apart, axis=1)[:, :-1]).sum(axis=1) / max(1, steps))


def _figures(risks: Floats, sizes: Ints, threshold: float) -> tuple[float, float, float]:
    """Highest, mean over rows, share of rows above the threshold; ``risks`` by class."""
    rows = int(sizes.sum())
    return float(risks.max()), float(risks @ sizes) / rows, float(sizes[risks > threshold].sum()) / rows


def _variety(
    classes: Ints, values: Ints, sizes: Ints, is_ordered: bool, levels: int
) -> tuple[int, float, float]:
    """Least distinct l, least entropy l, and t, over blocks of classes."""
    whole = np.bincount(values, minlength=levels) / len(values)
    order = np.argsort(classes, kind="stable")
    ends = np.concatenate([[0], np.cumsum(sizes)])
    step = max(1, _ENTRIES // levels)
    distinct, entropy, t = levels, np.inf, 0.0
    for start in range(0, len(sizes), step):
        stop = min(start + step, len(sizes))
        part = order[ends[start] : ends[stop]]
        cells = (classes[part] - start) * levels + values[part]
        counts = np.bincount(cells, minlength=(stop - start) * levels).reshape(-1, levels)
        law = counts / sizes[start:stop, None]
        distinct = min(distinct, int((counts > 0).sum(axis=1).min()))
        entropy = min(entropy, -float((law * np.log(np.where(law > 0, law, 1.0))).sum(axis=1).max()))
        t = max(t, float(closeness(law, whole, is_ordered).max()))
    return distinct, float(np.exp(max(0.0, entropy))), t


# Columns


def _classes(tables: Sequence[pyarrow.Table], names: Sequence[str]) -> list[Ints]:
    """The class of each row of each table, the same number for rows that agree on all columns."""
    import pyarrow as pa

    joint = np.zeros(sum(t.num_rows for t in tables), dtype=np.int64)
    for name in names:
        chunks = [chunk for t in tables for chunk in plain(t[name]).chunks]
        codes = _dictionary(pa.chunked_array(chunks, type=widest(tables[0].schema.field(name).type)))[0]
        joint = np.unique(joint * (int(codes.max()) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return list(np.split(joint, np.cumsum([t.num_rows for t in tables])[:-1]))


def _dictionary(column: Any) -> tuple[Ints, Any]:
    """Codes of a column, missing values with one of their own, and the values in the order of the codes."""
    encoded = column.dictionary_encode("encode").combine_chunks()
    return np.asarray(encoded.indices, dtype=np.int64), encoded.dictionary


def _sensitive(column: Any, name: str, order: Sequence[object] | bool | None) -> tuple[Ints, bool, int]:
    """Codes in the order of the values, whether that order counts, and how many values there are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    told = plain(column)
    if told.null_count:
        raise DataError(
            f"sensitive: column {name!r} has missing values; leave those rows out, or give them a value."
        )
    if order is not None and not isinstance(order, bool):
        try:
            listed = pa.array(list(order), type=told.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
            raise SpecificationError(f"order: values of column {name!r}, which holds {told.type}.") from None
        if listed.null_count or len(pc.unique(listed)) < len(listed):
            raise SpecificationError("order: each value once, none missing.")
        at = pc.index_in(told, value_set=listed).combine_chunks()
        if at.null_count:
            raise DataError(f"sensitive: column {name!r} has a value that is not in the order.")
        return np.asarray(at, dtype=np.int64), True, len(listed)
    kind = told.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    is_ordered = (numeric or pa.types.is_temporal(kind)) if order is None else order
    codes, values = _dictionary(told)
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.asarray(pc.sort_indices(values))] = np.arange(len(values))
    return ranks[codes], bool(is_ordered), len(values)


def _codes(values: Ints, where: str) -> Ints:
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size or found.min() < 0:
        raise SpecificationError(f"risk.{where}: one whole number from 0 for each row, at least one row.")
    return found.astype(np.int64)
