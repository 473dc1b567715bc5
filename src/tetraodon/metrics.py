"""Distances between declared values, for ``Within``. Each knows the largest cell offset it still joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .attributes import Attribute
from .errors import SpecificationError, Unsupported
from .exact import Number, exact, positive, show
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

    def reach(self, name: str, attribute: Attribute, theta: Fraction) -> int:
        """Largest cell offset k such that some pair of values k cells apart is within ``theta``."""
        extra = [n for n, _ in self.weights if n != name]
        if extra:
            raise Unsupported(
                f"metric: {', '.join(extra)}: distances over several attributes are not available in this version."
            )
        return attribute.reach(theta / dict(self.weights).get(name, Fraction(1)))

    def to_spec(self) -> dict[str, Any]:
        return {type(self).__name__.lower(): {n: show(w) for n, w in self.weights}}


class L1(_Weighted):
    """Σ_a weight_a · |x_a − y_a|, in the attributes' own units.

    >>> L1(age=2).to_spec()
    {'l1': {'age': '2'}}
    """


class L2(_Weighted):
    """(Σ_a weight_a² (x_a − y_a)²)^½, in the attributes' own units.

    >>> L2().to_spec()
    {'l2': {}}
    """


@dataclass(frozen=True)
class Discrete:
    """0 for equal values, 1 for any two different ones.

    >>> Discrete().to_spec()
    {'discrete': {}}
    """

    def reach(self, name: str, attribute: Attribute, theta: Fraction) -> int:
        return attribute.n_values - 1 if theta >= 1 else 0

    def to_spec(self) -> dict[str, Any]:
        return {"discrete": {}}


def Haversine(*args: object, **kwargs: object) -> None:
    """Great-circle distance between places. Not available in this version.

    Raises:
        Unsupported: always.
    """
    raise Unsupported("Haversine: places on a map are not available in this version.")


Metric = L1 | L2 | Discrete


def metric_from_spec(spec: Mapping[str, Any], where: str) -> Metric:
    """The metric that ``to_spec`` wrote."""
    with under(where):
        told = table(spec, "metric", "a table such as { l1 = { age = 2 } }")
        kind, weights = next(iter(told.items()), ("", {}))
        if len(told) != 1 or kind not in ("l1", "l2", "discrete"):
            raise SpecificationError("metric: one of l1, l2, discrete.")
        inner = table(weights, f"metric.{kind}", "a table of weights (it may be empty)")
        if kind == "discrete" and inner:
            raise SpecificationError("metric.discrete: has no weights; leave the table empty.")
        return Discrete() if kind == "discrete" else (L1 if kind == "l1" else L2)(inner)


def threshold(theta: Number, attribute: Attribute, where: str) -> Fraction:
    """A distance such as ``100`` or ``"100 USD"`` in the attribute's unit.

    >>> from .attributes import Integer
    >>> threshold("100 USD", Integer(0, 9, unit="USD"), "Within")
    Fraction(100, 1)
    """
    if isinstance(theta, str) and " " in theta.strip():
        amount, unit = theta.strip().split(maxsplit=1)
        if unit != attribute.unit:
            raise SpecificationError(
                f"{where}: the attribute is declared in {attribute.unit or 'no unit'}, not in {unit}."
            )
        theta = amount
    distance = exact(theta, where)
    if distance < 0:
        raise SpecificationError(f"{where}: a distance is not negative.")
    return distance
