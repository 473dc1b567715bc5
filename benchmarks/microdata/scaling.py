"""Seconds and memory of microdata against rows, and of one channel problem against clusters.

    python -m benchmarks.microdata.scaling [--only rows release clusters] [--rows 1000 10000 100000 1000000] [--clusters 5 20 100 400]
        [--out FOLDER]

Rows: 30 columns of mixed people, Gower, 20 clusters, 6 groups of an age, one budget; every size in a process of its own. Processor
seconds of ``fit`` and of ``transform`` (the fitted rows once more, drawn anew); the peak is that of the process, its table and the
libraries included. Release: the same through a session, whose columns are read as declared cells, and written to a folder.
Clusters: 4,000 synthetic people in 5 groups, one budget.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
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
TABLES = ("rows", "release", "clusters")
LIMIT = 6.0  # GiB at a million rows


def peak() -> float:
    """GiB of this process so far, at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measured(rows: int) -> dict[str, float]:
    """Fit and draw once: processor seconds, memory, figures."""
    import tetraodon as td

    table = mixed(rows)
    before = peak()
    hybrid = td.HybridObscuring("age", "all", k=rows // 25, **SETTINGS)
    start = time.process_time()
    hybrid.fit(table)
    fitted = time.process_time()
    out = hybrid.transform(table)
    drawn = time.process_time()
    if out.num_rows != rows or hybrid.distortion_ > float(SETTINGS["distortion"]):
        raise AssertionError("rows are lacking, or the budget is not kept")
    return {
        "first": fitted - start,
        "second": drawn - fitted,
        "table": before,
        "peak": peak(),
        "leakage": hybrid.leakage_,
        "bound": float(hybrid.bound_ if hybrid.bound_ is not None else np.nan),
        "distortion": hybrid.distortion_,
        "realised": hybrid.realised_distortion_,
    }


def published(rows: int) -> dict[str, float]:
    """The same through a session, written to a folder."""
    import tetraodon as td

    table = mixed(rows)
    domain = td.Domain(**{name: _declared(name, table.column(name)) for name in table.column_names})
    before = peak()
    start = time.process_time()
    session = td.Session(
        td.Table(table, domain), td.Policy(domain, td.AttributeWise(age=td.Within(5))), epsilon=1
    )
    columns = [n for n in table.column_names if n != "age"]
    request = td.HybridObscuring("age", columns, k=rows // 25, **SETTINGS)
    out = session.release(request, guarantee="measured", name="people")
    released = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        out.save(folder)
    written = time.process_time()
    figures = out.plan.figures
    if out.table.num_rows != rows or figures["distortion"] > float(SETTINGS["distortion"]):
        raise AssertionError("rows are lacking, or the budget is not kept")
    return {
        "first": released - start,
        "second": written - released,
        "table": before,
        "peak": peak(),
        "leakage": figures["leakage"],
        "bound": float(out.plan.bound if out.plan.bound is not None else np.nan),
        "distortion": figures["distortion"],
        "realised": out.realised,
    }


def _declared(name: str, column: Any) -> Any:
    """Three cells for numbers: a domain has at most 2^63 cells in all."""
    import tetraodon as td

    if name == "age":
        return td.Integer(17, 90)
    if name.startswith("count"):
        return td.Integer(0, 2)
    if name.startswith("measure"):
        return td.Numeric(-3, 3, width=2)
    return td.Categorical([v.as_py() for v in column.chunk(0).dictionary])


def apart(work: Any, *arguments: Any) -> Any:
    """A call in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def by_rows(sizes: list[int], folder: Path, session: bool) -> bool:
    """The table of rows; whether memory and time are as promised."""
    first, second = ("release", "publish") if session else ("fit", "transform")
    columns = (
        f"rows, {first} s, {second} s, together, ratio to the size before, s per 100,000 rows more, GiB with the table alone, "
        "GiB at most, leakage bits, bound bits, expected distortion, realised"
    ).split(", ")
    how = (
        " Through a session: declared cells (three of each number), published as Parquet." if session else ""
    )
    text = (
        "30 columns of mixed people, Gower, 20 clusters, 6 groups, k = a 25th of the rows, l = 3, one budget of "
        f"{SETTINGS['distortion']}.{how} Processor seconds; what the search for groups takes does not grow with the rows."
    )
    results = Results("release" if session else "rows", text, columns, folder)
    before: tuple[int, float] | None = None
    good = True
    for rows in sizes:
        told = apart(published if session else measured, rows)
        cpu = told["first"] + told["second"]
        ratio = more = ""
        if before is not None:
            ratio = f"{cpu / before[1]:.2f} (rows {rows / before[0]:.3g})"
        if before is not None and before[0] >= 100_000:
            more = f"{1e5 * (cpu - before[1]) / (rows - before[0]):.2f}"
            good &= cpu / before[1] <= 1.1 * rows / before[0]
        good &= rows > 1_000_000 or told["peak"] < LIMIT
        results.add(
            f"{rows:,}", f"{told['first']:.2f}", f"{told['second']:.2f}", f"{cpu:.2f}", ratio, more, f"{told['table']:.2f}",
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
    parser.add_argument("--only", nargs="*", default=[*TABLES], choices=TABLES)
    parser.add_argument(
        "--rows", nargs="*", type=int, default=[1_000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000]
    )
    parser.add_argument("--clusters", nargs="*", type=int, default=[5, 10, 20, 50, 100, 200, 400])
    parser.add_argument("--out", type=Path, default=RESULTS)
    told = parser.parse_args()
    good = True
    if "rows" in told.only:
        good &= by_rows(told.rows, told.out, False)
    if "release" in told.only:
        good &= by_rows(told.rows, told.out, True)
    if "clusters" in told.only:
        by_clusters(told.clusters, told.out)
    if not good:
        sys.exit("Time is not linear in the rows from 100,000 on, or a million rows take 6 GiB and more.")


if __name__ == "__main__":
    main()
