"""Secrets: discriminative secret graphs over a declared domain.

An edge (x, y) says that "this record is x" and "this record is y" must not be told apart, up to e^ε. The public classes
(``Full`` … ``Nothing``) are declarations; ``bind`` turns one into a ``Graph`` over a ``Domain``.

Special cells: a ``missing="secret"`` cell is joined to every cell of its attribute, a ``missing="public"`` one to none.
An ``other`` cell is one more value of its attribute; it has no place in an order, so under ``Within`` it is joined to
every value, as it is under a ``Partition`` that does not name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from .axes import Axis, Bools, Ints
from .balls import Ball
from .domain import Domain
from .errors import SpecificationError, Unsupported
from .exact import Number, exact, plain, show
from .metrics import L1, L2, Discrete, Haversine, Metric
from .reading import kind_of, listed, name_or_none, single, table

LISTABLE = 2**22


@dataclass(frozen=True)
class Full:
    """Any two values are secret from each other (bounded differential privacy).

    >>> Full().to_spec()
    'full'
    """

    def to_spec(self) -> Any:
        return "full"


@dataclass(frozen=True)
class Nothing:
    """No secret at all: every value may be disclosed.

    >>> Nothing().to_spec()
    'nothing'
    """

    def to_spec(self) -> Any:
        return "nothing"


@dataclass(frozen=True)
class Within:
    """Two values at most ``theta`` apart are secret from each other.

    Args:
        theta: a distance in the attribute's unit (steps for an ordered ``Categorical``), or text such as "100 USD" or
            "5 km".
        on: the attribute; may be left out where there is only one.
        metric: ``L1`` or ``L2`` (with a weight for the attribute, or for several: the distance of whole records, of
            which the attributes not named may not differ), ``Discrete`` or, for places, ``Haversine``. A place is
            measured in local lengths, as the crow flies (``L2``), unless told otherwise.

    Two *cells* are joined if some pair of values in them is within ``theta`` (docs/policies.md).

    >>> Within(100, on="capital_loss").to_spec()
    {'within': '100', 'on': 'capital_loss'}
    """

    theta: Number
    on: str | None = None
    metric: Metric | None = None

    def __post_init__(self) -> None:
        if isinstance(self.theta, str) and " " in self.theta.strip():
            theta: Number = " ".join(self.theta.split())
        else:
            number = exact(self.theta, "Within")
            theta = number.numerator if number.denominator == 1 else number
        name_or_none(self.on, "Within.on")
        if self.metric is not None and not isinstance(self.metric, L1 | L2 | Discrete | Haversine):
            raise SpecificationError(
                f"Within.metric: L1, L2, Discrete or Haversine, not {kind_of(self.metric)}."
            )
        object.__setattr__(self, "theta", theta)

    def to_spec(self) -> Any:
        theta = self.theta if isinstance(self.theta, str) else show(exact(self.theta, "Within"))
        spec: dict[str, Any] = {"within": theta}
        if self.on is not None:
            spec["on"] = self.on
        if self.metric is not None:
            spec["metric"] = self.metric.to_spec()
        return spec


@dataclass(frozen=True)
class Partition:
    """Values of one block are secret from each other; the block itself is not secret.

    Args:
        blocks: number of equal runs of cells, for one attribute or per attribute ({"lat": 16, "lon": 16}); for a place
            a pair, blocks of rows × blocks of columns ({"home": (8, 12)}), or one number for both. Attributes
            not named are not cut, so any two of their values are secret from each other. Cell j of n lies in run
            ⌊j·blocks/n⌋, so that lengths differ by at most one; more blocks than cells make every cell its own.
        by: block label of every declared value (of every tuple of values, for several attributes), as a mapping, or as
            a sequence in cell order.
        on: the attribute that ``by`` speaks of, where the domain has several.

    >>> Partition(blocks={"age": 4}).to_spec()
    {'partition': {'blocks': {'age': 4}}}
    """

    blocks: int | Cut | tuple[tuple[str, int | Cut], ...] | None = None
    by: tuple[tuple[Any, Any], ...] | tuple[Any, ...] | None = None
    on: str | None = None
    is_mapping: bool = True

    def __init__(
        self,
        blocks: int | tuple[int, int] | Mapping[str, int | tuple[int, int]] | None = None,
        *,
        by: Mapping[Any, Any] | Sequence[Any] | None = None,
        on: str | None = None,
    ) -> None:
        if (blocks is None) == (by is None):
            raise SpecificationError("Partition: give either blocks or by.")
        if isinstance(blocks, Mapping):
            blocks_told: Any = tuple((str(n), _count(k, f"Partition.blocks.{n}")) for n, k in blocks.items())
        else:
            blocks_told = None if blocks is None else _count(blocks, "Partition.blocks")
        if isinstance(by, Mapping):
            by_told: Any = tuple((_value(k, "Partition.by"), _label(v)) for k, v in by.items())
        elif by is None:
            by_told = None
        else:
            expected = "a table from values to blocks, or a list of blocks in cell order"
            by_told = tuple(_label(v) for v in listed(by, "Partition.by", expected))
        name_or_none(on, "Partition.on")
        object.__setattr__(self, "blocks", blocks_told)
        object.__setattr__(self, "by", by_told)
        object.__setattr__(self, "on", on)
        object.__setattr__(self, "is_mapping", by is None or isinstance(by, Mapping))

    def to_spec(self) -> Any:
        inner: dict[str, Any] = {}
        if self.blocks is not None:
            inner["blocks"] = (
                {n: _told(k) for n, k in self.blocks}
                if isinstance(self.blocks, tuple)
                else _told(self.blocks)
            )
        if self.by is not None:
            inner["by"] = (
                [[list(k) if isinstance(k, tuple) else k, v] for k, v in self.by]
                if self.is_mapping
                else {"cells": list(self.by)}
            )
        if self.on is not None:
            inner["on"] = self.on
        return {"partition": inner}


@dataclass(frozen=True)
class Edges:
    """Exactly these pairs of values are secret (of one attribute, or tuples of values over the whole domain).

    >>> Edges([("flu", "cold")], on="illness").to_spec()
    {'edges': [['flu', 'cold']], 'on': 'illness'}
    """

    pairs: tuple[tuple[Any, Any], ...]
    on: str | None = None

    def __init__(self, pairs: Sequence[tuple[Any, Any]], on: str | None = None) -> None:
        expected = "a list of pairs of values"
        told = [listed(pair, "Edges", expected) for pair in listed(pairs, "Edges", expected)]
        if any(len(pair) != 2 for pair in told):
            raise SpecificationError("Edges: a list of pairs of values.")
        name_or_none(on, "Edges.on")
        object.__setattr__(self, "pairs", tuple((_value(a, "Edges"), _value(b, "Edges")) for a, b in told))
        object.__setattr__(self, "on", on)

    def to_spec(self) -> Any:
        def plain(value: Any) -> Any:
            return list(value) if isinstance(value, tuple) else value

        spec: dict[str, Any] = {"edges": [[plain(a), plain(b)] for a, b in self.pairs]}
        if self.on is not None:
            spec["on"] = self.on
        return spec


@dataclass(frozen=True)
class AttributeWise:
    """One attribute changes at a time, each along a graph of its own.

    ``AttributeWise()`` protects every attribute along its full graph. With arguments, attributes left out are **not**
    protected: their values may be disclosed.

    >>> AttributeWise(age=Full(), capital_loss=Within(100)).to_spec()
    {'age': 'full', 'capital_loss': {'within': '100'}}
    """

    graphs: tuple[tuple[str, AttributeSecrets], ...] = ()

    def __init__(
        self, graphs: Mapping[str, AttributeSecrets] | None = None, /, **named: AttributeSecrets
    ) -> None:
        expected = "a mapping from attributes to their graphs"
        told = ({} if graphs is None else table(graphs, "secrets", expected)) | named
        for name, graph in told.items():
            if not isinstance(name, str):
                raise SpecificationError(f"secrets: attributes are named by texts, not {kind_of(name)}.")
            if not isinstance(graph, Full | Within | Partition | Edges | Nothing):
                raise SpecificationError(
                    f"secrets.{name}: Full, Within, Partition, Edges or Nothing, not {type(graph).__name__}."
                )
        object.__setattr__(self, "graphs", tuple(told.items()))

    def to_spec(self) -> Any:
        return {n: g.to_spec() for n, g in self.graphs} if self.graphs else "attribute-wise"


AttributeSecrets = Full | Within | Partition | Edges | Nothing
Secrets = AttributeSecrets | AttributeWise


@dataclass(frozen=True)
class Cut:
    """How many blocks the rows and the columns of a map are cut into."""

    rows: int
    columns: int


def _told(count: int | Cut) -> int | list[int]:
    return count if isinstance(count, int) else [count.rows, count.columns]


def _count(value: object, where: str) -> int | Cut:
    if isinstance(value, tuple | list) and len(value) == 2:
        rows, columns = (_whole(v, where) for v in value)
        return Cut(rows, columns)
    return _whole(value, where)


def _whole(value: object, where: str) -> int:
    number = exact(value, where)
    if number.denominator != 1 or number < 1:
        raise SpecificationError(f"{where}: a whole number of at least 1.")
    return int(number)


def _value(value: Any, where: str) -> Any:
    """A value of one attribute, or a tuple of values, one per attribute."""
    if isinstance(value, list | tuple):
        return tuple(_scalar(v, where) for v in value)
    return _scalar(value, where)


def _label(value: Any) -> Any:
    return _scalar(value, "Partition.by: the name of a block")


def _scalar(value: Any, where: str) -> Any:
    single(value, where)
    if not isinstance(value, str | int | float | Decimal | Fraction | np.bool_ | np.number):
        raise SpecificationError(f"{where}: text or a number, not {kind_of(value)}.")
    value = value.item() if isinstance(value, np.generic) else value
    return plain(value, where) if isinstance(value, float | Decimal | Fraction) else value


@dataclass(frozen=True, eq=False)
class Graph:
    """A secret graph over a domain.

    Attributes:
        domain: what the cells are.
        kind: "cartesian" (an edge moves one attribute along its axis), "strong" (an edge moves any attributes, each
            along its axis), "ball" (an edge moves any attributes within one common distance) or "flat" (one axis over
            the cells of the whole domain). Except for "flat", an edge that is cut down to some of its attributes is an
            edge, so that the largest move of one attribute is found on its own axis.
        axes: one ``Axis`` per attribute: the edges that change it alone; a single one for "flat".
        ball: the common distance, for "ball".
    """

    domain: Domain
    kind: str
    axes: tuple[Axis, ...]
    ball: Ball | None = None

    def project(self, names: Sequence[str]) -> Graph:
        """The graph that is left when only some attributes are looked at: x_S – y_S for every edge x – y, x_S ≠ y_S."""
        small = self.domain.select(*names)
        if small.names == self.domain.names:
            return self
        if self.kind != "flat":
            kept = tuple(a for n, a in zip(self.domain.names, self.axes, strict=True) if n in small)
            if self.ball is None:
                return Graph(small, self.kind, kept)
            sides = tuple(s for n, s in zip(self.domain.names, self.ball.sides, strict=True) if n in small)
            return Graph(small, self.kind, kept, Ball(small.shape, sides, self.ball.budget))
        ends = self.axes[0].all_edges()
        at = [self.domain.names.index(n) for n in small.names]
        a, b = (small.encode([self.domain.decode(ends[:, k])[i] for i in at]) for k in (0, 1))
        return Graph(small, "flat", (Axis(small.size, pairs=_canonical(a, b)),))

    def axis(self, name: str) -> Axis:
        """The graph of one attribute, for graphs that have one per attribute."""
        return self.axes[self.domain.names.index(name)]

    @property
    def has_edges(self) -> bool:
        return any(a.has_edges for a in self.axes)

    @cached_property
    def unprotected(self) -> tuple[str, ...]:
        """Attributes on which no edge differs: their values are no secret at all."""
        if self.kind != "flat":
            return tuple(n for n, a in zip(self.domain.names, self.axes, strict=True) if not a.has_edges)
        return tuple(n for n in self.domain.names if not self.project([n]).has_edges)

    def joined(self, a: Any, b: Any) -> Bools:
        """Whether whole-domain cells a and b form an edge, elementwise."""
        if self.kind == "flat":
            return self.axes[0].joined(a, b)
        if self.ball is not None:
            return self.ball.joined(self.domain.decode(a), self.domain.decode(b))
        moved: Any = 0
        allowed: Any = True
        for axis, x, y in zip(self.axes, self.domain.decode(a), self.domain.decode(b), strict=True):
            differ = x != y
            moved = moved + differ
            allowed = allowed & (~differ | axis.joined(x, y))
        return np.asarray(allowed & ((moved == 1) if self.kind == "cartesian" else (moved > 0)), dtype=bool)

    def distance(self, a: int, b: int) -> int | None:
        """Hops from cell a to cell b, None where there is no path: changing a record from a to b costs at most hops·ε.

        Sum over attributes for "cartesian", maximum for "strong" (every coordinate can move at each hop); for "ball" the
        least number of steps within the distance that add up (closed form or dynamic programme).
        """
        if self.kind == "flat":
            return self.axes[0].distance(a, b)
        if self.ball is not None:
            ends = [[int(c) for c in self.domain.decode(cell)] for cell in (a, b)]
            return self.ball.distance(*ends)
        steps = [
            axis.distance(int(x), int(y))
            for axis, x, y in zip(self.axes, self.domain.decode(a), self.domain.decode(b), strict=True)
        ]
        known = [s for s in steps if s is not None]
        if len(known) < len(steps):
            return None
        return sum(known) if self.kind == "cartesian" else max(known)

    def edges(self, chunk: int = 1_000_000) -> Iterator[tuple[Ints, Ints]]:
        """Every edge once, as arrays of whole-domain cells; in chunks."""
        if self.kind == "flat":
            yield from self.axes[0].edges(chunk)
        elif self.ball is not None:
            yield from self.ball.edges(chunk)
        elif self.kind == "cartesian":
            strides = _strides(self.domain.shape)
            for axis, stride, size in zip(self.axes, strides, self.domain.shape, strict=True):
                outer, inner = self.domain.size // (stride * size), stride
                per = max(1, chunk // (outer * inner))
                rest = (
                    np.arange(outer, dtype=np.int64)[:, None] * (stride * size)
                    + np.arange(inner, dtype=np.int64)[None, :]
                ).ravel()
                for a, b in axis.edges(per):
                    yield (
                        (a[:, None] * stride + rest[None, :]).ravel(),
                        (b[:, None] * stride + rest[None, :]).ravel(),
                    )
        else:
            if self.domain.size > LISTABLE:
                raise Unsupported("this secret graph has too many edges to list.")
            cells = np.arange(self.domain.size, dtype=np.int64)
            for x in range(self.domain.size):
                later = cells[x + 1 :]
                partners = later[self.joined(np.int64(x), later)]
                if len(partners):
                    yield np.full(len(partners), x, dtype=np.int64), partners

    @cached_property
    def n_components(self) -> int:
        """Number of connected components; which component a record lies in is disclosed exactly."""
        count = 1
        for axis in self.axes:
            count *= axis.n_components
        return count

    def same_component(self, a: int, b: int) -> bool:
        """Whether a path joins two cells."""
        return self.distance(a, b) is not None


def _strides(shape: tuple[int, ...]) -> list[int]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return strides


def _canonical(a: Ints, b: Ints) -> Ints:
    low, high = np.minimum(a, b), np.maximum(a, b)
    keep = low != high
    if not keep.any():
        return np.zeros((0, 2), dtype=np.int64)
    return np.unique(np.stack([low[keep], high[keep]], axis=1), axis=0)
