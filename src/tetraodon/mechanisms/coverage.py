"""How wide an interval is for its coverage, in standard deviations of what the noise adds up to.

One continuous Laplace variable of variance σ² exceeds −ln(1 − c)/√2·σ with probability 1 − c, a normal one z_c·σ. A weighted
sum of independent Laplace variables is a normal variable of random variance, somewhere between the two: beyond coverages of
about 91 % one variable needs most, below the normal one does, and near 90.7 % sums of a few need up to 0.001σ more than
either (docs/mechanisms.md). At 95 % that is −ln(0.05)/√2 = 2.118 and 1.960.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

COVERAGE = Fraction(95, 100)
"""Of every interval where nothing else was asked for."""
WIDEST = -math.log(0.05) / math.sqrt(2)
"""Half-width of the 95 % interval of sums of Laplace variables in standard deviations."""
NORMAL = 1.959964
"""The same for sums of Gaussian draws."""
JUMP = 0.51
"""The 95 % interval of one discrete Laplace draw exceeds ``WIDEST``·σ by at most this (it is a whole number); times its weight."""
BETWEEN = 0.003
LEAST, MOST = Fraction(1, 2), Fraction(999, 1000)


def widest(coverage: Fraction, is_gaussian: bool) -> float:
    """Half-width in standard deviations that no sum of draws exceeds at a coverage from 0.5 to 0.999.

    >>> widest(Fraction(95, 100), False) == WIDEST, widest(Fraction(95, 100), True) == NORMAL
    (True, True)
    >>> round(widest(Fraction(4, 5), False), 4), round(widest(Fraction(99, 100), False), 4)
    (1.2846, 3.2563)
    """
    normal = math.ceil(NormalDist().inv_cdf(float((1 + coverage) / 2)) * 1e6) / 1e6
    return normal if is_gaussian else max(-math.log(float(1 - coverage)) / math.sqrt(2), normal + BETWEEN)


def jump(coverage: Fraction, is_gaussian: bool) -> float:
    """What the interval of one discrete draw exceeds ``widest``·σ by, at most, beyond half a unit of rounding.

    The worst draw is one that is barely not 0 with probability 1 − c: it needs 1, and its σ is the root of that.

    >>> jump(COVERAGE, False), round(jump(COVERAGE, True), 3), round(jump(Fraction(999, 1000), False), 3)
    (0.51, 0.562, 0.846)
    """
    if coverage == COVERAGE and not is_gaussian:
        return JUMP
    return max(JUMP, 1 - widest(coverage, is_gaussian) * math.sqrt(float(1 - coverage)))
