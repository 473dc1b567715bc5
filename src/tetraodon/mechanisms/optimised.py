"""Strategies optimised for a workload under a secret graph: with a certificate for Gaussian noise, best found for Laplace.

A strategy releases A x + noise and answers W x by least squares. With V = WᵀW its summed squared error, in units of the
variance of one row's noise, is tr(V (AᵀA)⁺), and no move of a record may change A x by more than 1:

* Gaussian: min tr(V X⁻¹) over X ≽ 0 with p_eᵀ X p_e ≤ 1 for every move, X = AᵀA. Convex. Its dual is
  max (tr (Cᵀ L C)^{1/2})² over weights w ≥ 0, Σ w = 1, with L = Σ w_e p_e p_eᵀ and V = CCᵀ: every w proves a bound.
* Laplace: min tr(V (AᵀA)⁺)·max_e ‖A p_e‖₁². Not convex: the best that fixed starts lead to, never worse than a start.

p_e = e_a − e_b for a record that moves from a to b, √c·e_a (Laplace: c·e_a) for one that leaves a (see ``Moves``). Derived,
from the matrix mechanism and Haney, Machanavajjhala, Ding 2015.

Everything here is a function of public declarations: no data is read and no noise is drawn, so starts may come from a
``numpy`` generator with a constant seed. The same declarations give the same strategy.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..axes import Bools, Ints
from ..threads import one_thread
from ..workload import Workload
from .moves import Moves, features, gram, in_features, in_units, limit, merged
from .rounding import rounded
from .variance import Floats

# Steps w ← w·g^EXPONENT settle for exponents below 4: ∂ log g / ∂ log w is −1/2 times a stochastic matrix with eigenvalues in
# [0, 1], since M^{-1/2} falls by ∫ e^{−t√M} M^{-1/2} dM M^{-1/2} e^{−t√M} dt (derived). Larger ones reach 1 % in fewer steps.
EXPONENT = 3.0
STEPS = 2000
# Directions that a workload does not ask for are asked for a little, so that every strategy identifies all counts: as a
# share of the mean weight of a direction.
SLIGHT = 1e-9
SINGULAR = 1e-10
MAX_LAPLACE = 512
# How near to its bound a strategy is taken, on short axes and on long ones.
FINE, COARSE, FEW = 1e-3, 1e-2, 256
WORK = 2e11


@dataclass(frozen=True, eq=False)
class Block:
    """An invariant part of the space: all of it, or what reversal leaves alone (even) or turns round (odd).

    Attributes:
        place, sign: position a is sign[a] times unit place[a] of the part.
        true: shape (h, r), V = true·trueᵀ there, modulo totals.
        factor: the same for V with a little of every direction.
    """

    place: Ints
    sign: Floats
    true: Floats
    factor: Floats

    def load(self, ends: Ints, weights: Floats, leaving: Floats) -> Any:
        """L = Σ w p pᵀ over the part's units: dense, or sparse where that is less work."""
        from scipy.sparse import coo_array

        h = len(self.factor)
        i, j = self.place[ends[:, 0]], self.place[ends[:, 1]]
        s, t = self.sign[ends[:, 0]], self.sign[ends[:, 1]]
        cross = -weights * s * t
        told = np.concatenate([weights * s * s, weights * t * t, cross, cross, leaving * self.sign**2])
        x, y = np.concatenate([i, j, i, j, self.place]), np.concatenate([i, j, j, i, self.place])
        if 8 * len(weights) < h * h:
            return coo_array((told, (x, y)), shape=(h, h)).tocsr()
        return np.bincount(x * h + y, weights=told, minlength=h * h).reshape(h, h)

    def moved(self, square: Floats, ends: Ints) -> Floats:
        """pᵀ X p for every pair, X over the part's units."""
        i, j = self.place[ends[:, 0]], self.place[ends[:, 1]]
        s, t = self.sign[ends[:, 0]], self.sign[ends[:, 1]]
        own = square.diagonal()
        found: Floats = s * s * own[i] + t * t * own[j] - 2 * s * t * square[i, j]
        return found


