"""The value itself is the secret: the least leaking channel at a distortion (Blahut 1972, Arimoto 1972), and what it promises.

For a multiplier β the channel that minimises I(W; Z) + β E d is

    K[w, z] = r(z) e^{−β d(w, z)} / N_w,   N_w = Σ_z r(z) e^{−β d(w, z)},

with r the law of outputs that minimises −Σ_w π_w ln N_w. That is the likeliest mixture of the columns of e^{−βd}: Blahut's and
Arimoto's alternation is the iterative Bayesian update with the two sides exchanged, and ``likelihood`` solves both.

**What it promises.** For any prior and any r, ln K[w, z] − ln K[w', z] = β (d(w', z) − d(w, z)) + ln N_{w'}/N_w, and both parts are at
most β max_z |d(w, z) − d(w', z)|, which is at most β d(w, w') for a metric: 2β·d-private. It is *elastic*: where little lies near a
value, N_w is small and its output spreads far; in crowds it stays near. Rows without mass follow the same formula.

**The bound.** With c_z = Σ_w π_w e^{−βd(w,z)}/N_w, q(w | z) = π_w e^{−βd}/(N_w max c) sums to at most 1 and certifies the channel
within ln max_z c nats.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from ..domain import Domain
from ..errors import SpecificationError
from ..exact import Number, positive
from ..metrics import Metric
from ..threads import one_thread
from .attainable import Unreachable, best_constant, checked, constant
from .bounds import Bounds, bounds_of, stretch
from .certificate import Certificate
from .channel import Asked, Channel
from .geometry import Floats, Geometry, distances, unit_of
from .likelihood import Likeliest, Rows, central, likeliest
from .lower_bound import LN2, Solved, information_bound
from .priors import prior_of, source_of
from .repair import repaired
from .table import Table

CENTRAL = 2048  # outputs up to which a factorised matrix is quicker than many updates
FAINT = 1e-12  # an output's share below which it is none
UPDATES = 20000


def blahut_arimoto(
    prior: object = "uniform",
    metric: Metric | Floats | None = None,
    *,
    domain: Domain,
    distortion: float | None = None,
    epsilon: Number | None = None,
    epsilon_per: Number | None = None,
    source: str = "private",
) -> Channel:
    """The channel that tells least about the value itself: at a distortion, or as elastic noise that keeps ε.

    State ``distortion``: the least leakage of any channel whose expected distance is at most that. Or ``epsilon`` and
    ``epsilon_per``: the optimum for β = ε/2 per length, which keeps ε for every such length between any two values (the module has
    the proof; the exact table is checked) and spreads more where a value is alone.

    Args:
        prior: "uniform", numbers in cell order, or a charged release of a histogram.
        metric: what distortion is: ``L2`` unless told otherwise, another metric, or, with ``distortion``, a table of losses.
        domain: of the values, and of the outputs.
        distortion: the most that the expected distance may be.
        epsilon: exact, above 0.
        epsilon_per: a length ("km", "100 m", or a number in the domain's unit).
        source: where the prior comes from: "public", "released", "disjoint" or "private" (then a release has no proved ε).

    Returns:
        A channel with a certificate of kind "information" (the joint law is the prior on the diagonal).

    Raises:
        SpecificationError: neither or both of the two; a prior or losses of another shape.
        Unreachable: a distortion below the least attainable.

    >>> from ..attributes import Integer
    >>> line = Domain(x=Integer(0, 4))
    >>> channel = blahut_arimoto([1, 1, 6, 1, 1], domain=line, epsilon=1, epsilon_per=1, source="public")
    >>> channel.epsilon_per(1) <= 1, channel.certificate.gap < 1e-6
    (True, True)
    """
    if (distortion is None) == (epsilon is None) or (epsilon is None) != (epsilon_per is None):
        raise SpecificationError("blahut_arimoto: state distortion, or epsilon with epsilon_per.")
    law = prior_of(prior, domain)
    cost = distances(metric, domain)
    asked, bounds = None, None
    with one_thread():
        if distortion is not None:
            found = at_distortion(law, cost, distortion)
        else:
            assert epsilon is not None and epsilon_per is not None
            amount = positive(epsilon, "epsilon")
            if isinstance(metric, np.ndarray):
                raise SpecificationError("blahut_arimoto: epsilon_per speaks of distances; give a metric.")
            bounds = bounds_of(domain, amount, None, epsilon_per, metric)
            asked = Asked(amount, str(epsilon_per))
            rate = amount / stretch(epsilon_per, Geometry(domain).unit) / 2
            found = at_multiplier(law, cost, float(rate))
    none = np.zeros(0, dtype=np.int64)
    table = repaired(found.K, bounds or Bounds(none, none, np.zeros(0)), found.columns, domain.size)
    return Channel(
        domain, table, domain, "Blahut–Arimoto", asked, source_of(source, prior),
        _certificate(table, law, cost, found, distortion, Geometry(domain)),
        {"multiplier": found.multiplier, "unit": unit_of(metric, domain) or ""},
    )  # fmt: skip


def _certificate(
    table: Table, law: Floats, cost: Floats, found: Solved, distortion: float | None, place: Geometry
) -> Certificate:
    from ..leakage.measures import information

    joint = np.diag(law)
    budget = table.expected(law, cost, place) if distortion is None else distortion
    bound = information_bound(joint, cost, budget, found.log_ratio, found.multiplier)
    told = {
        "joint": joint,
        "cost": cost,
        "budget": np.asarray(budget),
        "multiplier": np.asarray(found.multiplier),
        "log_ratio": found.log_ratio,
    }
    return Certificate("information", float(information(table.push(joint))), max(bound, 0.0), "bits", told)


def promised(cost: ArrayLike, beta: float) -> Floats:
    """Most that |ln K[a, z]/K[b, z]| can be for the channel of a multiplier, whatever the prior: 2β max_z |d(a, z) − d(b, z)|.

    Args:
        cost: d, (rows, outputs).

    >>> promised([[0, 1, 2], [1, 0, 1], [2, 1, 0]], 0.5).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    d = np.asarray(cost, dtype=np.float64)
    found = np.stack([np.abs(d - row).max(1) for row in d])
    return 2 * beta * found


@dataclass(frozen=True, eq=False)
class _At:
    """The optimum for one multiplier: channel, its expected cost, classifier, steps."""

    beta: float
    K: Floats
    cost: float
    log_ratio: Floats
    steps: int


def at_multiplier(prior: ArrayLike, D: ArrayLike, beta: float, tol_bits: float = 1e-7) -> Solved:
    """The channel that minimises I(W; Z) + β E d, with the bound for its own expected cost.

    Args:
        prior: π_w, (rows,), divided by its sum; rows without mass follow the formula too.
        D: cost d(w, z), (rows, outputs), finite and ≥ 0.
        beta: β ≥ 0, in nats for each unit of cost.
        tol_bits: gap at which to stop.

    Raises:
        SpecificationError: shapes or numbers that fit no program.

    >>> d = abs(np.arange(3.0)[:, None] - np.arange(3.0))
    >>> found = at_multiplier([0.25, 0.5, 0.25], d, 2.0)
    >>> round(found.value, 4), bool(found.gap < 1e-7)
    (0.6422, True)
    """
    began = perf_counter()
    mass, cost = _checked(prior, D, 0.0)
    if not (np.isfinite(beta) and beta >= 0):
        raise SpecificationError("blahut_arimoto: a multiplier of at least 0.")
    at = _optimum(mass, cost, beta, tol_bits, None)
    return _told(mass, cost, at.cost, at.K, at.log_ratio, at.beta, at.steps, began)


def at_distortion(prior: ArrayLike, D: ArrayLike, L: float, tol_bits: float = 1e-6) -> Solved:
    """The channel of least I(W; Z) whose expected cost is at most L.

    β is found by a safeguarded secant; where the least leakage is linear in L, channels of two multipliers are mixed.

    Args:
        prior: π_w, (rows,), divided by its sum.
        D: cost d(w, z), (rows, outputs), finite and ≥ 0.
        L: the most that the expected cost may be.
        tol_bits: gap at which to stop.

    Raises:
        SpecificationError: shapes or numbers that fit no program.
        Unreachable: even the nearest output of every row costs more than L.

    >>> d = abs(np.arange(3.0)[:, None] - np.arange(3.0))
    >>> found = at_distortion([0.25, 0.5, 0.25], d, 0.2)
    >>> round(found.value, 4), bool(found.gap < 1e-6)
    (0.6349, True)
    """
    began = perf_counter()
    mass, cost = _checked(prior, D, L)
    least, (output, spent) = float(mass @ cost.min(1)), best_constant(mass, cost)
    if least > L:
        raise Unreachable(least, L)
    W, Z = cost.shape
    if spent <= L:
        zero = np.zeros((W, Z))
        return _told(mass, cost, L, constant(W, Z, output), zero, 0.0, 0, began)
    room = (spent - least) / 2
    far = _optimum(mass, cost, 0.5 / max(room, 1e-300), tol_bits / 4, None)
    low = high = far  # too dear, cheap enough
    steps = far.steps
    while low.cost <= L or high.cost > L:
        beta = far.beta * 4 if far.cost > L else far.beta / 4
        if far.cost > L:
            low = far
        else:
            high = far
        if beta * (far.cost - least) > 1e15 or beta * float(cost.max()) > 1e7:
            break
        far = _optimum(mass, cost, beta, tol_bits / 4, far)
        steps += far.steps
        low, high = (far, high) if far.cost > L else (low, far)
    for _ in range(60):
        if high.cost > L or low.cost <= L or high.beta <= low.beta * (1 + 1e-12):
            break
        # Both lie on one convex curve whose slopes are the multipliers: the mixture is this near to it.
        if (high.beta - low.beta) * min(low.cost - L, L - high.cost) <= tol_bits * LN2 / 2:
            break
        share = (low.cost - L) / (low.cost - high.cost)
        share = min(max(share, 0.05), 0.95)
        beta = float(np.exp((1 - share) * np.log(low.beta) + share * np.log(high.beta)))
        next_ = _optimum(mass, cost, beta, tol_bits / 4, low)
        steps += next_.steps
        low, high = (next_, high) if next_.cost > L else (low, next_)
    if high.cost > L:  # L is all but the least: every row its nearest output
        nearest = np.zeros((W, Z))
        nearest[np.arange(W), cost.argmin(1)] = 1.0
        return _told(mass, cost, L, nearest, high.log_ratio, high.beta, steps, began)
    share = 0.0 if low.cost <= L else (L * (1 - 1e-12) - high.cost) / (low.cost - high.cost)
    K = high.K + max(share, 0.0) * (low.K - high.K)
    several = [_told(mass, cost, L, K, at.log_ratio, at.beta, steps, began) for at in (low, high)]
    return max(several, key=lambda one: one.bound)


def _checked(prior: ArrayLike, D: ArrayLike, L: float) -> tuple[Floats, Floats]:
    joint, cost = checked(np.atleast_2d(np.asarray(prior, dtype=np.float64)), D, L, "blahut_arimoto")
    if len(joint) != 1:
        raise SpecificationError("blahut_arimoto: one mass for each row.")
    return joint[0], cost


def _optimum(mass: Floats, cost: Floats, beta: float, tol_bits: float, near: _At | None) -> _At:
    """The law of outputs for one multiplier, and the channel that it makes."""
    least = cost.min(1)
    shares = np.exp(-beta * (cost - least[:, None]))  # rows scaled: r(z) and c_z stay what they are
    columns = np.ascontiguousarray(shares.T)
    gap = tol_bits * LN2
    start = np.full(len(columns), 1 / len(columns))
    if len(columns) <= CENTRAL:
        found = central(columns, mass, gap)
        if found.gap <= gap:
            return _channel(mass, cost, shares, least, beta, found)
        start = 0.99 * found.law + 0.01 * start
    elif near is not None:
        start = 0.99 * (mass @ near.K) + 0.01 * start
    every = np.arange(len(columns))
    found = likeliest(Rows(columns, np.arange(len(mass)), every, len(mass)), mass, start, gap, UPDATES)
    return _channel(mass, cost, shares, least, beta, found)


def _channel(mass: Floats, cost: Floats, shares: Floats, least: Floats, beta: float, found: Likeliest) -> _At:
    r = np.where(found.law > FAINT, found.law, 0.0)
    held = np.flatnonzero(r)
    logs = np.log(r[held] / r.sum()) - beta * (cost[:, held] - least[:, None])
    top = logs.max(1)
    weights = np.exp(logs - top[:, None])
    norm = top + np.log(weights.sum(1))  # ln N, of rows scaled by their least cost
    K = np.zeros(cost.shape)
    K[:, held] = weights / weights.sum(1, keepdims=True)
    told = mass > 0
    most = float((shares[told].T @ (mass[told] * np.exp(-norm[told]))).max())
    ratio = -beta * (cost - least[:, None]) - norm[:, None] - np.log(most)
    return _At(beta, K, float(mass @ (K * cost).sum(1)), ratio, len(found.path))


def _told(
    mass: Floats, cost: Floats, L: float, K: Floats, ratio: Floats, beta: float, steps: int, began: float
) -> Solved:
    from ..leakage.measures import information

    held = np.flatnonzero(K.max(0) > 0)
    joint = np.diag(mass)
    bound = information_bound(joint, cost, L, ratio, beta)
    value = float(information(mass[:, None] * K[:, held]))
    return Solved(K[:, held], held, value, bound, beta, ratio, steps, perf_counter() - began)
