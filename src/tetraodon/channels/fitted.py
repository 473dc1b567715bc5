"""Planar noise that is as little as what was asked allows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from . import planar
from .geometry import Geometry
from .shift import Shift

TRIES = 8
MOST = 300  # beyond, probabilities are at the end of doubles, and no rate loses much more
ENOUGH = Fraction(9995, 10000)
AIM = Fraction(99998, 100000)


def fitted(
    kind: str,
    rate: Fraction,
    epsilon: Fraction,
    realised: Callable[[Shift], Fraction | float],
    place: Geometry,
    fixed: int,
) -> Shift:
    """A law of planar noise that realises almost ε, and never more.

    The law of the given rate keeps ε. It may realise less, because cells and borders are sets of places and because not all
    edges of a graph are as long as the longest; then larger rates are tried by the secant rule. Every law that is tried is
    accepted by its own certified loss alone, so nothing depends on how the loss grows with the rate.

    Args:
        kind: of ``planar.KINDS``.
        rate: per unit of length.
        epsilon: as asked.
        realised: the certified loss of a law, to be compared with ε.
        place: the grid.
        fixed: special cells that pass.
    """

    def made(faster: Fraction) -> tuple[Shift, Fraction | float]:
        law = planar.law(kind, faster, place.steps, place.shape, fixed)
        return law, realised(law)

    best, loss = made(rate)
    slope = rate / Fraction(loss or 1)
    for _ in range(TRIES):
        if not 0 < loss < epsilon * ENOUGH:
            break
        faster = rate + slope * (epsilon * AIM - Fraction(loss))
        law, found = made(faster)
        slope = (faster - rate) / Fraction(found - loss) if found > loss else slope / 2
        if found <= epsilon:
            best, rate, loss = law, faster, found
    return best
