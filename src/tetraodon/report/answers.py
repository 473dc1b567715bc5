"""A published table as the charts see it: one axis, and for every group a value and an interval at each of its positions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SpecificationError
from ..presenting import ALL, STATUS
from ..spreadsheets import as_published, escaped
from .document import Entry
from .spots import headings, spot
from .words import clean, listed, short

Floats = NDArray[np.float64]
VALUES = ("value", "lower", "upper")
LONGEST = 60
SPAN = re.compile(r"(-?\d+)–(-?\d+)\Z")
HALF_OPEN = re.compile(r"\[([^,]+), ([^,]+)[)\]]\Z")


@dataclass(frozen=True, eq=False)
class Axis:
    """Positions along which a query runs.

    Attributes:
        title: attribute and unit; empty where there is one position only.
        unit: that unit, or empty.
        labels: published names, special cells (other, missing) last.
        n_ordinary: how many are not special.
        ordered: whether their order has a meaning.
        starts, ends: the ordinary positions as numbers, half-open; None where they are no numbers.
        tops: the last value of each, where a cumulative count is known.
    """

    title: str
    unit: str
    labels: tuple[str, ...]
    n_ordinary: int
    ordered: bool
    starts: Floats | None = None
    ends: Floats | None = None
    tops: Floats | None = None


@dataclass(frozen=True, eq=False)
class Group:
    """Answers of one group, shape (positions,) each.

    Attributes:
        told: published texts of the values where those are labels (quantiles of cells wider than one value).
        hidden: which numbers were suppressed; they stand as 0. None where none were.
        is_total: whether it is the total of other groups.
        decimals: how many all of them are shown with, where they were rounded to a step.
    """

    label: str
    value: Floats
    lower: Floats
    upper: Floats
    told: tuple[str, ...] | None = None
    hidden: NDArray[np.bool_] | None = None
    is_total: bool = False
    decimals: int | None = None

    @property
    def reach(self) -> Floats:
        """The farther end of each interval, seen from its value."""
        found: Floats = np.maximum(self.value - self.lower, self.upper - self.value)
        return found


@dataclass(frozen=True, eq=False)
class View:
    """A release as a chart sees it.

    Attributes:
        measured: what the numbers are, with their unit.
        unit: that unit.
        by: what the groups are called, in words; empty where there is one group.
        along: the attribute of the axis; empty where it is none.
        named: published names of the answers where those are no numbers (quantiles of an ordered list), in order.
    """

    measured: str
    unit: str
    axis: Axis
    by: str
    groups: tuple[Group, ...]
    named: tuple[str, ...] | None = None
    along: str = ""


def view(entry: Entry, domain: Mapping[str, Mapping[str, Any]]) -> View:
    """The published answers of a release, laid out.

    Raises:
        SpecificationError: the file is not the table that the manifest describes.
    """
    return laid_out(entry, columns_of(entry), domain)


def laid_out(entry: Entry, columns: Mapping[str, Any], domain: Mapping[str, Mapping[str, Any]]) -> View:
    """The same, from the columns of a table."""
    by = _texts_of(entry.query.get("by", []))
    body = _texts_of(entry.query[entry.word]) or [""]
    inner = _inner(entry)
    axis_name = None if inner is not None else _axis_name(entry, body)
    columns = _cells(entry, columns)
    every = set(by) | (set(body) if entry.word == "histogram" else set())
    groups = [n for n in entry.attributes if n in every and n != axis_name]
    along = [*groups, *([] if axis_name is None else [axis_name])]
    order = [n for n in entry.attributes if n in along]
    coded = {n: _codes(columns[n]) for n in order}
    shape = [len(coded[n][1]) for n in order] + ([] if inner is None else [inner])
    if prod(shape) != len(columns["value"]):
        raise misfit(entry)
    for i, n in enumerate(order):
        # Every combination must stand there once, in order: then rows are a block, and nothing is looked up.
        expected = np.arange(shape[i]).reshape([-1 if j == i else 1 for j in range(len(shape))])
        if not (coded[n][0].reshape(shape) == expected).all():
            raise misfit(entry)
    named, numbers, texts = _numbers(entry, columns, domain.get(body[0], {}))
    totals = entry.presentation.totals
    is_total = [
        any(n in totals and label == ALL for n, label in zip(groups, told, strict=True))
        for told in product(*(coded[n][1] for n in groups))
    ]
    suppressed = np.isnan(numbers[0])
    numbers = [*(np.where(suppressed, 0.0, v) for v in numbers), suppressed]
    place = {n: i for i, n in enumerate(order)}
    last = len(order) if inner is not None else place[axis_name or ""]
    axes = [*(place[n] for n in groups), last]
    size = shape[last]
    values, lowers, uppers, hidden = (v.reshape(shape).transpose(axes).reshape(-1, size) for v in numbers)
    made = tuple(
        Group(
            short(label, LONGEST),
            values[i],
            lowers[i],
            uppers[i],
            None if texts is None else tuple(short(t, LONGEST) for t in texts[i * size : (i + 1) * size]),
            hidden[i].astype(bool) if hidden[i].any() else None,
            is_total[i],
            entry.presentation.decimals,
        )
        for i, label in enumerate(
            _products([headings(entry.called(n), coded[n][1], domain.get(n, {})) for n in groups])
        )
    )
    if axis_name is not None:
        axis = axis_of(axis_name, coded[axis_name][1], domain.get(axis_name, {}))
        axis = _titled(entry, axis_name, axis)
    else:
        axis = _inner_axis(entry, columns, size)
    units = dict(entry.presentation.units)
    unit = units.get("value", entry.unit)
    if entry.word == "quantiles":
        unit = units.get(body[0], str(domain.get(body[0], {}).get("unit") or ""))
    return View(
        _measured(entry, body[0], unit),
        clean(unit),
        axis,
        clean(listed([entry.called(n) for n in groups])),
        made,
        named,
        axis_name or "",
    )


def _titled(entry: Entry, name: str, axis: Axis) -> Axis:
    """An axis under the name and the unit that its column is shown with."""
    unit = dict(entry.presentation.units).get(name)
    if unit is not None:
        axis = replace(axis, title=clean(f"{name} ({unit})"), unit=clean(unit))
    return axis if entry.called(name) == name else replace(axis, title=clean(entry.called(name)))


def _cells(entry: Entry, columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns of a histogram without its totals, beside which no cell could be seen; totals of others are groups."""
    import pyarrow as pa
    from pyarrow import compute

    totals = [n for n in entry.presentation.totals if n in entry.attributes]
    if entry.word != "histogram" or not totals:
        return columns
    table = pa.table(dict(columns))
    for name in totals:
        table = table.filter(compute.not_equal(table.column(name), ALL))
    return {n: table.column(n).combine_chunks() for n in table.column_names}


