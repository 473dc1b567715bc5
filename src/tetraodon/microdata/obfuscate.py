"""The obfuscation problem: channels between clusters, one for each group, that leak least about the private value.

    min_W Σ_g w_g I(Y; Ĉ | g)    s.t.    Σ_g w_g E[d | g] ≤ Δ    (or E[d | g] ≤ Δ in every group),    rows of W_g sum to 1,

solved by an interior point with a certified gap (``batch_search``), blocks of similar size at one time. A group with a budget of
its own is the least leaking channel of ``channels``; what the interior point does not settle there goes to its search.

Inside, everything is nats weighted by the groups' shares; what a user sees is made of these and is in bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter

import numpy as np

from ..channels import zero
from ..channels.attainable import Unreachable, best_constant, constant
from ..channels.leaking_search import search
from ..channels.lower_bound import LN2, Floats, Problem
from ..errors import SpecificationError
from .batch_search import SLACK, Reached, State, Task, reach
from .batches import batches
from .blocks import Block, Bools, NoTarget, information_bound
from .invariant import Kept, kept

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
FINE = 1e-5  # nats, for each record of the group priced
STEEP = 40.0  # nats
NARROW = 1e-9  # room in the budget, relative, below which only nearest targets are left
SILENT = 10**8  # rows² · targets up to which the cheapest channels without leakage are looked for
BACK = 0.01  # nats: how far from the last optimum the next one's search begins


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
        steps, seconds: what it took.
        trail: interior points on the way, from which the search for a similar budget starts.
    """

    channels: tuple[Floats, ...]
    leak: float
    bound: float
    distortion: float
    multiplier: float | tuple[float, ...]
    log_ratios: tuple[Floats, ...]
    steps: int
    seconds: float
    trail: tuple[State, ...] = field(default=(), repr=False)

    @property
    def gap(self) -> float:
        """Nats between the channels found and the bound; never negative."""
        return max(self.leak - self.bound, 0.0)


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
    _check_tolerance(tol)
    found: dict[int, Priced] = {}
    solid = []
    for i, block in enumerate(blocks):
        if lam == 0 or _leaks_nothing(block):
            output = best_constant(block.mass, block.cost)[0]
            K = constant(*block.cost.shape, output) if lam == 0 else _nearest(block)
            found[i] = _priced(block, K, _no_ratio(block), lam, lam)
        else:
            solid.append(i)
    for i, K, ratio, _ in _alone([blocks[i] for i in solid], None, np.full(len(solid), lam), tol):
        found[solid[i]] = _priced(blocks[solid[i]], K, ratio, lam, lam)
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
    _check_budget(mean)
    _check_tolerance(tol)
    found: list[Priced | None] = [None] * len(blocks)
    solid = []
    for i, block in enumerate(blocks):
        mass = block.mass / block.share
        least, (output, most) = block.least() / block.share, best_constant(mass, block.cost)
        if least > mean * (1 + 1e-12):
            continue
        if most <= mean:
            found[i] = _priced(block, constant(*block.cost.shape, output), _no_ratio(block), 0.0, 0.0, mean)
        elif _leaks_nothing(block):
            found[i] = _priced(block, _nearest(block), _no_ratio(block), 0.0, 0.0, mean)
        elif mean - least <= NARROW * (most - least):
            (K,), (ratio,), lam = _forced([block], tol)
            found[i] = _priced(block, K, ratio, lam, 0.0, max(mean, least))
        else:
            solid.append(i)
    means = np.array([mean - blocks[i].least() / blocks[i].share for i in solid])
    for i, K, ratio, lam in _alone([blocks[i] for i in solid], means, None, tol):
        block = blocks[solid[i]]
        priced = _priced(block, K, ratio, lam, 0.0, mean)
        if priced.gap > tol * block.share:
            other = _searched(block, mean, tol)
            priced = other if other.gap < priced.gap else priced
        found[solid[i]] = priced
    return found


