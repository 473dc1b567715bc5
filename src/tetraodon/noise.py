r"""Exact discrete noise from the operating system's randomness: the only randomness of a release.

Discrete Laplace noise with scale s > 0, counted in the unit of the integers it is added to, has the law

    P(Z = z) = (1 - r) / (1 + r) r^|z|,   r = exp(-1/s),   z any integer

(Ghosh, Roughgarden, Sundararajan 2009). The sampler's law is this one exactly, not nearly: scales are rationals, each
64-bit word is looked up among certified integer floors, and a word that the floors leave undecided is completed
with more bits (``_tables`` has the argument). Adding Z to integers that move by at most D in L1 along an edge costs
D/s, with no delta: every integer has positive probability.

*No seed, no generator.* Nothing here takes one. ``reserve`` draws all noise of a release **before** its private data
are read, as much as the declared scales and sizes say and nothing else; handing it out afterwards neither draws nor
searches. Each value is handed out once, a failure destroys the rest, and a process made by fork gets none of it.

*Time.* The search has a fixed depth, no branch, and tables of at most 8 KiB. That reduces what the time of a draw
says about its size; it does not prove that nothing remains, since caches, the operating system and what callers do
with the noise are outside this module. ``benchmarks/noise.py`` measures it.

*Size.* Values are int64 and never wrap. Scales end at 2^50, where |Z| >= 2^62 has probability below exp(-4095); such
a value is replaced by one of the same sign with magnitude from 2^62 to 2^62 + 2^57. For answers of magnitude up to
M < 2^61 the sum with the noise does not wrap either, and the sums clipped to +-(2^62 - M) have the law that unbounded
integers would have, so clipping there is post-processing and keeps pure epsilon.

*Memory.* Noise handed out is no longer held here, destroyed noise is overwritten. Python cannot promise that no copy
of the operating system's bytes lingers in freed memory.
"""

from __future__ import annotations

import math
import operator
import os
import threading
import weakref
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from types import TracebackType
from typing import NoReturn

import numpy as np

from ._tables import Ints, Table, convert, exp_bounds, tables
from .errors import Refused, SpecificationError, Unsupported
from .exact import Number, exact, positive

LARGEST_SCALE = Fraction(2**50)
"""Noise at a larger scale does not fit int64 safely; it is refused."""

_CHUNK = 8192  # values drawn at a time: large enough to hide numpy's calls, small enough for the second cache
_PMF_FLOOR = 4096


def discrete_laplace(scale: Number, size: int) -> Ints:
    """``size`` independent draws of exact discrete Laplace noise, P(z) = (1-r)/(1+r) r^|z|, r = exp(-1/scale).

    A release reserves its noise before it reads data: see ``reserve``, of which this is the one-shot form.

    Args:
        scale: exact and above 0, at most 2^50, in the unit of the integers the noise is for.
        size: how many, 0 or more.
    Returns:
        int64 array of shape (size,), the caller's own.
    Raises:
        SpecificationError: a scale that is not a positive finite number or too large, a size that is not a count.
        Refused: the operating system gives no randomness.
    Source: Ghosh, Roughgarden, Sundararajan 2009 (law); sampler derived in ``_tables``.

    >>> noise = discrete_laplace("3/7", 1000)
    >>> noise.shape, str(noise.dtype), bool(abs(noise).max() < 40)
    ((1000,), 'int64', True)
    """
    with reserve([(scale, size)]) as held:
        return held.laplace(scale, size)


def discrete_gaussian(sigma2: Number, size: int) -> Ints:
    """Discrete Gaussian noise is not offered by this version.

    Raises:
        Unsupported: always.

    >>> discrete_gaussian(1, 10)
    Traceback (most recent call last):
    tetraodon.errors.Unsupported: discrete_gaussian: this version draws no Gaussian noise; use discrete_laplace.
    """
    raise Unsupported("discrete_gaussian: this version draws no Gaussian noise; use discrete_laplace.")


def reserve(draws: Sequence[tuple[Number, int]]) -> Reserve:
    """All noise of one release, drawn now, before private data are read.

    Args:
        draws: (scale, size) pairs, as for ``discrete_laplace``; sizes at equal scales add up. They must come from
            the declaration (policy, query, budget), never from rows: how much is drawn can be seen from outside.
    Returns:
        A ``Reserve``, to be used in a ``with`` block around the release.
    Raises:
        SpecificationError: as ``discrete_laplace``; nothing is drawn then.
        Refused: the operating system gives no randomness; what was drawn is destroyed.
    Source: derived (math of the pool: each value once, destroyed on failure, one process).

    >>> with reserve([(2, 100), ("1/2", 50), (2, 20)]) as held:
    ...     first, second, third = held.laplace(2, 100), held.laplace("1/2", 50), held.laplace(2, 20)
    >>> len(first), len(second), len(third)
    (100, 50, 20)
    """
    totals: dict[Fraction, int] = {}
    for scale, size in draws:
        where = _scale(scale)
        totals[where] = totals.get(where, 0) + _count(size)
    held = Reserve()
    try:
        for where, total in totals.items():
            _fill(held._open(where, total), tables(where))
    except BaseException:
        held.close()
        raise
    return held


