"""The way of the interior point to the optimum of many blocks: start, step lengths, proofs and when to stop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from ..channels.lower_bound import Floats, Ints
from .batch_interior import BLOCKED, CORRECTIONS, REACH, Misses, Point, factorise, half, room, whole
from .batches import NOTHING, WALL, Batch

MOST_STEPS = 250
FIRST = 2.0  # nats of complementarity to begin with, relative to what there is to leak
KEPT = 1e-3  # rows' sums that miss 1 by less are good enough for a channel to be made of them
SLACK = 1e-10  # of the room above the least distortion, left free so that rounding cannot exceed the budget


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
        each = np.concatenate(parts)
        return np.full(len(each), each.min()) if self.shared else each

    def split(self, values: Floats) -> list[Floats]:
        """(blocks,) in the order of the batches."""
        if len(self.batches) == 1:
            return [values]
        return np.split(values, np.cumsum([len(b.index) for b in self.batches])[:-1])


@dataclass(frozen=True, eq=False)
class State:
    """Interior points of all batches, λ and what is left of the budget, (blocks,)."""

    points: tuple[Point, ...]
    lam: Floats
    spare: Floats


@dataclass(eq=False)
class Reached:
    """The best channels and the best proofs so far, by batch; ``value`` and ``bound`` in nats, (blocks,).

    Under a given multiplier both are of information + λ distortion. A value of +inf: no channel within the budget was met.
    """

    channels: list[Floats]
    value: Floats
    ratios: list[Floats]
    lam: Floats
    bound: Floats
    steps: int = 0
    passed: list[State] = field(default_factory=list)

    def gap(self) -> Floats:
        found: Floats = self.value - np.maximum(self.bound, 0.0)
        return found

    def better_bound(
        self, task: Task, alive: list[Ints], bound: Floats, ratios: list[Floats], lam: Floats
    ) -> None:
        where = np.concatenate(alive)
        pick = bound > self.bound[where]
        self.bound[where[pick]], self.lam[where[pick]] = bound[pick], lam[pick]
        for mine, own, some, new in zip(self.ratios, alive, task.split(pick), ratios, strict=True):
            mine[own[some]] = new[some]

    def better_channel(self, task: Task, alive: list[Ints], value: Floats, channels: list[Floats]) -> None:
        where = np.concatenate(alive)
        pick = value < self.value[where]
        self.value[where[pick]] = value[pick]
        for mine, own, some, new in zip(self.channels, alive, task.split(pick), channels, strict=True):
            mine[own[some]] = new[some]


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


def begin(task: Task) -> State:
    """A central point of the problem without leakage, 75–90 % of the way from the least distortion to the budget."""
    hold = [np.maximum(-(b.prior * b.log_prior).sum((1, 2)), 1e-3) * b.share for b in task.batches]
    size = task.meet([b.share * b.outputs for b in task.batches])
    mu = FIRST * task.meet(hold) / size
    tops = [b.cost.max((1, 2)) for b in task.batches]
    top = -task.least([-t for t in tops])
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


def _missing(task: Task, state: State) -> tuple[list[Misses], list[Floats]]:
    """What is missing at the points, and the posteriors' log ratios."""
    misses, ratios = [], []
    for batch, at in zip(task.batches, state.points, strict=True):
        J, p, R = batch.posterior(at.K)
        columns = batch.kept - np.einsum("gw,gwz->gz", batch.mass, at.K) if task.invariant else p
        rows = np.where(batch.mass > 0, 1.0 - at.K.sum(2), 0.0)
        misses.append(Misses(rows, _real_columns(batch, columns), R - at.theta, J, p))
        ratios.append(R)
    return misses, ratios


def _real_columns(batch: Batch, columns: Floats) -> Floats:
    return columns if batch.wall is None else np.where(batch.wall[:, 0] > 0, 0.0, columns)


