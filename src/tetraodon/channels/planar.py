r"""Laws of planar noise on a grid, with all mass beyond the grid accounted for.

Both kinds are ε-private per unit of length, by the same argument: an endless law whose density at a place falls by at most
e^{ε d} over a distance d gives probabilities of *sets* that differ by at most e^{ε d} too, and what a grid shows, cells and
clamped borders, are sets (post-processing).

    geometric   P(u) = e^{−ε|u|} / Σ_v e^{−ε|v|} on the endless lattice of cell centres; borders hold the sums beyond them.
                Along one axis it is the two-sided geometric law (Ghosh, Roughgarden, Sundararajan 2009).
    laplace     density ε²/(2π) e^{−ε|x|} in the plane (Andrés, Bordenabe, Chatzikokolakis, Palamidessi 2013), ε/2 e^{−ε|x|}
                along one axis, around the centre of the cell; integrated over each cell, the borders to infinity.

The radius of planar Laplace noise is Gamma(2, 1/ε) distributed. A Gamma variate drawn in floating point does not have a
private law (Mironov 2012), whereas a table of cells is drawn from exactly; for finer outputs the lattice is made finer.

*Sums and integrals.* e^{−√(x²+y²)} is summed, or integrated, from a border to infinity by Gauss rules on blocks. A block is no
longer than its distance to the singularity x² + y² = 0 and lets the exponent fall by 8 at most, so that 24 nodes leave a
relative error below 10^-15. For sums the rule is that of the counting measure (discrete Chebyshev polynomials); blocks of up
to 24 terms are summed term by term. Blocks end where less than e^{−45} of the whole is left.

*Rounding.* ``ERROR`` bounds the relative error of every entry: the rules, the doubles, and exponents, which are right to 8
units of rounding of at most 700. The entry that takes up the rounding of all others is measured. The law is made for a rate
smaller by just what these errors, and the margins of those who certify losses, come to on the shortest distance there is, one
cell: loss(d) ≤ rate·d + 2 ERROR ≤ ε·d for every d. So no pair exceeds what was asked.

*Far cells.* Where e^{−ε·diagonal} is too small for doubles, the law is mixed, with weight e^{−400}, with a geometric one of a
smaller rate. A mixture of ε-private laws is ε-private, and no entry is 0.

Source: derived.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import atan2, exp, expm1, fsum, hypot, log, pi, sqrt
from typing import Any

import numpy as np

from ..errors import SpecificationError, Unsupported
from .bounds import down
from .geometry import MAX_CELLS, Floats
from .shift import Promise, Shift

KINDS = ("geometric", "laplace")
NODES = 24
FEW = 12  # nodes for cells far from the centre, along sides that let the exponent fall by FALL at most
FALL = 8.0
TAIL = 45.0
DEEPEST = 600.0
WEIGHT = exp(-400.0)
ERROR = 2e-12
CERTIFIED = 4e-12
CHUNK = 1 << 21


def law(
    kind: str, epsilon: Fraction, steps: tuple[Fraction, Fraction], shape: tuple[int, int], fixed: int = 0
) -> Shift:
    """The law of planar noise that keeps ε for every unit of length between any two cells.

    Args:
        kind: "geometric" or "laplace".
        epsilon: per unit of length, exact and above 0.
        steps: sides of a cell. An axis of one cell has no noise of its own.
        shape: rows and columns.
        fixed: how many special cells come out as they are.

    Raises:
        Unsupported: more than 2^22 cells, or ε so small that rounding is not small beside it.

    >>> told = law("geometric", Fraction(1), (Fraction(1), Fraction(1)), (1, 3))
    >>> [round(v, 4) for v in told.rows(np.array([0]))[0].tolist()]
    [0.7311, 0.17, 0.0989]
    """
    if shape[0] * shape[1] > MAX_CELLS:
        raise Unsupported("channel: planar noise on up to 2^22 cells; declare coarser ones.")
    if shape == (1, 1):
        return Shift.of([[1.0]], fixed)
    least = epsilon * min(s for s, n in zip(steps, shape, strict=True) if n > 1)
    error = ERROR
    while (room := Fraction(2 * error + CERTIFIED) / least + Fraction(CERTIFIED)) <= Fraction(1, 2):
        made = again(kind, epsilon * (1 - room), steps, shape, fixed, error)
        if made.promise is not None:
            return made
        error *= 8
    raise Unsupported(
        "epsilon: so small for one cell of this grid that rounding is not small beside it; use coarser cells."
    )


def again(
    kind: str,
    rate: Fraction,
    steps: tuple[Any, ...],
    shape: tuple[int, int],
    fixed: int = 0,
    error: float = ERROR,
) -> Shift:
    """The law of one rate. It carries a promise if the entry that takes up the rounding of all others is right to half of
    ``error``, and none otherwise."""
    if kind not in KINDS or len(steps) != 2 or rate <= 0:
        raise SpecificationError(f"channel: planar noise is one of {', '.join(KINDS)}, of a rate above 0.")
    sides = down(rate * steps[0]), down(rate * steps[1])
    table = mirrored(quadrant(kind, sides, shape))
    made = Shift.of(table, fixed)
    off = abs(made.entries.ravel()[made.rest] / table.ravel()[made.rest] - 1)
    if off > error / 2:
        return made
    return Shift(made.entries, made.rest, fixed, Promise(kind, rate, (steps[0], steps[1]), 2 * error))


def mirrored(weights: Floats) -> Floats:
    """A table of all offsets, shape (2r − 1, 2c − 1), from those that are not negative.

    >>> mirrored(np.array([[4.0, 1.0]])).tolist()
    [[1.0, 4.0, 1.0]]
    """
    half = np.concatenate([weights[:0:-1], weights])
    return np.concatenate([half[:, :0:-1], half], axis=1)


def quadrant(kind: str, sides: tuple[float, float], shape: tuple[int, int]) -> Floats:
    """Probabilities of the offsets 0 … r − 1 and 0 … c − 1, the last ones with all beyond; shape (r, c).

    Args:
        sides: ε times the sides of a cell.
    """
    with np.errstate(under="ignore"):
        if min(shape) == 1:
            told = _line(kind, sides[shape[0] == 1], max(shape)).reshape(shape)
        else:
            told = _geometric(sides, shape) if kind == "geometric" else _laplace(sides, shape)
    often = [np.where(np.arange(n) > 0, 2.0, 1.0) for n in shape]
    told /= fsum((told * often[0][:, None] * often[1]).ravel().tolist())
    reach = sum(s * (n - 1) for s, n in zip(sides, shape, strict=True))
    if reach > DEEPEST:
        slower = DEEPEST / 4 / reach
        told = (told + WEIGHT * quadrant("geometric", (sides[0] * slower, sides[1] * slower), shape)) / (
            1 + WEIGHT
        )
    return told


def _line(kind: str, a: float, n: int) -> Floats:
    """Along one axis, in closed form."""
    steps = np.arange(n, dtype=np.float64)
    if kind == "geometric":
        told = np.exp(-a * steps)
        told[-1] /= -expm1(-a)
        return told
    told = np.exp(-a * (np.maximum(steps, 1) - 0.5)) * (-expm1(-a) / 2)
    told[0] = -expm1(-a / 2)
    told[-1] = exp(-a * (n - 1.5)) / 2 if n > 1 else 1.0
    return told


def _geometric(sides: tuple[float, float], shape: tuple[int, int]) -> Floats:
    rows, columns = (s * np.arange(n - 1, dtype=np.float64) for s, n in zip(sides, shape, strict=True))
    far = hypot(*(s * (n - 1) for s, n in zip(sides, shape, strict=True)))
    (x, wide), (y, high) = (_beyond_sum(n - 1, s, far) for s, n in zip(sides, shape, strict=True))
    told = np.empty(shape)
    told[:-1, :-1] = _falling(rows, columns)
    told[-1, :-1] = wide @ _falling(x, columns)
    told[:-1, -1] = _falling(rows, y) @ high
    told[-1, -1] = _weighted(x, wide, y, high)
    return told


def _falling(x: Floats, y: Floats) -> Floats:
    told = np.hypot(x[..., :, None], y[..., None, :])
    np.negative(told, out=told)
    return np.exp(told, out=told)


def _weighted(x: Floats, wide: Floats, y: Floats, high: Floats) -> float:
    """Σ wide_i e^{−√(x_i² + y_j²)} high_j, some rows at a time: cells of next to no size have very many nodes."""
    rows = max(1, CHUNK // len(y))
    parts = [slice(start, start + rows) for start in range(0, len(x), rows)]
    return float(sum(wide[part] @ _falling(x[part], y) @ high for part in parts))


def _stop(start: float, far: float) -> float:
    """Where e^{−√(x²+y²)} has fallen by e^{−TAIL} from x = start, for any y with √(start² + y²) ≤ far."""
    return sqrt(start * start + 2 * TAIL * far + TAIL * TAIL)


def _beyond_sum(first: int, side: float, far: float) -> tuple[Floats, Floats]:
    """Nodes x (times ``side``) and weights for sums over the whole numbers from ``first`` on."""
    nodes, weights, at = [], [], first
    last = _stop(first * side, far) / side
    while at < last:
        length = int(min(at, max(FALL / side, 1.0)))
        if length <= NODES:
            nodes.append(np.arange(at, at + length, dtype=np.float64))
            weights.append(np.ones(length))
        else:
            inner, weight = _counting(length)
            nodes.append(at + inner)
            weights.append(weight)
        at += length
    return np.concatenate(nodes) * side, np.concatenate(weights)


def _beyond_integral(start: float, far: float) -> tuple[Floats, Floats]:
    """Nodes and weights for integrals from ``start`` on."""
    ends, last = [start], _stop(start, far)
    while ends[-1] < last:
        ends.append(ends[-1] + min(ends[-1], FALL))
    return _pieces(ends)


def _pieces(ends: list[float]) -> tuple[Floats, Floats]:
    inner, weight = _legendre(NODES)
    low, length = np.array(ends[:-1])[:, None], np.diff(ends)[:, None]
    return (low + length * inner).ravel(), (length * weight).ravel()


def _cuts(low: float, high: float, nearest: float) -> list[float]:
    """Ends of pieces of [low, high] no longer than their distance to the centre, which is ``nearest`` at least."""
    ends = [low]
    while ends[-1] < high:
        ends.append(min(ends[-1] + min(max(ends[-1], nearest), FALL), high))
    return ends


@lru_cache(maxsize=256)
def _legendre(n: int) -> tuple[Floats, Floats]:
    """Gauss's rule for integrals over [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2


