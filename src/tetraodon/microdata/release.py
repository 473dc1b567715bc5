"""Released microdata: rows drawn once, their groups, and what was measured on the way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..attributes import Categorical, Point
from ..axes import Ints
from ..channels.outputs import Output, narrow
from ..domain import Domain
from ..errors import Unsupported
from ..loss import Loss
from ..noise import shuffled
from ..sensitivity import Sensitivity
from .audit import write_audit
from .data import labels_of
from .declared import Read, named_sides, range_label
from .settings import Hybrid
from .strategy import Exchanged, HybridStrategy, columns_text

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from .drawing import Drawn
    from .features import Features
    from .plan import Plan


@dataclass(frozen=True, eq=False)
class Published:
    """A group of a private column, as its rows show it.

    Attributes:
        label: what stands in the rows.
        values: which values it stands for.
        rows: how many published rows have it.
    """

    label: str
    values: tuple[str, ...]
    rows: int


@dataclass(frozen=True, eq=False, repr=False)
class MicrodataRelease:
    """Whole rows. Reading them again gives the same rows: they were drawn once.

    Attributes:
        name: what the ledger calls it.
        strategy: what was run.
        table: a row for every record, in random order: groups of the private columns, exchanged columns, classes of the
            quasi-identifiers.
        groups: of each private column, by the column's published name.
        total: number of records.
        charge: number of the ledger row that holds it.
        context: what the session says about data, policy and budget.
        plan: groups, channels and figures. Private.
        realised: mean distance between what rows hold and what is published in their place, of this draw. Private.
        publishes_evidence: whether what is computed from private rows is written beside the release.
        audit: the private file that the applied mapping was written to, if any.
        mapping: where each row went and what it was given, kept where evidence is to be published. Private.
    """

    name: str
    strategy: HybridStrategy
    table: pyarrow.Table
    groups: Mapping[str, tuple[Published, ...]]
    total: int
    charge: int
    context: Mapping[str, Any]
    plan: Plan
    realised: float
    publishes_evidence: bool = False
    audit: Path | None = None
    mapping: pyarrow.Table | None = None

    considered = ()
    guarantee = "measured"

    @property
    def query(self) -> Hybrid:
        """What was asked, with the exchanged columns by name."""
        return self.strategy.query

    @property
    def mechanism(self) -> Exchanged:
        """What was run, by name."""
        return self.strategy.mechanism

    @property
    def spent(self) -> Loss:
        """What was charged: nothing."""
        return self.strategy.spent

    @property
    def cost(self) -> Sensitivity:
        """No bound is proved."""
        return self.strategy.cost

    def disclosures(self) -> list[str]:
        """What left without a proved bound."""
        return self.strategy.disclosed()

    def to_arrow(self) -> pyarrow.Table:
        """The published rows."""
        return self.table

    def to_frame(self) -> pandas.DataFrame:
        """``to_arrow()`` as a pandas frame."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise Unsupported("to_frame: needs pandas; install it or use to_arrow().") from None
        return self.table.to_pandas()

    def save(self, folder: str | os.PathLike[str], formats: Sequence[str] = ("parquet",)) -> Path:
        """Write the rows, what their groups stand for and a manifest to a folder; returns the manifest's path.

        Raises:
            OutputError: the folder holds the audit file, or cannot be written.
        """
        from ..publish import publish

        found: Path = publish(Path(folder), [(self, tuple(formats))], self.context)
        return found

    def __repr__(self) -> str:
        moved = columns_text(len(self.query.insensitive))
        private = ", ".join(self.query.private)
        return f"MicrodataRelease {self.name!r}: {private} generalised, {moved} exchanged, no proved bound"


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows as they leave, with what they were drawn from. Private but for ``table`` and ``groups``."""

    table: pyarrow.Table
    groups: Mapping[str, tuple[Published, ...]]
    realised: float
    plan: Plan
    drawn: Drawn
    order: Ints

    @cached_property
    def mapping(self) -> pyarrow.Table:
        """For each row of the source, in its order, from 0: where it went and what it was given."""
        return _mapping(self.plan, self.drawn, self.order)


def rows_of(strategy: HybridStrategy, read: Read, plan: Plan) -> Rows:
    """Draw every row once and put all of them into a random order.

    Raises:
        Refused: the drawn rows do not meet the requirements.
    """
    import pyarrow as pa

    from .drawing import drawn

    found = drawn(plan, read.data)
    [order] = shuffled(np.arange(read.data.rows, dtype=np.int64))
    domain, columns, groups = strategy.domain, dict[str, Any](), dict[str, tuple[Published, ...]]()
    labels = [[g.label for g in own] for own in plan.groups]
    for column, own, told, at in zip(plan.columns, plan.groups, labels, found.groups, strict=True):
        name = column_of(domain, column.name)
        columns[name] = _coded(at[order], told)
        counts = np.bincount(at, minlength=len(own))
        groups[name] = tuple(
            Published(label, tuple(column.labels[m] for m in group.members.tolist()), int(n))
            for label, group, n in zip(told, own, counts, strict=True)
        )
    if found.donors is None:
        columns |= _typical(strategy, plan, found.clusters[order])
    else:
        givers = found.donors[order]
        for name in strategy.query.insensitive:
            attribute = domain[name]
            output = Output(attribute, attribute.columns(name), 0)
            columns |= dict(output.arrays(read.cells[name][givers]))
    columns |= _classes(strategy, read, order)
    shown = [c for name, a in domain.items() for c in (*a.columns(name), name) if c in columns]
    columns = {c: columns[c] for c in shown}  # in the order of the domain
    return Rows(pa.table(columns), groups, found.realised, plan, found, order)


def write_mapping(path: Path, rows: Rows) -> None:
    """Write the applied mapping to a private file."""
    write_audit(path, rows.mapping)


def column_of(domain: Domain, name: str) -> str:
    """The published column of a private attribute: the table's own, or for a place, which has two, the attribute's name."""
    attribute = domain[name]
    return name if isinstance(attribute, Point) else attribute.columns(name)[0]


def _coded(places: NDArray[np.signedinteger[Any]], labels: Sequence[str]) -> Any:
    """A column of labels, dictionary-encoded over all of them in their order."""
    import pyarrow as pa

    index = pa.array(places.astype(narrow(len(labels))))
    return pa.DictionaryArray.from_arrays(index, pa.array(labels, pa.string()))


def _typical(strategy: HybridStrategy, plan: Plan, clusters: Ints) -> dict[str, Any]:
    """The exchanged columns where prototypes are published: numbers as means, categories as their most frequent value."""
    import pyarrow as pa

    made: Features = plan.prepared.clusters.prototypes
    found: dict[str, Any] = {}
    for name in strategy.query.insensitive:
        attribute = strategy.domain[name]
        if isinstance(attribute, Point):
            for column, side, scale in zip(
                attribute.columns(name), attribute.sides, attribute.scale, strict=True
            ):
                lengths = made.numbers[:, made.number_names.index(column)]
                found[column] = pa.array((float(side.low) + lengths / float(scale))[clusters])
        elif isinstance(attribute, Categorical):
            cells = made.codes[:, made.code_names.index(name)].astype(np.int64)
            output = Output(attribute, attribute.columns(name), 0)
            found |= dict(output.arrays(cells[clusters]))
        else:
            numbers = made.numbers[:, made.number_names.index(name)]
            found[attribute.columns(name)[0]] = pa.array(numbers[clusters])
    return found


def _classes(strategy: HybridStrategy, read: Read, order: Ints) -> dict[str, Any]:
    """The quasi-identifiers: of each row the range of cells of its class."""
    if read.classes is None:
        return {}
    domain = strategy.domain
    sides = [s for name in strategy.query.quasi_identifiers for s in named_sides(name, domain[name])]
    found = {}
    for at, (column, attribute) in enumerate(sides):
        lows, highs = read.classes.lows[:, at], read.classes.highs[:, at]
        pairs, place = np.unique(np.stack([lows, highs], axis=1), axis=0, return_inverse=True)
        labels = labels_of([range_label(attribute, int(low), int(high)) for low, high in pairs])
        found[column] = _coded(np.ravel(place)[read.classes.labels[order]], labels)
    return found


def _mapping(plan: Plan, found: Drawn, order: Ints) -> pyarrow.Table:
    import pyarrow as pa

    rows = len(order)
    published = np.empty(rows, dtype=np.int64)
    published[order] = np.arange(rows)
    made = {"row": pa.array(np.arange(rows)), "published_row": pa.array(published)}
    labels = [[g.label for g in own] for own in plan.groups]
    for column, told, at in zip(plan.columns, labels, found.groups, strict=True):
        made[f"group:{column.name}"] = _coded(at, told).dictionary_decode()
    made["cluster"] = pa.array(found.clusters)
    if found.donors is not None:
        made["donor_row"] = pa.array(found.donors)
    return pa.table(made)
