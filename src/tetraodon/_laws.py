r"""The two laws of noise: which parameters they take; certified probabilities, variances and quantiles.

Laplace: P(z) = (1-r)/(1+r) r^|z|, r = exp(-1/scale); everything has a closed form. Gaussian: P(z) = f(z) / W with
f(x) = exp(-x^2/(2 s)), s = sigma2, and W the sum of f over all integers. While s is below half the number of bits
that are asked for, sums are taken term by term (``_gaussian.tails``). Beyond:

* Poisson's summation formula gives W = sqrt(2 pi s) (1 + 2 exp(-2 pi^2 s) + ...) and the variance
  s (1 - 8 pi^2 s exp(-2 pi^2 s) / (1 + ...)): from s = 4 on the variance is s to within a relative 10^-31.
* Euler and Maclaurin's formula at half integers gives, with h = t + 1/2,

      sum over |z| <= t of f(z) = integral of f over [-h, h] + sum over k <= m of 2 b_k f^(2k-1)(h) + R,

  b_k the coefficients of (x/2)/sinh(x/2) and |R| <= |B_2m|/(2m)! times the integral of |f^(2m)|. By Cauchy and
  Schwarz, as f^(n) = s^(-n/2) He_n f up to sign, |R| < 3.3 sqrt((2m)!) (4 pi^2 s)^-m sqrt(2 pi s). The integral is
  2 h f(h) times the sum of (h^2/s)^k / (2k+1)!!, and f^(n)/f is rational: only f(h) and sqrt(2 pi s) need intervals.

Source: derived; Laplace's law from Ghosh, Roughgarden, Sundararajan 2009.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from ._gaussian import tails
from ._tables import Bounds, ceil_div, ceil_shift, exp_bounds
from .errors import SpecificationError
from .exact import Number, exact, positive

LARGEST_SCALE = Fraction(2**50)
"""Laplace noise at a larger scale does not fit int64 safely; it is refused."""

LARGEST_SIGMA2 = Fraction(2**100)
"""Gaussian noise of a larger sigma^2 is refused for the same reason."""

_PMF_FLOOR = 4096


def laplace_scale(value: object) -> Fraction:
    """A scale of discrete Laplace noise: above 0, at most 2^50."""
    scale = positive(value, "scale")
    if scale > LARGEST_SCALE:
        raise SpecificationError(
            "scale: noise above 2^50 does not fit 64-bit integers; ask for a larger budget."
        )
    return scale


def gaussian_sigma2(value: object) -> Fraction:
    """A sigma^2 of discrete Gaussian noise: above 0, at most 2^100."""
    sigma2 = positive(value, "sigma2")
    if sigma2 > LARGEST_SIGMA2:
        raise SpecificationError(
            "sigma2: noise above 2^100 (sigma above 2^50) does not fit 64-bit integers; ask for a larger budget."
        )
    return sigma2


def whole_number(value: object, where: str) -> int:
    """An integer of any kind but a truth value."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise SpecificationError(f"{where}: expected a whole number, got {type(value).__name__}.")


def _outside(coverage: object) -> Fraction:
    c = exact(coverage, "coverage")
    if not 0 <= c < 1:
        raise SpecificationError("coverage: must be at least 0 and below 1; write for example 0.95.")
    return 1 - c


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
    s, away = laplace_scale(scale), abs(whole_number(z, "z"))
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
    return _laplace_variance(laplace_scale(scale))


@lru_cache(maxsize=4096)
def _laplace_variance(s: Fraction) -> float:
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
    return _laplace_quantile(laplace_scale(scale), _outside(coverage))


@lru_cache(maxsize=4096)
def _laplace_quantile(s: Fraction, outside: Fraction) -> int:
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
    return _least(covers, int(Fraction(_nepers(outside) + math.log(2 / (1 + ratio))) * s))


