"""Laplace strategies by descent: L-BFGS on a smooth stand-in of tr(V (AᵀA)⁻¹)·max_e ‖A p_e‖₁², sharpened step by step.

The stand-in is log tr(V (AᵀA)⁻¹) + 2 log ‖n‖_q with n_e = Σ_r √((A p_e)_r² + width²); its gradient in A is
−2 A (AᵀA)⁻¹ V (AᵀA)⁻¹ / tr(…) from the first term and 2 Σ_e (n_e^{q−1} / Σ n^q)·((A p_e) / √(…)) p_eᵀ from the second (derived).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..axes import Ints
from .forest import Forest
from .moves import Moves, features, forest_rows, in_features, in_units
from .optimised import SINGULAR, SLIGHT, Found
from .variance import Floats

# (exponent of the norm that stands for the largest, width at which |t| is rounded off), from smooth to sharp.
SCHEDULE = tuple((20 * 300 ** (i / 9), 7e-3 * 230 ** (-i / 9)) for i in range(10))
MOST_STEPS, FEW_STEPS, LEAST_STEPS = 9000, 12, 6
SEED = 2014


@dataclass(frozen=True, eq=False)
class Problem:
    """The Laplace problem in the coordinates of ``features``; strategies are transposed, shape (r, rows).

    Attributes:
        asked: shape (r, r), V with a little of every direction where it asks for some only.
        lift: shape (positions, r), from coordinates to positions.
        ends: sparse, shape (moves, positions): e_a − e_b, and c·e_a.
    """

    asked: Floats
    lift: Floats
    ends: Any

    def moved(self, strategy: Floats) -> Floats:
        """A p_e, shape (moves, rows)."""
        found: Floats = self.ends @ (self.lift @ strategy)
        return found

    def fitted(self, strategy: Floats) -> Floats:
        """In the scale at which the largest move is 1."""
        return strategy / float(np.abs(self.moved(strategy)).sum(axis=1).max())

    def error(self, strategy: Floats) -> float:
        """tr(V (AᵀA)⁻¹)·max ‖A p_e‖₁², infinite if A does not identify everything."""
        square = strategy @ strategy.T
        values = np.linalg.eigvalsh(square)
        if not values[0] > SINGULAR * values[-1]:
            return math.inf
        worst = float(np.abs(self.moved(strategy)).sum(axis=1).max())
        return float(np.trace(np.linalg.solve(square, self.asked))) * worst**2

    def smooth(self, flat: Floats, power: float, width: float) -> tuple[float, Floats]:
        """The smooth objective and its gradient."""
        strategy = flat.reshape(len(self.asked), -1)
        try:
            inverse = np.linalg.inv(strategy @ strategy.T)
        except np.linalg.LinAlgError:
            return 1e9, np.zeros_like(flat)
        half = inverse @ self.asked
        error = float(np.trace(half))
        if not 0 < error < 1e300:
            return 1e9, np.zeros_like(flat)
        moved = self.moved(strategy)
        size = np.sqrt(moved * moved + width * width)
        norms = size.sum(axis=1)
        logs = np.log(norms)
        top = float(logs.max())
        shares = np.exp(power * (logs - top))
        whole = float(shares.sum())
        pull = self.lift.T @ (self.ends.T @ (moved / size * (shares / (whole * norms))[:, None]))
        gradient = 2 * pull - (2 / error) * (half @ inverse @ strategy)
        return math.log(error) + 2 * (top + math.log(whole) / power), gradient.reshape(-1)

    def improved(self, strategy: Floats, iterations: int) -> Floats:
        """The better of a strategy and what L-BFGS makes of it, the objective sharpened step by step."""
        from scipy.optimize import minimize

        best, least = strategy, self.error(strategy)
        for power, width in SCHEDULE:
            found = minimize(
                self.smooth,
                strategy.reshape(-1),
                args=(power, width),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20},
            )
            strategy = self.fitted(found.x.reshape(strategy.shape))
            error = self.error(strategy)
            if error < least:
                best, least = strategy, error
        return best


def search(square: Floats, moves: Moves, starts: Sequence[Floats], work: float) -> Found:
    """Short descents from every start, long ones from the two best; see ``laplace_strategy``."""
    from scipy.sparse import csr_array

    told, after = features(moves.components[0], moves.known)
    count, size = len(told), moves.size
    if not count:
        return Found(np.zeros((0, size)), 0.0, 0)
    asked = in_features(in_features(square, told, after).T, told, after)
    values = np.linalg.eigvalsh(asked)
    if not values[0] > SINGULAR * values[-1]:
        asked = asked + (SLIGHT * (float(values.mean()) or 1.0)) * np.eye(count)
    out = np.flatnonzero(moves.leaves)
    row, m = np.arange(len(moves.pairs)), len(moves.pairs)
    told_ends = np.concatenate([np.ones(m), -np.ones(m), moves.leaves[out]])
    at = np.concatenate([row, row, m + np.arange(len(out))]), np.concatenate([*moves.pairs.T, out])
    ends = csr_array((told_ends, at), shape=(m + len(out), size))
    problem = Problem(asked, in_units(np.eye(count), told, after, size).T, ends)
    given = [in_features(np.asarray(s, dtype=np.float64), told, after).T for s in starts]
    tried = [(problem.error(s), n, s) for n, s in enumerate([*given, *_own(problem, told, after, moves)])]
    tried = [(e, n, problem.fitted(s)) for e, n, s in tried if e < math.inf]
    rows = max(s.shape[1] for _, _, s in tried)
    cost = 8 * count * rows * (count + size) + 40 * rows * ends.shape[0]
    steps = min(MOST_STEPS, int(work / cost)) // (2 * len(SCHEDULE))
    if steps < FEW_STEPS * len(tried):  # too little work for all of them
        tried = sorted(tried, key=lambda item: item[0])[: max(2, steps // FEW_STEPS)]
    short, long = max(steps // len(tried), LEAST_STEPS), max(steps // 2, LEAST_STEPS)
    better = [(n, problem.improved(s, short)) for _, n, s in tried]
    better.sort(key=lambda item: problem.error(item[1]))
    better = [(n, problem.improved(s, long)) for n, s in better[:2]]
    n, best = min(better, key=lambda item: problem.error(item[1]))
    matrix = in_units(problem.fitted(best).T, told, after, size)
    return Found(matrix, problem.error(best), n)


def _own(problem: Problem, told: Ints, after: Ints, moves: Moves) -> list[Floats]:
    """Cells, prefix sums and a tree; cells (twice), trees and prefix sums with a few rows of noise, which become rows that are missing;
    noise."""
    rng, count, size = np.random.default_rng(SEED), len(told), moves.size
    reach = int((moves.pairs[:, 1] - moves.pairs[:, 0]).max(initial=1))
    deep, flat = (
        in_features(forest_rows(Forest(size, min(2 * reach, size), f)), told, after).T for f in (2, 4)
    )
    cells, prefixes = in_features(np.eye(size), told, after).T, np.eye(count)
    padded = [
        np.concatenate([problem.fitted(s), 0.02 * rng.normal(size=(count, count // 2))], axis=1)
        for s in (cells, cells, deep, flat, prefixes)
    ]
    noise = in_features(rng.normal(size=(count + count // 2, size)), told, after).T
    return [cells, prefixes, deep, *padded, noise]
