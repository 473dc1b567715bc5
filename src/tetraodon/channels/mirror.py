"""First-order solver for the least leaking channel, where an interior point would be too large: mirror descent with a certificate.

    min_K I(X; Z)   s.t.  Σ_w π_w Σ_z K[w, z] d(w, z) ≤ L.

With J = P K the gradient at K[w, z] is π_w g_w(z), g_w(z) = Σ_x p(x|w) ln p(x|z)/p(x), and I is 1-smooth relative to
Σ_w π_w Σ_z K ln K (convexity of the Kullback–Leibler divergence). Hence the step

    K[w, z] ← K[w, z] exp(−η (g_w(z) + λ d(w, z))) / row sum

descends for η = 1 (Blahut and Arimoto's own step where secret and value are one), and from even rows I(K_T) − I* ≤
ln(outputs)/T. λ is the multiplier of the exact projection on the budget, found by safeguarded Newton; a longer η is taken
while the divergence of I stays below 1/η times that of the rows, η grows by a fifth after each step and is halved where it
was too long (derived).

Lower bounds come from the posterior, from a running average of posteriors and from the best classifier so far, column by
column whichever leaves the rows the most room; ``lower_bound`` has the proof. Outputs that have lost their mass leave the
iteration and come back where the bound shows that they would pay.

Rows are worked on in blocks that fit a processor's cache; memory is about eight tables of (rows, outputs).
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from .attainable import Unreachable, best_constant, checked, constant
from .lower_bound import LN2, Floats, Ints, Problem, Solved, best_bound, gains, solved

BLOCK = 2**16  # numbers of a block of rows
LIGHT = 1e-9  # mass below which an output may leave
TINY = 1e-300
NARROW = 1e-6  # room in the budget, relative, below which only nearest outputs are left
EVERY = 10  # steps between two bounds


@dataclass(eq=False)
class _Rows:
    """The iterate on the outputs still worked on: logarithms and values of K, and buffers of the same shape."""

    columns: Ints
    cost: Floats
    logs: Floats
    values: Floats
    next_logs: Floats
    next_values: Floats

    @classmethod
    def of(cls, columns: Ints, cost: Floats, logs: Floats) -> _Rows:
        return cls(columns, cost, logs, np.exp(logs), np.empty_like(logs), np.empty_like(logs))

    def swap(self) -> None:
        self.logs, self.next_logs = self.next_logs, self.logs
        self.values, self.next_values = self.next_values, self.values


@dataclass(frozen=True)
class _Proof:
    """The best bound so far (nats) with its classifier and multiplier; ``room`` says, for each output, how far the last
    bound's classifier keeps it above the least of every row (negative: it pulls the bound down)."""

    log_ratio: Floats
    lam: float
    bound: float
    room: Floats


def solve(
    P: ArrayLike,
    D: ArrayLike,
    L: float,
    tol_bits: float = 1e-4,
    max_seconds: float = 60.0,
    start: Floats | None = None,
) -> Solved:
    """The least leaking channel of expected cost at most L, to a gap of ``tol_bits`` or as near as the time allows.

    Args:
        P: joint law P(x, w), (secrets, rows), without empty rows or secrets.
        D: cost d(w, z), (rows, outputs), finite and ≥ 0.
        L: the most that the expected cost may be, in the unit of ``D``.
        tol_bits: gap at which to stop.
        max_seconds: wall clock; the last channel and its honest bound are returned.
        start: a channel (rows, outputs) to start from, such as the optimum of a nearby budget.

    Raises:
        SpecificationError: shapes or numbers that fit no program.
        Unreachable: even the nearest output of every row costs more than L.

    >>> d = abs(np.arange(3.0)[:, None] - np.arange(3.0))
    >>> found = solve(np.diag([0.25, 0.5, 0.25]), d, 0.3, tol_bits=1e-3)
    >>> round(found.value, 2), bool(found.gap < 1e-3)
    (0.38, True)
    """
    began = perf_counter()
    joint, cost = checked(P, D, L, "least_leaking")
    problem = Problem.of(joint, cost, L)
    W, Z = cost.shape
    every = np.arange(Z, dtype=np.int64)
    zero = np.zeros((len(joint), Z))
    least = problem.least()
    output, spent = best_constant(problem.mass, cost)
    if spent <= L:
        return solved(
            problem, constant(W, Z, output), every, zero, 0.0, steps=0, seconds=perf_counter() - began
        )
    if least > L:
        raise Unreachable(least, L)
    if len(joint) == 1:
        nearest = np.zeros((W, Z))
        nearest[np.arange(W), cost.argmin(1)] = 1.0
        return solved(problem, nearest, every, zero, 0.0, steps=0, seconds=perf_counter() - began)
    logs = np.zeros((W, Z)) if start is None else np.log(np.maximum(start, 1e-30))
    inside = max(L, least + NARROW * (spent - least))  # with less room multipliers grow without end
    return _descend(problem, Problem.of(joint, cost, inside), logs, tol_bits, began, began + max_seconds)