def blocks(square: Floats, moves: Moves) -> list[Block]:
    """The space of what is asked modulo public totals; in two parts where workload and graph are symmetric."""
    size, labels, known, position = moves.size, moves.components[0], moves.known, np.arange(moves.size)
    if not (size > 2 and np.array_equal(square, square[::-1, ::-1]) and moves.is_symmetric):
        return [_block(square, position, np.ones(size), labels, known)]
    half, odd = (size + 1) // 2, size // 2
    place, own = np.minimum(position, size - 1 - position), labels == labels[::-1]
    sign = np.where(position < odd, 1.0, np.where(position >= half, -1.0, 0.0))
    # What turns round changes sign, so the total of a component that is its own mirror says nothing about it.
    return [
        _block(square, place, np.ones(size), labels[:half], known[:half]),
        _block(square, np.minimum(place, odd - 1), sign, labels[:odd], (known & ~own)[:odd]),
    ]


def _block(square: Floats, place: Ints, sign: Floats, labels: Ints, known: Bools) -> Block:
    from scipy.sparse import csr_array

    size, h = len(place), len(labels)
    unit = np.bincount(place, weights=np.abs(sign), minlength=h)
    spread = csr_array((sign / unit[place], (np.arange(size), place)), shape=(size, h))
    folded = spread.T @ (spread.T @ square).T
    told, after = features(labels, known)
    asked = in_features(in_features(folded, told, after).T, told, after)
    true, factor = _roots(asked)
    wide = in_units(factor.T, told, after, h).T
    return Block(place, sign, wide if true is factor else in_units(true.T, told, after, h).T, wide)


def _roots(square: Floats) -> tuple[Floats, Floats]:
    """(C with CCᵀ = V and as many columns as V has directions, the same for V with a little of every direction)."""
    if not len(square):
        return square, square
    with contextlib.suppress(np.linalg.LinAlgError):
        found = np.asarray(np.linalg.cholesky(square), dtype=np.float64)
        if (found.diagonal() ** 2 > SINGULAR * square.diagonal()).all():
            return found, found
    values, vectors = np.linalg.eigh(square)
    kept = values > max(SINGULAR * values[-1], 0.0)
    slight = SLIGHT * max(float(values[kept].mean()), 0.0) if kept.any() else 1.0
    true: Floats = vectors[:, kept] * np.sqrt(values[kept])
    factor: Floats = vectors * np.sqrt(np.where(kept, values, 0.0) + slight)
    return true, factor


@dataclass(frozen=True, eq=False)
class Optimum:
    """A Gaussian strategy and the proof of how good it is.

    Attributes:
        matrix: A, shape (rows, positions): no move changes it by more than 1 in L2.
        value: tr(V (AᵀA)⁺): summed squared error of the answers for noise of unit variance.
        bound: no strategy has a smaller one.
        weights: shape (pairs,), w of ``Moves.pairs``; with ``leaving`` they add up to 1 and prove ``bound``.
        leaving: shape (positions,), w of the positions that can be left.
    """

    matrix: Floats
    value: float
    bound: float
    weights: Floats
    leaving: Floats


def gaussian_strategy(square: Floats, moves: Moves, tolerance: float = 1e-3) -> Optimum:
    """The strategy of least summed squared error under Gaussian noise, to a relative ``tolerance`` of its bound.

    Multiplicative steps w ← w·(g/w·g)³ with g_e = p_eᵀ X p_e on the dual, X = C (CᵀLC)^{-1/2} Cᵀ (derived). O(positions³) a
    step and about ten steps to 1 %; half the size, and a quarter of the time, where all is symmetric.

    Args:
        square: V = WᵀW, shape (positions, positions); see ``gram``.
        moves: how a record may move; nobody else is protected.

    Raises:
        Unsupported: more than 4096 positions.

    >>> from ..axes import Axis
    >>> from ..workload import AllRanges
    >>> from .moves import gram
    >>> best = gaussian_strategy(gram(AllRanges(), 16)[0], Moves.of(Axis(16, window=1), 16))
    >>> round(best.value / 136, 4), best.value <= 1.001 * best.bound
    (1.7143, True)
    """
    limit(moves.size)
    small = merged(square, moves)
    weights, leaving = np.zeros(len(moves.pairs)), np.zeros(moves.size)
    with one_thread():
        rows, value, bound, weights[small.pair], by_place = _solve(small.square, small.moves, tolerance)
    leaving[small.leaver] = by_place
    return Optimum(rows[:, small.place], value, bound, weights, leaving)


