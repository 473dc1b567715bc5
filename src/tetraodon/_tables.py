r"""Certified integer tables for discrete noise: intervals, digits, search and completion; the digits of Laplace noise.

What is said of floors and words holds for Gaussian noise too, whose digits are in ``_gaussian``. The two-sided
geometric law P(z) = (1-r)/(1+r) r^|z|, r = exp(-1/s), falls into *independent digits*. With a unit u = 2^b write z = f
where z >= 0 and z = -1-f where z < 0, f = q u + d, 0 <= d < u. Then r^f = (r^u)^q r^d, so

* q and the sign form one signed digit: P(q, +) = (1-R) R^q / (1+r), P(q, -) = r (1-R) R^q / (1+r), R = r^u;
* d is independent of both, geometric with ratio r on 0..u-1; it falls into smaller digits in the same way, because
  r^(d0 + d1 v) = r^d0 (r^v)^d1.

So a scale of 10^12 needs a few tables of about a thousand words instead of one of 10^14, the work per draw depends
on the scale alone, and no step rejects anything. The signed digit comes first, the others from high to low.

A table holds floor(2^w F_k) for the digit's cumulative probabilities F_k. They are irrational (e is transcendental),
so each floor comes from an integer interval around F_k, computed again with more bits while the interval still holds
two floors. A w-bit word above such a floor is certainly past F_k, one below it certainly not; a word *equal* to one
is undecided and is completed with more bits against ever narrower intervals. The words 0 and 2^w - 1 are floors of
the signed digit, so that its infinite tails are two such buckets. The law of every digit is therefore exact.

Source: derived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FAR = 2**62  # a power of two, as units are
"""Noise below this magnitude is the exact integer drawn; at or beyond it, an integer of its sign at or beyond it."""

Bounds = tuple[int, int]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

WORD_BITS = 64
DIGIT_BITS = 10  # a table of at most 2^10 - 1 words: 8 KiB, well inside the fastest cache


def exp_bounds(x: Fraction, bits: int) -> Bounds:
    """Integers with low <= 2^bits exp(-x) <= high, for x >= 0; high - low is 1 or 2.

    >>> exp_bounds(Fraction(1), 20)
    (385749, 385750)
    """
    if x >= bits:
        return 0, 1  # exp(-x) < 2^-bits: never compute what cannot be seen
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 9)
    work = bits + halvings + 16
    y_low = (x.numerator << work) // (x.denominator << halvings)  # y = x / 2^halvings < 2^-7
    y_high = y_low + 1
    low = high = term_low = term_high = 1 << work
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y_low >> work) // n
        term_high = ceil_div(ceil_shift(term_high * y_high, work), n)
        low += term_low
        high += term_high
    high += 1  # all terms left out: less than one unit together, as y < 2^-7
    low, high = (1 << 2 * work) // high, ceil_div(1 << 2 * work, low)
    for _ in range(halvings):
        low, high = times((low, high), (low, high), work)
    return low >> work - bits, min(ceil_shift(high, work - bits), 1 << bits)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def ceil_shift(a: int, by: int) -> int:
    return -(-a >> by)


def times(a: Bounds, b: Bounds, bits: int) -> Bounds:
    return a[0] * b[0] >> bits, ceil_shift(a[1] * b[1], bits)


def floor_of(value: Bounds, shift: int) -> int | None:
    """The floor of value / 2^shift, or None while the interval holds two."""
    low = value[0] >> shift
    return low if low == value[1] >> shift else None


class Law(Protocol):
    """The law of one digit, worth ``unit`` in the value: what a table is made of and completed by."""

    @property
    def unit(self) -> int: ...

    def cdf(self, k: int, bits: int) -> Bounds:
        """Integers around 2^bits P(digit <= k)."""

    def floors(self, word_bits: int, bits: int) -> tuple[int, list[int]] | None:
        """The first digit and floor(2^word_bits F_k) from it on, or None while ``bits`` leave one undecided."""

    def bracket(self, reached: Callable[[int], bool]) -> Bounds:
        """Two digits with the drawn one above the first and at most the second."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The digit q in ..., -2, -1, 0, 1, ... that carries the sign; -1 - q stands for the digit q of a negative value.

    F_k = r R^(-k-1) / (1+r) for k < 0 and 1 - R^(k+1) / (1+r) for k >= 0; r = exp(-1/scale), R = exp(-unit/scale).
    """

    scale: Fraction
    unit: int

    def cdf(self, k: int, bits: int) -> Bounds:
        """Integers around 2^bits P(digit <= k)."""
        negative, positive = self._sides(bits)
        power = exp_bounds(Fraction(self.unit * (-k - 1 if k < 0 else k + 1)) / self.scale, bits)
        if k < 0:
            return times(negative, power, bits)
        low, high = times(positive, power, bits)
        return (1 << bits) - high, (1 << bits) - low

    def floors(self, word_bits: int, bits: int) -> tuple[int, list[int]] | None:
        """The first digit and floor(2^word_bits F_k) from it on, or None while ``bits`` leave one undecided.

        The first floor is 0 and the last 2^word_bits - 1, so no word lies outside the table undetected.
        """
        shift = bits - word_bits
        left, right = self._sides(bits)
        ratio = exp_bounds(Fraction(self.unit) / self.scale, bits)
        below: list[int] = []
        above: list[int] = []
        while not below or below[-1] or above[-1] != (1 << word_bits) - 1:
            right = times(right, ratio, bits)
            under, over = floor_of(left, shift), floor_of(right, shift)
            if under is None or over is None:
                return None
            below.append(under)
            above.append((1 << word_bits) - 1 - over)
            left = times(left, ratio, bits)
        return -len(below), below[::-1] + above

    def bracket(self, reached: Callable[[int], bool]) -> Bounds:
        """Two digits with the drawn one above the first and at most the second, found by doubling.

        The search ends at values of magnitude 2^62: one beyond it stands for all of its sign (``noise``, size).
        """
        step, end = 1, FAR // self.unit
        if reached(0):
            while step < end and reached(step):
                step *= 2
            return step // 2, step
        while step < 2 * end and not reached(-step):
            step *= 2
        return max(-step, -end - 2), -(step // 2)

    def _sides(self, bits: int) -> tuple[Bounds, Bounds]:
        """r / (1+r) and 1 / (1+r): the probabilities of a negative and of another value."""
        one = 1 << bits
        low, high = exp_bounds(1 / self.scale, bits)
        negative = (low << bits) // (one + low), ceil_div(high << bits, one + high)
        return negative, ((one << bits) // (one + high), ceil_div(one << bits, one + low))


@dataclass(frozen=True, slots=True)
class Lower:
    """A digit 0..base-1 worth ``unit``: F_k = (1 - R^(k+1)) / (1 - R^base), R = exp(-unit/scale)."""

    scale: Fraction
    unit: int
    base: int

    def cdf(self, k: int, bits: int) -> Bounds:
        """Integers around 2^bits P(digit <= k)."""
        work = bits + max(0, self.scale.numerator.bit_length() - self.scale.denominator.bit_length()) + 16
        whole = self._missing(self.base, work)
        part = self._missing(k + 1, work)
        return (part[0] << bits) // whole[1], ceil_div(part[1] << bits, whole[0])

    def floors(self, word_bits: int, bits: int) -> tuple[int, list[int]] | None:
        """The first digit, 0, and floor(2^word_bits F_k) from it on, or None while ``bits`` leave one undecided."""
        one = 1 << bits
        ratio = exp_bounds(Fraction(self.unit) / self.scale, bits)
        whole = self._missing(self.base, bits)
        if whole[0] <= 0:
            return None
        found: list[int] = []
        power = ratio
        for _ in range(self.base - 1):
            part = one - power[1], one - power[0]
            floor = floor_of(
                ((part[0] << bits) // whole[1], ceil_div(part[1] << bits, whole[0])), bits - word_bits
            )
            if floor is None:
                return None
            found.append(floor)
            power = times(power, ratio, bits)
        return 0, found

    def bracket(self, reached: Callable[[int], bool]) -> Bounds:
        """The digit is above -1 and at most base - 1, whatever was drawn."""
        return -1, self.base - 1

    def _missing(self, k: int, bits: int) -> Bounds:
        """1 - R^k."""
        low, high = exp_bounds(Fraction(self.unit * k) / self.scale, bits)
        return (1 << bits) - high, (1 << bits) - low


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """One digit's floors, twice: sorted (``words``) and as a search tree (``tree``), both read-only uint64.

    ``tree[1]`` is the middle word, the children of ``tree[i]`` are 2i and 2i+1. Both are filled up to 2^depth - 1
    words with the largest word, so that every search takes ``depth`` steps. A word with c floors at or below it
    has the digit ``first + c``, unless it equals one of them.
    """

    law: Law
    word_bits: int
    first: int
    depth: int
    words: Words
    tree: Words


@lru_cache(maxsize=256)
def tables(scale: Fraction, word_bits: int = WORD_BITS, digit_bits: int = DIGIT_BITS) -> tuple[Table, ...]:
    """The digits of discrete Laplace noise at ``scale``, the signed one first, then from high to low.

    Each table has at most about 2^digit_bits words; together they are about as deep as one table of the whole law.
    Built in about 2 ms at scale 1000 and kept; the time depends on the scale alone.
    """
    # At R^q < 2^-word_bits the floors end: q unit > 0.7 word_bits scale on either side of zero.
    values = 2 * (word_bits * 7 * scale.numerator // (10 * scale.denominator)) + 4
    depth = values.bit_length()
    count = -(-depth // digit_bits)
    bits = -(-depth // count)
    laws: list[Signed | Lower] = [Signed(scale, 1 << bits * (count - 1))]
    laws += [Lower(scale, 1 << bits * place, 1 << bits) for place in reversed(range(count - 1))]
    lost = max(0, scale.numerator.bit_length() - scale.denominator.bit_length())  # by 1 - exp(-1/scale)
    return tuple(table_of(law, word_bits, word_bits + 128 + lost) for law in laws)


def table_of(law: Law, word_bits: int, bits: int) -> Table:
    """The table of one digit; ``bits`` is what its floors are first tried with."""
    while (found := law.floors(word_bits, bits)) is None:
        bits *= 2
    first, floors = found
    depth = len(floors).bit_length()
    floors += [(1 << word_bits) - 1] * ((1 << depth) - 1 - len(floors))
    words = np.array(floors, dtype=np.uint64)
    tree = np.zeros(1 << depth, dtype=np.uint64)
    for level in range(depth):
        step = 1 << depth - level
        tree[1 << level : 2 << level] = words[step // 2 - 1 :: step]
    words.setflags(write=False)
    tree.setflags(write=False)
    return Table(law, word_bits, first, depth, words, tree)


class Uniform:
    """A uniform number in [0, 1) of which the first bits are drawn, and more while a comparison needs them."""

    __slots__ = ("_length", "_more", "_prefix", "_word_bits")

    def __init__(self, prefix: int, length: int, word_bits: int, more: Callable[[], int]) -> None:
        self._prefix, self._length, self._word_bits, self._more = prefix, length, word_bits, more

    def reaches(self, bound: Callable[[int], Bounds]) -> bool:
        """Whether the number is at or above a real number, given by integers around 2^bits of it.

        Bits are drawn only while its interval and that of the real number overlap: this ends with probability 1.
        """
        while True:
            low, high = bound(self._length + 64)
            if high <= self._prefix << 64:
                return True
            if low >= (self._prefix + 1) << 64:
                return False
            self._prefix = self._prefix << self._word_bits | self._more()
            self._length += self._word_bits


def settle(table: Table, word: int, more: Callable[[], int]) -> int:
    """The digit of a uniform number that begins with the bits of ``word``; ``more`` gives its next ``word_bits``.

    The digit is the least k with U < F_k.
    """
    number = Uniform(word, table.word_bits, table.word_bits, more)

    def reached(k: int) -> bool:
        return number.reaches(partial(table.law.cdf, k))

    low, high = table.law.bracket(reached)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) else (low, middle)
    return high


def convert(digits: tuple[Table, ...], words: Words, more: Callable[[], int], out: Ints) -> None:
    """The noise that ``words``, shape (digits, n), stand for, into ``out``, shape (n,); ``more`` completes.

    With the signed digit q and the lower ones worth d in 0..unit-1, the value is q unit + d where q >= 0 and, where
    q = -1-f, it is -1 - (f unit + d). Both are (folded q unit + d) xor the sign, -1 or 0.
    """
    signed, lower = digits[0], digits[1:]
    out[:] = search(signed, words[0], more)
    sign = out >> 63
    np.bitwise_xor(out, sign, out=out)
    out *= signed.law.unit
    for table, row in zip(lower, words[1:], strict=True):
        digit = search(table, row, more)
        digit *= table.law.unit
        out += digit
    np.bitwise_xor(out, sign, out=out)


def search(table: Table, words: Words, more: Callable[[], int]) -> Ints:
    """The digit of each word; words that equal a floor (about one in 2^54) are completed one by one."""
    at, open_ = locate(table, words)
    if open_.any():
        for i in np.flatnonzero(open_):
            at[i] = settle(table, int(words[i]), more)
    return at


def locate(table: Table, words: Words) -> tuple[Ints, NDArray[np.bool_]]:
    """The digit of each word, and which words are undecided because they equal a floor (their digits mean nothing).

    The same ``depth`` + 1 reads for every word.
    """
    at = np.ones(len(words), dtype=np.int64)
    read = np.empty(len(words), dtype=np.uint64)
    past = np.empty(len(words), dtype=np.bool_)
    for _ in range(table.depth):
        np.take(table.tree, at, out=read, mode="clip")
        np.less_equal(read, words, out=past)
        np.add(at, at, out=at)
        np.add(at, past, out=at)
    at -= (1 << table.depth) + 1  # floors at or below the word, less one: the place of the last of them
    np.take(table.words, at, out=read, mode="clip")
    np.equal(read, words, out=past)
    at += 1 + table.first
    return at, past
