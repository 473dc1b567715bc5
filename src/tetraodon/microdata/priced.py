"""The obfuscation problem of each group by itself: with a budget of its own, or with a price for distortion.

A budget of its own is the least leaking channel of ``channels``; what the interior point for many blocks does not settle goes to its
search. With a given multiplier λ the least of w I + λ w E d is what a group adds to a sum over groups under one budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ..channels.leaking_search import search
from ..channels.lower_bound import LN2, Floats, Problem
from ..errors import SpecificationError
from .batch_search import reach
from .batch_task import Task
from .batches import batches
from .blocks import Block, information_bound

FINE = 1e-5  # nats, for each record of the group priced
STEEP = 40.0  # nats
NARROW = 1e-9  # room in the budget, relative, below which only nearest targets are left


@dataclass(frozen=True, eq=False)
class Priced:
    """The optimum of one block. Everything is weighted by the block's share of all records.

    Attributes:
        leak: w I(Y; Ĉ | g) of the channel, in nats.
        distortion: w E[d | g] of the channel.
        cost: what was minimised: the leak, or leak + λ distortion.
        lower: no channel costs less (certified, ``information_bound`` of ``log_ratio`` and ``multiplier``); at least 0.
        channel: (clusters, targets), rows sum to 1.
        log_ratio: (values, targets), the classifier of the bound.
        multiplier: λ, given or found.
    """

    leak: float
    distortion: float
    cost: float
    lower: float
    channel: Floats
    log_ratio: Floats
    multiplier: float

    @property
    def gap(self) -> float:
        """Nats between cost and bound; never negative."""
        return max(self.cost - self.lower, 0.0)


def with_multiplier(block: Block, lam: float, tol: float = FINE) -> Priced:
    """The channel of least w I + λ w E d of one block; see ``with_multipliers``.

    >>> even = Block(np.array([[0.5, 0.0], [0.0, 0.5]]), 1 - np.eye(2))
    >>> found = with_multiplier(even, 2.0)
    >>> round(found.cost, 4), found.lower <= found.cost  # ln 2 − h(δ) + 2 δ with ln((1 − δ)/δ) = 2
    (0.5662, True)
    """
    return with_multipliers([block], lam, tol)[0]


def with_multipliers(blocks: Sequence[Block], lam: float, tol: float = FINE) -> list[Priced]:
    """For each block by itself the channel of least w I(Y; Ĉ) + λ w E d. There always is one.

    Many blocks in one call take much less time than one by one.

    Args:
        lam: λ ≥ 0, nats for each unit of distortion.
        tol: certified gap to reach, in nats for each record of the block (the gap of ``Priced`` is its share of that).

    Raises:
        SpecificationError: a multiplier or a tolerance that is none.
    """
    if not (np.isfinite(lam) and lam >= 0):
        raise SpecificationError("with_multiplier: lam: a finite number of at least 0.")
    check_tolerance(tol)
    found: dict[int, Priced] = {}
    solid = []
    for i, block in enumerate(blocks):
        if lam == 0 or block.tells_nothing:
            K = block.constant()[0] if lam == 0 else block.nearest()
            found[i] = _priced(block, K, block.prior(), lam, lam)
        else:
            solid.append(i)
    part = [blocks[i] for i in solid]
    for i, (K, ratio, _) in zip(solid, _alone(part, None, np.full(len(part), lam), tol), strict=True):
        found[i] = _priced(blocks[i], K, ratio, lam, lam)
    return [found[i] for i in range(len(blocks))]


def with_budget(block: Block, mean: float, tol: float = FINE) -> Priced | None:
    """The least leaking channel of one block with E[d | g] ≤ ``mean``; see ``with_budgets``.

    >>> even = Block(np.array([[0.25, 0.0], [0.0, 0.25]]), 1 - np.eye(2))
    >>> found = with_budget(even, 0.25)
    >>> round(found.leak / even.share, 4), with_budget(Block(even.joint, even.cost + 0.5), 0.25) is None  # ln 2 − h(1/4)
    (0.1308, True)
    """
    return with_budgets([block], mean, tol)[0]


def with_budgets(blocks: Sequence[Block], mean: float, tol: float = FINE) -> list[Priced | None]:
    """For each block by itself the least leaking channel with E[d | g] ≤ ``mean``; None where there is none.

    Args:
        mean: the most that the mean distortion within the group may be.
        tol: certified gap to reach, in nats for each record of the block (the gap of ``Priced`` is its share of that).

    Raises:
        SpecificationError: a budget or a tolerance that is none.
    """
    check_budget(mean)
    check_tolerance(tol)
    found: list[Priced | None] = [None] * len(blocks)
    solid = []
    for i, block in enumerate(blocks):
        anybody, most = block.constant()
        most, least = most / block.share, block.least() / block.share
        if least > mean * (1 + 1e-12):
            continue
        if most <= mean:
            found[i] = _priced(block, anybody, block.prior(), 0.0, 0.0, mean)
        elif block.tells_nothing:
            found[i] = _priced(block, block.nearest(), block.prior(), 0.0, 0.0, mean)
        elif mean - least <= NARROW * (most - least):
            (K,), (ratio,), lam = forced([block], tol)
            found[i] = _priced(block, K, ratio, lam, 0.0, max(mean, least))
        else:
            solid.append(i)
    part = [blocks[i] for i in solid]
    means = np.array([mean - block.least() / block.share for block in part])
    for i, (K, ratio, lam) in zip(solid, _alone(part, means, None, tol), strict=True):
        priced = _priced(blocks[i], K, ratio, lam, 0.0, mean)
        if priced.gap > tol * blocks[i].share:
            priced = min(priced, searched(blocks[i], mean, tol), key=lambda one: one.gap)
        found[i] = priced
    return found


def check_budget(budget: float) -> None:
    """Raises SpecificationError unless it is a finite number ≥ 0."""
    if not (np.isfinite(budget) and budget >= 0):
        raise SpecificationError("distortion: a finite number of at least 0.")


def check_tolerance(tol: float) -> None:
    """Raises SpecificationError unless it is a finite number > 0."""
    if not (np.isfinite(tol) and tol > 0):
        raise SpecificationError("tol: a finite number of nats above 0.")


def forced(blocks: Sequence[Block], tol: float) -> tuple[list[Floats], list[Floats], float]:
    """The budget is the least attainable: the best use of what nearest targets there are, and a multiplier beyond which nothing changes.

    With a price of ``STEEP`` nats for any other target that is a problem with a given multiplier.

    Returns:
        Channels, log ratios, and the multiplier.
    """
    above = [b.cost - b.cost.min(1, keepdims=True) for b in blocks]
    tiny = 1e-12 * max(float(a.max()) for a in above)
    step = min((float(a[a > tiny].min()) for a in above if (a > tiny).any()), default=1.0)
    part = [Block(b.joint, (a > tiny).astype(np.float64)) for b, a in zip(blocks, above, strict=True)]
    priced = with_multipliers(part, STEEP, tol)
    channels = []
    for a, p in zip(above, priced, strict=True):
        K = np.where(a > tiny, 0.0, p.channel)
        channels.append(K / K.sum(1, keepdims=True))
    return channels, [p.log_ratio for p in priced], STEEP / step


def searched(block: Block, mean: float, tol: float) -> Priced:
    """The block's own budget by the search for least leaking channels."""
    problem = Problem.of(block.joint / block.share, block.cost, mean)
    with np.errstate(all="ignore"):  # this is where another method came to the end of its digits
        found = search(problem, None, np.arange(len(block.cost)), tol / LN2, inf)
    K = np.zeros(block.cost.shape)
    K[:, found.columns] = found.K
    return _priced(block, K, found.log_ratio, found.multiplier, 0.0, mean)