def obfuscate(
    blocks: Sequence[Block],
    budget: float,
    *,
    shared: bool = True,
    invariant: bool = False,
    tol: float = TOLERANCE,
    start: Obfuscated | None = None,
) -> Obfuscated:
    """The channels that leak least within the budget, with a certified gap.

    Args:
        blocks: one for each group.
        budget: Δ.
        shared: one budget, Σ_g w_g E[d | g] ≤ Δ; otherwise E[d | g] ≤ Δ for each group.
        invariant: each group's clusters keep their shares, Σ_c p_g(c) W_g(ĉ | c) = p_g(ĉ); then the targets have to be the clusters.
        tol: gap to stop at, in nats; a larger one that is returned is honest.
        start: the solution for another budget of the same blocks, to start from.

    Raises:
        SpecificationError: no block, a budget or tolerance that is none, ``invariant`` with targets that are not the clusters.
        Unreachable: no channels keep the budget; says how much is needed.

    >>> two = [Block(np.diag([0.3, 0.3]), 1 - np.eye(2)), Block(np.diag([0.2, 0.2]), 1 - np.eye(2))]
    >>> found = obfuscate(two, 0.25)
    >>> round(found.leak, 3), found.gap < 4e-5, round(found.distortion, 4)  # equals ln 2 − h(1/4)
    (0.131, True, 0.25)
    """
    began = perf_counter()
    if not blocks:
        raise SpecificationError("obfuscate: blocks: at least one group.")
    _check_budget(budget)
    _check_tolerance(tol)
    if not shared:
        return _each(blocks, budget, invariant, tol, began)
    if invariant:
        return _sealed(blocks, kept(blocks, budget, tol), budget, True, began, True)
    found = [_nearest(b) for b in blocks]
    ratios = [_no_ratio(b) for b in blocks]
    least = sum(b.least() for b in blocks)
    flat = [best_constant(b.mass, b.cost) for b in blocks]
    most = sum(spent for _, spent in flat)
    if least > budget * (1 + 1e-12):
        raise Unreachable(least, budget)
    solid = [i for i, b in enumerate(blocks) if not _leaks_nothing(b)]
    if most <= budget:
        found = [constant(*b.cost.shape, output) for b, (output, _) in zip(blocks, flat, strict=True)]
        return _sealed(blocks, Kept(found, ratios, 0.0), budget, True, began)
    if not solid:
        return _sealed(blocks, Kept(found, ratios, 0.0), budget, True, began)
    part = [blocks[i] for i in solid]
    room = budget - least
    if room <= NARROW * (most - least):
        channels, several, lam = _forced(part, tol)
        for i, K, ratio in zip(solid, channels, several, strict=True):
            found[i], ratios[i] = K, ratio
        return _sealed(blocks, Kept(found, ratios, lam), max(budget, least), True, began)
    n = len(part)
    task = Task(
        tuple(batches(part, np.ones(n))), np.full(n, room * (1 - SLACK)), None, np.full(n, tol), shared=True
    )
    reached = reach(task, start=_onward(task, start))
    if start is not None and not reached.gap()[0] <= tol:
        reached = reach(task)
    for i, K, ratio, _ in _unpacked(part, task, reached):
        found[solid[i]], ratios[solid[i]] = K, ratio
    lam = float(reached.lam[0])
    if n == 1 and not reached.gap()[0] <= tol:
        other = _searched(part[0], (room + part[0].least()) / part[0].share, tol)
        if other.gap < reached.gap()[0]:
            found[solid[0]], ratios[solid[0]], lam = other.channel, other.log_ratio, other.multiplier
    if reached.bound[0] <= 0:
        found = _silent(blocks, solid, found, room) or found
    return _sealed(
        blocks, Kept(found, ratios, lam, reached.steps, tuple(reached.passed)), budget, True, began
    )


