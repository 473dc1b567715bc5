"""One setting changed at a time: k, l, groups, clusters. What leaks by XObf, alternating and optimal groups, and the bound.

    python -m benchmarks.microdata.sweeps [--only made-up check-ins young-people big-five] [--out FOLDER]

The search alternates from 5 starts by Algorithm 1; told are its least and its mean. Everything else stands as in ``compare``. What
no method reaches within the budget or the requirements is told as such.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.channels.common import Results
from tetraodon.errors import Refused
from tetraodon.microdata.prepared import Prepared

from .attack import BUDGETS
from .common import LN2, Made, even_start, holds, made
from .compare import GAP, searched
from .people import CASES, Case

RESULTS = Path(__file__).parent / "results"
STARTS = 5
SWEPT: dict[str, dict[str, tuple[int, ...]]] = {
    "made-up": {"k": (30, 60, 120, 200), "l": (1, 3, 5), "groups": (2, 3, 4, 6, 8), "clusters": (4, 8, 16, 32)},
    "check-ins": {"k": (10, 20, 40, 80), "l": (3, 5, 7, 9), "groups": (3, 4, 5, 6), "clusters": (5, 7, 10, 15)},
    "young-people": {"k": (40, 60, 80, 100), "l": (1, 2, 3), "groups": (2, 3, 4, 5), "clusters": (5, 10, 15, 20)},
    "big-five": {"k": (100, 300, 500), "l": (3, 6, 9), "groups": (4, 5, 6, 8), "clusters": (5, 10, 20, 40)},
}  # fmt: skip
COLUMNS = "people, setting, value, xobf bits, alternating least, alternating mean, optimal, certified bound, gap nats, processor s of optimal"


def one(name: str, case: Case, prepared: Prepared) -> Made | None:
    """From even groups where they meet the requirements; None where nothing meets them within the budget."""
    try:
        return made(
            name, case, prepared, np.zeros(0, np.int64) if name == "optimal" else even_start(case, prepared)
        )
    except Refused:
        return None


def bits(found: Made | None) -> str:
    return "out of reach" if found is None else f"{found.leak / LN2:.4f}"


def swept(case: Case, budget: str, setting: str, value: int, results: Results) -> bool:
    """A row; whether the optimum is one."""
    changed: dict[str, Any] = {setting: value}
    if setting == "groups":
        changed["alpha"] = None  # fewer groups are larger
        changed["beta"] = None
    prepared = case.prepared(distortion=budget, **changed)
    plain, best = one("xobf", case, prepared), one("optimal", case, prepared)
    several = searched(case, prepared, STARTS)
    holds(case, prepared, [m for m in (plain, best, *several) if m is not None])
    leaks = [m.leak / LN2 for m in several]
    bound = None if best is None or best.bound is None else best.bound
    results.add(
        case.name, setting, value, bits(plain), f"{min(leaks):.4f}" if leaks else "out of reach",
        f"{np.mean(leaks):.4f}" if leaks else "", bits(best), "" if bound is None else f"{bound / LN2:.4f}",
        "" if best is None or bound is None else f"{best.leak - bound:.1e}",
        "" if best is None else f"{best.seconds:.2f}",
    )  # fmt: skip
    others = [m for m in (plain, *several) if m is not None]
    if best is None:
        return not others
    return all(best.leak <= m.leak + GAP for m in others)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__ or "", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    told = parser.parse_args()
    good = True
    budgets = ", ".join(f"{n} {BUDGETS[n]}" for n in told.only)
    text = (
        f"Bits. One setting at a time, the rest as in compare, budgets {budgets}. Where the number of groups changes, alpha and beta are "
        "left out. Clusters of the check-ins other than 7 are made of the 676 people kept."
    )
    results = Results("sweeps", text, COLUMNS.split(", "), told.out)
    for name in told.only:
        try:
            case = CASES[name]()
        except FileNotFoundError as error:
            print(f"{name}: {error}")
            continue
        for setting, values in SWEPT[name].items():
            for value in values:
                good &= swept(case, BUDGETS[name], setting, value, results)
            results.keep()
    if not good:
        sys.exit("The optimum leaks more than another method.")


if __name__ == "__main__":
    main()
