"""PrivCheck: one channel between clusters for everybody, least leaking while each group's distortion stays within the budget.

    min_W I(Y; Ĉ)   s.t.  Σ_c p(c|g) Σ_ĉ W(ĉ|c) d_g(c, ĉ) ≤ Δ for every group g,  rows of W are laws.

It is blind to the group: the same W for all, which is what HyObscure's own channels, one for each group, are compared with.

*Method.* With A(y, ĉ) = ln p(y|ĉ)/p(y) the gradient of I over p(c) is Σ_y p(y|c) A(y, ĉ), and I is 1-smooth relative to
Σ_c p(c) KL. So W ← W exp(−η(gradient + Σ_g λ_g p(c|g)/p(c) d_g)), rows normalised, descends for η = 1; the multipliers λ ≥ 0 are
those of the exact projection on the budgets, a smooth convex problem in as many unknowns as groups, by Newton's method.
Steps are accelerated with an adaptive gain and a restart whenever I rises (Hanzely, Richtárik, Xiao 2021).

*Certificate.* For any A with Σ_y p(y) exp A(y, ĉ) ≤ 1 for every ĉ, and any λ ≥ 0,

    I ≥ Σ_c p(c) min_ĉ [ Σ_y p(y|c) A(y, ĉ) + Σ_g λ_g p(c|g)/p(c) d_g(c, ĉ) ] − Δ Σ_g λ_g

for every W within the budgets (Gibbs' inequality, then weak duality). A is the posterior of an iterate or an average of them,
column by column whichever leaves more room; the best λ for it is a linear program.

Everything here is in nats and computed from private rows.

Source: Yang et al. 2016 (the program); method and certificate derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ..errors import Refused, SpecificationError
from .privcheck_bound import FORBIDDEN, TINY, Program, Proof, proof_of, widest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 1e-12  # nats, of a bound
_EVERY = 25  # steps between two bounds
_LEAST_GAIN = 1e-3
_EDGE = 1e-7  # room in the budgets, relative, below which multipliers grow without end
_NEWTON = 100  # steps of a projection
_REVIVED = 1e-3  # mass with which outputs come back


@dataclass(frozen=True, eq=False)
class PrivCheck:
    """The least leaking channel for everybody. From private rows, and private itself.

    Attributes:
        channel: shape (clusters, clusters), rows are laws W(ĉ|c); a cluster without rows gets the law of all outputs.
        leak: I(Y; Ĉ), nats, of this channel.
        bound: no channel within the budgets leaks less, nats.
        distortions: shape (groups,), the expected distortion of each group, at most the budget; 0 for a group without rows.
        multipliers: shape (groups,), λ of the bound: nats per unit of distortion.
        log_ratio: shape (values, clusters), A of the bound.
        steps: gradient steps taken.
        seconds: of wall clock.
    """

    channel: Floats
    leak: float
    bound: float
    distortions: Floats
    multipliers: Floats
    log_ratio: Floats
    steps: int
    seconds: float

    @property
    def gap(self) -> float:
        """How much less another channel could leak at most, nats."""
        return max(0.0, self.leak - self.bound)


def privcheck(
    counts: Ints,
    cost: Floats,
    budget: float,
    tol: float = 5e-5,
    max_steps: int = 20_000,
    max_seconds: float = 60.0,
) -> PrivCheck:
    """The PrivCheck channel, to a certified gap of ``tol`` or as near as steps and seconds allow.

    Args:
        counts: rows by group, private value and cluster, shape (groups, values, clusters).
        cost: d_g(c, ĉ), shape (groups, clusters, clusters), ≥ 0; NaN where no donor is, which forbids that entry of the channel
            as soon as group g has rows in c.
        budget: Δ, in the unit of the cost.
        tol: nats.

    Raises:
        SpecificationError: shapes or numbers that fit no program.
        Refused: no channel keeps every group within the budget.

    >>> two = np.array([[[3, 0], [1, 2]]])
    >>> found = privcheck(two, np.array([[[0.0, 1.0], [1.0, 0.0]]]), 0.1)
    >>> round(found.leak, 3), found.gap < 1e-4, bool(found.distortions[0] <= 0.1)
    (0.165, True, True)
    """
    began = perf_counter()
    table, price = _checked(counts, cost, budget)
    total = float(table.sum())
    joint = table.sum(axis=0)
    rows, values = np.flatnonzero(joint.sum(axis=0)), np.flatnonzero(joint.sum(axis=1))
    groups = np.flatnonzero(table.sum(axis=(1, 2)))
    share = table[groups][:, :, rows].sum(axis=1) / total  # p(g, c)
    needed = share[:, :, None] > 0
    entries = price[np.ix_(groups, rows)]
    allowed = ~(needed & np.isnan(entries)).any(axis=0)
    if not allowed.any(axis=1).all():
        raise Refused(
            "privcheck: a cluster has no target with donors in every group; use fewer clusters or groups."
        )
    targets = np.flatnonzero(allowed.any(axis=0))
    allowed = allowed[:, targets]
    mass = share.sum(axis=0)
    weighted = share / share.sum(axis=1, keepdims=True) / mass
    weights = np.where(needed & allowed, np.nan_to_num(entries[:, :, targets]), 0.0) * weighted[:, :, None]
    kept = joint[np.ix_(values, rows)] / total
    program = Program(mass, kept / mass, kept.sum(axis=1), weights, allowed, float(budget))
    safe, least = widest(program)
    if least > budget * (1 + 1e-9) + 1e-12:
        raise Refused("privcheck: no channel keeps every group's distortion within the budget; raise it.")
    found, proof, steps = _descend(program, safe, least, tol, max_steps, began + max_seconds)
    channel = np.zeros(price.shape[1:])
    channel[np.ix_(rows, targets)] = found
    missing = np.setdiff1d(np.arange(len(channel)), rows)
    channel[missing] = mass @ channel[rows]
    distortions, multipliers = np.zeros(len(table)), np.zeros(len(table))
    distortions[groups], multipliers[groups] = program.spent(found), proof.multipliers
    log_ratio = np.zeros((len(joint), len(channel)))
    log_ratio[np.ix_(values, targets)] = proof.log_ratio
    leak = program.leak(found)
    return PrivCheck(
        channel,
        leak,
        min(leak, max(0.0, proof.bound - _ROUNDING)),
        distortions,
        multipliers,
        log_ratio,
        steps,
        perf_counter() - began,
    )


# The descent


def _descend(
    program: Program, safe: Floats, least: float, tol: float, max_steps: int, until: float
) -> tuple[Floats, Proof, int]:
    even = np.where(program.allowed, 1.0, 0.0)
    even /= even.sum(axis=1, keepdims=True)
    room = max(float(program.spent(even).max()) - least, 1e-12)
    inside = max(program.budget, least + _EDGE * room)
    x, near = _projected(program, np.log(np.maximum(even, TINY)), inside, np.zeros(len(program.cost)))
    z, theta, gain = x, 1.0, 1.0
    best, value = _within(program, x, safe), program.leak(x)
    found = program.leak(best)
    proof = Proof(np.zeros((len(program.prior), x.shape[1])), np.zeros(len(near)), 0.0)
    weight, kept, step = 0.0, proof.log_ratio, 0
    while found - proof.bound > tol and step < max_steps and perf_counter() < until:
        step += 1
        y = (1 - theta) * x + theta * z
        log_ratio, base = program.log_ratio(y), program.leak(y)
        slope = np.where(program.allowed, program.given.T @ log_ratio, 0.0)
        while True:
            logs = np.log(np.maximum(z, TINY)) - slope / (gain * theta)
            ahead, dual = _projected(program, logs, inside, near / (gain * theta))
            trial = (1 - theta) * x + theta * ahead
            moved = float(program.mass @ (slope * (trial - y)).sum(axis=1))
            allowance = gain * theta**2 * _divergence(program, ahead, z)
            reached = program.leak(trial)
            if reached <= base + moved + allowance + 1e-14 or gain > 1e6:
                break
            gain *= 2
        near = dual * gain * theta
        if reached > value + 1e-15 and theta < 1:  # momentum has overshot
            z, theta, gain, weight = x, 1.0, max(gain, 1.0), 0.0
            continue
        x, z, value = trial, ahead, reached
        weight += 1 / theta
        kept = log_ratio if weight == 1 / theta else kept + (log_ratio - kept) / (theta * weight)
        if step % _EVERY == 0 or step in (1, 5, 12):
            candidates = [program.log_ratio(x), kept, proof.log_ratio]
            proof, wanted = proof_of(program, candidates, near, proof, x)
            feasible = _within(program, x, safe)
            if (leak := program.leak(feasible)) < found:
                best, found = feasible, leak
            light = (program.mass @ x) < _REVIVED
            if (wanted[:, light] > 0).any():
                share = np.where(light, wanted, 0.0) / program.mass[:, None]
                share *= _REVIVED / max(1.0, float(share.sum(axis=1).max()))
                mixed = x * (1 - share.sum(axis=1, keepdims=True)) + share
                x, _ = _projected(program, np.log(np.maximum(mixed, TINY)), inside, np.zeros(len(near)))
                z, theta, gain, value, weight = x, 1.0, 1.0, program.leak(x), 0.0
                continue
        slower = max(gain / 1.3, _LEAST_GAIN)
        ratio = gain * theta**2 / slower
        theta = (np.sqrt(ratio * ratio + 4 * ratio) - ratio) / 2
        gain = slower
    return best, proof, step


def _divergence(program: Program, a: Floats, b: Floats) -> float:
    """Σ_c p(c) KL(a_c ‖ b_c)."""
    terms = a * (np.log(np.maximum(a, TINY)) - np.log(np.maximum(b, TINY)))
    return max(0.0, float(program.mass @ terms.sum(axis=1)))


def _projected(program: Program, logs: Floats, budget: float, start: Floats) -> tuple[Floats, Floats]:
    """The laws nearest to exp(logs) within the budgets, and their multipliers μ ≥ 0: rows ∝ exp(logs − Σ_g μ_g cost_g).

    μ minimises the convex Σ_c p(c) ln Σ_ĉ exp(logs − Σ_g μ_g cost_g) + budget Σ_g μ_g: Newton on the multipliers that are not
    held at 0, damped until it descends (costs of groups may be alike, and the Hessian then singular).
    """
    logs = np.where(program.allowed, logs, FORBIDDEN)

    def at(mu: Floats) -> tuple[float, Floats]:
        shifted = logs - np.einsum("g,gcz->cz", mu, program.cost)
        top = shifted.max(axis=1, keepdims=True)
        law = np.exp(shifted - top)
        sums = law.sum(axis=1, keepdims=True)
        worth = float(program.mass @ (top + np.log(sums))[:, 0]) + budget * float(mu.sum())
        return worth, law / sums

    mu = start.copy()
    worth, law = at(mu)
    damping = 1e-12
    for _ in range(_NEWTON):
        slope = budget - program.spent(law)
        free = (mu > 0) | (slope < 0)
        if np.abs(np.where(free, slope, 0.0)).max() <= 1e-11 * max(1.0, budget):
            break
        cost = program.cost[free]
        centred = cost - np.einsum("gcz,cz->gc", cost, law)[:, :, None]
        bend = np.einsum("c,gcz,hcz,cz->gh", program.mass, centred, centred, law, optimize=True)
        scale = max(float(np.trace(bend)), TINY)
        while damping < 1e12:
            move = np.zeros(len(mu))
            move[free] = -np.linalg.solve(bend + damping * scale * np.eye(len(bend)), slope[free])
            tried = np.maximum(mu + move, 0.0)
            fall = float(slope @ (tried - mu))
            worth_there, law_there = at(tried)
            if fall <= 0 and worth_there <= worth + 0.1 * fall:
                break
            damping *= 10
        else:  # no step is long enough to be seen
            break
        mu, worth, law = tried, worth_there, law_there
        damping = max(damping / 100, 1e-12)
    return law, mu


def _within(program: Program, channel: Floats, safe: Floats) -> Floats:
    """The channel moved towards ``safe``, which is within the budgets, only as far as it takes to be within them too."""
    over, under = program.spent(channel) - program.budget, program.budget - program.spent(safe)
    if (over <= 0).all():
        return channel
    part = np.divide(over, over + under, out=np.ones_like(over), where=over + under > 0)
    share = min(1.0, float(np.where(over > 0, part, 0.0).max()) * (1 + 1e-9) + 1e-15)
    return np.asarray((1 - share) * channel + share * safe)


def _checked(counts: Ints, cost: Floats, budget: float) -> tuple[Ints, Floats]:
    table, price = np.asarray(counts), np.asarray(cost, dtype=np.float64)
    if (
        table.ndim != 3
        or table.dtype.kind not in "iu"
        or not table.size
        or table.min() < 0
        or not table.any()
    ):
        raise SpecificationError(
            "privcheck.counts: whole numbers of shape (groups, values, clusters), not all of them 0."
        )
    if price.shape != (table.shape[0], table.shape[2], table.shape[2]):
        raise SpecificationError(
            "privcheck.cost: shape (groups, clusters, clusters), with the groups and clusters of the counts."
        )
    if (price < 0).any() or np.isinf(price).any():
        raise SpecificationError("privcheck.cost: finite numbers of 0 or more, NaN where there is no donor.")
    if not (np.isfinite(budget) and budget >= 0):
        raise SpecificationError("privcheck.budget: a finite number of 0 or more.")
    return table.astype(np.int64), price