def curve(
    blocks: Sequence[Block],
    budgets: Sequence[float],
    *,
    shared: bool = True,
    invariant: bool = False,
    tol: float = TOLERANCE,
) -> list[Obfuscated]:
    """``obfuscate`` for several budgets, in the order given, each from the solution for the next smaller one.

    Raises:
        SpecificationError, Unreachable: as ``obfuscate``.

    >>> even = Block(np.diag([0.5, 0.5]), 1 - np.eye(2))
    >>> [round(found.leak, 3) for found in curve([even], [0.5, 0.25, 0.1])]
    [0.0, 0.131, 0.368]
    """
    found: dict[int, Obfuscated] = {}
    last: Obfuscated | None = None
    for i in np.argsort(np.asarray(budgets, dtype=np.float64), kind="stable").tolist():
        last = obfuscate(blocks, budgets[i], shared=shared, invariant=invariant, tol=tol, start=last)
        found[i] = last
    return [found[i] for i in range(len(budgets))]


def _check_budget(budget: float) -> None:
    if not (np.isfinite(budget) and budget >= 0):
        raise SpecificationError("distortion: a finite number of at least 0.")


def _check_tolerance(tol: float) -> None:
    if not (np.isfinite(tol) and tol > 0):
        raise SpecificationError("tol: a finite number of nats above 0.")


def _leaks_nothing(block: Block) -> bool:
    """One value, one cluster or one target: no channel tells anything."""
    return 1 in (len(block.joint), *block.cost.shape)


def _no_ratio(block: Block) -> Floats:
    return np.zeros((len(block.joint), block.cost.shape[1]))


def _nearest(block: Block) -> Floats:
    K = np.zeros(block.cost.shape)
    K[np.arange(len(K)), block.cost.argmin(1)] = 1.0
    return K


def _priced(
    block: Block, K: Floats, ratio: Floats, multiplier: float, weight: float, mean: float = 0.0
) -> Priced:
    """``Priced`` with all its numbers computed from the channel and the classifier."""
    leak, distortion = block.leak(K), block.distortion(K)
    lower = information_bound([block], mean * block.share, [ratio], multiplier)
    if lower < 0 and weight == 0:
        ratio, multiplier, lower = _no_ratio(block), 0.0, 0.0
    return Priced(leak, distortion, leak + weight * distortion, max(lower, 0.0), K, ratio, multiplier)


def _alone(
    blocks: Sequence[Block], budgets: Floats | None, multipliers: Floats | None, tol: float
) -> list[tuple[int, Floats, Floats, float]]:
    """Each block by itself: its number, channel, classifier and multiplier."""
    found: list[tuple[int, Floats, Floats, float]] = []
    weights = np.array([1.0 / b.share for b in blocks])
    for batch in batches(blocks, weights):
        at = batch.index
        task = Task(
            (batch,),
            None if budgets is None else budgets[at],
            None if multipliers is None else multipliers[at],
            np.full(len(at), tol),
        )
        reached = reach(task)
        again = {int(i) for i in np.flatnonzero(~(reached.gap() <= tol))} if len(at) > 1 else set()
        for i, K, ratio, lam in _unpacked(blocks, task, reached):
            if (
                int(np.flatnonzero(at == i)[0]) in again
            ):  # another block of the batch may have been the trouble
                some = [None if part is None else part[[i]] for part in (budgets, multipliers)]
                (_, K, ratio, lam) = _alone([blocks[i]], *some, tol)[0]
            found.append((i, K, ratio, lam))
    return found


def _unpacked(
    blocks: Sequence[Block], task: Task, reached: Reached
) -> list[tuple[int, Floats, Floats, float]]:
    """Channels and classifiers without their padding."""
    found = []
    lams = task.split(reached.lam)
    for batch, channels, ratios, lam in zip(
        task.batches, reached.channels, reached.ratios, lams, strict=True
    ):
        for g, i in enumerate(batch.index.tolist()):
            x, (w, z) = len(blocks[i].joint), blocks[i].cost.shape
            K = channels[g, :w, :z]
            if not K.any():  # nothing within the budget was met
                K = _nearest(blocks[i])
            found.append((i, K / K.sum(1, keepdims=True), ratios[g, :x, :z].copy(), float(lam[g])))
    return found


