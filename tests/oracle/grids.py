"""Channels on grids, exactly and by their definitions: probabilities as whole numbers, every pair of cells compared."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt, lcm

import numpy as np

from tetraodon.domain import Domain, Point

DIGITS = Context(prec=80)


def plane(rows: int, columns: int, height: int = 1, width: int = 1) -> Domain:
    """A grid of cells, in km; its sides are as told where that needs cells no longer than the longer of them."""
    box = ((0, rows * height), (0, columns * width))
    made = Domain(at=Point("x", "y", box=box, cell=max(height, width), metric="planar", unit="km"))
    return made


def whole(rows: list[list[Fraction]]) -> list[list[int]]:
    """Probabilities as whole numbers over one denominator."""
    common = 1
    for row in rows:
        for value in row:
            common = lcm(common, value.denominator)
    return [[int(value * common) for value in row] for row in rows]


def clamped(offsets: list[list[Fraction]]) -> list[list[Fraction]]:
    """The channel of a law of offsets: every offset from every cell, the border instead of what lies beyond it."""
    r, c = (len(offsets) + 1) // 2, (len(offsets[0]) + 1) // 2
    found = [[Fraction(0)] * (r * c) for _ in range(r * c)]
    for a in range(r):
        for b in range(c):
            for i, line in enumerate(offsets):
                for j, value in enumerate(line):
                    z = min(max(a + i - r + 1, 0), r - 1) * c + min(max(b + j - c + 1, 0), c - 1)
                    found[a * c + b][z] += value
    return found


def power(exponent: Fraction) -> Fraction:
    """A rational just below e^exponent."""
    near = DIGITS.exp(DIGITS.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))
    return Fraction(near) * (1 - Fraction(1, 10**70))


def apart(columns: int, height: Fraction, width: Fraction) -> Callable[[int, int], Fraction]:
    """The distance between the centres of two cells, rounded down to 200 bits."""

    def distance(a: int, b: int) -> Fraction:
        (i, j), (k, m) = divmod(a, columns), divmod(b, columns)
        square = (i - k) ** 2 * height**2 + (j - m) ** 2 * width**2
        return Fraction(isqrt(square.numerator * square.denominator << 400), square.denominator << 200)

    return distance


def keeps(numbers: list[list[int]], bound: Callable[[int, int], Fraction | None]) -> bool:
    """Whether numbers[a][z] ≤ e^bound numbers[b][z] and the reverse, for all pairs that have a bound and all z."""
    powers: dict[Fraction, Fraction] = {}
    for a, first in enumerate(numbers):
        for b in range(a):
            most = bound(a, b)
            if most is None:
                continue
            if most not in powers:
                powers[most] = power(most)
            top, bottom = powers[most].numerator, powers[most].denominator
            for x, y in zip(first, numbers[b], strict=True):
                if max(x, y) * bottom > min(x, y) * top:
                    return False
    return True


def pairwise(rows: np.ndarray) -> np.ndarray:
    """max_z |ln rows[a, z] − ln rows[b, z]| for all pairs, in floats."""
    logs = np.log(rows)
    return np.array([np.abs(logs - line).max(axis=1) for line in logs])