class Reserve:
    """Noise drawn before the data are read. Made by ``reserve``; each value is handed out at most once.

    Leaving the ``with`` block, by its end or by an exception, destroys what is left. A process made by fork cannot
    use a reserve it inherited, and a reserve cannot be copied or pickled. Threads may share it.

    >>> with reserve([(10, 5)]) as held:
    ...     held
    ...     noise = held.laplace(10, 5)
    ...     held.laplace(10, 1)
    Traceback (most recent call last):
    tetraodon.errors.Refused: noise: 1 draw(s) at scale 10 asked, 0 left in the reserve; reserve all of a release first.
    >>> held
    <Reserve: closed>
    """

    __slots__ = ("__weakref__", "_born", "_closed", "_lock", "_pools")

    def __init__(self) -> None:
        self._pools: dict[Fraction, Ints] = {}
        self._closed = False
        self._lock = threading.Lock()
        self._born = _process()
        _living.add(self)

    def laplace(self, scale: Number, size: int) -> Ints:
        """The next ``size`` values reserved at ``scale``: an int64 array, the caller's own. Draws nothing.

        Raises:
            SpecificationError: as ``discrete_laplace``.
            Refused: fewer are left at this scale, the reserve is closed, or it belongs to another process.
        """
        where, wanted = _scale(scale), _count(size)
        if self._born != _process():
            raise Refused("noise: this reserve was drawn by another process; reserve again in this one.")
        with self._lock:
            if self._closed:
                raise Refused("noise: this reserve is closed and its noise destroyed; reserve again.")
            pool = self._pools.get(where)
            left = 0 if pool is None else len(pool)
            if pool is None or wanted > left:
                raise Refused(
                    f"noise: {wanted} draw(s) at scale {where} asked, {left} left in the reserve; "
                    "reserve all of a release first."
                )
            # The pool moves on first: an interrupt here may lose noise, never hand it out twice.
            if wanted == left and pool.base is None:
                self._pools[where] = np.zeros(0, dtype=np.int64)
                return pool
            self._pools[where] = pool[wanted:]
            taken = pool[:wanted].copy()
            pool[:wanted] = 0
            return taken

    def close(self) -> None:
        """Destroy what is left; the reserve then refuses to be used."""
        with self._lock:
            self._destroy()

    def __enter__(self) -> Reserve:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed:
            return "<Reserve: closed>"
        return f"<Reserve: {sum(map(len, self._pools.values()))} draw(s) left>"

    def __reduce__(self) -> NoReturn:
        raise Refused("noise: a reserve belongs to one process and cannot be copied or pickled.")

    def _open(self, scale: Fraction, size: int) -> Ints:
        try:
            self._pools[scale] = np.zeros(size, dtype=np.int64)
        except (MemoryError, ValueError, OverflowError):
            raise Refused(f"noise: {size} draws do not fit in memory; release fewer cells at once.") from None
        return self._pools[scale]

    def _destroy(self) -> None:
        self._closed = True
        for pool in self._pools.values():
            pool.fill(0)
        self._pools.clear()

    def _drop_in_child(self) -> None:
        self._lock = threading.Lock()  # the parent's may be held by a thread that does not exist here
        self._destroy()


_living: weakref.WeakSet[Reserve] = weakref.WeakSet()
_forks = 0


def _process() -> tuple[int, int]:
    """This process: its number, and how many forks lie between it and the first (numbers are used again)."""
    return os.getpid(), _forks


def _after_fork() -> None:
    global _forks
    _forks += 1
    for held in list(_living):
        held._drop_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


def discrete_laplace_pmf(scale: Number, z: int) -> tuple[Fraction, Fraction]:
    """Certified bounds low <= P(Z = z) <= high of the sampler's law, P(z) = (1-r)/(1+r) r^|z|.

    The bounds are within a relative 2^-100 of each other, except beyond |z| = 4096 scales: there low is 0 and high
    2^-4096.

    Raises:
        SpecificationError: as ``discrete_laplace``, or a z that is not an integer.
    Source: Ghosh, Roughgarden, Sundararajan 2009; intervals derived.

    >>> low, high = discrete_laplace_pmf(1, 2)
    >>> low < high, round(float(low), 6)
    (True, 0.062541)
    """
    s, away = _scale(scale), abs(_integer(z, "z"))
    if away > _PMF_FLOOR * s:
        return Fraction(0), Fraction(1, 2**_PMF_FLOOR)
    bits = 160 + _bits(s) + 3 * int(away / s) // 2
    low, high = exp_bounds(1 / s, bits)
    power_low, power_high = exp_bounds(away / s, bits) if away else (1 << bits, 1 << bits)
    one = 1 << bits
    return (
        Fraction((one - high) * power_low, (one + high) << bits),
        Fraction((one - low) * power_high, (one + low) << bits),
    )