@lru_cache(maxsize=256)
def _counting(length: int) -> tuple[Floats, Floats]:
    """Gauss's rule for sums over 0, 1, …, length − 1: exact for polynomials of degree up to 2 NODES − 1.

    From the recurrence of the discrete Chebyshev polynomials, β_k = k² (m² − k²) / (4 (4k² − 1)) (Golub, Welsch 1969).

    >>> nodes, weights = _counting(1000)
    >>> round(float(weights.sum()), 6), round(float(weights @ nodes**2) - sum(i * i for i in range(1000)), 3)
    (1000.0, 0.0)
    """
    k = np.arange(1, NODES, dtype=np.float64)
    beside = np.sqrt((1 - (k / length) ** 2) / (4 * (4 - 1 / k**2)))
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return nodes * length + (length - 1) / 2, length * vectors[0] ** 2


def _laplace(sides: tuple[float, float], shape: tuple[int, int]) -> Floats:
    """In units of 1/ε; the density is e^{−√(x²+y²)}/(2π)."""
    (a, b), (r, c) = sides, shape
    starts: list[Floats] = [
        np.maximum(s * (np.arange(n) - 0.5), 0.0) for s, n in zip(sides, shape, strict=True)
    ]
    ends: list[Floats] = [
        s * (np.arange(n, dtype=np.float64) + 0.5) for s, n in zip(sides, shape, strict=True)
    ]
    told = np.zeros(shape)
    told[:-1, :-1] = _cells(starts, ends, sides, (r - 1, c - 1))
    far = hypot(float(starts[0][-1]), float(starts[1][-1]))
    (x, wide), (y, high) = (_beyond_integral(float(s[-1]), far) for s in starts)
    told[-1, -1] = _weighted(x, wide, y, high)
    for table, low, top, across, weight in (
        (told[-1, :-1], starts[1], ends[1], x, wide),
        (told[:-1, -1], starts[0], ends[0], y, high),
    ):
        for j in range(len(table)):
            nearest = hypot(float(low[j]), float(across[0]))
            inner, share = _pieces(_cuts(float(low[j]), _seen(low[j], top[j], across[0]), nearest))
            table[j] = weight @ _falling(across, inner) @ share
    told /= 2 * pi
    told[0, :] *= 2
    told[:, 0] *= 2
    told[0, 0] = _centre(a / 2, b / 2)
    return told


