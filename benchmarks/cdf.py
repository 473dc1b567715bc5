# ruff: noqa: B023
"""A cumulative count over 1,000,000 cells: plan, release after counting, 10,000 ranges.

    python benchmarks/cdf.py [rounds, default 5]

Medians of wall seconds; every figure of one θ is measured in the same process. Must hold: plan below 1 s, release (noise,
reconstruction, post-processing, intervals) below 0.3 s given the table of counts, 10,000 ranges below 5 ms.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import tetraodon as td
from tetraodon import noise
from tetraodon.answers import answers
from tetraodon.mechanisms.select import candidates
from tetraodon.release import Priced, Release
from tetraodon.workload import resolve

CELLS = 1_000_000
LIMITS = {"plan": 1.0, "release": 0.3, "10,000 ranges": 0.005}


def seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = action()
    return time.perf_counter() - start, found


def main(rounds: int) -> int:
    generator = np.random.default_rng(1)  # made-up counts, not noise
    counts = generator.poisson(0.05, CELLS).astype(np.int64)[None, :]
    total = int(counts.sum())
    domain = td.Domain(x=td.Integer(0, CELLS - 1))
    lows = generator.integers(0, CELLS, 10_000)
    highs = np.minimum(lows + generator.integers(0, 1000, 10_000), CELLS - 1)
    failed = False
    print(f"{'theta':>6} {'':<14} {'median s':>9} {'least s':>9} {'limit s':>9}")
    for theta in (1, 100):
        policy = td.Policy(domain, secrets=td.Within(theta))
        times: dict[str, list[float]] = {name: [] for name in LIMITS}
        for _ in range(rounds + 1):
            took, ranked = seconds(
                lambda: candidates(resolve(td.CDF("x"), domain), policy.graph, Fraction(1))
            )
            times["plan"].append(took)
            best = ranked[0]
            best.weights.prefix_variance  # noqa: B018 (data-independent: part of the plan that was chosen)

            def release() -> Any:
                with noise.reserve(best.draws) as held:
                    return answers(best, best.observe(counts, total, held))

            took, found = seconds(release)
            times["release"].append(took)
            made = Release("x", best, found, total, (Priced(best),), 1, {})
            took, estimate = seconds(lambda: made.range(lows, highs).value)
            assert len(estimate) == len(lows)
            times["10,000 ranges"].append(took)
        for name, limit in LIMITS.items():
            warm = times[name][1:]
            middle = statistics.median(warm)
            failed |= middle >= limit
            print(f"{theta:>6} {name:<14} {middle:>9.4f} {min(warm):>9.4f} {limit:>9.4f}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