def discrete_laplace_variance(scale: Number) -> float:
    """The variance 2r / (1-r)^2 = 1 / (2 sinh(1/(2 scale))^2), in squared units, correctly rounded.

    Raises:
        SpecificationError: as ``discrete_laplace``.
    Source: derived.

    >>> discrete_laplace_variance(1)
    1.8413471884155845
    """
    return _variance(_scale(scale))


@lru_cache(maxsize=4096)
def _variance(s: Fraction) -> float:
    if s < Fraction(1, 750):
        return 0.0  # 2 exp(-750) is nearer to 0 than to the least positive double
    bits = 160 + 3 * _bits(s) + int(3 / (2 * s))
    while True:
        ends = (
            2 * Fraction(r, 1 << bits) / (1 - Fraction(r, 1 << bits)) ** 2 for r in exp_bounds(1 / s, bits)
        )
        low, high = map(float, ends)
        if low == high:
            return low
        bits *= 2


def discrete_laplace_quantile(scale: Number, coverage: Number) -> int:
    """The smallest t >= 0 with P(|Z| > t) <= 1 - coverage: the half width of a two-sided interval. Certified.

    P(|Z| > t) = 2 r^(t+1) / (1+r), compared with 1 - coverage in exact intervals, so t is never too small or large.

    Args:
        scale: as ``discrete_laplace``.
        coverage: from 0 up to, but not including, 1, exact.
    Raises:
        SpecificationError: as ``discrete_laplace``, or a coverage outside [0, 1).
    Source: derived.

    >>> discrete_laplace_quantile(10, "0.95")
    30
    """
    s, c = _scale(scale), exact(coverage, "coverage")
    if not 0 <= c < 1:
        raise SpecificationError("coverage: must be at least 0 and below 1; write for example 0.95.")
    return _quantile(s, 1 - c)


@lru_cache(maxsize=4096)
def _quantile(s: Fraction, outside: Fraction) -> int:
    def covers(t: int) -> bool:
        bits = 128 + _bits(s) + outside.denominator.bit_length()
        while True:  # ends: equality would make exp(1/s) algebraic
            low, high = exp_bounds(1 / s, bits)
            power_low, power_high = exp_bounds((t + 1) / s, bits)
            one = 1 << bits
            if Fraction(2 * power_high, one + low) <= outside:
                return True
            if Fraction(2 * power_low, one + high) > outside:
                return False
            bits *= 2

    # A guess in floats from 2 r^(t+1) = (1+r) outside; the comparisons decide.
    ratio = math.exp(-1 / max(s, Fraction(1, 500)))
    nepers = math.log(outside.denominator) - math.log(outside.numerator) + math.log(2 / (1 + ratio))
    above = max(0, int(Fraction(nepers) * s))
    step = 1
    while not covers(above):
        above, step = above + step, 2 * step
    below, step = above - 1, 1
    while below >= 0 and covers(below):
        above, below, step = below, below - step, 2 * step
    below = max(below, -1)
    while above - below > 1:
        middle = (above + below) // 2
        above, below = (middle, below) if covers(middle) else (above, middle)
    return above


def _scale(value: object) -> Fraction:
    scale = positive(value, "scale")
    if scale > LARGEST_SCALE:
        raise SpecificationError(
            "scale: noise above 2^50 does not fit 64-bit integers; ask for a larger budget."
        )
    return scale


def _integer(value: object, where: str) -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise SpecificationError(f"{where}: expected a whole number, got {type(value).__name__}.")


def _count(value: object) -> int:
    count = _integer(value, "size")
    if count < 0:
        raise SpecificationError("size: must be 0 or more.")
    return count


def fresh_name(size: int) -> str:
    """``size`` random bytes in hexadecimal: a name that nobody else has. Not noise.

    >>> len(fresh_name(8))
    16
    """
    return _entropy(-(-size // 8))[:size].hex()


def _bits(s: Fraction) -> int:
    """About log2(s) for a large scale, 0 for a small one: the bits that 1 - exp(-1/s) loses."""
    return max(0, s.numerator.bit_length() - s.denominator.bit_length() + 1)


def _entropy(count: int) -> bytes:
    try:
        return os.urandom(8 * count)
    except (OSError, NotImplementedError):
        raise Refused("noise: the operating system gives no randomness; nothing was released.") from None


def _one_more_word() -> int:
    return int.from_bytes(_entropy(1), "little")


def _fill(pool: Ints, digits: tuple[Table, ...]) -> None:
    for start in range(0, len(pool), _CHUNK):
        part = pool[start : start + _CHUNK]
        words = np.frombuffer(_entropy(len(digits) * len(part)), dtype=np.uint64)
        convert(digits, words.reshape(len(digits), len(part)), _one_more_word, part)
