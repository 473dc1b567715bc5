"""Seconds and memory of microdata against rows, and of one channel problem against clusters.

    python -m benchmarks.microdata.scaling [--only rows clusters] [--rows 1000 10000 100000 1000000] [--clusters 5 20 100 400] [--out FOLDER]

Rows: 30 columns of mixed people, Gower, 20 clusters, 6 groups of an age, one budget; every size in a process of its own. Seconds
of wall clock and of the processor, of ``fit`` and of ``transform`` (the fitted rows once more, drawn anew); the peak is that of the
process, its table and the libraries included. Clusters: 4,000 synthetic people in 5 groups, one budget.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.channels.common import Results

from .people import mixed

RESULTS = Path(__file__).parent / "results"
SETTINGS: dict[str, Any] = {
    "distortion": "0.3",
    "groups": 6,
    "l": 3,
    "clusters": 20,
    "metric": "gower",
}
LIMIT = 6.0  # GiB at a million rows


def peak() -> float:
    """GiB of this process so far, at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measured(rows: int) -> dict[str, float]:
    """Fit and draw once: seconds, processor seconds, memory, figures."""
    import tetraodon as td

    table = mixed(rows)
    before = peak()
    hybrid = td.HybridObscuring("age", None, k=rows // 25, **SETTINGS)
    wall, cpu = time.perf_counter(), time.process_time()
    hybrid.fit(table)
    fitted, fitted_cpu, after_fit = time.perf_counter(), time.process_time(), peak()
    out = hybrid.transform(table)
    drawn, drawn_cpu = time.perf_counter(), time.process_time()
    if out.num_rows != rows or hybrid.distortion_ > 0.3:
        raise AssertionError("rows are lacking, or the budget is not kept")
    return {
        "fit": fitted - wall,
        "fit_cpu": fitted_cpu - cpu,
        "transform": drawn - fitted,
        "transform_cpu": drawn_cpu - fitted_cpu,
        "table": before,
        "peak_fit": after_fit,
        "peak": peak(),
        "leakage": hybrid.leakage_,
        "bound": float(hybrid.bound_ if hybrid.bound_ is not None else np.nan),
        "distortion": hybrid.distortion_,
        "realised": hybrid.realised_distortion_,
    }


def apart(work: Any, *arguments: Any) -> Any:
    """A call in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def by_rows(sizes: list[int], folder: Path) -> bool:
    """The table of rows; whether memory and time are as promised."""
    columns = [
        "rows",
        "fit s",
        "transform s",
        "processor s",
        "ratio to the size before",
        "GiB with the table alone",
        "GiB at most",
        "leakage bits",
        "bound bits",
        "expected distortion",
        "realised",
    ]
    text = (
        "30 columns of mixed people, Gower, 20 clusters, 6 groups, k = a 25th of the rows, l = 3, one budget of 0.3. Seconds of wall clock (processor: "
        "fit and transform together); ratio: processor seconds over those of the size before, where linear is the ratio of the rows."
    )
    results = Results("rows", text, columns, folder)
    before: tuple[int, float] | None = None
    good = True
    for rows in sizes:
        told = apart(measured, rows)
        cpu = told["fit_cpu"] + told["transform_cpu"]
        ratio = "" if before is None else f"{cpu / before[1]:.2f} (rows {rows / before[0]:g})"
        if before is not None and before[0] >= 100_000:
            good &= cpu / before[1] <= 1.2 * rows / before[0]
        good &= rows > 1_000_000 or told["peak"] < LIMIT
        results.add(
            f"{rows:,}", f"{told['fit']:.2f}", f"{told['transform']:.2f}", f"{cpu:.2f}", ratio, f"{told['table']:.2f}",
            f"{told['peak']:.2f}", f"{told['leakage']:.4f}", f"{told['bound']:.4f}", f"{told['distortion']:.4f}",
            f"{told['realised']:.4f}",
        )  # fmt: skip
        results.keep()
        before = rows, cpu
    return good


def solved(clusters: int) -> dict[str, float]:
    """One channel problem for all groups, at a quarter of the way from staying to anybody's columns."""
    from tetraodon.microdata.obfuscate import obfuscate

    from .synthetic import apart as far
    from .synthetic import blocks, equal_groups, people
    from .synthetic import clusters as clustered

    code, counts = people()
    problems, stay, anybody = blocks(code, clustered(counts, clusters), equal_groups(code, 5), far(counts))
    budget = stay + 0.25 * (anybody - stay)
    start = time.process_time()
    found = obfuscate(problems, budget)
    cpu = time.process_time() - start
    return {
        "seconds": cpu,
        "leak": found.leak,
        "bound": found.bound,
        "distortion": found.distortion,
        "budget": budget,
        "peak": peak(),
    }


def by_clusters(sizes: list[int], folder: Path) -> None:
    """The table of clusters."""
    columns = [
        "clusters",
        "processor s",
        "conditional leakage nats",
        "gap nats",
        "distortion",
        "budget",
        "GiB at most",
    ]
    text = (
        "The channel problem alone: 4,000 synthetic people, 60 values, 5 groups, one budget a quarter of the way from each person's own "
        "cluster to anybody of the group. The peak includes the 64 MB of all distances."
    )
    results = Results("clusters", text, columns, folder)
    for clusters in sizes:
        told = apart(solved, clusters)
        results.add(
            clusters, f"{told['seconds']:.3f}", f"{told['leak']:.6f}", f"{told['leak'] - told['bound']:.1e}",
            f"{told['distortion']:.4f}", f"{told['budget']:.4f}", f"{told['peak']:.2f}",
        )  # fmt: skip
        results.keep()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__ or "", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=["rows", "clusters"], choices=["rows", "clusters"])
    parser.add_argument("--rows", nargs="*", type=int, default=[1_000, 10_000, 100_000, 300_000, 1_000_000])
    parser.add_argument("--clusters", nargs="*", type=int, default=[5, 10, 20, 50, 100, 200, 400])
    parser.add_argument("--out", type=Path, default=RESULTS)
    told = parser.parse_args()
    good = True
    if "rows" in told.only:
        good = by_rows(told.rows, told.out)
    if "clusters" in told.only:
        by_clusters(told.clusters, told.out)
    if not good:
        sys.exit("Time is not linear in the rows from 100,000 on, or a million rows take 6 GiB and more.")


if __name__ == "__main__":
    main()