def discrete_gaussian_variance(sigma2: Number) -> float:
    """The variance of discrete Gaussian noise, in squared units, correctly rounded. Below sigma2 for small sigma2.

    Args:
        sigma2: as ``discrete_gaussian``: the parameter of the law, which the variance nears quickly from below.
    Raises:
        SpecificationError: as ``discrete_gaussian``.
    Source: derived.

    >>> discrete_gaussian_variance(100), discrete_gaussian_variance("0.1")
    (100.0, 0.013296725173624157)
    """
    return _gaussian_variance(gaussian_sigma2(sigma2))


@lru_cache(maxsize=4096)
def _gaussian_variance(s: Fraction) -> float:
    if s >= 4:
        return float(s)
    if s < Fraction(1, 1500):
        return 0.0  # 2 exp(-750) is nearer to 0 than to the least positive double
    bits = 160 + int(3 / (4 * s))
    while True:
        # Sum of z^2 f(z) over z > 0 is the sum over j > 0 of (2j - 1) times the tail from j on.
        above = _above(s, bits)
        moments = [sum((2 * j + 1) * tail[end] for j, tail in enumerate(above)) for end in (0, 1)]
        moments[1] += (
            1  # all that follows: the tails left out are below 2^-32 units and fall by more than e^8 a step
        )
        one = 1 << bits
        low, high = (float(Fraction(2 * moments[end], one + 2 * above[0][1 - end])) for end in (0, 1))
        if low == high:
            return low
        bits *= 2


def discrete_gaussian_quantile(sigma2: Number, coverage: Number) -> int:
    """The smallest t >= 0 with P(|Z| > t) <= 1 - coverage: the half width of a two-sided interval. Certified.

    Compared in exact intervals, so t is never too small; it is too large by one only if P(|Z| > t - 1) meets
    1 - coverage to within a relative 2^-400 without a proof that it is not above.

    Args:
        sigma2: as ``discrete_gaussian``.
        coverage: from 0 up to, but not including, 1, exact.
    Raises:
        SpecificationError: as ``discrete_gaussian``, or a coverage outside [0, 1).
    Source: derived.

    >>> discrete_gaussian_quantile(100, "0.95"), discrete_gaussian_quantile("0.1", "0.95")
    (20, 0)
    """
    return _gaussian_quantile(gaussian_sigma2(sigma2), _outside(coverage))


