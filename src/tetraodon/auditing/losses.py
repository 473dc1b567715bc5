"""The loss between two tables, exactly, from the laws of what is given out: no draws, no statistics.

Discrete Laplace noise of scale s on a number that moves by Δ loses |Δ|/s, and no less, since the ratio of probabilities is
constant beyond both; discrete Gaussian noise costs ρ = Δ²/(2σ²), no less for whole Δ (Canonne, Kamath, Steinke 2020);
independent numbers add up. A number without noise that moves loses everything. A channel loses the largest log-ratio of two
of its exact rows; ``is_within`` decides in integers whether that is at most ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

from ..loss import Unit
from .answering import Exact

_DIGITS = Context(prec=80)


def of_rows(unit: Unit, one: Exact, two: Exact) -> Fraction | None:
    """The exact loss between two tables of what a linear mechanism observes; None where it is unbounded.

    >>> import numpy as np
    >>> told = [Exact(np.array(v), (Fraction(2), Fraction(4))) for v in ([3.0, 1.0], [4.0, 3.0])]
    >>> of_rows("epsilon", *told), of_rows("rho", *told)
    (Fraction(1, 1), Fraction(3, 4))
    """
    found = Fraction(0)
    for j in (one.values != two.values).nonzero()[0].tolist():
        moved, scale = abs(Fraction(one.values[j]) - Fraction(two.values[j])), one.scales[j]
        if scale is None:
            return None
        found += moved / scale if unit == "epsilon" else moved**2 / (2 * scale)
    return found


def is_within(one: Sequence[Fraction], two: Sequence[Fraction], epsilon: Fraction) -> bool:
    """Whether no outcome's probability differs by a factor of more than e^ε between two exact laws.

    >>> half, most = [Fraction(1, 2)] * 2, [Fraction(3, 4), Fraction(1, 4)]
    >>> is_within(half, most, Fraction(7, 10)), is_within(half, most, Fraction(69, 100))
    (True, False)
    """
    if any((p == 0) != (q == 0) for p, q in zip(one, two, strict=True)):
        return False
    exponent = _DIGITS.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    near = Fraction(_DIGITS.exp(exponent)) * (1 - Fraction(1, 10**70))  # below e^ε
    return all(max(p, q) <= near * min(p, q) for p, q in zip(one, two, strict=True))


def log_ratio(one: Sequence[Fraction], two: Sequence[Fraction]) -> float | None:
    """The largest log-ratio of two exact laws to a dozen digits; None where it is unbounded."""
    if any((p == 0) != (q == 0) for p, q in zip(one, two, strict=True)):
        return None
    ratios = [max(p, q) / min(p, q) for p, q in zip(one, two, strict=True) if p]
    worst = max(ratios, default=Fraction(1))
    told = _DIGITS.ln(_DIGITS.divide(Decimal(worst.numerator), Decimal(worst.denominator)))
    return float(told)
