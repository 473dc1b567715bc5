"""From costs and bounds to the programmes that are solved, and back: components apart, needless pairs and columns left out.

What is left out changes nothing: a pair that a third cell implies; a column that costs no less than another one for every
input (its mass can move there, sums keep ratios); a pair whose bound is so wide that doubles cannot tell it from none, which the
repair keeps all the same. Components of the pairs share no constraint at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from ..axes import Ints
from ..errors import Unsupported
from .bounds import Bounds
from .geo_interior import Optimum, Program, exponential, solve
from .geometry import Floats
from .lp import LARGEST, solve_by_highs
from .repair import envelope
from .spanner import closure, needed, spanner
from .symmetry import Group

WIDE = 36.0  # e^-36 is a unit of rounding
NARROW = 1e-9
QUICK = 6e8  # columns × inputs³ that "auto" solves over all pairs: 12 × 12 cells
PATIENT = 4e9  # the same, that "auto" takes on at all: 15 × 15 cells, 20 × 20 under an even prior; minutes
HELD = 2**26  # columns × inputs² at most
SLACKS = 2**25  # pairs × columns at most
DETOURS = (1.01, 1.03, 1.1)
POOR = 1e-4  # relative gap from which HiGHS is asked too
UP = 1 + 1e-11  # bounds were rounded down from what was asked
COMPARED = 2e8
SPARSE = 8  # pairs a value, of which a spanner would not spare many

METHODS = ("auto", "exact", "spanner", "highs")


@dataclass(frozen=True, eq=False)
class Proof:
    """Multipliers of K[below, output] ≤ e^exponent K[above, output], one each; what they prove is ``proved``."""

    below: Ints
    above: Ints
    output: Ints
    exponent: Floats
    multiplier: Floats

    @staticmethod
    def joined(parts: list[Proof]) -> Proof:
        names = ("below", "above", "output", "exponent", "multiplier")
        return Proof(*(np.concatenate([getattr(p, n) for p in parts]) for n in names))


@dataclass(frozen=True, eq=False)
class Solution:
    """Attributes:
    matrix: shape (inputs, outputs), feasible up to rounding.
    proof: of the bound.
    route: "exact", "spanner" or "highs", the last of those used.
    pairs: constraints kept, in all components.
    components: number of them.
    steps: of the interior point method, in all.
    """

    matrix: Floats
    proof: Proof
    route: str
    pairs: int
    components: int
    steps: int


def proved(cost: Floats, proof: Proof) -> float:
    """Σ_w min_z (cost − A'y)[w, z], less what rounding can come to: no channel that keeps the bounds costs less.

    >>> none = np.zeros(0, dtype=np.int64)
    >>> proved(np.array([[0.0, 1.0], [1.0, 0.5]]), Proof(none, none, none, np.zeros(0), np.zeros(0)))
    0.5
    """
    reduced, size = cost.copy(), np.abs(cost)
    steep = np.exp(proof.exponent) * proof.multiplier
    np.add.at(reduced, (proof.below, proof.output), proof.multiplier)
    np.subtract.at(reduced, (proof.above, proof.output), steep)
    np.add.at(size, (proof.below, proof.output), proof.multiplier)
    np.add.at(size, (proof.above, proof.output), steep)
    if not len(proof.multiplier):
        return float(reduced.min(axis=1).sum())
    margin = (2 * len(cost) + 8) * 2.0**-52 * float(size.max(axis=1).sum())
    return float(reduced.min(axis=1).sum()) - margin


def solve_bounds(
    cost: Floats, bounds: Bounds, group: Group | None, method: str, tolerance: float
) -> Solution:
    """The channel of least cost that keeps bounds, and what proves it.

    Args:
        cost: shape (inputs, outputs), prior included.
        group: candidates for symmetries, of inputs and outputs at once; None where these are not the same cells.

    Raises:
        Unsupported: too many cells for the method, or bounds below 10^-9.
    """
    count = len(cost)
    if len(bounds) and float(bounds.losses.min()) < NARROW:
        raise Unsupported(
            "epsilon: below 10^-9 between two values, where rounding is not small; use coarser cells."
        )
    kept = bounds.losses <= WIDE
    told = Bounds(bounds.first[kept], bounds.second[kept], bounds.losses[kept])
    labels = _labels(count, told)
    matrix = np.zeros(cost.shape)
    proofs, routes, pairs, steps = [_none()], {"exact"}, 0, 0
    for label in range(int(labels.max()) + 1):
        inputs = np.flatnonzero(labels == label)
        if len(inputs) == 1:
            matrix[inputs[0], cost[inputs[0]].argmin()] = 1.0
            continue
        own = labels[told.first] == label
        place = np.searchsorted(inputs, told.first[own]), np.searchsorted(inputs, told.second[own])
        part = _component(
            cost[inputs],
            Bounds(*place, told.losses[own]),
            _anchors(cost[inputs], inputs if group is not None else None),
            group if len(inputs) == count else None,
            method,
            tolerance,
        )
        matrix[inputs] = part.matrix
        proofs.append(replace(part.proof, below=inputs[part.proof.below], above=inputs[part.proof.above]))
        routes.add(part.route)
        pairs, steps = pairs + part.pairs, steps + part.steps
    route = next(r for r in ("highs", "spanner", "exact") if r in routes)
    return Solution(matrix, Proof.joined(proofs), route, pairs, int(labels.max()) + 1, steps)


def _component(
    cost: Floats, bounds: Bounds, anchors: Ints, group: Group | None, method: str, tolerance: float
) -> Solution:
    """One connected component."""
    count, outputs = cost.shape
    lengths = bounds.dense(count)
    symmetric = Group.trivial(count) if group is None else group.kept_by(cost, lengths)
    towards = np.arange(outputs)
    if len(symmetric) > 1:
        which, orbit, size = symmetric.orbits
    else:
        towards = _better(cost) if count * outputs**2 <= COMPARED else towards
        which = np.flatnonzero(towards == np.arange(outputs))
        orbit, size = np.arange(count), np.ones(len(which), dtype=np.int64)
    # What is refused, and which method is taken, must not tell how many columns a private prior leaves.
    columns = len(which) if len(symmetric) > 1 else outputs
    work = columns * count**3
    if columns * count**2 > HELD or (method == "auto" and work > PATIENT):
        patient = ", or method='spanner' and patience" if columns * count**2 <= HELD else ""
        raise Unsupported(
            f"least_distortion: {count} connected values and {outputs} outputs are too many; use channels."
            f"tight_constraints(…).remap(prior), which is within a few per cent, coarser cells{patient}."
        )
    whole = Program(
        cost[:, which], bounds.first, bounds.second, bounds.losses, size.astype(np.float64), orbit
    )
    ways = closure(count, bounds.first, bounds.second, bounds.losses)
    keep = np.argwhere(needed(lengths))
    exact = _with(whole, keep[:, 0], keep[:, 1], lengths[keep[:, 0], keep[:, 1]])
    if method == "auto":
        limit = PATIENT if len(symmetric) > 1 else QUICK  # even ones take few steps
        quick = work <= limit or len(keep) <= SPARSE * count
        method = "exact" if quick else "spanner"
    if len(keep) * columns > SLACKS and method != "spanner":
        raise Unsupported("least_distortion: too many constraints; use method='spanner', or coarser cells.")
    constant = cost.sum(axis=0)
    if constant.min() <= cost.min(axis=1).sum():
        matrix = np.zeros(cost.shape)
        matrix[:, constant.argmin()] = 1.0
        return Solution(matrix, _none(), method, len(keep), 1, 0)
    if method == "spanner":
        program, found, proof = _by_spanner(whole, ways, anchors[which], tolerance)
    else:
        program, found = exact, _solved(exact, ways, anchors[which], method, tolerance)
        proof = found
    told = _proof(program, proof, which)
    if len(symmetric) > 1:
        matrix = symmetric.spread(found.matrix, which)
        told = _spread(told, symmetric, size[np.searchsorted(which, told.output)])
    else:
        matrix = np.zeros(cost.shape)
        matrix[:, which] = found.matrix
        told = _copied(told, towards)
    return Solution(matrix, told, method, len(program.first), 1, found.steps)


def _anchors(cost: Floats, inputs: Ints | None) -> Ints:
    """The input that each output is made for: itself where it is one, else the one that it costs least."""
    seen = np.where(cost.any(axis=1, keepdims=True), cost, inf)
    found: Ints = seen.argmin(axis=0).astype(np.int64)
    if inputs is not None:
        found[inputs] = np.arange(len(inputs))
    return found


def _with(program: Program, first: Ints, second: Ints, exponents: Floats) -> Program:
    return replace(program, first=first, second=second, exponents=exponents)


def _solved(program: Program, ways: Floats, anchors: Ints, method: str, tolerance: float) -> Optimum:
    """By the structured method, or HiGHS where asked, or where the former leaves too much open."""
    start = exponential(ways, anchors, program.weight, program.orbit)
    if method == "highs":
        return _feasible(solve_by_highs(program), program, ways)
    found = solve(program, start, tolerance)
    scale = 1e-9 * float(program.cost.sum(axis=0).min())
    small = 2 * len(program.first) * len(anchors) <= LARGEST
    if found.value - found.bound > max(POOR * found.value, scale) and small:
        other = _feasible(solve_by_highs(program), program, ways)
        better = other if other.value < found.value else found
        proof = other if other.bound > found.bound else found
        return replace(
            better, bound=proof.bound, forward=proof.forward, backward=proof.backward, steps=found.steps
        )
    return found


def _feasible(found: Optimum, program: Program, ways: Floats) -> Optimum:
    """The envelope of a matrix that misses its bounds by a little."""
    matrix = envelope(found.matrix, ways * (1 - 1e-7))
    sums = np.bincount(program.orbit, matrix @ program.weight) / np.bincount(program.orbit)
    matrix = matrix / sums[program.orbit][:, None]
    return replace(found, matrix=matrix, value=float((program.cost * matrix).sum(axis=0) @ program.weight))


def _by_spanner(
    whole: Program, ways: Floats, anchors: Ints, tolerance: float
) -> tuple[Program, Optimum, Optimum]:
    """A channel from a spanner whose bounds are divided by its longest detour; a proof from the same pairs, undivided."""
    for delta in DETOURS:
        first, second, longest = spanner(ways, delta)
        if len(first) * len(anchors) <= SLACKS or delta == DETOURS[-1]:
            break
    short = ways[first, second] <= WIDE
    first, second = first[short], second[short]
    loose = _with(whole, first, second, ways[first, second])
    tight = _with(whole, first, second, ways[first, second] / longest)
    found = _solved(tight, ways / longest, anchors, "exact", 10 * tolerance)
    proof = _solved(loose, ways, anchors, "exact", 100 * tolerance)
    return loose, replace(found, steps=found.steps + proof.steps), proof


def _proof(program: Program, found: Optimum, which: Ints) -> Proof:
    """The multipliers that matter, in the order of pairs; bounds as asked."""
    y = np.concatenate([found.forward, found.backward])
    below = np.concatenate([program.first, program.second])
    above = np.concatenate([program.second, program.first])
    exponent = np.tile(program.exponents * UP, 2)
    best, wanted = None, -inf
    for share in (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6):
        pair, column = np.nonzero(y > share * y.max(initial=0.0))
        told = Proof(below[pair], above[pair], column, exponent[pair], y[pair, column])
        bound = _orbit_bound(program, told)
        if best is None:
            wanted = bound - 1e-6 * abs(bound)
        elif bound < wanted:
            break
        best = told
    assert best is not None
    return replace(best, output=which[best.output])


def _orbit_bound(program: Program, told: Proof) -> float:
    reduced = program.cost.copy()
    np.add.at(reduced, (told.below, told.output), told.multiplier)
    np.subtract.at(reduced, (told.above, told.output), np.exp(told.exponent) * told.multiplier)
    least = np.full(int(program.orbit.max()) + 1, inf)
    np.minimum.at(least, program.orbit, reduced.min(axis=1))
    return float(least @ np.bincount(program.orbit))


def _spread(told: Proof, group: Group, size: Ints) -> Proof:
    """The same multipliers at every image of a pair and a column, averaged."""
    share = told.multiplier * size / len(group)
    parts = [
        replace(told, below=g[told.below], above=g[told.above], output=g[told.output], multiplier=share)
        for g in group.members
    ]
    whole = Proof.joined(parts)
    count, outputs = group.members.shape[1], int(whole.output.max(initial=0)) + 1
    key = (whole.below * count + whole.above) * outputs + whole.output
    _, first, again = np.unique(key, return_index=True, return_inverse=True)
    summed: Floats = np.bincount(again, whole.multiplier).astype(np.float64)
    return Proof(whole.below[first], whole.above[first], whole.output[first], whole.exponent[first], summed)


def _copied(told: Proof, towards: Ints) -> Proof:
    """The multipliers of a column for those that were left out for it too: their reduced costs are no less than its own."""
    parts = [told]
    order = np.argsort(told.output, kind="stable")
    starts = np.searchsorted(told.output[order], np.arange(len(towards) + 1))
    for column in np.flatnonzero(towards != np.arange(len(towards))):
        rows = order[starts[towards[column]] : starts[towards[column] + 1]]
        parts.append(
            Proof(
                told.below[rows], told.above[rows], np.full(len(rows), column), told.exponent[rows],
                told.multiplier[rows],
            )
        )  # fmt: skip
    return Proof.joined(parts)


def _better(cost: Floats) -> Ints:
    """For each column one that costs no more for any input and is worth keeping; itself if there is none."""
    columns = cost.shape[1]
    own = np.arange(columns)
    found = own.copy()
    for z in range(columns):
        under = (cost <= cost[:, z, None]).all(axis=0)
        equal = under & (cost == cost[:, z, None]).all(axis=0)
        under &= ~equal | (own < z)  # of equal ones the first stays
        under[z] = False
        if under.any():
            found[z] = under.argmax()
    while (found[found] != found).any():
        found = found[found]
    return found


def _labels(count: int, bounds: Bounds) -> Ints:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = bounds.first.astype(np.int32), bounds.second.astype(np.int32)
    graph: Any = coo_array((np.ones(len(bounds)), ends), shape=(count, count))
    return np.asarray(connected_components(graph.tocsr(), directed=False)[1], dtype=np.int64)


def _none() -> Proof:
    none = np.zeros(0, dtype=np.int64)
    return Proof(none, none, none, np.zeros(0), np.zeros(0))
