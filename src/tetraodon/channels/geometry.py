"""Where the cells of a domain lie: their centres, and the distances between them.

Distances are between *centres* of cells. They measure how far an output is from the truth, and how much protection a channel
gives per unit of length; which values are secret from each other is the policy's own question (``graphs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..attributes import Attribute, Categorical, Integer, Point
from ..axes import Bools, Ints
from ..domain import Domain, a_domain
from ..errors import SpecificationError, Unsupported
from ..lengths import LENGTHS, RADIUS
from ..metrics import L1, L2, Discrete, Haversine, Metric

Floats = NDArray[np.float64]

MAX_ENTRIES = 2**24
MAX_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Geometry:
    """The cells of a domain as places.

    Attributes:
        domain: what the cells are; special cells (``other``, ``missing``) have no place.

    >>> plane = Geometry(Domain(x=Integer(0, 2), y=Integer(5, 6)))
    >>> plane.points.tolist(), plane.shape, plane.is_grid
    ([[0.0, 5.0], [0.0, 6.0], [1.0, 5.0], [1.0, 6.0], [2.0, 5.0], [2.0, 6.0]], (3, 2), True)
    """

    domain: Domain

    def __post_init__(self) -> None:
        a_domain(self.domain, "domain")

    @cached_property
    def ordinary(self) -> Bools:
        """Shape (cells,): which cells are no special cells."""
        found = np.ones(self.domain.size, dtype=bool)
        for attribute, cells in zip(self.domain.values(), self._decoded, strict=True):
            found &= cells < attribute.n_values
        return found

    @cached_property
    def _decoded(self) -> tuple[Ints, ...]:
        if self.domain.size > MAX_CELLS:
            raise Unsupported("channel: more than 2^22 cells; declare coarser ones.")
        return self.domain.decode(np.arange(self.domain.size, dtype=np.int64))

    @cached_property
    def coordinates(self) -> tuple[Floats, ...]:
        """Coordinates of every attribute from its low end, shape (cells, 1), or (cells, 2) for a ``Point``; NaN in its
        special cells. Counted from the low end, differences lose no digits to an origin that is far away.

        Raises:
            SpecificationError: an attribute without order, whose values have no place.
        """
        found = []
        for (name, attribute), cells in zip(self.domain.items(), self._decoded, strict=True):
            table = _centres(name, attribute)
            special = np.full((attribute.size - attribute.n_values, table.shape[1]), np.nan)
            found.append(np.concatenate([table, special])[cells])
        return tuple(found)

    @property
    def points(self) -> Floats:
        """Shape (cells, k): centres, all coordinates side by side, in their attributes' units (a ``Point``'s: local lengths
        from the low corner of its box)."""
        origins = [0.0 if isinstance(a, Point | Categorical) else float(a.low) for a in self.domain.values()]
        return np.concatenate(
            [places + low for places, low in zip(self.coordinates, origins, strict=True)], axis=1
        )

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of ordinary cells; one attribute that is no ``Point`` makes one row.

        Raises:
            Unsupported: the domain is no grid.
        """
        sides = [
            n for a in self.domain.values() for n in (a.shape if isinstance(a, Point) else (a.n_values,))
        ]
        if len(sides) > 2:
            raise Unsupported("channel: a grid has one or two axes; name fewer attributes.")
        return (1, sides[0]) if len(sides) == 1 else (sides[0], sides[1])

    @cached_property
    def steps(self) -> tuple[Fraction, Fraction]:
        """Exact sides of a cell, in ``unit``: along the rows' axis, along the columns'."""
        told: list[Fraction] = []
        for attribute in self.domain.values():
            if isinstance(attribute, Point):
                told += attribute.lengths
            else:
                told.append(Fraction(1) if isinstance(attribute, Categorical) else attribute.width)
        return (Fraction(1), told[0]) if len(told) == 1 else (told[0], told[1])

    @property
    def is_grid(self) -> bool:
        """Whether the ordinary cells are equal rectangles in rows and columns, measured in one unit."""
        attributes = list(self.domain.values())
        even = all(_is_even(a) for a in attributes)
        sides = sum(2 if isinstance(a, Point) else 1 for a in attributes)
        return even and sides <= 2 and len({a.unit for a in attributes}) == 1

    @property
    def unit(self) -> str | None:
        """The one unit of all coordinates; None where there is none or they differ."""
        units = {a.unit for a in self.domain.values()}
        return units.pop() if len(units) == 1 else None

    def between(self, metric: Metric | None, a: Ints, b: Ints) -> Floats:
        """Distances between cells a and cells b, elementwise (with broadcasting).

        A special cell lies as far from every other cell as the two farthest ordinary cells lie apart.

        Raises:
            SpecificationError: the metric does not fit the domain, or units differ and no weights say what they are worth.
        """
        a, b = np.asarray(a), np.asarray(b)
        if isinstance(metric, Discrete):
            return np.asarray(a != b, dtype=np.float64)
        found = self._apart(metric, a, b)
        special = ~(self.ordinary[a] & self.ordinary[b])
        if special.any():
            found = np.where(special, np.where(a == b, 0.0, self._widest(metric)), found)
        return found

    def _apart(self, metric: Metric | None, a: Ints, b: Ints) -> Floats:
        if isinstance(metric, Haversine):
            return self._great_circles(a, b)
        total: Floats = np.zeros(np.broadcast(a, b).shape)
        weights = self._weights(metric)
        for weight, places in zip(weights, self.coordinates, strict=True):
            for column in places.T:
                step = np.abs(column[a] - column[b]) * weight
                total += step if isinstance(metric, L1) else step * step
        return total if isinstance(metric, L1) else np.sqrt(total)

    def _weights(self, metric: Metric | None) -> list[float]:
        told = dict(metric.weights) if isinstance(metric, L1 | L2) else {}
        for name in told:
            self.domain.attribute(name, "metric")
        if told and len(told) < len(self.domain):
            raise SpecificationError("metric: weights for every attribute of the channel, or for none.")
        if not told and len({a.unit for a in self.domain.values()}) > 1:
            raise SpecificationError("metric: the attributes have different units; give every one a weight.")
        return [float(told.get(name, Fraction(1))) for name in self.domain.names]

    def _great_circles(self, a: Ints, b: Ints) -> Floats:
        [attribute] = self.domain.values() if len(self.domain) == 1 else [None]
        if not isinstance(attribute, Point) or attribute.metric != "local":
            raise SpecificationError("metric: great circles are measured between the places of one Point.")
        radius = float(RADIUS / LENGTHS[attribute.unit or "m"])
        south = np.radians([float(attribute.sides[0].low), float(attribute.sides[0].width)])
        west = np.radians([float(attribute.sides[1].low), float(attribute.sides[1].width)])
        (i, j), (k, m) = (
            np.divmod(np.minimum(c, attribute.n_values - 1), attribute.shape[1]) for c in (a, b)
        )
        lat, other = (south[0] + (n + 0.5) * south[1] for n in (i, k))
        gap = (j - m) * west[1]
        chord = np.sin((lat - other) / 2) ** 2 + np.cos(lat) * np.cos(other) * np.sin(gap / 2) ** 2
        found: Floats = 2 * radius * np.arcsin(np.sqrt(np.clip(chord, 0.0, 1.0)))
        return found

    def _widest(self, metric: Metric | None) -> float:
        """Distance between the two farthest ordinary corners."""
        corners = [np.array([0, a.n_values - 1]) for a in self.domain.values()]
        for at, attribute in enumerate(self.domain.values()):
            if isinstance(attribute, Point):
                rows, columns = attribute.shape
                corners[at] = np.array([0, columns - 1, (rows - 1) * columns, rows * columns - 1])
        grid = np.meshgrid(*corners, indexing="ij")
        cells = self.domain.encode([g.ravel() for g in grid])
        return float(self._apart(metric, cells[:, None], cells[None, :]).max())

    def matrix(self, metric: Metric | None) -> Floats:
        """Shape (cells, cells): every distance.

        Raises:
            Unsupported: more than 2^24 of them.
        """
        if self.domain.size**2 > MAX_ENTRIES:
            raise Unsupported(
                "channel: a table of distances holds 4,096 cells at most; declare coarser ones."
            )
        cells = np.arange(self.domain.size)
        return self.between(metric, cells[:, None], cells[None, :])