def _products(task: Task, state: State) -> Floats:
    """Complementarity, in nats: Σ p K S, and λ times what is left of the budget."""
    each = [
        np.einsum("gw,gw->g", b.mass, np.einsum("gwz,gwz->gw", at.K, at.S))
        for b, at in zip(task.batches, state.points, strict=True)
    ]
    found = task.meet(each)
    return found if task.budgets is None else found + state.lam * state.spare


def _lengths(task: Task, state: State, step: State) -> tuple[Floats, Floats]:
    primal = task.least([room(at.K, by.K) for at, by in zip(state.points, step.points, strict=True)])
    dual = task.least([room(at.S, by.S) for at, by in zip(state.points, step.points, strict=True)])
    if task.budgets is not None:
        primal = np.minimum(primal, -1.0 / np.minimum(step.spare / state.spare, -1e-9))
        dual = np.minimum(dual, -1.0 / np.minimum(step.lam / state.lam, -1e-9))
    return np.minimum(primal, 1.0), np.minimum(dual, 1.0)


def _moved(task: Task, state: State, step: State, primal: Floats, dual: Floats) -> State:
    points = [
        at.moved(by, a, b)
        for at, by, a, b in zip(state.points, step.points, task.split(primal), task.split(dual), strict=True)
    ]
    return State(tuple(points), state.lam + dual * step.lam, state.spare + primal * step.spare)