def _forced(blocks: Sequence[Block], tol: float) -> tuple[list[Floats], list[Floats], float]:
    """The budget is the least attainable: the best use of what nearest targets there are, and a multiplier beyond which nothing changes.

    With a price of ``STEEP`` nats for any other target that is a problem with a given multiplier.
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


def _searched(block: Block, mean: float, tol: float) -> Priced:
    """The block's own budget by the search for least leaking channels."""
    problem = Problem.of(block.joint / block.share, block.cost, mean)
    with np.errstate(all="ignore"):  # this is where another method came to the end of its digits
        found = search(problem, None, np.arange(len(block.cost)), tol / LN2, inf)
    K = np.zeros(block.cost.shape)
    K[:, found.columns] = found.K
    return _priced(block, K, found.log_ratio, found.multiplier, 0.0, mean)


def _silent(
    blocks: Sequence[Block], solid: list[int], found: list[Floats], room: float
) -> list[Floats] | None:
    """Channels that leak nothing at all, if the budget has room for them and they are not too large to look for."""
    shapes = [blocks[i].cost.shape for i in solid]
    if sum(w * w * z for w, z in shapes) > SILENT:
        return None
    other, spent = list(found), 0.0
    for i in solid:
        nothing = zero.solve(blocks[i].joint, blocks[i].cost)
        spent += nothing.value * blocks[i].share - blocks[i].least()
        other[i] = nothing.K
        if spent > room:
            return None
    return other


def _each(blocks: Sequence[Block], budget: float, invariant: bool, tol: float, began: float) -> Obfuscated:
    """A budget for each group."""
    if invariant:
        parts = [kept([b], budget * b.share, tol * b.share) for b in blocks]
        together = Kept(
            [p.channels[0] for p in parts],
            [p.log_ratios[0] for p in parts],
            tuple(float(np.max(p.multiplier)) for p in parts),
            max(p.steps for p in parts),
        )
        return _sealed(blocks, together, budget, False, began, True)
    priced = with_budgets(blocks, budget, tol)
    done = [p for p in priced if p is not None]
    if len(done) < len(priced):
        raise Unreachable(max(b.least() / b.share for b in blocks), budget)
    together = Kept([p.channel for p in done], [p.log_ratio for p in done], tuple(p.multiplier for p in done))
    return _sealed(blocks, together, budget, False, began)


def _sealed(
    blocks: Sequence[Block],
    found: Kept,
    budget: float,
    shared: bool,
    began: float,
    invariant: bool = False,
) -> Obfuscated:
    """``Obfuscated`` with value, distortion and bound computed here, from what it will hold."""
    leak = sum(b.leak(K) for b, K in zip(blocks, found.channels, strict=True))
    distortion = sum(b.distortion(K) for b, K in zip(blocks, found.channels, strict=True))
    ratios, lam = found.log_ratios, found.multiplier
    bound = information_bound(blocks, budget, ratios, lam, shared, invariant)
    if bound < 0:  # the prior as classifier and no price for distortion say 0
        ratios = [_no_ratio(b) for b in blocks]
        lam, bound = 0.0 if shared else (0.0,) * len(blocks), 0.0
    return Obfuscated(
        tuple(found.channels),
        leak,
        bound,
        distortion,
        lam,
        tuple(ratios),
        found.steps,
        perf_counter() - began,
        found.trail,
    )


def _onward(task: Task, start: Obfuscated | None) -> State | None:
    """The latest point on the way to another optimum that is far enough from it and within this budget."""
    if start is None or task.budgets is None:
        return None
    for state in reversed(start.trail):
        shapes = [(at.theta.shape, at.K.shape) for at in state.points]
        if shapes != [((*b.P.shape[:2], b.cost.shape[2]), b.cost.shape) for b in task.batches]:
            return None
        spent = task.meet([b.spent(at.K) for b, at in zip(task.batches, state.points, strict=True)])
        spare = task.budgets - spent  # rows of sum 1 or nearly
        inside = sum(
            float(np.einsum("gw,gwz,gwz->", b.mass, at.K, at.S))
            for b, at in zip(task.batches, state.points, strict=True)
        )
        if (spare > 0).all() and inside + float((state.lam * spare)[0]) >= BACK:
            return State(state.points, state.lam, spare)
    return None
