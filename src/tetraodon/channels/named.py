"""Channels by formula, which need no prior: randomised response, exponential, planar noise, tight constraints.

Every one keeps at most the ε it is asked for, exactly, on the numbers that are drawn from: it is made for an ε that is smaller
by what rounding can come to (the arguments are in ``planar`` and ``formulas``). What each
realises is ``channel.epsilon(secrets)`` and ``channel.epsilon_per(length)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from ..attributes import Attribute, Numeric, Point
from ..binding import bind
from ..domain import Domain, a_domain
from ..errors import SpecificationError, Unsupported
from ..exact import Number, positive, show
from ..graphs import Graph
from ..lengths import measured
from ..metrics import Discrete, Haversine, Metric
from ..secrets import Full, Secrets
from . import planar
from .bounds import stretch
from .channel import Asked, Channel
from .fitted import fitted
from .formulas import exists, falling, table, tight
from .geometry import MAX_ENTRIES, Floats, Geometry
from .reach import hops, longest
from .shift import Shift
from .table import Table

SEARCHED = 1024


def randomised_response(
    domain: Domain,
    epsilon: Number,
    epsilon_per: Number | None = None,
    secrets: Secrets | None = None,
) -> Channel:
    """The true value with probability e^ε/(e^ε + n − 1), any other of the n values with probability 1/(e^ε + n − 1).

    Args:
        domain: at most 4,096 cells.
        epsilon: along every edge; any two values are ε apart, whatever the graph.
        epsilon_per: not for this channel, which knows no distances.
        secrets: ``Full()`` unless told otherwise; under another graph it answers within each of its components, and which
            component a value lies in is disclosed, as the graph says.

    Raises:
        SpecificationError: an epsilon that is not above 0, or ``epsilon_per``.
        Unsupported: more than 4,096 cells, or an epsilon below 10^-11.

    Source: Warner 1965; Kairouz, Oh, Viswanath 2014.

    >>> from ..attributes import Categorical
    >>> vote = Domain(vote=Categorical(["no", "yes", "none"]))
    >>> channel = randomised_response(vote, "0.5")
    >>> channel.matrix.round(4).tolist()[0], float(channel.epsilon(Full())) <= 0.5
    ([0.4519, 0.2741, 0.2741], True)
    """
    if epsilon_per is not None:
        raise SpecificationError(
            "randomised_response: knows no distances; state epsilon alone, or use planar_geometric or exponential."
        )
    amount = positive(epsilon, "epsilon")
    _small(domain, "randomised_response")
    graph = _joined("randomised_response", bind(Full() if secrets is None else secrets, domain))
    apart = np.where(np.isfinite(hops(graph)), 1.0, inf)
    np.fill_diagonal(apart, 0.0)
    law = table(falling, apart, amount, amount)
    return _channel("randomised response", domain, law, amount, None, secrets)


def exponential(
    domain: Domain,
    epsilon: Number,
    epsilon_per: Number | None = None,
    secrets: Secrets | None = None,
    metric: Metric | None = None,
) -> Channel:
    """P(z | w) = e^{−ε d(w, z)/2} / Σ_z' e^{−ε d(w, z')/2}: nearer outputs are likelier, by any distance.

    Args:
        domain: at most 4,096 cells.
        epsilon: along every edge of ``secrets``, or for every ``epsilon_per`` of distance.
        epsilon_per: a length such as "km" or "100 m" or a number in the domain's unit; d is then measured by ``metric``.
        secrets: a graph; d is then the number of its edges between two values, and values that no path joins are not mixed up.
        metric: ``L2`` unless told otherwise, ``L1`` or ``Discrete``.

    Raises:
        SpecificationError: neither or both of ``epsilon_per`` and ``secrets``; an epsilon that is not above 0.
        Unsupported: more than 4,096 cells, or an epsilon so small that rounding is not small beside it.

    Source: McSherry, Talwar 2007; over graphs of places Cao et al. 2020.

    >>> from ..attributes import Integer
    >>> from ..secrets import Within
    >>> steps = Domain(x=Integer(0, 3))
    >>> exponential(steps, 2, secrets=Within(1)).matrix.round(3).tolist()[0]
    [0.644, 0.237, 0.087, 0.032]
    """
    asked = _asked("exponential", domain, epsilon, epsilon_per, secrets, metric)
    law = table(lambda apart, rate: falling(apart, rate / 2), asked.apart, asked.rate, asked.least)
    return _channel("exponential", domain, law, asked.epsilon, epsilon_per, secrets, metric=_spec(metric))


def tight_constraints(
    domain: Domain,
    epsilon: Number,
    epsilon_per: Number | None = None,
    secrets: Secrets | None = None,
    metric: Metric | None = None,
) -> Channel:
    """P(z | w) = e^{−ε d(w, z)} y_z with Σ_z e^{−ε d(w, z)} y_z = 1 for every w: every output is as telling as ε lets it be.

    Nearly the least distortion that ε allows under an even prior, without a linear programme. It exists only where y ≥ 0: with
    cells that are long beside 1/ε. On square cells of side s that takes an ε·s of a little above 1/2.

    Args:
        domain: at most 4,096 cells.
        epsilon, epsilon_per, secrets, metric: as for ``exponential``.

    Raises:
        SpecificationError: neither or both of ``epsilon_per`` and ``secrets``; an epsilon that is not above 0.
        Unsupported: it does not exist for this epsilon on these cells; the message says from which epsilon on it does.

    Source: Chatzikokolakis, Palamidessi (libqif); existence and rounding derived.

    >>> plane = Domain(at=Point("x", "y", box=((0, 5), (0, 5)), cell=1, metric="planar", unit="km"))
    >>> round(tight_constraints(plane, 1, "km").distortion(), 5)
    1.24586
    """
    asked = _asked("tight_constraints", domain, epsilon, epsilon_per, secrets, metric)
    if not exists(asked.apart, float(asked.rate)):
        raise Unsupported(f"tight_constraints: {_hint(asked)}")
    law = table(tight, asked.apart, asked.rate, asked.least)
    return _channel(
        "tight constraints", domain, law, asked.epsilon, epsilon_per, secrets, metric=_spec(metric)
    )


def planar_geometric(
    domain: Domain,
    epsilon: Number,
    epsilon_per: Number | None = None,
    secrets: Secrets | None = None,
    resolution: Number | None = None,
) -> Channel:
    """Noise on the lattice of cells, P(offset u) ~ e^{−ε|u|}, clamped to the grid; what lies beyond it counts at its border.

    With fewer than three rows or columns, and for ``secrets``, there is a little less noise: as much as makes it realise ε.

    Args:
        domain: a grid: one ``Point``, or one or two ordered attributes in one unit; at most 2^22 cells.
        epsilon: for every ``epsilon_per`` of distance between any two cells, or along every edge of ``secrets``.
        epsilon_per: a length such as "km" or "100 m", or a number in the domain's unit.
        secrets: a graph; noise is then as large as its edges need: at most what the longest of them needs, measured between
            centres of cells.
        resolution: a length: values and outputs are cells of that size at most instead of the domain's own.

    Raises:
        SpecificationError: no grid, neither or both of ``epsilon_per`` and ``secrets``, an epsilon that is not above 0,
            ``missing="secret"``, secrets without edges.
        Unsupported: too many cells, or an epsilon so small that rounding is not small beside it.

    Source: Andrés, Bordenabe, Chatzikokolakis, Palamidessi 2013 (noise in the plane); tails and rounding derived.

    >>> plane = Domain(at=Point("x", "y", box=((0, 5), (0, 5)), cell=1, metric="planar", unit="km"))
    >>> channel = planar_geometric(plane, 1, "km")
    >>> round(channel.distortion(), 3), 0.999 < channel.epsilon_per("km") <= 1
    (1.301, True)
    """
    return _planar("geometric", domain, epsilon, epsilon_per, secrets, resolution)


def planar_laplace(
    domain: Domain,
    epsilon: Number,
    epsilon_per: Number | None = None,
    secrets: Secrets | None = None,
    resolution: Number | None = None,
) -> Channel:
    """Planar Laplace noise, density ε²/(2π) e^{−ε r}, around the centre of the cell, snapped to cells and clamped to the grid.

    The integral over cells is exact up to rounding, so the outputs are a function of ε-private noise and ε-private themselves.
    The radius is Gamma(2, 1/ε) distributed, with mean 2/ε and 4.744/ε at 95 % (``planar.radius``). Continuous noise is not
    offered as floating-point numbers, whose last digits give the value away (Mironov 2012): ``resolution`` makes the lattice
    as fine as outputs are wanted.

    Args and errors are those of ``planar_geometric``.

    Source: Andrés, Bordenabe, Chatzikokolakis, Palamidessi 2013; integrals and rounding derived.

    >>> plane = Domain(at=Point("x", "y", box=((0, 1000), (0, 500)), cell=100, metric="planar", unit="m"))
    >>> planar_laplace(plane, 2, "100 m", resolution=20).outputs.size
    1250
    """
    return _planar("laplace", domain, epsilon, epsilon_per, secrets, resolution)


def _planar(
    kind: str,
    domain: Domain,
    epsilon: Number,
    epsilon_per: Number | None,
    secrets: Secrets | None,
    resolution: Number | None,
) -> Channel:
    where = f"planar_{kind}"
    amount = positive(epsilon, "epsilon")
    _one_of(where, epsilon_per, secrets)
    if resolution is not None:
        domain = _finer(domain, resolution, where)
    place = Geometry(domain)
    if not place.is_grid:
        raise SpecificationError(
            f"{where}: needs a grid of equal cells: one Point, or one or two ordered attributes in one unit; use exponential "
            "or randomised_response for other domains."
        )
    fixed = _passing(domain, where)
    if secrets is not None:
        graph = _joined(where, bind(secrets, domain))
        rate = amount / (longest(graph, place) or 1)
        law = fitted(kind, rate, amount, lambda law: Channel(domain, law).epsilon(graph), place, fixed)
    else:
        assert epsilon_per is not None
        length = epsilon_per
        rate = amount / stretch(length, place.unit)
        if kind == "laplace":  # a law in its own right, whatever the grid makes of it
            law = planar.law(kind, rate, place.steps, place.shape, fixed)
        else:
            law = fitted(
                kind, rate, amount, lambda law: Channel(domain, law).epsilon_per(length), place, fixed
            )
    return _channel(
        f"planar {kind}", domain, law, amount, epsilon_per, secrets, resolution=None if resolution is None else str(resolution),
    )  # fmt: skip


def _finer(domain: Domain, resolution: Number, where: str) -> Domain:
    """The same places in smaller cells."""
    [(name, attribute), *others] = domain.items()
    if others or not isinstance(attribute, Point | Numeric):
        raise SpecificationError(f"{where}: resolution is for one Point or one Numeric attribute.")
    told: Attribute
    if isinstance(attribute, Point):
        told = Point(
            attribute.first, attribute.second, box=attribute.box, cell=resolution, metric=attribute.metric,
            unit=attribute.unit, missing=attribute.missing,
        )  # fmt: skip
    else:
        width = measured(resolution, attribute.unit, "resolution")
        if width <= 0:
            raise SpecificationError("resolution: must be above 0.")
        told = Numeric(
            attribute.low, attribute.high, cells=-int(-(attribute.high - attribute.low) // width), unit=attribute.unit,
            missing=attribute.missing, column=attribute.column,  # type: ignore[arg-type]
        )  # fmt: skip
    return Domain({name: told})


@dataclass(frozen=True, eq=False)
class _Asked:
    """What a table of rows has to keep: ``rate`` for every unit of ``apart``.

    Attributes:
        epsilon: as asked.
        rate: loss per unit of ``apart``, exact.
        apart: float64, shape (cells, cells), infinite between cells that are not to be mixed up.
        least: the smallest bound of any pair.
    """

    epsilon: Fraction
    rate: Fraction
    apart: Floats
    least: Fraction


def _asked(
    where: str,
    domain: Domain,
    epsilon: Number,
    epsilon_per: Number | None,
    secrets: Secrets | None,
    metric: Metric | None,
) -> _Asked:
    amount = positive(epsilon, "epsilon")
    _one_of(where, epsilon_per, secrets)
    _small(domain, where)
    if secrets is not None:
        if metric is not None:
            raise SpecificationError(f"{where}.metric: goes with epsilon_per; secrets are counted in edges.")
        return _Asked(amount, amount, hops(_joined(where, bind(secrets, domain))), amount)
    assert epsilon_per is not None
    if isinstance(metric, Haversine):
        raise SpecificationError(
            f"{where}.metric: L2, L1 or Discrete; great circles are known to too few digits."
        )
    place = Geometry(domain)
    unit = None if isinstance(metric, Discrete) else place.unit
    rate = amount / stretch(epsilon_per, unit)
    _passing(domain, where)
    apart = place.matrix(metric)
    special = ~place.ordinary
    apart[special | special[:, None]] = inf
    np.fill_diagonal(apart, 0.0)
    nearest = apart[(apart > 0) & (apart < inf)].min(initial=inf)
    return _Asked(amount, rate, apart, rate * Fraction(float(nearest)) if nearest < inf else amount)


def _one_of(where: str, epsilon_per: Number | None, secrets: Secrets | None) -> None:
    if (epsilon_per is None) == (secrets is None):
        raise SpecificationError(
            f"{where}: state epsilon_per (a length, such as 'km') or secrets (epsilon along their edges), one of them."
        )


def _small(domain: Domain, where: str) -> None:
    if a_domain(domain, f"{where}.domain").size ** 2 > MAX_ENTRIES:
        raise Unsupported(
            f"{where}: a table of rows, for up to 4,096 cells; declare coarser ones, or use planar_geometric."
        )


def _passing(domain: Domain, where: str) -> int:
    """How many special cells have no distance to others and come out as they are: a public ``missing``."""
    for name, attribute in domain.items():
        if attribute.missing == "secret":
            raise SpecificationError(
                f"{where}: {name!r} is declared missing='secret', and distances cannot hide whether a value is missing; "
                "declare missing='public', or use exponential or randomised_response with secrets=."
            )
        special = attribute.size - attribute.n_values
        if attribute.other is not None or (special and len(domain) > 1):
            raise SpecificationError(
                f"{where}: {name!r} has a cell without a place; declare {'no other' if attribute.other else 'missing=refuse'}, "
                "or use exponential or randomised_response with secrets=."
            )
    return sum(a.size - a.n_values for a in domain.values())


def _hint(asked: _Asked) -> str:
    """Why there is no such channel, and what to do instead."""
    fix = "use a larger epsilon or larger cells, or planar_geometric or least_distortion, which always exist."
    if len(asked.apart) <= SEARCHED:
        for step in range(1, 60):
            factor = Fraction(11, 10) ** step
            if exists(asked.apart, float(asked.rate * factor)):
                least = float(asked.epsilon * factor)
                return f"does not exist on these cells below an epsilon of about {least:.3g}; {fix}"
    return f"does not exist on these cells for this epsilon; {fix}"


def _channel(
    name: str,
    domain: Domain,
    law: Table | Shift,
    epsilon: Fraction,
    epsilon_per: Number | None,
    secrets: Secrets | None,
    **more: Any,
) -> Channel:
    told: dict[str, Any] = {"kind": name.replace(" ", "-"), "epsilon": show(epsilon)}
    if epsilon_per is not None:
        told["epsilon_per"] = str(epsilon_per)
    if secrets is not None:
        told["secrets"] = secrets.to_spec()
    told |= {key: value for key, value in more.items() if value is not None}
    per = None if epsilon_per is None else str(epsilon_per)
    return Channel(domain, law, name=name, asked=Asked(epsilon, per), settings=told)


def _spec(metric: Metric | None) -> Any:
    return None if metric is None else metric.to_spec()


def _joined(where: str, graph: Graph) -> Graph:
    """The graph, if it has edges, or nothing to join."""
    if not graph.has_edges and graph.domain.size > 1:
        raise SpecificationError(
            f"{where}: secrets joins no two values, so that none needs protection; state secrets with edges."
        )
    return graph
