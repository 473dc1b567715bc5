"""What ρ of zero-concentrated privacy means in (ε, δ), and back.

ρ-zCDP (Bun, Steinke 2016): along an edge of the policy the Rényi divergence of every order α > 1 is at most ρ·α. Every
such α bounds the chance of exceeding ε (Canonne, Kamath, Steinke 2020, proposition 12):

    δ(α) = exp((α − 1)(α·ρ − ε)) / (α − 1) · (1 − 1/α)^α.

The functions here look for the best α in floating point and evaluate the bound there in decimals of 60 digits, rounded to
the safe side. The formula speaks of ρ alone, so it holds for the discrete noise that is drawn; the formula of the
continuous Gaussian does not (it understates δ, by more than half where the noise is small) and is given for comparison only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from .errors import SpecificationError
from .exact import Number, exact, positive

_CONTEXT = Context(prec=60, Emin=-(10**8), Emax=10**8)
_MARGIN = Decimal(
    "1e-20"
)  # relative; a dozen roundings at sixty digits, magnified by α ≤ e^60 at most, stay far below
_STEPS = 200
_NEAREST, _FARTHEST = -36.0, 60.0  # ln(α − 1); below e^−36 the sum 1 + e^x is 1 in floating point
GOLDEN = (math.sqrt(5) - 1) / 2


def delta_of(rho: Number, epsilon: Number) -> float:
    """Least δ of the formula for which ρ-zCDP implies (ε, δ), rounded up; at most 1.

    >>> round(delta_of("0.1", 1), 6)
    0.008933
    >>> delta_of(0, 0)
    0.0
    """
    r, e = _amount(rho, "rho"), _amount(epsilon, "epsilon")
    if not r:
        return 0.0
    r_float, e_float = float(r), float(e)

    def logarithm(alpha: float) -> float:
        return (
            (alpha - 1) * (alpha * r_float - e_float) - math.log(alpha - 1) + alpha * math.log1p(-1 / alpha)
        )

    found = _log_delta(_best(logarithm), r, e)
    found = _CONTEXT.add(found, _CONTEXT.multiply(abs(found) + 1, _MARGIN))
    return 1.0 if found >= 0 else _up(_CONTEXT.exp(found))


def epsilon_of(rho: Number, delta: Number) -> float:
    """Least ε of the formula for which ρ-zCDP implies (ε, δ), rounded up.

    >>> round(epsilon_of("0.1", "1e-6"), 4)
    2.1419
    """
    r, d = _amount(rho, "rho"), probability(delta, "delta")
    if not r:
        return 0.0
    r_float, log_d = float(r), float(_CONTEXT.ln(_decimal(d)))

    def needed(alpha: float) -> float:
        return alpha * r_float - (log_d + math.log(alpha)) / (alpha - 1) + math.log1p(-1 / alpha)

    rest, alpha = _rest(_best(needed), d)
    found = _CONTEXT.subtract(_CONTEXT.multiply(alpha, _decimal(r)), rest)
    found = _CONTEXT.add(found, _CONTEXT.multiply(abs(found) + abs(rest), _MARGIN))
    return _up(found) if found > 0 else 0.0


def rho_of(epsilon: Number, delta: Number) -> Fraction:
    """Largest ρ of the formula for which ρ-zCDP implies (ε, δ), rounded down to twelve digits: a budget to state.

    >>> float(rho_of(1, "1e-6"))
    0.0243559703595
    """
    e, d = _amount(epsilon, "epsilon"), probability(delta, "delta")
    e_float, log_d = float(e), float(_CONTEXT.ln(_decimal(d)))

    def lacking(alpha: float) -> float:
        return -(e_float - math.log1p(-1 / alpha) + (log_d + math.log(alpha)) / (alpha - 1)) / alpha

    rest, alpha = _rest(_best(lacking), d)
    found = _CONTEXT.divide(_CONTEXT.add(_decimal(e), rest), alpha)
    found = _CONTEXT.subtract(found, _CONTEXT.multiply(abs(found) + abs(rest), _MARGIN))
    if found <= 0:
        return Fraction(0)
    return Fraction(found.quantize(Decimal(1).scaleb(found.adjusted() - 11), ROUND_FLOOR, _CONTEXT))


def along_path(rho: Fraction, hops: int) -> Fraction:
    """ρ between the two ends of a path of ``hops`` edges: hops²·ρ (group privacy; Bun, Steinke 2016), not hops·ρ.

    >>> along_path(Fraction(1, 10), 3)
    Fraction(9, 10)
    """
    return rho * hops * hops


def of_pure(epsilon: Fraction) -> Fraction:
    """ρ of a release that is ε-private along an edge: ε²/2 (Bun, Steinke 2016, proposition 1.4)."""
    return epsilon * epsilon / 2


def row_delta(sigma_squared: Number, shift: int, epsilon: Number) -> float:
    """Exact δ(ε) of one integer row that moves by ``shift`` under discrete Gaussian noise, to floating point.

    The law is P(x) ∝ exp(−x²/2σ²) on the integers and δ = Σ_x max(0, P(x) − e^ε·P(x − shift)). It speaks of this one
    row: several rows have no formula in one dimension.

    >>> round(row_delta("0.25", 1, 5.37), 4)
    0.05
    """
    s, e = float(positive(sigma_squared, "sigma_squared")), float(_amount(epsilon, "epsilon"))
    size = abs(shift)
    if not size:
        return 0.0
    reach = math.ceil(40 * math.sqrt(s)) + 2 * size + 2
    cells = range(-reach, reach + 1)
    whole = math.fsum(math.exp(-x * x / (2 * s)) for x in cells)

    def term(x: int) -> float:
        here, there = -x * x / (2 * s), -((x - size) ** 2) / (2 * s)
        return -math.expm1(e + there - here) * math.exp(here) if here > e + there else 0.0

    return math.fsum(term(x) for x in cells) / whole


def analytic_delta(sigma: float, distance: float, epsilon: float) -> float:
    """δ(ε) of *continuous* Gaussian noise (Balle, Wang 2018). A comparison number only: the noise drawn is discrete.

    >>> round(analytic_delta(0.5, 1, 5.37), 4)
    0.0214
    """
    from scipy.special import log_ndtr

    half, shift = distance / (2 * sigma), epsilon * sigma / distance
    upper, lower = float(log_ndtr(half - shift)), epsilon + float(log_ndtr(-half - shift))
    return max(0.0, -math.expm1(lower - upper) * math.exp(upper))


def probability(value: object, where: str) -> Fraction:
    """An exact number above 0 and below 1."""
    found = positive(value, where)
    if found >= 1:
        raise SpecificationError(f"{where}: must be below 1.")
    return found


def _amount(value: object, where: str) -> Fraction:
    found = exact(value, where)
    if found < 0:
        raise SpecificationError(f"{where}: must be 0 or more.")
    return found


def _best(score: Callable[[float], float]) -> float:
    """The α of least score by golden section on ln(α − 1); every set {score ≤ c} is an interval, since the logarithm of
    δ(α) is convex in α (its derivative (2α − 1)ρ − ε + ln(1 − 1/α) rises)."""

    def at(x: float) -> float:
        return score(1 + math.exp(x))

    low, high = _NEAREST, _FARTHEST
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    fa, fb = at(a), at(b)
    for _ in range(_STEPS):
        if fa <= fb:
            high, b, fb = b, a, fa
            a = high - GOLDEN * (high - low)
            fa = at(a)
        else:
            low, a, fa = a, b, fb
            b = low + GOLDEN * (high - low)
            fb = at(b)
    return 1 + math.exp((low + high) / 2)


def _log_delta(alpha: float, rho: Fraction, epsilon: Fraction) -> Decimal:
    """ln δ(α) in decimals; the terms before the subtraction are exact rationals, so nothing cancels."""
    a = Fraction(alpha)
    rest = _CONTEXT.subtract(
        _CONTEXT.multiply(_decimal(a), _CONTEXT.ln(_decimal(1 - 1 / a))), _CONTEXT.ln(_decimal(a - 1))
    )
    return _CONTEXT.add(_decimal((a - 1) * (a * rho - epsilon)), rest)


def _rest(alpha: float, delta: Fraction) -> tuple[Decimal, Decimal]:
    """((ln δ + ln α)/(α − 1) − ln(1 − 1/α), α): ε = α·ρ − rest is what α needs for δ."""
    a = Fraction(alpha)
    share = _CONTEXT.divide(_CONTEXT.ln(_decimal(delta * a)), _decimal(a - 1))
    return _CONTEXT.subtract(share, _CONTEXT.ln(_decimal(1 - 1 / a))), _decimal(a)


def _decimal(value: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))


def _up(value: Decimal) -> float:
    """The least float at or above a decimal."""
    found = float(value)
    return found if Decimal(found) >= value else math.nextafter(found, math.inf)
