"""Lengths with units, and the local metres of a box on the map: exact rationals by public rules.

A degree of latitude is 111,195.08 m everywhere (a sphere of radius 6,371,008.8 m). A degree of longitude is that times the
cosine of the latitude at the middle of the box, which is rounded to nine decimals by integer arithmetic, so that every
machine derives the same numbers from the same declaration.
"""

from __future__ import annotations

from fractions import Fraction

from .errors import SpecificationError
from .exact import Number, exact

LENGTHS = {
    "m": Fraction(1),
    "km": Fraction(1000),
    "cm": Fraction(1, 100),
    "ft": Fraction("0.3048"),
    "mi": Fraction("1609.344"),
    "nmi": Fraction(1852),
}

RADIUS = Fraction("6371008.8")
NORTH = Fraction("111195.08")
_ONE = 10**40
_PI = 31415926535897932384626433832795028841972
_DECIMALS = 10**9


def measured(amount: Number, unit: str | None, where: str) -> Fraction:
    """A length such as ``100``, ``"100 USD"`` or ``"5 km"`` in a declared unit; lengths are converted.

    >>> measured("5 km", "m", "Within"), measured(100, "USD", "Within")
    (Fraction(5000, 1), Fraction(100, 1))
    """
    factor = Fraction(1)
    if isinstance(amount, str) and " " in amount.strip():
        amount, told = amount.strip().split(maxsplit=1)
        if told != unit:
            if told not in LENGTHS or unit not in LENGTHS:
                raise SpecificationError(
                    f"{where}: the attribute is declared in {unit or 'no unit'}, not in {told}."
                )
            factor = LENGTHS[told] / LENGTHS[unit]
    distance = exact(amount, where) * factor
    if distance < 0:
        raise SpecificationError(f"{where}: a distance is not negative.")
    return distance


def cosine(degrees: Fraction) -> Fraction:
    """The cosine of an angle within ±90°, rounded to nine decimals.

    >>> cosine(Fraction(60)), cosine(Fraction(0))
    (Fraction(1, 2), Fraction(1, 1))
    """
    angle = abs(degrees) * _PI / 180
    x = (
        angle.numerator // angle.denominator
    )  # in units of 10^-40; the terms below err by far less than 10^-30 in all
    square = x * x // _ONE
    term = total = _ONE
    n = 0
    while term:
        n += 2
        term = term * square // _ONE // (n * (n - 1))
        total += term if n % 4 == 0 else -term
    return Fraction((total * _DECIMALS + _ONE // 2) // _ONE, _DECIMALS)
