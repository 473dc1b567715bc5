"""Distances between declared values, for ``Within``: of one attribute, of several at once, of places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .attributes import Attribute
from .errors import SpecificationError
from .exact import Number, positive, show
from .lengths import measured
from .reading import table, under


@dataclass(frozen=True)
class _Weighted:
    """Σ or √Σ² of weighted differences; with one attribute both are weight·|x − y|."""

    weights: tuple[tuple[str, Fraction], ...] = ()

    def __init__(self, weights: Mapping[str, Number] | None = None, /, **named: Number) -> None:
        told = (
            {} if weights is None else table(weights, "metric", "a mapping from names to weights")
        ) | named
        if not all(isinstance(n, str) for n in told):
            raise SpecificationError("metric: weights are named by the texts of attributes.")
        object.__setattr__(self, "weights", tuple((n, positive(w, f"metric.{n}")) for n, w in told.items()))

    def weight(self, name: str) -> Fraction:
        """The weight of one attribute, on its own.

        Raises:
            SpecificationError: the metric speaks of other attributes too.
        """
        extra = [n for n, _ in self.weights if n != name]
        if extra:
            raise SpecificationError(
                f"metric: {', '.join(extra)}: a distance over several attributes stands alone: "
                "secrets=td.Within(theta, metric=…), without on=."
            )
        return dict(self.weights).get(name, Fraction(1))

    def to_spec(self) -> dict[str, Any]:
        return {type(self).__name__.lower(): {n: show(w) for n, w in self.weights}}


class L1(_Weighted):
    """Σ_a weight_a · |x_a − y_a|, in the attributes' own units; of a place, its two coordinates in local lengths.

    With weights for several attributes the distance is between whole records.

    >>> L1(age=2).to_spec()
    {'l1': {'age': '2'}}
    """


class L2(_Weighted):
    """(Σ_a weight_a² (x_a − y_a)²)^½, in the attributes' own units; of a place, its two coordinates in local lengths.

    With weights for several attributes the distance is between whole records.

    >>> L2().to_spec()
    {'l2': {}}
    """


@dataclass(frozen=True)
class Discrete:
    """0 for equal values, 1 for any two different ones (of a place: for equal and different cells).

    >>> Discrete().to_spec()
    {'discrete': {}}
    """

    def to_spec(self) -> dict[str, Any]:
        return {"discrete": {}}


@dataclass(frozen=True)
class Haversine:
    """Great-circle distance between places given in degrees, on a sphere of radius 6,371,008.8 m.

    >>> Haversine().to_spec()
    {'haversine': {}}
    """

    def to_spec(self) -> dict[str, Any]:
        return {"haversine": {}}


Metric = L1 | L2 | Discrete | Haversine


def metric_from_spec(spec: Mapping[str, Any], where: str) -> Metric:
    """The metric that ``to_spec`` wrote."""
    with under(where):
        told = table(spec, "metric", "a table such as { l1 = { age = 2 } }")
        kind, weights = next(iter(told.items()), ("", {}))
        if len(told) != 1 or kind not in ("l1", "l2", "discrete", "haversine"):
            raise SpecificationError("metric: one of l1, l2, discrete, haversine.")
        inner = table(weights, f"metric.{kind}", "a table of weights (it may be empty)")
        if kind in ("discrete", "haversine"):
            if inner:
                raise SpecificationError(f"metric.{kind}: has no weights; leave the table empty.")
            return Discrete() if kind == "discrete" else Haversine()
        return (L1 if kind == "l1" else L2)(inner)


def threshold(theta: Number, attribute: Attribute, where: str) -> Fraction:
    """A distance such as ``100``, ``"100 USD"`` or ``"5 km"`` in the attribute's unit.

    >>> from .attributes import Integer
    >>> threshold("100 USD", Integer(0, 9, unit="USD"), "Within")
    Fraction(100, 1)
    """
    return measured(theta, attribute.unit, where)
