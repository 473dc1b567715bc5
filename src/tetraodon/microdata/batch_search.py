"""The way of the interior point to the optimum of many blocks: when to prove, when to leave a block alone, when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from ..channels.lower_bound import Floats, Ints
from .batch_interior import REACH, Misses
from .batch_proof import feasible, proof
from .batch_steps import Newton, lengths, missing, moved, products
from .batch_task import FAR, NEAR, State, Task, begin
from .blocks import Block, Bools

MOST_STEPS = 250
PATIENCE = 3  # steps in a row that hardly lead anywhere
KEPT = 1e-3  # rows' sums that miss 1 by less are good enough for a channel to be made of them
SLACK = 1e-10  # of the room above the least distortion, left free so that rounding cannot exceed the budget


@dataclass(eq=False)
class Reached:
    """The best channels and the best proofs so far, by batch; ``value`` and ``bound`` in nats, (blocks,).

    Under a given multiplier both are of information + λ distortion. A value of +inf: no channel within the budget was met.
    ``passed``: where the search has been, one for each factor of 4 in complementarity, if the blocks share a budget.
    """

    channels: list[Floats]
    value: Floats
    ratios: list[Floats]
    lam: Floats
    bound: Floats
    steps: int = 0
    passed: list[State] = field(default_factory=list)

    @staticmethod
    def nothing(state: State) -> Reached:
        n = len(state.lam)
        return Reached(
            [np.zeros_like(at.K) for at in state.points],
            np.full(n, inf),
            [np.zeros_like(at.theta) for at in state.points],
            state.lam.copy(),
            np.full(n, -inf),
        )

    def gap(self) -> Floats:
        found: Floats = self.value - np.maximum(self.bound, 0.0)
        return found

    def places(self, alive: list[Ints]) -> Ints:
        """Numbers within each batch as places in (blocks,)."""
        sizes = np.cumsum([0, *map(len, self.channels)])
        return np.concatenate([own + first for own, first in zip(alive, sizes, strict=False)])

    def better_bound(
        self, task: Task, alive: list[Ints], bound: Floats, ratios: list[Floats], lam: Floats
    ) -> None:
        where = self.places(alive)
        pick = bound > self.bound[where]
        self.bound[where[pick]], self.lam[where[pick]] = bound[pick], lam[pick]
        for mine, own, some, new in zip(self.ratios, alive, task.split(pick), ratios, strict=True):
            mine[own[some]] = new[some]

    def better_channel(self, task: Task, alive: list[Ints], value: Floats, channels: list[Floats]) -> None:
        where = self.places(alive)
        pick = value < self.value[where]
        self.value[where[pick]] = value[pick]
        for mine, own, some, new in zip(self.channels, alive, task.split(pick), channels, strict=True):
            mine[own[some]] = new[some]

    def by_block(
        self, task: Task, blocks: Sequence[Block], otherwise: Sequence[Floats]
    ) -> tuple[list[Floats], list[Floats], Floats]:
        """Channels, classifiers and multipliers without padding, in the order of the blocks.

        Args:
            otherwise: the channels of blocks for which none within the budget was met.
        """
        channels, ratios = list(otherwise), [np.empty((0, 0))] * len(blocks)
        lams = np.empty(len(blocks))
        for batch, some, classifiers, lam in zip(
            task.batches, self.channels, self.ratios, task.split(self.lam), strict=True
        ):
            lams[batch.index] = lam
            for g, i in enumerate(batch.index.tolist()):
                (x, w), z = blocks[i].joint.shape, blocks[i].cost.shape[1]
                ratios[i] = classifiers[g, :x, :z].copy()
                K = some[g, :w, :z]
                if K.any():
                    channels[i] = K / K.sum(1, keepdims=True)
        return channels, ratios, lams


@dataclass(eq=False)
class _Run:
    """The blocks that are still searched for.

    Attributes:
        alive: their numbers within each batch of the whole task.
        stuck: steps in a row that hardly led anywhere, (blocks,).
        known: column by column the best classifiers so far.
    """

    task: Task
    state: State
    alive: list[Ints]
    stuck: Ints
    known: list[Floats] | None = None

    def only(self, keep: Bools) -> _Run:
        """Those of a single batch's blocks that ``keep`` marks."""
        at = np.flatnonzero(keep)
        (batch,), (point,), (alive,) = self.task.batches, self.state.points, self.alive
        task = replace(
            self.task,
            batches=(batch.only(at),),
            budgets=None if self.task.budgets is None else self.task.budgets[at],
            multipliers=None if self.task.multipliers is None else self.task.multipliers[at],
            tolerances=self.task.tolerances[at],
        )
        state = State((point.only(at),), self.state.lam[at], self.state.spare[at])
        known = None if self.known is None else [self.known[0][at]]
        return _Run(task, state, [alive[at]], self.stuck[at], known)

    def examine(self, found: Reached, misses: list[Misses], posteriors: list[Floats], is_last: bool) -> Bools:
        """Note better bounds and channels; which blocks are still further from their optimum than asked."""
        bound, self.known, ratios = proof(self.task, self.state, posteriors, self.known)
        found.better_bound(self.task, self.alive, bound, ratios, self.state.lam)
        fit = self.task.most([np.abs(one.rows).max(1) for one in misses]) < KEPT
        if fit.any() or is_last:
            value, channels = feasible(self.task, self.state)
            found.better_channel(self.task, self.alive, np.where(fit | is_last, value, inf), channels)
        left: Bools = ~(found.gap()[found.places(self.alive)] <= self.task.tolerances)
        return left

    def advance(self, misses: list[Misses], gap: Floats) -> Bools:
        """One step; nobody moves if it is none for some, and those for which it is one are marked."""
        try:
            with np.errstate(all="ignore"):  # where digits end, the step is thrown away
                step = Newton(self.task, self.state, misses, gap).direction()
                primal, dual = (REACH * a for a in lengths(self.task, self.state, step))
                primal, dual = np.minimum(primal, 2 * dual), np.minimum(dual, 2 * primal)
        except np.linalg.LinAlgError:  # the end of double precision: what is certified so far stays
            return np.zeros(len(gap), dtype=bool)
        good: Bools = np.isfinite(primal) & np.isfinite(dual)
        if good.all():
            self.stuck = np.where(primal < 1e-3, self.stuck + 1, 0)
            self.state = moved(self.task, self.state, step, primal, dual)
        return good


