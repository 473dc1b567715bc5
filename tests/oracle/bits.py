"""Decimals of rationals, and bits that are given instead of drawn."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np


def dec(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def words_of(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def never() -> int:
    raise AssertionError("asked for more bits")


class NeedsMore(Exception):
    """A digit is still undecided after the bits it was given."""


def given_bits(*values: int) -> Callable[[], int]:
    left = list(values)

    def more() -> int:
        if not left:
            raise NeedsMore
        return left.pop(0)

    return more