def _descend(
    asked: Problem, problem: Problem, logs: Floats, tol_bits: float, began: float, until: float
) -> Solved:
    Z = logs.shape[1]
    rows = _Rows.of(np.arange(Z, dtype=np.int64), problem.cost, logs)
    rows.next_logs[:] = logs
    slack = 1e-6 * (problem.budget - problem.least())
    lam = _project(rows, problem, slack, 0.0)[2]
    rows.swap()
    J, R, value = _posterior(problem, rows.values)
    proof = _Proof(R, lam, -np.inf, np.zeros(Z))
    average, weight, eta, step = np.zeros_like(R), np.zeros(Z), 1.0, 0
    while True:
        if step % EVERY == 0:
            proof = _bounded(problem, rows, R, average / np.maximum(weight, 1e-300), lam, proof)
            if value - max(proof.bound, 0.0) <= tol_bits * LN2 or perf_counter() > until:
                break
            if step & (step - 1) == 0:  # early posteriors are forgotten
                average[:], weight[:] = 0.0, 0.0
            resized = _resized(problem, rows, J.sum(0), proof)
            if resized is not None:
                rows = resized
                J, R, value = _posterior(problem, rows.values)
        slope = problem.given.T @ R
        while True:
            np.multiply(slope, -eta, out=rows.next_logs)
            rows.next_logs += rows.logs
            norm, spent, pull = _project(rows, problem, slack, lam * eta)
            J2, R2, value2 = _posterior(problem, rows.next_values)
            moved = -eta * float((R * J2).sum()) - pull * spent - float(problem.mass @ norm)
            if value2 - value - float((R * (J2 - J)).sum()) <= moved / eta + 1e-13 or eta <= 1:
                break
            eta = max(1.0, eta / 2)
        rows.swap()
        J, R, value, lam = J2, R2, value2, pull / eta
        eta *= 1.2
        step += 1
        average[:, rows.columns] += step * np.exp(R)
        weight[rows.columns] += step
    held = J.sum(0) > 0
    K = _kept(asked.only(rows.columns[held]), rows.values[:, held], problem.cost.min(1))
    return solved(
        asked,
        K,
        rows.columns[held],
        proof.log_ratio,
        proof.lam,
        steps=step,
        seconds=perf_counter() - began,
    )


def _kept(problem: Problem, K: Floats, least: Floats) -> Floats:
    """The channel, or, where the budget leaves no room to mix it with nearest outputs, what it gives to nearest outputs."""
    near = np.where(problem.cost <= least[:, None], K, 0.0)
    narrow = problem.budget - float(problem.mass @ least) < NARROW * problem.distortion(K)
    if not narrow or (near.sum(1) <= 0).any():
        return K
    near /= near.sum(1, keepdims=True)
    return near


def _posterior(problem: Problem, K: Floats) -> tuple[Floats, Floats, float]:
    """J = P K, ln p(x|z)/p(x), and the information in nats."""
    J = problem.joint @ K
    R = np.log(np.maximum(J, TINY))
    R -= np.log(np.maximum(J.sum(0), TINY))
    R -= problem.log_prior[:, None]
    return J, R, float((J * R).sum())


