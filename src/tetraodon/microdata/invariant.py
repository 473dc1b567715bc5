"""The obfuscation problem with channels under which each group's clusters keep their shares, and its degenerate budgets.

    Σ_c p_g(c) W_g(ĉ | c) = p_g(ĉ)    for every cluster ĉ of every group.

Both the identity and "anybody of the group" (W(ĉ | c) = p(ĉ), which leaks nothing) are such channels. The least distortion is
that of an optimal transport of the shares onto themselves, a linear program that is solved only where the identity is no
clear answer. Its dual prices v of the columns make a certificate for a budget that is the least attainable: log ratios
A − λ v, λ large.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..channels.attainable import Unreachable
from ..channels.lower_bound import Floats
from ..errors import Refused, SpecificationError
from .batch_search import SLACK, reach
from .batch_task import Task
from .batches import batches
from .blocks import Block
from .solution import Solution

NARROW = 1e-7  # room in the budget, relative, below which the cheapest channels are returned
STEEP = 40.0  # nats that the least positive reduced cost is worth in the certificate of the cheapest channels


class NoneKept(Unreachable):
    """No channels that keep the clusters' shares have so small an expected cost."""

    def __init__(self, least: float, asked: float) -> None:
        Refused.__init__(
            self,
            f"distortion: channels that keep the clusters' shares (invariant) have an expected cost of at least {least:.9g}, "
            f"above the {asked:.9g} asked for; raise the distortion or give up invariance.",
        )
        self.least = least


def kept(blocks: Sequence[Block], budget: float, tol: float) -> Solution:
    """The least leaking channels that keep the clusters' shares, with Σ_g w_g E[d | g] ≤ ``budget``.

    Args:
        tol: gap to stop at, in nats.

    Raises:
        SpecificationError: a block whose targets are not its clusters.
        NoneKept: no such channels keep the budget.

    >>> even = Block(np.diag([0.5, 0.5]), 1 - np.eye(2))
    >>> found = kept([even], 0.25, 1e-6)
    >>> np.round(found.channels[0], 3).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if any(b.cost.shape[0] != b.cost.shape[1] for b in blocks):
        raise SpecificationError(
            "obfuscate: invariant: every cluster of a group has to be a target; take fewer clusters or drop the rule of k donors."
        )
    mass = [b.mass / b.share for b in blocks]
    anybody = [np.tile(m, (len(m), 1)) for m in mass]
    ratios = [np.zeros((len(b.joint), len(b.cost))) for b in blocks]
    dear = sum(b.distortion(K) for b, K in zip(blocks, anybody, strict=True))
    if dear <= budget:
        return Solution(anybody, ratios, 0.0)
    anchor = [np.eye(len(m)) for m in mass]
    least = sum(float(b.mass @ np.diag(b.cost)) for b in blocks)
    if budget - least <= 0.01 * (dear - least):
        plans = [_transport(b) for b in blocks]
        anchor = [plan[0] for plan in plans]
        least = sum(b.distortion(K) for b, K in zip(blocks, anchor, strict=True))
        if least > budget * (1 + 1e-9):
            raise NoneKept(least, budget)
        if budget - least <= NARROW * (dear - least):
            return _cheapest(blocks, plans)
    n = len(blocks)
    parts = tuple(batches(blocks, np.ones(n)))
    spare = budget - SLACK * (budget - least) - sum(b.least() for b in blocks)
    anchors = []
    for batch in parts:
        padded = np.zeros(batch.cost.shape)
        padded[:, :, 0] = batch.mass <= 0
        for g, i in enumerate(batch.index.tolist()):
            w = len(anchor[i])
            padded[g, :w, :w] = anchor[i]
        anchors.append(padded)
    task = Task(
        parts,
        np.full(n, spare),
        None,
        np.full(n, tol),
        shared=True,
        invariant=True,
        anchors=tuple(anchors),
    )
    reached = reach(task)
    channels, found, lams = reached.by_block(task, blocks, anchor)
    return Solution(channels, found, float(lams[0]), reached.steps)


def _transport(block: Block) -> tuple[Floats, Floats, Floats]:
    """The cheapest channel that keeps the shares, and dual prices of rows and columns."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    mass = block.mass / block.share
    n = len(mass)
    rows = kron(eye_array(n), np.ones((1, n)))
    columns = kron(np.ones((1, n)), eye_array(n))
    equal = vstack([rows, columns]).tocsr()
    found = linprog(block.cost.ravel(), A_eq=equal, b_eq=np.concatenate([mass, mass]), method="highs")
    plan = np.maximum(found.x.reshape(n, n), 0.0)
    plan += np.diag(1e-15 * mass)  # so that no row and no column is empty
    for _ in range(20):
        plan *= (mass / plan.sum(0))[None]
        plan *= (mass / plan.sum(1))[:, None]
    K = plan / mass[:, None]
    prices = np.asarray(found.eqlin.marginals, dtype=np.float64)
    return K / K.sum(1, keepdims=True), prices[:n], prices[n:]


def _cheapest(blocks: Sequence[Block], plans: Sequence[tuple[Floats, Floats, Floats]]) -> Solution:
    """No room: the cheapest channels, and a certificate that is tight where they are the only ones."""
    reduced = [b.cost - u[:, None] - v for b, (_, u, v) in zip(blocks, plans, strict=True)]
    positive = np.concatenate([r[r > 1e-9].ravel() for r in reduced])
    lam = STEEP / float(positive.min()) if positive.size else 0.0
    ratios = []
    for block, (K, _, v) in zip(blocks, plans, strict=True):
        prior = block.joint.sum(1, keepdims=True) / block.share
        J = block.joint @ K
        q = J / np.maximum(J.sum(0), 1e-300)
        ratios.append(np.log(((1 - 1e-7) * q + 1e-7 * prior) / prior) - lam * v)
    return Solution([K for K, _, _ in plans], ratios, lam)
