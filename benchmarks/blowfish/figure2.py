"""Range queries beside the curves of He, Machanavajjhala, Ding 2014, figures 2(b) and 2(c).

    TETRAODON_DATA=… python -m benchmarks.blowfish.figure2 [--panel b|c] [--runs 50]

For every threshold and ε: the mean squared error of 10,000 uniformly random ranges under the mechanism that ``auto`` picks,
expected (linear estimate, before any data) and measured (published values, averaged over the runs), and the paper's, read off
its drawing (about 1 % reading error). The command fails unless both are at or below the paper's everywhere. Panel b is
capital-loss of Adult (4,357 values), panel c the latitude of tweets (400 bins). A last table sets the paper's tree beside ours
at the paper's own split.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

import tetraodon as td
from benchmarks.paper import tree
from tetraodon.mechanisms import Hierarchical, Ordered, OrderedHierarchical
from tetraodon.plans import name_of

from .common import (
    AGAIN,
    EPSILONS,
    EXPECTED,
    OURS,
    PAPER,
    Row,
    arguments,
    columns,
    draws,
    histogram_2d,
    keep,
    kept,
    planned,
    source,
)
from .plot import OURS_BLUE, PAPER_INK, THEIRS, Curve, Look, draw

RANGES, FANOUT = 10_000, 16
CURVES: Mapping[str, Mapping[int, Sequence[float]]] = {
    "b": {
        4357: [3.42e5, 9.40e4, 3.75e4, 2.14e4, 1.46e4, 1.01e4, 7.88e3, 5.64e3, 4.28e3, 3.49e3],
        1000: [2.70e5, 7.37e4, 3.19e4, 1.75e4, 1.20e4, 7.75e3, 5.55e3, 4.61e3, 3.38e3, 2.95e3],
        500: [2.73e5, 7.31e4, 3.29e4, 1.76e4, 1.05e4, 8.01e3, 5.69e3, 4.50e3, 3.44e3, 2.88e3],
        100: [1.03e5, 2.46e4, 1.12e4, 6.17e3, 4.08e3, 2.92e3, 2.09e3, 1.67e3, 1.31e3, 991],
        50: [8.12e4, 2.09e4, 9.05e3, 5.20e3, 3.22e3, 2.33e3, 1.68e3, 1.30e3, 1.02e3, 809],
        10: [1.91e4, 4.88e3, 2.16e3, 1.20e3, 789, 534, 392, 305, 239, 193],
        1: [402, 101, 44.8, 24.9, 16.0, 11.2, 8.13, 6.21, 4.95, 4.01],
    },
    "c": {
        400: [1.23e5, 2.92e4, 1.42e4, 8.07e3, 4.71e3, 3.77e3, 2.57e3, 1.99e3, 1.44e3, 1.19e3],
        90: [8.24e4, 2.11e4, 8.57e3, 5.50e3, 3.02e3, 2.04e3, 1.65e3, 1.35e3, 1.18e3, 857],
        9: [1.76e4, 4.61e3, 2.06e3, 1.14e3, 785, 490, 382, 290, 224, 186],
        1: [411, 101, 44.8, 25.1, 16.6, 11.0, 8.16, 6.23, 4.96, 3.97],
    },
}
SIZES = {"b": 4357, "c": 400}
TITLES = {
    "b": "Figure 2(b): ranges of capital-loss (Adult, 4,357 values)",
    "c": "Figure 2(c): ranges of latitude (tweets, 400 bins of 0.05°)",
}
DATA = {
    "b": "48,842 records of Adult; 10,000 uniformly random ranges.",
    "c": "193,563 tweets known in 256 bins of 0.078°, each bin's spread evenly over the paper's 400; 10,000 uniformly random ranges.",
}
KILOMETRES = {400: "any two bins", 90: "500 km = 90 bins", 9: "50 km = 9 bins", 1: "5 km = 1 bin"}


def counts(panel: str) -> np.ndarray:
    """The exact histogram of a panel."""
    if panel == "b":
        losses = columns(source("adult", "adult.csv.gz"), ["capital_loss"])[0]
        return np.bincount(losses.astype(np.int64), minlength=SIZES[panel])
    known = histogram_2d("TWITTER").sum(axis=0)
    cumulative = np.concatenate([[0], np.cumsum(known)])
    spread = np.interp(np.linspace(0, len(known), SIZES[panel] + 1), np.arange(len(known) + 1), cumulative)
    return np.diff(np.rint(spread).astype(np.int64))


def facet(panel: str, theta: int) -> str:
    if panel == "c":
        return KILOMETRES[theta]
    return "any two values" if theta == SIZES[panel] else f"at most {theta:,} USD apart"


def measure(panel: str, runs: int) -> list[Row]:
    """Every point of a panel: the paper's, ours expected and ours measured with the quartiles over the runs."""
    size, table = SIZES[panel], counts(panel)
    domain = td.Domain(x=td.Integer(0, size - 1))
    truth = np.concatenate([[0], np.cumsum(table)])
    ends = np.sort(np.random.default_rng(2).integers(0, size, (2, RANGES)), axis=0)
    first, past = ends[0], ends[1] + 1
    rows: list[Row] = []
    for theta, curve in CURVES[panel].items():
        policy = td.Policy(domain, td.Full() if theta == size else td.Within(theta))
        for epsilon, published in zip(EPSILONS, curve, strict=True):
            strategy = planned(td.Ranges("x"), policy, epsilon)
            errors = []
            for found in draws(strategy, table[None, :], runs):
                assert found.prefix is not None
                told = found.prefix[0, past] - found.prefix[0, first]
                errors.append(float(((told - (truth[past] - truth[first])) ** 2).mean()))
            at: Row = {"facet": facet(panel, theta), "theta": theta, "x": float(epsilon)}
            low, high = np.quantile(errors, [0.25, 0.75])
            name = name_of(strategy.mechanism)
            rows.append(at | {"series": PAPER, "y": float(published)})
            again = tree.error(size, theta, FANOUT, 1.0) / float(epsilon) ** 2
            rows.append(at | {"series": AGAIN, "y": again})
            rows.append(at | {"series": EXPECTED, "y": float(strategy.expected_error), "mechanism": name})
            rows.append(at | {"series": OURS, "y": float(np.mean(errors)), "low": low, "high": high})
    return rows