class _Newton:
    """Steps from one state: factors are made once, targets come as they please."""

    def __init__(self, task: Task, state: State, misses: list[Misses], mu: Floats) -> None:
        self.task, self.state, self.misses, self.mu = task, state, misses, mu
        self.factors = [
            factorise(b, at, miss, task.invariant)
            for b, at, miss in zip(task.batches, state.points, misses, strict=True)
        ]
        self.products = [at.K * at.S for at in state.points]
        self.fall = task.meet([f.fall for f in self.factors]) + state.spare / state.lam
        self.miss = np.zeros_like(state.lam)
        if task.budgets is not None:
            spent = task.meet([b.spent(at.K) for b, at in zip(task.batches, state.points, strict=True)])
            self.miss = task.budgets - spent - state.spare

    def to(self, targets: list[Floats], spare_target: Floats) -> State:
        """The step that (to first order) ends all misses and changes K·S and λ·spare by the targets."""
        step = self._solved(self.misses, self.miss, targets, spare_target)
        return self._refined(step, targets) if self.task.invariant else step

    def _solved(
        self, misses: list[Misses], budget_miss: Floats, targets: list[Floats], spare_target: Floats
    ) -> State:
        task, state = self.task, self.state
        halves = [
            half(b, at, f, miss, target)
            for b, at, f, miss, target in zip(
                task.batches, state.points, self.factors, misses, targets, strict=True
            )
        ]
        if task.budgets is None:
            lam, spare = np.zeros_like(state.lam), np.zeros_like(state.lam)
        else:
            used = task.meet([one.used for one in halves])
            lam = (used + spare_target / state.lam - budget_miss) / self.fall
            spare = (spare_target - state.spare * lam) / state.lam
        points = [
            whole(b, f, miss, one, part)
            for b, f, miss, one, part in zip(
                task.batches, self.factors, misses, halves, task.split(lam), strict=True
            )
        ]
        return State(tuple(points), lam, spare)

    def _refined(self, step: State, targets: list[Floats]) -> State:
        """The step and what it still misses: prices of rows and of columns nearly cancel where channels nearly are the identity."""
        task, state = self.task, self.state
        misses, left, spent = [], [], []
        for b, at, by, miss, target in zip(
            task.batches, state.points, step.points, self.misses, targets, strict=True
        ):
            rows = np.where(b.mass > 0, miss.rows - by.K.sum(2), 0.0)
            columns = _real_columns(b, miss.columns - np.einsum("gw,gwz->gz", b.mass, by.K))
            misses.append(Misses(rows, columns, np.zeros_like(miss.theta), miss.J, miss.p))
            left.append(b.masked(target - at.S * by.K - at.K * by.S))
            spent.append(b.spent(by.K))
        miss = self.miss - task.meet(spent) - step.spare
        more = self._solved(misses, miss, left, np.zeros_like(miss))
        points = [
            Point(a.K + m.K, a.S + m.S, a.theta + m.theta, a.nu + m.nu)
            for a, m in zip(step.points, more.points, strict=True)
        ]
        return State(tuple(points), step.lam + more.lam, step.spare + more.spare)

    def direction(self, gap: Floats) -> State:
        """Mehrotra's predictor and corrector, then Gondzio's corrections while they lengthen a step."""
        task, state, mu = self.task, self.state, self.mu
        budget = state.lam * state.spare
        guess = self.to([-one for one in self.products], -budget)
        a = np.minimum(*_lengths(task, state, guess))
        left = _products(task, _moved(task, state, guess, a, a))
        aim = np.minimum(np.maximum((left / gap) ** 3, 1e-4), 0.5) * mu
        targets = []
        for one, by, part, a_, mu_ in zip(
            self.products, guess.points, task.split(aim), task.split(a), task.split(mu), strict=True
        ):
            bend = by.K * by.S
            bend *= (a_ * a_)[:, None, None]
            most = 3 * mu_[:, None, None]
            np.clip(bend, -most, most, out=bend)
            targets.append(part[:, None, None] - one - bend)
        step, a = self._corrected(targets, aim - budget - a * a * guess.lam * guess.spare, aim)
        blocked = a < BLOCKED
        if blocked.any():
            aim = np.where(blocked, 0.9 * mu, aim)
            centred = [
                part[:, None, None] - one for one, part in zip(self.products, task.split(aim), strict=True)
            ]
            other, b = self._corrected(centred, aim - budget, aim)
            step = _chosen(task, blocked & (b > a), other, step)
        return step

    def _corrected(self, targets: list[Floats], spare_target: Floats, aim: Floats) -> tuple[State, Floats]:
        """A step, and corrections: products that a longer one would send astray are pulled back."""
        task, state = self.task, self.state
        step = self.to(targets, spare_target)
        a = np.minimum(*_lengths(task, state, step))
        for _ in range(CORRECTIONS):
            if (a > 0.9).all():
                break
            wish = np.minimum(1.0, 1.5 * a + 0.1)
            others = []
            for at, by, target, wish_, aim_ in zip(
                state.points, step.points, targets, task.split(wish), task.split(aim), strict=True
            ):
                ahead, goal = wish_[:, None, None], aim_[:, None, None]
                product = (at.K + ahead * by.K) * (at.S + ahead * by.S)
                others.append(
                    target + np.maximum(np.clip(product, 0.1 * goal, 10 * goal) - product, -10 * goal)
                )
            tried = self.to(others, spare_target)
            b = np.minimum(*_lengths(task, state, tried))
            better = b >= a + 0.01 * (wish - a)
            if not better.any():
                break
            step = _chosen(task, better, tried, step)
            a = np.where(better, b, a)
            targets = [
                np.where(pick[:, None, None], new, old)
                for pick, new, old in zip(task.split(better), others, targets, strict=True)
            ]
        return step, a


def _chosen(task: Task, pick: Floats, one: State, other: State) -> State:
    """Block by block of ``one`` where ``pick``, else of ``other``."""
    if pick.all():
        return one
    if not pick.any():
        return other
    points = []
    for p, a, b in zip(task.split(pick), one.points, other.points, strict=True):
        wide = p[:, None, None]
        points.append(
            Point(
                np.where(wide, a.K, b.K),
                np.where(wide, a.S, b.S),
                np.where(wide, a.theta, b.theta),
                np.where(p[:, None], a.nu, b.nu),
            )
        )
    return State(tuple(points), np.where(pick, one.lam, other.lam), np.where(pick, one.spare, other.spare))