def misfit(entry: Entry) -> SpecificationError:
    """The refusal of a file that is not what its manifest says."""
    return SpecificationError(
        f"release {clean(entry.name)!r}: its published file is not the table that the manifest describes."
    )


def _measured(entry: Entry, attribute: str, unit: str) -> str:
    if entry.called("value") != "value":
        return clean(entry.called("value"))
    if entry.word == "quantiles" and entry.called(attribute) != attribute:
        return clean(entry.called(attribute))
    of = {"sum": f"total of {attribute}", "mean": f"mean of {attribute}", "quantiles": attribute}
    if entry.word in of:
        return clean(f"{of[entry.word]} ({unit})" if unit else of[entry.word])
    return clean(unit) or "answer"


def _texts_of(told: Any) -> list[str]:
    return [told] if isinstance(told, str) else [str(n) for n in told]


def columns_of(entry: Entry) -> dict[str, Any]:
    """Columns of the published file as Arrow arrays: attributes as text."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    # Arrow reads from its own memory and in this thread: what is refused half way leaves no thread behind that still reads.
    how, (form, content) = entry.presentation, entry.content
    names = [*entry.attributes, *VALUES, *([] if how.suppress_below is None else [STATUS])]
    try:
        if form == "parquet":
            table = parquet.read_table(pa.BufferReader(content), use_threads=False)
            written = {how.named(n): n for n in names}
        else:
            written = {escaped(how.named(n)): n for n in names}
            # Text that looks like a number is a code: only the answers are read as numbers, and later. Texts are quoted, so
            # that what is empty without quotes is nothing.
            kinds = csv.ConvertOptions(
                column_types=dict.fromkeys(written, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            parse = csv.ParseOptions(newlines_in_values=True)
            alone = csv.ReadOptions(use_threads=False)
            table = csv.read_csv(pa.BufferReader(content), alone, parse_options=parse, convert_options=kinds)
        if set(table.column_names) != set(written) or table.num_rows != entry.rows:
            raise misfit(entry)
        columns = {written[n]: table.column(n).combine_chunks() for n in table.column_names}
        texts = {n: c.cast(pa.string()) for n, c in columns.items() if n not in VALUES}
        return columns | ({n: as_published(c) for n, c in texts.items()} if form == "csv" else texts)
    except pa.ArrowException:
        raise misfit(entry) from None


def _codes(column: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Number of each label in order of first appearance, and the labels."""
    encoded = column.dictionary_encode()
    if hasattr(encoded, "combine_chunks"):
        encoded = encoded.combine_chunks()
    return np.asarray(encoded.indices), tuple(str(v) for v in encoded.dictionary.to_pylist())


def _inner(entry: Entry) -> int | None:
    """How many answers every group has, for queries that do not run along an attribute."""
    query = entry.query
    if entry.word in ("sum", "mean"):
        return 1
    if entry.word == "kmeans":
        return entry.rows
    listed_under = {"quantiles": "levels", "linear": "matrix", "ranges": "of"}.get(entry.word)
    found = query.get(listed_under) if listed_under else None
    if listed_under and not isinstance(found, str):
        if not isinstance(found, list) or not found:
            raise misfit(entry)
        return len(found)
    return None