def reach(task: Task, start: State | None = None) -> Reached:
    """The optimum of every block, or of all that share a budget, to the tolerances asked for or as far as double precision goes.

    A search that comes to nothing is begun again further from the optimum, unless it is one of many that do not meet.
    """
    found = _from(task, begin(task) if start is None else start)
    if task.shared or len(found.lam) == 1:
        for far in (NEAR, FAR)[start is None :]:
            if found.gap()[0] <= task.tolerances[0]:
                break
            found = min(found, _from(task, begin(task, far)), key=lambda one: float(one.gap()[0]))
    return found


def _from(task: Task, state: State) -> Reached:
    found = Reached.nothing(state)
    run = _Run(
        task, state, [np.arange(len(b.index)) for b in task.batches], np.zeros(len(state.lam), np.int64)
    )
    marked = inf
    for step in range(MOST_STEPS):
        found.steps = step
        misses, posteriors = missing(run.task, run.state)
        gap = products(run.task, run.state)
        if task.shared and gap[0] < marked / 4:
            marked = float(gap[0])
            found.passed.append(run.state)
        is_last = bool((run.stuck > PATIENCE).any())
        if is_last or step % 5 == 4 or (gap < 20 * run.task.tolerances).any():
            left = run.examine(found, misses, posteriors, is_last)
            if is_last or not left.any():
                break
            if not task.shared and left.sum() <= 0.8 * len(left):
                run = run.only(left)
                misses, gap = missing(run.task, run.state)[0], products(run.task, run.state)
        good = run.advance(misses, gap)
        if task.shared or not good.any():
            run.stuck[~good] = MOST_STEPS
        elif not good.all():
            run = run.only(good)
    return found
