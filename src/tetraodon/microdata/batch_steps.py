"""Steps of many blocks at a time from where their search stands: what is missing, how far a step may go, Newton's directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..channels.lower_bound import Floats
from .batch_interior import BLOCKED, CORRECTIONS, Misses, Move, Point, factorise, finished, room
from .batch_rows import WIDE, Rows
from .batch_task import State, Task
from .blocks import Bools

SHORT = 0.9  # of the length that trials promised
GAIN = 0.01  # of what a correction was to lengthen a step by, at least


def missing(task: Task, state: State) -> tuple[list[Misses], list[Floats]]:
    """What is missing at the points, and the posteriors' log ratios."""
    misses, ratios = [], []
    for batch, at in zip(task.batches, state.points, strict=True):
        J, p, R = batch.posterior(at.K)
        columns = batch.kept - np.einsum("gw,gwz->gz", batch.mass, at.K) if task.invariant else p
        rows = np.where(batch.mass > 0, 1.0 - at.K.sum(2), 0.0)
        misses.append(Misses(rows, batch.real(columns), R - at.theta, J, p))
        ratios.append(R)
    return misses, ratios


def products(task: Task, state: State) -> Floats:
    """Complementarity, in nats: Σ p K S, and λ times what is left of the budget."""
    each = [
        np.einsum("gw,gw->g", b.mass, np.einsum("gwz,gwz->gw", at.K, at.S))
        for b, at in zip(task.batches, state.points, strict=True)
    ]
    found = task.meet(each)
    return found if task.budgets is None else found + state.lam * state.spare


def lengths(task: Task, state: State, step: State) -> tuple[Floats, Floats]:
    """How far channels and multipliers may go before something reaches 0 (at most 1), (blocks,)."""
    K = [by.K / at.K for at, by in zip(state.points, step.points, strict=True)]
    S = [by.S / at.S for at, by in zip(state.points, step.points, strict=True)]
    return _lengths(task, state, Trial([], K, S, step.lam, step.spare))


def _lengths(task: Task, state: State, step: Trial) -> tuple[Floats, Floats]:
    primal = task.least([room(one) for one in step.K])
    dual = task.least([room(one) for one in step.S])
    if task.budgets is not None:
        primal = np.minimum(primal, -1.0 / np.minimum(step.spare / state.spare, -1e-9))
        dual = np.minimum(dual, -1.0 / np.minimum(step.lam / state.lam, -1e-9))
    return np.minimum(primal, 1.0), np.minimum(dual, 1.0)


def moved(task: Task, state: State, step: State, primal: Floats, dual: Floats) -> State:
    """The state after a step of these lengths."""
    points = [
        at.moved(by, a, b)
        for at, by, a, b in zip(state.points, step.points, task.split(primal), task.split(dual), strict=True)
    ]
    return State(tuple(points), state.lam + dual * step.lam, state.spare + primal * step.spare)


@dataclass(frozen=True, eq=False)
class Trial:
    """A step as far as its length depends on it: changes of channel and slack as shares of what they change, by batch."""

    moves: list[Move]
    K: list[Floats]
    S: list[Floats]
    lam: Floats
    spare: Floats