@lru_cache(maxsize=4096)
def _gaussian_quantile(s: Fraction, outside: Fraction) -> int:
    lost = outside.denominator.bit_length() - outside.numerator.bit_length() + 1

    def covers(t: int) -> bool:
        for precision in (64, 448):
            bits = precision + lost + _bits(s) // 2
            one = 1 << bits
            low, high = _beyond(s, t, bits)
            if high * outside.denominator <= outside.numerator * one:
                return True
            if low * outside.denominator > outside.numerator * one:
                return False
        return False

    nepers = _nepers(outside)
    deviations = -NormalDist().inv_cdf(math.exp(-nepers) / 2) if nepers < 600 else math.sqrt(2 * nepers)
    sigma = math.isqrt((s.numerator << 128) // s.denominator)
    return _least(covers, int(Fraction(deviations) * sigma + (1 << 63)) >> 64)


@lru_cache(maxsize=16)
def _above(s: Fraction, bits: int) -> list[Bounds]:
    """Integers around 2^bits times the sums of f over z > t, for t = 0, 1, ... until less than 2^-bits is left."""
    return tails(s, 1, 0, 1, bits)


def _beyond(s: Fraction, t: int, bits: int) -> Bounds:
    """Integers around 2^bits P(|Z| > t) of the Gaussian law."""
    one = 1 << bits
    if 2 * s < bits:
        above = _above(s, bits)
        after = above[t] if t < len(above) else (0, 1)
        return (
            (2 * after[0] << bits) // (one + 2 * above[0][1]),
            ceil_div(2 * after[1] << bits, one + 2 * above[0][0]),
        )
    m, work, fall = 1, bits + 32, math.log2(4 * math.pi**2 * float(s))
    while m * fall - math.lgamma(2 * m + 1) / math.log(4) < bits + 3:
        m += 1  # R below 2^-bits of the whole; the theta series of the whole is then shorter than that too
    twice = 2 * t + 1
    integral = _odd_series(Fraction(twice * twice) / s, work)
    corrections = _corrections(s, twice, m, work)
    low, high = (twice * integral[end] + corrections[end] for end in (0, 1))
    deep = work + (integral[1] >> work).bit_length()
    density = exp_bounds(Fraction(twice * twice) / (8 * s), deep)
    whole = _root_of_two_pi(s, work)
    inside = (
        (density[0] * low << bits) // (whole[1] << deep),
        (density[1] * high << bits) // (whole[0] << deep),
    )
    return max(0, one - inside[1] - 3), one - inside[0] + 3


def _odd_series(four_y: Fraction, bits: int) -> Bounds:
    """Integers around 2^bits times the sum over k >= 0 of y^k / (2k+1)!!, from 4 y."""
    y_low = (four_y.numerator << bits) // (4 * four_y.denominator)
    low = high = term_low = term_high = 1 << bits
    n = 1
    # After it each term is at most half the one before, so that all left out are below 2^16.
    while term_high >> 16 or n * 2 << bits <= y_low:
        n += 2
        term_low = (term_low * y_low >> bits) // n
        term_high = ceil_div(ceil_shift(term_high * (y_low + 1), bits), n)
        low += term_low
        high += term_high
    return low, high + (1 << 16)


def _corrections(s: Fraction, twice: int, m: int, bits: int) -> Bounds:
    """Integers around 2^bits times the sum over k = 1..m of 2 b_k f^(2k-1)(h) / f(h), h = twice / 2.

    With s = p/q and G_n = (2p)^n f^(n)(h) / f(h): G_(n+1) = -twice q G_n - 4 n p q G_(n-1), all integers.
    """
    p, q = s.numerator, s.denominator
    total, before, here, scale = 0, 1, -twice * q, 2 * p
    for k in range(1, m + 1):
        factor = _midpoint_coefficient(k)
        total += (2 * factor.numerator * here << bits) // (factor.denominator * scale)
        for n in (2 * k - 1, 2 * k):
            before, here = here, -twice * q * here - 4 * n * p * q * before
        scale *= 4 * p * p
    return total, total + m


@lru_cache(maxsize=1024)
def _midpoint_coefficient(k: int) -> Fraction:
    """b_k: the coefficient of x^(2k) in (x/2) / sinh(x/2), from the product of the two series, which is 1."""
    if not k:
        return Fraction(1)
    return -sum(
        (_midpoint_coefficient(j) / (4 ** (k - j) * math.factorial(2 * (k - j) + 1)) for j in range(k)),
        Fraction(0),
    )


@lru_cache(maxsize=64)
def _pi(bits: int) -> Bounds:
    """Integers around 2^bits pi, by Machin's formula 16 arctan(1/5) - 4 arctan(1/239)."""

    def arctan(inverse: int) -> int:
        total, power, n = 0, (1 << bits + 16) // inverse, 1
        while power:
            total += power // n if n % 4 == 1 else -(power // n)
            power //= inverse * inverse
            n += 2
        return total

    # Each division is short by less than 1, and there are fewer than the bits.
    middle = 16 * arctan(5) - 4 * arctan(239)
    return (middle >> 16) - 1 - bits // 1024, (middle >> 16) + 2 + bits // 1024


def _root_of_two_pi(s: Fraction, bits: int) -> Bounds:
    """Integers around 2^bits sqrt(2 pi s)."""
    low, high = (2 * end * s.numerator << bits for end in _pi(bits + 8))
    return math.isqrt((low >> 8) // s.denominator), math.isqrt(ceil_div(high, s.denominator << 8)) + 1


def _least(covers: Callable[[int], bool], guess: int) -> int:
    """The least t >= 0 that ``covers``, from a guess near it; all larger ones do."""
    above, step = max(0, guess), 1
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


def _nepers(x: Fraction) -> float:
    """-log(x), about."""
    return math.log(x.denominator) - math.log(x.numerator)


def _bits(s: Fraction) -> int:
    """About log2(s) for a large scale, 0 for a small one: the bits that 1 - exp(-1/s) loses."""
    return max(0, s.numerator.bit_length() - s.denominator.bit_length() + 1)
