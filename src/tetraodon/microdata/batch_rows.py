"""The Newton system of ``batch_interior`` where a block has no more clusters than private values or not many more.

The inverse Hessian of column z, D − D Pᵀ B P D, is then held as it is, a matrix of rows × rows,

    X_z = D^½ (1 + D^½ Pᵀ M P D^½)^{-1} D^½,    Pᵀ M P = (Nᵀ P)ᵀ (Nᵀ P),

the Schur complement is Σ_z X_z, and a step is two products with X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..channels.lower_bound import Floats
from .batch_interior import Half, Misses, Move, Point, inverse, tangents
from .batches import Batch

WIDE = 1.5  # rows for each secret up to which this is quicker


@dataclass(frozen=True, eq=False)
class Rows:
    """What all Newton systems of a batch at one point share."""

    X: Floats  # (g, outputs, rows, rows)
    turn: Callable[[Floats], Floats]
    priced: Floats  # X price, (g, rows, outputs)
    priced_rows: Floats
    solved_rows: Floats
    fall: Floats
    missed: Floats  # the gradient's part of the classifier's miss

    @staticmethod
    def of(batch: Batch, at: Point, miss: Misses) -> Rows:
        rows = batch.P.shape[2]
        D = at.K / at.S
        D *= batch.per_mass[:, :, None]
        root = np.sqrt(batch.masked(D)).transpose(0, 2, 1)
        A = tangents(miss).transpose(0, 1, 3, 2) @ batch.P[:, None]
        A *= root[:, :, None, :]
        E = A.transpose(0, 1, 3, 2) @ A
        here = np.arange(rows)
        E[:, :, here, here] += 1.0
        X = np.asarray(np.linalg.inv(E), dtype=np.float64)
        X *= root[:, :, None, :]
        X *= root[:, :, :, None]
        schur = X.sum(1)
        sums = D.sum(2)
        empty = batch.mass <= 0
        sums[empty] = 1.0
        schur[:, here, here] += np.where(empty, 1.0, 1e-13 * sums)
        turn = inverse(schur, sums)
        priced = (X @ batch.price.transpose(0, 2, 1)[..., None])[..., 0].transpose(0, 2, 1)
        priced_rows = priced.sum(2)
        solved_rows = turn(priced_rows)
        fall = np.einsum("gwz,gwz->g", batch.price, priced) - np.einsum("gw,gw->g", priced_rows, solved_rows)
        missed = batch.P.transpose(0, 2, 1) @ miss.theta
        return Rows(X, turn, priced, priced_rows, solved_rows, fall, missed)

    def half(self, batch: Batch, at: Point, miss: Misses, is_first: bool, target: Floats) -> Half:
        """See ``Columns.half``."""
        u = target / at.K
        u *= batch.mass[:, :, None]
        if is_first:
            u -= self.missed
        h = (self.X @ u.transpose(0, 2, 1)[..., None])[..., 0].transpose(0, 2, 1)
        x = self.turn(miss.rows - h.sum(2))
        used = np.einsum("gwz,gwz->g", batch.price, h) + np.einsum("gw,gw->g", self.priced_rows, x)
        return Half(h, x, used)

    def whole(self, batch: Batch, miss: Misses, part: Half, lam: Floats) -> Move:
        """See ``Columns.whole``."""
        y = part.x + self.solved_rows * lam[:, None]
        K = (self.X @ y[:, None, :, None])[..., 0].transpose(0, 2, 1) + part.h
        K -= self.priced * lam[:, None, None]
        return Move(K, y, None)