def _seen(low: Any, high: Any, across: Any) -> Any:
    """The end of an interval, or where e^{−√(x²+y²)} has fallen by e^{−TAIL} from its low end, at y = ``across``."""
    return np.minimum(high, np.sqrt((np.hypot(low, across) + TAIL) ** 2 - np.square(across)))


def _cells(
    starts: list[Floats], ends: list[Floats], sides: tuple[float, float], shape: tuple[int, int]
) -> Floats:
    """Integrals over cells (or the halves and quarters of cells on the axes with x, y ≥ 0) but for the one in the centre."""
    i, j = (n.ravel() for n in np.indices(shape))
    x, y = starts[0][i], starts[1][j]
    distance = np.hypot(x, y)
    length = _seen(x, ends[0][i], y) - x, _seen(y, ends[1][j], x) - y
    told = np.zeros(len(i))
    near = distance < 2 * max(sides)
    held = distance < DEEPEST + 100  # farther cells are too small to be seen beside the mixture
    for n, wanted in ((FEW, max(sides) <= FALL), (32, max(sides) > FALL)):
        where = np.flatnonzero(held & ~near) if wanted else np.zeros(0, dtype=np.int64)
        inner, share = _legendre(n)
        step = CHUNK // n**2
        for at in range(0, len(where), step):
            some = where[at : at + step]
            u, v = (
                low[some, None] + long[some, None] * inner for low, long in zip((x, y), length, strict=True)
            )
            told[some] = (_falling(u, v) @ share @ share) * length[0][some] * length[1][some]
    for k in np.flatnonzero(near & held & (distance > 0)).tolist():
        (u, wide), (v, high) = (
            _pieces(_cuts(float(low), float(low + long), float(distance[k])))
            for low, long in ((x[k], length[0][k]), (y[k], length[1][k]))
        )
        told[k] = _weighted(u, wide, v, high)
    return told.reshape(shape)


