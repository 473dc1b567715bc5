"""Least expected distortion under bounds on the ratios of a channel's columns: a structured interior point method.

    minimise Σ_wz cost[w, z] K[w, z]   subject to   Σ_z K[w, z] = 1,   K[a, z] ≤ e^{b_p} K[b, z] and back, for each pair p.

Columns meet in the row sums alone. Each inequality is scaled by e^{−b/2}, slack s = e^{b/2} K[b] − e^{−b/2} K[a], multiplier y;
with r = y/s the normal matrix of a column has −(r + r') off its diagonal and sums of e^{±b} r on it, so it costs one number a
pair to form. In the variables dK/K it is factored as LL'; M = L⁻¹ diag(K) gives both its inverse M'M and, stacked over the
columns, the Schur complement of the row sums as one product. Mehrotra's predictor and corrector (1992) with centrality
corrections (Gondzio 1996), derived for this structure.

A multiplier y ≥ 0, however it was found, proves the bound Σ_w min_z (cost − A'y)[w, z] that no feasible K beats. The best one
is kept, and so is the best feasible K.

**Symmetry.** Where permutations leave the program as it is, an optimum is invariant under them (average it over the group), so
one column of each orbit is enough, counted as often as its orbit is long, and one row sum for each orbit of inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..axes import Ints
from .geometry import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEPS = 250
STALLED = 8
FEASIBLE = 1e-9
FIRMER = (0.0, 1e-14, 1e-13, 1e-12)  # shares of the diagonal, added to it where it is not positive definite
CACHED = 1 << 16  # numbers
ABSOLUTE = 1e-7  # of the cost of the first guess: below, values count as that much
FAR, NEAR = 1e-2, 1e-4  # relative gaps from which more digits count


@dataclass(frozen=True, eq=False)
class Program:
    """The program, with its columns and rows taken together where symmetry allows.

    Attributes:
        cost: shape (inputs, columns): what K[w, z] is multiplied by, prior included.
        first, second, exponents: the pairs and their bounds, each in both directions.
        weight: shape (columns,): how many columns each one stands for.
        orbit: shape (inputs,): the row sum that an input counts in.
    """

    cost: Floats
    first: Ints
    second: Ints
    exponents: Floats
    weight: Floats
    orbit: Ints

    @staticmethod
    def of(cost: Floats, first: Ints, second: Ints, exponents: Floats) -> Program:
        """A program that is solved column by column and row by row."""
        n, columns = cost.shape
        return Program(cost, first, second, exponents, np.ones(columns), np.arange(n, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Optimum:
    """Attributes:
    matrix: shape (inputs, columns): the best feasible K, rows of sum 1 (over orbits, counted by weight).
    value, bound: its cost, and what no feasible K beats.
    forward, backward: shape (pairs, columns): multipliers of K[first] ≤ e^b K[second] and K[second] ≤ e^b K[first] that prove
        the bound.
    steps: how many were taken.
    """

    matrix: Floats
    value: float
    bound: float
    forward: Floats
    backward: Floats
    steps: int


@dataclass(frozen=True, eq=False)
class _Shape:
    """What does not change from step to step."""

    program: Program
    slacks: Any  # sparse, (2·pairs, inputs)
    back: Any  # its transpose
    squares: Any  # of its entries
    sums: Any  # sparse, (orbits, inputs)
    sizes: Floats
    lower: Ints
    diagonal: Ints
    lines: tuple[Ints, Ints]


@dataclass(frozen=True, eq=False)
class _Point:
    """k, its slacks s, multipliers y of s ≥ 0, x of k ≥ 0 and nu of the row sums."""

    k: Floats
    s: Floats
    y: Floats
    x: Floats
    nu: Floats


@dataclass(frozen=True, eq=False)
class _Move:
    k: Floats
    s: Floats
    y: Floats
    x: Floats
    nu: Floats
    primal: float
    dual: float


def solve(program: Program, start: Floats, tolerance: float = 1e-6, steps: int = STEPS) -> Optimum:
    """Runs until value and bound agree to ``tolerance`` of the value, or double precision ends.

    Args:
        start: positive, shape (inputs, columns), as ``exponential`` gives.
    """
    shape = _shape(program)
    n = len(program.cost)
    point = _first(shape, start)
    scale = ABSOLUTE * float((program.cost * start).sum(axis=0) @ program.weight)
    count = (2 * len(program.first) + n) * float(program.weight.sum())
    best, top, last, stalled, taken = -np.inf, np.inf, np.inf, 0, 0
    matrix, proof = start, np.zeros_like(point.s)
    while True:
        reduced = program.cost - shape.back @ point.y
        bound = _bound(shape, reduced)
        if bound > best:
            best, proof = bound, point.y
        true = shape.slacks @ point.k
        missing = shape.sizes - shape.sums @ (point.k @ program.weight)
        value = float((program.cost * point.k).sum(axis=0) @ program.weight)
        if not np.isfinite(value):
            break
        if value < top and (not true.size or true.min() >= 0) and np.abs(missing).max() < FEASIBLE:
            top, matrix = value, point.k
        if taken == steps:
            break
        if np.isfinite(top):
            stalled = stalled + 1 if top - best > 0.98 * last else 0
            last = top - best
            if stalled == STALLED or last <= tolerance * max(abs(top), scale):
                break
        move = _move(shape, point, reduced, true - point.s, missing, count)
        if move is None:
            break
        point = _moved(point, move)
        taken += 1
    if top == np.inf:
        top = float((program.cost * matrix).sum(axis=0) @ program.weight)
    pairs = len(program.first)
    half = np.exp(-program.exponents / 2)[:, None]
    return Optimum(matrix, top, best, half * proof[:pairs], half * proof[pairs:], taken)


def exponential(closure: Floats, anchors: Ints, weight: Floats, orbit: Ints) -> Floats:
    """A first guess, strictly feasible: e^{−closure/2} around the anchor of each column, a little flattened.

    Args:
        closure: shape (inputs, inputs): the shortest way between two inputs, a pair counted as its bound.
        anchors: shape (columns,): the input that each column is made for.
    """
    guess = np.exp(-0.5 * np.minimum(closure[:, anchors], 60.0))
    sums = np.bincount(orbit, guess @ weight) / np.bincount(orbit)
    return np.asarray(0.98 * guess / sums[orbit][:, None] + 0.02 / weight.sum())


def _shape(program: Program) -> _Shape:
    from scipy import sparse

    n, pairs = len(program.cost), len(program.first)
    up, down = np.exp(program.exponents / 2), np.exp(-program.exponents / 2)
    at = np.arange(pairs)
    rows = np.concatenate([at, at, at + pairs, at + pairs])
    places = np.concatenate([program.second, program.first, program.first, program.second])
    slacks = sparse.csr_matrix((np.concatenate([up, -down, up, -down]), (rows, places)), shape=(2 * pairs, n))
    back = slacks.T.tocsr()
    sums = sparse.csr_matrix((np.ones(n), (program.orbit, np.arange(n))))
    big, small = np.maximum(program.first, program.second), np.minimum(program.first, program.second)
    return _Shape(
        program,
        slacks,
        back,
        back.multiply(back).tocsr(),
        sums,
        np.bincount(program.orbit).astype(np.float64),
        big * n + small,
        np.arange(n) * (n + 1),
        (big, small),
    )


def _first(shape: _Shape, start: Floats) -> _Point:
    program = shape.program
    s = np.maximum(shape.slacks @ start, 1e-6 * start.mean())  # feasible, but perhaps by nothing but rounding
    count = (len(s) + len(start)) * float(program.weight.sum())
    mean = float((program.cost * start).sum(axis=0) @ program.weight) / count
    mean = mean if mean > 0 else 1.0 / count
    return _Point(start, s, mean / s, mean / start, np.zeros(len(shape.sizes)))


def _bound(shape: _Shape, reduced: Floats) -> float:
    least = np.full(len(shape.sizes), np.inf)
    np.minimum.at(least, shape.program.orbit, reduced.min(axis=1))
    return float(least @ shape.sizes)


def _factor(shape: _Shape, point: _Point, ratio: Floats, more: float) -> tuple[Floats, Any] | None:
    """M for every column, and the factored Schur complement; None where precision ends.

    Args:
        more: a share of the diagonal to add to it.
    """
    from scipy.linalg import LinAlgError, cho_factor
    from scipy.linalg.blas import dsyrk
    from scipy.linalg.lapack import dlauum, dpotrf, dtrtri

    program, k = shape.program, point.k
    n, columns = k.shape
    pairs = len(program.first)
    big, small = shape.lines
    stack: Floats = np.zeros((columns, n * n))
    stack[:, shape.lower] = (-(ratio[:pairs] + ratio[pairs:]) * k[big] * k[small]).T
    stack[:, shape.diagonal] = ((shape.squares @ ratio + point.x / k) * ((1 + more) * k * k)).T
    stack = stack.reshape(columns, n, n)
    schur: Any = np.zeros((len(shape.sizes),) * 2, order="F")
    plain = len(shape.sizes) == n
    for z, own in enumerate(k.T):  # the transpose is what LAPACK sees: an upper triangle U, N = U'U
        upper, wrong = dpotrf(stack[z].T, lower=0, overwrite_a=1, clean=0)
        if wrong:
            return None
        dtrtri(upper, lower=0, overwrite_c=1)
        stack[z] *= own
        if plain:
            schur += dlauum(stack[z].T, lower=0)[0]
        else:
            sums = np.asarray(shape.sums @ stack[z].T)
            schur = dsyrk(program.weight[z], sums.T, 1.0, schur, trans=1, lower=0, overwrite_c=1)
    try:
        return stack, cho_factor(schur, lower=False, check_finite=False)
    except LinAlgError:
        return None


def _move(
    shape: _Shape, point: _Point, reduced: Floats, slip: Floats, missing: Floats, count: float
) -> _Move | None:
    """The next step: predictor, corrector, up to two corrections of centrality; None where precision ends."""
    from scipy.linalg import cho_solve

    program, k, s, y, x = shape.program, point.k, point.s, point.y, point.x
    weight, orbit = program.weight, program.orbit
    ratio = y / s
    for more in FIRMER:
        factor = _factor(shape, point, ratio, more)
        if factor is not None:
            break
    else:
        return None
    stack, schur = factor
    n, columns = k.shape
    step = max(1, CACHED // n**2)
    blocks = [slice(z, z + step) for z in range(0, columns, step)]
    gap = _gap(weight, s, y, k, x)
    share = gap / max(abs(float((program.cost * k).sum(axis=0) @ weight)), gap)
    polish = 0 if share > FAR else 1 if share > NEAR else 2
    lost = reduced - point.nu[orbit][:, None] - x + shape.back @ (ratio * slip)

    def newton(right: Floats, wanted: Floats) -> tuple[Floats, Floats]:
        rows: Floats = np.ascontiguousarray(right.T)
        half, found, sums = np.empty_like(rows), np.empty_like(rows), np.zeros(n)
        for part in blocks:  # each one read from memory twice, not four times
            half[part] = np.matmul(stack[part], rows[part, :, None])[:, :, 0]
            sums += (weight[part, None] * half[part]).ravel() @ stack[part].reshape(-1, n)
        nu = cho_solve(schur, wanted - shape.sums @ sums, check_finite=False)
        for part in blocks:
            half[part] += stack[part] @ nu[orbit]
            found[part] = np.matmul(half[part, None, :], stack[part])[:, 0, :]
        return found.T, nu

    def towards(v: Floats, u: Floats) -> _Move:
        """Targets of S dy + Y ds and of K dx + X dk, divided by s and by k."""
        right = shape.back @ v + u - lost
        dk, nu = newton(right, missing)
        for _ in range(polish):  # the inverse is explicit
            ds = shape.slacks @ dk
            ds *= ratio
            left = right + nu[orbit][:, None] - shape.back @ ds - x / k * dk
            more, again = newton(left, missing - shape.sums @ (dk @ weight))
            dk, nu = dk + more, nu + again
        ds = shape.slacks @ dk
        ds += slip
        dy = ratio * ds
        np.subtract(v, dy, out=dy)
        dx = u - x / k * dk
        primal, dual = min(_far(s, ds), _far(k, dk)), min(_far(y, dy), _far(x, dx))
        return _Move(dk, ds, dy, dx, nu, primal, dual)

    move = towards(-y, -x)
    if not np.isfinite(move.k).all():
        return None
    a, d = move.primal, move.dual
    left = gap + a * _gap(weight, move.s, y, move.k, x) + d * _gap(weight, s, move.y, k, move.x)
    left += a * d * _gap(weight, move.s, move.y, move.k, move.x)
    left = max(left, 0.0)
    target = min(max((left / gap) ** 4, 1e-6), 1.0) * gap / count
    v, u = (target - move.s * move.y) / s - y, (target - move.k * move.x) / k - x
    move = towards(v, u)
    for _ in range(2):
        if min(move.primal, move.dual) > 0.9:
            break
        a, d = min(1.0, move.primal + 0.5), min(1.0, move.dual + 0.5)
        v_next = v + _central((s + a * move.s) * (y + d * move.y), target) / s
        u_next = u + _central((k + a * move.k) * (x + d * move.x), target) / k
        tried = towards(v_next, u_next)
        if tried.primal + tried.dual < move.primal + move.dual + 0.02:
            break
        move, v, u = tried, v_next, u_next
    return move


def _central(products: Floats, target: float) -> Floats:
    """What brings products within a factor of ten of the target, bounded below."""
    wanted = np.clip(products, 0.1 * target, 10 * target)
    wanted -= products
    return np.maximum(wanted, -10 * target, out=wanted)


def _gap(weight: Floats, s: Floats, y: Floats, k: Floats, x: Floats) -> float:
    each = np.einsum("pz,pz->z", s, y) + np.einsum("wz,wz->z", k, x)
    return float(each @ weight)


def _far(now: NDArray[np.float64], step: NDArray[np.float64]) -> float:
    """The longest step, up to 1, that keeps everything at least 0."""
    if not now.size:
        return 1.0
    worst = float((step / now).min())
    return min(1.0, -1.0 / min(worst, -1e-9))


def _moved(point: _Point, move: _Move) -> _Point:
    a, d = (0.9 * v if v < 0.9 else 0.99 * v for v in (move.primal, move.dual))
    return _Point(
        point.k + a * move.k,
        point.s + a * move.s,
        point.y + d * move.y,
        point.x + d * move.x,
        point.nu + d * move.nu,
    )
