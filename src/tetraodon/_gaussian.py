r"""Certified integer tables for discrete Gaussian noise: one digit from a table, the rest uniform bits, by rejection.

The law is P(z) = exp(-z^2 / (2 s)) / sum, s = sigma2 positive and rational, z any integer. With a unit u = 2^b write
z = f where z >= 0 and z = -1-f where z < 0, f = q u + d, 0 <= d < u; then |z| = f + a with a = 0 or 1. A proposal takes

* q and the sign, one signed digit, with probability proportional to exp(-(q u + a)^2 / (2 s)), the weight at d = 0,
* d uniform: b bits of a word, nothing to look up,

and is accepted with probability exp(-d (2 (q u + a) + d) / (2 s)). The product is exp(-z^2 / (2 s)) up to a constant
factor, so accepted proposals have the law *exactly* and are independent of which and how many others were rejected.
Up to s of about 2900 u is 1 and nothing is rejected; beyond, u stays below sigma/26 and at most 1.5 % are.

The signed digit is looked up and completed as those of Laplace noise (``_tables``): its table holds certified floors,
from interval sums of the weights. The second word's other 64 - b bits are compared with the acceptance probability in
floating point, of which only the IEEE rules for + and * are used; where they lie within ``_MARGIN`` and one unit of
their last bit, exact integer intervals and more bits decide.

Source: derived.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ._tables import (
    DIGIT_BITS,
    FAR,
    WORD_BITS,
    Bounds,
    Ints,
    Table,
    Uniform,
    Words,
    ceil_div,
    ceil_shift,
    exp_bounds,
    floor_of,
    locate,
    settle,
    table_of,
    times,
)

# exp(-x) for 0 <= x <= 0.36 from its series up to x^7: what is left out is below 0.36^8 / 8! < 2^-27, and rounding
# adds less than 2^-47, so that the sum is within 2^-26.
_SERIES = tuple((-1.0) ** n / math.factorial(n) for n in range(7, -1, -1))
STEEPEST = 0.36
_MARGIN = 2.0**-26
_SPARE = 64  # bits that sums of many terms may lose


@dataclass(frozen=True, slots=True)
class Coarse:
    """The digit q in ..., -1, 0, 1, ... that carries the sign; -1 - q stands for the digit q of a negative value.

    The weight of q >= 0 is exp(-(q unit)^2 / (2 sigma2)), that of -1 - q is exp(-(q unit + 1)^2 / (2 sigma2)).
    """

    sigma2: Fraction
    unit: int

    def cdf(self, k: int, bits: int) -> Bounds:
        """Integers around 2^bits P(digit <= k)."""
        whole = _whole(self.sigma2, self.unit, bits)
        if k < 0:
            return _share(tails(self.sigma2, self.unit, 1, -1 - k, bits)[0], whole, bits)
        low, high = _share(tails(self.sigma2, self.unit, 0, k + 1, bits)[0], whole, bits)
        return (1 << bits) - high, (1 << bits) - low

    def floors(self, word_bits: int, bits: int) -> tuple[int, list[int]] | None:
        """The first digit and floor(2^word_bits F_k) from it on, or None while ``bits`` leave one undecided.

        The first floor is 0 and the last 2^word_bits - 1, so no word lies outside the table undetected.
        """
        left, right = (tails(self.sigma2, self.unit, side, 1 - side, bits) for side in (1, 0))
        whole = _whole(self.sigma2, self.unit, bits)
        below: list[int] = []
        above: list[int] = []
        while not below or below[-1] or above[-1] != (1 << word_bits) - 1:
            # Beyond the end of a list of tails nothing is left that these bits could show.
            at = len(below)
            under, over = (
                floor_of(_share(side[min(at, len(side) - 1)], whole, bits), bits - word_bits)
                for side in (left, right)
            )
            if under is None or over is None:
                return None
            below.append(under)
            above.append((1 << word_bits) - 1 - over)
        return -len(below), below[::-1] + above

    def bracket(self, reached: Callable[[int], bool]) -> Bounds:
        """Two digits with the drawn one above the first and at most the second, found by doubling."""
        step = 1
        if reached(0):
            while reached(step):
                step *= 2
            return step // 2, step
        while not reached(-step):
            step *= 2
        return -step, -(step // 2)

    def value(self, digit: int, rest: int) -> int:
        """The integer that a digit and ``rest`` in 0..unit-1 stand for."""
        return digit * self.unit + rest if digit >= 0 else (digit + 1) * self.unit - 1 - rest

    def fall(self, digit: int, rest: int) -> Fraction:
        """-log of the probability that a proposal is accepted."""
        start = abs(self.value(digit, 0))
        return Fraction(rest * (2 * start + rest)) / (2 * self.sigma2)


def tails(sigma2: Fraction, unit: int, offset: int, start: int, bits: int) -> list[Bounds]:
    """Integers around 2^bits times the sum over j >= k of exp(-(j unit + offset)^2 / (2 sigma2)), for k from start on.

    The list ends where less than 2^-bits is left. Each term comes from the last by a ratio, each ratio by one factor.
    """
    work = bits + _SPARE
    first = start * unit + offset
    term = exp_bounds(first * first / (2 * sigma2), work)
    ratio = exp_bounds(unit * (2 * first + unit) / (2 * sigma2), work)
    factor = exp_bounds(unit * unit / sigma2, work)
    terms = [term]
    while term[1] >> _SPARE // 2:
        term, ratio = times(term, ratio, work), times(ratio, factor, work)
        terms.append(term)
    # The ratios fall, so what follows a term is less than term r / (1 - r) = term / (exp(x) - 1) < term / x.
    x = unit * (2 * (first + (len(terms) - 1) * unit) + unit) / (2 * sigma2)
    low, high = 0, math.ceil(term[1] / x)
    found = []
    for term in reversed(terms):
        low, high = low + term[0], high + term[1]
        found.append((low >> _SPARE, ceil_shift(high, _SPARE)))
    return found[::-1]


@lru_cache(maxsize=64)
def _whole(sigma2: Fraction, unit: int, bits: int) -> Bounds:
    """The sum of all weights."""
    sides = [tails(sigma2, unit, offset, 0, bits)[0] for offset in (0, 1)]
    return sides[0][0] + sides[1][0], sides[0][1] + sides[1][1]


def _share(part: Bounds, whole: Bounds, bits: int) -> Bounds:
    return (part[0] << bits) // whole[1], min(ceil_div(part[1] << bits, whole[0]), 1 << bits)


@lru_cache(maxsize=256)
def coarse(
    sigma2: Fraction, word_bits: int = WORD_BITS, digit_bits: int = DIGIT_BITS
) -> tuple[Coarse, Table]:
    """The signed digit of discrete Gaussian noise and its table of at most 2^digit_bits - 1 words.

    Built in a few milliseconds and kept; the time depends on sigma2 alone.
    """
    # At weights < 2^-word_bits the floors end: |z|^2 > 0.7 word_bits 2 sigma2.
    reach = math.isqrt(math.ceil(14 * word_bits * sigma2 / 10)) + 1
    unit = 1
    while 2 * (reach // unit + 2) >= 1 << digit_bits:
        unit *= 2
    law = Coarse(sigma2, unit)
    return law, table_of(law, word_bits, word_bits + 128)


def accepted(law: Coarse, table: Table, words: Words, more: Callable[[], int]) -> Ints:
    """The values of the accepted proposals among those that ``words``, shape (2, n), stand for, in their order.

    The same steps for every word; about one in 2^25 (at sigma = 2^50 one in 2^18), whatever its value, is then
    decided by itself.
    """
    digit, on_floor = locate(table, words[0])
    low_bits = law.unit.bit_length() - 1
    sign = digit >> 63
    value = np.bitwise_xor(digit, sign)
    value *= law.unit
    rest = (words[1] & np.uint64(law.unit - 1)).astype(np.int64)
    fall = value - sign
    fall += fall
    fall += rest
    exponent = rest * float(1 / (2 * law.sigma2))
    exponent *= fall
    excess = np.full(len(digit), _SERIES[0])
    for coefficient in _SERIES[1:]:
        excess *= exponent
        excess += coefficient
    excess -= (words[1] >> np.uint64(low_bits)) * 2.0 ** (low_bits - WORD_BITS)
    value += rest
    np.bitwise_xor(value, sign, out=value)
    keep = excess > 0
    np.abs(excess, out=excess)
    undecided = excess <= _MARGIN + 2.0 ** (low_bits - WORD_BITS)
    undecided |= on_floor
    if undecided.any():
        for i in np.flatnonzero(undecided):
            q = settle(table, int(words[0, i]), more) if on_floor[i] else int(digit[i])
            found = _decide(law, q, int(words[1, i]), more)
            keep[i] = found is not None
            value[i] = 0 if found is None else found
    kept: Ints = value[keep]
    return kept


def _decide(law: Coarse, digit: int, word: int, more: Callable[[], int]) -> int | None:
    """The value of the proposal with ``digit`` and a 64-bit second word, or None where it is rejected.

    Beyond 2^62 it is 2^62 with its sign (``noise``, size).
    """
    rest, low_bits = word % law.unit, law.unit.bit_length() - 1
    fall = law.fall(digit, rest)
    number = Uniform(word >> low_bits, WORD_BITS - low_bits, WORD_BITS, more)
    if fall and number.reaches(lambda bits: exp_bounds(fall, bits)):
        return None
    return max(-FAR, min(FAR, law.value(digit, rest)))