class Newton:
    """Steps from one state: factors are made once, targets come as they please."""

    def __init__(self, task: Task, state: State, misses: list[Misses], gap: Floats) -> None:
        self.task, self.state, self.misses, self.gap = task, state, misses, gap
        self.is_exact = (
            task.invariant
        )  # slacks of trials by their definition, not by what a Newton step makes of them
        entries = task.meet([b.share * b.outputs for b in task.batches])
        self.mu = gap / (entries if task.budgets is None else entries + 1.0)
        self.factors = [
            Rows.of(b, at, miss)
            if b.P.shape[2] <= WIDE * b.P.shape[1] and not task.invariant
            else factorise(b, at, miss, task.invariant)
            for b, at, miss in zip(task.batches, state.points, misses, strict=True)
        ]
        self.products = [at.K * at.S for at in state.points]
        self.fall = task.meet([f.fall for f in self.factors]) + state.spare / state.lam
        self.miss = np.zeros_like(state.lam)
        if task.budgets is not None:
            spent = task.meet([b.spent(at.K) for b, at in zip(task.batches, state.points, strict=True)])
            self.miss = task.budgets - spent - state.spare

    def direction(self) -> State:
        """Mehrotra's predictor and corrector, then Gondzio's corrections while they lengthen a step."""
        task, state, mu = self.task, self.state, self.mu
        budget = state.lam * state.spare
        guess = self._to([-one for one in self.products], -budget)
        a = np.minimum(*_lengths(task, state, guess))
        left = task.meet(
            [
                np.einsum("gw,gwz->g", b.mass, one)
                for b, one in zip(task.batches, self._ahead(guess, a), strict=True)
            ]
        )
        if task.budgets is not None:
            left = left + (state.lam + a * guess.lam) * (state.spare + a * guess.spare)
        aim = np.minimum(np.maximum((left / self.gap) ** 3, 1e-4), 0.5) * mu
        targets = []
        for one, K, S, part, a_, mu_ in zip(
            self.products, guess.K, guess.S, task.split(aim), task.split(a), task.split(mu), strict=True
        ):
            bend = one * K
            bend *= S
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
            a = np.where(blocked, np.maximum(a, b), a)
        found = State(tuple(self._finished(step.moves, step.lam)), step.lam, step.spare)
        if not self.is_exact and (np.minimum(*lengths(task, state, found)) < SHORT * a).any():
            self.is_exact = True  # digits end: the system is not solved as well as trials take for granted
            return self.direction()
        return found

    def _corrected(self, targets: list[Floats], spare_target: Floats, aim: Floats) -> tuple[Trial, Floats]:
        """A step, and corrections: products that a longer one would send astray are pulled back."""
        task, state = self.task, self.state
        step = self._to(targets, spare_target)
        a = np.minimum(*_lengths(task, state, step))
        for _ in range(CORRECTIONS):
            if (a > 0.9).all():
                break
            wish = np.minimum(1.0, 1.5 * a + 0.1)
            others = []
            for product, target, aim_ in zip(self._ahead(step, wish), targets, task.split(aim), strict=True):
                goal = aim_[:, None, None]
                change = np.clip(product, 0.1 * goal, 10 * goal)
                change -= product
                np.maximum(change, -10 * goal, out=change)
                change += target
                others.append(change)
            tried = self._to(others, spare_target)
            b = np.minimum(*_lengths(task, state, tried))
            better = b >= a + GAIN * (wish - a)
            if not better.any():
                break
            step = _chosen(task, better, tried, step)
            a = np.where(better, b, a)
            targets = [
                np.where(pick[:, None, None], new, old)
                for pick, new, old in zip(task.split(better), others, targets, strict=True)
            ]
        return step, a

    def _ahead(self, step: Trial, length: Floats) -> list[Floats]:
        """K·S after a step of that length."""
        found = []
        for one, K, S, a in zip(self.products, step.K, step.S, self.task.split(length), strict=True):
            ahead = a[:, None, None]
            product = 1.0 + ahead * K
            product *= 1.0 + ahead * S
            product *= one
            found.append(product)
        return found

    def _to(self, targets: list[Floats], spare_target: Floats) -> Trial:
        """The step that (to first order) ends all misses and changes K·S and λ·spare by the targets."""
        moves, lam, spare = self._solved(self.misses, True, self.miss, targets, spare_target)
        if self.task.invariant:
            moves, lam, spare = self._refined(moves, lam, spare, targets)
        K = [move.K / at.K for move, at in zip(moves, self.state.points, strict=True)]
        if self.is_exact:
            points = zip(self._finished(moves, lam), self.state.points, strict=True)
            S = [by.S / at.S for by, at in points]
            return Trial(moves, K, S, lam, spare)
        S = []
        for batch, target, product, share in zip(self.task.batches, targets, self.products, K, strict=True):
            other = target / product
            other -= share
            S.append(batch.masked(other))
        return Trial(moves, K, S, lam, spare)

    def _finished(self, moves: list[Move], lam: Floats) -> list[Point]:
        return [
            finished(b, miss, move, part)
            for b, miss, move, part in zip(
                self.task.batches, self.misses, moves, self.task.split(lam), strict=True
            )
        ]

    def _solved(
        self,
        misses: list[Misses],
        is_first: bool,
        budget_miss: Floats,
        targets: list[Floats],
        spare_target: Floats,
    ) -> tuple[list[Move], Floats, Floats]:
        """Moves, and the changes of λ and of what is left of the budget; ``is_first``: the classifiers miss what they do at the state."""
        task, state = self.task, self.state
        halves = [
            f.half(b, at, miss, is_first, target)
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
        moves = [
            f.whole(b, miss, one, part)
            for b, f, miss, one, part in zip(
                task.batches, self.factors, misses, halves, task.split(lam), strict=True
            )
        ]
        return moves, lam, spare

    def _refined(
        self, moves: list[Move], lam: Floats, spare: Floats, targets: list[Floats]
    ) -> tuple[list[Move], Floats, Floats]:
        """The step and what it still misses: prices of rows and of columns nearly cancel where channels nearly are the identity."""
        task, state = self.task, self.state
        misses, left, spent = [], [], []
        for b, at, move, part, miss, target in zip(
            task.batches, state.points, moves, task.split(lam), self.misses, targets, strict=True
        ):
            rows = np.where(b.mass > 0, miss.rows - move.K.sum(2), 0.0)
            columns = b.real(miss.columns - np.einsum("gw,gwz->gz", b.mass, move.K))
            misses.append(Misses(rows, columns, miss.theta, miss.J, miss.p))
            left.append(b.masked(target - at.S * move.K - at.K * finished(b, miss, move, part).S))
            spent.append(b.spent(move.K))
        off = self.miss - task.meet(spent) - spare
        more, more_lam, more_spare = self._solved(misses, False, off, left, np.zeros_like(off))
        return [a + b for a, b in zip(moves, more, strict=True)], lam + more_lam, spare + more_spare


def _chosen(task: Task, pick: Bools, one: Trial, other: Trial) -> Trial:
    """Block by block of ``one`` where ``pick``, else of ``other``."""
    if pick.all():
        return one
    if not pick.any():
        return other
    picks = task.split(pick)
    moves = [a.where(p, b) for p, a, b in zip(picks, one.moves, other.moves, strict=True)]
    K = [np.where(p[:, None, None], a, b) for p, a, b in zip(picks, one.K, other.K, strict=True)]
    S = [np.where(p[:, None, None], a, b) for p, a, b in zip(picks, one.S, other.S, strict=True)]
    return Trial(moves, K, S, np.where(pick, one.lam, other.lam), np.where(pick, one.spare, other.spare))