def _project(rows: _Rows, problem: Problem, slack: float, pull: float) -> tuple[Floats, float, float]:
    """Project exp(next_logs) on rows of sum 1 and the budget, in place: ln of the row sums, cost spent, multiplier s ≥ 0."""
    L, low, high = problem.budget - slack, 0.0, np.inf
    unit = 1.0 / max(float(rows.cost.max()), TINY)
    for _ in range(60):
        norm, spent, spread = _normalised(rows, problem.mass, pull)
        if (pull == 0 and spent <= L) or abs(spent - L) <= slack or high - low < 1e-15 * high:
            break
        low, high = (pull, high) if spent > L else (low, pull)
        guess = pull + (spent - L) / max(spread, TINY)
        if not low < guess < high:
            guess = 0.5 * (low + high) if np.isfinite(high) else max(2 * pull, 1e-7 * unit)
        pull = guess if guess > 1e-12 * unit or low > 0 else 0.0
    rows.next_logs -= pull * rows.cost
    rows.next_logs -= norm[:, None]
    return norm, spent, pull


def _normalised(rows: _Rows, mass: Floats, pull: float) -> tuple[Floats, float, float]:
    """next_values = exp(next_logs − pull · cost) with rows of sum 1: ln of the sums, the cost, and how fast it falls."""
    W, Z = rows.cost.shape
    norm, mean, square = np.empty(W), np.empty(W), np.empty(W)
    block = max(1, BLOCK // Z)
    scratch = np.empty((block, Z))
    for low in range(0, W, block):
        cut = slice(low, min(low + block, W))
        E, d = rows.next_values[cut], rows.cost[cut]
        np.multiply(d, -pull, out=E)
        E += rows.next_logs[cut]
        top = E.max(1)
        E -= top[:, None]
        np.exp(E, out=E)
        total = E.sum(1)
        E /= total[:, None]
        norm[cut] = top + np.log(total)
        priced = np.multiply(E, d, out=scratch[: len(E)])
        mean[cut] = priced.sum(1)
        square[cut] = np.einsum("wz,wz->w", priced, d)
    return norm, float(mass @ mean), float(mass @ (square - mean * mean))


def _bounded(problem: Problem, rows: _Rows, R: Floats, average: Floats, lam: float, proof: _Proof) -> _Proof:
    """The best bound from posterior, average and the classifier of ``proof``, chosen output by output."""
    now = proof.log_ratio.copy()
    now[:, rows.columns] = R
    with np.errstate(divide="ignore"):
        mean = np.where(average > 0, np.log(average), now)
    several = [now, mean, proof.log_ratio]
    level = np.einsum("wz,wz->w", rows.values, problem.given.T @ R + lam * rows.cost)
    W, Z = problem.cost.shape
    gain, room = np.empty((W, Z)), np.empty(Z)
    chosen = np.empty((len(R), Z))
    for low in range(0, Z, 256):
        cut = slice(low, min(low + 256, Z))
        totals = [gains(problem.given, one[:, cut]) for one in several]
        base = lam * problem.cost[:, cut] - level[:, None]
        rooms = np.stack([(total + base).min(0) for total in totals])
        best = rooms.argmax(0)
        room[cut] = rooms.max(0)
        gain[:, cut] = np.choose(best[None], totals)
        chosen[:, cut] = np.choose(best[None], [one[:, cut] for one in several])
    value, at = best_bound(problem, gain, lam, evaluations=6)
    if value > proof.bound:
        return _Proof(chosen, at, value, room)
    return _Proof(proof.log_ratio, proof.lam, proof.bound, room)


def _resized(problem: Problem, rows: _Rows, mass: Floats, proof: _Proof) -> _Rows | None:
    """The iterate without outputs that carry nothing and would not pay, and with outputs that would; None: as it was."""
    keep = (mass > LIGHT) | (proof.room[rows.columns] < 0)
    out = np.ones(problem.cost.shape[1], dtype=bool)
    out[rows.columns] = False
    back = np.flatnonzero(out & (proof.room < -1e-7))
    if not len(back) and keep.sum() > 0.9 * len(keep):
        return None
    slack = gains(problem.given, proof.log_ratio[:, back]) + proof.lam * problem.cost[:, back]
    fresh = np.log(1e-7) - (slack - slack.min(0, initial=np.inf))
    columns = np.concatenate([rows.columns[keep], back])
    order = np.argsort(columns)
    logs = np.concatenate([rows.logs[:, keep], fresh], axis=1)[:, order]
    top = logs.max(1, keepdims=True)
    logs -= top + np.log(np.exp(logs - top).sum(1, keepdims=True))
    return _Rows.of(columns[order], np.ascontiguousarray(problem.cost[:, columns[order]]), logs)