def _axis_name(entry: Entry, body: Sequence[str]) -> str:
    known = [n for n in body if n in entry.attributes]
    if not known:
        raise misfit(entry)
    return entry.axis if entry.axis in known and entry.axis is not None else known[-1]


def _numbers(
    entry: Entry, columns: Mapping[str, Any], spec: Mapping[str, Any]
) -> tuple[tuple[str, ...] | None, list[Floats], list[str] | None]:
    """value, lower, upper as numbers. Where they are labels of an attribute: names in order, if those are no numbers,
    and the published texts of the values."""
    import pyarrow as pa

    try:
        return None, [np.asarray(columns[n].cast(pa.float64()), dtype=np.float64) for n in VALUES], None
    except pa.ArrowException:
        if entry.word != "quantiles":
            raise misfit(entry) from None
    texts = [[str(v) for v in columns[n].to_pylist()] for n in VALUES]
    every = sorted(set().union(*texts))
    spans = _spans(every, spec)
    if spans is not None:
        middle = dict(zip(every, (spans[0] + spans[1] - ("integer" in spec)) / 2, strict=True))
        return None, [np.array([middle[t] for t in column]) for column in texts], texts[0]
    values = [str(v) for v in spec.get("categorical", [])]
    # A bin of an ordered list is called after its ends ("low–high") and stands where it starts.
    rank = {
        t: min([i for i, v in enumerate(values) if t == v or t.startswith(f"{v}–")], default=len(values))
        for t in every
    }
    # All that are declared, if that is not too many, so that the scale shows what was possible.
    shown = values if len(values) <= 12 and set(every) <= set(values) else every
    named = tuple(shown if shown is values else sorted(every, key=lambda t: (rank[t], t)))
    at = {t: float(i) for i, t in enumerate(named)}
    return tuple(short(t, LONGEST) for t in named), [np.array([at[t] for t in c]) for c in texts], texts[0]


def axis_of(name: str, labels: tuple[str, ...], spec: Mapping[str, Any]) -> Axis:
    """The axis of an attribute, from the published names of its cells."""
    special = [str(spec["other"])] if "other" in spec else []
    if spec.get("missing", "refuse") != "refuse":
        special.append("missing")
    n = len(labels)
    while n > 0 and special and labels[n - 1] in special:
        special.remove(labels[n - 1])
        n -= 1
    unit = str(spec.get("unit") or "")
    title = f"{name} ({unit})" if unit else name
    ordered = "categorical" not in spec or bool(spec.get("ordered"))
    spans = _spans(labels[:n], spec)
    told = tuple(short(spot(label, spec), LONGEST) for label in labels)
    if spans is None:
        return Axis(clean(title), clean(unit), told, n, ordered)
    starts, ends = spans
    return Axis(clean(title), clean(unit), told, n, ordered, starts, ends, ends - ("integer" in spec))


def _spans(labels: Sequence[str], spec: Mapping[str, Any]) -> tuple[Floats, Floats] | None:
    """Labels of a numeric attribute as half-open intervals."""
    if not labels or not ("integer" in spec or "numeric" in spec):
        return None
    found = []
    for label in labels:
        run, cell = SPAN.match(label), HALF_OPEN.match(label)
        try:
            if "integer" in spec:
                low, high = run.groups() if run else (label, label)
                found.append((float(int(low)), float(int(high)) + 1))
            elif cell:
                found.append((float(Fraction(cell[1])), float(Fraction(cell[2]))))
            else:
                return None
        except (ValueError, ZeroDivisionError, OverflowError):
            return None
    array = np.array(found)
    return array[:, 0], array[:, 1]


def _inner_axis(entry: Entry, columns: Mapping[str, Any], size: int) -> Axis:
    if entry.word in ("sum", "mean"):
        return Axis("", "", ("",), 1, True)
    if entry.word == "quantiles":
        levels = [f"{100 * float(v):.3g} %" for v in columns["level"].slice(0, size).to_pylist()]
        return Axis("share of the records below", "", tuple(levels), size, True)
    if entry.word == "ranges":
        attribute = str(entry.query["ranges"])
        ends = [columns[f"{attribute}_{end}"].slice(0, size).to_pylist() for end in ("from", "to")]
        return Axis(
            clean(attribute),
            "",
            tuple(short(f"{a} to {b}", LONGEST) for a, b in zip(*ends, strict=True)),
            size,
            True,
        )
    if entry.word == "kmeans":
        told = [[f"{float(v):.6g}" for v in columns[n].to_pylist()] for n in entry.attributes]
        names = ", ".join(entry.attributes)
        return Axis(
            clean(names),
            "",
            tuple(short(", ".join(c), LONGEST) for c in zip(*told, strict=True)),
            size,
            False,
        )
    return Axis("row", "", tuple(f"row {i + 1}" for i in range(size)), size, False)


def _products(labels: Sequence[Sequence[str]]) -> list[str]:
    found = [""]
    for column in labels:
        found = [f"{a} · {b}" if a else b for a in found for b in column]
    return found
