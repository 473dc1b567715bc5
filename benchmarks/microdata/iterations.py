"""Leakage after every step: of HyObscure's alternation, and of the search for the optimum, beside what is proved by then.

    python -m benchmarks.microdata.iterations [--only made-up check-ins young-people big-five] [--out FOLDER]

Alternation: from even groups and from 3 starts by Algorithm 1; a step is new channels or moved boundaries. Optimum: a step is a
multiplier of the distortion (the first one a budget in each group), after which the best partition so far leaks the leakage told
and none leaks less than the bound. Fails where a leakage rises, or a bound falls or passes the leakage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.channels.common import Results
from tetraodon.errors import Refused
from tetraodon.microdata import joint
from tetraodon.microdata.fit import candidates_of
from tetraodon.microdata.prepared import Prepared

from .attack import BUDGETS
from .common import LN2, even_start, made, start_of
from .people import CASES, Case

RESULTS = Path(__file__).parent / "results"
STARTS = 3
COLUMNS = "people, search, step, what, leakage bits, certified bound bits, distortion, candidates priced"


def steps_of_optimum(prepared: Prepared) -> list[tuple[str, float, float, float, int]]:
    """Of every multiplier: what it was, least leakage so far, bound so far (both nats), distortion, candidates priced by then."""
    told: list[tuple[str, float, float, float, int]] = []
    best, bound = [np.inf, np.nan], [0.0]
    cheapest, solved = joint._cheapest, joint._solved

    def recorded(market: Any, lam: float | None) -> Any:
        found = cheapest(market, lam)
        if found is not None and lam is not None:
            bound[0] = max(bound[0], found[1] - lam * market.budget)
        what = "a budget in each group" if lam is None else f"multiplier {lam:.4g}"
        told.append((what, best[0], bound[0], best[1], len(market.known)))
        return found

    def noticed(market: Any, chosen: Sequence[int], tol: float) -> Any:
        found = solved(market, chosen, tol)
        if found is not None and found.objective < best[0]:
            best[:] = [found.objective, found.distortion]
        if told:
            told[-1] = (told[-1][0], best[0], told[-1][2], best[1], told[-1][4])
        return found

    with mock.patch.object(joint, "_cheapest", recorded), mock.patch.object(joint, "_solved", noticed):
        joint.optimal(prepared, candidates_of(prepared, 0))
    return told


def told_of(case: Case, budget: str, results: Results) -> bool:
    """The rows of one kind of people; whether nothing rises that must not."""
    prepared = case.prepared(distortion=budget)
    starts = {"even groups": even_start(case, prepared)}
    for seed in range(STARTS):
        with suppress(Refused):
            starts[f"start {seed + 1}"] = start_of(prepared, seed)
    good, least = True, np.inf
    for name, start in starts.items():
        try:
            history = made("alternating", case, prepared, start).history
        except Refused:
            results.add(case.name, f"alternating, {name}", "", "out of reach", "", "", "", "")
            continue
        leaks = [s.leak for s in history]
        good &= bool((np.diff(leaks) <= 1e-9).all())
        least = min(least, leaks[-1])
        for i, step in enumerate(history):
            results.add(
                case.name, f"alternating, {name}", i + 1, step.kind, f"{step.leak / LN2:.5f}", "", f"{step.distortion:.5f}", ""
            )  # fmt: skip
    steps = steps_of_optimum(prepared)
    for i, (what, leak, bound, distortion, priced) in enumerate(steps):
        results.add(
            case.name, "optimal", i + 1, what, f"{leak / LN2:.5f}", f"{bound / LN2:.5f}", f"{distortion:.5f}", priced
        )  # fmt: skip
    best, bounds = np.array([s[1] for s in steps]), np.array([s[2] for s in steps])
    good &= bool((np.diff(best[np.isfinite(best)]) <= 0).all() and (np.diff(bounds) >= 0).all())
    return good and bool(bounds[-1] <= best[-1] + 1e-9) and bool(best[-1] <= least + 1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__ or "", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    told = parser.parse_args()
    budgets = ", ".join(f"{n} {BUDGETS[n]}" for n in told.only)
    results = Results(
        "iterations", f"Bits after every step. One budget for all, k, l, alpha, beta as in compare; budgets {budgets}.", COLUMNS.split(", "), told.out
    )  # fmt: skip
    good = True
    for name in told.only:
        try:
            case = CASES[name]()
        except FileNotFoundError as error:
            print(f"{name}: {error}")
            continue
        good &= told_of(case, BUDGETS[name], results)
        results.keep()
    if not good:
        sys.exit("A leakage rose, or a bound fell or passed the leakage.")


if __name__ == "__main__":
    main()
