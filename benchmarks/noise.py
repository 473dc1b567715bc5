"""Noise: throughput beside OpenDP, what the time of a batch says of the noise in it, and the time of its facts.

    python benchmarks/noise.py [laplace|gaussian]

One run, one thread, both samplers side by side; prints tables and writes nothing. Targets: at least 50 times OpenDP's
draws per second at every scale for Laplace noise, 30 times at every sigma for Gaussian noise; a rank correlation of
batch time with sum |noise| below 0.05 in magnitude over 20,000 batches; a variance and a quantile in less than a
millisecond. OpenDP (optional) stands in two tables: in the second it shows that the measurement can see a leak.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.stats import spearmanr

from tetraodon.noise import (
    discrete_gaussian,
    discrete_gaussian_quantile,
    discrete_gaussian_variance,
    discrete_laplace,
    discrete_laplace_quantile,
    discrete_laplace_variance,
)

SIZES = (1, 10, 100, 1000)  # scales of Laplace, sigmas of Gaussian noise
DRAWS = 2_000_000
OTHERS_DRAWS = 40_000
ROUNDS = 3
BATCHES = 20_000
BATCH_SIZES = (20, 1000)
CORRELATION = 0.05
PRICED = 300
PRICE = 1e-3

Sampler = Callable[[int], object]


@dataclass(frozen=True)
class Law:
    name: str
    parameter: str
    faster: float
    sampler: Callable[[int], Sampler]
    other: Callable[[int], Sampler | None]
    variance: Callable[[Fraction], float]
    quantile: Callable[[Fraction, Fraction], int]


def opendp(law: str, size: int) -> Sampler | None:
    """OpenDP's discrete noise on a vector of zeros, or None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "laplace":
        draw = dp.m.make_laplace(domain, dp.l1_distance(T=int), float(size))
    else:
        draw = dp.m.make_gaussian(domain, dp.l2_distance(T=float), float(size))
    return lambda count: draw([0] * count)


LAWS = {
    "laplace": Law(
        "Laplace", "scale", 50.0,
        lambda scale: partial(discrete_laplace, scale), partial(opendp, "laplace"),
        discrete_laplace_variance, discrete_laplace_quantile,
    ),
    "gaussian": Law(
        "Gaussian", "sigma", 30.0,
        lambda sigma: partial(discrete_gaussian, sigma * sigma), partial(opendp, "gaussian"),
        discrete_gaussian_variance, discrete_gaussian_quantile,
    ),
}  # fmt: skip


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


def throughput(law: Law) -> int:
    print(f"{law.name}: millions of draws per second, best of {ROUNDS} rounds taken in turn")
    print(f"{law.parameter:>6} {'tetraodon':>10} {'OpenDP':>8} {'ratio':>7}")
    missed = 0
    for size in SIZES:
        sampler, other = law.sampler(size), law.other(size)
        own, others = [], []
        sampler(1)  # builds the tables
        for _ in range(ROUNDS):
            own.append(rate(sampler, DRAWS))
            if other is not None:
                others.append(rate(other, OTHERS_DRAWS))
        if others:
            ratio = max(own) / max(others)
            missed += ratio < law.faster
            print(f"{size:>6} {max(own) / 1e6:>10.1f} {max(others) / 1e6:>8.3f} {ratio:>7.0f}")
        else:
            print(f"{size:>6} {max(own) / 1e6:>10.1f} {'-':>8} {'-':>7}   skipped: OpenDP is not installed")
    return missed


def timing(law: Law) -> int:
    print(
        f"\n{law.name}: rank correlation of batch time with sum |noise|, {BATCHES:,} batches (standard error 0.007)"
    )
    print(
        f"{law.parameter:>6} "
        + " ".join(f"{f'batches of {size}':>16}" for size in BATCH_SIZES)
        + f" {'OpenDP, of 20':>16}"
    )
    missed = 0
    for size in SIZES:
        found = [correlation(law.sampler(size), count) for count in BATCH_SIZES]
        missed += sum(abs(rho) >= CORRELATION for rho in found)
        other = law.other(size)
        seen = "skipped" if other is None else f"{correlation(other, 20):.3f}"
        print(f"{size:>6} " + " ".join(f"{rho:>16.3f}" for rho in found) + f" {seen:>16}")
    return missed


def pricing(law: Law) -> int:
    """The mean time of a variance and of a 95 % quantile that were not asked before."""
    print(
        f"\n{law.name}: microseconds a call, {PRICED} different parameters near the square of each {law.parameter}"
    )
    print(f"{law.parameter:>6} {'variance':>10} {'quantile':>10}")
    missed = 0
    for size in SIZES:
        parameters = [size * size + Fraction(i, 12_345) for i in range(PRICED)]
        took = []
        for price in (law.variance, lambda p: law.quantile(p, Fraction(19, 20))):
            start = time.perf_counter()
            for parameter in parameters:
                price(parameter)
            took.append((time.perf_counter() - start) / PRICED)
        missed += sum(t >= PRICE for t in took)
        print(f"{size:>6} " + " ".join(f"{t * 1e6:>10.0f}" for t in took))
    return missed


def main(asked: list[str]) -> int:
    missed = 0
    gc.collect()
    gc.disable()
    for number, name in enumerate(asked or LAWS):
        print("\n" * bool(number), end="")
        missed += sum(table(LAWS[name]) for table in (throughput, timing, pricing))
    print(f"\n{'All targets met' if not missed else f'{missed} target(s) missed'}.")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