def table_of(rows: Sequence[Row]) -> int:
    """Print a panel; returns at how many points ours lies above the paper's."""
    above = 0
    print(
        f"{'theta':>6} {'eps':>4} {'paper':>9} {'expected':>9} {'measured':>9} {'paper/meas.':>11}   mechanism"
    )
    for paper, _, expected, measured in zip(*(rows[i::4] for i in range(4)), strict=True):
        miss = max(expected["y"], measured["y"]) > paper["y"]
        above += miss
        print(
            f"{paper['theta']:>6} {paper['x']:>4} {paper['y']:>9,.4g} {expected['y']:>9,.4g} {measured['y']:>9,.4g}"
            f" {paper['y'] / measured['y']:>11.1f}   {expected['mechanism']}{'   ABOVE' * miss}"
        )
    return above


def trees() -> int:
    """The paper's tree beside ours with the same split and fan-out; returns how often ours is worse."""
    print(
        f"\nRange error at epsilon 1, fan-out {FANOUT}, the paper's split: prefix walks beside least squares"
    )
    print(
        f"{'|T|':>5} {'theta':>6} {'share':>6} {'published':>10} {'cost':>6} {'repaired':>9} {'ours':>9}"
        "   (cost: what the published budget spends of its epsilon)"
    )
    worse = 0
    for panel, curves in CURVES.items():
        for theta in curves:
            size = SIZES[panel]
            domain = td.Domain(x=td.Integer(0, size - 1))
            share = tree.share(size, theta, FANOUT)
            mechanism: Ordered | Hierarchical | OrderedHierarchical = Ordered()
            if theta == size:
                mechanism = Hierarchical(FANOUT)
            elif theta > 1:
                mechanism = OrderedHierarchical(FANOUT, block=theta, split=share)
            policy = td.Policy(domain, td.Within(theta))
            ours = planned(td.Ranges("x"), policy, Fraction(1), mechanism).expected_error
            published, repaired = (tree.error(size, theta, FANOUT, w) for w in (1.0, 0.0))
            cost = tree.cost(size, theta, FANOUT)
            worse += ours > repaired
            print(
                f"{size:>5} {theta:>6} {share:>6.3f} {published:>10,.1f} {cost:>6.3f} {repaired:>9,.1f} {ours:>9,.2f}"
            )
    return worse


def main() -> int:
    told = arguments(__doc__ or "", list(CURVES))
    missed = 0
    for panel in CURVES if told.panel == "all" else [told.panel]:
        name = f"figure2{panel}"
        if not told.draw_only:
            try:
                rows = measure(panel, told.runs)
            except FileNotFoundError as error:
                print(f"{TITLES[panel]}: {error}")
                continue
            said = {
                "figure": f"2({panel})",
                "y": "mean squared error of a range, records²",
                "data": DATA[panel],
                "runs": told.runs,
            }
            keep(name, said, rows, told.out)
        found = kept(name, told.out)
        print(f"\n{TITLES[panel]}. {found['data']} {found['runs']} runs")
        missed += table_of(found["rows"])
        look = Look(
            TITLES[panel],
            (
                f"{found['data']} {found['runs']} runs: mean; bar: quartiles.",
                "Paper: He, Machanavajjhala, Ding 2014, read off to about 1 %; run again: its exact error. Its budget breaks its ε where 1 < θ < |T|. Ours: auto.",
            ),
            "ε",
            "mean squared error",
            (
                Curve(PAPER, "points", PAPER_INK),
                Curve(AGAIN, "dashed", PAPER_INK),
                Curve(EXPECTED, "line", OURS_BLUE),
                Curve(OURS, "points", THEIRS, "cross"),
            ),
        )
        print(draw(found["rows"], look, told.out / f"{name}.svg"))
    missed += trees()
    print(f"\n{'At or below the paper everywhere' if not missed else f'{missed} figure(s) above the paper'}.")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
