"""A request for microdata against a declared domain: what the columns are, and their rows as the optimisers take them.

All that a plan needs is decided from declarations: values and their order, ranges of numbers, hierarchies. The rows are read once,
each as its declared cells, so that what is published later are values of declared cells and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attributes import Attribute, Categorical, Integer, Numeric, Point
from ..axes import Ints
from ..channels.outputs import narrow
from ..domain import Domain
from ..errors import SpecificationError
from ..exact import show
from ..table import Table
from .classes import Classes, classes_of
from .data import Data, Kind, PrivateColumn
from .features import Deferred, Features, Floats
from .settings import Hybrid

MOST_VALUES = 100_000  # of one private column
MOST_JOINT = 10**7
SHAPE_OF: Mapping[str, tuple[Kind, ...]] = {
    "intervals": ("ordered",), "tree": ("tree",), "rectangles": ("grid",), "curve": ("grid",),
}  # fmt: skip
NEEDS = {
    "intervals": "an order (numbers, or ordered = true)",
    "tree": "a hierarchy",
    "rectangles": "places (a Point)",
    "curve": "places (a Point)",
}


@dataclass(frozen=True, eq=False)
class Layout:
    """A request with the columns that it names, as declared. Nothing in it is private.

    Attributes:
        settings: with the exchanged columns by name.
        domain: of all columns that are read.
        private: the private columns.
    """

    settings: Hybrid
    domain: Domain
    private: tuple[PrivateColumn, ...]

    @staticmethod
    def of(settings: Hybrid, domain: Domain) -> Layout:
        """Check a request against the declared domain.

        Raises:
            SpecificationError: a column that is not declared, or that the request cannot use as it is declared.

        >>> people = Domain(age=Integer(17, 90), hours=Integer(0, 99))
        >>> Layout.of(Hybrid("age", ["hours"], distortion="0.1", groups=4), people).private[0].kind
        'ordered'
        """
        named = settings.named(domain.names)
        columns = tuple(private_column(name, domain[name], named.generalise) for name in named.private)
        if prod(c.size for c in columns) > MOST_JOINT:
            raise SpecificationError(
                "hybrid.private: more than 10^7 joint values of these columns; declare coarser cells, or fewer columns."
            )
        for name in named.insensitive:
            attribute = domain[name]
            if attribute.size != attribute.n_values and not isinstance(attribute, Categorical):
                raise SpecificationError(
                    f"hybrid.insensitive: {name!r} is a number or a place with a cell for missing values, which have no distance "
                    "from others; declare missing = 'refuse', or leave the column out."
                )
        for name in named.quasi_identifiers:
            if isinstance(domain[name], Point) and domain[name].size != domain[name].n_values:
                raise SpecificationError(
                    f"hybrid.quasi_identifiers: {name!r} is a place with a cell for missing values; declare missing = 'refuse'."
                )
        _check_metric(domain, named)
        own = domain.select(*{*named.private, *named.insensitive, *named.quasi_identifiers})
        _check_columns(own)
        return Layout(named, own, columns)


def _check_metric(domain: Domain, settings: Hybrid) -> None:
    """Refuse what a metric cannot compare, by what is declared."""
    if settings.metric != "jensen-shannon":
        return
    for name in settings.insensitive:
        attribute = domain[name]
        if isinstance(attribute, Categorical) and not is_number(attribute, settings):
            raise SpecificationError(
                f"hybrid.metric: 'jensen-shannon' compares counts, and {name!r} holds categories; use 'gower' for mixed columns."
            )
        if not isinstance(attribute, Point) and numbers_of(attribute).min() < 0:
            raise SpecificationError(
                f"hybrid.metric: 'jensen-shannon' compares counts, and {name!r} may be below 0; use 'gower' or 'euclidean'."
            )


def _check_columns(domain: Domain) -> None:
    """Refuse two attributes over one column: what one generalises the other would let out."""
    held: dict[str, str] = {}
    for name, attribute in domain.items():
        shown = {*attribute.columns(name), *([name] if isinstance(attribute, Point) else [])}
        for column in shown:
            if column in held:
                raise SpecificationError(
                    f"hybrid: {held[column]!r} and {name!r} are both of the column {column!r}; name one of them."
                )
        held |= dict.fromkeys(shown, name)


@dataclass(frozen=True, eq=False, repr=False)
class Read:
    """The rows. Private.

    Attributes:
        data: as the optimisers take them.
        cells: the declared cell of each row, by attribute.
        classes: of the quasi-identifiers, if there are any.
    """

    data: Data
    cells: Mapping[str, NDArray[np.signedinteger[Any]]]
    classes: Classes | None


def data_of(table: Table, settings: Hybrid, domain: Domain) -> Data:
    """The declared columns of a table, as the optimisers take them. Private.

    Raises:
        SpecificationError: as ``Layout.of``.
        DataError: a value where none may be missing; shows no value.
        Refused: fewer rows than one class of quasi-identifiers needs.
    """
    return read(table, Layout.of(settings, domain)).data


def read(table: Table, layout: Layout) -> Read:
    """The rows of a table, each as its cells, in the order in which they stand in a file or a frame.

    Batch by batch, and only the columns that are named; what is held are a few bytes for each cell, since any row can be the
    donor of another.
    """
    domain, settings = layout.domain, layout.settings
    parts: dict[str, list[NDArray[np.signedinteger[Any]]]] = {name: [] for name in domain}
    for told in table.cells(*domain.names, ordered=True):
        for name, attribute in domain.items():
            parts[name].append(told.pop(name).astype(narrow(attribute.size)))
    cells = {name: np.concatenate(parts.pop(name)) for name in domain}
    rows = len(next(iter(cells.values())))
    classes, labels = None, np.zeros(rows, dtype=np.int64)
    if settings.quasi_identifiers:
        sides = [s for name in settings.quasi_identifiers for s in sides_of(domain[name], cells[name])]
        classes = classes_of([c for c, _ in sides], [size for _, size in sides], settings.class_size)
        labels = classes.labels
    private = tuple(cells[c.name].astype(np.int64) for c in layout.private)

    def part(chosen: Ints) -> Features:
        return features_of(domain, settings, {name: own[chosen] for name, own in cells.items()})

    is_large = settings.sample is not None and rows > settings.sample
    features = Deferred(rows, part) if is_large else features_of(domain, settings, cells)
    return Read(Data(features, layout.private, private, labels), cells, classes)


# Private columns


def private_column(name: str, attribute: Attribute, generalise: str = "auto") -> PrivateColumn:
    """A private column's values, with what groups they may form.

    Args:
        generalise: what the request says of groups: a hierarchy is used where there is one, unless it asks for intervals.

    Raises:
        SpecificationError: a cell for other or missing values among ordered ones, places or a hierarchy; too many values; a
            kind of group that the column cannot form.

    >>> private_column("size", Integer(0, 9, step=5)).label(np.array([0, 1]), 0)
    '0–9'
    """
    kind = _kind(attribute, generalise)
    wanted = SHAPE_OF.get(generalise)
    if wanted is not None and kind not in wanted:
        raise SpecificationError(
            f"hybrid.generalise: {generalise!r} needs {NEEDS[generalise]}, which {name!r} does not have; leave it at 'auto'."
        )
    if attribute.size > MOST_VALUES:
        raise SpecificationError(
            f"hybrid.private: {name!r} has more than 100,000 declared cells; declare coarser ones."
        )
    if kind != "plain" and attribute.size != attribute.n_values:
        raise SpecificationError(
            f"hybrid.private: {name!r} has a cell for other or missing values, which has no place among the others; declare it "
            "without, or as plain categories without order and hierarchy."
        )
    labels = tuple(attribute.label(cell) for cell in range(attribute.size))
    if isinstance(attribute, Point):
        return PrivateColumn(
            name, labels, kind, is_declared=True, numbers=places(attribute), shape=attribute.shape
        )
    if kind == "tree":
        assert isinstance(attribute, Categorical)
        return PrivateColumn(name, labels, kind, is_declared=True, parents=dict(attribute.parents))
    if kind == "plain":
        return PrivateColumn(name, labels, kind, is_declared=True)
    return PrivateColumn(
        name, labels, kind, is_declared=True, numbers=numbers_of(attribute), ends=ends_of(attribute)
    )


def _kind(attribute: Attribute, generalise: str) -> Kind:
    if isinstance(attribute, Point):
        return "grid"
    if isinstance(attribute, Categorical):
        if attribute.parents and not (attribute.ordered and generalise == "intervals"):
            return "tree"
        return "ordered" if attribute.ordered else "plain"
    return "ordered"


def numbers_of(attribute: Attribute) -> Floats:
    """A number for each ordinary cell of an ordered attribute: the middle of the cell, or the step along the declared order.

    >>> numbers_of(Integer(0, 9, step=5)).tolist(), numbers_of(Categorical(["s", "m", "l"], ordered=True)).tolist()
    ([2.0, 7.0], [0.0, 1.0, 2.0])
    """
    if isinstance(attribute, Integer | Numeric):
        numerators, denominator = attribute.midpoints()
        return np.array(numerators, dtype=np.float64) / denominator
    return np.arange(attribute.n_values, dtype=np.float64)


def places(point: Point) -> Floats:
    """Middles of the cells of a place, in its unit from the low corner of the box, shape (cells, 2).

    >>> places(Point("x", "y", box=((0, 2), (0, 1)), cell=1, metric="planar")).tolist()
    [[0.5, 0.5], [1.5, 0.5]]
    """
    sides = [
        (np.arange(n) + 0.5) * float(length) for n, length in zip(point.shape, point.lengths, strict=True)
    ]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)


def ends_of(attribute: Attribute) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """How an interval's first and last cell are written, where a cell holds more than one number; None where each is one.

    >>> ends_of(Integer(0, 9, step=5)), ends_of(Integer(0, 9))
    ((('0', '5'), ('4', '9')), None)
    """
    cells = range(attribute.n_values)
    if isinstance(attribute, Integer) and attribute.step > 1:
        starts = [attribute.low + c * attribute.step for c in cells]
        lasts = [min(s + attribute.step - 1, attribute.high) for s in starts]
        return tuple(map(str, starts)), tuple(map(str, lasts))
    if isinstance(attribute, Numeric):
        bounds = [show(attribute.low + c * attribute.width) for c in range(attribute.n_values + 1)]
        return tuple(bounds[:-1]), tuple(bounds[1:])
    return None


# Exchanged columns


def is_number(attribute: Attribute, settings: Hybrid) -> bool:
    """Whether an exchanged column enters distances as a number: numbers do, and steps along an order of categories without
    special cells; not where prototypes are published, since a mean of steps is no category."""
    if isinstance(attribute, Categorical):
        return attribute.ordered and attribute.size == attribute.n_values and settings.published == "donors"
    return not isinstance(attribute, Point)


def features_of(
    domain: Domain, settings: Hybrid, cells: Mapping[str, NDArray[np.signedinteger[Any]]]
) -> Features:
    """The exchanged columns as numbers and codes, with declared ranges and categories, never those of the rows.

    Places are two numbers, in the attribute's unit. Categories are codes of their declared cells, the special ones included.
    """
    import pyarrow as pa

    names: list[str] = []
    numbers: list[tuple[str, Floats, float, float]] = []
    codes: list[tuple[str, NDArray[np.int32], list[str]]] = []
    for name in settings.insensitive:
        attribute, own = domain[name], cells[name]
        if isinstance(attribute, Point):
            split = np.divmod(own.astype(np.int64), attribute.shape[1])
            for column, side, length, n in zip(
                attribute.columns(name), split, attribute.lengths, attribute.shape, strict=True
            ):
                middles = np.arange(0.5, n) * float(length)
                numbers.append((column, middles[side], 0.0, n * float(length)))
                names.append(column)
            continue
        names.append(name)
        if is_number(attribute, settings):
            told = numbers_of(attribute)
            low, high = (
                (float(attribute.low), float(attribute.high))
                if isinstance(attribute, Integer | Numeric)
                else (told[0], told[-1])
            )
            numbers.append((name, told[own], low, high - low))
        else:
            labels = [attribute.label(c) for c in range(attribute.size)]
            codes.append((name, own.astype(np.int32), labels))
    rows = len(next(iter(cells.values())))
    return Features(
        names=tuple(names),
        number_names=tuple(n for n, *_ in numbers),
        code_names=tuple(n for n, *_ in codes),
        numbers=_fixed(_side_by_side([n[1] for n in numbers], rows, np.float64)),
        codes=_fixed(_side_by_side([c[1] for c in codes], rows, np.int32)),
        low=_fixed(np.array([n[2] for n in numbers], dtype=np.float64)),
        ranges=_fixed(np.array([n[3] for n in numbers], dtype=np.float64)),
        categories=tuple(pa.array(c[2], pa.string()) for c in codes),
    )


def _side_by_side(columns: Sequence[NDArray[Any]], rows: int, kind: type) -> NDArray[Any]:
    made: NDArray[Any] = np.empty((rows, len(columns)), dtype=kind)
    for at, column in enumerate(columns):
        made[:, at] = column
    return made


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


# Quasi-identifiers


def sides_of(attribute: Attribute, cells: NDArray[np.signedinteger[Any]]) -> list[tuple[Ints, int]]:
    """A quasi-identifier as columns that classes may cut, with their numbers of cells: a place is two of them."""
    whole = cells.astype(np.int64)
    if isinstance(attribute, Point):
        rows, columns = np.divmod(whole, attribute.shape[1])
        return [(rows, attribute.shape[0]), (columns, attribute.shape[1])]
    return [(whole, attribute.size)]


def named_sides(name: str, attribute: Attribute) -> list[tuple[str, Attribute]]:
    """The published columns of a quasi-identifier, in the order of ``sides_of``."""
    if isinstance(attribute, Point):
        return list(zip(attribute.columns(name), attribute.sides, strict=True))
    return [(attribute.columns(name)[0], attribute)]


def range_label(attribute: Attribute, low: int, high: int) -> str:
    """What is published for the cells from one to another.

    >>> range_label(Integer(17, 90), 0, 7), range_label(Categorical(["f", "m"], other="else"), 1, 2)
    ('17–24', 'm, else')
    """
    last = min(high, attribute.n_values - 1)
    special = [attribute.label(c) for c in range(max(low, attribute.n_values), high + 1)]
    if low > last:
        return ", ".join(special)
    if attribute.ordered:
        ends = ends_of(attribute)
        first, final = (
            (ends[0][low], ends[1][last]) if ends else (attribute.label(low), attribute.label(last))
        )
        return ", ".join([first if first == final else f"{first}–{final}", *special])
    shown = [attribute.label(c) for c in range(low, last + 1)]
    if len(shown) > 12:
        shown = [shown[0], "…", f"{shown[-1]} ({len(shown)} values in declared order)"]
    return ", ".join([*shown, *special])
