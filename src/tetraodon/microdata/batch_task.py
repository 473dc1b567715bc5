"""What is asked of batches of blocks, where a search stands, and the interior point that it begins from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..channels.lower_bound import Floats
from .batch_interior import Point
from .batches import NOTHING, Batch

NEAR, FAR = 0.25, 2.0  # nats of complementarity to begin with, relative to what there is to leak


@dataclass(frozen=True, eq=False)
class Task:
    """Batches and what is asked of them.

    Attributes:
        budgets: (blocks,) of Σ p d above the least attainable, > 0: one for each, or, ``shared``, the same one everywhere; None for
            a given multiplier.
        multipliers: (blocks,), λ to begin with, or the given one.
        tolerances: (blocks,), gap to stop at, in nats; shared: all the same.
        anchors: for invariant channels, such ones of distortion below the budget, by batch.
    """

    batches: tuple[Batch, ...]
    budgets: Floats | None
    multipliers: Floats | None
    tolerances: Floats
    shared: bool = False
    invariant: bool = False
    anchors: tuple[Floats, ...] = ()

    def meet(self, parts: Sequence[Floats]) -> Floats:
        """Sums over what shares a budget, (blocks,)."""
        each = np.concatenate(parts)
        return np.full(len(each), each.sum()) if self.shared else each

    def least(self, parts: Sequence[Floats]) -> Floats:
        """The least of what shares a budget, (blocks,)."""
        each = np.concatenate(parts)
        return np.full(len(each), each.min()) if self.shared else each

    def most(self, parts: Sequence[Floats]) -> Floats:
        """The largest of what shares a budget, (blocks,)."""
        each = np.concatenate(parts)
        return np.full(len(each), each.max()) if self.shared else each

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """(blocks,) in the order of the batches."""
        found, first = [], 0
        for batch in self.batches:
            found.append(values[first : first + len(batch.index)])
            first += len(batch.index)
        return found


@dataclass(frozen=True, eq=False)
class State:
    """Interior points of all batches, λ and what is left of the budget, (blocks,)."""

    points: tuple[Point, ...]
    lam: Floats
    spare: Floats


def begin(task: Task, far: float = NEAR) -> State:
    """A central point of the problem without leakage, 75–90 % of the way from the least distortion to the budget."""
    hold = [np.maximum(-(b.prior * b.log_prior).sum((1, 2)), 1e-3) * b.share for b in task.batches]
    mu = far * task.meet(hold) / task.meet([b.share * b.outputs for b in task.batches])
    top = task.most([b.cost.max((1, 2)) for b in task.batches])
    few = task.least([b.outputs.astype(np.float64) for b in task.batches])
    if task.budgets is None:
        assert task.multipliers is not None
        lam = task.multipliers
        r = mu / lam
        parts = [_rows(b, ri) for b, ri in zip(task.batches, task.split(r), strict=True)]
        spare = np.ones_like(lam)
    else:
        low, high = 0.75 * task.budgets, 0.9 * task.budgets
        most = 100 * top / few
        r, under, over = top / few, np.zeros_like(top), most.copy()
        for _ in range(24):
            parts = [_rows(b, ri) for b, ri in zip(task.batches, task.split(r), strict=True)]
            spent = task.meet([b.spent(K) for b, (K, _) in zip(task.batches, parts, strict=True)])
            good = ((spent >= low) & (spent <= high)) | ((spent < low) & (r >= most * 0.99))
            if good.all():
                break
            over, under = np.where(spent > high, r, over), np.where(spent < low, r, under)
            up = np.where(over == most, np.minimum(r * 4, most), np.sqrt(r * over))
            down = np.where(under == 0, r / 4, np.sqrt(under * r))
            r = np.where(good, r, np.where(spent > high, down, up))
        lam, spare = mu / r, task.budgets - spent
    points = []
    for batch, (K, c), one in zip(task.batches, parts, task.split(lam), strict=True):
        S = one[:, None, None] * (batch.cost + c[:, :, None])
        if batch.mask is not None:
            S, K = np.where(batch.mask > 0, S, 1.0), np.where(batch.mask > 0, K, NOTHING)
        theta = np.zeros((len(K), batch.P.shape[1], K.shape[2]))
        points.append(Point(K, S, theta, -one[:, None] * c * (batch.mass > 0)))
    return State(tuple(points), lam, spare)


def _rows(batch: Batch, r: Floats) -> tuple[Floats, Floats]:
    """Rows r / (d − min d + c_w) that sum to 1, and c_w > 0; r is (g,). Safeguarded Newton from the geometric mean of two bounds."""
    above = batch.cost if batch.wall is None else batch.cost + batch.wall
    r = r[:, None]
    low, high = np.broadcast_to(r, batch.mass.shape), batch.outputs[:, None] * r * np.ones_like(batch.mass)
    c = np.sqrt(low * high)
    for _ in range(8):
        q = 1.0 / (above + c[:, :, None])
        miss, slope = r * q.sum(2) - 1, -r * np.einsum("gwz,gwz->gw", q, q)
        low, high = np.where(miss > 0, c, low), np.where(miss > 0, high, c)
        newton = c - miss / slope
        c = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        if np.abs(miss).max() < 1e-6:
            break
    K = r[:, :, None] / (above + c[:, :, None])
    return K / K.sum(2, keepdims=True), c
