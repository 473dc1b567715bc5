"""Secrets as they are declared: which pairs of values must not be told apart. ``binding`` makes graphs of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .errors import SpecificationError, unknown
from .exact import Number, exact, plain, show
from .metrics import L1, L2, Discrete, Haversine, Metric, metric_from_spec
from .reading import RAW, kind_of, listed, name_or_none, single, table, wrong_kind


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


def secrets_from_spec(spec: Any, where: str = "policy.secrets") -> Secrets:
    """The declaration that ``to_spec`` wrote, or ``[policy.secrets]`` of a settings file.

    >>> secrets_from_spec({"within": 100, "on": "capital_loss"})
    Within(theta=100, on='capital_loss', metric=None)
    """
    if spec == "attribute-wise":
        return AttributeWise()
    if isinstance(spec, str) or (isinstance(spec, Mapping) and _is_one(spec)):
        return _attribute_secrets(spec, where)
    told = table(spec, where, "'full', 'attribute-wise', 'nothing' or a table of attributes")
    return AttributeWise({n: _attribute_secrets(s, f"{where}.{n}") for n, s in told.items()})


def _is_one(spec: Mapping[str, Any]) -> bool:
    """Whether a table is one declaration, and not a table of attributes that bear the words of declarations."""
    within, partition = spec.get("within"), spec.get("partition")
    return (
        (within is not None and within not in ("full", "nothing") and not isinstance(within, Mapping))
        or isinstance(spec.get("edges"), list | tuple)
        or (isinstance(partition, Mapping) and not {"within", "edges", "partition"} & set(partition))
    )


def _attribute_secrets(spec: Any, where: str) -> AttributeSecrets:
    with _keyed(where):
        return _one_graph(spec, where)


@contextmanager
def _keyed(where: str) -> Iterator[None]:
    """Errors of the classes, which begin with a class, begin with the key that the class has in settings."""
    try:
        yield
    except SpecificationError as error:
        text = str(error)
        if text.startswith(("Within", "Partition", "Edges")):
            text = f"{where}.{text[0].lower()}{text[1:]}"
        raise type(error)(text) from None
    except RAW:
        raise wrong_kind(where) from None


def _one_graph(spec: Any, where: str) -> AttributeSecrets:
    if isinstance(spec, str) and spec == "full":
        return Full()
    if isinstance(spec, str) and spec == "nothing":
        return Nothing()
    if isinstance(spec, Mapping):
        rest = dict(spec)
        on = rest.pop("on", None)
        if "within" in rest:
            theta, metric = rest.pop("within"), rest.pop("metric", None)
            _no_more(rest, where, ("within", "on", "metric"))
            return Within(theta, on, None if metric is None else metric_from_spec(metric, where))
        if "edges" in rest:
            pairs = rest.pop("edges")
            _no_more(rest, where, ("edges", "on"))
            return Edges(pairs, on)
        if "partition" in rest:
            expected = "a table such as { blocks = 4 }"
            inner = table(rest.pop("partition"), f"{where}.partition", expected)
            _no_more(rest, where, ("partition",))
            blocks, by, on = inner.pop("blocks", None), inner.pop("by", None), inner.pop("on", on)
            _no_more(inner, f"{where}.partition", ("blocks", "by", "on"))
            return Partition(blocks, by=None if by is None else _blocks(by, f"{where}.partition.by"), on=on)
    raise SpecificationError(
        f"{where}: 'full', 'nothing', or one of within, partition, edges in a table; given: {kind_of(spec)}."
    )


def _blocks(by: Any, where: str) -> Any:
    """The blocks of a partition: a table, a list of [value, block] pairs, or { cells = [blocks in cell order] }."""
    if isinstance(by, Mapping):
        if set(by) == {"cells"}:
            return listed(by["cells"], f"{where}.cells", "a list of blocks in cell order")
        return by
    expected = "a table from values to blocks, or a list of [value, block] pairs"
    told: dict[Any, Any] = {}
    for pair in listed(by, where, expected):
        if len(listed(pair, where, expected)) != 2:
            raise SpecificationError(f"{where}: {expected}.")
        value, block = pair
        key = tuple(value) if isinstance(value, list) else value
        for part in key if isinstance(key, tuple) else (key,):
            single(part, where)
        single(block, where)
        if told.setdefault(key, block) != block:
            raise SpecificationError(f"{where}: two blocks for one value.")
    return told


def _no_more(rest: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
    for key in rest:
        raise unknown(where, "key", key, known)