def _solve(square: Floats, moves: Moves, tolerance: float) -> tuple[Floats, float, float, Floats, Floats]:
    parts = [b for b in blocks(square, moves) if b.factor.shape[1]]
    place, count = _orbits(moves, len(parts) == 2)
    ends, leaves = moves.pairs[np.unique(place, return_index=True)[1]], moves.leaves
    w, v = count.astype(np.float64), (leaves > 0).astype(np.float64)
    if not parts:
        return np.zeros((0, moves.size)), 0.0, 0.0, np.zeros(len(place)), np.zeros(moves.size)
    value, bound, best, proof = np.inf, 0.0, [np.zeros((0, 0))], (w, v)
    for _ in range(STEPS):
        whole = w.sum() + v.sum()
        w, v = w / whole, v / whole
        root, found = 0.0, [_inverse(b.factor, b.load(ends, w, v * leaves)) for b in parts]
        moved, left = np.zeros(len(w)), np.zeros(moves.size)
        for part, (own, half) in zip(parts, found, strict=True):
            root += own
            x = half @ half.T
            moved += part.moved(x, ends)
            left += part.sign**2 * x.diagonal()[part.place] * leaves
        moved = np.maximum(moved, 0.0)
        worst = max(float(moved.max(initial=0.0)), float(left.max()))
        if root * worst < value:
            value, best = root * worst, [half.T / math.sqrt(worst) for _, half in found]
        if root**2 > bound:
            bound, proof = root**2, (w, v)
        if value <= (1 + tolerance) * bound:
            break
        w, v = w * (moved / root) ** EXPONENT, v * (left / root) ** EXPONENT
    if any(part.true is not part.factor for part in parts):
        loads = [part.load(ends, proof[0], proof[1] * leaves) for part in parts]
        bound = sum(_trace_root(part.true, load) for part, load in zip(parts, loads, strict=True)) ** 2
        value = sum(_error(part.true, rows) for part, rows in zip(parts, best, strict=True))
    rows = [half[:, part.place] * part.sign for part, half in zip(parts, best, strict=True)]
    return np.concatenate(rows), float(value), float(bound), (proof[0] / count)[place], proof[1]


def _inverse(factor: Floats, load: Any) -> tuple[float, Floats]:
    """(tr M^{1/2}, H) with M = CᵀLC and HHᵀ = C M^{-1/2} Cᵀ."""
    values, vectors = np.linalg.eigh(factor.T @ (load @ factor))
    values = np.maximum(values, 1e-15 * values[-1])
    return float(np.sqrt(values).sum()), (factor @ vectors) * values**-0.25


def _trace_root(factor: Floats, load: Any) -> float:
    values = np.linalg.eigvalsh(factor.T @ (load @ factor))
    return float(np.sqrt(np.maximum(values, 0.0)).sum())


def _error(factor: Floats, rows: Floats) -> float:
    """tr(Cᵀ (AᵀA)⁺ C) for C in the row space of A."""
    solved = np.linalg.lstsq(rows.T, factor, rcond=None)[0]
    return float((solved**2).sum())


def proved_bound(square: Floats, moves: Moves, weights: Floats, leaving: Floats) -> float:
    """The bound that weights prove: (tr (Cᵀ L C)^{1/2})² for any w ≥ 0 with Σ w ≤ 1, in one step and without symmetry.

    >>> line = Moves(2, np.array([[0, 1]]), np.zeros(2))
    >>> round(proved_bound(np.eye(2), line, np.ones(1), np.zeros(2)), 9)  # one cell is noisy, the total gives the other
    2.0
    """
    labels, size = moves.components[0], moves.size
    part = _block(square, np.arange(size), np.ones(size), labels, moves.known)
    if not part.true.shape[1]:
        return 0.0
    share = max(float(weights.sum() + leaving.sum()), 1.0)
    with one_thread():
        return _trace_root(part.true, part.load(moves.pairs, weights, leaving * moves.leaves)) ** 2 / share