def _priced(
    block: Block, K: Floats, ratio: Floats, multiplier: float, weight: float, mean: float = 0.0
) -> Priced:
    """``Priced`` with all its numbers computed from the channel and the classifier."""
    leak, distortion = block.leak(K), block.distortion(K)
    lower = information_bound([block], mean * block.share, [ratio], multiplier)
    plain = information_bound(
        [block], 0.0, [block.prior()], weight
    )  # information is ≥ 0, distortion the least or more
    if lower < max(plain, 0.0):
        ratio, multiplier, lower = block.prior(), weight, plain
    return Priced(leak, distortion, leak + weight * distortion, max(lower, 0.0), K, ratio, multiplier)


def _alone(
    blocks: Sequence[Block], budgets: Floats | None, multipliers: Floats | None, tol: float
) -> list[tuple[Floats, Floats, float]]:
    """Channel, classifier and multiplier of each block by itself; ``budgets`` are means above the least."""
    found: dict[int, tuple[Floats, Floats, float]] = {}
    weights = np.array([1.0 / b.share for b in blocks])
    for batch in batches(blocks, weights):
        at = batch.index
        some = None if budgets is None else budgets[at], None if multipliers is None else multipliers[at]
        task = Task((replace(batch, index=np.arange(len(at))),), *some, np.full(len(at), tol))
        reached = reach(task)
        members = [blocks[i] for i in at]
        parts = reached.by_block(task, members, [b.nearest() for b in members])
        late = ~(reached.gap() <= tol)
        for g, (i, K, ratio, lam) in enumerate(zip(at.tolist(), *parts, strict=True)):
            if late[g] and len(at) > 1:  # another block of the batch may have been the trouble
                one = [None if part is None else part[[g]] for part in some]
                (found[i],) = _alone([blocks[i]], one[0], one[1], tol)
            else:
                found[i] = K, ratio, float(lam)
    return [found[i] for i in range(len(blocks))]
