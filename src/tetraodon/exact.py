"""Exact numbers: budgets, scales and bounds are ``fractions.Fraction`` from the text the user wrote."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Rational

from .errors import SpecificationError

LONGEST = 1000

Number = int | float | str | Decimal | Fraction

MAX_EXPONENT = 400
MOST = 10**302  # sums and products of a few of them are doubles still


def exact(value: object, where: str) -> Fraction:
    """``value`` as the rational the user wrote: 0.1 is 1/10, "1/3" is 1/3.

    A float is read through its shortest decimal text, so that ``0.1`` means one tenth and not the nearest binary
    fraction. Booleans, NaN, infinities, numbers beyond ±10^302 and anything else are refused.

    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon")
    (Fraction(1, 10), Fraction(1, 3))
    """
    number = _read(value, where)
    if abs(number) > MOST:
        raise SpecificationError(f"{where}: beyond ±10^302, which is not a number to work with.")
    return number


def _read(value: object, where: str) -> Fraction:
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        raise SpecificationError(f"{where}: a truth value is not a number.")
    if isinstance(value, Fraction):
        return value
    is_numpy = type(value).__module__ == "numpy" and not isinstance(value, str)
    if is_numpy and getattr(getattr(value, "dtype", None), "kind", "") not in ("i", "u", "f"):
        raise SpecificationError(f"{where}: expected one number, got {type(value).__name__}.")
    if isinstance(value, Integral | Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float) or is_numpy:
        try:
            if getattr(value, "ndim", 0):
                raise TypeError
            as_float = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise SpecificationError(f"{where}: expected one number, got {type(value).__name__}.") from None
        if not math.isfinite(as_float):
            raise SpecificationError(f"{where}: must be finite.")
        return Fraction(str(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise SpecificationError(f"{where}: must be finite.")
        if abs(value.adjusted()) > MAX_EXPONENT:  # as a fraction it would have that many digits
            raise SpecificationError(
                f"{where}: an exponent beyond ±{MAX_EXPONENT} is not a number to work with."
            )
        return Fraction(value)
    if isinstance(value, str):
        text = value.strip()
        try:
            if len(text) > LONGEST or "_" in text or not text.isascii():
                raise ValueError
            if "/" in text:
                return Fraction(text)
            as_decimal = Decimal(text)
            if not as_decimal.is_finite() or abs(as_decimal.adjusted()) > MAX_EXPONENT:
                raise ValueError
            return Fraction(as_decimal)
        except (ValueError, ZeroDivisionError, InvalidOperation):
            raise SpecificationError(f'{where}: not a number; write for example 0.5 or "1/2".') from None
    raise SpecificationError(f"{where}: expected a number, got {type(value).__name__}.")


def positive(value: object, where: str) -> Fraction:
    """``value`` as an exact rational above zero.

    >>> positive("0.5", "epsilon")
    Fraction(1, 2)
    """
    number = exact(value, where)
    if number <= 0:
        raise SpecificationError(f"{where}: must be above 0.")
    return number


def plain(value: object, where: str) -> int | str:
    """A number as specifications write it: an integer where it is whole, else the shortest exact text.

    >>> plain(2.0, "where"), plain(0.5, "where"), plain("1/3", "where")
    (2, '0.5', '1/3')
    """
    number = exact(value, where)
    return number.numerator if number.denominator == 1 else show(number)


def show(number: Fraction) -> str:
    """A rational in the shortest exact text: a finite decimal where there is one, else p/q.

    >>> show(Fraction(1, 2)), show(Fraction(1, 3)), show(Fraction(100))
    ('0.5', '1/3', '100')
    """
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 3 * LONGEST:
        return (
            f"≈ {float(number):.6g}" if abs(number) < 10**300 else "more than 10^300"
        )  # nobody reads so many digits
    if number.denominator == 1:
        return str(number.numerator)
    rest, digits = number.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest //= prime
            count += 1
        digits = max(digits, count)
    if rest != 1 or digits > 12:
        return f"{number.numerator}/{number.denominator}"
    sign, scaled = "-" if number < 0 else "", abs(number.numerator) * 10**digits // number.denominator
    whole, part = divmod(scaled, 10**digits)
    return f"{sign}{whole}.{part:0{digits}d}"