def _proof(
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
            floor -= np.einsum("gz,gz->g", batch.kept, _real_columns(batch, kappa[:, 0]))
        floors.append(floor)
    found = task.meet(floors)
    return (found if task.budgets is None else found - state.lam * task.budgets), classifiers, ratios


def _feasible(task: Task, state: State) -> tuple[Floats, list[Floats]]:
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


def reach(task: Task, max_seconds: float = inf, start: State | None = None) -> Reached:
    """The optimum of every block, or of all that share a budget, to the tolerances asked for or until the time is up."""
    until = time.perf_counter() + max_seconds
    state = begin(task) if start is None else start
    found = Reached(
        [np.zeros_like(at.K) for at in state.points],
        np.full(len(state.lam), inf),
        [np.zeros_like(at.theta) for at in state.points],
        state.lam.copy(),
        np.full(len(state.lam), -inf),
    )
    alive = [np.arange(len(b.index)) for b in task.batches]
    known: list[Floats] | None = None
    marked, stuck = np.inf, np.zeros(len(state.lam))
    for step_number in range(MOST_STEPS):
        found.steps = step_number
        misses, posteriors = _missing(task, state)
        gap = _products(task, state)
        if len(gap) == len(found.lam) and gap.max() < marked / 4:
            marked = float(gap.max())
            found.passed.append(state)
        late = bool((stuck > 3).any()) or time.perf_counter() > until
        if (gap < 20 * task.tolerances).any() or step_number % 5 == 4 or late:
            bound, known, ratios = _proof(task, state, posteriors, known)
            found.better_bound(task, alive, bound, ratios, state.lam)
            off = -task.least([-np.abs(one.rows).max(1) for one in misses])
            if (off < KEPT).any() or late:
                value, channels = _feasible(task, state)
                found.better_channel(task, alive, np.where((off < KEPT) | late, value, inf), channels)
            where = np.concatenate(alive)
            left = ~(found.gap()[where] <= task.tolerances)
            if not left.any() or late:
                break
            if not task.shared and left.sum() <= 0.8 * len(left):
                task, state, alive, known, misses = _fewer(task, state, alive, known, misses, left)
                gap, stuck = gap[left], stuck[left]
        mu = gap / _size(task)
        try:
            with np.errstate(all="ignore"):  # where digits end, the step is thrown away
                newton = _Newton(task, state, misses, mu)
                step = newton.direction(gap)
                primal, dual = (REACH * a for a in _lengths(task, state, step))
                primal, dual = np.minimum(primal, 2 * dual), np.minimum(dual, 2 * primal)
        except np.linalg.LinAlgError:  # the end of double precision: what is certified so far stays
            primal = dual = np.full(len(state.lam), np.nan)
        good = np.isfinite(primal) & np.isfinite(dual)
        if not good.all():
            if task.shared or not good.any():
                stuck[:] = MOST_STEPS
                continue
            task, state, alive, known, misses = _fewer(task, state, alive, known, misses, good)
            stuck = stuck[good]
            continue
        stuck = np.where(primal < 1e-3, stuck + 1, 0)
        state = _moved(task, state, step, primal, dual)
    return found


def _size(task: Task) -> Floats:
    """What complementarity is divided by to be that of one entry."""
    size = task.meet([b.share * b.outputs for b in task.batches])
    return size if task.budgets is None else size + 1.0


def _fewer(
    task: Task,
    state: State,
    alive: list[Ints],
    known: list[Floats] | None,
    misses: list[Misses],
    keep: Floats,
) -> tuple[Task, State, list[Ints], list[Floats] | None, list[Misses]]:
    """The blocks of a single batch that ``keep`` marks."""
    at = np.flatnonzero(keep)
    task = replace(
        task,
        batches=(task.batches[0].only(at),),
        budgets=None if task.budgets is None else task.budgets[at],
        multipliers=None if task.multipliers is None else task.multipliers[at],
        tolerances=task.tolerances[at],
    )
    state = State((state.points[0].only(at),), state.lam[at], state.spare[at])
    one = misses[0]
    kept = Misses(one.rows[at], one.columns[at], one.theta[at], one.J[at], one.p[at])
    return task, state, [alive[0][at]], None if known is None else [known[0][at]], [kept]
