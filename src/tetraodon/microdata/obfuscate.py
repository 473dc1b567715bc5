"""The obfuscation problem: channels between clusters, one for each group, that leak least about the private value.

    min_W Σ_g w_g I(Y; Ĉ | g)    s.t.    Σ_g w_g E[d | g] ≤ Δ    (or E[d | g] ≤ Δ in every group),    rows of W_g sum to 1,

solved by an interior point with a certified gap (``batch_search``), blocks of similar size at one time.

Inside, everything is nats weighted by the groups' shares; what a user sees is made of these and is in bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from ..channels import zero
from ..channels.attainable import Unreachable
from ..channels.lower_bound import Floats
from ..errors import SpecificationError
from .batch_search import SLACK, reach
from .batch_task import State, Task
from .batches import batches
from .blocks import Block, Bools, NoTarget, information_bound
from .invariant import kept
from .priced import (
    NARROW,
    Priced,
    check_budget,
    check_tolerance,
    forced,
    searched,
    with_budget,
    with_budgets,
    with_multiplier,
    with_multipliers,
)
from .solution import Solution

__all__ = [
    "Block",
    "Bools",
    "NoTarget",
    "Obfuscated",
    "Priced",
    "Unreachable",
    "curve",
    "information_bound",
    "obfuscate",
    "with_budget",
    "with_budgets",
    "with_multiplier",
    "with_multipliers",
]

TOLERANCE = 4e-5  # nats
SILENT = 10**8  # rows² · targets up to which the cheapest channels without leakage are looked for
BACK = 0.01  # nats: how far from the last optimum the next one's search begins


@dataclass(frozen=True, eq=False)
class Obfuscated:
    """The optimal channels of all groups, what they leak, and a proof of how little any can.

    Attributes:
        channels: for each block (clusters, targets); rows sum to 1.
        leak: Σ_g w_g I(Y; Ĉ | g) of the channels, in nats.
        bound: no channels within the budget leak less, in nats: ``information_bound`` of the next two; at least 0.
        distortion: Σ_g w_g E[d | g] of the channels.
        multiplier: λ of the shared budget, or one for each block; nats for each unit of distortion.
        log_ratios: for each block A(y, ĉ), (values, targets), natural logarithm.
        steps, seconds: what it took; no steps where each group has its own budget.
    """

    channels: tuple[Floats, ...]
    leak: float
    bound: float
    distortion: float
    multiplier: float | tuple[float, ...]
    log_ratios: tuple[Floats, ...]
    steps: int
    seconds: float

    @property
    def gap(self) -> float:
        """Nats between the channels found and the bound; never negative."""
        return max(self.leak - self.bound, 0.0)


def obfuscate(
    blocks: Sequence[Block],
    budget: float,
    *,
    shared: bool = True,
    invariant: bool = False,
    tol: float = TOLERANCE,
) -> Obfuscated:
    """The channels that leak least within the budget, with a certified gap.

    Args:
        blocks: one for each group.
        budget: Δ.
        shared: one budget, Σ_g w_g E[d | g] ≤ Δ; otherwise E[d | g] ≤ Δ for each group.
        invariant: each group's clusters keep their shares, Σ_c p_g(c) W_g(ĉ | c) = p_g(ĉ); then the targets have to be the clusters.
        tol: gap to stop at, in nats; a larger one that is returned is honest.

    Raises:
        SpecificationError: no block, a budget or tolerance that is none, ``invariant`` with targets that are not the clusters.
        Unreachable: no channels keep the budget; says how much is needed.

    >>> two = [Block(np.diag([0.3, 0.3]), 1 - np.eye(2)), Block(np.diag([0.2, 0.2]), 1 - np.eye(2))]
    >>> found = obfuscate(two, 0.25)
    >>> round(found.leak, 3), found.gap < 4e-5, round(found.distortion, 4)  # equals ln 2 − h(1/4)
    (0.131, True, 0.25)
    """
    return _obfuscated(blocks, budget, shared, invariant, tol)[0]


def curve(
    blocks: Sequence[Block],
    budgets: Sequence[float],
    *,
    shared: bool = True,
    invariant: bool = False,
    tol: float = TOLERANCE,
) -> list[Obfuscated]:
    """``obfuscate`` for several budgets, in the order given, each from the way to the optimum of the next smaller one.

    Raises:
        SpecificationError, Unreachable: as ``obfuscate``.

    >>> even = Block(np.diag([0.5, 0.5]), 1 - np.eye(2))
    >>> [round(found.leak, 3) for found in curve([even], [0.5, 0.25, 0.1])]
    [0.0, 0.131, 0.368]
    """
    found: dict[int, Obfuscated] = {}
    trail: tuple[State, ...] = ()
    for i in np.argsort(np.asarray(budgets, dtype=np.float64), kind="stable").tolist():
        found[i], trail = _obfuscated(blocks, budgets[i], shared, invariant, tol, trail)
    return [found[i] for i in range(len(budgets))]


def _obfuscated(
    blocks: Sequence[Block],
    budget: float,
    shared: bool,
    invariant: bool,
    tol: float,
    trail: tuple[State, ...] = (),
) -> tuple[Obfuscated, tuple[State, ...]]:
    """``Obfuscated`` with value, distortion and bound computed here, from what it will hold; and where the search has been."""
    began = perf_counter()
    if not blocks:
        raise SpecificationError("obfuscate: blocks: at least one group.")
    check_budget(budget)
    check_tolerance(tol)
    if not shared:
        found = _each(blocks, budget, invariant, tol)
    elif invariant:
        found = kept(blocks, budget, tol)
    else:
        found = _together(blocks, budget, tol, trail)
        budget = max(budget, sum(b.least() for b in blocks))  # which is above it by rounding at most
    leak = sum(b.leak(K) for b, K in zip(blocks, found.channels, strict=True))
    distortion = sum(b.distortion(K) for b, K in zip(blocks, found.channels, strict=True))
    ratios, lam = found.log_ratios, found.multiplier
    bound = information_bound(blocks, budget, ratios, lam, shared, invariant)
    if bound < 0:  # the prior as classifier and no price for distortion say 0
        ratios, lam, bound = [b.prior() for b in blocks], 0.0 if shared else (0.0,) * len(blocks), 0.0
    seconds = perf_counter() - began
    told = Obfuscated(
        tuple(found.channels), leak, bound, distortion, lam, tuple(ratios), found.steps, seconds
    )
    return told, found.trail


def _each(blocks: Sequence[Block], budget: float, invariant: bool, tol: float) -> Solution:
    """A budget for each group."""
    if invariant:
        parts = [kept([b], budget * b.share, tol * b.share) for b in blocks]
        lams = tuple(float(np.max(p.multiplier)) for p in parts)
        return Solution([p.channels[0] for p in parts], [p.log_ratios[0] for p in parts], lams)
    priced = with_budgets(blocks, budget, tol)
    done = [p for p in priced if p is not None]
    if len(done) < len(priced):
        raise Unreachable(max(b.least() / b.share for b in blocks), budget)
    return Solution([p.channel for p in done], [p.log_ratio for p in done], tuple(p.multiplier for p in done))


def _together(blocks: Sequence[Block], budget: float, tol: float, trail: Sequence[State]) -> Solution:
    """One budget for all groups."""
    least = sum(b.least() for b in blocks)
    if least > budget * (1 + 1e-12):
        raise Unreachable(least, budget)
    anybody = [b.constant() for b in blocks]
    most = sum(spent for _, spent in anybody)
    ratios = [b.prior() for b in blocks]
    if most <= budget:
        return Solution([K for K, _ in anybody], ratios, 0.0)
    channels = [b.nearest() for b in blocks]
    solid = [i for i, b in enumerate(blocks) if not b.tells_nothing]
    if not solid:
        return Solution(channels, ratios, 0.0)
    part = [blocks[i] for i in solid]
    room = budget - least
    if room <= NARROW * (most - least):
        found = Solution(*forced(part, tol))
    else:
        found = _searched(part, room, tol, trail)
        if found.bound <= 0:
            found = replace(found, channels=_silent(part, room) or found.channels)
    for i, K, ratio in zip(solid, found.channels, found.log_ratios, strict=True):
        channels[i], ratios[i] = K, ratio
    return replace(found, channels=channels, log_ratios=ratios)


def _searched(blocks: Sequence[Block], room: float, tol: float, trail: Sequence[State]) -> Solution:
    """By the interior point; ``room`` is what the budget leaves above the least distortion."""
    n = len(blocks)
    several = tuple(batches(blocks, np.ones(n)))
    task = Task(several, np.full(n, room * (1 - SLACK)), None, np.full(n, tol), shared=True)
    reached = reach(task, _onward(task, trail))
    channels, ratios, lams = reached.by_block(task, blocks, [b.nearest() for b in blocks])
    bound, gap = float(reached.bound[0]), float(reached.gap()[0])
    if n == 1 and not gap <= tol:
        (block,) = blocks
        other = searched(block, (room + block.least()) / block.share, tol)
        if other.gap < gap:
            return Solution([other.channel], [other.log_ratio], other.multiplier, bound=other.lower)
    return Solution(channels, ratios, float(lams[0]), reached.steps, tuple(reached.passed), bound)


def _silent(blocks: Sequence[Block], room: float) -> list[Floats] | None:
    """Channels that leak nothing at all, if the budget has room for them and they are not too large to look for."""
    if sum(b.cost.shape[0] ** 2 * b.cost.shape[1] for b in blocks) > SILENT:
        return None
    channels = []
    for block in blocks:
        nothing = zero.solve(block.joint, block.cost)
        room -= nothing.value * block.share - block.least()
        if room < 0:
            return None
        channels.append(nothing.K)
    return channels


def _onward(task: Task, trail: Sequence[State]) -> State | None:
    """The latest point on the way to another optimum that is far enough from it and within this budget."""
    assert task.budgets is not None
    for state in reversed(trail):
        spent = task.meet([b.spent(at.K) for b, at in zip(task.batches, state.points, strict=True)])
        spare = task.budgets - spent  # rows of sum 1 or nearly
        inside = sum(
            float(np.einsum("gw,gwz,gwz->", b.mass, at.K, at.S))
            for b, at in zip(task.batches, state.points, strict=True)
        )
        if (spare > 0).all() and inside + float((state.lam * spare)[0]) >= BACK:
            return State(state.points, state.lam, spare)
    return None
