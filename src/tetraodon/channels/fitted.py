"""Planar noise for the edges of a secret graph: as little of it as they allow."""

from __future__ import annotations

from fractions import Fraction

from ..domain import Domain
from ..graphs import Graph
from . import planar
from .channel import Channel
from .geometry import Geometry
from .reach import longest
from .shift import Shift

TRIES = 8
ENOUGH = Fraction(9995, 10000)
AIM = Fraction(99998, 100000)


def fitted(kind: str, epsilon: Fraction, domain: Domain, graph: Graph, fixed: int) -> Shift:
    """A law of planar noise that keeps ε along every edge.

    The rate ε / (length of the longest edge) does. Edges may lose less than that, because cells and borders are sets of places,
    and then larger rates are tried by the secant rule until one loses almost ε. Every law that is tried is accepted by its own
    certified loss alone, so nothing depends on how the loss grows with the rate.

    Args:
        kind: of ``planar.KINDS``.
        epsilon: along every edge.
        graph: over a grid; with one cell it may be without edges.
        fixed: special cells that pass.
    """
    place = Geometry(domain)

    def made(rate: Fraction) -> tuple[Shift, Fraction | float]:
        law = planar.law(kind, rate, place.steps, place.shape, fixed)
        return law, Channel(domain, law).epsilon(graph)

    rate = epsilon / (longest(graph, place) or 1)
    best, realised = made(rate)
    slope = rate / (realised or 1)
    for _ in range(TRIES):
        if not 0 < realised < epsilon * ENOUGH:
            break
        faster = Fraction(float(rate + slope * (epsilon * AIM - realised)))
        law, found = made(faster)
        slope = (faster - rate) / (found - realised) if found > realised else slope / 2
        if found <= epsilon:
            best, rate, realised = law, faster, found
    return best