def _centres(name: str, attribute: Attribute) -> Floats:
    if isinstance(attribute, Point):
        columns = attribute.shape[1]
        height, width = (float(v) for v in attribute.lengths)
        i, j = np.divmod(np.arange(attribute.n_values), columns)
        return np.stack([(i + 0.5) * height, (j + 0.5) * width], axis=1)
    if isinstance(attribute, Categorical):
        if not attribute.ordered and attribute.n_values > 1:
            raise SpecificationError(
                f"metric: the values of {name!r} have no place; use td.Discrete() or a table of distances."
            )
        return np.arange(attribute.n_values, dtype=np.float64)[:, None]
    if isinstance(attribute, Integer):
        values, scale = attribute.midpoints()
        whole = np.asarray(values, dtype=np.int64)[:, None] - attribute.low * scale
        return np.asarray(whole / scale, dtype=np.float64)
    return np.asarray((np.arange(attribute.n_values)[:, None] + 0.5) * float(attribute.width))


def _is_even(attribute: Attribute) -> bool:
    if isinstance(attribute, Integer):
        return (attribute.high - attribute.low + 1) % attribute.step == 0
    return not isinstance(attribute, Categorical) or attribute.ordered


def distances(metric: object, domain: Domain, outputs: Domain | None = None) -> Floats:
    """Shape (inputs, outputs): distances by a metric, or a table of them that is checked.

    Args:
        metric: ``L1``, ``L2`` (also None), ``Discrete``, ``Haversine``, or an array of that shape: any loss that is finite
            and not negative.

    Raises:
        SpecificationError: a table of another shape, with a negative, infinite or undefined entry; a metric that does not fit.

    >>> distances(L1(), Domain(x=Integer(0, 2))).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    outputs = domain if outputs is None else outputs
    if metric is None or isinstance(metric, L1 | L2 | Discrete | Haversine):
        if outputs != domain:
            raise SpecificationError("metric: a channel to other outputs needs a table of losses.")
        return Geometry(domain).matrix(metric)
    try:
        told: Floats = np.array(metric, dtype=np.float64)
    except (TypeError, ValueError):
        raise SpecificationError("metric: L1, L2, Discrete, Haversine, or a table of losses.") from None
    if told.shape != (domain.size, outputs.size):
        raise SpecificationError(
            f"metric: a table of shape {(domain.size, outputs.size)}, inputs by outputs, not {told.shape}."
        )
    if not np.isfinite(told).all() or (told < 0).any():
        raise SpecificationError("metric: every loss must be finite and not negative.")
    return told


def plain_domain(count: int) -> Domain:
    """Numbered cells, for channels without a declared domain.

    >>> plain_domain(3).size
    3
    """
    return Domain(value=Integer(0, count - 1))


def unit_of(metric: object, domain: Domain) -> str | None:
    """The unit that distances by a metric are in."""
    weighted = isinstance(metric, L1 | L2) and any(w != 1 for _, w in metric.weights)
    if isinstance(metric, Discrete) or weighted:
        return None
    return Geometry(domain).unit if metric is None or isinstance(metric, L1 | L2 | Haversine) else None
