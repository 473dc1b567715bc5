"""Exact sums of losses."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

Loss = Fraction | int
ROOT_BITS = 44


def plain(value: Fraction) -> Loss:
    """A whole number as an int."""
    return int(value) if value.denominator == 1 else value


def root_sum(values: Sequence[Fraction | int], power: int) -> Fraction:
    """Σ values for power 1; a rational upper bound of (Σ √values)² for power 2, exact where all are equal.

    >>> root_sum([2, 2], 2), root_sum([1, 4], 1)
    (Fraction(8, 1), Fraction(5, 1))
    """
    told = [Fraction(v) for v in values if v]
    if power == 1:
        return sum(told, Fraction(0))
    if len(set(told)) <= 1:
        return told[0] * len(told) ** 2 if told else Fraction(0)
    scale = 1 << ROOT_BITS
    roots = [
        Fraction(isqrt(v.numerator * v.denominator * scale * scale) + 1, v.denominator * scale) for v in told
    ]
    return sum(roots, Fraction(0)) ** 2
