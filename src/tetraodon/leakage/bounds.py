"""What H(X | Z) says of the Bayes error, and the other way round.

Each of these holds for every joint law of a secret X and an output Z in which X takes finitely many values; Fano's and the
sharp one also use how many (those of positive probability are enough). B is the Bayes error B(X | Z); entropies are in bits.
They are bounds on the law that the entropy was computed of: an entropy estimated from samples gives an estimated bound.

| bound | of B, from H(X given Z) | of H(X given Z), from B |
|---|---|---|
| Fano | at least the root of h(B) + B log₂(n − 1) = H | at most h(B) + B log₂(n − 1) |
| Hellman–Raviv 1970 | at most H / 2 | at least 2 B |
| Santhi–Vardy 2006 | at most 1 − 2^(−H) | at least −log₂(1 − B) |
| sharp (Kovalevsky 1968) | at most the root of φ(B) = H | at least φ(B) |

φ joins the points B = 1 − 1/i, H = log₂ i (i = 1 … n) by straight lines. It is the best bound of its kind: Hellman–Raviv is
its first piece, better than Santhi–Vardy up to one bit and worse from there on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import SpecificationError
from ..reading import kind_of
from .measures import bayes_error, conditional_entropy
from .tables import TOLERANCE, joint_table


def _secrets(secrets: object) -> int:
    if isinstance(secrets, bool) or not isinstance(secrets, int) or secrets < 1:
        raise SpecificationError("secrets: how many values the secret can take, a whole number from 1.")
    return secrets


def _entropy(entropy: float, most: float) -> float:
    if not kind_of(entropy).startswith("a number") or not 0 <= entropy <= most + TOLERANCE:
        raise SpecificationError(
            "entropy: H(X | Z) in bits, from 0 to log₂ of the number of secrets; natural logarithms are divided by ln 2."
        )
    return min(float(entropy), most)


def _error(error: float, most: float) -> float:
    if not kind_of(error).startswith("a number") or not 0 <= error <= most + TOLERANCE:
        raise SpecificationError(
            "error: a Bayes error, from 0 to 1 − 1/n of n secrets; more than that is no best guess."
        )
    return min(float(error), most)


def fano_entropy(error: float, secrets: int) -> float:
    """Fano: H(X | Z) ≤ h(B) + B log₂(n − 1), in bits.

    Args:
        error: B, from 0 to 1 − 1/n.
        secrets: n, how many values the secret takes.
    Raises:
        SpecificationError: one of the two is out of range.

    >>> fano_entropy(0.75, 4)
    2.0
    """
    n = _secrets(secrets)
    b = _error(error, 1 - 1 / n)
    if b == 0:
        return 0.0
    return -b * math.log2(b) - (1 - b) * math.log1p(-b) / math.log(2) + b * math.log2(n - 1)


def fano_bound(entropy: float, secrets: int) -> float:
    """Fano: the least Bayes error that n secrets of which H(X | Z) bits are unknown can have.

    The root B in [0, 1 − 1/n] of h(B) + B log₂(n − 1) = H, rounded down.

    Args:
        entropy: H(X | Z) in bits, from 0 to log₂ n. With I(X; Z) instead: H(X) − I(X; Z).
        secrets: n, how many values the secret takes.
    Raises:
        SpecificationError: one of the two is out of range.

    >>> round(fano_bound(2, 4), 6), fano_bound(0, 4)
    (0.75, 0.0)
    """
    n = _secrets(secrets)
    h = _entropy(entropy, math.log2(n))
    low, high = 0.0, 1 - 1 / n
    for _ in range(200):
        middle = (low + high) / 2
        if fano_entropy(middle, n) <= h:
            low = middle
        else:
            high = middle
    return low


def hellman_raviv_bound(entropy: float) -> float:
    """Hellman–Raviv: B ≤ H(X | Z) / 2, H in bits. It says nothing new beyond two bits.

    Raises:
        SpecificationError: the entropy is negative or not a number.

    >>> hellman_raviv_bound(0.5)
    0.25
    """
    return _entropy(entropy, math.inf) / 2


def hellman_raviv_entropy(error: float) -> float:
    """Hellman–Raviv: H(X | Z) ≥ 2 B, in bits.

    Raises:
        SpecificationError: the error is not between 0 and 1.

    >>> hellman_raviv_entropy(0.25)
    0.5
    """
    return 2 * _error(error, 1.0)


def santhi_vardy_bound(entropy: float) -> float:
    """Santhi–Vardy: B ≤ 1 − 2^(−H(X | Z)), H in bits.

    Raises:
        SpecificationError: the entropy is negative or not a number.

    >>> santhi_vardy_bound(2)
    0.75
    """
    return -math.expm1(-_entropy(entropy, math.inf) * math.log(2))


def santhi_vardy_entropy(error: float) -> float:
    """Santhi–Vardy: H(X | Z) ≥ −log₂(1 − B), in bits; infinite at B = 1.

    Raises:
        SpecificationError: the error is not between 0 and 1.

    >>> santhi_vardy_entropy(0.75)
    2.0
    """
    b = _error(error, 1.0)
    return math.inf if b == 1 else abs(math.log1p(-b) / math.log(2))


def sharp_bound(entropy: float, secrets: int) -> float:
    """The greatest Bayes error that n secrets of which H(X | Z) bits are unknown can have (Kovalevsky): some law reaches it.

    Args:
        entropy: H(X | Z) in bits, from 0 to log₂ n.
        secrets: n, how many values the secret takes.
    Raises:
        SpecificationError: one of the two is out of range.

    >>> round(sharp_bound(1.25, 4), 4), round(santhi_vardy_bound(1.25), 4)
    (0.5712, 0.5796)
    """
    n = _secrets(secrets)
    h = _entropy(entropy, math.log2(n))
    if n == 1:
        return 0.0
    i = min(max(int(2**h), 1), n - 1)
    while i > 1 and math.log2(i) > h:
        i -= 1
    while i < n - 1 and math.log2(i + 1) <= h:
        i += 1
    share = (h - math.log2(i)) / (math.log2(i + 1) - math.log2(i))
    return 1 - 1 / i + share / (i * (i + 1))


def sharp_entropy(error: float, secrets: int) -> float:
    """The least H(X | Z), in bits, at which n secrets can have the Bayes error B (Kovalevsky): some law reaches it.

    Args:
        error: B, from 0 to 1 − 1/n.
        secrets: n, how many values the secret takes.
    Raises:
        SpecificationError: one of the two is out of range.

    >>> sharp_entropy(0.25, 4), round(sharp_entropy(0.75, 4), 9)
    (0.5, 2.0)
    """
    n = _secrets(secrets)
    b = _error(error, 1 - 1 / n)
    if n == 1:
        return 0.0
    i = min(max(int(1 / (1 - b)), 1), n - 1)
    share = (b - (1 - 1 / i)) * i * (i + 1)
    return math.log2(i) + share * (math.log2(i + 1) - math.log2(i))


@dataclass(frozen=True)
class ErrorBounds:
    """A Bayes error and everything that H(X | Z) says of it.

    Attributes:
        error: B(X | Z).
        entropy: H(X | Z) in bits.
        at_least: Fano's lower bound.
        at_most: upper bounds by name: hellman-raviv, santhi-vardy, sharp.
    """

    error: float
    entropy: float
    at_least: float
    at_most: dict[str, float]


def error_bounds(joint: object) -> ErrorBounds:
    """The Bayes error of a joint table between the bounds that its conditional entropy gives.

    Raises:
        SpecificationError: it is not a joint table.

    >>> found = error_bounds([[0.4, 0.1], [0.1, 0.4]])
    >>> found.at_least <= found.error <= min(found.at_most.values())
    True
    """
    p = joint_table(joint)
    n = int((p.sum(axis=1) > 0).sum())
    h = min(conditional_entropy(p), math.log2(n))
    upper = {
        "hellman-raviv": hellman_raviv_bound(h),
        "santhi-vardy": santhi_vardy_bound(h),
        "sharp": sharp_bound(h, n),
    }
    return ErrorBounds(bayes_error(p), h, fano_bound(h, n), upper)
