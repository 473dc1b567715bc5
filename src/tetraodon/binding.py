"""From a declaration of secrets and a domain to a ``Graph``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .attributes import Attribute, Point
from .axes import MAX_ARRAY, MAX_PAIRS, Axis, Ints
from .balls import Ball, ball
from .domain import Domain, a_domain
from .errors import SpecificationError, Unsupported
from .graphs import LISTABLE, Graph, _canonical
from .lattice import Blocks, Lattice
from .lengths import measured
from .metrics import L1, L2, Discrete, Haversine, threshold
from .nearness import plane_reach, sphere_reach
from .numeric import Spacing
from .secrets import (
    AttributeSecrets,
    AttributeWise,
    Cut,
    Edges,
    Full,
    Nothing,
    Partition,
    Secrets,
    Within,
    secrets_from_spec,
)

__all__ = ["attribute_axis", "bind", "secrets_from_spec"]


def bind(secrets: Secrets, domain: Domain) -> Graph:
    """The graph that a declaration means over a domain.

    >>> from .attributes import Integer
    >>> bind(Within(2), Domain(age=Integer(0, 9))).distance(0, 9)
    5
    """
    names = a_domain(domain, "domain").names
    if isinstance(secrets, Full):
        return Graph(domain, "strong", tuple(attribute_axis(secrets, domain[n], n) for n in names))
    if isinstance(secrets, Nothing):
        return Graph(domain, "cartesian", tuple(attribute_axis(secrets, domain[n], n) for n in names))
    if isinstance(secrets, AttributeWise):
        told = dict(secrets.graphs) or {n: Full() for n in names}
        for name, graph in told.items():
            domain.attribute(name, "secrets")
            if isinstance(graph, Partition) and isinstance(graph.blocks, tuple):
                for other, _ in graph.blocks:
                    _check_on(other, name, f"secrets.{name}.blocks")
        axes = tuple(attribute_axis(told.get(n, Nothing()), domain[n], n) for n in names)
        return Graph(domain, "cartesian", axes)
    if isinstance(secrets, Within):
        if secrets.on is None and isinstance(secrets.metric, L1 | L2) and len(secrets.metric.weights) > 1:
            return _bind_ball(secrets, secrets.metric, domain)
        if (
            secrets.on is None
            and len(domain) > 1
            and isinstance(secrets.metric, L1 | L2)
            and secrets.metric.weights
        ):
            return bind(AttributeWise({_named(secrets.metric, domain): secrets}), domain)
        return bind(AttributeWise({_one(secrets.on, domain, "Within"): secrets}), domain)
    if isinstance(secrets, Partition):
        return _bind_partition(secrets, domain)
    if isinstance(secrets, Edges):
        if secrets.on is not None or len(domain) == 1:
            return bind(AttributeWise({_one(secrets.on, domain, "Edges"): secrets}), domain)
        a, b = (_tuples(domain, [pair[k] for pair in secrets.pairs], "Edges") for k in (0, 1))
        return _flat(domain, _canonical(a, b), "Edges")
    raise SpecificationError(f"secrets: a secret graph such as td.Full(), not {type(secrets).__name__}.")


def complete(domain: Domain) -> Graph:
    """Any two cells joined, special ones too, whatever is declared of them."""
    return Graph(domain, "strong", tuple(Axis(size, window=size - 1) for size in domain.shape))


def _one(on: str | None, domain: Domain, where: str) -> str:
    if on is not None:
        domain.attribute(on, f"{where}.on")
        return on
    if len(domain) > 1:
        if where == "Within":
            raise SpecificationError(
                "Within: the domain has several attributes; name one with on=, or several with their weights, as in "
                "metric=td.L1(a=1, b=2)."
            )
        raise SpecificationError(f"{where}: the domain has several attributes; name one with on=.")
    return domain.names[0]


def _named(metric: L1 | L2, domain: Domain) -> str:
    for name, _ in metric.weights:
        domain.attribute(name, "Within.metric")
    return metric.weights[0][0]


def _bind_ball(secrets: Within, metric: L1 | L2, domain: Domain) -> Graph:
    _named(metric, domain)
    weights = dict(metric.weights)
    for name in weights:
        attribute = domain[name]
        if isinstance(attribute, Point):
            raise SpecificationError(
                f"Within.metric.{name}: a place has a distance of its own; use td.AttributeWise, or declare its coordinates as "
                "two Numeric attributes."
            )
        if not attribute.ordered:
            raise SpecificationError(
                f"Within.metric.{name}: a distance needs an order; declare ordered=True."
            )
    units = {domain[n].unit for n in weights}
    if len(units) > 1 and isinstance(secrets.theta, str) and " " in secrets.theta:
        raise SpecificationError(
            "Within: the attributes are declared in different units; give a number without a unit."
        )
    theta = measured(secrets.theta, units.pop(), "Within")
    told: list[tuple[Spacing | None, int, tuple[bool, ...]]] = []
    for name, attribute in domain.items():
        other, missing = _stars(attribute)
        if name not in weights or isinstance(attribute, Point):
            told.append((None, attribute.n_values + len(other), missing))
            continue
        space, weight = attribute.spacing, weights[name]
        weighted = Spacing(space.nearest * weight, space.step * weight, space.is_open)
        told.append((weighted, attribute.n_values, other + missing))
    found = ball(domain.shape, told, theta, 1 if isinstance(metric, L1) else 2)
    return Graph(domain, "ball", _axes_of(found, domain), found)


def _axes_of(found: Ball, domain: Domain) -> tuple[Axis, ...]:
    return tuple(
        Axis(size) if side is None else side.axis
        for side, size in zip(found.sides, domain.shape, strict=True)
    )


def _stars(attribute: Attribute) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """The special cells (``other``, ``missing``) of an attribute under secrets that do not name them."""
    other: tuple[bool, ...] = () if attribute.other is None else (True,)
    return other, () if attribute.missing == "refuse" else (attribute.missing == "secret",)


def attribute_axis(secrets: AttributeSecrets, attribute: Attribute, name: str) -> Axis:
    """The secret graph of one attribute, special cells included."""
    n = attribute.n_values
    other, missing = _stars(attribute)
    where = f"secrets.{name}"
    if isinstance(secrets, Full):
        return Axis(n, window=n - 1, stars=other + missing)
    if isinstance(secrets, Nothing):
        # Nobody protects the value; `other` is a value like any other.
        return Axis(n + len(other), stars=missing)
    if isinstance(secrets, Within):
        _check_on(secrets.on, name, where)
        if isinstance(secrets.metric, Discrete):
            apart = threshold(secrets.theta, attribute, where) >= 1
            return Axis(n, window=n - 1 if apart else 0, stars=other + missing)
        if isinstance(attribute, Point):
            return _map_axis(secrets, attribute, name, missing)
        if isinstance(secrets.metric, Haversine):
            raise SpecificationError(
                f"{where}: Haversine measures places; declare {name} as a Point, or use L1 or L2."
            )
        if not attribute.ordered:
            raise SpecificationError(
                f"{where}: Within needs an order; declare ordered=True, or use Discrete, Full, Partition or Edges."
            )
        theta = threshold(secrets.theta, attribute, where)
        weight = 1 if secrets.metric is None else secrets.metric.weight(name)
        return Axis(n, window=min(attribute.reach(theta / weight), n - 1), stars=other + missing)
    if isinstance(secrets, Partition):
        _check_on(secrets.on, name, where)
        return _partition_axis(secrets, attribute, name, other, missing)
    _check_on(secrets.on, name, where)
    cells = [
        (attribute.cell(a, f"{where}.edges"), attribute.cell(b, f"{where}.edges")) for a, b in secrets.pairs
    ]
    listed = np.array(cells, dtype=np.int64).reshape(-1, 2)
    pairs = _canonical(listed[:, 0], listed[:, 1])
    if attribute.missing == "public" and len(pairs) and (pairs == attribute.missing_cell).any():
        raise SpecificationError(f"{where}: an edge names the missing cell, which is declared public.")
    size = n + len(other)
    kept = pairs[pairs[:, 1] < size]  # a secret missing cell is joined to everything already
    return Axis(size, pairs=kept, stars=missing)


def _map_axis(secrets: Within, point: Point, name: str, stars: tuple[bool, ...]) -> Axis:
    """The secret graph of a place: near cells of the map."""
    where = f"secrets.{name}"
    theta, metric = threshold(secrets.theta, point, where), secrets.metric
    if isinstance(metric, Haversine):
        (_, _), (west, east) = point.box
        if point.metric != "local" or east - west > 180:
            raise SpecificationError(
                f"{where}: Haversine measures latitudes and longitudes of a box that spans at most 180 degrees of longitude."
            )
        reach = sphere_reach(point, theta)
    else:
        weight = 1 if metric is None or isinstance(metric, Discrete) else metric.weight(name)
        reach = plane_reach(point, theta / weight, 1 if isinstance(metric, L1) else 2)
    return Lattice(point.n_values, stars=stars, columns=point.shape[1], reach=reach)


def _check_on(on: str | None, name: str, where: str) -> None:
    if on is not None and on != name:
        raise SpecificationError(f"{where}: {on!r} names another attribute.")


def _partition_axis(
    secrets: Partition, attribute: Attribute, name: str, other: tuple[bool, ...], missing: tuple[bool, ...]
) -> Axis:
    n, where = attribute.n_values, f"secrets.{name}"
    if n > MAX_ARRAY:
        raise Unsupported(f"{where}: blocks of more than 2^25 cells; declare coarser cells.")
    if secrets.blocks is not None:
        if isinstance(secrets.blocks, tuple) and name not in dict(secrets.blocks):
            raise SpecificationError(f"{where}.blocks: no number of blocks for this attribute; give one.")
        count = dict(secrets.blocks)[name] if isinstance(secrets.blocks, tuple) else secrets.blocks
        if isinstance(attribute, Point):
            return Blocks(n, stars=missing, labels=_squares(attribute, count))
        if not isinstance(count, int):
            raise SpecificationError(f"{where}.blocks: one number; rows and columns are for places.")
        labels: Ints = _runs(n, count)
    else:
        assert secrets.by is not None
        if secrets.is_mapping:
            told: dict[int, Any] = {}
            for value, label in secrets.by:
                cell = attribute.cell(value, f"{where}.by")
                if told.setdefault(cell, label) != label:
                    raise SpecificationError(
                        f"{where}.by: two blocks for the cell {attribute.label(cell)!r}."
                    )
            lacking = [c for c in range(n) if c not in told]
            if lacking:
                raise SpecificationError(
                    f"{where}.by: no block for {attribute.label(lacking[0])!r}; name a block for every value."
                )
            if attribute.missing_cell in told:
                raise SpecificationError(f"{where}.by: the missing cell has edges of its own; leave it out.")
            if other and n in told:
                n, other = n + 1, ()
            raw = [told[c] for c in range(n)]
        else:
            raw = list(secrets.by)
            if len(raw) != n:
                raise SpecificationError(f"{where}.by: {n} cells are declared and {len(raw)} labels given.")
        labels = _numbered(raw)
    stars = other + missing
    breaks = np.flatnonzero(np.diff(labels)) + 1
    starts_of_runs = np.concatenate([[0], breaks]).astype(np.int64)
    if len(np.unique(labels)) == len(starts_of_runs):
        lengths = np.diff(np.concatenate([starts_of_runs, [n]]))
        return Axis(n, starts=np.repeat(starts_of_runs, lengths), stars=stars)
    if isinstance(attribute, Point):
        return Blocks(n, stars=stars, labels=labels)
    return Axis(n, pairs=_cliques(labels, where), stars=stars)


def _runs(n: int, blocks: int) -> Ints:
    return np.arange(n, dtype=np.int64) * min(blocks, n) // n


def _squares(point: Point, blocks: int | Cut) -> Ints:
    """The block of each cell of a map."""
    cut = Cut(blocks, blocks) if isinstance(blocks, int) else blocks
    row, column = (_runs(n, k) for n, k in zip(point.shape, (cut.rows, cut.columns), strict=True))
    return (row[:, None] * (int(column[-1]) + 1) + column[None, :]).ravel()


def _numbered(raw: list[Any]) -> Ints:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(v, len(numbers)) for v in raw], dtype=np.int64)


def _cliques(labels: Ints, where: str) -> Ints:
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    if int((sizes * (sizes - 1) // 2).sum()) > MAX_PAIRS:
        raise Unsupported(
            f"{where}: blocks that are not runs of cells need more than {MAX_PAIRS:,} pairs; order the cells by block."
        )
    listed, at = [], 0
    for size in sizes:
        members = np.sort(order[at : at + size])
        a, b = np.triu_indices(size, 1)
        listed.append(np.stack([members[a], members[b]], axis=1))
        at += size
    return np.concatenate(listed).astype(np.int64)


def _bind_partition(secrets: Partition, domain: Domain) -> Graph:
    if secrets.blocks is not None:
        if not isinstance(secrets.blocks, tuple) and len(domain) > 1:
            raise SpecificationError('Partition.blocks: name the attributes, as in {"lat": 16, "lon": 16}.')
        if isinstance(secrets.blocks, tuple):
            for name, _ in secrets.blocks:
                domain.attribute(name, "Partition.blocks")
        cut = dict(secrets.blocks) if isinstance(secrets.blocks, tuple) else domain.names
        axes = [attribute_axis(secrets if n in cut else Full(), domain[n], n) for n in domain.names]
        return Graph(domain, "strong", tuple(axes))
    if secrets.on is not None or len(domain) == 1:
        name = _one(secrets.on, domain, "Partition")
        axes = [attribute_axis(secrets if n == name else Full(), domain[n], n) for n in domain.names]
        return Graph(domain, "strong", tuple(axes))
    assert secrets.by is not None
    if domain.size > LISTABLE:
        raise Unsupported("Partition.by over several attributes: more than 2^22 cells; use blocks.")
    if secrets.is_mapping:
        told: dict[int, Any] = {}
        codes = _tuples(domain, [k for k, _ in secrets.by], "Partition.by").tolist()
        for code, (_, label) in zip(codes, secrets.by, strict=True):
            if told.setdefault(code, label) != label:
                shown = ", ".join(domain.labels(code))
                raise SpecificationError(f"Partition.by: two blocks for the cell ({shown}).")
        missing = _missing_cells(domain, "secret") | _missing_cells(domain, "public")
        lacking = [c for c in range(domain.size) if c not in told and not missing[c]]
        if lacking:
            shown = ", ".join(domain.labels(lacking[0]))
            raise SpecificationError(
                f"Partition.by: no block for ({shown}); name a block for every tuple of values."
            )
        labels = _numbered([("named", told[c]) if c in told else ("alone", c) for c in range(domain.size)])
    else:
        if len(secrets.by) != domain.size:
            raise SpecificationError(
                f"Partition.by: {domain.size} cells are declared and {len(secrets.by)} labels given."
            )
        labels = _numbered(list(secrets.by))
    public = _public_pattern(domain)
    return _flat(
        domain,
        _cliques(_numbered(list(zip(labels.tolist(), public.tolist(), strict=True))), "Partition"),
        "Partition",
    )


def _missing_cells(domain: Domain, kind: str) -> Any:
    """Mask of the cells in which some attribute of that kind of missing is missing."""
    mask = np.zeros(domain.size, dtype=bool)
    for attribute, cells in zip(domain.values(), domain.decode(np.arange(domain.size)), strict=True):
        if attribute.missing == kind:
            mask |= cells == attribute.missing_cell
    return mask


def _public_pattern(domain: Domain) -> Ints:
    pattern = np.zeros(domain.size, dtype=np.int64)
    for attribute, cells in zip(domain.values(), domain.decode(np.arange(domain.size)), strict=True):
        if attribute.missing == "public":
            pattern = pattern * 2 + (cells == attribute.missing_cell)
    return pattern


def _flat(domain: Domain, pairs: Ints, where: str) -> Graph:
    """A graph over whole cells, with the edges of secret missing cells added."""
    if len(pairs) and any(a.missing == "public" for a in domain.values()):
        for attribute, x, y in zip(
            domain.values(), domain.decode(pairs[:, 0]), domain.decode(pairs[:, 1]), strict=True
        ):
            if (
                attribute.missing == "public"
                and ((x == attribute.missing_cell) != (y == attribute.missing_cell)).any()
            ):
                raise SpecificationError(f"{where}: an edge joins a public missing cell to a value.")
    stars = Graph(domain, "cartesian", tuple(attribute_axis(Nothing(), domain[n], n) for n in domain.names))
    listed = [pairs]
    if stars.has_edges:
        if domain.size > LISTABLE:
            raise Unsupported(f"{where}: more than 2^22 cells with a secret missing cell.")
        listed += [np.stack(e, axis=1) for e in stars.edges()]
    every = np.concatenate(listed)
    return Graph(domain, "flat", (Axis(domain.size, pairs=_canonical(every[:, 0], every[:, 1])),))


def _tuples(domain: Domain, values: list[Any], where: str) -> Ints:
    codes = []
    for value in values:
        if not isinstance(value, tuple) or len(value) != len(domain):
            raise SpecificationError(f"{where}: tuples of {len(domain)} values, in the domain's order.")
        cells = [domain[n].cell(v, f"{where}.{n}") for n, v in zip(domain.names, value, strict=True)]
        codes.append(int(domain.encode(cells)))
    return np.array(codes, dtype=np.int64)