def _orbits(moves: Moves, folded: bool) -> tuple[Ints, Ints]:
    """(number of each pair's orbit under reversal, pairs in each orbit)."""
    low, high = moves.pairs[:, 0], moves.pairs[:, 1]
    if folded:
        last = moves.size - 1
        far = low + high > last
        low, high = np.where(far, last - high, low), np.where(far, last - low, high)
    _, place, count = np.unique(low * moves.size + high, return_inverse=True, return_counts=True)
    return place.reshape(-1).astype(np.int64), count.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Found:
    """A Laplace strategy.

    Attributes:
        matrix: A, shape (rows, positions): no move changes it by more than 1 in L1.
        value: tr(V (AᵀA)⁺): summed squared error of the answers for noise of unit variance; 2/ε² times that at ε.
        start: number of the start it came from; those after the given ones are this function's own.
    """

    matrix: Floats
    value: float
    start: int


def laplace_strategy(
    square: Floats, moves: Moves, starts: Sequence[Floats] = (), work: float = WORK
) -> Found:
    """The best strategy under Laplace noise that L-BFGS reaches from given and fixed starts.

        log tr(V (AᵀA)⁻¹) + 2 log ‖(‖A p_e‖₁)_e‖_q, |t| rounded off, q rising, with the analytic gradient (derived)

    Every start is a candidate as it is, so the result is never worse than the best of them.

    Args:
        square: V = WᵀW, shape (positions, positions).
        starts: strategies, shape (rows, positions) each, in any scale; those that do not identify all counts modulo public
            totals are skipped.
        work: about how many floating-point operations to spend; the result depends on nothing else.

    Raises:
        Unsupported: more than 512 positions.

    >>> from ..axes import Axis
    >>> from ..workload import AllRanges
    >>> from .moves import gram
    >>> best = laplace_strategy(gram(AllRanges(), 8)[0], Moves.of(Axis(8, window=1), 8))
    >>> round(2 * best.value / 36, 2)
    3.11
    """
    from .descent import search

    limit(moves.size, MAX_LAPLACE)
    with one_thread():
        return search(square, moves, starts, work)


@dataclass(frozen=True, eq=False)
class Whole:
    """The integer rows that are released for a query, and the optimum that they were rounded from.

    Attributes:
        matrix: B, shape (rows, positions): noisy rows, in every group.
        exact: shape (totals, positions): the public totals, which identify the cells together with B.
        value: summed squared error of a group's answers for noise of unit variance, before rounding.
        bound: no strategy has a smaller one; 0 for Laplace, where nothing is proved.
    """

    matrix: Ints
    exact: Ints
    value: float
    bound: float


def whole_strategy(
    workload: Workload,
    moves: Moves,
    power: int,
    records: int,
    starts: Sequence[Floats] = (),
    work: float = WORK,
) -> Whole:
    """Integer rows optimised for a workload, for Laplace (1) or Gaussian noise (2).

    Args:
        moves: how a record may move; see ``moves_along``.
        records: B x stays below 2^61 for up to so many.
        starts: named strategies, for Laplace; the result is no worse than the best of them, but for rounding.
        work: for Laplace; see ``laplace_strategy``.

    Raises:
        Unsupported: too many positions or records.
    """
    square, _ = gram(workload, moves.size)
    found: Optimum | Found
    if power == 2:
        found = gaussian_strategy(square, moves, FINE if moves.size <= FEW else COARSE)
    else:
        found = laplace_strategy(square, moves, starts, work)
    bound = found.bound if isinstance(found, Optimum) else 0.0
    return Whole(rounded(found.matrix, square, moves, records), moves.totals, found.value, bound)
