"""Known sums of neighbouring cells: plain Laplace noise is averaged away, ours is priced with what is known.

    python -m benchmarks.blowfish.pairs [--runs 200]

The chain of He, Machanavajjhala, Ding 2014 (introduction): k cells c_1 … c_k, all sums c_i + c_{i+1} public, all pairs of values
secret, ε = 1. Left: the squared error of c_1 that somebody gets who averages the k noisy copies, and that of our release with
the sums declared. Right: how many whole tables come out exactly. Needs no data: the table is drawn (seed 5).
"""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np

import tetraodon as td
from benchmarks.paper import pairs
from tetraodon.errors import TetraodonError
from tetraodon.exact import show

from .common import Row, arguments, draws, keep, kept, planned
from .plot import OTHER, OURS_BLUE, PAPER_INK, THEIRS, Curve, Look, draw

SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
OURS_AT = (4, 8, 16, 32, 64)
EPSILON = Fraction(1)
ONE, MEAN, OURS = "plain Laplace, one cell", "plain Laplace, averaged", "ours, sums declared"
FIRST = "ours, only the first cell asked"
ERROR, SHARE = "squared error of the first cell", "tables recovered exactly, %"


def policy(k: int, sums: np.ndarray) -> td.Policy:
    """All values secret from each other, every sum of neighbours known."""
    domain = td.Domain(x=td.Integer(1, k))
    known = [
        td.CountConstraint(where={"x": (i, i + 1)}, answer=int(a))
        for i, a in enumerate(sums.tolist(), start=1)
    ]
    return td.Policy(domain, td.Full(), known)


def attack(k: int, counts: np.ndarray, runs: int, rng: np.random.Generator) -> list[Row]:
    """What averaging makes of plain Laplace noise."""
    sums = counts[:-1] + counts[1:]
    noisy = pairs.noised(counts, float(EPSILON), runs, rng)
    first = pairs.first_cell(noisy, sums)
    found = (pairs.table(first, sums) == counts).all(axis=1)
    loss = show(pairs.loss(k, EPSILON))
    rows: list[Row] = [
        {"facet": ERROR, "series": ONE, "x": k, "y": float(((noisy[:, 0] - counts[0]) ** 2).mean())},
        {"facet": ERROR, "series": MEAN, "x": k, "y": float(((first - counts[0]) ** 2).mean()), "loss": loss},
    ]
    return [*rows, {"facet": SHARE, "series": MEAN, "x": k, "y": float(100 * found.mean())}]


def ours(k: int, counts: np.ndarray, runs: int) -> list[Row]:
    """The same attack on our release of the histogram with the sums declared, and on a release of the first cell alone."""
    sums = counts[:-1] + counts[1:]
    declared = policy(k, sums)
    people = td.Table({"x": np.repeat(np.arange(1, k + 1), counts)}, declared.domain).counts()
    only = td.Linear([[1] + [0] * (k - 1)], "x")
    rows: list[Row] = []
    for name, query in ((OURS, td.Histogram("x")), (FIRST, only)):
        moved = declared.sensitivity(query)
        strategy = planned(query, declared, EPSILON)
        told = np.concatenate([found.values for found in draws(strategy, strategy.tabulate(people), runs)])
        # One cell is all there is to know: the sums are public, so every other one follows from it.
        first = pairs.first_cell(told, sums) if name == OURS else told[:, 0]
        found = 100 * (pairs.table(first, sums) == counts).all(axis=1).mean()
        error = float(((first - counts[0]) ** 2).mean())
        price = {"sensitivity": show(moved.value), "rule": moved.rule}
        rows.append({"facet": ERROR, "series": name, "x": k, "y": error, **price})
        # A share of 0 has no place on a logarithmic axis: it is drawn as half a run.
        rows.append({"facet": SHARE, "series": name, "x": k, "y": max(float(found), 50 / runs)})
    return rows


def measure(runs: int) -> list[Row]:
    rng = np.random.default_rng(5)
    rows: list[Row] = []
    for k in SIZES:
        counts = rng.integers(20, 60, k)
        rows += attack(k, counts, 50 * runs, rng)
        if k in OURS_AT:
            try:
                rows += ours(k, counts, runs)
            except TetraodonError as error:
                print(f"k = {k}: {type(error).__name__}: {error}")
    return rows


def main() -> int:
    told = arguments(__doc__ or "", ["chain"])
    name = "pairs"
    if not told.draw_only:
        runs = told.runs if told.runs != 50 else 200
        said = {
            "figure": "chain of known pair counts",
            "epsilon": float(EPSILON),
            "runs": runs,
            "attack_runs": 50 * runs,
        }
        keep(name, said, measure(runs), told.out)
    found = kept(name, told.out)
    rows = found["rows"]
    print(
        f"{'k':>4} {'one cell':>9} {'averaged':>9} {'recovered':>10} {'real loss':>10} {'sensitivity':>12} {'ours':>9}"
    )
    missed = 0
    for k in SIZES:
        at = {(r["facet"], r["series"]): r for r in rows if r["x"] == k}
        mean, mine, alone = at[ERROR, MEAN], at.get((ERROR, OURS)), at.get((ERROR, FIRST))
        shown = ""
        if mine and alone:
            shown = (
                f"{mine['sensitivity']:>12} {mine['y']:>9.3g} {alone['sensitivity']:>12} {alone['y']:>9.3g}"
            )
            missed += mine["sensitivity"] != str(k)
        print(
            f"{k:>4} {at[ERROR, ONE]['y']:>9.3g} {mean['y']:>9.3g} {at[SHARE, MEAN]['y']:>9.1f}% {mean['loss']:>10} {shown}"
        )
    look = Look(
        "Cells whose sums of neighbours are public: averaging undoes plain Laplace noise",
        (
            f"ε = 1, every pair of values secret; mean of {found['attack_runs']:,} tables (ours {found['runs']}).",
            "Plain Laplace promises ε = 1 and loses k/2. Ours is priced for the known sums: one possible table turns into the next only if all k cells change.",
        ),
        "cells k",
        "",
        (
            Curve(ONE, "dashed", PAPER_INK),
            Curve(MEAN, "line", THEIRS),
            Curve(OURS, "points", OURS_BLUE),
            Curve(FIRST, "points", OTHER, "diamond"),
        ),
        across=2,
        log_x=True,
        one_scale=False,
        width=300,
        height=180,
    )
    print(draw(rows, look, told.out / f"{name}.svg"))
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
