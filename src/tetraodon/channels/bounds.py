"""How much the outputs of two inputs may differ: pairs of cells with a bound on the log-ratio of every output.

Two ways to ask for it. Along the edges of a secret graph (Blowfish policies; He, Machanavajjhala, Ding 2014, and for places
Cao et al. 2020): ε for each edge, hence ε·hops by chaining. Or per unit of length between any two cells
(geo-indistinguishability; Andrés, Bordenabe, Chatzikokolakis, Palamidessi 2013): ε·distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from ..axes import Ints
from ..binding import bind
from ..domain import Domain
from ..errors import SpecificationError, Unsupported
from ..exact import Number, exact, positive
from ..graphs import Graph
from ..lengths import LENGTHS, measured
from ..metrics import Metric
from ..secrets import Secrets
from .geometry import MAX_ENTRIES, Floats, Geometry


@dataclass(frozen=True, eq=False)
class Bounds:
    """Undirected pairs of input cells, each with the most that |ln K[a, z] − ln K[b, z]| may be for any output z.

    Attributes:
        first, second: cells, int64, shape (pairs,).
        losses: float64, shape (pairs,), rounded down, so that keeping them keeps what was asked exactly.
    """

    first: Ints
    second: Ints
    losses: Floats

    def __len__(self) -> int:
        return len(self.first)

    def dense(self, n: int) -> Floats:
        """Shape (n, n): the bounds as a table, infinite where there is none, 0 on the diagonal."""
        if n * n > MAX_ENTRIES:
            raise Unsupported("channel: a table of bounds holds 4,096 cells at most; declare coarser ones.")
        found = np.full((n, n), inf)
        found[self.first, self.second] = found[self.second, self.first] = self.losses
        np.fill_diagonal(found, 0.0)
        return found


def down(value: Fraction | float) -> float:
    """The largest double that is not above ``value``."""
    near = float(value)
    return near if Fraction(near) <= value else float(np.nextafter(near, -inf))


def edges_of(graph: Graph) -> tuple[Ints, Ints]:
    """Every edge of a graph.

    Raises:
        Unsupported: more than 2^24 of them.
    """
    first, second, count = [], [], 0
    for a, b in graph.edges():
        count += len(a)
        if count > MAX_ENTRIES:
            raise Unsupported("secrets: more than 2^24 edges; declare coarser cells.")
        first.append(a)
        second.append(b)
    none = np.zeros(0, dtype=np.int64)
    return (np.concatenate(first), np.concatenate(second)) if first else (none, none)


def stretch(length: Number, unit: str | None, where: str = "epsilon_per") -> Fraction:
    """A length such as "km", "100 m", or a number, in a domain's unit.

    >>> stretch("km", "m"), stretch(4, None), stretch("steps", "steps")
    (Fraction(1000, 1), Fraction(4, 1), Fraction(1, 1))
    """
    named = isinstance(length, str) and (length == unit or length in LENGTHS)
    found = measured(f"1 {length}" if named else length, unit, where)
    if not found:
        raise SpecificationError(f"{where}: a length above 0, such as 'km' or '100 m'.")
    return found


def bounds_of(
    domain: Domain,
    epsilon: Number,
    secrets: Secrets | Graph | None = None,
    epsilon_per: Number | None = None,
    metric: Metric | None = None,
) -> Bounds:
    """The pairs that a channel must keep indistinguishable.

    Args:
        epsilon: exact and above 0.
        secrets: the edges of this graph, ε for each; or
        epsilon_per: a length ("km", "100 m", or a number in the domain's unit): ε for every such length between any two cells,
            by ``metric`` (the straight line unless told otherwise).

    Raises:
        SpecificationError: neither or both of them.
        Unsupported: too many pairs.

    >>> from ..attributes import Integer
    >>> from ..graphs import Within
    >>> bounds_of(Domain(x=Integer(0, 2)), "1/2", secrets=Within(1)).dense(3).tolist()
    [[0.0, 0.5, inf], [0.5, 0.0, 0.5], [inf, 0.5, 0.0]]
    """
    amount = positive(epsilon, "epsilon")
    if (secrets is None) == (epsilon_per is None):
        raise SpecificationError(
            "channel: state secrets (epsilon along their edges) or epsilon_per (a length), one of them."
        )
    if secrets is not None:
        graph = secrets if isinstance(secrets, Graph) else bind(secrets, domain)
        first, second = edges_of(graph)
        return Bounds(first, second, np.full(len(first), down(amount)))
    assert epsilon_per is not None
    if domain.size**2 > MAX_ENTRIES:
        raise Unsupported("channel: all pairs of cells are listed up to 4,096 cells; declare coarser ones.")
    place = Geometry(domain)
    if not place.ordinary.all():
        raise Unsupported(
            "epsilon_per: special cells have no place; declare missing='refuse', or state secrets instead."
        )
    rate = amount / stretch(epsilon_per, place.unit)
    first, second = np.triu_indices(domain.size, 1)
    apart = place.between(metric, first, second)
    # Coordinates up to 4,096 cells from the low end are right to 2^-41 of a cell, and cells are at least one apart.
    return Bounds(first, second, np.nextafter(apart * down(rate) * (1 - 2e-12), 0))


def amount_of(epsilon: object) -> Fraction:
    """ε as an exact rational of 0 or more."""
    amount = exact(epsilon, "epsilon")
    if amount < 0:
        raise SpecificationError("epsilon: must not be negative.")
    return amount
