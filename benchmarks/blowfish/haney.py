"""Histograms and ranges under line and threshold policies beside the panels of Haney, Machanavajjhala, Ding 2015.

    TETRAODON_DATA=… python -m benchmarks.blowfish.haney [--panel histogram|ranges|threshold] [--runs 20]

Ours is what ``auto`` picks: expected (linear estimate) and measured (published values). Beside it what was read off the paper
(about 3 %), where its data-dependent mechanisms (DAWA) run at the same promise, and its transformed Laplace mechanism run again.
The paper's drawings at ε = 1 disagree with its own theory by a factor of 2 to 4, so they are shown and are no target.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

import tetraodon as td
from benchmarks.paper import haney
from tetraodon.plans import name_of

from .common import AGAIN, EXPECTED, OURS, Row, arguments, draws, histogram_1d, keep, kept, planned
from .plot import MORE, OTHER, OURS_BLUE, PALE_BLUE, PAPER_INK, THEIRS, Curve, Look, draw

DATA = {
    "A": "PATENT",
    "B": "INCOME",
    "C": "HEPTH",
    "D": "SEARCHLOGS",
    "E": "NETTRACE",
    "F": "ADULT",
    "G": "MEDCOST",
}
EPSILONS = (Fraction(1, 100), Fraction(1, 10), Fraction(1))
BINS, RANGES, THETA = 4096, 10_000, 4
LAPLACE, DAWA, PRIVELET = "paper: Laplace", "paper: DAWA", "paper: Privelet"
TRANS, CONSISTENT, TRANS_DAWA = "paper: Trans + Laplace", "paper: … + consistent", "paper: Trans + DAWA"

Curves = Mapping[Fraction, Mapping[str, Sequence[float]]]
HISTOGRAM: Curves = {
    EPSILONS[0]: {
        LAPLACE: [8e4] * 7,
        DAWA: [1.05e5, 5.0e4, 6.9e3, 3.1e3, 298, 405, 362],
        TRANS: [4e4] * 7,
        CONSISTENT: [3.6e4, 1.5e4, 2.3e4, 1.4e4, 815, 623, 1590],
        TRANS_DAWA: [7.1e4, 3.6e4, 5.2e4, 3.6e4, 1610, 211, 1330],
    },
    EPSILONS[1]: {
        LAPLACE: [800] * 7,
        DAWA: [1210, 836, 1650, 272, 18, 9.2, 7.2],
        TRANS: [400] * 7,
        CONSISTENT: [386, 207, 315, 206, 14.2, 25.8, 55.4],
        TRANS_DAWA: [660, 419, 926, 544, 36.6, 19.2, 79.7],
    },
    EPSILONS[2]: {
        LAPLACE: [9] * 7,
        DAWA: [8.0, 10.4, 18.4, 13.6, 0.44, 1.16, 1.38],
        TRANS: [8] * 7,
        CONSISTENT: [7.8, 5.8, 7.0, 6.0, 4.2, 3.8, 4.1],
        TRANS_DAWA: [6.6, 5.1, 7.0, 4.3, 0.32, 0.55, 2.8],
    },
}
LINE: Curves = {
    EPSILONS[0]: {
        PRIVELET: [1.2e8] * 7,
        DAWA: [1.2e7, 4.3e6, 7.3e6, 3.4e6, 1.8e5, 2.4e5, 4.2e5],
        TRANS: [4e4] * 7,
        CONSISTENT: [3.7e4, 1.3e4, 1.6e4, 1.1e4, 639, 411, 1000],
        TRANS_DAWA: [7.6e4, 3.6e4, 4.0e4, 3.0e4, 1480, 134, 771],
    },
    EPSILONS[1]: {
        PRIVELET: [1.1e6] * 7,
        DAWA: [2.5e5, 1.4e5, 1.8e5, 7.7e4, 3.1e3, 1.2e4, 1.6e4],
        TRANS: [400] * 7,
        CONSISTENT: [379, 184, 288, 184, 18.4, 13.7, 34.1],
        TRANS_DAWA: [653, 451, 1040, 625, 40, 10, 64],
    },
    EPSILONS[2]: {
        PRIVELET: [1e4] * 7,
        DAWA: [2940, 1410, 4090, 1180, 40, 802, 502],
        TRANS: [8] * 7,
        CONSISTENT: [7.8, 5.4, 6.8, 5.9, 4.1, 3.6, 3.8],
        TRANS_DAWA: [6.8, 5.3, 7.7, 4.6, 0.43, 0.41, 2.35],
    },
}
SIZES = (512, 1024, 2048, 4096)
THRESHOLD: Curves = {
    EPSILONS[0]: {
        PRIVELET: [5.0e7, 7.1e7, 7.9e7, 1.26e8],
        DAWA: [3.2e6, 2.3e6, 5.3e6, 2.9e6],
        TRANS: [9.5e5, 8.7e5, 9.2e5, 8.7e5],
        TRANS_DAWA: [1.31e6, 1.42e6, 1.31e6, 1.31e6],
    },
    EPSILONS[2]: {
        PRIVELET: [5.3e3, 5.2e3, 8.7e3, 1.04e4],
        DAWA: [617, 610, 1480, 1280],
        TRANS: [329, 362, 337, 346],
        TRANS_DAWA: [137, 149, 142, 141],
    },
}
TITLES = {
    "histogram": "Haney et al.: histogram of 4,096 bins, neighbouring bins secret (line)",
    "ranges": "Haney et al.: 10,000 random ranges over 4,096 bins, neighbouring bins secret (line)",
    "threshold": "Haney et al.: 10,000 random ranges, bins at most 4 apart secret (θ = 4)",
}
KEY = (
    "A Patent, B Income, C HepTh, D Search logs, E Nettrace, F Adult capital-loss, G Medical cost (DPBench)."
)
MERGED = "Search logs (DPBench) merged to k bins; the paper does not say whose bins were merged."
PAPERS_NOTE = "Paper: read off to about 3 %; DAWA looks at the data to merge bins, ours does not. Its ε = 1 panels exceed its own theory and are no target."
CURVES = {
    "histogram": (HISTOGRAM, (LAPLACE, DAWA, TRANS, CONSISTENT, TRANS_DAWA)),
    "ranges": (LINE, (PRIVELET, DAWA, TRANS, CONSISTENT, TRANS_DAWA)),
    "threshold": (THRESHOLD, (PRIVELET, DAWA, TRANS, TRANS_DAWA)),
}
Error = Callable[[np.ndarray], float]


def cells(table: np.ndarray) -> Error:
    """Mean squared error of all counts, from prefix sums."""
    return lambda prefix: float(((np.diff(prefix) - table) ** 2).mean())


def ranges(table: np.ndarray) -> Error:
    """Mean squared error of uniformly random ranges, from prefix sums."""
    ends = np.sort(np.random.default_rng(3).integers(0, len(table), (2, RANGES)), axis=0)
    truth = np.concatenate([[0], np.cumsum(table)])
    first, past = ends[0], ends[1] + 1
    told = truth[past] - truth[first]
    return lambda prefix: float(((prefix[past] - prefix[first] - told) ** 2).mean())


def cases(panel: str) -> Iterator[tuple[str | int, int, np.ndarray]]:
    """(x, index in the paper's columns, exact histogram) of a panel."""
    if panel != "threshold":
        for at, (letter, name) in enumerate(DATA.items()):
            yield letter, at, histogram_1d(name)
        return
    whole = histogram_1d(DATA["D"])
    for at, size in enumerate(SIZES):
        yield size, at, whole.reshape(size, -1).sum(axis=1)


def measure(panel: str, runs: int) -> list[Row]:
    """All points of a panel."""
    rng = np.random.default_rng(4)
    rows: list[Row] = []
    for epsilon, curves in CURVES[panel][0].items():
        for x, at, table in cases(panel):
            domain = td.Domain(x=td.Integer(0, len(table) - 1))
            policy = td.Policy(domain, td.Within(THETA if panel == "threshold" else 1))
            strategy = planned(td.Histogram("x") if panel == "histogram" else td.Ranges("x"), policy, epsilon)
            error = (cells if panel == "histogram" else ranges)(table)
            found = []
            for drawn in draws(strategy, table[None, :], runs):
                own = drawn.prefix if drawn.prefix is not None else _summed(drawn.values)
                found.append(error(own[0]))
            again = []
            for _ in range(runs):
                if panel == "threshold":
                    again.append(error(haney.spanner(table, THETA, float(epsilon), rng)))
                else:
                    again.append(error(haney.consistent(haney.line(table, float(epsilon), rng))))
            low, high = np.quantile(found, [0.25, 0.75])
            place: Row = {"facet": f"ε = {float(epsilon):g}", "x": x}
            rows += [place | {"series": name, "y": float(curve[at])} for name, curve in curves.items()]
            rows.append(place | {"series": AGAIN, "y": float(np.mean(again))})
            name = name_of(strategy.mechanism)
            rows.append(place | {"series": EXPECTED, "y": float(strategy.expected_error), "mechanism": name})
            rows.append(place | {"series": OURS, "y": float(np.mean(found)), "low": low, "high": high})
    return rows


def _summed(values: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)


def table_of(rows: Sequence[Row], theirs: Sequence[str]) -> int:
    """Print a panel; returns where ours, measured, is above the paper's best data-independent point at ε below 1."""
    above = 0
    short = [n.removeprefix("paper: ") for n in theirs]
    print(" ".join(f"{t:>16}" for t in ("", *short, "run again", "ours expected", "ours measured")))
    for facet, x in dict.fromkeys((r["facet"], r["x"]) for r in rows):
        at = {r["series"]: r["y"] for r in rows if (r["facet"], r["x"]) == (facet, x)}
        fixed = min(at[n] for n in theirs if "DAWA" not in n)
        best = min(at[n] for n in theirs)
        ours = at[OURS]
        # About 3 % was read off the drawing, and five runs of the paper scatter.
        miss = ours > 1.03 * fixed and facet != "ε = 1"
        above += miss
        told = "   ABOVE" if miss else "   above DAWA" if ours > best else ""
        shown = [at[n] for n in (*theirs, AGAIN, EXPECTED, OURS)]
        print(f"{f'{facet}, {x}':>16} " + " ".join(f"{v:>16,.4g}" for v in shown) + told)
    return above


def look(panel: str, runs: int) -> Look:
    marks = {
        LAPLACE: ("square", PAPER_INK),
        PRIVELET: ("square", PAPER_INK),
        DAWA: ("triangle-up", MORE[0]),
        TRANS: ("circle", THEIRS),
        CONSISTENT: ("diamond", OTHER),
        TRANS_DAWA: ("triangle-down", MORE[1]),
    }
    theirs = tuple(Curve(n, "points", marks[n][1], marks[n][0]) for n in CURVES[panel][1])
    ours = (Curve(EXPECTED, "dashed", PALE_BLUE), Curve(OURS, "line", OURS_BLUE))
    return Look(
        TITLES[panel],
        (f"{MERGED if panel == 'threshold' else KEY} {runs} runs: mean.", PAPERS_NOTE),
        "bins k" if panel == "threshold" else "data",
        "mean squared error",
        (*theirs, *ours),
        across=3,
        categories=() if panel == "threshold" else tuple(DATA),
        log_x=panel == "threshold",
        one_scale=False,
        width=230,
        height=200,
    )


def main() -> int:
    told = arguments(__doc__ or "", list(CURVES))
    missed = 0
    for panel in CURVES if told.panel == "all" else [told.panel]:
        name = f"haney-{panel}"
        if not told.draw_only:
            try:
                rows = measure(panel, told.runs)
            except FileNotFoundError as error:
                print(f"{TITLES[panel]}: {error}")
                continue
            said = {
                "figure": TITLES[panel],
                "y": "mean squared error of an answer, records²",
                "runs": told.runs,
            }
            keep(name, said, rows, told.out)
        found = kept(name, told.out)
        print(f"\n{TITLES[panel]}. {found['runs']} runs")
        missed += table_of(found["rows"], CURVES[panel][1])
        shown = [r for r in found["rows"] if r["series"] != AGAIN]
        print(draw(shown, look(panel, found["runs"]), told.out / f"{name}.svg"))
    print(
        f"\n{'At or below the best point without DAWA' if not missed else f'{missed} point(s) above'} at ε < 1."
    )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
