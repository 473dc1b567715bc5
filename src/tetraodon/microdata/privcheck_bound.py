"""The PrivCheck program without its empty parts, and lower bounds on its optimum. Nats; see ``privcheck``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import Refused

Floats = NDArray[np.float64]

TINY = 1e-300
FORBIDDEN = -1e30
_PRICING = 60  # steps in which an output is priced
_HEAVY = 1e-4  # mass from which an output's posterior is trusted


@dataclass(frozen=True, eq=False)
class Program:
    """What is left without empty clusters, values and groups.

    Attributes:
        mass: p(c), shape (rows,).
        given: p(y|c), shape (values, rows).
        prior: p(y).
        cost: p(c|g)/p(c) d_g(c, ĉ), shape (groups, rows, targets), 0 where forbidden.
        allowed: shape (rows, targets).
        budget: Δ.
    """

    mass: Floats
    given: Floats
    prior: Floats
    cost: Floats
    allowed: NDArray[np.bool_]
    budget: float

    def spent(self, channel: Floats) -> Floats:
        return np.asarray(np.einsum("c,gcz,cz->g", self.mass, self.cost, channel))

    def log_ratio(self, channel: Floats) -> Floats:
        """ln p(y|ĉ)/p(y), each column normalised so that Σ_y p(y) exp of it is 1."""
        joint = np.maximum(self.given @ (self.mass[:, None] * channel), TINY)
        return np.asarray(np.log(joint / (joint.sum(axis=0) * self.prior[:, None])))

    def leak(self, channel: Floats) -> float:
        joint = self.given @ (self.mass[:, None] * channel)
        terms = joint * np.log(np.maximum(joint, TINY) / np.maximum(joint.sum(axis=0), TINY))
        return max(0.0, float(terms.sum() - (joint.sum(axis=1) * np.log(self.prior)).sum()))

    def slope(self, log_ratio: Floats) -> Floats:
        return np.where(self.allowed, self.given.T @ log_ratio, -FORBIDDEN)


@dataclass(frozen=True, eq=False)
class Proof:
    log_ratio: Floats
    multipliers: Floats
    bound: float


def proof_of(
    program: Program, candidates: list[Floats], near: Floats, best: Proof, channel: Floats
) -> tuple[Proof, Floats]:
    """The best bound that these log ratios give, and outputs that should get more of the mass, shape (rows, targets).

    Args:
        candidates: log ratios, those of ``channel`` first.
        near: a first guess of the multipliers.
    """
    slopes = [program.slope(a) for a in candidates]
    priced = np.einsum("g,gcz->cz", near, program.cost)
    # A column is worth what it leaves above the least of each row: take from each candidate the columns where that is most.
    # The iterate's posterior says what the least is, but not of outputs without mass, where it is stale.
    heavy = program.mass @ channel >= min(_HEAVY, 0.5 / channel.shape[1])
    least = (slopes[0] + priced)[:, heavy].min(axis=1)
    fresh, worth, mix = _repriced(program, channel, priced - least[:, None])
    candidates, slopes = [*candidates, fresh], [*slopes, program.slope(fresh)]
    room = np.stack([(s + priced - least[:, None]).min(axis=0) for s in slopes])
    pick = room.argmax(axis=0)
    log_ratio = np.choose(pick[None, :], candidates)
    slope = np.choose(pick[None, :], slopes)
    for tried in (_multipliers(program, slope), near):
        bound = _bound(program, slope, tried)
        if bound > best.bound:
            best = Proof(log_ratio, tried, bound)
    return best, np.where(worth < 0, mix, 0.0)


def _repriced(program: Program, channel: Floats, charge: Floats) -> tuple[Floats, Floats, Floats]:
    """Each output priced afresh: min over laws v on rows of KL(Σ_c v_c p(y|c) ‖ p(y)) + Σ_c v_c charge(c, ĉ).

    An output that has lost its mass on the way keeps a stale posterior; below 0 here means that it should come back, and the
    optimum's log ratio is the best that a bound can use. Returns log ratios, prices and the v, shapes (values, targets),
    (targets,) and (rows, targets).
    """
    paid = np.where(program.allowed, charge, -FORBIDDEN)
    mix = program.mass[:, None] * channel
    some = mix.sum(axis=0) > TINY
    mix = np.where(some, mix / np.where(some, mix.sum(axis=0), 1.0), 0.0)
    mix = 0.5 * mix + np.where(program.allowed, 1.0, 0.0) / program.allowed.sum(axis=0) * np.where(
        some, 0.5, 1.0
    )
    for _ in range(_PRICING):
        log_ratio = np.log(np.maximum(program.given @ mix, TINY) / program.prior[:, None])
        slope = program.given.T @ log_ratio + paid
        mix = mix * np.exp(-(slope - slope.min(axis=0)))
        mix /= mix.sum(axis=0)
    log_ratio = np.log(np.maximum(program.given @ mix, TINY) / program.prior[:, None])
    slope = program.given.T @ log_ratio + np.where(program.allowed, charge, 0.0)
    return log_ratio, (mix * slope).sum(axis=0), mix


def _bound(program: Program, slope: Floats, multipliers: Floats) -> float:
    priced = slope + np.einsum("g,gcz->cz", multipliers, program.cost)
    return float(program.mass @ priced.min(axis=1) - program.budget * multipliers.sum())


def _multipliers(program: Program, slope: Floats) -> Floats:
    """The best λ ≥ 0 for one A: max Σ_c p(c) u_c − Δ Σ λ with u_c ≤ slope + Σ_g λ_g cost_g."""
    from scipy import sparse
    from scipy.optimize import linprog

    G, C, _ = program.cost.shape
    at, target = np.nonzero(program.allowed)
    of_rows = sparse.coo_array((np.ones(len(at)), (np.arange(len(at)), at)), shape=(len(at), C))
    limits = sparse.hstack([of_rows, sparse.csr_array(-program.cost[:, at, target].T)], format="csr")
    worth = np.concatenate([-program.mass, np.full(G, program.budget)])
    found = linprog(
        worth, limits, slope[at, target], bounds=[(None, None)] * C + [(0, None)] * G, method="highs"
    )
    return np.zeros(G) if found.x is None else np.maximum(np.asarray(found.x[C:]), 0.0)


def widest(program: Program) -> tuple[Floats, float]:
    """The channel whose most distorted group is distorted least, and that distortion."""
    from scipy import sparse
    from scipy.optimize import linprog

    G, C, Z = program.cost.shape
    at, target = np.nonzero(program.allowed)
    size = len(at)
    spent = program.mass[at] * program.cost[:, at, target]
    limits = np.concatenate([spent, -np.ones((G, 1))], axis=1)
    sums = sparse.coo_array((np.ones(size), (at, np.arange(size))), shape=(C, size + 1)).tocsr()
    found = linprog(
        np.append(np.zeros(size), 1.0),
        limits,
        np.zeros(G),
        sums,
        np.ones(C),
        bounds=(0, None),
        method="highs",
    )
    if found.x is None:
        raise Refused("privcheck: HiGHS found no channel of least distortion.")
    channel = np.zeros((C, Z))
    channel[at, target] = np.maximum(found.x[:size], 0.0)
    channel /= channel.sum(axis=1, keepdims=True)
    return channel, float(program.spent(channel).max())