def _centre(half: float, other: float) -> float:
    """P(|x| ≤ half, |y| ≤ other), in polar coordinates: the mean over angles of P(radius ≤ distance to the edge)."""
    total = 0.0
    for near, far in ((half, other), (other, half)):
        angle = atan2(far, near)
        nodes, weights = _legendre(4 * NODES)
        total += angle * float(weights @ _radial(near / np.cos(angle * nodes)))
    return total * 2 / pi


def _radial(x: Floats) -> Floats:
    """1 − (1 + x) e^{−x} = e^{−x} Σ_{k ≥ 2} x^k / k!, to full precision."""
    small = np.minimum(x, 1.0)
    series, term = np.zeros_like(x), np.ones_like(x)
    for k in range(1, 24):
        term = term * small / k
        series = series + (term if k > 1 else 0.0)
    return np.where(x < 1, series * np.exp(-small), -np.expm1(-x) - x * np.exp(-x))


def within(epsilon: float, radius: float) -> float:
    """P(|noise| ≤ radius) of continuous planar Laplace noise: 1 − (1 + εr) e^{−εr}.

    >>> round(within(1.0, 4.744), 4)
    0.95
    """
    return float(_radial(np.array([epsilon * radius]))[0])


def radius(epsilon: float, level: float) -> float:
    """The radius that planar Laplace noise stays within at this level: −(W₋₁((level − 1)/e) + 1)/ε; its mean is 2/ε.

    >>> round(radius(1.0, 0.5), 3), round(radius(0.5, 0.95), 3)
    (1.678, 9.488)
    """
    if not (0 <= level < 1 and epsilon > 0):
        raise SpecificationError("radius: a level from 0 to below 1, and epsilon above 0.")
    low, high = 0.0, 8.0 - 2 * log(1 - level)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if within(1.0, middle) < level else (low, middle)
    return high / epsilon
