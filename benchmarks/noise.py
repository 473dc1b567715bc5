"""Noise: throughput beside OpenDP, and what the time of a batch says about the noise in it.

    python benchmarks/noise.py

One run, one thread, both samplers side by side; prints two tables and writes nothing. Targets: at least 50 times
OpenDP's draws per second at every scale; a rank correlation of batch time with sum |noise| below 0.05 in magnitude over
20,000 batches. OpenDP (optional) stands in both tables: in the second it shows that the measurement can see a leak.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import spearmanr

from tetraodon.noise import discrete_laplace

SCALES = (1, 10, 100, 1000)
DRAWS = 2_000_000
OTHERS_DRAWS = 40_000
ROUNDS = 3
BATCHES = 20_000
BATCH_SIZES = (20, 1000)
FASTER = 50.0
CORRELATION = 0.05

Sampler = Callable[[int], object]


def opendp(scale: int) -> Sampler | None:
    """OpenDP's discrete Laplace on a vector of zeros, or None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    draw = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), float(scale))
    return lambda size: draw([0] * size)


def rate(sampler: Sampler, size: int) -> float:
    """Draws per second."""
    start = time.perf_counter()
    sampler(size)
    return size / (time.perf_counter() - start)


def correlation(sampler: Sampler, size: int) -> float:
    """Spearman's rank correlation of a batch's time with its sum |noise|, over BATCHES batches of ``size``."""
    times = np.empty(BATCHES)
    sums = np.empty(BATCHES)
    for _ in range(200):
        sampler(size)
    for batch in range(BATCHES):
        start = time.perf_counter_ns()
        noise = sampler(size)
        times[batch] = time.perf_counter_ns() - start
        sums[batch] = np.abs(np.asarray(noise)).sum()
    return float(spearmanr(times, sums).statistic)


def main() -> int:
    missed = 0
    gc.collect()
    gc.disable()

    print(f"Millions of draws per second, best of {ROUNDS} rounds taken in turn")
    print(f"{'scale':>6} {'tetraodon':>10} {'OpenDP':>8} {'ratio':>7}")
    for scale in SCALES:
        other = opendp(scale)
        own, others = [], []
        discrete_laplace(scale, 1)  # builds the tables
        for _ in range(ROUNDS):
            own.append(rate(partial(discrete_laplace, scale), DRAWS))
            if other is not None:
                others.append(rate(other, OTHERS_DRAWS))
        if others:
            ratio = max(own) / max(others)
            missed += ratio < FASTER
            print(f"{scale:>6} {max(own) / 1e6:>10.1f} {max(others) / 1e6:>8.3f} {ratio:>7.0f}")
        else:
            print(f"{scale:>6} {max(own) / 1e6:>10.1f} {'-':>8} {'-':>7}   skipped: OpenDP is not installed")

    print(f"\nRank correlation of batch time with sum |noise|, {BATCHES:,} batches (standard error 0.007)")
    print(
        f"{'scale':>6} "
        + " ".join(f"{f'batches of {size}':>16}" for size in BATCH_SIZES)
        + f" {'OpenDP, of 20':>16}"
    )
    for scale in SCALES:
        found = [correlation(partial(discrete_laplace, scale), size) for size in BATCH_SIZES]
        missed += sum(abs(rho) >= CORRELATION for rho in found)
        other = opendp(scale)
        seen = "skipped" if other is None else f"{correlation(other, 20):.3f}"
        print(f"{scale:>6} " + " ".join(f"{rho:>16.3f}" for rho in found) + f" {seen:>16}")

    print(f"\n{'All targets met' if not missed else f'{missed} target(s) missed'}.")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
