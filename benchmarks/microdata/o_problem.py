"""The channels of all groups under one budget, beside cvxpy with Clarabel: nats, certified gap, seconds, ratio.

    python -m benchmarks.microdata.o_problem [--only 8 20 50 100 200 400] [--rounds 3] [--limit 300] [--out FOLDER]

4,000 synthetic people with 60 private values; Δ a quarter of the way from each person's own cluster to anybody of the group.
Processor seconds, least of the rounds, interleaved, every call in a process of its own, one BLAS thread. Fails where values are
further apart than 5e-5 nats, or a ratio is below what it has to be.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.channels.common import Results, Solver, interleaved, options, ratio
from tetraodon.microdata.blocks import Block
from tetraodon.microdata.obfuscate import obfuscate

from .synthetic import apart, blocks, clusters, equal_groups, people

with contextlib.suppress(ImportError):  # loading it is no part of what is timed
    import cvxpy as cp

RESULTS = Path(__file__).parent / "results"
GROUPS = {8: (5, 10, 20), 20: (5, 10, 20), 50: (5, 10, 20), 100: (5, 10, 20), 200: (5,), 400: (5,)}
AGREE = 5e-5  # nats
SCALE = 100.0  # of the goal given to Clarabel, which in nats stops early for want of progress where next to nothing leaks
COLUMNS = "clusters × groups, Δ, nats, bound, gap, steps, ours, GiB, Clarabel nats, its status, difference, Clarabel, ratio, at least"
TEXT = (
    "One channel for each group, one budget Δ. Nats: Σ share · I(value; published cluster | group) of the channels found; bound: no "
    "channels within the budget leak less (certified). Processor seconds, least of {rounds}; ratio: theirs over ours in this run. "
    "Limit {limit:g} s."
)


def needed(clusters: int, groups: int) -> float:
    """The ratio that has to be met."""
    if groups == 5 and clusters in (50, 100, 400):
        return 10.0
    return 2.0 if clusters == 8 else 3.0


def ours(parts: Sequence[Block], budget: float) -> dict[str, Any]:
    """The call that a plan makes, certificate included."""
    found = obfuscate(parts, budget)
    return {"value": found.leak, "bound": found.bound, "gap": found.gap, "steps": found.steps}


def clarabel(parts: Sequence[Block], budget: float) -> dict[str, Any]:
    """The same programme by exponential cones."""
    told, spent, rows = [], [], []
    for part in parts:
        K = cp.Variable(part.cost.shape, nonneg=True)
        prior = part.joint.sum(axis=1) / part.share
        together = SCALE * part.joint @ K
        shown = cp.reshape(part.mass @ K, (1, part.cost.shape[1]), order="C")
        told.append(cp.sum(cp.rel_entr(together, SCALE * prior[:, None] @ shown)))
        spent.append(cp.sum(cp.multiply(part.mass[:, None] * part.cost, K)))
        rows.append(cp.sum(K, axis=1) == 1)
    problem = cp.Problem(cp.Minimize(sum(told)), [*rows, sum(spent) <= budget])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says "inaccurate" in its status too
        problem.solve(solver=cp.CLARABEL)
    return {"value": float(problem.value) / SCALE, "status": problem.status}


def main() -> None:
    parser = options(__doc__ or "", [str(c) for c in GROUPS])
    parser.set_defaults(out=RESULTS, limit=300.0)
    told = parser.parse_args()
    results = Results(
        "o-problem", TEXT.format(rounds=told.rounds, limit=told.limit), COLUMNS.split(", "), told.out
    )
    even = [Block(np.eye(2) / 2, 1 - np.eye(2))]
    ours(even, 0.1)  # the first programme of a process takes longer than all others
    if "cp" in globals():
        clarabel(even, 0.1)
    code, counts = people()
    far = apart(counts)
    missed = []
    for number in (int(name) for name in told.only):
        label = clusters(counts, number)
        for groups in GROUPS[number]:
            parts, stay, anybody = blocks(code, label, equal_groups(code, groups), far)
            budget = stay + 0.25 * (anybody - stay)
            solvers = [
                Solver("ours", lambda p=parts, b=budget: ours(p, b)),
                Solver("clarabel", lambda p=parts, b=budget: clarabel(p, b), "cvxpy"),
            ]
            found = interleaved(solvers, told.rounds, told.limit)
            mine, other = found["ours"], found["clarabel"]
            n, least = mine.numbers, needed(number, groups)
            off = other.numbers["value"] - n["value"] if n and other.numbers else None
            if off is not None and abs(off) > AGREE:
                missed.append(f"{number} × {groups}: {off:.1e} nats apart")
            if mine.seconds is None or (
                not other.failed and (other.seconds or told.limit) < least * mine.seconds
            ):
                missed.append(f"{number} × {groups}: ratio below {least:g}")
            results.add(
                f"{number} × {groups}", f"{budget:.4f}", *(f"{n[key]:.6f}" if n else None for key in ("value", "bound")),
                f"{n['gap']:.1e}" if n else None, n.get("steps"), mine.text(told.limit), f"{mine.peak:.2f}",
                f"{other.numbers['value']:.6f}" if other.numbers else None, other.numbers.get("status"),
                None if off is None else f"{off:.1e}", other.text(told.limit), ratio(mine, other, told.limit), f"{least:g}",
            )  # fmt: skip
            results.keep()
    if missed:
        sys.exit("; ".join(missed))


if __name__ == "__main__":
    main()
