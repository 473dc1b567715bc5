"""What a search has shown so far: bounds that hold for all channels, and channels that keep all constraints."""

from __future__ import annotations

import numpy as np

from ..channels.lower_bound import Floats
from .batch_task import State, Task
from .batches import WALL, Batch


def proof(
    task: Task, state: State, posteriors: list[Floats], known: list[Floats] | None
) -> tuple[Floats, list[Floats], list[Floats]]:
    """The bound at the state's λ (blocks,), its classifiers, column by column the best of posterior, θ and ``known``, and the
    log ratios that prove it: the same, or for invariant channels with the columns' multipliers added."""
    floors, classifiers, ratios = [], [], []
    for i, (batch, at, R, lam) in enumerate(
        zip(task.batches, state.points, posteriors, task.split(state.lam), strict=True)
    ):
        priced = lam[:, None, None] * batch.cost
        if batch.wall is not None:
            priced += batch.wall
        kappa = batch.weights(at.theta)[:, None, :]
        turned = batch.given.transpose(0, 2, 1)
        offers = [at.theta - kappa, R]
        worth = [at.S + at.nu[:, :, None] - lam[:, None, None] * batch.cost - kappa, turned @ R]
        if known is not None:
            offers.append(known[i])
            worth.append(turned @ known[i])
        base = priced - at.nu[:, :, None]
        pads = batch.mass <= 0
        if pads.any():
            base[pads] = WALL
        slack = np.stack([(one + base).min(1) for one in worth])
        pick = slack.argmax(0)[None, :, None]
        classifiers.append(np.choose(pick[0], offers))
        ratios.append(classifiers[-1] + kappa if task.invariant else classifiers[-1])
        total = np.choose(pick[0], worth) + priced
        if task.invariant:
            total += kappa
        floor = np.einsum("gw,gw->g", batch.mass, total.min(2))
        if task.invariant:
            floor -= np.einsum("gz,gz->g", batch.kept, batch.real(kappa[:, 0]))
        floors.append(floor)
    found = task.meet(floors)
    return (found if task.budgets is None else found - state.lam * task.budgets), classifiers, ratios


def feasible(task: Task, state: State) -> tuple[Floats, list[Floats]]:
    """Channels made of the points, rows of sum 1 and within the budget, and their values; +inf where they are not."""
    channels = []
    for batch, at in zip(task.batches, state.points, strict=True):
        K = np.maximum(at.K, 0.0)
        if batch.mask is not None:
            K *= batch.mask
            K[batch.mass <= 0, 0] = 1.0
        if task.invariant:
            _balance(batch, K)
        K /= K.sum(2, keepdims=True)
        channels.append(K)
    spent = [b.spent(K) for b, K in zip(task.batches, channels, strict=True)]
    used = task.meet(spent)
    if task.budgets is not None and (used > task.budgets).any():
        anchors = task.anchors or [_nearest(b) for b in task.batches]
        least = task.meet([b.spent(K) for b, K in zip(task.batches, anchors, strict=True)])
        share = (used - task.budgets) / np.maximum(used - least, 1e-300) * (1 + 1e-9) + 1e-15
        share = np.where(used > task.budgets, np.minimum(share, 1.0), 0.0)
        for anchor, K, part in zip(anchors, channels, task.split(share), strict=True):
            K *= 1 - part[:, None, None]
            K += part[:, None, None] * anchor
        used = np.where(share > 0, np.minimum(used, task.budgets), used)
    value = task.meet([b.leak(K) for b, K in zip(task.batches, channels, strict=True)])
    if task.budgets is None:
        value = value + state.lam * used
    return value, channels


def _nearest(batch: Batch) -> Floats:
    """Each row to a nearest output."""
    cost = batch.cost if batch.wall is None else batch.cost + batch.wall
    K = np.zeros_like(cost)
    g, w = np.indices(batch.mass.shape)
    K[g, w, cost.argmin(2)] = 1.0
    return K


def _balance(batch: Batch, K: Floats) -> None:
    """Scale rows and columns until the columns keep their shares too, in place: Newton's method on the scales.

    Where rows sum to 1, factors 1 + a_w + b_z keep these sums if a = −K b, and the columns then change by
    (diag(Kᵀp) − Kᵀ diag(p) K) b, singular along 1 alone.
    """
    real = batch.kept > 0
    at = np.arange(K.shape[2])
    for _ in range(6):
        K /= K.sum(2, keepdims=True)
        now = np.einsum("gw,gwz->gz", batch.mass, K)
        miss = np.where(real, batch.kept - now, 0.0)
        if np.abs(miss).max() < 1e-16:
            break
        system = -(K.transpose(0, 2, 1) @ (batch.mass[:, :, None] * K))
        system[:, at, at] += np.where(real, now, 1.0)
        system += (real[:, :, None] & real[:, None, :]) * batch.share[:, None, None] / K.shape[2]
        b = np.linalg.solve(system, miss[:, :, None])
        K *= np.maximum(1.0 + b[:, None, :, 0] - K @ b, 0.1)
