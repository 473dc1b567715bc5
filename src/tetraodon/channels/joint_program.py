"""Least leaking channels that also keep a promise for every pair: min I(X; Z) with E d ≤ L and K[w, z] ≤ e^{B[w,w']} K[w', z].

The distortion and the leakage speak of one prior; the pairs hold whatever the prior is. (Derived; the pairs are those of
geo-indistinguishability, Andrés et al. 2013, or of a Blowfish policy, He et al. 2014.)

**The bound.** Let q be any classifier (Σ_x q(x|z) ≤ 1), λ ≥ 0 and Y[p, z] ≥ 0 for each ordered pair p = (a, b). For every
channel of the program

    I(X; Z) ≥ Σ_{w,z} K[w, z] Σ_x P(x, w) ln q(x|z)/p(x)                                          (Gibbs)
            ≥ Σ_{w,z} K[w, z] (Σ_x P(x, w) ln q(x|z)/p(x) + λ π_w d(w, z)) − λ L                  (E d ≤ L, λ ≥ 0)
            ≥ Σ_{w,z} K[w, z] (… − (A'Y)[w, z]) − λ L                                             (A K ≥ 0, Y ≥ 0)
            ≥ Σ_w min_z [ Σ_x P(x, w) ln q(x|z)/p(x) + λ π_w d(w, z) − (A'Y)[w, z] ] − λ L,       (rows sum to 1)

(A K)[p, z] = e^{B/2} K[b, z] − e^{−B/2} K[a, z]; thus A'Y adds e^{B/2} Y[p, z] at row b and takes e^{−B/2} Y[p, z] from
row a. The interior point's own q, λ and Y make it tight, and anyone can evaluate it from a saved file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from ..errors import SpecificationError, Unsupported
from .attainable import Unreachable, best_constant, checked, constant
from .joint_interior import Found, Program, interior, twice
from .joint_pairs import Pairs, needed
from .lower_bound import LN2, MARGIN, UNIT, Floats, Ints, Problem, Solved, leaked, normalised

CLOSER = 2e-6  # relative: solved for tighter pairs, so that a repair of the last digits changes nothing
SAVED = 1e-7  # relative: the budget solved for lies this far below
MOST = 2**27  # numbers in all inverses together


@dataclass(frozen=True)
class Joint(Solved):
    """``Solved`` with what the bound needs beside: ordered pairs and their multipliers.

    Args:
        first, second: rows of each ordered pair.
        exponents: B of each: K[first, z] ≤ e^B K[second, z].
        multipliers: Y ≥ 0, (pairs, outputs), for rows of pairs scaled as e^{B/2} K[second] − e^{−B/2} K[first] ≥ 0.
    """

    first: Ints
    second: Ints
    exponents: Floats
    multipliers: Floats


def joint_bound(
    joint: ArrayLike,
    cost: ArrayLike,
    budget: float,
    log_ratio: ArrayLike,
    multiplier: float,
    first: Ints,
    second: Ints,
    exponents: ArrayLike,
    multipliers: ArrayLike,
) -> float:
    """Bits that every channel with E d ≤ ``budget`` that keeps the pairs leaks at least; the formula is the module's.

    Any classifier, λ ≥ 0 and Y ≥ 0 give a valid bound, if a poor one. A classifier that adds up to more than 1 is scaled
    down, and a margin for rounding is subtracted.

    Args:
        joint: P(secret, value), (secrets, rows), divided by its sum; rows may be empty.
        cost: d(w, z), (rows, outputs).
        log_ratio: ln q(x|z)/p(x), (secrets, outputs), natural logarithm.
        multiplier: λ, nats for each unit of cost.
        first, second, exponents, multipliers: as in ``Joint``.

    Raises:
        SpecificationError: a negative or undefined multiplier.

    >>> none = np.zeros(0, dtype=np.int64)
    >>> q = np.log([[2, 1e-9], [1e-9, 2]])
    >>> joint_bound(np.eye(2) / 2, 1 - np.eye(2), 0.0, q, 30.0, none, none, none, np.zeros((0, 2))) > 0.999
    True
    """
    P, D, R, Y, b = (
        np.asarray(a, dtype=np.float64) for a in (joint, cost, log_ratio, multipliers, exponents)
    )
    if not (multiplier >= 0 and (Y >= 0).all() and not np.isnan(R).any()):
        raise SpecificationError("joint_bound: multipliers of at least 0 and a classifier without NaN.")
    secrets = P.sum(1) > 0
    P, R = P[secrets] / P.sum(), R[secrets]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        R = R - np.maximum(np.log(P.sum(1) @ np.exp(R)), 0.0)
        total = P.T @ R + multiplier * P.sum(0)[:, None] * D
    largest = np.abs(total).max(initial=0.0)
    up, down = np.exp(b / 2)[:, None] * Y, np.exp(-b / 2)[:, None] * Y
    moved = np.zeros_like(total)
    np.add.at(moved, second, up)
    np.subtract.at(moved, first, down)
    value = float((total - moved).min(1).sum()) - multiplier * budget
    if not np.isfinite(value):
        return -np.inf
    size = sum(P.shape) * float(largest) + len(b) * float(up.max(initial=0.0)) + multiplier * abs(budget)
    return float(value - MARGIN - 4 * UNIT * (len(total) + 1) * size) / LN2


def solve(P: ArrayLike, D: ArrayLike, L: float, B: ArrayLike, tol_bits: float = 1e-5) -> Joint:
    """The least leaking channel of expected cost at most L whose rows keep every pair.

    Rows without mass are rows of the program like the others, bound by their pairs. Pairs of exponent 0 make their rows
    equal. The channel is solved for pairs tighter by a relative 2e-6 and a budget lower by 1e-7; the bound is for what
    was asked.

    Args:
        P: joint law P(x, w), (secrets, rows), finite and ≥ 0, divided by its sum.
        D: cost d(w, z), (rows, outputs), finite and ≥ 0.
        L: the most that the expected cost may be, in the unit of ``D``.
        B: (rows, rows), most that ln K[w, z]/K[w', z] may be, ≥ 0; infinite where nothing is asked.
        tol_bits: gap at which to stop; the solver also stops where double precision ends, near 1e-6 on small programs.

    Returns:
        ``Joint``: a channel for **all** rows and outputs, its leakage, and the bound with its multipliers.

    Raises:
        SpecificationError: shapes or numbers that fit no program.
        Unreachable: the pairs need more than L; names the least that they need.
        Unsupported: rows² · outputs above 2^27.

    >>> place = np.array([0.0, 1.0, 2.0])
    >>> d = abs(place[:, None] - place)
    >>> found = solve(np.diag([0.25, 0.5, 0.25]), d, 0.3, 2 * d)
    >>> bool(found.gap < 1e-5 and abs(np.log(found.K[0] / found.K[1])).max() <= 2)
    True
    """
    began = perf_counter()
    where = "least_leaking with epsilon"
    whole, D = checked(P, D, L, where)
    B = np.asarray(B, dtype=np.float64)
    if B.shape != (len(D), len(D)) or np.isnan(B).any() or (B < 0).any():
        raise SpecificationError(
            f"{where}: bounds: (rows, rows), at least 0, infinite where nothing is asked."
        )
    W, Z = D.shape
    if W * W * Z > MOST:
        raise Unsupported(f"{where}: rows² · outputs above 2^27; declare coarser cells or fewer outputs.")
    secrets = whole.sum(1) > 0
    classes, sizes = _classes(B)
    unit = float(D.max()) or 1.0
    merged = _Merged.of(whole[secrets], D / unit, B, classes, sizes)
    every = np.arange(Z, dtype=np.int64)
    output, spent = best_constant(whole.sum(0), D)
    if spent <= L:
        K = constant(W, Z, output)
        zero = np.zeros((len(whole), Z))
        none = np.zeros(0, dtype=np.int64)
        took = perf_counter() - began
        return Joint(K, every, 0.0, 0.0, 0.0, zero, 0, took, none, none, np.zeros(0), np.zeros((0, Z)))
    try:
        found = _optimised(merged, L / unit, tol_bits * LN2)
    except Unreachable as refused:
        raise Unreachable(refused.least * unit, L, "these pairs need") from None
    found = replace(found, lam=found.lam / unit)
    return _told(whole, D, L, merged, classes, found, perf_counter() - began)


@dataclass(frozen=True, eq=False)
class _Merged:
    """The program with rows that must be equal taken together."""

    joint: Floats
    cost: Floats
    costs: Floats  # of a row itself, whatever its mass
    pairs: Pairs

    @classmethod
    def of(cls, P: Floats, D: Floats, B: Floats, classes: Ints, sizes: Ints) -> _Merged:
        n = len(sizes)
        joint, cost, costs = np.zeros((len(P), n)), np.zeros((n, D.shape[1])), np.zeros((n, D.shape[1]))
        np.add.at(joint.T, classes, P.T)
        np.add.at(cost, classes, P.sum(0)[:, None] * D)
        np.add.at(costs, classes, D / sizes[classes][:, None])
        between = np.full((n, n), np.inf)
        np.minimum.at(between, (classes[:, None], classes[None, :]), B)
        np.fill_diagonal(between, 0.0)
        first, second = np.nonzero(needed(between))
        pairs = Pairs.of(first, second, between[first, second], CLOSER, n)
        return cls(joint, cost, costs, pairs)


def _classes(B: Floats) -> tuple[Ints, Ints]:
    """Rows that pairs of exponent 0 make equal, class of each row and size of each class; one way is enough, as rows sum to 1."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    equal = np.minimum(B, B.T) <= 0
    count, classes = connected_components(csr_array(equal.astype(np.int8)), directed=False)
    return classes.astype(np.int64), np.bincount(classes, minlength=count).astype(np.int64)


def _optimised(merged: _Merged, L: float, tolerance: float) -> Found:
    budget = L * (1 - SAVED)
    if len(merged.joint) > 1:
        program = Program(merged.joint, merged.cost, budget, L, merged.pairs)
        found = twice(program, _start(merged), tolerance)
        if found.K is not None and found.gap <= max(100 * tolerance, 1e-3):
            return found
    cheap = _cheapest(merged, budget)
    if cheap.K is not None and len(merged.joint) > 1 and budget <= cheap.value <= L:
        return replace(found, K=cheap.K, value=0.0)  # no room for an interior; its bound stays honest
    if cheap.K is None or cheap.value >= budget:
        least = cheap.value if cheap.K is not None else cheap.bound
        raise Unreachable(least, L, "these pairs need")
    if len(merged.joint) == 1:
        return Found(cheap.K, 0.0, 0.0, 0.0, np.zeros((1, merged.cost.shape[1])), cheap.y * 0, cheap.steps)
    second = interior(program, cheap.K, tolerance)
    if second.K is not None and (found.K is None or second.gap < found.gap):
        return second
    return found if found.K is not None else replace(found, K=cheap.K)


def _cheapest(merged: _Merged, budget: float) -> Found:
    """A channel well within the budget, or the cheapest of all where none is."""
    program = Program(np.zeros((0, merged.joint.shape[1])), merged.cost, None, np.inf, merged.pairs)

    def enough(found: Found) -> bool:
        return found.K is not None and budget - found.value > 0.5 * (budget - found.bound) > 0

    return interior(program, _start(merged), 1e-5 * max(budget, 1e-300), enough=enough)


def _start(merged: _Merged) -> Floats:
    """Rows e^{−τ c}, with c the mean cost of each row and τ as large as the pairs allow, mixed with even rows."""
    costs = merged.costs
    apart = np.abs(costs[merged.pairs.first] - costs[merged.pairs.second]).max(1)
    moved = apart > 0
    tau = 0.45 * float(np.min(merged.pairs.exponents[moved] / apart[moved])) if moved.any() else np.inf
    wide = float(np.ptp(costs, axis=1).max())
    tau = min(tau, 20.0 / wide) if wide > 0 else 0.0
    K = np.exp(-tau * (costs - costs.min(1, keepdims=True)))
    mixed: Floats = 0.98 * K / K.sum(1, keepdims=True) + 0.02 / K.shape[1]
    return mixed


def _told(
    whole: Floats, D: Floats, L: float, merged: _Merged, classes: Ints, found: Found, seconds: float
) -> Joint:
    """The channel of all rows, with bound and value worked out again from what is returned."""
    assert found.K is not None
    K = (found.K / found.K.sum(1, keepdims=True))[classes]
    secrets = whole.sum(1) > 0
    problem = Problem.of(whole[secrets][:, whole.sum(0) > 0], D[whole.sum(0) > 0], L)
    value = leaked(problem, K[whole.sum(0) > 0])
    ratio = np.zeros((len(whole), D.shape[1]))
    ratio[secrets] = normalised(problem, found.log_ratio)
    first, second, exponents, Y = _spread(whole, D, merged, classes, ratio, found)
    bound = joint_bound(whole, D, L, ratio, found.lam, first, second, exponents, Y)
    every = np.arange(D.shape[1], dtype=np.int64)
    return Joint(K, every, value, bound, found.lam, ratio, found.steps, seconds, first, second, exponents, Y)


def _spread(
    whole: Floats, D: Floats, merged: _Merged, classes: Ints, ratio: Floats, found: Found
) -> tuple[Ints, Ints, Floats, Floats]:
    """Multipliers for the rows themselves from those of the classes of equal rows.

    A pair of classes becomes the pair of their first rows. Within a class, multipliers of the pairs (first row, other row)
    of exponent 0, both ways, share the class's total evenly, so that the least of the sum is the sum of the leasts.
    """
    heads = np.unique(classes, return_index=True)[1].astype(np.int64)
    first, second, Y = heads[merged.pairs.first], heads[merged.pairs.second], found.y
    exponents = merged.pairs.exponents
    others = np.setdiff1d(np.arange(len(classes)), heads)
    if not len(others):
        return first, second, exponents, Y
    own = whole.T @ ratio + found.lam * whole.sum(0)[:, None] * D
    shares = np.zeros((len(heads), D.shape[1]))
    np.add.at(shares, classes, own)
    at = np.zeros_like(own)
    np.add.at(at, second, np.exp(exponents / 2)[:, None] * Y)
    np.subtract.at(at, first, np.exp(-exponents / 2)[:, None] * Y)
    shares -= at[heads]
    shares /= np.bincount(classes)[:, None]
    excess = own[others] - shares[classes[others]]  # to be taken from the other row and given to the head
    head = heads[classes[others]]
    return (
        np.concatenate([first, head, others]),
        np.concatenate([second, others, head]),
        np.concatenate([exponents, np.zeros(2 * len(others))]),
        np.concatenate([Y, np.maximum(excess, 0.0), np.maximum(-excess, 0.0)]),
    )
